//! Observers follow a run while it proceeds: its statements, its accesses of shared memory with their addresses, its barriers and its
//! findings.

use super::{Finding, Location};

/// The offset of an access that is out of bounds.
pub const OUTSIDE: u32 = u32::MAX;

/// Memory that invocations share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Space {
    /// `var<workgroup>`: shared by the invocations of a workgroup.
    Workgroup,
    /// `var<storage>`: shared by all invocations.
    Storage,
    /// `var<uniform>`: read by all invocations.
    Uniform,
}

/// The kind of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AccessKind {
    /// Reads a variable.
    Load,
    /// Writes a variable.
    Store,
    /// Reads an atomic variable.
    AtomicLoad,
    /// Writes an atomic variable.
    AtomicStore,
    /// Reads and writes an atomic variable at once.
    Atomic,
}

/// One load or store of shared memory by all active lanes.
pub struct Access<'a> {
    /// What the access does.
    pub kind: AccessKind,
    /// The place in the source.
    pub location: Location,
    /// The memory that the variable is in.
    pub space: Space,
    /// The variable's name.
    pub variable: &'a str,
    /// The numbers of `@group` and `@binding`.
    pub binding: Option<(u32, u32)>,
    /// The active lanes. An operation of a whole subgroup names the subgroup's first lane only.
    pub lanes: &'a [u32],
    /// For each lane of the workgroup, active or not: the first byte that it accesses, or `OUTSIDE`.
    pub offsets: &'a [u32],
    /// The number of bytes that each lane accesses.
    pub bytes: u32,
    /// The number of elements that each lane accesses: 1, or those of a cooperative matrix.
    pub elements: u64,
    /// Loaded or stored values: the first scalar of every lane of the workgroup, then the second. Floats are bits of an f32.
    pub values: &'a [u32],
    /// Returns the element that a lane accesses.
    pub(crate) path: &'a dyn Fn(u32) -> String,
}

/// A statement that is about to run.
pub struct StatementStart<'a> {
    /// The place in the source.
    pub location: Location,
    /// The number of calls around the statement; 0 in the entry point.
    pub depth: usize,
    /// The active lanes.
    pub lanes: &'a [u32],
}

/// A barrier that lanes have reached.
pub struct Arrival<'a> {
    /// The place in the source.
    pub location: Location,
    /// Lanes that have reached the barrier.
    pub lanes: &'a [u32],
    /// Lanes that do not reach the barrier with them; empty if all do.
    pub missing: &'a [u32],
    /// True if the barrier orders accesses of workgroup memory.
    pub workgroup_memory: bool,
    /// True if the barrier orders accesses of storage.
    pub storage: bool,
}

/// Receives the events of a run. Every method has a default that does nothing.
pub trait Observer {
    /// Called when a workgroup with this number of lanes begins.
    fn workgroup_start(&mut self, _id: [u32; 3], _lanes: u32) {}
    /// Called when the workgroup has ended.
    fn workgroup_end(&mut self, _id: [u32; 3]) {}
    /// Called before a statement runs.
    fn statement(&mut self, _step: &StatementStart<'_>) {}
    /// Called after the active lanes have loaded or stored.
    fn access(&mut self, _access: &Access<'_>) {}
    /// Called when lanes have reached a barrier.
    fn barrier(&mut self, _arrival: &Arrival<'_>) {}
    /// Called the first time that something is found.
    fn finding(&mut self, _finding: &Finding) {}
    /// Returns true if statements, accesses and barriers are observed; a run without them is faster.
    fn watches(&self) -> bool {
        true
    }
}

impl Observer for () {
    fn watches(&self) -> bool {
        false
    }
}

impl Access<'_> {
    /// Returns the element that a lane accesses, as WGSL writes it: `tile[3].x`.
    pub fn path(&self, lane: u32) -> String {
        (self.path)(lane)
    }
}

impl AccessKind {
    /// Returns true if the access changes memory.
    pub fn is_write(self) -> bool {
        !matches!(self, Self::Load | Self::AtomicLoad)
    }

    /// Returns `reads` or `writes`.
    pub(crate) fn verb(self) -> &'static str {
        if self.is_write() { "writes" } else { "reads" }
    }
}
