//! `perflings check k01`: a kernel exercise, held against its reference by an engine process of its own.

use std::path::Path;

use anyhow::{Result, anyhow};

use super::super::drive::engine_command;
use super::super::out::{self, Exit, Stop, notice, result};
use super::super::shelf::Shelf;
use super::CheckArgs;
use crate::course::exercise::{Body, Exercise, Kernels};
use crate::engine::kernel::checker::Checker;
use crate::engine::kernel::{job, source};

/// The kernel exercise of that id, or with that number: `k01`.
pub fn find<'a>(shelf: &'a Shelf, name: &str) -> Option<(&'a Exercise, &'a Kernels)> {
    let numbered = format!("{name}-");
    shelf.course.exercises.iter().find_map(|exercise| {
        let folder = exercise.path.rsplit('/').next().unwrap_or_default();
        let named = exercise.id == name || folder == name || folder.starts_with(&numbered);
        match &exercise.body {
            Body::Kernel(kernels) if named => Some((exercise, kernels)),
            _ => None,
        }
    })
}

/// Checks the file below the current folder (an `init` copy), else the starter, and prints the card.
pub fn check(exercise: &Exercise, kernels: &Kernels, args: &CheckArgs) -> Result<Exit> {
    let folder = Path::new(&exercise.path);
    let job = if folder.is_dir() {
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
