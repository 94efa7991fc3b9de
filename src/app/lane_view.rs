//! What the card about the lanes of a workgroup shows, and where keys lead in it.

use std::sync::Arc;

use crate::lanes::{KernelLanes, LanesWanted};

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
