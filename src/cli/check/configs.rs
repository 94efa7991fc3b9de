//! `perflings check c01`: reads what the learner expects, makes the runs, and compares the two.

use anyhow::Result;

use super::text;
use crate::cli::args::CheckArgs;
use crate::cli::meter::ProgressMeter;
use crate::cli::progress::note_tried;
use crate::course::context::CourseContext;
use crate::course::exercise::config::{self, ANSWERS, Answers};
use crate::course::exercise::{Configs, Exercise};
use crate::course::sweep;
use crate::judge::{StageReport, configs as judge};
use crate::measure::exercise::measure_exercise;
use crate::measure::plan::{MeasureEvent, PlanProgress};
use crate::out::{self, Exit, notice, result, usage};

/// Asks for the learner's answers, measures, judges.
pub fn check(
    context: &CourseContext,
    exercise: &Exercise,
    configs: &Configs,
    args: &CheckArgs,
) -> Result<Exit> {
    let answers = answers(context, exercise, configs, &args.answer)?;
    let mut lines = judge::unanswered(configs, &answers);
    if lines.is_empty() {
        let mut runner = args.engine.runner()?;
        let device = &args.engine.device;
        let meter = ProgressMeter::begin();
        let measured = measure_exercise(&mut runner, configs, device, true, |now, _| {
            say(now, &meter);
        })?;
        drop(meter);
        let Some(found) = measured else {
            return Ok(Exit::Interrupted);
        };
        lines = judge::lines(configs, &answers, &found);
        if !args.json {
            let table = sweep::table(configs, &found);
            result(&table.text())?;
        }
    } else if !args.json {
        result(&format!("{}: {}", exercise.title, exercise.task.trim()))?;
    }
    let report = StageReport {
        stage: exercise.id.clone(),
        lines,
    };
    if args.json {
        out::json(&report)?;
    } else {
        let title = format!("{} {}", exercise.label(), exercise.title);
        result(&text::text(&title, &report))?;
    }
    note_tried(context, exercise, report.passed());
    Ok(if report.passed() {
        Exit::Ok
    } else {
        Exit::Failed
    })
}

/// Prints which run begins.
pub fn say(now: PlanProgress<'_>, meter: &ProgressMeter) {
    if let MeasureEvent::Begins { number, of } = now.news {
        meter.at(number - 1, of);
        meter.doing(&now.job.label);
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
            let raw = crate::config::file::read_text(&path, crate::config::file::MAX_BYTES)?;
            (path.display().to_string(), raw)
        }
        None => (
            format!("{}/{ANSWERS}", exercise.path),
            configs.answers.clone(),
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
