//! A stage's text in pages, and the walk through the panels that its evidence names.
//!
//! The order is fixed, whatever the order of the sections in the document: the symptom, where to look, each background section, the cause, the
//! result, looking back, the quiz. A page that may not be read yet does not exist. On small screens a question stands on one page only and is
//! answered there, so that no key answers a question that is not shown.

use super::kernel_rows::name;
use super::study::Activity;
pub use super::study::{LessonPage, pages};
use super::{App, Confirm};
use crate::course::{PanelPointer, Stage};
use crate::panel::Panel;

/// Lines that a key moves a text by.
pub(super) const PAGE: i32 = 10;

impl App {
    /// The page shown, its number from 1, and how many there are.
    pub fn page(&self) -> (LessonPage, usize, usize) {
        let Some(stage) = self.stage() else {
            return (LessonPage::Start, 1, 1);
        };
        let all = pages(&self.lesson.study, stage);
        match all.iter().position(|page| *page == self.view.lesson_page) {
            Some(at) => (all[at], at + 1, all.len()),
            None => (LessonPage::Start, 1, all.len()),
        }
    }

    /// The page on which the stage's open question, or its range, is asked: the first for those before the evidence, the last
    /// for the quiz.
    pub fn asked_on(&self) -> Option<LessonPage> {
        let stage = self.stage()?;
        if self.lesson.study.estimate(stage).is_some() {
            return Some(LessonPage::Start);
        }
        let (quiz, _) = self.lesson.study.question(stage)?;
        Some(quiz.map_or(LessonPage::Start, |_| LessonPage::Quiz))
    }

    /// Whether what is asked stands on the screen with its choices.
    pub fn asked_here(&self) -> bool {
        self.mode.is_exercise() || self.asked_on() == Some(self.page().0)
    }

    /// Goes to the open question, from wherever the learner is; in the quiz, asks those again that were answered wrongly.
    pub(super) fn show_question(&mut self, stage: &Stage) {
        if self.asked_on().is_none() && self.lesson.study.can_ask_again(stage) {
            self.lesson.study.ask_again(stage);
        }
        if let Some(page) = self.asked_on() {
            self.show_lesson();
            self.view.expanded = false;
            self.open_page(page);
        }
    }

    /// Opens a page from its first line, if it can be read now.
    pub(super) fn open_page(&mut self, page: LessonPage) {
        if let Some(stage) = self.stage()
            && page.can_open(&self.lesson.study, stage)
        {
            self.view.lesson_page = page;
            self.view.scroll.remove(&Panel::Lesson);
        }
    }

    /// `; page 5 of the lesson shows the result`, of a run; nothing while that page is read. A run turns no page by itself: the learner may be reading,
    /// or answering a question.
    pub(super) fn place_of_result(&self) -> Option<String> {
        let own = self.presenter.presentation.is_none() && self.mode.reads_stage();
        let all = pages(&self.lesson.study, self.stage().filter(|_| own)?);
        let at = all.iter().position(|page| *page == LessonPage::Result)?;
        let page = at + 1;
        (self.page().1 != page).then(|| format!("; page {page} of the lesson shows the result"))
    }

    /// Turns to another page; returns false at the first and the last.
    pub(super) fn turn_page(&mut self, by: i32) -> bool {
        let Some(stage) = self.stage() else {
            return false;
        };
        let all = pages(&self.lesson.study, stage);
        let to = (self.page().1 - 1).checked_add_signed(by as isize);
        let page = to.and_then(|to| all.get(to).copied());
        if let Some(page) = page {
            self.open_page(page);
        }
        page.is_some()
    }

    /// Reads on, or back: first the rest of the page, so that nothing is skipped, then the next page.
    pub(super) fn read_on(&mut self, by: i32) {
        let limit = self.view.limit_of(Panel::Lesson);
        let before = self.view.scroll_of(Panel::Lesson).min(limit);
        let left = if by > 0 { limit - before } else { before };
        if left > 0 {
            self.view.scroll_by(Panel::Lesson, by.signum() * PAGE);
        } else if !self.turn_page(by) {
            let end = if by < 0 { "first" } else { "last" };
            self.tell(&format!("This is the {end} page for now"), false);
        } else if by < 0 {
            self.view.scroll.insert(Panel::Lesson, u16::MAX);
        }
    }

    /// Whether a page is read that the cause comes after.
    pub fn reads_background(&self) -> bool {
        self.view.lesson_visible() && matches!(self.page().0, LessonPage::Background(_))
    }

    /// Whether there is more to read: on this page, or after it.
    pub fn reads_on(&self) -> bool {
        let (_, at, of) = self.page();
        at < of || self.view.scroll_of(Panel::Lesson) < self.view.limit_of(Panel::Lesson)
    }

    /// Whether the learner is asked which panel shows the fault: once, before anything is pointed at.
    pub fn asks_where(&self) -> bool {
        let asks = |stage: &Stage| {
            self.lesson.study.activity(stage) == Activity::Evidence && !self.points_out(stage)
        };
        self.presenter.presentation.is_none()
            && self.mode.reads_stage()
            && self.stage().is_some_and(asks)
    }

    /// Whether panels may be pointed out: the learner was asked which one shows the fault, or no longer is to find it.
    pub fn points_out(&self, stage: &Stage) -> bool {
        let located =
            self.lesson.study.of(stage).located.is_some() || self.lesson.study.pointer.is_some();
        self.presenter.presentation.is_some()
            || !self.mode.reads_stage()
            || located
            || self.lesson.study.revealed(stage)
    }

    /// Whether keys that scroll mark a row of this panel. The kernels have a selected row of their own.
    pub fn marks_row(&self, panel: Panel) -> bool {
        let rows = !matches!(panel, Panel::Lesson | Panel::Kernels);
        rows && self.view.focus == Some(panel) && self.asks_where()
    }

    /// Marks another row; beyond those that are seen the panel scrolls.
    pub(super) fn mark_row(&mut self, panel: Panel, lines: i32) {
        let last = self.view.rows.len().saturating_sub(1) as i32;
        let to = (self.view.row as i32).saturating_add(lines);
        self.view.row = to.clamp(0, last) as usize;
        if to != to.clamp(0, last) {
            self.view.scroll_by(panel, lines);
        }
    }

    /// What stands in the marked row.
    pub fn marked_row(&self) -> String {
        match self.view.focus {
            Some(Panel::Kernels) => self
                .selected_kernel()
                .as_ref()
                .map_or_else(String::new, name),
            _ => {
                let last = self.view.rows.len().saturating_sub(1);
                let row = self.view.rows.get(self.view.row.min(last));
                row.cloned().unwrap_or_default()
            }
        }
    }

    /// The marked row is said to show the fault. It is judged, and what shows it is looked at, with the reason.
    pub(super) fn locate(&mut self, stage: &Stage) {
        let marked = self.view.focus.filter(|it| *it != Panel::Lesson);
        let Some(panel) = marked.filter(|_| self.asks_where()) else {
            return;
        };
        let (row, evidence) = (self.marked_row(), &stage.evidence);
        let here = |it: &&PanelPointer| it.shows && it.panel == panel;
        let found = evidence.iter().position(|it| here(&it) && it.is_row(&row));
        let elsewhere = evidence.iter().position(|it| here(&it));
        let shows = || evidence.iter().position(|it| it.shows);
        let at = found.or(elsewhere).or_else(shows).unwrap_or(0);
        let Some(pointer) = evidence.get(at) else {
            return;
        };
        self.lesson.study.of_mut(&stage.id).located = Some(found.is_some());
        self.lesson.study.pointer = Some(at);
        self.focus(pointer.panel);
        let (said, shows) = (panel.into_str(), pointer.panel.into_str());
        let text = match (found, elsewhere) {
            (Some(_), _) => format!("Right: the panel {said} shows it there"),
            (None, Some(_)) => format!(
                "The panel {said} shows it, in another row: {}",
                pointer.row.replace(", ", " or ")
            ),
            (None, None) => format!("The panel {said} does not show it; {shows} does"),
        };
        self.tell(&text, found.is_none());
        self.save(&stage.id);
    }

    /// Shows the next thing that the evidence names, and after the last one the cause. Where the learner has not said which panel
    /// shows the fault, asks first.
    pub(super) fn next_pointer(&mut self, stage: &Stage) {
        if self.lesson.study.activity(stage) != Activity::Evidence {
            return;
        }
        if self.asks_where() {
            self.view.confirm = Some(Confirm::SkipLocating);
            return;
        }
        let at = self.lesson.study.pointer.map_or(0, |at| at + 1);
        match stage.evidence.get(at) {
            Some(pointer) => {
                self.lesson.study.pointer = Some(at);
                self.focus(pointer.panel);
            }
            None => {
                self.lesson.study.note_evidence_seen(stage);
                self.show_lesson();
                // What the cause refers to comes before it.
                let mut pages = pages(&self.lesson.study, stage).into_iter();
                let first =
                    pages.find(|it| !matches!(it, LessonPage::Start | LessonPage::Evidence));
                self.open_page(first.unwrap_or(LessonPage::Cause));
            }
        }
    }

    /// Returns from the walk through the evidence to the text; false where there was none.
    pub(super) fn leave_walk(&mut self) -> bool {
        let walking = self.lesson.study.pointer.take().is_some();
        if walking {
            self.show_lesson();
            self.open_page(LessonPage::Evidence);
        }
        walking
    }
}
