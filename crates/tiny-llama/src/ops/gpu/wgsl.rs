//! Kernels that are written in WGSL, for features that CubeCL does not express, such as matrix cores. Each is a file in the folder of its
//! operation, and the file is a minijinja template: Rust chooses the tiles and the buffers, and the template gets their numbers. Only
//! devices that compile WGSL run these kernels.
//!
//! The panel shows the filled text, which begins with the plain loop. An engine that reads texts (`engine::texts`) sends each text with the
//! rows of the profile that launch it, so that a row opens its own text.

use crate::ops::cost::{self, SpanRow};
use burn::cubecl::ir::metadata::Info;
use burn::cubecl::ir::{self, ElemType, UIntKind};
use burn::cubecl::prelude::*;
use burn::cubecl::server::KernelArguments;
use burn::cubecl::{CubeKernel, PrecompiledSource};
use burn::tensor::DType;
use burn_cubecl::tensor::CubeTensor;
use minijinja::{Environment, UndefinedBehavior};
use protocol::config::NORM_EPS;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::mpsc::Sender;
use std::sync::{Mutex, OnceLock};

macro_rules! files {
    ($($name:literal),*) => { &[$(($name, include_str!(concat!("../", $name)))),*] };
}

/// All files: their paths below `ops`, and their texts.
const FILES: &[(&str, &str)] = files![
    "optimizer/adamw_update.wgsl",
    "attention/attention_batch.wgsl",
    "attention/attention_rows.wgsl",
    "attention/attention_tile.wgsl",
    "gpu/wgsl/bindings.wgsl",
    "cross_entropy/cross_entropy_rows.wgsl",
    "embedding/embedding_backward.wgsl",
    "embedding/embedding_forward.wgsl",
    "attention/flash_attention.wgsl",
    "attention/flash_attention_backward_kv.wgsl",
    "attention/flash_attention_backward_matrix_cores.wgsl",
    "attention/flash_attention_backward_q.wgsl",
    "attention/flash_attention_matrix_cores.wgsl",
    "linear/matmul.wgsl",
    "linear/matmul_body.wgsl",
    "linear/matmul_functions.wgsl",
    "linear/matmul_operand.wgsl",
    "linear/matmul_matrix_cores.wgsl",
    "linear/matmul_matrix_cores_body.wgsl",
    "linear/matmul_matrix_cores_functions.wgsl",
    "linear/matmul_matrix_cores_halves.wgsl",
    "linear/matmul_matrix_cores_operand.wgsl",
    "linear/matmul_matrix_cores_store.wgsl",
    "cross_entropy/mean_of_losses.wgsl",
    "rms_norm/in_f16.wgsl",
    "rms_norm/rms_norm_backward.wgsl",
    "rms_norm/rms_norm_forward.wgsl",
    "gpu/wgsl/peak_matrix_cores.wgsl",
    "rope/rope.wgsl",
    "rope/rotated.wgsl",
    "swiglu/activation.wgsl",
    "swiglu/gradients.wgsl",
    "swiglu/swiglu.wgsl",
    "swiglu/swiglu_backward.wgsl",
    "swiglu/swiglu_forward.wgsl",
    "gpu/wgsl/workgroup.wgsl"
];

/// A kernel's text with all its parameters. Equal values have equal texts, so each text is filled in and compiled once. Bindings are
/// `@group(0)`, numbered from 0, and all `read_write`, because tensors share buffers. The entry point is `main`.
pub trait Wgsl: Clone + Debug + Eq + Hash + Send + Sync + 'static {
    /// `Checked` for a learner's text, whose loops the driver has to bound.
    const MODE: ExecutionMode = ExecutionMode::Unchecked;

    /// Returns the name in the table of kernels.
    fn name(&self) -> &'static str;

    fn text(&self) -> String;

    /// Returns the number of invocations of a workgroup along each axis.
    fn workgroup(&self) -> [u32; 3];
}

/// A kernel whose text comes from one of [`FILES`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Program<V> {
    /// The name in the table of kernels.
    pub name: &'static str,
    /// The path of one of [`FILES`].
    pub file: &'static str,
    /// The values that fill in the file.
    pub values: V,
    /// The number of invocations of a workgroup, all along x.
    pub invocations: usize,
}

impl<V> Program<V> {
    /// Makes the kernel of a file, named after the file.
    pub fn new(file: &'static str, invocations: usize, values: V) -> Self {
        let name = file.rsplit('/').next().unwrap_or(file);
        Self {
            name: name.trim_end_matches(".wgsl"),
            file,
            values,
            invocations,
        }
    }
}

impl<V: Serialize + Clone + Debug + Eq + Hash + Send + Sync + 'static> Wgsl for Program<V> {
    fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the filled text. A file that cannot be filled in is an error of this program: the text then holds the error, and no driver
    /// compiles it.
    fn text(&self) -> String {
        let text = filled(self.file, &self.values).unwrap_or_else(|error| format!("{error:#}"));
        format!("// crates/tiny-llama/src/ops/{}\n{text}", self.file)
    }

    fn workgroup(&self) -> [u32; 3] {
        [self.invocations as u32, 1, 1]
    }
}

/// Returns a file's text with its values filled in.
///
/// # Errors
/// When a value that the file uses is missing, or has the wrong type.
pub(crate) fn filled(file: &str, values: &impl Serialize) -> Result<String, minijinja::Error> {
    let mut files = Environment::new();
    files.set_trim_blocks(true);
    files.set_lstrip_blocks(true);
    files.set_undefined_behavior(UndefinedBehavior::Strict);
    files.add_global("eps", NORM_EPS);
    files.add_filter("flow", flow);
    files.add_filter("plus", plus);
    for (name, text) in FILES {
        files.add_template(name, text)?;
    }
    files.get_template(file)?.render(values)
}

/// The filter `flow` joins the statements or values of a text, which has one in each line, to lines of at most 118 columns. The lines are
/// indented like the first line of the text, and `between` is written after each statement but the last. A line that is indented deeper
/// belongs to the statement before it and stays a line.
fn flow(text: &str, between: Option<&str>) -> String {
    let from_first = text.trim_start_matches('\n');
    let indent = from_first.len() - from_first.trim_start().len();
    let separator = between.unwrap_or_default();
    let mut statements: Vec<String> = Vec::new();
    for line in from_first.lines().filter(|line| !line.trim().is_empty()) {
        let own_indent = line.len() - line.trim_start().len();
        match statements.last_mut() {
            Some(last) if own_indent > indent => *last += &format!("\n{line}"),
            _ => statements.push(line.trim().to_owned()),
        }
    }
    let mut joined = String::new();
    let mut column = indent;
    for statement in statements {
        if !joined.is_empty() {
            joined += separator;
            if statement.contains('\n') || column + statement.len() > 118 {
                joined += &format!("\n{:indent$}", "");
                column = indent;
            } else {
                joined += " ";
            }
        }
        column += statement.len() + separator.len() + 1;
        joined += &statement;
    }
    format!("{:indent$}{joined}", "")
}

/// The filter `plus` adds `more` to an index of a text: `x + 4u`, or `x` if `more` is 0.
fn plus(index: &str, more: usize) -> String {
    match more {
        0 => index.to_owned(),
        _ => format!("{index} + {more}u"),
    }
}

/// A buffer in a file's `bindings`: its name, and the WGSL type of its elements.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Binding {
    pub name: String,
    pub element: &'static str,
}

/// The values of a file that are all numbers, with flags as 0 or 1.
pub type Numbers = BTreeMap<&'static str, usize>;

/// The values of a file whose bindings and workgroups follow from a launch, with the file's own values beside them.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct LaunchValues<V> {
    bindings: Vec<Binding>,
    threads: usize,
    pub groups: [usize; 3],
    /// The number of values of a vector.
    lanes: usize,
    #[serde(flatten)]
    own: V,
}

/// The name of a buffer in the text, the number of values of its elements, and the tensor, of f32, f16 or 32-bit integers.
pub type Buffer<'a> = (&'a str, usize, &'a CubeTensor);

impl<V> Program<LaunchValues<V>> {
    /// Makes the kernel of a file with these buffers. It has at least `count` workgroups of `threads` invocations, and its vectors have
    /// `lanes` values.
    pub fn with_buffers(
        file: &'static str,
        [threads, count, lanes]: [usize; 3],
        buffers: &[Buffer],
        own: V,
    ) -> Self {
        let binding = |(name, lanes, buffer): &Buffer| Binding {
            name: (*name).to_owned(),
            element: match (buffer.dtype, lanes) {
                (DType::F16, 4) => "vec4<f16>",
                (DType::F16, _) => "f16",
                (DType::F32, 4) => "vec4<f32>",
                (DType::F32, _) => "f32",
                _ => "u32",
            },
        };
        let values = LaunchValues {
            bindings: buffers.iter().map(binding).collect(),
            threads,
            groups: groups(count),
            lanes,
            own,
        };
        Self::new(file, threads, values)
    }
}

/// The number of workgroups along one dimension of a dispatch that every device allows.
pub const MAX_GROUPS: usize = 65_535;

/// Returns the number of workgroups along each axis, at least `count` in all. They are in two dimensions if one would be too long.
pub fn groups(count: usize) -> [usize; 3] {
    let rows = count.div_ceil(MAX_GROUPS).max(1);
    [count.div_ceil(rows), rows, 1]
}

/// Launches a program on contiguous tensors in the order of its bindings.
pub fn launch(program: impl Wgsl, groups: [usize; 3], buffers: &[&CubeTensor]) {
    let Some(first) = buffers.first() else { return };
    let arguments = buffers.iter().fold(KernelArguments::new(), |all, buffer| {
        debug_assert!(buffer.is_contiguous(), "kernels read contiguous tensors");
        all.with_buffer(buffer.handle.clone().binding())
    });
    launch_with(program, groups, first, arguments);
}

/// Launches the kernel of a file on its buffers; see [`Program::with_buffers`].
pub fn launch_file<V>(file: &'static str, sizes: [usize; 3], buffers: &[Buffer], own: V)
where
    Program<LaunchValues<V>>: Wgsl,
{
    let program = Program::with_buffers(file, sizes, buffers, own);
    let groups = program.values.groups;
    let tensors: Vec<&CubeTensor> = buffers.iter().map(|(_, _, tensor)| *tensor).collect();
    launch(program, groups, &tensors);
}

/// Launches a program with these buffers, or parts of buffers, on the device of `like`.
pub fn launch_with(
    program: impl Wgsl,
    groups: [usize; 3],
    like: &CubeTensor,
    arguments: KernelArguments,
) {
    report_launch(&program);
    let [x, y, z] = groups.map(|count| count as u32);
    let kernel = Box::new(WgslKernel(program));
    like.client
        .launch(kernel, CubeCount::Static(x, y, z), arguments);
}

/// Where the text of a program is sent at its first launch on a device.
struct FirstLaunches {
    to: Option<Sender<String>>,
    /// A hash of the device.
    device: u64,
    /// The hashes of device and program whose texts were sent.
    seen: BTreeSet<(u64, u64)>,
}

/// A function that gets the row of a launch, the kernel's name, the program's hash, and a function that returns its text.
pub type LaunchReader = dyn Fn(SpanRow, &'static str, u64, &dyn Fn() -> String) + Send + Sync;

static READER: OnceLock<Box<LaunchReader>> = OnceLock::new();

/// Calls `reader` from now on for every launch of a program while a step is profiled. A second reader is ignored.
pub fn read_launches(reader: Box<LaunchReader>) {
    let _ = READER.set(reader);
}

static FIRST_LAUNCHES: Mutex<FirstLaunches> = Mutex::new(FirstLaunches {
    to: None,
    device: 0,
    seen: BTreeSet::new(),
});

/// Sends from now on the text of each program to `to` when the process first launches it on this device, before the device compiles it.
pub fn send_first_launches(to: Option<Sender<String>>, device: impl Hash) {
    if let Ok(mut launches) = FIRST_LAUNCHES.lock() {
        launches.to = to;
        launches.device = hash_of(&device);
    }
}

/// Reports a launch to the reader of launches, and its text to the receiver of first launches.
fn report_launch<P: Wgsl>(program: &P) {
    if let (Some(read), Some(row)) = (READER.get(), cost::current_row()) {
        read(row, program.name(), hash_of(&program), &|| program.text());
    }
    // Learners' texts are compiled with other checks.
    if P::MODE != ExecutionMode::Unchecked {
        return;
    }
    if let Ok(mut launches) = FIRST_LAUNCHES.lock()
        && let Some(to) = launches.to.clone()
    {
        let key = (launches.device, hash_of(&(program.name(), program)));
        if launches.seen.insert(key) {
            let _ = to.send(program.text());
        }
    }
}

fn hash_of(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

struct WgslKernel<P>(P);

impl<P: Wgsl> WgslKernel<P> {
    fn dim(&self) -> CubeDim {
        let [x, y, z] = self.0.workgroup();
        CubeDim::new_3d(x, y, z)
    }
}

impl<P: Wgsl> KernelMetadata for WgslKernel<P> {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn id(&self) -> KernelId {
        KernelId::new::<Self>()
            .info(self.0.clone())
            .cube_dim(self.dim().into())
            .mode(P::MODE)
    }

    fn address_type(&self) -> ElemType {
        UIntKind::U32.into()
    }
}

impl<P: Wgsl> CubeKernel for WgslKernel<P> {
    fn define(&self) -> KernelDefinition {
        let settings = KernelSettings::new(self.dim().0, P::MODE, AddressType::U32);
        KernelDefinition {
            body: ir::Scope::root(settings.clone()),
            settings,
            info: Info::default(),
        }
    }

    fn source(&self) -> Option<PrecompiledSource> {
        Some(PrecompiledSource {
            source: self.0.text(),
            entrypoint_name: "main".into(),
            lang: "wgsl",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_statements_share_a_line_and_long_ones_begin_a_new_line() {
        let long = "let b = 1.0; ".repeat(9);
        let text = format!("\n  let a = 0.0;\n  {long}\n  let c = 2.0;\n\n  let d = 3.0;\n");
        let want = format!(
            "  let a = 0.0;\n  {}\n  let c = 2.0; let d = 3.0;",
            long.trim()
        );
        assert_eq!(flow(&text, None), want);
    }

    #[test]
    fn a_deeper_line_stays_with_the_statement_before_it() {
        let text = "  a();\n  if x { b();\n    c(); }\n  d();";
        let want = "  a();\n  if x { b();\n    c(); } d();";
        assert_eq!(flow(text, None), want);
    }

    #[test]
    fn values_are_joined_with_an_operator_and_indices_with_a_distance() {
        assert_eq!(flow("    a\n    b\n    c", Some(" +")), "    a + b + c");
        assert_eq!(plus("i", 4), "i + 4u");
        assert_eq!(plus("i", 0), "i");
    }
}
