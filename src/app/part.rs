//! How a message travels through the parts of `App`. `App` leads an action, or what is heard, to the part that it concerns. The part
//! changes its own state only. It reads other parts from a context of shared references, and it returns what has to follow: effects
//! for the shell and requests to other parts. `App::carry_out` does these in their order, after the part has returned. A part has
//!
//! - `update(&mut self, action, …) -> Option<Follows>`: carries out an action; `None` where it means nothing to the part;
//! - methods of the same shape, which return `Follows`, for what is heard.
//!
//! A part that reads one or two others takes references to them; one that reads more has a `Context` of them. They show the state before
//! anything that follows was carried out. What needs the state afterwards is asked for at the end of the message (`App::take`), as the
//! beginning of a measurement is. What moves the learner to another place, and so changes several parts at once, is a method of `App`;
//! parts ask for it with `Follow::Go`.
//!
//! | part | its `update` |
//! |---|---|
//! | `Lesson` | `lesson.rs`; what can be read of it now is a `Reading` (`pages.rs`) |
//! | `Bench` | `edit.rs`, the knobs; `bench.rs` and `attempts.rs`, what was asked of the engine and what ran |
//! | `Exercises`, `MysteryRun` | `exercise/work.rs`, `mystery/play.rs` |
//! | `Membership` | `member/share.rs` |
//! | `Presenter` | `presenter.rs` |
//! | `Devices` | `devices.rs` |
//! | `View` | `view_actions.rs` |

use super::exercise::{self, ExerciseState, Exercises};
use super::lesson::{self, Lesson};
use super::member::{Membership, share};
use super::mystery::{MysteryRun, play};
use super::pages::Reading;
use super::study::LessonPage;
use super::{Action, App, Confirm, Effect, Overlay, Panel};
use crate::course::save_file::{ProgressChange, StageProgress};
use protocol::config::RunConfig;
use protocol::{Command, RunSpec};

/// What has to follow from a change of a part, in the order in which it is carried out.
pub(super) type Follows = Vec<Follow>;

/// An effect for the shell, or a request to another part.
#[derive(Clone, Debug)]
pub(super) enum Follow {
    /// The shell does this.
    Effect(Effect),
    /// A sentence is shown for a while; a warning stands out.
    Tell(String),
    Warn(String),
    /// The progress of this stage or exercise is replaced and saved.
    Keep(String, Box<StageProgress>),
    /// These points were reached in this mystery: its score is noted and saved.
    KeepScore(String, u32),
    /// One more hint for this stage or exercise is shown, if there is one.
    NextHint(String),
    /// The lesson, or what stands in its place, comes into view.
    ShowText,
    /// That text is shown from its first line, once it is in view.
    TextToTop,
    /// The stage's text comes into view where it stands, and this page of it is opened.
    ShowLesson,
    Page(LessonPage),
    /// This panel is marked and comes into view.
    Mark(Panel),
    /// No panel lies over the others any more.
    Shrink,
    /// The sentence on the screen is no longer shown; a warning only with `warnings`.
    Untell {
        warnings: bool,
    },
    /// Nothing that is seen has changed.
    Unseen,
    Nothing,
    /// This card is shown from its first line, or none.
    Card(Option<Overlay>),
    /// The learner is asked to confirm this.
    Confirm(Confirm),
    /// An action that only changes what is shown is carried out.
    Look(Action),
    /// A starts to show its values.
    Reveal,
    /// B was changed; it runs later if more changes may come (true).
    Changed(bool),
    /// This run begins in the place of what is in progress.
    Run(RunSpec),
    /// These two run in turns. What both have shown so far stays: pairs measure times, the lesson is about the rest.
    Pairs([RunSpec; 2]),
    /// The run that makes steps pauses.
    Pause,
    /// The paused run goes on.
    Resume,
    /// The run waits while a beat shows what was measured before.
    Wait,
    /// Runs move to this device.
    Use(String),
    /// The class is shown the answer of the beat's vote.
    OrderAnswer,
    /// The learner goes somewhere else.
    Go(Place),
}

/// Where the learner can go.
#[derive(Clone, Debug)]
pub(super) enum Place {
    Stage(usize),
    /// A beat of this stage, in the presentation or as the first one of a new presentation.
    Beat(usize, usize),
    Presentation(usize, usize),
    /// Back from a presentation.
    Own,
    Exercise(usize),
    Mystery {
        seed: u64,
        level: u8,
    },
    /// A run without a stage.
    Free(Box<RunConfig>),
}

impl Follow {
    /// Shows a sentence.
    pub(super) fn tell(text: impl Into<String>) -> Self {
        Self::Tell(text.into())
    }

    /// Replaces and saves the progress of a stage or an exercise.
    pub(super) fn keep(id: &str, progress: StageProgress) -> Self {
        Self::Keep(id.to_owned(), Box::new(progress))
    }

    /// Sends a command to the engine.
    pub(super) fn send(command: Command) -> Self {
        Self::Effect(Effect::Send(command))
    }
}

impl App {
    /// Leads something to the exercise at this place of the course; returns whether it concerns an exercise.
    pub(super) fn in_exercise<F: Into<Option<Follows>>>(
        &mut self,
        at: Option<usize>,
        to: impl FnOnce(&mut Exercises, &exercise::Context) -> F,
    ) -> bool {
        let follows = at.and_then(|at| {
            let context = exercise::Context {
                exercise: self.lesson.course.exercises.get(at)?,
                at,
                is_open: self.mode.exercise() == Some(at),
                study: &self.lesson.study,
                bench: &self.bench,
                devices: &self.devices,
                view: &self.view,
                now_ms: self.clock.now_ms,
            };
            to(&mut self.exercise, &context).into()
        });
        self.carry_out(follows)
    }

    /// Leads something to the open exercise; returns whether there is one.
    pub(super) fn in_open_exercise(
        &mut self,
        to: impl FnOnce(&mut ExerciseState, &exercise::Context) -> Follows,
    ) -> bool {
        let at = self.mode.exercise();
        self.in_exercise(at, |it, context| to(it.of_mut(context.exercise), context))
    }

    /// Leads something to the lesson; returns whether it concerns the lesson.
    pub(super) fn in_lesson(
        &mut self,
        to: impl FnOnce(&mut Lesson, &lesson::Context) -> Option<Follows>,
    ) -> bool {
        let context = lesson::Context {
            mode: &self.mode,
            bench: &self.bench,
            view: &self.view,
            presents: self.presenter.presentation.is_some(),
        };
        let follows = to(&mut self.lesson, &context);
        self.carry_out(follows)
    }

    /// The lesson as it is read now.
    pub fn reading(&self) -> Reading<'_> {
        let context = lesson::Context {
            mode: &self.mode,
            bench: &self.bench,
            view: &self.view,
            presents: self.presenter.presentation.is_some(),
        };
        Reading::of(&self.lesson, &context)
    }

    /// Leads something to the class; returns whether the learner is in one and it concerns the class.
    pub(super) fn in_class<F: Into<Option<Follows>>>(
        &mut self,
        to: impl FnOnce(&mut Membership, &share::Context) -> F,
    ) -> bool {
        // Nothing in its context is the class's own.
        let Some(mut member) = self.class.take() else {
            return false;
        };
        let follows = to(&mut member, &self.class_context()).into();
        self.class = Some(member);
        self.carry_out(follows)
    }

    /// Leads something to the open mystery; returns whether there is one and it concerns it.
    pub(super) fn in_mystery<F: Into<Option<Follows>>>(
        &mut self,
        to: impl FnOnce(&mut MysteryRun, &play::Context) -> F,
    ) -> bool {
        let context = play::Context {
            study: &self.lesson.study,
            bench: &self.bench,
            now_ms: self.clock.now_ms,
        };
        let mystery = self.mode.mystery_mut();
        let follows = mystery.and_then(|mystery| to(mystery, &context).into());
        self.carry_out(follows)
    }

    /// Does what a part asks for, in its order; returns whether the part was concerned.
    pub(super) fn carry_out(&mut self, follows: impl Into<Option<Follows>>) -> bool {
        let asked: Option<Follows> = follows.into();
        let concerned = asked.is_some();
        for follow in asked.into_iter().flatten() {
            match follow {
                Follow::Effect(effect) => self.effects.push(effect),
                Follow::Tell(text) => self.tell(&text, false),
                Follow::Warn(text) => self.tell(&text, true),
                Follow::Keep(id, progress) => {
                    *self.lesson.study.of_mut(&id) = *progress;
                    self.effects.push(self.lesson.saved(&id));
                }
                Follow::KeepScore(name, points) => {
                    let known = self.lesson.study.progress.mysteries.entry(name.clone());
                    let score = known.or_default();
                    (score.last, score.best) = (points, score.best.max(points));
                    let score = *score;
                    let change = ProgressChange::Mystery(name, score);
                    self.effects.push(Effect::Save(change));
                }
                Follow::NextHint(id) => {
                    let saved = self.lesson.next_hint(&id);
                    self.effects.push(saved);
                }
                Follow::ShowText => self.view.show_text(),
                Follow::ShowLesson => self.view.show_lesson(),
                Follow::Page(page) => self.view.open_page(page),
                Follow::Mark(panel) => self.view.mark(panel),
                Follow::Shrink => self.view.expanded = false,
                Follow::Untell { warnings } => {
                    let notice = &mut self.view.notice;
                    notice.take_if(|notice| warnings || !notice.warning);
                }
                Follow::Nothing => {}
                Follow::Unseen => self.view.revision -= 1,
                Follow::TextToTop => {
                    self.view.scroll.remove(&Panel::Lesson);
                }
                Follow::Card(card) => (self.view.overlay, self.view.overlay_scroll) = (card, 0),
                Follow::Confirm(confirm) => self.view.confirm = Some(confirm),
                Follow::Look(action) => self.look(action),
                Follow::Reveal => self.bench.comparison.hidden = false,
                // The run of another B waits while an exercise is measured.
                Follow::Changed(delayed) => match self.may_move_run() {
                    Ok(()) => self.b_changed(delayed),
                    Err(refusal) => {
                        self.carry_out(refusal.told());
                    }
                },
                Follow::Run(run) => self.start(run),
                Follow::Pairs(sides) => {
                    let (most, now_ms) = (self.cue().map_or(0, |cue| cue.pairs), self.clock.now_ms);
                    let command = self.bench.pair(sides, most, &self.devices, now_ms);
                    self.send(command);
                }
                Follow::Pause if self.bench.run.state.is_moving() => self.pause(),
                Follow::Resume if self.bench.run.state.is_paused() => self.pause(),
                Follow::Pause | Follow::Resume => {}
                Follow::Wait => {
                    let (command, moved) = self.bench.wait(self.clock.now_ms);
                    self.effects.extend(command.map(Effect::Send));
                    self.presenter.note_wait(moved);
                }
                Follow::Use(device) => self.use_device(&device),
                Follow::OrderAnswer => self.order_answer(),
                Follow::Go(Place::Stage(at)) => self.leave_for(at),
                Follow::Go(Place::Beat(at, beat)) => self.show_beat(at, beat),
                Follow::Go(Place::Presentation(at, beat)) => self.begin_presentation(at, beat),
                Follow::Go(Place::Own) => self.stop_presenting(),
                Follow::Go(Place::Exercise(at)) => self.open_exercise(at),
                Follow::Go(Place::Mystery { seed, level }) => self.run_mystery(seed, level),
                Follow::Go(Place::Free(config)) => self.run_free(*config),
            }
        }
        concerned
    }
}
