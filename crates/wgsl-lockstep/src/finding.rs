//! Findings about a run. The list has one finding for each kind, variable and pair of lines, with the number of times that it was found.

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
    /// The number of the subgroup in its workgroup, if the whole subgroup acts together; `lane` is then its first lane.
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

/// Something wrong, or something that may be wrong on some device. `Display` prints a sentence with its line.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// What was found.
    pub kind: FindingKind,
    /// The place in the source.
    pub location: Location,
    /// The variable's name; `None` if the finding is not about a variable.
    pub variable: Option<String>,
    /// The element that is accessed, as WGSL writes it: `tile[3].x`.
    pub element: Option<String>,
    /// The kind of the access, if the finding is about one.
    pub access: Option<AccessKind>,
    /// The first invocation at which it was found; for a barrier, the first that arrives.
    pub invocation: Invocation,
    /// The earlier of two accesses that race.
    pub other: Option<OtherAccess>,
    /// The invocations that do not reach a barrier, or those in a loop that does not end.
    pub invocations: Vec<Invocation>,
    /// For an access out of bounds, the index and the number of elements.
    pub index: Option<(i64, u32)>,
    /// The number of invocations for which it was found. For an endless loop, its iterations so far; for a result that depends on the size of
    /// subgroups, the other size.
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
    /// Returns true if a finding of this kind, about this memory, is a fault. No fault: one statement writes one value twice or writes parts
    /// of a vector (every device computes the same), workgroup memory is read before it is written (it starts as zeros), and an
    /// exponential overflows (most devices give infinity).
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
        let element = self.element.as_deref().unwrap_or(name);
        let verb = self.access.map_or("accesses", AccessKind::verb);
        let access = format!("{} {verb} {element}", self.invocation);
        let missing = self.invocations.len();
        write!(f, "line {}: ", self.location.line)?;
        match self.kind {
            FindingKind::Race => write!(f, "{access}{}", self.other_access()),
            FindingKind::SameValue => {
                let other = self.other_access();
                write!(f, "{access}{other} (both write the same value)")
            }
            FindingKind::VectorComponent => {
                let other = self.other_access();
                write!(f, "{access}{other} (another component of the same vector)")
            }
            FindingKind::UnwrittenRead => write!(f, "{access}, which was never written"),
            FindingKind::OutOfBounds => match self.index {
                Some((_, count)) => write!(f, "{access}, of {count} elements"),
                None => write!(f, "{access}"),
            },
            FindingKind::DivergentBarrier => {
                write!(
                    f,
                    "{missing} invocations of the workgroup do not reach the barrier"
                )
            }
            FindingKind::DivergentSubgroup => {
                write!(f, "{missing} invocations of the subgroup do not take part")
            }
            FindingKind::NonUniformValue => {
                write!(f, "{element} is not the same for all invocations")
            }
            FindingKind::Endless => write!(f, "the loop does not end"),
            FindingKind::Open(open) => {
                write!(f, "{}; write {}", open.description(), open.alternative())
            }
        }
    }
}

impl Finding {
    /// Returns the end of a sentence about a race: `, invocation 3 writes it on line 7, nothing orders them`.
    fn other_access(&self) -> String {
        let Some(other) = &self.other else {
            return String::new();
        };
        let group = if other.invocation.workgroup == self.invocation.workgroup {
            ""
        } else {
            " of another workgroup"
        };
        format!(
            ", {}{group} {} it on line {}, nothing orders them",
            other.invocation,
            other.access.verb(),
            other.location.line
        )
    }
}

/// The number that findings about no variable have in place of a variable's number.
pub(crate) const NO_VARIABLE: usize = usize::MAX;

/// The list of findings: one for each kind, variable and pair of lines.
#[derive(Default)]
pub(crate) struct Findings {
    pub(crate) list: Vec<Finding>,
    /// The largest number of findings.
    limit: usize,
    /// The index in `list` of each finding, by its kind, its variable's number and its two lines, the lower line first.
    indices: HashMap<(FindingKind, usize, u32, u32), usize>,
    /// The index of the finding that was counted last, or is about to be added.
    last: usize,
}

impl Findings {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            ..Self::default()
        }
    }

    /// Counts a finding, which may be about one line or two. Returns true if it is new and within the limit; the caller then adds it to `list`.
    pub(crate) fn register(
        &mut self,
        kind: FindingKind,
        variable: usize,
        lines: (u32, u32),
    ) -> bool {
        let key = (kind, variable, lines.0.min(lines.1), lines.0.max(lines.1));
        if let Some(index) = self.indices.get(&key) {
            self.last = *index;
            self.count_again();
            return false;
        }
        self.last = self.list.len();
        let is_new = self.last < self.limit;
        if is_new {
            self.indices.insert(key, self.last);
        }
        is_new
    }

    /// Counts the last finding again.
    pub(crate) fn count_again(&mut self) {
        if let Some(finding) = self.list.get_mut(self.last) {
            finding.count += 1;
        }
    }
}
