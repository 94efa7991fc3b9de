//! Shaders: sources that naga has parsed and validated.

use std::error::Error;
use std::fmt;
use std::ops::Range;
use std::sync::OnceLock;

use naga::back::PipelineConstants;
use naga::back::pipeline_constants::process_overrides;
use naga::valid::{
    Capabilities, ModuleInfo, ShaderStages, SubgroupOperationSet, ValidationFlags, Validator,
};
use naga::{
    Expression, Function, GlobalVariable, Handle, Module, Scalar, ShaderStage, Span, TypeInner,
};

use super::flow::Flow;
use super::layout::Layout;
use super::{
    Buffer, Finding, FindingKind, Invocation, Launch, LaunchReport, Observer, OpenResult, RunError,
    SUBGROUP_SIZES, prepare,
};

/// A parsed and validated shader.
#[derive(Debug)]
pub struct Shader {
    pub(crate) module: Module,
    pub(crate) info: ModuleInfo,
    flow: OnceLock<Flow>,
    /// The offset of each line's first byte.
    lines: Vec<u32>,
}

/// A place in the source.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Location {
    /// The line's number from 1; 0 if the place is not known.
    pub line: u32,
    /// The column in bytes, from 1.
    pub column: u32,
    /// The range of bytes in the source.
    pub span: Range<usize>,
}

/// Why a source is not a valid shader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceError {
    /// The place of the mistake in the source.
    pub location: Location,
    /// The message of naga, with its causes.
    pub message: String,
}

impl Shader {
    /// Reads and validates a source. Deeply nested expressions need a stack of `STACK_BYTES`.
    ///
    /// # Errors
    /// When naga does not accept the source.
    pub fn parse(source: &str) -> Result<Self, SourceError> {
        let lines = line_starts(source);
        let readable = without_subgroups(source);
        let module = naga::front::wgsl::parse_str(&readable).map_err(|error| SourceError {
            location: locate(&lines, error.labels().next().map(|(span, _)| span)),
            message: error.message().to_owned(),
        })?;
        // The run itself checks that all invocations reach a barrier.
        let flags = ValidationFlags::all() - ValidationFlags::CONTROL_FLOW_UNIFORMITY;
        let supported = Capabilities::SHADER_FLOAT16
            | Capabilities::SHADER_FLOAT16_IN_FLOAT32
            | Capabilities::COOPERATIVE_MATRIX
            | Capabilities::SUBGROUP
            | Capabilities::SUBGROUP_BARRIER;
        let mut validator = Validator::new(flags, supported);
        validator
            .subgroup_stages(ShaderStages::COMPUTE)
            .subgroup_operations(SubgroupOperationSet::all());
        let info = validator.validate(&module).map_err(|error| SourceError {
            location: locate(&lines, error.spans().next().map(|(span, _)| *span)),
            message: with_causes(error.as_inner()),
        })?;
        Ok(Self::from_parts(module, info, lines))
    }

    /// Returns the shader that naga parsed from this source and validated.
    pub fn new(module: Module, info: ModuleInfo, source: &str) -> Self {
        Self::from_parts(module, info, line_starts(source))
    }

    fn from_parts(module: Module, info: ModuleInfo, lines: Vec<u32>) -> Self {
        Self {
            flow: OnceLock::new(),
            module,
            info,
            lines,
        }
    }

    /// Returns the values that depend on memory. The first call works them out.
    pub(crate) fn flow(&self) -> &Flow {
        self.flow.get_or_init(|| Flow::new(&self.module))
    }

    /// Returns the shader with constants in place of its overrides.
    ///
    /// # Errors
    /// When an override has neither a value in the launch nor a default.
    fn with_overrides(&self, launch: &Launch<'_>) -> Result<Self, RunError> {
        let values: PipelineConstants = launch
            .overrides
            .iter()
            .map(|(name, value)| ((*name).to_owned(), *value))
            .collect();
        let entry = launch.entry.map(|name| (ShaderStage::Compute, name));
        let (module, info) = process_overrides(&self.module, &self.info, entry, &values)
            .map_err(|error| RunError::Misfit(with_causes(&error)))?;
        let lines = self.lines.clone();
        Ok(Self::from_parts(
            module.into_owned(),
            info.into_owned(),
            lines,
        ))
    }

    /// Returns the names of the compute entry points, with their workgroup sizes.
    pub fn entry_points(&self) -> impl Iterator<Item = (&str, [u32; 3])> {
        self.module
            .entry_points
            .iter()
            .filter(|entry| entry.stage == ShaderStage::Compute)
            .map(|entry| (entry.name.as_str(), entry.workgroup_size))
    }

    /// Returns all functions, the entry points last.
    pub(crate) fn functions(&self) -> impl Iterator<Item = &Function> {
        let plain = self.module.functions.iter().map(|(_, function)| function);
        plain.chain(self.module.entry_points.iter().map(|entry| &entry.function))
    }

    /// Runs all workgroups, one after the other. Afterwards `buffers` hold the results. A shader with operations of subgroups runs once
    /// more with each of [`SUBGROUP_SIZES`], and a result that differs is a finding. The buffers and counts that remain are those of
    /// the run with `Launch::subgroup_size`.
    ///
    /// # Errors
    /// When the launch does not fit the shader, exceeds its limit of memory, or uses an unsupported part of the language.
    pub fn run(
        &self,
        launch: &Launch<'_>,
        buffers: &mut [Buffer],
        observer: &mut dyn Observer,
    ) -> Result<LaunchReport, RunError> {
        if !self.functions().any(uses_subgroups) {
            return self.run_once(launch, buffers, observer);
        }
        let before = buffers.to_vec();
        let mut report = self.run_once(launch, buffers, observer)?;
        for subgroup_size in SUBGROUP_SIZES {
            let Some(location) = report.subgroups.clone() else {
                break;
            };
            let mut other_buffers = before.clone();
            let other_launch = Launch {
                subgroup_size,
                ..launch.clone()
            };
            let other_report = self.run_once(&other_launch, &mut other_buffers, &mut ())?;
            let mut pairs = buffers.iter().zip(&other_buffers);
            if let Some((buffer, _)) = pairs.find(|(own, other)| !self.agree(own, other)) {
                let kind = FindingKind::Open(OpenResult::SubgroupSize);
                let mut finding = Finding::new(kind, location, Invocation::default());
                finding.variable = self
                    .variable(buffer)
                    .and_then(|(_, variable)| variable.name.clone());
                finding.count = u64::from(subgroup_size);
                report.findings.push(finding);
                break;
            }
            for finding in other_report.findings {
                let is_known = report
                    .findings
                    .iter()
                    .any(|known| known.kind == finding.kind && known.location == finding.location);
                if !is_known {
                    report.findings.push(finding);
                }
            }
        }
        Ok(report)
    }

    fn run_once(
        &self,
        launch: &Launch<'_>,
        buffers: &mut [Buffer],
        observer: &mut dyn Observer,
    ) -> Result<LaunchReport, RunError> {
        let (report, _) = if self.module.overrides.is_empty() {
            prepare::run(self, launch, buffers, observer, None)?
        } else {
            let shader = self.with_overrides(launch)?;
            prepare::run(&shader, launch, buffers, observer, None)?
        };
        Ok(report)
    }

    /// Returns the variable that a buffer is bound to.
    pub(crate) fn variable(
        &self,
        buffer: &Buffer,
    ) -> Option<(Handle<GlobalVariable>, &GlobalVariable)> {
        self.module.global_variables.iter().find(|(_, variable)| {
            let binding = variable.binding.as_ref();
            binding.is_some_and(|binding| {
                binding.group == buffer.group && binding.binding == buffer.binding
            })
        })
    }

    /// Returns true if two buffers hold the same bytes, or floats that differ by rounding.
    fn agree(&self, own: &Buffer, other: &Buffer) -> bool {
        if own.bytes == other.bytes {
            return true;
        }
        let holds_floats = self.variable(own).is_some_and(|(_, variable)| {
            let layout = Layout::new(&self.module);
            let whole = &self.module.types[variable.ty].inner;
            let element = match *whole {
                TypeInner::Array { base, .. } => &self.module.types[base].inner,
                _ => whole,
            };
            let leaves = layout.leaves(element);
            leaves.iter().all(|leaf| leaf.scalar == Scalar::F32)
        });
        let own_values = own.to_f32();
        let other_values = other.to_f32();
        let largest = own_values.iter().fold(0_f32, |most, x| most.max(x.abs()));
        let mut pairs = own_values.iter().zip(&other_values);
        let is_near =
            |a: f32, b: f32| a.to_bits() == b.to_bits() || (a - b).abs() <= 1e-5 * largest;
        holds_floats && pairs.all(|(a, b)| is_near(*a, *b))
    }

    pub(crate) fn locate(&self, span: Span) -> Location {
        locate(&self.lines, Some(span))
    }
}

/// Returns true if a function has an operation of subgroups.
fn uses_subgroups(function: &Function) -> bool {
    function.expressions.iter().any(|(_, expression)| {
        matches!(
            expression,
            Expression::SubgroupBallotResult | Expression::SubgroupOperationResult { .. }
        )
    })
}

/// Overwrites `subgroups` with spaces in the `enable` directives of a source: naga supports the operations but not the word.
fn without_subgroups(source: &str) -> String {
    const ENABLE: &str = "enable ";
    let mut readable = source.to_owned();
    for (start, _) in source.match_indices(ENABLE) {
        let Some(length) = source[start..].find(';') else {
            break;
        };
        let mut names: Vec<&str> = source[start + ENABLE.len()..start + length]
            .split(',')
            .collect();
        let count = names.len();
        names.retain(|name| name.trim() != "subgroups");
        if names.len() == count {
            continue;
        }
        let mut directive = String::new();
        if !names.is_empty() {
            directive = format!("{ENABLE}{};", names.join(","));
        }
        directive += &" ".repeat(length + 1 - directive.len());
        readable.replace_range(start..=start + length, &directive);
    }
    readable
}

/// Returns the offset of each line's first byte.
fn line_starts(source: &str) -> Vec<u32> {
    let later = source
        .match_indices('\n')
        .map(|(offset, _)| offset as u32 + 1);
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

/// Returns an error's message with those of its causes.
fn with_causes(error: &dyn Error) -> String {
    match error.source() {
        Some(cause) => format!("{error}: {}", with_causes(cause)),
        None => error.to_string(),
    }
}

impl fmt::Display for SourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, line {}", self.message, self.location.line)
    }
}

impl Error for SourceError {}
