//! Requests of participants and of the instructor become lines of the log here, if they are allowed.

use std::collections::{BTreeMap, BTreeSet};

use super::{KnownParticipant, RoomState, undone};
use crate::class::log::{Fact, Origin, Work};
use crate::class::phone::PhoneRequest;
use crate::class::record::{InstructorRequest, Participant, SharedWork, Vote, clean_reason};
use crate::class::secrets::drawn;
use crate::course::Course;

/// The most participants of one room.
pub const MOST_PEOPLE: usize = 1000;
/// The silence after which a participant counts as away, in milliseconds: several heartbeats are missing.
pub const AWAY_MS: u64 = 60_000;
/// The time for which an order can be taken back, in milliseconds.
const UNDO_MS: u64 = 60_000;
/// The difference, in milliseconds, by which the time in a stage may change between two records of one stay.
const SAME_STAY_MS: u64 = 90_000;
/// The number of letters in the code with which a phone takes a seat.
const SEAT: usize = 5;

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
        self.write(Fact::Opened { version, day }, now_ms);
    }

    /// Receives a record from a file. The same record again is no sign of life.
    ///
    /// # Errors
    /// If the participant is refused.
    pub fn hear(&mut self, record: Participant, now_ms: u64) -> Result<(), JoinError> {
        self.hear_from(record, &Origin::default(), now_ms)
    }

    /// Receives a record that came from an address.
    ///
    /// # Errors
    /// If the participant is refused.
    pub fn hear_from(
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
        let last = self.heard.get(&who).map(|(sequence, _)| *sequence);
        if self.people.contains_key(&who) && last == Some(record.sequence) {
            return Ok(());
        }
        self.heard.insert(who.clone(), (record.sequence, now_ms));
        self.arrive(&who, &record.name, origin, now_ms);
        if !record.left {
            self.come_back(&who, now_ms);
        }
        let known = self.people.get(&who);
        if let Some(work) = known.and_then(|known| Work::difference(&record, known, now_ms)) {
            self.write(Fact::Work(work), now_ms);
        }
        for (task, result) in &record.races {
            let mut result = *result;
            let known = self.people.get(&who);
            let older = known.and_then(|known| known.record.races.get(task).copied());
            if let Some(older) = &older {
                result.keep(older);
            }
            if older != Some(result) {
                let (who, task) = (who.clone(), task.clone());
                self.write(Fact::Result { who, task, result }, now_ms);
            }
        }
        self.raise(&who, record.raised && !record.left, now_ms);
        for (round, choice) in &record.ballots {
            self.cast(&who, *round, *choice, now_ms);
        }
        let known = self.people.get(&who);
        if record.left && known.is_some_and(|known| !known.record.left) {
            self.write(Fact::Left { who }, now_ms);
        }
        Ok(())
    }

    /// Receives a request of a phone. Every request is a sign of life.
    ///
    /// # Errors
    /// If the phone is refused.
    pub fn hear_phone(
        &mut self,
        asked: &PhoneRequest,
        origin: &Origin,
        now_ms: u64,
    ) -> Result<(), JoinError> {
        if let Some(code) = asked.seat.as_ref().filter(|code| !code.is_empty()) {
            self.take_seat(&asked.id, code.trim(), now_ms)?;
        }
        let known = self.person(&asked.id).map(|person| &person.record);
        let who = known.map_or(&asked.id, |record| &record.id).clone();
        let name = match (&asked.name, known) {
            // A phone in the seat of a computer does not rename its participant.
            (Some(name), _) if who == asked.id => name.clone(),
            (_, Some(record)) => record.name.clone(),
            (_, None) => String::new(),
        };
        self.admit(&who, &name)?;
        let last = self.heard.get(&who).map_or(0, |(sequence, _)| *sequence);
        self.heard.insert(who.clone(), (last, now_ms));
        self.arrive(&who, &name, origin, now_ms);
        self.come_back(&who, now_ms);
        if let Some(up) = asked.raised {
            self.raise(&who, up, now_ms);
        }
        if let Some((round, choice)) = asked.ballot {
            self.cast(&who, round, choice, now_ms);
        }
        Ok(())
    }

    /// Gives a phone the seat that has this code.
    fn take_seat(&mut self, phone: &str, code: &str, now_ms: u64) -> Result<(), JoinError> {
        let mut others = self.people.iter().filter(|(id, _)| id.as_str() != phone);
        let seat = others.find(|(_, person)| person.seat.eq_ignore_ascii_case(code));
        let who = seat.map(|(id, _)| id.clone()).ok_or(JoinError::NoSeat)?;
        if self.class.removed.contains(phone) {
            return Err(JoinError::Removed);
        }
        if self.seats.get(phone) != Some(&who) {
            let phone = phone.to_owned();
            self.write(Fact::Seated { phone, who }, now_ms);
        }
        Ok(())
    }

    /// Refuses somebody who may not be in the room. A participant who is in it stays in it.
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

    /// Writes down that a participant joined or has another name.
    fn arrive(&mut self, who: &str, name: &str, origin: &Origin, now_ms: u64) {
        let (who, name) = (who.to_owned(), name.to_owned());
        let fact = match self.people.get(&who) {
            Some(known) if known.record.name == name => return,
            Some(_) => Fact::Renamed { who, name },
            None => Fact::Joined {
                who,
                name,
                seat: drawn(SEAT),
                origin: origin.clone(),
            },
        };
        self.write(fact, now_ms);
    }

    /// Writes down that a participant is here again.
    fn come_back(&mut self, who: &str, now_ms: u64) {
        if self.people.get(who).is_some_and(|known| !known.is_here()) {
            let who = who.to_owned();
            self.write(Fact::Here { who }, now_ms);
        }
    }

    /// Writes down that a hand went up or down.
    fn raise(&mut self, who: &str, up: bool, now_ms: u64) {
        let known = self.people.get(who);
        if known.is_some_and(|known| known.record.raised != up) {
            let who = who.to_owned();
            self.write(Fact::Hand { who, up }, now_ms);
        }
    }

    /// Counts a ballot if its round is open and it is the first one of the participant.
    fn cast(&mut self, who: &str, round: u64, choice: usize, now_ms: u64) {
        let open = self.class.open_vote();
        let counts =
            open.is_some_and(|(_, vote)| vote.number() == Some(round) && choice < vote.choices);
        let known = self.people.get(who);
        if counts && known.is_some_and(|known| !known.record.ballots.contains_key(&round)) {
            let who = who.to_owned();
            self.write(Fact::Ballot { who, round, choice }, now_ms);
        }
    }

    /// Writes down who has not been heard for a minute.
    pub fn fall_silent(&mut self, now_ms: u64) {
        let mut silent = Vec::new();
        let people = self.people.iter();
        for (id, _) in people.filter(|(_, person)| person.is_here()) {
            let (_, at_ms) = *self.heard.entry(id.clone()).or_insert((0, now_ms));
            if now_ms.saturating_sub(at_ms) >= AWAY_MS {
                silent.push(id.clone());
            }
        }
        for who in silent {
            self.write(Fact::Away { who }, now_ms);
        }
    }

    /// Ends a race whose time is over.
    pub fn end_race(&mut self, now_ms: u64) {
        if self.race_until.is_some_and(|until| until <= now_ms) {
            let (task, until) = (None, None);
            self.write(Fact::Race { task, until }, now_ms);
        }
    }

    /// Carries out an order. An order for what is so already changes nothing.
    ///
    /// # Errors
    /// If the order is not possible; the error says why.
    pub fn obey(
        &mut self,
        order: &InstructorRequest,
        course: &Course,
        now_ms: u64,
    ) -> Result<(), String> {
        if let Some(fact) = self.fact_of(order, course, now_ms)? {
            self.write(fact, now_ms);
        }
        Ok(())
    }

    /// Carries out an order that was left in the folder in a file of this name, if that was not done before.
    ///
    /// # Errors
    /// If the order is not possible; the error says why.
    pub fn obey_once(
        &mut self,
        name: &str,
        order: &InstructorRequest,
        course: &Course,
        now_ms: u64,
    ) -> Result<(), String> {
        if !self.requests.contains(name)
            && let Some(fact) = self.fact_of(order, course, now_ms)?
        {
            self.write_for(Some(name.to_owned()), fact, now_ms);
        }
        Ok(())
    }

    /// Returns the fact that follows from an order; `None` if it changes nothing.
    fn fact_of(
        &self,
        order: &InstructorRequest,
        course: &Course,
        now_ms: u64,
    ) -> Result<Option<Fact>, String> {
        use InstructorRequest as Order;
        Ok(Some(match order {
            Order::OpenVote(id) => return self.opened_vote(id, course),
            Order::Ask(question) => {
                let question = question.cleaned()?;
                let round = self.next();
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
            Order::Remove(names) => self.removed(|person| {
                names.contains(&person.record.id) || names.contains(&person.key())
            })?,
            Order::RemoveFrom(address) => {
                self.removed(|person| person.origin.address == *address)?
            }
            Order::LetIn => Fact::LetIn {},
            Order::Undo => Fact::Undone {
                line: self.last_order(now_ms)?,
            },
        }))
    }

    /// Returns the fact that a vote on a stage or a known question is opened; `None` if it is open.
    fn opened_vote(&self, id: &str, course: &Course) -> Result<Option<Fact>, String> {
        let choices = match (self.class.questions.get(id), course.stage_by_id(id)) {
            (Some(question), _) => question.choices.len(),
            (None, Some(stage)) => stage.prediction.choices.len(),
            (None, None) => return Err(format!("the course has no stage {id}")),
        };
        let vote = self.class.votes.get(id);
        if vote.is_some_and(|vote| vote.open) {
            return Ok(None);
        }
        let is_empty = |round: &u64| {
            let mut people = self.people.values();
            !people.any(|person| person.record.ballots.contains_key(round))
        };
        // A round in which nobody voted is opened again, because it was closed by mistake.
        let empty_round = vote.and_then(Vote::number).filter(is_empty);
        Ok(Some(Fact::VoteOpened {
            vote: id.to_owned(),
            round: empty_round.unwrap_or(self.next()),
            choices,
            question: None,
        }))
    }

    /// Returns the fact that some participants are removed, and with them the phones in their seats.
    fn removed(&self, is_one: impl Fn(&KnownParticipant) -> bool) -> Result<Fact, String> {
        let mut who = BTreeSet::new();
        for (id, person) in &self.people {
            if is_one(person) {
                who.insert(id.clone());
            }
        }
        if who.is_empty() {
            return Err("There is nobody to remove".to_owned());
        }
        let seats = self.seats.iter();
        let phones: Vec<String> = seats
            .filter(|(_, person)| who.contains(*person))
            .map(|(phone, _)| phone.clone())
            .collect();
        who.extend(phones);
        Ok(Fact::Removed { who })
    }

    /// Returns the line of the last order, if it can still be taken back.
    fn last_order(&self, now_ms: u64) -> Result<u64, String> {
        let undone = undone(&self.history);
        let mut entries = self.history.iter().rev();
        let last = entries.find(|entry| entry.fact.is_order() && !undone.contains(&entry.n));
        match last {
            Some(entry) if now_ms.saturating_sub(entry.t) < UNDO_MS => Ok(entry.n),
            _ => Err(
                "Nothing was ordered in the last minute, so there is nothing to take back"
                    .to_owned(),
            ),
        }
    }
}

impl Work {
    /// Returns the differences between a record and what is known of its participant; `None` if there are none.
    fn difference(record: &Participant, known: &KnownParticipant, now_ms: u64) -> Option<Self> {
        let old = &known.record;
        let since_ms = now_ms.saturating_sub(record.here_s.saturating_mul(1000));
        let is_another_stay =
            !record.here.is_empty() && since_ms.abs_diff(known.since_ms) > SAME_STAY_MS;
        let came = record.here != old.here || is_another_stay;
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
            here: came.then(|| (record.here.clone(), since_ms)),
            stages,
        };
        let is_new = work.device.is_some() || work.here.is_some() || !work.stages.is_empty();
        is_new.then_some(work)
    }
}
