//! The state of the card about the lanes of a workgroup, and the steps that its keys lead to.

use std::sync::Arc;

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
    /// Returns the recorded workgroup. `None` while it is recorded, and if that failed.
    pub fn run(&self) -> Option<&WorkgroupRun> {
        Some(&self.found.as_ref()?.as_ref().ok()?.run)
    }

    /// Returns the step that a move leads to. `None` if there is no such step, or if the move leaves the workgroup.
    pub fn after(&self, to: LaneMove) -> Option<usize> {
        let (run, at) = (self.run()?, self.at);
        match to {
            LaneMove::Step(by) => {
                let last = run.steps.len().saturating_sub(1);
                Some(at.saturating_add_signed(by as isize).min(last))
            }
            LaneMove::Barrier => {
                let mut later = run.steps.iter().enumerate().skip(at + 1);
                let barrier = later.find(|(_, step)| step.barrier.is_some());
                barrier.map(|(at, _)| at)
            }
            LaneMove::Fault => {
                let places = run.faults.iter().flat_map(|fault| {
                    let other = fault.other.filter(|(step, _)| *step != fault.step);
                    [Some(fault.step), other.map(|(step, _)| step)]
                });
                let places: Vec<usize> = places.flatten().collect();
                let here = places.iter().position(|step| *step == at);
                let next = here.map_or(0, |here| (here + 1) % places.len());
                places.get(next).copied()
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
