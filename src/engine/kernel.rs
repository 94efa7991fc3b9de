//! Checks a learner's WGSL: from its text alone, then on the host, then on a device of the check's own, against a plain
//! reference and the clock. Whatever the kernel does is data in the report. It is meant to run in an engine process of its own.

mod access;
mod adopt;
mod check;
pub mod checker;
mod clock;
mod cost;
pub mod equal;
mod explain;
mod gpu;
mod interpret;
mod message;
pub mod real;
pub mod reference;
pub mod source;
pub mod threads;
mod timing;
mod tree;
mod trial;
pub mod validate;
mod watch;

pub use crate::ops::live;
pub use adopt::{adopt, why_not};
pub use check::{check, check_telling, not_made};
pub use watch::CheckLimits;

use std::time::Duration;

use crate::protocol::{Event, KernelJob, KernelShape};

/// How long a reader has to end a process in which a kernel still runs, or is still compiled.
const KILL_DELAY: Duration = Duration::from_millis(500);
/// Bytes that a check may take: so many, and so many times the bytes of its buffers at the largest shape.
const MEMORY: u64 = 1 << 30;
const COPIES: u64 = 16;
/// Processor time that a learner's kernel may run at all sizes together.
const WHOLE: Duration = Duration::from_secs(30);

/// Answers a `check-kernel` command: how far it has come, then one report. A kernel that does not end cannot be stopped, so the process that runs it
/// ends itself soon after the report, in case its reader does not end it.
pub fn serve(job: &KernelJob, device: &str, send: impl Fn(Event)) {
    let limits = CheckLimits {
        memory: Some(MEMORY + COPIES * buffers(job)),
        // A test that holds every size against the plain reference may take its time.
        whole: (!job.thorough).then_some(WHOLE),
        ..CheckLimits::default()
    };
    let report = check_telling(job, device, limits, |progress| {
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
        // Without a thread to wait in there is nothing better than to end now.
        if std::thread::Builder::new()
            .name("kill".into())
            .spawn(end)
            .is_err()
        {
            kill_own_process();
        }
    }
}

/// Bytes of all buffers, at the shape where they are largest.
fn buffers(job: &KernelJob) -> u64 {
    let at = |shape: &KernelShape| {
        let bindings = job.files.iter().flat_map(|file| &file.spec.bindings);
        let counts = bindings.map(|binding| binding.count.value(&shape.sizes).unwrap_or(0));
        4 * counts.sum::<u64>()
    };
    job.shapes.iter().map(at).max().unwrap_or(0)
}

/// Ends this process without running anything that waits for the device.
fn kill_own_process() {
    #[cfg(unix)]
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    std::process::abort();
}
