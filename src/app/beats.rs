//! Presenter mode: one beat after the other, by the two keys of a presenter's remote control. A beat shows one panel large, says
//! one or two sentences, and may toggle the fix. It also marks stages that were skipped.

use std::sync::Arc;

use super::mode::Presentation;
use super::pages::Page;
use super::study::Study;
use super::view::AfterSkip;
use super::{Action, App, Effect, Mode, Panel};
use crate::course::progress::State;
use crate::course::{Cue, CueDoes, Stage};
use crate::protocol::RunSpec;

/// The beats of a stage: its own, or the symptom, the pointers and the fix where it names none.
pub fn cues(stage: &Stage) -> Vec<Cue> {
    if !stage.cues.is_empty() {
        return stage.cues.clone();
    }
    let cue = |show, say: &str, does| Cue {
        show,
        say: say.to_owned(),
        does,
    };
    let mut all = vec![cue(Panel::Loss, &stage.symptom, CueDoes::Nothing)];
    all.push(cue(
        Panel::Lesson,
        &stage.prediction.prompt,
        CueDoes::Nothing,
    ));
    let pointers = stage.evidence.iter();
    all.extend(pointers.map(|it| cue(it.panel, &it.text, CueDoes::Nothing)));
    all.push(cue(Panel::Loss, &stage.fix, CueDoes::Toggle));
    all.push(cue(
        Panel::Throughput,
        "Both in turns, until the verdict is clear.",
        CueDoes::Pair,
    ));
    all
}

impl App {
    /// The beat that is shown, its number and how many there are.
    pub fn cue(&self) -> Option<(Cue, usize, usize)> {
        let at = self.mode.beat()?;
        let all = cues(self.stage()?);
        let cue = all.get(at)?.clone();
        Some((cue, at + 1, all.len()))
    }

    /// Presenter mode on, at the first beat of the stage, or off.
    pub(super) fn present(&mut self) -> Vec<Effect> {
        let (presentation, without) = match std::mem::take(&mut self.mode) {
            Mode::Stage => (None, Mode::Stage),
            Mode::Presenting(presentation) => (Some(presentation), Mode::Stage),
            Mode::Replay {
                recording,
                presentation,
            } => {
                let without = Mode::Replay {
                    recording,
                    presentation: None,
                };
                (presentation, without)
            }
            exercise @ (Mode::Exercise(_) | Mode::Watching { .. }) => {
                self.mode = exercise;
                return Vec::new();
            }
        };
        self.mode = without;
        if let Some(presentation) = presentation {
            return self.stop_presenting(*presentation.own);
        }
        let presentation = Presentation {
            beat: 0,
            own: Box::new(self.study.clone()),
        };
        match &mut self.mode {
            Mode::Replay {
                presentation: slot, ..
            } => *slot = Some(presentation),
            mode => *mode = Mode::Presenting(presentation),
        }
        self.show_beat(0)
    }

    /// The learner's own study comes back: what was shown to an audience is not the learner's progress.
    fn stop_presenting(&mut self, own: Study) -> Vec<Effect> {
        (self.view.expanded, self.view.lesson_open) = (false, false);
        let shown = std::mem::replace(&mut self.study, own).at;
        let fixed = |run: &RunSpec| run.variant != "broken";
        let moved = self.study.at != shown || self.run.wanted.as_ref().is_some_and(fixed);
        let mut effects = Vec::new();
        if moved && self.recording().is_none() {
            effects = self.enter(shown);
        }
        let text = "Presenter mode is off; your own progress is as it was";
        self.tell(text, false);
        effects
    }

    /// The next beat; after the last one, the next stage.
    pub(super) fn next_beat(&mut self) -> Vec<Effect> {
        let (Some(at), Some(stage)) = (self.mode.beat(), self.stage()) else {
            return Vec::new();
        };
        if at + 1 < cues(stage).len() {
            return self.show_beat(at + 1);
        }
        if self.study.at + 1 >= self.course.stages.len() {
            self.tell("This was the last beat of the last stage", false);
            return Vec::new();
        }
        let mut effects = self.act(Action::NextStage);
        effects.extend(self.show_beat(0));
        effects
    }

    /// The beat before; before the first one, the first of the stage before, whose run begins anew.
    pub(super) fn previous_beat(&mut self) -> Vec<Effect> {
        let Some(at) = self.mode.beat() else {
            return Vec::new();
        };
        if at > 0 {
            self.look_at(at - 1);
            return Vec::new();
        }
        if self.study.at == 0 {
            self.tell("This is the first beat", false);
            return Vec::new();
        }
        let effects = self.act(Action::PreviousStage);
        self.look_at(0);
        effects
    }

    /// Shows a beat and does what it says.
    fn show_beat(&mut self, at: usize) -> Vec<Effect> {
        let Some(does) = self.look_at(at) else {
            return Vec::new();
        };
        let mut effects = Vec::new();
        if matches!(does, CueDoes::Toggle | CueDoes::Pair) && self.recording().is_none() {
            // An audience that did not answer has skipped the question.
            self.with_stage(|app, stage| {
                if !app.study.predicted(stage) {
                    app.study.skip(stage);
                }
            });
            let then = match does {
                CueDoes::Pair => AfterSkip::Pair,
                _ => AfterSkip::Toggle,
            };
            effects.extend(self.after_skip(then));
            self.look_at(at);
        }
        if does == CueDoes::Hint {
            effects.extend(self.act(Action::Hint));
            self.look_at(at);
        }
        effects
    }

    /// Brings a beat's panel into view, large.
    pub(super) fn look_at(&mut self, at: usize) -> Option<CueDoes> {
        let cue = cues(self.stage()?).get(at)?.clone();
        let panel = cue.show;
        self.mode.set_beat(at);
        (self.view.focus, self.view.expanded) = (Some(panel), true);
        self.view.lesson_open = panel == Panel::Lesson;
        self.open_page(Page::Start);
        (self.view.overlay, self.view.confirm) = (None, None);
        Some(cue.does)
    }

    /// Marks the stages before this one that were not passed as skipped; that never counts as passed.
    pub(super) fn mark_skipped(&mut self, to: usize) -> Vec<Effect> {
        if self.recording().is_some() {
            return Vec::new();
        }
        let course = Arc::clone(&self.course);
        let mut effects = Vec::new();
        for stage in course.stages.iter().take(to) {
            let known = self.study.of_mut(stage);
            if known.state < State::Skipped {
                known.state = State::Skipped;
                effects.push(self.save(stage));
            }
        }
        effects
    }
}
