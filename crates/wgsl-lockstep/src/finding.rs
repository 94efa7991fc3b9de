//! Faults of a run and their list: each kind once for each pair of lines and variable.

use std::collections::HashMap;
use std::fmt;

use super::open::OpenResult;
use super::{AccessKind, Location, Space};

/// What was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FindingKind {
    /// Two invocations access the same memory, at least one writes, and no barrier orders them.
    Race,
    /// In one statement, two invocations of a workgroup write the same value to the same memory, for example with an index that is
    /// clamped to the last element. With other buffer contents this may be a race.
    SameValue,
    /// Two invocations write different components of one vector; a device may write the whole vector each time.
    VectorComponent,
    /// Memory is read that was never written.
    UnwrittenRead,
    /// An index is past the end of its array, or below 0.
    OutOfBounds,
    /// Not all invocations of the workgroup reach a barrier together.
    DivergentBarrier,
    /// Not all invocations of a subgroup reach an operation on cooperative matrices together.
    DivergentSubgroup,
    /// A value that must be the same for all invocations is not.
    NonUniformValue,
    /// A loop exceeds the limit.
    Endless,
    /// WGSL leaves the result of an operation open.
    Open(OpenResult),
}

/// An invocation of the launch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Invocation {
    /// The index in the workgroup.
    pub lane: u32,
    /// The value of `local_invocation_id`.
    pub local: [u32; 3],
    /// The value of `global_invocation_id`.
    pub global: [u32; 3],
    /// The value of `workgroup_id`.
    pub workgroup: [u32; 3],
    /// The number of the subgroup, if a whole subgroup acts as one; the invocation is then its first.
    pub subgroup: Option<u32>,
}

impl fmt::Display for Invocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.subgroup {
            Some(subgroup) => write!(f, "subgroup {subgroup}"),
            None => write!(f, "invocation {}", self.lane),
        }
    }
}

/// Something wrong, or something that may be wrong on some device. `Display` says it in a sentence with its line.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// What was found.
    pub kind: FindingKind,
    /// The place in the source.
    pub location: Location,
    /// The variable's name.
    pub variable: Option<String>,
    /// The element, as WGSL writes it: `tile[3].x`.
    pub element: Option<String>,
    /// What the access does.
    pub access: Option<AccessKind>,
    /// The first invocation at which it was found; for a barrier, the first that arrives.
    pub invocation: Invocation,
    /// The earlier of two accesses that race.
    pub other: Option<OtherAccess>,
    /// The invocations that do not reach a barrier, or those in a loop that does not end.
    pub invocations: Vec<Invocation>,
    /// The index of an access out of bounds, and the number of elements.
    pub index: Option<(i64, u32)>,
    /// How often it was found, counting invocations; for an endless loop, its iterations so far; for a result that differs between subgroups,
    /// the size of the other subgroups.
    pub count: u64,
}

/// The earlier of two accesses that race.
#[derive(Clone, Debug, PartialEq)]
pub struct OtherAccess {
    /// The place in the source.
    pub location: Location,
    /// The invocation that made it.
    pub invocation: Invocation,
    /// What the access does.
    pub access: AccessKind,
}

impl Finding {
    pub(crate) fn new(kind: FindingKind, location: Location, invocation: Invocation) -> Self {
        Self {
            kind,
            location,
            variable: None,
            element: None,
            access: None,
            invocation,
            other: None,
            invocations: Vec::new(),
            index: None,
            count: 1,
        }
    }
}

impl FindingKind {
    /// Returns true if a finding of this kind, about this memory, is a fault. Every device computes the same if one statement writes one
    /// value twice, or writes parts of a vector; workgroup memory starts as zeros, and most devices give an exponential that
    /// overflows its limit.
    pub fn is_fault(self, space: Space) -> bool {
        match self {
            Self::SameValue | Self::VectorComponent | Self::Open(OpenResult::Overflow) => false,
            Self::UnwrittenRead => space != Space::Workgroup,
            _ => true,
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.variable.as_deref().unwrap_or("memory");
        let what = self.element.as_deref().unwrap_or(name);
        let (who, missing) = (self.invocation, self.invocations.len());
        let verb = self.access.map_or("accesses", AccessKind::verb);
        write!(f, "line {}: ", self.location.line)?;
        match self.kind {
            FindingKind::Race | FindingKind::SameValue | FindingKind::VectorComponent => {
                write!(f, "{who} {verb} {what}")?;
                if let Some(other) = &self.other {
                    let (of, verb, line) =
                        (other.invocation, other.access.verb(), other.location.line);
                    let apart = if of.workgroup == self.invocation.workgroup {
                        ""
                    } else {
                        " of another workgroup"
                    };
                    write!(
                        f,
                        ", {of}{apart} {verb} it on line {line}, nothing orders them"
                    )?;
                }
                match self.kind {
                    FindingKind::SameValue => write!(f, " (both write the same value)"),
                    FindingKind::VectorComponent => {
                        write!(f, " (another component of the same vector)")
                    }
                    _ => Ok(()),
                }
            }
            FindingKind::UnwrittenRead => {
                write!(f, "{who} reads {what}, which was never written")
            }
            FindingKind::OutOfBounds => {
                write!(f, "{who} {verb} {what}")?;
                self.index
                    .map_or(Ok(()), |(_, count)| write!(f, ", of {count} elements"))
            }
            FindingKind::DivergentBarrier => {
                write!(
                    f,
                    "{missing} invocations of the workgroup do not reach the barrier"
                )
            }
            FindingKind::DivergentSubgroup => {
                write!(f, "{missing} invocations of the subgroup do not take part")
            }
            FindingKind::NonUniformValue => write!(f, "{what} is not the same for all invocations"),
            FindingKind::Endless => write!(f, "the loop does not end"),
            FindingKind::Open(open) => write!(f, "{}; write {}", open.says(), open.instead()),
        }
    }
}

/// The list of findings: one for each kind, variable and pair of lines.
#[derive(Default)]
pub(crate) struct Findings {
    pub(crate) list: Vec<Finding>,
    /// The largest number of findings.
    limit: usize,
    known: HashMap<(FindingKind, usize, u32, u32), usize>,
    /// The finding that was counted last, or is about to be added.
    last: usize,
}

impl Findings {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            ..Self::default()
        }
    }

    /// Counts a finding at these lines. Returns true for a new one, which the caller then adds.
    pub(crate) fn is_new(&mut self, kind: FindingKind, variable: usize, lines: (u32, u32)) -> bool {
        let key = (kind, variable, lines.0.min(lines.1), lines.0.max(lines.1));
        if let Some(at) = self.known.get(&key) {
            self.last = *at;
            self.again();
            return false;
        }
        self.last = self.list.len();
        let is_new = self.last < self.limit;
        if is_new {
            self.known.insert(key, self.last);
        }
        is_new
    }

    /// Counts the last finding again.
    pub(crate) fn again(&mut self) {
        if let Some(finding) = self.list.get_mut(self.last) {
            finding.count += 1;
        }
    }
}
