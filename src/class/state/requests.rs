//! Turns what participants and the instructor ask for into lines of the log, or refuses it.

use std::collections::{BTreeMap, BTreeSet};

use super::{KnownParticipant, RoomState, undone};
use crate::class::log::{Fact, Origin, WorkChange};
use crate::class::phone::PhoneRequest;
use crate::class::record::{InstructorRequest, Participant, SharedWork, Vote, clean_reason};
use crate::class::secrets::random_word;
use crate::course::Course;

/// The most participants of one room.
pub const MOST_PEOPLE: usize = 1000;
/// A participant who has sent nothing for this time counts as away, in milliseconds. Several heartbeats are missing then.
pub const AWAY_MS: u64 = 60_000;
/// The time for which an order can be taken back, in milliseconds.
const UNDO_MS: u64 = 60_000;
/// A record says for how long its stage has been open. If the time of opening that follows from it moves by more than this, in
/// milliseconds, the stage was left and opened again.
const SAME_STAY_MS: u64 = 90_000;
/// The number of letters in the code with which a phone joins as a participant at a computer.
const SEAT_LETTERS: usize = 5;

/// The reason why a participant is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display)]
pub enum JoinError {
    #[strum(serialize = "the room is full")]
    Full,
    #[strum(serialize = "the instructor has removed you from the room")]
    Removed,
    #[strum(serialize = "the room is closed, so nobody joins it now")]
    Closed,
    #[strum(serialize = "the instructor has locked the room, so nobody joins it now")]
    Locked,
    #[strum(serialize = "this room asks for a name: join with --name NICKNAME")]
    NameRequired,
    #[strum(serialize = "no participant has this code")]
    NoSeat,
}

impl RoomState {
    /// Opens the room for the first time.
    pub fn open(&mut self, version: u32, day: String, now_ms: u64) {
        self.write(None, Fact::Opened { version, day }, now_ms);
    }

    /// Receives a participant's record. A record with the sequence of the last one changes nothing: a file in the folder that is read
    /// again is no sign of life.
    ///
    /// # Errors
    /// If the participant is refused.
    pub fn receive(
        &mut self,
        mut record: Participant,
        origin: &Origin,
        now_ms: u64,
    ) -> Result<(), JoinError> {
        if let Some(person) = self.person(&record.id) {
            record.id.clone_from(&person.record.id);
        }
        let who = record.id.clone();
        self.admit(&who, &record.name)?;
        let last = self.sequences.insert(who.clone(), record.sequence);
        if self.people.contains_key(&who) && last == Some(record.sequence) {
            return Ok(());
        }
        self.last_seen_ms.insert(who.clone(), now_ms);
        self.log_arrival(&who, &record.name, origin, now_ms);
        if !record.left {
            self.log_return(&who, now_ms);
        }
        let known = self.people.get(&who);
        if let Some(work) = known.and_then(|known| WorkChange::between(&record, known, now_ms)) {
            self.write(None, Fact::Work(work), now_ms);
        }
        self.log_results(&who, &record, now_ms);
        self.log_hand(&who, record.raised && !record.left, now_ms);
        for (round, choice) in &record.ballots {
            self.log_ballot(&who, *round, *choice, now_ms);
        }
        let known = self.people.get(&who);
        if record.left && known.is_some_and(|known| !known.record.left) {
            self.write(None, Fact::Left { who }, now_ms);
        }
        Ok(())
    }

    /// Receives a request of a phone.
    ///
    /// # Errors
    /// If the phone is refused.
    pub fn receive_phone(
        &mut self,
        request: &PhoneRequest,
        origin: &Origin,
        now_ms: u64,
    ) -> Result<(), JoinError> {
        if let Some(code) = request.seat.as_ref().filter(|code| !code.is_empty()) {
            self.take_seat(&request.id, code.trim(), now_ms)?;
        }
        let known = self.person(&request.id).map(|person| &person.record);
        let who = known.map_or(&request.id, |record| &record.id).clone();
        let name = match (&request.name, known) {
            // A phone in the seat of a computer does not rename its participant.
            (Some(name), _) if who == request.id => name.clone(),
            (_, Some(record)) => record.name.clone(),
            (_, None) => String::new(),
        };
        self.admit(&who, &name)?;
        self.last_seen_ms.insert(who.clone(), now_ms);
        self.log_arrival(&who, &name, origin, now_ms);
        self.log_return(&who, now_ms);
        if let Some(up) = request.raised {
            self.log_hand(&who, up, now_ms);
        }
        if let Some((round, choice)) = request.ballot {
            self.log_ballot(&who, round, choice, now_ms);
        }
        Ok(())
    }

    /// Lets a phone join as the participant whose seat has this code.
    fn take_seat(&mut self, phone: &str, code: &str, now_ms: u64) -> Result<(), JoinError> {
        let (who, _) = self
            .people
            .iter()
            .find(|(id, person)| *id != phone && person.seat.eq_ignore_ascii_case(code))
            .ok_or(JoinError::NoSeat)?;
        let who = who.clone();
        if self.class.removed.contains(phone) {
            return Err(JoinError::Removed);
        }
        if self.seats.get(phone) != Some(&who) {
            let phone = phone.to_owned();
            self.write(None, Fact::Seated { phone, who }, now_ms);
        }
        Ok(())
    }

    /// Refuses somebody who may not join. Whoever is in the room already may stay, even in a locked one.
    fn admit(&self, who: &str, name: &str) -> Result<(), JoinError> {
        let class = &self.class;
        if class.removed.contains(who) {
            Err(JoinError::Removed)
        } else if self.people.contains_key(who) {
            Ok(())
        } else if class.closed {
            Err(JoinError::Closed)
        } else if class.locked {
            Err(JoinError::Locked)
        } else if class.names_required && name.is_empty() {
            Err(JoinError::NameRequired)
        } else if self.people.len() >= MOST_PEOPLE {
            Err(JoinError::Full)
        } else {
            Ok(())
        }
    }

    /// Logs that a participant has joined, or has another name.
    fn log_arrival(&mut self, who: &str, name: &str, origin: &Origin, now_ms: u64) {
        let known = self.people.get(who);
        let who = who.to_owned();
        let name = name.to_owned();
        let fact = match known {
            Some(known) if known.record.name == name => return,
            Some(_) => Fact::Renamed { who, name },
            None => Fact::Joined {
                who,
                name,
                seat: random_word(SEAT_LETTERS),
                origin: origin.clone(),
            },
        };
        self.write(None, fact, now_ms);
    }

    /// Logs the results of a record that count: those of new tasks, and those that replace an older result.
    fn log_results(&mut self, who: &str, record: &Participant, now_ms: u64) {
        for (task, result) in &record.races {
            let known = self.people.get(who);
            let older = known.and_then(|known| known.record.races.get(task).copied());
            let mut result = *result;
            if let Some(older) = &older {
                result.choose_between(older);
            }
            if older != Some(result) {
                let who = who.to_owned();
                let task = task.clone();
                self.write(None, Fact::Result { who, task, result }, now_ms);
            }
        }
    }

    /// Logs that a participant who was away or had left is here again.
    fn log_return(&mut self, who: &str, now_ms: u64) {
        if self.people.get(who).is_some_and(|known| !known.is_here()) {
            let who = who.to_owned();
            self.write(None, Fact::Here { who }, now_ms);
        }
    }

    /// Logs that a participant has raised or lowered the hand, unless the room already knows.
    fn log_hand(&mut self, who: &str, up: bool, now_ms: u64) {
        let known = self.people.get(who);
        if known.is_some_and(|known| known.record.raised != up) {
            let who = who.to_owned();
            self.write(None, Fact::Hand { who, up }, now_ms);
        }
    }

    /// Logs a ballot if its round is open and the participant has not voted in it yet.
    fn log_ballot(&mut self, who: &str, round: u64, choice: usize, now_ms: u64) {
        let is_valid = self
            .class
            .open_vote()
            .is_some_and(|(_, vote)| vote.number() == Some(round) && choice < vote.choices);
        let known = self.people.get(who);
        if is_valid && known.is_some_and(|known| !known.record.ballots.contains_key(&round)) {
            let who = who.to_owned();
            self.write(None, Fact::Ballot { who, round, choice }, now_ms);
        }
    }

    /// Logs as away every participant who has sent nothing for [`AWAY_MS`]. After a restart of the board this time begins anew.
    pub fn mark_away(&mut self, now_ms: u64) {
        let mut silent = Vec::new();
        for (id, _) in self.people.iter().filter(|(_, person)| person.is_here()) {
            let last_seen_ms = *self.last_seen_ms.entry(id.clone()).or_insert(now_ms);
            if now_ms.saturating_sub(last_seen_ms) >= AWAY_MS {
                silent.push(id.clone());
            }
        }
        for who in silent {
            self.write(None, Fact::Away { who }, now_ms);
        }
    }

    /// Ends a race whose time is over.
    pub fn end_race(&mut self, now_ms: u64) {
        if self.race_until.is_some_and(|until| until <= now_ms) {
            let ended = Fact::Race {
                task: None,
                until: None,
            };
            self.write(None, ended, now_ms);
        }
    }

    /// Carries out an order. An order that asks for the present state, such as closing a closed vote, changes nothing.
    ///
    /// # Errors
    /// If the order is not possible; the error is a sentence for the instructor.
    pub fn carry_out(
        &mut self,
        order: &InstructorRequest,
        course: &Course,
        now_ms: u64,
    ) -> Result<(), String> {
        if let Some(fact) = self.fact_from(order, course, now_ms)? {
            self.write(None, fact, now_ms);
        }
        Ok(())
    }

    /// Carries out an order from a file in the folder, unless the log says that this file was carried out before.
    ///
    /// # Errors
    /// If the order is not possible; the error is a sentence for the instructor.
    pub fn carry_out_once(
        &mut self,
        file: &str,
        order: &InstructorRequest,
        course: &Course,
        now_ms: u64,
    ) -> Result<(), String> {
        if !self.requests.contains(file)
            && let Some(fact) = self.fact_from(order, course, now_ms)?
        {
            self.write(Some(file.to_owned()), fact, now_ms);
        }
        Ok(())
    }

    /// Returns the fact that follows from an order; `None` if it changes nothing.
    fn fact_from(
        &self,
        order: &InstructorRequest,
        course: &Course,
        now_ms: u64,
    ) -> Result<Option<Fact>, String> {
        use InstructorRequest as Order;
        Ok(Some(match order {
            Order::OpenVote(id) => return self.vote_opening(id, course),
            Order::Ask(question) => {
                let question = question.cleaned()?;
                let round = self.next_number();
                Fact::VoteOpened {
                    vote: format!("q{round}"),
                    round,
                    choices: question.choices.len(),
                    question: Some(question),
                }
            }
            Order::CloseVote => match self.class.open_round() {
                Some(round) => Fact::VoteClosed { round },
                None => return Ok(None),
            },
            Order::ShowAnswer { stage, reason } => match self.class.votes.get(stage) {
                Some(vote) if !vote.open => Fact::AnswerShown {
                    vote: stage.clone(),
                    reason: clean_reason(reason),
                },
                _ => return Ok(None),
            },
            Order::Offer(stage) => Fact::Offered {
                stage: stage.clone(),
            },
            Order::Race(task) => Fact::Race {
                task: task.clone(),
                until: None,
            },
            Order::RaceFor { task, minutes } => Fact::Race {
                task: Some(task.clone()),
                until: Some(now_ms.saturating_add(minutes.saturating_mul(60_000))),
            },
            Order::Close(closed) => Fact::Closed { closed: *closed },
            Order::Lock(locked) => Fact::Locked { locked: *locked },
            Order::RequireNames(required) => Fact::NamesRequired {
                required: *required,
            },
            Order::Remove(names) => self.removal(|person| {
                names.contains(&person.record.id) || names.contains(&person.key())
            })?,
            Order::RemoveFrom(address) => {
                self.removal(|person| person.origin.address == *address)?
            }
            Order::LetIn => Fact::LetIn {},
            Order::Undo => Fact::Undone {
                line: self.last_order(now_ms)?,
            },
        }))
    }

    /// Returns the fact that opens the vote on a stage or on a question that was asked before; `None` if this vote is open.
    fn vote_opening(&self, id: &str, course: &Course) -> Result<Option<Fact>, String> {
        let choices = match (self.class.questions.get(id), course.stage_by_id(id)) {
            (Some(question), _) => question.choices.len(),
            (None, Some(stage)) => stage.prediction.choices.len(),
            (None, None) => return Err(format!("the course has no stage {id}")),
        };
        let vote = self.class.votes.get(id);
        if vote.is_some_and(|vote| vote.open) {
            return Ok(None);
        }
        let has_ballots = |round: &u64| {
            let mut records = self.people.values().map(|person| &person.record);
            records.any(|record| record.ballots.contains_key(round))
        };
        // A round in which nobody has voted was closed by mistake: it is opened again, and no new round is asked.
        let last_round = vote.and_then(Vote::number);
        let empty_round = last_round.filter(|round| !has_ballots(round));
        Ok(Some(Fact::VoteOpened {
            vote: id.to_owned(),
            round: empty_round.unwrap_or(self.next_number()),
            choices,
            question: None,
        }))
    }

    /// Returns the fact that removes some participants, and with them the phones that have joined as one of them.
    fn removal(&self, is_removed: impl Fn(&KnownParticipant) -> bool) -> Result<Fact, String> {
        let mut who = BTreeSet::new();
        for (id, person) in &self.people {
            if is_removed(person) {
                who.insert(id.clone());
                let phones = self.seats.iter().filter(|(_, seated)| *seated == id);
                who.extend(phones.map(|(phone, _)| phone.clone()));
            }
        }
        if who.is_empty() {
            return Err("There is nobody to remove".to_owned());
        }
        Ok(Fact::Removed { who })
    }

    /// Returns the number of the line with the last order that has not been taken back.
    ///
    /// # Errors
    /// If there is no such order, or if it was given more than a minute ago.
    fn last_order(&self, now_ms: u64) -> Result<u64, String> {
        let undone = undone(&self.history);
        let mut lines = self.history.iter().rev();
        match lines.find(|line| line.fact.is_order() && !undone.contains(&line.number)) {
            Some(line) if now_ms.saturating_sub(line.time_ms) < UNDO_MS => Ok(line.number),
            _ => Err(
                "Nothing was ordered in the last minute, so there is nothing to take back"
                    .to_owned(),
            ),
        }
    }
}

impl WorkChange {
    /// Returns what a new record changes of a known participant's work; `None` if it changes nothing.
    fn between(record: &Participant, known: &KnownParticipant, now_ms: u64) -> Option<Self> {
        let old = &known.record;
        let since_ms = now_ms.saturating_sub(record.open_s.saturating_mul(1000));
        let is_another_stay =
            !record.open_task.is_empty() && since_ms.abs_diff(known.since_ms) > SAME_STAY_MS;
        let has_opened = record.open_task != old.open_task || is_another_stay;
        let mut stages: BTreeMap<String, Option<SharedWork>> = BTreeMap::new();
        for (id, work) in &record.stages {
            if old.stages.get(id) != Some(work) {
                stages.insert(id.clone(), Some(work.clone()));
            }
        }
        for id in old.stages.keys() {
            if !record.stages.contains_key(id) {
                stages.insert(id.clone(), None);
            }
        }
        let work = Self {
            who: record.id.clone(),
            device: (record.device != old.device).then(|| record.device.clone()),
            opened: has_opened.then(|| (record.open_task.clone(), since_ms)),
            stages,
        };
        let is_new = work.device.is_some() || work.opened.is_some() || !work.stages.is_empty();
        is_new.then_some(work)
    }
}
