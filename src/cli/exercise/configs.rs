//! Exercises about configurations, whose runs the learner predicts. `perflings check c01` reads the answers, makes the runs and compares
//! both. `course check` takes the right answers from the measurement, and they must pass.

use anyhow::Result;

use super::{CheckRequest, CheckSession, Commands, NOT_RUN, Trials, trial};
use crate::cli::check::text;
use crate::cli::meter::ProgressMeter;
use crate::cli::saved::save_tried;
use crate::course::config_file::{MAX_BYTES, read_text};
use crate::course::exercise::config::{self, ANSWERS, Answers};
use crate::course::exercise::{Configs, Exercise};
use crate::course::sweep::{self, SweepRuns};
use crate::judge::course::{TrialResult, WITH_MEASURE};
use crate::judge::{CriterionResult, Outcome, StageReport, configs as judge};
use crate::measure::exercise::measure_exercise;
use crate::out::{self, Exit, notice, result, usage};

impl Commands for Configs {
    fn check(&self, request: CheckRequest<'_>) -> Result<Exit> {
        let CheckRequest { exercise, args, .. } = request;
        let answers = answers(self, request)?;
        let mut lines = judge::unanswered(self, &answers);
        if lines.is_empty() {
            let mut runner = args.engine.runner(None)?;
            let device = &args.engine.device;
            let meter = ProgressMeter::begin();
            let measured = measure_exercise(&mut runner, self, device, true, |plan, _| {
                meter.on_plan(&plan);
            })?;
            drop(meter);
            let Some(runs) = measured else {
                return Ok(Exit::Interrupted);
            };
            lines = judge::lines(self, &answers, &runs);
            if !args.json {
                result(&sweep::table(self, &runs).text())?;
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
        save_tried(request.context, exercise, report.passed());
        Ok(Exit::passed_if(report.passed()))
    }

    /// Tries the shipped file, which has no answers and must fail, and the right answers, which must pass.
    fn try_shipped(&self, exercise: &Exercise, session: &mut CheckSession<'_>) -> Trials {
        let unanswered = judge::unanswered(self, &Answers::new());
        let starter = (Some(!unanswered.is_empty()), in_one_line(&unanswered));
        session.meter = ProgressMeter::begin();
        let device = session.device;
        let timed = session.timed;
        let measured = measure_exercise(&mut session.runner, self, device, timed, |plan, _| {
            session.meter.on_plan(&plan);
        });
        let refused = |why: String| (Some(false), format!("{NOT_RUN}: {why}"));
        let solution = match measured {
            Ok(None) => return Ok(None),
            Err(error) => refused(format!("{error:#}")),
            Ok(Some(runs)) => match refusals(self, &runs).join("; ") {
                none if none.is_empty() => judge_right_answers(self, &runs, timed),
                why => refused(why),
            },
        };
        Ok(Some(vec![
            trial(exercise, "starter", starter),
            trial(exercise, "solution", solution),
        ]))
    }
}

/// Judges the answers that are right by the measurement. Without `timed`, the runs are too short for the criteria about speed.
fn judge_right_answers(configs: &Configs, runs: &SweepRuns, timed: bool) -> TrialResult {
    let right = judge::right_answers(configs, runs);
    let mut lines = judge::lines(configs, &right, runs);
    let is_speed = |line: &CriterionResult| {
        configs
            .checks
            .iter()
            .any(|check| check.name == line.name && judge::is_speed(&check.metric))
    };
    lines.retain(|line| timed || !is_speed(line));
    let is_failed = |line: &&CriterionResult| !line.optional && line.outcome != Outcome::Passed;
    if lines.iter().any(|line| is_failed(&line)) {
        let failed = in_one_line(lines.iter().filter(is_failed));
        return (Some(false), format!("must pass: {failed}"));
    }
    lines.retain(|line| timed || line.outcome != Outcome::NotMeasured);
    if lines.is_empty() {
        (None, WITH_MEASURE.to_owned())
    } else {
        (Some(true), in_one_line(&lines))
    }
}

/// Returns the criteria with their measured figures, in one line.
fn in_one_line<'a>(lines: impl IntoIterator<Item = &'a CriterionResult>) -> String {
    let line = |line: &CriterionResult| format!("`{}`: {}", line.name, line.measured);
    let all: Vec<String> = lines.into_iter().map(line).collect();
    all.join("; ")
}

/// Returns the learner's answers from the command line, otherwise from the learner's file, otherwise from the starter.
fn answers(configs: &Configs, request: CheckRequest<'_>) -> Result<Answers> {
    let exercise = request.exercise;
    let flags = &request.args.answer;
    if !flags.is_empty() {
        return answers_of_flags(configs, flags);
    }
    let (path, raw) = match request.context.exercise_file(exercise, ANSWERS) {
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

/// Reads answers from the values of `--answer`: a word, or `KEY=WORD` if the exercise has several questions.
fn answers_of_flags(configs: &Configs, flags: &[String]) -> Result<Answers> {
    let keys: Vec<&str> = configs
        .checks
        .iter()
        .filter_map(|check| check.answer.as_ref().map(|(key, _)| key.as_str()))
        .collect();
    let all_keys = keys.join(" and ");
    let mut answers = Answers::new();
    for flag in flags {
        let (key, words) = match flag.split_once('=') {
            Some((key, words)) => (key.trim(), words),
            None if keys.len() == 1 => (keys[0], flag.as_str()),
            None => {
                return Err(usage(format!(
                    "--answer {flag}: this exercise asks for {all_keys}; write --answer {}=…",
                    keys[0]
                )));
            }
        };
        if !keys.contains(&key) {
            return Err(usage(format!(
                "--answer {flag}: this exercise asks for {all_keys}"
            )));
        }
        answers.insert(key.to_owned(), config::split(words));
    }
    Ok(answers)
}

/// Returns the runs that the engine refused, each with the reason. In an exercise that compares speeds, a refused value may be the right
/// answer, so it is not listed.
fn refusals(configs: &Configs, runs: &SweepRuns) -> Vec<String> {
    let mut refused = Vec::new();
    for point in &runs.points {
        if let Err(why) = &point.run
            && !configs.compares_speeds()
        {
            refused.push(format!("{}: {why}", point.value));
        }
    }
    for change in &runs.changes {
        refused.extend(change.as_ref().err().cloned());
    }
    refused
}
