//! The recording of a learner's kernel: what the lanes of one workgroup did, line by line, at one shape.

use wgsl_lockstep::lanes::WorkgroupRun;

/// The choice of the workgroup to record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LanesWanted {
    /// The index of the kernel's file in the exercise.
    pub file: usize,
    /// The label of the shape. `None` chooses the first small shape with a fault, or without a fault the smallest one that has several
    /// workgroups.
    pub shape: Option<String>,
    /// The number of the workgroup. `None` chooses the first one with a fault, or without a fault the first one.
    pub group: Option<u32>,
}

/// The recorded run of a workgroup.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelLanes {
    /// The name of the learner's file.
    pub file: String,
    pub shape: String,
    /// The sizes of the shape in words, such as `M = 17, N = 33`.
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
