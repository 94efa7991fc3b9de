//! `perflings check k01`: a kernel exercise, held against its reference by an engine process of its own.

use std::path::Path;

use anyhow::Result;

use super::super::drive::engine_command;
use super::super::out::{self, Exit, Stop, notice, result};
use super::super::shelf::Shelf;
use super::super::workshop::exercise::in_folder;
use super::CheckArgs;
use crate::course::exercise::{Body, Exercise, Kernels};
use crate::course::progress::{self, StageProgress, State};
use crate::engine::kernel::checker::Checker;

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

/// Checks the learner's files, else the starter, and prints the card. The files are those below the current folder (an
/// `init` copy), else those that the workshop made.
pub fn check(
    shelf: &Shelf,
    exercise: &Exercise,
    kernels: &Kernels,
    args: &CheckArgs,
) -> Result<Exit> {
    let here = Path::new(&exercise.path).to_owned();
    let work = shelf.workspace().ok().map(|work| work.folder(&exercise.id));
    let folder = [Some(here.clone()), work]
        .into_iter()
        .flatten()
        .find(|folder| folder.is_dir());
    match &folder {
        Some(folder) => notice(&format!(
            "{}: your files in {}",
            exercise.id,
            folder.display()
        )),
        None => notice(&format!(
            "{}: the starter; `perflings init DIR` gives you files to edit, or open it in the workshop",
            exercise.id
        )),
    }
    let job = in_folder(exercise, kernels, &folder.unwrap_or(here))?;
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
    if let (true, Some(state)) = (report.passed, &shelf.state) {
        let (known, _) = progress::load(state);
        let passed = StageProgress {
            state: State::Passed,
            ..known.stage(&exercise.id)
        };
        if let Ok((_, Some(problem))) | Err(problem) =
            progress::save_stage(state, &exercise.id, &passed)
        {
            notice(&problem.to_string());
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
