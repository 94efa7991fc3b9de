//! What the instructor's side knows: the class, and everybody who was heard, with the time on its own clock. Pure: times come in.

use std::collections::BTreeMap;

use super::record::{Class, Order, Participant};

/// Most participants of one room.
pub const MOST_PEOPLE: usize = 1000;

/// Somebody who was heard.
#[derive(Clone, Debug)]
pub struct Person {
    pub record: Participant,
    /// When it last said something new, in milliseconds of this side.
    pub heard_ms: u64,
}

#[derive(Clone, Debug, Default)]
pub struct Hall {
    pub class: Class,
    pub people: BTreeMap<String, Person>,
    /// What could not be read, by file: one line each.
    pub faults: BTreeMap<String, String>,
    /// Grows whenever there is something new to show.
    pub revision: u64,
}

impl Hall {
    pub fn new(class: Class) -> Self {
        Self {
            class,
            ..Self::default()
        }
    }

    /// Takes a record in; false where the room is full. The same record once more is no sign of life.
    pub fn hear(&mut self, record: Participant, now_ms: u64) -> bool {
        let known = self.people.get(&record.id);
        if known.is_none() && self.people.len() >= MOST_PEOPLE {
            return false;
        }
        if known.is_some_and(|it| it.record.sequence == record.sequence) {
            return true;
        }
        let name_is_new = known.is_none_or(|it| it.record.name != record.name);
        self.revision += 1;
        let heard_ms = now_ms;
        let id = record.id.clone();
        self.people.insert(id, Person { record, heard_ms });
        if name_is_new {
            self.name_apart();
        }
        true
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
    pub fn obey(&mut self, order: &Order) {
        self.revision += 1;
        let people = &self.people;
        self.class
            .obey(order, |stage, round| count(people, stage, round));
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

fn count(people: &BTreeMap<String, Person>, stage: &str, round: usize) -> Vec<u32> {
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
        let mut hall = Hall::new(Class::new());
        for (id, name) in [
            ("1", "Ana"),
            ("2", "Bo"),
            ("3", "Ana"),
            ("4", ""),
            ("5", ""),
        ] {
            assert!(hall.hear(record(id, name, 1), 0));
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
        let mut hall = Hall::new(Class::new());
        hall.hear(record("1", "", 1), 0);
        hall.hear(record("1", "", 1), 9);
        assert_eq!(hall.people["1"].heard_ms, 0);
        hall.hear(record("1", "", 2), 9);
        assert_eq!(hall.people["1"].heard_ms, 9);
    }

    #[test]
    fn a_full_room_takes_nobody_else() {
        let mut hall = Hall::new(Class::new());
        for n in 0..MOST_PEOPLE {
            assert!(hall.hear(record(&n.to_string(), "", 1), 0));
        }
        assert!(!hall.hear(record("x", "", 1), 0));
        assert!(hall.hear(record("7", "", 2), 0), "who is in stays in");
    }
}
