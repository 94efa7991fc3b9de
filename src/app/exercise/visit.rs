//! Opens and leaves exercises. While an exercise with a recording is open, the recorded run replaces the live one on the screen.

use std::sync::Arc;

use crate::app::mode::HeldRun;
use crate::app::runs::PAIRS_ENDED;
use crate::app::{App, Effect, Mode, Panel, Replay, RequestedRun, RunState};
use crate::course::Exercise;
use crate::course::exercise::Detective;
use crate::course::save_file::StageState;

impl App {
    /// Opens the exercise at index `at`. Its text replaces the lesson. The run continues, except during a kernel exercise.
    pub(in crate::app) fn open_exercise(&mut self, at: usize) {
        let course = Arc::clone(&self.lesson.course);
        let Some(exercise) = course.exercises.get(at) else {
            return;
        };
        self.view.overlay = None;
        if self.mode.exercise() == Some(at) {
            self.view.show_text();
            return;
        }
        self.leave_exercise();
        self.view.show_text();
        self.view.notice = None;
        let progress = self.lesson.learner.progress_mut(&exercise.id);
        progress.state = progress.state.max(StageState::Seen);
        self.exercise.state_mut(exercise).text_first = true;
        self.effects.push(self.lesson.saved(&exercise.id));
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

    /// Leaves the open exercise. The model gets its own kernels back, so that a stage never compares them with a learner's kernel.
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
        // A free run continues where the learner left it for the exercise.
        let was_free = self.bench.comparison.stage == 0 && !self.bench.comparison.offers.is_empty();
        self.mode = if was_free { Mode::Free } else { Mode::Stage };
        let course = Arc::clone(&self.lesson.course);
        let Some(exercise) = course.exercises.get(at) else {
            return;
        };
        self.view.scroll.remove(&Panel::Lesson);
        self.view.confirm = None;
        self.view.lesson_open = false;
        self.in_exercise(Some(at), |exercises, context| {
            exercises.state_mut(exercise).leave(context)
        });
        if let Some((engine_gone, held)) = watched {
            self.bring_back_run(engine_gone, held);
        }
        self.show_beat_again();
    }

    /// Shows a recorded run instead of the live one, which pauses.
    fn watch(&mut self, exercise: &Exercise, detective: &Detective, at: usize) {
        if self.bench.pairing() {
            self.tell(PAIRS_ENDED, true);
        }
        let (command, run) = self.bench.hold();
        self.effects.extend(command.map(Effect::Send));
        let pair = self.lesson.learner.pair.take();
        let report = self.lesson.learner.report.take();
        let held = run.map(|(run, resumes)| {
            Box::new(HeldRun {
                run,
                resumes,
                pair,
                report,
            })
        });
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
                watched: false,
            },
            engine_gone: false,
            held,
        };
        self.bench.run.state = RunState::Starting;
        self.bench.run.asked_ms = self.clock.now_ms;
        self.exercise.state_mut(exercise).quiz.clear();
        self.effects.push(Effect::ShowRecording {
            exercise: exercise.id.clone(),
        });
    }

    /// Resumes the stage's run after a recorded one. If the run could not wait (`held` is `None`), it restarts from its first step.
    fn bring_back_run(&mut self, engine_gone: bool, held: Option<Box<HeldRun>>) {
        self.view.notice = None;
        self.effects.push(Effect::HideRecording);
        if let Some(held) = held
            && !engine_gone
            && self.presenter.presentation.is_none()
        {
            self.lesson.learner.pair = held.pair;
            self.lesson.learner.report = held.report;
            let command = self.bench.put_back(held.run, held.resumes);
            return self.effects.extend(command.map(Effect::Send));
        }
        self.bench.put_back(RequestedRun::default(), false);
        if engine_gone {
            self.effects.push(Effect::Restart);
        }
        if self.stage().is_some() && self.presenter.presentation.is_none() {
            self.start(self.bench.comparison.run_a());
        }
    }
}
