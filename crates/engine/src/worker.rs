//! What lives on the device: model, optimizer, and the loss and gradients of the step in progress.
//!
//! # The end of a GPU's step
//!
//! `Worker::sync` asks the device again and again for 5 ms whether it is done, and gives up its core in between. After that it sleeps until the
//! driver wakes it. To be woken takes as long as several launches: polling made a step 2 to 7 % shorter.
//!
//! # How far the host runs ahead
//!
//! Where no step ends with a wait, the host would hand over steps without end: what it keeps for each of them makes the next ones slower
//! than a wait. After each such step it waits until the step [`STEPS_AHEAD`] before it is done. Steps are left in the queue meanwhile, so
//! that the device never waits for the host to wake.
//!
//! # Recorded launches
//!
//! With `train.launches = "recorded"` a GPU's third step runs and is then recorded without running (`ops::gpu::recording`); later steps replay
//! it. This works because nothing of a step comes from the host but the batch. Parameters and moments change in place, so the library's optimizer
//! is refused. Bias corrections and the loss scale live on the device. The batch is written over the recorded one, and the loss is copied
//! before the next step overwrites it. The optimizer's count of updates follows when a recording is dropped.
//!
//! Profiled steps and evidence launch as ever, on memory of their own, because a recording guards the pages that it was given. Every step
//! launches as ever while a learner's kernel is in the model. Steps of a recorded run are one phase each, and there is no ledger. On the CPU
//! device nothing is recorded.

use std::collections::VecDeque;
use std::thread::yield_now;
use std::time::{Duration, Instant};

use anyhow::{Error, Result, anyhow};
use burn::backend::Cube;
use burn::tensor::{Device, Tensor, TensorData, Transaction};
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

/// A step, or its phases in their order.
pub(crate) type PhaseTasks = &'static [fn(&mut Worker)];

/// Steps that compile every kernel, and the one that is recorded. They take longer than those that follow.
pub(crate) const TO_RECORD: u64 = 3;

/// Steps that the host may be ahead of the device where it waits for none. With one, the device waits for the host between steps.
pub(crate) const STEPS_AHEAD: usize = 2;

/// How long the host asks a GPU again and again whether it is done. To be woken up takes tens of microseconds, which is much of a
/// step of a millisecond.
const POLLED: Duration = Duration::from_millis(5);

/// A step's launches.
struct RecordedStep {
    launches: LaunchRecording,
    /// Where a replay leaves its loss, `[1, 1]`.
    loss: Tensor<2>,
    replays: i32,
}

/// A model in training.
pub struct Worker {
    pub model: Model,
    pub optimizer: Optimizer,
    pub tokens: Option<Tokens>,
    /// Of the forward passes since they were last read, oldest first; `[1, 1]` each.
    losses: Vec<Tensor<2>>,
    pub gradients: Vec<Option<Tensor<2>>>,
    learning_rate: f64,
    /// Where the run scales its loss.
    pub loss_scale: Option<LossScale>,
    pub device: Device,
    /// A GPU, which is asked whether it is done, and the ends of steps that it may not have done yet, oldest first.
    gpu: Option<WgpuSetup>,
    ahead: VecDeque<SubmissionIndex>,
    /// On a GPU that gets its launches recorded: how many steps were taken, and then the recording.
    records: bool,
    taken: u64,
    recorded: Option<RecordedStep>,
    /// What ended the run in work that has no answer of its own.
    failed: Option<Error>,
}

impl Worker {
    /// A fresh model with the seed's weights. `matrix_cores`: whether the device has some that f16 products may use.
    pub fn new(config: &RunConfig, device: &Device, matrix_cores: bool) -> Result<Self> {
        let device = device.clone().autodiff();
        let initial = weights::initial(&config.model, config.train.seed);
        let mut model = Model::new(config, &initial, &device)?;
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
            loss_scale: config.scales_loss().then(|| LossScale::new(&device)),
            records: Self::records(config, is_cpu(&device)),
            taken: 0,
            recorded: None,
            failed: None,
            device,
            gpu: None,
            ahead: VecDeque::new(),
        })
    }

    /// Makes a fresh model on an opened device, in the thread that will use it.
    pub(crate) fn maker(
        config: &RunConfig,
        opened: &OpenDevice,
    ) -> impl FnOnce() -> Result<Self> + Send + use<> {
        let (config, opened) = (config.clone(), opened.clone());
        move || {
            opened.learner.enter();
            let worker = Self::new(&config, &opened.device, opened.matrix_cores)?;
            Ok(Self {
                gpu: opened.gpu,
                ..worker
            })
        }
    }

    /// Applies knobs that keep parameters and optimizer state.
    pub fn reconfigure(&mut self, config: &RunConfig) {
        self.model.reconfigure(config);
        self.learning_rate = config.train.learning_rate;
        self.records = Self::records(config, is_cpu(&self.device));
        self.forget();
        let scale = self.loss_scale.take();
        if config.scales_loss() {
            self.loss_scale = scale.or_else(|| Some(LossScale::new(&self.device)));
        }
    }

    /// Copies a batch to the device: where a recording expects it, if there is one.
    pub fn load(&mut self, batch: &Batch) {
        match &self.tokens {
            Some(tokens) if self.recorded.is_some() => {
                recording::write(&Cube::indices(&tokens.inputs), &batch.inputs);
                recording::write(&Cube::indices(&tokens.targets), &batch.targets);
            }
            _ => self.tokens = Some(Tokens::new(batch, &self.device)),
        }
    }

    /// Whether launches are recorded: the CPU device has none.
    pub fn records(config: &RunConfig, on_cpu: bool) -> bool {
        config.records() && !on_cpu
    }

    /// What the host submits for a step: its phases, or all of it where a GPU's launches are recorded.
    pub fn tasks(config: &RunConfig, on_cpu: bool) -> PhaseTasks {
        if Self::records(config, on_cpu) {
            &[Self::step]
        } else {
            &[Self::forward, Self::backward, Self::update]
        }
    }

    /// A whole step, replayed once it is recorded. With a learner's kernel in the model it is launched: that kernel is
    /// compared with another on the host, and may be replaced at any step.
    pub fn step(&mut self) {
        if learner_kernel::any() {
            self.forget();
        }
        self.taken += 1;
        match &mut self.recorded {
            Some(step) => match step.launches.replay() {
                Ok(()) => {
                    step.replays += 1;
                    // A copy: the next step writes its loss to the same place.
                    self.losses.push(step.loss.clone() + 0.0); // [1, 1]
                }
                Err(error) => self.fail(error.context("the recorded step could not be replayed")),
            },
            None if self.records && self.taken >= TO_RECORD => self.record(),
            None => self.launch(),
        }
    }

    /// Drops the recording.
    fn forget(&mut self) {
        self.taken = 0;
        if let Some(step) = self.recorded.take() {
            // The host counted the recorded step, which did not run.
            self.optimizer.replayed(step.replays - 1);
        }
    }

    /// Keeps the first error until it is read.
    fn fail(&mut self, error: Error) {
        self.failed.get_or_insert(error);
    }

    fn launch(&mut self) {
        self.forward();
        self.backward();
        self.update();
    }

    /// Takes a step, and records its launches for the next one.
    fn record(&mut self) {
        let like = primitive::<Cube>(self.model.parameters()[0].value.clone().inner());
        let recording = LaunchRecording::new(&like, || self.launch());
        // What was recorded has not computed its loss yet.
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

    /// The forward pass, up to the loss.
    pub fn forward(&mut self) {
        let scale = self.loss_scale.as_ref();
        let tokens = self.tokens.as_ref();
        self.losses
            .extend(tokens.map(|tokens| self.model.loss(tokens, scale))); // [1, 1]
    }

    /// The backward pass: one gradient per parameter, or none where none arrived.
    pub fn backward(&mut self) {
        if let Some(loss) = self.losses.last() {
            let mut all = loss.backward();
            let parameters = self.model.parameters().into_iter();
            let gradients = parameters.map(|it| it.value.grad_remove(&mut all));
            self.gradients = gradients.collect();
        }
        // Without its history the graph can be freed.
        if let Some(loss) = self.losses.pop() {
            self.losses.push(loss.detach()); // [1, 1]
        }
    }

    /// The optimizer's update; the gradients are used up.
    pub fn update(&mut self) {
        let gradients = std::mem::take(&mut self.gradients);
        if let Some(scale) = &mut self.loss_scale {
            scale.advance(&loss_scale::to_check(&gradients));
        }
        let (parameters, scale) = (self.model.parameters_mut(), self.loss_scale.as_ref());
        self.optimizer
            .step(parameters, gradients, self.learning_rate, scale);
    }

    /// The losses of the forward passes since they were last read, oldest first. Waits for them, once for all.
    pub fn losses(&mut self) -> Result<Vec<f64>> {
        self.working()?;
        let losses = std::mem::take(&mut self.losses).into_iter();
        let add = |all: Transaction, loss: Tensor<2>| all.register(loss.inner());
        let read = losses.fold(Transaction::default(), add).try_execute();
        let read = read.map_err(|error| anyhow!("the loss could not be read: {error:?}"))?;
        let first = |data: &TensorData| data.iter::<f64>().next();
        let losses = read.iter().map(first);
        let losses: Option<Vec<f64>> = losses.collect();
        losses.ok_or_else(|| anyhow!("the loss is empty"))
    }

    /// Whether a step was left out that no smaller factor of the loss can save. Waits for a GPU.
    pub fn overflows_unscaled(&self) -> bool {
        let state = self.loss_scale.as_ref().and_then(LossScale::read);
        state.is_some_and(ScaleState::exhausted)
    }

    fn working(&mut self) -> Result<()> {
        self.failed.take().map_or(Ok(()), Err)
    }

    /// Waits for the device.
    pub fn sync(&mut self) -> Result<()> {
        self.working()?;
        if self.polled()? {
            return Ok(());
        }
        let synced = self.device.clone().inner().sync();
        synced.map_err(lost)
    }

    /// Submits what the library has collected for a GPU.
    fn flush(&self) -> Result<()> {
        let any = primitive::<Cube>(self.model.parameters()[0].value.clone().inner());
        any.client.flush().map_err(lost)
    }

    /// Ends a step that the host does not wait for: waits until a GPU has done the one [`STEPS_AHEAD`] before it.
    pub(crate) fn keep_pace(&mut self) -> Result<()> {
        let Some(gpu) = &self.gpu else {
            return Ok(());
        };
        self.flush()?;
        self.ahead.push_back(gpu.queue.submit([]));
        let too_far = (self.ahead.len() > STEPS_AHEAD).then(|| self.ahead.pop_front());
        if let Some(step) = too_far.flatten() {
            gpu.device.poll(PollType::Wait {
                submission_index: Some(step),
                timeout: None,
            })?;
        }
        Ok(())
    }

    /// Whether a GPU got done while it was asked. A loss of the device shows when the losses are read.
    fn polled(&self) -> Result<bool> {
        let Some(gpu) = &self.gpu else {
            return Ok(false);
        };
        self.flush()?;
        let began = Instant::now();
        while began.elapsed() < POLLED {
            if gpu.device.poll(PollType::Poll)?.is_queue_empty() {
                return Ok(true);
            }
            yield_now();
        }
        Ok(false)
    }
}

fn lost(error: impl std::fmt::Debug) -> Error {
    anyhow!("the device was lost: {error:?}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use protocol::config::{Knob, KnobValue, Precision};
    use protocol::{KernelSwap, KernelText};
    use tiny_llama::data::BatchSource;
    use tiny_llama::ops::learner_kernel::LearnerKernels;

    #[test]
    fn a_host_that_never_waits_stays_near_the_device() {
        let Some((device, gpu)) = testing::any_gpu_and_queue() else {
            return;
        };
        let mut config = RunConfig::version("v1").expect("ours");
        (config.model.layers, config.train.context) = (1, 16);
        let source = BatchSource::new(&config);
        let mut worker = Worker::new(&config, &device, false).expect("it fits");
        worker.gpu = Some(gpu);
        let mut ahead = Vec::new();
        for step in 0..6 {
            worker.load(&source.batch(step));
            worker.step();
            worker.keep_pace().expect("the device works");
            ahead.push(worker.ahead.len());
        }
        assert_eq!(ahead, [1, STEPS_AHEAD, 2, 2, 2, 2]);
        let losses = worker.losses().expect("the device works");
        assert_eq!(losses.len(), 6);
    }

    #[test]
    fn replayed_steps_train_as_launched_ones_do() {
        let Some(device) = testing::any_gpu() else {
            return;
        };
        // In parts: 320 rows, 192 of them first.
        for (version, precision, loss, context) in
            [("v1", "f32", "composed", 16), ("v3", "f16", "in-parts", 40)]
        {
            let run = |launches| {
                let mut config = RunConfig::version(version).expect("ours");
                (config.model.layers, config.train.context) = (1, context);
                let knobs = [
                    ("train.optimizer", "fused"),
                    ("model.loss", loss),
                    ("train.precision", precision),
                    ("train.launches", launches),
                ];
                for (path, value) in knobs {
                    let knob = Knob::find(path).expect("known");
                    let set = knob.set(&mut config, &KnobValue::from_word(value));
                    set.expect("valid");
                }
                assert_eq!(config.problems(), []);
                let (source, device) = (BatchSource::new(&config), device.clone());
                let mut worker = Worker::new(&config, &device, false).expect("it fits");
                let mut losses = Vec::new();
                // Parameters that are left alone for a while stay as young as they are.
                for (at, gradient) in ["attached", "detached-norm", "attached"].iter().enumerate() {
                    let knob = Knob::find("model.gradient").expect("known");
                    let set = knob.set(&mut config, &KnobValue::from_word(gradient));
                    set.expect("valid");
                    worker.reconfigure(&config);
                    for step in 0..5 {
                        worker.load(&source.batch(at as u64 * 5 + step));
                        worker.step();
                        losses.push(worker.losses().expect("the device works"));
                    }
                }
                let recorded = worker.recorded.is_some();
                // Kernels that were proven at no size, so that no test's model takes them.
                let swap = KernelSwap {
                    part: "mlp.activation".to_owned(),
                    kernels: vec![KernelText::default(); 2],
                    ..KernelSwap::default()
                };
                let learner = LearnerKernels::default();
                learner.enter();
                learner.install(swap).expect("a part");
                worker.step();
                assert!(worker.recorded.is_none(), "its kernels may change");
                learner.clear(None);
                (losses, recorded)
            };
            let (launched, recorded) = run("each-step");
            assert!(!recorded && launched.iter().all(|step| step.len() == 1));
            assert_eq!(run("recorded"), (launched, true));
        }
    }

    #[test]
    fn lengths_of_gradients_are_told_without_the_loss_scale() {
        let device = Device::flex();
        let mut config = RunConfig::version("v1").expect("ours");
        (config.model.layers, config.train.context) = (1, 16);
        config.train.precision = Precision::F16;
        config.train.optimizer = protocol::config::Optimizer::Fused;
        assert_eq!(config.problems(), []);
        let mut worker = Worker::new(&config, &device, false).expect("it fits");
        worker.load(&BatchSource::new(&config).batch(0));
        let [small, large] = [1024.0, 4096.0].map(|factor| {
            worker.loss_scale = Some(LossScale::at(factor, &device));
            worker.forward();
            worker.backward();
            crate::audit::gradients(&worker).norm.0
        });
        assert!((small / large - 1.0).abs() < 0.01, "{small} and {large}");
    }

    /// The gradients that loss scaling looks at are finite if all are, whatever the factor.
    #[test]
    fn gradients_that_tell_of_an_overflow_tell_of_every_one() {
        let adapter = testing::any_gpu();
        let mut devices = vec![(Device::flex(), false)];
        devices.extend(
            adapter
                .iter()
                .map(|it| (it.clone(), testing::has_matrix_cores())),
        );
        for (device, matrix_cores) in devices {
            for version in ["v1", "v3"] {
                let mut config = RunConfig::version(version).expect("ours");
                (config.model.layers, config.train.context) = (2, 16);
                config.train.precision = Precision::F16;
                config.train.optimizer = protocol::config::Optimizer::Fused;
                assert_eq!(config.problems(), []);
                let mut worker = Worker::new(&config, &device, matrix_cores).expect("it fits");
                worker.load(&BatchSource::new(&config).batch(0));
                let mut counts = [0, 0];
                for power in (12..36).step_by(2) {
                    worker.loss_scale = Some(LossScale::at(2f32.powi(power), &device));
                    worker.forward();
                    worker.backward();
                    let finite = |all: &[&Tensor<2>]| {
                        let finite =
                            |it: &&Tensor<2>| it.to_data().iter::<f32>().all(f32::is_finite);
                        all.iter().all(finite)
                    };
                    let all: Vec<_> = worker.gradients.iter().flatten().collect();
                    let told = finite(&loss_scale::to_check(&worker.gradients));
                    assert_eq!(told, finite(&all), "{version} at 2^{power}");
                    counts[usize::from(told)] += 1;
                }
                assert!(
                    counts.iter().all(|count| *count > 0),
                    "{version}: {counts:?}"
                );
            }
        }
    }
}
