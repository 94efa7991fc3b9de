//! The state of a class as its log has it: a fold of the log's lines. What participants and the instructor ask for becomes lines here,
//! by `hear`, `hear_phone`, `fall_silent` and `obey`, which change nothing in another way. Pure functions: the caller passes the time
//! and writes the lines down.
//!
//! Heartbeats are no facts and stand in no line; being here and being away are.

use std::collections::{BTreeMap, BTreeSet};

use super::log::{Entry, Fact, Origin, Work};
use super::record::{ClassState, Counted, Participant, Vote};

mod requests;

pub use requests::{AWAY_MS, JoinError, MOST_PEOPLE};

/// A participant as the log has them.
#[derive(Clone, Debug)]
pub struct KnownParticipant {
    /// `ballots` are those that count; `left` and `raised` are as the board shows them.
    pub record: Participant,
    /// The number in the order of joining: others may know it.
    pub number: usize,
    pub away: bool,
    /// Since when `record.here` is open, in milliseconds of the log.
    pub since_ms: u64,
    /// When the participant raised the hand, if it is up.
    pub raised_ms: Option<u64>,
    pub origin: Origin,
    /// The code with which a phone takes this seat.
    pub seat: String,
}

impl KnownParticipant {
    pub fn is_here(&self) -> bool {
        !self.away && !self.record.left
    }

    /// By which the board and orders name this participant: `n12`.
    pub fn key(&self) -> String {
        format!("n{}", self.number)
    }
}

#[derive(Clone, Debug, Default)]
pub struct RoomState {
    pub class: ClassState,
    pub people: BTreeMap<String, KnownParticipant>,
    /// When the race ends by itself, in milliseconds of the log.
    pub race_until: Option<u64>,
    /// Who was here when a round was closed, by its number.
    here_at_close: BTreeMap<u64, BTreeSet<String>>,
    /// Phones that have taken the seat of a participant.
    seats: BTreeMap<String, String>,
    joined: usize,
    requests: BTreeSet<String>,
    history: Vec<Entry>,
    /// Why participants whose records lie in the folder are not in the room.
    pub refused: BTreeMap<String, String>,
    /// Records that could not be read or were not plausible, by file or participant: one line each. They are not in the log.
    pub faults: BTreeMap<String, String>,
    /// The last heartbeat of each participant: its sequence and when it came.
    heard: BTreeMap<String, (u64, u64)>,
    /// Grows with every visible change.
    pub revision: u64,
}

/// Who voted in a round, and who could.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoundCount {
    /// Ballots by choice.
    pub counts: Vec<u32>,
    /// Participants who were here at its end, or are here now.
    pub here: u32,
    /// How many of the ballots are of people who are no longer here.
    pub gone: u32,
    /// How many of the ballots came from a phone that looks like another one of this round, from the same address.
    pub alike: u32,
}

impl RoomState {
    /// The state after these lines.
    pub fn of(history: Vec<Entry>) -> Self {
        let mut room = Self::default();
        room.fold(history);
        room
    }

    fn fold(&mut self, history: Vec<Entry>) {
        let undone = undone(&history);
        for entry in history.iter().filter(|it| !undone.contains(&it.n)) {
            self.apply(entry);
        }
        self.history = history;
        self.revision += 1;
    }

    /// Takes one more line.
    pub fn take(&mut self, entry: Entry) {
        let undoes = matches!(entry.fact, Fact::Undone { .. });
        if undoes {
            let mut history = std::mem::take(&mut self.history);
            history.push(entry);
            self.refold(history);
        } else {
            self.apply(&entry);
            self.history.push(entry);
            self.revision += 1;
        }
    }

    /// Forgets every line after the first `lines`.
    pub fn roll_back(&mut self, lines: usize) {
        let mut history = std::mem::take(&mut self.history);
        history.truncate(lines);
        self.refold(history);
    }

    fn refold(&mut self, history: Vec<Entry>) {
        let mut room = Self {
            faults: std::mem::take(&mut self.faults),
            refused: std::mem::take(&mut self.refused),
            heard: std::mem::take(&mut self.heard),
            revision: self.revision,
            ..Self::default()
        };
        room.fold(history);
        *self = room;
    }

    /// Every line so far.
    pub fn history(&self) -> &[Entry] {
        &self.history
    }

    /// The time of the last line, in milliseconds.
    pub fn last_ms(&self) -> u64 {
        self.history.last().map_or(0, |entry| entry.t)
    }

    /// Makes a line of a fact, and takes it.
    fn write(&mut self, fact: Fact, now_ms: u64) {
        self.take(Entry {
            n: self.next(),
            t: now_ms.max(self.last_ms()),
            request: None,
            fact,
        });
    }

    /// The number of the next line.
    fn next(&self) -> u64 {
        self.history.last().map_or(1, |last| last.n + 1)
    }

    fn apply(&mut self, entry: &Entry) {
        self.requests.extend(entry.request.clone());
        let known = |people: &mut BTreeMap<String, KnownParticipant>,
                     who: &str,
                     change: &dyn Fn(&mut KnownParticipant)| {
            if let Some(person) = people.get_mut(who) {
                change(person);
            }
        };
        let people = &mut self.people;
        match &entry.fact {
            Fact::Opened { version, day } => {
                self.class.version = *version;
                self.class.opened.clone_from(day);
            }
            Fact::Joined {
                who,
                name,
                seat,
                origin,
            } => {
                self.joined += 1;
                let joined = KnownParticipant {
                    record: Participant {
                        version: self.class.version,
                        id: who.clone(),
                        name: name.clone(),
                        ..Participant::default()
                    },
                    number: self.joined,
                    away: false,
                    since_ms: entry.t,
                    raised_ms: None,
                    origin: origin.clone(),
                    seat: seat.clone(),
                };
                people.insert(who.clone(), joined);
                self.number_name(who);
            }
            Fact::Renamed { who, name } => {
                known(people, who, &|it| it.record.name.clone_from(name));
                self.number_name(who);
            }
            Fact::Here { who } => known(people, who, &|it| {
                (it.away, it.record.left) = (false, false)
            }),
            Fact::Away { who } => known(people, who, &|it| it.away = true),
            Fact::Left { who } => known(people, who, &|it| {
                (it.record.left, it.record.raised, it.raised_ms) = (true, false, None);
            }),
            Fact::Hand { who, up } => known(people, who, &|it| {
                (it.record.raised, it.raised_ms) = (*up, up.then_some(entry.t));
            }),
            Fact::Work(work) => known(people, &work.who, &|it| work.add_to(it)),
            Fact::Result { who, task, result } => known(people, who, &|it| {
                it.record.races.insert(task.clone(), *result);
            }),
            // The opening of its round may have been taken back.
            Fact::Ballot { round, .. } if self.class.open_round() != Some(*round) => {}
            Fact::Ballot { who, round, choice } => known(people, who, &|it| {
                it.record.ballots.entry(*round).or_insert(*choice);
            }),
            Fact::Seated { phone, who } => self.seat(phone, who),
            Fact::VoteOpened {
                vote,
                round,
                choices,
                question,
            } => {
                self.close_vote();
                self.here_at_close.remove(round);
                self.class.last_vote = Some(vote.clone());
                let asked = question.iter().map(|it| (vote.clone(), it.clone()));
                self.class.questions.extend(asked);
                let vote = self.class.votes.entry(vote.clone()).or_default();
                (vote.open, vote.answer, vote.choices) = (true, None, *choices);
                if vote.asked.last() != Some(round) {
                    // After both rounds the second one is asked again.
                    vote.asked.truncate(1);
                    vote.asked.push(*round);
                }
                vote.round = vote.asked.len() - 1;
            }
            Fact::VoteClosed { .. } => self.close_vote(),
            Fact::AnswerShown { vote, reason } => {
                let vote = self.class.votes.get_mut(vote).filter(|it| !it.open);
                if let Some(vote) = vote {
                    vote.answer = Some(reason.clone());
                }
            }
            Fact::Offered { stage } => self.class.offer.clone_from(stage),
            Fact::Race { task, until } => {
                self.class.race.clone_from(task);
                self.race_until = *until;
            }
            Fact::Closed { closed } => {
                self.close_vote();
                self.class.closed = *closed;
            }
            Fact::Locked { locked } => self.class.locked = *locked,
            Fact::NamesRequired { required } => self.class.names_required = *required,
            Fact::Removed { who } => {
                people.retain(|id, _| !who.contains(id));
                self.faults
                    .retain(|key, _| !who.iter().any(|id| key.contains(id.as_str())));
                self.class.removed.extend(who.iter().cloned());
            }
            Fact::LetIn {} => self.class.removed.clear(),
            Fact::Undone { .. } => {}
        }
        let is_told = entry.fact.is_order() || matches!(entry.fact, Fact::Undone { .. });
        if is_told {
            self.class.sequence = entry.n;
        }
    }

    fn close_vote(&mut self) {
        let here = self.people.iter().filter(|(_, person)| person.is_here());
        let here: BTreeSet<String> = here.map(|(id, _)| id.clone()).collect();
        for vote in self.class.votes.values_mut().filter(|vote| vote.open) {
            vote.open = false;
            self.here_at_close
                .extend(vote.number().map(|round| (round, here.clone())));
        }
    }

    /// A phone is the same person as a participant from now on: of two ballots in a round the participant's stays.
    fn seat(&mut self, phone: &str, who: &str) {
        if !self.people.contains_key(who) {
            return;
        }
        let own = self.people.remove(phone);
        self.class.renamed.remove(phone);
        self.seats.insert(phone.to_owned(), who.to_owned());
        for here in self.here_at_close.values_mut() {
            if here.remove(phone) {
                here.insert(who.to_owned());
            }
        }
        if let (Some(own), Some(person)) = (own, self.people.get_mut(who)) {
            for (round, choice) in own.record.ballots {
                person.record.ballots.entry(round).or_insert(choice);
            }
        }
    }

    /// Counts a round.
    pub fn round(&self, vote: &Vote, number: u64) -> RoundCount {
        let closed = self.here_at_close.get(&number);
        let was_here = |id: &String, person: &KnownParticipant| {
            closed.map_or_else(|| person.is_here(), |here| here.contains(id))
        };
        let mut round = RoundCount {
            counts: vec![0; vote.choices],
            ..RoundCount::default()
        };
        let mut phones = BTreeSet::new();
        for (id, person) in &self.people {
            let here = was_here(id, person);
            round.here += u32::from(here);
            let choice = person.record.ballots.get(&number);
            if let Some(votes) = choice.and_then(|choice| round.counts.get_mut(*choice)) {
                *votes += 1;
                round.gone += u32::from(!here);
                let new = person.origin.browser.is_empty() || phones.insert(&person.origin);
                round.alike += u32::from(!new);
            }
        }
        round
    }

    /// What one participant is told of the class over the network.
    pub fn class_of(&self, id: &str) -> ClassState {
        let id = self.seats.get(id).map_or(id, String::as_str);
        let mut class = self.class.clone();
        class.renamed.retain(|of, _| of == id);
        class.removed.clear();
        let person = self.people.get(id);
        class.seat = person.map_or_else(String::new, |it| it.seat.clone());
        class.counted = person.and_then(|it| self.counted(it)).into_iter().collect();
        class
    }

    /// What everybody in a folder reads of the class.
    pub fn class_of_all(&self) -> ClassState {
        ClassState {
            refused: self.refused.clone(),
            counted: self
                .people
                .values()
                .filter_map(|it| self.counted(it))
                .collect(),
            ..self.class.clone()
        }
    }

    /// The ballot of a participant in the round that was opened last.
    fn counted(&self, person: &KnownParticipant) -> Option<(String, Counted)> {
        let vote = self.class.votes.get(self.class.last_vote.as_ref()?)?;
        let round = vote.number()?;
        let choice = *person.record.ballots.get(&round)?;
        Some((person.record.id.clone(), Counted { round, choice }))
    }

    /// The participant for whom this id stands: a phone may have taken a seat.
    pub fn person(&self, id: &str) -> Option<&KnownParticipant> {
        self.people
            .get(self.seats.get(id).map_or(id, String::as_str))
    }

    /// The name on the board.
    pub fn name_of<'a>(&'a self, person: &'a Participant) -> &'a str {
        match self.class.renamed.get(&person.id) {
            Some(renamed) => renamed,
            None if person.name.is_empty() => "no name",
            None => &person.name,
        }
    }

    /// Notes the fault of a file or of a participant's record, or clears it.
    pub fn note(&mut self, file: String, why: Option<String>) {
        if self.faults.get(&file) != why.as_ref() {
            self.revision += 1;
            match why {
                Some(why) => drop(self.faults.insert(file, why)),
                None => drop(self.faults.remove(&file)),
            }
        }
    }

    /// Numbers the name of a participant if it is already in use: the first participant keeps it, even after leaving.
    fn number_name(&mut self, id: &str) {
        let Some(name) = self.people.get(id).map(|person| person.record.name.clone()) else {
            return;
        };
        let taken = |name: &str| {
            let name = name.to_lowercase();
            let others = self.people.iter().filter(|(other, _)| *other != id);
            !name.is_empty()
                && others
                    .map(|(_, person)| self.name_of(&person.record))
                    .any(|other| other.to_lowercase() == name)
        };
        let numbered = |n: usize| format!("{name} ({n})");
        let new = taken(&name)
            .then(|| (2..).map(numbered).find(|name| !taken(name)))
            .flatten();
        match new {
            Some(new) => drop(self.class.renamed.insert(id.to_owned(), new)),
            None => drop(self.class.renamed.remove(id)),
        }
    }
}

impl Work {
    fn add_to(&self, person: &mut KnownParticipant) {
        let record = &mut person.record;
        if let Some(device) = &self.device {
            record.device.clone_from(device);
        }
        if let Some((here, since_ms)) = &self.here {
            record.here.clone_from(here);
            person.since_ms = *since_ms;
        }
        for (id, shared) in &self.stages {
            match shared {
                Some(shared) => drop(record.stages.insert(id.clone(), shared.clone())),
                None => drop(record.stages.remove(id)),
            }
        }
    }
}

/// The lines that were taken back.
fn undone(history: &[Entry]) -> BTreeSet<u64> {
    let lines = history.iter().filter_map(|entry| match entry.fact {
        Fact::Undone { line } => Some(line),
        _ => None,
    });
    lines.collect()
}
