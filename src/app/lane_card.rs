//! The card that shows what the lanes of a workgroup do in the learner's kernel: which workgroup, and the step that is
//! looked at.

use std::sync::Arc;

use super::lane_view::{LaneMove, LaneView};
use super::{App, Effect, Overlay};
use crate::lanes::{KernelLanes, LanesWanted};

impl App {
    /// Shows the lanes of the open kernel exercise, where its last check failed.
    pub(super) fn open_lanes(&mut self) {
        let exercise = self.exercise().filter(|it| it.kernels().is_some());
        let Some(exercise) = exercise else {
            self.view.overlay = None;
            return self.tell("Threads belong to the exercises about kernels", false);
        };
        let mut faults = self.checked_files(exercise).iter().enumerate();
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
        let (found, at) = (Arc::clone(found), self.exercise.lanes.at);
        let run = &found.run;
        let last = run.steps.len().saturating_sub(1);
        let to = match to {
            LaneMove::Step(by) => Some((at as i64 + i64::from(by)).clamp(0, last as i64) as usize),
            LaneMove::Barrier => {
                let mut later = run.steps.iter().enumerate().skip(at + 1);
                later.find(|(_, it)| it.barrier.is_some()).map(|(at, _)| at)
            }
            LaneMove::Fault => {
                let places = run.faults.iter().flat_map(|it| {
                    let other = it.other.filter(|(step, _)| *step != it.step);
                    [Some(it.step), other.map(|(step, _)| step)]
                });
                let places: Vec<usize> = places.flatten().collect();
                let here = places.iter().position(|step| *step == at);
                let next = here.map_or(0, |it| (it + 1) % places.len());
                places.get(next).copied()
            }
            LaneMove::Shape => {
                let known = found.shapes.iter().position(|it| *it == found.shape);
                let next = known.map_or(0, |it| it + 1);
                let files = self
                    .exercise()
                    .and_then(|it| Some(it.kernels()?.kernels.len()));
                let file =
                    self.exercise.lanes.wanted.file + usize::from(next >= found.shapes.len());
                return self.record_lanes(LanesWanted {
                    file: file % files.unwrap_or(1).max(1),
                    shape: found.shapes.get(next).or(found.shapes.first()).cloned(),
                    group: None,
                });
            }
            LaneMove::Workgroup => {
                return self.record_lanes(LanesWanted {
                    shape: Some(found.shape.clone()),
                    group: Some((run.group + 1) % run.groups.max(1)),
                    ..self.exercise.lanes.wanted.clone()
                });
            }
        };
        match to {
            Some(to) => (self.exercise.lanes.at, self.view.overlay_scroll) = (to, 0),
            None => self.tell(
                "There is none in this workgroup, or none after this step",
                false,
            ),
        }
    }
}
