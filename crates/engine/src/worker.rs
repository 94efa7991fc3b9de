//! The worker: the model on its device, the optimizer, and the loss and gradients of the step in progress.
//!
//! # The end of a GPU's step
//!
//! `Worker::sync` polls the device for 5 ms and yields its core between two polls. After that it sleeps until the driver wakes it. Waking up
//! takes as long as several launches: polling made a step 2 to 7 % shorter.
//!
//! # How far the host runs ahead
//!
//! Without a wait at the end of steps, the host would run far ahead of the device, and what it keeps for each queued step would slow the next
//! steps down more than a wait does. After a step without a wait the host therefore waits until the step [`STEPS_AHEAD`] before it is done.
//! The steps that are still in the queue keep the device busy while the host wakes up.
//!
//! # Recorded launches
//!
//! With `train.launches = "recorded"` a GPU's third step runs and is then recorded without running (`ops::gpu::recording`); later steps replay
//! it. This works because only the batch comes from the host in each step. Parameters and moments change in place, so the library's optimizer
//! is refused. Bias corrections and the loss scale live on the device. Each batch is written over the recorded one, and the loss is copied
//! before the next step overwrites it. The optimizer's count of updates is corrected when a recording is dropped.
//!
//! Profiled steps and evidence are launched without a recording, in other memory, because a recording guards the pages that it was given.
//! Every step is launched while a learner's kernel is in the model. A recorded step is one phase, so the run has no ledger. On the CPU device
//! nothing is recorded.

use std::collections::VecDeque;
use std::thread::yield_now;
use std::time::{Duration, Instant};

use anyhow::{Error, Result, anyhow};
use burn::backend::Cube;
use burn::tensor::{Device, Tensor, TensorData, Transaction};
use burn_cubecl::tensor::CubeTensor;
use burn_wgpu::WgpuSetup;
use burn_wgpu::wgpu::{PollType, SubmissionIndex};

use super::devices::OpenDevice;
use protocol::config::RunConfig;
use tiny_llama::data::Batch;
use tiny_llama::model::{Model, Tokens, weights};
use tiny_llama::ops::backend::{Kernels, is_cpu};
use tiny_llama::ops::gpu::recording::{self, LaunchRecording};
use tiny_llama::ops::learner_kernel;
use tiny_llama::ops::loss_scale::{self, LossScale, ScaleState};
use tiny_llama::ops::optimizer::Optimizer;
use tiny_llama::ops::primitive;

/// The tasks of a step: its three phases in order, or the whole step.
pub(crate) type PhaseTasks = &'static [fn(&mut Worker)];

/// The number of steps until a recording replays: two compile every kernel, and the third is recorded. They take longer than later steps.
pub(crate) const TO_RECORD: u64 = 3;

/// The number of steps that the host may be ahead of the device if it does not wait for each step. If it were one, the device would wait for
/// the host between steps.
pub(crate) const STEPS_AHEAD: usize = 2;

/// The time for which the host polls a GPU before it sleeps. Waking up takes tens of microseconds, which is much of a step of a millisecond.
const POLL_TIME: Duration = Duration::from_millis(5);

/// The recorded launches of a step.
struct RecordedStep {
    launches: LaunchRecording,
    /// The place where a replay leaves its loss, `[1, 1]`.
    loss: Tensor<2>,
    replays: i32,
}

/// A model in training.
pub struct Worker {
    pub model: Model,
    pub optimizer: Optimizer,
    pub tokens: Option<Tokens>,
    /// The losses of the forward passes since they were last read, oldest first; `[1, 1]` each.
    losses: Vec<Tensor<2>>,
    /// One gradient for each parameter, `None` if the backward pass did not reach it. Empty outside a step.
    pub gradients: Vec<Option<Tensor<2>>>,
    learning_rate: f64,
    /// The factor of the loss; `None` if the run does not scale its loss.
    pub loss_scale: Option<LossScale>,
    pub device: Device,
    /// The GPU to poll; `None` on the CPU and on a driver that computes on the cores.
    gpu: Option<WgpuSetup>,
    /// The ends of steps that the GPU may not have done yet, oldest first.
    ahead: VecDeque<SubmissionIndex>,
    /// True on a GPU if the configuration asks for recorded launches.
    records: bool,
    /// The number of steps taken since the last recording was dropped.
    taken: u64,
    recorded: Option<RecordedStep>,
    /// The first error of a task that returns none. The next `sync` or reading of losses returns it.
    failure: Option<Error>,
}

impl Worker {
    /// Makes a fresh model with the weights of the seed. `matrix_cores` is true if f16 products may use the device's matrix cores.
    ///
    /// # Errors
    /// Fails when the model could not be built.
    pub fn new(config: &RunConfig, device: &Device, matrix_cores: bool) -> Result<Self> {
        let autodiff = device.clone().autodiff();
        let initial = weights::initial(&config.model, config.train.seed);
        let mut model = Model::new(config, &initial, &autodiff)?;
        if matrix_cores {
            model = model.with_matrix_cores(config);
        }
        let optimizer = Optimizer::new(config.train.optimizer, model.parameters().len());
        let learning_rate = config.train.learning_rate;
        Ok(Self {
            model,
            optimizer,
            tokens: None,
            losses: Vec::new(),
            gradients: Vec::new(),
            learning_rate,
            loss_scale: config.scales_loss().then(|| LossScale::new(&autodiff)),
            records: Self::records(config, is_cpu(&autodiff)),
            taken: 0,
            recorded: None,
            failure: None,
            device: autodiff,
            gpu: None,
            ahead: VecDeque::new(),
        })
    }

    /// Returns a function that makes a fresh model on an opened device. Call it in the thread that will use the model.
    pub(crate) fn maker(
        config: &RunConfig,
        opened: &OpenDevice,
    ) -> impl FnOnce() -> Result<Self> + Send + use<> {
        let config = config.clone();
        let opened = opened.clone();
        move || {
            opened.learner.enter();
            let worker = Self::new(&config, &opened.device, opened.matrix_cores)?;
            Ok(Self {
                gpu: opened.gpu,
                ..worker
            })
        }
    }

    /// Applies knobs that keep the parameters and the optimizer's state.
    pub fn reconfigure(&mut self, config: &RunConfig) {
        self.model.reconfigure(config);
        self.learning_rate = config.train.learning_rate;
        self.records = Self::records(config, is_cpu(&self.device));
        self.drop_recording();
        if !config.scales_loss() {
            self.loss_scale = None;
        } else if self.loss_scale.is_none() {
            self.loss_scale = Some(LossScale::new(&self.device));
        }
    }

    /// Copies a batch to the device. A recorded step reads it from the place of the recorded batch.
    pub fn load(&mut self, batch: &Batch) {
        match &self.tokens {
            Some(tokens) if self.recorded.is_some() => {
                recording::write(&Cube::indices(&tokens.inputs), &batch.inputs);
                recording::write(&Cube::indices(&tokens.targets), &batch.targets);
            }
            _ => self.tokens = Some(Tokens::new(batch, &self.device)),
        }
    }

    /// Returns true if the launches of a step are recorded. The CPU device has no launches.
    pub fn records(config: &RunConfig, on_cpu: bool) -> bool {
        config.records() && !on_cpu
    }

    /// Returns the tasks that the host submits for a step: one whole step if launches are recorded, and three phases otherwise.
    pub fn tasks(config: &RunConfig, on_cpu: bool) -> PhaseTasks {
        if Self::records(config, on_cpu) {
            &[Self::step]
        } else {
            &[Self::forward, Self::backward, Self::update]
        }
    }

    /// Takes a whole step, or replays it once it is recorded. A step with a learner's kernel is always launched, because that kernel is
    /// compared with another on the host and may be replaced at any step.
    pub fn step(&mut self) {
        if learner_kernel::any() {
            self.drop_recording();
        }
        self.taken += 1;
        match &mut self.recorded {
            Some(step) => match step.launches.replay() {
                Ok(()) => {
                    step.replays += 1;
                    // The loss is copied, because the next step writes its own over it.
                    self.losses.push(step.loss.clone() + 0.0); // [1, 1]
                }
                Err(error) => self.fail(error.context("the recorded step could not be replayed")),
            },
            None if self.records && self.taken >= TO_RECORD => self.record(),
            None => self.launch(),
        }
    }

    /// Drops the recording, if there is one.
    fn drop_recording(&mut self) {
        self.taken = 0;
        if let Some(step) = self.recorded.take() {
            // The host counted one update for the recorded step, which did not run.
            self.optimizer.count_replays(step.replays - 1);
        }
    }

    /// Keeps the first error until [`Self::check_failure`] returns it.
    fn fail(&mut self, error: Error) {
        self.failure.get_or_insert(error);
    }

    fn launch(&mut self) {
        self.forward();
        self.backward();
        self.update();
    }

    /// Takes a step, and records its launches for the next one.
    fn record(&mut self) {
        let parameter = self.any_parameter();
        let recording = LaunchRecording::new(&parameter, || self.launch());
        // The last loss is that of the recorded step, which has not been computed.
        match (recording, self.losses.pop()) {
            (Ok(launches), Some(loss)) => {
                self.recorded = Some(RecordedStep {
                    launches,
                    loss,
                    replays: 0,
                });
            }
            (Ok(_), None) => self.fail(anyhow!("the recorded step has no loss")),
            (Err(error), _) => self.fail(
                error.context("this step cannot be recorded; write launches = \"each-step\""),
            ),
        }
    }

    /// Makes the forward pass, up to the loss.
    pub fn forward(&mut self) {
        let scale = self.loss_scale.as_ref();
        let tokens = self.tokens.as_ref();
        self.losses
            .extend(tokens.map(|tokens| self.model.loss(tokens, scale))); // [1, 1]
    }

    /// Makes the backward pass of the last loss, and keeps a gradient for each parameter.
    pub fn backward(&mut self) {
        if let Some(loss) = self.losses.pop() {
            let mut gradients = loss.backward();
            self.gradients = self
                .model
                .parameters()
                .into_iter()
                .map(|parameter| parameter.value.grad_remove(&mut gradients))
                .collect();
            // The loss is kept without its history, so that the graph can be freed.
            self.losses.push(loss.detach()); // [1, 1]
        }
    }

    /// Makes the optimizer's update, which uses up the gradients.
    pub fn update(&mut self) {
        let gradients = std::mem::take(&mut self.gradients);
        if let Some(scale) = &mut self.loss_scale {
            scale.advance(&loss_scale::to_check(&gradients));
        }
        let parameters = self.model.parameters_mut();
        let scale = self.loss_scale.as_ref();
        self.optimizer
            .step(parameters, gradients, self.learning_rate, scale);
    }

    /// Returns the losses of the forward passes since they were last read, oldest first. This waits for the device once.
    ///
    /// # Errors
    /// Fails when the device was lost, or an earlier task failed.
    pub fn losses(&mut self) -> Result<Vec<f64>> {
        self.check_failure()?;
        let mut reading = Transaction::default();
        for loss in std::mem::take(&mut self.losses) {
            reading = reading.register(loss.inner());
        }
        let losses = reading
            .try_execute()
            .map_err(|error| anyhow!("the loss could not be read: {error:?}"))?;
        let value = |data: &TensorData| data.iter::<f64>().next();
        let values: Option<Vec<f64>> = losses.iter().map(value).collect();
        values.ok_or_else(|| anyhow!("the loss is empty"))
    }

    /// Returns true if a gradient overflowed although the loss was not scaled up any more: no smaller factor can save such a step. This waits
    /// for a GPU.
    pub fn overflows_unscaled(&self) -> bool {
        self.loss_scale
            .as_ref()
            .and_then(LossScale::read)
            .is_some_and(ScaleState::exhausted)
    }

    /// Returns the error of an earlier task, if there was one.
    fn check_failure(&mut self) -> Result<()> {
        self.failure.take().map_or(Ok(()), Err)
    }

    /// Waits for the device.
    ///
    /// # Errors
    /// Fails when the device was lost, or an earlier task failed.
    pub fn sync(&mut self) -> Result<()> {
        self.check_failure()?;
        if self.is_done_while_polled()? {
            return Ok(());
        }
        self.device.clone().inner().sync().map_err(device_lost)
    }

    /// Returns a parameter as cubecl's tensor, through which its client is reached.
    fn any_parameter(&self) -> CubeTensor {
        primitive::<Cube>(self.model.parameters()[0].value.clone().inner())
    }

    /// Submits the launches that the library has collected for a GPU.
    fn flush(&self) -> Result<()> {
        self.any_parameter().client.flush().map_err(device_lost)
    }

    /// Waits until a GPU has done the step [`STEPS_AHEAD`] before this one. Call it at the end of a step that the host does not wait for.
    ///
    /// # Errors
    /// Fails when the device was lost.
    pub(crate) fn keep_pace(&mut self) -> Result<()> {
        let Some(gpu) = &self.gpu else {
            return Ok(());
        };
        self.flush()?;
        self.ahead.push_back(gpu.queue.submit([]));
        if self.ahead.len() > STEPS_AHEAD {
            gpu.device.poll(PollType::Wait {
                submission_index: self.ahead.pop_front(),
                timeout: None,
            })?;
        }
        Ok(())
    }

    /// Polls a GPU for a while, and returns true if it was done in time. The loss of the device is reported when the losses are read.
    fn is_done_while_polled(&self) -> Result<bool> {
        let Some(gpu) = &self.gpu else {
            return Ok(false);
        };
        self.flush()?;
        let began = Instant::now();
        while began.elapsed() < POLL_TIME {
            if gpu.device.poll(PollType::Poll)?.is_queue_empty() {
                return Ok(true);
            }
            yield_now();
        }
        Ok(false)
    }
}

/// Returns the error for a device that is gone.
fn device_lost(error: impl std::fmt::Debug) -> Error {
    anyhow!("the device was lost: {error:?}")
}

#[cfg(test)]
mod tests;
