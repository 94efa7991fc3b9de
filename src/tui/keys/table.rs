//! The table of all keys. A row has keys, their action, the state of the screen in which they have this meaning, and the texts of the footer
//! and the help.

use crossterm::event::KeyCode::{
    self, BackTab, Backspace, Char, Down, End, Enter, Esc, Home, Left, Null, PageDown, PageUp,
    Right, Tab, Up,
};

use super::conditions::*;
use crate::app::lane_view::LaneMove;
use crate::app::timeline::TimelineMove;
use crate::app::{Action, App, Overlay, Refusal};

/// The heading under which the help lists a key, in the order of the help.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr, strum::VariantArray)]
#[strum(const_into_str)]
pub enum Group {
    #[strum(serialize = "the stage")]
    Stage,
    #[strum(serialize = "the run")]
    Run,
    #[strum(serialize = "the screen")]
    Screen,
    #[strum(serialize = "moving")]
    Move,
    #[strum(serialize = "the program")]
    Program,
}

/// One line of the table.
pub struct KeyBinding {
    /// The keys. A key held with ctrl is the control character that it types; `Null` means every key.
    pub keys: &'static [KeyCode],
    pub action: Action,
    /// The label in the footer, which has the labels in the order of the table. An empty label keeps the key out of the footer.
    pub label: &'static str,
    /// The text in the help. Rows with equal texts share one line there. An empty text keeps the key out of the help.
    pub help: &'static str,
    pub group: Group,
    /// The state in which the key has this meaning.
    pub when: Condition,
}

impl KeyBinding {
    /// Returns true if the key has this meaning now. The action may still be refused; the screen then says why.
    pub fn applies(&self, app: &App) -> bool {
        (self.when)(app) && app.may(self.action) != Err(Refusal::NothingHere)
    }

    /// Returns true if the key does something now.
    pub fn works(&self, app: &App) -> bool {
        (self.when)(app) && app.may(self.action).is_ok()
    }
}

const fn bind(
    keys: &'static [KeyCode],
    action: Action,
    label: &'static str,
    help: &'static str,
    group: Group,
    when: Condition,
) -> KeyBinding {
    KeyBinding {
        keys,
        action,
        label,
        help,
        group,
        when,
    }
}

use Action as A;
use Group::{Move, Program, Run, Screen, Stage};

const CTRL_C: KeyCode = Char('\u{3}');
const CTRL_Z: KeyCode = Char('\u{1a}');
const ANY: KeyCode = Null;
/// The keys that type a figure.
#[rustfmt::skip]
const FIGURE: &[KeyCode] = &[
    Char('0'), Char('1'), Char('2'), Char('3'), Char('4'), Char('5'),
    Char('6'), Char('7'), Char('8'), Char('9'), Char('.'),
];
/// shift-F5 as many terminals send it.
pub(super) const SHIFT_F5: KeyCode = KeyCode::F(17);

// Texts of the help. Keys whose meaning depends on the open card share one text, and so one line of the help.
const ENTER: &str = "continue or select";
const ESCAPE: &str = "go back: close or leave";
const SIDEWAYS: &str = "turn pages and knobs; move an estimate";
const SIZE: &str = "resize an estimate";
const PAGES: &str = "move ten lines or a beat";
const BEGIN: &str = "present: begin or go on";
const QUIT: &str = "quit; progress is kept";
const LINES: &str = "move one line (or wheel)";
const ENDS: &str = "go to the top or the end";
const ANSWER: &str = "answer the question";
const ROOM: &str = "in a room: call, vote, hand, leave, card";
const QUESTION: &str = "go to the open question";
const GOTO: &str = "go to that stage";
const NEIGHBOUR: &str = "go one stage on or back";
const RECORDING: &str = "in a recording: one step, faster, slower";
const AGAIN: &str = "run again from step 0";
const TOGGLE: &str = "run your B; show threads";
const PAIRS: &str = "measure A and B in turns";
const KNOBS: &str = "change B; list earlier Bs";
const EDIT: &str = "edit the file; saving it runs or checks it";
const WORDS: &str = "read glossary, background";
const LOOK_UP: &str = "look up a word";

#[rustfmt::skip] // A table reads best with one line for each key.
/// Every key. The first line that lists the key and applies now is the meaning of the key.
pub static BINDINGS: &[KeyBinding] = &[
    bind(&[Char('y')], A::Yes, "yes", "", Program, always),
    bind(&[Char('n'), Esc], A::No, "no", "", Program, always),
    // A presentation: these are the keys of clickers.
    bind(&[PageDown], A::NextBeat, "next beat", PAGES, Move, PRESENTING),
    bind(&[PageUp], A::PreviousBeat, "back", PAGES, Move, PRESENTING),
    bind(&[Right, Down], A::NextBeat, "", "", Move, PRESENTING),
    bind(&[Left, Up], A::PreviousBeat, "", "", Move, PRESENTING),
    bind(&[Char('b'), Char('.')], A::BlankScreen, "blank", "", Screen, PRESENTING),
    bind(&[Char('F')], A::FreezeScreen, "freeze", "freeze a beat; b: blank", Screen, PRESENTING),
    bind(&[Char('A')], A::ShowAnswer, "answer", "", Stage, PRESENTING),
    bind(&[Char('q')], A::AskQuit, "quit", QUIT, Program, PRESENTING),
    bind(&[Esc], A::Present, "leave", ESCAPE, Screen, PRESENTING),
    bind(&[KeyCode::F(5)], A::PresentFrom(true), "", BEGIN, Stage, main),
    bind(&[SHIFT_F5], A::PresentFrom(false), "", BEGIN, Stage, main),
    // A word is typed.
    bind(&[Enter], A::KeepSearch, "keep", "", Move, typing),
    bind(&[Esc], A::Close, "clear", "", Screen, typing),
    bind(&[Backspace], A::Erase, "", "", Move, typing),
    bind(&[Down], A::Scroll(1), "", "", Move, typing),
    bind(&[Up], A::Scroll(-1), "", "", Move, typing),
    bind(&[PageDown], A::Scroll(10), "", "", Move, typing),
    bind(&[PageUp], A::Scroll(-10), "", "", Move, typing),
    bind(&[Enter], A::Choose, "choose", ENTER, Stage, in_list),
    bind(&[Esc], A::StopMeasuring, "stop measuring", ESCAPE, Screen, main),
    bind(&[Esc], A::Close, "close", ESCAPE, Screen, something_open),
    bind(&[Char('g'), Home], A::ScrollToTop, "", "", Move, in_list),
    bind(&[Char('G'), End], A::ScrollToEnd, "", "", Move, in_list),
    bind(&[Enter], A::TakeSolution, "run it as B", ENTER, Stage, IN_SOLUTION),
    // The knobs.
    bind(&[Enter], A::TypeValue, "type a value", ENTER, Stage, TURNING),
    bind(&[Right], A::KnobTurn(1), "change B", SIDEWAYS, Move, TURNING),
    bind(&[Left], A::KnobTurn(-1), "", SIDEWAYS, Move, TURNING),
    bind(&[Down, Char('j')], A::KnobRow(1), "knob", LINES, Move, TURNING),
    bind(&[Up, Char('k')], A::KnobRow(-1), "", LINES, Move, TURNING),
    // The room.
    bind(&[Char('a')], A::Vote(0), "vote", ANSWER, Stage, IN_VOTE),
    bind(&[Char('b')], A::Vote(1), "", ANSWER, Stage, IN_VOTE),
    bind(&[Char('c')], A::Vote(2), "", ANSWER, Stage, IN_VOTE),
    bind(&[Char('d')], A::Vote(3), "", ANSWER, Stage, IN_VOTE),
    bind(&[Char('O')], A::TakeUp, "follow the call", ROOM, Program, main),
    bind(&[Char('V')], A::OpenVote, "close or repeat the vote", ROOM, Program, main),
    bind(&[Char('H')], A::RaiseHand, "", ROOM, Program, free),
    bind(&[Char('X')], A::LeaveRoom, "leave the room", ROOM, Program, IN_ROOM),
    bind(&[Char('I')], A::Open(Overlay::Room), "", ROOM, Program, free),
    // The stage.
    bind(&[Enter], A::RangeKeep, "keep the range", ENTER, Stage, estimating),
    bind(&[Left], A::RangeShift(-1), "lower", SIDEWAYS, Move, estimating),
    bind(&[Right], A::RangeShift(1), "higher", SIDEWAYS, Move, estimating),
    bind(&[Char('+'), Char('=')], A::RangeWiden(1), "wider", SIZE, Stage, estimating),
    bind(&[Char('-')], A::RangeWiden(-1), "narrower", SIZE, Stage, estimating),
    bind(FIGURE, A::Type('0'), "", "", Stage, estimating),
    bind(&[Backspace], A::Erase, "", "", Stage, estimating),
    bind(&[Enter], A::Locate, "choose it", ENTER, Stage, on_panel),
    bind(&[Enter], A::NextPointer, "go on", ENTER, Stage, WALKING),
    bind(&[Enter], A::PickThis, "take this answer", ENTER, Stage, reading),
    bind(&[Left], A::PickOther(-1), "", SIDEWAYS, Move, reading),
    bind(&[Right], A::PickOther(1), "other answer", SIDEWAYS, Move, reading),
    bind(&[Left], A::Timeline(TimelineMove::Pan(-1)), "", "", Move, ON_TIMELINE),
    bind(&[Right], A::Timeline(TimelineMove::Pan(1)), "", "", Move, ON_TIMELINE),
    bind(&[Char('+'), Char('=')], A::Timeline(TimelineMove::Zoom(1)), "closer", "", Move, ON_TIMELINE),
    bind(&[Char('-')], A::Timeline(TimelineMove::Zoom(-1)), "", "", Move, ON_TIMELINE),
    bind(&[Char(')')], A::Timeline(TimelineMove::Slice(1)), "next kernel", "", Move, ON_TIMELINE),
    bind(&[Char('(')], A::Timeline(TimelineMove::Slice(-1)), "", "", Move, ON_TIMELINE),
    bind(&[Down], A::Timeline(TimelineMove::Row(1)), "", "", Move, ON_TIMELINE),
    bind(&[Up], A::Timeline(TimelineMove::Row(-1)), "", "", Move, ON_TIMELINE),
    bind(&[Enter], A::OpenKernel, "kernel", ENTER, Stage, ON_KERNELS),
    bind(&[Char('/')], A::Search, "search", LOOK_UP, Move, IN_KERNEL),
    bind(&[Right], A::Lanes(LaneMove::Step(1)), "step", "", Move, IN_LANES),
    bind(&[Left], A::Lanes(LaneMove::Step(-1)), "back", "", Move, IN_LANES),
    bind(&[Char('f')], A::Lanes(LaneMove::Fault), "fault", "", Move, IN_LANES),
    bind(&[Char('b')], A::Lanes(LaneMove::Barrier), "barrier", "", Move, IN_LANES),
    bind(&[Char('s')], A::Lanes(LaneMove::Shape), "shape", "", Move, IN_LANES),
    bind(&[Char('w')], A::Lanes(LaneMove::Workgroup), "workgroup", "", Move, IN_LANES),
    bind(&[Enter], A::TurnPage(1), "read on", ENTER, Stage, IN_BACKGROUND),
    bind(&[Enter], A::Lesson, "lesson", ENTER, Stage, SMALL),
    bind(&[Enter], A::Lesson, "", ENTER, Stage, NO_RANGE),
    bind(&[Char('a')], A::Answer(0), "answer", ANSWER, Stage, main),
    bind(&[Char('b')], A::Answer(1), "", ANSWER, Stage, main),
    bind(&[Char('c')], A::Answer(2), "", ANSWER, Stage, main),
    bind(&[Char('d')], A::Answer(3), "", ANSWER, Stage, main),
    bind(&[Char('A')], A::Question, "question", QUESTION, Stage, ASKED_IN_TEXT),
    bind(&[Char('A')], A::Question, "", QUESTION, Stage, ASKED),
    bind(&[Char('A')], A::Question, "answer again", QUESTION, Stage, IN_QUIZ),
    bind(&[Left], A::TurnPage(-1), "", SIDEWAYS, Move, IN_SKIPPED),
    bind(&[Right], A::TurnPage(1), "next page", SIDEWAYS, Move, IN_SKIPPED),
    bind(&[Left], A::TurnPage(-1), "", SIDEWAYS, Move, IN_GLOSSARY),
    bind(&[Right], A::TurnPage(1), "next page", SIDEWAYS, Move, IN_GLOSSARY),
    bind(&[Right], A::TurnPage(1), "read on", SIDEWAYS, Move, LEAFING),
    bind(&[Left], A::TurnPage(-1), "", SIDEWAYS, Move, LEAFING),
    bind(&[Char('/')], A::Search, "look up a word", LOOK_UP, Move, IN_GLOSSARY),
    bind(&[Char('/')], A::Search, "", LOOK_UP, Move, NO_LIST),
    bind(&[Char('u')], A::SwitchDevice, "use the GPU", "move the run to the GPU", Run, main),
    bind(&[Char('r')], A::Restart, "restart", AGAIN, Run, DOWN),
    bind(&[Char('F')], A::InF32, "in f32", "", Run, main),
    bind(&[Char('f')], A::Knobs, "knobs", KNOBS, Stage, TURNING),
    bind(&[Char('f')], A::Knobs, "knobs", KNOBS, Stage, fixing),
    bind(&[Char('f')], A::Knobs, "", KNOBS, Stage, main),
    bind(&[Char('B')], A::Open(Overlay::Attempts), "attempts", KNOBS, Stage, TURNING),
    bind(&[Char('B')], A::Open(Overlay::Attempts), "", KNOBS, Stage, main),
    bind(&[Char('t')], A::OpenProfile, "timeline", "", Run, main),
    bind(&[Char('t')], A::Toggle, "run B", TOGGLE, Stage, fixing),
    bind(&[Char('t')], A::Toggle, "", TOGGLE, Stage, main),
    bind(&[Char('T')], A::Pair, "measure pairs", PAIRS, Stage, fixing),
    bind(&[Char('T')], A::Pair, "", PAIRS, Stage, main),
    bind(&[Char('T')], A::Pair, "measure", PAIRS, Stage, IN_EXERCISE),
    bind(&[Char('o')], A::OpenEditor, "edit", EDIT, Stage, IN_EXERCISE),
    bind(&[Char('h')], A::Hint, "hint", "show the next hint", Stage, main),
    bind(&[Char('t')], A::Open(Overlay::Lanes), "threads", TOGGLE, Stage, main),
    bind(&[Char('g')], A::Open(Overlay::Glossary), "glossary", WORDS, Stage, STUDYING),
    bind(&[Char('g')], A::Open(Overlay::Glossary), "", WORDS, Stage, NO_LIST),
    bind(&[Tab], A::FocusNext, "panel", "mark the next panel", Screen, main),
    bind(&[Char('s')], A::Solution, "", "show solution; asks first", Stage, main),
    bind(&[Char('o')], A::OpenEditor, "", EDIT, Stage, main),
    bind(&[Char('x')], A::Reset, "", "start over; asks first", Stage, main),
    bind(&[Char('n')], A::NextStage, "next", NEIGHBOUR, Stage, main),
    bind(&[Char('p')], A::PreviousStage, "", NEIGHBOUR, Stage, main),
    bind(&[Char('1')], A::Stage(1), "", GOTO, Stage, NO_RANGE),
    bind(&[Char('2')], A::Stage(2), "", GOTO, Stage, NO_RANGE),
    bind(&[Char('3')], A::Stage(3), "", GOTO, Stage, NO_RANGE),
    bind(&[Char('4')], A::Stage(4), "", GOTO, Stage, NO_RANGE),
    bind(&[Char('5')], A::Stage(5), "", GOTO, Stage, NO_RANGE),
    bind(&[Char('6')], A::Stage(6), "", GOTO, Stage, NO_RANGE),
    bind(&[Char('7')], A::Stage(7), "", GOTO, Stage, NO_RANGE),
    bind(&[Char('8')], A::Stage(8), "", GOTO, Stage, NO_RANGE),
    bind(&[Char('9')], A::Stage(9), "", GOTO, Stage, NO_RANGE),
    bind(&[Char('l')], A::Open(Overlay::Stages), "stages", "list stages and exercises", Stage, free),
    bind(&[Char('M')], A::Open(Overlay::Skipped), "", "show skipped stages", Stage, main),
    bind(&[Enter], A::Choose, "open this stage", ENTER, Stage, IN_SKIPPED),
    bind(&[Char('s')], A::Solution, "fault and fix", "", Stage, IN_SKIPPED),
    bind(&[Char('v')], A::Present, "", "begin presenter mode", Stage, main),
    // The run.
    bind(&[Char(' ')], A::Pause, "pause", "pause or go on", Run, main),
    bind(&[Char('.')], A::ReplayStep, "one step", RECORDING, Run, main),
    bind(&[Char('>')], A::ReplayFaster, "faster", RECORDING, Run, main),
    bind(&[Char('<')], A::ReplaySlower, "slower", RECORDING, Run, main),
    bind(&[Char('b')], A::MarkB, "B from here", "", Run, main),
    bind(&[Char('r')], A::Restart, "", AGAIN, Run, main),
    bind(&[Char('P')], A::Profile, "", "profile the next step", Run, main),
    bind(&[Char('D')], A::Open(Overlay::Devices), "", "list or change devices", Run, free),
    // The screen.
    bind(&[BackTab], A::FocusPrevious, "", "mark the previous panel", Screen, main),
    bind(&[Char('e')], A::Expand, "expand", "enlarge the marked panel", Screen, main),
    bind(&[Char('e')], A::Expand, "large", "enlarge the marked panel", Screen, IN_KERNEL),
    bind(&[Char('E')], A::Evidence, "", "show the evidence panel", Screen, main),
    bind(&[Char('R')], A::Roofline, "", "show the roofline", Screen, main),
    bind(&[Char('y')], A::LogAxis, "", "loss: log axis, smoothing", Screen, main),
    bind(&[Char('Y')], A::Smooth, "", "loss: log axis, smoothing", Screen, main),
    bind(&[Char('z')], A::Window, "", "curves: all or recent", Screen, main),
    bind(&[Char('S')], A::Sort, "", "sort the kernel list", Screen, main),
    bind(&[Char('m')], A::Markers, "", "use braille, dots, ASCII", Screen, free),
    bind(&[Char('C')], A::Theme, "", "change the theme", Screen, free),
    bind(&[Char('L')], A::Open(Overlay::Log), "", "read the log", Screen, free),
    bind(&[Char('!')], A::Open(Overlay::Problems), "", "list what was not loaded", Screen, free),
    bind(&[Esc], A::LeaveExercise, "stage", ESCAPE, Screen, main),
    bind(&[Esc], A::Close, "", ESCAPE, Screen, free),
    // Moving.
    bind(&[Down, Char('j')], A::Scroll(1), "", LINES, Move, free),
    bind(&[Up, Char('k')], A::Scroll(-1), "", LINES, Move, free),
    bind(&[PageDown], A::Scroll(10), "", PAGES, Move, free),
    bind(&[PageUp], A::Scroll(-10), "", PAGES, Move, free),
    bind(&[Home], A::ScrollToTop, "", ENDS, Move, free),
    bind(&[End], A::ScrollToEnd, "", ENDS, Move, free),
    // The program.
    bind(&[Char('w')], A::Report, "", "write a report", Program, main),
    bind(&[Char('J')], A::Open(Overlay::Summary), "", "show what you have done", Program, free),
    bind(&[Char('W')], A::Open(Overlay::Welcome), "", "show the welcome card", Program, free),
    bind(&[Char('?')], A::Open(Overlay::Help), "help", "show this list", Program, free),
    bind(&[Char('q')], A::Quit, "quit", QUIT, Program, free),
    bind(&[CTRL_Z], A::Suspend, "", "suspend; `fg` comes back", Program, always),
    bind(&[CTRL_C], A::Quit, "", "quit at once", Program, always),
    bind(&[Down], A::Scroll(1), "down", "", Move, welcoming_long),
    bind(&[Up], A::Scroll(-1), "", "", Move, welcoming_long),
    bind(&[PageDown], A::Scroll(10), "", "", Move, welcoming_long),
    bind(&[PageUp], A::Scroll(-10), "", "", Move, welcoming_long),
    // Every other key.
    bind(&[ANY], A::Type(' '), "", "", Move, typing),
    bind(&[ANY], A::Close, "go on", "", Program, welcoming),
];
