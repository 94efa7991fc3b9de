//! What the instructor's side knows: the class, and everybody who was heard, with the time on its own clock. Pure: times come in.

use std::collections::BTreeMap;

use super::record::{ClassState, InstructorRequest, Participant};

/// Most participants of one room.
pub const MOST_PEOPLE: usize = 1000;

/// Why a record is not taken in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinError {
    Full,
    Removed,
}

/// Somebody who was heard.
#[derive(Clone, Debug)]
pub struct KnownParticipant {
    pub record: Participant,
    /// When it last said something new, in milliseconds of this side.
    pub heard_ms: u64,
}

#[derive(Clone, Debug, Default)]
pub struct RoomState {
    pub class: ClassState,
    pub people: BTreeMap<String, KnownParticipant>,
    /// What could not be read, by file: one line each.
    pub faults: BTreeMap<String, String>,
    /// Grows whenever there is something new to show.
    pub revision: u64,
}

impl RoomState {
    pub fn new(class: ClassState) -> Self {
        Self {
            class,
            ..Self::default()
        }
    }

    /// Takes a record in. The same record once more is no sign of life.
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
        self.revision += 1;
        let heard_ms = now_ms;
        let id = record.id.clone();
        self.people
            .insert(id, KnownParticipant { record, heard_ms });
        if name_is_new {
            self.name_apart();
        }
        Ok(())
    }

    /// Notes what is wrong with a file, or that nothing is any more.
    pub fn note(&mut self, file: String, why: Option<String>) {
        if self.faults.get(&file) != why.as_ref() {
            self.revision += 1;
            match why {
                Some(why) => drop(self.faults.insert(file, why)),
                None => drop(self.faults.remove(&file)),
            }
        }
    }

    /// Does what the instructor asks for.
    pub fn apply(&mut self, order: &InstructorRequest) {
        self.revision += 1;
        let people = &self.people;
        self.class
            .apply(order, |stage, round| count(people, stage, round));
        self.send_out();
    }

    /// Drops those who were removed, also by a presenter on another machine.
    pub fn send_out(&mut self) {
        let removed = &self.class.removed;
        if !removed.is_empty() {
            self.people.retain(|id, _| !removed.contains(id));
        }
    }

    /// The votes on a stage in a round, by choice.
    pub fn count(&self, stage: &str, round: usize) -> Vec<u32> {
        count(&self.people, stage, round)
    }

    /// What the board calls somebody.
    pub fn name_of<'a>(&'a self, person: &'a Participant) -> &'a str {
        match self.class.renamed.get(&person.id) {
            Some(renamed) => renamed,
            None if person.name.is_empty() => "no name",
            None => &person.name,
        }
    }

    /// Numbers those who have one name: the first keeps it.
    fn name_apart(&mut self) {
        let mut taken: BTreeMap<&str, usize> = BTreeMap::new();
        let mut renamed = BTreeMap::new();
        for (id, person) in &self.people {
            let name = person.record.name.as_str();
            let so_many = taken.entry(name).or_default();
            *so_many += 1;
            if *so_many > 1 && !name.is_empty() {
                renamed.insert(id.clone(), format!("{name} ({so_many})"));
            }
        }
        if renamed != self.class.renamed {
            self.class.renamed = renamed;
            self.class.sequence += 1;
        }
    }
}

fn count(people: &BTreeMap<String, KnownParticipant>, stage: &str, round: usize) -> Vec<u32> {
    let mut counts = Vec::new();
    for choice in people
        .values()
        .filter_map(|it| it.record.vote(stage, round))
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
        let mut hall = RoomState::new(ClassState::new());
        for (id, name) in [
            ("1", "Ana"),
            ("2", "Bo"),
            ("3", "Ana"),
            ("4", ""),
            ("5", ""),
        ] {
            assert_eq!(hall.hear(record(id, name, 1), 0), Ok(()));
        }
        let names: Vec<&str> = hall
            .people
            .values()
            .map(|it| hall.name_of(&it.record))
            .collect();
        assert_eq!(names, ["Ana", "Bo", "Ana (2)", "no name", "no name"]);
    }

    #[test]
    fn the_same_record_again_is_no_sign_of_life() {
        let mut hall = RoomState::new(ClassState::new());
        for now_ms in [0, 9] {
            hall.hear(record("1", "", 1), now_ms).expect("heard");
        }
        assert_eq!(hall.people["1"].heard_ms, 0);
        hall.hear(record("1", "", 2), 9).expect("heard");
        assert_eq!(hall.people["1"].heard_ms, 9);
    }

    #[test]
    fn a_result_outlives_the_program_that_measured_it() {
        let mut hall = RoomState::new(ClassState::new());
        let mut ran = record("1", "Ana", 1);
        ran.races.insert("mystery 7-1".to_owned(), [2.0, 1.9, 2.1]);
        hall.hear(ran, 0).expect("heard");
        hall.hear(record("1", "Ana", 2), 9).expect("heard");
        assert_eq!(
            hall.people["1"].record.races["mystery 7-1"],
            [2.0, 1.9, 2.1]
        );
    }

    #[test]
    fn a_full_room_takes_nobody_else() {
        let mut hall = RoomState::new(ClassState::new());
        for n in 0..MOST_PEOPLE {
            assert_eq!(hall.hear(record(&n.to_string(), "", 1), 0), Ok(()));
        }
        assert_eq!(hall.hear(record("x", "", 1), 0), Err(JoinError::Full));
        assert_eq!(
            hall.hear(record("7", "", 2), 0),
            Ok(()),
            "who is in stays in"
        );
    }

    #[test]
    fn who_was_removed_is_not_heard_until_let_in() {
        let mut hall = RoomState::new(ClassState::new());
        hall.hear(record("1", "Ana", 1), 0).expect("heard");
        hall.apply(&InstructorRequest::Remove("1".to_owned()));
        assert!(hall.people.is_empty());
        assert_eq!(hall.hear(record("1", "Ana", 2), 0), Err(JoinError::Removed));
        hall.apply(&InstructorRequest::LetIn);
        assert_eq!(hall.hear(record("1", "Ana", 3), 0), Ok(()));
    }
}
