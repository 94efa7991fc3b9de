//! The watcher of a check: gives up what takes longer than it may, and says so.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::gpu::Trouble;
use crate::protocol::{KernelFault, KernelFaultKind, KernelProgress, KernelReport};

/// Longest time that compiling a kernel or opening a device may take.
const COMPILE_TIMEOUT: Duration = Duration::from_secs(60);

/// How long one launch may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub launch: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            launch: Duration::from_secs(10),
        }
    }
}

/// What the worker has found and what it does now.
#[derive(Clone, Debug, Default)]
pub struct State {
    pub report: KernelReport,
    /// None while the device is opened.
    pub file: Option<usize>,
    pub shape: String,
    /// Whether a kernel is running.
    pub running: bool,
}

impl State {
    fn progress(&self) -> KernelProgress {
        KernelProgress {
            id: self.report.id,
            exercise: self.report.exercise.clone(),
            files: self.report.files.clone(),
            file: self.file.map(|file| file as u64),
            shape: self.shape.clone(),
            running: self.running,
        }
    }
}

/// Waits for the worker, but for no piece of work longer than it may take.
pub fn watch(
    mut state: State,
    news: &Receiver<State>,
    worker: JoinHandle<()>,
    limits: Limits,
    tell: impl Fn(KernelProgress),
) -> KernelReport {
    loop {
        tell(state.progress());
        // The device's own limit comes first; this one is for calls that never get to waiting.
        let limit = if state.running {
            limits.launch + Duration::from_secs(1)
        } else {
            COMPILE_TIMEOUT
        };
        match news.recv_timeout(limit) {
            Ok(next) => state = next,
            Err(RecvTimeoutError::Timeout) => break,
            Err(RecvTimeoutError::Disconnected) => {
                if worker.join().is_err() {
                    state.report.failed =
                        Some("the check panicked; the log has its text".to_owned());
                }
                return state.report;
            }
        }
    }
    let seconds = COMPILE_TIMEOUT.as_secs();
    let trouble = if state.running {
        Trouble::Endless
    } else {
        Trouble::Lost(format!("compiling took longer than {seconds} s"))
    };
    let report = &mut state.report;
    match state.file.and_then(|file| report.files.get_mut(file)) {
        Some(result) => result.fault = Some(fault(&trouble, &state.shape, limits)),
        None => report.failed = Some(format!("the device could not be opened within {seconds} s")),
    }
    report.restart = true;
    state.report
}

/// The fault that a device's trouble is for the kernel.
pub fn fault(trouble: &Trouble, shape: &str, limits: Limits) -> KernelFault {
    let (kind, reason) = match trouble {
        Trouble::Endless => (KernelFaultKind::Endless, ""),
        Trouble::Refused(why) => (KernelFaultKind::Device, why.as_str()),
        Trouble::Lost(why) => (KernelFaultKind::Lost, why.as_str()),
    };
    KernelFault {
        kind,
        shape: shape.to_owned(),
        limit: limits.launch.as_secs_f64(),
        reason: reason.to_owned(),
        ..KernelFault::default()
    }
}
