//! The keys of the card that shows what the lanes of a workgroup do in the learner's kernel. They choose the workgroup and the step.

use std::sync::Arc;

use super::exercise::{Context, Exercises};
use super::lane_view::{LaneMove, LaneView};
use super::part::{FollowUp, FollowUps};
use super::{Effect, Overlay};
use crate::lanes::{KernelLanes, LanesWanted};

impl LaneView {
    /// Shows the recorded lanes, beginning at the first fault.
    pub(super) fn show(&mut self, found: Result<Arc<KernelLanes>, String>) {
        let run = found.as_ref().map(|found| &found.run);
        let fault = run.ok().and_then(|run| run.faults.first());
        self.at = fault.map_or(0, |fault| fault.step);
        self.found = Some(found);
    }
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
