//! The loop over commands: between two commands it takes one step of the current work.
//!
//! # What ends a run
//!
//! - A run with a last step (`--steps N`) ends when N steps were counted and its profiles were taken: three, or one on `vulkan-cpu`. Profiled
//!   steps are not among the N.
//! - A comparison in pairs ends at a look that gives a verdict, or at its limit of pairs or of time (`engine::pair`).
//! - A loss that is not finite ends a run. So does a gradient that is not finite although the loss was not scaled up. The summary names the
//!   first tensor that stopped being finite (`engine::audit`).
//! - The commands `stop` and `quit`, a new `start` or `pair`, and the end of the input end a run between two steps. So does ctrl-c, which
//!   becomes `stop`. A pause ends nothing.
//! - An error of the device ends a run with `failed` in place of `finished`.
//!
//! Every run that ends here writes `finished` with its summary. An engine that dies or hangs writes nothing: its parent notices that, and the
//! screen starts another one (`app::silence`).

use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::Instant;

use anyhow::{Result, anyhow, bail, ensure};

use super::devices::{self, OpenDevice};
use super::host::{ensure_memory, today};
use super::kernel_check::CheckDevice;
use super::kernel_check::learner_kernel::LearnerKernels;
use super::pair::Paired;
use super::trainer::Trainer;
use super::wire::EventSender;
use super::{allocator, roof};
use protocol::machine;
use protocol::machine::ProcessorTime;
use protocol::{Command, Event, Failed, FailedKind, Hello, KernelSwap, PROTOCOL, RunSpec, Slot};
use tiny_llama::ops::compile_progress;

/// What the engine is busy with.
enum Work {
    Nothing,
    Training(Box<Trainer>),
    Comparing(Box<Paired>),
}

impl Work {
    /// The number of the last command that it took.
    fn request(&self) -> u64 {
        match self {
            Self::Nothing => 0,
            Self::Training(trainer) => trainer.request,
            Self::Comparing(paired) => paired.last.request,
        }
    }

    /// Whether it goes on only after a command.
    fn waits(&self) -> bool {
        match self {
            Self::Nothing => true,
            Self::Training(trainer) => trainer.paused.is_some(),
            Self::Comparing(_) => false,
        }
    }
}

struct Session<'a> {
    outlet: &'a EventSender,
    /// Devices opened so far: a runtime can be set up once per process.
    opened: Vec<(String, OpenDevice)>,
    work: Work,
    /// Learners' kernels that joined the model since the last step.
    swaps: Vec<KernelSwap>,
    /// All that compute in the model.
    learner: LearnerKernels,
    /// The device of checks.
    checks: CheckDevice,
    /// The clocks of the cores when the work began.
    began: Result<ProcessorTime, String>,
}

/// Serves commands until `quit` or the end of input.
pub(crate) fn run(outlet: &EventSender, commands: &Receiver<Command>) {
    allocator::keep();
    let mut session = Session {
        outlet,
        opened: Vec::new(),
        work: Work::Nothing,
        swaps: Vec::new(),
        learner: LearnerKernels::default(),
        checks: CheckDevice::default(),
        began: machine::read(),
    };
    loop {
        let next = if session.work.waits() {
            compile_progress::DEVICE.rest();
            commands.recv().map_err(|_| TryRecvError::Disconnected)
        } else {
            commands.try_recv()
        };
        match next {
            Ok(Command::Quit) | Err(TryRecvError::Disconnected) => break,
            Ok(command) => {
                compile_progress::DEVICE.begin();
                if !session.carry_out(command) {
                    break;
                }
            }
            Err(TryRecvError::Empty) => {}
        }
        compile_progress::DEVICE.step();
        session.advance();
    }
    session.end(Some("stopped"));
}

impl Session<'_> {
    /// Returns false if the reader speaks another protocol, which ends the session.
    fn carry_out(&mut self, command: Command) -> bool {
        match command {
            Command::Hello { protocol, threads } => {
                if let Some(threads) = threads {
                    // Nothing has computed yet; a limit that was set before is kept.
                    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads as usize);
                    let _ = pool.build_global();
                }
                self.hello(protocol);
                return protocol == PROTOCOL;
            }
            Command::Probe => {
                roof::notice().into_iter().for_each(|text| self.warn(text));
                let mut devices = devices::probe();
                for info in &mut devices {
                    info.roof = roof::known(&info.device, &info.driver);
                }
                self.outlet.send(Event::Devices { devices });
            }
            Command::Open { device } => match self.open(&device) {
                Ok(opened) => self.outlet.send(Event::DeviceReady {
                    device: opened.info,
                }),
                Err(error) => self.fail(0, FailedKind::Device, &error),
            },
            Command::Calibrate { device } => self.calibrate(&device),
            Command::Start {
                device,
                run,
                request,
            } => self.start(request, &device, run),
            Command::Apply { run, request } => self.apply(request, run),
            Command::Pair {
                device,
                a,
                b,
                pairs,
                request,
                ..
            } => self.pair(request, &device, [a, b], pairs),
            Command::Pause => self.pause(),
            Command::Resume => self.resume(),
            Command::Profile { request } => match &mut self.work {
                Work::Training(trainer) => trainer.request_profile(request),
                _ if request == 0 => {}
                _ => {
                    let error = anyhow!("nothing is running whose steps are profiled");
                    self.fail(request, FailedKind::Refused, &error);
                }
            },
            Command::Stop => self.end(Some("stopped")),
            Command::CheckKernel { device, job } => {
                let send = |event| self.outlet.send(event);
                super::kernel_check::serve(&job, &device, &self.checks, send);
            }
            Command::UseKernel { swap } => {
                let adopted = super::kernel_check::adopt(&self.learner, &swap);
                self.swaps.retain(|waiting| waiting.part != swap.part);
                match adopted {
                    Ok(()) if swap.kernels.is_empty() => {}
                    // Whether they compute is known once a step was made.
                    Ok(()) => self.swaps.push(swap),
                    Err(why) => self.used(&swap.exercise, &swap.part, Some(why)),
                }
            }
            Command::Quit => {}
        }
        true
    }

    fn used(&self, exercise: &str, part: &str, why_not: Option<String>) {
        self.outlet.send(Event::KernelUsed {
            exercise: exercise.to_owned(),
            part: part.to_owned(),
            why_not,
        });
    }

    fn hello(&self, protocol: u32) {
        self.outlet.send(Event::Hello(Hello {
            protocol: PROTOCOL,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            os: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
            cores: std::thread::available_parallelism().map_or(1, |n| n.get() as u32),
            date: today(),
            ..Hello::default()
        }));
        if protocol != PROTOCOL {
            let reason = format!(
                "the reader speaks protocol {protocol}, this engine {PROTOCOL}; update the older of the two programs"
            );
            self.fail(0, FailedKind::Usage, &anyhow!(reason));
        }
    }

    /// The device, with its peaks.
    fn open(&mut self, select: &str) -> Result<OpenDevice> {
        let opened = self.open_without_peaks(select)?;
        Ok(self.with_peaks(opened))
    }

    /// The device with its peaks measured now, if that is due.
    fn with_peaks(&self, mut opened: OpenDevice) -> OpenDevice {
        if opened.peaks_due {
            match roof::of(&opened, |text| self.warn(text)) {
                Ok(roof) => opened.roof = Some(roof),
                Err(error) => self.warn(format!("no peaks of {}: {error:#}", opened.info.name)),
            }
        }
        opened
    }

    /// The device with the peaks that are known, and whether these are due to be measured: where there are none; once for each process,
    /// which leaves steady ones as they are; and before the next run where other programs disturbed them.
    fn open_without_peaks(&mut self, select: &str) -> Result<OpenDevice> {
        let known = self.opened.iter().find(|(name, _)| name == select);
        let first = known.is_none();
        let mut opened = match known {
            Some((_, opened)) => opened.clone(),
            None => OpenDevice {
                learner: self.learner.clone(),
                ..devices::open(select)?
            },
        };
        if first {
            roof::notice().into_iter().for_each(|text| self.warn(text));
            self.opened.push((select.to_owned(), opened.clone()));
        }
        opened.roof = roof::known(&opened.info, &opened.driver);
        let idle = matches!(self.work, Work::Nothing);
        opened.peaks_due = match &opened.roof {
            Some(roof) => first || idle && roof.load().is_some(),
            None => true,
        };
        Ok(opened)
    }

    fn warn(&self, text: String) {
        self.outlet.log("warn", text);
    }

    /// Measures a device's roofs again, with nothing running beside it.
    fn calibrate(&mut self, select: &str) {
        self.end(Some("stopped"));
        let measured = devices::open(select).and_then(|opened| {
            let roof = roof::anew(&opened, |text| self.warn(text))?;
            Ok((opened.info, roof))
        });
        match measured {
            Ok((device, roof)) => self.outlet.send(Event::Calibrated { device, roof }),
            Err(error) => self.fail(0, FailedKind::Device, &error),
        }
    }

    /// Ends what is running and opens the device for these runs, as [`Self::open_without_peaks`] does; reports what cannot run.
    fn prepare(&mut self, request: u64, device: &str, runs: &[RunSpec]) -> Option<OpenDevice> {
        self.end(None);
        let opened = match self.open_without_peaks(device) {
            Ok(opened) => opened,
            Err(error) => {
                let unknown = error.to_string().starts_with("unknown device");
                let kind = match unknown {
                    true => FailedKind::Usage,
                    false => FailedKind::Device,
                };
                self.fail(request, kind, &error);
                return None;
            }
        };
        if let Err(error) = runs.iter().try_for_each(|run| refuse(run, &opened, 0)) {
            self.fail(request, FailedKind::Usage, &error);
            return None;
        }
        self.began = machine::read();
        Some(opened)
    }

    /// Refuses a B that cannot run before the run in progress is ended for it.
    fn refuse_change(&self, device: &str, run: &RunSpec) -> Result<()> {
        let now = match &self.work {
            Work::Training(now) if !self.work.waits() => now,
            _ => return Ok(()),
        };
        let same = run.slot == Slot::B && run.stage == now.spec.stage;
        let opened = self.opened.iter().find(|(name, _)| name == device);
        match opened.filter(|(_, it)| same && it.info == *now.device()) {
            Some((_, opened)) => refuse(run, opened, now.spec.config.memory_estimate()),
            None => Ok(()),
        }
    }

    fn start(&mut self, request: u64, device: &str, run: RunSpec) {
        if let Err(error) = self.refuse_change(device, &run) {
            return self.fail(request, FailedKind::Refused, &error);
        }
        let Some(opened) = self.prepare(request, device, std::slice::from_ref(&run)) else {
            return;
        };
        self.outlet.expect(run.steps.is_none());
        match Trainer::new(request, run, opened, self.outlet.clone()) {
            Ok(trainer) => self.work = Work::Training(Box::new(trainer)),
            Err(error) => self.fail(request, FailedKind::Internal, &error),
        }
    }

    fn apply(&mut self, request: u64, run: RunSpec) {
        let result = (|| match &mut self.work {
            Work::Training(trainer) => {
                ensure!(
                    trainer.spec.config.keeps_parameters(&run.config),
                    "this change needs new parameters; start a run instead"
                );
                first_problem(&run)?;
                trainer.apply(request, run)
            }
            _ => bail!("nothing is running that could change"),
        })();
        if let Err(error) = result {
            self.fail(request, FailedKind::Usage, &error);
        }
    }

    fn pair(&mut self, request: u64, device: &str, sides: [RunSpec; 2], pairs: u32) {
        let Some(opened) = self.prepare(request, device, &sides) else {
            return;
        };
        let opened = self.with_peaks(opened);
        self.outlet.expect(false);
        match Paired::new(request, sides, pairs, opened, self.outlet.clone()) {
            Ok(paired) => self.work = Work::Comparing(Box::new(paired)),
            Err(error) => self.fail(request, FailedKind::Usage, &error),
        }
    }

    fn pause(&mut self) {
        if let Work::Training(trainer) = &mut self.work
            && trainer.paused.is_none()
        {
            trainer.paused = Some(Instant::now());
            let slot = trainer.spec.slot;
            self.outlet.send(Event::Paused { slot });
        }
    }

    fn resume(&mut self) {
        if let Work::Training(trainer) = &mut self.work
            && let Some(since) = trainer.paused.take()
        {
            trainer.stats.paused += since.elapsed();
            trainer.stats.drained.interrupt();
            let slot = trainer.spec.slot;
            self.outlet.send(Event::Resumed { slot });
        }
    }

    /// One step of whatever is running.
    fn advance(&mut self) {
        if self.work.waits() {
            return;
        }
        let result = match &mut self.work {
            Work::Training(trainer) if trainer.done() => return self.end(None),
            Work::Comparing(paired) if paired.done() => return self.end(None),
            Work::Training(trainer) => trainer.advance(),
            Work::Comparing(paired) => paired.advance(),
            Work::Nothing => return,
        };
        if let Err(error) = result {
            let request = self.work.request();
            self.work = Work::Nothing;
            return self.fail(request, FailedKind::Internal, &error);
        }
        let on_cpu = match &self.work {
            Work::Training(trainer) => trainer.on_cpu(),
            Work::Comparing(paired) => paired.on_cpu(),
            Work::Nothing => return,
        };
        for dropped in self.learner.take_dropped() {
            self.swaps.retain(|swap| swap.part != dropped.part);
            self.used(&dropped.exercise, dropped.part, Some(dropped.why));
        }
        for swap in std::mem::take(&mut self.swaps) {
            let why = super::kernel_check::reason_unused(&self.learner, &swap.part, on_cpu);
            self.used(&swap.exercise, &swap.part, why);
        }
    }

    /// Ends the current work with its summary.
    fn end(&mut self, why: Option<&str>) {
        let mut summary = match std::mem::replace(&mut self.work, Work::Nothing) {
            Work::Nothing => return,
            Work::Training(trainer) => trainer.finish(why),
            Work::Comparing(paired) => paired.finish(why),
        };
        summary.others = machine::since(&self.began);
        self.outlet.send(Event::Finished(Box::new(summary)));
        allocator::release();
        for (_, opened) in &self.opened {
            if !opened.queued {
                opened.device.memory_cleanup();
            }
        }
    }

    fn fail(&self, request: u64, kind: FailedKind, error: &anyhow::Error) {
        self.outlet.send(Event::Failed(Failed {
            kind,
            reason: format!("{error:#}"),
            request,
        }));
    }
}

/// What cannot run is refused before anything is built.
fn refuse(run: &RunSpec, opened: &OpenDevice, given_back: u64) -> Result<()> {
    first_problem(run)?;
    if opened.queued {
        let need = run.config.memory_estimate();
        ensure_memory("this run needs", need, given_back)?;
    }
    Ok(())
}

fn first_problem(run: &RunSpec) -> Result<()> {
    let problems = run.config.problems().into_iter();
    problems.take(1).try_for_each(|problem| bail!(problem.what))
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::config::{Preset, RunConfig};

    #[test]
    fn a_pause_counts_in_no_average() {
        let (outlet, _events) = EventSender::to_a_test();
        let opened = devices::open("cpu").expect("there is always one");
        let run = RunSpec::new("custom", &RunConfig::preset(Preset::Tiny));
        let trainer = Trainer::new(0, run, opened, outlet.clone()).expect("it fits");
        let before = trainer.stats.paused;
        let mut session = Session {
            outlet: &outlet,
            opened: Vec::new(),
            work: Work::Training(Box::new(trainer)),
            swaps: Vec::new(),
            learner: LearnerKernels::default(),
            checks: CheckDevice::default(),
            began: machine::read(),
        };
        session.pause();
        session.resume();
        let Work::Training(trainer) = session.work else {
            panic!("it goes on")
        };
        assert!(trainer.stats.paused > before);
    }
}
