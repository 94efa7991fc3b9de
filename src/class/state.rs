//! The state of a class, computed from the lines of its log, one after the other. `requests` turns what participants and the
//! instructor ask for into new lines, and nothing else changes the class. The code here reads no clock and writes no file: the caller
//! passes the time, and brings the new lines to the disk.
//!
//! Heartbeats are not logged. The log only says when a participant came back or went away.

use std::collections::{BTreeMap, BTreeSet};

use super::log::{Fact, LogLine, Origin, WorkChange};
use super::record::{ClassState, Counted, Participant, Question, Vote};

/// The name on the board of a participant who has given none.
pub const NO_NAME: &str = "no name";

mod requests;

pub use requests::{AWAY_MS, JoinError, MOST_PEOPLE};

/// A participant, and everything that the log says about them.
#[derive(Clone, Debug)]
pub struct KnownParticipant {
    /// The participant's record as the log has it: only ballots that were counted, and only results that count.
    pub record: Participant,
    /// The number in the order of joining, from 1. Unlike the id it is no secret.
    pub number: usize,
    /// True if the participant has sent nothing for a minute.
    pub away: bool,
    /// The time at which `record.open_task` was opened, in milliseconds of the log.
    pub since_ms: u64,
    /// The time at which the participant raised the hand; `None` while it is down.
    pub raised_ms: Option<u64>,
    pub origin: Origin,
    /// The code with which a phone joins as this participant.
    pub seat: String,
}

impl KnownParticipant {
    /// Returns true if the participant is neither away nor gone.
    pub fn is_here(&self) -> bool {
        !self.away && !self.record.left
    }

    /// Returns the public id of the participant, for orders and the board: `n12` for number 12.
    pub fn key(&self) -> String {
        format!("n{}", self.number)
    }
}

/// The state of a class after the lines of its log so far.
#[derive(Clone, Debug, Default)]
pub struct RoomState {
    /// The part of the state that participants receive. Its fields for single participants are filled by `class_for` and
    /// `class_for_folder`.
    pub class: ClassState,
    /// The participants by their ids.
    pub people: BTreeMap<String, KnownParticipant>,
    /// The time at which the race ends by itself, in milliseconds of the log.
    pub race_until: Option<u64>,
    /// The ids of the participants who were here when a round was closed, by the number of the round.
    here_at_close: BTreeMap<u64, BTreeSet<String>>,
    /// The ids of the participants as whom phones have joined, by the id of the phone.
    seats: BTreeMap<String, String>,
    /// The number of participants who have ever joined.
    joined: usize,
    /// The names of the files in the folder whose orders were carried out.
    requests: BTreeSet<String>,
    history: Vec<LogLine>,
    /// The reasons why participants whose files are in the folder are not in the room, by id. They are not in the log.
    pub refused: BTreeMap<String, String>,
    /// The faults that the board shows, such as records that could not be read or were not plausible, by file or participant. They are
    /// not in the log.
    pub faults: BTreeMap<String, String>,
    /// `Participant::sequence` of the last record, by participant. Not in the log.
    sequences: BTreeMap<String, u64>,
    /// The time of the last record or request, by participant, in milliseconds of the log. Not in the log.
    last_seen_ms: BTreeMap<String, u64>,
    /// A number that grows with every visible change.
    pub revision: u64,
}

/// The count of a round of a vote.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoundCount {
    /// The number of ballots for each answer.
    pub counts: Vec<u32>,
    /// The number of participants who are here, or were here when the round was closed.
    pub here: u32,
    /// The number of ballots from participants who are not counted in `here`.
    pub gone: u32,
    /// The number of ballots that look like a second vote of one person: from a phone with the address and browser of another phone
    /// that has voted in this round.
    pub alike: u32,
}

impl RoomState {
    /// Returns the state of a class with this log.
    pub fn from_log(history: Vec<LogLine>) -> Self {
        let mut room = Self::default();
        room.replay(history);
        room
    }

    /// Applies all lines of a log except those that were taken back.
    fn replay(&mut self, history: Vec<LogLine>) {
        let undone = undone(&history);
        for line in &history {
            if !undone.contains(&line.number) {
                self.apply(line);
            }
        }
        self.history = history;
        self.revision += 1;
    }

    /// Appends a line and applies it.
    fn append(&mut self, line: LogLine) {
        if matches!(line.fact, Fact::Undone { .. }) {
            let mut history = std::mem::take(&mut self.history);
            history.push(line);
            self.restart(history);
        } else {
            self.apply(&line);
            self.history.push(line);
            self.revision += 1;
        }
    }

    /// Forgets every line after the first `lines`.
    pub fn roll_back(&mut self, lines: usize) {
        let mut history = std::mem::take(&mut self.history);
        history.truncate(lines);
        self.restart(history);
    }

    /// Computes the state anew from another log. The fields that are not in the log stay as they are.
    fn restart(&mut self, history: Vec<LogLine>) {
        let mut room = Self {
            faults: std::mem::take(&mut self.faults),
            refused: std::mem::take(&mut self.refused),
            sequences: std::mem::take(&mut self.sequences),
            last_seen_ms: std::mem::take(&mut self.last_seen_ms),
            revision: self.revision,
            ..Self::default()
        };
        room.replay(history);
        *self = room;
    }

    /// Returns all lines of the log.
    pub fn history(&self) -> &[LogLine] {
        &self.history
    }

    /// Returns the time of the last line, in milliseconds.
    pub fn last_ms(&self) -> u64 {
        self.history.last().map_or(0, |line| line.time_ms)
    }

    /// Appends a line with a fact. `request` is the name of the file in the folder with the order that led to it, if it came in a file.
    fn write(&mut self, request: Option<String>, fact: Fact, now_ms: u64) {
        self.append(LogLine {
            number: self.next_number(),
            time_ms: now_ms.max(self.last_ms()),
            request,
            fact,
        });
    }

    /// Returns the number of the next line.
    fn next_number(&self) -> u64 {
        self.history.last().map_or(1, |last| last.number + 1)
    }

    /// Changes the state by a line. A line about a participant who is no longer in the room changes nothing.
    fn apply(&mut self, line: &LogLine) {
        self.requests.extend(line.request.clone());
        let now_ms = line.time_ms;
        match &line.fact {
            Fact::Opened { version, day } => {
                self.class.version = *version;
                self.class.opened.clone_from(day);
            }
            Fact::Joined {
                who,
                name,
                seat,
                origin,
            } => self.join(who, name, seat, origin, now_ms),
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
                person.raise(false, now_ms);
            }),
            Fact::Hand { who, up } => self.change(who, |person| person.raise(*up, now_ms)),
            Fact::Work(work) => self.change(&work.who, |person| person.update_work(work)),
            Fact::Result { who, task, result } => self.change(who, |person| {
                person.record.races.insert(task.clone(), *result);
            }),
            // The order that opened this round may have been taken back.
            Fact::Ballot { round, .. } if self.class.open_round() != Some(*round) => {}
            Fact::Ballot { who, round, choice } => self.change(who, |person| {
                person.record.ballots.entry(*round).or_insert(*choice);
            }),
            Fact::Seated { phone, who } => self.merge_phone(phone, who),
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
        if line.fact.is_order() || matches!(line.fact, Fact::Undone { .. }) {
            self.class.sequence = line.number;
        }
    }

    /// Changes a participant who is in the room; does nothing for anybody else.
    fn change(&mut self, who: &str, change: impl FnOnce(&mut KnownParticipant)) {
        if let Some(person) = self.people.get_mut(who) {
            change(person);
        }
    }

    /// Adds a participant.
    fn join(&mut self, who: &str, name: &str, seat: &str, origin: &Origin, now_ms: u64) {
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
            since_ms: now_ms,
            raised_ms: None,
            origin: origin.clone(),
            seat: seat.to_owned(),
        };
        self.people.insert(who.to_owned(), joined);
        self.number_name(who);
    }

    /// Opens a round of the vote on a stage or question, and closes any other vote.
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

    /// Closes the open vote, and remembers which participants are here now.
    fn close_vote(&mut self) {
        for vote in self.class.votes.values_mut().filter(|vote| vote.open) {
            vote.open = false;
            if let Some(round) = vote.number() {
                let here = self.people.iter().filter(|(_, person)| person.is_here());
                let ids = here.map(|(id, _)| id.clone()).collect();
                self.here_at_close.insert(round, ids);
            }
        }
    }

    /// Makes a phone and a participant one person. If both have voted in a round, the participant's ballot stays.
    fn merge_phone(&mut self, phone: &str, who: &str) {
        if !self.people.contains_key(who) {
            return;
        }
        let removed = self.people.remove(phone);
        self.class.renamed.remove(phone);
        self.seats.insert(phone.to_owned(), who.to_owned());
        for here in self.here_at_close.values_mut() {
            if here.remove(phone) {
                here.insert(who.to_owned());
            }
        }
        if let (Some(removed), Some(person)) = (removed, self.people.get_mut(who)) {
            for (round, choice) in removed.record.ballots {
                person.record.ballots.entry(round).or_insert(choice);
            }
        }
    }

    /// Counts the round of a vote that has this number.
    pub fn round(&self, vote: &Vote, number: u64) -> RoundCount {
        let here_at_close = self.here_at_close.get(&number);
        let mut round = RoundCount {
            counts: vec![0; vote.choices],
            ..RoundCount::default()
        };
        let mut phones = BTreeSet::new();
        for (id, person) in &self.people {
            let was_here = match here_at_close {
                Some(ids) => ids.contains(id),
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

    /// Returns the state of the class that is sent to one participant over the network, without the secrets of others.
    pub fn class_for(&self, id: &str) -> ClassState {
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

    /// Returns the state of the class for the file in a shared folder, which everybody reads.
    pub fn class_for_folder(&self) -> ClassState {
        let people = self.people.values();
        ClassState {
            refused: self.refused.clone(),
            counted: people.filter_map(|person| self.counted(person)).collect(),
            ..self.class.clone()
        }
    }

    /// Returns the id of a participant and the ballot of that participant in the newest round; `None` without a ballot.
    fn counted(&self, person: &KnownParticipant) -> Option<(String, Counted)> {
        let (_, vote) = self.class.newest_vote()?;
        let round = vote.number()?;
        let choice = *person.record.ballots.get(&round)?;
        Some((person.record.id.clone(), Counted { round, choice }))
    }

    /// Returns the participant with this id, or the participant as whom the phone with this id has joined.
    pub fn person(&self, id: &str) -> Option<&KnownParticipant> {
        let who = self.seats.get(id).map_or(id, String::as_str);
        self.people.get(who)
    }

    /// Returns the name of a participant on the board.
    pub fn name_of<'a>(&'a self, person: &'a Participant) -> &'a str {
        match self.class.renamed.get(&person.id) {
            Some(renamed) => renamed,
            None if person.name.is_empty() => NO_NAME,
            None => &person.name,
        }
    }

    /// Sets the fault that the board shows for `source`, such as the name of a file; `None` removes it.
    pub fn set_fault(&mut self, source: String, fault: Option<String>) {
        if self.faults.get(&source) == fault.as_ref() {
            return;
        }
        self.revision += 1;
        match fault {
            Some(fault) => drop(self.faults.insert(source, fault)),
            None => drop(self.faults.remove(&source)),
        }
    }

    /// Adds a number to the name of a participant if it is already in use: `Ana (2)`. The first participant keeps the name, even after
    /// leaving.
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
        let mut candidates = (2..).map(|number| format!("{name} ({number})"));
        if let Some(free) = candidates.find(|name| !taken.contains(&name.to_lowercase())) {
            self.class.renamed.insert(id.to_owned(), free);
        }
    }
}

impl KnownParticipant {
    /// Raises or lowers the hand.
    fn raise(&mut self, up: bool, now_ms: u64) {
        self.record.raised = up;
        self.raised_ms = up.then_some(now_ms);
    }

    fn update_work(&mut self, work: &WorkChange) {
        let record = &mut self.record;
        if let Some(device) = &work.device {
            record.device.clone_from(device);
        }
        if let Some((task, since_ms)) = &work.opened {
            record.open_task.clone_from(task);
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
fn undone(history: &[LogLine]) -> BTreeSet<u64> {
    history
        .iter()
        .filter_map(|line| match line.fact {
            Fact::Undone { line } => Some(line),
            _ => None,
        })
        .collect()
}
