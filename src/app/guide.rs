//! The learner's next move, in one sentence that is always on the screen. Keys are named by their action; `tui` knows which key
//! that is.

mod vitals;

use super::devices::FirstLight;
use super::exercise::measuring::Answer;
use super::leave::Undone;
use super::study::Beat;
use super::view::{AfterSkip, Confirm};
use super::{Action as A, App, Overlay, RunState};
use crate::course::{Exercise, Stage};
pub use vitals::{Mark, Vital, vitals};

/// A piece of a sentence.
#[derive(Clone, Debug, PartialEq)]
pub enum Piece {
    Text(String),
    /// The key that does this.
    Key(A),
}

/// Builds a sentence: `{}` stands for the next key.
pub fn sentence(text: &str, keys: &[A]) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut keys = keys.iter();
    for (at, part) in text.split("{}").enumerate() {
        if at > 0
            && let Some(key) = keys.next()
        {
            pieces.push(Piece::Key(*key));
        }
        if !part.is_empty() {
            pieces.push(Piece::Text(part.to_owned()));
        }
    }
    pieces
}

/// The learner's next move.
pub fn next_move(app: &App) -> Vec<Piece> {
    if app.mode.is_watching() {
        return watching(app);
    }
    if app.recording().is_some() {
        return sentence(
            "A recording: {} pauses, {} goes one step on",
            &[A::Pause, A::ReplayStep],
        );
    }
    match &app.run.state {
        RunState::EngineGone { .. } => {
            return sentence("The engine is gone; {} starts a new one", &[A::Restart]);
        }
        RunState::Failed { .. } => {
            let keys = [A::Restart, A::Open(Overlay::Devices), A::Close];
            return sentence(
                "{} tries again, {} lists the devices, {} puts this away",
                &keys,
            );
        }
        _ => {}
    }
    if let Some(exercise) = app.exercise() {
        return exercise_move(app, exercise);
    }
    let Some(stage) = app.stage() else {
        return sentence("This course has no stages", &[]);
    };
    match app.study.beat(stage) {
        Beat::Predict if !app.view.lesson_visible() && app.study.predicted(stage) => sentence(
            "Estimate how much; {} goes back to the question",
            &[A::Lesson],
        ),
        Beat::Predict if !app.view.lesson_visible() => sentence(
            "Look at the panels, then {} to read and predict",
            &[A::Lesson],
        ),
        Beat::Predict if app.study.estimate(stage).is_some() => {
            let keys = [
                A::GuessShift(-1),
                A::GuessShift(1),
                A::GuessWiden(1),
                A::GuessWiden(-1),
                A::GuessKeep,
            ];
            sentence(
                "How much? {} {} move the range, {} {} size it, {} keeps it",
                &keys,
            )
        }
        Beat::Predict if !app.asked_here() => sentence(
            "{} reads on, {} back; the question stands on page 1",
            &[A::TurnPage(1), A::TurnPage(-1)],
        ),
        Beat::Predict => sentence(
            "Answer the question: {} to {}; {} reads on",
            &[A::Answer(0), last_answer(app), A::TurnPage(1)],
        ),
        Beat::Evidence => evidence_move(app, stage),
        Beat::Fix if app.view.lesson_visible() => sentence(
            "Read the cause; {} toggles the fix while it trains",
            &[A::Toggle],
        ),
        Beat::Fix => sentence(
            "{} toggles the fix while it trains; {} reads the cause again",
            &[A::Toggle, A::Lesson],
        ),
        Beat::Check if app.run.pairing => sentence(
            "Broken and fixed run in turns until the verdict is clear",
            &[],
        ),
        Beat::Check if app.run.switching.is_some() => {
            sentence("The knobs change at the next step", &[])
        }
        Beat::Check if app.study.looks_back(stage) => sentence(
            "Passed; your range is still open: {} measures both in pairs",
            &[A::Pair],
        ),
        Beat::Check => {
            let keys = [A::Toggle, A::Pair];
            sentence(
                "{} toggles back and forth; {} measures both in pairs",
                &keys,
            )
        }
        Beat::Debrief if !app.view.lesson_visible() => sentence(
            "{} opens the lesson to look back at your prediction",
            &[A::Lesson],
        ),
        Beat::Debrief if app.study.question(stage).is_some() && app.asked_here() => sentence(
            "Answer the question: {} to {}; {} reads back",
            &[A::Answer(0), last_answer(app), A::TurnPage(-1)],
        ),
        Beat::Debrief if app.study.question(stage).is_some() => sentence(
            "{} reads on: your result, a look back, and questions at the end",
            &[A::TurnPage(1)],
        ),
        Beat::Debrief if app.study.at + 1 < app.course.stages.len() => sentence(
            "Look back at your prediction; {} next stage, {} stages and exercises",
            &[A::NextStage, A::Open(Overlay::Stages)],
        ),
        Beat::Debrief => sentence(
            "The last stage is done; {} shows the whole course",
            &[A::Open(Overlay::Stages)],
        ),
    }
}

/// The next move once the prediction stands: from one panel to the next.
fn evidence_move(app: &App, stage: &Stage) -> Vec<Piece> {
    match app.study.pointer {
        Some(at) if at + 1 == stage.evidence.len() => {
            sentence("{} tells the cause", &[A::NextPointer])
        }
        Some(_) => sentence(
            "{} goes on to the next panel, {} back to the lesson",
            &[A::NextPointer, A::Close],
        ),
        None if app.view.lesson_visible() => sentence(
            "Now look for it: {} goes from panel to panel; the cause comes after",
            &[A::NextPointer],
        ),
        None => sentence("{} shows where to look", &[A::Lesson]),
    }
}

fn last_answer(app: &App) -> A {
    let choices = app.question().map_or(0, |question| question.choices.len());
    A::Answer(choices.saturating_sub(1))
}

/// The open yes-or-no question.
pub fn confirmation(confirm: Confirm, app: &App) -> Vec<Piece> {
    let keys = [A::Yes, A::No];
    match confirm {
        Confirm::SkipPrediction(AfterSkip::Toggle) => sentence(
            "No prediction yet: it will count as skipped. Toggle? {} {}",
            &keys,
        ),
        Confirm::SkipPrediction(AfterSkip::Pair) => sentence(
            "No prediction yet: it will count as skipped. Measure? {} {}",
            &keys,
        ),
        Confirm::ShowSolution => {
            sentence("Show the solution? Your progress will say so. {} {}", &keys)
        }
        Confirm::Reset if app.mode.exercise().is_some() => {
            sentence("Forget this exercise and put its files back? {} {}", &keys)
        }
        Confirm::Reset => sentence("Forget this stage and put its files back? {} {}", &keys),
        Confirm::Leave { .. } => leaving(app),
    }
}

/// The offer or the state of a GPU that warms up beside the run.
pub fn first_light(app: &App) -> Option<Vec<Piece>> {
    match &app.devices.first_light {
        FirstLight::None => None,
        FirstLight::Warming { kernels: 0, .. } => Some(sentence(
            "CPU first; the GPU warms up, sharing the cores",
            &[],
        )),
        FirstLight::Warming { kernels, .. } => Some(sentence(
            &format!("CPU first; the GPU warms up: {kernels} kernels compiled"),
            &[],
        )),
        FirstLight::Ready { device, .. } => Some(sentence(
            &format!("{} is ready: {{}} moves the run there", device.name),
            &[A::SwitchDevice],
        )),
        FirstLight::Failed { .. } => Some(sentence("CPU; the GPU could not be opened", &[])),
    }
}

/// What is asked before the stage is left.
fn leaving(app: &App) -> Vec<Piece> {
    let text = match app.undone() {
        Undone {
            stage: false,
            question: true,
            ..
        } => "A question is still open; go on without it? {} {}",
        Undone { question: true, .. } => {
            "A question is still open, and the stage is not passed; go on? {} {}"
        }
        Undone {
            prediction: true, ..
        } => "Leave this stage? Its run ends; your prediction is kept. {} {}",
        _ => "Leave this stage? Its run ends, and it is not passed. {} {}",
    };
    sentence(text, &[A::Yes, A::No])
}

/// The next move before a recorded run with a hidden fault.
fn watching(app: &App) -> Vec<Piece> {
    if app.question().is_none() {
        return sentence(
            "Look again with the answer in mind; {} goes back to the stage",
            &[A::LeaveExercise],
        );
    }
    if !app.view.lesson_visible() {
        return sentence(
            "A hidden fault, recorded: {} turns the panels, {} reads the question",
            &[A::FocusNext, A::Lesson],
        );
    }
    sentence(
        "Name the fault: {} to {}; {} turns the panels, {} pauses",
        &[A::Answer(0), A::Answer(3), A::FocusNext, A::Pause],
    )
}

/// The next move in an exercise.
fn exercise_move(app: &App, exercise: &Exercise) -> Vec<Piece> {
    let state = app.exercises.of(exercise);
    let report = state.and_then(|state| state.report.as_ref());
    let back = [A::Lesson, A::LeaveExercise];
    if !app.view.lesson_visible() {
        return sentence("{} opens the exercise, {} goes back to the stage", &back);
    }
    if app.question().is_some() {
        return sentence(
            "Answer the question: {} to {}",
            &[A::Answer(0), last_answer(app)],
        );
    }
    if exercise.configs().is_some() {
        return runs_move(app, exercise);
    }
    if exercise.kernels().is_none() {
        return sentence(
            "{} is the next exercise, {} lists all of them",
            &[A::NextStage, A::Open(Overlay::Stages)],
        );
    }
    if app.checking().is_some() {
        return sentence("Your kernel is checked; the run goes on beside it", &[]);
    }
    let keys = [A::OpenEditor, A::Hint];
    match report {
        None => sentence("{} opens the file in your editor, {} gives a hint", &keys),
        Some(report) if report.facts.failed.is_some() => {
            sentence("Nothing was checked: the card says what to do", &[])
        }
        Some(report) if report.passed => {
            let keys = [A::NextStage, A::Solution, A::LeaveExercise];
            sentence(
                "{} next exercise, {} the solution, {} back to the stage",
                &keys,
            )
        }
        Some(_) if app.hints().0 >= exercise.hints.len() => sentence(
            "{} opens the file; fix it and save. {} shows the solution",
            &[A::OpenEditor, A::Solution],
        ),
        Some(_) => sentence("{} opens the file; fix it and save. {} gives a hint", &keys),
    }
}

/// The next move where runs are thought through.
fn runs_move(app: &App, exercise: &Exercise) -> Vec<Piece> {
    if app.measuring().is_some() {
        return sentence(
            "Measuring; the stage's run waits. {} stops the measurement",
            &[A::StopMeasuring],
        );
    }
    let state = app.exercises.of(exercise);
    let found = state.and_then(|state| state.measured.as_ref());
    let given = state.is_some_and(|state| matches!(state.answer, Answer::Given(_)));
    match found {
        None if !given => sentence(
            "You expect: {} and {} mark it, {} takes it, {} opens the file",
            &[
                A::PickOther(-1),
                A::PickOther(1),
                A::PickThis,
                A::OpenEditor,
            ],
        ),
        None => sentence(
            "{} measures what you said; {} opens the file",
            &[A::Pair, A::OpenEditor],
        ),
        Some(found) if !found.passed => sentence(
            "{} opens your answer, {} measures again",
            &[A::OpenEditor, A::Pair],
        ),
        Some(_) => sentence(
            "{} is the next exercise, {} lists all of them",
            &[A::NextStage, A::Open(Overlay::Stages)],
        ),
    }
}

#[cfg(test)]
mod tests {
    /// Marker of the line, and the widest name of a key it may hold.
    const MARKER: &str = " ? ";
    const KEY: &str = "right";

    #[test]
    fn every_line_fits_the_smallest_screen() {
        let texts = include_str!("guide.rs")
            .split("sentence(")
            .filter_map(|it| it.split('"').nth(1));
        for text in texts {
            let line = format!("{MARKER} {}", text.replace("{}", KEY));
            assert!(line.chars().count() <= 78, "{line}");
        }
    }
}
