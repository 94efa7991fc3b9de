//! Leaving a stage for another: what would be lost is asked about first; where nothing is, the learner just goes.

use super::guide::{Piece, sentence};
use super::{Action, App, Confirm, Effect};
use crate::course::progress::{Prediction, State};

/// What stays undone when the learner goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Undone {
    /// A prediction was made, or the fix tried, and the stage is not passed.
    stage: bool,
    /// A prediction was made; it is kept.
    prediction: bool,
    /// A question of the debrief waits.
    question: bool,
}

impl App {
    /// Goes to another stage, and asks first where the one in progress is not done with.
    pub(super) fn leave_for(&mut self, to: usize) -> Vec<Effect> {
        let undone = self.undone();
        if to != self.study.at && (undone.stage || undone.question) {
            self.view.confirm = Some(Confirm::Leave { to });
            return Vec::new();
        }
        self.go_to(to)
    }

    fn undone(&self) -> Undone {
        let Some(stage) = self.stage() else {
            return Undone::default();
        };
        // A recording loses nothing, and a clicker's next beat asks nobody.
        if self.recording.is_some() || self.view.beat.is_some() {
            return Undone::default();
        }
        let known = self.study.of(stage);
        let prediction = matches!(known.prediction, Some(Prediction::Choice { .. }));
        let begun = prediction || self.study.tried(stage);
        let asked = self.study.question(stage);
        // On a visit to a stage of an earlier day, nobody waits for its answers.
        let here = self.study.report.is_some() || self.study.pair.is_some();
        Undone {
            stage: begun && known.state != State::Passed,
            prediction,
            question: here && matches!(asked, Some((Some(_), _))),
        }
    }
}

/// What is asked before the stage is left.
pub(super) fn question(app: &App) -> Vec<Piece> {
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
    sentence(text, &[Action::Yes, Action::No])
}
