//! What a check leaves in the learner's progress.

use super::super::list::progress_of;
use super::super::out::notice;
use super::super::shelf::Shelf;
use crate::course::exercise::Exercise;
use crate::course::progress::{Prediction, State, save_stage};

/// Notes that an exercise was tried, and whether it passed; the first answer to a question stays.
pub fn exercise(shelf: &Shelf, exercise: &Exercise, passed: bool, answer: Option<Prediction>) {
    let Some(state) = &shelf.state else {
        return;
    };
    let mut known = progress_of(shelf).stage(&exercise.id);
    known.state = known
        .state
        .max(if passed { State::Passed } else { State::Seen });
    known.prediction = known.prediction.or(answer);
    if let Ok((_, Some(problem))) | Err(problem) = save_stage(state, &exercise.id, &known) {
        notice(&problem.to_string());
    }
}
