//! Opening and leaving an exercise: what comes into view, and whether its recorded run takes the place of the live one.

use std::sync::Arc;

use crate::app::bench::Asked;
use crate::app::mode::HeldRun;
use crate::app::runs::PAIRS_ENDED;
use crate::app::{App, Effect, Mode, Panel, Replay, RequestedRun, RunState};
use crate::course::Exercise;
use crate::course::exercise::Detective;
use crate::course::save_file::StageState;
use protocol::Command;

impl App {
    /// Opens an exercise: its text takes the lesson's place while the run goes on.
    pub(in crate::app) fn open_exercise(&mut self, at: usize) {
        let course = Arc::clone(&self.lesson.course);
        let Some(exercise) = course.exercises.get(at) else {
            return;
        };
        self.view.overlay = None;
        if self.mode.exercise() == Some(at) {
            self.show_text();
            return;
        }
        self.leave_exercise();
        self.show_text();
        self.view.notice = None;
        let known = self.lesson.study.of_mut(&exercise.id);
        known.state = known.state.max(StageState::Seen);
        self.exercise.of_mut(exercise).text_first = true;
        self.save(&exercise.id);
        if !exercise.files().is_empty() {
            self.effects.push(Effect::OpenExercise {
                exercise: exercise.id.clone(),
                device: self.devices.for_kernels().to_owned(),
            });
        }
        match exercise.recording() {
            Some(recording) => self.watch(exercise, recording, at),
            None => self.mode = Mode::Exercise(at),
        }
    }

    /// Leaves the open exercise; the model gets its own kernels back, so that stages compare like with like.
    pub(in crate::app) fn leave_exercise(&mut self) {
        let (at, watched) = match &mut self.mode {
            Mode::Exercise(at) => (*at, None),
            Mode::Watching {
                exercise,
                engine_gone,
                held,
                ..
            } => (*exercise, Some((*engine_gone, held.take()))),
            Mode::Stage | Mode::Free | Mode::Mystery(_) | Mode::Replay(_) => return,
        };
        // A free run goes on where it was.
        let free = self.bench.comparison.stage == 0 && !self.bench.comparison.offers.is_empty();
        self.mode = if free { Mode::Free } else { Mode::Stage };
        let course = Arc::clone(&self.lesson.course);
        let Some(exercise) = course.exercises.get(at) else {
            return;
        };
        self.view.scroll.remove(&Panel::Lesson);
        (self.view.confirm, self.view.lesson_open) = (None, false);
        self.in_exercise(Some(at), |it, context| it.of_mut(exercise).left(context));
        if let Some((engine_gone, held)) = watched {
            self.run_again(engine_gone, held);
        }
        self.show_beat_again();
    }

    /// Pauses and keeps the stage's run while a recorded one is shown. A run that is starting, or pairs, cannot wait and are ended.
    fn hold(&mut self) -> Option<Box<HeldRun>> {
        use RunState::{EngineGone, Paused, Pausing, Starting};
        let asked = std::mem::take(&mut self.bench.pending.asked);
        let run = &mut self.bench.run;
        let resumes = run.state.is_moving();
        let settled = matches!(asked, Asked::Nothing | Asked::Leave);
        if !settled || matches!(run.state, Starting | EngineGone { .. }) {
            if let Asked::Pairs { .. } = asked {
                self.tell(PAIRS_ENDED, true);
            }
            self.send(Command::Stop);
            return None;
        }
        if resumes || run.state == Pausing {
            run.state = Paused;
        }
        let held = HeldRun {
            run: std::mem::take(run),
            resumes,
            pair: self.lesson.study.pair.take(),
            report: self.lesson.study.report.take(),
        };
        if resumes {
            self.send(Command::Pause);
        }
        Some(Box::new(held))
    }

    /// Shows a recorded run in the place of the live one, which is paused.
    fn watch(&mut self, exercise: &Exercise, detective: &Detective, at: usize) {
        let held = self.hold();
        self.mode = Mode::Watching {
            exercise: at,
            recording: Replay {
                stage: None,
                file: detective.file.clone(),
                device: detective.device.clone(),
                date: detective.date.clone(),
                paused: false,
                speed: 1.0,
                unsolved: true,
            },
            engine_gone: false,
            held,
        };
        let run = &mut self.bench.run;
        *run = RequestedRun::default();
        (run.state, run.asked_ms) = (RunState::Starting, self.clock.now_ms);
        (self.lesson.study.pair, self.lesson.study.report) = (None, None);
        self.exercise.of_mut(exercise).quiz.clear();
        self.effects.push(Effect::ShowRecording {
            exercise: exercise.id.clone(),
        });
    }

    /// Resumes the stage's run after a recorded one; where it could not wait, it starts again from its first step.
    fn run_again(&mut self, engine_gone: bool, held: Option<Box<HeldRun>>) {
        self.view.notice = None;
        (self.bench.run, self.bench.pending.asked) = Default::default();
        self.effects.push(Effect::HideRecording);
        if let Some(held) = held.filter(|_| !engine_gone && self.presenter.presentation.is_none()) {
            self.bench.run = held.run;
            (self.lesson.study.pair, self.lesson.study.report) = (held.pair, held.report);
            if held.resumes {
                self.pause();
            }
            return;
        }
        if engine_gone {
            self.effects.push(Effect::Restart);
        }
        if self.stage().is_some() && self.presenter.presentation.is_none() {
            self.start(self.bench.comparison.run_a());
        }
    }

    /// Brings the lesson, or what stands in its place, into view.
    pub(in crate::app) fn show_text(&mut self) {
        // Also set on a large screen: the frame may become smaller, as beside an editor.
        (self.view.lesson_open, self.view.expanded) = (true, false);
        (self.view.focus, self.view.knobs) = (Some(Panel::Lesson), false);
        self.view.scroll.remove(&Panel::Lesson);
    }
}
