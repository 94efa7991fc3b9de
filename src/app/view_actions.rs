//! Actions that only change what is shown: overlays, focus, scrolling, axes, markers, theme. The summary also asks for its table.

use super::lane_view::LaneMove;
use super::pages::PAGE;
use super::view::{ScreenSize, Search, after};
use super::{Action, App, Axis, Effect, Overlay, Panel, RunState};

impl App {
    /// Actions that only change what is shown.
    pub(super) fn look(&mut self, action: Action) {
        let log_axis = self.log_axis();
        let no_stage = self.stage().is_none();
        let attempts = self.attempts();
        let here = attempts.iter().position(|it| self.is_present(it));
        let here = here.unwrap_or(0);
        let view = &mut self.view;
        match action {
            Action::Open(overlay) => {
                let again = view.overlay == Some(overlay);
                view.overlay = (!again).then_some(overlay);
                view.overlay_scroll = if overlay == Overlay::Log { u16::MAX } else { 0 };
                view.search = Search::default();
                view.fault_shown = false;
                view.selected = match overlay {
                    Overlay::Stages => match self.mode.exercise() {
                        Some(open) => self.lesson.course.stages.len() + open.at,
                        None if no_stage => {
                            self.lesson.course.stages.len() + self.lesson.course.exercises.len()
                        }
                        None => self.lesson.study.at,
                    },
                    Overlay::Devices => self
                        .devices
                        .known
                        .iter()
                        .position(|info| info.select == self.devices.using)
                        .unwrap_or(0),
                    Overlay::Attempts => here,
                    _ => 0,
                };
                if matches!(overlay, Overlay::Summary | Overlay::Skipped) && !again {
                    self.effects.push(Effect::ReadJourney);
                }
                if overlay == Overlay::Log {
                    self.devices.log.unseen = 0;
                }
                if overlay == Overlay::Lanes && !again {
                    self.open_lanes();
                }
            }
            Action::TurnPage(by) if view.overlay == Some(Overlay::Skipped) => {
                let pages = self.skipped_stages().len().max(1) as i32;
                let to = (self.view.selected as i32)
                    .saturating_add(by)
                    .rem_euclid(pages);
                (self.view.selected, self.view.overlay_scroll) = (to as usize, 0);
                self.view.fault_shown = false;
            }
            Action::TurnPage(by) if view.overlay.is_none() => self.read_on(by),
            Action::TurnPage(by) => {
                let pages = self.lesson.course.readings.len() as i32 + 1;
                let to = (view.page as i32).saturating_add(by).rem_euclid(pages);
                (view.page, view.overlay_scroll) = (to as usize, 0);
                view.search = Search::default();
            }
            Action::OpenKernel => self.open_kernel(),
            Action::Timeline(to) => self.move_timeline(to),
            Action::Lanes(to) => self.move_lanes(to),
            Action::Search => {
                if view.overlay != Some(Overlay::Kernel) {
                    // The search looks in the glossary, which is the first page.
                    (view.page, view.overlay) = (0, Some(Overlay::Glossary));
                }
                view.overlay_scroll = 0;
                view.search = Search {
                    typing: true,
                    ..Search::default()
                };
            }
            Action::Type(letter) => {
                view.search.push(letter);
                view.overlay_scroll = 0;
            }
            Action::Erase => {
                view.search.text.pop();
                view.overlay_scroll = 0;
            }
            Action::KeepSearch => view.search.typing = false,
            Action::Close => self.close(),
            Action::FocusNext => self.focus_by(1),
            Action::FocusPrevious => self.focus_by(-1),
            Action::Focus(panel) => {
                if view.focus == Some(panel) && panel != Panel::Lesson {
                    view.expanded = !view.expanded;
                }
                self.focus(panel);
            }
            Action::Expand if view.overlay == Some(Overlay::Kernel) => {
                view.card_expanded = !view.card_expanded;
            }
            Action::Expand if view.knobs && view.screen_size() == ScreenSize::Compact => {
                view.knobs = false
            }
            Action::Expand => match view.focus {
                Some(Panel::Lesson) if view.screen_size() == ScreenSize::Compact => {
                    view.lesson_open = !view.lesson_open
                }
                Some(_) => view.expanded = !view.expanded,
                None => {}
            },
            Action::Roofline if view.expanded && view.focus == Some(Panel::Roofline) => {
                view.expanded = false;
            }
            Action::Roofline => {
                self.focus(Panel::Roofline);
                self.view.expanded = true;
            }
            Action::Evidence => self.next_evidence(),
            Action::Lesson if view.knobs => {
                view.knobs = false;
                self.show_lesson();
            }
            Action::Lesson => match view.screen_size() {
                ScreenSize::Split | ScreenSize::Full => {
                    view.expanded = false;
                    view.focus = Some(Panel::Lesson);
                }
                _ => {
                    view.lesson_open = !view.lesson_open;
                    view.expanded = false;
                    view.focus = Some(if view.lesson_open {
                        Panel::Lesson
                    } else {
                        Panel::Loss
                    });
                }
            },
            Action::LogAxis => view.axis = if log_axis { Axis::Linear } else { Axis::Log },
            Action::Window => view.window = after(view.window, 1),
            Action::Smooth => view.smoothing = after(view.smoothing, 1),
            Action::Markers => {
                view.markers = after(view.markers, 1);
                let value = view.markers.into_str();
                let key = "markers";
                self.effects.push(Effect::SaveSetting { key, value });
            }
            Action::Theme => {
                view.theme = after(view.theme, 1);
                let value = view.theme.into_str();
                let text = format!("Theme: {value}");
                let key = "theme";
                self.effects.push(Effect::SaveSetting { key, value });
                self.tell(&text, false);
            }
            Action::Sort => {
                view.sort = after(view.sort, 1);
                view.kernel = 0;
            }
            Action::ScrollToTop if view.overlay == Some(Overlay::Lanes) => {
                self.move_lanes(LaneMove::Step(i32::MIN));
            }
            Action::ScrollToEnd if view.overlay == Some(Overlay::Lanes) => {
                self.move_lanes(LaneMove::Step(i32::MAX));
            }
            Action::Scroll(lines) => self.scroll(lines),
            Action::ScrollPanel(Panel::Kernels, lines) => self.select_kernel(lines),
            Action::ScrollPanel(panel, lines) => view.scroll_by(panel, lines),
            Action::ScrollToTop => self.scroll(i32::MIN / 2),
            Action::ScrollToEnd => self.scroll(i32::MAX / 2),
            _ => {}
        }
    }

    /// The panels that the stage points at, one after the other over all others.
    fn next_evidence(&mut self) {
        let mut panels: Vec<Panel> = Vec::new();
        let pointers = self.stage().into_iter().flat_map(|stage| &stage.evidence);
        for panel in pointers.map(|pointer| pointer.panel) {
            if !panels.contains(&panel) {
                panels.push(panel);
            }
        }
        let now = self.view.focus.filter(|_| self.view.expanded);
        let at = now.and_then(|now| panels.iter().position(|panel| *panel == now));
        match panels.get(at.map_or(0, |at| at + 1)) {
            Some(panel) => {
                self.focus(*panel);
                (self.view.expanded, self.view.lesson_open) = (true, false);
            }
            None => self.view.expanded = false,
        }
    }

    /// Whether the loss is drawn on a logarithmic axis now.
    pub fn log_axis(&self) -> bool {
        let slots = self.bench.run.story.slots.iter();
        let ranges = slots.filter_map(|run| run.loss.range());
        let (low, high) = ranges.fold((f64::INFINITY, 0.0_f64), |(low, high), (l, h)| {
            (low.min(l), high.max(h))
        });
        match self.view.axis {
            Axis::Linear => false,
            Axis::Log => low > 0.0,
            Axis::Auto => low > 0.0 && low.is_finite() && high > 10.0 * low,
        }
    }

    /// Closes what lies on top, one layer at a time.
    fn close(&mut self) {
        let view = &mut self.view;
        if view.confirm.take().is_some() {
            return;
        }
        let searched = matches!(view.overlay, Some(Overlay::Glossary | Overlay::Kernel));
        if searched && view.search.is_open() {
            (view.search, view.overlay_scroll) = (Search::default(), 0);
            return;
        }
        match view.overlay.take() {
            Some(Overlay::Welcome) => return self.catch_up(),
            Some(_) => return,
            None => {}
        }
        if std::mem::take(&mut view.knobs) || self.leave_walk() {
            return;
        }
        let view = &mut self.view;
        if view.expanded || view.lesson_open && view.screen_size() == ScreenSize::Compact {
            (view.expanded, view.lesson_open) = (false, false);
            return;
        }
        self.view.notice = None;
        // A refusal is dismissed; a lost engine stays reported.
        if matches!(self.bench.run.state, RunState::Failed { .. }) {
            self.bench.run.state = RunState::Idle;
        }
    }

    fn focus_by(&mut self, by: isize) {
        let next = self.view.focus.map(|panel| after(panel, by));
        self.focus(next.unwrap_or(Panel::Lesson));
    }

    pub(super) fn focus(&mut self, panel: Panel) {
        let view = &mut self.view;
        (view.focus, view.row) = (Some(panel), 0);
        if !matches!(panel, Panel::Lesson | Panel::Loss | Panel::Throughput) {
            view.third = Some(panel);
        }
        if view.screen_size() == ScreenSize::Compact {
            // A strip has no room for more panels: the focused one lies over the strips.
            (view.lesson_open, view.knobs) = (panel == Panel::Lesson, false);
            view.expanded = !matches!(panel, Panel::Lesson | Panel::Loss | Panel::Throughput);
        }
    }

    fn scroll(&mut self, lines: i32) {
        let attempts = self.attempts().len();
        let view = &mut self.view;
        match view.overlay {
            Some(list @ (Overlay::Stages | Overlay::Devices | Overlay::Attempts)) => {
                let count = match list {
                    Overlay::Devices => self.devices.known.len(),
                    Overlay::Attempts => attempts,
                    // The last lines are the free run and the mystery.
                    _ => self.lesson.course.stages.len() + self.lesson.course.exercises.len() + 2,
                };
                let last = count.saturating_sub(1) as i32;
                view.selected =
                    (view.selected as i32).saturating_add(lines).clamp(0, last) as usize;
            }
            Some(_) => {
                let to = i32::from(view.overlay_scroll).saturating_add(lines);
                view.overlay_scroll = to.clamp(0, i32::from(u16::MAX)) as u16;
            }
            None => {
                if let Some(panel) = self.view.focus.filter(|it| self.marks_row(*it)) {
                    return self.mark_row(panel, lines);
                }
                if self.selects_kernels() {
                    return self.select_kernel(lines);
                }
                let Some(panel) = self.view.focus else {
                    return;
                };
                let stage = panel == Panel::Lesson && !self.mode.is_exercise();
                if stage && lines.abs() == PAGE {
                    self.read_on(lines.signum());
                } else {
                    self.view.scroll_by(panel, lines);
                }
            }
        }
    }
}
