//! Handles news about exercises: files, checks, and whether the model computes with a kernel. Only a kernel that passed its
//! check gets into the model. If a later one fails, the last good one stays there.

use super::{Checking, Context, ExerciseNews, ExerciseState, Exercises, InModel};
use crate::app::Overlay;
use crate::app::part::{FollowUp, FollowUps};
use crate::judge::kernel::KernelVerdict;
use protocol::Command;

impl Exercises {
    /// Handles news about the exercise of `context`.
    pub(in crate::app) fn on_news(&mut self, news: ExerciseNews, context: &Context) -> FollowUps {
        let state = self.state_mut(context.exercise);
        match news {
            ExerciseNews::Files(files) => state.files = files,
            ExerciseNews::Begun => {
                state.checking = Some(Checking {
                    now: "starts".to_owned(),
                    since_ms: context.now_ms,
                    ..Checking::default()
                });
            }
            ExerciseNews::Progress(progress) => {
                if let Some(checking) = &mut state.checking {
                    checking.card = progress.card;
                    checking.now = progress.now;
                }
            }
            ExerciseNews::Checked(report) => {
                let mut follows = state.on_checked(*report, context);
                // The learner saved the file while the card was open, so the card shows the new lanes.
                if context.is_open && context.view.overlay == Some(Overlay::Lanes) {
                    follows.extend(self.open_lanes(context));
                }
                return follows;
            }
            ExerciseNews::Lanes(found) => self.lanes.show(found),
            ExerciseNews::Answers { answer, saved } => {
                return state.on_answers(answer, saved, context);
            }
            ExerciseNews::Measuring(sweep) => {
                if let Some(measuring) = &mut state.measuring {
                    measuring.sweep = *sweep;
                }
            }
            // The measurement was cancelled.
            ExerciseNews::Measured(_) if state.measuring.is_none() => {}
            ExerciseNews::Measured(found) => return state.on_measured(*found, context),
        }
        Vec::new()
    }
}

impl ExerciseState {
    /// Pauses or resumes the stage's run, and begins a measurement that waits for the pause. This runs after every message.
    pub(in crate::app) fn settle(&mut self, context: &Context) -> FollowUps {
        let mut follows = Vec::from_iter(self.pause_or_resume(context));
        follows.extend(self.begin_measurement(context));
        follows
    }

    /// Pauses the stage's run while a check or a measurement needs the processors, and while a kernel exercise is open whose kernel
    /// is not in the model. Resumes a run that was paused for that.
    pub(super) fn pause_or_resume(&mut self, context: &Context) -> Option<FollowUp> {
        let works = self.checking.is_some() || self.measuring.is_some();
        let has_unused_kernel =
            context.is_open && context.exercise.kernels().is_some() && !self.is_in_model();
        if !works && !has_unused_kernel {
            return std::mem::take(&mut self.holds_run).then_some(FollowUp::Resume);
        }
        let moves = context.bench.run.state.is_moving() && !context.bench.pairing();
        self.holds_run |= moves;
        moves.then_some(FollowUp::Pause)
    }

    /// Returns true if the model computes with the learner's kernel, or will from the next step on.
    fn is_in_model(&self) -> bool {
        matches!(self.in_model, InModel::Asked | InModel::Since(_))
    }

    /// Takes the result of a check. If it passed, the exercise is passed and the model is asked to use the kernel.
    fn on_checked(&mut self, mut report: KernelVerdict, context: &Context) -> FollowUps {
        self.checking = None;
        let passed = report.passed;
        let swap = report.swap.clone();
        if let Some(accepted) = &self.accepted {
            report.compare_with(accepted);
        }
        let mut follows = Vec::new();
        if context.is_open && (self.report.is_some() || passed) {
            self.text_first = false;
            // The learner has waited for the card with the result.
            follows.push(FollowUp::TextToTop);
        }
        if passed {
            follows.extend(context.pass(&report.criteria, report.timing()));
            self.accepted = Some(report.facts.clone());
        }
        self.report = Some(report);
        if passed && context.is_open && swap.is_some() {
            self.good = swap;
            follows.extend(self.use_kernel(context));
        }
        follows
    }

    /// Asks the engine to put the last good kernel into the model, if the device allows that. A new engine has to be asked again.
    pub(in crate::app) fn use_kernel(&mut self, context: &Context) -> FollowUps {
        let Some(swap) = self.good.clone() else {
            return Vec::new();
        };
        if let Some(why) = context.devices.keeps_own_kernels() {
            self.in_model = InModel::Not(why.to_owned());
            return Vec::new();
        }
        self.in_model = InModel::Asked;
        vec![FollowUp::send(Command::UseKernel { swap })]
    }

    /// Handles the engine's answer about the kernel. `why_not` is `None` if the model computes with the kernel now.
    pub(in crate::app) fn on_kernel_used(
        &mut self,
        why_not: Option<String>,
        context: &Context,
    ) -> FollowUps {
        if self.in_model == InModel::No {
            return Vec::new();
        }
        if let Some(why_not) = why_not {
            self.in_model = InModel::Not(why_not);
            return Vec::new();
        }
        self.in_model = InModel::Since(context.bench.run.step());
        let label = context.exercise.label();
        let text = format!("{label}: the model computes with your kernel now");
        vec![FollowUp::Tell(text)]
    }

    /// Forgets the learner's kernel if the run stopped answering while it was in the model. It is never put into a model again.
    pub(in crate::app) fn distrust_kernel(&mut self) -> FollowUps {
        if self.is_in_model() {
            let why = "the run stopped answering while it computed; save it to check it again";
            self.good = None;
            self.in_model = InModel::Not(why.to_owned());
        }
        Vec::new()
    }

    /// Gives the model its own kernels back. `None` if the engine was not asked to use the learner's.
    pub(super) fn take_out(&mut self) -> Option<FollowUp> {
        let good = self.good.take();
        if std::mem::take(&mut self.in_model) == InModel::No {
            return None;
        }
        let mut swap = good?;
        swap.kernels.clear();
        Some(FollowUp::send(Command::UseKernel { swap }))
    }
}
