//! The card that shows what the lanes of a workgroup do in the learner's kernel. Keys choose the workgroup and the step.

use std::sync::Arc;

use super::exercise::{Context, Exercises};
use super::part::{FollowUp, FollowUps};
use super::{Effect, Overlay};
use crate::lanes::{KernelLanes, LanesWanted};
use wgsl_lockstep::lanes::WorkgroupRun;

/// The state of the card.
#[derive(Clone, Debug, Default)]
pub struct LaneView {
    /// The latest request.
    pub wanted: LanesWanted,
    /// The recorded lanes, or why there are none. `None` while the kernel runs on the host.
    pub found: Option<Result<Arc<KernelLanes>, String>>,
    /// The index of the step on the card.
    pub at: usize,
}

impl LaneView {
    /// Shows the recorded lanes, beginning at the first fault.
    pub(super) fn show(&mut self, found: Result<Arc<KernelLanes>, String>) {
        let run = found.as_ref().map(|found| &found.run);
        let fault = run.ok().and_then(|run| run.faults.first());
        self.at = fault.map_or(0, |fault| fault.step);
        self.found = Some(found);
    }

    /// Returns the recorded workgroup. `None` while it is recorded, and if that failed.
    pub fn run(&self) -> Option<&WorkgroupRun> {
        Some(&self.found.as_ref()?.as_ref().ok()?.run)
    }

    /// Returns the step that a move leads to. `None` if there is no such step, or if the move leaves the workgroup.
    pub fn after(&self, to: LaneMove) -> Option<usize> {
        let run = self.run()?;
        match to {
            LaneMove::Step(by) => {
                let last = run.steps.len().saturating_sub(1);
                Some(self.at.saturating_add_signed(by as isize).min(last))
            }
            LaneMove::Barrier => {
                (self.at + 1..run.steps.len()).find(|index| run.steps[*index].barrier.is_some())
            }
            LaneMove::Fault => {
                let mut steps = Vec::new();
                for fault in &run.faults {
                    steps.push(fault.step);
                    steps.extend(fault.other.map(|(step, _)| step));
                }
                steps.dedup();
                let present = steps.iter().position(|step| *step == self.at);
                let next = present.map_or(0, |index| (index + 1) % steps.len());
                steps.get(next).copied()
            }
            LaneMove::Shape | LaneMove::Workgroup => None,
        }
    }
}

/// A move on the card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaneMove {
    /// Forward by this many steps; a negative number moves back.
    Step(i32),
    /// To the next barrier.
    Barrier,
    /// To the next fault, or to the first one. A race has two places: the second access follows the first.
    Fault,
    /// To the next shape; after the last one, to the next file.
    Shape,
    /// To the next workgroup.
    Workgroup,
}

impl Exercises {
    /// Shows the lanes of the open kernel exercise, at the file and shape for which its last check failed.
    pub(super) fn open_lanes(&mut self, context: &Context) -> FollowUps {
        let files = self.state_mut(context.exercise).checked_files();
        let fault = files
            .iter()
            .enumerate()
            .find_map(|(file, result)| Some((file, result.fault.as_ref()?)));
        let wanted = fault.map_or_else(LanesWanted::default, |(file, fault)| LanesWanted {
            file,
            shape: Some(fault.shape.clone()),
            group: None,
        });
        self.record_lanes(wanted)
    }

    fn record_lanes(&mut self, wanted: LanesWanted) -> FollowUps {
        self.lanes = LaneView {
            wanted: wanted.clone(),
            ..LaneView::default()
        };
        let record = Effect::RecordLanes { wanted };
        vec![
            FollowUp::Card(Some(Overlay::Lanes)),
            FollowUp::Effect(record),
        ]
    }

    /// Moves within the workgroup, or to another workgroup, shape or kernel of the exercise.
    pub(super) fn move_lanes(&mut self, to: LaneMove, context: &Context) -> FollowUps {
        let Some(Ok(found)) = &self.lanes.found else {
            return Vec::new();
        };
        let last = &self.lanes.wanted;
        let wanted = match to {
            LaneMove::Step(_) | LaneMove::Barrier | LaneMove::Fault => {
                self.lanes.at = self.lanes.after(to).unwrap_or(self.lanes.at);
                return vec![FollowUp::Card(Some(Overlay::Lanes))];
            }
            LaneMove::Shape => {
                let present = found.shapes.iter().position(|shape| *shape == found.shape);
                let next = present.map_or(0, |at| at + 1);
                let task = context.exercise.kernels();
                let files = task.map_or(1, |task| task.kernels.len().max(1));
                let file = last.file + usize::from(next >= found.shapes.len());
                LanesWanted {
                    file: file % files,
                    shape: found.shapes.get(next).or(found.shapes.first()).cloned(),
                    group: None,
                }
            }
            LaneMove::Workgroup => LanesWanted {
                shape: Some(found.shape.clone()),
                group: Some((found.run.group + 1) % found.run.groups.max(1)),
                ..last.clone()
            },
        };
        self.record_lanes(wanted)
    }
}
