//! The states of the screen between which the table of keys distinguishes. The open card takes a key first, then the marked panel, then the
//! text. A condition does not decide whether the action is possible; `App::may` does.

use crate::app::learner::{Activity, LessonPage};
use crate::app::{Action, App, Overlay, RunState, ScreenSize};
use crate::panel::Panel;

/// A condition returns true while the screen is in a certain state.
pub(super) type Condition = fn(&App) -> bool;

pub(super) fn always(_: &App) -> bool {
    true
}

/// Returns true while the welcome card is open; any key closes it.
pub(super) fn welcoming(app: &App) -> bool {
    let has_cards = app.view.screen_size() > ScreenSize::Numbers;
    app.view.confirm.is_none() && app.view.overlay == Some(Overlay::Welcome) && has_cards
}

/// Returns true while the welcome card is open and longer than the frame, so that it scrolls.
pub(super) fn welcoming_long(app: &App) -> bool {
    let (columns, rows) = app.view.size;
    welcoming(app) && (columns < 80 || rows < 24)
}

/// Returns true while a word is typed, so that letters are text.
pub(super) fn typing(app: &App) -> bool {
    app.view.confirm.is_none() && app.view.typing()
}

/// Returns true while neither a confirmation nor the welcome card nor a search takes every key.
pub(super) fn free(app: &App) -> bool {
    app.view.confirm.is_none() && !welcoming(app) && !typing(app)
}

/// Returns true while no card covers the panels.
pub(super) fn main(app: &App) -> bool {
    free(app) && app.view.overlay.is_none()
}

fn in_card(app: &App, card: Overlay) -> bool {
    free(app) && app.view.overlay == Some(card)
}

pub(super) fn in_list(app: &App) -> bool {
    let lists = [Overlay::Stages, Overlay::Devices, Overlay::Attempts];
    lists.iter().any(|list| in_card(app, *list))
}

/// Returns true while the panels are visible, so that the learner can choose the marked one as the panel that shows the fault.
pub(super) fn on_panel(app: &App) -> bool {
    let covered = app.view.lesson_open && app.view.screen_size() == ScreenSize::Compact;
    main(app) && !covered && !app.knobs_open()
}

/// Returns true while the text of the stage or the exercise is on the screen.
pub(super) fn reading(app: &App) -> bool {
    main(app) && app.view.lesson_visible()
}

/// Returns true while the screen asks for an estimate, so that arrows move its range.
pub(super) fn estimating(app: &App) -> bool {
    reading(app) && app.reading().estimates() && app.reading().asked_here()
}

/// Returns true when the fix comes next: the prediction and the evidence are done, and no question is open.
pub(super) fn fixing(app: &App) -> bool {
    let ready = |activity| activity > Activity::Evidence;
    let asked = app.may(Action::Answer(0)).is_ok() || estimating(app);
    main(app) && app.can_edit() && app.reading().activity().is_none_or(ready) && !asked
}

/// Returns true while something is open that `esc` closes.
pub(super) fn something_open(app: &App) -> bool {
    let lesson = app.view.lesson_open && app.view.screen_size() == ScreenSize::Compact;
    free(app) && (app.view.overlay.is_some() || app.view.expanded || lesson || app.knobs_open())
}

pub(super) const IN_GLOSSARY: Condition = |app| in_card(app, Overlay::Glossary);
pub(super) const IN_KERNEL: Condition = |app| in_card(app, Overlay::Kernel);
pub(super) const IN_LANES: Condition = |app| in_card(app, Overlay::Lanes);
pub(super) const IN_ROOM: Condition = |app| in_card(app, Overlay::Room);
pub(super) const IN_SKIPPED: Condition = |app| in_card(app, Overlay::Skipped);
pub(super) const IN_SOLUTION: Condition = |app| in_card(app, Overlay::Solution);
pub(super) const IN_VOTE: Condition = |app| in_card(app, Overlay::Vote);
/// The panels or a card that is no list take the keys.
pub(super) const NO_LIST: Condition = |app| free(app) && !in_list(app);
pub(super) const ON_KERNELS: Condition = |app| main(app) && app.view.focus == Some(Panel::Kernels);
pub(super) const ON_TIMELINE: Condition =
    |app| main(app) && app.view.focus == Some(Panel::Timeline);
/// The text is on the screen beside a live run, so that its words can be looked up.
pub(super) const STUDYING: Condition = |app| reading(app) && app.mode.is_live();
/// The learner reads a page of the background, which leads to the cause.
pub(super) const IN_BACKGROUND: Condition = |app| LEAFING(app) && app.reading().reads_background();
/// A question is open and the text is on the screen.
pub(super) const ASKED_IN_TEXT: Condition =
    |app| reading(app) && app.reading().asked_on().is_some();
/// A question is open.
pub(super) const ASKED: Condition = |app| main(app) && app.reading().asked_on().is_some();
pub(super) const IN_QUIZ: Condition =
    |app| reading(app) && app.reading().page().0 == LessonPage::Quiz;
pub(super) const IN_EXERCISE: Condition = |app| main(app) && app.mode.is_exercise();
/// A beat is presented, so that the keys of clickers belong to the presentation.
pub(super) const PRESENTING: Condition =
    |app| main(app) && app.beat().is_some() && !app.knobs_open();
pub(super) const NO_RANGE: Condition = |app| main(app) && !estimating(app);
/// The learner looks at the evidence, or the text that leads to it is on the screen.
pub(super) const WALKING: Condition =
    |app| main(app) && (app.lesson.learner.pointer.is_some() || app.view.lesson_visible());
/// The run has ended or failed.
pub(super) const DOWN: Condition =
    |app| main(app) && !app.bench.run.state.is_active() && app.bench.run.state != RunState::Idle;
pub(super) const SMALL: Condition =
    |app| NO_RANGE(app) && app.view.screen_size() <= ScreenSize::Compact;
/// The stage's text is on the screen and arrows turn its pages.
pub(super) const LEAFING: Condition = |app| reading(app) && !estimating(app);
/// The knobs are on the screen, so that arrows turn them.
pub(super) const TURNING: Condition = |app| main(app) && app.knobs_open();
