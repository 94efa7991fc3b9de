//! What each action of the learner does to the state, and which effects it has.

use std::sync::Arc;

use super::message::{AfterSkip, Confirm};
use super::source::ReplayControl;
use super::view::{Room, Sort};
use super::{Action, App, Axis, Effect, Overlay, Panel};

impl App {
    /// Does what the learner asked for.
    pub(super) fn act(&mut self, action: Action) -> Vec<Effect> {
        match action {
            Action::Quit => return vec![Effect::Quit],
            Action::Suspend => return vec![Effect::Suspend],
            Action::Stage(number) => return self.go_to_number(number),
            Action::NextStage => return self.go_by(1),
            Action::PreviousStage => return self.go_by(-1),
            Action::Answer(choice) => return self.answer(choice),
            Action::Hint => return self.hint(),
            Action::Solution => return self.solution(),
            Action::Reset => self.view.confirm = Some(Confirm::Reset),
            Action::Toggle => return self.unless_unpredicted(AfterSkip::Toggle),
            Action::Pair => return self.unless_unpredicted(AfterSkip::Pair),
            Action::Pause => return self.pause(),
            Action::Restart => return self.restart_or_not(),
            Action::Profile => return self.profile(),
            Action::SwitchDevice => {
                if let Some(select) = self.devices.offer().map(str::to_owned) {
                    return self.use_device(&select);
                }
            }
            Action::ReplayStep => return self.replay(ReplayControl::Step),
            Action::ReplayFaster => return self.replay_speed(2.0),
            Action::ReplaySlower => return self.replay_speed(0.5),
            Action::OpenEditor => return self.open_editor(),
            Action::Report => return vec![Effect::WriteReport],
            Action::Yes => return self.confirmed(),
            Action::No => self.view.confirm = None,
            Action::Choose => return self.choose(self.view.selected),
            Action::ChooseLine(line) => return self.choose(line),
            _ => self.look(action),
        }
        Vec::new()
    }

    /// Actions that only change what is seen.
    fn look(&mut self, action: Action) {
        let log_axis = self.log_axis();
        let view = &mut self.view;
        match action {
            Action::Open(overlay) => {
                let again = view.overlay == Some(overlay);
                view.overlay = (!again).then_some(overlay);
                view.overlay_scroll = if overlay == Overlay::Log { u16::MAX } else { 0 };
                view.selected = match overlay {
                    Overlay::Stages => self.study.at,
                    Overlay::Devices => {
                        self.devices.known.iter().position(|info| info.select == self.devices.using).unwrap_or(0)
                    }
                    _ => 0,
                };
                if overlay == Overlay::Log {
                    self.log.unseen = 0;
                }
            }
            Action::Close => self.close(),
            Action::FocusNext => self.focus_by(1),
            Action::FocusPrevious => self.focus_by(-1),
            Action::Focus(panel) => {
                if view.focus == Some(panel) && panel != Panel::Lesson {
                    view.expanded = !view.expanded;
                }
                self.focus(panel);
            }
            Action::Expand => match view.focus {
                Some(Panel::Lesson) if view.room() == Room::Compact => view.lesson_open = !view.lesson_open,
                Some(_) => view.expanded = !view.expanded,
                None => {}
            },
            Action::Lesson => match view.room() {
                Room::Split | Room::Full => {
                    view.expanded = false;
                    view.focus = Some(Panel::Lesson);
                }
                _ => {
                    view.lesson_open = !view.lesson_open;
                    view.expanded = false;
                    view.focus = Some(if view.lesson_open { Panel::Lesson } else { Panel::Loss });
                }
            },
            Action::LogAxis => view.axis = if log_axis { Axis::Linear } else { Axis::Log },
            Action::Window => view.window = view.window.next(),
            Action::Markers => view.markers = view.markers.next(),
            Action::Theme => {
                view.theme = view.theme.next();
                let text = format!("Theme: {}", view.theme.name());
                self.tell(&text, false);
            }
            Action::Sort => {
                view.sort = Sort::next(view.sort);
                view.scroll.remove(&Panel::Kernels);
            }
            Action::Scroll(lines) => self.scroll(lines),
            Action::ScrollPanel(panel, lines) => view.scroll_by(panel, lines),
            Action::ScrollToTop => self.scroll(i32::MIN / 2),
            Action::ScrollToEnd => self.scroll(i32::MAX / 2),
            _ => {}
        }
    }

    /// Whether the loss is drawn on a logarithmic axis now.
    pub fn log_axis(&self) -> bool {
        let range = |slot: &super::SlotRun| slot.loss.range();
        let ranges = self.run.slots.iter().filter_map(range);
        let (low, high) = ranges.fold((f64::INFINITY, 0.0_f64), |(low, high), (l, h)| (low.min(l), high.max(h)));
        match self.view.axis {
            Axis::Linear => false,
            Axis::Log => low > 0.0,
            Axis::Auto => low > 0.0 && low.is_finite() && high > 20.0 * low,
        }
    }

    /// Puts away what lies on top, one layer at a time.
    fn close(&mut self) {
        let view = &mut self.view;
        if view.confirm.take().is_some() || view.overlay.take().is_some() {
            return;
        }
        if view.expanded || view.lesson_open {
            (view.expanded, view.lesson_open) = (false, false);
            return;
        }
        self.notice = None;
    }

    fn focus_by(&mut self, by: isize) {
        let at = Panel::ALL.iter().position(|panel| Some(*panel) == self.view.focus);
        let count = Panel::ALL.len() as isize;
        let next = at.map_or(0, |at| (at as isize + by).rem_euclid(count));
        self.focus(Panel::ALL[next as usize]);
    }

    fn focus(&mut self, panel: Panel) {
        let view = &mut self.view;
        view.focus = Some(panel);
        if !matches!(panel, Panel::Lesson | Panel::Loss | Panel::Throughput) {
            view.third = Some(panel);
        }
        if view.room() == Room::Compact {
            // A strip has no room for more panels: the focused one lies over the strips.
            view.lesson_open = panel == Panel::Lesson;
            view.expanded = !matches!(panel, Panel::Lesson | Panel::Loss | Panel::Throughput);
        }
    }

    fn scroll(&mut self, lines: i32) {
        let view = &mut self.view;
        match view.overlay {
            Some(Overlay::Stages) => {
                let last = self.course.stages.len().saturating_sub(1) as i32;
                view.selected = (view.selected as i32).saturating_add(lines).clamp(0, last) as usize;
            }
            Some(Overlay::Devices) => {
                let last = self.devices.known.len().saturating_sub(1) as i32;
                view.selected = (view.selected as i32).saturating_add(lines).clamp(0, last) as usize;
            }
            Some(_) => {
                let to = i32::from(view.overlay_scroll).saturating_add(lines);
                view.overlay_scroll = to.clamp(0, i32::from(u16::MAX)) as u16;
            }
            None => {
                let focus = if view.room() == Room::Compact && !view.expanded && !view.lesson_open {
                    Some(Panel::Kernels)
                } else {
                    view.focus
                };
                if let Some(panel) = focus {
                    view.scroll_by(panel, lines);
                }
            }
        }
    }

    fn go_to_number(&mut self, number: u32) -> Vec<Effect> {
        match self.course.stages.iter().position(|stage| stage.number == number) {
            Some(at) => self.go_to(at),
            None => {
                self.tell(&format!("There is no stage {number}"), true);
                Vec::new()
            }
        }
    }

    fn go_by(&mut self, by: isize) -> Vec<Effect> {
        match self.study.at.checked_add_signed(by) {
            Some(at) if at < self.course.stages.len() => self.go_to(at),
            Some(_) => {
                self.tell("This is the last stage", false);
                Vec::new()
            }
            None => {
                self.tell("This is the first stage", false);
                Vec::new()
            }
        }
    }

    fn go_to(&mut self, at: usize) -> Vec<Effect> {
        self.view.overlay = None;
        if at == self.study.at {
            return Vec::new();
        }
        self.view.focus = Some(Panel::Lesson);
        (self.view.expanded, self.view.lesson_open) = (false, false);
        self.enter(at)
    }

    fn answer(&mut self, choice: usize) -> Vec<Effect> {
        let course = Arc::clone(&self.course);
        let Some(stage) = course.stages.get(self.study.at) else { return Vec::new() };
        if self.study.question(stage).is_none() {
            return Vec::new();
        }
        if !self.view.lesson_visible() {
            self.tell("Read the question first: it is in the lesson", false);
            return Vec::new();
        }
        if self.study.answer(stage, choice).is_none() {
            return Vec::new();
        }
        self.view.scroll.remove(&Panel::Lesson);
        vec![self.save(stage)]
    }

    fn hint(&mut self) -> Vec<Effect> {
        let course = Arc::clone(&self.course);
        let Some(stage) = course.stages.get(self.study.at).filter(|_| self.recording.is_none()) else { return Vec::new() };
        if self.study.hints as usize >= stage.hints.len() {
            self.tell("All hints are shown", false);
            return Vec::new();
        }
        self.study.hints += 1;
        let hints = self.study.hints;
        let known = self.study.of_mut(stage);
        known.hints = known.hints.max(hints);
        self.show_lesson();
        self.view.scroll.insert(Panel::Lesson, 0);
        vec![self.save(stage)]
    }

    fn show_lesson(&mut self) {
        if self.view.room() == Room::Compact {
            (self.view.lesson_open, self.view.expanded) = (true, false);
        }
        self.view.focus = Some(Panel::Lesson);
    }

    fn solution(&mut self) -> Vec<Effect> {
        if self.study.solution {
            self.look(Action::Open(Overlay::Solution));
        } else {
            self.view.confirm = Some(Confirm::ShowSolution);
        }
        Vec::new()
    }

    /// Toggling and pairing are allowed at any time; before the prediction they ask once.
    fn unless_unpredicted(&mut self, then: AfterSkip) -> Vec<Effect> {
        if self.recording.is_some() {
            self.tell("This is a recording: nothing can be changed in it", false);
            return Vec::new();
        }
        if !self.revealed() {
            self.view.confirm = Some(Confirm::SkipPrediction(then));
            return Vec::new();
        }
        self.after_skip(then)
    }

    fn after_skip(&mut self, then: AfterSkip) -> Vec<Effect> {
        match then {
            AfterSkip::Toggle => self.toggle(),
            AfterSkip::Pair => self.pair(),
        }
    }

    fn confirmed(&mut self) -> Vec<Effect> {
        let course = Arc::clone(&self.course);
        let (Some(confirm), Some(stage)) = (self.view.confirm.take(), course.stages.get(self.study.at)) else {
            return Vec::new();
        };
        match confirm {
            Confirm::SkipPrediction(then) => {
                self.study.skip(stage);
                let mut effects = vec![self.save(stage)];
                effects.extend(self.after_skip(then));
                effects
            }
            Confirm::ShowSolution => {
                self.study.solution = true;
                self.study.of_mut(stage).solution_shown = true;
                self.look(Action::Open(Overlay::Solution));
                vec![self.save(stage)]
            }
            Confirm::Reset => {
                self.study.forget(stage);
                let mut effects = vec![Effect::ResetStage { stage: stage.id.clone() }];
                effects.extend(self.enter(self.study.at));
                effects
            }
        }
    }

    fn restart_or_not(&mut self) -> Vec<Effect> {
        if self.recording.is_some() {
            return Vec::new();
        }
        self.restart()
    }

    fn profile(&mut self) -> Vec<Effect> {
        if self.recording.is_some() || !self.run.state.is_active() {
            return Vec::new();
        }
        self.tell("The next step is profiled", false);
        vec![Effect::Send(crate::protocol::Command::Profile)]
    }

    fn replay(&mut self, control: ReplayControl) -> Vec<Effect> {
        match &mut self.recording {
            Some(recording) => {
                recording.paused |= control == ReplayControl::Step;
                vec![Effect::Replay(control)]
            }
            None => Vec::new(),
        }
    }

    fn replay_speed(&mut self, factor: f64) -> Vec<Effect> {
        match &mut self.recording {
            Some(recording) => {
                recording.speed = (recording.speed * factor).clamp(0.125, 64.0);
                vec![Effect::Replay(ReplayControl::Speed(recording.speed))]
            }
            None => Vec::new(),
        }
    }

    fn open_editor(&mut self) -> Vec<Effect> {
        let Some(stage) = self.stage() else { return Vec::new() };
        match stage.files.first() {
            Some(file) => vec![Effect::OpenEditor { stage: stage.id.clone(), file: file.name.clone() }],
            None => {
                self.tell("This stage has no file to edit", false);
                Vec::new()
            }
        }
    }

    /// Takes a line of the open list.
    fn choose(&mut self, line: usize) -> Vec<Effect> {
        match self.view.overlay {
            Some(Overlay::Stages) if line < self.course.stages.len() => self.go_to(line),
            Some(Overlay::Devices) => {
                let Some(info) = self.devices.known.get(line) else { return Vec::new() };
                let select = info.select.clone();
                self.view.overlay = None;
                if select == self.devices.using || self.recording.is_some() {
                    return Vec::new();
                }
                self.use_device(&select)
            }
            _ => Vec::new(),
        }
    }
}
