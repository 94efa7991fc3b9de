//! The description of a run when it begins.

use crate::config::{Matmul, Precision, RunConfig, Sync};
use crate::stats::roofline::{better, bounding};
use crate::units::digits;
use crate::{Device, ForeignRun, Peaks, RunSpec, Slot, Started};

/// The length of a step in seconds from which the step is announced before it is made.
const LONG_STEP_S: f64 = 10.0;

/// The description of a run when it begins. Our engine reports every part. A run of another program lacks the parts that the program
/// does not report, and the figures that need them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunDescription {
    /// The stage's number; 0 when the run belongs to none.
    pub stage: u32,
    /// The variant, `broken`, `fixed` or `custom`, or another program's name for its run.
    pub name: String,
    pub slot: Slot,
    /// The number of the process, if several train together.
    pub rank: Option<u32>,
    pub config: Option<RunConfig>,
    /// The hash of the configuration's content.
    pub hash: Option<String>,
    pub device: Option<Device>,
    pub parameters: Option<u64>,
    pub tensors: Option<u32>,
    /// The loss in nats of a model that gives each token the same probability.
    pub ln_vocab: Option<f64>,
    /// The entropy rate of the data in nats, below which no loss can stay.
    pub entropy: Option<f64>,
    pub forward_flops: Option<f64>,
    /// The measured peaks of the device.
    pub peaks: Option<Box<Peaks>>,
    /// True if products run on matrix cores.
    pub matrix_cores: bool,
    /// The number of steps to make; `None` for a run that goes on until it is stopped.
    pub steps: Option<u64>,
    /// The step at which the run begins.
    pub from_step: u64,
    /// True for one of two runs that are measured in turns.
    pub paired: bool,
    /// True if the run trains beside a run of the other slot and never goes on with that run's weights.
    pub apart: bool,
    /// True for a mystery: recordings and reports must not show the configuration.
    pub sealed: bool,
    /// The number of the command that asked for the run; 0 if it had none.
    pub request: u64,
}

impl From<&Started> for RunDescription {
    fn from(started: &Started) -> Self {
        let run = started.run.clone();
        Self {
            stage: run.stage,
            name: run.variant,
            slot: run.slot,
            config: Some(run.config),
            hash: Some(started.config.clone()),
            device: Some(started.device.clone()),
            parameters: Some(started.parameters),
            tensors: Some(started.tensors),
            ln_vocab: Some(started.ln_vocab),
            entropy: started.entropy,
            forward_flops: Some(started.forward_flops),
            peaks: started.peaks.clone(),
            matrix_cores: started.matrix_cores,
            steps: run.steps,
            from_step: started.from_step,
            paired: started.paired,
            sealed: run.sealed,
            request: started.request,
            ..Self::default()
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
    /// Takes peaks that were measured since the run began, if the run is on this device. Of two peaks the higher one stays.
    pub(super) fn update_peaks(&mut self, device: &Device, peaks: &Peaks) {
        if self.device.as_ref() == Some(device) {
            let before = self
                .peaks
                .take()
                .map_or_else(|| peaks.clone(), |before| *before);
            self.peaks = Some(Box::new(better(before, peaks.clone())));
        }
    }

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

    /// Returns the event with which the engine begins this run; `None` if a part is missing that the engine always reports.
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
            peaks: self.peaks.clone(),
            paired: self.paired,
            matrix_cores: self.matrix_cores,
            request: self.request,
        })
    }

    /// Returns true if both runs have equal configurations, and one slot, stage, device and rank.
    pub fn is_like(&self, other: &Self) -> bool {
        (&self.hash, &self.device, self.rank) == (&other.hash, &other.device, other.rank)
            && (self.stage, self.slot) == (other.stage, other.slot)
            && (self.hash.is_some() || self.name == other.name)
    }

    /// Returns a sentence about the time of a step of `config` on this run's device; `None` if the step is short, or if the device's peaks
    /// are not known.
    pub fn long_step(&self, config: &RunConfig) -> Option<String> {
        let peaks = bounding(self.peaks.as_deref()?, self.matrix_cores)?;
        let seconds = config.forecast_s(&peaks);
        let tflop = 3.0 * config.forward_flops() / 1e12;
        (seconds >= LONG_STEP_S).then(|| {
            format!(
                "a step takes about {} s on this device: {} TFLOP",
                digits(seconds, 2),
                digits(tflop, 3)
            )
        })
    }

    /// Returns true if another program makes the steps of the run. Such a run has no configuration.
    pub fn is_foreign(&self) -> bool {
        self.config.is_none()
    }

    /// Returns true if the run has this configuration.
    pub fn has(&self, config: &RunConfig) -> bool {
        self.config.as_ref() == Some(config)
    }

    /// Returns true if the host waits for the device once a step, at its end. The phases are then times of submitting.
    pub fn waits_once(&self) -> bool {
        self.config
            .as_ref()
            .is_some_and(|config| config.measure.sync == Sync::PerStep)
    }

    /// Returns true if the run computes on our CPU device.
    pub fn on_cpu(&self) -> bool {
        self.device
            .as_ref()
            .is_some_and(|device| device.kind == "cpu")
    }

    /// Returns a text about the number format of the products, which also names an emulation; `None` for plain f32, and if the format is not
    /// known.
    pub fn format(&self) -> Option<String> {
        let config = self.config.as_ref()?;
        let precision = config.train.precision;
        if precision == Precision::F32 && config.model.matmul != Matmul::Split {
            return None;
        }
        Some(match precision {
            Precision::F32 if self.matrix_cores => "f32 as two f16".to_owned(),
            Precision::F32 => "f32, not split: no matrix cores here".to_owned(),
            _ if self.matrix_cores => precision.to_string(),
            _ => format!("{precision}, emulated: numbers true, speed not"),
        })
    }
}
