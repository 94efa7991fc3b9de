//! What participants and the instructor ask for becomes lines of the log here, where it is allowed.

use std::collections::BTreeSet;

use super::{KnownParticipant, RoomState, undone};
use crate::class::log::{Entry, Fact, Origin, Work};
use crate::class::phone::PhoneRequest;
use crate::class::record::{InstructorRequest, Participant, Vote, clean_reason};
use crate::class::server::drawn;
use crate::course::Course;

/// Most participants of one room.
pub const MOST_PEOPLE: usize = 1000;
/// Silence after which a participant counts as away, in milliseconds: several heartbeats are missing.
pub const AWAY_MS: u64 = 60_000;
/// How long an order can be taken back, in milliseconds.
const UNDO_MS: u64 = 60_000;
/// The time in a stage that a record tells may differ by this, in milliseconds, before it counts as having come anew.
const SAME_MS: u64 = 90_000;
/// Letters of the code with which a phone takes a seat.
const SEAT: usize = 5;

/// Why a participant is refused.
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

    /// Receives a record. The same record again is no sign of life.
    pub fn hear(&mut self, record: Participant, now_ms: u64) -> Result<(), JoinError> {
        self.hear_from(record, &Origin::default(), now_ms)
    }

    /// As `hear`, with where the record comes from.
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
        if let Some(work) = known.and_then(|known| Work::of(&record, known, now_ms)) {
            self.write(Fact::Work(work), now_ms);
        }
        for (task, result) in &record.races {
            let known = self.people.get(&who);
            let older = known.and_then(|it| it.record.races.get(task).copied());
            let mut result = *result;
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
        if record.left && self.people.get(&who).is_some_and(|it| !it.record.left) {
            self.write(Fact::Left { who }, now_ms);
        }
        Ok(())
    }

    /// Receives what a phone asks for; every request is a sign of life.
    pub fn hear_phone(
        &mut self,
        asked: &PhoneRequest,
        origin: &Origin,
        now_ms: u64,
    ) -> Result<(), JoinError> {
        if let Some(seat) = asked.seat.as_ref().filter(|seat| !seat.is_empty()) {
            let mut others = self.people.values().filter(|it| it.record.id != asked.id);
            let found = others.find(|it| it.seat.eq_ignore_ascii_case(seat.trim()));
            let who = found.map(|it| it.record.id.clone());
            let (phone, who) = (asked.id.clone(), who.ok_or(JoinError::NoSeat)?);
            if self.class.removed.contains(&phone) {
                return Err(JoinError::Removed);
            }
            if self.seats.get(&phone) != Some(&who) {
                self.write(Fact::Seated { phone, who }, now_ms);
            }
        }
        let known = self.person(&asked.id);
        let who = known.map_or(&asked.id, |it| &it.record.id).clone();
        let own = who == asked.id;
        let name = known.map_or_else(String::new, |it| it.record.name.clone());
        let name = asked.name.clone().filter(|_| own).unwrap_or(name);
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

    /// Refuses somebody who may not be in the room. A participant who is in it stays in it.
    fn admit(&self, who: &str, name: &str) -> Result<(), JoinError> {
        let refused = match self.people.contains_key(who) {
            _ if self.class.removed.contains(who) => JoinError::Removed,
            true => return Ok(()),
            false if self.class.closed => JoinError::Closed,
            false if self.class.locked => JoinError::Locked,
            false if self.class.names_required && name.is_empty() => JoinError::NameRequired,
            false if self.people.len() >= MOST_PEOPLE => JoinError::Full,
            false => return Ok(()),
        };
        Err(refused)
    }

    fn arrive(&mut self, who: &str, name: &str, origin: &Origin, now_ms: u64) {
        let (name, who) = (name.to_owned(), who.to_owned());
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

    fn come_back(&mut self, who: &str, now_ms: u64) {
        if self.people.get(who).is_some_and(|it| !it.is_here()) {
            let who = who.to_owned();
            self.write(Fact::Here { who }, now_ms);
        }
    }

    fn raise(&mut self, who: &str, up: bool, now_ms: u64) {
        if self
            .people
            .get(who)
            .is_some_and(|it| it.record.raised != up)
        {
            let who = who.to_owned();
            self.write(Fact::Hand { who, up }, now_ms);
        }
    }

    /// A ballot counts in the round that is open, and the first one of each participant.
    fn cast(&mut self, who: &str, round: u64, choice: usize, now_ms: u64) {
        let vote = self.class.open_vote().map(|(_, vote)| vote);
        let open = vote.is_some_and(|vote| vote.number() == Some(round) && choice < vote.choices);
        let mut voters = self.people.get(who).into_iter();
        if open && voters.any(|it| !it.record.ballots.contains_key(&round)) {
            let who = who.to_owned();
            self.write(Fact::Ballot { who, round, choice }, now_ms);
        }
    }

    /// Notes who has not been heard for a minute.
    pub fn fall_silent(&mut self, now_ms: u64) {
        let here = self.people.values().filter(|it| it.is_here());
        let here: Vec<String> = here.map(|it| it.record.id.clone()).collect();
        for who in here {
            let (_, at_ms) = *self.heard.entry(who.clone()).or_insert((0, now_ms));
            if now_ms.saturating_sub(at_ms) >= AWAY_MS {
                self.write(Fact::Away { who }, now_ms);
            }
        }
    }

    /// Ends a race whose time is over.
    pub fn end_race(&mut self, now_ms: u64) {
        if self.race_until.is_some_and(|until| until <= now_ms) {
            let (task, until) = (None, None);
            self.write(Fact::Race { task, until }, now_ms);
        }
    }

    /// Carries out an order; what is so already stays so.
    pub fn obey(
        &mut self,
        order: &InstructorRequest,
        course: &Course,
        now_ms: u64,
    ) -> Result<(), String> {
        if let Some(fact) = self.follows(order, course, now_ms)? {
            self.write(fact, now_ms);
        }
        Ok(())
    }

    /// As `obey`, for a request that was left in the folder: it is carried out once.
    pub fn obey_once(
        &mut self,
        name: &str,
        order: &InstructorRequest,
        course: &Course,
        now_ms: u64,
    ) -> Result<(), String> {
        if !self.requests.contains(name)
            && let Some(fact) = self.follows(order, course, now_ms)?
        {
            self.take(Entry {
                n: self.next(),
                t: now_ms.max(self.last_ms()),
                request: Some(name.to_owned()),
                fact,
            });
        }
        Ok(())
    }

    /// What follows from an order.
    fn follows(
        &self,
        order: &InstructorRequest,
        course: &Course,
        now_ms: u64,
    ) -> Result<Option<Fact>, String> {
        use InstructorRequest as Order;
        let opened = |vote: &str, round, choices, question| Fact::VoteOpened {
            vote: vote.to_owned(),
            round,
            choices,
            question,
        };
        Ok(Some(match order {
            Order::OpenVote(id) => {
                let asked = self.class.questions.get(id).map(|it| it.choices.len());
                let stage = course.stage_by_id(id).map(|it| it.prediction.choices.len());
                let choices = asked.or(stage);
                let choices = choices.ok_or_else(|| format!("the course has no stage {id}"))?;
                let vote = self.class.votes.get(id);
                if vote.is_some_and(|vote| vote.open) {
                    return Ok(None);
                }
                let empty = |round: &u64| {
                    let mut people = self.people.values();
                    !people.any(|it| it.record.ballots.contains_key(round))
                };
                // A round in which nobody voted is opened again, because it was closed by mistake.
                let round = vote.and_then(Vote::number).filter(empty);
                opened(id, round.unwrap_or(self.next()), choices, None)
            }
            Order::Ask(question) => {
                let question = question.cleaned()?;
                let (next, choices) = (self.next(), question.choices.len());
                opened(&format!("q{next}"), next, choices, Some(question))
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
            Order::Remove(ids) => {
                self.removed(&|it| ids.contains(&it.record.id) || ids.contains(&it.key()))?
            }
            Order::RemoveFrom(address) => self.removed(&|it| it.origin.address == *address)?,
            Order::LetIn => Fact::LetIn {},
            Order::Undo => Fact::Undone {
                line: self.last_order(now_ms)?,
            },
        }))
    }

    fn removed(&self, goes: &dyn Fn(&KnownParticipant) -> bool) -> Result<Fact, String> {
        let who = self.people.values().filter(|it| goes(it));
        let mut who: BTreeSet<String> = who.map(|it| it.record.id.clone()).collect();
        let phones = self.seats.iter().filter(|(_, of)| who.contains(*of));
        let phones: Vec<String> = phones.map(|(phone, _)| phone.clone()).collect();
        who.extend(phones);
        match who.is_empty() {
            true => Err("Nobody is there to be removed".to_owned()),
            false => Ok(Fact::Removed { who }),
        }
    }

    /// The line of the last order that can be taken back.
    fn last_order(&self, now_ms: u64) -> Result<u64, String> {
        let undone = undone(&self.history);
        let mut orders = self.history.iter().rev();
        orders
            .find(|it| it.fact.is_order() && !undone.contains(&it.n))
            .filter(|it| now_ms.saturating_sub(it.t) < UNDO_MS)
            .map(|it| it.n)
            .ok_or_else(|| "There is no order of the last minute to take back".to_owned())
    }
}

impl Work {
    /// What differs between a record and what is known of its participant; `None` where nothing does.
    fn of(record: &Participant, known: &KnownParticipant, now_ms: u64) -> Option<Self> {
        let since_ms = now_ms.saturating_sub(record.here_s.saturating_mul(1000));
        let old = &known.record;
        let anew = !record.here.is_empty() && since_ms.abs_diff(known.since_ms) > SAME_MS;
        let came = record.here != old.here || anew;
        let new = record
            .stages
            .iter()
            .filter(|(id, shared)| old.stages.get(*id) != Some(shared));
        let new = new.map(|(id, shared)| (id.clone(), Some(shared.clone())));
        let gone = old
            .stages
            .keys()
            .filter(|id| !record.stages.contains_key(*id));
        let work = Self {
            who: record.id.clone(),
            device: (record.device != old.device).then(|| record.device.clone()),
            here: came.then(|| (record.here.clone(), since_ms)),
            stages: new.chain(gone.map(|id| (id.clone(), None))).collect(),
        };
        let none = Self {
            who: record.id.clone(),
            ..Self::default()
        };
        (work != none).then_some(work)
    }
}
