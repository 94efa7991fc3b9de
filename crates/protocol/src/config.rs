//! The configuration of a run as plain data: its types, the table of its keys, its checks, and the hash of its content.

mod figures;
mod knobs;
mod ladder;
mod problems;
mod run;
mod spelling;

pub use knobs::{
    Changes, KNOBS, Knob, KnobValue, Parameters, ParityReference, VERSIONS, ValueKind,
};
pub use problems::ConfigProblem;
pub use run::{
    Attention, Data, Gradient, INIT_STD, Init, KvLayout, Launches, Loss, LossScaling, MAX_CONTEXT,
    Matmul, MeasureConfig, ModelConfig, NORM_EPS, Norm, Optimizer, Precision, Preset, Qkv,
    ROPE_THETA, RunConfig, Swiglu, Sync, TrainConfig,
};
pub use spelling::{close, nearest, unknown};
