//! What a run is: model, training and measurement, as plain data with its checks and its content hash.
//! Reading it from a file with positions is `config/file.rs`; nothing here touches a device or a screen.

mod choices;
mod figures;
pub mod file;
mod knobs;
mod problems;
mod spelling;

use serde::{Deserialize, Serialize};

pub use choices::{
    Attention, Data, Gradient, Init, KvLayout, Loss, Matmul, Norm, Optimizer, Precision, Preset,
    Qkv, Swiglu, Sync,
};
pub use knobs::{KNOBS, Kind, Knob, Value};
pub use problems::Problem;
pub use spelling::{close, nearest};

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

/// The number with the fifteen digits a person may have written: JSON readers may be off by the last bit, and two
/// configurations that say the same must be equal.
pub(crate) fn fifteen_digits(x: f64) -> f64 {
    format!("{x:.14e}").parse().unwrap_or(x)
}

fn fifteen_digits_from<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    f64::deserialize(deserializer).map(fifteen_digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_have_no_problems_and_distinct_hashes() {
        let all = [Preset::Tiny, Preset::Small, Preset::Medium].map(RunConfig::preset);
        assert!(all.iter().all(|c| c.problems().is_empty()));
        assert_ne!(all[0].hash(), all[1].hash());
        assert_eq!(all[0].hash(), RunConfig::preset(Preset::Tiny).hash());
    }
}
