//! The watcher of a check: gives up what takes longer than it may, and says so.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::gpu::Trouble;
use crate::protocol::{KernelFault, KernelFaultKind, KernelReport};

/// How long compiling and opening a device may take; there is nothing endless in them.
const PATIENCE: Duration = Duration::from_secs(60);
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

/// What the worker is at, for the watcher to tell.
#[derive(Clone, Debug)]
pub struct At {
    pub since: Instant,
    pub file: usize,
    pub shape: String,
    /// Whether a kernel is running.
    pub running: bool,
}

/// What worker and watcher share.
pub struct Desk {
    pub report: KernelReport,
    pub at: At,
}

/// Shared by both.
pub type Shared = Arc<Mutex<Desk>>;

/// The desk, whoever panicked at it.
pub fn lock(desk: &Shared) -> MutexGuard<'_, Desk> {
    desk.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for the worker, but for no piece of work longer than it may take.
pub fn watch(desk: &Shared, finished: &Receiver<()>, limits: Limits, mut look: impl FnMut(&Desk)) {
    while let Err(RecvTimeoutError::Timeout) = finished.recv_timeout(TICK) {
        let mut desk = lock(desk);
        look(&desk);
        let at = desk.at.clone();
        // The device's own limit comes first; this one is for calls that never get to waiting.
        let limit = if at.running {
            limits.launch + Duration::from_secs(1)
        } else {
            PATIENCE
        };
        if at.since.elapsed() < limit {
            continue;
        }
        let trouble = if at.running {
            Trouble::Endless
        } else {
            Trouble::Lost("compiling does not end".to_owned())
        };
        let fault = fault(&trouble, &at.shape, limits);
        match desk.report.files.get_mut(at.file) {
            Some(result) => result.fault = Some(fault),
            None => desk.report.failed = Some(fault.text),
        }
        desk.report.restart = true;
        return;
    }
}

/// What a kernel's trouble is called.
pub fn fault(trouble: &Trouble, shape: &str, limits: Limits) -> KernelFault {
    let seconds = limits.launch.as_secs_f64();
    let (kind, text) = match trouble {
        Trouble::Endless => {
            let text = format!(
                "does not end: it was still running after {seconds} s. A loop's condition stays true, or it is far too slow"
            );
            (KernelFaultKind::Endless, text)
        }
        Trouble::Refused(why) => (
            KernelFaultKind::Device,
            format!("the driver refused it: {why}"),
        ),
        Trouble::Lost(why) => (
            KernelFaultKind::Device,
            format!("the device was lost while it ran: {why}"),
        ),
    };
    KernelFault {
        kind,
        shape: shape.to_owned(),
        text,
        ..KernelFault::default()
    }
}
