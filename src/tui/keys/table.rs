//! The table of every key: when it counts, what it does, what the footer and the help say about it.

use crossterm::event::KeyCode::{
    self, BackTab, Backspace, Char, Down, End, Enter, Esc, Home, Left, Null, PageDown, PageUp,
    Right, Tab, Up,
};

use crate::app::beats::VoteState;
use crate::app::exercise::measuring::AnswerFile;
use crate::app::member::{Link, Membership};
use crate::app::study::{Activity, LessonPage};
use crate::app::threads::ThreadMove;
use crate::app::timeline::TimelineMove;
use crate::app::{Action, App, Overlay, RunState, ScreenSize};
use crate::config::{Knob, ValueKind};
use crate::panel::Panel;

/// Under which heading the help lists a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    Stage,
    Run,
    Screen,
    Move,
    Program,
}

impl Group {
    /// With their headings, in the order of the help.
    pub const ALL: [(Self, &str); 5] = [
        (Self::Stage, "the stage"),
        (Self::Run, "the run"),
        (Self::Screen, "the screen"),
        (Self::Move, "moving"),
        (Self::Program, "the program"),
    ];
}

/// One line of the table.
pub struct KeyBinding {
    /// A key held with ctrl is the control character that it types; `Null` stands for every key.
    pub keys: &'static [KeyCode],
    pub action: Action,
    /// In the footer; empty: not there. Earlier lines come first.
    pub label: &'static str,
    /// In the help; neighbours with the same text share a line of it. Empty: not listed.
    pub help: &'static str,
    pub group: Group,
    pub when: fn(&App) -> bool,
}

const fn bind(
    keys: &'static [KeyCode],
    action: Action,
    label: &'static str,
    help: &'static str,
    group: Group,
    when: fn(&App) -> bool,
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

fn always(_: &App) -> bool {
    true
}

fn confirming(app: &App) -> bool {
    app.view.confirm.is_some()
}

/// The welcome card is open; any key closes it.
fn welcoming(app: &App) -> bool {
    let shown = app.view.screen_size() > ScreenSize::Numbers;
    !confirming(app) && app.view.overlay == Some(Overlay::Welcome) && shown
}

/// The same where the card has more lines than the frame: the keys that scroll do so.
fn welcoming_long(app: &App) -> bool {
    let (columns, rows) = app.view.size;
    welcoming(app) && (columns < 80 || rows < 24)
}

/// A word is typed: letters are text.
fn typing(app: &App) -> bool {
    !confirming(app) && app.view.typing()
}

/// No confirmation is open, and neither a card nor a search takes every key.
fn free(app: &App) -> bool {
    !confirming(app) && !welcoming(app) && !typing(app)
}

fn in_list(app: &App) -> bool {
    let lists = [Overlay::Stages, Overlay::Devices, Overlay::Attempts];
    free(app) && app.view.overlay.is_some_and(|it| lists.contains(&it))
}

/// The list has a line to choose.
fn chooses(app: &App) -> bool {
    let waits = app.view.overlay == Some(Overlay::Devices) && app.devices.known.is_empty();
    in_list(app) && !waits
}

/// The panels are in use: no card lies over them.
fn main(app: &App) -> bool {
    free(app) && app.view.overlay.is_none()
}

/// The kernels panel is marked and has a row to open.
fn on_kernels(app: &App) -> bool {
    main(app) && app.view.focus == Some(Panel::Kernels) && app.selected_kernel().is_some()
}

/// The timeline is marked and shows a step.
fn on_timeline(app: &App) -> bool {
    main(app) && app.view.focus == Some(Panel::Timeline) && app.profiled().is_some()
}

/// The text of a kernel is open.
fn in_kernel(app: &App) -> bool {
    free(app) && app.view.overlay == Some(Overlay::Kernel)
}

/// The threads of a kernel are open.
fn in_threads(app: &App) -> bool {
    free(app) && app.view.overlay == Some(Overlay::Threads)
}

fn in_kernel_exercise(app: &App) -> bool {
    live(app) && app.exercise().is_some_and(|it| it.kernels().is_some())
}

fn live(app: &App) -> bool {
    main(app) && app.mode.is_live()
}

fn replaying(app: &App) -> bool {
    main(app) && !app.mode.is_live()
}

fn pausable(app: &App) -> bool {
    use RunState::{Paused, Pausing, Resuming, Running, Warming};
    // Pairs run to their end, or another run takes their place.
    main(app)
        && !app.run.pairing
        && app.measuring().is_none()
        && (!app.mode.is_live()
            || matches!(
                app.run.state,
                Running | Warming | Pausing | Paused | Resuming
            ))
}

fn asked(app: &App) -> bool {
    app.beat().is_none()
        && main(app)
        && !app.mode.is_replay()
        && app.view.lesson_visible()
        && app.asked_here()
        && choices(app) > 0
}

/// A question is open, and it is not on the screen.
fn asked_elsewhere(app: &App) -> bool {
    let shown = app.view.lesson_visible() && app.asked_here();
    in_stage(app) && app.asked_on().is_some() && !shown
}

/// The same, on another page than the one that is read.
fn asked_on_other_page(app: &App) -> bool {
    asked_elsewhere(app) && app.view.lesson_visible()
}

/// The page of the quiz is shown, and questions were answered wrongly.
fn askable_again(app: &App) -> bool {
    in_stage(app)
        && app.view.lesson_visible()
        && app.page().0 == LessonPage::Quiz
        && app
            .stage()
            .is_some_and(|stage| app.study.can_ask_again(stage))
}

/// Choices of the open question.
pub fn choices(app: &App) -> usize {
    app.question().map_or(0, |question| question.choices.len())
}

fn asked_for<const N: usize>(app: &App) -> bool {
    asked(app) && choices(app) > N
}

/// The stage itself, with no exercise in its place.
fn in_stage(app: &App) -> bool {
    main(app) && app.mode.compares()
}

fn in_exercise(app: &App) -> bool {
    main(app) && app.mode.is_exercise()
}

/// The same, and the fix comes next: prediction and evidence are done, and no question is open.
fn fixable(app: &App) -> bool {
    let ready = |stage| app.study.activity(stage) > Activity::Evidence;
    can_edit(app) && app.stage().is_none_or(ready) && !asked(app) && !estimating(app)
}

/// There are knobs, and they can be opened.
fn can_edit(app: &App) -> bool {
    main(app) && app.can_edit()
}

/// The log of attempts can be opened.
fn tried_something(app: &App) -> bool {
    main(app) && app.has_attempts()
}

/// The same while the knobs are on the screen.
fn turning_attempts(app: &App) -> bool {
    turning(app) && app.has_attempts()
}

/// The knobs are on the screen: arrows turn them.
fn turning(app: &App) -> bool {
    main(app) && app.knobs_open()
}

/// The same where the knob takes a number.
fn typeable(app: &App) -> bool {
    let number = |knob: &Knob| !matches!(knob.kind, ValueKind::Choice(_));
    turning(app) && app.comparison.knob().is_some_and(number)
}

/// There is a solution to show.
fn solvable(app: &App) -> bool {
    live(app) && (app.stage().is_some() || app.mode.is_exercise() || app.mode.plays_mystery())
}

/// The solution of the stage is shown and can be taken.
fn takeable(app: &App) -> bool {
    free(app) && app.view.overlay == Some(Overlay::Solution) && app.can_edit()
}

/// The range is placed.
fn ranged(app: &App) -> bool {
    estimating(app) && app.study.range.is_some()
}

/// The evidence may be pointed out.
fn pointed_out(app: &App) -> bool {
    main(app) && !app.asks_where()
}

fn estimating(app: &App) -> bool {
    in_stage(app)
        && app.view.lesson_visible()
        && app.asked_here()
        && app
            .stage()
            .is_some_and(|stage| app.study.estimate(stage).is_some())
}

/// A panel is marked, and the learner is asked which one shows the fault.
fn locating(app: &App) -> bool {
    let covered = app.view.lesson_open && app.view.screen_size() == ScreenSize::Compact;
    let marked = app.view.focus.is_some_and(|panel| panel != Panel::Lesson);
    in_stage(app) && marked && !covered && !app.knobs_open() && app.asks_where()
}

/// The learner looks at the evidence, or is about to.
fn walking(app: &App) -> bool {
    in_stage(app)
        && (app.study.pointer.is_some() || app.view.lesson_visible())
        && app
            .stage()
            .is_some_and(|stage| app.study.activity(stage) == Activity::Evidence)
}

/// There is more of the stage's text to read.
fn reading_on(app: &App) -> bool {
    leafing(app) && app.reads_on()
}

/// The stage's text is on the screen: arrows read on and back, as far as there is more.
fn leafing(app: &App) -> bool {
    main(app)
        && !app.mode.is_exercise()
        && app.stage().is_some()
        && app.view.lesson_visible()
        && !estimating(app)
}

/// A page is read that leads to the cause.
fn in_background(app: &App) -> bool {
    reading_on(app) && app.reads_background()
}

fn hints_left(app: &App) -> bool {
    let (shown, hints) = app.hints();
    main(app) && !app.mode.is_replay() && shown < hints
}

fn offered(app: &App) -> bool {
    live(app) && app.devices.offer().is_some()
}

fn has_glossary(app: &App) -> bool {
    free(app) && !in_list(app) && app.course.glossary.is_some()
}

fn in_glossary(app: &App) -> bool {
    free(app) && app.view.overlay == Some(Overlay::Glossary)
}

/// Stages before this one were jumped over.
fn has_skipped(app: &App) -> bool {
    live(app) && app.presentation.is_none() && !app.skipped_stages().is_empty()
}

fn in_skipped(app: &App) -> bool {
    free(app) && app.view.overlay == Some(Overlay::Skipped)
}

fn in_pages(app: &App) -> bool {
    in_glossary(app) && !app.course.readings.is_empty()
}

/// A lesson is on the screen: its words may be looked up.
fn reading(app: &App) -> bool {
    live(app) && app.view.lesson_visible() && has_glossary(app)
}

fn presenting(app: &App) -> bool {
    main(app) && app.beat().is_some() && !app.knobs_open()
}

/// The beat of a vote is presented: its answer can be shown.
fn answerable(app: &App) -> bool {
    presenting(app) && app.beat().is_some_and(|beat| beat.vote == VoteState::Open)
}

/// The learner's work can be reset, which a presentation never does.
fn resettable(app: &App) -> bool {
    live(app) && app.presentation.is_none()
}

fn presentable(app: &App) -> bool {
    main(app) && app.mode.reads_stage() && app.stage().is_some()
}

fn down(app: &App) -> bool {
    live(app)
        && matches!(
            app.run.state,
            RunState::EngineGone { .. } | RunState::Failed { .. } | RunState::Finished
        )
}

/// The run broke off in a short format.
fn short_broke_off(app: &App) -> bool {
    live(app) && app.in_f32().is_some()
}

fn has_file(app: &App) -> bool {
    let there = match app.exercise() {
        Some(exercise) => !exercise.files().is_empty(),
        None => app.stage().is_some_and(|stage| !stage.files.is_empty()),
    };
    live(app) && there
}

fn exercise_has_file(app: &App) -> bool {
    in_exercise(app) && has_file(app)
}

/// An answer of the open exercise can be chosen.
fn picking(app: &App) -> bool {
    live(app) && app.view.lesson_visible() && app.picking().is_some()
}

fn measurable(app: &App) -> bool {
    let answered = |exercise| {
        let desk = app.exercises.of(exercise);
        desk.is_some_and(|desk| matches!(desk.answer, AnswerFile::Given(_)))
    };
    live(app) && app.measuring().is_none() && app.exercise().is_some_and(answered)
}

fn leavable(app: &App) -> bool {
    in_exercise(app) && !measuring(app)
}

fn measuring(app: &App) -> bool {
    main(app) && app.measuring().is_some()
}

/// Choices of the vote of the room.
pub fn votes(app: &App) -> usize {
    let choices = |stage: &crate::course::Stage| stage.prediction.choices.len();
    app.voting().map_or(0, choices)
}

/// A vote of the room lies over the panels.
fn voting<const N: usize>(app: &App) -> bool {
    free(app) && app.view.overlay == Some(Overlay::Vote) && votes(app) > N
}

/// The room asks for something.
fn called(app: &App) -> bool {
    main(app) && app.call().is_some()
}

fn in_room(app: &App) -> bool {
    let over = |it: &Membership| matches!(it.link, Link::Over(_));
    free(app) && app.member.as_ref().is_some_and(|it| !over(it))
}

/// The beat of a vote is presented to a room.
fn leading(app: &App) -> bool {
    let votes = app.beat().is_some_and(|beat| beat.vote == VoteState::Open);
    main(app) && votes && app.member.as_ref().is_some_and(|it| it.board.is_some())
}

/// The card of the room is open.
fn leaving_room(app: &App) -> bool {
    in_room(app) && app.view.overlay == Some(Overlay::Room)
}

fn small(app: &App) -> bool {
    main(app) && !estimating(app) && app.view.screen_size() <= ScreenSize::Compact
}

fn wide(app: &App) -> bool {
    main(app) && !estimating(app) && app.view.screen_size() > ScreenSize::Compact
}

fn something_open(app: &App) -> bool {
    let lesson = app.view.lesson_open && app.view.screen_size() == ScreenSize::Compact;
    free(app) && (app.view.overlay.is_some() || app.view.expanded || lesson || app.knobs_open())
}

use Action as A;
use Group::{Move, Program, Run, Screen, Stage};

const CTRL_C: KeyCode = Char('\u{3}');
const CTRL_Z: KeyCode = Char('\u{1a}');
const ANY: KeyCode = Null;
/// As many terminals send it.
pub const SHIFT_F5: KeyCode = KeyCode::F(17);

/// Keys whose meaning follows what is open share one line of the help.
const ENTER: &str = "continue; select";
const ESCAPE: &str = "one back: close, leave";
const SIDEWAYS: &str = "turn pages, knobs; move an estimate";
const SIZE: &str = "widen, narrow an estimate";
const PAGES: &str = "ten lines, or one beat";
const BEGIN: &str = "present: begin, go on";
const QUIT: &str = "quit; progress is kept";
const LINES: &str = "a line; so does the wheel";
const ENDS: &str = "to the top, to the end";
const ANSWER: &str = "answer the question";
const ROOM: &str = "the room: call, vote, hand, leave, card";
const QUESTION: &str = "to the open question";
const GOTO: &str = "go to that stage";
const NEIGHBOUR: &str = "next, previous stage";
const RECORDING: &str = "in a recording: one step, faster, slower";
const AGAIN: &str = "run again from step 0";
const TOGGLE: &str = "run your B; or threads";
const PAIRS: &str = "measure A and B in turns";
const KNOBS: &str = "change B; earlier Bs";
const EDIT: &str = "edit the file; saving it runs or checks it";
const WORDS: &str = "glossary and background";
const LOOK_UP: &str = "look up a word";

#[rustfmt::skip] // A table reads best with one line for each key.
/// Every key. The first line that matches a key and whose condition holds is the one.
pub static BINDINGS: &[KeyBinding] = &[
    bind(&[Char('y')], A::Yes, "yes", "", Program, confirming),
    bind(&[Char('n'), Esc], A::No, "no", "", Program, confirming),
    // A presentation: the keys of clickers.
    bind(&[PageDown], A::NextBeat, "next beat", PAGES, Move, presenting),
    bind(&[PageUp], A::PreviousBeat, "back", PAGES, Move, presenting),
    bind(&[Right, Down], A::NextBeat, "", "", Move, presenting),
    bind(&[Left, Up], A::PreviousBeat, "", "", Move, presenting),
    bind(&[Char('b'), Char('.')], A::BlankScreen, "blank", "", Screen, presenting),
    bind(&[Char('F')], A::FreezeScreen, "freeze", "freeze a beat; b blanks", Screen, presenting),
    bind(&[Char('A')], A::ShowAnswer, "answer", "", Stage, answerable),
    bind(&[Char('q')], A::AskQuit, "quit", QUIT, Program, presenting),
    bind(&[Esc], A::Present, "leave", ESCAPE, Screen, presenting),
    bind(&[KeyCode::F(5)], A::PresentFrom(true), "", BEGIN, Stage, presentable),
    bind(&[SHIFT_F5], A::PresentFrom(false), "", BEGIN, Stage, presentable),
    // A word that is typed.
    bind(&[Enter], A::KeepSearch, "keep", "", Move, typing),
    bind(&[Esc], A::Close, "clear", "", Screen, typing),
    bind(&[Backspace], A::Erase, "", "", Move, typing),
    bind(&[Down], A::Scroll(1), "", "", Move, typing),
    bind(&[Up], A::Scroll(-1), "", "", Move, typing),
    bind(&[PageDown], A::Scroll(10), "", "", Move, typing),
    bind(&[PageUp], A::Scroll(-10), "", "", Move, typing),
    bind(&[Enter], A::Choose, "choose", ENTER, Stage, chooses),
    bind(&[Esc], A::StopMeasuring, "stop measuring", ESCAPE, Screen, measuring),
    bind(&[Esc], A::Close, "close", ESCAPE, Screen, something_open),
    bind(&[Char('g'), Home], A::ScrollToTop, "", "", Move, in_list),
    bind(&[Char('G'), End], A::ScrollToEnd, "", "", Move, in_list),
    bind(&[Enter], A::TakeSolution, "run it as B", ENTER, Stage, takeable),
    // The knobs.
    bind(&[Enter], A::TypeValue, "type a value", ENTER, Stage, typeable),
    bind(&[Right], A::KnobTurn(1), "change B", SIDEWAYS, Move, turning),
    bind(&[Left], A::KnobTurn(-1), "", SIDEWAYS, Move, turning),
    bind(&[Down, Char('j')], A::KnobRow(1), "knob", LINES, Move, turning),
    bind(&[Up, Char('k')], A::KnobRow(-1), "", LINES, Move, turning),
    // The room.
    bind(&[Char('a')], A::Vote(0), "vote", ANSWER, Stage, voting::<0>),
    bind(&[Char('b')], A::Vote(1), "", ANSWER, Stage, voting::<1>),
    bind(&[Char('c')], A::Vote(2), "", ANSWER, Stage, voting::<2>),
    bind(&[Char('d')], A::Vote(3), "", ANSWER, Stage, voting::<3>),
    bind(&[Char('O')], A::TakeUp, "to the room's call", ROOM, Program, called),
    bind(&[Char('V')], A::OpenVote, "close or repeat the vote", ROOM, Program, leading),
    bind(&[Char('H')], A::RaiseHand, "", ROOM, Program, in_room),
    bind(&[Char('X')], A::LeaveRoom, "leave the room", ROOM, Program, leaving_room),
    bind(&[Char('I')], A::Open(Overlay::Room), "", ROOM, Program, free),
    // The stage.
    bind(&[Enter], A::RangeKeep, "keep the range", ENTER, Stage, ranged),
    bind(&[Left], A::RangeShift(-1), "lower", SIDEWAYS, Move, estimating),
    bind(&[Right], A::RangeShift(1), "higher", SIDEWAYS, Move, estimating),
    bind(&[Char('+'), Char('=')], A::RangeWiden(1), "wider", SIZE, Stage, estimating),
    bind(&[Char('-')], A::RangeWiden(-1), "narrower", SIZE, Stage, estimating),
    bind(&[Enter], A::Locate, "it shows here", ENTER, Stage, locating),
    bind(&[Enter], A::NextPointer, "go on", ENTER, Stage, walking),
    bind(&[Enter], A::PickThis, "take this answer", ENTER, Stage, picking),
    bind(&[Left], A::PickOther(-1), "", SIDEWAYS, Move, picking),
    bind(&[Right], A::PickOther(1), "other answer", SIDEWAYS, Move, picking),
    bind(&[Left], A::Timeline(TimelineMove::Pan(-1)), "", "", Move, on_timeline),
    bind(&[Right], A::Timeline(TimelineMove::Pan(1)), "", "", Move, on_timeline),
    bind(&[Char('+'), Char('=')], A::Timeline(TimelineMove::Zoom(1)), "closer", "", Move, on_timeline),
    bind(&[Char('-')], A::Timeline(TimelineMove::Zoom(-1)), "", "", Move, on_timeline),
    bind(&[Char(')')], A::Timeline(TimelineMove::Slice(1)), "next kernel", "", Move, on_timeline),
    bind(&[Char('(')], A::Timeline(TimelineMove::Slice(-1)), "", "", Move, on_timeline),
    bind(&[Down], A::Timeline(TimelineMove::Row(1)), "", "", Move, on_timeline),
    bind(&[Up], A::Timeline(TimelineMove::Row(-1)), "", "", Move, on_timeline),
    bind(&[Enter], A::OpenKernel, "kernel", ENTER, Stage, on_kernels),
    bind(&[Char('/')], A::Search, "search", LOOK_UP, Move, in_kernel),
    bind(&[Right], A::Threads(ThreadMove::Step(1)), "step", "", Move, in_threads),
    bind(&[Left], A::Threads(ThreadMove::Step(-1)), "back", "", Move, in_threads),
    bind(&[Char('f')], A::Threads(ThreadMove::Fault), "fault", "", Move, in_threads),
    bind(&[Char('b')], A::Threads(ThreadMove::Barrier), "barrier", "", Move, in_threads),
    bind(&[Char('s')], A::Threads(ThreadMove::Shape), "shape", "", Move, in_threads),
    bind(&[Char('w')], A::Threads(ThreadMove::Workgroup), "workgroup", "", Move, in_threads),
    bind(&[Enter], A::TurnPage(1), "read on", ENTER, Stage, in_background),
    bind(&[Enter], A::Lesson, "lesson", ENTER, Stage, small),
    bind(&[Enter], A::Lesson, "", ENTER, Stage, wide),
    bind(&[Char('a')], A::Answer(0), "answer", ANSWER, Stage, asked_for::<0>),
    bind(&[Char('b')], A::Answer(1), "", ANSWER, Stage, asked_for::<1>),
    bind(&[Char('c')], A::Answer(2), "", ANSWER, Stage, asked_for::<2>),
    bind(&[Char('d')], A::Answer(3), "", ANSWER, Stage, asked_for::<3>),
    bind(&[Char('A')], A::Question, "question", QUESTION, Stage, asked_on_other_page),
    bind(&[Char('A')], A::Question, "", QUESTION, Stage, asked_elsewhere),
    bind(&[Char('A')], A::Question, "answer again", QUESTION, Stage, askable_again),
    bind(&[Left], A::TurnPage(-1), "", SIDEWAYS, Move, in_skipped),
    bind(&[Right], A::TurnPage(1), "next page", SIDEWAYS, Move, in_skipped),
    bind(&[Left], A::TurnPage(-1), "", SIDEWAYS, Move, in_pages),
    bind(&[Right], A::TurnPage(1), "next page", SIDEWAYS, Move, in_pages),
    bind(&[Right], A::TurnPage(1), "read on", SIDEWAYS, Move, reading_on),
    bind(&[Right], A::TurnPage(1), "", SIDEWAYS, Move, leafing),
    bind(&[Left], A::TurnPage(-1), "", SIDEWAYS, Move, leafing),
    bind(&[Char('/')], A::Search, "look up a word", LOOK_UP, Move, in_glossary),
    bind(&[Char('/')], A::Search, "", LOOK_UP, Move, has_glossary),
    bind(&[Char('u')], A::SwitchDevice, "use the GPU", "move the run to the GPU", Run, offered),
    bind(&[Char('r')], A::Restart, "restart", AGAIN, Run, down),
    bind(&[Char('F')], A::InF32, "in f32", "", Run, short_broke_off),
    bind(&[Char('f')], A::Knobs, "knobs", KNOBS, Stage, turning),
    bind(&[Char('f')], A::Knobs, "knobs", KNOBS, Stage, fixable),
    bind(&[Char('f')], A::Knobs, "", KNOBS, Stage, can_edit),
    bind(&[Char('f')], A::Knobs, "", KNOBS, Stage, in_exercise),
    bind(&[Char('B')], A::Open(Overlay::Attempts), "attempts", KNOBS, Stage, turning_attempts),
    bind(&[Char('B')], A::Open(Overlay::Attempts), "", KNOBS, Stage, tried_something),
    bind(&[Char('t')], A::Toggle, "run B", TOGGLE, Stage, fixable),
    bind(&[Char('t')], A::Toggle, "", TOGGLE, Stage, in_stage),
    bind(&[Char('T')], A::Pair, "measure pairs", PAIRS, Stage, fixable),
    bind(&[Char('T')], A::Pair, "", PAIRS, Stage, in_stage),
    bind(&[Char('T')], A::Pair, "measure", PAIRS, Stage, measurable),
    bind(&[Char('o')], A::OpenEditor, "edit", EDIT, Stage, exercise_has_file),
    bind(&[Char('h')], A::Hint, "hint", "next hint", Stage, hints_left),
    bind(&[Char('t')], A::Open(Overlay::Threads), "threads", TOGGLE, Stage, in_kernel_exercise),
    bind(&[Char('g')], A::Open(Overlay::Glossary), "glossary", WORDS, Stage, reading),
    bind(&[Char('g')], A::Open(Overlay::Glossary), "", WORDS, Stage, has_glossary),
    bind(&[Tab], A::FocusNext, "panel", "next panel", Screen, main),
    bind(&[Char('s')], A::Solution, "", "the solution; asks first", Stage, solvable),
    bind(&[Char('o')], A::OpenEditor, "", EDIT, Stage, has_file),
    bind(&[Char('x')], A::Reset, "", "start over; asks first", Stage, resettable),
    bind(&[Char('n')], A::NextStage, "next", NEIGHBOUR, Stage, main),
    bind(&[Char('p')], A::PreviousStage, "", NEIGHBOUR, Stage, main),
    bind(&[Char('1')], A::Stage(1), "", GOTO, Stage, main),
    bind(&[Char('2')], A::Stage(2), "", GOTO, Stage, main),
    bind(&[Char('3')], A::Stage(3), "", GOTO, Stage, main),
    bind(&[Char('4')], A::Stage(4), "", GOTO, Stage, main),
    bind(&[Char('5')], A::Stage(5), "", GOTO, Stage, main),
    bind(&[Char('6')], A::Stage(6), "", GOTO, Stage, main),
    bind(&[Char('7')], A::Stage(7), "", GOTO, Stage, main),
    bind(&[Char('8')], A::Stage(8), "", GOTO, Stage, main),
    bind(&[Char('9')], A::Stage(9), "", GOTO, Stage, main),
    bind(&[Char('l')], A::Open(Overlay::Stages), "stages", "stages, exercises, score", Stage, free),
    bind(&[Char('M')], A::Open(Overlay::Skipped), "", "skipped stages", Stage, has_skipped),
    bind(&[Enter], A::Choose, "go back to it", ENTER, Stage, in_skipped),
    bind(&[Char('s')], A::Solution, "fault and fix", "", Stage, in_skipped),
    bind(&[Char('v')], A::Present, "", "presenter mode", Stage, presentable),
    // The run.
    bind(&[Char(' ')], A::Pause, "pause", "pause, and go on", Run, pausable),
    bind(&[Char('.')], A::ReplayStep, "one step", RECORDING, Run, replaying),
    bind(&[Char('>')], A::ReplayFaster, "faster", RECORDING, Run, replaying),
    bind(&[Char('<')], A::ReplaySlower, "slower", RECORDING, Run, replaying),
    bind(&[Char('r')], A::Restart, "", AGAIN, Run, live),
    bind(&[Char('P')], A::Profile, "", "profile the next step", Run, live),
    bind(&[Char('D')], A::Open(Overlay::Devices), "", "devices; enter moves the run", Run, free),
    // The screen.
    bind(&[BackTab], A::FocusPrevious, "", "previous panel", Screen, main),
    bind(&[Char('e')], A::Expand, "expand", "the marked panel, large", Screen, main),
    bind(&[Char('e')], A::Expand, "large", "the marked panel, large", Screen, in_kernel),
    bind(&[Char('E')], A::Evidence, "", "panel of the evidence", Screen, pointed_out),
    bind(&[Char('R')], A::Roofline, "", "roofline of this device", Screen, main),
    bind(&[Char('y')], A::LogAxis, "", "loss: log axis; smoothed", Screen, main),
    bind(&[Char('Y')], A::Smooth, "", "loss: log axis; smoothed", Screen, main),
    bind(&[Char('z')], A::Window, "", "curves: all or recent", Screen, main),
    bind(&[Char('S')], A::Sort, "", "order of the kernel list", Screen, main),
    bind(&[Char('m')], A::Markers, "", "braille, dots or ASCII", Screen, free),
    bind(&[Char('C')], A::Theme, "", "next theme", Screen, free),
    bind(&[Char('L')], A::Open(Overlay::Log), "", "log of drivers and engine", Screen, free),
    bind(&[Char('!')], A::Open(Overlay::Problems), "", "what could not be loaded", Screen, free),
    bind(&[Esc], A::LeaveExercise, "stage", ESCAPE, Screen, leavable),
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
    bind(&[Char('J')], A::Open(Overlay::Summary), "", "what you have done", Program, free),
    bind(&[Char('W')], A::Open(Overlay::Welcome), "", "the welcome card", Program, free),
    bind(&[Char('?')], A::Open(Overlay::Help), "help", "this list", Program, free),
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
