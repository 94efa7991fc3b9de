//! Runs a WGSL compute shader on the host and examines its memory accesses. The invocations of a workgroup execute naga's validated
//! module together, in lockstep under masks: each expression is evaluated for all active lanes at once. Shadow memory beside the
//! buffers and the workgroup variables detects races and reads of memory that was never written. A barrier under a partial mask is a
//! barrier that some invocations do not reach. Findings do not depend on a driver's schedule: two accesses race if no barrier orders
//! them, whichever came first here.
//!
//! As in WGSL, `workgroupBarrier` orders workgroup memory only and `storageBarrier` orders storage only. No barrier orders the storage
//! accesses of two workgroups, so they race unless they are atomic, even in a kernel that counts its finished workgroups. An
//! invocation that waits for another in a loop waits forever, as on many devices. Workgroup memory starts as zeros, and reading it
//! before writing it is still reported.
//!
//! The subset of WGSL that runs has f32, f16, u32, i32 and bool with their vectors and matrices, structs, arrays, atomics, functions,
//! loops and barriers, overrides, operations of subgroups, and cooperative matrices as naga writes them. Not supported, and refused or
//! reported with the line: textures, samplers and binding arrays, 64-bit numbers and 16-bit integers, cooperative matrices in private
//! memory, ray tracing.
//!
//! An operation whose result WGSL leaves open is a finding ([`OpenResult`]). What a device may do with arithmetic beyond that is a
//! [`Liberty`]: the report says where one would change a number, and a launch can take it.
//!
//! A sum of 64 numbers in workgroup memory that lacks the barrier between two rounds:
//!
//! ```
//! use wgsl_lockstep::{Buffer, FindingKind, Launch, Shader};
//! let shader = Shader::parse(
//!     "@group(0) @binding(0) var<storage, read_write> x: array<f32>;
//!      var<workgroup> sums: array<f32, 64>;
//!      @compute @workgroup_size(64)
//!      fn main(@builtin(local_invocation_index) lane: u32) {
//!          sums[lane] = x[lane];
//!          workgroupBarrier();
//!          for (var half = 32u; half > 0u; half /= 2u) {
//!              if (lane < half) { sums[lane] += sums[lane + half]; }
//!          }
//!          if (lane == 0u) { x[0] = sums[0]; }
//!      }",
//! )?;
//! let mut buffers = [Buffer::from_f32(0, 0, &[1.0; 64])];
//! let report = shader.run(&Launch::new([1, 1, 1]), &mut buffers, &mut ())?;
//! let race = &report.findings[0];
//! assert_eq!((race.kind, race.location.line), (FindingKind::Race, 8));
//! println!("{race}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`lanes`] records what each lane of a workgroup does, step by step. [`mutants`] makes wrong kernels from a right one, to measure how
//! good a check is.
//!
//! [`exact`] runs a plain loop with numbers that carry their error, and so says how far the results of another kernel may be off.
//!
//! The interpreter is one type whose methods are in files that use each other: `prepare` starts it, `execute` runs statements,
//! `evaluate` expressions, `access` loads and stores, `collective` and `subgroup` operations of several lanes, and `open` looks at what
//! WGSL leaves open. `flow` knows before a run what depends on memory.

mod access;
mod arithmetic;
mod collective;
mod evaluate;
pub mod exact;
mod execute;
mod finding;
mod flow;
pub mod lanes;
mod layout;
mod math;
mod memory;
pub mod mutants;
mod open;
mod prepare;
mod subgroup;
mod value;

use std::fmt;
use std::ops::Range;
use std::sync::OnceLock;

use flow::Flow;
use naga::back::PipelineConstants;
use naga::back::pipeline_constants::process_overrides;
use naga::valid::{Capabilities, ModuleInfo, ShaderStages, SubgroupOperationSet, ValidationFlags};
use naga::{Handle, Module, ShaderStage, Span};

pub use finding::{Finding, FindingKind, Invocation, OtherAccess};
pub use open::{Liberty, OpenResult};

/// A parsed and validated shader.
#[derive(Debug)]
pub struct Shader {
    module: Module,
    info: ModuleInfo,
    flow: OnceLock<Flow>,
    /// Where each line begins, in bytes.
    lines: Vec<u32>,
}

/// A place in the source.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Location {
    /// From 1; 0 if the place is not known.
    pub line: u32,
    /// In bytes, from 1.
    pub column: u32,
    /// In bytes.
    pub span: Range<usize>,
}

/// Why a source is not a valid program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceError {
    /// The place that naga names.
    pub location: Location,
    /// What naga says about it, with the causes.
    pub message: String,
}

/// Why a program did not run, or did not end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunError {
    /// The launch does not fit the program, in words: an entry point or a buffer is missing, or a buffer is too small.
    Misfit(String),
    /// A part of the language that is not supported.
    NotSupported {
        /// The part, in words.
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

/// What to launch, with its limits.
#[derive(Clone, Debug)]
pub struct Launch<'a> {
    /// `None` is the first compute entry point.
    pub entry: Option<&'a str>,
    /// Workgroups along each axis.
    pub groups: [u32; 3],
    /// Runs only these workgroups; with none, runs all.
    pub only: &'a [[u32; 3]],
    /// Values of overrides, by name or by the number of `@id`.
    pub overrides: &'a [(&'a str, f64)],
    /// What the device does with arithmetic, beside what the host does: by number of the liberty.
    pub liberties: [bool; Liberty::ALL.len()],
    /// `coopMultiplyAdd` adds nothing to its sums: outputs that differ from a normal run depend on its products.
    pub without_products: bool,
    /// Invocations in a subgroup.
    pub subgroup_size: u32,
    /// The sizes with which a shader that has operations of subgroups runs once more.
    pub other_subgroups: &'a [u32],
    /// When the run is given up.
    pub limits: LaunchLimits,
}

/// Limits of a run. A step is a statement or an expression that one workgroup evaluates for up to 64 lanes.
#[derive(Clone, Copy, Debug)]
pub struct LaunchLimits {
    /// For each workgroup; past this limit, the loop with the most iterations is reported as endless and the run ends.
    pub steps_per_workgroup: u64,
    /// For all workgroups together; past this limit, no other workgroup starts.
    pub steps: u64,
    /// Bytes of buffers, shadow memory and values.
    pub memory: u64,
    /// Most findings of different places.
    pub findings: usize,
}

/// The contents of a binding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// The number of `@group`.
    pub group: u32,
    /// The number of `@binding`.
    pub binding: u32,
    /// The contents: before a launch those that the shader reads, afterwards those that it left.
    pub bytes: Vec<u8>,
    /// True if the bytes are defined before the launch; if not, reading them before they are written is a finding.
    pub initialized: bool,
}

/// The results of a run.
#[derive(Clone, Debug, Default)]
pub struct LaunchReport {
    /// In the order in which they were first seen.
    pub findings: Vec<Finding>,
    /// Loads and stores of shared memory, by place in the source and variable.
    pub accesses: Vec<AccessCount>,
    /// Buffers that were not `initialized` and of which some bytes were never written.
    pub unwritten: Vec<Unwritten>,
    /// Workgroups that ended.
    pub workgroups: u64,
    /// Steps of all workgroups together.
    pub steps: u64,
    /// Loop iterations of the workgroup with the most.
    pub rounds: u64,
    /// Conditions on values from buffers.
    pub branches: Vec<Branch>,
    /// Liberties with which a device would compute other numbers, each with the first place.
    pub liberties: Vec<(Liberty, Location)>,
    /// The first operation on a subgroup.
    pub subgroups: Option<Location>,
    /// False if a limit ended the run: the one on a workgroup's steps, which adds a finding about an endless loop, or the one on all steps.
    pub complete: bool,
}

/// A condition that depends on the contents of a buffer, and whether it was ever false and ever true.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Branch {
    /// The condition in the source.
    pub location: Location,
    /// Whether it was false for any invocation, and true for any.
    pub taken: [bool; 2],
}

/// Bytes of a buffer that were never written, padding between members and elements included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unwritten {
    /// The variable's name.
    pub variable: String,
    /// The first such element, as WGSL writes it.
    pub element: String,
    /// Its offset in bytes.
    pub first: u32,
    /// How many bytes there are in total.
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
    /// Group and binding.
    pub binding: Option<(u32, u32)>,
    /// Loads of single invocations that are not atomic.
    pub loads: u64,
    /// Stores of single invocations that are not atomic.
    pub stores: u64,
}

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

/// What an access does.
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
    /// Reads and writes at once.
    Atomic,
}

/// One load or store of shared memory by all active lanes.
pub struct Access<'a> {
    /// The access reads or writes.
    pub kind: AccessKind,
    /// The place in the source.
    pub location: Location,
    /// The memory that the variable is in.
    pub space: Space,
    /// The variable's name.
    pub variable: &'a str,
    /// Group and binding.
    pub binding: Option<(u32, u32)>,
    /// The active lanes; for an operation of a whole subgroup, its first.
    pub lanes: &'a [u32],
    /// For each lane of the workgroup, active or not: the first byte it accesses, or `OUTSIDE`.
    pub offsets: &'a [u32],
    /// How many bytes each lane accesses.
    pub bytes: u32,
    /// How many accesses of each lane this stands for: 1, or the elements of a matrix.
    pub elements: u64,
    /// Loaded or stored values: the first scalar of every lane of the workgroup, then the second. Floats are bits of an f32.
    pub values: &'a [u32],
    path: &'a dyn Fn(u32) -> String,
}

/// Bytes of stack that a thread needs to read and run any shader that naga accepts: deep expressions are walked by recursion.
pub const STACK_BYTES: usize = 256 << 20;

/// The sizes that subgroups have on devices.
pub const SUBGROUP_SIZES: [u32; 4] = [8, 32, 64, 128];

/// Offset of an access out of bounds.
pub const OUTSIDE: u32 = u32::MAX;

/// A statement that is about to run.
pub struct StatementStart<'a> {
    /// The place in the source.
    pub location: Location,
    /// Depth of calls; 0 in the entry point.
    pub depth: usize,
    /// The active lanes.
    pub lanes: &'a [u32],
}

/// A barrier, with the lanes that have reached it.
pub struct Arrival<'a> {
    /// The place in the source.
    pub location: Location,
    /// Lanes that have reached the barrier.
    pub lanes: &'a [u32],
    /// Lanes that never reach the barrier; empty if all do.
    pub missing: &'a [u32],
    /// True if it orders accesses of workgroup memory.
    pub workgroup_memory: bool,
    /// True if it orders accesses of storage.
    pub storage: bool,
}

/// Observes a run while it proceeds.
pub trait Observer {
    /// A workgroup with this number of lanes begins.
    fn workgroup_start(&mut self, _id: [u32; 3], _lanes: u32) {}
    /// The workgroup has ended, or was given up.
    fn workgroup_end(&mut self, _id: [u32; 3]) {}
    /// A statement is about to run.
    fn statement(&mut self, _step: &StatementStart<'_>) {}
    /// The active lanes have loaded or stored.
    fn access(&mut self, _access: &Access<'_>) {}
    /// Lanes have reached a barrier.
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

impl LaunchReport {
    /// The findings that are faults on some device.
    pub fn faults(&self) -> impl Iterator<Item = &Finding> {
        let all = self.findings.iter();
        all.filter(|finding| finding.kind.is_fault(self.space(finding)))
    }

    /// The memory that a finding is about; workgroup memory if it is about none.
    pub fn space(&self, finding: &Finding) -> Space {
        let mut accesses = self.accesses.iter();
        let access = accesses.find(|it| Some(&it.variable) == finding.variable.as_ref());
        access.map_or(Space::Workgroup, |it| it.space)
    }
}

impl Access<'_> {
    /// The element that a lane accesses, as WGSL writes it: `tile[3].x`.
    pub fn path(&self, lane: u32) -> String {
        (self.path)(lane)
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

impl Launch<'_> {
    /// The first compute entry point, with subgroups of 32 and the default limits.
    pub fn new(groups: [u32; 3]) -> Self {
        Self {
            entry: None,
            groups,
            only: &[],
            overrides: &[],
            liberties: [false; Liberty::ALL.len()],
            without_products: false,
            subgroup_size: 32,
            other_subgroups: &SUBGROUP_SIZES,
            limits: LaunchLimits::default(),
        }
    }
}

impl Buffer {
    /// A buffer with these bytes.
    pub fn new(group: u32, binding: u32, bytes: Vec<u8>) -> Self {
        Self {
            group,
            binding,
            bytes,
            initialized: true,
        }
    }

    /// A buffer of zeros.
    pub fn zeroed(group: u32, binding: u32, bytes: usize) -> Self {
        Self::new(group, binding, vec![0; bytes])
    }

    /// A buffer that the shader has to write before reading it.
    pub fn unwritten(group: u32, binding: u32, bytes: usize) -> Self {
        Self {
            initialized: false,
            ..Self::zeroed(group, binding, bytes)
        }
    }

    /// A buffer with these numbers.
    pub fn from_f32(group: u32, binding: u32, values: &[f32]) -> Self {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes());
        Self::new(group, binding, bytes.collect())
    }

    /// A buffer with these numbers.
    pub fn from_u32(group: u32, binding: u32, values: &[u32]) -> Self {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes());
        Self::new(group, binding, bytes.collect())
    }

    /// The bytes as numbers; a rest of less than four bytes is left out.
    pub fn to_u32(&self) -> Vec<u32> {
        let (words, _) = self.bytes.as_chunks();
        words.iter().map(|word| u32::from_le_bytes(*word)).collect()
    }

    /// The bytes as numbers; a rest of less than four bytes is left out.
    pub fn to_f32(&self) -> Vec<f32> {
        self.to_u32().into_iter().map(f32::from_bits).collect()
    }
}

impl Shader {
    /// Reads and validates a source. Deeply nested expressions need a stack of `STACK_BYTES`.
    ///
    /// # Errors
    /// When naga does not accept the source.
    pub fn parse(source: &str) -> Result<Self, SourceError> {
        let lines = line_starts(source);
        let known = without_subgroups(source);
        let module = naga::front::wgsl::parse_str(&known).map_err(|error| SourceError {
            location: locate(&lines, error.labels().next().map(|(span, _)| span)),
            message: error.message().to_owned(),
        })?;
        // Whether all invocations reach a barrier is checked during the run.
        let flags = ValidationFlags::all() - ValidationFlags::CONTROL_FLOW_UNIFORMITY;
        let supported = Capabilities::SHADER_FLOAT16
            | Capabilities::SHADER_FLOAT16_IN_FLOAT32
            | Capabilities::COOPERATIVE_MATRIX
            | Capabilities::SUBGROUP
            | Capabilities::SUBGROUP_BARRIER;
        let mut validator = naga::valid::Validator::new(flags, supported);
        validator
            .subgroup_stages(ShaderStages::COMPUTE)
            .subgroup_operations(SubgroupOperationSet::all());
        let info = validator.validate(&module).map_err(|error| SourceError {
            location: locate(&lines, error.spans().next().map(|(span, _)| *span)),
            message: chain(error.as_inner()),
        })?;
        Ok(Self::of(module, info, lines))
    }

    /// A shader that naga parsed from this source and validated.
    pub fn new(module: Module, info: ModuleInfo, source: &str) -> Self {
        Self::of(module, info, line_starts(source))
    }

    fn of(module: Module, info: ModuleInfo, lines: Vec<u32>) -> Self {
        Self {
            flow: OnceLock::new(),
            module,
            info,
            lines,
        }
    }

    /// What depends on memory, found when a run first asks.
    fn flow(&self) -> &Flow {
        self.flow.get_or_init(|| Flow::new(&self.module))
    }

    /// The shader with the values of its overrides. One with a default value needs none.
    fn with_overrides(&self, launch: &Launch<'_>) -> Result<Self, RunError> {
        let given = launch.overrides.iter();
        let values = given.map(|(name, value)| ((*name).to_owned(), *value));
        let values: PipelineConstants = values.collect();
        let entry = launch.entry.map(|name| (ShaderStage::Compute, name));
        let (module, info) = process_overrides(&self.module, &self.info, entry, &values)
            .map_err(|error| RunError::Misfit(chain(&error)))?;
        let (module, info) = (module.into_owned(), info.into_owned());
        Ok(Self::of(module, info, self.lines.clone()))
    }

    /// Names of the compute entry points, with their workgroup sizes.
    pub fn entry_points(&self) -> impl Iterator<Item = (&str, [u32; 3])> {
        let all = self.module.entry_points.iter();
        let compute = all.filter(|entry| entry.stage == ShaderStage::Compute);
        compute.map(|entry| (entry.name.as_str(), entry.workgroup_size))
    }

    /// Runs all workgroups, one after the other. Afterwards `buffers` hold the results. A shader with operations of subgroups runs once
    /// more with each of `Launch::other_subgroups`, and a result that differs is a finding; the report is that of its own size.
    ///
    /// # Errors
    /// When the launch does not fit the program, exceeds its limit of memory, or uses an unsupported part of the language.
    pub fn run(
        &self,
        launch: &Launch<'_>,
        buffers: &mut [Buffer],
        observer: &mut dyn Observer,
    ) -> Result<LaunchReport, RunError> {
        let mut functions = self.module.functions.iter().map(|(_, function)| function);
        let mut entries = self.module.entry_points.iter().map(|entry| &entry.function);
        if !functions.any(uses_subgroups) && !entries.any(uses_subgroups) {
            return self.run_once(launch, buffers, observer);
        }
        let before = buffers.to_vec();
        let mut report = self.run_once(launch, buffers, observer)?;
        for subgroup_size in launch.other_subgroups {
            let Some(location) = report.subgroups.clone() else {
                break;
            };
            let mut found = before.clone();
            let launch = Launch {
                subgroup_size: *subgroup_size,
                ..launch.clone()
            };
            let other = self.run_once(&launch, &mut found, &mut ())?;
            let mut pairs = buffers.iter().zip(&found);
            if let Some((buffer, _)) = pairs.find(|(own, other)| !self.agree(own, other)) {
                let kind = FindingKind::Open(OpenResult::SubgroupSize);
                let mut finding = Finding::new(kind, location, Invocation::default());
                finding.variable = self
                    .variable(buffer)
                    .and_then(|(_, variable)| variable.name.clone());
                finding.count = u64::from(*subgroup_size);
                report.findings.push(finding);
                break;
            }
            let is_known = |one: &Finding| {
                let mut known = report.findings.iter();
                known.any(|known| (known.kind, &known.location) == (one.kind, &one.location))
            };
            let new = other.findings.into_iter().filter(|one| !is_known(one));
            let new: Vec<Finding> = new.collect();
            report.findings.extend(new);
        }
        Ok(report)
    }

    fn run_once(
        &self,
        launch: &Launch<'_>,
        buffers: &mut [Buffer],
        observer: &mut dyn Observer,
    ) -> Result<LaunchReport, RunError> {
        if self.module.overrides.is_empty() {
            prepare::run(self, launch, buffers, observer, None).map(|(report, _)| report)
        } else {
            let given = self.with_overrides(launch)?;
            prepare::run(&given, launch, buffers, observer, None).map(|(report, _)| report)
        }
    }

    fn variable(
        &self,
        buffer: &Buffer,
    ) -> Option<(Handle<naga::GlobalVariable>, &naga::GlobalVariable)> {
        let mut all = self.module.global_variables.iter();
        let place = (buffer.group, buffer.binding);
        all.find(|(_, variable)| {
            let own = variable.binding.map(|own| (own.group, own.binding));
            own == Some(place)
        })
    }

    /// Returns true if two contents of a buffer are the same, or floats that differ by rounding.
    fn agree(&self, own: &Buffer, other: &Buffer) -> bool {
        let floats = self.variable(own).is_some_and(|(_, variable)| {
            let layout = layout::Layout::new(&self.module);
            let inner = &self.module.types[variable.ty].inner;
            let inner = match *inner {
                naga::TypeInner::Array { base, .. } => &self.module.types[base].inner,
                _ => inner,
            };
            let leaves = layout.leaves(inner);
            leaves.iter().all(|leaf| leaf.scalar == naga::Scalar::F32)
        });
        if own.bytes == other.bytes || !floats {
            return own.bytes == other.bytes;
        }
        let (own, other) = (own.to_f32(), other.to_f32());
        let largest = own.iter().fold(0_f32, |most, x| most.max(x.abs()));
        let mut pairs = own.iter().zip(&other);
        pairs.all(|(a, b)| a.to_bits() == b.to_bits() || (a - b).abs() <= 1e-5 * largest)
    }

    fn locate(&self, span: Span) -> Location {
        locate(&self.lines, Some(span))
    }
}

fn uses_subgroups(function: &naga::Function) -> bool {
    use naga::Expression::{SubgroupBallotResult, SubgroupOperationResult};
    let mut all = function.expressions.iter();
    all.any(|(_, expression)| {
        matches!(
            expression,
            SubgroupBallotResult | SubgroupOperationResult { .. }
        )
    })
}

/// The source with `subgroups` left out of its `enable` directives: naga runs the operations and does not know the word.
fn without_subgroups(source: &str) -> String {
    const WORD: &str = "subgroups";
    let mut bytes = source.as_bytes().to_vec();
    for (start, _) in source.match_indices("enable ") {
        let Some(length) = source[start..].find(';') else {
            break;
        };
        let directive = &source[start..start + length];
        let Some(at) = directive.find(WORD) else {
            continue;
        };
        let alone = directive["enable ".len()..].trim() == WORD;
        let last = directive[..at].trim_end();
        let place = match (alone, last.strip_suffix(',')) {
            (true, _) => start..start + length + 1,
            (false, Some(before)) => start + before.len()..start + at + WORD.len(),
            (false, None) => {
                let comma = directive[at..]
                    .find(',')
                    .map_or(WORD.len(), |comma| comma + 1);
                start + at..start + at + comma
            }
        };
        bytes[place].fill(b' ');
    }
    String::from_utf8(bytes).unwrap_or_else(|_| source.to_owned())
}

/// Where each line begins, in bytes.
fn line_starts(source: &str) -> Vec<u32> {
    let later = source.match_indices('\n').map(|(at, _)| at as u32 + 1);
    std::iter::once(0).chain(later).collect()
}

fn locate(lines: &[u32], span: Option<Span>) -> Location {
    let Some(span) = span.and_then(Span::to_range) else {
        return Location::default();
    };
    let line = lines.partition_point(|start| *start as usize <= span.start);
    Location {
        line: line as u32,
        column: (span.start - lines[line - 1] as usize) as u32 + 1,
        span,
    }
}

/// An error with its causes.
fn chain(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(cause) => format!("{error}: {}", chain(cause)),
        None => error.to_string(),
    }
}

impl fmt::Display for SourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, line {}", self.message, self.location.line)
    }
}

impl std::error::Error for SourceError {}

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
