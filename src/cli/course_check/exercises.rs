//! Exercises in `course check`: every kernel's starter fails the check it declares and its solution passes, config
//! exercises are measured and judged, detective answers are held against what was recorded.

use anyhow::Result;

use super::super::check::configs::say;
use super::super::check::{detective, judge};
use crate::cli::args::EngineArgs;
use crate::course::check::Outcome;
use crate::course::context::CourseContext;
use crate::course::exercise::config::Answers;
use crate::course::exercise::{Body, Configs, Detective, Exercise, Kernels};
use crate::course::validate::Tried;
use crate::engine::kernel::checker::Checker;
use crate::measure::exercise::measure_exercise;
use crate::measure::runner::{Runner, engine_command};
use crate::out::progress;
use crate::protocol::{KernelReport, KernelStarter};

const NOT_RUN: &str = "did not run";
/// Why nothing could be tried.
pub const NO_ADAPTER: &str = "skipped: no adapter";

/// Tries every exercise; none when interrupted.
pub fn all(
    context: &CourseContext,
    timed: bool,
    engine: &EngineArgs,
) -> Result<Option<Vec<Tried>>> {
    let mut tried = Vec::new();
    let mut checker = Checker::new(engine_command(engine.engine.as_deref())?);
    // How those that are not tried come out.
    let mut left: Option<(bool, String)> = None;
    for exercise in &context.course.exercises {
        if let Body::Kernel(kernels) = &exercise.body {
            for starter in [true, false] {
                let what = named(exercise, starter);
                tried.push(if let Some((passed, detail)) = left.clone() {
                    Tried {
                        what,
                        passed,
                        detail,
                    }
                } else {
                    progress(&what);
                    let one = kernel(exercise, kernels, starter, timed, &mut checker, engine);
                    if one.detail.starts_with(NO_ADAPTER) {
                        left = Some((true, NO_ADAPTER.to_owned()));
                    } else if one.detail.starts_with(NOT_RUN) {
                        // What did not answer once keeps nobody waiting again.
                        left = Some((
                            false,
                            "not tried, after the one that did not run".to_owned(),
                        ));
                    }
                    Tried { what, ..one }
                });
            }
        }
    }
    checker.end();
    let mut runner = engine.runner()?;
    for exercise in &context.course.exercises {
        match &exercise.body {
            Body::Config(configs) => {
                match config(exercise, configs, timed, &mut runner, &engine.device)? {
                    Some(found) => tried.extend(found),
                    None => return Ok(None),
                }
            }
            Body::Detective(detective) => tried.push(recorded(exercise, detective)),
            Body::Kernel(_) => {}
        }
    }
    Ok(Some(tried))
}

fn named(exercise: &Exercise, starter: bool) -> String {
    let which = if starter { "starter" } else { "solution" };
    format!("{} {}, {which}", exercise.label(), exercise.id)
}

fn kernel(
    exercise: &Exercise,
    kernels: &Kernels,
    starter: bool,
    timed: bool,
    checker: &mut Checker,
    engine: &EngineArgs,
) -> Tried {
    let answer = |passed, detail| Tried {
        what: String::new(),
        passed,
        detail,
    };
    let text = |name: &str| {
        let file = kernels.kernels.iter().find(|k| k.file.name == name);
        Ok(file
            .map(|kernel| {
                if starter {
                    kernel.file.starter.clone()
                } else {
                    kernel.file.solution.clone()
                }
            })
            .unwrap_or_default())
    };
    let mut job = kernels.job(&exercise.id, text);
    job.timed = timed;
    let report = checker.check(&engine.device, job);
    let (passed, detail) = verdict(kernels, &report, starter);
    answer(passed, detail)
}

/// What a report says of a starter, which must fail the checks that say so and no others, or of a solution.
fn verdict(kernels: &Kernels, report: &KernelReport, starter: bool) -> (bool, String) {
    if let Some(why) = &report.failed {
        let nothing = report.device.is_none() && why.starts_with("nothing here can run");
        return if nothing {
            (true, format!("{NO_ADAPTER}: {why}"))
        } else {
            (false, format!("{NOT_RUN}: {why}"))
        };
    }
    if let Some((name, error)) = report
        .files
        .iter()
        .find_map(|file| Some((&file.name, file.error.as_ref()?)))
    {
        let what = format!("does not compile: {name}:{}: {}", error.line, error.message);
        return (false, what);
    }
    let mut wrong = Vec::new();
    let mut said = Vec::new();
    for (asked, found) in kernels.checks.iter().zip(&report.criteria) {
        let fails = starter && asked.starter == KernelStarter::Fails;
        let line = format!("`{}`: {}", found.name, found.found);
        match found.passed {
            Some(passed) if passed == fails => wrong.push(format!(
                "must {}: {line}",
                if fails { "fail" } else { "pass" }
            )),
            Some(_) => said.push(line),
            // Speed, on a device whose speed says nothing.
            None => {}
        }
    }
    if wrong.is_empty() && !starter && !report.passed {
        let line = report.card.iter().find(|line| line.good == Some(false));
        let last = line.or(report.card.last());
        wrong.push(last.map_or("did not pass".to_owned(), |line| line.text.clone()));
    }
    if wrong.is_empty() {
        (true, said.join("; "))
    } else {
        (false, wrong.join("; "))
    }
}

/// As shipped it has no answers and fails by name; the answers that the measurement makes right pass, and others fail.
fn config(
    exercise: &Exercise,
    configs: &Configs,
    timed: bool,
    runner: &mut Runner,
    device: &str,
) -> Result<Option<Vec<Tried>>> {
    let shipped = judge::unanswered(configs, &Answers::new());
    let names: Vec<String> = shipped
        .iter()
        .map(|line| format!("`{}`: {}", line.name, line.measured))
        .collect();
    let mut tried = vec![Tried {
        what: named(exercise, true),
        passed: !names.is_empty(),
        detail: names.join("; "),
    }];
    progress(&format!("{} {}", exercise.label(), exercise.id));
    let found = match measure_exercise(runner, configs, device, timed, |now, _| say(now)) {
        Ok(Some(found)) => found,
        Ok(None) => return Ok(None),
        Err(error) => {
            tried.push(Tried {
                what: named(exercise, false),
                passed: false,
                detail: format!("did not run: {error:#}"),
            });
            return Ok(Some(tried));
        }
    };
    let broken: Vec<String> = found
        .points
        .iter()
        .filter_map(|point| Some((&point.value, point.run.as_ref().err()?)))
        .filter(|_| !expects_refusal(configs))
        .map(|(value, why)| format!("{value}: {why}"))
        .chain(
            found
                .changes
                .iter()
                .filter_map(|change| change.as_ref().err().cloned()),
        )
        .collect();
    if !broken.is_empty() {
        tried.push(Tried {
            what: named(exercise, false),
            passed: false,
            detail: format!("did not run: {}", broken.join("; ")),
        });
        return Ok(Some(tried));
    }
    let right = judge::truth(configs, &found);
    let lines = judge::lines(configs, &right, &found);
    let speeds = |name: &str| {
        configs
            .checks
            .iter()
            .any(|check| check.name == name && judge::is_speed(&check.metric))
    };
    // Without --measure the runs are too short for a time.
    let decides = |name: &str, outcome| timed || outcome != Outcome::NotMeasured && !speeds(name);
    let failed: Vec<String> = lines
        .iter()
        .filter(|line| !line.optional && line.outcome != Outcome::Passed)
        .filter(|line| timed || !speeds(&line.name))
        .map(|line| format!("`{}`: {}", line.name, line.measured))
        .collect();
    let said: Vec<String> = lines
        .iter()
        .filter(|line| decides(&line.name, line.outcome))
        .map(|line| format!("`{}`: {}", line.name, line.measured))
        .collect();
    tried.push(if failed.is_empty() {
        Tried {
            what: named(exercise, false),
            passed: true,
            detail: if said.is_empty() {
                "every run works; its times are judged with --measure".to_owned()
            } else {
                said.join("; ")
            },
        }
    } else {
        Tried {
            what: named(exercise, false),
            passed: false,
            detail: format!("must pass: {}", failed.join("; ")),
        }
    });
    Ok(Some(tried))
}

/// Whether a refusal is one of the answers that the exercise knows.
fn expects_refusal(configs: &Configs) -> bool {
    configs.checks.iter().any(|check| {
        matches!(
            check.metric,
            crate::course::exercise::ConfigMetric::Speed { .. }
        )
    })
}

/// The recorded run shows its fault: the hidden keys differ from the preset, and the explanation has all its figures.
fn recorded(exercise: &Exercise, detective: &Detective) -> Tried {
    let why = detective::explanation(detective);
    let missing = why.contains(crate::course::placeholder::NOT_MEASURED) || why.contains("{{");
    let detail = match detective.problem() {
        Some((line, what)) => format!("{}:{line}: {what}", detective.file),
        None if missing => format!("the explanation lacks a figure: {why}"),
        None => format!(
            "recorded on {}; the answer is {}",
            detective.badge(),
            detective.question.choices[detective.question.answer]
        ),
    };
    Tried {
        what: format!("{} {}, answer", exercise.label(), exercise.id),
        passed: detective.problem().is_none() && !missing,
        detail,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::course::Course;
    use crate::protocol::{Device, KernelCriterion, KernelError, KernelResult};

    fn matmul() -> Kernels {
        let course = Course::builtin("en");
        let found = course.exercises.iter().find(|one| one.id == "matmul");
        found.and_then(Exercise::kernels).cloned().expect("k04")
    }

    /// What a check found, by criterion: right, shared, faster.
    fn report(found: [Option<bool>; 3]) -> KernelReport {
        let names = matmul().checks.into_iter().map(|check| check.name);
        let criteria = names.zip(found).map(|(name, passed)| KernelCriterion {
            name,
            found: "so".to_owned(),
            passed,
        });
        KernelReport {
            device: Some(Device::default()),
            criteria: criteria.collect(),
            passed: found.iter().all(|passed| *passed != Some(false)),
            ..KernelReport::default()
        }
    }

    #[test]
    fn a_solution_in_the_starter_s_place_is_named() {
        let solution = report([Some(true), Some(true), None]);
        assert!(verdict(&matmul(), &solution, false).0);
        let (passed, detail) = verdict(&matmul(), &solution, true);
        assert!(
            !passed && detail == "must fail: `uses workgroup memory`: so",
            "{detail}"
        );
    }

    #[test]
    fn a_starter_in_the_solution_s_place_is_named() {
        let starter = report([Some(true), Some(false), Some(false)]);
        assert!(verdict(&matmul(), &starter, true).0);
        let (passed, detail) = verdict(&matmul(), &starter, false);
        assert!(
            !passed && detail.starts_with("must pass: `uses workgroup memory`"),
            "{detail}"
        );
    }

    #[test]
    fn a_starter_must_fail_by_name_and_not_by_a_parse_error() {
        let mut broken = report([Some(false), Some(false), Some(false)]);
        broken.files = vec![KernelResult {
            name: "starter.wgsl".to_owned(),
            error: Some(KernelError {
                line: 3,
                message: "expected `;`".to_owned(),
                ..KernelError::default()
            }),
            ..KernelResult::default()
        }];
        let (passed, detail) = verdict(&matmul(), &broken, true);
        assert!(!passed, "{detail}");
        assert_eq!(detail, "does not compile: starter.wgsl:3: expected `;`");
    }

    #[test]
    fn without_an_adapter_it_is_skipped_and_says_so() {
        let none = KernelReport {
            failed: Some("nothing here can run a WGSL kernel: …".to_owned()),
            ..KernelReport::default()
        };
        let (passed, detail) = verdict(&matmul(), &none, true);
        assert!(passed && detail.starts_with(NO_ADAPTER), "{detail}");
        let lost = KernelReport {
            failed: Some("the device was lost".to_owned()),
            ..none
        };
        assert!(!verdict(&matmul(), &lost, true).0);
    }
}
