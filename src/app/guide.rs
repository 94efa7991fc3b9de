//! What the screen says unasked: the next move in one sentence. Keys are named by their action; the screen knows
//! which key that is.

mod exercise;
mod vitals;

use super::devices::FirstLight;
use super::message::{AfterSkip, Confirm};
use super::study::Beat;
use super::{Action, App, Overlay, RunState};
use crate::course::Stage;
pub use crate::units::{number, percent};
use exercise::{exercise_move, watching};
pub use vitals::{Mark, Vital, vitals};

/// A piece of a sentence.
#[derive(Clone, Debug, PartialEq)]
pub enum Piece {
    Text(String),
    /// The key that does this.
    Key(Action),
}

/// Builds a sentence: `{}` stands for the next key.
pub fn sentence(text: &str, keys: &[Action]) -> Vec<Piece> {
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
    if app.exercises.watching {
        return watching(app);
    }
    if app.recording.is_some() {
        return sentence(
            "A recording: {} pauses, {} goes one step on",
            &[Action::Pause, Action::ReplayStep],
        );
    }
    match &app.run.state {
        RunState::EngineGone { .. } => {
            return sentence(
                "The engine is gone; {} starts a new one",
                &[Action::Restart],
            );
        }
        RunState::Failed { .. } => {
            let keys = [
                Action::Restart,
                Action::Open(Overlay::Devices),
                Action::Close,
            ];
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
            "How much is still asked; {} goes back to it",
            &[Action::Lesson],
        ),
        Beat::Predict if !app.view.lesson_visible() => sentence(
            "Look at the panels, then {} to read and predict",
            &[Action::Lesson],
        ),
        Beat::Predict if app.study.estimate(stage).is_some() => {
            let keys = [
                Action::GuessShift(-1),
                Action::GuessShift(1),
                Action::GuessWiden(1),
                Action::GuessWiden(-1),
                Action::GuessKeep,
            ];
            sentence(
                "How much? {} {} move the range, {} {} size it, {} keeps it",
                &keys,
            )
        }
        Beat::Predict if !app.asked_here() => sentence(
            "{} reads on, {} back; the question stands on page 1",
            &[Action::TurnPage(1), Action::TurnPage(-1)],
        ),
        Beat::Predict => sentence(
            "Answer the question: {} to {}; {} reads on",
            &[Action::Answer(0), last_answer(app), Action::TurnPage(1)],
        ),
        Beat::Evidence => evidence_move(app, stage),
        Beat::Fix if app.view.lesson_visible() => sentence(
            "Read the cause; {} toggles the fix while it trains",
            &[Action::Toggle],
        ),
        Beat::Fix => sentence(
            "{} toggles the fix while it trains; {} reads the cause again",
            &[Action::Toggle, Action::Lesson],
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
            &[Action::Pair],
        ),
        Beat::Check => {
            let keys = [Action::Toggle, Action::Pair];
            sentence(
                "{} toggles back and forth; {} measures both in pairs",
                &keys,
            )
        }
        Beat::Debrief if !app.view.lesson_visible() => sentence(
            "{} opens the lesson to look back at your prediction",
            &[Action::Lesson],
        ),
        Beat::Debrief if app.study.question(stage).is_some() && app.asked_here() => sentence(
            "Answer the question: {} to {}; {} reads back",
            &[Action::Answer(0), last_answer(app), Action::TurnPage(-1)],
        ),
        Beat::Debrief if app.study.question(stage).is_some() => sentence(
            "{} reads on: your result, a look back, and questions at the end",
            &[Action::TurnPage(1)],
        ),
        Beat::Debrief if app.study.at + 1 < app.course.stages.len() => sentence(
            "Look back at your prediction; {} next stage, {} stages and exercises",
            &[Action::NextStage, Action::Open(Overlay::Stages)],
        ),
        Beat::Debrief => sentence(
            "The last stage is done; {} shows the whole course",
            &[Action::Open(Overlay::Stages)],
        ),
    }
}

/// The next move once the prediction stands: from one panel to the next.
fn evidence_move(app: &App, stage: &Stage) -> Vec<Piece> {
    match app.study.pointer {
        Some(at) if at + 1 == stage.evidence.len() => {
            sentence("{} tells the cause", &[Action::NextPointer])
        }
        Some(_) => sentence(
            "{} goes on to the next panel, {} back to the lesson",
            &[Action::NextPointer, Action::Close],
        ),
        None if app.view.lesson_visible() => sentence(
            "Now look for it: {} goes from panel to panel; the cause comes after",
            &[Action::NextPointer],
        ),
        None => sentence("{} shows where to look", &[Action::Lesson]),
    }
}

fn last_answer(app: &App) -> Action {
    let choices = app.question().map_or(0, |question| question.choices.len());
    Action::Answer(choices.saturating_sub(1))
}

/// The open yes-or-no question.
pub fn confirmation(confirm: Confirm, app: &App) -> Vec<Piece> {
    let keys = [Action::Yes, Action::No];
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
        Confirm::Reset if app.exercises.open.is_some() => {
            sentence("Forget this exercise and put its files back? {} {}", &keys)
        }
        Confirm::Reset => sentence("Forget this stage and put its files back? {} {}", &keys),
        Confirm::Leave { .. } => super::leave::question(app),
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
            &[Action::SwitchDevice],
        )),
        FirstLight::Failed { .. } => Some(sentence("CPU; the GPU could not be opened", &[])),
    }
}

#[cfg(test)]
mod tests {
    /// Marker of the line, and the widest name of a key it may hold.
    const MARKER: &str = " ? ";
    const KEY: &str = "right";

    #[test]
    fn every_line_fits_the_smallest_screen() {
        let source = [include_str!("guide.rs"), include_str!("guide/exercise.rs")].concat();
        let texts = source
            .split("sentence(")
            .filter_map(|it| it.split('"').nth(1));
        for text in texts {
            let line = format!("{MARKER} {}", text.replace("{}", KEY));
            assert!(line.chars().count() <= 78, "{line}");
        }
    }
}
