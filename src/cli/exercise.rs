//! The commands on exercises. `check` judges what the learner has, and `course check` tries what the course ships. Each kind of work has a
//! file of its own.

mod configs;
pub(super) mod detective;
pub(super) mod kernels;

use anyhow::Result;

use super::args::{CheckArgs, EngineArgs};
use super::meter::ProgressMeter;
use crate::course::context::CourseContext;
use crate::course::exercise::{Exercise, ExerciseWork};
use crate::judge::course::{CourseTrial, TrialResult};
use crate::measure::kernel_checker::Checker;
use crate::measure::runner::Runner;
use crate::out::{Exit, usage};

/// The beginning of the detail of a trial that did not run.
const NOT_RUN: &str = "did not run";
/// The message about `--trace` in a place that does not take it.
pub(super) const TRACE: &str = "--trace belongs to exercises about kernels, such as k04";

/// The commands that depend on the work of an exercise.
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
    /// Speed is judged, too.
    timed: bool,
    checker: Checker,
    runner: Runner,
    meter: ProgressMeter,
    /// The number of kernels that were checked so far.
    checked: usize,
    /// The number of all kernels.
    of: usize,
    /// The result of all further kernels, after a check that did not run.
    skipped: Option<TrialResult>,
}

/// Checks the learner's work in an exercise, as in `perflings check k01`.
pub(super) fn check(
    context: &CourseContext,
    exercise: &Exercise,
    args: &CheckArgs,
) -> Result<Exit> {
    if args.seed.is_some() && exercise.kernels().is_none() {
        let label = exercise.label();
        return Err(usage(format!(
            "{label} takes no --seed: only kernel exercises draw numbers for each check"
        )));
    }
    if args.trace && exercise.kernels().is_none() {
        return Err(usage(TRACE));
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
        of: kernels.map(|kernels| 2 + kernels.wrong.len()).sum(),
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

/// Returns the result of trying a part of an exercise, such as `starter`.
fn trial(exercise: &Exercise, what: &str, found: TrialResult) -> CourseTrial {
    let (label, id) = (exercise.label(), &exercise.id);
    CourseTrial::new(format!("{label} {id}, {what}"), found)
}
