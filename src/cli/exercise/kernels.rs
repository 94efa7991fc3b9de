//! Exercises about kernels. `perflings check k01` checks the learner's kernel; an engine process compares it with a reference.
//! `course check` tries what the course ships: a starter must fail the checks that say so, a solution must pass all of them, and a wrong
//! solution must be refused for the reason that it names.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result, anyhow};

use super::{CheckRequest, CheckSession, Commands, NOT_RUN, Trials, trial};
use crate::cli::meter::ProgressMeter;
use crate::cli::saved::save_tried;
use crate::course::exercise::kernel::SEED;
use crate::course::exercise::{Exercise, Kernels, WrongSolution};
use crate::judge::course::TrialResult;
use crate::judge::kernel::{self, KernelVerdict};
use crate::judge::met;
use crate::lanes::LanesWanted;
use crate::measure::kernel_checker::Checker;
use crate::measure::lanes;
use crate::measure::weak_reference::weakness;
use crate::out::{self, Exit, ExitError, notice, result, usage};
use crate::shell::exercise::in_folder;
use protocol::random;
use protocol::{KernelFile, KernelJob, KernelStarter};
use wgsl_lockstep::lanes::listing;

impl Commands for Kernels {
    fn check(&self, request: CheckRequest<'_>) -> Result<Exit> {
        let CheckRequest { exercise, args, .. } = request;
        if args.trace {
            return print_lanes(self, request);
        }
        let label = exercise.label();
        if !args.answer.is_empty() {
            return Err(usage(format!(
                "{label} takes no --answer: its answer is the kernel in your file"
            )));
        }
        let job = learner_job(self, request);
        let mut checker = Checker::new(args.engine.command()?);
        let meter = ProgressMeter::begin();
        let never = AtomicBool::new(false);
        let facts = checker.check_with_progress(&args.engine.device, &job, &never, |progress| {
            meter.set_work(kernel::checking(&job, progress).now);
        });
        drop(meter);
        let report = kernel::verdict(&job, facts);
        if args.json {
            out::json(&report)?;
        } else {
            let verdict = if report.passed {
                format!("passed: {}", met(&report.criteria))
            } else {
                "not passed".to_owned()
            };
            result(&format!("{label} {}: {verdict}", exercise.title))?;
            for line in &report.card {
                let mark = match line.good {
                    Some(true) => "pass",
                    Some(false) => "FAIL",
                    None => "    ",
                };
                result(&format!("  {mark}  {}", line.text))?;
            }
        }
        save_tried(request.context, exercise, report.passed);
        match &report.facts.failed {
            Some(why) => Err(ExitError::new(Exit::NoDevice, why.clone()).into()),
            None => Ok(Exit::passed_if(report.passed)),
        }
    }

    fn try_shipped(&self, exercise: &Exercise, session: &mut CheckSession<'_>) -> Trials {
        let solution = job(exercise, self, Text::Solution);
        let mut drawn_shapes = solution.shapes.clone();
        drawn_shapes.retain(|shape| shape.is_drawn() && !shape.is_of_text());
        let mut trials = Vec::new();
        for file in &solution.files {
            let found = match weakness(&file.spec, &drawn_shapes, solution.seed) {
                Ok(None) => (
                    Some(true),
                    "refuses zeros, inputs and outputs that are 1 % off".to_owned(),
                ),
                Ok(Some(why)) | Err(why) => (Some(false), why),
            };
            let part = format!("reference of {}", file.name);
            trials.push(trial(exercise, &part, found));
        }
        let wrong = self.wrong.iter().map(Text::Wrong);
        for text in [Text::Starter, Text::Solution].into_iter().chain(wrong) {
            let name = text.name();
            let found = if let Some(skipped) = &session.skipped {
                skipped.clone()
            } else {
                let work = format!("{} {}, {name}", exercise.label(), exercise.id);
                session.meter.set_done(session.checked, session.total);
                session.meter.set_work(work);
                let mut job = job(exercise, self, text);
                job.timed = session.timed;
                let report = check(&mut session.checker, session.device, &job);
                verdict(self, &report, text)
            };
            session.checked += 1;
            if session.skipped.is_none() && found.1.starts_with(NOT_RUN) {
                let why = "not tried, after the one that did not run";
                session.skipped = Some((Some(false), why.to_owned()));
            }
            trials.push(trial(exercise, &name, found));
        }
        Ok(Some(trials))
    }
}

/// Returns the job that checks the learner's files, or the starters if there are no files. Prints a notice that says which.
fn learner_job(kernels: &Kernels, request: CheckRequest<'_>) -> KernelJob {
    let exercise = request.exercise;
    let folder = request.context.exercise_folder(exercise);
    let label = exercise.label();
    notice(&match &folder {
        Some(folder) => format!("{label}: your files in {}", folder.display()),
        None => format!(
            "{label}: the starter; `perflings init DIR` gives you files to edit, \
             or open it in the workshop"
        ),
    });
    in_folder(
        exercise,
        kernels,
        &folder.unwrap_or_else(|| PathBuf::from(&exercise.path)),
        request.args.seed.unwrap_or_else(random::unpredictable_seed),
    )
}

/// Runs one workgroup of each of the learner's kernels on the host, and prints what its lanes do, line by line.
fn print_lanes(kernels: &Kernels, request: CheckRequest<'_>) -> Result<Exit> {
    let job = learner_job(kernels, request);
    for (file, KernelFile { name, .. }) in job.files.iter().enumerate() {
        let wanted = LanesWanted {
            file,
            ..LanesWanted::default()
        };
        let recorded = lanes::begin(job.clone(), wanted)?
            .wait()
            .context("This kernel broke the interpreter")?
            .map_err(|why| anyhow!("{name}: {why}"))?;
        for line in listing(&recorded.title(), &recorded.run) {
            result(&line)?;
        }
    }
    Ok(Exit::Ok)
}

/// Checks the kernels of a job, and judges them by the criteria of their exercise.
pub(crate) fn check(checker: &mut Checker, device: &str, job: &KernelJob) -> KernelVerdict {
    let mut facts = checker.check(device, job);
    if facts.restart {
        // The check took too long, perhaps because the machine was busy. It is repeated once.
        facts = checker.check(device, job);
    }
    kernel::verdict(job, facts)
}

/// The choice of texts that are checked together: one for each file of an exercise.
#[derive(Clone, Copy)]
pub(crate) enum Text<'a> {
    Starter,
    Solution,
    /// A wrong solution in one file, and the solutions in all others.
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

/// Returns the job that checks these texts of an exercise.
pub(crate) fn job(exercise: &Exercise, kernels: &Kernels, text: Text<'_>) -> KernelJob {
    let read = |name: &str| {
        let mut numbered = kernels.kernels.iter().enumerate();
        let found = numbered.find(|(_, kernel)| kernel.file.name == name);
        Ok(
            found.map_or_else(String::new, |(index, kernel)| match text {
                Text::Starter => kernel.file.starter.clone(),
                Text::Wrong(wrong) if wrong.kernel == index => wrong.text.clone(),
                Text::Solution | Text::Wrong(_) => kernel.file.solution.clone(),
            }),
        )
    };
    kernels.job(&exercise.id, SEED, read)
}

/// Judges the check of shipped texts. A starter must fail exactly the checks that say so, a solution must pass all checks, and a wrong
/// solution must be refused with the words that it names.
fn verdict(kernels: &Kernels, report: &KernelVerdict, text: Text<'_>) -> TrialResult {
    if let Some(why) = &report.facts.failed {
        return (Some(false), format!("{NOT_RUN}: {why}"));
    }
    if let Text::Wrong(wrong) = text {
        return verdict_on_wrong(wrong, report);
    }
    let is_starter = matches!(text, Text::Starter);
    let mut files = report.facts.files.iter();
    if let Some((name, error)) = files.find_map(|file| Some((&file.name, file.error.as_ref()?))) {
        let detail = format!("does not compile: {name}:{}: {}", error.line, error.message);
        return (Some(false), detail);
    }
    let mut faults = Vec::new();
    let mut expected = Vec::new();
    for (check, criterion) in kernels.checks.iter().zip(&report.criteria) {
        let must_fail = is_starter && check.starter == KernelStarter::Fails;
        let line = format!("`{}`: {}", criterion.name, criterion.measured);
        match criterion.outcome.decided() {
            Some(true) if must_fail => faults.push(format!("must fail: {line}")),
            Some(false) if !must_fail => faults.push(format!("must pass: {line}")),
            Some(_) => expected.push(line),
            // Speed is not judged on every device, for instance not on a GPU that a CPU simulates.
            None => {}
        }
    }
    if faults.is_empty() && !is_starter && !report.passed {
        faults.push(report.reason().unwrap_or("did not pass").to_owned());
    }
    if faults.is_empty() {
        (Some(true), expected.join("; "))
    } else {
        (Some(false), faults.join("; "))
    }
}

fn verdict_on_wrong(wrong: &WrongSolution, report: &KernelVerdict) -> TrialResult {
    let words = &wrong.refused;
    let reasons: Vec<&str> = report
        .card
        .iter()
        .filter(|line| line.good != Some(true))
        .map(|line| line.text.as_str())
        .collect();
    if report.passed {
        (Some(false), "passes, and must be refused".to_owned())
    } else if reasons.iter().any(|reason| reason.contains(words)) {
        (Some(true), format!("refused: {words}"))
    } else {
        let all_reasons = reasons.join(" / ");
        let detail = format!("is refused without the words “{words}”: {all_reasons}");
        (Some(false), detail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::course::Course;
    use crate::judge::{CriterionResult, Outcome};
    use protocol::{Device, KernelError, KernelReport, KernelResult};

    fn matmul() -> Kernels {
        let course = Course::builtin();
        let exercise = course.exercise_by_id("matmul");
        exercise.and_then(Exercise::kernels).cloned().expect("k04")
    }

    /// Returns a report with the outcomes of the three criteria: right outputs, shared memory, speed. `None` was not measured.
    fn report(outcomes: [Option<bool>; 3]) -> KernelVerdict {
        let names = matmul().checks.into_iter().map(|check| check.name);
        let criteria = names.zip(outcomes).map(|(name, passed)| CriterionResult {
            name,
            asked: String::new(),
            measured: "so".to_owned(),
            outcome: passed.map_or(Outcome::NotMeasured, Outcome::from_passed),
            optional: false,
        });
        KernelVerdict {
            facts: KernelReport {
                device: Some(Device::default()),
                ..KernelReport::default()
            },
            criteria: criteria.collect(),
            passed: !outcomes.contains(&Some(false)),
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
    fn a_check_that_did_not_run_fails() {
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
