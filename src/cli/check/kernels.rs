//! `perflings check k01`: a kernel exercise, held against its reference by an engine process of its own.

use anyhow::{Result, anyhow};

use super::super::drive::engine_command;
use super::super::out::{self, Exit, Stop, notice, result};
use super::super::shelf::Shelf;
use super::{CheckArgs, state};
use crate::course::exercise::{Exercise, Kernels};
use crate::engine::kernel::checker::Checker;
use crate::engine::kernel::{job, source};

/// Checks the learner's file, else the starter, and prints the card.
pub fn check(
    shelf: &Shelf,
    exercise: &Exercise,
    kernels: &Kernels,
    args: &CheckArgs,
) -> Result<Exit> {
    let mine = shelf.exercise_folder(exercise);
    let job = if let Some(folder) = mine {
        notice(&format!(
            "{}: your files in {}",
            exercise.id,
            folder.display()
        ));
        job::job(exercise, kernels, |name| source::read(&folder.join(name)))
    } else {
        notice(&format!(
            "{}: the starter; `perflings init DIR` gives you files to edit",
            exercise.id
        ));
        job::job(exercise, kernels, |name| {
            let file = kernels
                .kernels
                .iter()
                .find(|kernel| kernel.file.name == name);
            source::text(
                file.map(|kernel| kernel.file.starter.clone())
                    .unwrap_or_default()
                    .into_bytes(),
            )
        })
    }
    .map_err(|why| anyhow!("{}: {why}", exercise.path))?;
    let mut checker = Checker::new(engine_command(args.engine.engine.as_deref())?);
    let report = checker.check(&args.engine.device, job);
    if args.json {
        out::json(&report)?;
    } else {
        for line in &report.card {
            let mark = match line.good {
                Some(true) => "pass",
                Some(false) => "FAIL",
                None => "    ",
            };
            result(&format!("{mark}  {}", line.text))?;
        }
    }
    state::exercise(shelf, exercise, report.passed, None);
    match &report.failed {
        Some(why) => Err(Stop {
            exit: Exit::NoDevice,
            text: why.clone(),
        }
        .into()),
        None if report.passed => Ok(Exit::Ok),
        None => Ok(Exit::Failed),
    }
}
