//! The table of every key: when it counts, what it does, what the footer and the help say about it.

use super::{Binding, Group, Key};
use crate::app::study::Beat;
use crate::app::{Action, App, Overlay, Room, RunState};

const fn bind(
    keys: &'static [Key],
    action: Action,
    label: &'static str,
    help: &'static str,
    group: Group,
    when: fn(&App) -> bool,
) -> Binding {
    Binding {
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

/// Nothing asks for yes or no.
fn free(app: &App) -> bool {
    !confirming(app)
}

fn in_list(app: &App) -> bool {
    free(app) && matches!(app.view.overlay, Some(Overlay::Stages | Overlay::Devices))
}

/// The panels, not a list or a text over them.
fn main(app: &App) -> bool {
    free(app) && app.view.overlay.is_none()
}

fn live(app: &App) -> bool {
    main(app) && app.recording.is_none()
}

fn replaying(app: &App) -> bool {
    main(app) && app.recording.is_some()
}

fn pausable(app: &App) -> bool {
    use RunState::{Paused, Pausing, Resuming, Running, Warming};
    // Pairs run to their end, or another run takes their place.
    main(app)
        && !app.run.pairing
        && (app.recording.is_some()
            || matches!(
                app.run.state,
                Running | Warming | Pausing | Paused | Resuming
            ))
}

fn asked(app: &App) -> bool {
    (live(app) || main(app) && app.exercises.watching)
        && app.view.lesson_visible()
        && app.asked_here()
        && choices(app) > 0
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
    live(app) && app.exercises.open.is_none()
}

fn in_exercise(app: &App) -> bool {
    main(app) && app.exercises.open.is_some()
}

fn estimating(app: &App) -> bool {
    in_stage(app)
        && app.view.lesson_visible()
        && app.asked_here()
        && app
            .stage()
            .is_some_and(|stage| app.study.estimate(stage).is_some())
}

/// The evidence waits to be looked at, or is.
fn walking(app: &App) -> bool {
    in_stage(app)
        && (app.study.pointer.is_some() || app.view.lesson_visible())
        && app
            .stage()
            .is_some_and(|stage| app.study.beat(stage) == Beat::Evidence)
}

/// The stage's text is read, and has pages.
fn reading(app: &App) -> bool {
    main(app)
        && app.exercises.open.is_none()
        && app.view.lesson_visible()
        && !estimating(app)
        && app.page().2 > 1
}

fn hints_left(app: &App) -> bool {
    let (shown, hints) = match (app.exercise(), app.stage()) {
        (Some(exercise), _) => (app.exercises.hints, exercise.hints.len()),
        (None, Some(stage)) => (app.study.hints, stage.hints.len()),
        (None, None) => (0, 0),
    };
    (live(app) || main(app) && app.exercises.watching) && (shown as usize) < hints
}

fn offered(app: &App) -> bool {
    live(app) && app.devices.offer().is_some()
}

fn has_glossary(app: &App) -> bool {
    free(app) && !in_list(app) && app.course.glossary.is_some()
}

fn in_glossary(app: &App) -> bool {
    free(app) && app.view.overlay == Some(Overlay::Glossary) && !app.course.readings.is_empty()
}

fn presenting(app: &App) -> bool {
    main(app) && app.view.beat.is_some()
}

fn presentable(app: &App) -> bool {
    main(app) && app.exercises.open.is_none() && app.stage().is_some()
}

fn down(app: &App) -> bool {
    live(app)
        && matches!(
            app.run.state,
            RunState::EngineGone { .. } | RunState::Failed { .. } | RunState::Finished
        )
}

fn has_file(app: &App) -> bool {
    let there = match app.exercise() {
        Some(exercise) => exercise.kernels().is_some(),
        None => app.stage().is_some_and(|stage| !stage.files.is_empty()),
    };
    live(app) && there
}

fn exercise_has_file(app: &App) -> bool {
    in_exercise(app) && has_file(app)
}

fn small(app: &App) -> bool {
    main(app) && !estimating(app) && app.view.room() <= Room::Compact
}

fn wide(app: &App) -> bool {
    main(app) && !estimating(app) && app.view.room() > Room::Compact
}

fn something_open(app: &App) -> bool {
    let lesson = app.view.lesson_open && app.view.room() == Room::Compact;
    free(app) && (app.view.overlay.is_some() || app.view.expanded || lesson)
}

use Action as A;
use Group::{Move, Program, Run, Screen, Stage};
use Key::{
    BackTab, Char, Control, Down, End, Enter, Escape, Home, Left, PageDown, PageUp, Right, Tab, Up,
};

#[rustfmt::skip] // A table reads best with one line for each key.
/// Every key. The first line that matches a key and whose condition holds is the one.
pub static BINDINGS: &[Binding] = &[
    bind(&[Char('y')], A::Yes, "yes", "", Program, confirming),
    bind(&[Char('n'), Escape], A::No, "no", "", Program, confirming),
    bind(&[Enter], A::Choose, "choose", "take the marked line of a list", Move, in_list),
    bind(&[Escape], A::Close, "close", "put away what lies on top", Screen, something_open),
    bind(&[Char('g'), Home], A::ScrollToTop, "", "", Move, in_list),
    bind(&[Char('G'), End], A::ScrollToEnd, "", "", Move, in_list),
    // The stage.
    bind(&[Char('a')], A::Answer(0), "answer", "a to d: answer the question in the lesson", Stage, asked_for::<0>),
    bind(&[Char('b')], A::Answer(1), "", "", Stage, asked_for::<1>),
    bind(&[Char('c')], A::Answer(2), "", "", Stage, asked_for::<2>),
    bind(&[Char('d')], A::Answer(3), "", "", Stage, asked_for::<3>),
    bind(&[Enter], A::GuessKeep, "keep the range", "keep the range of an estimate", Stage, estimating),
    bind(&[Left], A::GuessShift(-1), "lower", "lower the range of an estimate", Stage, estimating),
    bind(&[Right], A::GuessShift(1), "higher", "raise it", Stage, estimating),
    bind(&[Char('+'), Char('=')], A::GuessWiden(1), "wider", "widen it", Stage, estimating),
    bind(&[Char('-')], A::GuessWiden(-1), "narrower", "narrow it", Stage, estimating),
    bind(&[Enter], A::NextPointer, "go on", "after the prediction: on to the next panel that the evidence names", Stage, walking),
    bind(&[Right], A::TurnPage(1), "next page", "next page of the lesson, or of the glossary", Move, reading),
    bind(&[Left], A::TurnPage(-1), "", "previous page", Move, reading),
    bind(&[Enter], A::Lesson, "lesson", "read the lesson", Stage, small),
    bind(&[Enter], A::Lesson, "", "", Stage, wide),
    bind(&[Right], A::TurnPage(1), "next page", "", Move, in_glossary),
    bind(&[Left], A::TurnPage(-1), "", "", Move, in_glossary),
    bind(&[PageDown], A::NextBeat, "next beat", "in presenter mode: next beat, with a hand clicker too", Stage, presenting),
    bind(&[PageUp], A::PreviousBeat, "back", "the beat before", Stage, presenting),
    bind(&[Char('u')], A::SwitchDevice, "use the GPU", "move the run to the GPU that has warmed up", Run, offered),
    bind(&[Char('r')], A::Restart, "restart", "", Run, down),
    bind(&[Char('t')], A::Toggle, "toggle the fix", "toggle the fix while it trains; again: back", Stage, in_stage),
    bind(&[Char('T')], A::Pair, "measure pairs", "run broken and fixed in turns until the verdict is clear", Stage, in_stage),
    bind(&[Char('o')], A::OpenEditor, "edit", "", Stage, exercise_has_file),
    bind(&[Char('h')], A::Hint, "hint", "next hint", Stage, hints_left),
    bind(&[Char('s')], A::Solution, "", "show the solution; asks first", Stage, live),
    bind(&[Char('o')], A::OpenEditor, "", "open the file in your editor; saving it runs or checks it", Stage, has_file),
    bind(&[Char('x')], A::Reset, "", "put the stage or exercise back to its start; asks first", Stage, live),
    bind(&[Char('n')], A::NextStage, "next", "next stage, or next exercise", Stage, main),
    bind(&[Char('p')], A::PreviousStage, "", "previous stage, or previous exercise", Stage, main),
    bind(&[Char('1')], A::Stage(1), "", "1 to 9: go to that stage", Stage, main),
    bind(&[Char('2')], A::Stage(2), "", "", Stage, main),
    bind(&[Char('3')], A::Stage(3), "", "", Stage, main),
    bind(&[Char('4')], A::Stage(4), "", "", Stage, main),
    bind(&[Char('5')], A::Stage(5), "", "", Stage, main),
    bind(&[Char('6')], A::Stage(6), "", "", Stage, main),
    bind(&[Char('7')], A::Stage(7), "", "", Stage, main),
    bind(&[Char('8')], A::Stage(8), "", "", Stage, main),
    bind(&[Char('9')], A::Stage(9), "", "", Stage, main),
    bind(&[Char('l')], A::Open(Overlay::Stages), "stages", "list the stages and exercises, with your score", Stage, free),
    bind(&[Char('g')], A::Open(Overlay::Glossary), "", "glossary and background texts", Stage, has_glossary),
    bind(&[Char('v')], A::Present, "", "presenter mode on and off", Stage, presentable),
    // The run.
    bind(&[Char(' ')], A::Pause, "pause", "pause, and go on", Run, pausable),
    bind(&[Char('.')], A::ReplayStep, "one step", "in a recording: one step on", Run, replaying),
    bind(&[Char('>')], A::ReplayFaster, "faster", "in a recording: twice as fast", Run, replaying),
    bind(&[Char('<')], A::ReplaySlower, "slower", "in a recording: half as fast", Run, replaying),
    bind(&[Char('r')], A::Restart, "", "run again from the first step", Run, live),
    bind(&[Char('P')], A::Profile, "", "profile the next step", Run, live),
    bind(&[Char('D')], A::Open(Overlay::Devices), "", "list the devices; enter moves the run", Run, free),
    // The screen.
    bind(&[Tab], A::FocusNext, "panel", "next panel", Screen, main),
    bind(&[BackTab], A::FocusPrevious, "", "previous panel", Screen, main),
    bind(&[Char('e')], A::Expand, "expand", "give the marked panel the whole screen, and back", Screen, main),
    bind(&[Char('E')], A::Evidence, "", "the panel that this stage points at; again: the next", Screen, main),
    bind(&[Char('R')], A::Roofline, "", "the roofline: operations against this device's peaks", Screen, main),
    bind(&[Char('y')], A::LogAxis, "", "logarithmic or linear loss", Screen, main),
    bind(&[Char('z')], A::Window, "", "curves: all steps, or the recent ones", Screen, main),
    bind(&[Char('S')], A::Sort, "", "order of the kernel list", Screen, main),
    bind(&[Char('m')], A::Markers, "", "draw with braille, dots or ASCII", Screen, free),
    bind(&[Char('C')], A::Theme, "", "next theme", Screen, free),
    bind(&[Char('L')], A::Open(Overlay::Log), "", "the log: what drivers and libraries wrote", Screen, free),
    bind(&[Char('!')], A::Open(Overlay::Problems), "", "what could not be loaded", Screen, free),
    bind(&[Escape], A::LeaveExercise, "stage", "from an exercise back to the stage", Stage, in_exercise),
    bind(&[Escape], A::Close, "", "", Screen, free),
    // Moving.
    bind(&[Down, Char('j')], A::Scroll(1), "", "down; the mouse wheel does so too", Move, free),
    bind(&[Up, Char('k')], A::Scroll(-1), "", "up", Move, free),
    bind(&[PageDown], A::Scroll(10), "", "ten lines down", Move, free),
    bind(&[PageUp], A::Scroll(-10), "", "ten lines up", Move, free),
    bind(&[Home], A::ScrollToTop, "", "to the top", Move, free),
    bind(&[End], A::ScrollToEnd, "", "to the end", Move, free),
    // The program.
    bind(&[Char('w')], A::Report, "", "write a report", Program, main),
    bind(&[Char('?')], A::Open(Overlay::Help), "help", "this list", Program, free),
    bind(&[Control('z')], A::Suspend, "", "suspend; `fg` comes back", Program, always),
    bind(&[Char('q')], A::Quit, "quit", "quit; your progress is kept", Program, free),
    bind(&[Control('c')], A::Quit, "", "quit at once", Program, always),
];
