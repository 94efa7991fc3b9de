//! A launch: which entry point runs, for how many workgroups, with which buffers, within which limits.

use std::fmt;

use super::{Liberty, Location};

/// Bytes of stack that a thread needs to read and run any shader that naga accepts: deep expressions are walked by recursion.
pub const STACK_BYTES: usize = 256 << 20;

/// The sizes that subgroups have on devices. A shader with operations of subgroups runs once more with each of them.
pub const SUBGROUP_SIZES: [u32; 4] = [8, 32, 64, 128];

/// One run of a shader. [`Launch::new`] fills in the usual values.
#[derive(Clone, Debug)]
pub struct Launch<'a> {
    /// The name of the entry point. If `None`, the first compute entry point runs.
    pub entry: Option<&'a str>,
    /// The number of workgroups along each axis.
    pub groups: [u32; 3],
    /// The ids of the workgroups that run; if empty, all run.
    pub only: &'a [[u32; 3]],
    /// Values of overrides, by name or by the number of `@id`.
    pub overrides: &'a [(&'a str, f64)],
    /// True for each liberty that the run takes with arithmetic; `Liberty as usize` is its index.
    pub liberties: [bool; Liberty::ALL.len()],
    /// True if `coopMultiplyAdd` adds nothing to its sums: outputs that differ from a normal run depend on its products.
    pub without_products: bool,
    /// The number of invocations in a subgroup.
    pub subgroup_size: u32,
    /// The limits at which the run ends early.
    pub limits: LaunchLimits,
}

/// Limits of a run. A step is a statement or an expression that one workgroup evaluates for up to 64 lanes.
#[derive(Clone, Copy, Debug)]
pub struct LaunchLimits {
    /// Steps of each workgroup. Past this limit, the loop with the most iterations is reported as endless and the run ends.
    pub steps_per_workgroup: u64,
    /// Steps of all workgroups together. Past this limit, no other workgroup starts.
    pub steps: u64,
    /// Bytes of buffers, shadow memory and values.
    pub memory: u64,
    /// The largest number of findings, each of a different place.
    pub findings: usize,
}

/// The bytes that are bound to a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// The number of `@group`.
    pub group: u32,
    /// The number of `@binding`.
    pub binding: u32,
    /// The contents. A launch replaces them with those that the shader left.
    pub bytes: Vec<u8>,
    /// True if the bytes are defined before the launch; if not, reading them before they are written is a finding.
    pub initialized: bool,
}

/// Why a shader did not run, or did not end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunError {
    /// The launch does not fit the shader: an entry point or a buffer is missing, or a buffer is too small. The sentence names it.
    Misfit(String),
    /// The shader uses a part of the language that is not supported.
    NotSupported {
        /// The name of the part.
        what: String,
        /// Where it is used.
        location: Location,
    },
    /// The launch needs more than `LaunchLimits::memory`.
    Memory {
        /// Bytes that the launch needs.
        needed: u64,
        /// Bytes that it may use.
        limit: u64,
    },
}

impl Launch<'_> {
    /// Returns a launch of the first compute entry point, with subgroups of 32 and the default limits.
    pub fn new(groups: [u32; 3]) -> Self {
        Self {
            entry: None,
            groups,
            only: &[],
            overrides: &[],
            liberties: [false; Liberty::ALL.len()],
            without_products: false,
            subgroup_size: 32,
            limits: LaunchLimits::default(),
        }
    }
}

impl Default for LaunchLimits {
    fn default() -> Self {
        Self {
            steps_per_workgroup: 4_000_000,
            steps: 100_000_000,
            memory: 1 << 30,
            findings: 100,
        }
    }
}

impl Buffer {
    /// Returns a buffer with these bytes.
    pub fn new(group: u32, binding: u32, bytes: Vec<u8>) -> Self {
        Self {
            group,
            binding,
            bytes,
            initialized: true,
        }
    }

    /// Returns a buffer of zeros.
    pub fn zeroed(group: u32, binding: u32, bytes: usize) -> Self {
        Self::new(group, binding, vec![0; bytes])
    }

    /// Returns a buffer that the shader has to write before it reads it.
    pub fn unwritten(group: u32, binding: u32, bytes: usize) -> Self {
        Self {
            initialized: false,
            ..Self::zeroed(group, binding, bytes)
        }
    }

    /// Returns a buffer with these numbers.
    pub fn from_f32(group: u32, binding: u32, values: &[f32]) -> Self {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes());
        Self::new(group, binding, bytes.collect())
    }

    /// Returns a buffer with these numbers.
    pub fn from_u32(group: u32, binding: u32, values: &[u32]) -> Self {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes());
        Self::new(group, binding, bytes.collect())
    }

    /// Returns the contents as numbers, without a rest of less than four bytes.
    pub fn to_u32(&self) -> Vec<u32> {
        let (words, _) = self.bytes.as_chunks();
        words.iter().map(|word| u32::from_le_bytes(*word)).collect()
    }

    /// Returns the contents as numbers, without a rest of less than four bytes.
    pub fn to_f32(&self) -> Vec<f32> {
        self.to_u32().into_iter().map(f32::from_bits).collect()
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Misfit(why) => f.write_str(why),
            Self::NotSupported { what, location } => match location.line {
                0 => write!(f, "not supported: {what}"),
                line => write!(f, "not supported: {what}, line {line}"),
            },
            Self::Memory { needed, limit } => {
                write!(f, "needs {needed} bytes of memory, the limit is {limit}")
            }
        }
    }
}

impl std::error::Error for RunError {}
