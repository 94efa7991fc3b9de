//! `perflings check c01`: what the learner expects is read first; then the runs are made, and the two are compared.

use anyhow::{Result, anyhow};

use super::super::out::{self, Exit, Stop, notice, progress, result, usage};
use super::super::shelf::Shelf;
use super::judge::{self, Found, Point};
use super::{Bench, CheckArgs, line, state};
use crate::config::RunConfig;
use crate::course::check::Report;
use crate::course::exercise::config::{self, ANSWERS, Answers};
use crate::course::exercise::{ConfigMetric, Configs, Exercise, apply};
use crate::protocol::{Finished, Pair};

/// Asks for the learner's answers, measures, judges.
pub fn check(
    shelf: &Shelf,
    exercise: &Exercise,
    configs: &Configs,
    args: &CheckArgs,
) -> Result<Exit> {
    let answers = answers(shelf, exercise, configs, &args.answer)?;
    let mut lines = judge::unanswered(configs, &answers);
    if lines.is_empty() {
        let mut bench = Bench::new(&args.engine)?;
        match measure(&mut bench, configs, true)? {
            Some(found) => lines = judge::lines(configs, &answers, &found),
            None => return Ok(Exit::Interrupted),
        }
    } else if !args.json {
        result(&format!("{}: {}", exercise.title, exercise.task.trim()))?;
    }
    let report = Report {
        stage: exercise.id.clone(),
        lines,
    };
    if args.json {
        out::json(&report)?;
    } else {
        result(&text(exercise, &report))?;
    }
    state::exercise(shelf, exercise, report.passed(), None);
    Ok(if report.passed() {
        Exit::Ok
    } else {
        Exit::Failed
    })
}

fn text(exercise: &Exercise, report: &Report) -> String {
    let verdict = if report.passed() {
        "passed"
    } else {
        "not passed"
    };
    let mut lines = vec![format!(
        "{} {}: {verdict}",
        exercise.label(),
        exercise.title
    )];
    lines.extend(report.lines.iter().map(line));
    lines.join("\n")
}

/// From the command line, else from the learner's file, else from the starter.
fn answers(
    shelf: &Shelf,
    exercise: &Exercise,
    configs: &Configs,
    given: &[String],
) -> Result<Answers> {
    if !given.is_empty() {
        return from_words(configs, given);
    }
    let (path, raw) = match shelf.exercise_file(exercise, ANSWERS) {
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
    config::answers(&raw)
        .map_err(|(line, what)| crate::config::file::FileError { path, line, what }.into())
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

/// Makes every run of the exercise; without `speed`, each only as long as it takes to see that it works. None when
/// interrupted.
pub fn measure(bench: &mut Bench, configs: &Configs, speed: bool) -> Result<Option<Found>> {
    let mut found = Found::default();
    let steps = if speed { configs.steps } else { 2 };
    let points = configs.points();
    let base = points
        .first()
        .map(|(with, value)| at(configs, *with, value));
    for (number, (with, value)) in (1..).zip(&points) {
        let config = at(configs, *with, value)?;
        progress(&format!(
            "{number} of {}: {}",
            points.len(),
            label(configs, *with, value)
        ));
        // A fresh engine for each: what an earlier run kept in its pools is not this one's memory.
        bench.fresh();
        let run = match attempt(bench.run(0, &config, steps))? {
            Ok(None) => return Ok(None),
            Ok(Some(run)) => Ok::<Finished, String>(run),
            // Without the first value there is nothing to compare with.
            Err(why) if found.points.is_empty() => return Err(anyhow!(why)),
            Err(why) => Err(why),
        };
        found.points.push(Point {
            with: with.map(str::to_owned),
            value: (*value).to_owned(),
            run,
        });
    }
    let timed = |of: &str| {
        let ran = found
            .points
            .iter()
            .any(|point| point.value == of && point.run.is_ok());
        speed && ran
    };
    let values: Vec<&str> = configs
        .checks
        .iter()
        .filter_map(|check| match &check.metric {
            ConfigMetric::Speed { of } if timed(of) => Some(of.as_str()),
            _ => None,
        })
        .collect();
    for value in values {
        let Some(Ok(base)) = &base else { break };
        progress(&format!("pairs: {value}"));
        match attempt(bench.pair(0, base, &at(configs, None, value)?))? {
            Ok(None) => return Ok(None),
            Ok(Some(pair)) => found.speeds.push((value.to_owned(), Ok(pair))),
            Err(why) => found.speeds.push((value.to_owned(), Err(why))),
        }
    }
    for change in &configs.rank {
        let config = change
            .set
            .iter()
            .try_fold(configs.config.clone(), |config, set| apply(&config, set))
            .map_err(usage)?;
        progress(&format!("pairs: {}", change.label));
        let pair = if speed {
            attempt(bench.pair(0, &configs.config, &config))?
        } else {
            // That it runs at all is seen in two steps.
            attempt(bench.run(0, &config, steps))?.map(|run| run.map(|_| Pair::default()))
        };
        match pair {
            Ok(None) => return Ok(None),
            Ok(Some(pair)) => found.changes.push(Ok(pair)),
            Err(why) => found.changes.push(Err(why)),
        }
    }
    Ok(Some(found))
}

fn at(configs: &Configs, with: Option<&str>, value: &str) -> Result<RunConfig> {
    let mut config = configs.config.clone();
    if let Some(sweep) = &configs.sweep {
        config = apply(&config, &format!("{}={value}", sweep.key)).map_err(usage)?;
    }
    match with {
        Some(set) => apply(&config, set).map_err(usage),
        None => Ok(config),
    }
}

fn label(configs: &Configs, with: Option<&str>, value: &str) -> String {
    let key = configs
        .sweep
        .as_ref()
        .map_or("", |sweep| sweep.key.as_str());
    match with {
        Some(set) => format!("{key} = {value}, {set}"),
        None => format!("{key} = {value}"),
    }
}

/// A refusal is a result; a device that is not here, or an engine that broke, is not.
fn attempt<T>(tried: Result<T>) -> Result<std::result::Result<T, String>> {
    match tried {
        Ok(found) => Ok(Ok(found)),
        Err(error) => match error.downcast_ref::<Stop>() {
            Some(stop) if stop.exit == Exit::Usage => Ok(Err(stop.text.clone())),
            _ => Err(error),
        },
    }
}
