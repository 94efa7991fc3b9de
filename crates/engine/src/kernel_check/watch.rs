//! The watcher of a check, and the reports that the worker sends to it. The watcher gives up work that exceeds a limit, and reports the fault.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::clock::{TimeUsed, WorkClock};
use super::gpu::GpuError;
use crate::host::memory_resident;
use protocol::units::bytes;
use protocol::{
    KernelFault, KernelFaultKind, KernelMatch, KernelProgress, KernelReport, KernelResult,
    KernelWait,
};

/// The limit on processor time for reading or compiling a kernel.
const COMPILE: Duration = Duration::from_secs(20);
/// The limit on processor time for opening a device.
const OPEN: Duration = Duration::from_secs(30);
/// The limit on wall time of a piece of work, however busy the machine is.
const HOPELESS: Duration = Duration::from_secs(600);
/// The time between two readings of memory and clocks.
const INTERVAL: Duration = Duration::from_millis(50);
/// The time between two reports of a busy machine.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);

/// The limits of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckLimits {
    /// The processor time for the launches of one size.
    pub launch: Duration,
    /// The processor time for the launches of all sizes together; `None` for no limit.
    pub whole: Option<Duration>,
    /// The bytes by which the process may grow; `None` for no limit.
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

/// The results of a check so far, and the work that it does now.
#[derive(Clone, Debug, Default)]
pub(super) struct CheckState {
    pub report: KernelReport,
    /// The index of the file that is checked now; `None` while the device is opened.
    pub file: Option<usize>,
    /// The label of the shape that is tried now.
    pub shape: String,
    /// True while a learner's kernel runs on a device.
    pub running: bool,
    /// True while a kernel is read or compiled.
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

    /// Returns the limit on processor time of the present work; `None` for work without a limit, such as runs of our own kernels.
    fn limit(&self, limits: CheckLimits) -> Option<Duration> {
        if self.running {
            Some(limits.launch)
        } else if self.compiling {
            Some(COMPILE)
        } else if self.file.is_none() {
            Some(OPEN)
        } else {
            None
        }
    }
}

/// The state of a check, and the channel on which the watcher receives it.
pub(super) struct CheckNews {
    pub state: CheckState,
    pub outbox: Sender<CheckState>,
}

impl CheckNews {
    pub(super) fn result(&mut self, index: usize) -> &mut KernelResult {
        &mut self.state.report.files[index]
    }

    /// Adds a shape at which the file is right. A shape that was tried before keeps the largest error of all tries.
    pub(super) fn add_match(&mut self, index: usize, mut matched: KernelMatch) {
        let shapes = &mut self.result(index).shapes;
        let earlier = shapes.iter().position(|other| other.shape == matched.shape);
        if let Some(earlier) = earlier.map(|earlier| shapes.remove(earlier)) {
            matched.error = matched.error.max(earlier.error);
            matched.share = matched.share.max(earlier.share);
        }
        shapes.push(matched);
    }

    /// Reports that the worker now tries a file at a shape. `running` is true while the kernel runs on a device, where its time is
    /// limited.
    pub(super) fn report_try(&mut self, file: Option<usize>, shape: &str, running: bool) {
        self.state.file = file;
        self.state.shape = shape.to_owned();
        self.state.running = running;
        self.state.compiling = false;
        self.send();
    }

    /// Reports that the worker now reads or compiles a file.
    pub(super) fn report_compiling(&mut self, file: usize, shape: &str) {
        self.report_try(Some(file), shape, false);
        self.state.compiling = true;
        self.send();
    }

    /// Sends the state to the watcher.
    pub(super) fn send(&self) {
        let _ = self.outbox.send(self.state.clone());
    }
}

/// Waits for the worker until it ends or a piece of work exceeds its limit.
pub(super) fn watch(
    mut state: CheckState,
    news: &Receiver<CheckState>,
    worker: JoinHandle<()>,
    limits: CheckLimits,
    on_progress: impl Fn(KernelProgress),
) -> KernelReport {
    let before = memory_resident().unwrap_or(0);
    let too_large =
        |limit: u64| memory_resident().is_some_and(|now| now > before.saturating_add(limit));
    // The time that all launches before the present ones used.
    let mut ran = TimeUsed::default();
    loop {
        on_progress(state.progress(None));
        let mut clock = WorkClock::start();
        let mut reported = Instant::now();
        let next = loop {
            let received = news.recv_timeout(INTERVAL);
            let is_at_work = matches!(received, Err(RecvTimeoutError::Timeout));
            if is_at_work
                && let Some(limit) = limits.memory
                && too_large(limit)
            {
                let reason = format!("it used more than {} of memory", bytes(limit));
                return too_much(state, reason);
            }
            let spent = clock.spent();
            if state.running {
                let all = ran + spent;
                if let Some(limit) = limits.whole
                    && all.is_over(limit)
                {
                    let reason = format!("{} at all sizes together", too_long(limit, "run"));
                    return too_much(state, reason);
                }
                if !is_at_work {
                    ran = all;
                }
            }
            if !is_at_work {
                break received;
            }
            if let Some(limit) = state.limit(limits)
                && spent.is_over(limit)
            {
                return if state.running {
                    endless(state, spent, limit)
                } else if state.compiling {
                    too_much(state, too_long(limit, "compile"))
                } else {
                    not_checked(state, "the device could not be opened".to_owned())
                };
            }
            if clock.wall() > HOPELESS {
                let minutes = HOPELESS.as_secs() / 60;
                let why =
                    format!("this machine was too busy for {minutes} minutes; try again later");
                return not_checked(state, why);
            }
            if reported.elapsed() >= REPORT_INTERVAL
                && let Some(waits) = clock.waits(spent)
            {
                reported = Instant::now();
                on_progress(state.progress(Some(waits)));
            }
        };
        match next {
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

/// Returns the reason for giving up a kernel that used more processor time than `limit`. `work` is a verb: `run` or `compile`.
fn too_long(limit: Duration, work: &str) -> String {
    let seconds = limit.as_secs_f64();
    format!("it used more than {seconds} s of processor time to {work}")
}

/// Reports that the kernel used too much time or memory. The line that did it is not known.
fn too_much(state: CheckState, reason: String) -> KernelReport {
    give_up(state, KernelFaultKind::TooMuch, 0.0, reason)
}

/// Reports that the launches at one size take too long.
fn endless(state: CheckState, spent: TimeUsed, limit: Duration) -> KernelReport {
    let seconds = limit.as_secs_f64();
    let reason = if spent.processor.is_some_and(|time| time >= limit) {
        format!("{seconds} s of processor time")
    } else {
        format!("{:.0} s", spent.quiet.as_secs_f64())
    };
    give_up(state, KernelFaultKind::Endless, seconds, reason)
}

/// Adds a fault to the result of the present file, and asks for a new process.
fn give_up(
    mut state: CheckState,
    kind: KernelFaultKind,
    limit: f64,
    reason: String,
) -> KernelReport {
    if let Some(result) = state.file.and_then(|file| state.report.files.get_mut(file)) {
        result.fault = Some(KernelFault {
            kind,
            shape: state.shape,
            limit,
            reason,
            ..KernelFault::default()
        });
    }
    state.report.restart = true;
    state.report
}

/// Reports that the check failed for a reason outside the kernel.
fn not_checked(mut state: CheckState, why: String) -> KernelReport {
    state.report.failed = Some(why);
    state.report.restart = true;
    state.report
}

/// Returns the kernel's fault for an error of the device.
pub(super) fn fault(error: &GpuError, state: &CheckState) -> KernelFault {
    let (kind, reason) = match error {
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
    use std::sync::mpsc::channel;
    use std::thread;

    use super::*;

    fn running() -> CheckState {
        let mut state = CheckState::default();
        state.report.files.push(Default::default());
        state.file = Some(0);
        state.running = true;
        state
    }

    fn compiling() -> CheckState {
        CheckState {
            running: false,
            compiling: true,
            ..running()
        }
    }

    /// Watches a worker, and returns the fault for which the watcher gave it up.
    fn fault_of(
        state: CheckState,
        limits: CheckLimits,
        work: impl FnOnce(Sender<CheckState>) + Send + 'static,
    ) -> KernelFault {
        let (news, inbox) = channel();
        let worker = thread::spawn(move || work(news));
        let report = watch(state, &inbox, worker, limits, |_| ());
        assert!(report.restart);
        report.files[0].fault.clone().expect("a fault")
    }

    #[test]
    fn memory_alone_ends_a_check() {
        if memory_resident().is_none() {
            return;
        }
        let limits = CheckLimits {
            memory: Some(64 << 20),
            ..CheckLimits::default()
        };

        let fault = fault_of(compiling(), limits, |news| {
            let memory = vec![1_u8; 512 << 20];
            thread::sleep(Duration::from_secs(3));
            drop((memory, news));
        });

        assert_eq!(fault.kind, KernelFaultKind::TooMuch);
        let reason = &fault.reason;
        assert!(reason.starts_with("it used more than 6"), "{reason}");
        assert!(reason.ends_with(" of memory"), "{reason}");
    }

    #[test]
    fn a_check_has_one_limit_for_all_sizes_together() {
        let limits = CheckLimits {
            whole: Some(Duration::from_millis(300)),
            ..CheckLimits::default()
        };

        let fault = fault_of(running(), limits, |news| {
            while news.send(running()).is_ok() {
                let began = Instant::now();
                while began.elapsed() < Duration::from_millis(20) {
                    std::hint::black_box((0..10_000_u64).sum::<u64>());
                }
            }
        });

        assert_eq!(fault.kind, KernelFaultKind::TooMuch);
        assert!(fault.reason.contains("all sizes together"), "{fault:?}");
        assert_eq!(fault.place, None);
    }

    #[test]
    fn a_shape_keeps_the_largest_error_of_its_tries() {
        let (outbox, _inbox) = channel();
        let mut state = CheckState::default();
        state.report.files.push(KernelResult::default());
        let mut news = CheckNews { state, outbox };

        for (error, share) in [(1e-3, 0.1), (1e-6, 0.9), (1e-5, 0.2)] {
            let matched = KernelMatch {
                shape: "7 × 3".to_owned(),
                error,
                share,
                against: "reference".to_owned(),
            };
            news.add_match(0, matched);
        }

        let [shape] = &news.result(0).shapes[..] else {
            panic!("one shape was tried");
        };
        assert_eq!((shape.error, shape.share), (1e-3, 0.9));
    }
}
