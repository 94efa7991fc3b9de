//! The kernels that a learner edits. Every way in which a kernel can fail is provoked here, with the message that it must have. Tests that need
//! a device run on a CPU driver of Vulkan; without one they print that they are skipped.
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

/// Returns the course that is built in.
fn builtin() -> &'static Course {
    static COURSE: OnceLock<Course> = OnceLock::new();
    COURSE.get_or_init(Course::builtin)
}

/// Returns every exercise that asks for a kernel.
fn exercises() -> impl Iterator<Item = (&'static Exercise, Kernels)> {
    builtin()
        .exercises
        .iter()
        .filter_map(|exercise| Some((exercise, exercise.kernels()?.clone())))
}

/// Returns the job of the exercise `id`. `write` makes the text of each file from the file's name, starter and solution.
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

/// Returns the job of the exercise `id` with its solution.
fn solution_of(id: &str) -> KernelJob {
    job_of(id, |_, _, solution| Ok(solution.to_owned()))
}

/// Returns the job of the exercise `id` with its solution, in whose first file `from` is replaced by `to`.
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

/// Checks a kernel and judges the report.
fn check(job: &KernelJob, device: &str, limits: CheckLimits) -> KernelVerdict {
    static OPENED: OnceLock<CheckDevice> = OnceLock::new();
    let opened = OPENED.get_or_init(CheckDevice::default);
    verdict(
        job,
        kernel_check::check(job, device, opened, limits, |_| ()),
    )
}

/// Checks a kernel on a CPU driver; `None` where there is none.
fn on_lavapipe(job: &KernelJob) -> Option<KernelVerdict> {
    // Other tests take time of this process, so the limit is long. Launches that are given up have tests of their own.
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

/// Returns the lines of the card that are marked as bad.
fn complaints(report: &KernelVerdict) -> Vec<String> {
    report
        .card
        .iter()
        .filter(|line| line.good == Some(false))
        .map(|line| line.text.clone())
        .collect()
}
