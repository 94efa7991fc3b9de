//! Actions that only change the view: cards, focus, scrolling, axes, markers, theme. `View::update` carries out those that need only the
//! view's own state; `App::act_on_view` carries out those that also need other parts.

use super::exercise::Exercises;
use super::learner::LessonPage;
use super::pages::PAGE;
use super::view::{ScreenSize, Search, View, after};
use super::{Action, App, Axis, Effect, Overlay, Panel, RequestedRun, RunState};
use crate::course::trace_lints::page_of;
use protocol::DeviceInfo;
use protocol::story::RunStory;

/// The state of other parts that the view reads.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ViewContext {
    /// The number of lines or pages of the card that is open or about to be opened.
    pub lines: usize,
    /// The index of the line or page where the learner is.
    pub at: usize,
    /// The number of rows in the kernels panel.
    pub kernels: usize,
    /// The loss is drawn on a logarithmic axis now.
    pub log_axis: bool,
    /// The learner is asked which panel shows the fault.
    pub asks_where: bool,
}

impl App {
    /// Carries out an action that only changes the view.
    pub(super) fn act_on_view(&mut self, action: Action) {
        match action {
            Action::Close => self.close(),
            Action::Evidence => {
                let pointers = self.stage().into_iter().flat_map(|stage| &stage.evidence);
                let panels: Vec<Panel> = pointers.map(|pointer| pointer.panel).collect();
                self.view.show_next(&panels);
            }
            Action::OpenKernel => {
                let shown = self.presenter.shown(&self.bench, &self.lesson, &self.mode);
                let device = self.mode.is_live().then_some(&*self.devices.using);
                let effect = self.view.open_kernel(&shown.run, device);
                self.effects.extend(effect);
            }
            Action::Timeline(to) => {
                let shown = self.presenter.shown(&self.bench, &self.lesson, &self.mode);
                self.view.move_timeline(to, &shown.run);
            }
            Action::Scroll(lines) if self.reading().turns_pages(lines) => {
                let by = lines.signum();
                self.view.read_on(by, self.reading().page_after(by));
            }
            Action::TurnPage(by) if self.view.overlay.is_none() => {
                self.view.read_on(by, self.reading().page_after(by));
            }
            _ => {
                let context = self.view_context(action);
                self.effects.extend(self.view.update(action, &context));
            }
        }
        match action {
            Action::Open(Overlay::Log) => self.devices.log.unseen = 0,
            Action::Theme => self.tell(&format!("Theme: {}", self.view.theme.into_str()), false),
            Action::Open(Overlay::Lanes) if self.view.overlay == Some(Overlay::Lanes) => {
                self.in_exercise(self.mode.exercise(), Exercises::open_lanes);
            }
            _ => {}
        }
    }

    fn view_context(&self, action: Action) -> ViewContext {
        let overlay = match action {
            Action::Open(overlay) => Some(overlay),
            _ => self.view.overlay,
        };
        let (lines, at) = overlay.map_or((0, 0), |list| self.lines_of(list));
        ViewContext {
            lines,
            at,
            kernels: self
                .shown_run()
                .profiled()
                .map_or(0, |(_, step)| step.rows.len()),
            log_axis: self.view.log_axis(self.shown_run()),
            asks_where: self.reading().asks_where(),
        }
    }

    /// Returns the number of lines or pages of a card, and the index of the one where the learner is.
    fn lines_of(&self, card: Overlay) -> (usize, usize) {
        let course = &self.lesson.course;
        let (lines, present) = match card {
            Overlay::Stages => {
                let stages = course.stages.len();
                let exercises = course.exercises.len();
                let present = match (self.mode.exercise(), self.stage()) {
                    (Some(index), _) => stages + index,
                    (None, Some(_)) => self.lesson.learner.at,
                    (None, None) => stages + exercises,
                };
                // The last two lines are the free run and the mystery.
                (stages + exercises + 2, Some(present))
            }
            Overlay::Devices => {
                let known = &self.devices.known;
                let is_used = |info: &DeviceInfo| info.select == self.devices.using;
                (known.len(), known.iter().position(is_used))
            }
            Overlay::Attempts => {
                let attempts = self.bench.run.attempts();
                let is_present = |attempt: &&RunStory| self.bench.is_present(attempt);
                (attempts.len(), attempts.iter().position(is_present))
            }
            Overlay::Skipped => (self.lesson.skipped_stages().len(), None),
            Overlay::Glossary => (course.readings.len() + 1, self.page_of_lint()),
            _ => (0, None),
        };
        (lines, present.unwrap_or(0))
    }

    /// Returns the page of the glossary's card about the first lint of a watched training. Page 0 has the words of the glossary.
    fn page_of_lint(&self) -> Option<usize> {
        if !self.mode.watches() {
            return None;
        }
        let lints = &self.shown_run().shown().lints;
        let index = lints.iter().find_map(|lint| {
            let page = page_of(&lint.name)?;
            let readings = &self.lesson.course.readings;
            readings.iter().position(|text| text.file == page)
        })?;
        Some(index + 1)
    }

    /// Closes the topmost layer: a card, the walk through the evidence, an expanded panel, or else the notice.
    fn close(&mut self) {
        let card = self.view.overlay;
        if self.view.close_card() {
            if card == Some(Overlay::Welcome) && self.view.overlay.is_none() {
                self.catch_up();
            }
        } else if !self.in_lesson(|lesson, stage, _| lesson.leave_walk(stage))
            && !self.view.close_panel()
        {
            self.view.notice = None;
            // A failed run is dismissed. A lost engine stays on the screen until it is replaced.
            if matches!(self.bench.run.state, RunState::Failed { .. }) {
                self.bench.run.state = RunState::Idle;
            }
        }
    }
}

impl View {
    /// Returns true if the losses of these runs are drawn on a logarithmic axis now.
    pub fn log_axis(&self, run: &RequestedRun) -> bool {
        let mut low = f64::INFINITY;
        let mut high = 0.0_f64;
        for (from, to) in run.story.slots.iter().filter_map(|slot| slot.loss.range()) {
            low = low.min(from);
            high = high.max(to);
        }
        match self.axis {
            Axis::Linear => false,
            Axis::Log => low > 0.0,
            Axis::Auto => low > 0.0 && low.is_finite() && high > 10.0 * low,
        }
    }

    /// Carries out an action on the view's own state. Any other action changes nothing.
    pub(super) fn update(&mut self, action: Action, context: &ViewContext) -> Vec<Effect> {
        match action {
            Action::Open(overlay) => return self.open(overlay, context),
            Action::TurnPage(by) => self.turn_card(by, context),
            Action::Search => {
                if self.overlay != Some(Overlay::Kernel) {
                    // The words of the glossary are its first page.
                    self.page = 0;
                    self.overlay = Some(Overlay::Glossary);
                }
                self.overlay_scroll = 0;
                self.search = Search {
                    typing: true,
                    ..Search::default()
                };
            }
            Action::Type(letter) => {
                self.search.push(letter);
                self.overlay_scroll = 0;
            }
            Action::Erase => {
                self.search.text.pop();
                self.overlay_scroll = 0;
            }
            Action::KeepSearch => self.search.typing = false,
            Action::FocusNext => self.focus_by(1, context),
            Action::FocusPrevious => self.focus_by(-1, context),
            Action::Focus(panel) => {
                if self.focus == Some(panel) && panel != Panel::Lesson {
                    self.expanded = !self.expanded;
                }
                self.mark(panel);
            }
            Action::Expand => self.expand(),
            Action::Roofline => {
                let shown = self.expanded && self.focus == Some(Panel::Roofline);
                if !shown {
                    self.mark(Panel::Roofline);
                }
                self.expanded = !shown;
            }
            Action::Lesson => self.show_or_hide_lesson(),
            Action::LogAxis => {
                self.axis = if context.log_axis {
                    Axis::Linear
                } else {
                    Axis::Log
                };
            }
            Action::Window => self.window = after(self.window, 1),
            Action::Smooth => self.smoothing = after(self.smoothing, 1),
            Action::Markers => {
                self.markers = after(self.markers, 1);
                return saved_setting("markers", self.markers.into_str());
            }
            Action::Theme => {
                self.theme = after(self.theme, 1);
                return saved_setting("theme", self.theme.into_str());
            }
            Action::Sort => {
                self.sort = after(self.sort, 1);
                self.kernel = 0;
            }
            Action::Scroll(lines) => self.scroll_lines(lines, context),
            Action::ScrollToTop => self.scroll_lines(i32::MIN, context),
            Action::ScrollToEnd => self.scroll_lines(i32::MAX, context),
            Action::ScrollPanel(Panel::Kernels, lines) => self.select_kernel(lines, context),
            Action::ScrollPanel(panel, lines) => self.scroll_by(panel, lines),
            _ => {}
        }
        Vec::new()
    }

    /// Opens a card, or closes it if it is open. Returns the effect that reads the table of `perflings run all` for cards that show it.
    fn open(&mut self, overlay: Overlay, context: &ViewContext) -> Vec<Effect> {
        let closes = self.overlay == Some(overlay);
        self.overlay = (!closes).then_some(overlay);
        self.overlay_scroll = if overlay == Overlay::Log { u16::MAX } else { 0 };
        self.search = Search::default();
        self.fault_shown = false;
        self.selected = context.at;
        if overlay == Overlay::Glossary && context.at > 0 {
            self.page = context.at;
        }
        let journey = matches!(overlay, Overlay::Summary | Overlay::Skipped);
        Vec::from_iter((journey && !closes).then_some(Effect::ReadJourney))
    }

    /// Turns the pages of the open card.
    fn turn_card(&mut self, by: i32, context: &ViewContext) {
        let page = match self.overlay {
            Some(Overlay::Skipped) => &mut self.selected,
            _ => &mut self.page,
        };
        let to = (*page as i32).saturating_add(by);
        *page = to.rem_euclid(context.lines.max(1) as i32) as usize;
        self.overlay_scroll = 0;
        self.fault_shown = false;
        self.search = Search::default();
    }

    fn expand(&mut self) {
        let compact = self.screen_size() == ScreenSize::Compact;
        match self.focus {
            _ if self.overlay == Some(Overlay::Kernel) => self.card_expanded = !self.card_expanded,
            _ if self.knobs && compact => self.knobs = false,
            Some(Panel::Lesson) if compact => self.lesson_open = !self.lesson_open,
            Some(_) => self.expanded = !self.expanded,
            None => {}
        }
    }

    fn show_or_hide_lesson(&mut self) {
        if self.knobs {
            return self.show_lesson();
        }
        self.expanded = false;
        if self.screen_size() < ScreenSize::Split {
            self.lesson_open = !self.lesson_open;
        }
        let hidden = self.screen_size() < ScreenSize::Split && !self.lesson_open;
        self.focus = Some(if hidden { Panel::Loss } else { Panel::Lesson });
    }

    /// Brings the lesson onto the screen without scrolling it.
    pub(super) fn show_lesson(&mut self) {
        if self.screen_size() == ScreenSize::Compact {
            self.lesson_open = true;
            self.expanded = false;
        }
        self.focus = Some(Panel::Lesson);
        self.knobs = false;
    }

    /// Brings the text of the stage, exercise or mystery onto the screen, from its first line.
    pub(super) fn show_text(&mut self) {
        // `lesson_open` is set on a large screen too, because the terminal may become smaller, for example beside an editor.
        self.lesson_open = true;
        self.expanded = false;
        self.show_lesson();
        self.scroll.remove(&Panel::Lesson);
    }

    /// Shows the knobs instead of the lesson.
    pub(super) fn open_knobs(&mut self) {
        self.knobs = true;
        self.expanded = false;
        self.lesson_open = false;
        self.overlay = None;
        self.focus = Some(Panel::Lesson);
    }

    /// Shows a page of the stage's text from its first line.
    pub(super) fn open_page(&mut self, page: LessonPage) {
        self.lesson_page = page;
        self.scroll.remove(&Panel::Lesson);
    }

    /// Scrolls the page forward or back by `by` screens. At its end, opens the page `next`, if there is one.
    pub(super) fn read_on(&mut self, by: i32, next: Option<LessonPage>) {
        if self.lines_left(by) > 0 {
            self.scroll_by(Panel::Lesson, by.signum() * PAGE);
        } else if let Some(page) = next {
            self.open_page(page);
            if by < 0 {
                self.scroll.insert(Panel::Lesson, u16::MAX);
            }
        }
    }

    /// Shows the next of these panels over all others. After the last one, shows all panels.
    fn show_next(&mut self, panels: &[Panel]) {
        let is_shown = |panel: &Panel| self.expanded && self.focus == Some(*panel);
        let count_shown = panels
            .iter()
            .position(is_shown)
            .map_or(0, |index| index + 1);
        let (shown, others) = panels.split_at(count_shown);
        let next = others.iter().find(|panel| !shown.contains(panel));
        if let Some(panel) = next {
            self.mark(*panel);
            self.lesson_open = false;
        }
        self.expanded = next.is_some();
    }

    /// Closes the confirmation, the search, the card or the knobs, whichever is on top. Returns true if one was open.
    fn close_card(&mut self) -> bool {
        if self.confirm.take().is_some() {
            return true;
        }
        let can_search = matches!(self.overlay, Some(Overlay::Glossary | Overlay::Kernel));
        if can_search && self.search.is_open() {
            self.search = Search::default();
            self.overlay_scroll = 0;
            return true;
        }
        self.overlay.take().is_some() || std::mem::take(&mut self.knobs)
    }

    /// Gives an expanded panel, or a lesson over the strips, its normal size back. Returns true if there was one.
    fn close_panel(&mut self) -> bool {
        let covers_strips = self.lesson_open && self.screen_size() == ScreenSize::Compact;
        let covers = self.expanded || covers_strips;
        if covers {
            self.expanded = false;
            self.lesson_open = false;
        }
        covers
    }

    fn focus_by(&mut self, by: isize, context: &ViewContext) {
        let next = self.focus.map_or(Panel::Lesson, |panel| after(panel, by));
        self.mark(next);
        // A strip has no room for the rows that may be marked.
        let compact = self.screen_size() == ScreenSize::Compact;
        self.expanded |= context.asks_where && compact && next != Panel::Lesson;
    }

    /// Marks a panel and brings it onto the screen.
    pub(super) fn mark(&mut self, panel: Panel) {
        if self.focus.replace(panel) != Some(panel) {
            // The next frame reports the rows of the new panel.
            self.row = 0;
            self.rows.clear();
        }
        let large = !matches!(panel, Panel::Lesson | Panel::Loss | Panel::Throughput);
        if large {
            self.third = Some(panel);
        }
        if self.screen_size() == ScreenSize::Compact {
            // The strips have no room for a large panel, so it covers them.
            self.lesson_open = panel == Panel::Lesson;
            self.knobs = false;
            self.expanded = large;
        }
    }

    /// Returns true if keys that scroll move the selected row of the kernels: their panel has the focus, or is an uncovered strip.
    pub fn selects_kernels(&self) -> bool {
        let compact = self.screen_size() == ScreenSize::Compact;
        let is_uncovered_strip = compact && !self.expanded && !self.lesson_open;
        is_uncovered_strip || self.focus == Some(Panel::Kernels)
    }

    fn select_kernel(&mut self, lines: i32, context: &ViewContext) {
        self.kernel = moved(self.kernel, lines, context.kernels);
    }

    /// Scrolls the card or panel on top, or moves its marked line.
    fn scroll_lines(&mut self, lines: i32, context: &ViewContext) {
        match self.overlay {
            Some(Overlay::Stages | Overlay::Devices | Overlay::Attempts) => {
                self.selected = moved(self.selected, lines, context.lines);
            }
            Some(_) => {
                let to = i32::from(self.overlay_scroll).saturating_add(lines);
                self.overlay_scroll = to.clamp(0, i32::from(u16::MAX)) as u16;
            }
            None => match self.focus {
                Some(panel) if context.asks_where && panel.has_rows() => {
                    self.mark_row(panel, lines)
                }
                _ if self.selects_kernels() => self.select_kernel(lines, context),
                Some(panel) => self.scroll_by(panel, lines),
                None => {}
            },
        }
    }

    /// Marks the row this many lines further down. Past the visible rows, scrolls the panel.
    fn mark_row(&mut self, panel: Panel, lines: i32) {
        let to = (self.row as i32).saturating_add(lines);
        self.row = moved(self.row, lines, self.rows.len());
        if to != self.row as i32 {
            self.scroll_by(panel, lines);
        }
    }
}

/// Returns the effect that saves a setting of the display for the next session.
fn saved_setting(key: &'static str, value: &'static str) -> Vec<Effect> {
    vec![Effect::SaveSetting { key, value }]
}

/// Returns the index `lines` places after `at`, limited to a list of `count` lines.
fn moved(at: usize, lines: i32, count: usize) -> usize {
    let last = count.saturating_sub(1);
    at.saturating_add_signed(lines as isize).min(last)
}
