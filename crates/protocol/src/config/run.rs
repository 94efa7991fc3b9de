//! The configuration of a run, and the choices of its keys in the words of its files. `knobs.rs` explains each key. Nothing here touches a
//! device or a screen.

use serde::{Deserialize, Serialize};

/// Declares a choice whose words in files are its variants in kebab-case, or those that a variant names.
macro_rules! choice {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[derive(strum::Display, strum::EnumString, strum::IntoStaticStr, strum::VariantNames)]
        #[serde(rename_all = "kebab-case")]
        #[strum(serialize_all = "kebab-case", const_into_str)]
        pub enum $name {
            #[default]
            $($(#[$vdoc])* $variant),+
        }
    };
}

choice!(
    /// A named model size.
    Preset { Tiny, Small, Medium }
);
choice!(
    /// The initial weights.
    Init {
        /// Every matrix N(0, 0.02), norm gains 1.
        #[serde(rename = "normal-0.02")]
        #[strum(serialize = "normal-0.02")]
        Normal002,
        /// burn's own defaults: embedding N(0, 1), linear layers uniform within ±1/√fan_in.
        LibraryDefault,
    }
);
choice!(
    /// Query, key and value projections.
    Qkv { Separate, Fused }
);
choice!(
    /// The way in which the attention kernel finds keys and values in memory.
    KvLayout {
        /// One copy makes the rows it reads contiguous.
        Contiguous,
        /// Views as they come; the kernel follows their strides.
        Strided,
        /// Views as they come; the kernel takes them for contiguous. Silently wrong.
        Assumed,
    }
);
choice!(
    /// Attention: scores written to memory, or kept in tiles.
    Attention {
        Composed,
        /// One kernel that follows the strides it is given: see `kv-layout`.
        Kernel,
        Flash,
    }
);
choice!(
    /// RMSNorm: one primitive after the other, or one kernel.
    Norm { Composed, Fused }
);
choice!(
    /// The gate, up and activation part of the feed-forward block.
    Swiglu {
        Separate,
        NaiveKernel,
        FusedGateUp,
        FusedActivation,
    }
);
choice!(
    /// Softmax and cross-entropy.
    Loss {
        Composed,
        Fused,
        /// With the head's product, for some rows at a time: logits of the whole batch never exist.
        InParts,
    }
);
choice!(
    /// The place of the final norm: inside the autodiff graph, or outside of it.
    Gradient {
        Attached,
        /// The source workshop's fault: the final norm's output has no history.
        DetachedNorm,
    }
);
choice!(
    /// The kernels for matrix products: those of the library, or of this project.
    Matmul {
        Library,
        Own,
        /// On matrix cores, each f32 as two f16; as `own` where a device has none.
        Split,
    }
);
choice!(
    /// Training tokens.
    Data {
        /// A seeded chain without self-transitions; its entropy rate is known.
        Markov,
        /// Uniform, independent tokens: nothing to learn.
        Noise,
    }
);
choice!(
    /// AdamW: the library's, or one of ours in few launches.
    Optimizer { Library, Fused }
);
choice!(
    /// Number format of matrix products.
    Precision { F32, F16, Bf16 }
);
choice!(
    /// The means that keeps small gradients from becoming zero in f16.
    LossScaling {
        /// The loss is multiplied by a factor that grows until a gradient overflows; the optimizer divides it out.
        Dynamic,
        None,
    }
);
choice!(
    /// The way in which a GPU gets the launches of a step.
    Launches {
        EachStep,
        /// Recorded once and replayed, as one phase; on a CPU there are none.
        Recorded,
    }
);
choice!(
    /// The places at which the host waits for the device.
    Sync { PerPhase, PerStep, Never }
);

/// The network. Sizes come from the preset unless a file names them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
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
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct TrainConfig {
    pub data: Data,
    pub optimizer: Optimizer,
    pub precision: Precision,
    #[serde(default)]
    pub loss_scaling: LossScaling,
    #[serde(default)]
    pub launches: Launches,
    pub batch: usize,
    pub context: usize,
    pub seed: u64,
    #[serde(deserialize_with = "fifteen_digits_from")]
    pub learning_rate: f64,
}

/// The settings of measuring: when the host waits, and when a step is profiled.
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
                ..ModelConfig::default()
            },
            train: TrainConfig {
                batch: 8,
                context,
                seed: 42,
                learning_rate: 3e-4,
                ..TrainConfig::default()
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
        let Self { model, train, .. } = Self::preset(preset);
        self.preset = preset;
        self.model.hidden = model.hidden;
        self.model.layers = model.layers;
        self.model.heads = model.heads;
        self.model.kv_heads = model.kv_heads;
        self.model.ffn = model.ffn;
        self.model.vocab = model.vocab;
        self.train.batch = train.batch;
        self.train.context = train.context;
    }
}

/// The number with the fifteen digits a person may have written: JSON readers may be off by the last bit, and two
/// configurations that say the same must be equal.
pub(crate) fn fifteen_digits(x: f64) -> f64 {
    format!("{x:.14e}").parse().unwrap_or(x)
}

fn fifteen_digits_from<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    f64::deserialize(deserializer).map(fifteen_digits)
}
