//! The state of a class as its log has it: a fold of the log's lines. What participants and the instructor ask for becomes lines in
//! `requests`, and nothing else changes the class. These are pure functions: the caller passes the time and writes the lines down.
//!
//! Heartbeats are no facts and stand in no line; being here and being away are.

use std::collections::{BTreeMap, BTreeSet};

use super::log::{Entry, Fact, Origin, Work};
use super::record::{ClassState, Counted, Participant, Question, Vote};

/// The name on the board of a participant who has given none.
pub const NO_NAME: &str = "no name";

mod requests;

pub use requests::{AWAY_MS, JoinError, MOST_PEOPLE};

/// A participant as the log has them.
#[derive(Clone, Debug)]
pub struct KnownParticipant {
    /// The record that the participant shares. Its ballots are those that count; `left` and `raised` are as the board shows them.
    pub record: Participant,
    /// The number in the order of joining, which others may know.
    pub number: usize,
    /// True if nothing was heard for a minute.
    pub away: bool,
    /// The time since which `record.here` is open, in milliseconds of the log.
    pub since_ms: u64,
    /// The time at which the participant raised the hand; `None` while it is down.
    pub raised_ms: Option<u64>,
    pub origin: Origin,
    /// The code with which a phone takes this seat.
    pub seat: String,
}

impl KnownParticipant {
    /// Returns true if the participant is neither away nor gone.
    pub fn is_here(&self) -> bool {
        !self.away && !self.record.left
    }

    /// Returns the name of the participant in orders and on the board: `n12`.
    pub fn key(&self) -> String {
        format!("n{}", self.number)
    }
}

/// The state of a class after the lines of its log so far.
#[derive(Clone, Debug, Default)]
pub struct RoomState {
    /// The state of the class without what only single participants are told.
    pub class: ClassState,
    /// The participants by their ids.
    pub people: BTreeMap<String, KnownParticipant>,
    /// The time at which the race ends by itself, in milliseconds of the log.
    pub race_until: Option<u64>,
    /// The ids of those who were here when a round was closed, by its number.
    here_at_close: BTreeMap<u64, BTreeSet<String>>,
    /// The participants whose seats phones have taken, by the id of the phone.
    seats: BTreeMap<String, String>,
    /// The number of participants who have ever joined.
    joined: usize,
    /// The names of requests in the folder that were carried out.
    requests: BTreeSet<String>,
    history: Vec<Entry>,
    /// The reasons why participants whose records lie in the folder are not in the room, by id.
    pub refused: BTreeMap<String, String>,
    /// The faults of records that could not be read or were not plausible, in one line each, by file or participant. They are not in the
    /// log.
    pub faults: BTreeMap<String, String>,
    /// The last heartbeat of each participant: its sequence, and its time in milliseconds of the log.
    heard: BTreeMap<String, (u64, u64)>,
    /// A number that grows with every visible change.
    pub revision: u64,
}

/// The count of a round: who voted, and who could.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoundCount {
    /// The ballots by choice.
    pub counts: Vec<u32>,
    /// The number of participants who were here at its end, or are here now.
    pub here: u32,
    /// The number of ballots from people who are no longer here.
    pub gone: u32,
    /// The number of ballots from a phone that looks like another one of this round, at the same address.
    pub alike: u32,
}

impl RoomState {
    /// Returns the state after these lines.
    pub fn from_log(history: Vec<Entry>) -> Self {
        let mut room = Self::default();
        room.fold(history);
        room
    }

    fn fold(&mut self, history: Vec<Entry>) {
        let undone = undone(&history);
        for entry in &history {
            if !undone.contains(&entry.n) {
                self.apply(entry);
            }
        }
        self.history = history;
        self.revision += 1;
    }

    /// Takes one more line.
    pub fn take(&mut self, entry: Entry) {
        if matches!(entry.fact, Fact::Undone { .. }) {
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

    /// Folds other lines, and keeps what stands in no line.
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

    /// Returns every line so far.
    pub fn history(&self) -> &[Entry] {
        &self.history
    }

    /// Returns the time of the last line, in milliseconds.
    pub fn last_ms(&self) -> u64 {
        self.history.last().map_or(0, |entry| entry.t)
    }

    /// Makes a line of a fact, and takes it.
    fn write(&mut self, fact: Fact, now_ms: u64) {
        self.write_for(None, fact, now_ms);
    }

    /// Makes a line of a fact that follows from a request in the folder, and takes it.
    fn write_for(&mut self, request: Option<String>, fact: Fact, now_ms: u64) {
        self.take(Entry {
            n: self.next(),
            t: now_ms.max(self.last_ms()),
            request,
            fact,
        });
    }

    /// Returns the number of the next line.
    fn next(&self) -> u64 {
        self.history.last().map_or(1, |last| last.n + 1)
    }

    /// Applies a line. A line about a participant who was removed since changes nothing.
    fn apply(&mut self, entry: &Entry) {
        self.requests.extend(entry.request.clone());
        let at_ms = entry.t;
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
            } => self.join(who, name, seat, origin, at_ms),
            Fact::Renamed { who, name } => {
                self.change(who, |person| person.record.name.clone_from(name));
                self.number_name(who);
            }
            Fact::Here { who } => self.change(who, |person| {
                person.record.left = false;
                person.away = false;
            }),
            Fact::Away { who } => self.change(who, |person| person.away = true),
            Fact::Left { who } => self.change(who, |person| {
                person.record.left = true;
                person.raise(false, at_ms);
            }),
            Fact::Hand { who, up } => self.change(who, |person| person.raise(*up, at_ms)),
            Fact::Work(work) => self.change(&work.who, |person| person.add(work)),
            Fact::Result { who, task, result } => self.change(who, |person| {
                person.record.races.insert(task.clone(), *result);
            }),
            // The opening of its round may have been taken back.
            Fact::Ballot { round, .. } if self.class.open_round() != Some(*round) => {}
            Fact::Ballot { who, round, choice } => self.change(who, |person| {
                person.record.ballots.entry(*round).or_insert(*choice);
            }),
            Fact::Seated { phone, who } => self.seat(phone, who),
            Fact::VoteOpened {
                vote,
                round,
                choices,
                question,
            } => self.open_vote(vote, *round, *choices, question.as_ref()),
            Fact::VoteClosed { .. } => self.close_vote(),
            Fact::AnswerShown { vote, reason } => {
                if let Some(vote) = self.class.votes.get_mut(vote)
                    && !vote.open
                {
                    vote.answer = Some(reason.clone());
                }
            }
            Fact::Offered { stage } => self.class.offer.clone_from(stage),
            Fact::Race { task, until } => {
                self.class.race.clone_from(task);
                self.race_until = *until;
            }
            Fact::Closed { closed } => {
                self.class.closed = *closed;
                self.close_vote();
            }
            Fact::Locked { locked } => self.class.locked = *locked,
            Fact::NamesRequired { required } => self.class.names_required = *required,
            Fact::Removed { who } => {
                self.class.removed.extend(who.iter().cloned());
                self.people.retain(|id, _| !who.contains(id));
                self.faults
                    .retain(|key, _| !who.iter().any(|id| key.contains(id.as_str())));
            }
            Fact::LetIn {} => self.class.removed.clear(),
            Fact::Undone { .. } => {}
        }
        if entry.fact.is_order() || matches!(entry.fact, Fact::Undone { .. }) {
            self.class.sequence = entry.n;
        }
    }

    /// Changes a participant, if they are in the room.
    fn change(&mut self, who: &str, change: impl FnOnce(&mut KnownParticipant)) {
        if let Some(person) = self.people.get_mut(who) {
            change(person);
        }
    }

    /// Adds a participant.
    fn join(&mut self, who: &str, name: &str, seat: &str, origin: &Origin, at_ms: u64) {
        self.joined += 1;
        let joined = KnownParticipant {
            record: Participant {
                version: self.class.version,
                id: who.to_owned(),
                name: name.to_owned(),
                ..Participant::default()
            },
            number: self.joined,
            away: false,
            since_ms: at_ms,
            raised_ms: None,
            origin: origin.clone(),
            seat: seat.to_owned(),
        };
        self.people.insert(who.to_owned(), joined);
        self.number_name(who);
    }

    /// Opens a round of a vote, and closes any other vote.
    fn open_vote(&mut self, id: &str, round: u64, choices: usize, question: Option<&Question>) {
        self.close_vote();
        self.here_at_close.remove(&round);
        let class = &mut self.class;
        class.last_vote = Some(id.to_owned());
        if let Some(question) = question {
            class.questions.insert(id.to_owned(), question.clone());
        }
        let vote = class.votes.entry(id.to_owned()).or_default();
        vote.open = true;
        vote.answer = None;
        vote.choices = choices;
        if vote.asked.last() != Some(&round) {
            // After both rounds the second one is asked again.
            vote.asked.truncate(1);
            vote.asked.push(round);
        }
        vote.round = vote.asked.len() - 1;
    }

    /// Closes the open vote, and notes who is here.
    fn close_vote(&mut self) {
        for vote in self.class.votes.values_mut().filter(|vote| vote.open) {
            vote.open = false;
            let Some(round) = vote.number() else {
                continue;
            };
            let people = self.people.iter();
            let here = people.filter(|(_, person)| person.is_here());
            let here = here.map(|(id, _)| id.clone()).collect();
            self.here_at_close.insert(round, here);
        }
    }

    /// Makes a phone and a participant one person. Of two ballots in a round, the participant's stays.
    fn seat(&mut self, phone: &str, who: &str) {
        if !self.people.contains_key(who) {
            return;
        }
        let of_phone = self.people.remove(phone);
        self.class.renamed.remove(phone);
        self.seats.insert(phone.to_owned(), who.to_owned());
        for here in self.here_at_close.values_mut() {
            if here.remove(phone) {
                here.insert(who.to_owned());
            }
        }
        if let (Some(of_phone), Some(person)) = (of_phone, self.people.get_mut(who)) {
            for (round, choice) in of_phone.record.ballots {
                person.record.ballots.entry(round).or_insert(choice);
            }
        }
    }

    /// Counts a round of a vote by its number.
    pub fn round(&self, vote: &Vote, number: u64) -> RoundCount {
        let closed = self.here_at_close.get(&number);
        let mut round = RoundCount {
            counts: vec![0; vote.choices],
            ..RoundCount::default()
        };
        let mut phones = BTreeSet::new();
        for (id, person) in &self.people {
            let was_here = match closed {
                Some(here) => here.contains(id),
                None => person.is_here(),
            };
            round.here += u32::from(was_here);
            let choice = person.record.ballots.get(&number);
            if let Some(votes) = choice.and_then(|choice| round.counts.get_mut(*choice)) {
                *votes += 1;
                round.gone += u32::from(!was_here);
                let is_phone = !person.origin.browser.is_empty();
                round.alike += u32::from(is_phone && !phones.insert(&person.origin));
            }
        }
        round
    }

    /// Returns what one participant is told of the class over the network.
    pub fn class_of(&self, id: &str) -> ClassState {
        let person = self.person(id);
        let mut class = self.class.clone();
        class.removed.clear();
        class
            .renamed
            .retain(|other, _| person.is_some_and(|person| person.record.id == *other));
        class.seat = person.map_or_else(String::new, |person| person.seat.clone());
        class.counted = person
            .and_then(|person| self.counted(person))
            .into_iter()
            .collect();
        class
    }

    /// Returns what everybody in a folder reads of the class.
    pub fn class_of_all(&self) -> ClassState {
        let people = self.people.values();
        ClassState {
            refused: self.refused.clone(),
            counted: people.filter_map(|person| self.counted(person)).collect(),
            ..self.class.clone()
        }
    }

    /// Returns the ballot of a participant in the newest round, with the participant's id; `None` if there is none.
    fn counted(&self, person: &KnownParticipant) -> Option<(String, Counted)> {
        let (_, vote) = self.class.newest_vote()?;
        let round = vote.number()?;
        let choice = *person.record.ballots.get(&round)?;
        Some((person.record.id.clone(), Counted { round, choice }))
    }

    /// Returns the participant with this id, or whose seat the phone with this id has taken.
    pub fn person(&self, id: &str) -> Option<&KnownParticipant> {
        let who = self.seats.get(id).map_or(id, String::as_str);
        self.people.get(who)
    }

    /// Returns the name on the board.
    pub fn name_of<'a>(&'a self, person: &'a Participant) -> &'a str {
        match self.class.renamed.get(&person.id) {
            Some(renamed) => renamed,
            None if person.name.is_empty() => NO_NAME,
            None => &person.name,
        }
    }

    /// Notes the fault of a file or of a participant's record; `None` clears it.
    pub fn note(&mut self, file: String, why: Option<String>) {
        if self.faults.get(&file) == why.as_ref() {
            return;
        }
        self.revision += 1;
        match why {
            Some(why) => drop(self.faults.insert(file, why)),
            None => drop(self.faults.remove(&file)),
        }
    }

    /// Numbers the name of a participant if it is already in use. The first participant keeps the name, even after leaving.
    fn number_name(&mut self, id: &str) {
        let Some(person) = self.people.get(id) else {
            return;
        };
        let name = person.record.name.clone();
        let mut taken = BTreeSet::new();
        for (other, person) in &self.people {
            if other != id {
                taken.insert(self.name_of(&person.record).to_lowercase());
            }
        }
        self.class.renamed.remove(id);
        if name.is_empty() || !taken.contains(&name.to_lowercase()) {
            return;
        }
        let mut numbered = (2..).map(|number| format!("{name} ({number})"));
        let free = numbered.find(|numbered| !taken.contains(&numbered.to_lowercase()));
        if let Some(free) = free {
            self.class.renamed.insert(id.to_owned(), free);
        }
    }
}

impl KnownParticipant {
    /// Raises or lowers the hand.
    fn raise(&mut self, up: bool, at_ms: u64) {
        self.record.raised = up;
        self.raised_ms = up.then_some(at_ms);
    }

    /// Adds a change of the participant's work.
    fn add(&mut self, work: &Work) {
        let record = &mut self.record;
        if let Some(device) = &work.device {
            record.device.clone_from(device);
        }
        if let Some((here, since_ms)) = &work.here {
            record.here.clone_from(here);
            self.since_ms = *since_ms;
        }
        for (id, shared) in &work.stages {
            match shared {
                Some(shared) => drop(record.stages.insert(id.clone(), shared.clone())),
                None => drop(record.stages.remove(id)),
            }
        }
    }
}

/// Returns the numbers of the lines that were taken back.
fn undone(history: &[Entry]) -> BTreeSet<u64> {
    let lines = history.iter().filter_map(|entry| match entry.fact {
        Fact::Undone { line } => Some(line),
        _ => None,
    });
    lines.collect()
}
