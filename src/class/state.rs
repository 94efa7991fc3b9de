//! The state of the instructor's side: the class, and all participants with times on this side's clock. Pure functions: the caller
//! passes the time.

use std::collections::{BTreeMap, BTreeSet};

use super::record::{ClassState, InstructorRequest, Participant, Vote};

/// Most participants of one room.
pub const MOST_PEOPLE: usize = 1000;

/// Why a record is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinError {
    Full,
    Removed,
}

/// A participant from whom a record came.
#[derive(Clone, Debug)]
pub struct KnownParticipant {
    pub record: Participant,
    /// Time of the last new record, in milliseconds of this side.
    pub heard_ms: u64,
    /// When the participant raised the hand, if it is up.
    pub raised_ms: Option<u64>,
}

#[derive(Clone, Debug, Default)]
pub struct RoomState {
    pub class: ClassState,
    pub people: BTreeMap<String, KnownParticipant>,
    /// Records that could not be read or were not plausible, by file or participant: one line each.
    pub faults: BTreeMap<String, String>,
    /// Grows with every visible change.
    pub revision: u64,
    /// Ballots that were taken out of a count, by the number of the round and the participant.
    taken_back: BTreeSet<(u64, String)>,
}

impl RoomState {
    pub fn new(class: ClassState) -> Self {
        Self {
            class,
            ..Self::default()
        }
    }

    /// Receives a record. Receiving the same record again does not count as a heartbeat.
    pub fn hear(&mut self, mut record: Participant, now_ms: u64) -> Result<(), JoinError> {
        if self.class.removed.contains(&record.id) {
            return Err(JoinError::Removed);
        }
        let known = self.people.get(&record.id);
        if known.is_none() && self.people.len() >= MOST_PEOPLE {
            return Err(JoinError::Full);
        }
        if known.is_some_and(|it| it.record.sequence == record.sequence) {
            return Ok(());
        }
        if let Some(known) = known {
            record.keep(&known.record);
        }
        let name_is_new = known.is_none_or(|it| it.record.name != record.name);
        let up_since = known.and_then(|it| it.raised_ms).unwrap_or(now_ms);
        let up = record.raised && !record.left;
        self.revision += 1;
        let id = record.id.clone();
        let known = KnownParticipant {
            record,
            heard_ms: now_ms,
            raised_ms: up.then_some(up_since),
        };
        self.people.insert(id.clone(), known);
        if name_is_new {
            self.number_name(&id);
        }
        Ok(())
    }

    /// Records the fault of a file, or clears it.
    pub fn note(&mut self, file: String, why: Option<String>) {
        if self.faults.get(&file) != why.as_ref() {
            self.revision += 1;
            match why {
                Some(why) => drop(self.faults.insert(file, why)),
                None => drop(self.faults.remove(&file)),
            }
        }
    }

    /// Applies a request of the instructor.
    pub fn apply(&mut self, order: &InstructorRequest) {
        self.revision += 1;
        if let InstructorRequest::Remove(ids) = order {
            self.take_back_ballots(ids);
        }
        let people = &self.people;
        self.class
            .apply(order, |vote, round| count(people, vote, round));
        self.drop_removed();
    }

    /// Takes the ballots of participants out of the rounds that were counted.
    fn take_back_ballots(&mut self, ids: &BTreeSet<String>) {
        for vote in self.class.votes.values_mut() {
            let counted = if vote.open {
                vote.round
            } else {
                vote.counts.len()
            };
            for person in ids.iter().filter_map(|id| self.people.get(id)) {
                for (number, counts) in vote.asked.iter().zip(&mut vote.counts).take(counted) {
                    let choice = person.record.ballots.get(number);
                    let votes = choice.and_then(|it| counts.get_mut(*it));
                    let once = (*number, person.record.id.clone());
                    if let Some(votes) = votes.filter(|_| self.taken_back.insert(once)) {
                        *votes = votes.saturating_sub(1);
                    }
                }
            }
        }
    }

    /// Drops removed participants, including those whom a presenter on another machine removed.
    pub fn drop_removed(&mut self) {
        let removed = &self.class.removed;
        if !removed.is_empty() {
            self.people.retain(|id, _| !removed.contains(id));
            let gone = |key: &String| removed.iter().any(|id| key.ends_with(id.as_str()));
            self.faults.retain(|key, _| !gone(key));
        }
    }

    /// The name on the board.
    pub fn name_of<'a>(&'a self, person: &'a Participant) -> &'a str {
        match self.class.renamed.get(&person.id) {
            Some(renamed) => renamed,
            None if person.name.is_empty() => "no name",
            None => &person.name,
        }
    }

    /// Numbers the name of a participant if it is already in use: the first participant keeps it, even after leaving.
    fn number_name(&mut self, id: &str) {
        let Some(name) = self.people.get(id).map(|it| it.record.name.clone()) else {
            return;
        };
        let taken = |name: &str| {
            let name = name.to_lowercase();
            let others = self.people.iter().filter(|(other, _)| *other != id);
            !name.is_empty()
                && others
                    .map(|(_, it)| self.name_of(&it.record))
                    .any(|it| it.to_lowercase() == name)
        };
        let numbered = |n: usize| format!("{name} ({n})");
        let renamed = self.class.renamed.get(id);
        // A given number stays, because the room may have been opened again since.
        if renamed.is_some_and(|it| is_numbered(it, &name)) {
            return;
        }
        let new = taken(&name)
            .then(|| (2..).map(numbered).find(|it| !taken(it)))
            .flatten();
        if renamed != new.as_ref() {
            match new {
                Some(new) => drop(self.class.renamed.insert(id.to_owned(), new)),
                None => drop(self.class.renamed.remove(id)),
            }
            self.class.sequence += 1;
        }
    }
}

/// Whether this is a numbered name: `Ana (2)`.
fn is_numbered(shown: &str, name: &str) -> bool {
    let number = shown
        .strip_prefix(name)
        .and_then(|it| it.strip_prefix(" ("));
    number.is_some_and(|it| it.ends_with(')'))
}

/// Ballots of a round, by choice.
pub(super) fn count(
    people: &BTreeMap<String, KnownParticipant>,
    vote: &Vote,
    round: usize,
) -> Vec<u32> {
    let mut counts = Vec::new();
    for choice in people
        .values()
        .filter_map(|it| it.record.ballot(vote, round))
    {
        if choice < 26 {
            counts.resize(counts.len().max(choice + 1), 0);
            counts[choice] += 1;
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::class::record::{MysteryResult, RaceResult};

    fn record(id: &str, name: &str, sequence: u64) -> Participant {
        Participant {
            id: id.to_owned(),
            name: name.to_owned(),
            sequence,
            ..Participant::default()
        }
    }

    #[test]
    fn two_with_one_name_are_told_apart() {
        let mut room = RoomState::new(ClassState::new());
        for (id, name) in [
            ("1", "Ana"),
            ("2", "Bo"),
            ("3", "Ana"),
            ("4", ""),
            ("5", ""),
        ] {
            assert_eq!(room.hear(record(id, name, 1), 0), Ok(()));
        }
        let names: Vec<&str> = room
            .people
            .values()
            .map(|it| room.name_of(&it.record))
            .collect();
        assert_eq!(names, ["Ana", "Bo", "Ana (2)", "no name", "no name"]);
        // Nobody takes over a name, whatever the order of ids, and a reopened room keeps the names.
        room.hear(record("0", "ana (2)", 1), 0).expect("heard");
        assert_eq!(room.class.renamed["0"], "ana (2) (2)");
        let mut again = RoomState::new(room.class.clone());
        for id in ["0", "3", "1"] {
            let record = room.people[id].record.clone();
            again.hear(record, 0).expect("heard");
        }
        assert_eq!(again.name_of(&again.people["1"].record), "Ana");
        assert_eq!(again.name_of(&again.people["3"].record), "Ana (2)");
        let mut left = record("1", "Ana", 2);
        left.left = true;
        again.hear(left, 0).expect("heard");
        again.hear(record("9", "Ana", 1), 0).expect("heard");
        assert_eq!(again.class.renamed["9"], "Ana (3)");
    }

    #[test]
    fn a_hand_keeps_the_time_at_which_it_was_raised() {
        let mut room = RoomState::new(ClassState::new());
        let mut hand = |sequence, raised, now_ms| {
            let it = Participant {
                raised,
                ..record("1", "Ana", sequence)
            };
            room.hear(it, now_ms).expect("heard");
            room.people["1"].raised_ms
        };
        assert_eq!(hand(1, true, 10), Some(10));
        assert_eq!(hand(2, true, 90), Some(10));
        assert_eq!(hand(3, false, 95), None);
        assert_eq!(hand(4, true, 99), Some(99));
    }

    #[test]
    fn the_same_record_again_is_no_sign_of_life() {
        let mut room = RoomState::new(ClassState::new());
        for now_ms in [0, 9] {
            room.hear(record("1", "", 1), now_ms).expect("heard");
        }
        assert_eq!(room.people["1"].heard_ms, 0);
        room.hear(record("1", "", 2), 9).expect("heard");
        assert_eq!(room.people["1"].heard_ms, 9);
    }

    #[test]
    fn a_result_outlives_the_program_that_measured_it() {
        let mut room = RoomState::new(ClassState::new());
        let mut ran = record("1", "Ana", 1);
        let of_mystery = |points| RaceResult {
            ratio: Some([1.0, 0.9, 1.1]),
            mystery: Some(MysteryResult {
                points,
                ..MysteryResult::default()
            }),
        };
        let of_kernel = |ratio| RaceResult {
            ratio: Some([ratio, ratio, ratio]),
            mystery: None,
        };
        ran.races.insert("mystery 7-1".to_owned(), of_mystery(60));
        ran.races.insert("k04".to_owned(), of_kernel(2.0));
        room.hear(ran, 0).expect("heard");
        room.hear(record("1", "Ana", 2), 9).expect("heard");
        let kept = |room: &RoomState, task: &str| room.people["1"].record.races[task];
        assert_eq!(kept(&room, "mystery 7-1"), of_mystery(60));
        let mut again = record("1", "Ana", 3);
        again.races.insert("mystery 7-1".to_owned(), of_mystery(95));
        again.races.insert("k04".to_owned(), of_kernel(3.0));
        room.hear(again, 9).expect("heard");
        assert_eq!(kept(&room, "mystery 7-1"), of_mystery(60), "only once");
        assert_eq!(kept(&room, "k04"), of_kernel(3.0));
    }

    #[test]
    fn a_full_room_takes_nobody_else() {
        let mut room = RoomState::new(ClassState::new());
        for n in 0..MOST_PEOPLE {
            assert_eq!(room.hear(record(&n.to_string(), "", 1), 0), Ok(()));
        }
        assert_eq!(room.hear(record("x", "", 1), 0), Err(JoinError::Full));
        assert_eq!(
            room.hear(record("7", "", 2), 0),
            Ok(()),
            "who is in stays in"
        );
    }

    #[test]
    fn who_was_removed_is_not_heard_until_let_in() {
        let mut room = RoomState::new(ClassState::new());
        room.hear(record("1", "Ana", 1), 0).expect("heard");
        room.apply(&InstructorRequest::Remove(["1".to_owned()].into()));
        assert!(room.people.is_empty());
        assert_eq!(room.hear(record("1", "Ana", 2), 0), Err(JoinError::Removed));
        room.apply(&InstructorRequest::LetIn);
        assert_eq!(room.hear(record("1", "Ana", 3), 0), Ok(()));
    }
}
