//! `perflings check` on an exercise, and the exercises of `perflings course check`. The first judges the learner's work, the second tries
//! the starters and solutions that the course ships. Each kind of exercise has a file of its own.

mod configs;
pub(super) mod detective;
pub(super) mod kernels;

use anyhow::Result;

use super::args::EngineArgs;
use super::args::exercises::CheckArgs;
use super::meter::ProgressMeter;
use crate::course::context::CourseContext;
use crate::course::exercise::{Exercise, ExerciseWork};
use crate::judge::course::{CourseTrial, TrialResult};
use crate::measure::kernel_checker::Checker;
use crate::measure::runner::Runner;
use crate::out::{Exit, usage};

/// The first words of the detail of a trial that did not run.
const NOT_RUN: &str = "did not run";
/// The error for `--trace` on something other than a kernel exercise.
pub(super) const TRACE_REFUSED: &str = "--trace belongs to exercises about kernels, such as k04";

/// The commands that each kind of exercise carries out in its own way.
trait Commands {
    /// Checks the learner's work and prints the result.
    fn check(&self, request: CheckRequest<'_>) -> Result<Exit>;

    /// Tries the starters, solutions and answers that the course ships.
    fn try_shipped(&self, exercise: &Exercise, session: &mut CheckSession<'_>) -> Trials;
}

fn commands(exercise: &Exercise) -> &dyn Commands {
    match &exercise.work {
        ExerciseWork::Kernels(kernels) => kernels,
        ExerciseWork::Configs(configs) => configs,
        ExerciseWork::Detective(detective) => detective,
    }
}

/// The exercise to check, and the arguments of `check`.
#[derive(Clone, Copy)]
struct CheckRequest<'a> {
    context: &'a CourseContext,
    exercise: &'a Exercise,
    args: &'a CheckArgs,
}

/// The results of trials. `None` if they were interrupted.
type Trials = Result<Option<Vec<CourseTrial>>>;

/// The engines of `course check`, and its progress.
struct CheckSession<'a> {
    device: &'a str,
    /// True if speed is judged, too.
    timed: bool,
    checker: Checker,
    runner: Runner,
    meter: ProgressMeter,
    /// The number of kernels that have been checked so far.
    checked: usize,
    /// The number of kernels to check.
    total: usize,
    /// The result of all further kernels, once a check did not run.
    skipped: Option<TrialResult>,
}

/// Checks the learner's work in an exercise, as in `perflings check k01`.
pub(super) fn check(
    context: &CourseContext,
    exercise: &Exercise,
    args: &CheckArgs,
) -> Result<Exit> {
    let has_kernels = exercise.kernels().is_some();
    if args.seed.is_some() && !has_kernels {
        return Err(usage(format!(
            "{} takes no --seed: only kernel exercises draw numbers for each check",
            exercise.label()
        )));
    }
    if args.trace && !has_kernels {
        return Err(usage(TRACE_REFUSED));
    }
    commands(exercise).check(CheckRequest {
        context,
        exercise,
        args,
    })
}

/// Tries all exercises of a course.
pub(super) fn try_all(context: &CourseContext, timed: bool, engine: &EngineArgs) -> Trials {
    let mut exercises: Vec<&Exercise> = context.course.exercises.iter().collect();
    // Kernels come first: the process that checks them ends before anything is measured.
    exercises.sort_by_key(|exercise| exercise.kernels().is_none());
    let kernels = exercises.iter().filter_map(|exercise| exercise.kernels());
    let mut session = CheckSession {
        device: &engine.device,
        timed,
        checker: Checker::new(engine.command()?),
        runner: engine.runner(None)?,
        meter: ProgressMeter::begin(),
        checked: 0,
        // A starter, a solution and the wrong solutions.
        total: kernels.map(|kernels| 2 + kernels.wrong.len()).sum(),
        skipped: None,
    };
    let mut tried = Vec::new();
    for exercise in exercises {
        if exercise.kernels().is_none() {
            session.checker.end();
        }
        match commands(exercise).try_shipped(exercise, &mut session)? {
            Some(found) => tried.extend(found),
            None => return Ok(None),
        }
    }
    session.checker.end();
    Ok(Some(tried))
}

/// Returns the trial of a part of an exercise, such as `starter`.
fn trial(exercise: &Exercise, part: &str, found: TrialResult) -> CourseTrial {
    let name = format!("{} {}, {part}", exercise.label(), exercise.id);
    CourseTrial::new(name, found)
}
