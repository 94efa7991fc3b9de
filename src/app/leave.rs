//! Leaving a stage for another one: asks for confirmation where something would be lost.

use super::{App, Confirm};
use crate::course::save_file::{Prediction, StageState};

/// What stays unfinished when the learner leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct UnfinishedWork {
    /// A prediction was made, or the fix tried, and the stage is not passed.
    pub stage: bool,
    /// A prediction was made; it is kept.
    pub prediction: bool,
    /// A question of the quiz is not answered.
    pub question: bool,
}

impl App {
    /// Goes to another stage; asks for confirmation where the present one is not finished.
    pub(super) fn leave_for(&mut self, to: usize) {
        if self.mode.mystery().is_some() {
            return self.leave_mystery(to);
        }
        let undone = self.undone();
        if to != self.lesson.study.at && (undone.stage || undone.question) {
            self.view.confirm = Some(Confirm::Leave { to });
        } else {
            self.go_to(to);
        }
    }

    pub(super) fn undone(&self) -> UnfinishedWork {
        let Some(stage) = self.stage() else {
            return UnfinishedWork::default();
        };
        // Nothing is lost in a recording, and a presenter is not asked between two stages.
        if !self.mode.is_live() || !self.keeps_progress() {
            return UnfinishedWork::default();
        }
        let known = self.lesson.study.of(stage);
        let prediction = matches!(known.prediction, Some(Prediction::Choice { .. }));
        let begun = prediction || self.lesson.study.tried(stage);
        let asked = self.lesson.study.question(stage);
        // A stage that was measured in an earlier session does not ask for its answers again.
        let here = self.lesson.study.report.is_some() || self.lesson.study.pair.is_some();
        UnfinishedWork {
            stage: begun && known.state != StageState::Passed,
            prediction,
            question: here && matches!(asked, Some((Some(_), _))),
        }
    }
}
