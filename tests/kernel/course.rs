//! The exercises of the course: every solution passes, every starter fails the checks that it declares, and every wrong solution is refused with
//! a line that names its mistake.

use std::path::Path;

use perflings::course::exercise::kernel::SEED;
use perflings::course::{Course, CourseFiles};
use perflings::judge::Outcome;
use protocol::KernelStarter;

use super::{exercises, job_of, on_lavapipe, solution_of};

/// A CPU driver has no matrix cores, so only the host runs a kernel for them.
#[test]
fn a_kernel_for_matrix_cores_is_run_on_the_host() {
    let job = solution_of("matrix-cores");
    let Some(report) = on_lavapipe(&job) else {
        return;
    };
    let why = report.facts.host_only.as_deref().unwrap_or_default();
    assert!(why.contains("a GPU with matrix cores does"), "{why}");
    assert!(report.passed && report.swap.is_none(), "{:#?}", report.card);
    // The exercise has three shapes. One is drawn for each of its three sizes, one is medium, and the text names others.
    assert!(report.facts.files[0].shapes.len() > 7);
    let note =
        "only small sizes ran, on the host; no device ran the kernel and nothing was timed: ";
    assert!(report.card.iter().any(|line| line.text.starts_with(note)));
}

#[test]
fn every_solution_passes() {
    for (exercise, _) in exercises() {
        let Some(report) = on_lavapipe(&solution_of(&exercise.id)) else {
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
            && (file.time_reason.is_some() || report.facts.host_only.is_some())
            && (file.skipped.is_none() || ["matmul", "flash"].contains(&exercise.id.as_str()))));
    }
}

#[test]
fn every_starter_fails_as_declared() {
    for (exercise, kernels) in exercises() {
        let starter = job_of(&exercise.id, |_, starter, _| Ok(starter.to_owned()));
        let Some(report) = on_lavapipe(&starter) else {
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
                Outcome::from_passed(asked.starter == KernelStarter::Passes),
                "{}: {}: {}",
                exercise.id,
                found.name,
                found.measured
            );
        }
    }
}

/// The course is read from its folder, so that a new wrong solution needs no new build.
#[test]
fn every_wrong_solution_is_refused_with_a_line_that_names_its_mistake() {
    let root = CourseFiles::folder(Path::new(env!("CARGO_MANIFEST_DIR"))).expect("the course");
    let course = Course::open(&root);
    let mut failures = Vec::new();
    let mut tried = 0;
    for exercise in &course.exercises {
        let Some(kernels) = exercise.kernels() else {
            continue;
        };
        assert!(kernels.wrong.len() >= 4, "{} has too few", exercise.path);
        for wrong in &kernels.wrong {
            let job = kernels.job(&exercise.id, SEED, |name| {
                let index = kernels
                    .kernels
                    .iter()
                    .position(|kernel| kernel.file.name == name)
                    .expect("the file exists");
                let text = if index == wrong.kernel {
                    &wrong.text
                } else {
                    &kernels.kernels[index].file.solution
                };
                Ok(text.clone())
            });
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
                failures.push(format!(
                    "{}/wrong.toml, {}: passed: {}, {lines:#?}",
                    exercise.path, wrong.name, report.passed
                ));
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
