//! Records the steps of one workgroup as plain data: the lanes that run each line, and their accesses of shared memory. Sentences
//! describe a step, and rows show the memory that it accesses.
//!
//! ```
//! use wgsl_lockstep::lanes::{listing, record};
//! use wgsl_lockstep::{Buffer, Launch, Shader};
//! let source = "@group(0) @binding(0) var<storage, read_write> all: array<f32>;
//! @compute @workgroup_size(32) fn main(@builtin(local_invocation_index) lane: u32) {
//!     all[2u * lane] = 1.0;
//! }";
//! let shader = Shader::parse(source)?;
//! let mut buffers = [Buffer::zeroed(0, 0, 256)];
//! let run = record(&shader, &Launch::new([1, 1, 1]), &mut buffers, source, &|at| at.line)?;
//! let run = run.expect("one workgroup runs");
//! assert_eq!(
//!     run.sentences(0)[1],
//!     "32 lanes write 32 elements of all, 2 apart, all[0] to all[62]: 2 lines of memory, 1 would suffice"
//! );
//! println!("{}", listing("all, at 64 elements", &run).join("\n"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod listing;
mod record;

pub use listing::listing;
pub use record::record;

use std::collections::{BTreeMap, BTreeSet};

use super::AccessKind;

/// The number of bytes that a device fetches at once from a buffer: a line of memory.
pub const LINE_BYTES: u32 = 128;

/// The recorded run of a workgroup.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkgroupRun {
    /// The source as a person wrote it. All line numbers count in this text.
    pub text: String,
    /// The number of the workgroup, from 0, counted along x, then y, then z.
    pub group: u32,
    /// The number of workgroups in the launch.
    pub groups: u32,
    /// The numbers of lanes along x, y and z.
    pub size: [u32; 3],
    /// The steps in the order in which they ran.
    pub steps: Vec<WorkgroupStep>,
    /// The faults in the order in which they were found.
    pub faults: Vec<WorkgroupFault>,
    /// True if more steps followed that are not recorded.
    pub cut: bool,
}

/// One execution of a source line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkgroupStep {
    /// The line, from 1.
    pub line: u32,
    /// The number of calls around the line; 0 in the entry point.
    pub depth: usize,
    /// The lanes that run the line, ascending.
    pub lanes: Vec<u16>,
    /// Loads and stores of shared memory, in the order in which they happened.
    pub accesses: Vec<WorkgroupAccess>,
    /// The lanes that never reach the barrier of this line; `None` if the line has no barrier.
    pub barrier: Option<Vec<u16>>,
}

/// One load or store of shared memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkgroupAccess {
    /// The kind of the access: a load, a store or an atomic operation.
    pub kind: AccessKind,
    /// The variable's name.
    pub variable: String,
    /// True if the variable is in workgroup memory; otherwise it is a buffer.
    pub in_workgroup: bool,
    /// The size of each lane's element in bytes.
    pub bytes: u32,
    /// Each lane with the first byte that it accesses. Lanes that are out of bounds are left out.
    pub touched: Vec<(u16, u32)>,
    /// The first and the last element, as WGSL writes them.
    pub ends: [String; 2],
}

/// A fault in a step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkgroupFault {
    /// The index of the step.
    pub step: usize,
    /// The lanes at fault; for a barrier, the lanes that never reach it.
    pub lanes: Vec<u16>,
    /// The variable and the offset in bytes of the element, if known.
    pub place: Option<(String, u32)>,
    /// The step and the lane of the earlier access, if the fault is a race in the workgroup.
    pub other: Option<(usize, u16)>,
    /// A sentence about the fault; for a race, two lines with its accesses follow.
    pub text: Vec<String>,
}

/// The state of a lane during a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaneState {
    /// The lane runs this line.
    Runs,
    /// The lane waits at a barrier, or reaches one with its next step.
    Waits,
    /// The lane does not run this line.
    Idle,
    /// The lane has returned.
    Ended,
    /// A fault names the lane.
    Faulty,
}

/// A line of memory, or a piece of workgroup memory of the same length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryRow {
    /// The name of the row's first element.
    pub label: String,
    /// The number of lanes that access each cell.
    pub lanes: [u16; CELLS],
    /// The index of the cell that a fault is about.
    pub faulty_cell: Option<usize>,
}

/// The number of cells of four bytes in a row.
pub const CELLS: usize = LINE_BYTES as usize / 4;

impl WorkgroupRun {
    /// Returns the number of lanes in the workgroup.
    pub fn lanes(&self) -> usize {
        self.size.iter().product::<u32>() as usize
    }

    /// Returns a source line without trailing white space.
    pub fn source(&self, line: u32) -> &str {
        let index = line.saturating_sub(1) as usize;
        self.text.lines().nth(index).unwrap_or_default().trim_end()
    }

    /// Returns the faults of a step, with the races whose earlier access belongs to it.
    pub fn faults_at(&self, index: usize) -> impl Iterator<Item = &WorkgroupFault> {
        self.faults.iter().filter(move |fault| {
            fault.step == index || fault.other.is_some_and(|(step, _)| step == index)
        })
    }

    /// Returns the state of each lane during a step, and the line of the barrier at which lanes wait; `None` if no lane waits.
    pub fn states(&self, index: usize) -> (Vec<LaneState>, Option<u32>) {
        let mut known_states = vec![None; self.lanes()];
        let mut unknown = known_states.len();
        let mut barrier = None;
        // The next step of a lane decides what it does now.
        for (step, number) in self.steps.iter().skip(index).zip(index..) {
            let state = match step.barrier {
                Some(_) => LaneState::Waits,
                None if number == index => LaneState::Runs,
                None => LaneState::Idle,
            };
            for lane in &step.lanes {
                if let Some(lane_state @ None) = known_states.get_mut(usize::from(*lane)) {
                    *lane_state = Some(state);
                    unknown -= 1;
                    if state == LaneState::Waits {
                        barrier = barrier.or(Some(step.line));
                    }
                }
            }
            if unknown == 0 {
                break;
            }
        }
        let without_step = if self.cut {
            LaneState::Idle
        } else {
            LaneState::Ended
        };
        let mut states: Vec<LaneState> = known_states
            .into_iter()
            .map(|state| state.unwrap_or(without_step))
            .collect();
        for fault in self.faults_at(index) {
            let later = fault.lanes.iter().filter(|_| fault.step == index);
            let earlier = fault.other.iter().filter(|(step, _)| *step == index);
            for lane in later.chain(earlier.map(|(_, lane)| lane)) {
                if let Some(state) = states.get_mut(usize::from(*lane)) {
                    *state = LaneState::Faulty;
                }
            }
        }
        (states, barrier)
    }

    /// Returns each state that lanes are in during a step, with a phrase about these lanes: `32 run this line`.
    pub fn counts(&self, index: usize) -> Vec<(LaneState, String)> {
        let (states, barrier) = self.states(index);
        let step = self.steps.get(index);
        let has_barrier = step.is_some_and(|step| step.barrier.is_some());
        let line = barrier.unwrap_or(0);
        let mut counts = Vec::new();
        for state in [
            LaneState::Runs,
            LaneState::Waits,
            LaneState::Idle,
            LaneState::Ended,
            LaneState::Faulty,
        ] {
            let count = states.iter().filter(|other| **other == state).count();
            if count == 0 {
                continue;
            }
            let phrase = match state {
                LaneState::Runs => format!("{} this line", counted(count, "run")),
                LaneState::Waits if has_barrier => {
                    format!("{} to the barrier", counted(count, "come"))
                }
                LaneState::Waits => {
                    format!("{} at the barrier of line {line}", counted(count, "wait"))
                }
                LaneState::Idle => format!("{} it", counted(count, "skip")),
                LaneState::Ended if count == 1 => "1 has ended".to_owned(),
                LaneState::Ended => format!("{count} have ended"),
                LaneState::Faulty if has_barrier => format!("{count} never arrive"),
                LaneState::Faulty => format!("{count} at fault"),
            };
            counts.push((state, phrase));
        }
        counts
    }

    /// Describes a step: the lanes that run it, each access, and the faults.
    pub fn sentences(&self, index: usize) -> Vec<String> {
        let counts = self.counts(index).into_iter().map(|(_, phrase)| phrase);
        let mut all = vec![format!("lanes: {}", counts.collect::<Vec<_>>().join(", "))];
        if let Some(step) = self.steps.get(index) {
            all.extend(step.accesses.iter().map(WorkgroupAccess::sentence));
        }
        all.extend(self.faults_at(index).flat_map(|fault| fault.text.clone()));
        all
    }

    /// Returns the rows of memory that an access of this step touches.
    pub fn rows(&self, index: usize, access: &WorkgroupAccess) -> Vec<MemoryRow> {
        let faulty_byte = self
            .faults_at(index)
            .filter_map(|fault| fault.place.as_ref())
            .find(|(variable, _)| *variable == access.variable)
            .map(|(_, byte)| *byte);
        access.rows(faulty_byte)
    }
}

impl WorkgroupAccess {
    /// Returns the offsets of the accessed elements, ascending and each once.
    fn offsets(&self) -> Vec<u32> {
        let offsets: BTreeSet<u32> = self.touched.iter().map(|(_, byte)| *byte).collect();
        offsets.into_iter().collect()
    }

    /// Returns the number of lines of memory that are accessed.
    pub fn lines(&self) -> usize {
        let lines = self.touched.iter().flat_map(|(_, byte)| {
            byte / LINE_BYTES..=(byte + self.bytes.saturating_sub(1)) / LINE_BYTES
        });
        lines.collect::<BTreeSet<u32>>().len()
    }

    /// Describes the access: `32 lanes read 32 elements of x, 64 apart, x[0] to x[1984]: 32 lines of memory, 1 would suffice`.
    pub fn sentence(&self) -> String {
        let offsets = self.offsets();
        let lanes = self.touched.len();
        let count = offsets.len();
        let name = &self.variable;
        let [first, last] = &self.ends;
        let verb = match self.kind {
            AccessKind::Load | AccessKind::AtomicLoad => "read",
            AccessKind::Store | AccessKind::AtomicStore => "write",
            AccessKind::Atomic => "update",
        };
        let mut sentence = match lanes {
            0 => return format!("every lane is out of bounds of {name}"),
            1 => format!("lane {} {verb}s ", self.touched[0].0),
            _ => format!("{lanes} lanes {verb} "),
        };
        sentence += &match count {
            1 if lanes > 1 => format!("the same element, {first}"),
            1 => first.clone(),
            _ => format!(
                "{count} {}, {first} to {last}",
                arrangement(&offsets, self.bytes, name)
            ),
        };
        if count > 1 && lanes > count {
            sentence += &match lanes % count {
                0 => format!(", {} lanes each", lanes / count),
                _ => ", some together".to_owned(),
            };
        }
        if self.in_workgroup {
            return sentence + ", in workgroup memory";
        }
        let lines = self.lines();
        let fewest = (count as u64 * u64::from(self.bytes)).div_ceil(LINE_BYTES.into());
        sentence += &match lines {
            1 => ": 1 line of memory".to_owned(),
            _ => format!(": {lines} lines of memory"),
        };
        if lines as u64 > fewest {
            sentence += &format!(", {fewest} would suffice");
        }
        sentence
    }

    /// Returns the accessed rows, ascending. `faulty_byte` is the offset that a fault is about.
    fn rows(&self, faulty_byte: Option<u32>) -> Vec<MemoryRow> {
        let mut rows: BTreeMap<u32, MemoryRow> = BTreeMap::new();
        let lowest = self.touched.iter().map(|(_, byte)| *byte).min();
        let first_element = format!("{}[{}]", self.variable, lowest.unwrap_or(0) / 4);
        let is_array = self.bytes == 4 && self.ends[0] == first_element;
        let label = |row: u32| {
            if is_array {
                format!("{}[{}]", self.variable, row * CELLS as u32)
            } else {
                format!("{} + {}", self.variable, row * LINE_BYTES)
            }
        };
        for (_, byte) in &self.touched {
            for cell in byte / 4..=(byte + self.bytes.saturating_sub(1)) / 4 {
                let number = cell / CELLS as u32;
                let row = rows.entry(number).or_insert_with(|| MemoryRow {
                    label: label(number),
                    lanes: [0; CELLS],
                    faulty_cell: faulty_byte
                        .filter(|byte| byte / LINE_BYTES == number)
                        .map(|byte| (byte % LINE_BYTES / 4) as usize),
                });
                row.lanes[cell as usize % CELLS] += 1;
            }
        }
        rows.into_values().collect()
    }
}

/// Describes the positions of several elements: `neighbours of x`, `elements of x, 64 apart`, `elements of x in 16 pieces`.
fn arrangement(offsets: &[u32], bytes: u32, name: &str) -> String {
    let gaps: Vec<u32> = offsets.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let smallest = gaps.iter().min().copied().unwrap_or(0);
    let largest = gaps.iter().max().copied().unwrap_or(0);
    let element = bytes.max(1);
    if largest <= element {
        return format!("neighbours of {name}");
    }
    if smallest == largest {
        return match smallest % element {
            0 => format!("elements of {name}, {} apart", smallest / element),
            _ => format!("elements of {name}, {smallest} bytes apart"),
        };
    }
    match 1 + gaps.iter().filter(|gap| **gap > element).count() {
        pieces if pieces == offsets.len() => format!("scattered elements of {name}"),
        pieces => format!("elements of {name} in {pieces} pieces"),
    }
}

/// Returns a number with a verb that fits it: `1 runs`, `2 run`.
fn counted(count: usize, verb: &str) -> String {
    match count {
        1 => format!("1 {verb}s"),
        _ => format!("{count} {verb}"),
    }
}

/// Returns the names of some lanes: `lane 3`, `lanes 3 to 9`, `lanes 3, 5, 7, 9 and 12 more`.
fn lanes_in_words(lanes: &[u16]) -> String {
    const NAMED: usize = 4;
    match lanes {
        [] => "no lane".to_owned(),
        [lane] => format!("lane {lane}"),
        [first, .., last] if usize::from(last - first) + 1 == lanes.len() => {
            format!("lanes {first} to {last}")
        }
        _ => {
            let named: Vec<String> = lanes.iter().take(NAMED).map(u16::to_string).collect();
            let more = match lanes.len().saturating_sub(NAMED) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            format!("lanes {}{more}", named.join(", "))
        }
    }
}
