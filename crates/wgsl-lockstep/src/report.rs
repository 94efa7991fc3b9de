//! The report of a run: its findings, the number of its accesses of shared memory, and the outcomes of its conditions.

use super::{Finding, Liberty, Location, Space};

/// The results of a run.
#[derive(Clone, Debug, Default)]
pub struct LaunchReport {
    /// The findings, in the order in which they were first seen.
    pub findings: Vec<Finding>,
    /// Loads and stores of shared memory, by place in the source and variable.
    pub accesses: Vec<AccessCount>,
    /// Buffers that were not `initialized` and of which some bytes were never written.
    pub unwritten: Vec<Unwritten>,
    /// The number of workgroups that ended.
    pub workgroups: u64,
    /// Steps of all workgroups together.
    pub steps: u64,
    /// Loop iterations of the workgroup with the most.
    pub iterations: u64,
    /// Conditions on values from buffers, in the order of the source.
    pub branches: Vec<Branch>,
    /// Liberties with which a device would compute other numbers, each with the first expression that it would change.
    pub liberties: Vec<(Liberty, Location)>,
    /// The first operation of a subgroup that ran; `None` if there was none.
    pub subgroups: Option<Location>,
    /// False if a limit ended the run. The limit on a workgroup's steps also adds a finding about an endless loop.
    pub complete: bool,
}

/// A condition that depends on the contents of a buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Branch {
    /// The condition in the source.
    pub location: Location,
    /// True if the condition was false for any invocation, and true if it was true for any.
    pub taken: [bool; 2],
}

/// Bytes of a buffer that were never written, padding between members and elements included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unwritten {
    /// The variable's name.
    pub variable: String,
    /// The first element that was never written, as WGSL writes it.
    pub element: String,
    /// The offset of that element in bytes.
    pub first: u32,
    /// The number of bytes that were never written.
    pub bytes: u64,
}

/// Accesses of a variable at one place in the source; each invocation counts once, whatever the size of its access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessCount {
    /// The place in the source.
    pub location: Location,
    /// The variable's name.
    pub variable: String,
    /// The memory that the variable is in.
    pub space: Space,
    /// The numbers of `@group` and `@binding`; `None` for workgroup memory.
    pub binding: Option<(u32, u32)>,
    /// Loads of single invocations that are not atomic.
    pub loads: u64,
    /// Stores of single invocations that are not atomic.
    pub stores: u64,
}

impl LaunchReport {
    /// Returns the findings that are faults on some device.
    pub fn faults(&self) -> impl Iterator<Item = &Finding> {
        let all = self.findings.iter();
        all.filter(|finding| finding.kind.is_fault(self.space(finding)))
    }

    /// Returns the memory that a finding is about; workgroup memory if it is about none.
    pub fn space(&self, finding: &Finding) -> Space {
        let mut accesses = self.accesses.iter();
        let access = accesses.find(|access| Some(&access.variable) == finding.variable.as_ref());
        access.map_or(Space::Workgroup, |access| access.space)
    }
}
