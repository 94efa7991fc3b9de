//! What can happen to the screen's state (`Message`, `Action`) and what it asks for in return (`Effect`).
//! Plain data: no keys, no colours, no clocks.

use super::exercise::ExerciseNews;
use super::lane_view::LaneMove;
use super::source::{FromEngine, ReplayControl};
use super::timeline::TimelineMove;
use super::view::Overlay;
use crate::class::news::RoomNews;
use crate::class::record::{InstructorRequest, Participant};
use crate::course::exercise::config::Answers;
use crate::course::journey::LastJourney;
use crate::course::save_file::{Progress, ProgressChange};
use crate::lanes::LanesWanted;
use crate::panel::Panel;
use protocol::config::RunConfig;
use protocol::{Command, CompiledKernel};

/// Everything that can change the state.
#[derive(Clone, Debug)]
pub enum Message {
    Action(Action),
    Engine(FromEngine),
    /// A line of the recording that the open exercise is about.
    Recorded(FromEngine),
    /// Time, in milliseconds since the start.
    Tick {
        now_ms: u64,
    },
    Resized {
        width: u16,
        height: u16,
    },
    /// How far panels and cards can scroll in the frame just drawn.
    Drawn(DrawnFrame),
    /// The learner saved the stage's configuration: what it holds, or what is wrong with it.
    FileSaved {
        config: Result<Box<RunConfig>, String>,
    },
    /// What the learner's file of this stage holds as the stage is entered.
    FileRead {
        stage: String,
        config: Result<Box<RunConfig>, String>,
    },
    /// The table of the last journey, where one was kept.
    Journey(Option<Box<LastJourney>>),
    /// The texts of the kernels that a configuration launches on a device, or why they cannot be read.
    KernelsRead {
        device: String,
        config: Box<RunConfig>,
        texts: Result<Vec<CompiledKernel>, String>,
    },
    /// Something happened to an exercise, by id.
    Exercise {
        exercise: String,
        news: ExerciseNews,
    },
    /// What the room says.
    Room(RoomNews),
    /// Why progress is not saved at the moment; none once it is.
    ProgressUnsaved {
        why: Option<String>,
    },
    /// An effect was carried out, or failed: one sentence to show.
    Notice {
        text: String,
        warning: bool,
    },
}

/// What the frame just drawn leaves to scroll to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DrawnFrame {
    pub panels: Vec<(Panel, u16)>,
    /// The same for the card over the panels.
    pub overlay: u16,
    /// The rows with a figure in the marked panel, while the learner is asked for one of them.
    pub rows: Vec<String>,
}

/// What the learner asked for, by a key or the mouse.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Action {
    Quit,
    Suspend,
    // The course.
    Stage(u32),
    NextStage,
    PreviousStage,
    /// A choice of the open question, a = 0.
    Answer(usize),
    /// Goes to the open question; in the quiz, asks those again that were answered wrongly.
    Question,
    /// Moves, widens and keeps the range of an estimate.
    RangeShift(i32),
    RangeWiden(i32),
    RangeKeep,
    Hint,
    Solution,
    Reset,
    /// Marks another answer of the open exercise, and takes the marked one.
    PickOther(i32),
    PickThis,
    /// Cancels the measurement of an exercise.
    StopMeasuring,
    /// Leaves the exercise for the stage.
    LeaveExercise,
    /// Presenter mode on and off, and its beats.
    Present,
    NextBeat,
    PreviousBeat,
    /// Shows a beat, by the number of its stage and its place from 0.
    GoToBeat {
        stage: u32,
        beat: usize,
    },
    EndPresentation,
    /// Marks the right choice of the vote, with its reason.
    ShowAnswer,
    /// Presents from the first beat of the course (true), or from where the last presentation was.
    PresentFrom(bool),
    /// Empties the audience's screen, or freezes it; the same key shows it again.
    BlankScreen,
    FreezeScreen,
    /// Quits once that was confirmed.
    AskQuit,
    /// Turns the pages of the lesson, or of the glossary over it.
    TurnPage(i32),
    // The room.
    RaiseHand,
    /// Does what the class asks for: shows its vote, goes to its stage, begins its race.
    TakeUp,
    /// As the instructor: opens the vote of the beat, closes it, opens its second round.
    OpenVote,
    /// A choice of the class's vote, a = 0.
    Vote(usize),
    LeaveRoom,
    /// Says that the marked panel shows the fault.
    Locate,
    /// Goes on to the next panel that the evidence names.
    NextPointer,
    /// Looks a word up: letters narrow the glossary from now on.
    Search,
    Type(char),
    Erase,
    /// Letters are keys again; the search stays.
    KeepSearch,
    // The knobs.
    /// Opens and closes them.
    Knobs,
    /// Selects another row, and changes B there.
    KnobRow(i32),
    KnobTurn(i32),
    /// Selects this row; if it is selected, changes B there.
    KnobAt(usize),
    /// Types a value for the selected knob.
    TypeValue,
    /// Runs the shown solution as B.
    TakeSolution,
    // The run.
    Toggle,
    Pause,
    Restart,
    Pair,
    Profile,
    /// From the CPU to the GPU that has warmed up.
    SwitchDevice,
    /// The run that broke off in a short format, again in f32.
    InF32,
    // A recording.
    ReplayStep,
    ReplayFaster,
    ReplaySlower,
    /// What a watched training reports from now on is B.
    MarkB,
    // What is seen.
    Open(Overlay),
    Close,
    FocusNext,
    FocusPrevious,
    Focus(Panel),
    Expand,
    /// The roofline over all panels, and back.
    Roofline,
    /// The panel that the stage points at over all others; then the next one, and back.
    Evidence,
    Lesson,
    LogAxis,
    Window,
    Smooth,
    Markers,
    Theme,
    Sort,
    /// The text of the selected row's kernel.
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

/// What the state asks for. `workshop` carries it out.
#[expect(clippy::large_enum_variant, reason = "lives for one turn of the loop")]
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    Send(Command),
    /// Replace the engine by a new one. Commands sent after it go to the new one.
    Restart,
    Kill,
    Replay(ReplayControl),
    /// Save a part of the progress. Where it says in which stage the learner is now, the content of their file of that stage comes back as
    /// `FileRead`.
    Save(ProgressChange),
    /// Write these knobs of B to the learner's file of a stage.
    WriteKnobs {
        stage: String,
        config: Box<RunConfig>,
        offers: Vec<String>,
    },
    /// Read the table of the last journey; it comes back as `LastJourney`.
    ReadJourney,
    /// Read the texts of the kernels that a step launches; they come back as `KernelsRead`.
    ReadKernels {
        device: String,
        config: Box<RunConfig>,
    },
    /// Save a setting of the display for the next session.
    SaveSetting {
        key: &'static str,
        value: &'static str,
    },
    /// Open a file of a stage or an exercise in the learner's editor.
    OpenEditor {
        stage: String,
        file: String,
        /// Where to look, from 1.
        line: Option<u32>,
    },
    /// Make the learner's copies of an exercise's files, watch them, and check them now and whenever one is saved.
    OpenExercise {
        exercise: String,
        device: String,
    },
    /// Run the open exercise's kernel on the host and keep what one workgroup does; it comes back as `ExerciseNews::Lanes`.
    RecordLanes {
        wanted: LanesWanted,
    },
    /// Stop watching its files; a check in progress is cancelled.
    LeaveExercise,
    /// Make the runs of a config exercise and compare them with the learner's answers.
    Measure {
        exercise: String,
        device: String,
    },
    /// Cancel that measurement.
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
    /// Stop showing it.
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
    /// Share this with the room from now on.
    Share(Box<Participant>),
    LeaveRoom,
    /// Ask the room's class for this, as its instructor.
    Order(InstructorRequest),
    WriteReport(Box<Progress>),
    Suspend,
    Quit,
}
