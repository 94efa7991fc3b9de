//! The watcher of a check: gives up work that exceeds its limit, and reports it.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::clock::{TimeUsed, WorkClock};
use super::gpu::GpuError;
use crate::host::memory_resident;
use protocol::units::bytes;
use protocol::{KernelFault, KernelFaultKind, KernelProgress, KernelReport, KernelWait};

/// Most processor time for reading or compiling a kernel, and for opening a device.
const COMPILE: Duration = Duration::from_secs(20);
const OPEN: Duration = Duration::from_secs(30);
/// Most wall time of a piece of work, however busy the machine is.
const HOPELESS: Duration = Duration::from_secs(600);
/// How often memory and clocks are read, and how often a busy machine is reported.
const GLANCE: Duration = Duration::from_millis(50);
const TELL: Duration = Duration::from_secs(1);

/// Most processor time for the launches of one size and of all sizes together, and the most bytes by which the process may grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckLimits {
    pub launch: Duration,
    pub whole: Option<Duration>,
    pub memory: Option<u64>,
}

impl Default for CheckLimits {
    fn default() -> Self {
        Self {
            launch: Duration::from_secs(8),
            whole: None,
            memory: None,
        }
    }
}

/// What the worker has found so far, and what it does now.
#[derive(Clone, Debug, Default)]
pub(super) struct CheckState {
    pub report: KernelReport,
    /// None while the device is opened.
    pub file: Option<usize>,
    pub shape: String,
    /// True if a kernel is running.
    pub running: bool,
    /// True if a kernel is being read or compiled.
    pub compiling: bool,
}

impl CheckState {
    fn progress(&self, waits: Option<KernelWait>) -> KernelProgress {
        KernelProgress {
            id: self.report.id,
            exercise: self.report.exercise.clone(),
            files: self.report.files.clone(),
            file: self.file.map(|file| file as u64),
            shape: self.shape.clone(),
            running: self.running,
            waits,
        }
    }

    /// Most processor time of this piece of work. Work on our own kernels has no limit.
    fn limit(&self, limits: CheckLimits) -> Option<Duration> {
        match (self.running, self.compiling, self.file) {
            (true, ..) => Some(limits.launch),
            (_, true, _) => Some(COMPILE),
            (.., None) => Some(OPEN),
            _ => None,
        }
    }
}

/// Waits for the worker until it ends or a piece of work exceeds its limit.
pub(super) fn watch(
    mut state: CheckState,
    news: &Receiver<CheckState>,
    worker: JoinHandle<()>,
    limits: CheckLimits,
    tell: impl Fn(KernelProgress),
) -> KernelReport {
    let before = memory_resident().unwrap_or(0);
    let most = limits.memory.map(|memory| before.saturating_add(memory));
    let too_large = || most.is_some_and(|most| memory_resident().is_some_and(|now| now > most));
    let mut ran = TimeUsed::default();
    loop {
        tell(state.progress(None));
        let mut clock = WorkClock::start();
        let mut told = Instant::now();
        let heard = loop {
            let heard = match news.recv_timeout(GLANCE) {
                Err(RecvTimeoutError::Timeout) => None,
                heard => Some(heard),
            };
            if heard.is_none() && too_large() {
                let most = bytes(limits.memory.unwrap_or_default());
                return give_up(state, format!("it used more than {most} of memory"));
            }
            let spent = clock.spent();
            let mut all = ran;
            all += spent;
            if state.running {
                if let Some(whole) = limits.whole.filter(|whole| all.is_over(*whole)) {
                    let reason = format!("{} at all sizes together", longer(whole, "run"));
                    return give_up(state, reason);
                }
                ran = if heard.is_some() { all } else { ran };
            }
            if let Some(heard) = heard {
                break heard;
            }
            if let Some(limit) = state.limit(limits).filter(|limit| spent.is_over(*limit)) {
                return match (state.running, state.compiling) {
                    (true, _) => endless(state, spent, limit),
                    (_, true) => give_up(state, longer(limit, "compile")),
                    _ => not_checked(state, "the device could not be opened".to_owned()),
                };
            }
            if clock.wall() > HOPELESS {
                let minutes = HOPELESS.as_secs() / 60;
                let why =
                    format!("this machine was too busy for {minutes} minutes; try again later");
                return not_checked(state, why);
            }
            if told.elapsed() >= TELL
                && let Some(waits) = clock.waits(spent)
            {
                told = Instant::now();
                tell(state.progress(Some(waits)));
            }
        };
        match heard {
            Ok(next) => state = next,
            Err(_) => {
                if worker.join().is_err() {
                    state.report.failed =
                        Some("the check panicked; the log has its text".to_owned());
                }
                return state.report;
            }
        }
    }
}

fn longer(limit: Duration, what: &str) -> String {
    let seconds = limit.as_secs_f64();
    format!("it used more than {seconds} s of processor time to {what}")
}

/// The kernel used too much time or memory; the line is not known.
fn give_up(state: CheckState, reason: String) -> KernelReport {
    let fault = KernelFault {
        kind: KernelFaultKind::TooMuch,
        reason,
        ..KernelFault::default()
    };
    ended(state, fault)
}

/// The launches at one size take too long.
fn endless(state: CheckState, spent: TimeUsed, limit: Duration) -> KernelReport {
    let seconds = limit.as_secs_f64();
    let reason = match spent.processor.filter(|it| *it >= limit) {
        Some(_) => format!("{seconds} s of processor time"),
        None => format!("{:.0} s", spent.quiet.as_secs_f64()),
    };
    let fault = KernelFault {
        kind: KernelFaultKind::Endless,
        limit: seconds,
        reason,
        ..KernelFault::default()
    };
    ended(state, fault)
}

/// Adds the fault to the current file's result, and asks for a new process.
fn ended(mut state: CheckState, mut fault: KernelFault) -> KernelReport {
    let report = &mut state.report;
    fault.shape = state.shape;
    if let Some(result) = state.file.and_then(|file| report.files.get_mut(file)) {
        result.fault = Some(fault);
    }
    report.restart = true;
    state.report
}

/// The check failed for a reason that says nothing about the kernel.
fn not_checked(mut state: CheckState, why: String) -> KernelReport {
    state.report.failed = Some(why);
    state.report.restart = true;
    state.report
}

/// The kernel's fault for an error of the device.
pub(super) fn fault(trouble: &GpuError, state: &CheckState) -> KernelFault {
    let (kind, reason) = match trouble {
        GpuError::Refused(why) => (KernelFaultKind::Device, why),
        GpuError::Lost(why) => (KernelFaultKind::Lost, why),
    };
    KernelFault {
        kind,
        shape: state.shape.clone(),
        reason: reason.clone(),
        ..KernelFault::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    fn at_work(running: bool) -> CheckState {
        let mut state = CheckState::default();
        state.report.files.push(Default::default());
        (state.file, state.running, state.compiling) = (Some(0), running, !running);
        state
    }

    fn fault(report: &KernelReport) -> &KernelFault {
        assert!(report.restart);
        report.files[0].fault.as_ref().expect("is given up")
    }

    /// Uses processor time.
    fn works(time: Duration) {
        let began = Instant::now();
        while began.elapsed() < time {
            std::hint::black_box((0..10_000_u64).sum::<u64>());
        }
    }

    /// The worker is not slow; it only uses memory, and sends no more news.
    #[test]
    fn memory_alone_ends_a_check() {
        let limits = CheckLimits {
            memory: Some(64 << 20),
            ..CheckLimits::default()
        };
        let (news, inbox) = channel();
        let worker = std::thread::Builder::new().spawn(move || {
            let taken = vec![1_u8; 512 << 20];
            std::thread::sleep(Duration::from_secs(3));
            drop((taken, news));
        });
        let worker = worker.expect("a thread");
        let report = watch(at_work(false), &inbox, worker, limits, |_| ());
        if memory_resident().is_none() {
            return;
        }
        let fault = fault(&report);
        assert_eq!(fault.kind, KernelFaultKind::TooMuch);
        assert!(
            fault.reason.starts_with("it used more than 6") && fault.reason.ends_with(" of memory"),
            "{}",
            fault.reason
        );
    }

    /// Many short pieces of work exceed the common limit. The fault has no line.
    #[test]
    fn a_check_has_one_limit_for_all_sizes_together() {
        let limits = CheckLimits {
            whole: Some(Duration::from_millis(300)),
            ..CheckLimits::default()
        };
        let (news, inbox) = channel();
        let worker = std::thread::Builder::new().spawn(move || {
            while news.send(at_work(true)).is_ok() {
                works(Duration::from_millis(20));
            }
        });
        let worker = worker.expect("a thread");
        let report = watch(at_work(true), &inbox, worker, limits, |_| ());
        let fault = fault(&report);
        assert_eq!(fault.kind, KernelFaultKind::TooMuch);
        assert!(fault.reason.contains("all sizes together"), "{fault:?}");
        assert_eq!(fault.place, None);
    }
}
