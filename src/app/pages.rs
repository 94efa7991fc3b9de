//! The pages of a stage's text, and the questions on them.
//!
//! The order is fixed and does not follow the document: the symptom, where to look, each background section, the cause, the result, looking
//! back, the quiz. A page that may not be read yet does not exist. On small screens a question is on one page only and is answered there, so
//! that no key answers a question that is not on the screen.

use super::estimate::RangeSteps;
use super::kernel_rows::name;
use super::learner::Activity;
pub use super::learner::{LessonPage, pages};
use super::lesson::Context;
use super::may::Refusal::{self, NothingHere};
use super::may::{neighbour, not_now, offer_if, refuse_if};
use super::{Action, LearnerState, Lesson};
use crate::course::Stage;
use crate::panel::Panel;

/// The number of lines by which a page key moves a text.
pub(super) const PAGE: i32 = 10;

/// The lesson as it can be read now. This depends on the mode, on the view, and on a presentation.
#[derive(Clone, Copy)]
pub struct Reading<'a> {
    lesson: &'a Lesson,
    context: Context<'a>,
}

impl<'a> Reading<'a> {
    pub(super) fn new(lesson: &'a Lesson, context: &Context<'a>) -> Self {
        Self {
            lesson,
            context: *context,
        }
    }

    fn learner(&self) -> &'a LearnerState {
        &self.lesson.learner
    }

    fn stage(&self) -> Option<&'a Stage> {
        self.lesson.stage(self.context.mode)
    }

    /// Returns the stage whose text is on the screen. `None` without a stage and while an exercise is open.
    pub(super) fn stage_read(&self) -> Option<&'a Stage> {
        if self.context.mode.reads_stage() {
            self.stage()
        } else {
            None
        }
    }

    /// Returns the learner's next activity in the stage whose text is on the screen.
    pub fn activity(&self) -> Option<Activity> {
        let stage = self.stage_read();
        stage.map(|stage| self.learner().activity(stage))
    }

    /// Returns the page on the screen, its number from 1, and the number of pages.
    pub fn page(&self) -> (LessonPage, usize, usize) {
        let Some(stage) = self.stage() else {
            return (LessonPage::Start, 1, 1);
        };
        let all = pages(self.learner(), stage);
        let shown = self.context.view.lesson_page;
        match all.iter().position(|page| *page == shown) {
            Some(index) => (shown, index + 1, all.len()),
            None => (LessonPage::Start, 1, all.len()),
        }
    }

    /// Returns the page with the stage's open question or range: the last page for the quiz, else the first. `None` if nothing is asked.
    pub fn asked_on(&self) -> Option<LessonPage> {
        let stage = self.stage()?;
        if self.learner().estimate(stage).is_some() {
            return Some(LessonPage::Start);
        }
        let (quiz, _) = self.learner().question(stage)?;
        Some(quiz.map_or(LessonPage::Start, |_| LessonPage::Quiz))
    }

    /// Returns true if the open question is on the screen with its choices.
    pub fn asked_here(&self) -> bool {
        self.context.mode.is_exercise() || self.asked_on() == Some(self.page().0)
    }

    /// Returns true if the learner is asked to estimate a figure of the stage on the screen.
    pub fn estimates(&self) -> bool {
        let stage = self.stage_read();
        stage.is_some_and(|stage| self.learner().estimate(stage).is_some())
    }

    /// Returns `; page 5 of the lesson shows the result`, for a message at the end of a run. `None` while that page is on the screen. The
    /// page is not opened by itself, because the learner may be reading or answering a question.
    pub(super) fn place_of_result(&self) -> Option<String> {
        if self.context.presents {
            return None;
        }
        let all = pages(self.learner(), self.stage_read()?);
        let index = all.iter().position(|page| *page == LessonPage::Result)?;
        let number = index + 1;
        (self.page().1 != number).then(|| format!("; page {number} of the lesson shows the result"))
    }

    /// Returns the page `by` places after the one on the screen. `None` past either end.
    pub(super) fn page_after(&self, by: i32) -> Option<LessonPage> {
        let all = pages(self.learner(), self.stage()?);
        let to = (self.page().1 - 1).checked_add_signed(by as isize)?;
        all.get(to).copied()
    }

    /// Returns true if a key that scrolls by `lines` turns the pages of the stage's text instead.
    pub(super) fn turns_pages(&self, lines: i32) -> bool {
        let view = self.context.view;
        let text = view.focus == Some(Panel::Lesson) && !view.selects_kernels();
        view.overlay.is_none() && text && self.stage_read().is_some() && lines.abs() == PAGE
    }

    /// Returns true if a background page is on the screen.
    pub fn reads_background(&self) -> bool {
        self.context.view.lesson_visible() && matches!(self.page().0, LessonPage::Background(_))
    }

    /// Returns true if there is more to read, on this page or after it.
    pub fn reads_on(&self) -> bool {
        let (_, at, of) = self.page();
        at < of || self.context.view.lines_left(1) > 0
    }

    /// Returns true if the learner is asked which panel shows the fault, before the evidence is pointed out.
    pub fn asks_where(&self) -> bool {
        let Some(stage) = self.stage_read() else {
            return false;
        };
        let learner = self.learner();
        let is_open = learner.second_try || !self.points_out(stage);
        !self.context.presents && is_open && learner.activity(stage) == Activity::Evidence
    }

    /// Returns true if the panels of the evidence may be pointed out: the learner has answered where the fault shows, or is not asked.
    pub fn points_out(&self, stage: &Stage) -> bool {
        let learner = self.learner();
        let has_answered = learner.progress_of(stage).located.is_some() && !learner.second_try;
        self.context.presents
            || !self.context.mode.reads_stage()
            || has_answered
            || learner.pointer.is_some()
            || learner.revealed(stage)
    }

    /// Returns the panels that the stage's evidence names and that are not hidden, in the order of the screen, as in
    /// `loss, ledger or memory`.
    pub fn panels_named(&self, stage: &Stage) -> String {
        let mut panels: Vec<Panel> = stage.evidence.iter().map(|pointer| pointer.panel).collect();
        panels.sort_unstable();
        panels.dedup();
        let mut names: Vec<&str> = panels
            .iter()
            .map(Panel::into_str)
            .filter(|name| !self.withholds_mark(name))
            .collect();
        let last = names.pop().unwrap_or_default();
        if names.is_empty() {
            last.to_owned()
        } else {
            format!("{} or {last}", names.join(", "))
        }
    }

    /// Returns true if keys that scroll mark a row of this panel. The kernels panel has a selected row of its own instead.
    pub fn marks_row(&self, panel: Panel) -> bool {
        panel.has_rows() && self.context.view.focus == Some(panel) && self.asks_where()
    }

    /// Returns the text of the marked row. Empty if none is marked.
    pub fn marked_row(&self) -> String {
        let view = self.context.view;
        let row = match view.focus {
            Some(Panel::Kernels) => view
                .selected_kernel(&self.context.bench.run)
                .as_ref()
                .map(name),
            _ => view.marked_row().cloned(),
        };
        row.unwrap_or_default()
    }

    /// Returns true if `what`, a panel or a part of one, is hidden until the learner has predicted or the class has voted.
    pub fn withholds(&self, what: &str) -> bool {
        let withheld = |stage| self.learner().withholds(stage, what);
        !self.context.mode.is_watching() && self.stage().is_some_and(withheld)
    }

    /// Like `withholds`, but for anything that gives the fault away at a glance (a header figure, the lints). It stays hidden until the
    /// learner has answered where the fault shows.
    pub fn withholds_mark(&self, what: &str) -> bool {
        let withheld = |stage: &Stage| LearnerState::hides(stage, what) && !self.points_out(stage);
        let in_stage = !self.context.mode.is_watching() && self.stage().is_some_and(withheld);
        self.withholds(what) || in_stage
    }

    /// Returns the number of hints on the screen and the number of all hints, of the open exercise or else of the stage.
    pub fn hints(&self) -> (usize, usize) {
        let open = self.context.mode.exercise();
        let exercise = open.and_then(|at| self.lesson.course.exercises.get(at));
        let (id, count) = match (exercise, self.stage()) {
            (Some(exercise), _) => (&exercise.id, exercise.hints.len()),
            (None, Some(stage)) => (&stage.id, stage.hints.len()),
            (None, None) => return (0, 0),
        };
        let progress = self.learner().progress.stages.get(id);
        let shown = progress.map_or(0, |progress| progress.hints as usize);
        (shown.min(count), count)
    }
}

impl Reading<'_> {
    /// Returns an error with the reason if an action on the text is not possible now. `None` if the action is not about the text.
    pub(super) fn may(&self, action: Action) -> Option<Result<(), Refusal>> {
        let view = self.context.view;
        let learner = self.learner();
        Some(match action {
            Action::Stage(number) => self.may_go_to(number),
            Action::NextStage => self.may_go_by(1),
            Action::PreviousStage => self.may_go_by(-1),
            Action::Question => self.may_ask(),
            Action::RangeShift(by) => self.may_set_range(by, RangeSteps::shift),
            Action::RangeWiden(by) => self.may_set_range(by, RangeSteps::widen),
            Action::RangeKeep if self.estimates() => refuse_if(
                learner.range.is_none(),
                "No range yet: the arrow keys place one on the scale",
            ),
            Action::RangeKeep => Err(NothingHere),
            Action::Hint => self.may_hint(),
            Action::Locate => self.may_locate(),
            Action::Type(letter) if self.estimates() && !view.typing() => {
                offer_if(letter.is_ascii_digit() || letter == '.')
            }
            Action::Erase if self.estimates() && !view.typing() => {
                offer_if(!learner.typed.is_empty())
            }
            Action::NextPointer => offer_if(self.activity() == Some(Activity::Evidence)),
            Action::Evidence => {
                let named = self.stage().is_some_and(|stage| !stage.evidence.is_empty());
                offer_if(named && !self.asks_where())
            }
            Action::TurnPage(by) if view.overlay.is_none() => self.may_read_on(by),
            Action::Scroll(lines) if self.turns_pages(lines) => self.may_read_on(lines.signum()),
            _ => return None,
        })
    }

    fn may_go_to(&self, number: u32) -> Result<(), Refusal> {
        let Some(at) = self.lesson.place_of_number(number) else {
            return Err(not_now(format!("There is no stage {number}")));
        };
        let is_there = at == self.learner().at && self.context.mode.reads_stage();
        offer_if(!is_there || self.context.presents || self.context.view.overlay.is_some())
    }

    fn may_go_by(&self, by: isize) -> Result<(), Refusal> {
        let course = &self.lesson.course;
        let at = self.learner().at;
        if let Some(exercise) = self.context.mode.exercise() {
            return neighbour(exercise, by, course.exercises.len(), "exercise").map(drop);
        }
        offer_if(!course.stages.is_empty())?;
        // The summary follows the last stage. From a run without a stage, both keys lead back to the present stage.
        match self.stage() {
            Some(_) if by < 0 => neighbour(at, by, course.stages.len(), "stage").map(drop),
            _ => Ok(()),
        }
    }

    fn may_ask(&self) -> Result<(), Refusal> {
        let stage = self.stage_read().ok_or(NothingHere)?;
        offer_if(match self.asked_on() {
            Some(_) => !(self.context.view.lesson_visible() && self.asked_here()),
            None => self.learner().can_ask_again(stage),
        })
    }

    fn may_set_range(&self, by: i32, change: fn(&mut RangeSteps, i32)) -> Result<(), Refusal> {
        offer_if(self.estimates())?;
        let stays = self.learner().range.is_some_and(|range| {
            let mut changed = range;
            change(&mut changed, by);
            changed == range
        });
        refuse_if(stays, "The range goes no further that way")
    }

    /// Refuses a panel without figures as the answer to where the fault shows.
    fn may_locate(&self) -> Result<(), Refusal> {
        let focus = self.context.view.focus;
        let asked = focus.filter(|panel| *panel != Panel::Lesson && self.asks_where());
        let panel = asked.ok_or(NothingHere)?;
        let is_picture = matches!(
            panel,
            Panel::Loss | Panel::Roofline | Panel::Exponents | Panel::Timeline
        );
        let is_drawn = is_picture && self.context.bench.run.step().is_some();
        let has_figure = is_drawn || !self.marked_row().is_empty();
        let is_hidden = self.withholds_mark(panel.into_str());
        let why = "This panel shows no figure now that could be marked";
        refuse_if(is_hidden || !has_figure, why)
    }

    fn may_hint(&self) -> Result<(), Refusal> {
        let (shown, hints) = self.hints();
        offer_if(hints > 0 && !self.context.mode.is_replay())?;
        refuse_if(shown == hints, "All hints are shown")?;
        // The second and third hints of a stage nearly give the answer to the prediction.
        let is_open = |stage| !self.learner().predicted(stage);
        let question_open = self.stage_read().is_some_and(is_open);
        let why = "The next hint comes once you have answered the question";
        refuse_if(question_open && shown > 0, why)
    }

    fn may_read_on(&self, by: i32) -> Result<(), Refusal> {
        offer_if(self.stage_read().is_some())?;
        let is_end = self.context.view.lines_left(by) == 0 && self.page_after(by).is_none();
        refuse_if(is_end && by < 0, "This is the first page for now")?;
        refuse_if(is_end, "This is the last page for now")
    }
}
