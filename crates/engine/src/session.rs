//! The loop over commands: between two commands it takes one step of the current work.
//!
//! # What ends a run
//!
//! - A run with a last step (`--steps N`) ends when N steps were counted and its profiles were taken: three, or one on `vulkan-cpu`. Profiled
//!   steps are not among the N.
//! - A comparison in pairs ends at a look that gives a verdict, at its limit of pairs or of time, or when a side diverges (`engine::pair`).
//! - A loss that is not finite ends a run. So does a gradient that is not finite although the loss was not scaled up. The summary names the
//!   first tensor that stopped being finite (`engine::audit`).
//! - The commands `stop` and `quit`, a new `start` or `pair`, and the end of the input end a run between two steps. Ctrl-c becomes `stop`. A pause
//!   ends nothing.
//! - An error of the device ends a run with `failed` in place of `finished`.
//!
//! Every run that ends here writes `finished` with its summary. An engine that dies or hangs writes nothing. Its parent notices that, and the
//! screen starts another one (`app::watchdog`).

use std::collections::BTreeMap;
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
use super::{allocator, peaks};
use protocol::machine::{self, ProcessorTime};
use protocol::{Command, Event, Failed, FailedKind, Hello, KernelSwap, PROTOCOL, RunSpec, Slot};
use tiny_llama::ops::device_progress;

/// The work that the engine does between two commands.
enum Work {
    Nothing,
    Training(Box<Trainer>),
    Comparing(Box<Paired>),
}

impl Work {
    /// Returns the number of the last command that started or changed the work; 0 if there is no work.
    fn request(&self) -> u64 {
        match self {
            Self::Nothing => 0,
            Self::Training(trainer) => trainer.request,
            Self::Comparing(paired) => paired.last.request,
        }
    }

    /// Returns true if the work goes on only after a command.
    fn waits(&self) -> bool {
        match self {
            Self::Nothing => true,
            Self::Training(trainer) => trainer.paused_since.is_some(),
            Self::Comparing(_) => false,
        }
    }
}

struct Session<'a> {
    outlet: &'a EventSender,
    /// The devices opened so far, by their values of `--device`. A runtime can be set up only once in a process.
    opened: BTreeMap<String, OpenDevice>,
    work: Work,
    /// Learners' kernels that joined the model since the last step.
    swaps: Vec<KernelSwap>,
    /// The learner's kernels that compute in the model.
    learner: LearnerKernels,
    /// The device on which kernels are checked.
    checks: CheckDevice,
    /// The processor time used when the work began.
    began: Result<ProcessorTime, String>,
}

/// Serves commands until `quit` or the end of the input.
pub(crate) fn run(outlet: &EventSender, commands: &Receiver<Command>) {
    allocator::keep();
    let mut session = Session::new(outlet, Work::Nothing);
    loop {
        let next = if session.work.waits() {
            device_progress::DEVICE.rest();
            commands.recv().map_err(|_| TryRecvError::Disconnected)
        } else {
            commands.try_recv()
        };
        match next {
            Ok(Command::Quit) | Err(TryRecvError::Disconnected) => break,
            Ok(command) => {
                device_progress::DEVICE.begin();
                if !session.carry_out(command) {
                    break;
                }
            }
            Err(TryRecvError::Empty) => {}
        }
        device_progress::DEVICE.step();
        session.advance();
    }
    session.end(Some("stopped"));
}

impl<'a> Session<'a> {
    fn new(outlet: &'a EventSender, work: Work) -> Self {
        Self {
            outlet,
            opened: BTreeMap::new(),
            work,
            swaps: Vec::new(),
            learner: LearnerKernels::default(),
            checks: CheckDevice::default(),
            began: machine::read(),
        }
    }

    /// Carries out one command. Returns false if the reader speaks another protocol, which ends the session.
    fn carry_out(&mut self, command: Command) -> bool {
        match command {
            Command::Hello { protocol, threads } => {
                if let Some(threads) = threads {
                    // Nothing was computed yet. This fails only if the number of threads was set before, and then it stays.
                    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads as usize);
                    let _ = pool.build_global();
                }
                self.hello(protocol);
                return protocol == PROTOCOL;
            }
            Command::Probe => {
                self.set_damaged_peaks_aside();
                let mut devices = devices::probe();
                for info in &mut devices {
                    info.peaks = peaks::known(&info.device, &info.driver);
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
            Command::Apply { run, request } => {
                if let Err(error) = self.apply(request, run) {
                    self.fail(request, FailedKind::Usage, &error);
                }
            }
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
                Work::Training(trainer) => trainer.profile_request = Some(request),
                _ if request == 0 => {}
                _ => {
                    let error = anyhow!("no run is in progress, so there is no step to profile");
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
                    // The next step shows whether the model uses them.
                    Ok(()) => self.swaps.push(swap),
                    Err(why) => self.report_swap(&swap.exercise, &swap.part, Some(why)),
                }
            }
            Command::Quit => {}
        }
        true
    }

    /// Reports that a learner's kernels compute a part of the model, or why not.
    fn report_swap(&self, exercise: &str, part: &str, why_not: Option<String>) {
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
                "the reader speaks protocol {protocol}, this engine {PROTOCOL}; \
                 update the older of the two programs"
            );
            self.fail(0, FailedKind::Usage, &anyhow!(reason));
        }
    }

    /// Opens the device, and measures its peaks if that is due.
    fn open(&mut self, select: &str) -> Result<OpenDevice> {
        let mut opened = self.open_without_peaks(select)?;
        peaks::measure_if_due(&mut opened, |text| self.warn(text));
        Ok(opened)
    }

    /// Opens the device with the peaks that are on file. Peaks are due to be measured if there are none, if this process opens the device for
    /// the first time (peaks that are steady stay as they are), and before a run if other programs disturbed them.
    fn open_without_peaks(&mut self, select: &str) -> Result<OpenDevice> {
        let first = !self.opened.contains_key(select);
        if first {
            let opened = OpenDevice {
                learner: self.learner.clone(),
                ..devices::open(select)?
            };
            self.set_damaged_peaks_aside();
            self.opened.insert(select.to_owned(), opened);
        }
        let mut opened = self.opened[select].clone();
        opened.peaks = peaks::known(&opened.info, &opened.driver);
        let idle = matches!(self.work, Work::Nothing);
        opened.peaks_due = match &opened.peaks {
            Some(peaks) => first || idle && peaks.load().is_some(),
            None => true,
        };
        Ok(opened)
    }

    fn warn(&self, text: String) {
        self.outlet.log("warn", text);
    }

    /// Sets a damaged file of peaks aside, and warns about it.
    fn set_damaged_peaks_aside(&self) {
        if let Some(warning) = peaks::set_damaged_file_aside() {
            self.warn(warning);
        }
    }

    /// Ends the run in progress and measures the peaks of a device again.
    fn calibrate(&mut self, select: &str) {
        self.end(Some("stopped"));
        let measured = devices::open(select).and_then(|opened| {
            let peaks = peaks::measure_again(&opened, |text| self.warn(text))?;
            Ok((opened.info, peaks))
        });
        match measured {
            Ok((device, peaks)) => self.outlet.send(Event::Calibrated { device, peaks }),
            Err(error) => self.fail(0, FailedKind::Device, &error),
        }
    }

    /// Ends the work in progress and opens the device for these runs, as [`Self::open_without_peaks`] does. Reports a failure and returns `None` if
    /// one of them cannot run.
    fn prepare(&mut self, request: u64, device: &str, runs: &[RunSpec]) -> Option<OpenDevice> {
        self.end(None);
        let opened = match self.open_without_peaks(device) {
            Ok(opened) => opened,
            Err(error) => {
                let kind = if error.to_string().starts_with("unknown device") {
                    FailedKind::Usage
                } else {
                    FailedKind::Device
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

    /// Returns an error if a run of B cannot follow the run in progress on its device. That run then goes on.
    fn refuse_change(&self, device: &str, run: &RunSpec) -> Result<()> {
        let current = match &self.work {
            Work::Training(current) if !self.work.waits() => current,
            _ => return Ok(()),
        };
        let changes_current = run.slot == Slot::B && run.stage == current.spec.stage;
        match self.opened.get(device) {
            Some(opened) if changes_current && opened.info == *current.device() => {
                refuse(run, opened, current.spec.config.memory_estimate())
            }
            _ => Ok(()),
        }
    }

    fn start(&mut self, request: u64, device: &str, run: RunSpec) {
        if let Err(error) = self.refuse_change(device, &run) {
            return self.fail(request, FailedKind::Refused, &error);
        }
        let Some(opened) = self.prepare(request, device, std::slice::from_ref(&run)) else {
            return;
        };
        self.outlet.begin_run(run.steps.is_none());
        match Trainer::new(request, run, opened, self.outlet.clone()) {
            Ok(trainer) => self.work = Work::Training(Box::new(trainer)),
            Err(error) => self.fail(request, FailedKind::Internal, &error),
        }
    }

    /// Continues the run in progress with changed knobs.
    ///
    /// # Errors
    /// Fails when there is no run, the change needs new parameters, or the configuration has a problem.
    fn apply(&mut self, request: u64, run: RunSpec) -> Result<()> {
        let Work::Training(trainer) = &mut self.work else {
            bail!("no run is in progress, so there is nothing to change");
        };
        ensure!(
            trainer.spec.config.keeps_parameters(&run.config),
            "this change needs new parameters; start a run instead"
        );
        first_problem(&run)?;
        trainer.apply(request, run)
    }

    fn pair(&mut self, request: u64, device: &str, sides: [RunSpec; 2], pairs: u32) {
        let Some(mut opened) = self.prepare(request, device, &sides) else {
            return;
        };
        peaks::measure_if_due(&mut opened, |text| self.warn(text));
        self.outlet.begin_run(false);
        match Paired::new(request, sides, pairs, opened, self.outlet.clone()) {
            Ok(paired) => self.work = Work::Comparing(Box::new(paired)),
            Err(error) => self.fail(request, FailedKind::Usage, &error),
        }
    }

    fn pause(&mut self) {
        if let Work::Training(trainer) = &mut self.work
            && trainer.paused_since.is_none()
        {
            trainer.paused_since = Some(Instant::now());
            let slot = trainer.spec.slot;
            self.outlet.send(Event::Paused { slot });
        }
    }

    fn resume(&mut self) {
        if let Work::Training(trainer) = &mut self.work
            && let Some(since) = trainer.paused_since.take()
        {
            trainer.stats.pause_time += since.elapsed();
            trainer.stats.unsynced.interrupt();
            let slot = trainer.spec.slot;
            self.outlet.send(Event::Resumed { slot });
        }
    }

    /// Takes one step of the work in progress, or ends it if it is done.
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
            self.report_swap(&dropped.exercise, dropped.part, Some(dropped.why));
        }
        for swap in std::mem::take(&mut self.swaps) {
            let why = super::kernel_check::reason_unused(&self.learner, &swap.part, on_cpu);
            self.report_swap(&swap.exercise, &swap.part, why);
        }
    }

    /// Ends the work in progress and sends its summary. `why` is the reason if something cut the work short.
    fn end(&mut self, why: Option<&str>) {
        let mut summary = match std::mem::replace(&mut self.work, Work::Nothing) {
            Work::Nothing => return,
            Work::Training(trainer) => trainer.finish(why),
            Work::Comparing(paired) => paired.finish(why),
        };
        summary.others = machine::others_since(&self.began);
        self.outlet.send(Event::Finished(Box::new(summary)));
        allocator::release();
        for opened in self.opened.values() {
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

/// Returns an error if a run has a bad configuration, or needs more memory than is free on the CPU once the earlier run gave back `given_back`
/// bytes.
fn refuse(run: &RunSpec, opened: &OpenDevice, given_back: u64) -> Result<()> {
    first_problem(run)?;
    if opened.queued {
        let need = run.config.memory_estimate();
        ensure_memory("this run needs", need, given_back)?;
    }
    Ok(())
}

/// Returns the first problem of a run's configuration as an error.
fn first_problem(run: &RunSpec) -> Result<()> {
    match run.config.problems().into_iter().next() {
        Some(problem) => bail!(problem.message),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::config::{Preset, RunConfig};

    #[test]
    fn the_time_of_a_pause_is_counted_apart() {
        let (outlet, _events) = EventSender::new();
        let opened = devices::open("cpu").expect("there is always one");
        let run = RunSpec::new("custom", &RunConfig::preset(Preset::Tiny));
        let trainer = Trainer::new(0, run, opened, outlet.clone()).expect("it fits");
        let before = trainer.stats.pause_time;
        let mut session = Session::new(&outlet, Work::Training(Box::new(trainer)));

        session.pause();
        session.resume();

        let Work::Training(trainer) = session.work else {
            panic!("it goes on")
        };
        assert!(trainer.stats.pause_time > before);
    }
}
