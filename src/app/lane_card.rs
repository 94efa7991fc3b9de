//! The card that shows what the lanes of a workgroup do in the learner's kernel: which workgroup, and the step that is
//! looked at.

use std::sync::Arc;

use super::lane_view::{LaneMove, LaneView};
use super::{App, Effect, Overlay};
use crate::lanes::{KernelLanes, LanesWanted};

impl App {
    /// Shows the lanes of the open kernel exercise, where its last check failed.
    pub(super) fn open_lanes(&mut self) {
        let files = self.exercise().map_or(&[][..], |it| self.checked_files(it));
        let mut faults = files.iter().enumerate();
        let fault = faults.find_map(|(file, it)| Some((file, it.fault.as_ref()?)));
        let wanted = fault.map_or_else(LanesWanted::default, |(file, fault)| LanesWanted {
            file,
            shape: Some(fault.shape.clone()),
            group: None,
        });
        self.view.overlay = Some(Overlay::Lanes);
        self.record_lanes(wanted);
    }

    fn record_lanes(&mut self, wanted: LanesWanted) {
        self.exercise.lanes = LaneView {
            wanted: wanted.clone(),
            ..LaneView::default()
        };
        self.view.overlay_scroll = 0;
        self.effects.push(Effect::RecordLanes { wanted });
    }

    /// Takes in what was recorded: the card begins at the first fault.
    pub(super) fn lanes_recorded(&mut self, found: Result<Arc<KernelLanes>, String>) {
        let fault = found
            .as_ref()
            .ok()
            .and_then(|found| found.run.faults.first());
        self.exercise.lanes.at = fault.map_or(0, |it| it.step);
        self.exercise.lanes.found = Some(found);
    }

    pub(super) fn move_lanes(&mut self, to: LaneMove) {
        let Some(Ok(found)) = &self.exercise.lanes.found else {
            return;
        };
        let found = Arc::clone(found);
        match to {
            LaneMove::Step(_) | LaneMove::Barrier | LaneMove::Fault => {
                if let Some(at) = self.exercise.lanes.after(to) {
                    (self.exercise.lanes.at, self.view.overlay_scroll) = (at, 0);
                }
            }
            LaneMove::Shape => {
                let known = found.shapes.iter().position(|it| *it == found.shape);
                let next = known.map_or(0, |it| it + 1);
                let files = self
                    .exercise()
                    .and_then(|it| Some(it.kernels()?.kernels.len()));
                let file =
                    self.exercise.lanes.wanted.file + usize::from(next >= found.shapes.len());
                self.record_lanes(LanesWanted {
                    file: file % files.unwrap_or(1).max(1),
                    shape: found.shapes.get(next).or(found.shapes.first()).cloned(),
                    group: None,
                });
            }
            LaneMove::Workgroup => self.record_lanes(LanesWanted {
                shape: Some(found.shape.clone()),
                group: Some((found.run.group + 1) % found.run.groups.max(1)),
                ..self.exercise.lanes.wanted.clone()
            }),
        }
    }
}
