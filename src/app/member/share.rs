//! How the learner takes part: what is shared and when, and what an action or the room's news changes.

use std::collections::BTreeMap;

use super::{InstructorCall, Link, Membership};
use crate::app::beats::{BeatState, VoteState};
use crate::app::exercise::ExerciseState;
use crate::app::figures::reason_of_answer;
use crate::app::mode::Mode;
use crate::app::mystery::{MysteryEnd, MysteryRun};
use crate::app::part::{FollowUp, FollowUps, Place};
use crate::app::{Action, App, Effect, Lesson, Overlay};
use crate::class::board::VoteTally;
use crate::class::link::{RoomError, RoomNews};
use crate::class::record::{
    ClassState, InstructorRequest, MysteryResult, Participant, RaceResult, SharedWork, mystery_of,
};
use crate::course::save_file::{Prediction, StageProgress, StageState, letter};
use crate::course::{Exercise, Question, Stage};
use crate::judge::Outcome;
use protocol::Device;

/// The time between two checks for something new to share, in milliseconds.
const LOOK_MS: u64 = 250;
/// The time that an order may take to appear on the board, in milliseconds.
const ORDER_MS: u64 = 3_000;

/// The state of other parts that the membership reads.
pub(in crate::app) struct Context<'a> {
    lesson: &'a Lesson,
    mode: &'a Mode,
    stage: Option<&'a Stage>,
    exercise: Option<&'a Exercise>,
    exercise_state: Option<&'a ExerciseState>,
    beat: Option<BeatState>,
    /// True if a stage is presented.
    presents: bool,
    card: Option<Overlay>,
    device: Option<&'a Device>,
    /// The time, in milliseconds since the program began.
    now_ms: u64,
}

impl App {
    pub(in crate::app) fn class_context(&self) -> Context<'_> {
        Context {
            lesson: &self.lesson,
            mode: &self.mode,
            stage: self.stage(),
            exercise: self.exercise(),
            exercise_state: self.open_state(),
            beat: self.beat(),
            presents: self.presenter.presentation.is_some(),
            card: self.view.overlay,
            device: self.shown_run().device(),
            now_ms: self.clock.now_ms,
        }
    }

    /// Returns the call of the class; `None` if there is none or the learner has followed it.
    pub fn call(&self) -> Option<InstructorCall> {
        self.class.as_ref()?.call(&self.class_context())
    }

    /// Returns the question whose vote is open and that the learner may still answer.
    pub fn voting(&self) -> Option<&Question> {
        match self.call()? {
            InstructorCall::Vote { at, .. } => Some(&self.lesson.course.stages.get(at)?.prediction),
            InstructorCall::Ask { .. } => self.class.as_ref()?.asked.as_ref(),
            _ => None,
        }
    }

    /// Returns the vote on the stage that is presented; `None` if there was none.
    pub fn tally(&self) -> Option<&VoteTally> {
        self.class.as_ref()?.tally(self.stage()?)
    }

    /// Asks the room to show the answer of the presented stage on its page, too.
    pub(in crate::app) fn order_answer(&mut self) {
        let reason = reason_of_answer(self);
        self.in_class(|member, context| {
            let (stage, reason) = context.stage.zip(reason)?;
            let stage = stage.id.clone();
            let order = InstructorRequest::ShowAnswer { stage, reason };
            let is_instructor = member.me.instructor;
            is_instructor.then(|| member.order(order, context.now_ms))
        });
    }
}

impl Context<'_> {
    fn progress(&self, id: &str) -> StageProgress {
        self.lesson.learner.progress.stage(id)
    }

    /// Returns the id of the open stage, exercise or mystery; empty in a free run.
    fn task(&self) -> String {
        match (self.mode, self.exercise, self.stage) {
            (Mode::Mystery(mystery), ..) => format!("mystery {}", mystery.name()),
            (_, Some(exercise), _) => exercise.id.clone(),
            (_, None, Some(stage)) => stage.id.clone(),
            (_, None, None) => String::new(),
        }
    }

    /// Returns what is shared of a stage or an exercise.
    fn shared(&self, id: &str, progress: &StageProgress) -> SharedWork {
        SharedWork {
            state: progress.state.into_str().to_owned(),
            vote: match progress.prediction {
                Some(Prediction::Choice { choice, .. }) => Some(choice),
                _ => None,
            },
            range: progress.estimate.map(|(low, high)| [low, high]),
            measured: progress.measured,
            ratio: progress.ratio,
            checks: self.checks_met(id),
            hints: progress.hints,
        }
    }

    /// Returns the number of checks that are met, and of all that decide; `None` for a stage that is not open or not judged.
    fn checks_met(&self, id: &str) -> Option<[u32; 2]> {
        let report = self.lesson.learner.report.as_ref()?;
        let deciding = report.lines.iter().filter(|line| !line.optional);
        let met = deciding
            .clone()
            .filter(|line| line.outcome == Outcome::Passed);
        let counts = [met.count() as u32, deciding.count() as u32];
        (self.stage?.id == id).then_some(counts)
    }

    /// Returns the result of the open task: of a mystery that ended, or of a kernel that passed. `None` if there is none.
    fn race_result(&self) -> Option<RaceResult> {
        if let Mode::Mystery(run) = self.mode {
            return self.mystery_result(run);
        }
        let report = self.exercise_state?.report.as_ref()?;
        if !report.passed {
            return None;
        }
        let files = report.facts.files.iter();
        let times = files.filter_map(|file| file.time.as_ref()?.against_starter);
        let slowest = times.min_by(|a, b| a.low.total_cmp(&b.low))?;
        Some(RaceResult {
            ratio: Some([slowest.ratio, slowest.low, slowest.high]),
            mystery: None,
        })
    }

    /// Returns the result of a mystery. One that was solved or given up before counts no more, because its faults are known.
    fn mystery_result(&self, run: &MysteryRun) -> Option<RaceResult> {
        if !run.first {
            return None;
        }
        let (points, seconds) = match run.end? {
            MysteryEnd::Solved { points, seconds } => (points, seconds),
            MysteryEnd::GivenUp => (0, run.seconds(self.now_ms)),
        };
        let pair = self.lesson.learner.pair.as_ref();
        let judged = pair.filter(|pair| pair.done && run.paired_with_good);
        if points > 0 && judged.is_none() {
            return None;
        }
        let solved = if points > 0 { judged } else { None };
        Some(RaceResult {
            ratio: solved.and_then(|pair| Some([pair.ratio, pair.low?, pair.high?])),
            mystery: Some(MysteryResult {
                points,
                seconds,
                configurations: run.configurations(),
            }),
        })
    }
}

impl Membership {
    /// Carries out an action about the room; `None` if it is none.
    pub(in crate::app) fn update(
        &mut self,
        action: Action,
        context: &Context,
    ) -> Option<FollowUps> {
        Some(match action {
            Action::RaiseHand => {
                self.raised = !self.raised;
                let text = if self.raised {
                    "Your hand is raised; the same key lowers it"
                } else {
                    "Your hand is down"
                };
                vec![FollowUp::tell(text)]
            }
            Action::LeaveRoom => {
                self.link = Link::Over("you left it".to_owned());
                self.raised = false;
                let text = "You left the room; nothing more is shared";
                let leave = FollowUp::Effect(Effect::LeaveRoom);
                vec![FollowUp::Card(None), leave, FollowUp::tell(text)]
            }
            Action::OpenVote => self.vote_of_beat(context),
            Action::TakeUp => Vec::from_iter(self.take_up(context)),
            Action::Vote(choice) => self.vote(choice, context),
            _ => return None,
        })
    }

    /// Returns the call of the class; `None` if there is none or the learner has followed it.
    fn call(&self, context: &Context) -> Option<InstructorCall> {
        if self.link != Link::Joined || self.class.closed {
            return None;
        }
        if let Some((id, vote)) = self.class.open_vote() {
            let again = vote.round > 0;
            let call = match context.lesson.place_of(id) {
                Some(at) => Some(InstructorCall::Vote { at, again }),
                None => self.asked.as_ref().map(|_| InstructorCall::Ask { again }),
            };
            let has_voted = vote
                .number()
                .is_some_and(|number| self.ballots.contains_key(&number));
            if call.is_some() && !has_voted && self.predicted_in_round(context).is_none() {
                return call;
            }
        }
        let here = context.task();
        if self.class.race.is_some() && self.class.race != self.taken {
            let task = self.class.race.as_ref()?;
            let is_done = self.races.contains_key(task) || *task == here;
            return (!is_done).then(|| InstructorCall::Race(task.clone()));
        }
        let offer = self.class.offer.as_ref()?;
        let at = context.lesson.place_of(offer)?;
        let is_passed = context.progress(offer).state == StageState::Passed;
        let is_followed = is_passed || here == *offer || self.taken.as_ref() == Some(offer);
        (!is_followed).then_some(InstructorCall::Stage(at))
    }

    /// Follows the call of the class.
    fn take_up(&mut self, context: &Context) -> Option<FollowUp> {
        let place = match self.call(context)? {
            InstructorCall::Vote { .. } | InstructorCall::Ask { .. } => {
                return Some(FollowUp::Card(Some(Overlay::Vote)));
            }
            InstructorCall::Stage(at) => {
                self.taken = self.class.offer.clone();
                Place::Stage(at)
            }
            InstructorCall::Race(task) => {
                let exercise = context.lesson.place_of_exercise(&task);
                let mystery = mystery_of(&task);
                self.taken = Some(task);
                match mystery {
                    Some((seed, level)) => Place::Mystery { seed, level },
                    None => Place::Exercise(exercise?),
                }
            }
        };
        Some(FollowUp::Go(place))
    }

    /// Takes a vote. The first one is the prediction of the stage.
    fn vote(&mut self, choice: usize, context: &Context) -> FollowUps {
        let stage = match self.call(context) {
            Some(InstructorCall::Vote { at, again }) => {
                Some((&context.lesson.course.stages[at], again))
            }
            Some(InstructorCall::Ask { .. }) => None,
            _ => return Vec::new(),
        };
        if let Some(number) = self.class.open_round() {
            self.ballots.insert(number, choice);
        }
        let text = format!("Your vote {} is on its way to the room", letter(choice));
        let mut follows = vec![FollowUp::Card(None), FollowUp::tell(text)];
        let Some((stage, again)) = stage else {
            return follows;
        };
        let mut known = context.progress(&stage.id);
        if !again && known.prediction.is_none() {
            let right = choice == stage.prediction.answer;
            known.prediction = Some(Prediction::Choice { choice, right });
            known.state = known.state.max(StageState::Predicted);
            follows.push(FollowUp::keep(&stage.id, known));
        }
        follows
    }

    /// Returns the prediction of the stage whose vote is open as a ballot, with the number of the round; `None` if it was not made while
    /// the first round was open.
    fn predicted_in_round(&self, context: &Context) -> Option<(u64, usize)> {
        let (id, vote) = self.class.open_vote()?;
        let (number, was_made_before) = self.round?;
        if vote.round > 0 || was_made_before || vote.number() != Some(number) {
            return None;
        }
        match context.progress(id).prediction {
            Some(Prediction::Choice { choice, .. }) => Some((number, choice)),
            _ => None,
        }
    }

    /// Notes whether the learner had predicted before the round that is open.
    fn note_round(&mut self, context: &Context) {
        let number = self.class.open_round();
        if self.round.map(|(known, _)| known) == number {
            return;
        }
        let open = self.class.open_vote().zip(number);
        self.round = open.map(|((id, _), number)| {
            let is_predicted = context.progress(id).prediction.is_some();
            (number, is_predicted)
        });
    }

    /// Returns true if a round that was open ends in this state of the class without the learner's vote, which was given.
    fn came_late(&self, class: &ClassState) -> bool {
        let Some((id, vote)) = self.class.open_vote() else {
            return false;
        };
        let Some(number) = vote.number() else {
            return false;
        };
        let is_over = class
            .votes
            .get(id)
            .is_some_and(|now| !now.open && now.number() == Some(number));
        let counted = class.counted.get(&self.me.id);
        let is_counted = counted.is_some_and(|counted| counted.round == number);
        is_over && self.ballots.contains_key(&number) && !is_counted
    }

    /// Returns what the learner is told of the new state of the class. `begins` is true if the room was not joined before.
    fn told_of(&self, class: &ClassState, begins: bool) -> Option<String> {
        let before = &self.class;
        let id = &self.me.id;
        let renamed = class.renamed.get(id);
        let counted = class.counted.get(id);
        if class.closed {
            let is_new = begins || !before.closed;
            return is_new.then(|| "The room is closed; you go on alone".to_owned());
        }
        if let Some(name) = renamed
            && before.renamed.get(id) != renamed
        {
            return Some(format!(
                "Another participant has your name; the board shows you as {name}"
            ));
        }
        if let Some(counted) = counted
            && !begins
            && before.counted.get(id) != Some(counted)
        {
            return Some(format!("Your vote {} is counted", letter(counted.choice)));
        }
        let said = if self.came_late(class) {
            "Your vote came after the end of its round and does not count"
        } else if matches!(self.link, Link::Lost(_)) {
            "Connected to the room again; what was missed is shared now"
        } else if begins {
            "You are in the room"
        } else {
            return None;
        };
        Some(said.to_owned())
    }

    /// Takes the new state of the class.
    fn take_class(&mut self, class: ClassState) {
        self.link = Link::Joined;
        self.class = class;
        let open = self.class.open_vote();
        let asked = open.and_then(|(id, _)| self.class.questions.get(id));
        self.asked = asked.map(|asked| Question {
            prompt: asked.prompt.clone(),
            choices: asked.choices.clone(),
            answer: 0,
            explanation: String::new(),
        });
    }

    /// Takes news of the room.
    pub(in crate::app) fn on_news(&mut self, news: RoomNews, context: &Context) -> FollowUps {
        let begins = self.link != Link::Joined;
        let said = match news {
            RoomNews::Class(class) => {
                let said = self.told_of(&class, begins);
                self.take_class(*class);
                said.map(FollowUp::Tell)
            }
            RoomNews::Board(board) => {
                self.link = Link::Joined;
                self.board = Some(board);
                begins.then(|| FollowUp::tell("You are presenting to the room"))
            }
            RoomNews::Lost(error) => {
                let why = crate::sanitize::line(&error.to_string());
                let said = format!("The room: {why}; you go on alone");
                self.link = match error {
                    RoomError::Later(_) => Link::Lost(why),
                    RoomError::Never(_) => Link::Over(why),
                };
                Some(FollowUp::Warn(said))
            }
        };
        self.note_round(context);
        let call = self.call(context);
        let is_voting = matches!(
            call,
            Some(InstructorCall::Vote { .. } | InstructorCall::Ask { .. })
        );
        // The vote on the card may be over.
        let is_over = context.card == Some(Overlay::Vote) && !is_voting;
        let close = is_over.then_some(FollowUp::Card(None));
        [said, close].into_iter().flatten().collect()
    }

    /// Shares what changed, at a tick of the clock.
    pub(in crate::app) fn share(&mut self, context: &Context) -> FollowUps {
        let now_ms = context.now_ms;
        let is_over = matches!(self.link, Link::Over(_));
        if is_over || now_ms.saturating_sub(self.looked_ms) < LOOK_MS {
            return Vec::new();
        }
        if self.me.instructor {
            return self.lead(context);
        }
        if context.presents {
            return Vec::new();
        }
        self.looked_ms = now_ms;
        if let Some((number, choice)) = self.predicted_in_round(context) {
            self.ballots.entry(number).or_insert(choice);
        }
        let task = context.task();
        if self.here.0 != task {
            self.here = (task.clone(), now_ms);
        }
        if let Some(mut result) = context.race_result() {
            if let Some(older) = self.races.get(&task) {
                result.choose_between(older);
            }
            self.races.insert(task, result);
        }
        let record = self.participant(context);
        let same = Participant {
            open_s: self.shared.open_s,
            ..record.clone()
        };
        if same == self.shared && !self.shared.id.is_empty() {
            return Vec::new();
        }
        self.shared = record.clone();
        vec![FollowUp::Effect(Effect::Share(Box::new(record)))]
    }

    /// Returns the vote on a stage; `None` if there was none.
    fn tally(&self, stage: &Stage) -> Option<&VoteTally> {
        let mut votes = self.board.as_ref()?.votes.iter();
        votes.find(|vote| vote.stage == stage.number)
    }

    /// Opens the vote when its beat is reached for the first time, and closes it when that beat is left for the next.
    fn lead(&mut self, context: &Context) -> FollowUps {
        let Some((beat, stage)) = context.beat.zip(context.stage) else {
            return Vec::new();
        };
        let order = match (beat.vote, self.tally(stage)) {
            (VoteState::Open, None) => InstructorRequest::OpenVote(stage.id.clone()),
            (VoteState::Closed, Some(tally)) if tally.open => InstructorRequest::CloseVote,
            _ => return Vec::new(),
        };
        self.order(order, context.now_ms)
    }

    /// At the beat of the vote: closes it, or opens it once more after the discussion.
    fn vote_of_beat(&mut self, context: &Context) -> FollowUps {
        let Some(stage) = context.stage else {
            return Vec::new();
        };
        if !self.me.instructor {
            return Vec::new();
        }
        let order = if self.tally(stage).is_some_and(|vote| vote.open) {
            InstructorRequest::CloseVote
        } else {
            InstructorRequest::OpenVote(stage.id.clone())
        };
        self.order(order, context.now_ms)
    }

    /// Gives an order, unless it was just given and the board cannot show it yet.
    fn order(&mut self, order: InstructorRequest, now_ms: u64) -> FollowUps {
        let is_under_way = match &self.ordered {
            Some((last, at_ms)) => *last == order && now_ms < at_ms + ORDER_MS,
            None => false,
        };
        if is_under_way || self.board.is_none() {
            return Vec::new();
        }
        self.ordered = Some((order.clone(), now_ms));
        vec![FollowUp::Effect(Effect::Order(order))]
    }

    /// Returns everything that is shared.
    fn participant(&self, context: &Context) -> Participant {
        let device = match context.device {
            Some(device) if device.name.is_empty() => device.kind.clone(),
            Some(device) => format!("{}: {}", device.kind, device.name),
            None => String::new(),
        };
        let mut stages = BTreeMap::new();
        for (id, progress) in &context.lesson.learner.progress.stages {
            if progress.state != StageState::New {
                stages.insert(id.clone(), context.shared(id, progress));
            }
        }
        Participant {
            id: self.me.id.clone(),
            name: self.me.name.clone(),
            device,
            open_task: self.here.0.clone(),
            open_s: context.now_ms.saturating_sub(self.here.1) / 1000,
            raised: self.raised,
            stages,
            ballots: self.ballots.clone(),
            races: self.races.clone(),
            ..Participant::default()
        }
    }
}
