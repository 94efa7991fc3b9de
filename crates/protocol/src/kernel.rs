//! The order for a check of a learner's kernels, which goes to the engine: the texts, their buffers and shapes, and the demands of each check.

mod fill;
mod report;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::size::{SizeProduct, Sizes};

pub use fill::*;
pub use report::*;

/// A kernel exercise with the learner's files. The engine reads no course, so the job holds everything that a check needs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KernelJob {
    /// A number that the report repeats.
    pub id: u64,
    /// The exercise's id.
    pub exercise: String,
    pub files: Vec<KernelFile>,
    /// The shapes to try: small and odd ones first, then those drawn for this check. The last one is the one to time.
    pub shapes: Vec<KernelShape>,
    /// The seed of all numbers in the buffers.
    #[serde(default)]
    pub seed: u64,
    pub checks: Vec<KernelCheck>,
    /// The part of the model whose kernels these can replace; `None` if there is no such part.
    pub replaces: Option<String>,
    /// True if the last shape is to be run and timed. A CPU driver never times.
    pub timed: bool,
    /// True if the last shape is compared with the exercise's plain loop too, which can take seconds.
    pub thorough: bool,
}

impl KernelJob {
    /// Returns true if the learner has changed nothing yet.
    pub fn is_starter(&self) -> bool {
        self.files
            .iter()
            .all(|file| same_text(&file.text, &file.starter))
    }

    /// Returns the report of a check that could not be made. It still names the files that cannot be read.
    pub fn failed(&self, why: String) -> KernelReport {
        KernelReport {
            id: self.id,
            exercise: self.exercise.clone(),
            files: self
                .files
                .iter()
                .filter(|file| file.unreadable.is_some())
                .map(|file| KernelResult {
                    name: file.name.clone(),
                    error: file.unreadable.clone(),
                    ..KernelResult::default()
                })
                .collect(),
            failed: Some(why),
            ..KernelReport::default()
        }
    }
}

/// Returns true if two texts are equal except for spaces at the ends of lines and empty lines around the text.
pub fn same_text(one: &str, other: &str) -> bool {
    fn lines(text: &str) -> impl Iterator<Item = &str> {
        text.trim().lines().map(str::trim_end)
    }
    lines(one).eq(lines(other))
}

/// One WGSL file of an exercise. In its texts `{{N}}` is replaced by the size N.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KernelFile {
    pub name: String,
    pub text: String,
    /// The reason why the learner's file could not be read; then `text` is empty.
    pub unreadable: Option<KernelError>,
    pub starter: String,
    pub solution: String,
    #[serde(flatten)]
    pub spec: KernelSpec,
}

/// A kernel's computation and its buffers: `[[kernel]]` of exercise.toml without its file names. The entry point is
/// `main`; every buffer is a `var<storage, read_write>` array in group 0.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KernelSpec {
    /// A plain loop in WGSL that computes the right outputs from the kernel's buffers, launched with the kernel's grid.
    pub reference: String,
    /// The number of floating-point operations, as a sum of products of sizes; empty for a copy.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flops: Vec<SizeProduct>,
    /// The buffers, in the order of `@binding`.
    #[serde(rename = "binding")]
    pub bindings: Vec<KernelBinding>,
    /// The number of workgroups along x, y and z; an axis that is left out has one. `WX`, `WY` and `WZ` are the workgroup's own size.
    pub grid: Vec<SizeProduct>,
    /// The largest error allowed, relative to the largest expected value. It only narrows the bound that rounding gives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tolerance: Option<f64>,
    /// True for a kernel in f16 that multiplies on matrix cores. Only devices that have matrix cores can run it.
    #[serde(default)]
    pub matrix_cores: bool,
}

impl KernelSpec {
    /// Returns the number of elements of each buffer.
    ///
    /// # Errors
    /// Fails when a size is missing, or when a buffer would be too large.
    pub fn counts(&self, sizes: &Sizes) -> Result<Vec<usize>, String> {
        self.bindings
            .iter()
            .map(|binding| Ok(binding.count.value(sizes)? as usize))
            .collect()
    }

    /// Returns the number of workgroups along each axis, for workgroups of the size `workgroup`.
    ///
    /// # Errors
    /// Fails when a size is missing, or when there would be too many workgroups.
    pub fn groups(&self, sizes: &Sizes, workgroup: [u32; 3]) -> Result<[u64; 3], String> {
        let mut all_sizes = sizes.clone();
        for (axis, size) in ["WX", "WY", "WZ"].into_iter().zip(workgroup) {
            all_sizes.insert(axis.to_owned(), size.into());
        }
        let mut counts = [1; 3];
        for (product, count) in self.grid.iter().zip(&mut counts) {
            *count = product.value(&all_sizes)?;
        }
        Ok(counts)
    }
}

/// Sizes at which a kernel is tried. It also has the kinds of numbers in the buffers, where they differ from those of the exercise.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KernelShape {
    pub label: String,
    /// A hint for a learner whose kernel is wrong at this shape.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idea: Option<String>,
    /// The kinds of numbers of some buffers, by buffer name. They replace `KernelBinding::fill`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub fill: BTreeMap<String, KernelFill>,
    /// The tolerance at this shape. It replaces `KernelSpec::tolerance`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tolerance: Option<f64>,
    /// The kinds of numbers that a drawn shape is tried with. Each run fills all buffers with one kind. Other shapes have none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<KernelFill>,
    /// The numbers of the learner's text, which `KernelFill::Written` and `KernelFill::Beneath` use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub numbers: Vec<f64>,
    /// True if the check counts how the kernel accesses memory at this shape.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub counted: bool,
    #[serde(flatten)]
    pub sizes: Sizes,
}

impl KernelShape {
    /// Returns true for a shape that was drawn for this check, so that nobody can know it before.
    pub fn is_drawn(&self) -> bool {
        !self.values.is_empty()
    }

    /// Returns true for a shape that was drawn because the learner's text names its size.
    pub fn is_of_text(&self) -> bool {
        self.values == KernelFill::OF_TEXT
    }
}

/// One storage buffer of a kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KernelBinding {
    pub name: String,
    pub role: KernelRole,
    /// The type of an element.
    #[serde(default, rename = "type", skip_serializing_if = "KernelType::is_float")]
    pub element: KernelType,
    /// The number of elements.
    pub count: SizeProduct,
    #[serde(default)]
    pub fill: KernelFill,
    /// For a buffer of integers that the kernel reads: every element is smaller than this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub below: Option<SizeProduct>,
}

/// The type of a buffer's elements, of four bytes each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[derive(strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase", const_into_str)]
pub enum KernelType {
    #[default]
    F32,
    U32,
    I32,
}

impl KernelType {
    fn is_float(&self) -> bool {
        *self == Self::F32
    }

    /// Returns the number that four bytes in memory hold.
    pub fn number(self, word: u32) -> f64 {
        match self {
            Self::F32 => f32::from_bits(word).into(),
            Self::U32 => word.into(),
            Self::I32 => (word as i32).into(),
        }
    }
}

/// The use that a kernel makes of a buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KernelRole {
    /// The kernel reads the buffer and must not write it.
    #[default]
    In,
    /// The kernel writes the buffer. A marker fills it before the launch, so that elements which were not written show.
    Out,
    /// The kernel reads and writes the buffer.
    InOut,
}

/// A demand on a kernel: `[[check]]` of exercise.toml.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct KernelCheck {
    pub name: String,
    pub metric: KernelMetric,
    /// The limit of `speed`, `invocations` and `neighbours`.
    #[serde(default)]
    pub at_least: f64,
    /// The limit of `fetches`.
    #[serde(default)]
    pub at_most: f64,
    /// The exercise's claim about its starter: that it fails this check, or passes it.
    #[serde(default)]
    pub starter: KernelStarter,
}

/// The property of a kernel that a check measures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KernelMetric {
    /// Every output of every shape is within the tolerance.
    #[default]
    Correct,
    /// The kernel is at least this many times as fast as the starter; the check counts on a real GPU only.
    Speed,
    /// A workgroup has at least this number of invocations.
    Invocations,
    /// The kernel reads `var<workgroup>` memory when it runs.
    Shared,
    /// The kernel fetches each number of an input at most this many times.
    Fetches,
    /// At least this number of invocations in a row take neighbouring elements.
    Neighbours,
    /// The kernel multiplies with `coopMultiplyAdd`.
    Cores,
}

/// The outcome of a check for the exercise's starter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KernelStarter {
    #[default]
    Fails,
    Passes,
}

/// Kernels that passed their check and are to take over a part of the running model at the next step boundary. Without kernels, the
/// part gets its own kernels back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelSwap {
    pub exercise: String,
    pub part: String,
    /// The kernel of the forward pass, then that of the backward pass if there is one.
    pub kernels: Vec<KernelText>,
    /// The sizes at which the kernels were right. At other sizes the part keeps its own kernels.
    #[serde(default)]
    pub sizes: Vec<Sizes>,
}

/// The text of one kernel, in which `{{N}}` is replaced by the size N, and its workgroup size.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelText {
    pub text: String,
    pub workgroup: [u32; 3],
}
