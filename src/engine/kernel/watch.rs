//! The watcher of a check: gives up what takes longer than it may, and says so.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::gpu::Trouble;
use super::message;
use super::source::{longest, without_comments};
use crate::engine::host::memory_resident;
use crate::protocol::{KernelFault, KernelFaultKind, KernelJob, KernelProgress, KernelReport};
use crate::units::bytes;

/// Longest time that reading or compiling a kernel may take, and anything else that runs none: opening a device.
const COMPILE_TIMEOUT: Duration = Duration::from_secs(8);
const TIMEOUT: Duration = Duration::from_secs(60);
/// Digits of a number that may be why a kernel takes too much.
const LARGE: usize = 5;
/// How often the memory is looked at.
const GLANCE: Duration = Duration::from_millis(50);

/// How long one launch may take, and how many bytes the process may grow by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub launch: Duration,
    pub memory: Option<u64>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            launch: Duration::from_secs(10),
            memory: None,
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
    /// Whether one is read or compiled.
    pub compiling: bool,
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
    job: &KernelJob,
    mut state: State,
    news: &Receiver<State>,
    worker: JoinHandle<()>,
    limits: Limits,
    tell: impl Fn(KernelProgress),
) -> KernelReport {
    let before = memory_resident().unwrap_or(0);
    let most = limits.memory.map(|memory| before.saturating_add(memory));
    let too_large = || most.is_some_and(|most| memory_resident().is_some_and(|now| now > most));
    loop {
        tell(state.progress());
        // The device's own limit comes first; this one is for calls that never get to waiting.
        let limit = match (state.running, state.compiling) {
            (true, _) => limits.launch + Duration::from_secs(1),
            (false, true) => COMPILE_TIMEOUT,
            (false, false) => TIMEOUT,
        };
        let began = Instant::now();
        let heard = loop {
            let left = limit.saturating_sub(began.elapsed());
            match news.recv_timeout(left.min(GLANCE)) {
                Err(RecvTimeoutError::Timeout) if too_large() => {
                    let most = bytes(limits.memory.unwrap_or_default());
                    let fault =
                        too_much(job, &state, format!("it took more than {most} of memory"));
                    return give_up(state, fault);
                }
                Err(RecvTimeoutError::Timeout) if left > GLANCE => {}
                heard => break heard,
            }
        };
        match heard {
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
    let fault = if state.running {
        fault(&Trouble::Endless, &state.shape, limits)
    } else {
        let seconds = COMPILE_TIMEOUT.as_secs();
        too_much(
            job,
            &state,
            format!("it took longer than {seconds} s to compile"),
        )
    };
    give_up(state, fault)
}

/// Notes the fault with the file that is looked at, and that the process has to be ended.
fn give_up(mut state: State, fault: KernelFault) -> KernelReport {
    let report = &mut state.report;
    match state.file.and_then(|file| report.files.get_mut(file)) {
        Some(result) => result.fault = Some(fault),
        None => {
            let seconds = TIMEOUT.as_secs();
            report.failed = Some(format!("the device could not be opened within {seconds} s"));
        }
    }
    report.restart = true;
    state.report
}

/// The fault of a kernel that was given up before it ran. Nothing says which line it is: the one with the largest number may be.
fn too_much(job: &KernelJob, state: &State, reason: String) -> KernelFault {
    let file = state.file.and_then(|file| job.files.get(file));
    let place = file.and_then(|file| {
        let code = without_comments(&file.text);
        let largest = longest(&code, |c| c.is_ascii_digit());
        (largest.len() >= LARGE).then(|| {
            let (message, instead) = (String::new(), String::new());
            message::error(&file.text, &largest, message, instead)
        })
    });
    KernelFault {
        kind: KernelFaultKind::TooMuch,
        shape: state.shape.clone(),
        reason,
        place,
        ..KernelFault::default()
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
