//! What a check leaves in the learner's progress.

use super::super::list::progress_of;
use crate::course::context::CourseContext;
use crate::course::exercise::Exercise;
use crate::course::progress::{Prediction, StageProgress, State, save_stage};
use crate::out::notice;

/// Notes that an exercise was tried, and whether it passed.
pub fn exercise(context: &CourseContext, exercise: &Exercise, passed: bool) {
    change(context, exercise, |known| {
        let reached = if passed { State::Passed } else { State::Seen };
        known.state = known.state.max(reached);
    });
}

/// Notes an answer to a recorded run; the first one stays. An answer is no look at the recording.
pub fn answer(context: &CourseContext, exercise: &Exercise, choice: usize, right: bool) {
    change(context, exercise, |known| {
        known
            .prediction
            .get_or_insert(Prediction::Choice { choice, right });
        if right {
            known.state = State::Passed;
        }
    });
}

/// Notes that an exercise was looked at.
pub fn seen(context: &CourseContext, exercise: &Exercise) {
    change(context, exercise, |known| {
        known.state = known.state.max(State::Seen)
    });
}

fn change(context: &CourseContext, exercise: &Exercise, change: impl FnOnce(&mut StageProgress)) {
    let Some(state) = &context.state else {
        return;
    };
    let mut known = progress_of(context).stage(&exercise.id);
    let before = known.clone();
    change(&mut known);
    if known == before {
        return;
    }
    if let Ok((_, Some(problem))) | Err(problem) = save_stage(state, &exercise.id, &known) {
        notice(&problem.to_string());
    }
}
