//! What a run is: model, training and measurement, as plain data with its checks and its content hash.
//! Reading it from a file with positions is `config/file.rs`; nothing here touches a device or a screen.

pub mod file;
mod knobs;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use knobs::{KNOBS, Kind, Knob, Value, nearest};

/// Declares a kebab-case choice: its serde form, its text form and the list of all its values come from one place.
macro_rules! choice {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum $name {
            #[default]
            $($(#[$vdoc])* #[serde(rename = $text)] $variant),+
        }

        impl $name {
            /// Every value as it is written in a file.
            pub const NAMES: &'static [&'static str] = &[$($text),+];

            /// The value written as `text`, if there is one.
            pub fn parse(text: &str) -> Option<Self> {
                match text { $($text => Some(Self::$variant),)+ _ => None }
            }

            /// How the value is written in a file.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

choice!(
    /// A named model size.
    Preset { Tiny = "tiny", Small = "small", Medium = "medium" }
);
choice!(
    /// How weights start.
    Init {
        /// Every matrix N(0, 0.02), norm gains 1.
        Normal002 = "normal-0.02",
        /// burn's own defaults: embedding N(0, 1), linear layers uniform within ±1/√fan_in.
        LibraryDefault = "library-default",
    }
);
choice!(
    /// Query, key and value projections.
    Qkv { Separate = "separate", Fused = "fused" }
);
choice!(
    /// How the attention kernel finds keys and values in memory.
    KvLayout {
        /// One copy makes the rows it reads contiguous.
        Contiguous = "contiguous",
        /// Views as they come; the kernel follows their strides.
        Strided = "strided",
        /// Views as they come; the kernel takes them for contiguous. Silently wrong.
        Assumed = "assumed",
    }
);
choice!(
    /// Attention: scores written to memory, or kept in tiles.
    Attention {
        Composed = "composed",
        /// One kernel that follows the strides it is given: see `kv-layout`.
        Kernel = "kernel",
        Flash = "flash",
    }
);
choice!(
    /// RMSNorm: one primitive after the other, or one kernel.
    Norm { Composed = "composed", Fused = "fused" }
);
choice!(
    /// The gate, up and activation part of the feed-forward block.
    Swiglu {
        Separate = "separate",
        NaiveKernel = "naive-kernel",
        FusedGateUp = "fused-gate-up",
        FusedActivation = "fused-activation",
    }
);
choice!(
    /// Softmax and cross-entropy.
    Loss { Composed = "composed", Fused = "fused" }
);
choice!(
    /// Whether the final norm stays in the autodiff graph.
    Gradient {
        Attached = "attached",
        /// The source workshop's fault: the final norm's output has no history.
        DetachedNorm = "detached-norm",
    }
);
choice!(
    /// Where matrix products are computed: the library's kernels, or this project's own.
    Matmul { Library = "library", Own = "own" }
);
choice!(
    /// Training tokens.
    Data {
        /// A seeded chain without self-transitions; its entropy rate is known.
        Markov = "markov",
        /// Uniform, independent tokens: nothing to learn.
        Noise = "noise",
    }
);
choice!(
    /// AdamW: the library's, or one of ours in few launches.
    Optimizer { Library = "library", Fused = "fused" }
);
choice!(
    /// Number format of the computation.
    Precision { F32 = "f32", F16 = "f16", Bf16 = "bf16" }
);
choice!(
    /// Where the host waits for the device.
    Sync { PerPhase = "per-phase", PerStep = "per-step", Never = "never" }
);

/// The network. Sizes come from the preset unless a file names them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ModelConfig {
    pub hidden: usize,
    pub layers: usize,
    pub heads: usize,
    pub kv_heads: usize,
    pub ffn: usize,
    pub vocab: usize,
    pub init: Init,
    pub qkv: Qkv,
    pub kv_layout: KvLayout,
    pub attention: Attention,
    pub norm: Norm,
    pub swiglu: Swiglu,
    pub loss: Loss,
    pub gradient: Gradient,
    pub matmul: Matmul,
}

/// Data and optimizer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct TrainConfig {
    pub data: Data,
    pub optimizer: Optimizer,
    pub precision: Precision,
    pub batch: usize,
    pub context: usize,
    pub seed: u64,
    #[serde(deserialize_with = "fifteen_digits_from")]
    pub learning_rate: f64,
}

/// When to wait, when to look.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct MeasureConfig {
    pub sync: Sync,
    /// Steps that do not count towards any statistic.
    pub warmup: u64,
    /// One step in this many is profiled, kernel by kernel. 0: only the first after warm-up.
    pub profile_every: u64,
}

/// Everything that defines a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct RunConfig {
    pub preset: Preset,
    pub model: ModelConfig,
    pub train: TrainConfig,
    pub measure: MeasureConfig,
}

/// Longest context the rotary tables and the data generator are made for.
pub const MAX_CONTEXT: usize = 8192;
/// RMSNorm's ε.
pub const NORM_EPS: f64 = 1e-5;
/// Base of the rotary frequencies.
pub const ROPE_THETA: f64 = 10_000.0;
/// Standard deviation of `init = "normal-0.02"`.
pub const INIT_STD: f64 = 0.02;

impl RunConfig {
    /// The preset's sizes with every knob at its plain, correct value.
    pub fn preset(preset: Preset) -> Self {
        let (hidden, layers, heads, kv_heads, ffn, context) = match preset {
            Preset::Tiny => (128, 4, 4, 2, 512, 64),
            Preset::Small => (512, 8, 8, 4, 2048, 128),
            Preset::Medium => (1024, 12, 8, 4, 4096, 512),
        };
        Self {
            preset,
            model: ModelConfig {
                hidden,
                layers,
                heads,
                kv_heads,
                ffn,
                vocab: 1000,
                init: Init::default(),
                qkv: Qkv::default(),
                kv_layout: KvLayout::default(),
                attention: Attention::default(),
                norm: Norm::default(),
                swiglu: Swiglu::default(),
                loss: Loss::default(),
                gradient: Gradient::default(),
                matmul: Matmul::default(),
            },
            train: TrainConfig {
                data: Data::default(),
                optimizer: Optimizer::default(),
                precision: Precision::default(),
                batch: 8,
                context,
                seed: 42,
                learning_rate: 3e-4,
            },
            measure: MeasureConfig {
                sync: Sync::default(),
                warmup: 5,
                profile_every: 20,
            },
        }
    }

    /// Moves to another preset: sizes and context follow, knobs stay.
    pub fn set_preset(&mut self, preset: Preset) {
        let sizes = Self::preset(preset);
        self.preset = preset;
        self.model.hidden = sizes.model.hidden;
        self.model.layers = sizes.model.layers;
        self.model.heads = sizes.model.heads;
        self.model.kv_heads = sizes.model.kv_heads;
        self.model.ffn = sizes.model.ffn;
        self.model.vocab = sizes.model.vocab;
        self.train.batch = sizes.train.batch;
        self.train.context = sizes.train.context;
    }

    /// Every reason why this cannot run, each with the key at fault, what is wrong and what would be right.
    pub fn problems(&self) -> Vec<Problem> {
        let m = &self.model;
        let t = &self.train;
        let mut found = Vec::new();
        let mut report = |key: &'static str, what: String| found.push(Problem { key, what });
        for (key, value) in [
            ("model.hidden", m.hidden),
            ("model.layers", m.layers),
            ("model.heads", m.heads),
            ("model.kv-heads", m.kv_heads),
            ("model.ffn", m.ffn),
            ("train.batch", t.batch),
            ("train.context", t.context),
        ] {
            if value == 0 {
                report(key, format!("{key} is 0; write 1 or more"));
            }
        }
        if m.vocab < 2 {
            report(
                "model.vocab",
                format!(
                    "model.vocab is {}; a prediction needs at least 2 tokens",
                    m.vocab
                ),
            );
        }
        if m.heads > 0 && !m.hidden.is_multiple_of(m.heads) {
            let near = nearest_divisor(m.hidden, m.heads);
            report(
                "model.heads",
                format!(
                    "{} heads do not divide hidden = {}; write heads = {near}",
                    m.heads, m.hidden
                ),
            );
        } else if m.heads > 0 && m.hidden > 0 && (m.hidden / m.heads) % 2 == 1 {
            let dh = m.hidden / m.heads;
            report(
                "model.heads",
                format!(
                    "the head dimension hidden / heads = {dh} is odd; rotary embedding turns pairs, so make it even"
                ),
            );
        }
        if m.kv_heads > 0 && m.heads > 0 && !m.heads.is_multiple_of(m.kv_heads) {
            let near = nearest_divisor(m.heads, m.kv_heads);
            report(
                "model.kv-heads",
                format!(
                    "{} kv-heads do not divide heads = {}; write kv-heads = {near}",
                    m.kv_heads, m.heads
                ),
            );
        }
        if t.context > MAX_CONTEXT {
            report(
                "train.context",
                format!(
                    "a context of {} is over the limit of {MAX_CONTEXT}",
                    t.context
                ),
            );
        }
        if !(t.learning_rate.is_finite() && t.learning_rate > 0.0) {
            report(
                "train.learning-rate",
                format!(
                    "a learning rate of {} trains nothing; write 3e-4",
                    t.learning_rate
                ),
            );
        }
        found
    }

    /// Number of trainable parameters: d·(2d + 2d·kv/H + 3·ffn + 2)·L + V·d + d, the tied head counted once.
    pub fn parameters(&self) -> u64 {
        let m = &self.model;
        let (d, ffn) = (m.hidden as u64, m.ffn as u64);
        let kv = d * m.kv_heads as u64 / (m.heads as u64).max(1);
        d * (2 * d + 2 * kv + 3 * ffn + 2) * m.layers as u64 + m.vocab as u64 * d + d
    }

    /// Tokens in one step.
    pub fn tokens_per_step(&self) -> usize {
        self.train.batch * self.train.context
    }

    /// ln(vocab): the loss of a model that knows nothing.
    pub fn ln_vocab(&self) -> f64 {
        (self.model.vocab as f64).ln()
    }

    /// Floating-point operations of one forward pass: matrix products (2·M·K·N each) and attention
    /// (4·B·T²·hidden, the masked half included), as in the model's shapes.
    pub fn forward_flops(&self) -> f64 {
        let m = &self.model;
        let n = self.tokens_per_step() as f64;
        let (d, ffn, t) = (m.hidden as f64, m.ffn as f64, self.train.context as f64);
        let kv = d * m.kv_heads as f64 / (m.heads as f64).max(1.0);
        let layer = 2.0 * n * d * (2.0 * d + 2.0 * kv + 3.0 * ffn) + 4.0 * n * t * d;
        layer * m.layers as f64 + 2.0 * n * d * m.vocab as f64
    }

    /// Bytes a training step needs at least: weights, gradients, two moments, saved activations (an estimate by
    /// shape: about 14 values of width hidden and 5 of width ffn per token and layer, composed attention's scores).
    pub fn memory_estimate(&self) -> u64 {
        let m = &self.model;
        let n = self.train.batch as f64 * self.train.context as f64;
        let scores = match m.attention {
            Attention::Composed | Attention::Kernel => {
                3.0 * n * (m.heads * self.train.context) as f64
            }
            Attention::Flash => 0.0,
        };
        let layer = n * (14 * m.hidden + 5 * m.ffn) as f64 + scores;
        let values =
            4.0 * self.parameters() as f64 + layer * m.layers as f64 + 3.0 * n * m.vocab as f64;
        // Saturates at the largest u64.
        (4.0 * values) as u64
    }

    /// A short name for the content: equal configurations have equal hashes, on every machine.
    pub fn hash(&self) -> String {
        let text: String = KNOBS
            .iter()
            .map(|knob| format!("{}={};", knob.path, (knob.get)(self)))
            .collect();
        // FNV-1a, 64 bit: offset basis and prime from the published algorithm.
        let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |h, b| {
            (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3)
        });
        format!("{hash:016x}")
    }

    /// The paths at which two configurations differ.
    pub fn differences(&self, other: &Self) -> Vec<&'static str> {
        KNOBS
            .iter()
            .filter(|knob| (knob.get)(self) != (knob.get)(other))
            .map(|knob| knob.path)
            .collect()
    }

    /// Whether parameters and optimizer state can stay when a run changes from `self` to `other`.
    pub fn keeps_parameters(&self, other: &Self) -> bool {
        KNOBS
            .iter()
            .filter(|knob| (knob.get)(self) != (knob.get)(other))
            .all(|knob| knob.keeps_parameters)
    }
}

/// One thing wrong with a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pub key: &'static str,
    pub what: String,
}

/// The number with the fifteen digits a person may have written: JSON readers may be off by the last bit, and two
/// configurations that say the same must be equal.
pub(crate) fn fifteen_digits(x: f64) -> f64 {
    format!("{x:.14e}").parse().unwrap_or(x)
}

fn fifteen_digits_from<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    f64::deserialize(deserializer).map(fifteen_digits)
}

fn nearest_divisor(of: usize, wanted: usize) -> usize {
    (1..=of)
        .filter(|d| of.is_multiple_of(*d))
        .min_by_key(|d| d.abs_diff(wanted))
        .unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_has_the_published_number_of_parameters() {
        assert_eq!(RunConfig::preset(Preset::Small).parameters(), 31_977_984);
        assert_eq!(RunConfig::preset(Preset::Medium).parameters(), 189_793_280);
    }

    #[test]
    fn presets_have_no_problems_and_distinct_hashes() {
        let all = [Preset::Tiny, Preset::Small, Preset::Medium].map(RunConfig::preset);
        assert!(all.iter().all(|c| c.problems().is_empty()));
        assert_ne!(all[0].hash(), all[1].hash());
        assert_eq!(all[0].hash(), RunConfig::preset(Preset::Tiny).hash());
    }

    #[test]
    fn impossible_shapes_name_the_nearest_right_one() {
        let mut config = RunConfig::preset(Preset::Tiny);
        config.model.heads = 3;
        let problems = config.problems();
        assert_eq!(problems[0].key, "model.heads");
        assert!(
            problems[0].what.contains("write heads = 2"),
            "{}",
            problems[0].what
        );
        config = RunConfig::preset(Preset::Tiny);
        config.model.kv_heads = 3;
        assert!(config.problems()[0].what.contains("write kv-heads = 2"));
        config = RunConfig::preset(Preset::Tiny);
        config.train.batch = 0;
        assert!(config.problems()[0].what.contains("train.batch is 0"));
    }
}
