//! How the learner takes part: what is shared and when, and what an action or the room's news does.

use super::{InstructorCall, JoinSettings, Link, Membership};
use crate::app::beats::VoteState;
use crate::app::mode::Mode;
use crate::app::mystery::MysteryEnd;
use crate::app::{Action, App, Effect, Overlay};
use crate::class::board::VoteTally;
use crate::class::news::RoomNews;
use crate::class::record::{
    ClassState, InstructorRequest, MysteryResult, Participant, RaceResult, SharedWork, mystery_of,
};
use crate::course::Stage;
use crate::course::save_file::{Prediction, StageProgress, StageState, letter};
use crate::judge::Outcome;
use protocol::Pair;

/// Time between two checks for something new to share.
const LOOK_MS: u64 = 250;
/// How long an order may take to appear on the board.
const ORDER_MS: u64 = 3_000;

impl App {
    /// What the instructor asks for, unless the learner has done it.
    pub fn call(&self) -> Option<InstructorCall> {
        let member = self.class.as_ref().filter(|it| it.link == Link::Joined)?;
        if member.class.closed {
            return None;
        }
        if let Some((id, vote)) = member.class.open_vote()
            && let Some(at) = self.place_of(id)
        {
            let again = vote.round > 0;
            let cast = |number| member.ballots.contains_key(&number);
            if !vote.number().is_some_and(cast) && self.predicted_in_round(id).is_none() {
                return Some(InstructorCall::Vote { at, again });
            }
        }
        let taken = |task: &String| member.taken.as_ref() == Some(task);
        if let Some(task) = member.class.race.as_ref().filter(|task| !taken(task)) {
            let done = member.races.contains_key(task) || *task == self.open_task();
            return (!done).then(|| InstructorCall::Race(task.clone()));
        }
        let offer = member.class.offer.as_ref().filter(|id| !taken(id))?;
        let at = self.place_of(offer)?;
        let passed = self.lesson.study.progress.stage(offer).state == StageState::Passed;
        (!passed && self.open_task() != *offer).then_some(InstructorCall::Stage(at))
    }

    /// The stage whose vote is open and that the learner may still answer.
    pub fn voting(&self) -> Option<&Stage> {
        match self.call() {
            Some(InstructorCall::Vote { at, .. }) => self.lesson.course.stages.get(at),
            _ => None,
        }
    }

    pub(in crate::app) fn join(&mut self, me: JoinSettings) {
        self.class = Some(Box::new(Membership {
            me,
            ..Membership::default()
        }));
    }

    /// Carries out an action about the room; false for any other action.
    pub(in crate::app) fn act_in_room(&mut self, action: Action) -> bool {
        let Some(member) = &mut self.class else {
            return false;
        };
        match action {
            Action::RaiseHand => {
                member.raised = !member.raised;
                let text = match member.raised {
                    true => "Your hand is raised; the same key lowers it",
                    false => "Your hand is down",
                };
                self.tell(text, false);
            }
            Action::LeaveRoom => {
                member.link = Link::Over("you left it".to_owned());
                member.raised = false;
                self.view.overlay = None;
                self.effects.push(Effect::LeaveRoom);
                self.tell("You left the room; nothing more is shared", false);
            }
            Action::OpenVote => self.vote_of_beat(),
            Action::TakeUp => self.take_up(),
            Action::Vote(choice) => self.vote(choice),
            _ => return false,
        }
        true
    }

    fn take_up(&mut self) {
        let call = self.call();
        let Some((call, member)) = call.zip(self.class.as_mut()) else {
            return;
        };
        match call {
            InstructorCall::Vote { .. } => {
                (self.view.overlay, self.view.overlay_scroll) = (Some(Overlay::Vote), 0);
            }
            InstructorCall::Stage(at) => {
                member.taken = member.class.offer.clone();
                self.leave_for(at);
            }
            InstructorCall::Race(task) => {
                member.taken = Some(task.clone());
                if let Some((seed, level)) = mystery_of(&task) {
                    self.run_mystery(seed, level);
                } else if let Some(at) = self
                    .lesson
                    .course
                    .exercises
                    .iter()
                    .position(|it| it.id == task)
                {
                    self.open_exercise(at);
                }
            }
        }
    }

    /// Takes a vote. The first one is the prediction of the stage.
    fn vote(&mut self, choice: usize) {
        let again = matches!(self.call(), Some(InstructorCall::Vote { again: true, .. }));
        let Some(stage) = self.voting() else {
            return;
        };
        let (id, right) = (stage.id.clone(), choice == stage.prediction.answer);
        if let Some(member) = &mut self.class
            && let Some(number) = member.class.open_vote().and_then(|(_, it)| it.number())
        {
            member.ballots.insert(number, choice);
        }
        if !again && self.lesson.study.progress.stage(&id).prediction.is_none() {
            let known = self.lesson.study.of_mut(&id);
            known.prediction = Some(Prediction::Choice { choice, right });
            known.state = known.state.max(StageState::Predicted);
            self.save(&id);
        }
        self.view.overlay = None;
        self.tell(&format!("Your vote: {}", letter(choice)), false);
    }

    /// The prediction of this stage, where it was made while the first round of its vote was open: it is the vote.
    fn predicted_in_round(&self, id: &str) -> Option<(u64, usize)> {
        let member = self.class.as_ref()?;
        let (open, vote) = member.class.open_vote()?;
        let (number, before) = member.round?;
        let counts = open == id && vote.round == 0 && !before && vote.number() == Some(number);
        match self.lesson.study.progress.stage(id).prediction {
            Some(Prediction::Choice { choice, .. }) if counts => Some((number, choice)),
            _ => None,
        }
    }

    /// Notes whether the learner had predicted before the round that is open.
    fn note_round(&mut self) {
        let Some(member) = &mut self.class else {
            return;
        };
        let open = member.class.open_vote();
        let open = open.and_then(|(id, vote)| Some((id, vote.number()?)));
        let known = member.round.map(|(number, _)| number);
        member.round = match open {
            Some((_, number)) if known == Some(number) => member.round,
            Some((id, number)) => {
                let prediction = self.lesson.study.progress.stage(id).prediction;
                Some((number, prediction.is_some()))
            }
            None => None,
        };
    }

    /// Takes news of the room.
    pub(in crate::app) fn hear_room(&mut self, news: RoomNews) {
        let Some(member) = &mut self.class else {
            return;
        };
        let said = match news {
            RoomNews::Class(class) => {
                let renamed = |class: &ClassState| class.renamed.get(&member.me.id).cloned();
                let closed = |class: &ClassState| {
                    class
                        .closed
                        .then_some("The room is closed; you go on alone")
                };
                let begins = !matches!(member.link, Link::Joined);
                let said = match (closed(&class), renamed(&class)) {
                    (Some(closed), _) if begins || !member.class.closed => Some(closed.to_owned()),
                    (None, Some(name)) if renamed(&member.class).as_ref() != Some(&name) => Some(
                        format!("Another participant has your name; the board shows you as {name}"),
                    ),
                    (None, _) if matches!(member.link, Link::Lost(_)) => Some(
                        "Connected to the room again; what was missed is shared now".to_owned(),
                    ),
                    (None, _) if begins => Some("You are in the room".to_owned()),
                    _ => None,
                };
                (member.link, member.class) = (Link::Joined, *class);
                said.map(|said| (said, false))
            }
            RoomNews::Board(board) => {
                let begins = !matches!(member.link, Link::Joined);
                (member.link, member.board) = (Link::Joined, Some(board));
                begins.then(|| ("You are presenting to the room".to_owned(), false))
            }
            RoomNews::Lost { why, again } => {
                let why = crate::sanitize::line(&why);
                let said = format!("The room: {why}; you go on alone");
                member.link = match again {
                    true => Link::Lost(why),
                    false => Link::Over(why),
                };
                Some((said, true))
            }
        };
        self.note_round();
        if let Some((text, warning)) = said {
            self.tell(&text, warning);
        }
        // The vote on the card may be over.
        if self.view.overlay == Some(Overlay::Vote) && self.voting().is_none() {
            self.view.overlay = None;
        }
    }

    /// Shares what changed, at a tick of the clock.
    pub(in crate::app) fn share(&mut self) {
        let now_ms = self.clock.now_ms;
        let due = self.class.as_ref().is_some_and(|it| {
            !matches!(it.link, Link::Over(_)) && now_ms.saturating_sub(it.looked_ms) >= LOOK_MS
        });
        if !due {
            return;
        }
        if self.instructs() {
            return self.lead();
        }
        if self.presenter.presentation.is_some() {
            return;
        }
        let (task, result) = (self.open_task(), self.race_result());
        let voting = self.class.as_ref().and_then(|it| it.class.open_vote());
        let predicted = voting.and_then(|(id, _)| self.predicted_in_round(id));
        if let Some(member) = &mut self.class {
            if let Some((number, choice)) = predicted {
                member.ballots.entry(number).or_insert(choice);
            }
            member.looked_ms = now_ms;
            if member.here.0 != task {
                member.here = (task, now_ms);
            }
            if let Some((task, mut result)) = result {
                if let Some(older) = member.races.get(&task) {
                    result.keep(older);
                }
                member.races.insert(task, result);
            }
        }
        let Some(record) = self.participant() else {
            return;
        };
        if let Some(member) = &mut self.class {
            let same = Participant {
                here_s: member.shared.here_s,
                ..record.clone()
            };
            if same != member.shared || member.shared.id.is_empty() {
                member.shared = record.clone();
                self.effects.push(Effect::Share(Box::new(record)));
            }
        }
    }

    fn instructs(&self) -> bool {
        self.class.as_ref().is_some_and(|it| it.me.instructor)
    }

    /// The vote on the stage that is presented, as far as there was one.
    pub fn tally(&self) -> Option<&VoteTally> {
        let board = self.class.as_ref()?.board.as_ref()?;
        let stage = self.stage()?;
        board.votes.iter().find(|it| it.stage == stage.number)
    }

    /// How that vote stands, in words: who has voted while it is open, then each choice with its votes, in both rounds.
    pub fn tally_in_words(&self) -> Option<String> {
        let tally = self.tally()?;
        let (voted, of) = (tally.voted, tally.of);
        if tally.open {
            let again = if tally.round > 1 { " once more" } else { "" };
            return Some(format!("{voted} of {of} have voted{again}"));
        }
        let choices = (0..tally.choices.len()).map(|at| {
            let votes = tally
                .votes(at)
                .iter()
                .map(u32::to_string)
                .collect::<Vec<_>>();
            format!("{} {}", letter(at), votes.join(", then "))
        });
        Some(format!(
            "{}: {voted} of {of}",
            choices.collect::<Vec<_>>().join(" · ")
        ))
    }

    /// Opens the vote when its beat is reached for the first time, and closes it when that beat is left for the next.
    fn lead(&mut self) {
        let Some((beat, stage)) = self.beat().zip(self.stage()) else {
            return;
        };
        let order = match (beat.vote, self.tally()) {
            (VoteState::Open, None) => InstructorRequest::OpenVote(stage.id.clone()),
            (VoteState::Closed, Some(tally)) if tally.open => InstructorRequest::CloseVote,
            _ => return,
        };
        self.order(order);
    }

    /// At the beat of the vote: closes it, or opens it once more after the discussion.
    fn vote_of_beat(&mut self) {
        let open = self.tally().is_some_and(|it| it.open);
        if let Some(stage) = self.stage().filter(|_| self.instructs()) {
            let order = match open {
                true => InstructorRequest::CloseVote,
                false => InstructorRequest::OpenVote(stage.id.clone()),
            };
            self.order(order);
        }
    }

    /// Shows the answer on the room's page, too.
    pub(in crate::app) fn order_answer(&mut self) {
        let stage = self.stage().filter(|_| self.instructs());
        let answer = stage.map(|it| it.id.clone()).zip(self.reason_of_answer());
        if let Some((stage, reason)) = answer {
            self.order(InstructorRequest::ShowAnswer { stage, reason });
        }
    }

    /// Gives an order; the same one not again before the board can show it.
    fn order(&mut self, order: InstructorRequest) {
        let now_ms = self.clock.now_ms;
        if let Some(member) = self.class.as_mut().filter(|it| it.board.is_some()) {
            let again = member.ordered.as_ref();
            if again.is_some_and(|(last, at)| *last == order && now_ms < at + ORDER_MS) {
                return;
            }
            member.ordered = Some((order.clone(), now_ms));
            self.effects.push(Effect::Order(order));
        }
    }

    /// Everything that is shared.
    fn participant(&self) -> Option<Participant> {
        let member = self.class.as_ref()?;
        let device = self
            .device()
            .map_or_else(String::new, |it| match it.name.is_empty() {
                true => it.kind.clone(),
                false => format!("{}: {}", it.kind, it.name),
            });
        let known = self.lesson.study.progress.stages.iter();
        let known = known.filter(|(_, it)| it.state != StageState::New);
        Some(Participant {
            id: member.me.id.clone(),
            name: member.me.name.clone(),
            device,
            here: member.here.0.clone(),
            here_s: self.clock.now_ms.saturating_sub(member.here.1) / 1000,
            raised: member.raised,
            stages: known
                .map(|(id, it)| (id.clone(), self.shared(id, it)))
                .collect(),
            ballots: member.ballots.clone(),
            races: member.races.clone(),
            ..Participant::default()
        })
    }

    fn shared(&self, id: &str, it: &StageProgress) -> SharedWork {
        let report = self.lesson.study.report.as_ref();
        let here = self.stage().is_some_and(|stage| stage.id == id);
        let checks = report.filter(|_| here).map(|report| {
            let deciding = || report.lines.iter().filter(|line| !line.optional);
            let met = deciding()
                .filter(|line| line.outcome == Outcome::Passed)
                .count();
            [met as u32, deciding().count() as u32]
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

    /// What is open, by its id: a stage, an exercise, a mystery; nothing in a free run.
    fn open_task(&self) -> String {
        match (&self.mode, self.exercise(), self.stage()) {
            (Mode::Mystery(mystery), ..) => format!("mystery {}", mystery.name()),
            (_, Some(exercise), _) => exercise.id.clone(),
            (_, None, Some(stage)) => stage.id.clone(),
            (_, None, None) => String::new(),
        }
    }

    /// The result of what is open, where that can be raced: a mystery that ended, a kernel that passed. A mystery that was solved
    /// or given up before counts no more, because its faults are known.
    fn race_result(&self) -> Option<(String, RaceResult)> {
        let result = match &self.mode {
            Mode::Mystery(run) => {
                let (points, seconds) = match run.end.filter(|_| run.first)? {
                    MysteryEnd::Solved { points, seconds } => (points, seconds),
                    MysteryEnd::GivenUp => (0, run.seconds(self.clock.now_ms)),
                };
                let judged = |pair: &&Pair| points > 0 && pair.done && run.paired_with_good;
                let pair = self.lesson.study.pair.as_ref().filter(judged);
                if points > 0 && pair.is_none() {
                    return None;
                }
                RaceResult {
                    ratio: pair.and_then(|it| Some([it.ratio, it.low?, it.high?])),
                    mystery: Some(MysteryResult {
                        points,
                        seconds,
                        configurations: run.configurations(),
                    }),
                }
            }
            _ => {
                let report = self.exercise.of(self.exercise()?)?.report.as_ref();
                let files = &report.filter(|it| it.passed)?.facts.files;
                let times = files
                    .iter()
                    .filter_map(|it| it.time.as_ref()?.against_starter);
                let slowest = times.min_by(|a, b| a.low.total_cmp(&b.low))?;
                RaceResult {
                    ratio: Some([slowest.ratio, slowest.low, slowest.high]),
                    mystery: None,
                }
            }
        };
        Some((self.open_task(), result))
    }
}
