//! The configuration of a run, and the choices of its keys, named as in configuration files. `knobs.rs` explains each key.

use serde::{Deserialize, Serialize};

/// Declares a choice. In files a variant is written in kebab-case, unless it names another word.
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
    /// The query, key and value projections.
    Qkv { Separate, Fused }
);
choice!(
    /// The way in which the attention kernel finds keys and values in memory.
    KvLayout {
        /// A copy makes the rows contiguous before the kernel reads them.
        Contiguous,
        /// The kernel gets views and follows their strides.
        Strided,
        /// The kernel gets views and reads them as if they were contiguous. Its results are wrong without an error.
        Assumed,
    }
);
choice!(
    /// The version of attention.
    Attention {
        /// Primitives that write the scores to memory.
        Composed,
        /// One kernel that finds keys and values as `kv-layout` describes.
        Kernel,
        /// One kernel that keeps the scores in tiles.
        Flash,
    }
);
choice!(
    /// The version of RMSNorm: one primitive after the other, or one kernel.
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
    /// The version of softmax and cross-entropy.
    Loss {
        Composed,
        Fused,
        /// The head's product and the loss are computed together for some rows at a time, so that all logits never exist at once.
        InParts,
    }
);
choice!(
    /// The place of the final norm: inside the autodiff graph, or outside of it.
    Gradient {
        Attached,
        /// The final norm's output has no history, so that no gradient passes it.
        DetachedNorm,
    }
);
choice!(
    /// The kernels for matrix products: those of the library, or of this project.
    Matmul {
        Library,
        Own,
        /// Matrix cores multiply each f32 as two f16. A device without matrix cores uses `Own`.
        Split,
    }
);
choice!(
    /// The training tokens.
    Data {
        /// A seeded Markov chain that never repeats a token at once. Its entropy rate is known.
        Markov,
        /// Uniform, independent tokens, from which nothing can be learned.
        Noise,
    }
);
choice!(
    /// The version of AdamW: the library's, or ours in few launches.
    Optimizer { Library, Fused }
);
choice!(
    /// The number format of matrix products.
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
        /// The launches are recorded once, and each step replays them as one phase. A CPU has no launches.
        Recorded,
    }
);
choice!(
    /// The places at which the host waits for the device.
    Sync { PerPhase, PerStep, Never }
);

/// The model. Its sizes come from the preset unless a file names them.
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

/// The data and the optimizer.
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
    /// The number of first steps that count towards no statistic.
    pub warmup: u64,
    /// The number of steps from one profiled step to the next; 0 means that only the first step after warm-up is profiled.
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

/// The longest context that the rotary tables and the data generator are made for.
pub const MAX_CONTEXT: usize = 8192;
/// The ε of RMSNorm.
pub const NORM_EPS: f64 = 1e-5;
/// The base of the rotary frequencies.
pub const ROPE_THETA: f64 = 10_000.0;
/// The standard deviation of `init = "normal-0.02"`.
pub const INIT_STD: f64 = 0.02;

impl RunConfig {
    /// Returns the preset's sizes with every knob at its plain, correct value.
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

    /// Changes to another preset: sizes, batch and context become the preset's, all other knobs stay.
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

/// Rounds a number to fifteen digits, as many as a person may have written. A reader of JSON may be off by the last bit, and two
/// configurations with one text must be equal.
pub(crate) fn fifteen_digits(x: f64) -> f64 {
    format!("{x:.14e}").parse().unwrap_or(x)
}

fn fifteen_digits_from<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    f64::deserialize(deserializer).map(fifteen_digits)
}
