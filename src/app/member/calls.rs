//! Follows the class: its votes, its offers, its notices and the presenter's orders.

use super::{InstructorCall, Link, Membership};
use crate::app::beats::VoteState;
use crate::app::figures::reason_of_answer;
use crate::app::part::{FollowUp, FollowUps, Place};
use crate::app::{Action, App, Effect, Overlay};
use crate::class::board::VoteTally;
use crate::class::link::{RoomError, RoomNews};
use crate::class::record::{ClassState, InstructorRequest, mystery_of};
use crate::course::save_file::{Prediction, StageState, letter};
use crate::course::{Question, Stage};

/// The time that an order may take to appear on the board, in milliseconds.
const ORDER_MS: u64 = 3_000;

impl App {
    /// Returns the call of the class. `None` if there is none, or if the learner has followed it.
    pub fn call(&self) -> Option<InstructorCall> {
        self.class.as_ref()?.call(self)
    }

    /// Returns the question of the open vote. `None` once the learner has answered it.
    pub fn voting(&self) -> Option<&Question> {
        match self.call()? {
            InstructorCall::Vote { at, .. } => Some(&self.lesson.course.stages.get(at)?.prediction),
            InstructorCall::Ask { .. } => self.class.as_ref()?.asked.as_ref(),
            _ => None,
        }
    }

    /// Returns the vote on the stage that is presented. `None` if there was none.
    pub fn tally(&self) -> Option<&VoteTally> {
        self.class.as_ref()?.tally(self.stage()?)
    }

    /// Asks the room to show the answer of the presented stage on its page.
    pub(in crate::app) fn order_answer(&mut self) {
        let reason = reason_of_answer(self);
        self.in_class(|member, app| {
            if !member.me.instructor {
                return None;
            }
            let stage = app.stage()?.id.clone();
            let order = InstructorRequest::ShowAnswer {
                stage,
                reason: reason?,
            };
            Some(member.order(order, app.clock.now_ms))
        });
    }
}

impl Membership {
    /// Carries out an action on the class. `None` for any other action.
    pub(in crate::app) fn update(&mut self, action: Action, app: &App) -> Option<FollowUps> {
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
                vec![
                    FollowUp::Card(None),
                    FollowUp::Effect(Effect::LeaveRoom),
                    FollowUp::tell("You left the room; nothing more is shared"),
                ]
            }
            Action::OpenVote => self.vote_of_beat(app),
            Action::TakeUp => Vec::from_iter(self.follow_call(app)),
            Action::Vote(choice) => self.vote(choice, app),
            _ => return None,
        })
    }

    /// Returns the call of the class. `None` if there is none, or if the learner has followed it. A vote comes before a race, and a race
    /// before an offered stage.
    fn call(&self, app: &App) -> Option<InstructorCall> {
        if self.link != Link::Joined || self.class.closed {
            return None;
        }
        if let Some(call) = self.open_vote(app) {
            return Some(call);
        }
        let task = app.task();
        if self.class.race.is_some() && self.class.race != self.accepted {
            let race = self.class.race.as_ref()?;
            let is_followed = self.races.contains_key(race) || *race == task;
            return (!is_followed).then(|| InstructorCall::Race(race.clone()));
        }
        let offer = self.class.offer.as_ref()?;
        let at = app.lesson.place_of(offer)?;
        let is_passed = app.lesson.learner.progress.stage(offer).state == StageState::Passed;
        let is_followed = is_passed || task == *offer || self.accepted.as_ref() == Some(offer);
        (!is_followed).then_some(InstructorCall::Stage(at))
    }

    /// Returns the call to the open vote. `None` if no vote is open, or if the learner has voted.
    fn open_vote(&self, app: &App) -> Option<InstructorCall> {
        let (id, vote) = self.class.open_vote()?;
        let has_voted = vote
            .number()
            .is_some_and(|number| self.ballots.contains_key(&number));
        if has_voted || self.predicted_in_round(app).is_some() {
            return None;
        }
        let again = vote.round > 0;
        match app.lesson.place_of(id) {
            Some(at) => Some(InstructorCall::Vote { at, again }),
            None => self.asked.as_ref().map(|_| InstructorCall::Ask { again }),
        }
    }

    /// Follows the call of the class: shows the vote, or goes to the stage or the race.
    fn follow_call(&mut self, app: &App) -> Option<FollowUp> {
        let place = match self.call(app)? {
            InstructorCall::Vote { .. } | InstructorCall::Ask { .. } => {
                return Some(FollowUp::Card(Some(Overlay::Vote)));
            }
            InstructorCall::Stage(at) => {
                self.accepted = self.class.offer.clone();
                Place::Stage(at)
            }
            InstructorCall::Race(task) => {
                let exercise = app.lesson.place_of_exercise(&task);
                let mystery = mystery_of(&task);
                self.accepted = Some(task);
                match mystery {
                    Some((seed, level)) => Place::Mystery { seed, level },
                    None => Place::Exercise(exercise?),
                }
            }
        };
        Some(FollowUp::Go(place))
    }

    /// Takes the learner's vote. In the first round on a stage it also becomes the prediction, if there is none yet.
    fn vote(&mut self, choice: usize, app: &App) -> FollowUps {
        let call = self.call(app);
        if !call.as_ref().is_some_and(InstructorCall::is_vote) {
            return Vec::new();
        }
        if let Some(number) = self.class.open_round() {
            self.ballots.insert(number, choice);
        }
        let text = format!("Your vote {} is on its way to the room", letter(choice));
        let mut follows = vec![FollowUp::Card(None), FollowUp::tell(text)];
        if let Some(InstructorCall::Vote { at, again: false }) = call {
            let stage = &app.lesson.course.stages[at];
            let mut progress = app.lesson.learner.progress.stage(&stage.id);
            if progress.prediction.is_none() {
                let right = choice == stage.prediction.answer;
                progress.prediction = Some(Prediction::Choice { choice, right });
                progress.state = progress.state.max(StageState::Predicted);
                follows.push(FollowUp::keep(&stage.id, progress));
            }
        }
        follows
    }

    /// Returns the prediction of the stage whose vote is open as a ballot, with the number of the round. `None` if the prediction was not
    /// made while the first round was open.
    pub(super) fn predicted_in_round(&self, app: &App) -> Option<(u64, usize)> {
        let (id, vote) = self.class.open_vote()?;
        let (number, was_made_before) = self.round?;
        if vote.round > 0 || was_made_before || vote.number() != Some(number) {
            return None;
        }
        match app.lesson.learner.progress.stage(id).prediction {
            Some(Prediction::Choice { choice, .. }) => Some((number, choice)),
            _ => None,
        }
    }

    /// Remembers, when a round opens, whether the learner had predicted before.
    fn update_round(&mut self, app: &App) {
        let number = self.class.open_round();
        if self.round.map(|(number, _)| number) == number {
            return;
        }
        let open = self.class.open_vote().zip(number);
        self.round = open.map(|((id, _), number)| {
            let is_predicted = app.lesson.learner.progress.stage(id).prediction.is_some();
            (number, is_predicted)
        });
    }

    /// Returns true if the open round has ended in the new state `class` and the learner's vote was not counted in it.
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
        let is_counted = class
            .counted
            .get(&self.me.id)
            .is_some_and(|counted| counted.round == number);
        is_over && self.ballots.contains_key(&number) && !is_counted
    }

    /// Returns the sentence that announces the new state of the class to the learner. `None` if nothing in it concerns the learner.
    /// `joins` is true if the room was not joined before.
    fn announcement(&self, class: &ClassState, joins: bool) -> Option<String> {
        let before = &self.class;
        let id = &self.me.id;
        if class.closed {
            let is_new = joins || !before.closed;
            return is_new.then(|| "The room is closed; you go on alone".to_owned());
        }
        if let Some(name) = class.renamed.get(id)
            && before.renamed.get(id) != Some(name)
        {
            return Some(format!(
                "Another participant has your name; the board shows you as {name}"
            ));
        }
        if let Some(counted) = class.counted.get(id)
            && !joins
            && before.counted.get(id) != Some(counted)
        {
            return Some(format!("Your vote {} is counted", letter(counted.choice)));
        }
        let text = if self.came_late(class) {
            "Your vote came after the end of its round and does not count"
        } else if matches!(self.link, Link::Lost(_)) {
            "Connected to the room again; what was missed is shared now"
        } else if joins {
            "You are in the room"
        } else {
            return None;
        };
        Some(text.to_owned())
    }

    fn set_class(&mut self, class: ClassState) {
        self.link = Link::Joined;
        self.class = class;
        let open = self.class.open_vote();
        let free = open.and_then(|(id, _)| self.class.questions.get(id));
        self.asked = free.map(|question| Question {
            prompt: question.prompt.clone(),
            choices: question.choices.clone(),
            answer: 0,
            explanation: String::new(),
        });
    }

    /// Handles news of the room.
    pub(in crate::app) fn on_news(&mut self, news: RoomNews, app: &App) -> FollowUps {
        let joins = self.link != Link::Joined;
        let notice = match news {
            RoomNews::Class(class) => {
                let text = self.announcement(&class, joins);
                self.set_class(*class);
                text.map(FollowUp::Tell)
            }
            RoomNews::Board(board) => {
                self.link = Link::Joined;
                self.board = Some(board);
                joins.then(|| FollowUp::tell("You are presenting to the room"))
            }
            RoomNews::Lost(error) => {
                let reason = crate::sanitize::line(&error.to_string());
                let text = format!("The room: {reason}; you go on alone");
                self.link = match error {
                    RoomError::Later(_) => Link::Lost(reason),
                    RoomError::Never(_) => Link::Over(reason),
                };
                Some(FollowUp::Warn(text))
            }
        };
        self.update_round(app);
        let call = self.call(app);
        let votes = call.is_some_and(|call| call.is_vote());
        let is_over = app.view.overlay == Some(Overlay::Vote) && !votes;
        let close = is_over.then_some(FollowUp::Card(None));
        notice.into_iter().chain(close).collect()
    }

    /// Returns the vote on a stage. `None` if there was none.
    fn tally(&self, stage: &Stage) -> Option<&VoteTally> {
        let votes = &self.board.as_ref()?.votes;
        votes.iter().find(|vote| vote.stage == stage.number)
    }

    /// Opens the vote when the presenter first reaches its beat, and closes it when the presenter goes on to the next beat.
    pub(super) fn lead(&mut self, app: &App) -> FollowUps {
        let Some((beat, stage)) = app.beat().zip(app.stage()) else {
            return Vec::new();
        };
        let order = match (beat.vote, self.tally(stage)) {
            (VoteState::Open, None) => InstructorRequest::OpenVote(stage.id.clone()),
            (VoteState::Closed, Some(tally)) if tally.open => InstructorRequest::CloseVote,
            _ => return Vec::new(),
        };
        self.order(order, app.clock.now_ms)
    }

    /// Closes the vote of the beat, or opens its second round after the discussion.
    fn vote_of_beat(&mut self, app: &App) -> FollowUps {
        let Some(stage) = app.stage() else {
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
        self.order(order, app.clock.now_ms)
    }

    /// Gives an order, unless it was just given and the board cannot show it yet.
    fn order(&mut self, order: InstructorRequest, now_ms: u64) -> FollowUps {
        let is_on_its_way = self
            .ordered
            .as_ref()
            .is_some_and(|(last, ordered_ms)| *last == order && now_ms < ordered_ms + ORDER_MS);
        if is_on_its_way || self.board.is_none() {
            return Vec::new();
        }
        self.ordered = Some((order.clone(), now_ms));
        vec![FollowUp::Effect(Effect::Order(order))]
    }
}
