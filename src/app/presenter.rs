//! Stages shown to an audience: what a presentation has measured, and what each of its beats shows of it.
//!
//! A presentation has runs and progress of its own. They begin empty, and the learner's are put away whole until it ends. What a
//! beat shows is kept once a later beat is shown, if its run has shown enough by then: a beat that is shown again shows that, and
//! not what was measured later. The screen reads what is shown from `App::shown_bench`, `App::shown_run` and `App::shown_pair`.

use std::collections::{BTreeMap, BTreeSet};

use super::beats::{BeatState, VoteState, beats, cues};
use super::bench::{Asked, Pending};
use super::comparison::Comparison;
use super::part::{Follow, Follows, Place};
use super::run::RunState;
use super::study::Study;
use super::view::View;
use super::{Action, App, Bench, Lesson, Mode, RequestedRun};
use crate::course::Stage;
use crate::course::named::NamedConfig;
use protocol::config::RunConfig;
use protocol::story::StreamStory;
use protocol::{Command, Pair, Slot};

/// Presentations of this program.
#[derive(Clone, Debug, Default)]
pub struct Presenter {
    pub presentation: Option<Box<Presentation>>,
    /// How long each beat was shown, by stage and place, in all presentations of this program.
    pub beat_ms: BTreeMap<(usize, usize), u64>,
}

/// Stages shown to an audience, beat by beat.
#[derive(Clone, Debug, Default)]
pub struct Presentation {
    /// Index into the beats of the stage.
    pub beat: usize,
    pub audience_screen: AudienceScreen,
    /// Stages whose right choice is marked at the beat of the vote.
    pub answered: BTreeSet<usize>,
    /// What beats showed when they were left, by stage and place.
    pub(super) kept: BTreeMap<(usize, usize), KeptBeat>,
    /// The run was paused because a kept beat is shown, and goes on with its own beat.
    waits: bool,
    learner: Learner,
    /// The learner's file, where it was saved meanwhile: it counts once the presentation ends.
    pub(super) saved: Option<Result<Box<RunConfig>, String>>,
}

/// What a beat showed when it was left.
#[derive(Clone, Debug)]
pub(super) struct KeptBeat {
    bench: Bench,
    pair: Option<Pair>,
}

/// What is the learner's own, while a presentation is shown.
#[derive(Clone, Debug, Default)]
struct Learner {
    study: Study,
    /// None while a recording is presented: it fills the bench before, during and after the presentation.
    bench: Option<Bench>,
    view: View,
    /// The device that their figures are of.
    device: String,
}

/// Whether the audience sees what happens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase", const_into_str)]
pub enum AudienceScreen {
    #[default]
    #[strum(serialize = "")]
    Live,
    /// The screen is empty.
    Blank,
    /// The screen stays as it was then; the terminal keeps that frame.
    Frozen,
}

impl Presenter {
    /// Carries out an action on what is shown to an audience.
    pub(super) fn update(
        &mut self,
        action: Action,
        lesson: &Lesson,
        mode: &Mode,
    ) -> Option<Follows> {
        let here = lesson.study.at;
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
                // A notice about this beat is not shown below the next.
                return Some(vec![
                    Follow::Untell { warnings: false },
                    Follow::Go(Place::Beat(at, beat)),
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
                return Some(vec![Follow::OrderAnswer]);
            }
            _ => return None,
        };
        Some(vec![Follow::Go(place)])
    }

    /// Empties or freezes what the audience sees, or shows it again.
    fn cover_screen(&mut self, cover: AudienceScreen) -> Option<Follows> {
        let screen = &mut self.presentation.as_mut()?.audience_screen;
        let covered = *screen == cover;
        *screen = if covered { AudienceScreen::Live } else { cover };
        Some(Vec::new())
    }

    /// Whether the audience sees what happens; it does where no `beat` is shown.
    pub fn audience_screen(&self, beat: Option<BeatState>) -> AudienceScreen {
        let shown = self.presentation.as_ref().filter(|_| beat.is_some());
        shown.map_or(AudienceScreen::Live, |it| it.audience_screen)
    }

    /// The beat on the screen; an open exercise stands in its place.
    pub(super) fn beat(&self, lesson: &Lesson, mode: &Mode) -> Option<BeatState> {
        let shown = self.presentation.as_ref().filter(|_| !mode.is_exercise())?;
        let all = beats(lesson.study.at, lesson.stage(mode)?);
        all.get(shown.beat).copied()
    }

    /// Where the next beat is, or the one before, by stage and place; beyond the ends of a stage those of its neighbours follow.
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
        let to = beat.stage.checked_add_signed(by)?;
        let last = cues(lesson.course.stages.get(to)?).len().saturating_sub(1);
        Some((to, if by > 0 { 0 } else { last }))
    }

    /// Shows a beat from now on; the audience's screen is not empty any more.
    pub(super) fn go_to(&mut self, beat: BeatState) {
        if let Some(presentation) = &mut self.presentation {
            presentation.beat = beat.at;
            if presentation.audience_screen == AudienceScreen::Blank {
                presentation.audience_screen = AudienceScreen::Live;
            }
        }
    }

    /// The learner's own progress; while a presentation is shown, `study` is that of the presentation.
    pub(super) fn own_study<'a>(&'a self, study: &'a Study) -> &'a Study {
        let presentation = self.presentation.as_ref();
        presentation.map_or(study, |it| &it.learner.study)
    }

    /// Whether the right choice of the stage at this place is marked.
    pub fn answer_shown(&self, at: usize) -> bool {
        let presentation = self.presentation.as_ref();
        presentation.is_some_and(|it| it.answered.contains(&at))
    }

    /// What the beat on the screen showed when it was left; none for a beat that is still measured.
    fn kept_beat(&self, lesson: &Lesson, mode: &Mode) -> Option<&KeptBeat> {
        let shown = self.presentation.as_ref().filter(|_| !mode.is_exercise())?;
        shown.kept.get(&(lesson.study.at, shown.beat))
    }

    /// A and B as the screen shows them.
    pub(super) fn shown<'a>(&'a self, bench: &'a Bench, lesson: &Lesson, mode: &Mode) -> &'a Bench {
        let kept = self.kept_beat(lesson, mode);
        kept.map_or(bench, |kept| &kept.bench)
    }

    /// The runs of a stage that its last kept beat shows.
    pub(super) fn story_of(&self, stage: usize) -> StreamStory {
        let kept = self.presentation.iter().flat_map(|it| &it.kept);
        let mut of_stage = kept.filter(|((at, _), _)| *at == stage);
        let last = of_stage.next_back().map(|(_, kept)| &kept.bench.run.story);
        last.cloned().unwrap_or_else(StreamStory::for_audience)
    }

    /// Whether the run of the beat that is shown moved before it waits, and is to go on with its own beat.
    pub(super) fn note_wait(&mut self, moved: bool) {
        if let Some(presentation) = &mut self.presentation {
            presentation.waits |= moved;
        }
    }

    /// Keeps what the beats before this one show, or all beats of a stage that is left, or where B is hidden again, if enough was
    /// measured for them. When pairs begin, no run of the stage goes on: what it has shown until then is all that there will be.
    pub(super) fn keep_beats_before(
        &mut self,
        to: BeatState,
        lesson: &Lesson,
        mode: &Mode,
        bench: &Bench,
    ) {
        let from = self.beat(lesson, mode).filter(|_| mode.is_live());
        let (Some(from), Some(presentation)) = (from, &mut self.presentation) else {
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
                    pair: pair.clone().filter(|_| beat.paired),
                });
            }
        }
    }

    /// Shows the run of a beat: the one in progress, an earlier one, or else a new one.
    fn show_run(&mut self, beat: BeatState, stage: &Stage, bench: &Bench) -> Option<Follow> {
        let run = bench.comparison.run_of(beat.variant);
        let waits = self.presentation.as_mut();
        let waits = waits.is_some_and(|it| std::mem::take(&mut it.waits));
        let pairing = bench.pairing();
        let wanted = bench.run.wanted.as_ref() == Some(&run) && !pairing;
        let steps = if pairing { 0 } else { stage.steps };
        if wanted && bench.run.state.is_active() {
            return waits.then_some(Follow::Resume);
        }
        if bench.has_shown(beat, steps) {
            return Some(Follow::Wait);
        }
        let failed = matches!(bench.run.state, RunState::Failed { .. });
        (!(wanted && failed)).then_some(Follow::Run(run))
    }

    /// Counts the time for which a beat of the stage `at` is shown.
    pub(super) fn count_beat(&mut self, at: usize, ms: u64) {
        if let Some(presentation) = &self.presentation {
            *self.beat_ms.entry((at, presentation.beat)).or_default() += ms;
        }
    }
}

impl Bench {
    /// A stage's A, and its solution as B.
    fn present(&mut self, stage: &Stage) {
        self.compare(Comparison::of_stage(stage, self.preset));
        let solution = NamedConfig::fixed(stage, self.preset).config;
        self.set_b(solution, true);
    }

    /// The bench of a presentation, on which nothing was measured.
    fn emptied(&self) -> Self {
        let mut empty = Self {
            preset: self.preset,
            ..Self::default()
        };
        empty.run.story = StreamStory::for_audience();
        // Each request to the engine has a number of its own.
        empty.pending.request = self.pending.request;
        empty
    }

    /// Whether the run of a beat has shown enough of itself to be shown again and not to be made again: `steps` steps, or its end.
    fn has_shown(&self, beat: BeatState, steps: u64) -> bool {
        let run = self.comparison.run_of(beat.variant);
        let shown = self.run.slot(beat.variant);
        let ended = shown.finished.is_some() || shown.loss.not_finite.is_some();
        let last = shown.last.as_ref();
        shown.description.spec().is_some_and(|spec| spec == run)
            && !shown.of_pairs
            && (ended || last.is_some_and(|step| step.step >= steps))
    }

    /// What a beat shows of it: before the beat that shows B, B is not there.
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

    /// Whether pairs or a run of B are in progress that belong to a later beat than this one, which was jumped over.
    fn shows_later(&self, beat: BeatState) -> bool {
        let wanted = self.run.wanted.as_ref();
        let of_b = wanted.is_some_and(|run| run.slot == Slot::B) && self.run.state.is_active();
        of_b && beat.variant == Slot::A || self.pairing() && !beat.paired
    }

    /// The run waits while the screen shows what was measured before; pairs do not. Returns what the engine is told, and whether the run made
    /// steps.
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

    /// Its run has ended because the engine does something else: what it says until the next start is about another run.
    fn stopped(mut self) -> Self {
        let state = &mut self.run.state;
        if state.is_active() || state.broke_off() {
            *state = RunState::Finished;
        }
        self.pending.asked = Asked::Leave;
        self
    }
}

impl Study {
    /// A stage as a room sees it at a beat: nothing of a learner's own, and nothing hidden once the vote is over.
    fn at_beat(beat: BeatState, stage: &Stage, presented: Option<(String, usize)>) -> Self {
        let mut study = Self::default();
        study.progress.presented = presented;
        study.enter(beat.stage, stage);
        study.of_mut(&stage.id).hints = beat.hints;
        study.nothing_hidden = beat.vote == VoteState::Closed;
        study
    }
}

impl App {
    /// A and B as the screen shows them.
    pub fn shown_bench(&self) -> &Bench {
        self.presenter.shown(&self.bench, &self.lesson, &self.mode)
    }

    /// Their runs.
    pub fn shown_run(&self) -> &RequestedRun {
        &self.shown_bench().run
    }

    /// The result of their pairs.
    pub fn shown_pair(&self) -> Option<&Pair> {
        let kept = self.presenter.kept_beat(&self.lesson, &self.mode);
        kept.map_or(&self.lesson.study.pair, |kept| &kept.pair)
            .as_ref()
    }

    /// Whether the beat on the screen shows what was measured before, and no run.
    pub fn shows_kept_beat(&self) -> bool {
        let kept = self.presenter.kept_beat(&self.lesson, &self.mode);
        kept.is_some()
    }

    /// Begins a presentation, in which nothing is measured yet. The learner's runs, progress and screen are put away, unless they are
    /// already because another presentation is shown.
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
        let study = std::mem::take(&mut self.lesson.study);
        self.lesson.study.at = at;
        self.lesson.study.pair = study.pair.clone().filter(|_| !live);
        self.lesson.study.progress.presented = study.progress.presented.clone();
        let learner = match self.presenter.presentation.take() {
            Some(before) => before.learner,
            None => Learner {
                study,
                bench: bench.map(Bench::stopped),
                view: self.view.clone(),
                device: self.devices.using.clone(),
            },
        };
        self.presenter.presentation = Some(Box::new(Presentation {
            beat,
            learner,
            ..Presentation::default()
        }));
        self.show_beat(at, beat);
    }

    /// Ends the presentation: runs, progress and screen are the learner's again, as they were. Returns false where there is none.
    pub(super) fn end_presentation(&mut self) -> bool {
        let Some(presentation) = self.presenter.presentation.take() else {
            return false;
        };
        let learner = presentation.learner;
        let view = std::mem::replace(&mut self.view, learner.view);
        // What is of the terminal, and not of what it shows, stays.
        (self.view.size, self.view.theme, self.view.markers) =
            (view.size, view.theme, view.markers);
        (self.view.revision, self.view.unsaved) = (view.revision, view.unsaved);
        let shown = std::mem::replace(&mut self.lesson.study, learner.study);
        self.lesson.study.progress.presented = shown.progress.presented;
        let Some(bench) = learner.bench else {
            self.lesson.study.pair = shown.pair;
            return true;
        };
        let before = std::mem::replace(&mut self.bench, bench);
        self.bench.pending.request = before.pending.request;
        if before.run.state.broke_off() {
            self.bench.run.state = before.run.state;
        } else if before.run.state.is_active() {
            self.send(Command::Stop);
        }
        if learner.device != self.devices.using {
            self.bench.run.story.forget();
            self.lesson.study.pair = None;
        }
        if let Some(config) = presentation.saved {
            let follows = self.bench.take_saved_file(config);
            self.carry_out(follows);
        }
        true
    }

    /// Ends the presentation at the learner's request. A run of theirs that had shown nothing starts now.
    pub(super) fn stop_presenting(&mut self) {
        self.end_presentation();
        if self.mode.is_live() && !self.bench.run.shown().has_begun() {
            match self.bench.run.wanted.clone() {
                Some(run) => self.start(run),
                None => self.enter(self.lesson.study.at),
            }
        }
        let text = "Presenter mode is off; your own progress is as it was";
        self.tell(text, false);
    }

    /// Ends the run in progress; later events about it are ignored.
    pub(super) fn leave_run(&mut self) {
        let command = self.bench.leave(self.clock.now_ms);
        self.send(command);
    }

    /// Makes the runs and the progress of the presentation those of a beat of this stage.
    pub(super) fn measure_beat(&mut self, beat: BeatState, stage: &Stage) {
        let presented = self.lesson.study.progress.presented.take();
        let pair = self.lesson.study.pair.take();
        self.lesson.study = Study::at_beat(beat, stage, presented);
        if !self.mode.is_live() {
            // The recording goes on, whichever beat is shown.
            self.lesson.study.pair = pair;
            if self.bench.run.slot(beat.variant).has_begun() {
                self.bench.run.active = beat.variant;
            }
            return;
        }
        self.bench.present(stage);
        if self.shows_kept_beat() {
            self.lesson.study.pair = pair.filter(|_| self.bench.pairing());
            self.carry_out(vec![Follow::Wait]);
            return;
        }
        if self.bench.shows_later(beat) {
            self.leave_run();
        }
        self.show_present_b();
        let measured = self.bench.pairs_of_b().filter(|_| beat.paired);
        if !beat.pairs {
            let follow = self.presenter.show_run(beat, stage, &self.bench);
            self.carry_out(follow.map(|follow| vec![follow]));
        } else if measured.is_none() && !self.bench.pairing() {
            self.pair();
        }
        self.bench.run.active = beat.variant;
        self.lesson.study.pair = match self.bench.pairing() {
            true => pair.filter(|pair| !pair.done),
            false => measured,
        };
    }

    /// Forgets what the stage of a presentation has measured, and shows its beat anew.
    pub(super) fn measure_beat_again(&mut self) {
        let at = self.lesson.study.at;
        if let Some(presentation) = &mut self.presenter.presentation {
            presentation.kept.retain(|(stage, _), _| *stage != at);
        }
        self.bench.run.story.forget();
        self.end_pairs();
        (self.bench.run.wanted, self.lesson.study.pair) = (None, None);
        self.show_beat_again();
    }
}
