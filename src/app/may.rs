//! Whether an action is possible now, and if not, why. `App::act` asks before it carries an action out; the keys, the footer and the
//! help ask before they offer one. So the code behind an action does not ask again.
//!
//! Some actions are always possible, even where they change nothing: those that only move within what is seen.

use std::borrow::Cow;

use super::beats::{BeatState, VoteState};
use super::exercise::measuring::AnswerFile;
use super::lane_view::{LaneMove, LaneView};
use super::member::Link;
use super::part::{Follow, Follows};
use super::view::Overlay;
use super::{Action, App};
use protocol::Slot;
use protocol::config::{Knob, ValueKind};

/// Why an action is not carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It means nothing here: its key is not offered, or means something else, and nothing is said.
    NothingHere,
    /// It is not possible now: what the learner is told when they ask for it.
    NotNow(Cow<'static, str>),
}

use Refusal::NothingHere;

/// Nothing of a recording can be changed.
const RECORDED: &str = "This is a recording: nothing can be changed in it";
/// A beat that was left shows what it showed then.
const KEPT: &str =
    "This beat shows what was measured before; a new measurement of the stage can be changed";
/// Nothing can be compared before B was changed.
pub(super) const SAME: &str = "B is still the same as A: change a knob first";

pub(super) fn not_now(why: impl Into<Cow<'static, str>>) -> Refusal {
    Refusal::NotNow(why.into())
}

/// Possible where this holds; elsewhere it means nothing.
pub(super) fn here(holds: bool) -> Result<(), Refusal> {
    if holds { Ok(()) } else { Err(NothingHere) }
}

/// Possible unless this holds; then the learner is told why not.
pub(super) fn unless(refused: bool, why: &'static str) -> Result<(), Refusal> {
    if refused { Err(not_now(why)) } else { Ok(()) }
}

/// The place `by` places from `at` among `of` stages or exercises.
pub(super) fn neighbour(at: usize, by: isize, of: usize, what: &str) -> Result<usize, Refusal> {
    let to = at.checked_add_signed(by).filter(|to| *to < of);
    let end = if by > 0 { "last" } else { "first" };
    to.ok_or_else(|| not_now(format!("This is the {end} {what}")))
}

/// Before the vote of a presentation nothing shows B: it is the solution.
fn after_vote(beat: Option<BeatState>) -> Result<(), Refusal> {
    let ahead = beat.is_some_and(|beat| beat.vote != VoteState::Closed);
    unless(ahead, "B is the solution: it is shown after the vote")
}

impl Refusal {
    /// What the learner is told.
    pub(super) fn told(self) -> Follows {
        match self {
            NothingHere => Vec::new(),
            Self::NotNow(why) => vec![Follow::tell(why)],
        }
    }
}

impl App {
    /// Whether an action is possible now.
    pub fn may(&self, action: Action) -> Result<(), Refusal> {
        use Action as A;
        let (view, class) = (&self.view, self.class.as_ref());
        let beat = self.beat();
        let votes = beat.is_some_and(|beat| beat.vote == VoteState::Open);
        if let Some(said) = self.reading().may(action) {
            return said;
        }
        match action {
            A::Yes | A::No => here(view.confirm.is_some()),
            // The course.
            A::Choose => self.may_choose(view.selected),
            A::ChooseLine(line) => self.may_choose(line),
            A::Reset => {
                here(self.mode.is_live() && self.presenter.presentation.is_none())?;
                let work = self.stage().is_some() || self.mode.is_exercise();
                unless(!work, "There is nothing to reset here")
            }
            A::Report => {
                let why = "A report would name the faults; finish the mystery first";
                unless(self.mode.plays_mystery(), why)
            }
            A::OpenEditor => {
                let no_file = self.file_to_edit().is_none();
                unless(no_file, "There is no file to edit here")?;
                unless(!self.mode.is_live(), RECORDED)
            }
            // The text of a stage or an exercise.
            A::Answer(choice) => self.may_answer(choice),
            A::Solution if view.overlay == Some(Overlay::Skipped) => here(!view.fault_shown),
            A::Solution => {
                after_vote(beat)?;
                let known = self.stage().is_some() || self.mode.plays_mystery();
                here(known && self.mode.is_live())
            }
            A::TurnPage(_) if view.overlay == Some(Overlay::Glossary) => {
                here(!self.lesson.course.readings.is_empty())
            }
            A::TurnPage(_) => here(view.overlay == Some(Overlay::Skipped)),
            // Exercises.
            A::PickOther(_) | A::PickThis => here(self.picking().is_some()),
            A::StopMeasuring => here(self.measuring().is_some()),
            A::LeaveExercise => here(self.mode.is_exercise()),
            // An audience and a room.
            A::Present | A::PresentFrom(_) => here(self.reading().stage_read().is_some()),
            A::NextBeat => self.may_show_beat_by(1),
            A::PreviousBeat => self.may_show_beat_by(-1),
            A::GoToBeat { stage, .. } => {
                here(beat.is_some() && self.lesson.place_of_number(stage).is_some())
            }
            A::EndPresentation | A::BlankScreen | A::FreezeScreen => here(beat.is_some()),
            A::ShowAnswer => {
                here(votes)?;
                let why = "The vote is open: V closes it, then the answer can be shown";
                unless(self.tally().is_some_and(|tally| tally.open), why)
            }
            A::OpenVote => here(votes && class.is_some_and(|it| it.board.is_some())),
            A::RaiseHand | A::LeaveRoom => {
                here(class.is_some_and(|it| !matches!(it.link, Link::Over(_))))
            }
            A::TakeUp => here(self.call().is_some()),
            A::Vote(choice) => {
                here(choice < self.voting().map_or(0, |question| question.choices.len()))
            }
            // The knobs.
            A::Knobs => self.may_open_knobs(),
            A::KnobRow(_) | A::KnobAt(_) | A::KnobTurn(_) => here(self.can_edit()),
            A::TypeValue => {
                let number = |knob: &Knob| !matches!(knob.kind, ValueKind::Choice(_));
                here(self.knobs_open() && self.bench.comparison.knob().is_some_and(number))
            }
            A::TakeSolution => here(self.can_edit() && self.stage().is_some()),
            // The run.
            A::Pair if self.configs().is_some() => self.may_measure(),
            // In an exercise about kernels its key shows threads.
            A::Toggle if self.has_card(Overlay::Lanes) => Err(NothingHere),
            A::Toggle | A::Pair => self.may_compare(),
            A::Pause if !self.mode.is_live() => unless(
                self.mode.watches(),
                "Another program trains: it cannot be paused from here",
            ),
            A::Pause => self.may_pause(),
            A::Restart => self.may_move_run(),
            A::Profile => {
                self.may_move_run()?;
                unless(self.shows_kept_beat(), KEPT)?;
                let rests = !self.bench.run.state.is_active();
                unless(rests, "Nothing runs that could be profiled")
            }
            A::SwitchDevice => {
                here(self.mode.is_live() && self.devices.offer().is_some())?;
                self.may_move_run()
            }
            A::InF32 => here(self.mode.is_live() && self.bench.in_f32().is_some()),
            A::ReplayStep | A::ReplayFaster | A::ReplaySlower => {
                here(!self.mode.is_live() && !self.mode.watches())
            }
            A::MarkB => here(self.mode.watches()),
            // What is seen.
            A::Open(overlay) => here(view.overlay == Some(overlay) || self.has_card(overlay)),
            A::Search => {
                here(view.overlay == Some(Overlay::Kernel) || self.has_card(Overlay::Glossary))
            }
            A::Type(_) | A::Erase | A::KeepSearch => here(view.typing()),
            A::Expand => here(view.overlay == Some(Overlay::Kernel) || view.focus.is_some()),
            A::OpenKernel => {
                let run = self.shown_run();
                let slot = run.profiled().map(|(slot, _)| run.slot(slot));
                let known = slot.is_some_and(|run| run.description.config.is_some());
                here(known && view.selected_kernel(run).is_some())?;
                let hidden = self.reading().withholds("names");
                unless(hidden, "The kernels' names come after your prediction")
            }
            A::Timeline(_) => {
                here(self.shown_run().profiled().is_some() && !self.reading().withholds("clocks"))
            }
            A::Lanes(to) => self.exercise.lanes.may(to),
            // `Reading::may` has answered for these.
            A::Stage(_) | A::NextStage | A::PreviousStage | A::Question | A::Hint => Ok(()),
            A::RangeShift(_) | A::RangeWiden(_) | A::RangeKeep => Ok(()),
            A::Locate | A::NextPointer | A::Evidence => Ok(()),
            // The program can always be left, and what is seen always be moved and drawn in another way.
            A::Quit | A::AskQuit | A::Suspend | A::Close => Ok(()),
            A::FocusNext | A::FocusPrevious | A::Focus(_) | A::Roofline | A::Lesson => Ok(()),
            A::LogAxis | A::Window | A::Smooth | A::Markers | A::Theme | A::Sort => Ok(()),
            A::Scroll(_) | A::ScrollPanel(..) | A::ScrollToTop | A::ScrollToEnd => Ok(()),
        }
    }

    fn may_choose(&self, line: usize) -> Result<(), Refusal> {
        match self.view.overlay {
            Some(Overlay::Stages) => {
                let live = line >= self.lesson.course.stages.len();
                let why = "This is a recording: exercises and other runs need a live engine";
                unless(live && self.mode.is_replay(), why)
            }
            Some(Overlay::Devices) => {
                let chosen = self.devices.known.get(line).ok_or(NothingHere)?;
                let stays = chosen.select == self.devices.using;
                if stays { Ok(()) } else { self.may_move_run() }
            }
            Some(Overlay::Attempts | Overlay::Skipped) => Ok(()),
            _ => Err(NothingHere),
        }
    }

    /// In a presentation the room votes; the presenter's keys answer nothing.
    fn may_answer(&self, choice: usize) -> Result<(), Refusal> {
        let choices = self.question().map_or(0, |question| question.choices.len());
        here(self.beat().is_none() && choice < choices)?;
        let read = self.view.lesson_visible() && self.reading().asked_here();
        unless(!read, "Read the question first; it is in the lesson")
    }

    fn may_show_beat_by(&self, by: isize) -> Result<(), Refusal> {
        here(self.beat().is_some())?;
        let why = match by > 0 {
            true => "This was the last beat of the last stage",
            false => "This is the first beat",
        };
        let next = self.presenter.beat_after(by, &self.lesson, &self.mode);
        unless(next.is_none(), why)
    }

    fn may_open_knobs(&self) -> Result<(), Refusal> {
        after_vote(self.beat())?;
        unless(self.shows_kept_beat(), KEPT)?;
        let Some(exercise) = self.exercise() else {
            unless(self.mode.is_replay(), RECORDED)?;
            return unless(!self.can_edit(), "There is nothing to change here");
        };
        unless(!self.mode.is_live(), "A recorded run cannot be changed")?;
        let why = "This exercise is solved in its file; it has no knobs";
        unless(exercise.configs().is_none(), why)?;
        // Before its answer was judged, the knobs would measure what is to be predicted.
        let why = "The knobs open after your answer was measured; before, they would give it away";
        let study = &self.lesson.study;
        let judged = self
            .open_state()
            .is_some_and(|it| it.is_judged(exercise, study));
        unless(!judged, why)?;
        self.may_move_run()
    }

    /// Toggling and pairing need another B than A; they open the knobs where these are closed.
    fn may_compare(&self) -> Result<(), Refusal> {
        after_vote(self.beat())?;
        unless(self.shows_kept_beat(), KEPT)?;
        let why = "That belongs to the stage; go back to it first";
        unless(self.mode.is_exercise(), why)?;
        unless(self.mode.is_replay(), RECORDED)?;
        let same = self.bench.comparison.same();
        unless(same && !self.can_edit(), "There is nothing to change here")?;
        let shown = self.knobs_open() && self.view.overlay.is_none();
        unless(same && shown, SAME)
    }

    fn may_measure(&self) -> Result<(), Refusal> {
        self.may_move_run()?;
        let state = self.open_state();
        let given = state.is_some_and(|state| matches!(state.answer, AnswerFile::Given(_)));
        let why = "Say what you expect first; then the runs are measured";
        unless(!given, why)
    }

    /// A run that is shown from a recording cannot be moved, nor one that waits for a measurement.
    pub(super) fn may_move_run(&self) -> Result<(), Refusal> {
        unless(!self.mode.is_live(), RECORDED)?;
        let why = "The stage's run waits until the exercise is measured";
        unless(self.measuring().is_some(), why)
    }

    fn may_pause(&self) -> Result<(), Refusal> {
        self.may_move_run()?;
        unless(self.shows_kept_beat(), KEPT)?;
        let run = &self.bench.run;
        let why = "Pairs run to their end, or until another run takes their place";
        unless(self.bench.pairing(), why)?;
        let held = self.open_state().is_some_and(|state| state.holds_run);
        let why = "The run waits for this exercise and goes on after it";
        unless(held, why)?;
        here(run.state.is_moving() || run.state.is_paused())
    }

    /// Whether there is something to open in this card.
    pub(super) fn has_card(&self, overlay: Overlay) -> bool {
        match overlay {
            Overlay::Attempts => {
                let begun = self.bench.run.slot(Slot::A).has_begun();
                let own = self.presenter.presentation.is_none();
                self.can_edit() && !self.bench.comparison.hidden && own && begun
            }
            Overlay::Glossary => self.lesson.course.glossary.is_some(),
            Overlay::Lanes => self.exercise().is_some_and(|it| it.kernels().is_some()),
            Overlay::Skipped => {
                let own = self.mode.is_live() && self.presenter.presentation.is_none();
                own && !self.lesson.skipped_stages().is_empty()
            }
            _ => true,
        }
    }
}

impl LaneView {
    /// Whether the card can look there.
    fn may(&self, to: LaneMove) -> Result<(), Refusal> {
        here(self.run().is_some())?;
        let why = "There is none in this workgroup, or none after this step";
        let other = matches!(to, LaneMove::Shape | LaneMove::Workgroup);
        unless(!other && self.after(to).is_none(), why)
    }
}
