//! How a message travels through the parts of `App`. `App` passes each action, event or piece of news to the part that it concerns.
//! The part changes only its own state. It reads other parts through a context of shared references, and it returns follow-ups:
//! effects for the shell and requests to other parts. `App::carry_out` performs them in order, after the part has returned. A part has
//!
//! - `update(&mut self, action, …) -> Option<FollowUps>`, which carries out an action; `None` means that the action is not the part's;
//! - methods that take an event or news and return `FollowUps`.
//!
//! A part that reads one or two others takes references to them; a part that reads more has a `Context` of references, and `Membership`
//! gets the whole `App` without itself. The references show the state before any follow-up is performed. Work that needs the state
//! afterwards, such as the start of a measurement, runs at the end of the message (`App::handle`). Moving the learner to another place
//! changes several parts at once, so it is a method of `App`; parts request it with `FollowUp::Go`.
//!
//! | part | its `update` |
//! |---|---|
//! | `Lesson` | `lesson.rs`; `Reading` (`pages.rs`) knows which pages can be read now |
//! | `Bench` | `edit.rs` for the knobs; `bench.rs` and `attempts.rs` for requests to the engine and for past runs |
//! | `Exercises`, `MysteryRun` | `exercise/work.rs`, `mystery/play.rs` |
//! | `Membership` | `member/calls.rs` |
//! | `Presenter` | `presenter.rs` |
//! | `Devices` | `devices.rs` |
//! | `View` | `view_actions.rs` |

use std::sync::Arc;

use super::exercise::{self, ExerciseState, Exercises};
use super::learner::LessonPage;
use super::lesson::{self, Lesson};
use super::member::Membership;
use super::mystery::{MysteryRun, play};
use super::pages::Reading;
use super::{Action, App, Confirm, Effect, Overlay, Panel};
use crate::course::Stage;
use crate::course::save_file::{ProgressChange, StageProgress};
use protocol::config::RunConfig;
use protocol::{Command, RunSpec};

/// The follow-ups of a change, in the order in which they are performed.
pub(super) type FollowUps = Vec<FollowUp>;

/// An effect for the shell, or a request to another part.
#[derive(Clone, Debug)]
pub(super) enum FollowUp {
    /// Passes an effect to the shell.
    Effect(Effect),
    /// Shows a sentence for a few seconds.
    Tell(String),
    /// Shows a warning for a few seconds.
    Warn(String),
    /// Replaces the progress of the stage or exercise with this id, and saves it.
    Keep(String, Box<StageProgress>),
    /// Adds these points to the scores of the mystery with this name, and saves them.
    KeepScore(String, u32),
    /// Shows one more hint for the stage or exercise with this id, if there is one.
    NextHint(String),
    /// Brings the text of the stage, exercise or mystery into view, from its first line.
    ShowText,
    /// Scrolls the text of the stage, exercise or mystery to its first line without bringing it into view.
    TextToTop,
    /// Brings the stage's text into view without scrolling it.
    ShowLesson,
    /// Opens this page of the stage's text.
    Page(LessonPage),
    /// Marks this panel and brings it into view.
    Mark(Panel),
    /// Gives an expanded panel its normal size back.
    Shrink,
    /// Removes the notice on the screen. A warning stays unless `warnings` is true.
    ClearNotice { warnings: bool },
    /// Draws no new frame, because nothing on the screen has changed.
    Unseen,
    /// Shows this card from its first line. `None` closes the open card.
    Card(Option<Overlay>),
    /// Asks the learner to confirm.
    Confirm(Confirm),
    /// Carries out an action that only changes the view.
    View(Action),
    /// Shows the values of A, which were hidden.
    Reveal,
    /// Handles a change of B. `delayed` makes its run wait, because more changes may come.
    Changed { delayed: bool },
    /// Starts this run instead of the one in progress.
    Run(RunSpec),
    /// Measures these two runs in turns. The curves and figures on the screen stay, because pairs only measure times.
    Pairs([RunSpec; 2]),
    /// Pauses the run if it makes steps.
    Pause,
    /// Resumes the run if it is paused.
    Resume,
    /// Lets the run wait while a beat shows older measurements.
    Wait,
    /// Moves all runs to this device.
    Use(String),
    /// Shows the class the answer of the beat's vote.
    OrderAnswer,
    /// Takes the learner to another place.
    Go(Place),
}

/// A place where the learner can go. Stages and exercises are given by their index in the course.
#[derive(Clone, Debug)]
pub(super) enum Place {
    Stage(usize),
    /// A stage and one of its beats, in the presentation on the screen.
    Beat(usize, usize),
    /// A stage and one of its beats, at which a new presentation begins.
    Presentation(usize, usize),
    /// The learner's own run, after a presentation.
    Own,
    Exercise(usize),
    Mystery {
        seed: u64,
        level: u8,
    },
    /// A run without a stage.
    Free(Box<RunConfig>),
}

impl FollowUp {
    /// Makes a follow-up that shows a sentence.
    pub(super) fn tell(text: impl Into<String>) -> Self {
        Self::Tell(text.into())
    }

    /// Makes a follow-up that replaces and saves the progress of a stage or an exercise.
    pub(super) fn keep(id: &str, progress: StageProgress) -> Self {
        Self::Keep(id.to_owned(), Box::new(progress))
    }

    /// Makes a follow-up that sends a command to the engine.
    pub(super) fn send(command: Command) -> Self {
        Self::Effect(Effect::Send(command))
    }
}

impl App {
    /// Calls `work` for the exercise at index `at` and performs its follow-ups. Returns false if there is no such exercise, or if `work`
    /// returns `None`.
    pub(super) fn in_exercise<F: Into<Option<FollowUps>>>(
        &mut self,
        at: Option<usize>,
        work: impl FnOnce(&mut Exercises, &exercise::Context) -> F,
    ) -> bool {
        let follow_ups = at.and_then(|at| {
            let context = exercise::Context {
                exercise: self.lesson.course.exercises.get(at)?,
                at,
                is_open: self.mode.exercise() == Some(at),
                learner: &self.lesson.learner,
                bench: &self.bench,
                devices: &self.devices,
                view: &self.view,
                now_ms: self.clock.now_ms,
            };
            work(&mut self.exercise, &context).into()
        });
        self.carry_out(follow_ups)
    }

    /// Calls `work` for the open exercise and performs its follow-ups. Returns false if no exercise is open.
    pub(super) fn in_open_exercise(
        &mut self,
        work: impl FnOnce(&mut ExerciseState, &exercise::Context) -> FollowUps,
    ) -> bool {
        let at = self.mode.exercise();
        self.in_exercise(at, |exercises, context| {
            work(exercises.state_mut(context.exercise), context)
        })
    }

    /// Calls `work` for the lesson and the learner's stage, and performs its follow-ups. Returns false in an empty course, or if `work` returns
    /// `None`.
    pub(super) fn in_lesson<F: Into<Option<FollowUps>>>(
        &mut self,
        work: impl FnOnce(&mut Lesson, &Stage, &lesson::Context) -> F,
    ) -> bool {
        let course = Arc::clone(&self.lesson.course);
        let Some(stage) = course.stages.get(self.lesson.learner.at) else {
            return false;
        };
        let context = lesson::Context {
            mode: &self.mode,
            bench: &self.bench,
            view: &self.view,
            presents: self.presenter.presentation.is_some(),
        };
        let follow_ups = work(&mut self.lesson, stage, &context);
        self.carry_out(follow_ups)
    }

    /// Returns the lesson as it can be read now.
    pub fn reading(&self) -> Reading<'_> {
        Reading::new(
            &self.lesson,
            &lesson::Context {
                mode: &self.mode,
                bench: &self.bench,
                view: &self.view,
                presents: self.presenter.presentation.is_some(),
            },
        )
    }

    /// Calls `work` for the class and performs its follow-ups. Returns false if the learner is in no class, or if `work` returns `None`.
    pub(super) fn in_class<F: Into<Option<FollowUps>>>(
        &mut self,
        work: impl FnOnce(&mut Membership, &App) -> F,
    ) -> bool {
        // The membership reads many other parts, so it is taken out of the `App` meanwhile and gets the rest.
        let Some(mut member) = self.class.take() else {
            return false;
        };
        let follow_ups = work(&mut member, self).into();
        self.class = Some(member);
        self.carry_out(follow_ups)
    }

    /// Calls `work` for the open mystery and performs its follow-ups. Returns false if none is open, or if `work` returns `None`.
    pub(super) fn in_mystery<F: Into<Option<FollowUps>>>(
        &mut self,
        work: impl FnOnce(&mut MysteryRun, &play::Context) -> F,
    ) -> bool {
        let context = play::Context {
            learner: &self.lesson.learner,
            bench: &self.bench,
            now_ms: self.clock.now_ms,
        };
        let mystery = self.mode.mystery_mut();
        let follow_ups = mystery.and_then(|mystery| work(mystery, &context).into());
        self.carry_out(follow_ups)
    }

    /// Performs the follow-ups of a part in their order. Returns false for `None`, with which a part answers an action that is not its own.
    pub(super) fn carry_out(&mut self, follow_ups: impl Into<Option<FollowUps>>) -> bool {
        let Some(follow_ups) = follow_ups.into() else {
            return false;
        };
        for follow_up in follow_ups {
            match follow_up {
                FollowUp::Effect(effect) => self.effects.push(effect),
                FollowUp::Tell(text) => self.tell(&text, false),
                FollowUp::Warn(text) => self.tell(&text, true),
                FollowUp::Keep(id, progress) => {
                    *self.lesson.learner.progress_mut(&id) = *progress;
                    self.effects.push(self.lesson.saved(&id));
                }
                FollowUp::KeepScore(name, points) => {
                    let scores = &mut self.lesson.learner.progress.mysteries;
                    let score = scores.entry(name.clone()).or_default();
                    score.last = points;
                    score.best = score.best.max(points);
                    let change = ProgressChange::Mystery(name, *score);
                    self.effects.push(Effect::Save(change));
                }
                FollowUp::NextHint(id) => {
                    self.lesson.learner.progress_mut(&id).hints += 1;
                    self.effects.push(self.lesson.saved(&id));
                }
                FollowUp::ShowText => self.view.show_text(),
                FollowUp::ShowLesson => self.view.show_lesson(),
                FollowUp::Page(page) => self.view.open_page(page),
                FollowUp::Mark(panel) => self.view.mark(panel),
                FollowUp::Shrink => self.view.expanded = false,
                FollowUp::ClearNotice { warnings } => {
                    let notice = &mut self.view.notice;
                    notice.take_if(|notice| warnings || !notice.warning);
                }
                FollowUp::Unseen => self.view.revision -= 1,
                FollowUp::TextToTop => {
                    self.view.scroll.remove(&Panel::Lesson);
                }
                FollowUp::Card(card) => {
                    self.view.overlay = card;
                    self.view.overlay_scroll = 0;
                }
                FollowUp::Confirm(confirm) => self.view.confirm = Some(confirm),
                FollowUp::View(action) => self.act_on_view(action),
                FollowUp::Reveal => self.bench.comparison.hidden = false,
                // While an exercise is measured, the run has to wait.
                FollowUp::Changed { delayed } => match self.may_move_run() {
                    Ok(()) => self.b_changed(delayed),
                    Err(refusal) => {
                        self.carry_out(refusal.notice());
                    }
                },
                FollowUp::Run(run) => self.start(run),
                FollowUp::Pairs(sides) => {
                    let pairs = self.cue().map_or(0, |cue| cue.pairs);
                    let now_ms = self.clock.now_ms;
                    let command = self.bench.pair(sides, pairs, &self.devices, now_ms);
                    self.send(command);
                }
                FollowUp::Pause if self.bench.run.state.is_moving() => self.pause(),
                FollowUp::Resume if self.bench.run.state.is_paused() => self.pause(),
                FollowUp::Pause | FollowUp::Resume => {}
                FollowUp::Wait => {
                    let (command, made_steps) = self.bench.wait(self.clock.now_ms);
                    self.effects.extend(command.map(Effect::Send));
                    self.presenter.mark_waiting(made_steps);
                }
                FollowUp::Use(device) => self.use_device(&device),
                FollowUp::OrderAnswer => self.order_answer(),
                FollowUp::Go(Place::Stage(at)) => self.leave_for(at),
                FollowUp::Go(Place::Beat(at, beat)) => self.show_beat(at, beat),
                FollowUp::Go(Place::Presentation(at, beat)) => self.begin_presentation(at, beat),
                FollowUp::Go(Place::Own) => self.stop_presenting(),
                FollowUp::Go(Place::Exercise(at)) => self.open_exercise(at),
                FollowUp::Go(Place::Mystery { seed, level }) => self.run_mystery(seed, level),
                FollowUp::Go(Place::Free(config)) => self.run_free(*config),
            }
        }
        true
    }
}
