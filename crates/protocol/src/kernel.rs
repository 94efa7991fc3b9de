//! A learner's kernel on its way to the engine, and what became of it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::run::{Device, Num, Spread};
use super::size::{SizeProduct, Sizes, with_names};

/// A kernel exercise as the learner has it, with what it is held against. The engine reads no course: everything it needs
/// is in here.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KernelJob {
    /// Repeated in the report.
    pub id: u64,
    /// The exercise's id.
    pub exercise: String,
    pub files: Vec<KernelFile>,
    /// Small and odd ones first, then those drawn for this check; the last is the one to time.
    pub shapes: Vec<KernelShape>,
    /// All numbers are drawn from it.
    #[serde(default)]
    pub seed: u64,
    pub checks: Vec<KernelCheck>,
    /// Part of the model whose kernel these can replace.
    pub replaces: Option<String>,
    /// True if the last shape is run and timed; on a CPU driver it never is.
    pub timed: bool,
    /// True if the last shape, too, is held against the plain Rust reference; that can take seconds.
    pub thorough: bool,
}

impl KernelJob {
    /// Returns true if the learner has changed nothing yet.
    pub fn is_starter(&self) -> bool {
        self.files
            .iter()
            .all(|file| same_text(&file.text, &file.starter))
    }

    /// The report of a check that could not be made.
    pub fn failed(&self, why: String) -> KernelReport {
        let unreadable = self.files.iter().filter(|file| file.unreadable.is_some());
        let files = unreadable.map(|file| KernelResult {
            name: file.name.clone(),
            error: file.unreadable.clone(),
            ..KernelResult::default()
        });
        KernelReport {
            id: self.id,
            exercise: self.exercise.clone(),
            files: files.collect(),
            failed: Some(why),
            ..KernelReport::default()
        }
    }
}

/// Returns true if two texts are the same, whatever the editor does to the ends of lines.
pub fn same_text(one: &str, other: &str) -> bool {
    fn lines(text: &str) -> impl Iterator<Item = &str> {
        text.trim().lines().map(str::trim_end)
    }
    lines(one).eq(lines(other))
}

/// One WGSL file. Texts hold `{{N}}` where a size belongs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KernelFile {
    pub name: String,
    pub text: String,
    /// Why there is no text.
    pub unreadable: Option<KernelError>,
    pub starter: String,
    pub solution: String,
    #[serde(flatten)]
    pub spec: KernelSpec,
}

/// What a kernel computes, on which buffers: `[[kernel]]` of exercise.toml without its file names. The entry point is
/// `main`; every buffer is a `var<storage, read_write>` array in group 0.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KernelSpec {
    /// A plain loop in WGSL on the same buffers and with the same grid, run with numbers that carry their error: it says which outputs
    /// are right.
    pub reference: String,
    /// Floating-point operations by shape, as a sum of products; none for a copy.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flops: Vec<SizeProduct>,
    /// In the order of `@binding`.
    #[serde(rename = "binding")]
    pub bindings: Vec<KernelBinding>,
    /// Workgroups along x, y and z; an axis that is left out has one. `WX`, `WY` and `WZ` are the workgroup's own size.
    pub grid: Vec<SizeProduct>,
    /// Largest error allowed, relative to the largest expected value, where that is less than what rounding explains.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tolerance: Option<f64>,
    /// The kernel is in f16 and multiplies on matrix cores: only devices that have them can try it.
    #[serde(default)]
    pub matrix_cores: bool,
}

impl KernelSpec {
    /// Elements of each buffer.
    ///
    /// # Errors
    /// When a size is missing, or a buffer would be too large.
    pub fn counts(&self, sizes: &Sizes) -> Result<Vec<usize>, String> {
        let counts = self.bindings.iter();
        let counts = counts.map(|binding| Ok(binding.count.value(sizes)? as usize));
        counts.collect()
    }

    /// Workgroups along each axis, for workgroups of this size.
    ///
    /// # Errors
    /// When a size is missing, or there would be too many.
    pub fn groups(&self, sizes: &Sizes, workgroup: [u32; 3]) -> Result<[u64; 3], String> {
        let mut sizes = sizes.clone();
        let own = ["WX", "WY", "WZ"].map(str::to_owned);
        sizes.extend(own.into_iter().zip(workgroup.map(u64::from)));
        let mut counts = [1; 3];
        for (product, count) in self.grid.iter().zip(&mut counts) {
            *count = product.value(&sizes)?;
        }
        Ok(counts)
    }
}

/// A named choice of sizes, and of numbers where an idea needs its own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KernelShape {
    pub label: String,
    /// What a kernel that is wrong here has to think about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idea: Option<String>,
    /// By the name of a buffer: what it holds here instead.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub fill: BTreeMap<String, KernelFill>,
    /// The tolerance here, where it is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tolerance: Option<f64>,
    /// Of a shape that was drawn for this check: what all buffers hold, one after the other.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<KernelFill>,
    /// The numbers of `KernelFill::Written`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub numbers: Vec<f64>,
    /// True if accesses are counted here.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub counted: bool,
    #[serde(flatten)]
    pub sizes: Sizes,
}

impl KernelShape {
    /// Returns true if it was drawn for this check, and nobody can know it before.
    pub fn is_drawn(&self) -> bool {
        !self.values.is_empty()
    }

    /// Returns true if it was drawn because the learner's text names its size.
    pub fn is_of_text(&self) -> bool {
        self.values == KernelFill::OF_TEXT
    }
}

/// One storage buffer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KernelBinding {
    pub name: String,
    pub role: KernelRole,
    /// Of an element.
    #[serde(default, rename = "type", skip_serializing_if = "KernelType::is_float")]
    pub element: KernelType,
    /// Number of elements.
    pub count: SizeProduct,
    #[serde(default)]
    pub fill: KernelFill,
    /// Of integers that are read: all are smaller than this.
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

    /// The number that a word in memory holds.
    pub fn number(self, word: u32) -> f64 {
        match self {
            Self::F32 => f32::from_bits(word).into(),
            Self::U32 => word.into(),
            Self::I32 => (word as i32).into(),
        }
    }
}

/// Who writes a buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KernelRole {
    #[default]
    In,
    /// Filled with a marker before the launch, so that what was not written shows.
    Out,
    InOut,
}

/// What an input holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[derive(strum::IntoStaticStr)]
#[strum(const_into_str)]
pub enum KernelFill {
    /// N(0, 1).
    #[default]
    #[strum(serialize = "ordinary normal numbers")]
    Normal,
    /// N(0, 1) · 100: large enough to overflow a careless exp.
    #[strum(serialize = "numbers of hundreds, of both signs")]
    Large,
    /// N(0, 1) / 1000.
    #[strum(serialize = "numbers of thousandths")]
    Small,
    /// N(0, 1) · 1e-8.
    #[strum(serialize = "tiny numbers, of 1e-8")]
    Tiny,
    #[strum(serialize = "zeros")]
    Zero,
    /// Uniform in 0 to 1.
    #[strum(serialize = "numbers from 0 to 1")]
    Positive,
    /// N(0, 1) + 5.
    #[strum(serialize = "numbers around 5")]
    Above,
    /// N(0, 1) · 10 − 200.
    #[strum(serialize = "numbers around -200")]
    Below,
    /// N(0, 1) + 4 · i for element i.
    #[strum(serialize = "rising numbers")]
    Rising,
    /// N(0, 1) − 4 · i.
    #[strum(serialize = "falling numbers")]
    Falling,
    /// −s · (1 + N(0, 1) / 4) with one s between 1e5 and 1e8 in all; positive in every second buffer.
    #[strum(serialize = "numbers far from zero")]
    Far,
    /// −s · (1.25 to 1.5), where s is the largest number of the learner's text; positive in every second buffer.
    #[strum(serialize = "numbers below every number of the text")]
    Beneath,
    /// N(0, 1) · s with one s between 1e4 and 1e8.
    #[strum(serialize = "huge numbers, of both signs")]
    Huge,
    /// The same number everywhere.
    #[strum(serialize = "one number everywhere")]
    Constant,
    /// N(0, 1), and in each row one element of a size between 8 and 2,000.
    #[strum(serialize = "normal numbers with one large one in each row")]
    Outlier,
    /// N(0, 1), and every eighth one 0.
    #[strum(serialize = "normal numbers with zeros among them")]
    Sparse,
    /// N(0, 1), and numbers that the learner's text names, or near those, of both signs.
    #[strum(serialize = "numbers near those that the text names")]
    Written,
    /// Integers, drawn evenly from 0 to below `below`; the next two are, too.
    #[strum(serialize = "indices in any order")]
    Index,
    /// At most three different ones.
    #[strum(serialize = "indices that are often the same")]
    Repeated,
    #[strum(serialize = "indices in rising order")]
    Sorted,
}

impl KernelFill {
    /// What a drawn shape is tried with, the kinds that no other one stands for first: where a shape is large, the steps of a check do
    /// not suffice for all.
    pub const DRAWN: [Self; 13] = [
        Self::Normal,
        Self::Beneath,
        Self::Far,
        Self::Large,
        Self::Tiny,
        Self::Below,
        Self::Huge,
        Self::Falling,
        Self::Constant,
        Self::Outlier,
        Self::Sparse,
        Self::Zero,
        Self::Written,
    ];

    /// What a buffer of integers holds.
    pub const OF_INTEGERS: [Self; 3] = [Self::Index, Self::Repeated, Self::Sorted];

    /// What a shape is tried with whose size the learner's text names.
    pub const OF_TEXT: [Self; 2] = [Self::Normal, Self::Written];
}

/// A criterion: `[[check]]` of exercise.toml.
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
    /// Whether the starter passes it, too.
    #[serde(default)]
    pub starter: KernelStarter,
}

/// What is asked of a kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KernelMetric {
    /// Every output of every shape within the tolerance.
    #[default]
    Correct,
    /// The kernel is at least this many times as fast as the starter; the check counts on a real GPU only.
    Speed,
    /// A workgroup has at least this number of invocations.
    Invocations,
    /// Reads `var<workgroup>` memory when it runs.
    Shared,
    /// The kernel fetches each number of an input at most this many times.
    Fetches,
    /// At least this number of invocations in a row take elements that lie side by side.
    Neighbours,
    /// Multiplies with `coopMultiplyAdd`.
    Cores,
}

/// What a check says of the starter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KernelStarter {
    #[default]
    Fails,
    Passes,
}

/// Why a text is not a kernel that can be run. Line and column count from 1, in characters of the learner's file; 0
/// where the text as a whole is meant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelError {
    pub line: u32,
    pub column: u32,
    /// The piece of text that is meant, on one line; may be empty.
    pub text: String,
    pub message: String,
    /// What to write instead.
    pub instead: String,
    /// It reads as WGSL, and no device would launch it.
    #[serde(default)]
    pub launch: bool,
}

impl KernelError {
    /// Adds the sizes to the message of an error at a drawn shape.
    pub fn at(self, shape: &KernelShape) -> Self {
        if !shape.is_drawn() {
            return self;
        }
        let message = format!("{}, at {}", self.message, with_names(&shape.sizes));
        Self { message, ..self }
    }
}

/// What the text says about itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelFacts {
    /// Invocations along x, y and z.
    pub workgroup: [u32; 3],
    /// Bytes of workgroup memory, at the largest shape.
    pub workgroup_bytes: u64,
    /// True if it asks for the length of a buffer.
    pub array_length: bool,
    /// True if its outputs are made of products of matrix cores, and not only a text that names them.
    #[serde(default)]
    pub matrix_cores: bool,
}

/// What one check of a learner's kernels found out. A wrong, slow or endless kernel is data here.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KernelReport {
    pub id: u64,
    pub exercise: String,
    pub device: Option<Device>,
    pub files: Vec<KernelResult>,
    /// Why no device ran the kernels, where there is none for them: what is known is from the host.
    pub host_only: Option<String>,
    /// Why nothing could be checked: no device of that name, or the check's own process ended.
    pub failed: Option<String>,
    /// A kernel does not end: the process that checked it has to be killed.
    pub restart: bool,
    /// Wall time of the check.
    pub seconds: f64,
    /// Processor time of the check, where the system tells it.
    pub processor_seconds: Option<f64>,
    /// What the numbers and the drawn shapes came from.
    #[serde(default)]
    pub seed: u64,
}

/// How far a check has come.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KernelProgress {
    pub id: u64,
    pub exercise: String,
    /// What is known already.
    pub files: Vec<KernelResult>,
    /// Number of the file that is looked at now; `None` while the device is opened.
    pub file: Option<u64>,
    /// Label of the shape; empty while the text is read.
    pub shape: String,
    /// True if the kernel is running.
    pub running: bool,
    /// Other programs keep the machine busy: seconds that this piece of work has taken so far.
    pub waits: Option<KernelWait>,
}

/// How long a piece of work takes on a busy machine, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KernelWait {
    pub wall: f64,
    pub processor: Option<f64>,
}

/// One file of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KernelResult {
    pub name: String,
    /// It does not compile, or breaks a rule.
    pub error: Option<KernelError>,
    pub facts: Option<KernelFacts>,
    /// Shapes that were right.
    pub shapes: Vec<KernelMatch>,
    /// How it takes elements of buffers and of workgroup memory, counted at the small shapes.
    #[serde(default)]
    pub access: Vec<KernelAccess>,
    /// What went wrong when it ran.
    pub fault: Option<KernelFault>,
    /// Lines of the text that are worth a look, and are no faults.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<KernelError>,
    /// Label of the shape that was not run.
    pub skipped: Option<String>,
    pub time: Option<KernelTime>,
    /// Why there is no time.
    pub time_reason: Option<KernelUntimed>,
}

/// Why a kernel that is right was not timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KernelUntimed {
    /// The last of several shapes is the one to time.
    OneShape,
    CpuDriver,
    NotAsked,
}

/// The number of uses of an element that are counted together. A kernel without tiles fetches the element for each of them.
pub const USES: f64 = 16.0;

/// How one place in the text takes elements of an array that invocations share.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KernelAccess {
    /// Where it begins, in bytes of the learner's file.
    pub site: u64,
    pub line: u32,
    /// The array's name in the learner's file.
    pub array: String,
    /// Of a buffer; `None` for workgroup memory.
    pub binding: Option<u64>,
    /// How many loads of the array, here and at other places, `USES` uses of its numbers take; the most of what was counted.
    pub fetches: f64,
    /// How many invocations in a row take elements that lie side by side, in any order; the fewest of what was counted, 0 where
    /// no two of them came together.
    pub neighbours: u64,
    /// How many invocations of a workgroup are there together, at least half of the times; the most of what was counted.
    #[serde(default)]
    pub lanes: f64,
}

/// A shape whose outputs are right.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KernelMatch {
    pub shape: String,
    /// Largest error over the largest expected value.
    pub error: f64,
    /// The largest error over what rounding explains there, 1 at most.
    #[serde(default)]
    pub share: f64,
    /// `reference` (the exercise's plain loop, f64) or `solution` (the course's kernel on this device).
    pub against: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KernelFaultKind {
    #[default]
    Wrong,
    /// Elements of an output were never written.
    Unwritten,
    /// Wrote past the end of a buffer.
    OutOfBounds,
    /// Wrote to a buffer that is only for reading.
    WroteInput,
    /// What lies past the end of a buffer changes the result.
    ReadsPastEnd,
    /// Invocations race: at `place`, and `reason` says with whom; without a place, two runs on the same input differ.
    Races,
    /// Not all invocations that have to come to `place` come there, or not with the same value.
    Barrier,
    /// Reads an output before anybody wrote it.
    ReadsUnwritten,
    /// WGSL leaves the result of `place` open; `reason` says why, and what to write instead.
    Open,
    /// The check cannot follow what the kernel does; `reason` says what, and what to write instead.
    NotUnderstood,
    /// Did not end within the limit.
    Endless,
    /// Took more memory than a check may, or longer to compile.
    TooMuch,
    /// The driver refused the kernel.
    Device,
    /// The device was lost while it ran.
    Lost,
}

/// How a kernel went wrong.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KernelFault {
    pub kind: KernelFaultKind,
    /// Label of the shape.
    pub shape: String,
    /// What the buffers held, if the shape was drawn.
    pub values: Option<KernelFill>,
    /// Name of the buffer; empty where none is meant.
    pub buffer: String,
    /// Element of the buffer.
    pub at: Option<i64>,
    pub expected: Option<Num>,
    pub found: Option<Num>,
    /// The error of element `at` over the largest expected value.
    pub error: Option<Num>,
    /// Largest error allowed for this element, on the same scale.
    pub allowed: Option<f64>,
    /// Elements that are wrong, of all that the buffer has.
    pub count: u64,
    pub of: u64,
    /// The index or the loop that is meant, in the learner's file.
    pub place: Option<KernelError>,
    /// What was allowed before it was given up: rounds of the loop at `place`, else seconds of processor time.
    pub limit: f64,
    /// Two runs on the same numbers differ.
    pub unsteady: bool,
    /// The driver's words, or what the interpreter found and what to write instead.
    pub reason: String,
    /// All of it as a sentence. The engine leaves it empty; the judge fills it in.
    pub text: String,
}

/// How long one launch at the last shape takes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KernelTime {
    pub shape: String,
    pub ms: Spread,
    pub starter_ms: Option<Spread>,
    pub solution_ms: Option<Spread>,
    /// Times of the starter over times of this kernel, above 1: this one is faster.
    pub against_starter: Option<KernelRatio>,
    pub against_solution: Option<KernelRatio>,
    /// Floating-point operations by shape.
    pub flops: f64,
    /// Bytes by shape, each operand once.
    pub bytes: f64,
    /// Time at the device's measured roof over time taken.
    pub share_of_peak: Option<f64>,
    /// True if the roof that binds is the memory's.
    pub memory_bound: bool,
    /// `device` or `host`.
    pub clock: String,
}

/// A ratio of times with its 95 % interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KernelRatio {
    pub ratio: f64,
    pub low: f64,
    pub high: f64,
}

/// Kernels that passed their check, to take over a part of the running model at the next step boundary.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelSwap {
    pub exercise: String,
    pub part: String,
    /// Forward, then backward where there is one: text with its places, and workgroup size.
    pub kernels: Vec<KernelText>,
    /// Sizes at which they were right. At others the part keeps its own kernel.
    #[serde(default)]
    pub sizes: Vec<Sizes>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelText {
    pub text: String,
    pub workgroup: [u32; 3],
}
