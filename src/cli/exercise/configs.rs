//! Runs that are predicted: `perflings check c01` reads what the learner expects, makes the runs and compares the two; in `course check`
//! the answers that the measurement makes right pass.

use anyhow::Result;

use super::{Asked, CheckSession, Commands, NOT_RUN, Tried, trial};
use crate::cli::check::text;
use crate::cli::meter::ProgressMeter;
use crate::cli::saved::note_tried;
use crate::course::config_file::{MAX_BYTES, read_text};
use crate::course::context::CourseContext;
use crate::course::exercise::config::{self, ANSWERS, Answers};
use crate::course::exercise::{Configs, Exercise};
use crate::course::sweep::{self, SweepRuns};
use crate::judge::course::WITH_MEASURE;
use crate::judge::{CriterionResult, Outcome, StageReport, configs as judge};
use crate::measure::exercise::measure_exercise;
use crate::out::{self, Exit, notice, result, usage};

impl Commands for Configs {
    fn check(&self, (context, exercise, args): Asked<'_>) -> Result<Exit> {
        let answers = answers(context, exercise, self, &args.answer)?;
        let mut lines = judge::unanswered(self, &answers);
        if lines.is_empty() {
            let mut runner = args.engine.runner(None)?;
            let device = &args.engine.device;
            let meter = ProgressMeter::begin();
            let measured = measure_exercise(&mut runner, self, device, true, |now, _| {
                meter.begins(&now);
            })?;
            drop(meter);
            let Some(found) = measured else {
                return Ok(Exit::Interrupted);
            };
            lines = judge::lines(self, &answers, &found);
            if !args.json {
                let table = sweep::table(self, &found);
                result(&table.text())?;
            }
        } else if !args.json {
            result(&format!("{}: {}", exercise.title, exercise.task.trim()))?;
        }
        let report = StageReport {
            stage: exercise.id.clone(),
            lines,
        };
        let title = format!("{} {}", exercise.label(), exercise.title);
        out::json_or_text(args.json, &report, || text::text(&title, &report))?;
        note_tried(context, exercise, report.passed());
        Ok(Exit::passed_if(report.passed()))
    }

    /// As shipped it has no answers and fails by name; the answers that the measurement makes right pass, and others fail.
    fn try_out(&self, exercise: &Exercise, session: &mut CheckSession<'_>) -> Tried {
        let timed = session.timed;
        let told = |lines: &[&CriterionResult]| {
            let line = |line: &&CriterionResult| format!("`{}`: {}", line.name, line.measured);
            lines.iter().map(line).collect::<Vec<_>>().join("; ")
        };
        let shipped = judge::unanswered(self, &Answers::new());
        let detail = told(&shipped.iter().collect::<Vec<_>>());
        let starter = trial(exercise, "starter", (Some(!shipped.is_empty()), detail));
        session.meter = ProgressMeter::begin();
        let (runner, meter) = (&mut session.runner, &session.meter);
        let measured = measure_exercise(runner, self, session.device, timed, |now, _| {
            meter.begins(&now);
        });
        let found = match measured {
            Ok(Some(found)) => all_ran(self, found),
            Ok(None) => return Ok(None),
            Err(error) => Err(format!("{error:#}")),
        };
        let found = match found {
            Err(why) => (Some(false), format!("{NOT_RUN}: {why}")),
            Ok(found) => {
                let right = judge::truth(self, &found);
                let lines = judge::lines(self, &right, &found);
                let is_speed = |line: &CriterionResult| {
                    let mut checks = self.checks.iter();
                    checks.any(|check| check.name == line.name && judge::is_speed(&check.metric))
                };
                let (mut failed, mut said) = (Vec::new(), Vec::new());
                // Without --measure the runs are too short for a time.
                for line in lines.iter().filter(|line| timed || !is_speed(line)) {
                    if !line.optional && line.outcome != Outcome::Passed {
                        failed.push(line);
                    }
                    if timed || line.outcome != Outcome::NotMeasured {
                        said.push(line);
                    }
                }
                match (failed.is_empty(), said.is_empty()) {
                    (false, _) => (Some(false), format!("must pass: {}", told(&failed))),
                    (true, false) => (Some(true), told(&said)),
                    (true, true) => (None, WITH_MEASURE.to_owned()),
                }
            }
        };
        Ok(Some(vec![starter, trial(exercise, "solution", found)]))
    }
}

/// From the command line, else from the learner's file, else from the starter.
fn answers(
    context: &CourseContext,
    exercise: &Exercise,
    configs: &Configs,
    given: &[String],
) -> Result<Answers> {
    if !given.is_empty() {
        return from_words(configs, given);
    }
    let (path, raw) = match context.exercise_file(exercise, ANSWERS) {
        Some(path) => {
            notice(&format!("your answers in {}", path.display()));
            let raw = read_text(&path, MAX_BYTES)?;
            (path.display().to_string(), raw)
        }
        None => (
            format!("{}/{ANSWERS}", exercise.path),
            configs.file.starter.clone(),
        ),
    };
    Ok(config::answers(&raw, &path)?)
}

fn from_words(configs: &Configs, given: &[String]) -> Result<Answers> {
    let keys: Vec<&str> = configs
        .checks
        .iter()
        .filter_map(|check| check.answer.as_ref().map(|(key, _)| key.as_str()))
        .collect();
    let mut found = Answers::new();
    for one in given {
        let (key, words) = match one.split_once('=') {
            Some((key, words)) => (key.trim(), words),
            None if keys.len() == 1 => (keys[0], one.as_str()),
            None => {
                return Err(usage(format!(
                    "--answer {one}: this exercise asks for {}; write --answer {}=…",
                    keys.join(" and "),
                    keys[0]
                )));
            }
        };
        if !keys.contains(&key) {
            return Err(usage(format!(
                "--answer {one}: this exercise asks for {}",
                keys.join(" and ")
            )));
        }
        found.insert(key.to_owned(), config::split(words));
    }
    Ok(found)
}

/// The runs, or why some of them were refused although no answer of the exercise is a refusal.
fn all_ran(configs: &Configs, found: SweepRuns) -> Result<SweepRuns, String> {
    let points = found.points.iter().filter(|_| !configs.compares_speeds());
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
