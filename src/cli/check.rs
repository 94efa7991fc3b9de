//! `perflings check`: what the learner has now, held against each criterion of the stage or the exercise.

pub mod configs;
pub mod detective;
pub mod judge;
mod kernels;
pub mod state;

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;

use super::CheckArgs;
use super::list::progress_of;
use crate::config::RunConfig;
use crate::course::Stage;
use crate::course::check::{Line, Measured, Metric, Outcome, Report, evaluate};
use crate::course::context::CourseContext;
use crate::course::exercise::Body;
use crate::course::progress::{StageProgress, State, save_stage};
use crate::measure::runner::{Runner, Work};
use crate::out::{self, Exit, notice, progress, result, usage};

pub fn check(args: &CheckArgs) -> Result<Exit> {
    let context = args.course.open()?;
    if let Some(exercise) = args
        .stage
        .as_deref()
        .and_then(|name| context.exercise(name))
    {
        return match &exercise.body {
            Body::Kernel(kernels) => kernels::check(&context, exercise, kernels, args),
            Body::Config(configs) => configs::check(&context, exercise, configs, args),
            Body::Detective(detective) => detective::check(&context, exercise, detective, args),
        };
    }
    if !args.answer.is_empty() {
        return Err(usage(
            "--answer belongs to exercises such as c01 or d01; a stage's questions are asked on the screen",
        ));
    }
    let stages: Vec<&Stage> = match &args.stage {
        Some(name) => vec![context.stage(name)?],
        None => context.course.stages.iter().collect(),
    };
    let known = progress_of(&context);
    let mut runner = args.engine.runner()?;
    let device = &args.engine.device;
    let mut exit = Exit::Ok;
    for stage in stages {
        let (mine, path) = context.learner(stage, None)?;
        say_file(stage, path.as_deref());
        let quiz = &known.stage(&stage.id).quiz;
        let Some(report) = report(&mut runner, device, stage, &mine.config, quiz.len())? else {
            return Ok(Exit::Interrupted);
        };
        if args.json {
            out::json(&report)?;
        } else {
            result(&text(stage, &report))?;
        }
        if report.passed() {
            if let Some(state) = &context.state {
                let passed = StageProgress {
                    state: State::Passed,
                    best: BTreeMap::new(),
                    ..known.stage(&stage.id)
                };
                if let Ok((_, Some(problem))) | Err(problem) = save_stage(state, &stage.id, &passed)
                {
                    notice(&problem.to_string());
                }
            }
        } else {
            exit = Exit::Failed;
        }
    }
    if args.stage.is_none() && all_begun(&context, args)? == Exit::Failed {
        exit = Exit::Failed;
    }
    Ok(exit)
}

/// The exercises that the learner has begun, one after the other: those with files of theirs, recordings looked at.
fn all_begun(context: &CourseContext, args: &CheckArgs) -> Result<Exit> {
    let mut exit = Exit::Ok;
    let known = progress_of(context);
    for exercise in &context.course.exercises {
        let begun = match &exercise.body {
            Body::Detective(_) => known.stage(&exercise.id).state != State::New,
            _ => context.exercise_folder(exercise).is_some(),
        };
        if !begun {
            continue;
        }
        let checked = match &exercise.body {
            Body::Kernel(kernels) => kernels::check(context, exercise, kernels, args)?,
            Body::Config(configs) => configs::check(context, exercise, configs, args)?,
            Body::Detective(detective) => detective::check(context, exercise, detective, args)?,
        };
        if checked == Exit::Failed {
            exit = Exit::Failed;
        }
    }
    Ok(exit)
}

/// Says which file of the learner's is used.
pub fn say_file(stage: &Stage, path: Option<&Path>) {
    if let Some(path) = path {
        let path = path.display();
        notice(&format!("stage {} with your {path}", stage.number));
    }
}

/// The answers for one stage; none when interrupted.
fn report(
    runner: &mut Runner,
    device: &str,
    stage: &Stage,
    mine: &RunConfig,
    quiz: usize,
) -> Result<Option<Report>> {
    let mut measure = |what: &str, work: Work| {
        progress(&format!("stage {} ({}): {what}", stage.number, stage.id));
        let measured = runner.measure(device, &work.of_stage(stage.number), |_, _| Ok(()))?;
        Ok::<_, anyhow::Error>((!measured.interrupted).then_some(measured))
    };
    let run = Work::run("custom", mine, stage.steps);
    let Some(run) = measure(&format!("{} steps", stage.steps), run)? else {
        return Ok(None);
    };
    let starter = &stage.broken;
    let mut pair = None;
    if starter != mine && stage.checks.iter().any(|it| it.metric == Metric::Ratio) {
        let work = Work::pair(("custom", starter), ("custom", mine), 0);
        let Some(measured) = measure("pairs against the starter", work)? else {
            return Ok(None);
        };
        pair = measured.pair;
    }
    Ok(Some(evaluate(
        stage,
        Measured {
            config: Some(mine),
            finished: run.finished.as_ref(),
            pair: pair.as_ref(),
            quiz_right: (quiz > 0).then_some(quiz),
        },
    )))
}

fn text(stage: &Stage, report: &Report) -> String {
    let verdict = match report.outcome() {
        Outcome::Passed => "passed",
        Outcome::Failed => "not passed",
        Outcome::NotMeasured => "not passed: something was not measured",
    };
    let mut lines = vec![format!("stage {} {}: {verdict}", stage.number, stage.title)];
    lines.extend(report.lines.iter().map(line));
    lines.join("\n")
}

fn line(line: &Line) -> String {
    let mark = match line.outcome {
        Outcome::Passed => "pass",
        Outcome::Failed => "FAIL",
        Outcome::NotMeasured => "----",
    };
    let optional = if line.optional { " (optional)" } else { "" };
    format!(
        "  {mark}  {}{optional}\n        asked     {}\n        measured  {}",
        line.name, line.asked, line.measured
    )
}
