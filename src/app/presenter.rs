//! Presentations: stages shown to an audience beat by beat. `presenter/measured.rs` keeps the measurements of each beat.
//!
//! A presentation has its own runs and progress, which begin empty. The learner's own are stored unchanged until it ends.

mod measured;

use std::collections::{BTreeMap, BTreeSet};

use super::beats::{BeatState, beats, cues};
use super::bench::Asked;
use super::learner::LearnerState;
use super::part::{FollowUp, FollowUps, Place};
use super::run::RunState;
use super::view::View;
use super::{Action, App, Bench, Lesson, Mode};
use measured::KeptBeat;
use protocol::Command;
use protocol::config::RunConfig;
use protocol::story::StreamStory;

/// The presentation on the screen, and the times of all presentations of this session.
#[derive(Clone, Debug, Default)]
pub struct Presenter {
    pub presentation: Option<Box<Presentation>>,
    /// The time for which each beat was shown in this session, in milliseconds, by the index of the stage and of the beat.
    pub beat_ms: BTreeMap<(usize, usize), u64>,
}

/// A presentation in progress.
#[derive(Clone, Debug, Default)]
pub struct Presentation {
    /// The index of the beat in its stage.
    pub beat: usize,
    pub audience_screen: AudienceScreen,
    /// The stages whose right choice is marked at the beat of the vote.
    pub answered: BTreeSet<usize>,
    /// The kept measurements, by the index of the stage and of the beat.
    kept: BTreeMap<(usize, usize), KeptBeat>,
    /// The run is paused because a kept beat is on the screen. It continues at its own beat.
    waits: bool,
    own: OwnState,
    /// The content of the learner's file if it was saved meanwhile. It becomes B when the presentation ends.
    pub(super) saved: Option<Result<Box<RunConfig>, String>>,
}

/// The learner's own state, stored while a presentation is shown.
#[derive(Clone, Debug, Default)]
struct OwnState {
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
        let present = lesson.learner.at;
        let place = match action {
            Action::Present if self.presentation.is_some() => Place::Own,
            Action::EndPresentation => Place::Own,
            Action::Present => Place::Presentation(present, 0),
            Action::PresentFrom(true) => Place::Presentation(0, 0),
            Action::PresentFrom(false) => {
                let (at, beat) = lesson.presented().unwrap_or((present, 0));
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
                    FollowUp::ClearNotice { warnings: false },
                    FollowUp::Go(Place::Beat(at, beat)),
                ]);
            }
            Action::GoToBeat { stage, beat } => Place::Beat(lesson.place_of_number(stage)?, beat),
            Action::BlankScreen => return self.cover_screen(AudienceScreen::Blank),
            Action::FreezeScreen => return self.cover_screen(AudienceScreen::Frozen),
            Action::ShowAnswer => {
                let answered = &mut self.presentation.as_mut()?.answered;
                if answered.remove(&present) {
                    return Some(Vec::new());
                }
                answered.insert(present);
                return Some(vec![FollowUp::OrderAnswer]);
            }
            _ => return None,
        };
        Some(vec![FollowUp::Go(place)])
    }

    /// Covers the audience's screen, or shows it live again if it is covered in this way.
    fn cover_screen(&mut self, cover: AudienceScreen) -> Option<FollowUps> {
        let screen = &mut self.presentation.as_mut()?.audience_screen;
        let is_covered = *screen == cover;
        *screen = if is_covered {
            AudienceScreen::Live
        } else {
            cover
        };
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

    /// Makes this the present beat. An empty audience's screen becomes live.
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
            Some(presentation) => &presentation.own.learner,
            None => learner,
        }
    }

    /// Returns true if the right choice of the stage at this index is marked.
    pub fn answer_shown(&self, at: usize) -> bool {
        let presentation = self.presentation.as_ref();
        presentation.is_some_and(|presentation| presentation.answered.contains(&at))
    }

    /// Adds to the time for which the present beat, in the stage at index `at`, was shown.
    pub(super) fn count_beat(&mut self, at: usize, ms: u64) {
        if let Some(presentation) = &self.presentation {
            *self.beat_ms.entry((at, presentation.beat)).or_default() += ms;
        }
    }
}

impl Bench {
    /// Returns a bench without measurements, for a new presentation.
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

    /// Ends the run, because the engine works for the presentation. Events until the next start belong to other runs.
    fn stopped(mut self) -> Self {
        let state = &mut self.run.state;
        if state.is_active() || state.broke_off() {
            *state = RunState::Finished;
        }
        self.pending.asked = Asked::Leave;
        self
    }
}

impl App {
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
        let own = match self.presenter.presentation.take() {
            Some(earlier) => earlier.own,
            None => OwnState {
                learner,
                bench: bench.map(Bench::stopped),
                view: self.view.clone(),
                device: self.devices.using.clone(),
            },
        };
        self.presenter.presentation = Some(Box::new(Presentation {
            beat,
            own,
            ..Presentation::default()
        }));
        self.show_beat(at, beat);
    }

    /// Ends the presentation, if there is one, and brings the learner's runs, progress and view back.
    pub(super) fn end_presentation(&mut self) {
        let Some(presentation) = self.presenter.presentation.take() else {
            return;
        };
        let own = presentation.own;
        let view = std::mem::replace(&mut self.view, own.view);
        // The size and the look of the terminal may have changed during the presentation.
        self.view.size = view.size;
        self.view.theme = view.theme;
        self.view.markers = view.markers;
        self.view.revision = view.revision;
        self.view.unsaved = view.unsaved;
        let presented_learner = std::mem::replace(&mut self.lesson.learner, own.learner);
        self.lesson.learner.progress.presented = presented_learner.progress.presented;
        let Some(bench) = own.bench else {
            self.lesson.learner.pair = presented_learner.pair;
            return;
        };
        let presented_bench = std::mem::replace(&mut self.bench, bench);
        self.bench.pending.request = presented_bench.pending.request;
        if presented_bench.run.state.broke_off() {
            self.bench.run.state = presented_bench.run.state;
        } else if presented_bench.run.state.is_active() {
            self.send(Command::Stop);
        }
        if own.device != self.devices.using {
            self.bench.run.story.forget();
            self.lesson.learner.pair = None;
        }
        if let Some(config) = presentation.saved {
            let follows = self.bench.on_file_saved(config);
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
}
