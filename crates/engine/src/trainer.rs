//! One training run. It takes steps, times them as the configuration asks, profiles some of them, and reports.
//!
//! Every sync mode has three clocks. The first is the time to submit a step's work, summed over the phases without any wait. The second is the
//! time of that step up to its sync. The third is the sum of device times of the latest profiled step. Some `Step` events carry all three times
//! of one step, so that the ledger shows one step. On the CPU the third comes from the device thread; a GPU reports it under the profiler only.
//!
//! A headline time comes from steps after warm-up that were synchronised and not profiled. Profiled steps are marked and count in no statistic.

mod inspection;
mod statistics;
mod summary;
mod timing;

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::allocator;
use super::compile_ahead::CompileAhead;
use super::devices::OpenDevice;
use super::observer::Compiling;
use super::queue::Queue;
use super::wire::EventSender;
use super::worker::{TO_RECORD, Worker};
use protocol::config::{RunConfig, Sync};
use protocol::stats::roofline;
use protocol::story::{RunDescription, RunStory};
use protocol::{Device, Event, Num, Peaks, RunSpec, Slot, Started, Step};
use statistics::Statistics;
use tiny_llama::data::BatchSource;
use tiny_llama::ops::format::Format;

/// The shortest time between two profiles.
const PROFILE_PAUSE: Duration = Duration::from_secs(4);
/// The shortest time between two throughput reports.
const REPORT_PAUSE: Duration = Duration::from_millis(250);
/// The shortest time between two step lines of an endless run.
const STEP_PAUSE: Duration = Duration::from_millis(50);
/// The number of first steps of an endless run that are all reported.
const ALL_REPORTED: u64 = 200;
/// The number of steps before the first profile on a GPU, whose clock rises with work.
const FIRST_ON_GPU: u64 = 12;
/// The largest number of kernel rows in the summary.
const TOP: usize = 40;

/// Returns the event for the start of a run with a fresh model. `request` is the number of the command that asked for the run.
///
/// # Errors
/// Fails when the device thread ended.
pub(crate) fn start_event(
    request: u64,
    spec: &RunSpec,
    opened: &OpenDevice,
    queue: &mut Queue,
    source: &BatchSource,
) -> Result<Started> {
    let config = &spec.config;
    Ok(Started {
        run: spec.clone(),
        config: config.hash(),
        device: opened.info.clone(),
        parameters: config.parameters(),
        tensors: queue.ask(|worker| worker.model.parameters().len() as u32)?,
        ln_vocab: config.ln_vocab(),
        entropy: Some(source.entropy()),
        forward_flops: config.forward_flops(),
        from_step: 0,
        peaks: opened.peaks.clone().map(Box::new),
        paired: false,
        matrix_cores: Format::for_run(config, opened.matrix_cores).on_matrix_cores(),
        request,
    })
}

/// Reports that a run begins. If one step will take long, a warning comes first.
pub(crate) fn announce(started: Started, outlet: &EventSender) {
    let description = RunDescription::from(&started);
    if let Some(warning) = description.long_step(&started.run.config) {
        outlet.log("warn", warning);
    }
    outlet.send(Event::Started(started));
}

/// Returns the device's peaks that bound this run's products; `None` if the device was not measured.
fn bounding_peaks(config: &RunConfig, opened: &OpenDevice) -> Option<Peaks> {
    let format = Format::for_run(config, opened.matrix_cores);
    roofline::bounding(opened.peaks.as_ref()?, format.on_matrix_cores())
}

/// A run in progress.
pub(crate) struct Trainer {
    pub spec: RunSpec,
    /// The number of the last command that started or changed the run.
    pub request: u64,
    /// The number of the last command that asked for a profile of the next step; `None` if none did.
    pub profile_request: Option<u64>,
    pub stats: Statistics,
    /// The time at which the present pause began; `None` while the run goes on.
    pub paused_since: Option<Instant>,
    /// The device. Peaks that are due are measured after the first loss, so that nobody waits for them before it.
    opened: OpenDevice,
    queue: Queue,
    source: BatchSource,
    outlet: EventSender,
    /// A profile counts if the steps around it differ by at most this share.
    max_difference: f64,
    /// The figures of the run since it began or its knobs changed.
    story: RunStory,
    /// Optimizer steps so far, profiled ones included.
    step: u64,
    /// The steps whose losses were not read yet.
    pending: Vec<Step>,
    /// The first step whose loss or gradient was not finite.
    bad_step: Option<u64>,
    /// The gradient that overflowed although the loss was no longer scaled up.
    overflowed: Option<String>,
    loss_last: f64,
    began: Instant,
    last_report: Instant,
    last_step_line: Instant,
    compiling: Option<Arc<Compiling>>,
    /// Compiles kernels ahead of their turn until the first step was taken.
    compile_ahead: Option<CompileAhead>,
    /// The bytes that the process used before the run, such as those of a device that another run opened.
    memory_before: u64,
    /// The reason why the run ended early.
    end_reason: Option<String>,
}

impl Trainer {
    /// Returns true if the run computes on the queued CPU device.
    pub(crate) fn on_cpu(&self) -> bool {
        self.opened.queued
    }

    /// Returns the device that the run computes on.
    pub(crate) fn device(&self) -> &Device {
        &self.opened.info
    }

    /// Builds the model on the device and reports that the run started.
    ///
    /// # Errors
    /// Fails when the model could not be built, or the device thread ended.
    pub(crate) fn new(
        request: u64,
        spec: RunSpec,
        opened: OpenDevice,
        outlet: EventSender,
    ) -> Result<Self> {
        allocator::reset_peak();
        let memory_before = allocator::current();
        let gpu = opened.gpu.clone();
        let compile_ahead = gpu.map(|gpu| CompileAhead::begin(gpu.device));
        let queue = Queue::new(opened.queued, Worker::maker(&spec.config, &opened))?;
        let source = BatchSource::new(&spec.config);
        let now = Instant::now();
        let compiling = (!opened.queued).then(|| Arc::new(Compiling::new(outlet.clone())));
        let mut trainer = Self {
            story: RunStory::default(),
            spec,
            request,
            profile_request: None,
            stats: Statistics::default(),
            paused_since: None,
            opened,
            queue,
            source,
            outlet,
            max_difference: inspection::AGREEMENT,
            step: 0,
            pending: Vec::new(),
            bad_step: None,
            overflowed: None,
            loss_last: f64::NAN,
            began: now,
            last_report: now - REPORT_PAUSE,
            last_step_line: now - STEP_PAUSE,
            compiling,
            compile_ahead,
            memory_before,
            end_reason: None,
        };
        trainer.announce()?;
        trainer.began = Instant::now();
        Ok(trainer)
    }

    fn announce(&mut self) -> Result<()> {
        let mut started = start_event(
            self.request,
            &self.spec,
            &self.opened,
            &mut self.queue,
            &self.source,
        )?;
        started.from_step = self.step;
        self.story = RunStory::new((&started).into());
        announce(started, &self.outlet);
        Ok(())
    }

    /// Continues with changed knobs that keep the parameters. If a loss that was not read yet is not finite, the run ends instead, and its
    /// summary answers the command.
    ///
    /// # Errors
    /// Fails when the device thread ended or the device was lost.
    pub(crate) fn apply(&mut self, request: u64, spec: RunSpec) -> Result<()> {
        self.request = request;
        self.queue.sync()?;
        if !self.pending.is_empty() && !self.read_losses()? {
            return self.stop_not_finite();
        }
        let config = spec.config.clone();
        self.queue.ask(move |worker| worker.reconfigure(&config))?;
        // The peak of memory belongs to the earlier configuration.
        allocator::reset_peak();
        self.source = BatchSource::new(&spec.config);
        self.spec = spec;
        self.stats = Statistics::default();
        self.began = Instant::now();
        self.announce()
    }

    fn slot(&self) -> Slot {
        self.spec.slot
    }

    /// Returns the number of first steps that count in no statistic. A run of few steps has a shorter warm-up.
    fn warmup(&self) -> u64 {
        let mut warmup = self.spec.config.measure.warmup;
        if let Some(steps) = self.spec.steps {
            warmup = warmup.min(steps / 4);
        }
        if Worker::records(&self.spec.config, self.on_cpu()) {
            warmup = warmup.max(TO_RECORD);
        }
        warmup
    }

    /// Returns true if the warm-up is over.
    fn is_warm(&self) -> bool {
        self.stats.counted >= self.warmup()
    }

    /// Returns true if a run with a last step has counted all its steps.
    fn all_counted(&self) -> bool {
        self.spec
            .steps
            .is_some_and(|steps| self.stats.counted >= steps)
    }

    /// Returns true if the run ended early, or has counted all its steps and taken all its profiles.
    pub(crate) fn done(&self) -> bool {
        self.end_reason.is_some()
            || self.all_counted() && self.stats.profiles >= self.profiles_wanted()
    }

    /// Returns the number of profiles of a run with a last step: one on `vulkan-cpu`, whose steps take seconds, and three elsewhere.
    fn profiles_wanted(&self) -> usize {
        if self.opened.info.kind == "vulkan-cpu" {
            1
        } else {
            3
        }
    }

    /// Takes one step, under the profiler if a profile is due.
    ///
    /// # Errors
    /// Fails when the device thread ended or the device was lost.
    pub(crate) fn advance(&mut self) -> Result<()> {
        if self.profile_is_due() {
            self.profiled_step()
        } else {
            self.load()?;
            self.timed_step()
        }
    }

    /// Copies the batch of the next step to the device.
    fn load(&mut self) -> Result<()> {
        let batch = self.source.batch(self.step);
        self.queue.submit(move |worker| worker.load(&batch))
    }

    /// Returns true if the next step is profiled. An endless run repeats a discarded profile at once; a run with a last step repeats it after
    /// the last counted step.
    fn profile_is_due(&self) -> bool {
        let endless = self.spec.steps.is_none();
        if self.stats.profile_due || self.all_counted() {
            return true;
        }
        if self.stats.discarded > 0 {
            return endless;
        }
        if self.profile_request.is_some() {
            return true;
        }
        let Some((last_at, counted_then)) = self.stats.last_profile else {
            // The first profile follows once the kernels are compiled.
            let first = if self.on_cpu() { 3 } else { FIRST_ON_GPU };
            return self.stats.counted >= self.spec.steps.map_or(first, |steps| steps.min(first));
        };
        let every = self.spec.config.measure.profile_every;
        endless
            && every > 0
            && self.stats.counted >= counted_then + every
            && last_at.elapsed() >= PROFILE_PAUSE
    }

    /// Reads the losses of the steps since the last reading, and reports those steps. Returns false if a loss is not finite. This waits for the
    /// device, after the clocks have stopped.
    fn read_losses(&mut self) -> Result<bool> {
        let began = Instant::now();
        let losses = self.queue.ask(Worker::losses)??;
        let pending = std::mem::take(&mut self.pending);
        let reports_all = self.reports_each_step() || !self.is_synchronised();
        let last = pending.len().saturating_sub(1);
        self.last_step_line = Instant::now();
        for (index, (timed, loss)) in pending.into_iter().zip(losses).enumerate() {
            self.loss_last = loss;
            let step = timed.step;
            let has_clocks = timed.clocks.is_some();
            let event = Event::Step(Step {
                loss: Some(Num(loss)),
                ..timed
            });
            self.story.on_event(&event, 0);
            if reports_all || index == last || has_clocks || !loss.is_finite() {
                self.outlet.send(event);
            }
            if !loss.is_finite() {
                self.bad_step = Some(step);
                return Ok(false);
            }
        }
        if self.spec.config.scales_loss() && self.queue.ask(|worker| worker.overflows_unscaled())? {
            // The audit of the profiled step finds the gradient that overflowed.
            self.stats.profile_due = true;
        }
        self.stats.unsynced.leave_out(began.elapsed());
        Ok(true)
    }

    /// Returns true if the run waits for the device in each step.
    fn is_synchronised(&self) -> bool {
        self.spec.config.measure.sync != Sync::Never
    }

    /// Returns true if no step is left out of the reports yet: in a run with a last step, and at the beginning of an endless one.
    fn reports_each_step(&self) -> bool {
        self.spec.steps.is_some() || self.step <= ALL_REPORTED
    }

    fn must_report(&self) -> bool {
        self.reports_each_step() || self.last_step_line.elapsed() >= STEP_PAUSE
    }

    /// Sends an event and adds it to the run's story.
    fn emit(&mut self, event: Event) {
        self.story.on_event(&event, 0);
        self.outlet.send(event);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::devices;
    use protocol::Finished;
    use protocol::config::Preset;

    /// Trains 20 steps on a device that passes for a GPU, so that profiles are compared with the steps around them.
    fn train_20_steps(max_difference: f64) -> Finished {
        let mut config = RunConfig::preset(Preset::Tiny);
        config.model.layers = 1;
        config.model.hidden = 16;
        config.model.ffn = 32;
        config.model.vocab = 64;
        config.train.batch = 1;
        config.train.context = 8;
        let spec = RunSpec {
            steps: Some(20),
            ..RunSpec::new("custom", &config)
        };
        let mut opened = devices::open("cpu").expect("there is always one");
        opened.info.kind = "gpu".to_owned();
        opened.queued = false;
        let (outlet, _events) = EventSender::new();
        let mut trainer = Trainer::new(0, spec, opened, outlet).expect("it fits");
        trainer.max_difference = max_difference;
        while !trainer.done() {
            trainer.advance().expect("it trains");
        }
        trainer.finish(None)
    }

    #[test]
    fn the_last_loss_is_of_the_step_asked_for_however_often_profiles_are_repeated() {
        let first = train_20_steps(f64::INFINITY);
        // No two steps agree so closely, so that each profile is repeated.
        let repeated = train_20_steps(-1.0);

        assert!(repeated.kernels.discarded >= 3 * 8, "none agreed");
        assert_eq!(repeated.kernels.profiles, 3);
        assert_eq!((first.steps, repeated.steps), (20, 20));
        assert_eq!(first.loss_last, repeated.loss_last);
    }
}
