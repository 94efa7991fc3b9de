//! Exercises in `course check`: every kernel's starter fails the check it declares and its solution passes, config
//! exercises are measured and judged, detective answers are held against what was recorded.

use anyhow::Result;

use super::super::check::configs::say;
use super::super::check::detective;
use crate::cli::args::EngineArgs;
use crate::cli::meter::ProgressMeter;
use crate::course::context::CourseContext;
use crate::course::exercise::config::Answers;
use crate::course::exercise::{
    ConfigMetric, Configs, Detective, Exercise, ExerciseKind, Kernels, WrongSolution,
};
use crate::course::placeholder::NOT_MEASURED;
use crate::course::sweep::SweepRuns;
use crate::engine::kernel::checker::Checker;
use crate::judge::course::{CourseTrial, WITH_MEASURE};
use crate::judge::kernel::KernelVerdict;
use crate::judge::{CriterionResult, Outcome, configs as judge, kernel as kernel_judge};
use crate::measure::exercise::measure_exercise;
use crate::measure::runner::{Runner, engine_command};
use crate::protocol::{KernelJob, KernelStarter};

const NOT_RUN: &str = "did not run";

/// Tries every exercise; none when interrupted.
pub fn all(
    context: &CourseContext,
    timed: bool,
    engine: &EngineArgs,
) -> Result<Option<Vec<CourseTrial>>> {
    let mut tried = Vec::new();
    let mut checker = Checker::new(engine_command(engine.engine.as_deref())?);
    // The outcome of those that are not tried any more.
    let mut skipped: Option<(Option<bool>, String)> = None;
    let all = context
        .course
        .exercises
        .iter()
        .filter_map(Exercise::kernels);
    let of = all.map(|kernels| 2 + kernels.wrong.len()).sum();
    let meter = ProgressMeter::begin();
    for exercise in &context.course.exercises {
        let Some(kernels) = exercise.kernels() else {
            continue;
        };
        let texts = [Text::Starter, Text::Solution].into_iter();
        for text in texts.chain(kernels.wrong.iter().map(Text::Wrong)) {
            let what = format!("{} {}, {}", exercise.label(), exercise.id, text.name());
            let (passed, detail) = match skipped.clone() {
                Some(outcome) => outcome,
                None => {
                    meter.at(tried.len(), of);
                    meter.doing(&what);
                    let mut job = job(exercise, kernels, text);
                    job.timed = timed;
                    let report = check(&mut checker, &engine.device, job);
                    verdict(kernels, &report, text)
                }
            };
            if skipped.is_none() && detail.starts_with(NOT_RUN) {
                // After one that did not answer, no further one is tried.
                let why = "not tried, after the one that did not run";
                skipped = Some((Some(false), why.to_owned()));
            }
            tried.push(CourseTrial {
                what,
                passed,
                detail,
            });
        }
    }
    checker.end();
    drop(meter);
    let mut runner = engine.runner()?;
    for exercise in &context.course.exercises {
        match &exercise.body {
            ExerciseKind::Config(configs) => {
                match config(exercise, configs, timed, &mut runner, &engine.device)? {
                    Some(found) => tried.extend(found),
                    None => return Ok(None),
                }
            }
            ExerciseKind::Detective(detective) => tried.push(recorded(exercise, detective)),
            ExerciseKind::Kernel(_) => {}
        }
    }
    Ok(Some(tried))
}

/// Checks and judges.
pub fn check(checker: &mut Checker, device: &str, job: KernelJob) -> KernelVerdict {
    let mut facts = checker.check(device, job.clone());
    if facts.restart {
        // It took too long, perhaps because the machine was busy: it is tried once more.
        facts = checker.check(device, job);
    }
    kernel_judge::verdict(checker.job(), facts)
}

fn named(exercise: &Exercise, starter: bool) -> String {
    let which = if starter { "starter" } else { "solution" };
    format!("{} {}, {which}", exercise.label(), exercise.id)
}

/// What is tried of a kernel exercise.
#[derive(Clone, Copy)]
pub enum Text<'a> {
    Starter,
    Solution,
    Wrong(&'a WrongSolution),
}

impl Text<'_> {
    fn name(self) -> String {
        match self {
            Self::Starter => "starter".to_owned(),
            Self::Solution => "solution".to_owned(),
            Self::Wrong(wrong) => format!("wrong: {}", wrong.name),
        }
    }
}

/// The check of an exercise's starters, of its solutions, or of a wrong solution beside the right ones.
pub fn job(exercise: &Exercise, kernels: &Kernels, text: Text<'_>) -> KernelJob {
    let read = |name: &str| {
        let mut all = kernels.kernels.iter().enumerate();
        let found = all.find(|(_, kernel)| kernel.file.name == name);
        Ok(found.map_or_else(String::new, |(at, kernel)| match text {
            Text::Starter => kernel.file.starter.clone(),
            Text::Wrong(wrong) if wrong.kernel == at => wrong.text.clone(),
            Text::Solution | Text::Wrong(_) => kernel.file.solution.clone(),
        }))
    };
    kernels.job(&exercise.id, read)
}

/// What a report says of a starter, which must fail the checks that say so and no others, of a solution, or of a wrong one,
/// which must be refused with the words that it names.
fn verdict(kernels: &Kernels, report: &KernelVerdict, text: Text<'_>) -> (Option<bool>, String) {
    if let Some(why) = &report.facts.failed {
        return (Some(false), format!("{NOT_RUN}: {why}"));
    }
    if let Text::Wrong(wrong) = text {
        let (passed, detail) = refused(wrong, report);
        return (Some(passed), detail);
    }
    let starter = matches!(text, Text::Starter);
    let mut files = report.facts.files.iter();
    if let Some((name, error)) = files.find_map(|file| Some((&file.name, file.error.as_ref()?))) {
        let what = format!("does not compile: {name}:{}: {}", error.line, error.message);
        return (Some(false), what);
    }
    let mut wrong = Vec::new();
    let mut said = Vec::new();
    for (asked, found) in kernels.checks.iter().zip(&report.criteria) {
        let fails = starter && asked.starter == KernelStarter::Fails;
        let line = format!("`{}`: {}", found.name, found.measured);
        match found.outcome.decided() {
            Some(passed) if passed && fails => wrong.push(format!("must fail: {line}")),
            Some(passed) if !passed && !fails => wrong.push(format!("must pass: {line}")),
            Some(_) => said.push(line),
            // Speed is not judged on a device whose speed says nothing.
            None => {}
        }
    }
    if wrong.is_empty() && !starter && !report.passed {
        let line = report.card.iter().find(|line| line.good == Some(false));
        let last = line.or(report.card.last());
        wrong.push(last.map_or("did not pass".to_owned(), |line| line.text.clone()));
    }
    match wrong.is_empty() {
        true => (Some(true), said.join("; ")),
        false => (Some(false), wrong.join("; ")),
    }
}

/// A wrong solution has to be refused with its words.
fn refused(wrong: &WrongSolution, report: &KernelVerdict) -> (bool, String) {
    let said = report.card.iter().filter(|line| line.good != Some(true));
    let said = said.map(|line| line.text.as_str()).collect::<Vec<_>>();
    match report.passed {
        true => (false, "passes, and must be refused".to_owned()),
        false if said.iter().any(|line| line.contains(&wrong.refused)) => {
            (true, format!("refused: {}", wrong.refused))
        }
        false => {
            let (words, said) = (&wrong.refused, said.join(" / "));
            (
                false,
                format!("is refused without the words “{words}”: {said}"),
            )
        }
    }
}

/// As shipped it has no answers and fails by name; the answers that the measurement makes right pass, and others fail.
fn config(
    exercise: &Exercise,
    configs: &Configs,
    timed: bool,
    runner: &mut Runner,
    device: &str,
) -> Result<Option<Vec<CourseTrial>>> {
    let told = |lines: &[&CriterionResult]| {
        let line = |line: &&CriterionResult| format!("`{}`: {}", line.name, line.measured);
        lines.iter().map(line).collect::<Vec<_>>().join("; ")
    };
    let shipped = judge::unanswered(configs, &Answers::new());
    let starter = CourseTrial {
        what: named(exercise, true),
        passed: Some(!shipped.is_empty()),
        detail: told(&shipped.iter().collect::<Vec<_>>()),
    };
    let meter = ProgressMeter::begin();
    let found = match measure_exercise(runner, configs, device, timed, |now, _| say(now, &meter)) {
        Ok(Some(found)) => Ok(found),
        Ok(None) => return Ok(None),
        Err(error) => Err(format!("{error:#}")),
    };
    let (passed, detail) = match found.and_then(|found| all_ran(configs, found)) {
        Err(why) => (Some(false), format!("{NOT_RUN}: {why}")),
        Ok(found) => {
            let right = judge::truth(configs, &found);
            let lines = judge::lines(configs, &right, &found);
            let is_speed = |line: &CriterionResult| {
                let mut checks = configs.checks.iter();
                checks.any(|check| check.name == line.name && judge::is_speed(&check.metric))
            };
            // Without --measure the runs are too short for a time.
            let counts = |line: &&CriterionResult| timed || !is_speed(line);
            let failed =
                |line: &&CriterionResult| !line.optional && line.outcome != Outcome::Passed;
            let measured = |line: &&CriterionResult| timed || line.outcome != Outcome::NotMeasured;
            let failed: Vec<&CriterionResult> =
                lines.iter().filter(counts).filter(failed).collect();
            let said: Vec<&CriterionResult> =
                lines.iter().filter(counts).filter(measured).collect();
            match (failed.is_empty(), said.is_empty()) {
                (false, _) => (Some(false), format!("must pass: {}", told(&failed))),
                (true, false) => (Some(true), told(&said)),
                (true, true) => (None, WITH_MEASURE.to_owned()),
            }
        }
    };
    let solution = CourseTrial {
        what: named(exercise, false),
        passed,
        detail,
    };
    Ok(Some(vec![starter, solution]))
}

/// The runs, or why some of them were refused although no answer of the exercise is a refusal.
fn all_ran(configs: &Configs, found: SweepRuns) -> Result<SweepRuns, String> {
    let points = found.points.iter().filter(|_| !expects_refusal(configs));
    let refused = points.filter_map(|point| {
        let why = point.run.as_ref().err()?;
        Some(format!("{}: {why}", point.value))
    });
    let changes = found.changes.iter();
    let changes = changes.filter_map(|change| change.as_ref().err().cloned());
    let why: Vec<String> = refused.chain(changes).collect();
    match why.is_empty() {
        true => Ok(found),
        false => Err(why.join("; ")),
    }
}

/// Whether a refusal is one of the answers that the exercise knows.
fn expects_refusal(configs: &Configs) -> bool {
    let mut checks = configs.checks.iter();
    checks.any(|check| matches!(check.metric, ConfigMetric::Speed { .. }))
}

/// The recorded run shows its fault: the hidden keys differ from the preset, and the explanation has all its figures.
fn recorded(exercise: &Exercise, detective: &Detective) -> CourseTrial {
    let why = detective::explanation(detective);
    let missing = why.contains(NOT_MEASURED) || why.contains("{{");
    let detail = match detective.problem() {
        Some(problem) => problem.to_string(),
        None if missing => format!("the explanation lacks a figure: {why}"),
        None => format!(
            "recorded on {}; the answer is {}",
            detective.badge(),
            detective.question.choices[detective.question.answer]
        ),
    };
    CourseTrial {
        what: format!("{} {}, answer", exercise.label(), exercise.id),
        passed: Some(detective.problem().is_none() && !missing),
        detail,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::course::Course;
    use crate::judge::CriterionResult;
    use crate::protocol::{Device, KernelError, KernelReport, KernelResult};

    fn matmul() -> Kernels {
        let course = Course::builtin("en");
        let found = course.exercises.iter().find(|one| one.id == "matmul");
        found.and_then(Exercise::kernels).cloned().expect("k04")
    }

    /// What a check found, by criterion: right, shared, faster.
    fn report(found: [Option<bool>; 3]) -> KernelVerdict {
        let names = matmul().checks.into_iter().map(|check| check.name);
        let criteria = names.zip(found).map(|(name, passed)| CriterionResult {
            name,
            asked: String::new(),
            measured: "so".to_owned(),
            outcome: passed.map_or(Outcome::NotMeasured, Outcome::of),
            optional: false,
        });
        KernelVerdict {
            facts: KernelReport {
                device: Some(Device::default()),
                ..KernelReport::default()
            },
            criteria: criteria.collect(),
            passed: found.iter().all(|passed| *passed != Some(false)),
            ..KernelVerdict::default()
        }
    }

    #[test]
    fn a_starter_and_a_solution_that_changed_places_are_named() {
        let solution = report([Some(true), Some(true), None]);
        let starter = report([Some(true), Some(false), Some(false)]);
        assert_eq!(verdict(&matmul(), &solution, Text::Solution).0, Some(true));
        assert_eq!(verdict(&matmul(), &starter, Text::Starter).0, Some(true));
        let (passed, detail) = verdict(&matmul(), &solution, Text::Starter);
        assert!(
            passed == Some(false) && detail == "must fail: `uses workgroup memory`: so",
            "{detail}"
        );
        let (passed, detail) = verdict(&matmul(), &starter, Text::Solution);
        assert!(
            passed == Some(false) && detail.starts_with("must pass: `uses workgroup memory`"),
            "{detail}"
        );
    }

    #[test]
    fn a_starter_must_fail_by_name_and_not_by_a_parse_error() {
        let mut broken = report([Some(false), Some(false), Some(false)]);
        broken.facts.files = vec![KernelResult {
            name: "starter.wgsl".to_owned(),
            error: Some(KernelError {
                line: 3,
                message: "expected `;`".to_owned(),
                ..KernelError::default()
            }),
            ..KernelResult::default()
        }];
        let (passed, detail) = verdict(&matmul(), &broken, Text::Starter);
        assert_eq!(passed, Some(false), "{detail}");
        assert_eq!(detail, "does not compile: starter.wgsl:3: expected `;`");
    }

    #[test]
    fn what_did_not_run_fails() {
        let lost = KernelVerdict {
            facts: KernelReport {
                failed: Some("the device was lost".to_owned()),
                ..KernelReport::default()
            },
            ..KernelVerdict::default()
        };
        let (passed, detail) = verdict(&matmul(), &lost, Text::Starter);
        assert_eq!(passed, Some(false));
        assert!(detail.starts_with(NOT_RUN), "{detail}");
    }
}
