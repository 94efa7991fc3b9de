//! Takes in what happened to exercises: files, checks, and whether the model computes with a kernel. Only kernels that
//! passed get into the model, and the last good one stays there where a later one fails.

use std::sync::Arc;

use super::{Checking, ExerciseNews, InModel};
use crate::app::{App, Overlay, Panel};
use crate::course::Exercise;
use crate::judge::kernel::KernelVerdict;
use protocol::Command;

impl App {
    /// Takes in what happened to an exercise.
    pub(in crate::app) fn exercise_news(&mut self, id: &str, news: ExerciseNews) {
        let course = Arc::clone(&self.lesson.course);
        let Some(exercise) = course.exercise_by_id(id) else {
            return;
        };
        let now = self.clock.now_ms;
        let state = self.exercise.of_mut(exercise);
        match news {
            ExerciseNews::Files(files) => state.files = files,
            ExerciseNews::Begun => {
                state.checking = Some(Checking {
                    now: "starts".to_owned(),
                    since_ms: now,
                    ..Checking::default()
                });
                self.hold_run(exercise);
            }
            ExerciseNews::Progress(progress) => {
                if let Some(checking) = &mut state.checking {
                    (checking.card, checking.now) = (progress.card, progress.now);
                }
            }
            ExerciseNews::Checked(report) => {
                self.checked(exercise, *report);
                // The file was saved under the open card.
                if self.view.overlay == Some(Overlay::Lanes) {
                    self.open_lanes();
                }
            }
            ExerciseNews::Lanes(found) => self.lanes_recorded(found),
            ExerciseNews::Answers { answer, saved } => self.answered(exercise, answer, saved),
            ExerciseNews::Measuring(sweep) => {
                if let Some(measuring) = &mut state.measuring {
                    measuring.sweep = *sweep;
                }
            }
            // It was cancelled.
            ExerciseNews::Measured(_) if state.measuring.is_none() => {}
            ExerciseNews::Measured(found) => self.measured(exercise, *found),
        }
    }

    /// Pauses the stage's run during a check or a measurement, which needs the processors.
    pub(super) fn hold_run(&mut self, exercise: &Exercise) {
        if self.bench.run.state.is_moving() && !self.bench.pairing() {
            self.pause();
            self.exercise.of_mut(exercise).holds_run = true;
        }
    }

    /// A check or a measurement has ended or failed: the stage's run resumes if it was paused for it.
    pub(super) fn after_work(&mut self, exercise: &Exercise) {
        let state = self.exercise.of_mut(exercise);
        (state.checking, state.measuring) = (None, None);
        if std::mem::take(&mut state.holds_run) && self.bench.run.state.is_paused() {
            self.pause();
        }
    }

    fn checked(&mut self, exercise: &Exercise, report: KernelVerdict) {
        let open = self.exercise().is_some_and(|it| it.id == exercise.id);
        let (passed, swap) = (report.passed, report.swap.clone());
        let figures = report.timing();
        self.after_work(exercise);
        let state = self.exercise.of_mut(exercise);
        let again = state.report.replace(report).is_some();
        if open && (again || passed) {
            if let Some(open) = self.mode.exercise_mut() {
                open.text_first = false;
            }
            // The learner waited for the card.
            self.view.scroll.remove(&Panel::Lesson);
        }
        if !passed {
            return;
        }
        let known = self.lesson.study.of_mut(&exercise.id);
        known.found = known.found.take().or(figures);
        self.pass(exercise);
        if let (Some(swap), true) = (swap, open) {
            let state = self.exercise.of_mut(exercise);
            state.good = Some(swap);
            self.use_kernel();
        }
    }

    /// Asks for the open exercise's last good kernel to compute for the model. A new engine has to be asked again.
    pub(in crate::app) fn use_kernel(&mut self) {
        self.with_exercise(|app, exercise| {
            let state = app.exercise.of_mut(exercise);
            if let Some(swap) = state.good.clone() {
                state.in_model = InModel::Asked;
                app.send(Command::UseKernel { swap });
            }
        });
    }

    /// The engine says whether the model computes with the kernel.
    pub(in crate::app) fn kernel_used(&mut self, id: &str, why_not: Option<String>) {
        let course = Arc::clone(&self.lesson.course);
        let Some(exercise) = course.exercise_by_id(id) else {
            return;
        };
        let step = self.step();
        let label = exercise.label().to_owned();
        let state = self.exercise.of_mut(exercise);
        if state.in_model == InModel::No {
            return;
        }
        if let Some(why) = why_not {
            state.in_model = InModel::Not(why);
        } else {
            state.in_model = InModel::Since(step);
            let text = format!("{label}: the model computes with your kernel now");
            self.tell(&text, false);
        }
    }

    /// Gives the model its own kernels back.
    pub(super) fn take_out(&mut self, exercise: &Exercise) {
        let state = self.exercise.of_mut(exercise);
        let was_in = std::mem::take(&mut state.in_model) != InModel::No;
        if let Some(mut swap) = state.good.take()
            && was_in
        {
            swap.kernels.clear();
            self.send(Command::UseKernel { swap });
        }
    }
}
