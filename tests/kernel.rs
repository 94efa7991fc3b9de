//! Kernels that a learner edits: every way in which one can fail is provoked here, each with its message. What needs a
//! device runs on a CPU driver of Vulkan, and says so where there is none.
#![cfg(unix)]

#[path = "kernel/course.rs"]
mod course;
#[path = "kernel/device.rs"]
mod device;
#[path = "kernel/live.rs"]
mod live;
#[path = "kernel/process.rs"]
mod process;
#[path = "kernel/rules.rs"]
mod rules;
#[path = "kernel/text.rs"]
mod text;

use std::sync::OnceLock;

use perflings::course::Course;
use perflings::course::exercise::{Body, Exercise, Kernels};
use perflings::engine::kernel::{self, Limits};
use perflings::protocol::{KernelError, KernelJob, KernelReport};

/// The course that is built in.
fn builtin() -> &'static Course {
    static COURSE: OnceLock<Course> = OnceLock::new();
    COURSE.get_or_init(|| Course::builtin("en"))
}

/// Every kernel exercise.
fn exercises() -> impl Iterator<Item = (&'static Exercise, Kernels)> {
    builtin()
        .exercises
        .iter()
        .filter_map(|exercise| match &exercise.body {
            Body::Kernel(kernels) => Some((exercise, kernels.clone())),
            Body::Config(_) | Body::Detective(_) => None,
        })
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
    kernels.job(&exercise.id, text)
}

/// The solution of `id`, with `from` replaced by `to` in its first file.
fn edited(id: &str, from: &str, to: &str) -> KernelJob {
    let mut job = job_of(id, |_, _, solution| Ok(solution.to_owned()));
    let text = &mut job.files[0].text;
    assert!(text.contains(from), "{id} has no `{from}`");
    *text = text.replace(from, to);
    job
}

/// Checks on a CPU driver; `None` where there is none.
fn on_lavapipe(job: &KernelJob) -> Option<KernelReport> {
    let report = kernel::check(job, "vulkan-cpu", Limits::default());
    let none = report
        .failed
        .as_ref()
        .is_some_and(|why| why.contains("no CPU driver of Vulkan"));
    if none {
        eprintln!("skipped: no adapter");
        return None;
    }
    assert_eq!(report.failed, None);
    Some(report)
}

/// The lines of the card that say something bad.
fn complaints(report: &KernelReport) -> Vec<String> {
    report
        .card
        .iter()
        .filter(|line| line.good == Some(false))
        .map(|line| line.text.clone())
        .collect()
}
