//! One run: takes steps, times them as the configuration says, profiles some of them, and reports.
//!
//! There are three clocks in every sync mode: the time to submit the work, summed over the phases without any wait; the same step up to its sync;
//! and the sum of device times of the latest profiled step. Some `Step` events carry all three times of one step, so that the ledger shows
//! one step. On the CPU the third comes from the device thread; a GPU reports it under the profiler only.
//!
//! A headline time comes from steps after warm-up that were synchronised and not profiled. Profiled steps are marked and count in no statistic.

mod inspection;
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
use protocol::stats::robust::StepTimes;
use protocol::stats::roofline;
use protocol::story::{RunDescription, RunStory};
use protocol::{Device, Event, Num, PhaseTimes, Roof, RunSpec, Slot, Started, Step, StepClocks};
use tiny_llama::data::BatchSource;
use tiny_llama::ops::format::Format;

/// Unsynchronised runs are audited once in this many steps, and not before this time has passed: the queue is drained, and the step bracketed
/// with a sync. An empty queue fills again while the device idles, which would slow a run of short steps.
const AUDIT_EVERY: u64 = 8;
const AUDIT_PAUSE: Duration = Duration::from_millis(10);
/// Shortest time between two profiles, two throughput reports and two step lines of an endless run.
const PROFILE_PAUSE: Duration = Duration::from_secs(4);
const REPORT_PAUSE: Duration = Duration::from_millis(250);
const STEP_PAUSE: Duration = Duration::from_millis(50);
/// Steps of an endless run that are all reported.
const ALL_REPORTED: u64 = 200;
/// Steps whose losses may wait to be read.
const MAX_PENDING: usize = 256;
/// Steps before the first profile on a device whose clocks rise with work.
const FIRST_ON_DEVICE: u64 = 12;
/// Rows in the summary.
const TOP: usize = 40;

/// A run that begins on an opened device with a fresh model of so many tensors, for the command of this number.
pub(crate) fn started(
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
        roof: opened.roof.clone().map(Box::new),
        paired: false,
        matrix_cores: Format::of(config, opened.matrix_cores).on_matrix_cores(),
        request,
    })
}

/// Reports that a run begins. A step that takes long is told before it is made.
pub(crate) fn announce(started: Started, outlet: &EventSender) {
    let long = RunDescription::from(&started).long_step(&started.run.config);
    long.into_iter().for_each(|said| outlet.log("warn", said));
    outlet.send(Event::Started(started));
}

/// The device's peaks that bound this run's products.
fn roof(config: &RunConfig, opened: &OpenDevice) -> Option<Roof> {
    let format = Format::of(config, opened.matrix_cores);
    roofline::bounding(opened.roof.as_ref()?, format.on_matrix_cores())
}

/// Wall time between steps of an unsynchronised run that began with an empty queue: a true rate without a wait in each step.
#[derive(Default)]
pub(crate) struct UnsyncedTiming {
    /// The latest such step, unless something other than steps came in between.
    since: Option<(Instant, u64)>,
    steps: u64,
    seconds: f64,
}

impl UnsyncedTiming {
    /// The queue is empty, and so many steps were counted.
    fn mark(&mut self, counted: u64) {
        let now = Instant::now();
        if let Some((at, from)) = self.since.replace((now, counted)) {
            self.steps += counted - from;
            self.seconds += (now - at).as_secs_f64();
        }
    }

    /// The following work is not a counted step: a profile, evidence, a pause.
    pub(crate) fn interrupt(&mut self) {
        self.since = None;
    }

    /// So much time went by with an empty queue: a loss was read, which no timed step contains.
    fn leave_out(&mut self, took: Duration) {
        if let Some((at, _)) = &mut self.since {
            *at += took;
        }
    }

    fn steps_per_s(&self) -> Option<f64> {
        (self.seconds > 0.0).then(|| self.steps as f64 / self.seconds)
    }
}

/// The state that is reset when the run continues with changed knobs.
#[derive(Default)]
pub(crate) struct Statistics {
    /// Unprofiled steps.
    counted: u64,
    /// Steps that count in no statistic.
    uncounted: u64,
    times: StepTimes,
    phases: Vec<PhaseTimes>,
    /// Wall time spent paused.
    pub paused: Duration,
    pub drained: UnsyncedTiming,
    /// When an unsynchronised run was audited last.
    audited: Option<Instant>,
    profile_due: bool,
    last_profile: Option<(Instant, u64)>,
    /// Profiles taken so far, and those discarded since the last one.
    profiles: usize,
    discarded: u32,
    /// The two readings of the host.
    clocks: Option<StepClocks>,
    /// Milliseconds of a step that waits for the device at its end only.
    end_synced_ms: Option<f64>,
}

/// A run in progress.
pub(crate) struct Trainer {
    pub spec: RunSpec,
    /// The number of the last command that started or changed it.
    pub request: u64,
    /// The number of the command that wants the next step profiled.
    profile_asked: Option<u64>,
    pub stats: Statistics,
    /// Since when it is paused.
    pub paused: Option<Instant>,
    /// Peaks that are due are measured after the first loss, so that nobody waits for them before it.
    opened: OpenDevice,
    queue: Queue,
    source: BatchSource,
    outlet: EventSender,
    /// The largest share by which the steps around a profile that counts may differ.
    most_apart: f64,
    /// What it has shown since it began or its knobs changed.
    story: RunStory,
    /// Optimizer steps so far, profiled ones included.
    step: u64,
    /// Steps whose losses were not read yet.
    pending: Vec<Step>,
    bad_step: Option<u64>,
    /// A gradient that overflowed although the loss was not scaled up any more.
    overflowed: Option<String>,
    loss_last: f64,
    began: Instant,
    last_report: Instant,
    last_step_line: Instant,
    compiling: Option<Arc<Compiling>>,
    /// Until the first step was taken.
    compile_ahead: Option<CompileAhead>,
    /// Bytes that the process had in use before, such as those of a device that another run opened.
    memory_before: u64,
    ended: Option<String>,
}

impl Trainer {
    /// Whether the run computes on the CPU device of ours.
    pub(crate) fn on_cpu(&self) -> bool {
        self.opened.queued
    }

    /// The device that it computes on.
    pub(crate) fn device(&self) -> &Device {
        &self.opened.info
    }

    /// Builds the model on the device and reports that the run started.
    pub(crate) fn new(
        request: u64,
        spec: RunSpec,
        opened: OpenDevice,
        outlet: EventSender,
    ) -> Result<Self> {
        allocator::reset_peak();
        let memory_before = allocator::current();
        let gpu = opened.gpu.clone();
        let compile_ahead = gpu.map(|it| CompileAhead::begin(it.device));
        let queue = Queue::new(opened.queued, Worker::maker(&spec.config, &opened))?;
        let source = BatchSource::new(&spec.config);
        let now = Instant::now();
        let compiling = (!opened.queued).then(|| Arc::new(Compiling::new(outlet.clone())));
        let mut trainer = Self {
            story: RunStory::default(),
            spec,
            request,
            profile_asked: None,
            stats: Statistics::default(),
            paused: None,
            opened,
            queue,
            source,
            outlet,
            most_apart: inspection::AGREEMENT,
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
            ended: None,
        };
        trainer.announce()?;
        trainer.began = Instant::now();
        Ok(trainer)
    }

    fn announce(&mut self) -> Result<()> {
        let started = Started {
            from_step: self.step,
            ..started(
                self.request,
                &self.spec,
                &self.opened,
                &mut self.queue,
                &self.source,
            )?
        };
        self.story = RunStory::new((&started).into());
        announce(started, &self.outlet);
        Ok(())
    }

    /// Continues with changed knobs that keep the parameters. A run that turns out to be over takes the number, but not the knobs: its end is
    /// the answer.
    pub(crate) fn apply(&mut self, request: u64, spec: RunSpec) -> Result<()> {
        self.request = request;
        self.queue.sync()?;
        if !self.pending.is_empty() && !self.read_losses()? {
            return self.stop_not_finite();
        }
        let config = spec.config.clone();
        self.queue.ask(move |worker| worker.reconfigure(&config))?;
        // What the earlier configuration took at its peak says nothing about this one.
        allocator::reset_peak();
        self.source = BatchSource::new(&spec.config);
        self.spec = spec;
        self.stats = Statistics::default();
        self.began = Instant::now();
        self.announce()
    }

    /// Profiles the next step. Its profile has the number of the last one of several commands that wait for it.
    pub(crate) fn request_profile(&mut self, request: u64) {
        self.profile_asked = Some(request);
    }

    fn slot(&self) -> Slot {
        self.spec.slot
    }

    /// Steps that count towards no statistic: fewer when only a few were asked for.
    fn warmup(&self) -> u64 {
        let asked = self.spec.config.measure.warmup;
        let wanted = self.spec.steps.map_or(asked, |steps| asked.min(steps / 4));
        let recorded = Worker::records(&self.spec.config, self.on_cpu());
        wanted.max(if recorded { TO_RECORD } else { 0 })
    }

    /// Whether all steps that were asked for were taken.
    fn all_counted(&self) -> bool {
        let asked = self.spec.steps;
        asked.is_some_and(|steps| self.stats.counted >= steps)
    }

    /// Whether nothing is left to do.
    pub(crate) fn done(&self) -> bool {
        self.ended.is_some() || self.all_counted() && self.stats.profiles >= self.profiles_wanted()
    }

    /// Profiles that a run with a last step takes. One where a driver computes on the cores: its steps take seconds.
    fn profiles_wanted(&self) -> usize {
        if self.opened.info.kind == "vulkan-cpu" {
            1
        } else {
            3
        }
    }

    /// Takes one step, profiled when one is due.
    pub(crate) fn advance(&mut self) -> Result<()> {
        if self.profile_is_due() {
            self.profiled_step()
        } else {
            self.load()?;
            self.timed_step()
        }
    }

    /// Brings the batch of this step to the device.
    fn load(&mut self) -> Result<()> {
        let batch = self.source.batch(self.step);
        self.queue.submit(move |worker| worker.load(&batch))
    }

    /// Whether the next step is profiled. A profile that was discarded is repeated at once in an endless run, and after the last counted
    /// step in others.
    fn profile_is_due(&self) -> bool {
        if self.stats.profile_due || self.all_counted() {
            return true;
        }
        if self.stats.discarded > 0 {
            return self.spec.steps.is_none();
        }
        let every = self.spec.config.measure.profile_every;
        match self.stats.last_profile {
            _ if self.profile_asked.is_some() => true,
            // The first profile, once the kernels are compiled.
            None => {
                let after = if self.on_cpu() { 3 } else { FIRST_ON_DEVICE };
                self.stats.counted >= self.spec.steps.map_or(after, |steps| steps.min(after))
            }
            Some((at, counted)) => {
                self.spec.steps.is_none()
                    && every > 0
                    && self.stats.counted >= counted + every
                    && at.elapsed() >= PROFILE_PAUSE
            }
        }
    }

    fn timed_step(&mut self) -> Result<()> {
        let first = self.stats.counted == 0;
        let compiling = self.compiling.as_ref();
        let watch = compiling
            .filter(|_| self.stats.counted < 2)
            .map(Compiling::watch);
        let audited = self.stats.audited;
        let drain = self.spec.config.measure.sync == Sync::Never
            && self.stats.counted.is_multiple_of(AUDIT_EVERY)
            && audited.is_none_or(|audited| audited.elapsed() >= AUDIT_PAUSE);
        if drain {
            self.stats.audited = Some(Instant::now());
        }
        if drain || self.spec_synced() {
            // Nothing of the step before, and not the copy of this batch, is in this step's time.
            self.queue.sync()?;
        }
        if drain && self.stats.counted >= self.warmup() {
            self.stats.drained.mark(self.stats.counted);
        }
        let mut timed = self.time_one(drain)?;
        if timed.clocks.is_none() {
            self.queue.keep_pace()?;
        }
        drop(watch);

        self.keep_clocks(timed.clocks);
        if !self.stats.counted.is_multiple_of(AUDIT_EVERY) {
            timed.clocks = None;
        }
        if self.stats.counted >= self.warmup() {
            self.stats.times.push(timed.ms);
            self.stats.phases.extend(timed.phases);
            if self.stats.phases.len() > 256 {
                self.stats.phases.remove(0);
            }
        }
        let may_read = timed.synced || drain;
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
            self.stats.drained.interrupt();
            self.compile_ahead = None;
            self.evidence_now()?;
            self.measure_peaks();
        }
        if self.last_report.elapsed() >= REPORT_PAUSE || self.all_counted() {
            self.report();
        }
        Ok(())
    }

    /// Reads the losses of the steps since the last reading and reports those steps: this waits for the device, after
    /// the clocks have stopped. False when one of them is not finite.
    fn read_losses(&mut self) -> Result<bool> {
        let began = Instant::now();
        let losses = self.queue.ask(Worker::losses)??;
        let pending = std::mem::take(&mut self.pending);
        let all = self.spec.steps.is_some() || self.step <= ALL_REPORTED || !self.spec_synced();
        let last = pending.len().saturating_sub(1);
        self.last_step_line = Instant::now();
        for (index, (timed, loss)) in pending.into_iter().zip(losses).enumerate() {
            self.loss_last = loss;
            let (step, has_clocks) = (timed.step, timed.clocks.is_some());
            let event = Event::Step(Step {
                loss: Some(Num(loss)),
                ..timed
            });
            self.story.note(&event, 0);
            if all || index == last || has_clocks || !loss.is_finite() {
                self.outlet.send(event);
            }
            if !loss.is_finite() {
                self.bad_step = Some(step);
                return Ok(false);
            }
        }
        if self.spec.config.scales_loss() && self.queue.ask(|worker| worker.overflows_unscaled())? {
            // The audit says which gradient it is.
            self.stats.profile_due = true;
        }
        self.stats.drained.leave_out(began.elapsed());
        Ok(true)
    }

    fn spec_synced(&self) -> bool {
        self.spec.config.measure.sync != Sync::Never
    }

    fn must_report(&self) -> bool {
        self.spec.steps.is_some()
            || self.step <= ALL_REPORTED
            || self.last_step_line.elapsed() >= STEP_PAUSE
    }

    fn emit(&mut self, event: Event) {
        self.story.note(&event, 0);
        self.outlet.send(event);
    }

    /// One step without its loss, timed as `measure.sync` says. `drained`: an unsynchronised run brackets this one with a sync.
    fn time_one(&mut self, drained: bool) -> Result<Step> {
        let sync = self.spec.config.measure.sync;
        let phases = sync == Sync::PerPhase;
        let mut enqueue = 0.0;
        let computed = self.queue.busy();
        let began = Instant::now();
        let mut last = began;
        let mut took = Vec::with_capacity(3);
        for task in Worker::tasks(&self.spec.config, self.on_cpu()) {
            self.queue.submit(*task)?;
            enqueue += last.elapsed().as_secs_f64() * 1e3;
            if phases {
                self.queue.sync()?;
            }
            let now = Instant::now();
            took.push((now - last).as_secs_f64() * 1e3);
            last = now;
        }
        if sync == Sync::PerStep || drained {
            self.queue.sync()?;
        }
        let busy = self.queue.busy().zip(computed);
        let bracket = began.elapsed().as_secs_f64() * 1e3;
        let submitted = took.iter().sum();
        // A step that is replayed whole has no phases.
        let ledger = <[f64; 3]>::try_from(&took[..]).ok();
        let ledger = ledger.map(|parts| PhaseTimes::from_parts(parts, bracket));
        let synced = sync != Sync::Never;
        let clocks = (synced || drained).then(|| StepClocks {
            enqueue,
            host_sync: bracket,
            device: busy.map(|(now, before)| (now - before).as_secs_f64() * 1e3),
        });
        Ok(Step {
            slot: self.slot(),
            step: self.step,
            ms: if synced { bracket } else { submitted },
            synced,
            phases: ledger.filter(|_| synced || drained),
            clocks,
            ..Step::default()
        })
    }

    /// Keeps the readings of a step, and tells them now and then: steps that compile are not among them.
    fn keep_clocks(&mut self, clocks: Option<StepClocks>) {
        let Some(clocks) = clocks.filter(|_| self.stats.counted >= self.warmup()) else {
            return;
        };
        let of_host = StepClocks {
            device: None,
            ..clocks
        };
        let first = self.stats.clocks.replace(of_host).is_none();
        if first || self.stats.counted.is_multiple_of(AUDIT_EVERY) {
            self.send_clocks();
        }
    }

    /// Sends the evidence with the two readings of the host. On every device the third is the sum over the kernels of the latest
    /// profiled step.
    fn send_clocks(&mut self) {
        if let (Some(mut evidence), Some(clocks)) = (self.story.evidence.clone(), self.stats.clocks)
        {
            let kernels = self.story.kernels.as_ref();
            let device = kernels.map(|kernels| kernels.device_ms);
            // The rest of it stays what was seen at its own step.
            evidence.clocks = Some(StepClocks { device, ..clocks });
            self.emit(Event::Evidence(evidence));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::devices;
    use protocol::config::Preset;

    /// Each try of a profile trains.
    #[test]
    fn the_last_loss_is_of_the_step_asked_for_however_often_profiles_are_repeated() {
        let run = |most_apart| {
            let mut config = RunConfig::preset(Preset::Tiny);
            (config.model.layers, config.model.hidden) = (1, 16);
            (config.model.ffn, config.model.vocab) = (32, 64);
            (config.train.batch, config.train.context) = (1, 8);
            let spec = RunSpec {
                steps: Some(20),
                ..RunSpec::new("custom", &config)
            };
            let mut opened = devices::open("cpu").expect("there is always one");
            // Its profiles are held against steps around them.
            (opened.info.kind, opened.queued) = ("gpu".to_owned(), false);
            let (outlet, _events) = EventSender::to_a_test();
            let mut trainer = Trainer::new(0, spec, opened, outlet).expect("it fits");
            trainer.most_apart = most_apart;
            while !trainer.done() {
                trainer.advance().expect("it trains");
            }
            trainer.finish(None)
        };
        let [first, repeated] = [f64::INFINITY, -1.0].map(run);
        assert!(repeated.kernels.discarded >= 3 * 8, "none agreed");
        assert_eq!(repeated.kernels.profiles, 3);
        assert_eq!((first.steps, repeated.steps), (20, 20));
        assert_eq!(first.loss_last, repeated.loss_last);
    }

    #[test]
    fn the_rate_of_an_unsynchronised_run_counts_only_steps_between_two_waits() {
        let mut drained = UnsyncedTiming::default();
        assert_eq!(drained.steps_per_s(), None);
        drained.mark(8);
        assert_eq!(drained.steps_per_s(), None);
        drained.mark(16);
        assert_eq!(drained.steps, 8);
        let seconds = drained.seconds;
        drained.interrupt();
        drained.mark(40);
        assert_eq!((drained.steps, drained.seconds), (8, seconds));
        drained.mark(48);
        assert_eq!(drained.steps, 16);
        assert!(drained.steps_per_s().is_some_and(f64::is_finite));
        // A step that waits is timed without the reading of its loss; so are those that do not.
        let seconds = drained.seconds;
        drained.leave_out(Duration::from_secs(3600));
        drained.mark(56);
        assert_eq!((drained.steps, drained.seconds), (24, seconds));
    }
}
