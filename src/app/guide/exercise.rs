//! The next move in an exercise or before a recorded run with a hidden fault.

use super::{Piece, last_answer, sentence};
use crate::app::exercise::measuring::Answer;
use crate::app::{Action, App, Overlay};
use crate::course::Exercise;

/// The next move before a recorded run with a hidden fault.
pub(super) fn watching(app: &App) -> Vec<Piece> {
    if app.question().is_none() {
        return sentence(
            "Look again with the answer in mind; {} goes back to the stage",
            &[Action::LeaveExercise],
        );
    }
    if !app.view.lesson_visible() {
        return sentence(
            "A hidden fault, recorded: {} turns the panels, {} reads the question",
            &[Action::FocusNext, Action::Lesson],
        );
    }
    sentence(
        "Name the fault: {} to {}; {} turns the panels, {} pauses",
        &[
            Action::Answer(0),
            Action::Answer(3),
            Action::FocusNext,
            Action::Pause,
        ],
    )
}

/// The next move in an exercise.
pub(super) fn exercise_move(app: &App, exercise: &Exercise) -> Vec<Piece> {
    let desk = app.exercises.desk(exercise);
    let report = desk.and_then(|desk| desk.report.as_ref());
    let back = [Action::Lesson, Action::LeaveExercise];
    if !app.view.lesson_visible() {
        return sentence("{} opens the exercise, {} goes back to the stage", &back);
    }
    if app.question().is_some() {
        return sentence(
            "Answer the question: {} to {}",
            &[Action::Answer(0), last_answer(app)],
        );
    }
    if exercise.configs().is_some() {
        return runs_move(app, exercise);
    }
    if exercise.kernels().is_none() {
        return sentence(
            "{} is the next exercise, {} lists all of them",
            &[Action::NextStage, Action::Open(Overlay::Stages)],
        );
    }
    if app.checking().is_some() {
        return sentence("Your kernel is checked; the run goes on beside it", &[]);
    }
    let keys = [Action::OpenEditor, Action::Hint];
    match report {
        None => sentence("{} opens the file in your editor, {} gives a hint", &keys),
        Some(report) if report.facts.failed.is_some() => {
            sentence("Nothing was checked: the card says what to do", &[])
        }
        Some(report) if report.passed => {
            let keys = [Action::NextStage, Action::Solution, Action::LeaveExercise];
            sentence(
                "{} next exercise, {} the solution, {} back to the stage",
                &keys,
            )
        }
        Some(_) if app.exercises.hints as usize >= exercise.hints.len() => sentence(
            "{} opens the file; mend it and save. {} shows the solution",
            &[Action::OpenEditor, Action::Solution],
        ),
        Some(_) => sentence(
            "{} opens the file; mend it and save. {} gives a hint",
            &keys,
        ),
    }
}

/// The next move where runs are thought through.
fn runs_move(app: &App, exercise: &Exercise) -> Vec<Piece> {
    if app.measuring().is_some() {
        return sentence(
            "It is measured; the stage's run waits. {} stops it",
            &[Action::StopMeasuring],
        );
    }
    let desk = app.exercises.desk(exercise);
    let found = desk.and_then(|desk| desk.measured.as_ref());
    let given = desk.is_some_and(|desk| matches!(desk.answer, Answer::Given(_)));
    match found {
        None if !given => sentence(
            "You expect: {} and {} mark it, {} takes it, {} opens the file",
            &[
                Action::PickOther(-1),
                Action::PickOther(1),
                Action::PickThis,
                Action::OpenEditor,
            ],
        ),
        None => sentence(
            "{} measures what you said; {} opens the file",
            &[Action::Pair, Action::OpenEditor],
        ),
        Some(found) if !found.passed => sentence(
            "{} opens your answer, {} measures again",
            &[Action::OpenEditor, Action::Pair],
        ),
        Some(_) => sentence(
            "{} is the next exercise, {} lists all of them",
            &[Action::NextStage, Action::Open(Overlay::Stages)],
        ),
    }
}
