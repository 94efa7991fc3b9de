//! Presenter mode shows one beat after the other; the keys of a presenter's remote control step through them. A beat is a state, not
//! an action: it looks alike whether it is reached from the next beat or from the one before, and its measurements are not repeated.
//!
//! A beat consists of stage, variant, panel, page, hints, vote and pairs. `beats` derives all of them from the `[[beat]]` tables of the
//! stage's file, so that a beat depends only on its place. `show_beat` brings the screen, the learner state and the run into that state.
//! `presenter/measured.rs` keeps the measurements of each beat.

use std::borrow::Cow;
use std::sync::Arc;

use super::pages::LessonPage;
use super::{Action, App, Effect, Overlay, Panel};
use crate::course::save_file::ProgressChange;
use crate::course::{Beat, BeatChange, Stage};
use protocol::Slot;

/// The state that the audience sees at one beat. It does not depend on the beats shown before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BeatState {
    /// The index of the stage in the course.
    pub stage: usize,
    /// The place of the beat in its stage, from 0.
    pub at: usize,
    /// The number of beats in the stage.
    pub of: usize,
    /// A is the stage as it was found; B is the solution.
    pub variant: Slot,
    /// The panel that fills the screen.
    pub panel: Panel,
    /// The page of the lesson.
    pub page: LessonPage,
    /// The number of hints shown.
    pub hints: u32,
    pub vote: VoteState,
    /// A and B are measured in turns at this beat.
    pub pairs: bool,
    /// A and B are measured in turns at this beat, or were at an earlier beat of the stage.
    pub paired: bool,
}

/// The state of the vote on the stage's prediction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum VoteState {
    /// The vote comes at a later beat.
    Ahead,
    /// The choices are on the screen.
    Open,
    /// The vote is over, or the stage has none, so that everything may be shown.
    Closed,
}

/// Returns the beats from the stage's file. A stage that names none gets beats for its symptom, prediction, evidence and fix.
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
    let question = &stage.prediction.prompt;
    let mut all = vec![
        cue(Panel::Loss, &stage.symptom, BeatChange::Nothing),
        cue(Panel::Lesson, question, BeatChange::Vote),
    ];
    for pointer in &stage.evidence {
        all.push(cue(pointer.panel, &pointer.text, BeatChange::Nothing));
    }
    all.push(cue(Panel::Loss, &stage.fix, BeatChange::Toggle));
    let say = "Both run in turns until the verdict is clear.";
    all.push(cue(Panel::Throughput, say, BeatChange::Pair));
    Cow::Owned(all)
}

/// Returns the beats of the stage at index `at` of the course. Each beat keeps the changes of the beats before it.
pub fn beats(at: usize, stage: &Stage) -> Vec<BeatState> {
    let cues = cues(stage);
    let has_vote = cues.iter().any(|cue| cue.does == BeatChange::Vote);
    let mut beat = BeatState {
        stage: at,
        at: 0,
        of: cues.len(),
        variant: Slot::A,
        panel: Panel::Loss,
        page: LessonPage::Start,
        hints: 0,
        vote: if has_vote {
            VoteState::Ahead
        } else {
            VoteState::Closed
        },
        pairs: false,
        paired: false,
    };
    let mut all = Vec::new();
    for (at, cue) in cues.iter().enumerate() {
        beat.at = at;
        beat.panel = cue.show;
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
                beat.page = LessonPage::LookBack;
            }
            BeatChange::Nothing => {}
        }
        all.push(beat);
    }
    all
}

impl App {
    /// Returns the beat on the screen. `None` without a presentation and while an exercise is open.
    pub fn beat(&self) -> Option<BeatState> {
        self.presenter.beat(&self.lesson, &self.mode)
    }

    /// Returns what the stage's file says about the beat on the screen.
    pub fn cue(&self) -> Option<Beat> {
        cues(self.stage()?).get(self.beat()?.at).cloned()
    }

    /// Returns true if the learner's progress is saved now: outside presentations and replays.
    pub fn keeps_progress(&self) -> bool {
        self.presenter.presentation.is_none() && !self.mode.is_replay()
    }

    /// Shows the present beat of a presentation again. Does nothing without a presentation.
    pub(super) fn show_beat_again(&mut self) {
        if let Some(beat) = self.beat() {
            self.show_beat(beat.stage, beat.at);
        }
    }

    /// Brings the screen and the run into the state of a beat. `at` is the index of its stage, `beat` its place in the stage.
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
        if at != self.lesson.learner.at {
            self.view.notice = None;
            if self.mode.is_live() {
                self.bench.run.story = self.presenter.story_of(at);
                self.leave_run();
            }
        }
        self.presenter.go_to(beat);
        self.lesson.learner.progress.presented = Some((stage.id.clone(), beat.at));
        let presented = ProgressChange::Presented(stage.id.clone(), beat.at);
        self.effects.push(Effect::Save(presented));
        self.measure_beat(beat, stage);
        let view = &mut self.view;
        view.focus = Some(beat.panel);
        view.expanded = true;
        view.knobs = false;
        view.lesson_open = beat.panel == Panel::Lesson;
        view.overlay = None;
        view.confirm = None;
        view.third = None;
        view.to_top();
        view.lesson_page = LessonPage::Start;
        let page = self.lesson.opened(stage, beat.page);
        self.carry_out(page.map(|page| vec![page]));
    }

    /// Shows a learner who joins a class late what the skipped stages were about.
    pub(super) fn catch_up(&mut self) {
        let is_free = self.class.is_some() && self.view.overlay.is_none();
        if is_free && self.has_card(Overlay::Skipped) {
            self.act_on_view(Action::Open(Overlay::Skipped));
        }
    }
}
