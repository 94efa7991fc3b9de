//! Presentations: stages shown to an audience beat by beat, and the measurements of each beat.
//!
//! A presentation has its own runs and progress, which begin empty. The learner's own are stored unchanged until it ends. When a later
//! beat is shown, the measurements of a beat are kept if its run has made enough steps. A beat that is shown again shows these kept
//! measurements, not later ones. The screen reads them through `App::shown_bench`, `App::shown_run` and `App::shown_pair`.

use std::collections::{BTreeMap, BTreeSet};

use super::beats::{BeatState, VoteState, beats, cues};
use super::bench::{Asked, Pending};
use super::comparison::Comparison;
use super::learner::LearnerState;
use super::part::{FollowUp, FollowUps, Place};
use super::run::RunState;
use super::view::View;
use super::{Action, App, Bench, Lesson, Mode, RequestedRun};
use crate::course::Stage;
use crate::course::named::NamedConfig;
use protocol::config::RunConfig;
use protocol::story::StreamStory;
use protocol::{Command, Pair, Slot};

/// The presentation on the screen, and the times of all presentations of this session.
#[derive(Clone, Debug, Default)]
pub struct Presenter {
    pub presentation: Option<Box<Presentation>>,
    /// The time for which each beat was shown in this session, in milliseconds, by stage and place.
    pub beat_ms: BTreeMap<(usize, usize), u64>,
}

/// A presentation.
#[derive(Clone, Debug, Default)]
pub struct Presentation {
    /// The index of the beat in its stage.
    pub beat: usize,
    pub audience_screen: AudienceScreen,
    /// The stages whose right choice is marked at the beat of the vote.
    pub answered: BTreeSet<usize>,
    /// The kept measurements, by stage and place of the beat.
    pub(super) kept: BTreeMap<(usize, usize), KeptBeat>,
    /// The run is paused because a kept beat is on the screen. It continues at its own beat.
    waits: bool,
    set_aside: SetAside,
    /// The content of the learner's file if it was saved meanwhile. It becomes B when the presentation ends.
    pub(super) saved: Option<Result<Box<RunConfig>, String>>,
}

/// The measurements that a beat showed when the presenter left it.
#[derive(Clone, Debug)]
pub(super) struct KeptBeat {
    bench: Bench,
    pair: Option<Pair>,
}

/// The learner's own state, stored while a presentation is shown.
#[derive(Clone, Debug, Default)]
struct SetAside {
    learner: LearnerState,
    /// The learner's bench. `None` while a recording is presented, because its bench stays on the screen.
    bench: Option<Bench>,
    view: View,
    /// The device on which the learner's figures were measured.
    device: String,
}

/// The state of the audience's screen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase", const_into_str)]
pub enum AudienceScreen {
    #[default]
    #[strum(serialize = "")]
    Live,
    /// The screen is empty.
    Blank,
    /// The screen shows an old frame, which the terminal keeps.
    Frozen,
}

impl Presenter {
    /// Carries out an action of the presenter. `None` for any other action.
    pub(super) fn update(
        &mut self,
        action: Action,
        lesson: &Lesson,
        mode: &Mode,
    ) -> Option<FollowUps> {
        let here = lesson.learner.at;
        let place = match action {
            Action::Present if self.presentation.is_some() => Place::Own,
            Action::EndPresentation => Place::Own,
            Action::Present => Place::Presentation(here, 0),
            Action::PresentFrom(true) => Place::Presentation(0, 0),
            Action::PresentFrom(false) => {
                let (at, beat) = lesson.presented().unwrap_or((here, 0));
                match self.presentation {
                    Some(_) => Place::Beat(at, beat),
                    None => Place::Presentation(at, beat),
                }
            }
            Action::NextBeat | Action::PreviousBeat => {
                let by = if action == Action::NextBeat { 1 } else { -1 };
                let (at, beat) = self.beat_after(by, lesson, mode)?;
                // A notice about this beat would be out of place at the next one.
                return Some(vec![
                    FollowUp::Untell { warnings: false },
                    FollowUp::Go(Place::Beat(at, beat)),
                ]);
            }
            Action::GoToBeat { stage, beat } => Place::Beat(lesson.place_of_number(stage)?, beat),
            Action::BlankScreen => return self.cover_screen(AudienceScreen::Blank),
            Action::FreezeScreen => return self.cover_screen(AudienceScreen::Frozen),
            Action::ShowAnswer => {
                let answered = &mut self.presentation.as_mut()?.answered;
                if answered.remove(&here) {
                    return Some(Vec::new());
                }
                answered.insert(here);
                return Some(vec![FollowUp::OrderAnswer]);
            }
            _ => return None,
        };
        Some(vec![FollowUp::Go(place)])
    }

    /// Covers the audience's screen, or shows it live again if it is covered in this way.
    fn cover_screen(&mut self, cover: AudienceScreen) -> Option<FollowUps> {
        let screen = &mut self.presentation.as_mut()?.audience_screen;
        let covered = *screen == cover;
        *screen = if covered { AudienceScreen::Live } else { cover };
        Some(Vec::new())
    }

    /// Returns the state of the audience's screen. It is live if no `beat` is shown.
    pub fn audience_screen(&self, beat: Option<BeatState>) -> AudienceScreen {
        match &self.presentation {
            Some(presentation) if beat.is_some() => presentation.audience_screen,
            _ => AudienceScreen::Live,
        }
    }

    /// Returns the presentation if its beats are on the screen. `None` while an exercise is open.
    fn shown_presentation(&self, mode: &Mode) -> Option<&Presentation> {
        if mode.is_exercise() {
            return None;
        }
        self.presentation.as_deref()
    }

    /// Returns the beat on the screen. `None` without a presentation and while an exercise is open.
    pub(super) fn beat(&self, lesson: &Lesson, mode: &Mode) -> Option<BeatState> {
        let presentation = self.shown_presentation(mode)?;
        let all = beats(lesson.learner.at, lesson.stage(mode)?);
        all.get(presentation.beat).copied()
    }

    /// Returns the stage and place of the next beat, or of the one before. Past an end of a stage, continues in its neighbour. `None` past
    /// either end of the course.
    pub(super) fn beat_after(
        &self,
        by: isize,
        lesson: &Lesson,
        mode: &Mode,
    ) -> Option<(usize, usize)> {
        let beat = self.beat(lesson, mode)?;
        if let Some(at) = beat.at.checked_add_signed(by).filter(|at| *at < beat.of) {
            return Some((beat.stage, at));
        }
        let stage = beat.stage.checked_add_signed(by)?;
        let count = cues(lesson.course.stages.get(stage)?).len();
        let at = if by > 0 { 0 } else { count.saturating_sub(1) };
        Some((stage, at))
    }

    /// Notes that this beat is shown now. An empty audience's screen becomes live.
    pub(super) fn go_to(&mut self, beat: BeatState) {
        if let Some(presentation) = &mut self.presentation {
            presentation.beat = beat.at;
            if presentation.audience_screen == AudienceScreen::Blank {
                presentation.audience_screen = AudienceScreen::Live;
            }
        }
    }

    /// Returns the learner's own state. This is `learner`, unless a presentation has replaced it.
    pub(super) fn own_learner<'a>(&'a self, learner: &'a LearnerState) -> &'a LearnerState {
        match &self.presentation {
            Some(presentation) => &presentation.set_aside.learner,
            None => learner,
        }
    }

    /// Returns true if the right choice of the stage at this index is marked.
    pub fn answer_shown(&self, at: usize) -> bool {
        let presentation = self.presentation.as_ref();
        presentation.is_some_and(|presentation| presentation.answered.contains(&at))
    }

    /// Returns the kept measurements of the beat on the screen. `None` while the beat is still measured.
    fn kept_beat(&self, lesson: &Lesson, mode: &Mode) -> Option<&KeptBeat> {
        let presentation = self.shown_presentation(mode)?;
        presentation
            .kept
            .get(&(lesson.learner.at, presentation.beat))
    }

    /// Returns A and B as the screen shows them.
    pub(super) fn shown<'a>(&'a self, bench: &'a Bench, lesson: &Lesson, mode: &Mode) -> &'a Bench {
        let kept = self.kept_beat(lesson, mode);
        kept.map_or(bench, |kept| &kept.bench)
    }

    /// Returns the runs that the last kept beat of a stage shows. Empty if none is kept.
    pub(super) fn story_of(&self, stage: usize) -> StreamStory {
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

    /// Notes that the run waits for its beat. `moved` is true if it made steps, so that it has to be resumed there.
    pub(super) fn note_wait(&mut self, moved: bool) {
        if let Some(presentation) = &mut self.presentation {
            presentation.waits |= moved;
        }
    }

    /// Keeps the measurements of the beats before `to`, as far as enough was measured for them. All beats of the stage are kept if `to` is in
    /// another stage, or hides B again. If pairs begin at `to`, any number of steps is enough, because no run of the stage continues.
    pub(super) fn keep_beats_before(
        &mut self,
        to: BeatState,
        lesson: &Lesson,
        mode: &Mode,
        bench: &Bench,
    ) {
        let from = self.beat(lesson, mode);
        let (true, Some(from), Some(presentation)) = (mode.is_live(), from, &mut self.presentation)
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

    /// Shows the run of a beat: the one in progress, an earlier one, or else a new one.
    fn show_run(&mut self, beat: BeatState, stage: &Stage, bench: &Bench) -> Option<FollowUp> {
        let run = bench.comparison.run_of(beat.variant);
        let waits = match &mut self.presentation {
            Some(presentation) => std::mem::take(&mut presentation.waits),
            None => false,
        };
        let pairing = bench.pairing();
        let wanted = bench.run.wanted.as_ref() == Some(&run) && !pairing;
        let steps = if pairing { 0 } else { stage.steps };
        if wanted && bench.run.state.is_active() {
            return waits.then_some(FollowUp::Resume);
        }
        if bench.has_shown(beat, steps) {
            return Some(FollowUp::Wait);
        }
        let failed = matches!(bench.run.state, RunState::Failed { .. });
        (!(wanted && failed)).then_some(FollowUp::Run(run))
    }

    /// Adds to the time for which the present beat, in the stage at index `at`, was shown.
    pub(super) fn count_beat(&mut self, at: usize, ms: u64) {
        if let Some(presentation) = &self.presentation {
            *self.beat_ms.entry((at, presentation.beat)).or_default() += ms;
        }
    }
}

impl Bench {
    /// Puts a stage on the bench, with its solution as B.
    fn present(&mut self, stage: &Stage) {
        self.compare(Comparison::of_stage(stage, self.preset));
        let solution = NamedConfig::fixed(stage, self.preset).config;
        self.set_b(solution, true);
    }

    /// Returns the bench of a new presentation, without measurements.
    fn emptied(&self) -> Self {
        let mut empty = Self {
            preset: self.preset,
            ..Self::default()
        };
        empty.run.story = StreamStory::for_audience();
        // Both benches talk to one engine, so the numbers of requests continue.
        empty.pending.request = self.pending.request;
        empty
    }

    /// Returns true if the run of a beat need not be repeated, because it has made `steps` steps or has ended.
    fn has_shown(&self, beat: BeatState, steps: u64) -> bool {
        let run = self.comparison.run_of(beat.variant);
        let shown = self.run.slot(beat.variant);
        let ended = shown.finished.is_some() || shown.loss.not_finite.is_some();
        let last = shown.last.as_ref();
        shown.description.spec().is_some_and(|spec| spec == run)
            && !shown.of_pairs
            && (ended || last.is_some_and(|step| step.step >= steps))
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
        let of_b = wanted.is_some_and(|run| run.slot == Slot::B) && self.run.state.is_active();
        of_b && beat.variant == Slot::A || self.pairing() && !beat.paired
    }

    /// Lets the run wait while the screen shows older measurements. Pairs do not wait. Returns the command for the engine, and true if the
    /// run made steps.
    pub(super) fn wait(&mut self, now_ms: u64) -> (Option<Command>, bool) {
        if self.pairing() || self.run.state.is_paused() {
            return (None, false);
        }
        if matches!(self.pending.asked, Asked::Start { .. }) {
            return (Some(self.leave(now_ms)), false);
        }
        let moves = self.run.state.is_moving();
        (self.pause(), moves)
    }

    /// Ends the run, because the engine does something else. Events until the next start belong to another run.
    fn stopped(mut self) -> Self {
        let state = &mut self.run.state;
        if state.is_active() || state.broke_off() {
            *state = RunState::Finished;
        }
        self.pending.asked = Asked::Leave;
        self
    }
}

impl LearnerState {
    /// Returns the learner state that an audience sees at a beat: without a learner's progress, and with nothing hidden after the vote.
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

    /// Begins a presentation without measurements at a beat of the stage at index `at`. Stores the learner's runs, progress and view,
    /// unless an earlier presentation has stored them.
    pub(super) fn begin_presentation(&mut self, at: usize, beat: usize) {
        if at >= self.lesson.course.stages.len() {
            return;
        }
        self.view.notice = None;
        let live = self.mode.is_live();
        if live {
            self.end_pairs();
            self.renew_engine();
        }
        let empty = self.bench.emptied();
        let bench = live.then(|| std::mem::replace(&mut self.bench, empty));
        let learner = std::mem::take(&mut self.lesson.learner);
        self.lesson.learner.at = at;
        if !live {
            self.lesson.learner.pair = learner.pair.clone();
        }
        self.lesson.learner.progress.presented = learner.progress.presented.clone();
        let set_aside = match self.presenter.presentation.take() {
            Some(before) => before.set_aside,
            None => SetAside {
                learner,
                bench: bench.map(Bench::stopped),
                view: self.view.clone(),
                device: self.devices.using.clone(),
            },
        };
        self.presenter.presentation = Some(Box::new(Presentation {
            beat,
            set_aside,
            ..Presentation::default()
        }));
        self.show_beat(at, beat);
    }

    /// Ends the presentation, if there is one, and brings the learner's runs, progress and view back.
    pub(super) fn end_presentation(&mut self) {
        let Some(presentation) = self.presenter.presentation.take() else {
            return;
        };
        let set_aside = presentation.set_aside;
        let view = std::mem::replace(&mut self.view, set_aside.view);
        // The size and the look of the terminal may have changed during the presentation.
        self.view.size = view.size;
        self.view.theme = view.theme;
        self.view.markers = view.markers;
        self.view.revision = view.revision;
        self.view.unsaved = view.unsaved;
        let shown = std::mem::replace(&mut self.lesson.learner, set_aside.learner);
        self.lesson.learner.progress.presented = shown.progress.presented;
        let Some(bench) = set_aside.bench else {
            self.lesson.learner.pair = shown.pair;
            return;
        };
        let before = std::mem::replace(&mut self.bench, bench);
        self.bench.pending.request = before.pending.request;
        if before.run.state.broke_off() {
            self.bench.run.state = before.run.state;
        } else if before.run.state.is_active() {
            self.send(Command::Stop);
        }
        if set_aside.device != self.devices.using {
            self.bench.run.story.forget();
            self.lesson.learner.pair = None;
        }
        if let Some(config) = presentation.saved {
            let follows = self.bench.take_saved_file(config);
            self.carry_out(follows);
        }
    }

    /// Ends the presentation at the learner's request. Starts the learner's own run if it had not begun before.
    pub(super) fn stop_presenting(&mut self) {
        self.end_presentation();
        if self.mode.is_live() && !self.bench.run.shown().has_begun() {
            match self.bench.run.wanted.clone() {
                Some(run) => self.start(run),
                None => self.enter(self.lesson.learner.at),
            }
        }
        let text = "Presenter mode is off; your own progress is as it was";
        self.tell(text, false);
    }

    /// Ends the run in progress. Later events about it are ignored.
    pub(super) fn leave_run(&mut self) {
        let command = self.bench.leave(self.clock.now_ms);
        self.send(command);
    }

    /// Brings the runs and the progress of the presentation to a beat of this stage.
    pub(super) fn measure_beat(&mut self, beat: BeatState, stage: &Stage) {
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
    pub(super) fn measure_beat_again(&mut self) {
        let at = self.lesson.learner.at;
        if let Some(presentation) = &mut self.presenter.presentation {
            presentation.kept.retain(|(stage, _), _| *stage != at);
        }
        self.bench.run.story.forget();
        self.end_pairs();
        self.bench.run.wanted = None;
        self.lesson.learner.pair = None;
        self.show_beat_again();
    }
}
