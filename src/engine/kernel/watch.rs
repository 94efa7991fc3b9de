//! The watcher of a check: gives up what takes longer than it may, and says so.

use std::ops::Range;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::gpu::GpuError;
use super::message;
use super::source::{longest, without_comments};
use crate::engine::host::memory_resident;
use crate::protocol::{KernelFault, KernelFaultKind, KernelJob, KernelProgress, KernelReport};
use crate::units::bytes;

/// Longest time that reading or compiling a kernel may take, and anything else that runs none: opening a device.
const COMPILE_TIMEOUT: Duration = Duration::from_secs(7);
const TIMEOUT: Duration = Duration::from_secs(60);
/// Digits of a number that may be why a kernel takes too much.
const LARGE: usize = 5;
const MAIN: &str = "fn main";
/// How often the memory is looked at.
const GLANCE: Duration = Duration::from_millis(50);

/// How long one launch may take, how long a kernel may be compiled and run at all sizes together, and how many bytes the
/// process may grow by.
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

/// What the worker has found and what it does now.
#[derive(Clone, Debug, Default)]
pub struct CheckState {
    pub report: KernelReport,
    /// None while the device is opened.
    pub file: Option<usize>,
    pub shape: String,
    /// Whether a kernel is running.
    pub running: bool,
    /// Whether one is read or compiled.
    pub compiling: bool,
}

impl CheckState {
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
    mut state: CheckState,
    news: &Receiver<CheckState>,
    worker: JoinHandle<()>,
    limits: CheckLimits,
    tell: impl Fn(KernelProgress),
) -> KernelReport {
    let before = memory_resident().unwrap_or(0);
    let most = limits.memory.map(|memory| before.saturating_add(memory));
    let too_large = || most.is_some_and(|most| memory_resident().is_some_and(|now| now > most));
    let mut spent = Duration::ZERO;
    loop {
        tell(state.progress());
        // The device's own limit comes first; this one is for calls that never get to waiting.
        let limit = match (state.running, state.compiling) {
            (true, _) => limits.launch + Duration::from_secs(1),
            (false, true) => COMPILE_TIMEOUT,
            (false, false) => TIMEOUT,
        };
        let works = state.running || state.compiling;
        let rest = limits.whole.filter(|_| works);
        let rest = rest.map(|whole| whole.saturating_sub(spent));
        let limit = rest.map_or(limit, |rest| rest.min(limit));
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
        if works {
            spent += began.elapsed();
        }
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
    let fault = if let Some(whole) = limits.whole.filter(|whole| spent >= *whole) {
        let seconds = whole.as_secs();
        let reason = format!("it took longer than {seconds} s, all sizes together");
        too_much(job, &state, reason)
    } else if state.running {
        fault(&GpuError::Endless, job, &state, limits)
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
fn give_up(mut state: CheckState, fault: KernelFault) -> KernelReport {
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

/// The fault of a kernel that was given up. Nothing says which line it is: the one with the largest number may be, else its first
/// loop, else it is the whole of `main`.
fn too_much(job: &KernelJob, state: &CheckState, reason: String) -> KernelFault {
    let file = state.file.and_then(|file| job.files.get(file));
    let place = file.and_then(|file| {
        let code = without_comments(&file.text);
        let largest = longest(&code, |c| c.is_ascii_digit());
        let main = || code.find(MAIN).map(|at| at..at + MAIN.len());
        let range = match largest.len() >= LARGE {
            true => largest,
            false => first_loop(&code).or_else(main)?,
        };
        let (message, instead) = (String::new(), String::new());
        Some(message::error(&file.text, &range, message, instead))
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
pub fn fault(
    trouble: &GpuError,
    job: &KernelJob,
    state: &CheckState,
    limits: CheckLimits,
) -> KernelFault {
    let (kind, reason) = match trouble {
        GpuError::Endless if !has_loop(job, state) => {
            let seconds = limits.launch.as_secs();
            let reason =
                format!("it has no loop, and took longer than {seconds} s to compile and run");
            return too_much(job, state, reason);
        }
        GpuError::Endless => (KernelFaultKind::Endless, ""),
        GpuError::Refused(why) => (KernelFaultKind::Device, why.as_str()),
        GpuError::Lost(why) => (KernelFaultKind::Lost, why.as_str()),
    };
    KernelFault {
        kind,
        shape: state.shape.clone(),
        limit: limits.launch.as_secs_f64(),
        reason: reason.to_owned(),
        ..KernelFault::default()
    }
}

/// Whether the file that is looked at has a loop; a driver may compile one without for as long as one that does not end runs.
fn has_loop(job: &KernelJob, state: &CheckState) -> bool {
    let file = state.file.and_then(|file| job.files.get(file));
    let code = file.map_or_else(String::new, |file| without_comments(&file.text));
    first_loop(&code).is_some()
}

/// Where the word stands that begins the first loop.
fn first_loop(code: &str) -> Option<Range<usize>> {
    let mut at = 0;
    code.split_inclusive(|c: char| !c.is_alphanumeric() && c != '_')
        .find_map(|piece| {
            let begin = at;
            at += piece.len();
            let word = piece.trim_end_matches(|c: char| !c.is_alphanumeric() && c != '_');
            let range = begin..begin + word.len();
            matches!(word, "for" | "while" | "loop").then_some(range)
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    /// The worker is never slow; it only takes memory, and says nothing any more.
    #[test]
    fn memory_alone_ends_a_check() {
        let job = KernelJob {
            files: vec![Default::default()],
            ..KernelJob::default()
        };
        let mut state = CheckState::default();
        state.report.files.push(Default::default());
        (state.file, state.compiling) = (Some(0), true);
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
        let report = watch(
            &job,
            state,
            &inbox,
            worker.expect("a thread"),
            limits,
            |_| (),
        );
        if memory_resident().is_none() {
            return;
        }
        let fault = report.files[0].fault.as_ref().expect("is given up");
        assert_eq!(fault.kind, KernelFaultKind::TooMuch);
        assert!(
            fault.reason.starts_with("it took more than 6"),
            "{}",
            fault.reason
        );
        assert!(fault.reason.ends_with(" of memory"), "{}", fault.reason);
        assert!(report.restart);
    }

    /// Each piece of work is short, and there are many of them.
    #[test]
    fn a_check_has_one_limit_for_all_sizes_together() {
        let mut job = KernelJob::default();
        job.files.push(Default::default());
        job.files[0].text = "fn main() {\n  for (;;) {}\n}".to_owned();
        let mut state = CheckState::default();
        state.report.files.push(Default::default());
        (state.file, state.running) = (Some(0), true);
        let limits = CheckLimits {
            whole: Some(Duration::from_millis(300)),
            ..CheckLimits::default()
        };
        let (news, inbox) = channel();
        let next = state.clone();
        let worker = std::thread::Builder::new().spawn(move || {
            while news.send(next.clone()).is_ok() {
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        let worker = worker.expect("a thread");
        let report = watch(&job, state, &inbox, worker, limits, |_| ());
        let fault = report.files[0].fault.as_ref().expect("is given up");
        assert_eq!(fault.kind, KernelFaultKind::TooMuch);
        assert!(fault.reason.contains("all sizes together"), "{fault:?}");
        assert_eq!(fault.place.as_ref().map(|place| place.line), Some(2));
    }

    #[test]
    fn a_kernel_without_a_loop_is_not_said_to_have_one() {
        let said = |text: &str| {
            let mut job = KernelJob::default();
            job.files.push(Default::default());
            job.files[0].text = text.to_owned();
            let state = CheckState {
                file: Some(0),
                ..CheckState::default()
            };
            fault(&GpuError::Endless, &job, &state, CheckLimits::default())
        };
        let slow = said("// for ever\nfn main() {}");
        assert_eq!(slow.kind, KernelFaultKind::TooMuch);
        assert_eq!(slow.place.map(|place| place.line), Some(2));
        assert_eq!(
            said("fn main() { while (true) {} }").kind,
            KernelFaultKind::Endless
        );
    }
}
