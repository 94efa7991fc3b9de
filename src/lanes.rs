//! What was recorded of a kernel exercise: the run of one workgroup of a learner's kernel at one shape.

use wgsl_lockstep::lanes::WorkgroupRun;

/// Which workgroup to record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LanesWanted {
    /// Number of the kernel's file in the exercise.
    pub file: usize,
    /// Label of the shape; `None` means the first small shape with a fault, otherwise the smallest with several workgroups.
    pub shape: Option<String>,
    /// Number of the workgroup; `None` means the first with a fault, otherwise the first.
    pub group: Option<u32>,
}

/// The recorded run of a workgroup, with the learner's file and the shape that it ran at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelLanes {
    /// Name of the learner's file.
    pub file: String,
    pub shape: String,
    /// `M = 17, N = 33`
    pub sizes: String,
    /// Labels of the shapes that can be recorded.
    pub shapes: Vec<String>,
    pub run: WorkgroupRun,
}

impl KernelLanes {
    /// ``kernel.wgsl at `odd` (M = 17, N = 33)``
    pub fn title(&self) -> String {
        format!("{} at `{}` ({})", self.file, self.shape, self.sizes)
    }
}
