//! Checks a learner's WGSL: first the text alone, then runs on the host, then runs on a device that only the check uses. It compares the
//! outputs with those of the exercise's plain loop, and times launches. Every fault of the kernel becomes a part of the report. A check is
//! meant to run in an engine process of its own.

mod access;
mod adopt;
mod check;
mod clock;
mod gpu;
mod host_stage;
mod interpret;
mod parse;
mod timing;
mod trial;
mod watch;

pub use adopt::{adopt, reason_unused};
pub use check::{CheckDevice, check};
pub use tiny_llama::ops::learner_kernel;
pub use watch::CheckLimits;

use std::time::Duration;

use protocol::{Event, KernelJob, KernelShape};

/// The time after a report in which its reader can kill a process whose kernel still runs or is still being compiled.
const KILL_DELAY: Duration = Duration::from_millis(500);
/// The bytes of memory that a check may use besides copies of its buffers.
const MEMORY: u64 = 1 << 30;
/// The number of copies of the buffers at the largest shape that a check may hold.
const COPIES: u64 = 16;
/// The processor time that a learner's kernel may use at all sizes together.
const WHOLE: Duration = Duration::from_secs(30);

/// Answers a `check-kernel` command: sends progress events, then one report. A kernel that does not end cannot be stopped, so the process ends
/// itself soon after the report if the reader does not kill it.
pub fn serve(job: &KernelJob, device: &str, kept: &CheckDevice, send: impl Fn(Event)) {
    let limits = CheckLimits {
        memory: Some(MEMORY + COPIES * buffer_bytes(job)),
        // A test that compares every size with the plain reference has no limit.
        whole: (!job.thorough).then_some(WHOLE),
        ..CheckLimits::default()
    };
    let report = check(job, device, kept, limits, |progress| {
        send(Event::KernelChecking {
            progress: Box::new(progress),
        });
    });
    let is_stuck = report.restart;
    send(Event::KernelChecked {
        report: Box::new(report),
    });
    if is_stuck {
        let kill_later = || {
            std::thread::sleep(KILL_DELAY);
            kill_own_process();
        };
        let thread = std::thread::Builder::new().name("kill".into());
        if thread.spawn(kill_later).is_err() {
            kill_own_process();
        }
    }
}

/// Returns the bytes of all buffers at the largest shape.
fn buffer_bytes(job: &KernelJob) -> u64 {
    let bytes_at = |shape: &KernelShape| {
        let elements: u64 = job
            .files
            .iter()
            .flat_map(|file| &file.spec.bindings)
            .map(|binding| binding.count.value(&shape.sizes).unwrap_or(0))
            .sum();
        4 * elements
    };
    job.shapes.iter().map(bytes_at).max().unwrap_or(0)
}

/// Ends this process without running destructors that wait for the device.
fn kill_own_process() {
    #[cfg(unix)]
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    std::process::abort();
}
