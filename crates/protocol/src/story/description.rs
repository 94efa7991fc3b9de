//! The description of a run when it begins.

use crate::config::{Matmul, Precision, RunConfig, Sync};
use crate::stats::roofline::bounding;
use crate::units::digits;
use crate::{Device, ForeignRun, Roof, RunSpec, Slot, Started};

/// A step that takes longer than this is announced before it is made, in seconds.
const LONG_STEP_S: f64 = 10.0;

/// The description of a run when it begins. Our engine tells each part. A run of another program lacks the parts that the program does not
/// know, and the figures that follow from them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunDescription {
    /// The stage's number; 0 when the run belongs to none.
    pub stage: u32,
    /// `broken`, `fixed`, `custom`, or what another program calls its run.
    pub name: String,
    pub slot: Slot,
    /// Which of several processes that train together.
    pub rank: Option<u32>,
    pub config: Option<RunConfig>,
    /// Content hash of the configuration.
    pub hash: Option<String>,
    pub device: Option<Device>,
    pub parameters: Option<u64>,
    pub tensors: Option<u32>,
    /// Loss in nats of a model that gives each token the same probability.
    pub ln_vocab: Option<f64>,
    /// Lowest reachable loss in nats.
    pub entropy: Option<f64>,
    pub forward_flops: Option<f64>,
    /// The measured peaks of the device.
    pub roof: Option<Box<Roof>>,
    /// Products run on matrix cores.
    pub matrix_cores: bool,
    /// Steps that were asked for; none: it runs until it is stopped.
    pub steps: Option<u64>,
    /// Step at which it begins.
    pub from_step: u64,
    /// One of two that are measured in turns.
    pub paired: bool,
    /// It trains beside a run of the other slot and never goes on with that run's weights.
    pub apart: bool,
    /// The configuration is not to be read off a recording or a report.
    pub sealed: bool,
    /// The number of the command that asked for it; 0 where there was none.
    pub request: u64,
}

impl From<&Started> for RunDescription {
    fn from(started: &Started) -> Self {
        let run = started.run.clone();
        Self {
            stage: run.stage,
            name: run.variant,
            slot: run.slot,
            rank: None,
            config: Some(run.config),
            hash: Some(started.config.clone()),
            device: Some(started.device.clone()),
            parameters: Some(started.parameters),
            tensors: Some(started.tensors),
            ln_vocab: Some(started.ln_vocab),
            entropy: started.entropy,
            forward_flops: Some(started.forward_flops),
            roof: started.roof.clone(),
            matrix_cores: started.matrix_cores,
            steps: run.steps,
            from_step: started.from_step,
            paired: started.paired,
            apart: false,
            sealed: run.sealed,
            request: started.request,
        }
    }
}

impl From<&ForeignRun> for RunDescription {
    fn from(run: &ForeignRun) -> Self {
        Self {
            name: run.name.clone(),
            slot: run.slot,
            rank: run.rank,
            device: run.device.clone(),
            parameters: run.parameters,
            tensors: run.tensors,
            ln_vocab: run.classes.map(|classes| (classes.max(1) as f64).ln()),
            from_step: run.from_step,
            apart: run.apart,
            ..Self::default()
        }
    }
}

impl RunDescription {
    /// Returns the request that gives this run; `None` for a run of another program.
    pub fn spec(&self) -> Option<RunSpec> {
        Some(RunSpec {
            stage: self.stage,
            variant: self.name.clone(),
            slot: self.slot,
            config: self.config.clone()?,
            steps: self.steps,
            sealed: self.sealed,
        })
    }

    /// Returns the event with which the engine begins this run; `None` if a part is missing that the engine always tells.
    pub fn started(&self) -> Option<Started> {
        Some(Started {
            run: self.spec()?,
            config: self.hash.clone()?,
            device: self.device.clone()?,
            parameters: self.parameters?,
            tensors: self.tensors?,
            ln_vocab: self.ln_vocab?,
            entropy: self.entropy,
            forward_flops: self.forward_flops?,
            from_step: self.from_step,
            roof: self.roof.clone(),
            paired: self.paired,
            matrix_cores: self.matrix_cores,
            request: self.request,
        })
    }

    /// Returns true if both runs have one configuration, slot, stage and device.
    pub fn is_like(&self, other: &Self) -> bool {
        (&self.hash, &self.device, self.rank) == (&other.hash, &other.device, other.rank)
            && (self.stage, self.slot) == (other.stage, other.slot)
            && (self.hash.is_some() || self.name == other.name)
    }

    /// Returns a sentence about the time of a step of this configuration if the step takes long on the device.
    pub fn long_step(&self, config: &RunConfig) -> Option<String> {
        let roof = bounding(self.roof.as_deref()?, self.matrix_cores)?;
        let seconds = config.forecast_s(&roof);
        let tflop = 3.0 * config.forward_flops() / 1e12;
        (seconds >= LONG_STEP_S).then(|| {
            format!(
                "a step takes about {} s on this device: {} TFLOP",
                digits(seconds, 2),
                digits(tflop, 3)
            )
        })
    }

    /// Returns true if another program makes the steps of the run, which has no configuration of ours then.
    pub fn is_foreign(&self) -> bool {
        self.config.is_none()
    }

    /// Returns true if the run has this configuration.
    pub fn has(&self, config: &RunConfig) -> bool {
        self.config.as_ref() == Some(config)
    }

    /// Returns true if the host waits for the device once a step, at its end. The phases are then times of submitting.
    pub fn waits_once(&self) -> bool {
        let config = self.config.as_ref();
        config.is_some_and(|config| config.measure.sync == Sync::PerStep)
    }

    /// Returns true if the run computes on our CPU device.
    pub fn on_cpu(&self) -> bool {
        let device = self.device.as_ref();
        device.is_some_and(|device| device.kind == "cpu")
    }

    /// The number format of the products and whether it is emulated; `None` for plain f32, and where it is not known.
    pub fn format(&self) -> Option<String> {
        let config = self.config.as_ref()?;
        let short = config.train.precision;
        let said = match (short, self.matrix_cores) {
            (Precision::F32, _) if config.model.matmul != Matmul::Split => return None,
            (Precision::F32, false) => "f32, not split: no matrix cores here".to_owned(),
            (Precision::F32, true) => "f32 as two f16".to_owned(),
            (_, false) => format!("{short}, emulated: numbers true, speed not"),
            (_, true) => short.to_string(),
        };
        Some(said)
    }
}
