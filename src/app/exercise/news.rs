//! Takes in what happened to exercises: files, checks, and whether the model computes with a kernel. Only kernels that
//! passed get into the model, and the last good one stays there where a later one fails.

use super::{Checking, ExerciseContext, ExerciseNews, Exercises, InModel};
use crate::app::Overlay;
use crate::app::part::Follow;
use crate::course::Exercise;
use crate::judge::kernel::KernelVerdict;
use protocol::Command;

impl Exercises {
    /// Takes in what happened to an exercise.
    pub(in crate::app) fn hear(
        &mut self,
        id: &str,
        news: ExerciseNews,
        context: &ExerciseContext,
    ) -> Vec<Follow> {
        let Some(exercise) = context.lesson.course.exercise_by_id(id) else {
            return Vec::new();
        };
        let state = self.of_mut(exercise);
        match news {
            ExerciseNews::Files(files) => state.files = files,
            ExerciseNews::Begun => {
                state.checking = Some(Checking {
                    now: "starts".to_owned(),
                    since_ms: context.now_ms,
                    ..Checking::default()
                });
                return Vec::from_iter(self.hold_run(exercise, context));
            }
            ExerciseNews::Progress(progress) => {
                if let Some(checking) = &mut state.checking {
                    (checking.card, checking.now) = (progress.card, progress.now);
                }
            }
            ExerciseNews::Checked(report) => return self.checked(exercise, *report, context),
            ExerciseNews::Lanes(found) => self.lanes.show(found),
            ExerciseNews::Answers { answer, saved } => {
                return self.answered(exercise, answer, saved, context);
            }
            ExerciseNews::Measuring(sweep) => {
                if let Some(measuring) = &mut state.measuring {
                    measuring.sweep = *sweep;
                }
            }
            // It was cancelled.
            ExerciseNews::Measured(_) if state.measuring.is_none() => {}
            ExerciseNews::Measured(found) => return self.measured(exercise, *found, context),
        }
        Vec::new()
    }

    /// Pauses the stage's run during a check or a measurement, which needs the processors.
    pub(super) fn hold_run(
        &mut self,
        exercise: &Exercise,
        context: &ExerciseContext,
    ) -> Option<Follow> {
        let run = &context.bench.run;
        let moves = run.state.is_moving() && !run.pairing;
        self.of_mut(exercise).holds_run |= moves;
        moves.then_some(Follow::Pause)
    }

    /// A check or a measurement has ended or failed: the stage's run resumes if it was paused for it.
    pub(super) fn after_work(&mut self, exercise: &Exercise) -> Option<Follow> {
        let state = self.of_mut(exercise);
        (state.checking, state.measuring) = (None, None);
        std::mem::take(&mut state.holds_run).then_some(Follow::Resume)
    }

    fn checked(
        &mut self,
        exercise: &Exercise,
        report: KernelVerdict,
        context: &ExerciseContext,
    ) -> Vec<Follow> {
        let open = context.is_open(exercise);
        let (passed, swap) = (report.passed, report.swap.clone());
        let figures = report.timing();
        let mut follows = Vec::from_iter(self.after_work(exercise));
        let state = self.of_mut(exercise);
        let again = state.report.replace(report).is_some();
        if open && (again || passed) {
            state.text_first = false;
            // The learner waited for the card.
            follows.push(Follow::TextToTop);
        }
        if passed {
            follows.extend(context.pass(exercise, figures));
            if let (Some(swap), true) = (swap, open) {
                state.good = Some(swap);
                follows.extend(self.use_kernel(context));
            }
        }
        // The file was saved under the open card.
        if context.view.overlay == Some(Overlay::Lanes) {
            follows.extend(self.open_lanes(context));
        }
        follows
    }

    /// Asks for the open exercise's last good kernel to compute for the model. A new engine has to be asked again.
    pub(in crate::app) fn use_kernel(&mut self, context: &ExerciseContext) -> Vec<Follow> {
        let Some(exercise) = context.open else {
            return Vec::new();
        };
        let state = self.of_mut(exercise);
        let Some(swap) = state.good.clone() else {
            return Vec::new();
        };
        state.in_model = InModel::Asked;
        vec![Follow::send(Command::UseKernel { swap })]
    }

    /// The engine says whether the model computes with the kernel.
    pub(in crate::app) fn kernel_used(
        &mut self,
        id: &str,
        why_not: Option<String>,
        context: &ExerciseContext,
    ) -> Vec<Follow> {
        let Some(exercise) = context.lesson.course.exercise_by_id(id) else {
            return Vec::new();
        };
        let state = self.of_mut(exercise);
        match why_not {
            _ if state.in_model == InModel::No => {}
            Some(why) => state.in_model = InModel::Not(why),
            None => {
                let last = context.bench.run.shown().last.as_ref();
                state.in_model = InModel::Since(last.map(|step| step.step));
                let label = exercise.label();
                let text = format!("{label}: the model computes with your kernel now");
                return vec![Follow::tell(text)];
            }
        }
        Vec::new()
    }

    /// The run stopped answering: the open exercise's kernel, if the model computed with it, is put into no model any more.
    pub(in crate::app) fn distrust_kernel(&mut self, context: &ExerciseContext) -> Vec<Follow> {
        if let Some(exercise) = context.open
            && let state = self.of_mut(exercise)
            && matches!(state.in_model, InModel::Asked | InModel::Since(_))
        {
            let why = "the run stopped answering while it computed; save it to check it again";
            (state.good, state.in_model) = (None, InModel::Not(why.to_owned()));
        }
        Vec::new()
    }

    /// Gives the model its own kernels back.
    pub(super) fn take_out(&mut self, exercise: &Exercise) -> Option<Follow> {
        let state = self.of_mut(exercise);
        let was_in = std::mem::take(&mut state.in_model) != InModel::No;
        let mut swap = state.good.take().filter(|_| was_in)?;
        swap.kernels.clear();
        Some(Follow::send(Command::UseKernel { swap }))
    }
}
