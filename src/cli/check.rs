//! `perflings check`: what the learner has now, held against each criterion of the stage or the exercise.

pub mod configs;
pub mod detective;
pub mod judge;
mod kernels;
pub mod measure;
pub mod state;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Result;

use super::drive::{Drive, Ending, Flow, Say, engine_command};
use super::list::progress_of;
use super::out::{self, Exit, notice, progress, result, usage};
use super::shelf::Shelf;
use super::{CheckArgs, EngineArgs, machine};
use crate::config::RunConfig;
use crate::course::Stage;
use crate::course::check::{Line, Measured, Metric, Outcome, Report, evaluate};
use crate::course::exercise::Body;
use crate::course::progress::{StageProgress, State, save_stage};
use crate::engine::client::EngineCommand;
use crate::protocol::{Command, Event, Finished, Pair, RunSpec, Slot};

pub fn check(args: &CheckArgs) -> Result<Exit> {
    let shelf = Shelf::open(&args.course)?;
    if let Some(exercise) = args.stage.as_deref().and_then(|name| shelf.exercise(name)) {
        return match &exercise.body {
            Body::Kernel(kernels) => kernels::check(&shelf, exercise, kernels, args),
            Body::Config(configs) => configs::check(&shelf, exercise, configs, args),
            Body::Detective(detective) => detective::check(&shelf, exercise, detective, args),
        };
    }
    if !args.answer.is_empty() {
        return Err(usage(
            "--answer belongs to exercises such as c01 or d01; a stage's questions are asked on the screen",
        ));
    }
    let stages: Vec<&Stage> = match &args.stage {
        Some(name) => vec![shelf.stage(name)?],
        None => shelf.course.stages.iter().collect(),
    };
    let known = progress_of(&shelf);
    let mut bench = Bench::new(&args.engine)?;
    let mut exit = Exit::Ok;
    for stage in stages {
        let mine = shelf.learner(stage, None)?;
        let quiz = &known.stage(&stage.id).quiz;
        let Some(report) = bench.report(stage, &stage.broken, &mine.config, quiz.len())? else {
            return Ok(Exit::Interrupted);
        };
        if args.json {
            out::json(&report)?;
        } else {
            result(&text(stage, &report))?;
        }
        if report.passed() {
            if let Some(state) = &shelf.state {
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
    if args.stage.is_none() && all_begun(&shelf, args)? == Exit::Failed {
        exit = Exit::Failed;
    }
    Ok(exit)
}

/// The exercises that the learner has begun, one after the other: those with files of theirs, recordings looked at.
fn all_begun(shelf: &Shelf, args: &CheckArgs) -> Result<Exit> {
    let mut exit = Exit::Ok;
    let known = progress_of(shelf);
    for exercise in &shelf.course.exercises {
        let begun = match &exercise.body {
            Body::Detective(_) => known.stage(&exercise.id).state != State::New,
            _ => shelf.exercise_folder(exercise).is_some(),
        };
        if !begun {
            continue;
        }
        let checked = match &exercise.body {
            Body::Kernel(kernels) => kernels::check(shelf, exercise, kernels, args)?,
            Body::Config(configs) => configs::check(shelf, exercise, configs, args)?,
            Body::Detective(detective) => detective::check(shelf, exercise, detective, args)?,
        };
        if checked == Exit::Failed {
            exit = Exit::Failed;
        }
    }
    Ok(exit)
}

/// One engine that measures what checks ask for.
pub struct Bench {
    drive: Drive,
    device: String,
    own: bool,
    /// Hears every event of the runs.
    heard: Box<dyn FnMut(&Event)>,
}

impl Bench {
    pub fn new(engine: &EngineArgs) -> Result<Self> {
        let command = engine_command(engine.engine.as_deref())?;
        let own = command.is_own();
        Ok(Self {
            drive: Drive::new(command, None)?,
            device: engine.device.clone(),
            own,
            heard: Box::new(|_| {}),
        })
    }

    /// A bench behind a screen: `given_up` ends its engine, `say` takes notices, `heard` hears every event.
    pub fn behind(
        command: EngineCommand,
        device: &str,
        given_up: Arc<AtomicBool>,
        say: Say,
        heard: Box<dyn FnMut(&Event)>,
    ) -> Result<Self> {
        let own = command.is_own();
        Ok(Self {
            drive: Drive::behind(command, given_up, say)?,
            device: device.to_owned(),
            own,
            heard,
        })
    }

    /// The answers for one stage; none when interrupted.
    fn report(
        &mut self,
        stage: &Stage,
        starter: &RunConfig,
        mine: &RunConfig,
        quiz: usize,
    ) -> Result<Option<Report>> {
        progress(&format!(
            "stage {} ({}): {} steps",
            stage.number, stage.id, stage.steps
        ));
        let Some(finished) = self.run(stage.number, mine, stage.steps)? else {
            return Ok(None);
        };
        let mut pair = None;
        if stage
            .checks
            .iter()
            .any(|check| check.metric == Metric::Ratio)
            && starter != mine
        {
            progress(&format!(
                "stage {} ({}): pairs against the starter",
                stage.number, stage.id
            ));
            pair = self.pair(stage.number, starter, mine)?;
            if pair.is_none() {
                return Ok(None);
            }
        }
        let quiz_right = (quiz > 0).then_some(quiz);
        let measured = Measured {
            config: Some(mine),
            finished: Some(&finished),
            pair: pair.as_ref(),
            quiz_right,
        };
        Ok(Some(evaluate(stage, measured)))
    }

    /// One run to its end; none when interrupted.
    pub fn run(&mut self, stage: u32, config: &RunConfig, steps: u64) -> Result<Option<Finished>> {
        self.fits(&[config])?;
        let run = spec(stage, config, Slot::A, Some(steps));
        let mut found = None;
        let ending = self.drive.converse(
            Command::Start {
                device: self.device.clone(),
                run,
            },
            |line, _| {
                (self.heard)(&line.event);
                if let Event::Finished(finished) = &line.event {
                    found = Some((**finished).clone());
                    return Ok(Flow::Done);
                }
                Ok(Flow::Go)
            },
        )?;
        Ok(found.filter(|_| ending == Ending::Done))
    }

    /// One paired comparison to its end; none when interrupted.
    pub fn pair(&mut self, stage: u32, a: &RunConfig, b: &RunConfig) -> Result<Option<Pair>> {
        self.fits(&[a, b])?;
        let command = Command::Pair {
            device: self.device.clone(),
            stage,
            a: spec(stage, a, Slot::A, None),
            b: spec(stage, b, Slot::B, None),
            pairs: 0,
        };
        let mut found = None;
        let ending = self.drive.converse(command, |line, _| {
            (self.heard)(&line.event);
            match &line.event {
                Event::Pair(pair) => found = Some(pair.clone()),
                Event::Finished(finished) => {
                    found = finished.pair.clone().or(found.take());
                    return Ok(Flow::Done);
                }
                _ => {}
            }
            Ok(Flow::Go)
        })?;
        Ok(found.filter(|_| ending == Ending::Done))
    }

    /// The next run begins with an engine of its own.
    pub fn fresh(&mut self) {
        self.drive.part();
    }

    fn fits(&self, configs: &[&RunConfig]) -> Result<()> {
        if self.own {
            machine::check_memory(&self.device, configs)
        } else {
            Ok(())
        }
    }
}

fn spec(stage: u32, config: &RunConfig, slot: Slot, steps: Option<u64>) -> RunSpec {
    RunSpec {
        stage,
        variant: "custom".to_owned(),
        slot,
        config: config.clone(),
        steps,
    }
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
