//! The learner's part in a class: sharing of results, votes, and the reactions to actions and to news of the class.

use super::{InstructorCall, Link, Membership};
use crate::app::beats::{BeatState, VoteState};
use crate::app::exercise::ExerciseState;
use crate::app::figures::reason_of_answer;
use crate::app::mode::Mode;
use crate::app::mystery::MysteryEnd;
use crate::app::part::{FollowUp, FollowUps, Place};
use crate::app::{Action, App, Effect, Lesson, Overlay};
use crate::class::board::VoteTally;
use crate::class::news::RoomNews;
use crate::class::record::{
    ClassState, InstructorRequest, MysteryResult, Participant, RaceResult, SharedWork, mystery_of,
};
use crate::course::save_file::{Prediction, StageProgress, StageState, letter};
use crate::course::{Exercise, Stage};
use crate::judge::Outcome;
use protocol::{Device, Pair};

/// The time between two checks for something new to share.
const CHECK_MS: u64 = 250;
/// The time that a request may need to appear on the board. Until then it is not repeated.
const ORDER_MS: u64 = 3_000;

/// The other parts of `App` that the class reads.
pub(in crate::app) struct Context<'a> {
    lesson: &'a Lesson,
    mode: &'a Mode,
    stage: Option<&'a Stage>,
    exercise: Option<&'a Exercise>,
    exercise_state: Option<&'a ExerciseState>,
    beat: Option<BeatState>,
    presents: bool,
    card: Option<Overlay>,
    device: Option<&'a Device>,
    /// In milliseconds since the program began.
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

    /// Returns the instructor's call. `None` if the learner has followed it.
    pub fn call(&self) -> Option<InstructorCall> {
        self.class.as_ref()?.call(&self.class_context())
    }

    /// Returns the stage whose vote is open and in which the learner has not voted yet.
    pub fn voting(&self) -> Option<&Stage> {
        match self.call() {
            Some(InstructorCall::Vote { at, .. }) => self.lesson.course.stages.get(at),
            _ => None,
        }
    }

    /// Returns the votes on the presented stage. `None` before its vote.
    pub fn tally(&self) -> Option<&VoteTally> {
        self.class.as_ref()?.tally(self.stage()?)
    }

    /// Also shows the answer on the page of the class.
    pub(in crate::app) fn order_answer(&mut self) {
        let Some(reason) = reason_of_answer(self) else {
            return;
        };
        self.in_class(|member, context| {
            if !member.me.instructor {
                return None;
            }
            let stage = context.stage?.id.clone();
            let order = InstructorRequest::ShowAnswer { stage, reason };
            Some(member.order(order, context.now_ms))
        });
    }
}

impl VoteTally {
    /// Describes the vote in words: while it is open, how many have voted; then the votes for each choice, in both rounds.
    pub fn in_words(&self) -> String {
        let (voted, of) = (self.voted, self.of);
        if self.open {
            let again = if self.round > 1 { " once more" } else { "" };
            return format!("{voted} of {of} have voted{again}");
        }
        let choices: Vec<String> = (0..self.choices.len())
            .map(|at| {
                let votes: Vec<String> = self.votes(at).iter().map(u32::to_string).collect();
                format!("{} {}", letter(at), votes.join(", then "))
            })
            .collect();
        format!("{}: {voted} of {of}", choices.join(" · "))
    }
}

impl Context<'_> {
    fn progress(&self, id: &str) -> StageProgress {
        self.lesson.study.progress.stage(id)
    }

    /// Returns the id of the open stage, exercise or mystery. Empty in a free run.
    fn task(&self) -> String {
        match (self.mode, self.exercise, self.stage) {
            (Mode::Mystery(mystery), ..) => format!("mystery {}", mystery.name()),
            (_, Some(exercise), _) => exercise.id.clone(),
            (_, None, Some(stage)) => stage.id.clone(),
            (_, None, None) => String::new(),
        }
    }

    /// Returns the part of a stage's or exercise's progress that is shared.
    fn shared(&self, id: &str, progress: &StageProgress) -> SharedWork {
        let mut checks = None;
        if self.stage.is_some_and(|stage| stage.id == id)
            && let Some(report) = &self.lesson.study.report
        {
            let required = report.lines.iter().filter(|line| !line.optional);
            let met = required
                .clone()
                .filter(|line| line.outcome == Outcome::Passed);
            checks = Some([met.count() as u32, required.count() as u32]);
        }
        SharedWork {
            state: progress.state.into_str().to_owned(),
            vote: match progress.prediction {
                Some(Prediction::Choice { choice, .. }) => Some(choice),
                _ => None,
            },
            range: progress.estimate.map(|(low, high)| [low, high]),
            measured: progress.measured,
            ratio: progress.ratio,
            checks,
            hints: progress.hints,
        }
    }

    /// Returns the result of the open race: of a mystery that has ended, or of a kernel that passed its check. A mystery that was
    /// solved or given up before has no result, because its faults are known.
    fn race_result(&self) -> Option<RaceResult> {
        if let Mode::Mystery(run) = self.mode {
            if !run.first {
                return None;
            }
            let (points, seconds) = match run.end? {
                MysteryEnd::Solved { points, seconds } => (points, seconds),
                MysteryEnd::GivenUp => (0, run.seconds(self.now_ms)),
            };
            let judged = |pair: &&Pair| points > 0 && pair.done && run.paired_with_good;
            let pair = self.lesson.study.pair.as_ref().filter(judged);
            if points > 0 && pair.is_none() {
                return None;
            }
            let mystery = MysteryResult {
                points,
                seconds,
                configurations: run.configurations(),
            };
            return Some(RaceResult {
                ratio: pair.and_then(|pair| Some([pair.ratio, pair.low?, pair.high?])),
                mystery: Some(mystery),
            });
        }
        let report = self.exercise_state?.report.as_ref()?;
        if !report.passed {
            return None;
        }
        let speedups = report
            .facts
            .files
            .iter()
            .filter_map(|file| file.time.as_ref()?.against_starter);
        let slowest = speedups.min_by(|a, b| a.low.total_cmp(&b.low))?;
        Some(RaceResult {
            ratio: Some([slowest.ratio, slowest.low, slowest.high]),
            mystery: None,
        })
    }
}

impl Membership {
    /// Carries out an action about the class. `None` for any other action.
    pub(in crate::app) fn update(
        &mut self,
        action: Action,
        context: &Context,
    ) -> Option<FollowUps> {
        Some(match action {
            Action::RaiseHand => {
                self.raised = !self.raised;
                let text = if self.raised {
                    "Your hand is raised; press the key again to lower it"
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

    /// Returns the instructor's call. `None` if the learner has followed it, or while the class is closed or not joined.
    fn call(&self, context: &Context) -> Option<InstructorCall> {
        if self.link != Link::Joined || self.class.closed {
            return None;
        }
        if let Some((id, vote)) = self.class.open_vote()
            && let Some(at) = context.lesson.place_of(id)
        {
            let again = vote.round > 0;
            let cast = |number| self.ballots.contains_key(&number);
            if !vote.number().is_some_and(cast) && self.predicted_in_round(context).is_none() {
                return Some(InstructorCall::Vote { at, again });
            }
        }
        let taken = |task: &&String| self.taken.as_ref() == Some(task);
        let here = context.task();
        if let Some(task) = self.class.race.as_ref().filter(|task| !taken(task)) {
            let done = self.races.contains_key(task) || *task == here;
            return (!done).then(|| InstructorCall::Race(task.clone()));
        }
        let offer = self.class.offer.as_ref().filter(|id| !taken(id))?;
        let at = context.lesson.place_of(offer)?;
        let passed = context.progress(offer).state == StageState::Passed;
        (!passed && here != *offer).then_some(InstructorCall::Stage(at))
    }

    /// FollowUps the instructor's call.
    fn take_up(&mut self, context: &Context) -> Option<FollowUp> {
        let place = match self.call(context)? {
            InstructorCall::Vote { .. } => return Some(FollowUp::Card(Some(Overlay::Vote))),
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

    /// Casts a vote. A vote in the first round is also the learner's prediction for the stage.
    fn vote(&mut self, choice: usize, context: &Context) -> FollowUps {
        let Some(InstructorCall::Vote { at, again }) = self.call(context) else {
            return Vec::new();
        };
        let stage = &context.lesson.course.stages[at];
        if let Some(number) = self.class.open_vote().and_then(|(_, vote)| vote.number()) {
            self.ballots.insert(number, choice);
        }
        let text = format!("Your vote: {}", letter(choice));
        let mut follows = vec![FollowUp::Card(None), FollowUp::tell(text)];
        let mut known = context.progress(&stage.id);
        if !again && known.prediction.is_none() {
            let right = choice == stage.prediction.answer;
            known.prediction = Some(Prediction::Choice { choice, right });
            known.state = known.state.max(StageState::Predicted);
            follows.push(FollowUp::keep(&stage.id, known));
        }
        follows
    }

    /// Returns the number of the open round and the learner's prediction, if it was made during this first round and so counts as a vote.
    fn predicted_in_round(&self, context: &Context) -> Option<(u64, usize)> {
        let (id, vote) = self.class.open_vote()?;
        let (number, before) = self.round?;
        let counts = vote.round == 0 && !before && vote.number() == Some(number);
        match context.progress(id).prediction {
            Some(Prediction::Choice { choice, .. }) if counts => Some((number, choice)),
            _ => None,
        }
    }

    /// When a new round opens, notes whether the learner had predicted before it.
    fn note_round(&mut self, context: &Context) {
        let open = self.class.open_vote();
        let Some((id, number)) = open.and_then(|(id, vote)| Some((id, vote.number()?))) else {
            self.round = None;
            return;
        };
        if self.round.is_none_or(|(known, _)| known != number) {
            self.round = Some((number, context.progress(id).prediction.is_some()));
        }
    }

    /// Handles news of the class.
    pub(in crate::app) fn on_news(&mut self, news: RoomNews, context: &Context) -> FollowUps {
        let begins = self.link != Link::Joined;
        let notice = match news {
            RoomNews::Class(class) => {
                let name = |class: &ClassState| class.renamed.get(&self.me.id).cloned();
                let renamed = name(&class).filter(|now| name(&self.class).as_ref() != Some(now));
                let text = if class.closed {
                    let closed = "The room is closed; you go on alone".to_owned();
                    (begins || !self.class.closed).then_some(closed)
                } else if let Some(name) = renamed {
                    Some(format!(
                        "Another participant has your name; the board shows you as {name}"
                    ))
                } else if matches!(self.link, Link::Lost(_)) {
                    let text = "Connected to the room again; what was missed is shared now";
                    Some(text.to_owned())
                } else {
                    begins.then(|| "You are in the room".to_owned())
                };
                self.link = Link::Joined;
                self.class = *class;
                text.map(FollowUp::Tell)
            }
            RoomNews::Board(board) => {
                self.link = Link::Joined;
                self.board = Some(board);
                begins.then(|| FollowUp::tell("You are presenting to the room"))
            }
            RoomNews::Lost { why, again } => {
                let reason = crate::sanitize::line(&why);
                let text = format!("The room: {reason}; you go on alone");
                self.link = if again {
                    Link::Lost(reason)
                } else {
                    Link::Over(reason)
                };
                Some(FollowUp::Warn(text))
            }
        };
        self.note_round(context);
        let mut follows = Vec::from_iter(notice);
        // The card of a vote closes when the vote is over.
        let votes = matches!(self.call(context), Some(InstructorCall::Vote { .. }));
        if context.card == Some(Overlay::Vote) && !votes {
            follows.push(FollowUp::Card(None));
        }
        follows
    }

    /// Shares what has changed since the last check. This runs at every tick.
    pub(in crate::app) fn share(&mut self, context: &Context) -> FollowUps {
        let now_ms = context.now_ms;
        let over = matches!(self.link, Link::Over(_));
        if over || now_ms.saturating_sub(self.checked_ms) < CHECK_MS {
            return Vec::new();
        }
        if self.me.instructor {
            return self.lead(context);
        }
        if context.presents {
            return Vec::new();
        }
        self.checked_ms = now_ms;
        if let Some((number, choice)) = self.predicted_in_round(context) {
            self.ballots.entry(number).or_insert(choice);
        }
        let task = context.task();
        if self.here.0 != task {
            self.here = (task.clone(), now_ms);
        }
        if let Some(mut result) = context.race_result() {
            if let Some(older) = self.races.get(&task) {
                result.keep(older);
            }
            self.races.insert(task, result);
        }
        let record = self.participant(context);
        // The time spent at a place grows all the time. It alone is no reason to share.
        let comparable = Participant {
            here_s: self.shared.here_s,
            ..record.clone()
        };
        if comparable == self.shared && !self.shared.id.is_empty() {
            return Vec::new();
        }
        self.shared = record.clone();
        vec![FollowUp::Effect(Effect::Share(Box::new(record)))]
    }

    /// Returns the votes on a stage. `None` before its vote.
    fn tally(&self, stage: &Stage) -> Option<&VoteTally> {
        let votes = &self.board.as_ref()?.votes;
        votes.iter().find(|tally| tally.stage == stage.number)
    }

    /// Opens the vote when the presenter first comes to its beat, and closes it when the presenter goes to the next beat.
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

    /// Closes the open vote of the beat, or opens its second round after the discussion.
    fn vote_of_beat(&mut self, context: &Context) -> FollowUps {
        let Some(stage) = context.stage else {
            return Vec::new();
        };
        if !self.me.instructor {
            return Vec::new();
        }
        let order = if self.tally(stage).is_some_and(|tally| tally.open) {
            InstructorRequest::CloseVote
        } else {
            InstructorRequest::OpenVote(stage.id.clone())
        };
        self.order(order, context.now_ms)
    }

    /// Sends a request of the instructor. A request is not repeated before the board had time to show it.
    fn order(&mut self, order: InstructorRequest, now_ms: u64) -> FollowUps {
        let last = self.ordered.as_ref();
        let again = last.is_some_and(|(last, at)| *last == order && now_ms < at + ORDER_MS);
        if again || self.board.is_none() {
            return Vec::new();
        }
        self.ordered = Some((order.clone(), now_ms));
        vec![FollowUp::Effect(Effect::Order(order))]
    }

    /// Returns the record that the learner shares.
    fn participant(&self, context: &Context) -> Participant {
        let device = match context.device {
            None => String::new(),
            Some(device) if device.name.is_empty() => device.kind.clone(),
            Some(device) => format!("{}: {}", device.kind, device.name),
        };
        let all = &context.lesson.study.progress.stages;
        Participant {
            id: self.me.id.clone(),
            name: self.me.name.clone(),
            device,
            here: self.here.0.clone(),
            here_s: context.now_ms.saturating_sub(self.here.1) / 1000,
            raised: self.raised,
            stages: all
                .iter()
                .filter(|(_, progress)| progress.state != StageState::New)
                .map(|(id, progress)| (id.clone(), context.shared(id, progress)))
                .collect(),
            ballots: self.ballots.clone(),
            races: self.races.clone(),
            ..Participant::default()
        }
    }
}
