//! Takes in what happened to exercises: files, checks, and whether the model computes with a kernel. Only kernels that
//! passed get into the model, and the last good one stays there where a later one fails.

use super::{Checking, Context, ExerciseNews, ExerciseState, Exercises, InModel};
use crate::app::Overlay;
use crate::app::part::{Follow, Follows};
use crate::judge::kernel::KernelVerdict;
use protocol::Command;

impl Exercises {
    /// Takes in what happened to an exercise.
    pub(in crate::app) fn hear(&mut self, news: ExerciseNews, context: &Context) -> Follows {
        let state = self.of_mut(context.exercise);
        match news {
            ExerciseNews::Files(files) => state.files = files,
            ExerciseNews::Begun => {
                state.checking = Some(Checking {
                    now: "starts".to_owned(),
                    since_ms: context.now_ms,
                    ..Checking::default()
                });
                return Vec::from_iter(state.hold_run(context));
            }
            ExerciseNews::Progress(progress) => {
                if let Some(checking) = &mut state.checking {
                    (checking.card, checking.now) = (progress.card, progress.now);
                }
            }
            ExerciseNews::Checked(report) => {
                let mut follows = state.checked(*report, context);
                // The file was saved under the open card.
                if context.is_open && context.view.overlay == Some(Overlay::Lanes) {
                    follows.extend(self.open_lanes(context));
                }
                return follows;
            }
            ExerciseNews::Lanes(found) => self.lanes.show(found),
            ExerciseNews::Answers { answer, saved } => {
                return state.answered(answer, saved, context);
            }
            ExerciseNews::Measuring(sweep) => {
                if let Some(measuring) = &mut state.measuring {
                    measuring.sweep = *sweep;
                }
            }
            // It was cancelled.
            ExerciseNews::Measured(_) if state.measuring.is_none() => {}
            ExerciseNews::Measured(found) => return state.measured(*found, context),
        }
        Vec::new()
    }
}

impl ExerciseState {
    /// Pauses the stage's run during a check or a measurement, which needs the processors.
    pub(super) fn hold_run(&mut self, context: &Context) -> Option<Follow> {
        let moves = context.bench.run.state.is_moving() && !context.bench.pairing();
        self.holds_run |= moves;
        moves.then_some(Follow::Pause)
    }

    /// A check or a measurement has ended or failed: the stage's run resumes if it was paused for it.
    pub(super) fn after_work(&mut self) -> Option<Follow> {
        (self.checking, self.measuring) = (None, None);
        std::mem::take(&mut self.holds_run).then_some(Follow::Resume)
    }

    fn checked(&mut self, report: KernelVerdict, context: &Context) -> Follows {
        let (passed, swap, figures) = (report.passed, report.swap.clone(), report.timing());
        let mut follows = Vec::from_iter(self.after_work());
        let again = self.report.replace(report).is_some();
        if context.is_open && (again || passed) {
            self.text_first = false;
            // The learner waited for the card.
            follows.push(Follow::TextToTop);
        }
        if passed {
            follows.extend(context.pass(figures));
        }
        if passed && context.is_open && swap.is_some() {
            self.good = swap;
            follows.extend(self.use_kernel());
        }
        follows
    }

    /// Asks for the last good kernel to compute for the model. A new engine has to be asked again.
    pub(in crate::app) fn use_kernel(&mut self) -> Follows {
        let swap = self.good.clone();
        let ask = swap.map(|swap| {
            self.in_model = InModel::Asked;
            Follow::send(Command::UseKernel { swap })
        });
        Vec::from_iter(ask)
    }

    /// The engine says whether the model computes with the kernel.
    pub(in crate::app) fn kernel_used(
        &mut self,
        why_not: Option<String>,
        context: &Context,
    ) -> Follows {
        if self.in_model == InModel::No {
            return Vec::new();
        }
        let last = context.bench.run.shown().last.as_ref();
        let since = InModel::Since(last.map(|step| step.step));
        let label = context.exercise.label();
        let text = format!("{label}: the model computes with your kernel now");
        let said = why_not.is_none().then_some(Follow::Tell(text));
        self.in_model = why_not.map_or(since, InModel::Not);
        Vec::from_iter(said)
    }

    /// The run stopped answering: a kernel with which the model computed is put into no model any more.
    pub(in crate::app) fn distrust_kernel(&mut self) -> Follows {
        if matches!(self.in_model, InModel::Asked | InModel::Since(_)) {
            let why = "the run stopped answering while it computed; save it to check it again";
            (self.good, self.in_model) = (None, InModel::Not(why.to_owned()));
        }
        Vec::new()
    }

    /// Gives the model its own kernels back.
    pub(super) fn take_out(&mut self) -> Option<Follow> {
        let was_in = std::mem::take(&mut self.in_model) != InModel::No;
        let mut swap = self.good.take().filter(|_| was_in)?;
        swap.kernels.clear();
        Some(Follow::send(Command::UseKernel { swap }))
    }
}
