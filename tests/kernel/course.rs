//! The exercises of the course: every solution passes, every starter fails where it says it does, and every wrong solution
//! is refused with words that name its idea.

use std::path::Path;

use perflings::course::exercise::Kernels;
use perflings::course::{Course, CourseFiles};
use perflings::engine::kernel::{self, CheckLimits};
use perflings::judge::Outcome;
use perflings::judge::kernel::{KernelVerdict, verdict};
use perflings::protocol::{KernelStarter, NO_MATRIX_CORES};

use super::{exercises, job_of, on_lavapipe};

/// Whether a CPU driver only reads an exercise's kernels.
fn for_matrix_cores(kernels: &Kernels) -> bool {
    kernels
        .kernels
        .iter()
        .any(|kernel| kernel.spec.matrix_cores)
}

#[test]
fn a_kernel_for_matrix_cores_is_read_and_says_what_is_missing() {
    let job = job_of("matrix-cores", |_, _, solution| Ok(solution.to_owned()));
    let report = verdict(
        &job,
        kernel::check(&job, "vulkan-cpu", CheckLimits::default()),
    );
    let why = report.facts.failed.as_deref().unwrap_or_default();
    if why.contains("no CPU driver of Vulkan") {
        return;
    }
    assert!(why.starts_with(NO_MATRIX_CORES), "{why}");
    let file = &report.facts.files[0];
    assert!(!report.passed && file.error.is_none());
    assert!(file.facts.is_some_and(|facts| facts.matrix_cores));
    let mut job = job;
    job.files[0].text = job.files[0].text.replace("coopMultiplyAdd", "coopMultiply");
    let report = verdict(
        &job,
        kernel::check(&job, "vulkan-cpu", CheckLimits::default()),
    );
    assert!(report.facts.files[0].error.is_some());
}

fn check(id: &str, solution: bool) -> Option<KernelVerdict> {
    on_lavapipe(&job_of(id, |_, starter, fixed| {
        Ok(if solution { fixed } else { starter }.to_owned())
    }))
}

#[test]
fn every_solution_passes() {
    for (exercise, kernels) in exercises() {
        if for_matrix_cores(&kernels) {
            continue;
        }
        let Some(report) = check(&exercise.id, true) else {
            return;
        };
        assert!(report.passed, "{}: {:#?}", exercise.id, report.card);
        assert!(
            report
                .criteria
                .iter()
                .all(|criterion| criterion.outcome != Outcome::Failed)
        );
        assert!(report.facts.files.iter().all(|file| file.time.is_none()
            && file.time_reason.is_some()
            && (file.skipped.is_none() || ["matmul", "flash"].contains(&exercise.id.as_str()))));
    }
}

#[test]
fn every_starter_fails_as_declared() {
    for (exercise, kernels) in exercises() {
        if for_matrix_cores(&kernels) {
            continue;
        }
        let Some(report) = check(&exercise.id, false) else {
            return;
        };
        assert!(!report.passed, "{}: {:#?}", exercise.id, report.card);
        assert_eq!(
            report.card.last().map(|line| line.text.as_str()),
            Some("this is still the starter")
        );
        assert!(
            report.facts.files.iter().all(|file| file.error.is_none()),
            "{} does not compile",
            exercise.id
        );
        for (asked, found) in kernels.checks.iter().zip(&report.criteria) {
            assert_eq!(asked.name, found.name);
            assert_eq!(
                found.outcome,
                Outcome::of(asked.starter == KernelStarter::Passes),
                "{}: {}: {}",
                exercise.id,
                found.name,
                found.measured
            );
        }
    }
}

/// From the folder, so that a new one needs no new build.
#[test]
fn every_wrong_solution_is_refused_by_its_idea() {
    let root = CourseFiles::folder(Path::new(env!("CARGO_MANIFEST_DIR"))).expect("the course");
    let course = Course::open(&root, "en");
    let mut failures = Vec::new();
    let mut tried = 0;
    for exercise in &course.exercises {
        let Some(kernels) = exercise.kernels() else {
            continue;
        };
        assert!(kernels.wrong.len() >= 4, "{} has too few", exercise.path);
        if for_matrix_cores(kernels) {
            continue;
        }
        for wrong in &kernels.wrong {
            let mut job = kernels.job(&exercise.id, |name| {
                let mut all = kernels.kernels.iter();
                let found = all.find(|kernel| kernel.file.name == name);
                Ok(found.expect("is there").file.solution.clone())
            });
            job.files[wrong.kernel].text.clone_from(&wrong.text);
            let Some(report) = on_lavapipe(&job) else {
                return;
            };
            tried += 1;
            let lines: Vec<_> = report
                .card
                .iter()
                .filter(|line| line.good != Some(true))
                .collect();
            if report.passed || !lines.iter().any(|line| line.text.contains(&wrong.refused)) {
                let at = format!("{}/wrong.toml, {}", exercise.path, wrong.name);
                failures.push(format!("{at}: passed: {}, {lines:#?}", report.passed));
            }
        }
    }
    assert!(
        failures.is_empty(),
        "{} of {tried}:\n{}",
        failures.len(),
        failures.join("\n")
    );
}
