//! Presenter mode: one beat after the other, by the two keys of a presenter's remote control. A beat shows one panel large, says
//! one or two sentences, and may toggle the fix. It also marks stages that were skipped.

use std::sync::Arc;

use super::fix::Fix;
use super::mode::Presentation;
use super::pages::Page;
use super::runs::solution;
use super::study::Study;
use super::view::AfterSkip;
use super::{Action, App, Mode, Panel};
use crate::course::progress::State;
use crate::course::{Cue, CueDoes, Stage};
use crate::protocol::{RunSpec, Slot};

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
    /// The beat on the screen; an open exercise stands in its place.
    pub fn beat(&self) -> Option<usize> {
        let presentation = self.presentation.as_ref();
        presentation
            .filter(|_| self.mode.exercise().is_none())
            .map(|it| it.beat)
    }

    /// Whether what happens now is the learner's own progress.
    pub fn keeps_progress(&self) -> bool {
        self.presentation.is_none() && !matches!(self.mode, Mode::Replay(_))
    }

    /// The beat that is shown, its number and how many there are.
    pub fn cue(&self) -> Option<(Cue, usize, usize)> {
        let at = self.beat()?;
        let all = cues(self.stage()?);
        let cue = all.get(at)?.clone();
        Some((cue, at + 1, all.len()))
    }

    /// Presenter mode on, at the first beat of the stage, or off.
    pub(super) fn present(&mut self) {
        if let Some(presentation) = self.presentation.take() {
            return self.stop_presenting(*presentation.own, *presentation.own_fix);
        }
        self.presentation = Some(Presentation {
            beat: 0,
            own: Box::new(self.study.clone()),
            own_fix: Box::new(self.fix.clone()),
        });
        self.with_stage(|app, stage| app.fix.take(solution(stage, app.preset), true));
        self.view.knobs = false;
        // A room compares its votes: choices stand as the course has them.
        self.study.progress.seed = None;
        self.show_beat(0)
    }

    /// The learner's own study comes back: what was shown to an audience is not the learner's progress.
    fn stop_presenting(&mut self, own: Study, fix: Fix) {
        (self.view.expanded, self.view.lesson_open) = (false, false);
        let shown = std::mem::replace(&mut self.study, own).at;
        self.fix = fix;
        let fixed = |run: &RunSpec| run.slot == Slot::B;
        let moved = self.study.at != shown || self.run.wanted.as_ref().is_some_and(fixed);
        if moved && self.recording().is_none() {
            self.enter(shown);
        }
        let text = "Presenter mode is off; your own progress is as it was";
        self.tell(text, false);
    }

    /// The next beat; after the last one, the next stage.
    pub(super) fn next_beat(&mut self) {
        let (Some(at), Some(stage)) = (self.beat(), self.stage()) else {
            return;
        };
        if at + 1 < cues(stage).len() {
            self.show_beat(at + 1);
        } else if self.study.at + 1 >= self.course.stages.len() {
            self.tell("This was the last beat of the last stage", false);
        } else {
            self.act(Action::NextStage);
            self.show_beat(0);
        }
    }

    /// The beat before; before the first one, the first of the stage before, whose run begins anew.
    pub(super) fn previous_beat(&mut self) {
        let Some(at) = self.beat() else {
            return;
        };
        if at > 0 {
            self.look_at(at - 1);
        } else if self.study.at == 0 {
            self.tell("This is the first beat", false);
        } else {
            self.act(Action::PreviousStage);
            self.look_at(0);
        }
    }

    /// Shows a beat and does what it says.
    fn show_beat(&mut self, at: usize) {
        let Some(does) = self.look_at(at) else {
            return;
        };
        if matches!(does, CueDoes::Toggle | CueDoes::Pair) && self.recording().is_none() {
            // An audience that did not answer has skipped the question.
            self.with_stage(|app, stage| app.study.skip(stage));
            let then = match does {
                CueDoes::Pair => AfterSkip::Pair,
                _ => AfterSkip::Toggle,
            };
            self.after_skip(then);
            self.look_at(at);
        }
        if does == CueDoes::Hint {
            self.act(Action::Hint);
            self.look_at(at);
        }
    }

    /// Shows the presentation's beat again, or its first one, if there is a presentation.
    pub(super) fn look_at_beat(&mut self, first: bool) {
        if let Some(beat) = self.beat() {
            self.look_at(if first { 0 } else { beat });
        }
    }

    /// Brings a beat's panel into view, large.
    fn look_at(&mut self, at: usize) -> Option<CueDoes> {
        let cue = cues(self.stage()?).get(at)?.clone();
        let panel = cue.show;
        if let Some(presentation) = &mut self.presentation {
            presentation.beat = at;
        }
        (self.view.focus, self.view.expanded) = (Some(panel), true);
        self.view.lesson_open = panel == Panel::Lesson;
        self.open_page(Page::Start);
        (self.view.overlay, self.view.confirm) = (None, None);
        Some(cue.does)
    }

    /// Marks the stages before this one that were not passed as skipped; that never counts as passed.
    pub(super) fn mark_skipped(&mut self, to: usize) {
        if self.recording().is_some() {
            return;
        }
        let course = Arc::clone(&self.course);
        for stage in course.stages.iter().take(to) {
            let known = self.study.of_mut(&stage.id);
            if known.state < State::Skipped {
                known.state = State::Skipped;
                self.save(&stage.id);
            }
        }
    }
}
