//! `perflings check k01`: a kernel exercise, held against its reference by an engine process of its own.

use std::path::PathBuf;

use anyhow::{Context, Result, anyhow};

use crate::cli::args::CheckArgs;
use crate::cli::meter::ProgressMeter;
use crate::cli::progress::note_tried;
use crate::course::context::CourseContext;
use crate::course::exercise::{Exercise, Kernels};
use crate::engine::kernel::checker::Checker;
use crate::engine::kernel::threads;
use crate::judge::kernel;
use crate::measure::runner::engine_command;
use crate::out::{self, Exit, ExitError, notice, result, usage};
use crate::protocol::KernelJob;
use crate::random;
use crate::threads::ThreadsWanted;
use crate::threads::listing::listing;
use crate::workshop::exercise::in_folder;

/// Checks the learner's files, else the starter, and prints the card.
pub fn check(
    context: &CourseContext,
    exercise: &Exercise,
    kernels: &Kernels,
    args: &CheckArgs,
) -> Result<Exit> {
    if !args.answer.is_empty() {
        return Err(usage(format!(
            "{} takes no --answer: its answer is the kernel in your file",
            exercise.label()
        )));
    }
    let job = job(context, exercise, kernels, args);
    let mut checker = Checker::new(engine_command(args.engine.engine.as_deref())?);
    let meter = ProgressMeter::begin();
    let report = checker.check_with_progress(&args.engine.device, job, |job, progress| {
        meter.doing(kernel::checking(job, progress).now);
    });
    drop(meter);
    let report = kernel::verdict(checker.job(), report);
    if args.json {
        out::json(&report)?;
    } else {
        let verdict = if report.passed {
            "passed"
        } else {
            "not passed"
        };
        result(&format!(
            "{} {}: {verdict}",
            exercise.label(),
            exercise.title
        ))?;
        for line in &report.card {
            let mark = match line.good {
                Some(true) => "pass",
                Some(false) => "FAIL",
                None => "    ",
            };
            result(&format!("  {mark}  {}", line.text))?;
        }
    }
    note_tried(context, exercise, report.passed);
    match &report.facts.failed {
        Some(why) => Err(ExitError {
            exit: Exit::NoDevice,
            text: why.clone(),
        }
        .into()),
        None if report.passed => Ok(Exit::Ok),
        None => Ok(Exit::Failed),
    }
}

/// The job for the learner's files, else for the starters; says which.
fn job(
    context: &CourseContext,
    exercise: &Exercise,
    kernels: &Kernels,
    args: &CheckArgs,
) -> KernelJob {
    let folder = context.exercise_folder(exercise);
    match &folder {
        Some(folder) => notice(&format!(
            "{}: your files in {}",
            exercise.label(),
            folder.display()
        )),
        None => notice(&format!(
            "{}: the starter; `perflings init DIR` gives you files to edit, or open it in the workshop",
            exercise.label()
        )),
    }
    in_folder(
        exercise,
        kernels,
        &folder.unwrap_or_else(|| PathBuf::from(&exercise.path)),
        args.seed.unwrap_or_else(random::fresh),
    )
}

/// Prints what the lanes of one workgroup do, for each file.
pub fn trace(
    context: &CourseContext,
    exercise: &Exercise,
    kernels: &Kernels,
    args: &CheckArgs,
) -> Result<Exit> {
    let job = job(context, exercise, kernels, args);
    for file in 0..job.files.len() {
        let wanted = ThreadsWanted {
            file,
            ..ThreadsWanted::default()
        };
        let found = threads::begin(job.clone(), wanted)?.recv();
        let found = found.context("This kernel broke the interpreter")?;
        let run = found.map_err(|why| anyhow!("{}: {why}", job.files[file].name))?;
        for line in listing(&run) {
            result(&line)?;
        }
    }
    Ok(Exit::Ok)
}
