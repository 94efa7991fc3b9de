//! The recording of a kernel exercise: the run of one workgroup of a learner's kernel at one shape.

use wgsl_lockstep::lanes::WorkgroupRun;

/// The choice of the workgroup to record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LanesWanted {
    /// The number of the kernel's file in the exercise, from 0.
    pub file: usize,
    /// The label of the shape. `None` means the first small shape with a fault, otherwise the smallest with several workgroups.
    pub shape: Option<String>,
    /// The number of the workgroup. `None` means the first with a fault, otherwise the first.
    pub group: Option<u32>,
}

/// The recorded run of a workgroup, with the learner's file and the shape that it ran at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelLanes {
    /// The name of the learner's file.
    pub file: String,
    pub shape: String,
    /// The sizes in words, such as `M = 17, N = 33`.
    pub sizes: String,
    /// The labels of the shapes that can be recorded.
    pub shapes: Vec<String>,
    pub run: WorkgroupRun,
}

impl KernelLanes {
    /// Returns a title such as ``kernel.wgsl at `odd` (M = 17, N = 33)``.
    pub fn title(&self) -> String {
        format!("{} at `{}` ({})", self.file, self.shape, self.sizes)
    }
}
