//! The inputs of the screen's state (`Message`, `Action`) and its requests to the shell (`Effect`). None of them knows a key, a colour or
//! a clock.

use std::path::PathBuf;

use super::exercise::ExerciseNews;
use super::lane_view::LaneMove;
use super::source::{FromEngine, ReplayControl};
use super::timeline::TimelineMove;
use super::view::{Markers, Overlay, ThemeName};
use crate::class::link::RoomNews;
use crate::class::record::{InstructorRequest, Participant};
use crate::course::exercise::config::Answers;
use crate::course::journey::LastJourney;
use crate::course::save_file::{Progress, ProgressChange};
use crate::lanes::LanesWanted;
use crate::panel::Panel;
use protocol::config::RunConfig;
use protocol::{Command, CompiledKernel};

/// An input that can change the state.
#[derive(Clone, Debug)]
pub enum Message {
    Action(Action),
    Engine(FromEngine),
    /// A line of the recording that the open exercise is about.
    Recorded(FromEngine),
    /// A tick of the clock. `now_ms` is in milliseconds since the program began.
    Tick {
        now_ms: u64,
    },
    Resized {
        width: u16,
        height: u16,
    },
    /// A frame was drawn.
    Drawn(DrawnFrame),
    /// The learner saved the stage's configuration file. An error says what is wrong with it.
    FileSaved {
        config: Result<Box<RunConfig>, String>,
    },
    /// The learner's file of this stage was read, because the stage was entered.
    FileRead {
        stage: String,
        config: Result<Box<RunConfig>, String>,
    },
    /// The last table of `perflings run all` was read. `None` if there is none.
    Journey(Option<Box<LastJourney>>),
    /// The texts of the kernels that a configuration launches on a device were read, or cannot be read for a reason.
    KernelsRead {
        device: String,
        config: Box<RunConfig>,
        texts: Result<Vec<CompiledKernel>, String>,
    },
    /// There is news about the exercise with this id.
    Exercise {
        exercise: String,
        news: ExerciseNews,
    },
    /// There is news from the class.
    Room(RoomNews),
    /// Progress could not be saved for this reason. `None` once it is saved again.
    ProgressUnsaved {
        why: Option<String>,
    },
    /// The shell has a sentence to show, about an effect that was carried out or failed.
    Notice {
        text: String,
        warning: bool,
    },
}

/// The scroll limits of the frame just drawn, in lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DrawnFrame {
    pub panels: Vec<(Panel, u16)>,
    /// The scroll limit of the open card.
    pub overlay: u16,
    /// The rows with a figure in the marked panel, while the learner has to choose one of them.
    pub rows: Vec<String>,
}

/// The meaning of a key or a mouse event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Action {
    Quit,
    Suspend,
    // The course.
    Stage(u32),
    NextStage,
    PreviousStage,
    /// Answers the open question with a choice, where a = 0.
    Answer(usize),
    /// Goes to the open question. If none is open, asks the wrongly answered questions of the quiz again.
    Question,
    /// Moves the range of an estimate by this many steps.
    RangeShift(i32),
    /// Widens the range on each side by this many steps.
    RangeWiden(i32),
    /// Keeps the range as the learner's estimate.
    RangeKeep,
    Hint,
    Solution,
    Reset,
    /// Marks the answer of the open exercise this many places further on.
    PickOther(i32),
    /// Takes the marked answer.
    PickThis,
    /// Cancels the measurement of an exercise.
    StopMeasuring,
    /// Leaves the exercise for the stage.
    LeaveExercise,
    /// Begins or ends presenter mode.
    Present,
    NextBeat,
    PreviousBeat,
    /// Shows a beat, given by the number of its stage and its place in the stage from 0.
    GoToBeat {
        stage: u32,
        beat: usize,
    },
    EndPresentation,
    /// Marks the right choice of the vote, with its reason.
    ShowAnswer,
    /// Presents from the first beat of the course if true, else from the beat where the last presentation ended.
    PresentFrom(bool),
    /// Empties the audience's screen, or shows it again.
    BlankScreen,
    /// Freezes the audience's screen, or shows it live again.
    FreezeScreen,
    /// Quits after a confirmation.
    AskQuit,
    /// Turns the pages of the lesson, or of the open card.
    TurnPage(i32),
    // The class.
    RaiseHand,
    /// Follows the instructor's call: shows the vote, goes to the stage, or begins the race.
    TakeUp,
    /// Opens the vote of the beat, closes it, or opens its second round, as the instructor.
    OpenVote,
    /// Votes for a choice, where a = 0.
    Vote(usize),
    LeaveRoom,
    /// Answers that the marked row shows the fault.
    Locate,
    /// Shows the next panel that the evidence names.
    NextPointer,
    /// Begins to search for a word. Typed letters belong to the search from now on.
    Search,
    Type(char),
    Erase,
    /// Ends the typing and keeps the search, or confirms a typed value.
    KeepSearch,
    // The knobs.
    /// Opens or closes the knobs.
    Knobs,
    /// Selects the knob this many rows further down.
    KnobRow(i32),
    /// Gives the selected knob the value this many places further on.
    KnobTurn(i32),
    /// Selects the knob on this row. If it is selected already, gives it its next value.
    KnobAt(usize),
    /// Begins to type a value for the selected knob.
    TypeValue,
    /// Runs the shown solution as B.
    TakeSolution,
    // The run.
    Toggle,
    Pause,
    Restart,
    Pair,
    Profile,
    /// Moves the run from the CPU to the GPU that has warmed up.
    SwitchDevice,
    /// Repeats in f32 a run that failed on matrix cores.
    InF32,
    // A recording.
    ReplayStep,
    ReplayFaster,
    ReplaySlower,
    /// What a watched training reports from now on is B.
    MarkB,
    /// Shows the latest profile of the watched training as `perflings open` does.
    OpenProfile,
    // The view.
    Open(Overlay),
    Close,
    FocusNext,
    FocusPrevious,
    Focus(Panel),
    Expand,
    /// Shows the roofline over all panels, or hides it.
    Roofline,
    /// Shows the next panel that the stage's evidence names over all others. After the last one, shows all panels.
    Evidence,
    Lesson,
    LogAxis,
    Window,
    Smooth,
    Markers,
    Theme,
    Sort,
    /// Shows the text of the selected row's kernel.
    OpenKernel,
    Timeline(TimelineMove),
    Lanes(LaneMove),
    Scroll(i32),
    ScrollPanel(Panel, i32),
    ScrollToTop,
    ScrollToEnd,
    /// Takes the selected line of a list.
    Choose,
    /// Takes this line of a list.
    ChooseLine(usize),
    Yes,
    No,
    // Outside the screen.
    OpenEditor,
    Report,
}

/// A request of the state that `shell` carries out.
#[expect(clippy::large_enum_variant, reason = "lives for one turn of the loop")]
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    Send(Command),
    /// Replace the engine by a new one. Commands sent after it go to the new one.
    Restart,
    Kill,
    Replay(ReplayControl),
    /// Save a part of the progress. After a change of the present stage, the learner's file of that stage comes back as `FileRead`.
    Save(ProgressChange),
    /// Write these knobs of B to the learner's file of a stage.
    WriteKnobs {
        stage: String,
        config: Box<RunConfig>,
        offers: Vec<String>,
    },
    /// Read the last table of `perflings run all`. It comes back as `Journey`.
    ReadJourney,
    /// Read the texts of the kernels that a step launches. They come back as `KernelsRead`.
    ReadKernels {
        device: String,
        config: Box<RunConfig>,
    },
    /// Save a setting of the display for the next session.
    SaveSetting {
        key: &'static str,
        value: &'static str,
    },
    /// Show a trace of another program as `perflings open` does, until the learner leaves it.
    OpenProfile {
        file: PathBuf,
        theme: ThemeName,
        markers: Markers,
    },
    /// Open a file of a stage or an exercise in the learner's editor.
    OpenEditor {
        stage: String,
        file: String,
        /// The line to open, from 1.
        line: Option<u32>,
    },
    /// Make the learner's copies of an exercise's files, watch them, and check them now and whenever one is saved.
    OpenExercise {
        exercise: String,
        device: String,
    },
    /// Run the open exercise's kernel on the host and record one workgroup. It comes back as `ExerciseNews::Lanes`.
    RecordLanes {
        wanted: LanesWanted,
    },
    /// Stop watching the open exercise's files, and cancel a check in progress.
    LeaveExercise,
    /// Make the runs of a config exercise and compare them with the learner's answers.
    Measure {
        exercise: String,
        device: String,
    },
    /// Cancel the measurement of a config exercise.
    StopMeasuring,
    /// Write answers given on the screen to the learner's file.
    WriteAnswers {
        exercise: String,
        answers: Answers,
    },
    /// Show the recorded run of an exercise, from its beginning.
    ShowRecording {
        exercise: String,
    },
    /// Stop showing the recorded run.
    HideRecording,
    /// Put an exercise's starters back, keeping the learner's files aside, and forget its progress.
    ResetExercise {
        exercise: String,
        device: String,
    },
    /// Forget the stage's progress and put its starter back, keeping the learner's file aside.
    ResetStage {
        stage: String,
    },
    /// Share this record with the class, instead of the last one.
    Share(Box<Participant>),
    LeaveRoom,
    /// Send the class a request of its instructor.
    Order(InstructorRequest),
    WriteReport(Box<Progress>),
    Suspend,
    Quit,
}
