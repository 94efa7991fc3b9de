//! Decides whether an action is possible now, and if not, why. `App::act` asks before it carries out an action; the keys, the footer
//! and the help ask before they offer one. The code that carries out an action does not ask again.
//!
//! Actions that only change the view are always possible, even if they have no effect.

use std::borrow::Cow;

use super::beats::{BeatState, VoteState};
use super::exercise::measuring::AnswerFile;
use super::lane_view::{LaneMove, LaneView};
use super::member::Link;
use super::part::{FollowUp, FollowUps};
use super::view::Overlay;
use super::{Action, App};
use protocol::Slot;
use protocol::config::{Knob, ValueKind};

/// The reason why an action is not carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The action has no meaning here. Its key is not offered, and no notice appears.
    NothingHere,
    /// The action is not possible now. A notice shows this sentence.
    NotNow(Cow<'static, str>),
}

use Refusal::NothingHere;

/// The reason why a recording cannot be changed.
const RECORDED: &str = "This is a recording: nothing can be changed in it";
/// The reason why a beat that shows kept measurements cannot be changed.
const KEPT: &str =
    "This beat shows an earlier measurement; only a new measurement of the stage can be changed";
/// The reason why B is not compared with A while both are equal.
pub(super) const B_EQUALS_A: &str = "B is still the same as A: change a knob first";

/// Makes a refusal that tells the learner the reason.
pub(super) fn not_now(why: impl Into<Cow<'static, str>>) -> Refusal {
    Refusal::NotNow(why.into())
}

/// Allows an action if it has a meaning here. Otherwise its key is not offered.
pub(super) fn offer_if(has_meaning: bool) -> Result<(), Refusal> {
    if has_meaning {
        Ok(())
    } else {
        Err(NothingHere)
    }
}

/// Refuses an action with a reason if `refused` is true.
pub(super) fn refuse_if(refused: bool, why: &'static str) -> Result<(), Refusal> {
    if refused { Err(not_now(why)) } else { Ok(()) }
}

/// Returns the index `by` places after `at` among `count` items. Refused past either end, where the reason names the item, a `stage` or
/// an `exercise`.
pub(super) fn neighbour(at: usize, by: isize, count: usize, item: &str) -> Result<usize, Refusal> {
    let end = if by > 0 { "last" } else { "first" };
    at.checked_add_signed(by)
        .filter(|to| *to < count)
        .ok_or_else(|| not_now(format!("This is the {end} {item}")))
}

/// Refuses to show B before the vote of a presentation is over, because B is the solution.
fn refuse_before_vote(beat: Option<BeatState>) -> Result<(), Refusal> {
    let vote_pending = beat.is_some_and(|beat| beat.vote != VoteState::Closed);
    refuse_if(
        vote_pending,
        "B is the solution: it is shown after the vote",
    )
}

/// Returns true for an action that leads to a stage or lists the stages. The training of another program belongs to no stage.
fn leads_into_the_course(action: Action) -> bool {
    matches!(
        action,
        Action::Stage(_)
            | Action::NextStage
            | Action::PreviousStage
            | Action::Open(Overlay::Stages)
    )
}

impl Refusal {
    /// Returns the notice with the reason, if the learner gets one.
    pub(super) fn notice(self) -> FollowUps {
        match self {
            NothingHere => Vec::new(),
            Self::NotNow(why) => vec![FollowUp::tell(why)],
        }
    }
}

impl App {
    /// Returns an error with the reason if an action is not possible now.
    pub fn may(&self, action: Action) -> Result<(), Refusal> {
        use Action as A;
        let view = &self.view;
        let class = self.class.as_ref();
        let beat = self.beat();
        let votes = beat.is_some_and(|beat| beat.vote == VoteState::Open);
        if self.mode.watches() && leads_into_the_course(action) {
            return Err(NothingHere);
        }
        if let Some(answer) = self.reading().may(action) {
            return answer;
        }
        match action {
            A::Yes | A::No => offer_if(view.confirm.is_some()),
            // The course.
            A::Choose => self.may_choose(view.selected),
            A::ChooseLine(line) => self.may_choose(line),
            A::Reset => {
                offer_if(self.mode.is_live() && self.presenter.presentation.is_none())?;
                let has_work = self.stage().is_some() || self.mode.is_exercise();
                refuse_if(!has_work, "There is nothing to reset here")
            }
            A::Report => {
                let why = "A report would name the faults; finish the mystery first";
                refuse_if(self.mode.plays_mystery(), why)
            }
            A::OpenEditor => {
                let no_file = self.file_to_edit().is_none();
                refuse_if(no_file, "There is no file to edit here")?;
                refuse_if(!self.mode.is_live(), RECORDED)
            }
            // The text of a stage or an exercise.
            A::Answer(choice) => self.may_answer(choice),
            A::Solution if view.overlay == Some(Overlay::Skipped) => offer_if(!view.fault_shown),
            A::Solution => {
                refuse_before_vote(beat)?;
                let has_solution = self.stage().is_some() || self.mode.plays_mystery();
                offer_if(has_solution && self.mode.is_live())
            }
            A::TurnPage(_) if view.overlay == Some(Overlay::Glossary) => {
                offer_if(!self.lesson.course.readings.is_empty())
            }
            A::TurnPage(_) => offer_if(view.overlay == Some(Overlay::Skipped)),
            // Exercises.
            A::PickOther(_) | A::PickThis => offer_if(self.picking().is_some()),
            A::StopMeasuring => offer_if(self.measuring().is_some()),
            A::LeaveExercise => offer_if(self.mode.is_exercise()),
            // Presentations and the class.
            A::Present | A::PresentFrom(_) => offer_if(self.reading().stage_read().is_some()),
            A::NextBeat => self.may_show_beat_by(1),
            A::PreviousBeat => self.may_show_beat_by(-1),
            A::GoToBeat { stage, .. } => {
                offer_if(beat.is_some() && self.lesson.place_of_number(stage).is_some())
            }
            A::EndPresentation | A::BlankScreen | A::FreezeScreen => offer_if(beat.is_some()),
            A::ShowAnswer => {
                offer_if(votes)?;
                let why = "The vote is open: V closes it, then the answer can be shown";
                refuse_if(self.tally().is_some_and(|tally| tally.open), why)
            }
            A::OpenVote => offer_if(votes && class.is_some_and(|member| member.board.is_some())),
            A::RaiseHand | A::LeaveRoom => {
                offer_if(class.is_some_and(|member| !matches!(member.link, Link::Over(_))))
            }
            A::TakeUp => offer_if(self.call().is_some()),
            A::Vote(choice) => {
                offer_if(choice < self.voting().map_or(0, |question| question.choices.len()))
            }
            // The knobs.
            A::Knobs => self.may_open_knobs(),
            A::KnobRow(_) | A::KnobAt(_) | A::KnobTurn(_) => offer_if(self.can_edit()),
            A::TypeValue => {
                let takes_number = |knob: &Knob| !matches!(knob.kind, ValueKind::Choice(_));
                offer_if(
                    self.knobs_open() && self.bench.comparison.knob().is_some_and(takes_number),
                )
            }
            A::TakeSolution => offer_if(self.can_edit() && self.stage().is_some()),
            // The run.
            A::Pair if self.configs().is_some() => self.may_measure(),
            // In a kernel exercise the key of `Toggle` opens the card of the lanes.
            A::Toggle if self.has_card(Overlay::Lanes) => Err(NothingHere),
            A::Toggle | A::Pair => self.may_compare(),
            A::Pause if !self.mode.is_live() => refuse_if(
                self.mode.watches(),
                "Another program trains: it cannot be paused from here",
            ),
            A::Pause => self.may_pause(),
            A::Restart => self.may_move_run(),
            A::Profile => {
                self.may_move_run()?;
                refuse_if(self.shows_kept_beat(), KEPT)?;
                let nothing_runs = !self.bench.run.state.is_active();
                refuse_if(nothing_runs, "Nothing runs, so there is no step to profile")
            }
            A::SwitchDevice => {
                offer_if(self.mode.is_live() && self.devices.offer().is_some())?;
                self.may_move_run()
            }
            A::InF32 => offer_if(self.mode.is_live() && self.bench.in_f32().is_some()),
            A::ReplayStep | A::ReplayFaster | A::ReplaySlower => {
                offer_if(!self.mode.is_live() && !self.mode.watches())
            }
            A::MarkB => offer_if(self.may_mark_b()),
            A::OpenProfile => {
                offer_if(self.mode.watches() && self.shown_run().trace_file().is_some())
            }
            // What is seen.
            A::Open(overlay) => offer_if(view.overlay == Some(overlay) || self.has_card(overlay)),
            A::Search => {
                offer_if(view.overlay == Some(Overlay::Kernel) || self.has_card(Overlay::Glossary))
            }
            A::Type(_) | A::Erase | A::KeepSearch => offer_if(view.typing()),
            A::Expand => offer_if(view.overlay == Some(Overlay::Kernel) || view.focus.is_some()),
            A::OpenKernel => {
                let run = self.shown_run();
                let slot = run.profiled().map(|(slot, _)| run.slot(slot));
                let has_config = slot.is_some_and(|run| run.description.config.is_some());
                offer_if(has_config && view.selected_kernel(run).is_some())?;
                let hidden = self.reading().withholds("names");
                refuse_if(hidden, "The kernels' names come after your prediction")
            }
            A::Timeline(_) => offer_if(
                self.shown_run().profiled().is_some() && !self.reading().withholds("clocks"),
            ),
            A::Lanes(to) => self.exercise.lanes.may(to),
            // `Reading::may` has answered for these.
            A::Stage(_) | A::NextStage | A::PreviousStage | A::Question | A::Hint => Ok(()),
            A::RangeShift(_) | A::RangeWiden(_) | A::RangeKeep => Ok(()),
            A::Locate | A::NextPointer | A::Evidence => Ok(()),
            // The learner can always quit, and can always change the view.
            A::Quit | A::AskQuit | A::Suspend | A::Close => Ok(()),
            A::FocusNext | A::FocusPrevious | A::Focus(_) | A::Roofline | A::Lesson => Ok(()),
            A::LogAxis | A::Window | A::Smooth | A::Markers | A::Theme | A::Sort => Ok(()),
            A::Scroll(_) | A::ScrollPanel(..) | A::ScrollToTop | A::ScrollToEnd => Ok(()),
        }
    }

    /// Returns true if a watched training still runs and no other training is shown as B yet.
    pub(super) fn may_mark_b(&self) -> bool {
        let run = &self.bench.run;
        self.mode.watches() && !run.state.has_ended() && !run.slot(Slot::B).description.apart
    }

    fn may_choose(&self, line: usize) -> Result<(), Refusal> {
        match self.view.overlay {
            Some(Overlay::Stages) => {
                let needs_engine = line >= self.lesson.course.stages.len();
                let why = "This is a recording: exercises and other runs need a live engine";
                refuse_if(needs_engine && self.mode.is_replay(), why)
            }
            Some(Overlay::Devices) => {
                let chosen = self.devices.known.get(line).ok_or(NothingHere)?;
                if chosen.select == self.devices.using {
                    return Ok(());
                }
                self.may_move_run()
            }
            Some(Overlay::Attempts | Overlay::Skipped) => Ok(()),
            _ => Err(NothingHere),
        }
    }

    /// Refuses answers in a presentation, where the class votes, and while the question is not on the screen.
    fn may_answer(&self, choice: usize) -> Result<(), Refusal> {
        let choices = self.question().map_or(0, |question| question.choices.len());
        offer_if(self.beat().is_none() && choice < choices)?;
        let is_visible = self.view.lesson_visible() && self.reading().asked_here();
        refuse_if(!is_visible, "Read the question first; it is in the lesson")
    }

    fn may_show_beat_by(&self, by: isize) -> Result<(), Refusal> {
        offer_if(self.beat().is_some())?;
        let why = if by > 0 {
            "This was the last beat of the last stage"
        } else {
            "This is the first beat"
        };
        let next = self.presenter.beat_after(by, &self.lesson, &self.mode);
        refuse_if(next.is_none(), why)
    }

    fn may_open_knobs(&self) -> Result<(), Refusal> {
        refuse_before_vote(self.beat())?;
        refuse_if(self.shows_kept_beat(), KEPT)?;
        let Some(exercise) = self.exercise() else {
            refuse_if(self.mode.is_replay(), RECORDED)?;
            return refuse_if(!self.can_edit(), "There is nothing to change here");
        };
        refuse_if(!self.mode.is_live(), "A recorded run cannot be changed")?;
        let why = "This exercise is solved in its file; it has no knobs";
        refuse_if(exercise.configs().is_none(), why)?;
        // Before the answer was judged, the knobs would measure what the learner has to predict.
        let why = "The knobs open after your answer was measured; before, they would give it away";
        let learner = &self.lesson.learner;
        let judged = self
            .open_state()
            .is_some_and(|state| state.is_judged(exercise, learner));
        refuse_if(!judged, why)?;
        self.may_move_run()
    }

    /// Refuses toggles and pairs while B equals A and the knobs are open. While the knobs are closed, both actions open them.
    fn may_compare(&self) -> Result<(), Refusal> {
        refuse_before_vote(self.beat())?;
        refuse_if(self.shows_kept_beat(), KEPT)?;
        let why = "Leave the exercise first: A and B belong to the stage";
        refuse_if(self.mode.is_exercise(), why)?;
        refuse_if(self.mode.is_replay(), RECORDED)?;
        let b_equals_a = self.bench.comparison.b_equals_a();
        let why = "There is nothing to change here";
        refuse_if(b_equals_a && !self.can_edit(), why)?;
        let knobs_shown = self.knobs_open() && self.view.overlay.is_none();
        refuse_if(b_equals_a && knobs_shown, B_EQUALS_A)
    }

    fn may_measure(&self) -> Result<(), Refusal> {
        self.may_move_run()?;
        let state = self.open_state();
        let answered = state.is_some_and(|state| matches!(state.answer, AnswerFile::Given(_)));
        let why = "Answer the questions first; then the runs are measured";
        refuse_if(!answered, why)
    }

    /// Refuses to start, change or move a run that is recorded, or that waits while an exercise is measured.
    pub(super) fn may_move_run(&self) -> Result<(), Refusal> {
        refuse_if(!self.mode.is_live(), RECORDED)?;
        let why = "The stage's run waits until the exercise is measured";
        refuse_if(self.measuring().is_some(), why)
    }

    fn may_pause(&self) -> Result<(), Refusal> {
        self.may_move_run()?;
        refuse_if(self.shows_kept_beat(), KEPT)?;
        let run = &self.bench.run;
        let why = "Pairs run to their end, or until another run takes their place";
        refuse_if(self.bench.pairing(), why)?;
        let is_held = self.open_state().is_some_and(|state| state.holds_run);
        let why = "The run waits for this exercise and goes on after it";
        refuse_if(is_held, why)?;
        offer_if(run.state.is_moving() || run.state.is_paused())
    }

    /// Returns true if this card has something to show now.
    pub(super) fn has_card(&self, overlay: Overlay) -> bool {
        match overlay {
            Overlay::Attempts => {
                let has_begun = self.bench.run.slot(Slot::A).has_begun();
                let presents = self.presenter.presentation.is_some();
                self.can_edit() && !self.bench.comparison.hidden && !presents && has_begun
            }
            Overlay::Glossary => self.lesson.course.glossary.is_some(),
            Overlay::Lanes => self
                .exercise()
                .is_some_and(|exercise| exercise.kernels().is_some()),
            Overlay::Skipped => {
                let presents = self.presenter.presentation.is_some();
                self.mode.is_live() && !presents && !self.lesson.skipped_stages().is_empty()
            }
            _ => true,
        }
    }
}

impl LaneView {
    /// Refuses a move on the card if it leads nowhere.
    fn may(&self, to: LaneMove) -> Result<(), Refusal> {
        offer_if(self.run().is_some())?;
        let leaves_workgroup = matches!(to, LaneMove::Shape | LaneMove::Workgroup);
        let why = "Nothing more of that kind follows in this workgroup";
        refuse_if(!leaves_workgroup && self.after(to).is_none(), why)
    }
}
