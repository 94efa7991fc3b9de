//! How the learner takes part: what is shared and when, and what an action or the room's news does.

use super::{InstructorCall, Link, Membership};
use crate::app::beats::{BeatState, VoteState};
use crate::app::exercise::ExerciseState;
use crate::app::figures::reason_of_answer;
use crate::app::mode::Mode;
use crate::app::mystery::MysteryEnd;
use crate::app::part::{FollowUp, FollowUps, Place};
use crate::app::{Action, App, Effect, Lesson, Overlay};
use crate::class::board::VoteTally;
use crate::class::link::RoomNews;
use crate::class::record::{
    ClassState, InstructorRequest, MysteryResult, Participant, RaceResult, SharedWork, mystery_of,
};
use crate::course::save_file::{Prediction, StageProgress, StageState, letter};
use crate::course::{Exercise, Question, Stage};
use crate::judge::Outcome;
use protocol::{Device, Pair};

/// Time between two checks for something new to share.
const LOOK_MS: u64 = 250;
/// How long an order may take to appear on the board.
const ORDER_MS: u64 = 3_000;

/// What the class reads of other parts.
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

    /// What the instructor asks for, unless the learner has done it.
    pub fn call(&self) -> Option<InstructorCall> {
        self.class.as_ref()?.call(&self.class_context())
    }

    /// The question whose vote is open and that the learner may still answer.
    pub fn voting(&self) -> Option<&Question> {
        match self.call()? {
            InstructorCall::Vote { at, .. } => Some(&self.lesson.course.stages.get(at)?.prediction),
            InstructorCall::Ask { .. } => self.class.as_ref()?.asked.as_ref(),
            _ => None,
        }
    }

    /// The vote on the stage that is presented, as far as there was one.
    pub fn tally(&self) -> Option<&VoteTally> {
        self.class.as_ref()?.tally(self.stage()?)
    }

    /// Shows the answer on the room's page, too.
    pub(in crate::app) fn order_answer(&mut self) {
        let reason = reason_of_answer(self);
        self.in_class(|member, context| {
            let stage = context.stage.map(|stage| stage.id.clone());
            let (stage, reason) = stage.filter(|_| member.me.instructor).zip(reason)?;
            let order = InstructorRequest::ShowAnswer { stage, reason };
            Some(member.order(order, context.now_ms))
        });
    }
}

impl Context<'_> {
    fn progress(&self, id: &str) -> StageProgress {
        self.lesson.learner.progress.stage(id)
    }

    /// What is open, by its id: a stage, an exercise, a mystery; nothing in a free run.
    fn task(&self) -> String {
        match (self.mode, self.exercise, self.stage) {
            (Mode::Mystery(mystery), ..) => format!("mystery {}", mystery.name()),
            (_, Some(exercise), _) => exercise.id.clone(),
            (_, None, Some(stage)) => stage.id.clone(),
            (_, None, None) => String::new(),
        }
    }

    /// What is shared of a stage or an exercise.
    fn shared(&self, id: &str, it: &StageProgress) -> SharedWork {
        let report = self.lesson.learner.report.as_ref();
        let here = self.stage.is_some_and(|stage| stage.id == id);
        let checks = report.filter(|_| here).map(|report| {
            let deciding = report.lines.iter().filter(|line| !line.optional);
            let (met, open): (Vec<_>, Vec<_>) =
                deciding.partition(|line| line.outcome == Outcome::Passed);
            [met.len() as u32, (met.len() + open.len()) as u32]
        });
        SharedWork {
            state: it.state.into_str().to_owned(),
            vote: match it.prediction {
                Some(Prediction::Choice { choice, .. }) => Some(choice),
                _ => None,
            },
            range: it.estimate.map(|(low, high)| [low, high]),
            measured: it.measured,
            ratio: it.ratio,
            checks,
            hints: it.hints,
        }
    }

    /// The result of what is open, where that can be raced: a mystery that ended, a kernel that passed. A mystery that was solved
    /// or given up before counts no more, because its faults are known.
    fn race_result(&self) -> Option<RaceResult> {
        if let Mode::Mystery(run) = self.mode {
            let (points, seconds) = match run.end.filter(|_| run.first)? {
                MysteryEnd::Solved { points, seconds } => (points, seconds),
                MysteryEnd::GivenUp => (0, run.seconds(self.now_ms)),
            };
            let judged = |pair: &&Pair| points > 0 && pair.done && run.paired_with_good;
            let pair = self.lesson.learner.pair.as_ref().filter(judged);
            if points > 0 && pair.is_none() {
                return None;
            }
            let mystery = MysteryResult {
                points,
                seconds,
                configurations: run.configurations(),
            };
            return Some(RaceResult {
                ratio: pair.and_then(|it| Some([it.ratio, it.low?, it.high?])),
                mystery: Some(mystery),
            });
        }
        let report = self.exercise_state?.report.as_ref();
        let files = report.filter(|it| it.passed)?.facts.files.iter();
        let times = files.filter_map(|it| it.time.as_ref()?.against_starter);
        let slowest = times.min_by(|a, b| a.low.total_cmp(&b.low))?;
        Some(RaceResult {
            ratio: Some([slowest.ratio, slowest.low, slowest.high]),
            mystery: None,
        })
    }
}

impl Membership {
    /// Carries out an action about the room.
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

    /// What the instructor asks for, unless the learner has done it.
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
            let cast = |number| self.ballots.contains_key(&number);
            let cast =
                vote.number().is_some_and(cast) || self.predicted_in_round(context).is_some();
            if let Some(call) = call.filter(|_| !cast) {
                return Some(call);
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
        let call = self.call(context);
        let stage = match call {
            Some(InstructorCall::Vote { at, again }) => {
                Some((&context.lesson.course.stages[at], again))
            }
            Some(InstructorCall::Ask { .. }) => None,
            _ => return Vec::new(),
        };
        if let Some(number) = self.class.open_vote().and_then(|(_, it)| it.number()) {
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

    /// The prediction of the stage whose vote is open, where it was made while the first round was open: it is the vote.
    fn predicted_in_round(&self, context: &Context) -> Option<(u64, usize)> {
        let (id, vote) = self.class.open_vote()?;
        let (number, before) = self.round?;
        let counts = vote.round == 0 && !before && vote.number() == Some(number);
        match context.progress(id).prediction {
            Some(Prediction::Choice { choice, .. }) if counts => Some((number, choice)),
            _ => None,
        }
    }

    /// Notes whether the learner had predicted before the round that is open.
    fn note_round(&mut self, context: &Context) {
        let open = self.class.open_vote();
        let round = open.and_then(|(id, vote)| Some((id, vote.number()?)));
        self.round = round.map(|(id, number)| {
            let known = self.round.filter(|(known, _)| *known == number);
            known.unwrap_or_else(|| (number, context.progress(id).prediction.is_some()))
        });
    }

    /// Returns true if a round that was open ends in this state of the class without the learner's vote, which was given.
    fn came_late(&self, class: &ClassState) -> bool {
        let Some((id, vote)) = self.class.open_vote() else {
            return false;
        };
        let number = vote.number();
        let over = class
            .votes
            .get(id)
            .is_some_and(|now| !now.open && now.number() == number);
        let given = number.is_some_and(|number| self.ballots.contains_key(&number));
        let counted = class.counted.get(&self.me.id).map(|it| it.round);
        over && given && counted != number
    }

    /// Takes news of the room.
    pub(in crate::app) fn on_news(&mut self, news: RoomNews, context: &Context) -> FollowUps {
        let begins = self.link != Link::Joined;
        let (said, warning) = match news {
            RoomNews::Class(class) => {
                let name = |class: &ClassState| class.renamed.get(&self.me.id).cloned();
                let renamed = name(&class).filter(|now| name(&self.class).as_ref() != Some(now));
                let counted = |class: &ClassState| class.counted.get(&self.me.id).copied();
                let new = counted(&class).filter(|now| counted(&self.class) != Some(*now));
                let said = if class.closed {
                    let closed = "The room is closed; you go on alone".to_owned();
                    (begins || !self.class.closed).then_some(closed)
                } else if let Some(name) = renamed {
                    let text = "Another participant has your name; the board shows you as";
                    Some(format!("{text} {name}"))
                } else if let Some(new) = new.filter(|_| !begins) {
                    Some(format!("Your vote {} is counted", letter(new.choice)))
                } else if self.came_late(&class) {
                    Some("Your vote came after the end of its round and does not count".to_owned())
                } else if matches!(self.link, Link::Lost(_)) {
                    let text = "Connected to the room again; what was missed is shared now";
                    Some(text.to_owned())
                } else {
                    begins.then(|| "You are in the room".to_owned())
                };
                (self.link, self.class) = (Link::Joined, *class);
                let open = self.class.open_vote();
                let asked = open.and_then(|(id, _)| self.class.questions.get(id));
                self.asked = asked.map(|it| Question {
                    prompt: it.prompt.clone(),
                    choices: it.choices.clone(),
                    answer: 0,
                    explanation: String::new(),
                });
                (said, false)
            }
            RoomNews::Board(board) => {
                (self.link, self.board) = (Link::Joined, Some(board));
                let said = "You are presenting to the room".to_owned();
                (begins.then_some(said), false)
            }
            RoomNews::Lost { why, again } => {
                let why = crate::sanitize::line(&why);
                let said = format!("The room: {why}; you go on alone");
                let link = if again { Link::Lost } else { Link::Over };
                self.link = link(why);
                (Some(said), true)
            }
        };
        self.note_round(context);
        let said = said.map(if warning {
            FollowUp::Warn
        } else {
            FollowUp::Tell
        });
        // The vote on the card may be over.
        let votes = matches!(
            self.call(context),
            Some(InstructorCall::Vote { .. } | InstructorCall::Ask { .. })
        );
        let over = context.card == Some(Overlay::Vote) && !votes;
        let close = over.then_some(FollowUp::Card(None));
        [said, close].into_iter().flatten().collect()
    }

    /// Shares what changed, at a tick of the clock.
    pub(in crate::app) fn share(&mut self, context: &Context) -> FollowUps {
        let now_ms = context.now_ms;
        let over = matches!(self.link, Link::Over(_));
        if over || now_ms.saturating_sub(self.looked_ms) < LOOK_MS {
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
                result.keep(older);
            }
            self.races.insert(task, result);
        }
        let record = self.participant(context);
        let same = Participant {
            here_s: self.shared.here_s,
            ..record.clone()
        };
        if same == self.shared && !self.shared.id.is_empty() {
            return Vec::new();
        }
        self.shared = record.clone();
        vec![FollowUp::Effect(Effect::Share(Box::new(record)))]
    }

    /// The vote on a stage, as far as there was one.
    fn tally(&self, stage: &Stage) -> Option<&VoteTally> {
        let mut votes = self.board.as_ref()?.votes.iter();
        votes.find(|it| it.stage == stage.number)
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
        let Some(stage) = context.stage.filter(|_| self.me.instructor) else {
            return Vec::new();
        };
        let order = if self.tally(stage).is_some_and(|it| it.open) {
            InstructorRequest::CloseVote
        } else {
            InstructorRequest::OpenVote(stage.id.clone())
        };
        self.order(order, context.now_ms)
    }

    /// Gives an order; the same one not again before the board can show it.
    fn order(&mut self, order: InstructorRequest, now_ms: u64) -> FollowUps {
        let last = self.ordered.as_ref();
        let again = last.is_some_and(|(last, at)| *last == order && now_ms < at + ORDER_MS);
        if again || self.board.is_none() {
            return Vec::new();
        }
        self.ordered = Some((order.clone(), now_ms));
        vec![FollowUp::Effect(Effect::Order(order))]
    }

    /// Everything that is shared.
    fn participant(&self, context: &Context) -> Participant {
        let device = context.device.map(|it| match it.name.is_empty() {
            true => it.kind.clone(),
            false => format!("{}: {}", it.kind, it.name),
        });
        let known = context.lesson.learner.progress.stages.iter();
        let known = known.filter(|(_, it)| it.state != StageState::New);
        Participant {
            id: self.me.id.clone(),
            name: self.me.name.clone(),
            device: device.unwrap_or_default(),
            here: self.here.0.clone(),
            here_s: context.now_ms.saturating_sub(self.here.1) / 1000,
            raised: self.raised,
            stages: known
                .map(|(id, it)| (id.clone(), context.shared(id, it)))
                .collect(),
            ballots: self.ballots.clone(),
            races: self.races.clone(),
            ..Participant::default()
        }
    }
}
