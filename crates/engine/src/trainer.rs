//! One training run. It takes steps, times them as the configuration says, profiles some of them, and reports.
//!
//! Every sync mode has three clocks. The first is the time to submit a step's work, summed over the phases without any wait. The second is the
//! time of that step up to its sync. The third is the sum of device times of the latest profiled step. Some `Step` events carry all three times
//! of one step, so that the ledger shows one step. On the CPU the third comes from the device thread; a GPU reports it under the profiler only.
//!
//! A headline time comes from steps after warm-up that were synchronised and not profiled. Profiled steps are marked and count in no statistic.

mod inspection;
mod statistics;
mod summary;

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
use protocol::{Device, Event, Num, Peaks, PhaseTimes, RunSpec, Slot, Started, Step, StepClocks};
use statistics::Statistics;
use tiny_llama::data::BatchSource;
use tiny_llama::ops::format::Format;

/// In an unsynchronised run every eighth step is bracketed with syncs: the queue is emptied before it, and the device is waited for after it.
const BRACKET_EVERY: u64 = 8;
/// The shortest time between two bracketed steps. The device idles while an empty queue fills again, which would slow a run of short steps.
const BRACKET_PAUSE: Duration = Duration::from_millis(10);
/// The shortest time between two profiles.
const PROFILE_PAUSE: Duration = Duration::from_secs(4);
/// The shortest time between two throughput reports.
const REPORT_PAUSE: Duration = Duration::from_millis(250);
/// The shortest time between two step lines of an endless run.
const STEP_PAUSE: Duration = Duration::from_millis(50);
/// An endless run reports each of its first 200 steps.
const ALL_REPORTED: u64 = 200;
/// At most this many steps wait for their losses to be read.
const MAX_PENDING: usize = 256;
/// The number of steps before the first profile on a GPU, whose clock rises with work.
const FIRST_ON_GPU: u64 = 12;
/// Rows of kernels in the summary.
const TOP: usize = 40;

/// Returns the event that tells of a run's start, with a fresh model. `request` is the number of the command that asked for the run.
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

/// Reports that a run begins. If one step will take long, a warning says so before the run takes it.
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
    /// The number of the command that asked for a profile of the next step.
    profile_request: Option<u64>,
    pub stats: Statistics,
    /// When the present pause began; `None` while the run goes on.
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
        // The peak of the earlier configuration says nothing about this one.
        allocator::reset_peak();
        self.source = BatchSource::new(&spec.config);
        self.spec = spec;
        self.stats = Statistics::default();
        self.began = Instant::now();
        self.announce()
    }

    /// Asks for a profile of the next step. If several commands wait for it, the profile carries the number of the last one.
    pub(crate) fn request_profile(&mut self, request: u64) {
        self.profile_request = Some(request);
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
        let last = self.spec.steps;
        last.is_some_and(|steps| self.stats.counted >= steps)
    }

    /// Returns true if the run ended early, or has counted all its steps and taken all its profiles.
    pub(crate) fn done(&self) -> bool {
        self.end_reason.is_some()
            || self.all_counted() && self.stats.profiles >= self.profiles_wanted()
    }

    /// Returns how many profiles a run with a last step takes: one on `vulkan-cpu`, whose steps take seconds, and three elsewhere.
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

    /// Returns true if the next step of an unsynchronised run is bracketed with syncs.
    fn bracket_is_due(&self) -> bool {
        let last = self.stats.last_bracketed;
        !self.is_synchronised()
            && self.stats.counted.is_multiple_of(BRACKET_EVERY)
            && last.is_none_or(|last| last.elapsed() >= BRACKET_PAUSE)
    }

    /// Takes one step without the profiler, and reports what is due after it.
    fn timed_step(&mut self) -> Result<()> {
        let first = self.stats.counted == 0;
        let watch = match &self.compiling {
            Some(compiling) if self.stats.counted < 2 => Some(compiling.watch()),
            _ => None,
        };
        let bracketed = self.bracket_is_due();
        if bracketed {
            self.stats.last_bracketed = Some(Instant::now());
        }
        if bracketed || self.is_synchronised() {
            // This keeps the step before and the copy of the batch out of this step's time.
            self.queue.sync()?;
        }
        if bracketed && self.is_warm() {
            self.stats.unsynced.mark(self.stats.counted);
        }
        let mut timed = self.time_step(bracketed)?;
        if timed.clocks.is_none() {
            self.queue.keep_pace()?;
        }
        drop(watch);

        if let Some(clocks) = timed.clocks
            && self.is_warm()
        {
            self.keep_clocks(clocks);
        }
        if !self.stats.counted.is_multiple_of(BRACKET_EVERY) {
            timed.clocks = None;
        }
        if self.is_warm() {
            self.stats.times.push(timed.ms);
            self.stats.phases.extend(timed.phases);
            if self.stats.phases.len() > 256 {
                self.stats.phases.remove(0);
            }
        }
        let may_read = timed.synced || bracketed;
        self.pending.push(timed);
        self.step += 1;
        self.stats.counted += 1;
        if may_read
            && (self.must_report() || self.pending.len() > MAX_PENDING)
            && !self.read_losses()?
        {
            return self.stop_not_finite();
        }
        if first {
            self.stats.unsynced.interrupt();
            self.compile_ahead = None;
            self.report_evidence()?;
            self.measure_peaks();
        }
        if self.last_report.elapsed() >= REPORT_PAUSE || self.all_counted() {
            self.report();
        }
        Ok(())
    }

    /// Reads the losses of the steps since the last reading, and reports those steps. Returns false if a loss is not finite. This waits for the
    /// device, after the clocks have stopped.
    fn read_losses(&mut self) -> Result<bool> {
        let began = Instant::now();
        let losses = self.queue.ask(Worker::losses)??;
        let pending = std::mem::take(&mut self.pending);
        let all = self.reports_each_step() || !self.is_synchronised();
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
            if all || index == last || has_clocks || !loss.is_finite() {
                self.outlet.send(event);
            }
            if !loss.is_finite() {
                self.bad_step = Some(step);
                return Ok(false);
            }
        }
        if self.spec.config.scales_loss() && self.queue.ask(|worker| worker.overflows_unscaled())? {
            // The audit of the profiled step says which gradient overflowed.
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

    /// Sends an event and notes it in the run's story.
    fn emit(&mut self, event: Event) {
        self.story.on_event(&event, 0);
        self.outlet.send(event);
    }

    /// Takes one step and times it as `measure.sync` says, without reading its loss. `bracketed` says that the step of an unsynchronised run
    /// ends with a sync.
    fn time_step(&mut self, bracketed: bool) -> Result<Step> {
        let sync = self.spec.config.measure.sync;
        let mut enqueue_ms = 0.0;
        let busy_before = self.queue.busy();
        let began = Instant::now();
        let mut phase_began = began;
        let mut phases_ms = Vec::with_capacity(3);
        for task in Worker::tasks(&self.spec.config, self.on_cpu()) {
            self.queue.submit(*task)?;
            enqueue_ms += phase_began.elapsed().as_secs_f64() * 1e3;
            if sync == Sync::PerPhase {
                self.queue.sync()?;
            }
            let now = Instant::now();
            phases_ms.push((now - phase_began).as_secs_f64() * 1e3);
            phase_began = now;
        }
        if sync == Sync::PerStep || bracketed {
            self.queue.sync()?;
        }
        let busy = self.queue.busy().zip(busy_before);
        let step_ms = began.elapsed().as_secs_f64() * 1e3;
        let synced = self.is_synchronised();
        let mut timed = Step {
            slot: self.slot(),
            step: self.step,
            ms: if synced {
                step_ms
            } else {
                phases_ms.iter().sum()
            },
            synced,
            ..Step::default()
        };
        if synced || bracketed {
            // A step that is replayed whole has no phases.
            let three = <[f64; 3]>::try_from(phases_ms.as_slice());
            timed.phases = three
                .ok()
                .map(|phases| PhaseTimes::from_parts(phases, step_ms));
            timed.clocks = Some(StepClocks {
                enqueue: enqueue_ms,
                host_sync: step_ms,
                device: busy.map(|(now, before)| (now - before).as_secs_f64() * 1e3),
            });
        }
        Ok(timed)
    }

    /// Keeps the host's readings of a step after warm-up, and sends them with every eighth step.
    fn keep_clocks(&mut self, clocks: StepClocks) {
        let of_host = StepClocks {
            device: None,
            ..clocks
        };
        let first = self.stats.clocks.replace(of_host).is_none();
        if first || self.stats.counted.is_multiple_of(BRACKET_EVERY) {
            self.send_clocks();
        }
    }

    /// Sends the evidence again with the newest clocks: the host's two readings, and the sum over the kernels of the latest profiled step. The
    /// other facts stay those of the step that the evidence was taken from.
    fn send_clocks(&mut self) {
        if let (Some(mut evidence), Some(clocks)) = (self.story.evidence.clone(), self.stats.clocks)
        {
            let kernels = self.story.kernels.as_ref();
            let device = kernels.map(|kernels| kernels.device_ms);
            evidence.clocks = Some(StepClocks { device, ..clocks });
            self.emit(Event::Evidence(evidence));
        }
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
        let repeated = train_20_steps(-1.0);
        assert!(repeated.kernels.discarded >= 3 * 8, "none agreed");
        assert_eq!(repeated.kernels.profiles, 3);
        assert_eq!((first.steps, repeated.steps), (20, 20));
        assert_eq!(first.loss_last, repeated.loss_last);
    }
}
