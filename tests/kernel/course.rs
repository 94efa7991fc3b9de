//! The exercises of the course: every solution passes, every starter fails where it says it does.

use perflings::protocol::{KernelReport, KernelStarter};

use super::{exercises, job_of, on_lavapipe};

fn check(id: &str, solution: bool) -> Option<KernelReport> {
    on_lavapipe(&job_of(id, |_, starter, fixed| {
        Ok(if solution { fixed } else { starter }.to_owned())
    }))
}

#[test]
fn every_solution_passes() {
    for (exercise, _) in exercises() {
        let Some(report) = check(&exercise.id, true) else {
            return;
        };
        assert!(report.passed, "{}: {:#?}", exercise.id, report.card);
        assert!(
            report
                .criteria
                .iter()
                .all(|criterion| criterion.passed != Some(false))
        );
        assert!(report.files.iter().all(|file| file.skipped.is_some()
            && file.time.is_none()
            && file.time_reason.is_some()));
    }
}

#[test]
fn every_starter_fails_as_declared() {
    for (exercise, kernels) in exercises() {
        let Some(report) = check(&exercise.id, false) else {
            return;
        };
        assert!(!report.passed, "{}: {:#?}", exercise.id, report.card);
        assert_eq!(
            report.card.last().map(|line| line.text.as_str()),
            Some("this is still the starter")
        );
        assert!(
            report.files.iter().all(|file| file.error.is_none()),
            "{} does not compile",
            exercise.id
        );
        for (asked, found) in kernels.checks.iter().zip(&report.criteria) {
            assert_eq!(asked.name, found.name);
            assert_eq!(
                found.passed,
                Some(asked.starter == KernelStarter::Passes),
                "{}: {}: {}",
                exercise.id,
                found.name,
                found.found
            );
        }
    }
}
