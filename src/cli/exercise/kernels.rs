//! Kernels, held against their reference by an engine process of its own: the learner's in `perflings check k01`; in `course check`
//! starters, which fail the checks that they declare, solutions, which pass, and wrong solutions, which are refused.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result, anyhow};

use super::{Asked, CheckSession, Commands, NOT_RUN, Tried, trial};
use crate::cli::meter::ProgressMeter;
use crate::cli::saved::note_tried;
use crate::course::exercise::{Exercise, Kernels, WrongSolution};
use crate::judge::course::{CourseTrial, Found};
use crate::judge::kernel::{self, KernelVerdict};
use crate::judge::met;
use crate::lanes::LanesWanted;
use crate::measure::kernel_checker::Checker;
use crate::measure::lanes;
use crate::measure::weak_reference::weakness;
use crate::out::{self, Exit, ExitError, notice, result, usage};
use crate::shell::exercise::in_folder;
use protocol::random;
use protocol::{KernelJob, KernelShape, KernelStarter};
use wgsl_lockstep::lanes::listing;

impl Commands for Kernels {
    fn check(&self, asked: Asked<'_>) -> Result<Exit> {
        let (_, exercise, args) = asked;
        if args.trace {
            return trace(self, asked);
        }
        if !args.answer.is_empty() {
            return Err(usage(format!(
                "{} takes no --answer: its answer is the kernel in your file",
                exercise.label()
            )));
        }
        let job = own_job(self, asked);
        let mut checker = Checker::new(args.engine.command()?);
        let meter = ProgressMeter::begin();
        let (device, go_on) = (&args.engine.device, AtomicBool::new(false));
        let report = checker.check_with_progress(device, &job, &go_on, |progress| {
            meter.doing(kernel::checking(&job, progress).now);
        });
        drop(meter);
        let report = kernel::verdict(&job, report);
        if args.json {
            out::json(&report)?;
        } else {
            let verdict = match report.passed {
                true => format!("passed: {}", met(&report.criteria)),
                false => "not passed".to_owned(),
            };
            result(&format!(
                "{} {}: {verdict}",
                exercise.label(),
                exercise.title
            ))?;
            for line in &report.card {
                let mark = match line.good {
                    Some(true) => "pass",
                    Some(false) => "FAIL",
                    None => "    ",
                };
                result(&format!("  {mark}  {}", line.text))?;
            }
        }
        note_tried(asked.0, exercise, report.passed);
        match &report.facts.failed {
            Some(why) => Err(ExitError::new(Exit::NoDevice, why.clone()).into()),
            None => Ok(Exit::passed_if(report.passed)),
        }
    }

    fn try_out(&self, exercise: &Exercise, session: &mut CheckSession<'_>) -> Tried {
        let solution = job(exercise, self, Text::Solution);
        let drawn = solution.shapes.iter();
        let drawn = drawn.filter(|shape| shape.is_drawn() && !shape.is_of_text());
        let drawn: Vec<KernelShape> = drawn.cloned().collect();
        let references = solution.files.iter().map(|file| {
            let found = match weakness(&file.spec, &drawn, solution.seed) {
                Ok(None) => (
                    Some(true),
                    "refuses zeros, inputs and what is 1 % off".to_owned(),
                ),
                Ok(Some(why)) | Err(why) => (Some(false), why),
            };
            trial(exercise, &format!("reference of {}", file.name), found)
        });
        let references: Vec<CourseTrial> = references.collect();
        let texts = [Text::Starter, Text::Solution].into_iter();
        let texts = texts.chain(self.wrong.iter().map(Text::Wrong));
        let tried = texts.map(|text| {
            let name = text.name();
            let found = match session.skipped.clone() {
                Some(outcome) => outcome,
                None => {
                    session.meter.at(session.checked, session.of);
                    let (label, id) = (exercise.label(), &exercise.id);
                    session.meter.doing(format!("{label} {id}, {name}"));
                    let mut job = job(exercise, self, text);
                    job.timed = session.timed;
                    let report = check(&mut session.checker, session.device, &job);
                    verdict(self, &report, text)
                }
            };
            session.checked += 1;
            if session.skipped.is_none() && found.1.starts_with(NOT_RUN) {
                // After one that did not answer, no further one is tried.
                let why = "not tried, after the one that did not run";
                session.skipped = Some((Some(false), why.to_owned()));
            }
            trial(exercise, &name, found)
        });
        Ok(Some(references.into_iter().chain(tried).collect()))
    }
}

/// The job for the learner's files, else for the starters; says which.
fn own_job(kernels: &Kernels, (context, exercise, args): Asked<'_>) -> KernelJob {
    let folder = context.exercise_folder(exercise);
    let label = exercise.label();
    notice(&match &folder {
        Some(folder) => format!("{label}: your files in {}", folder.display()),
        None => format!(
            "{label}: the starter; `perflings init DIR` gives you files to edit, or open it in the workshop"
        ),
    });
    in_folder(
        exercise,
        kernels,
        &folder.unwrap_or_else(|| PathBuf::from(&exercise.path)),
        args.seed.unwrap_or_else(random::unpredictable_seed),
    )
}

/// Prints what the lanes of one workgroup do, for each file.
fn trace(kernels: &Kernels, asked: Asked<'_>) -> Result<Exit> {
    let job = own_job(kernels, asked);
    for file in 0..job.files.len() {
        let wanted = LanesWanted {
            file,
            ..LanesWanted::default()
        };
        let found = lanes::begin(job.clone(), wanted)?.wait();
        let found = found.context("This kernel broke the interpreter")?;
        let found = found.map_err(|why| anyhow!("{}: {why}", job.files[file].name))?;
        for line in listing(&found.title(), &found.run) {
            result(&line)?;
        }
    }
    Ok(Exit::Ok)
}

/// Checks and judges.
pub(crate) fn check(checker: &mut Checker, device: &str, job: &KernelJob) -> KernelVerdict {
    let mut facts = checker.check(device, job);
    if facts.restart {
        // It took too long, perhaps because the machine was busy: it is tried once more.
        facts = checker.check(device, job);
    }
    kernel::verdict(job, facts)
}

/// What is tried of a kernel exercise.
#[derive(Clone, Copy)]
pub(crate) enum Text<'a> {
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
pub(crate) fn job(exercise: &Exercise, kernels: &Kernels, text: Text<'_>) -> KernelJob {
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
fn verdict(kernels: &Kernels, report: &KernelVerdict, text: Text<'_>) -> Found {
    if let Some(why) = &report.facts.failed {
        return (Some(false), format!("{NOT_RUN}: {why}"));
    }
    if let Text::Wrong(wrong) = text {
        return refused(wrong, report);
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
        wrong.push(report.reason().unwrap_or("did not pass").to_owned());
    }
    match wrong.is_empty() {
        true => (Some(true), said.join("; ")),
        false => (Some(false), wrong.join("; ")),
    }
}

/// A wrong solution has to be refused with its words.
fn refused(wrong: &WrongSolution, report: &KernelVerdict) -> Found {
    let said = report.card.iter().filter(|line| line.good != Some(true));
    let said = said.map(|line| line.text.as_str()).collect::<Vec<_>>();
    let words = &wrong.refused;
    let named = said.iter().any(|line| line.contains(words));
    let detail = match said.join(" / ") {
        _ if report.passed => "passes, and must be refused".to_owned(),
        _ if named => format!("refused: {words}"),
        said => format!("is refused without the words “{words}”: {said}"),
    };
    (Some(!report.passed && named), detail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::course::Course;
    use crate::judge::{CriterionResult, Outcome};
    use protocol::{Device, KernelError, KernelReport, KernelResult};

    fn matmul() -> Kernels {
        let course = Course::builtin();
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
            outcome: passed.map_or(Outcome::NotMeasured, Outcome::from_passed),
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
