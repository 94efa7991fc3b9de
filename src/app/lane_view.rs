//! What the card about the lanes of a workgroup shows, and where keys lead in it.

use std::sync::Arc;

use crate::lanes::{KernelLanes, LanesWanted};
use wgsl_lockstep::lanes::WorkgroupRun;

/// What the card shows.
#[derive(Clone, Debug, Default)]
pub struct LaneView {
    /// What was asked for last.
    pub wanted: LanesWanted,
    /// None while the kernel runs on the host; or why it cannot.
    pub found: Option<Result<Arc<KernelLanes>, String>>,
    /// The step that is looked at, from 0.
    pub at: usize,
}

impl LaneView {
    /// What the workgroup does, once it is known.
    pub fn run(&self) -> Option<&WorkgroupRun> {
        Some(&self.found.as_ref()?.as_ref().ok()?.run)
    }

    /// The step to which this leads within the workgroup.
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

/// Where to look next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaneMove {
    /// So many steps on.
    Step(i32),
    /// To the next barrier.
    Barrier,
    /// To the first fault; there, to the other access of a race, and then to the next fault.
    Fault,
    /// To the next shape; after the last one, to the next file.
    Shape,
    /// To the next workgroup.
    Workgroup,
}
