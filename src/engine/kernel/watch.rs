//! The watcher of a check: gives up what takes longer than it may, and says so.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::gpu::Trouble;
use crate::protocol::{KernelFault, KernelFaultKind, KernelProgress, KernelReport};

/// Longest time that compiling a kernel or opening a device may take.
const COMPILE_TIMEOUT: Duration = Duration::from_secs(60);
const TICK: Duration = Duration::from_millis(20);

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

/// What the worker is doing, for the watcher to report.
#[derive(Clone, Debug)]
pub struct At {
    pub since: Instant,
    /// None while the device is opened.
    pub file: Option<usize>,
    pub shape: String,
    /// Whether a kernel is running.
    pub running: bool,
}

/// What worker and watcher share.
pub struct State {
    pub report: KernelReport,
    pub at: At,
}

impl State {
    pub fn progress(&self) -> KernelProgress {
        KernelProgress {
            id: self.report.id,
            exercise: self.report.exercise.clone(),
            files: self.report.files.clone(),
            file: self.at.file.map(|file| file as u64),
            shape: self.at.shape.clone(),
            running: self.at.running,
        }
    }
}

pub type Shared = Arc<Mutex<State>>;

/// Locks the shared state, ignoring poisoning.
pub fn lock(shared: &Shared) -> MutexGuard<'_, State> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for the worker, but for no piece of work longer than it may take.
pub fn watch(
    shared: &Shared,
    finished: &Receiver<()>,
    limits: Limits,
    mut look: impl FnMut(&State),
) {
    while let Err(RecvTimeoutError::Timeout) = finished.recv_timeout(TICK) {
        let mut state = lock(shared);
        look(&state);
        let at = state.at.clone();
        // The device's own limit comes first; this one is for calls that never get to waiting.
        let limit = if at.running {
            limits.launch + Duration::from_secs(1)
        } else {
            COMPILE_TIMEOUT
        };
        if at.since.elapsed() < limit {
            continue;
        }
        let trouble = if at.running {
            Trouble::Endless
        } else {
            Trouble::Lost(format!(
                "compiling took longer than {} s",
                COMPILE_TIMEOUT.as_secs()
            ))
        };
        let fault = fault(&trouble, &at.shape, limits);
        match at.file.and_then(|file| state.report.files.get_mut(file)) {
            Some(result) => result.fault = Some(fault),
            None => {
                let seconds = COMPILE_TIMEOUT.as_secs();
                state.report.failed =
                    Some(format!("the device could not be opened within {seconds} s"));
            }
        }
        state.report.restart = true;
        return;
    }
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
