//! The measurements of a presentation's beats. When a later beat is shown, the measurements of a beat are kept if its run has made enough
//! steps. A beat that is shown again shows these kept measurements, not later ones. The screen reads them through `App::shown_bench`,
//! `App::shown_run` and `App::shown_pair`.

use super::Presenter;
use crate::app::beats::{BeatState, VoteState, beats};
use crate::app::bench::{Asked, Pending};
use crate::app::comparison::Comparison;
use crate::app::learner::LearnerState;
use crate::app::part::FollowUp;
use crate::app::{App, Bench, Lesson, Mode, RequestedRun, RunState};
use crate::course::Stage;
use crate::course::named::NamedConfig;
use protocol::story::StreamStory;
use protocol::{Command, Pair, Slot};

/// The measurements that a beat showed when the presenter left it.
#[derive(Clone, Debug)]
pub(in crate::app) struct KeptBeat {
    bench: Bench,
    /// The result of pairs; `None` in a beat before the one that measures pairs.
    pair: Option<Pair>,
}

impl Presenter {
    /// Returns the kept measurements of the beat on the screen. `None` while the beat is still measured.
    fn kept_beat(&self, lesson: &Lesson, mode: &Mode) -> Option<&KeptBeat> {
        let presentation = self.shown_presentation(mode)?;
        presentation
            .kept
            .get(&(lesson.learner.at, presentation.beat))
    }

    /// Returns A and B as the screen shows them.
    pub(in crate::app) fn shown<'a>(
        &'a self,
        bench: &'a Bench,
        lesson: &Lesson,
        mode: &Mode,
    ) -> &'a Bench {
        let kept = self.kept_beat(lesson, mode);
        kept.map_or(bench, |kept| &kept.bench)
    }

    /// Returns the runs that the last kept beat of a stage shows. Empty if none is kept.
    pub(in crate::app) fn story_of(&self, stage: usize) -> StreamStory {
        let presentation = self.presentation.as_ref();
        let last = presentation.and_then(|presentation| {
            presentation
                .kept
                .range((stage, 0)..=(stage, usize::MAX))
                .next_back()
        });
        match last {
            Some((_, kept)) => kept.bench.run.story.clone(),
            None => StreamStory::for_audience(),
        }
    }

    /// Forgets the kept measurements of the stages whose index `forgets` accepts.
    pub(in crate::app) fn forget_kept(&mut self, forgets: impl Fn(usize) -> bool) {
        if let Some(presentation) = &mut self.presentation {
            presentation.kept.retain(|(stage, _), _| !forgets(*stage));
        }
    }

    /// Marks the run as waiting for its beat, where it is resumed. A run that made no steps (`made_steps` is false) is not resumed.
    pub(in crate::app) fn mark_waiting(&mut self, made_steps: bool) {
        if let Some(presentation) = &mut self.presentation {
            presentation.waits |= made_steps;
        }
    }

    /// Keeps the measurements of the beats before `to`, the beat that is shown next, if enough was measured for them. All beats of the
    /// stage are kept if `to` is in another stage, or hides B again. If pairs begin at `to`, any number of steps is enough, because no run
    /// of the stage continues.
    pub(in crate::app) fn keep_beats_before(
        &mut self,
        to: BeatState,
        lesson: &Lesson,
        mode: &Mode,
        bench: &Bench,
    ) {
        if !mode.is_live() {
            return;
        }
        let Some((from, presentation)) = self.beat(lesson, mode).zip(self.presentation.as_mut())
        else {
            return;
        };
        let Some(stage) = lesson.course.stages.get(from.stage) else {
            return;
        };
        let stays = to.stage == from.stage;
        let hides_b =
            to.variant < from.variant && !presentation.kept.contains_key(&(to.stage, to.at));
        let end = if stays && !hides_b { to.at } else { from.of };
        let steps = if stays && to.pairs { 0 } else { stage.steps };
        let pair = bench.pairs_of_b();
        for beat in beats(from.stage, stage).into_iter().take(end) {
            let has_run = beat.pairs || bench.has_shown(beat, steps);
            if has_run && (pair.is_some() || !beat.paired) {
                let place = (beat.stage, beat.at);
                presentation.kept.entry(place).or_insert_with(|| KeptBeat {
                    bench: bench.at_beat(beat),
                    pair: if beat.paired { pair.clone() } else { None },
                });
            }
        }
    }

    /// Returns the follow-up that shows the run of a beat. The run in progress is resumed if it waited; a run that has made enough steps
    /// is shown again; any other run is started. `None` if the run goes on by itself, or has failed.
    fn show_run(&mut self, beat: BeatState, stage: &Stage, bench: &Bench) -> Option<FollowUp> {
        let presentation = self.presentation.as_mut();
        let waited = presentation.is_some_and(|shown| std::mem::take(&mut shown.waits));
        let run = bench.comparison.run_of(beat.variant);
        let pairing = bench.pairing();
        let is_wanted = bench.run.wanted.as_ref() == Some(&run) && !pairing;
        if is_wanted && bench.run.state.is_active() {
            return waited.then_some(FollowUp::Resume);
        }
        let steps = if pairing { 0 } else { stage.steps };
        if bench.has_shown(beat, steps) {
            return Some(FollowUp::Wait);
        }
        let failed = matches!(bench.run.state, RunState::Failed { .. });
        (!(is_wanted && failed)).then_some(FollowUp::Run(run))
    }
}

impl Bench {
    /// Puts a stage on the bench, with its solution as B.
    fn present(&mut self, stage: &Stage) {
        self.compare(Comparison::of_stage(stage, self.preset));
        let solution = NamedConfig::fixed(stage, self.preset).config;
        self.set_b(solution, true);
    }

    /// Returns true if the run of a beat need not be repeated, because it has made `steps` steps or has ended.
    fn has_shown(&self, beat: BeatState, steps: u64) -> bool {
        let run = self.comparison.run_of(beat.variant);
        let shown = self.run.slot(beat.variant);
        let has_ended = shown.finished.is_some() || shown.loss.not_finite.is_some();
        let has_steps = shown.last.as_ref().is_some_and(|step| step.step >= steps);
        shown.description.spec() == Some(run) && !shown.of_pairs && (has_ended || has_steps)
    }

    /// Returns the bench as a beat shows it. B is missing before the beat that shows it.
    fn at_beat(&self, beat: BeatState) -> Self {
        let mut story = self.run.story.clone();
        if beat.variant == Slot::A {
            story.show_b(|_| false);
        }
        Self {
            comparison: self.comparison.clone(),
            preset: self.preset,
            pending: Pending::default(),
            run: RequestedRun {
                state: RunState::Finished,
                story,
                active: beat.variant,
                wanted: Some(self.comparison.run_of(beat.variant)),
                ..RequestedRun::default()
            },
        }
    }

    /// Returns true if the pairs or the run of B in progress belong to a later beat than this one.
    fn shows_later(&self, beat: BeatState) -> bool {
        let wanted = self.run.wanted.as_ref();
        let b_runs = wanted.is_some_and(|run| run.slot == Slot::B) && self.run.state.is_active();
        b_runs && beat.variant == Slot::A || self.pairing() && !beat.paired
    }

    /// Lets the run wait while the screen shows older measurements. Pairs do not wait. Returns the command for the engine, and true if the
    /// run made steps.
    pub(in crate::app) fn wait(&mut self, now_ms: u64) -> (Option<Command>, bool) {
        if self.pairing() || self.run.state.is_paused() {
            return (None, false);
        }
        if matches!(self.pending.asked, Asked::Start { .. }) {
            return (Some(self.leave(now_ms)), false);
        }
        let moves = self.run.state.is_moving();
        (self.pause(), moves)
    }
}

impl LearnerState {
    /// Returns the learner state that an audience sees at a beat: without a learner's progress, and with nothing hidden after the vote.
    /// `presented` is the id and the beat of the stage at which the next presentation continues.
    fn at_beat(beat: BeatState, stage: &Stage, presented: Option<(String, usize)>) -> Self {
        let mut learner = Self::default();
        learner.progress.presented = presented;
        learner.enter(beat.stage, stage);
        learner.progress_mut(&stage.id).hints = beat.hints;
        learner.nothing_hidden = beat.vote == VoteState::Closed;
        learner
    }
}

impl App {
    /// Returns A and B as the screen shows them.
    pub fn shown_bench(&self) -> &Bench {
        self.presenter.shown(&self.bench, &self.lesson, &self.mode)
    }

    /// Returns the runs on the screen.
    pub fn shown_run(&self) -> &RequestedRun {
        &self.shown_bench().run
    }

    fn kept_beat(&self) -> Option<&KeptBeat> {
        self.presenter.kept_beat(&self.lesson, &self.mode)
    }

    /// Returns the result of pairs on the screen.
    pub fn shown_pair(&self) -> Option<&Pair> {
        match self.kept_beat() {
            Some(kept) => kept.pair.as_ref(),
            None => self.lesson.learner.pair.as_ref(),
        }
    }

    /// Returns true if the beat on the screen shows kept measurements instead of a run.
    pub fn shows_kept_beat(&self) -> bool {
        self.kept_beat().is_some()
    }

    /// Ends the run in progress. Later events about it are ignored.
    pub(in crate::app) fn leave_run(&mut self) {
        let command = self.bench.leave(self.clock.now_ms);
        self.send(command);
    }

    /// Brings the runs and the progress of the presentation to a beat of this stage.
    pub(in crate::app) fn measure_beat(&mut self, beat: BeatState, stage: &Stage) {
        let presented = self.lesson.learner.progress.presented.take();
        let pair = self.lesson.learner.pair.take();
        self.lesson.learner = LearnerState::at_beat(beat, stage, presented);
        if !self.mode.is_live() {
            // The recording continues at every beat.
            self.lesson.learner.pair = pair;
            if self.bench.run.slot(beat.variant).has_begun() {
                self.bench.run.active = beat.variant;
            }
            return;
        }
        self.bench.present(stage);
        if self.shows_kept_beat() {
            if self.bench.pairing() {
                self.lesson.learner.pair = pair;
            }
            self.carry_out(vec![FollowUp::Wait]);
            return;
        }
        if self.bench.shows_later(beat) {
            self.leave_run();
        }
        self.show_present_b();
        let measured = if beat.paired {
            self.bench.pairs_of_b()
        } else {
            None
        };
        if !beat.pairs {
            let follow = self.presenter.show_run(beat, stage, &self.bench);
            self.carry_out(follow.map(|follow| vec![follow]));
        } else if measured.is_none() && !self.bench.pairing() {
            self.pair();
        }
        self.bench.run.active = beat.variant;
        self.lesson.learner.pair = if self.bench.pairing() {
            pair.filter(|pair| !pair.done)
        } else {
            measured
        };
    }

    /// Forgets the measurements of the presented stage and repeats those of its beat.
    pub(in crate::app) fn measure_beat_again(&mut self) {
        let at = self.lesson.learner.at;
        self.presenter.forget_kept(|stage| stage == at);
        self.bench.run.story.forget();
        self.end_pairs();
        self.bench.run.wanted = None;
        self.lesson.learner.pair = None;
        self.show_beat_again();
    }
}
