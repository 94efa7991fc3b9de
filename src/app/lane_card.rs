//! The card that shows what the lanes of a workgroup do in the learner's kernel: which workgroup, and the step that is
//! looked at.

use std::sync::Arc;

use super::exercise::{Context, Exercises};
use super::lane_view::{LaneMove, LaneView};
use super::part::{Follow, Follows};
use super::{Effect, Overlay};
use crate::lanes::{KernelLanes, LanesWanted};

impl LaneView {
    /// Takes in what was recorded: the card begins at the first fault.
    pub(super) fn show(&mut self, found: Result<Arc<KernelLanes>, String>) {
        let run = found.as_ref().map(|found| &found.run);
        let fault = run.ok().and_then(|run| run.faults.first());
        self.at = fault.map_or(0, |fault| fault.step);
        self.found = Some(found);
    }
}

impl Exercises {
    /// Shows the lanes of the open kernel exercise, where its last check failed.
    pub(super) fn open_lanes(&mut self, context: &Context) -> Follows {
        let files = self.of_mut(context.exercise).checked_files();
        let mut faults = files.iter().enumerate();
        let fault = faults.find_map(|(file, it)| Some((file, it.fault.as_ref()?)));
        let wanted = fault.map_or_else(LanesWanted::default, |(file, fault)| LanesWanted {
            file,
            shape: Some(fault.shape.clone()),
            group: None,
        });
        self.record_lanes(wanted)
    }

    fn record_lanes(&mut self, wanted: LanesWanted) -> Follows {
        self.lanes = LaneView {
            wanted: wanted.clone(),
            ..LaneView::default()
        };
        let record = Effect::RecordLanes { wanted };
        vec![Follow::Card(Some(Overlay::Lanes)), Follow::Effect(record)]
    }

    /// Looks elsewhere in the workgroup, or at another one of the exercise's kernels.
    pub(super) fn move_lanes(&mut self, to: LaneMove, context: &Context) -> Follows {
        let Some(Ok(found)) = &self.lanes.found else {
            return Vec::new();
        };
        let wanted = &self.lanes.wanted;
        let wanted = match to {
            LaneMove::Step(_) | LaneMove::Barrier | LaneMove::Fault => {
                self.lanes.at = self.lanes.after(to).unwrap_or(self.lanes.at);
                return vec![Follow::Card(Some(Overlay::Lanes))];
            }
            LaneMove::Shape => {
                let known = found.shapes.iter().position(|it| *it == found.shape);
                let next = known.map_or(0, |it| it + 1);
                let kernels = context.exercise.kernels();
                let files = kernels.map_or(1, |it| it.kernels.len().max(1));
                let file = wanted.file + usize::from(next >= found.shapes.len());
                LanesWanted {
                    file: file % files,
                    shape: found.shapes.get(next).or(found.shapes.first()).cloned(),
                    group: None,
                }
            }
            LaneMove::Workgroup => LanesWanted {
                shape: Some(found.shape.clone()),
                group: Some((found.run.group + 1) % found.run.groups.max(1)),
                ..wanted.clone()
            },
        };
        self.record_lanes(wanted)
    }
}
