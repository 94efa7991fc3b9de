//! The instructor's board: where participants are, who needs help, and the state of votes and race. A pure function of the room's
//! state; the terminal and the page draw the same board.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::record::{ClassState, RaceResult, SharedWork, Vote, mystery_of};
use super::state::{KnownParticipant, RoomState};
use crate::course::save_file::letter;
use crate::course::{Course, Stage};
use crate::sanitize;

/// Participants from one address from which on the board says how many there are.
const CROWD: usize = 20;
/// Seconds in one stage without passing it after which a participant may be stuck.
pub const STUCK_S: u64 = 600;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Board {
    /// The day on which the room was first opened.
    pub opened: String,
    pub closed: bool,
    pub rows: Vec<ParticipantRow>,
    /// Participants who are present, and participants who have not started a stage.
    pub here: usize,
    pub not_started: usize,
    pub raised: usize,
    pub stages: Vec<StageColumn>,
    /// The offer to all participants, in words.
    pub offer: Option<String>,
    pub vote: Option<VoteTally>,
    /// Every vote so far, for the presenter.
    pub votes: Vec<VoteTally>,
    pub race: Option<Race>,
    /// True if nobody else may join; `names_required` is true if everybody who joins has to give a name.
    #[serde(default)]
    pub locked: bool,
    #[serde(default)]
    pub names_required: bool,
    /// The address from which most participants joined, where there are many.
    #[serde(default)]
    pub crowd: Option<Crowd>,
    /// Records that could not be read: one line each.
    pub faults: Vec<String>,
}

/// Many participants from one address: a class behind one router, or one program with many ids.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Crowd {
    pub address: String,
    pub people: usize,
}

/// One participant.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ParticipantRow {
    /// By which orders name the participant, in the order of joining: `n12`.
    #[serde(default)]
    pub id: String,
    pub name: String,
    pub device: String,
    /// The number of a stage, or the label of an exercise.
    pub at: String,
    pub at_s: u64,
    pub stuck: bool,
    pub raised: bool,
    /// Position among the raised hands, from 1.
    pub hand: Option<usize>,
    pub presence: Presence,
    /// True if something was predicted or passed.
    pub started: bool,
    /// Number of passed stages and exercises.
    pub passed: usize,
    /// Checks met in the open stage or exercise, and all its checks.
    pub checks: Option<[u32; 2]>,
    pub hints: u32,
    /// The best measured ratio.
    pub best: Option<f64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Presence {
    #[default]
    Here,
    Away,
    Left,
}

/// One stage: how many participants are in it, and how many have passed it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageColumn {
    pub number: u32,
    pub title: String,
    pub here: usize,
    pub passed: usize,
}

/// The present state of a vote.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct VoteTally {
    /// The stage's number; 0 for a free question.
    pub stage: u32,
    /// The id of the stage or question.
    #[serde(default)]
    pub vote: String,
    pub prompt: String,
    pub choices: Vec<String>,
    pub open: bool,
    /// 1 or 2.
    pub round: usize,
    pub voted: u32,
    /// Participants who are here, or were here at the end of the round.
    pub of: u32,
    /// How many of the votes are of people who are no longer here.
    #[serde(default)]
    pub left: u32,
    /// How many of the votes came from a phone that looks like another that has voted, at the same address.
    #[serde(default)]
    pub alike: u32,
    /// Votes by choice in each round; empty while they are hidden.
    pub rounds: Vec<Vec<u32>>,
    /// The ranges that participants predicted, and the median of the measurements.
    pub ranges: Vec<[f64; 2]>,
    pub measured: Option<f64>,
    pub unit: String,
    /// The right choice and its reason, once the instructor has shown them.
    pub answer: Option<Answer>,
}

/// The answer to a vote.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    pub choice: usize,
    pub reason: String,
}

impl VoteTally {
    /// How many have voted, in words: `27 of 28 here, and 1 who left`.
    pub fn who(&self) -> String {
        format!(
            "{} of {} here{}",
            self.voted - self.left.min(self.voted),
            self.of,
            self.others()
        )
    }

    fn others(&self) -> String {
        let mut said = String::new();
        if self.left > 0 {
            said += &format!(", and {} who left", self.left);
        }
        if self.alike > 0 {
            said += &format!("; {} perhaps from a phone that has voted", self.alike);
        }
        said
    }

    /// How the vote stands, in words: who has voted while it is open, then each choice with its votes, in both rounds.
    pub fn in_words(&self) -> String {
        if self.open {
            let again = if self.round > 1 { " once more" } else { "" };
            let voted = self.voted - self.left.min(self.voted);
            return format!(
                "{voted} of {} here have voted{again}{}",
                self.of,
                self.others()
            );
        }
        let choices = (0..self.choices.len()).map(|at| {
            let votes: Vec<String> = self.votes(at).iter().map(u32::to_string).collect();
            format!("{} {}", letter(at), votes.join(", then "))
        });
        let choices: Vec<String> = choices.collect();
        format!("{}: {}", choices.join(" · "), self.who())
    }

    /// The question's place, in words: `stage 4`, or `question`.
    pub fn named(&self) -> String {
        match self.stage {
            0 => "question".to_owned(),
            stage => format!("stage {stage}"),
        }
    }

    /// Votes for a choice in each round.
    pub fn votes(&self, choice: usize) -> Vec<u32> {
        let rounds = self.rounds.iter();
        rounds
            .map(|counts| counts.get(choice).copied().unwrap_or(0))
            .collect()
    }
}

/// A race: the same task for all participants. Kernels are ranked by their ratio within a kind of device, mysteries by points.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Race {
    pub task: String,
    /// Seconds until it ends by itself.
    #[serde(default)]
    pub left_s: Option<u64>,
    pub ranks: Vec<RaceRank>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RaceRank {
    /// From 1; equal results share a place. `None` for a mystery that was given up.
    pub place: Option<usize>,
    pub name: String,
    pub device: String,
    #[serde(flatten)]
    pub result: RaceResult,
}

impl Board {
    pub fn of(room: &RoomState, course: &Course, now_ms: u64) -> Self {
        let people = || room.people.values();
        let mut ordered: Vec<(u64, ParticipantRow)> = people()
            .map(|it| {
                (
                    it.raised_ms.unwrap_or(u64::MAX),
                    row(it, room, course, now_ms),
                )
            })
            .collect();
        // Raised hands come first, in their order; then present participants; then names in order.
        ordered.sort_by_cached_key(|(since, it)| (*since, it.presence, it.name.to_lowercase()));
        let mut rows: Vec<ParticipantRow> = ordered.into_iter().map(|(_, row)| row).collect();
        let raised = rows.iter_mut().filter(|it| it.raised);
        raised
            .zip(1..)
            .for_each(|(it, place)| it.hand = Some(place));
        let stages = course.stages.iter().map(|stage| StageColumn {
            number: stage.number,
            title: stage.title.clone(),
            here: people()
                .filter(|it| it.is_here() && it.record.here == stage.id)
                .count(),
            passed: people()
                .filter_map(|it| it.record.stages.get(&stage.id))
                .filter(|it| it.is_passed())
                .count(),
        });
        let votes = course.stages.iter().filter_map(|stage| {
            let vote = room.class.votes.get(&stage.id)?;
            tally(room, course, &stage.id, vote)
        });
        let class = &room.class;
        let offer = class.offer.as_ref();
        let offer = offer.and_then(|id| course.stage_by_id(id));
        let race = class.race.as_ref().map(|task| Race {
            left_s: room
                .race_until
                .map(|until| until.saturating_sub(now_ms) / 1000),
            ..race(room, task)
        });
        Self {
            opened: class.opened.clone(),
            closed: class.closed,
            here: people().filter(|it| it.is_here()).count(),
            not_started: rows
                .iter()
                .filter(|it| !it.started && it.presence != Presence::Left)
                .count(),
            raised: rows.iter().filter(|it| it.raised).count(),
            stages: stages.collect(),
            offer: offer.map(|stage| offer_of(stage.number, &stage.title)),
            vote: shown_vote(room, course),
            votes: votes.collect(),
            race,
            locked: class.locked,
            names_required: class.names_required,
            crowd: crowd(room),
            faults: room
                .faults
                .iter()
                .map(|(file, what)| match file.ends_with(".json") {
                    true => format!("{file} {what}"),
                    false => what.clone(),
                })
                .collect(),
            rows,
        }
    }

    /// The board for everybody: of an open vote, it shows only how many have voted.
    pub fn for_everybody(mut self) -> Self {
        self.votes.clear();
        if let Some(vote) = self.vote.as_mut().filter(|vote| vote.open) {
            vote.rounds.clear();
            vote.ranges.clear();
            vote.measured = None;
            vote.alike = 0;
        }
        (self.crowd, self.faults) = (None, Vec::new());
        self
    }
}

/// What the class does now, in a sentence.
pub fn now(class: &ClassState, course: &Course) -> String {
    let offer = class.offer.as_ref().and_then(|id| course.stage_by_id(id));
    match (class.open_vote(), &class.race, offer) {
        _ if class.closed => "The room is closed.".to_owned(),
        (Some(_), ..) => "The class votes.".to_owned(),
        (None, Some(task), _) => format!("The class races at its computers: {task}."),
        (None, None, Some(stage)) => {
            format!("The class is at {}.", offer_of(stage.number, &stage.title))
        }
        (None, None, None) => "The next question appears here.".to_owned(),
    }
}

/// The address from which most participants joined.
fn crowd(room: &RoomState) -> Option<Crowd> {
    let mut from: BTreeMap<&str, usize> = BTreeMap::new();
    let addresses = room.people.values().map(|it| it.origin.address.as_str());
    for address in addresses.filter(|it| !it.is_empty()) {
        *from.entry(address).or_default() += 1;
    }
    let (address, people) = from.into_iter().max_by_key(|(_, people)| *people)?;
    (people >= CROWD).then(|| Crowd {
        address: address.to_owned(),
        people,
    })
}

fn row(
    person: &KnownParticipant,
    room: &RoomState,
    course: &Course,
    now_ms: u64,
) -> ParticipantRow {
    let it = &person.record;
    let presence = match person.away {
        _ if it.left => Presence::Left,
        true => Presence::Away,
        false => Presence::Here,
    };
    let stage = course.stage_by_id(&it.here);
    let at = match stage {
        Some(stage) => stage.number.to_string(),
        None => it.here.clone(),
    };
    let shared = it.stages.get(&it.here);
    let passed = shared.is_some_and(SharedWork::is_passed);
    let at_s = now_ms.saturating_sub(person.since_ms) / 1000;
    let ratios = it.stages.values().filter_map(|it| it.ratio);
    let kernels = it.races.values().filter(|it| it.mystery.is_none());
    let ratios = ratios.chain(kernels.filter_map(|it| it.ratio));
    ParticipantRow {
        id: person.key(),
        name: room.name_of(it).to_owned(),
        device: it.device.clone(),
        started: it.stages.values().any(|it| it.has_begun()),
        stuck: presence == Presence::Here && !passed && !at.is_empty() && at_s >= STUCK_S,
        at,
        at_s,
        raised: person.raised_ms.is_some(),
        hand: None,
        presence,
        passed: it.passed(),
        checks: shared.and_then(|it| it.checks),
        hints: it.stages.values().map(|it| it.hints).sum(),
        best: ratios.map(|it| it[0]).max_by(f64::total_cmp),
    }
}

/// The open vote, or the vote that was closed last.
fn shown_vote(room: &RoomState, course: &Course) -> Option<VoteTally> {
    let open = room.class.open_vote().map(|(id, _)| id);
    let id = open.or(room.class.last_vote.as_deref())?;
    tally(room, course, id, room.class.votes.get(id)?)
}

/// Counts a vote on a stage of the course or on a free question.
pub fn tally(room: &RoomState, course: &Course, id: &str, vote: &Vote) -> Option<VoteTally> {
    let mut tally = match (course.stage_by_id(id), room.class.questions.get(id)) {
        (Some(stage), _) => predicted(room, stage),
        (None, Some(question)) => VoteTally {
            prompt: question.prompt.clone(),
            choices: question.choices.clone(),
            ..VoteTally::default()
        },
        (None, None) => return None,
    };
    let rounds: Vec<_> = vote
        .asked
        .iter()
        .map(|number| room.round(vote, *number))
        .collect();
    let answer = vote.answer.as_ref().zip(course.stage_by_id(id));
    tally.answer = answer.map(|(reason, stage)| Answer {
        choice: stage.prediction.answer,
        reason: reason.clone(),
    });
    if let Some(last) = rounds.last() {
        tally.voted = last.counts.iter().sum();
        (tally.of, tally.left, tally.alike) = (last.here, last.gone, last.alike);
    }
    (tally.vote, tally.open, tally.round) = (id.to_owned(), vote.open, vote.round + 1);
    tally.rounds = rounds.into_iter().map(|round| round.counts).collect();
    Some(tally)
}

/// What the class predicted and measured of a stage, without votes.
pub fn predicted(room: &RoomState, stage: &Stage) -> VoteTally {
    let people = room.people.values();
    let shared = people.filter_map(|it| it.record.stages.get(&stage.id));
    let mut measured: Vec<f64> = shared.clone().filter_map(|it| it.measured).collect();
    measured.sort_by(f64::total_cmp);
    let text = |it: &String| sanitize::line(it.trim());
    let scale = stage.estimate.as_ref();
    VoteTally {
        stage: stage.number,
        prompt: text(&stage.prediction.prompt),
        choices: stage.prediction.choices.iter().map(text).collect(),
        ranges: shared.filter_map(|it| it.range).collect(),
        measured: measured.get(measured.len() / 2).copied(),
        unit: scale.map_or_else(String::new, |it| it.unit.clone()),
        ..VoteTally::default()
    }
}

/// All results of a task, the best first.
pub fn race(room: &RoomState, task: &str) -> Race {
    let ran = room.people.values().filter_map(|it| {
        Some(RaceRank {
            place: None,
            name: room.name_of(&it.record).to_owned(),
            device: it.record.device.clone(),
            result: *it.record.races.get(task)?,
        })
    });
    let mut ranks: Vec<RaceRank> = ran.collect();
    match mystery_of(task) {
        Some(_) => rank_mysteries(&mut ranks),
        None => rank_kernels(&mut ranks),
    }
    Race {
        task: task.to_owned(),
        left_s: None,
        ranks,
    }
}

/// Ranks by points, then time, then number of configurations tried. The ratio does not count, because every solved mystery is about
/// as fast as the known-good configuration.
fn rank_mysteries(ranks: &mut [RaceRank]) {
    let key = |it: &RaceRank| {
        let it = it.result.mystery.unwrap_or_default();
        (std::cmp::Reverse(it.points), it.seconds, it.configurations)
    };
    ranks.sort_by_cached_key(|it| (key(it), it.name.to_lowercase()));
    let (mut place, mut best) = (0, None);
    for (at, rank) in ranks.iter_mut().enumerate() {
        if best != Some(key(rank)) {
            (place, best) = (at + 1, Some(key(rank)));
        }
        let solved = rank.result.mystery.is_some_and(|it| it.points > 0);
        rank.place = solved.then_some(place);
    }
}

/// Ranks by ratio within a kind of device. A result shares a place if its interval overlaps that of the place's first result.
fn rank_kernels(ranks: &mut [RaceRank]) {
    let interval = |it: &RaceRank| it.result.ratio.unwrap_or_default();
    ranks.sort_by(|a, b| {
        let faster = interval(b)[0].total_cmp(&interval(a)[0]);
        a.device.cmp(&b.device).then(faster)
    });
    let (mut device, mut ahead, mut place, mut low) = (String::new(), 0, 0, 0.0);
    for rank in ranks {
        if rank.device != device {
            (device, ahead, place, low) = (rank.device.clone(), 0, 0, 0.0);
        }
        ahead += 1;
        let [_, from, to] = interval(rank);
        if place == 0 || to < low {
            (place, low) = (ahead, from);
        }
        rank.place = Some(place);
    }
}

/// An offer in words.
pub fn offer_of(number: u32, title: &str) -> String {
    format!("stage {number} {title}")
}

/// `4 min`, `1 h 10 min`.
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
    use crate::class::record::{InstructorRequest, MysteryResult, Participant, SharedWork};
    use crate::class::state::AWAY_MS;

    fn room(course: &Course) -> RoomState {
        let mut room = RoomState::default();
        for (at, name) in ["Ana", "Bo", "Cy"].into_iter().enumerate() {
            let mut it = Participant {
                id: at.to_string(),
                name: name.to_owned(),
                sequence: 1,
                here: course.stages[at].id.clone(),
                here_s: 590,
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
            it.stages.insert(course.stages[0].id.clone(), shared);
            let device = if at == 1 { "gpu" } else { "cpu" };
            let kernel = |[ratio, low, high]: [f64; 3]| RaceResult {
                ratio: Some([ratio, low, high]),
                mystery: None,
            };
            let ratio = [[1.0, 0.9, 1.1], [3.0, 2.9, 3.1], [1.05, 0.95, 1.2]][at];
            it.races.insert("k04-matmul".to_owned(), kernel(ratio));
            let mystery = RaceResult {
                ratio: Some([1.0 + at as f64 / 100.0, 0.9, 1.1]),
                mystery: Some(MysteryResult {
                    points: [70, 90, 70][at],
                    seconds: 60,
                    configurations: [3, 9, 2][at],
                }),
            };
            it.races.insert("mystery 7-1".to_owned(), mystery);
            it.device = device.to_owned();
            room.hear(it, 590_000).expect("heard");
        }
        room
    }

    fn obeyed(room: &mut RoomState, order: &InstructorRequest) {
        let now_ms = room.last_ms();
        room.obey(order, &Course::builtin(), now_ms)
            .expect("obeyed");
    }

    #[test]
    fn the_board_says_who_needs_help() {
        let course = Course::builtin();
        let mut room = room(&course);
        let board = Board::of(&room, &course, 610_000);
        let rows: Vec<_> = board
            .rows
            .iter()
            .map(|it| (it.name.as_str(), it.at.as_str(), it.stuck))
            .collect();
        assert_eq!(
            rows,
            [("Cy", "3", true), ("Ana", "1", false), ("Bo", "2", true)]
        );
        assert_eq!((board.here, board.raised, board.not_started), (3, 1, 0));
        assert_eq!((board.stages[0].here, board.stages[0].passed), (1, 1));
        room.fall_silent(590_000 + AWAY_MS);
        let later = Board::of(&room, &course, 650_000);
        assert!(later.rows.iter().all(|it| it.presence == Presence::Away));
        assert_eq!((later.here, later.stages[0].here), (0, 0));
    }

    #[test]
    fn an_open_vote_shows_only_how_many_have_voted() {
        let course = Course::builtin();
        let mut room = room(&course);
        let stage = course.stages[0].id.clone();
        obeyed(&mut room, &InstructorRequest::OpenVote(stage.clone()));
        let vote = |room: &RoomState| {
            Board::of(room, &course, 0)
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
        obeyed(&mut room, &answer);
        assert_eq!(vote(&room).answer, None, "not while it is open");
        obeyed(&mut room, &InstructorRequest::CloseVote);
        obeyed(&mut room, &answer);
        let closed = vote(&room);
        assert_eq!(closed.rounds[0][..2], [1, 2]);
        assert_eq!((closed.ranges.len(), closed.measured), (3, Some(1.5)));
        let choice = course.stages[0].prediction.answer;
        let reason = "why".to_owned();
        assert_eq!(closed.answer, Some(Answer { choice, reason }));
        obeyed(&mut room, &InstructorRequest::OpenVote(stage.clone()));
        cast(&mut room, &stage, [1, 1, 1]);
        obeyed(&mut room, &InstructorRequest::CloseVote);
        let both = vote(&room);
        assert_eq!((both.rounds[0][1], both.rounds[1][1]), (2, 3));
        assert_eq!(both.answer, None);
        // Who is removed counts in neither round, also once let in again.
        obeyed(
            &mut room,
            &InstructorRequest::Remove(["1".to_owned()].into()),
        );
        let counts = |it: &VoteTally| (it.rounds[0][..2].to_vec(), it.rounds[1][1], it.voted);
        assert_eq!(counts(&vote(&room)), (vec![1, 1], 2, 2));
        obeyed(&mut room, &InstructorRequest::LetIn);
        let mut back = Participant::default();
        (back.id, back.name, back.sequence) = ("1".to_owned(), "Bo".to_owned(), 9);
        let asked = room.class.votes[&stage].asked.clone();
        back.ballots = asked.iter().map(|number| (*number, 1)).collect();
        room.hear(back, 0).expect("heard");
        assert_eq!(counts(&vote(&room)), (vec![1, 1], 2, 2));
        obeyed(
            &mut room,
            &InstructorRequest::Remove(["1".to_owned()].into()),
        );
        assert_eq!(counts(&vote(&room)), (vec![1, 1], 2, 2), "only once");
    }

    /// All participants vote in the open round.
    fn cast(room: &mut RoomState, stage: &str, choices: [usize; 3]) {
        let number = room.class.votes[stage].number().expect("a round");
        for (at, choice) in choices.into_iter().enumerate() {
            let mut it = room.people[&at.to_string()].record.clone();
            it.sequence = 100 + number;
            it.ballots.insert(number, choice);
            room.hear(it, 0).expect("heard");
        }
    }

    #[test]
    fn hands_stand_in_the_order_in_which_they_were_raised() {
        let course = Course::builtin();
        let mut room = room(&course);
        let mut ana = room.people["0"].record.clone();
        (ana.raised, ana.sequence) = (true, 2);
        room.hear(ana, 590_009).expect("heard");
        let board = Board::of(&room, &course, 590_009);
        let hands: Vec<_> = board.rows.iter().map(|it| (&*it.name, it.hand)).collect();
        assert_eq!(hands, [("Cy", Some(1)), ("Ana", Some(2)), ("Bo", None)]);
    }

    #[test]
    fn kernels_rank_by_ratio_within_a_kind_of_device_and_mysteries_by_points_time_and_configurations()
     {
        let course = Course::builtin();
        let room = room(&course);
        let ranks = |task: &str| -> Vec<(String, Option<usize>)> {
            let ranks = race(&room, task).ranks.into_iter();
            ranks.map(|it| (it.name, it.place)).collect()
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
