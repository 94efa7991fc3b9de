//! `perflings check`: measures the learner's configuration or kernel, and judges it by each criterion of the stage or the exercise.

pub(super) mod text;

use anyhow::Result;
use serde_json::{Value, json};

use super::args::exercises::CheckArgs;
use super::exercise;
use super::meter::ProgressMeter;
use super::saved::{change_progress, progress_of, report_file};
use super::variant::stage_named;
use crate::course::Stage;
use crate::course::check::Metric;
use crate::course::context::CourseContext;
use crate::course::save_file::{
    Prediction, Progress, StageProgress, StageState, Times, letter, times as times_of,
};
use crate::judge::StageReport;
use crate::judge::stage::{StageFacts, evaluate};
use crate::measure::runner::{EngineTask, Runner};
use crate::out::{self, Exit, result, usage};
use protocol::config::RunConfig;

pub(super) fn check(args: &CheckArgs) -> Result<Exit> {
    let context = args.course.open()?;
    let named = args.stage.as_deref();
    if let Some(exercise) = named.and_then(|name| context.exercise(name)) {
        return exercise::check(&context, exercise, args);
    }
    if args.seed.is_some() {
        return Err(usage(
            "--seed belongs to kernel exercises, k01 and those after it; \
             a stage draws its numbers from train.seed",
        ));
    }
    if args.trace {
        return Err(usage(exercise::TRACE_REFUSED));
    }
    if !args.answer.is_empty() {
        return Err(usage(
            "--answer belongs to exercises such as c01 or d01; \
             a stage's questions are asked on the screen",
        ));
    }
    let stages: Vec<&Stage> = match named {
        Some(name) => vec![stage_named(name, &context)?],
        None => context.course.stages.iter().collect(),
    };
    let progress = progress_of(&context);
    let mut runner = args.engine.runner(None)?;
    let device = &args.engine.device;
    let mut exit = Exit::Ok;
    let meter = ProgressMeter::begin();
    let count = stages.len();
    for (done, stage) in stages.into_iter().enumerate() {
        meter.set_done(done, count);
        let (mine, path) = context.learner_config(stage, None)?;
        report_file(stage, path.as_deref());
        let known = progress.stage(&stage.id);
        let quiz_right = known.quiz.len();
        let Some(report) =
            measure_and_judge(&mut runner, &meter, device, stage, &mine.config, quiz_right)?
        else {
            return Ok(Exit::Interrupted);
        };
        if args.json {
            let state = context.state.as_deref();
            let times = state
                .map(|dir| times_of(dir, &stage.id))
                .unwrap_or_default();
            out::json(&with_answers(&report, stage, &known, &times)?)?;
        } else {
            let title = format!("stage {} {}", stage.number, stage.title);
            result(&text::text(&title, &report))?;
        }
        if report.passed() {
            change_progress(&context, &stage.id, |known| {
                known.state = StageState::Passed
            });
        } else {
            exit = Exit::Failed;
        }
    }
    drop(meter);
    if named.is_none() && !check_begun_exercises(&context, &progress, args)? {
        exit = Exit::Failed;
    }
    Ok(exit)
}

/// Checks the exercises that the learner has begun: those with files of the learner, and recordings that were looked at. Returns true if
/// all of them have passed.
fn check_begun_exercises(
    context: &CourseContext,
    progress: &Progress,
    args: &CheckArgs,
) -> Result<bool> {
    let mut passed = true;
    for exercise in &context.course.exercises {
        let has_begun = if exercise.files().is_empty() {
            progress.stage(&exercise.id).state != StageState::New
        } else {
            context.exercise_folder(exercise).is_some()
        };
        if has_begun {
            passed &= exercise::check(context, exercise, args)? != Exit::Failed;
        }
    }
    Ok(passed)
}

/// Returns the report as JSON, with the learner's predictions and answers, and their times in seconds since 1970.
fn with_answers(
    report: &StageReport,
    stage: &Stage,
    known: &StageProgress,
    times: &Times,
) -> Result<Value> {
    let mut all = serde_json::to_value(report)?;
    all["prediction"] = match known.prediction {
        None => Value::Null,
        Some(Prediction::Skipped) => json!({"skipped": true, "at": times.predicted}),
        Some(Prediction::Choice { choice, right }) => {
            json!({"choice": letter(choice), "right": right, "at": times.predicted})
        }
    };
    all["range"] = match known.estimate {
        None => Value::Null,
        Some((low, high)) => {
            json!({"low": low, "high": high, "measured": known.measured, "at": times.estimated})
        }
    };
    let answer = |(number, choice): (usize, &usize)| {
        let question = stage.quiz.get(number);
        let right = question.map(|question| question.answer == *choice);
        json!({"choice": letter(*choice), "right": right, "at": times.answered.get(number)})
    };
    all["answers"] = known.answers.iter().enumerate().map(answer).collect();
    all["hints"] = known.hints.into();
    Ok(all)
}

/// Measures the configuration `mine` and judges it by the criteria of its stage. Returns `None` if the learner interrupts it.
fn measure_and_judge(
    runner: &mut Runner,
    meter: &ProgressMeter,
    device: &str,
    stage: &Stage,
    mine: &RunConfig,
    quiz_right: usize,
) -> Result<Option<StageReport>> {
    let mut measure = |name: &str, work: EngineTask| {
        meter.set_work(format!("stage {} ({}): {name}", stage.number, stage.id));
        let measured = runner.measure(device, &work.of_stage(stage.number), |_, _| Ok(()))?;
        Ok::<_, anyhow::Error>((!measured.interrupted).then_some(measured))
    };
    let run = EngineTask::run("custom", mine, stage.steps);
    let Some(run) = measure(&format!("{} steps", stage.steps), run)? else {
        return Ok(None);
    };
    let starter = &stage.broken;
    let needs_ratio = stage
        .checks
        .iter()
        .any(|check| check.metric == Metric::Ratio);
    let mut pair = None;
    if starter != mine && needs_ratio {
        let work = EngineTask::pair(("custom", starter), ("custom", mine), 0);
        let Some(measured) = measure("pairs against the starter", work)? else {
            return Ok(None);
        };
        pair = measured.pair;
    }
    Ok(Some(evaluate(
        stage,
        StageFacts {
            config: Some(mine),
            finished: run.finished.as_ref(),
            pair: pair.as_ref(),
            quiz_right: (quiz_right > 0).then_some(quiz_right),
        },
    )))
}
