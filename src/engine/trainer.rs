//! One run: takes steps, times them as the configuration says, looks inside now and then, and reports.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::devices::Opened;
use super::observer::{Compiling, Profiled};
use super::queue::Place;
use super::wire::Outlet;
use super::worker::Worker;
use super::{allocator, audit, roof};
use crate::config::Sync;
use crate::data::Source;
use crate::lints::Facts;
use crate::profile::stats::Series;
use crate::protocol::{
    Clocks, Event, Evidence, Finished, GradSummary, KernelSummary, Kernels, Lint, Memory, Num, Phases, RunSpec, Slot, Started, Step,
    Throughput, TopKernel,
};

/// Unsynchronised runs are audited once in this many steps: the queue is drained, and the step bracketed with a sync.
const AUDIT_EVERY: u64 = 8;
/// Shortest time between two profiles, two throughput reports and two step lines of an endless run.
const PROFILE_PAUSE: Duration = Duration::from_secs(4);
const REPORT_PAUSE: Duration = Duration::from_millis(250);
const STEP_PAUSE: Duration = Duration::from_millis(50);
/// Steps of an endless run that are all reported.
const ALL_REPORTED: u64 = 200;
/// Steps whose losses may wait to be read.
const MOST_PENDING: usize = 256;
/// Steps before the first profile on a device whose clocks rise with work.
const FIRST_ON_DEVICE: u64 = 12;
/// Rows in the summary.
const TOP: usize = 40;

/// A run in progress.
pub struct Trainer {
    pub spec: RunSpec,
    opened: Opened,
    place: Place,
    source: Source,
    outlet: Outlet,
    facts: Facts,
    lints: Vec<Lint>,
    /// Optimizer steps so far, profiled ones included.
    step: u64,
    /// Unprofiled steps of this spec.
    counted: u64,
    times: Series,
    phases: Vec<Phases>,
    /// Steps whose losses were not read yet.
    pending: Vec<(u64, Timing)>,
    bad_step: Option<u64>,
    loss_first: Option<f64>,
    loss_last: f64,
    began: Instant,
    /// Wall time spent paused.
    pub paused: Duration,
    profile_due: bool,
    last_profile: Option<(Instant, u64)>,
    last_report: Instant,
    last_step_line: Instant,
    compiling: Option<(Arc<Compiling>, usize)>,
    kernels: Option<Kernels>,
    gradients: GradSummary,
    evidence: Option<Evidence>,
    memory: Memory,
    throughput: Option<Throughput>,
    ended: Option<String>,
}

/// What one step was measured to take.
struct Timing {
    ms: f64,
    synced: bool,
    phases: Option<Phases>,
}

impl Trainer {
    /// Builds the model on the device and reports that the run started.
    pub fn new(spec: RunSpec, opened: Opened, outlet: Outlet) -> Result<Self> {
        allocator::reset_peak();
        let (config, device) = (spec.config.clone(), opened.device.clone());
        let mut place = Place::new(opened.queued, move || Worker::new(&config, &device))?;
        let source = Source::new(&spec.config);
        let tensors = place.ask(|worker| worker.model.parameters().len() as u32)?;
        let now = Instant::now();
        let compiling = (!opened.queued).then(|| (Arc::new(Compiling::default()), 0));
        let mut trainer = Self {
            facts: Facts::new(&spec.config, Some(source.entropy())),
            spec,
            opened,
            place,
            source,
            outlet,
            lints: Vec::new(),
            step: 0,
            counted: 0,
            times: Series::default(),
            phases: Vec::new(),
            pending: Vec::new(),
            bad_step: None,
            loss_first: None,
            loss_last: f64::NAN,
            began: now,
            paused: Duration::ZERO,
            profile_due: false,
            last_profile: None,
            last_report: now - REPORT_PAUSE,
            last_step_line: now - STEP_PAUSE,
            compiling,
            kernels: None,
            gradients: GradSummary { tensors, ..GradSummary::default() },
            evidence: None,
            memory: Memory::default(),
            throughput: None,
            ended: None,
        };
        trainer.announce();
        trainer.began = Instant::now();
        Ok(trainer)
    }

    fn announce(&self) {
        let config = &self.spec.config;
        self.outlet.send(Event::Started(Started {
            run: self.spec.clone(),
            config: config.hash(),
            device: self.opened.info.clone(),
            parameters: config.parameters(),
            tensors: self.gradients.tensors,
            ln_vocab: config.ln_vocab(),
            entropy: Some(self.source.entropy()),
            forward_flops: config.forward_flops(),
            from_step: self.step,
        }));
    }

    /// Goes on with other knobs that keep the parameters.
    pub fn apply(&mut self, spec: RunSpec) -> Result<()> {
        self.place.sync()?;
        if !self.pending.is_empty() && !self.read_losses()? {
            return self.stop_not_finite();
        }
        let config = spec.config.clone();
        self.place.ask(move |worker| worker.reconfigure(&config))?;
        self.source = Source::new(&spec.config);
        self.facts = Facts::new(&spec.config, Some(self.source.entropy()));
        self.spec = spec;
        self.lints = Vec::new();
        self.counted = 0;
        self.times = Series::default();
        self.phases = Vec::new();
        self.loss_first = None;
        (self.kernels, self.evidence, self.throughput, self.last_profile) = (None, None, None, None);
        self.profile_due = false;
        self.paused = Duration::ZERO;
        self.began = Instant::now();
        self.announce();
        Ok(())
    }

    /// Profiles the next step.
    pub fn request_profile(&mut self) {
        self.profile_due = true;
    }

    fn slot(&self) -> Slot {
        self.spec.slot
    }

    /// Steps that count towards no statistic: fewer when only a few were asked for.
    fn warmup(&self) -> u64 {
        let asked = self.spec.config.measure.warmup;
        self.spec.steps.map_or(asked, |steps| asked.min(steps / 4))
    }

    /// Whether nothing is left to do.
    pub fn done(&self) -> bool {
        self.ended.is_some() || self.spec.steps.is_some_and(|steps| self.counted >= steps && self.last_profile.is_some())
    }

    /// Takes one step, profiled when one is due.
    pub fn advance(&mut self) -> Result<()> {
        let batch = self.source.batch(self.step);
        self.place.submit(move |worker| worker.load(&batch))?;
        let finished = self.spec.steps.is_some_and(|steps| self.counted >= steps);
        if self.profile_due || finished || self.profile_is_due() {
            self.profiled_step()
        } else {
            self.timed_step()
        }
    }

    fn profile_is_due(&self) -> bool {
        let every = self.spec.config.measure.profile_every;
        match self.last_profile {
            // The first look inside, when the kernels exist.
            None => {
                let after = if self.opened.queued { 3 } else { FIRST_ON_DEVICE };
                self.counted >= self.spec.steps.map_or(after, |steps| steps.min(after))
            }
            Some((at, counted)) => self.spec.steps.is_none() && every > 0 && self.counted >= counted + every && at.elapsed() >= PROFILE_PAUSE,
        }
    }

    fn timed_step(&mut self) -> Result<()> {
        let first = self.counted == 0;
        let watch = self.compiling.as_ref().filter(|_| self.counted < 2).map(|(compiling, _)| compiling.watch());
        let drain = self.spec.config.measure.sync == Sync::Never && (first || self.counted.is_multiple_of(AUDIT_EVERY));
        if drain || self.spec_synced() {
            // Nothing of the step before, and not the copy of this batch, is in this step's time.
            self.place.sync()?;
        }
        let timing = self.time_one(drain)?;
        drop(watch);
        self.tell_compiling();

        if self.counted >= self.warmup() {
            self.times.push(timing.ms);
            self.phases.extend(timing.phases);
            if self.phases.len() > 256 {
                self.phases.remove(0);
            }
        }
        let may_read = timing.synced || timing.phases.is_some();
        self.pending.push((self.step, timing));
        self.step += 1;
        self.counted += 1;
        if may_read && (self.must_report() || self.pending.len() > MOST_PENDING) && !self.read_losses()? {
            return self.stop_not_finite();
        }
        if first {
            self.evidence_now()?;
        }
        let over = self.spec.steps.is_some_and(|steps| self.counted >= steps);
        if self.last_report.elapsed() >= REPORT_PAUSE || over {
            self.report();
        }
        Ok(())
    }

    /// Reads the losses of the steps since the last reading and reports those steps: this waits for the device, after
    /// the clocks have stopped. False when one of them is not finite.
    fn read_losses(&mut self) -> Result<bool> {
        let losses = self.place.ask(Worker::losses)??;
        let pending = std::mem::take(&mut self.pending);
        let all = self.spec.steps.is_some() || self.step <= ALL_REPORTED || !self.spec_synced();
        let last = pending.len().saturating_sub(1);
        self.last_step_line = Instant::now();
        for (index, ((step, timing), loss)) in pending.into_iter().zip(losses).enumerate() {
            self.loss_first.get_or_insert(loss);
            self.loss_last = loss;
            let event = Event::Step(Step {
                slot: self.slot(),
                step,
                loss: Num(loss),
                ms: timing.ms,
                synced: timing.synced,
                profiled: false,
                phases: timing.phases,
            });
            self.facts.observe(&event);
            if all || index == last || !loss.is_finite() {
                self.outlet.send(event);
            }
            if !loss.is_finite() {
                self.bad_step = Some(step);
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn spec_synced(&self) -> bool {
        self.spec.config.measure.sync != Sync::Never
    }

    fn must_report(&self) -> bool {
        self.spec.steps.is_some() || self.step <= ALL_REPORTED || self.last_step_line.elapsed() >= STEP_PAUSE
    }

    /// One step, timed as `measure.sync` says. `drained`: an unsynchronised run brackets this one with a sync.
    fn time_one(&mut self, drained: bool) -> Result<Timing> {
        let sync = self.spec.config.measure.sync;
        let phases = sync == Sync::PerPhase;
        let t0 = Instant::now();
        self.place.submit(Worker::forward)?;
        if phases {
            self.place.sync()?;
        }
        let t1 = Instant::now();
        self.place.submit(Worker::backward)?;
        if phases {
            self.place.sync()?;
        }
        let t2 = Instant::now();
        self.place.submit(Worker::update)?;
        if phases {
            self.place.sync()?;
        }
        let t3 = Instant::now();
        if sync == Sync::PerStep || drained {
            self.place.sync()?;
        }
        let t4 = Instant::now();
        let ms = |a: Instant, b: Instant| (b - a).as_secs_f64() * 1e3;
        let (forward, backward, optimizer) = (ms(t0, t1), ms(t1, t2), ms(t2, t3));
        let bracket = ms(t0, t4);
        let ledger = Phases { forward, backward, optimizer, residual: bracket - (forward + backward + optimizer), step: bracket };
        Ok(match sync {
            Sync::Never => {
                if drained {
                    let device = self.kernels.as_ref().map(|k| k.device_ms);
                    self.clocks(Clocks { enqueue: ms(t0, t3), host_sync: bracket, device });
                }
                Timing { ms: ms(t0, t3), synced: false, phases: drained.then_some(ledger) }
            }
            _ => Timing { ms: bracket, synced: true, phases: Some(ledger) },
        })
    }

    fn clocks(&mut self, clocks: Clocks) {
        if let Some(evidence) = &mut self.evidence {
            evidence.clocks = Some(clocks);
            evidence.step = self.step;
            self.outlet.send(Event::Evidence(evidence.clone()));
        }
    }

    /// A step under the profiler, with the gradient audit between backward and update. Counts in no statistic.
    fn profiled_step(&mut self) -> Result<()> {
        if !self.pending.is_empty() && !self.read_losses()? {
            return self.stop_not_finite();
        }
        let (took, mut audit, profiled) = self.place.ask(Worker::profiled_step)??;
        let total_ms = took.as_secs_f64() * 1e3;
        let loss = self.place.ask(Worker::losses)??.pop().unwrap_or(f64::NAN);

        audit.slot = self.slot();
        audit.step = self.step;
        self.gradients = GradSummary { tensors: audit.tensors, with_grad: audit.with_grad, params_pct: audit.params_pct };
        let step = Event::Step(Step {
            slot: self.slot(),
            step: self.step,
            loss: Num(loss),
            ms: total_ms,
            synced: true,
            profiled: true,
            phases: None,
        });
        self.facts.observe(&step);
        self.outlet.send(step);
        self.emit(Event::Gradients(audit));
        self.profiled(profiled, total_ms);
        self.measure_memory()?;
        self.step += 1;
        self.profile_due = false;
        self.last_profile = Some((Instant::now(), self.counted));
        self.report();
        if loss.is_finite() {
            return Ok(());
        }
        self.bad_step = Some(self.step - 1);
        self.stop_not_finite()
    }

    fn profiled(&mut self, p: Profiled, total_ms: f64) {
        let device_ms: f64 = p.rows.iter().map(|row| row.ms).sum();
        let explained = self.explained(total_ms);
        let reason = p.rows.is_empty().then(|| "the profiler saw no operation on this device".to_owned());
        let kernels = Kernels {
            slot: self.slot(),
            step: self.step,
            launches: p.launches,
            unique: p.unique,
            device_ms,
            profiled_step_ms: total_ms,
            coverage: device_ms / explained,
            unbracketed_ms: (explained - device_ms).max(0.0),
            clock: p.clock,
            launches_by_phase: p.launches_by_phase,
            reason,
            rows: p.rows,
        };
        self.kernels = Some(kernels.clone());
        self.emit(Event::Kernels(kernels));
    }

    /// The time that kernel rows should add up to. On the CPU brackets and step share a clock: the profiled step. On a
    /// GPU the profiler serialises launches, so the unprofiled median.
    fn explained(&self, profiled_ms: f64) -> f64 {
        if self.opened.queued { profiled_ms } else { self.times.spread().map_or(profiled_ms, |s| s.median) }
    }

    fn evidence_now(&mut self) -> Result<()> {
        let mut evidence = self.place.ask(|worker| audit::evidence(worker))?;
        evidence.slot = self.slot();
        evidence.step = self.step;
        self.evidence = Some(evidence.clone());
        self.emit(Event::Evidence(evidence));
        Ok(())
    }

    fn measure_memory(&mut self) -> Result<()> {
        let (weights, moments, gradients) = self.place.ask(|worker| {
            let parameters = worker.model.parameters();
            let weights: u64 = parameters.iter().map(|p| 4 * p.value.shape().num_elements() as u64).sum();
            (weights, worker.optimizer.moment_bytes(&parameters), weights)
        })?;
        let gradients = (gradients as f64 * self.gradients.params_pct / 100.0) as u64;
        let (current, peak, reason) = if self.opened.queued {
            (Some(allocator::current()), Some(allocator::peak()), None)
        } else {
            match self.opened.device.memory_pool_usage() {
                Some(usage) => (Some(usage.bytes_in_use), Some(usage.bytes_reserved), Some("peak: what the device's pool has reserved".to_owned())),
                None => (None, None, Some("this device reports no memory use".to_owned())),
            }
        };
        self.memory = Memory { slot: self.slot(), peak_bytes: peak, current_bytes: current, weights, gradients, moments, reason };
        self.outlet.send(Event::Memory(self.memory.clone()));
        Ok(())
    }

    fn stop_not_finite(&mut self) -> Result<()> {
        let tensor = self.place.ask(|worker| audit::not_finite(worker))?;
        let step = self.bad_step.unwrap_or(self.step.saturating_sub(1));
        self.facts.stopped_at(step, &tensor);
        self.ended = Some(format!("not-finite: {tensor} at step {step}"));
        self.check_lints();
        Ok(())
    }

    fn emit(&mut self, event: Event) {
        self.facts.observe(&event);
        self.outlet.send(event);
    }

    fn tell_compiling(&mut self) {
        if let Some((compiling, known)) = &mut self.compiling
            && let Some((kernels, latest)) = compiling.news(*known)
        {
            *known = kernels as usize;
            self.outlet.send(Event::Compiling { kernels, latest });
        }
    }

    /// Statistics so far.
    fn report(&mut self) {
        self.last_report = Instant::now();
        if let Some(throughput) = self.statistics() {
            self.throughput = Some(throughput.clone());
            self.emit(Event::Throughput(throughput));
        }
        self.check_lints();
    }

    fn statistics(&self) -> Option<Throughput> {
        let config = &self.spec.config;
        let step_ms = self.times.spread()?;
        let batch = config.train.batch as f64;
        let samples_per_s = batch / (step_ms.median * 1e-3);
        let synced = config.measure.sync != Sync::Never;
        let wall = self.began.elapsed().saturating_sub(self.paused).as_secs_f64();
        let steps = self.counted + u64::from(self.last_profile.is_some());
        Some(Throughput {
            slot: self.slot(),
            step: self.step.saturating_sub(1),
            state: self.times.state(),
            step_ms,
            samples_per_s,
            tokens_per_s: samples_per_s * config.train.context as f64,
            wall_samples_per_s: steps as f64 * batch / wall.max(1e-9),
            phases: self.median_phases(),
            flops: synced.then(|| 3.0 * config.forward_flops() / (step_ms.median * 1e-3)),
            peak_flops: roof::peak_flops(&self.opened),
            clock: if synced { "host-sync" } else { "enqueue" }.to_owned(),
        })
    }

    fn median_phases(&self) -> Option<Phases> {
        if self.phases.is_empty() {
            return None;
        }
        let median = |pick: fn(&Phases) -> f64| crate::profile::stats::median(&self.phases.iter().map(pick).collect::<Vec<_>>());
        let (forward, backward, optimizer, step) = (median(|p| p.forward), median(|p| p.backward), median(|p| p.optimizer), median(|p| p.step));
        Some(Phases { forward, backward, optimizer, residual: median(|p| p.residual), step })
    }

    fn check_lints(&mut self) {
        let lints = self.facts.lints();
        if lints != self.lints {
            self.lints.clone_from(&lints);
            self.outlet.send(Event::Lints { slot: self.slot(), lints });
        }
    }

    /// Ends the run: waits, and sums up. `why`: what cut it short.
    pub fn finish(mut self, why: Option<&str>) -> Finished {
        let _ = self.place.sync();
        if !self.pending.is_empty() && self.ended.is_none() {
            let _ = self.read_losses();
        }
        self.check_lints();
        let throughput = self.statistics();
        if let Some(mut kernels) = self.kernels.take() {
            kernels.coverage = kernels.device_ms / self.explained(kernels.profiled_step_ms);
            self.kernels = Some(kernels);
        }
        let config = &self.spec.config;
        let kernels = self.kernels.unwrap_or_else(|| Kernels { reason: Some("no step was profiled".to_owned()), ..Kernels::default() });
        let top = kernels.rows.iter().take(TOP).map(|row| TopKernel {
            kernel: row.kernel.clone(),
            scope: format!("{}/{}", row.part, row.phase),
            calls: row.calls,
            ms: row.ms,
        });
        Finished {
            stage: self.spec.stage,
            variant: self.spec.variant.clone(),
            slot: self.spec.slot,
            config: config.hash(),
            device: self.opened.info.clone(),
            steps: self.counted,
            loss_first: Num(self.loss_first.unwrap_or(f64::NAN)),
            loss_last: Num(self.loss_last),
            ln_vocab: config.ln_vocab(),
            entropy: Some(self.source.entropy()),
            samples_per_s: throughput.as_ref().map(|t| t.samples_per_s),
            tokens_per_s: throughput.as_ref().map(|t| t.tokens_per_s),
            step_ms: throughput.as_ref().map(|t| t.step_ms),
            phases_ms: throughput.as_ref().and_then(|t| t.phases),
            clock: if config.measure.sync == Sync::Never { "enqueue" } else { "host-sync" }.to_owned(),
            state: throughput.as_ref().map(|t| t.state).unwrap_or_default(),
            grad: self.gradients,
            kernels: KernelSummary {
                launches_per_step: kernels.launches,
                unique: kernels.unique,
                device_ms: kernels.device_ms,
                coverage: kernels.coverage,
                top: top.collect(),
                reason: kernels.reason.clone(),
            },
            memory: self.memory,
            evidence: self.evidence,
            lints: self.lints,
            pair: None,
            ended: self.ended.or_else(|| why.map(str::to_owned)),
        }
    }
}
