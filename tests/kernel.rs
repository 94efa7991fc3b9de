//! Kernels that a learner edits: every way in which one can fail is provoked here, each with its message. What needs a
//! device runs on a CPU driver of Vulkan, and says so where there is none.
#![cfg(unix)]

#[path = "../crates/tiny-llama/tests/support/adapter.rs"]
mod adapter;
#[path = "kernel/course.rs"]
mod course;
#[path = "kernel/device.rs"]
mod device;
#[path = "kernel/kinds.rs"]
mod kinds;
#[path = "kernel/live.rs"]
mod live;
#[path = "kernel/mutants.rs"]
mod mutants;
#[path = "kernel/process.rs"]
mod process;
#[path = "kernel/rules.rs"]
mod rules;
#[path = "kernel/text.rs"]
mod text;

use std::sync::OnceLock;

use engine::kernel_check::{self, CheckDevice, CheckLimits};
use perflings::course::Course;
use perflings::course::exercise::kernel::SEED;
use perflings::course::exercise::{Exercise, Kernels};
use perflings::judge::kernel::{KernelVerdict, verdict};
use protocol::{KernelError, KernelJob};

/// The course that is built in.
fn builtin() -> &'static Course {
    static COURSE: OnceLock<Course> = OnceLock::new();
    COURSE.get_or_init(Course::builtin)
}

/// Every kernel exercise.
fn exercises() -> impl Iterator<Item = (&'static Exercise, Kernels)> {
    let all = builtin().exercises.iter();
    all.filter_map(|exercise| Some((exercise, exercise.kernels()?.clone())))
}

/// The job of the exercise `id` with the text that `write` makes of each file's name, starter and solution.
fn job_of(id: &str, write: impl Fn(&str, &str, &str) -> Result<String, KernelError>) -> KernelJob {
    let (exercise, kernels) = exercises()
        .find(|(exercise, _)| exercise.id == id)
        .expect("the exercise exists");
    let text = |name: &str| {
        let file = &kernels
            .kernels
            .iter()
            .find(|kernel| kernel.file.name == name)
            .expect("the file exists")
            .file;
        write(name, &file.starter, &file.solution)
    };
    kernels.job(&exercise.id, SEED, text)
}

/// The solution of `id`, with `from` replaced by `to` in its first file.
fn edited(id: &str, from: &str, to: &str) -> KernelJob {
    let first = job_of(id, |name, _, _| Ok(name.to_owned())).files[0]
        .text
        .clone();
    // Sizes and values are drawn from the text that is checked.
    job_of(id, |name, _, solution| {
        assert!(
            name != first || solution.contains(from),
            "{id} has no `{from}`"
        );
        Ok(if name == first {
            solution.replace(from, to)
        } else {
            solution.to_owned()
        })
    })
}

/// Checks and judges.
fn check(job: &KernelJob, device: &str, limits: CheckLimits) -> KernelVerdict {
    static KEPT: OnceLock<CheckDevice> = OnceLock::new();
    let kept = KEPT.get_or_init(CheckDevice::default);
    verdict(job, kernel_check::check(job, device, kept, limits, |_| ()))
}

/// Checks on a CPU driver; `None` where there is none.
fn on_lavapipe(job: &KernelJob) -> Option<KernelVerdict> {
    // Tests beside this one take time of the same process; what has to be given up has tests of its own.
    let limits = CheckLimits {
        launch: std::time::Duration::from_secs(60),
        ..CheckLimits::default()
    };
    let report = check(job, "vulkan-cpu", limits);
    if let Some(why) = &report.facts.failed
        && why.contains("no CPU driver of Vulkan")
    {
        adapter::skip(why);
        return None;
    }
    assert_eq!(report.facts.failed, None);
    Some(report)
}

/// The lines of the card that say something bad.
fn complaints(report: &KernelVerdict) -> Vec<String> {
    report
        .card
        .iter()
        .filter(|line| line.good == Some(false))
        .map(|line| line.text.clone())
        .collect()
}
