//! Whether an action is possible now, and if not, why. `App::act` asks before it carries an action out; the keys, the footer and the
//! help ask before they offer one. So the code behind an action does not ask again.
//!
//! Some actions are always possible, even where they change nothing: those that only move within what is seen.

use std::borrow::Cow;

use super::beats::VoteState;
use super::estimate::RangeSteps;
use super::exercise::measuring::AnswerFile;
use super::lane_view::LaneMove;
use super::member::Link;
use super::study::Activity;
use super::view::Overlay;
use super::{Action, App};
use crate::course::Stage;
use crate::panel::Panel;
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

fn not_now(why: impl Into<Cow<'static, str>>) -> Refusal {
    Refusal::NotNow(why.into())
}

/// Possible where this holds; elsewhere it means nothing.
fn here(holds: bool) -> Result<(), Refusal> {
    if holds { Ok(()) } else { Err(NothingHere) }
}

/// Possible unless this holds; then the learner is told why not.
fn unless(refused: bool, why: &'static str) -> Result<(), Refusal> {
    if refused { Err(not_now(why)) } else { Ok(()) }
}

/// The place `by` places from `at` among `of` stages or exercises.
pub(super) fn neighbour(at: usize, by: isize, of: usize, what: &str) -> Result<usize, Refusal> {
    let to = at.checked_add_signed(by).filter(|to| *to < of);
    let end = if by > 0 { "last" } else { "first" };
    to.ok_or_else(|| not_now(format!("This is the {end} {what}")))
}

impl App {
    /// Whether an action is possible now.
    pub fn may(&self, action: Action) -> Result<(), Refusal> {
        use Action as A;
        let (view, class) = (&self.view, self.class.as_ref());
        match action {
            A::Yes | A::No => here(view.confirm.is_some()),
            // The course.
            A::Stage(number) => self.may_go_to(number),
            A::NextStage => self.may_go_by(1),
            A::PreviousStage => self.may_go_by(-1),
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
            A::Question => self.may_ask(),
            A::RangeShift(by) => self.may_set_range(by, RangeSteps::shift),
            A::RangeWiden(by) => self.may_set_range(by, RangeSteps::widen),
            A::RangeKeep => {
                here(self.estimates())?;
                let none = self.lesson.study.range.is_none();
                unless(none, "No range yet: the arrow keys place one on the scale")
            }
            A::Hint => self.may_hint(),
            A::Solution if view.overlay == Some(Overlay::Skipped) => here(!view.fault_shown),
            A::Solution => self.may_see_solution(),
            A::Locate => {
                here(self.asks_where() && view.focus.is_some_and(|it| it != Panel::Lesson))
            }
            A::NextPointer => here(self.activity() == Some(Activity::Evidence)),
            A::Evidence => {
                let named = self.stage().is_some_and(|stage| !stage.evidence.is_empty());
                here(named && !self.asks_where())
            }
            A::TurnPage(by) if view.overlay.is_none() => self.may_read_on(by),
            A::TurnPage(_) if view.overlay == Some(Overlay::Glossary) => {
                here(!self.lesson.course.readings.is_empty())
            }
            A::TurnPage(_) => here(view.overlay == Some(Overlay::Skipped)),
            // Exercises.
            A::PickOther(_) | A::PickThis => here(self.picking().is_some()),
            A::StopMeasuring => here(self.measuring().is_some()),
            A::LeaveExercise => here(self.mode.is_exercise()),
            // An audience and a room.
            A::Present | A::PresentFrom(_) => here(self.stage_read().is_some()),
            A::NextBeat => self.may_show_beat_by(1),
            A::PreviousBeat => self.may_show_beat_by(-1),
            A::GoToBeat { stage, .. } => {
                here(self.beat().is_some() && self.place_of_number(stage).is_some())
            }
            A::EndPresentation | A::BlankScreen | A::FreezeScreen => here(self.beat().is_some()),
            A::ShowAnswer => {
                here(self.votes())?;
                let why = "The vote is open: V closes it, then the answer can be shown";
                unless(self.tally().is_some_and(|tally| tally.open), why)
            }
            A::OpenVote => here(self.votes() && class.is_some_and(|it| it.board.is_some())),
            A::RaiseHand | A::LeaveRoom => {
                here(class.is_some_and(|it| !matches!(it.link, Link::Over(_))))
            }
            A::TakeUp => here(self.call().is_some()),
            A::Vote(choice) => {
                let choices = |stage: &Stage| stage.prediction.choices.len();
                here(choice < self.voting().map_or(0, choices))
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
            A::Pause if !self.mode.is_live() => Ok(()),
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
            A::ReplayStep | A::ReplayFaster | A::ReplaySlower => here(!self.mode.is_live()),
            // What is seen.
            A::Open(overlay) => here(view.overlay == Some(overlay) || self.has_card(overlay)),
            A::Search => {
                here(view.overlay == Some(Overlay::Kernel) || self.has_card(Overlay::Glossary))
            }
            A::Type(_) | A::Erase | A::KeepSearch => here(view.typing()),
            A::Expand => here(view.overlay == Some(Overlay::Kernel) || view.focus.is_some()),
            A::OpenKernel => {
                let slot = self.profiled().map(|(slot, _)| self.shown_run().slot(slot));
                let known = slot.is_some_and(|run| run.description.config.is_some());
                here(known && self.selected_kernel().is_some())?;
                let hidden = self.withholds("names");
                unless(hidden, "The kernels' names come after your prediction")
            }
            A::Timeline(_) => here(self.profiled().is_some() && !self.withholds("clocks")),
            A::Lanes(to) => self.may_move_lanes(to),
            A::Scroll(lines) if self.turns_pages(lines) => self.may_read_on(lines.signum()),
            // The program can always be left, and what is seen always be moved and drawn in another way.
            A::Quit | A::AskQuit | A::Suspend | A::Close => Ok(()),
            A::FocusNext | A::FocusPrevious | A::Focus(_) | A::Roofline | A::Lesson => Ok(()),
            A::LogAxis | A::Window | A::Smooth | A::Markers | A::Theme | A::Sort => Ok(()),
            A::Scroll(_) | A::ScrollPanel(..) | A::ScrollToTop | A::ScrollToEnd => Ok(()),
        }
    }

    /// The stage whose text is read: no exercise stands in its place.
    pub(super) fn stage_read(&self) -> Option<&Stage> {
        self.stage().filter(|_| self.mode.reads_stage())
    }

    /// What the learner does next in that stage.
    pub fn activity(&self) -> Option<Activity> {
        let stage = self.stage_read();
        stage.map(|stage| self.lesson.study.activity(stage))
    }

    fn may_go_to(&self, number: u32) -> Result<(), Refusal> {
        let Some(at) = self.place_of_number(number) else {
            return Err(not_now(format!("There is no stage {number}")));
        };
        let there = at == self.lesson.study.at && self.mode.reads_stage();
        here(!there || self.beat().is_some() || self.view.overlay.is_some())
    }

    fn may_go_by(&self, by: isize) -> Result<(), Refusal> {
        let (course, at) = (&self.lesson.course, self.lesson.study.at);
        if let Some(at) = self.mode.exercise() {
            return neighbour(at, by, course.exercises.len(), "exercise").map(drop);
        }
        here(!course.stages.is_empty())?;
        // After the last stage comes the summary; what is no stage is left for the one before.
        match self.stage() {
            Some(_) if by < 0 => neighbour(at, by, course.stages.len(), "stage").map(drop),
            _ => Ok(()),
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
        let read = self.view.lesson_visible() && self.asked_here();
        unless(!read, "Read the question first; it is in the lesson")
    }

    fn may_ask(&self) -> Result<(), Refusal> {
        let stage = self.stage_read().ok_or(NothingHere)?;
        here(match self.asked_on() {
            Some(_) => !(self.view.lesson_visible() && self.asked_here()),
            None => self.lesson.study.can_ask_again(stage),
        })
    }

    /// Whether the figure of the stage that is read is to be guessed.
    pub fn estimates(&self) -> bool {
        self.stage_read()
            .is_some_and(|stage| self.lesson.study.estimate(stage).is_some())
    }

    fn may_set_range(&self, by: i32, change: fn(&mut RangeSteps, i32)) -> Result<(), Refusal> {
        here(self.estimates())?;
        let mut range = self.lesson.study.range;
        range.iter_mut().for_each(|range| change(range, by));
        let stays = range.is_some() && range == self.lesson.study.range;
        unless(stays, "The range goes no further that way")
    }

    fn may_hint(&self) -> Result<(), Refusal> {
        let (shown, hints) = self.hints();
        here(hints > 0 && !self.mode.is_replay())?;
        unless(shown == hints, "All hints are shown")?;
        // The second and third hints of a stage nearly give the answer to the prediction.
        let predicted = |stage| self.lesson.study.predicted(stage);
        let open = self.stage_read().is_some_and(|stage| !predicted(stage));
        let why = "The next hint comes once you have answered the question";
        unless(open && shown > 0, why)
    }

    fn may_see_solution(&self) -> Result<(), Refusal> {
        self.may_show_b()?;
        let known = self.stage().is_some() || self.mode.plays_mystery();
        here(known && self.mode.is_live())
    }

    /// Before the vote of a presentation nothing shows B: it is the solution.
    fn may_show_b(&self) -> Result<(), Refusal> {
        let beat = self.beat();
        let ahead = beat.is_some_and(|beat| beat.vote != VoteState::Closed);
        unless(ahead, "B is the solution: it is shown after the vote")
    }

    fn may_read_on(&self, by: i32) -> Result<(), Refusal> {
        here(self.stage_read().is_some())?;
        let more = self.lines_left(by) > 0 || self.page_after(by).is_some();
        unless(!more && by < 0, "This is the first page for now")?;
        unless(!more, "This is the last page for now")
    }

    fn may_show_beat_by(&self, by: isize) -> Result<(), Refusal> {
        here(self.beat().is_some())?;
        let why = match by > 0 {
            true => "This was the last beat of the last stage",
            false => "This is the first beat",
        };
        unless(self.beat_after(by).is_none(), why)
    }

    /// Whether the beat on the screen is that of the vote.
    fn votes(&self) -> bool {
        self.beat().is_some_and(|beat| beat.vote == VoteState::Open)
    }

    fn may_open_knobs(&self) -> Result<(), Refusal> {
        self.may_show_b()?;
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
        self.may_show_b()?;
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
            Overlay::Attempts => self.has_attempts(),
            Overlay::Glossary => self.lesson.course.glossary.is_some(),
            Overlay::Lanes => self.exercise().is_some_and(|it| it.kernels().is_some()),
            Overlay::Skipped => {
                let own = self.mode.is_live() && self.presenter.presentation.is_none();
                own && !self.skipped_stages().is_empty()
            }
            _ => true,
        }
    }

    fn may_move_lanes(&self, to: LaneMove) -> Result<(), Refusal> {
        here(self.exercise.lanes.run().is_some())?;
        let why = "There is none in this workgroup, or none after this step";
        let other = matches!(to, LaneMove::Shape | LaneMove::Workgroup);
        unless(!other && self.exercise.lanes.after(to).is_none(), why)
    }
}
