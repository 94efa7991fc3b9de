//! The instructor's board: where participants are, who needs help, and the state of votes and race. `Board::from_room` computes it
//! from the state of the room. The terminal and the page for the projector both draw this one value.

mod race;
mod tally;

pub use race::{Race, RaceRank, race};
pub use tally::{Answer, VoteTally, tally, tally_without_votes};

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::record::{ClassState, SharedWork};
use super::state::{KnownParticipant, RoomState};
use crate::course::Course;

/// The board warns of this number of participants from one address, and of more.
const CROWD: usize = 20;
/// A participant who has been in one stage for this number of seconds and has not passed it may be stuck.
const STUCK_S: u64 = 600;

/// Everything that the board shows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Board {
    /// The day on which the room was first opened.
    pub opened: String,
    /// True if the instructor has closed the room.
    pub closed: bool,
    /// The participants. Those with a raised hand come first, then those who are here, then the others.
    pub rows: Vec<ParticipantRow>,
    /// The number of participants who are here.
    pub here: usize,
    /// The number of participants who have not started a stage and have not left.
    pub not_started: usize,
    /// The number of raised hands.
    pub raised: usize,
    /// All stages of the course.
    pub stages: Vec<StageColumn>,
    /// The offer to all participants, in words.
    pub offer: Option<String>,
    /// The open vote, or the one that was closed last.
    pub vote: Option<VoteTally>,
    /// Every vote on a stage so far, for the presenter.
    pub votes: Vec<VoteTally>,
    pub race: Option<Race>,
    /// True if nobody else may join.
    #[serde(default)]
    pub locked: bool,
    /// True if everybody who joins has to give a name.
    #[serde(default)]
    pub names_required: bool,
    /// The address from which most participants joined, if there are at least `CROWD` of them.
    #[serde(default)]
    pub crowd: Option<Crowd>,
    /// The faults of the room, such as records that could not be read, in one line each.
    pub faults: Vec<String>,
}

/// Many participants from one address. They may be a class behind one router, or one program that pretends to be many.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Crowd {
    pub address: String,
    /// The number of participants.
    pub people: usize,
}

/// One participant on the board.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ParticipantRow {
    /// The public id of the participant, which orders name: `n12`.
    #[serde(default)]
    pub id: String,
    pub name: String,
    pub device: String,
    /// The number of the open stage, or the id of the open exercise; empty for none.
    #[serde(rename = "at")]
    pub open_task: String,
    /// The seconds since the participant opened it.
    #[serde(rename = "at_s")]
    pub open_s: u64,
    /// True if the participant is here and may be stuck (`STUCK_S`).
    pub stuck: bool,
    pub raised: bool,
    /// The place among the raised hands, from 1.
    pub hand: Option<usize>,
    pub presence: Presence,
    /// True if the participant has predicted or passed something.
    pub started: bool,
    /// The number of passed stages and exercises.
    pub passed: usize,
    /// The number of checks that are met in the open stage or exercise, and of all its checks.
    pub checks: Option<[u32; 2]>,
    /// The number of hints that were read.
    pub hints: u32,
    /// The best measured ratio.
    pub best: Option<f64>,
}

/// The presence of a participant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Presence {
    #[default]
    Here,
    /// The participant has sent nothing for a minute.
    Away,
    Left,
}

/// One stage on the board.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageColumn {
    #[serde(default)]
    pub id: String,
    pub number: u32,
    pub title: String,
    /// The number of participants who have it open now.
    pub here: usize,
    /// The number of participants who have passed it.
    pub passed: usize,
}

impl Board {
    /// Returns the board of a room. `now_ms` is the present time in milliseconds of the log.
    pub fn from_room(room: &RoomState, course: &Course, now_ms: u64) -> Self {
        let class = &room.class;
        let rows = rows(room, course, now_ms);
        let is_here = |row: &&ParticipantRow| row.presence == Presence::Here;
        let has_not_begun = |row: &&ParticipantRow| !row.started && row.presence != Presence::Left;
        let mut votes = Vec::new();
        let mut stages = Vec::new();
        for stage in &course.stages {
            votes.extend(tally(room, course, &stage.id));
            let is_in = |person: &&KnownParticipant| {
                person.is_here() && person.record.open_task == stage.id
            };
            let has_passed = |person: &&KnownParticipant| {
                let work = person.record.stages.get(&stage.id);
                work.is_some_and(SharedWork::is_passed)
            };
            stages.push(StageColumn {
                id: stage.id.clone(),
                number: stage.number,
                title: stage.title.clone(),
                here: room.people.values().filter(is_in).count(),
                passed: room.people.values().filter(has_passed).count(),
            });
        }
        let newest = class.newest_vote();
        let remaining_s = room
            .race_until
            .map(|until| until.saturating_sub(now_ms) / 1000);
        Self {
            opened: class.opened.clone(),
            closed: class.closed,
            here: rows.iter().filter(is_here).count(),
            not_started: rows.iter().filter(has_not_begun).count(),
            raised: rows.iter().filter(|row| row.raised).count(),
            stages,
            offer: offer_in_words(class, course),
            vote: newest.and_then(|(id, _)| tally(room, course, id)),
            votes,
            race: class.race.as_ref().map(|task| Race {
                remaining_s,
                ..race(room, task)
            }),
            locked: class.locked,
            names_required: class.names_required,
            crowd: crowd(room),
            faults: room.faults.values().cloned().collect(),
            rows,
        }
    }

    /// Returns the board that everybody may see: without addresses and faults, and without the counts of a vote that is still open.
    pub fn for_everybody(mut self) -> Self {
        self.votes.clear();
        self.crowd = None;
        self.faults.clear();
        if let Some(vote) = &mut self.vote {
            if vote.open {
                vote.rounds.clear();
                vote.ranges.clear();
                vote.measured = None;
                vote.alike = 0;
            }
            vote.turnout_text = vote.turnout_sentence();
        }
        self
    }
}

/// Returns a sentence about what the class is doing at present.
pub fn present_activity(class: &ClassState, course: &Course) -> String {
    if class.closed {
        "The room is closed.".to_owned()
    } else if class.open_vote().is_some() {
        "The class votes.".to_owned()
    } else if let Some(task) = &class.race {
        format!("The class races at its computers: {task}.")
    } else if let Some(offer) = offer_in_words(class, course) {
        format!("The class is at {offer}.")
    } else {
        "The next question appears here.".to_owned()
    }
}

/// Returns the offered stage in words, such as `stage 2 Strides`; `None` if no stage is offered.
fn offer_in_words(class: &ClassState, course: &Course) -> Option<String> {
    let stage = course.stage_by_id(class.offer.as_ref()?)?;
    Some(stage_in_words(stage.number, &stage.title))
}

/// Returns the address from which most participants joined; `None` if these are fewer than `CROWD`.
fn crowd(room: &RoomState) -> Option<Crowd> {
    let mut people: BTreeMap<&str, usize> = BTreeMap::new();
    for person in room.people.values() {
        let address = person.origin.address.as_str();
        if !address.is_empty() {
            *people.entry(address).or_default() += 1;
        }
    }
    let (address, people) = people.into_iter().max_by_key(|(_, people)| *people)?;
    (people >= CROWD).then(|| Crowd {
        address: address.to_owned(),
        people,
    })
}

/// Returns the rows of all participants. Raised hands come first, in the order in which they were raised; the rows after them are
/// sorted by presence and name.
fn rows(room: &RoomState, course: &Course, now_ms: u64) -> Vec<ParticipantRow> {
    let mut people: Vec<&KnownParticipant> = room.people.values().collect();
    people.sort_by_cached_key(|person| {
        let raised_ms = person.raised_ms.unwrap_or(u64::MAX);
        let name = room.name_of(&person.record).to_lowercase();
        (raised_ms, presence(person), name)
    });
    let mut rows = Vec::new();
    for (person, place) in people.into_iter().zip(1..) {
        let mut row = row(person, room, course, now_ms);
        row.hand = row.raised.then_some(place);
        rows.push(row);
    }
    rows
}

fn presence(person: &KnownParticipant) -> Presence {
    if person.record.left {
        Presence::Left
    } else if person.away {
        Presence::Away
    } else {
        Presence::Here
    }
}

fn row(
    person: &KnownParticipant,
    room: &RoomState,
    course: &Course,
    now_ms: u64,
) -> ParticipantRow {
    let record = &person.record;
    let open_task = match course.stage_by_id(&record.open_task) {
        Some(stage) => stage.number.to_string(),
        None => record.open_task.clone(),
    };
    let open_work = record.stages.get(&record.open_task);
    let is_passed = open_work.is_some_and(SharedWork::is_passed);
    let open_s = now_ms.saturating_sub(person.since_ms) / 1000;
    let works = record.stages.values();
    let kernels = record.races.values().filter(|race| race.mystery.is_none());
    let ratios = works
        .clone()
        .filter_map(|work| work.ratio)
        .chain(kernels.filter_map(|race| race.ratio));
    ParticipantRow {
        id: person.key(),
        name: room.name_of(record).to_owned(),
        device: record.device.clone(),
        started: works.clone().any(SharedWork::has_begun),
        stuck: person.is_here() && !is_passed && !open_task.is_empty() && open_s >= STUCK_S,
        open_task,
        open_s,
        raised: person.raised_ms.is_some(),
        hand: None,
        presence: presence(person),
        passed: record.passed(),
        checks: open_work.and_then(|work| work.checks),
        hints: works.map(|work| work.hints).sum(),
        best: ratios.map(|[ratio, ..]| ratio).max_by(f64::total_cmp),
    }
}

/// Returns the number and the title of a stage, as the board shows an offer: `stage 2 Strides`.
pub fn stage_in_words(number: u32, title: &str) -> String {
    format!("stage {number} {title}")
}

/// Returns a duration in words: `40 s`, `4 min`, `1 h 10 min`, and `long` from a hundred hours on.
pub fn duration(seconds: u64) -> String {
    match (seconds / 3600, seconds / 60 % 60) {
        (0, 0) => format!("{seconds} s"),
        (0, minutes) => format!("{minutes} min"),
        (hours @ 1..=99, minutes) => format!("{hours} h {minutes} min"),
        _ => "long".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::class::log::Origin;
    use crate::class::record::{InstructorRequest, MysteryResult, Participant, RaceResult};
    use crate::class::state::AWAY_MS;

    fn room(course: &Course) -> RoomState {
        let mut room = RoomState::default();
        for (at, name) in ["Ana", "Bo", "Cy"].into_iter().enumerate() {
            let mut record = Participant {
                id: at.to_string(),
                name: name.to_owned(),
                sequence: 1,
                open_task: course.stages[at].id.clone(),
                open_s: 590,
                raised: at == 2,
                ..Participant::default()
            };
            let shared = SharedWork {
                state: if at == 0 { "passed" } else { "seen" }.to_owned(),
                vote: Some(at.min(1)),
                range: Some([1.0, 2.0]),
                measured: Some(1.5),
                ratio: Some([1.0 + at as f64, 1.0, 4.0]),
                hints: 1,
                ..SharedWork::default()
            };
            record.stages.insert(course.stages[0].id.clone(), shared);
            let device = if at == 1 { "gpu" } else { "cpu" };
            let kernel = |[ratio, low, high]: [f64; 3]| RaceResult {
                ratio: Some([ratio, low, high]),
                mystery: None,
            };
            let ratio = [[1.0, 0.9, 1.1], [3.0, 2.9, 3.1], [1.05, 0.95, 1.2]][at];
            record.races.insert("k04-matmul".to_owned(), kernel(ratio));
            let mystery = RaceResult {
                ratio: Some([1.0 + at as f64 / 100.0, 0.9, 1.1]),
                mystery: Some(MysteryResult {
                    points: [70, 90, 70][at],
                    seconds: 60,
                    configurations: [3, 9, 2][at],
                }),
            };
            record.races.insert("mystery 7-1".to_owned(), mystery);
            record.device = device.to_owned();
            room.receive(record, &Origin::default(), 590_000)
                .expect("received");
        }
        room
    }

    fn give_order(room: &mut RoomState, order: &InstructorRequest) {
        let now_ms = room.last_ms();
        room.carry_out(order, &Course::builtin(), now_ms)
            .expect("carried out");
    }

    #[test]
    fn the_board_says_who_needs_help() {
        let course = Course::builtin();
        let mut room = room(&course);
        let board = Board::from_room(&room, &course, 610_000);
        let rows: Vec<_> = board
            .rows
            .iter()
            .map(|row| (row.name.as_str(), row.open_task.as_str(), row.stuck))
            .collect();
        assert_eq!(
            rows,
            [("Cy", "3", true), ("Ana", "1", false), ("Bo", "2", true)]
        );
        assert_eq!((board.here, board.raised, board.not_started), (3, 1, 0));
        assert_eq!((board.stages[0].here, board.stages[0].passed), (1, 1));
        room.mark_away(590_000 + AWAY_MS);
        let later = Board::from_room(&room, &course, 650_000);
        assert!(later.rows.iter().all(|row| row.presence == Presence::Away));
        assert_eq!((later.here, later.stages[0].here), (0, 0));
    }

    #[test]
    fn an_open_vote_shows_only_how_many_have_voted() {
        let course = Course::builtin();
        let mut room = room(&course);
        let stage = course.stages[0].id.clone();
        give_order(&mut room, &InstructorRequest::OpenVote(stage.clone()));
        let vote = |room: &RoomState| {
            Board::from_room(room, &course, 0)
                .for_everybody()
                .vote
                .expect("a vote")
        };
        assert_eq!(vote(&room).voted, 0, "older predictions are no votes");
        cast(&mut room, &stage, [0, 1, 1]);
        let open = vote(&room);
        assert_eq!(
            (open.open, open.voted, open.rounds.len(), open.ranges.len()),
            (true, 3, 0, 0)
        );
        let answer = InstructorRequest::ShowAnswer {
            stage: stage.clone(),
            reason: "why".to_owned(),
        };
        give_order(&mut room, &answer);
        assert_eq!(vote(&room).answer, None, "not while it is open");
        give_order(&mut room, &InstructorRequest::CloseVote);
        give_order(&mut room, &answer);
        let closed = vote(&room);
        assert_eq!(closed.rounds[0][..2], [1, 2]);
        assert_eq!((closed.ranges.len(), closed.measured), (3, Some(1.5)));
        let choice = course.stages[0].prediction.answer;
        let reason = "why".to_owned();
        assert_eq!(closed.answer, Some(Answer { choice, reason }));
        give_order(&mut room, &InstructorRequest::OpenVote(stage.clone()));
        cast(&mut room, &stage, [1, 1, 1]);
        give_order(&mut room, &InstructorRequest::CloseVote);
        let both = vote(&room);
        assert_eq!((both.rounds[0][1], both.rounds[1][1]), (2, 3));
        assert_eq!(both.answer, None);
        // Who is removed counts in neither round, also once let in again.
        give_order(
            &mut room,
            &InstructorRequest::Remove(["1".to_owned()].into()),
        );
        let counts = |vote: &VoteTally| {
            let [first, second] = [&vote.rounds[0], &vote.rounds[1]];
            (first[..2].to_vec(), second[1], vote.voted)
        };
        assert_eq!(counts(&vote(&room)), (vec![1, 1], 2, 2));
        give_order(&mut room, &InstructorRequest::LetIn);
        let mut back = Participant::default();
        (back.id, back.name, back.sequence) = ("1".to_owned(), "Bo".to_owned(), 9);
        let asked = room.class.votes[&stage].asked.clone();
        back.ballots = asked.iter().map(|number| (*number, 1)).collect();
        room.receive(back, &Origin::default(), 0).expect("received");
        assert_eq!(counts(&vote(&room)), (vec![1, 1], 2, 2));
        give_order(
            &mut room,
            &InstructorRequest::Remove(["1".to_owned()].into()),
        );
        assert_eq!(counts(&vote(&room)), (vec![1, 1], 2, 2), "only once");
    }

    /// All participants vote in the open round.
    fn cast(room: &mut RoomState, stage: &str, choices: [usize; 3]) {
        let number = room.class.votes[stage].number().expect("a round");
        for (at, choice) in choices.into_iter().enumerate() {
            let mut record = room.people[&at.to_string()].record.clone();
            record.sequence = 100 + number;
            record.ballots.insert(number, choice);
            room.receive(record, &Origin::default(), 0)
                .expect("received");
        }
    }

    #[test]
    fn hands_stand_in_the_order_in_which_they_were_raised() {
        let course = Course::builtin();
        let mut room = room(&course);
        let mut ana = room.people["0"].record.clone();
        (ana.raised, ana.sequence) = (true, 2);
        room.receive(ana, &Origin::default(), 590_009)
            .expect("received");
        let board = Board::from_room(&room, &course, 590_009);
        let hands: Vec<_> = board
            .rows
            .iter()
            .map(|row| (&*row.name, row.hand))
            .collect();
        assert_eq!(hands, [("Cy", Some(1)), ("Ana", Some(2)), ("Bo", None)]);
    }

    #[test]
    fn kernels_rank_by_ratio_within_a_kind_of_device_and_mysteries_by_points_time_and_configurations()
     {
        let course = Course::builtin();
        let room = room(&course);
        let ranks = |task: &str| -> Vec<(String, Option<usize>)> {
            let ranks = race(&room, task).ranks.into_iter();
            ranks.map(|rank| (rank.name, rank.place)).collect()
        };
        let is = |name: &str, place| (name.to_owned(), Some(place));
        // Ana's interval overlaps Cy's: the two are equally fast.
        assert_eq!(
            ranks("k04-matmul"),
            [is("Cy", 1), is("Ana", 1), is("Bo", 1)]
        );
        assert_eq!(
            ranks("mystery 7-1"),
            [is("Bo", 1), is("Cy", 2), is("Ana", 3)]
        );
    }
}
