//! The summary that ends a run.

use serde::{Deserialize, Deserializer, Serialize};

use super::{ENQUEUE, Evidence, Gradients, Lint, Memory, Pair, PhaseTimes, TimingState};
use crate::profile::KernelSummary;
use crate::run::{Device, Num, Slot, Spread, is_zero};

/// The summary that ends a run: the last line of `--json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Finished {
    pub stage: u32,
    pub variant: String,
    pub slot: Slot,
    /// The hash of the configuration's content.
    pub config: String,
    pub device: Device,
    pub steps: u64,
    pub loss_first: Num,
    /// The step of `loss_first`: above 0 if the knobs were changed in mid-run.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub first_step: u64,
    pub loss_last: Num,
    pub ln_vocab: f64,
    pub entropy: Option<f64>,
    /// The rates are `None` if there were too few synchronised, unprofiled steps.
    pub samples_per_s: Option<f64>,
    pub tokens_per_s: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enqueue_samples_per_s: Option<f64>,
    pub step_ms: Option<Spread>,
    pub phases_ms: Option<PhaseTimes>,
    /// The clock of the step times: `host-sync`, or `enqueue` if no step waited for the device.
    pub clock: String,
    pub state: TimingState,
    pub grad: GradSummary,
    pub kernels: KernelSummary,
    pub memory: Memory,
    pub evidence: Option<Evidence>,
    pub lints: Vec<Lint>,
    pub pair: Option<Pair>,
    /// The share of the cores, 0 to 1, that other programs used during the run; `None` if the system does not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others: Option<f64>,
    /// The reason why the run ended before its steps were done: `stopped`, `not-finite: <tensor>`.
    pub ended: Option<String>,
    /// The number of the last command that the run took.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub request: u64,
}

/// The figures of `Gradients` that belong to all tensors together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GradSummary {
    pub tensors: u32,
    pub with_grad: u32,
    pub params_pct: f64,
    /// The share of all gradient elements that are exactly zero, in percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zero_pct: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss_scale: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<u32>,
}

impl From<&Gradients> for GradSummary {
    fn from(audit: &Gradients) -> Self {
        let mut count = 0.0;
        let mut zeros = 0.0;
        for row in &audit.rows {
            if let Some(percent) = row.zero_pct {
                count += row.parameters as f64;
                zeros += row.parameters as f64 * percent;
            }
        }
        Self {
            tensors: audit.tensors,
            with_grad: audit.with_grad,
            params_pct: audit.params_pct,
            zero_pct: (count > 0.0).then_some(zeros / count),
            loss_scale: audit.loss_scale,
            skipped: audit.skipped,
        }
    }
}

/// Reads a summary as `read_throughput` reads a throughput. Summaries of older versions have no rate by wall time, so the rate is `None`.
pub(crate) fn read_finished<'de, D: Deserializer<'de>>(from: D) -> Result<Box<Finished>, D::Error> {
    let mut found = Box::<Finished>::deserialize(from)?;
    if found.clock == ENQUEUE && found.enqueue_samples_per_s.is_none() {
        found.enqueue_samples_per_s = found.samples_per_s.take();
        found.tokens_per_s = None;
    }
    Ok(found)
}
