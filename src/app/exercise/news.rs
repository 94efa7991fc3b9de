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
    /// After every message: begins a measurement that waits, and pauses or resumes the stage's run.
    pub(in crate::app) fn settle(&mut self, context: &Context) -> Follows {
        let rest = self.rest(context);
        rest.into_iter()
            .chain(self.begin_measurement(context))
            .collect()
    }

    /// Pauses the stage's run while a check or a measurement needs the processors, and while a kernel exercise is open whose kernel
    /// does not compute in it; resumes what was paused.
    pub(super) fn rest(&mut self, context: &Context) -> Option<Follow> {
        let works = self.checking.is_some() || self.measuring.is_some();
        let apart = context.is_open && context.exercise.kernels().is_some() && !self.is_in_model();
        if !works && !apart {
            return std::mem::take(&mut self.holds_run).then_some(Follow::Resume);
        }
        let moves = context.bench.run.state.is_moving() && !context.bench.pairing();
        self.holds_run |= moves;
        moves.then_some(Follow::Pause)
    }

    /// Whether the learner's kernel computes for the model, or does from the next step on.
    fn is_in_model(&self) -> bool {
        matches!(self.in_model, InModel::Asked | InModel::Since(_))
    }

    fn checked(&mut self, mut report: KernelVerdict, context: &Context) -> Follows {
        self.checking = None;
        let (passed, swap) = (report.passed, report.swap.clone());
        if let Some(accepted) = &self.accepted {
            report.set_beside(accepted);
        }
        let mut follows = Vec::new();
        if context.is_open && (self.report.is_some() || passed) {
            self.text_first = false;
            // The learner waited for the card.
            follows.push(Follow::TextToTop);
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

    /// Asks for the last good kernel to compute for the model, where a kernel can. A new engine has to be asked again.
    pub(in crate::app) fn use_kernel(&mut self, context: &Context) -> Follows {
        let Some(swap) = self.good.clone() else {
            return Vec::new();
        };
        if let Some(why) = context.devices.keeps_own_kernels() {
            self.in_model = InModel::Not(why.to_owned());
            return Vec::new();
        }
        self.in_model = InModel::Asked;
        vec![Follow::send(Command::UseKernel { swap })]
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
        if self.is_in_model() {
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
