//! Presenter mode: one beat after the other, by the keys of a presenter's remote control. A beat is a state, not an action: it
//! looks the same from whichever side it is reached, and what was measured is shown again, not measured again.
//!
//! A beat is a stage, variant, panel, page, hints, vote and pairs. `beats` folds it from `[[beat]]`, so that it depends on its place only;
//! `show_beat` brings screen, study and run there. What was measured for a beat is in `presenter.rs`.

use std::borrow::Cow;
use std::sync::Arc;

use super::pages::LessonPage;
use super::{Action, App, Effect, Overlay, Panel};
use crate::course::save_file::ProgressChange;
use crate::course::{Beat, BeatChange, Stage};
use protocol::Slot;

/// What the audience sees. It does not depend on what was shown before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BeatState {
    /// Index into the course's stages.
    pub stage: usize,
    /// Its place in the stage, from 0, and how many there are.
    pub at: usize,
    pub of: usize,
    /// A as it was found, or B, the solution.
    pub variant: Slot,
    /// Fills the screen.
    pub panel: Panel,
    /// Page of the lesson.
    pub page: LessonPage,
    /// Hints shown.
    pub hints: u32,
    pub vote: VoteState,
    /// A and B are measured in turns.
    pub pairs: bool,
    /// They are, or were at an earlier beat.
    pub paired: bool,
}

/// Where the vote on the stage's prediction stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum VoteState {
    /// Still to come.
    Ahead,
    /// The choices are on the screen.
    Open,
    /// Over, or the stage has none: everything may be shown.
    Closed,
}

/// The beats of a stage as its file has them, or the symptom, the pointers and the fix where it names none.
pub fn cues(stage: &Stage) -> Cow<'_, [Beat]> {
    if !stage.cues.is_empty() {
        return Cow::Borrowed(&stage.cues);
    }
    let cue = |show, say: &str, does| Beat {
        show,
        say: say.to_owned(),
        does,
        ..Beat::default()
    };
    let mut all = vec![cue(Panel::Loss, &stage.symptom, BeatChange::Nothing)];
    all.push(cue(
        Panel::Lesson,
        &stage.prediction.prompt,
        BeatChange::Vote,
    ));
    let pointers = stage.evidence.iter();
    all.extend(pointers.map(|it| cue(it.panel, &it.text, BeatChange::Nothing)));
    all.push(cue(Panel::Loss, &stage.fix, BeatChange::Toggle));
    let say = "Both run in turns until the verdict is clear.";
    all.push(cue(Panel::Throughput, say, BeatChange::Pair));
    Cow::Owned(all)
}

/// The beats of the stage at this place of the course: each holds what it adds and what those before it have added.
pub fn beats(at: usize, stage: &Stage) -> Vec<BeatState> {
    let cues = cues(stage);
    let asks = cues.iter().any(|cue| cue.does == BeatChange::Vote);
    let mut beat = BeatState {
        stage: at,
        at: 0,
        of: cues.len(),
        variant: Slot::A,
        panel: Panel::Loss,
        page: LessonPage::Start,
        hints: 0,
        vote: if asks {
            VoteState::Ahead
        } else {
            VoteState::Closed
        },
        pairs: false,
        paired: false,
    };
    let next = |(at, cue): (usize, &Beat)| {
        (beat.at, beat.panel) = (at, cue.show);
        beat.pairs = cue.does == BeatChange::Pair;
        beat.paired |= beat.pairs;
        beat.page = LessonPage::Start;
        if beat.vote == VoteState::Open {
            beat.vote = VoteState::Closed;
        }
        match cue.does {
            BeatChange::Vote => beat.vote = VoteState::Open,
            BeatChange::Hint => beat.hints += 1,
            BeatChange::Toggle | BeatChange::Pair => beat.variant = Slot::B,
            BeatChange::Nothing if beat.vote == VoteState::Closed => {
                beat.page = LessonPage::LookBack
            }
            BeatChange::Nothing => {}
        }
        beat
    };
    cues.iter().enumerate().map(next).collect()
}

impl App {
    /// The beat on the screen; an open exercise stands in its place.
    pub fn beat(&self) -> Option<BeatState> {
        self.presenter.beat(&self.lesson, &self.mode)
    }

    /// What that beat says and shows.
    pub fn cue(&self) -> Option<Beat> {
        cues(self.stage()?).get(self.beat()?.at).cloned()
    }

    /// Whether what happens now is the learner's own progress.
    pub fn keeps_progress(&self) -> bool {
        self.presenter.presentation.is_none() && !self.mode.is_replay()
    }

    /// Shows the presentation's beat again, if there is a presentation.
    pub(super) fn show_beat_again(&mut self) {
        if let Some(beat) = self.beat() {
            self.show_beat(beat.stage, beat.at);
        }
    }

    /// Brings the screen and the run into the state that a beat declares.
    pub(super) fn show_beat(&mut self, at: usize, beat: usize) {
        let course = Arc::clone(&self.lesson.course);
        let Some(stage) = course.stages.get(at) else {
            return;
        };
        // A course that was edited may have fewer beats.
        let all = beats(at, stage);
        let Some(beat) = all.get(beat).or(all.last()).copied() else {
            return;
        };
        self.presenter
            .keep_beats_before(beat, &self.lesson, &self.mode, &self.bench);
        if at != self.lesson.study.at {
            self.view.notice = None;
            if self.mode.is_live() {
                self.bench.run.story = self.presenter.story_of(at);
                self.leave_run();
            }
        }
        self.presenter.go_to(beat);
        self.lesson.study.progress.presented = Some((stage.id.clone(), beat.at));
        let presented = ProgressChange::Presented(stage.id.clone(), beat.at);
        self.effects.push(Effect::Save(presented));
        self.measure_beat(beat, stage);
        let view = &mut self.view;
        (view.focus, view.expanded, view.knobs) = (Some(beat.panel), true, false);
        view.lesson_open = beat.panel == Panel::Lesson;
        (view.overlay, view.confirm, view.third) = (None, None, None);
        view.to_top();
        view.lesson_page = LessonPage::Start;
        let page = self.lesson.opened(stage, beat.page);
        self.carry_out(page.map(|page| vec![page]));
    }

    /// Shows who comes late to a room what the class has done before.
    pub(super) fn catch_up(&mut self) {
        let in_room = self.class.is_some() && self.view.overlay.is_none();
        if in_room && self.has_card(Overlay::Skipped) {
            self.look(Action::Open(Overlay::Skipped));
        }
    }
}
