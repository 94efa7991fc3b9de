//! When a key counts: what is on the screen, and what can be done there now.

use crate::app::beats::VoteState;
use crate::app::exercise::measuring::AnswerFile;
use crate::app::member::{Link, Membership};
use crate::app::study::{Activity, LessonPage};
use crate::app::{App, Overlay, RunState, ScreenSize};
use crate::panel::Panel;
use protocol::config::{Knob, ValueKind};

pub(super) fn always(_: &App) -> bool {
    true
}

pub(super) fn confirming(app: &App) -> bool {
    app.view.confirm.is_some()
}

/// The welcome card is open; any key closes it.
pub(super) fn welcoming(app: &App) -> bool {
    let shown = app.view.screen_size() > ScreenSize::Numbers;
    !confirming(app) && app.view.overlay == Some(Overlay::Welcome) && shown
}

/// The same where the card has more lines than the frame: the keys that scroll do so.
pub(super) fn welcoming_long(app: &App) -> bool {
    let (columns, rows) = app.view.size;
    welcoming(app) && (columns < 80 || rows < 24)
}

/// A word is typed: letters are text.
pub(super) fn typing(app: &App) -> bool {
    !confirming(app) && app.view.typing()
}

/// No confirmation is open, and neither a card nor a search takes every key.
pub(super) fn free(app: &App) -> bool {
    !confirming(app) && !welcoming(app) && !typing(app)
}

pub(super) fn in_list(app: &App) -> bool {
    let lists = [Overlay::Stages, Overlay::Devices, Overlay::Attempts];
    free(app) && app.view.overlay.is_some_and(|it| lists.contains(&it))
}

/// The list has a line to choose.
pub(super) fn chooses(app: &App) -> bool {
    let waits = app.view.overlay == Some(Overlay::Devices) && app.devices.known.is_empty();
    in_list(app) && !waits
}

/// The panels are in use: no card lies over them.
pub(super) fn main(app: &App) -> bool {
    free(app) && app.view.overlay.is_none()
}

/// The kernels panel is marked and has a row to open.
pub(super) fn on_kernels(app: &App) -> bool {
    main(app) && app.view.focus == Some(Panel::Kernels) && app.selected_kernel().is_some()
}

/// The timeline is marked and shows a step.
pub(super) fn on_timeline(app: &App) -> bool {
    main(app) && app.view.focus == Some(Panel::Timeline) && app.profiled().is_some()
}

/// The text of a kernel is open.
pub(super) fn in_kernel(app: &App) -> bool {
    free(app) && app.view.overlay == Some(Overlay::Kernel)
}

/// The lanes of a kernel are open.
pub(super) fn in_lanes(app: &App) -> bool {
    free(app) && app.view.overlay == Some(Overlay::Lanes)
}

pub(super) fn in_kernel_exercise(app: &App) -> bool {
    live(app) && app.exercise().is_some_and(|it| it.kernels().is_some())
}

pub(super) fn live(app: &App) -> bool {
    main(app) && app.mode.is_live()
}

pub(super) fn replaying(app: &App) -> bool {
    main(app) && !app.mode.is_live()
}

pub(super) fn pausable(app: &App) -> bool {
    let goes = app.bench.run.state.is_active() && app.bench.run.state != RunState::Starting;
    // Pairs run to their end, or another run takes their place.
    main(app) && !app.bench.pairing() && app.measuring().is_none() && (!app.mode.is_live() || goes)
}

pub(super) fn asked(app: &App) -> bool {
    app.beat().is_none()
        && main(app)
        && !app.mode.is_replay()
        && app.view.lesson_visible()
        && app.asked_here()
        && choices(app) > 0
}

/// A question is open, and it is not on the screen.
pub(super) fn asked_elsewhere(app: &App) -> bool {
    let shown = app.view.lesson_visible() && app.asked_here();
    in_stage(app) && app.asked_on().is_some() && !shown
}

/// The same, on another page than the one that is read.
pub(super) fn asked_on_other_page(app: &App) -> bool {
    asked_elsewhere(app) && app.view.lesson_visible()
}

/// The page of the quiz is shown, and questions were answered wrongly.
pub(super) fn askable_again(app: &App) -> bool {
    in_stage(app)
        && app.view.lesson_visible()
        && app.page().0 == LessonPage::Quiz
        && app
            .stage()
            .is_some_and(|stage| app.lesson.study.can_ask_again(stage))
}

/// Choices of the open question.
pub(super) fn choices(app: &App) -> usize {
    app.question().map_or(0, |question| question.choices.len())
}

pub(super) fn asked_for<const N: usize>(app: &App) -> bool {
    asked(app) && choices(app) > N
}

/// The stage itself, with no exercise in its place.
pub(super) fn in_stage(app: &App) -> bool {
    main(app) && app.mode.compares()
}

pub(super) fn in_exercise(app: &App) -> bool {
    main(app) && app.mode.is_exercise()
}

/// The same, and the fix comes next: prediction and evidence are done, and no question is open.
pub(super) fn fixable(app: &App) -> bool {
    let ready = |stage| app.lesson.study.activity(stage) > Activity::Evidence;
    can_edit(app) && app.stage().is_none_or(ready) && !asked(app) && !estimating(app)
}

/// There are knobs, and they can be opened.
pub(super) fn can_edit(app: &App) -> bool {
    main(app) && app.can_edit()
}

/// The log of attempts can be opened.
pub(super) fn tried_something(app: &App) -> bool {
    main(app) && app.has_attempts()
}

/// The same while the knobs are on the screen.
pub(super) fn turning_attempts(app: &App) -> bool {
    turning(app) && app.has_attempts()
}

/// The knobs are on the screen: arrows turn them.
pub(super) fn turning(app: &App) -> bool {
    main(app) && app.knobs_open()
}

/// The same where the knob takes a number.
pub(super) fn typeable(app: &App) -> bool {
    let number = |knob: &Knob| !matches!(knob.kind, ValueKind::Choice(_));
    turning(app) && app.bench.comparison.knob().is_some_and(number)
}

/// There is a solution to show.
pub(super) fn solvable(app: &App) -> bool {
    live(app) && (app.stage().is_some() || app.mode.is_exercise() || app.mode.plays_mystery())
}

/// The solution of the stage is shown and can be taken.
pub(super) fn takeable(app: &App) -> bool {
    free(app) && app.view.overlay == Some(Overlay::Solution) && app.can_edit()
}

/// The range is placed.
pub(super) fn ranged(app: &App) -> bool {
    estimating(app) && app.lesson.study.range.is_some()
}

/// The evidence may be pointed out.
pub(super) fn pointed_out(app: &App) -> bool {
    main(app) && !app.asks_where()
}

pub(super) fn estimating(app: &App) -> bool {
    in_stage(app)
        && app.view.lesson_visible()
        && app.asked_here()
        && app
            .stage()
            .is_some_and(|stage| app.lesson.study.estimate(stage).is_some())
}

/// A panel is marked, and the learner is asked which one shows the fault.
pub(super) fn locating(app: &App) -> bool {
    let covered = app.view.lesson_open && app.view.screen_size() == ScreenSize::Compact;
    let marked = app.view.focus.is_some_and(|panel| panel != Panel::Lesson);
    in_stage(app) && marked && !covered && !app.knobs_open() && app.asks_where()
}

/// The learner looks at the evidence, or is about to.
pub(super) fn walking(app: &App) -> bool {
    in_stage(app)
        && (app.lesson.study.pointer.is_some() || app.view.lesson_visible())
        && app
            .stage()
            .is_some_and(|stage| app.lesson.study.activity(stage) == Activity::Evidence)
}

/// There is more of the stage's text to read.
pub(super) fn reading_on(app: &App) -> bool {
    leafing(app) && app.reads_on()
}

/// The stage's text is on the screen: arrows read on and back, as far as there is more.
pub(super) fn leafing(app: &App) -> bool {
    main(app)
        && !app.mode.is_exercise()
        && app.stage().is_some()
        && app.view.lesson_visible()
        && !estimating(app)
}

/// A page is read that leads to the cause.
pub(super) fn in_background(app: &App) -> bool {
    reading_on(app) && app.reads_background()
}

pub(super) fn hints_left(app: &App) -> bool {
    let (shown, hints) = app.hints();
    main(app) && !app.mode.is_replay() && shown < hints
}

pub(super) fn offered(app: &App) -> bool {
    live(app) && app.devices.offer().is_some()
}

pub(super) fn has_glossary(app: &App) -> bool {
    free(app) && !in_list(app) && app.lesson.course.glossary.is_some()
}

pub(super) fn in_glossary(app: &App) -> bool {
    free(app) && app.view.overlay == Some(Overlay::Glossary)
}

/// Stages before this one were jumped over.
pub(super) fn has_skipped(app: &App) -> bool {
    live(app) && app.presenter.presentation.is_none() && !app.skipped_stages().is_empty()
}

pub(super) fn in_skipped(app: &App) -> bool {
    free(app) && app.view.overlay == Some(Overlay::Skipped)
}

pub(super) fn in_pages(app: &App) -> bool {
    in_glossary(app) && !app.lesson.course.readings.is_empty()
}

/// A lesson is on the screen: its words may be looked up.
pub(super) fn reading(app: &App) -> bool {
    live(app) && app.view.lesson_visible() && has_glossary(app)
}

pub(super) fn presenting(app: &App) -> bool {
    main(app) && app.beat().is_some() && !app.knobs_open()
}

/// The beat of a vote is presented: its answer can be shown.
pub(super) fn answerable(app: &App) -> bool {
    presenting(app) && app.beat().is_some_and(|beat| beat.vote == VoteState::Open)
}

/// The learner's work can be reset, which a presentation never does.
pub(super) fn resettable(app: &App) -> bool {
    live(app) && app.presenter.presentation.is_none()
}

pub(super) fn presentable(app: &App) -> bool {
    main(app) && app.mode.reads_stage() && app.stage().is_some()
}

pub(super) fn down(app: &App) -> bool {
    live(app) && !app.bench.run.state.is_active() && app.bench.run.state != RunState::Idle
}

/// The run broke off in a short format.
pub(super) fn short_broke_off(app: &App) -> bool {
    live(app) && app.bench.in_f32().is_some()
}

pub(super) fn has_file(app: &App) -> bool {
    let there = match app.exercise() {
        Some(exercise) => !exercise.files().is_empty(),
        None => app.stage().is_some_and(|stage| !stage.files.is_empty()),
    };
    live(app) && there
}

pub(super) fn exercise_has_file(app: &App) -> bool {
    in_exercise(app) && has_file(app)
}

/// An answer of the open exercise can be chosen.
pub(super) fn picking(app: &App) -> bool {
    live(app) && app.view.lesson_visible() && app.picking().is_some()
}

pub(super) fn measurable(app: &App) -> bool {
    let answered = |exercise| {
        let desk = app.exercise.of(exercise);
        desk.is_some_and(|desk| matches!(desk.answer, AnswerFile::Given(_)))
    };
    live(app) && app.measuring().is_none() && app.exercise().is_some_and(answered)
}

pub(super) fn measuring(app: &App) -> bool {
    main(app) && app.measuring().is_some()
}

/// Choices of the vote of the room.
pub(super) fn votes(app: &App) -> usize {
    let choices = |stage: &crate::course::Stage| stage.prediction.choices.len();
    app.voting().map_or(0, choices)
}

/// A vote of the room lies over the panels.
pub(super) fn voting<const N: usize>(app: &App) -> bool {
    free(app) && app.view.overlay == Some(Overlay::Vote) && votes(app) > N
}

/// The room asks for something.
pub(super) fn called(app: &App) -> bool {
    main(app) && app.call().is_some()
}

pub(super) fn in_room(app: &App) -> bool {
    let over = |it: &Membership| matches!(it.link, Link::Over(_));
    free(app) && app.class.as_ref().is_some_and(|it| !over(it))
}

/// The beat of a vote is presented to a room.
pub(super) fn leading(app: &App) -> bool {
    let votes = app.beat().is_some_and(|beat| beat.vote == VoteState::Open);
    main(app) && votes && app.class.as_ref().is_some_and(|it| it.board.is_some())
}

/// The card of the room is open.
pub(super) fn leaving_room(app: &App) -> bool {
    in_room(app) && app.view.overlay == Some(Overlay::Room)
}

pub(super) fn small(app: &App) -> bool {
    main(app) && !estimating(app) && app.view.screen_size() <= ScreenSize::Compact
}

pub(super) fn wide(app: &App) -> bool {
    main(app) && !estimating(app) && app.view.screen_size() > ScreenSize::Compact
}

pub(super) fn something_open(app: &App) -> bool {
    let lesson = app.view.lesson_open && app.view.screen_size() == ScreenSize::Compact;
    free(app) && (app.view.overlay.is_some() || app.view.expanded || lesson || app.knobs_open())
}
