//! Presenter mode: one beat after the other, by the keys of a presenter's remote control. A beat is a state, not an action: it
//! looks the same from whichever side it is reached, and what was measured is shown again, not measured again.
//!
//! A beat is a stage, variant, panel, page, hints, vote and pairs. `beats` folds it from `[[beat]]`, so that it depends on its place only;
//! `show_beat` brings screen, study and run there. A run that showed as many steps as a check looks at is kept and shown again.

use std::borrow::Cow;
use std::sync::Arc;

use super::bench::Asked;
use super::comparison::Comparison;
use super::figures::figures;
use super::mode::{AudienceScreen, Presentation, StageRuns};
use super::pages::LessonPage;
use super::run::RunState;
use super::runs::solution;
use super::study::Study;
use super::{Action, App, Effect, Overlay, Panel};
use crate::course::placeholder::fill_known;
use crate::course::save_file::StageState;
use crate::course::{Beat, BeatChange, KernelFigure, Stage};
use protocol::story::RunStory;
use protocol::{RunSpec, Slot};

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
        large: String::new(),
        row: String::new(),
        figure: KernelFigure::default(),
        notes: String::new(),
        minutes: 0.0,
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
    };
    let next = |(at, cue): (usize, &Beat)| {
        (beat.at, beat.panel) = (at, cue.show);
        beat.pairs = cue.does == BeatChange::Pair;
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
        let presentation = self.presenter.presentation.as_ref();
        let at = presentation.filter(|_| !self.mode.is_exercise())?.beat;
        beats(self.lesson.study.at, self.stage()?).get(at).copied()
    }

    /// What that beat says and shows.
    pub fn cue(&self) -> Option<Beat> {
        cues(self.stage()?).get(self.beat()?.at).cloned()
    }

    /// Whether what happens now is the learner's own progress.
    pub fn keeps_progress(&self) -> bool {
        self.presenter.presentation.is_none() && !self.mode.is_replay()
    }

    /// Presenter mode on, at a beat of the stage, or off.
    pub(super) fn present(&mut self, beat: usize) {
        if let Some(presentation) = self.presenter.presentation.take() {
            return self.stop_presenting(*presentation.own, *presentation.own_comparison);
        }
        (self.view.notice, self.bench.pending.due_ms) = (None, None);
        self.presenter.presentation = Some(Presentation {
            beat,
            kept: Default::default(),
            audience_screen: AudienceScreen::Live,
            answered: Default::default(),
            own: Box::new(self.lesson.study.clone()),
            own_comparison: Box::new(self.bench.comparison.clone()),
        });
        self.with_stage(|app, stage| {
            app.bench
                .comparison
                .set_b(solution(stage, app.bench.preset), true)
        });
        self.show_beat(self.lesson.study.at, beat);
    }

    /// The learner's own study comes back: what was shown to an audience is not the learner's progress.
    fn stop_presenting(&mut self, own: Study, comparison: Comparison) {
        (self.view.expanded, self.view.lesson_open) = (false, false);
        self.presenter.frozen = None;
        let presented = self.lesson.study.progress.presented.take();
        let shown = std::mem::replace(&mut self.lesson.study, own).at;
        self.lesson.study.progress.presented = presented;
        self.bench.comparison = comparison;
        let moved = self.lesson.study.at != shown
            || self.bench.run.wanted.as_ref() != Some(&self.bench.comparison.run_a());
        if moved && self.mode.is_live() {
            self.enter(shown);
        }
        let text = "Presenter mode is off; your own progress is as it was";
        self.tell(text, false);
    }

    /// The next beat, or the one before; beyond the ends of a stage those of its neighbours follow.
    pub(super) fn beat_by(&mut self, by: isize) {
        let Some(beat) = self.beat() else {
            return;
        };
        // A notice about this beat is not shown below the next.
        self.view.notice = self.view.notice.take().filter(|it| it.warning);
        if let Some(at) = beat.at.checked_add_signed(by).filter(|at| *at < beat.of) {
            return self.show_beat(beat.stage, at);
        }
        let course = Arc::clone(&self.lesson.course);
        let to = beat.stage.checked_add_signed(by);
        match to.and_then(|to| Some((to, course.stages.get(to)?))) {
            Some((to, _)) if by > 0 => self.show_beat(to, 0),
            Some((to, stage)) => self.show_beat(to, cues(stage).len().saturating_sub(1)),
            None if by > 0 => self.tell("This was the last beat of the last stage", false),
            None => self.tell("This is the first beat", false),
        }
    }

    /// Presents from the first beat of the course, or from where the last presentation was.
    pub(super) fn present_from(&mut self, start: bool) {
        let (at, beat) = match start {
            true => (0, 0),
            false => self.presented().unwrap_or((self.lesson.study.at, 0)),
        };
        if self.presenter.presentation.is_none() {
            self.present(0);
        }
        self.show_beat(at, beat);
    }

    /// The place of the stage, and the beat, where the last presentation was.
    pub(super) fn presented(&self) -> Option<(usize, usize)> {
        let (id, beat) = self.lesson.study.progress.presented.as_ref()?;
        Some((self.place_of(id)?, *beat))
    }

    /// Counts the time for which a beat is shown.
    pub(super) fn count_beat(&mut self, ms: u64) {
        let at = self.lesson.study.at;
        if let Some(presentation) = &self.presenter.presentation {
            *self
                .presenter
                .beat_ms
                .entry((at, presentation.beat))
                .or_default() += ms;
        }
    }

    /// Empties or freezes what the audience sees, or shows it again.
    pub(super) fn cover_screen(&mut self, cover: AudienceScreen) {
        let now = match self.audience_screen() == cover {
            true => AudienceScreen::Live,
            false => cover,
        };
        self.presenter.frozen = None;
        self.presenter.frozen = (now == AudienceScreen::Frozen).then(|| Box::new(self.clone()));
        if let Some(presentation) = &mut self.presenter.presentation {
            presentation.audience_screen = now;
        }
    }

    /// Whether the audience sees what happens.
    pub fn audience_screen(&self) -> AudienceScreen {
        let there = self
            .presenter
            .presentation
            .as_ref()
            .filter(|_| self.beat().is_some());
        there.map_or(AudienceScreen::Live, |it| it.audience_screen)
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
        if at != self.lesson.study.at {
            self.change_stage(at, stage);
        }
        if let Some(presentation) = &mut self.presenter.presentation {
            presentation.beat = beat.at;
            if presentation.audience_screen == AudienceScreen::Blank {
                presentation.audience_screen = AudienceScreen::Live;
            }
        }
        self.lesson.study.progress.presented = Some((stage.id.clone(), beat.at));
        self.effects.push(Effect::SaveBeat {
            stage: stage.id.clone(),
            beat: beat.at,
        });
        self.lesson
            .study
            .present(stage, beat.hints, beat.vote == VoteState::Closed);
        let view = &mut self.view;
        (view.focus, view.expanded, view.knobs) = (Some(beat.panel), true, false);
        view.lesson_open = beat.panel == Panel::Lesson;
        (view.overlay, view.confirm, view.third) = (None, None, None);
        view.to_top();
        view.lesson_page = LessonPage::Start;
        self.open_page(beat.page);
        if !self.mode.is_live() {
            if self.bench.run.slot(beat.variant).has_begun() {
                self.bench.run.active = beat.variant;
            }
            return;
        }
        self.bench
            .comparison
            .set_b(solution(stage, self.bench.preset), true);
        match beat.pairs {
            true => self.show_pairs(),
            false => self.show_run(beat.variant, stage),
        }
    }

    /// Puts away what the stage has measured, and takes out what the other one has.
    fn change_stage(&mut self, at: usize, stage: &Stage) {
        let before = self.lesson.study.at;
        let pair = self.lesson.study.pair.take().filter(|pair| pair.done);
        self.lesson.study.enter(at, stage);
        self.view.notice = None;
        if !self.mode.is_live() {
            return;
        }
        let Some(presentation) = &mut self.presenter.presentation else {
            return;
        };
        let story = std::mem::take(&mut self.bench.run.story);
        presentation.kept.insert(before, StageRuns { story, pair });
        if let Some(kept) = presentation.kept.remove(&at) {
            (self.bench.run.story, self.lesson.study.pair) = (kept.story, kept.pair);
        }
        self.bench.comparison = Comparison::of_stage(stage, self.bench.preset);
        self.leave_run();
    }

    /// Ends the run in progress.
    fn leave_run(&mut self) {
        let command = self.bench.leave(self.clock.now_ms);
        self.send(command);
    }

    /// Shows the run of A or B: the one in progress, an earlier one, or else a new one.
    fn show_run(&mut self, slot: Slot, stage: &Stage) {
        let run = self.bench.comparison.run_of(slot);
        let wanted = self.bench.run.wanted.as_ref() == Some(&run) && !self.bench.pairing();
        if wanted && self.bench.run.state.is_active() {
            // It was paused while the other side was shown.
            if self.bench.run.active != slot && self.bench.run.state.is_paused() {
                self.pause();
            }
            self.bench.run.active = slot;
        } else if has_shown(self.bench.run.slot(slot), &run, stage) || self.pairs_keep(slot, &run) {
            self.bench.run.active = slot;
            if matches!(self.bench.pending.asked, Asked::Start { .. }) {
                self.leave_run();
            } else if !self.bench.run.state.is_paused() {
                self.pause();
            }
        } else if !(wanted && matches!(self.bench.run.state, RunState::Failed { .. })) {
            self.start(run);
        }
    }

    /// Whether pairs go on behind this run: what it has shown stays as it is until their verdict.
    fn pairs_keep(&self, slot: Slot, run: &RunSpec) -> bool {
        let shown = self.bench.run.slot(slot);
        let same = shown.description.spec().as_ref() == Some(run);
        self.bench.pairing() && same && shown.last.is_some() && !shown.of_pairs
    }

    /// Shows the pairs: those that were measured, or else new ones.
    fn show_pairs(&mut self) {
        let measured = self
            .lesson
            .study
            .pair
            .as_ref()
            .is_some_and(|pair| pair.done);
        if !measured && !self.bench.pairing() {
            self.pair();
        }
        self.bench.run.active = Slot::B;
    }

    /// Forgets what the stage of a presentation has measured, and shows its beat anew.
    pub(super) fn measure_beat_again(&mut self) {
        self.bench.run.story.forget();
        self.end_pairs();
        (self.bench.run.wanted, self.lesson.study.pair) = (None, None);
        self.show_beat_again();
    }

    /// Does what concerns an audience before anything else; false where an action means something else. Before the vote nothing
    /// shows B: it is the solution.
    pub(super) fn act_in_presentation(&mut self, action: Action) -> bool {
        if action == Action::Solution && self.view.overlay == Some(Overlay::Skipped) {
            (self.view.fault_shown, self.view.overlay_scroll) = (true, 0);
            return true;
        }
        let Some(beat) = self.beat() else {
            return false;
        };
        match action {
            Action::GoToBeat { stage, beat } => {
                if let Some(at) = self.place_of_number(stage) {
                    self.show_beat(at, beat);
                }
            }
            Action::EndPresentation => self.present(0),
            Action::ShowAnswer if beat.vote == VoteState::Open => self.show_answer(beat.stage),
            Action::Knobs | Action::Toggle | Action::Pair | Action::Solution
                if beat.vote != VoteState::Closed =>
            {
                self.tell("B is the solution: it is shown after the vote", false);
            }
            _ => return false,
        }
        true
    }

    /// Marks the right choice at the beat of the vote, or no longer. With a room its vote has to be closed.
    fn show_answer(&mut self, stage: usize) {
        if self.tally().is_some_and(|it| it.open) {
            return self.tell(
                "The vote is open: V closes it, then the answer can be shown",
                false,
            );
        }
        let Some(presentation) = &mut self.presenter.presentation else {
            return;
        };
        if !presentation.answered.remove(&stage) {
            presentation.answered.insert(stage);
            self.order_answer();
        }
    }

    /// Whether the right choice of the stage that is presented is marked.
    pub fn answer_shown(&self) -> bool {
        let presentation = self.presenter.presentation.as_ref();
        presentation.is_some_and(|it| it.answered.contains(&self.lesson.study.at))
    }

    /// Why the right choice is right, as far as its figures are known.
    pub fn reason_of_answer(&self) -> Option<String> {
        let now = figures(self)?;
        Some(fill_known(&self.stage()?.prediction.explanation, &now))
    }

    /// Stages before this one that were jumped over, by their place.
    pub fn skipped_stages(&self) -> Vec<usize> {
        let stages = self
            .lesson
            .course
            .stages
            .iter()
            .take(self.lesson.study.at)
            .enumerate();
        let skipped = |stage| self.lesson.study.of(stage).state == StageState::Skipped;
        stages
            .filter(|(_, stage)| skipped(stage))
            .map(|(at, _)| at)
            .collect()
    }

    /// Shows who comes late to a room what the class has done before.
    pub(super) fn catch_up(&mut self) {
        let in_room = self.class.is_some() && self.presenter.presentation.is_none();
        if in_room && self.view.overlay.is_none() && !self.skipped_stages().is_empty() {
            self.look(Action::Open(Overlay::Skipped));
        }
    }

    /// Marks the stages before this one that were not passed as skipped, and tells whether there were any; that never counts as
    /// passed.
    pub(super) fn mark_skipped(&mut self, to: usize) -> bool {
        if !self.mode.is_live() {
            return false;
        }
        let course = Arc::clone(&self.lesson.course);
        let mut any = false;
        for stage in course.stages.iter().take(to) {
            let known = self.lesson.study.of_mut(&stage.id);
            if known.state < StageState::Skipped {
                known.state = StageState::Skipped;
                self.save(&stage.id);
                any = true;
            }
        }
        any
    }
}

/// Whether a run has shown enough of itself not to be made again: as many steps as a check looks at, or its end.
fn has_shown(shown: &RunStory, run: &RunSpec, stage: &Stage) -> bool {
    let same = shown.description.spec().as_ref() == Some(run) && !shown.of_pairs;
    let steps = shown.last.as_ref().map_or(0, |step| step.step);
    same && (steps >= stage.steps || shown.finished.is_some() || shown.loss.not_finite.is_some())
}
