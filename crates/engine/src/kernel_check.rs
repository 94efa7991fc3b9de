//! Checks a learner's WGSL: first the text alone, then a run on the host, then runs on a device that only the check uses. Results are
//! compared with a plain reference, and launches are timed. Whatever the kernel does becomes data in the report. The check is meant
//! to run in its own engine process.

mod access;
mod adopt;
mod check;
mod clock;
mod gpu;
mod interpret;
mod timing;
mod trial;
mod watch;

pub use adopt::{adopt, reason_unused};
pub use check::{CheckDevice, check};
pub use tiny_llama::ops::learner_kernel;
pub use watch::CheckLimits;

use std::time::Duration;

use protocol::{Event, KernelJob, KernelShape};

/// How long the reader of a report has to kill a process in which a kernel still runs or is still being compiled.
const KILL_DELAY: Duration = Duration::from_millis(500);
/// Memory that a check may use, in bytes: `MEMORY`, and `COPIES` times its buffers at the largest shape.
const MEMORY: u64 = 1 << 30;
const COPIES: u64 = 16;
/// Processor time that a learner's kernel may use for all sizes together.
const WHOLE: Duration = Duration::from_secs(30);

/// Answers a `check-kernel` command: sends progress events, then one report. A kernel that does not end cannot be stopped, so the
/// process that runs it ends itself soon after the report, in case the reader does not kill it.
pub fn serve(job: &KernelJob, device: &str, kept: &CheckDevice, send: impl Fn(Event)) {
    let limits = CheckLimits {
        memory: Some(MEMORY + COPIES * buffers(job)),
        // A test that compares every size with the plain reference has no limit.
        whole: (!job.thorough).then_some(WHOLE),
        ..CheckLimits::default()
    };
    let report = check(job, device, kept, limits, |progress| {
        send(Event::KernelChecking {
            progress: Box::new(progress),
        });
    });
    let stuck = report.restart;
    send(Event::KernelChecked {
        report: Box::new(report),
    });
    if stuck {
        let end = || {
            std::thread::sleep(KILL_DELAY);
            kill_own_process();
        };
        // Without a thread that can wait, the process ends now.
        let thread = std::thread::Builder::new().name("kill".into());
        if thread.spawn(end).is_err() {
            kill_own_process();
        }
    }
}

/// Bytes of all buffers at the largest shape.
fn buffers(job: &KernelJob) -> u64 {
    let at = |shape: &KernelShape| {
        let bindings = job.files.iter().flat_map(|file| &file.spec.bindings);
        let counts = bindings.map(|binding| binding.count.value(&shape.sizes).unwrap_or(0));
        4 * counts.sum::<u64>()
    };
    job.shapes.iter().map(at).max().unwrap_or(0)
}

/// Ends this process without running destructors that wait for the device.
fn kill_own_process() {
    #[cfg(unix)]
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    std::process::abort();
}
