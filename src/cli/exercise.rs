//! What commands do with an exercise, by its work: `check` holds what the learner has against each criterion, `course check` tries what
//! the course ships.

mod configs;
pub(super) mod detective;
pub(super) mod kernels;

use anyhow::Result;

use super::args::{CheckArgs, EngineArgs};
use super::meter::ProgressMeter;
use crate::course::context::CourseContext;
use crate::course::exercise::{Exercise, ExerciseWork};
use crate::judge::course::{CourseTrial, Found};
use crate::measure::kernel_checker::Checker;
use crate::measure::runner::Runner;
use crate::out::{Exit, usage};

/// How the detail of what was never checked or measured begins.
const NOT_RUN: &str = "did not run";
pub(super) const TRACE: &str = "--trace belongs to exercises about kernels, such as k04";

/// The commands on one kind of work.
trait Commands {
    /// Checks what the learner has, and prints it.
    fn check(&self, asked: Asked<'_>) -> Result<Exit>;

    /// Tries what the course ships.
    fn try_out(&self, exercise: &Exercise, session: &mut CheckSession<'_>) -> Tried;
}

fn commands(exercise: &Exercise) -> &dyn Commands {
    match &exercise.work {
        ExerciseWork::Kernels(kernels) => kernels,
        ExerciseWork::Configs(configs) => configs,
        ExerciseWork::Detective(detective) => detective,
    }
}

/// What `check` was asked.
type Asked<'a> = (&'a CourseContext, &'a Exercise, &'a CheckArgs);

/// What was tried; none when interrupted.
type Tried = Result<Option<Vec<CourseTrial>>>;

/// What exercises are tried with.
struct CheckSession<'a> {
    device: &'a str,
    timed: bool,
    checker: Checker,
    runner: Runner,
    meter: ProgressMeter,
    /// How many kernels were checked, and of how many.
    checked: usize,
    of: usize,
    /// The outcome of kernels that are not checked any more.
    skipped: Option<Found>,
}

/// `perflings check k01`.
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
    commands(exercise).check((context, exercise, args))
}

/// Tries every exercise; none when interrupted.
pub(super) fn try_all(context: &CourseContext, timed: bool, engine: &EngineArgs) -> Tried {
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
        match commands(exercise).try_out(exercise, &mut session)? {
            Some(found) => tried.extend(found),
            None => return Ok(None),
        }
    }
    session.checker.end();
    Ok(Some(tried))
}

/// What came of one thing that the course ships: a starter, a solution, an answer.
fn trial(exercise: &Exercise, what: &str, found: Found) -> CourseTrial {
    let (label, id) = (exercise.label(), &exercise.id);
    CourseTrial::new(format!("{label} {id}, {what}"), found)
}
