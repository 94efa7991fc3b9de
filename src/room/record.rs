//! The two records of a room: what one participant shares, and what the class is told. Both are whole states, so that the newest
//! one suffices. What comes from outside is bounded and cleaned here.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::clean;

/// Both sides have to speak the same one.
pub const VERSION: u32 = 1;
/// The longest record of a participant, in bytes.
pub const MOST_BYTES: usize = 16 * 1024;
/// Characters of a nickname.
const NAME: usize = 24;
/// Stages, exercises and races in one record.
const MOST: usize = 64;

/// What one participant shares: this, and nothing else.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Participant {
    pub version: u32,
    /// Drawn once on the learner's machine, and shown to nobody: over the network it is what allows to change the record.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub id: String,
    /// A nickname, or nothing.
    pub name: String,
    /// Grows with every sign of life.
    pub sequence: u64,
    /// `cpu` or `gpu`, and which.
    pub device: String,
    /// The stage or exercise that is open.
    pub here: String,
    /// Seconds since it was opened.
    pub here_s: u64,
    pub raised: bool,
    /// The learner quit.
    pub left: bool,
    pub stages: BTreeMap<String, SharedWork>,
    /// Measured ratios with their intervals, by exercise or mystery.
    pub races: BTreeMap<String, [f64; 3]>,
}

/// What is shared of one stage or exercise.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SharedWork {
    /// As the progress names it: `seen`, `predicted`, `passed`.
    pub state: String,
    /// The prediction, a = 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vote: Option<usize>,
    /// The vote after the discussion.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub again: Option<usize>,
    /// The range that was drawn, and what was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub range: Option<[f64; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured: Option<f64>,
    /// Broken over the learner's own, with its interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio: Option<[f64; 3]>,
    /// Checks met, and all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checks: Option<[u32; 2]>,
    pub hints: u32,
}

/// What the class is told.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClassState {
    pub version: u32,
    pub sequence: u64,
    /// The instructor has closed the room.
    pub closed: bool,
    /// By stage.
    pub votes: BTreeMap<String, Vote>,
    /// The stage whose vote was opened last.
    pub last_vote: Option<String>,
    /// The stage that everybody is invited to.
    pub offer: Option<String>,
    /// The exercise or mystery that is raced: `k04-matmul`, `mystery 7-1`.
    pub race: Option<String>,
    /// What the board calls those whose name another one has, too, by id. Over the network everybody sees only their own.
    pub renamed: BTreeMap<String, String>,
    /// Whom the instructor keeps out, by id. Over the network nobody sees it.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub removed: BTreeSet<String>,
}

/// A vote on the prediction of a stage.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Vote {
    pub open: bool,
    /// 0 the first round, 1 the one after the discussion.
    pub round: usize,
    /// What was counted when each round was closed, by choice.
    pub counts: Vec<Vec<u32>>,
}

/// What the instructor asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InstructorRequest {
    /// Opens the vote on a stage's prediction; after a round was counted, the next one.
    OpenVote(String),
    CloseVote,
    Offer(Option<String>),
    Race(Option<String>),
    Close(bool),
    /// Takes a participant off the board and keeps them out.
    Remove(String),
    /// Lets everybody in again who was removed.
    LetIn,
}

/// What somebody is told whom the instructor removed.
pub const REMOVED: &str = "the instructor has removed you from the room";

/// What is wrong with a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordError {
    Version(u32),
    /// Follows the name of the file or the sender.
    Garbage(String),
}

impl std::fmt::Display for RecordError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Version(theirs) => write!(
                f,
                "is of another version of perflings (room version {theirs}, here {VERSION}); install the same one"
            ),
            Self::Garbage(what) => f.write_str(what),
        }
    }
}

impl Participant {
    /// Reads and cleans a record from outside.
    pub fn read(bytes: &[u8]) -> Result<Self, RecordError> {
        if bytes.len() > MOST_BYTES {
            let long = format!("is longer than the limit of {MOST_BYTES} bytes");
            return Err(RecordError::Garbage(long));
        }
        let mut it: Self = versioned(bytes, "no record of a participant")?;
        if it.id.len() != 32 || !it.id.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(RecordError::Garbage("names no participant".to_owned()));
        }
        it.id.make_ascii_lowercase();
        it.name = clean_name(&it.name);
        it.device = clean::bounded(&it.device, 40);
        it.here = clean::bounded(&it.here, 40);
        bound(&mut it.stages);
        bound(&mut it.races);
        let finite = |all: &[f64]| all.iter().all(|x| x.is_finite());
        it.races.retain(|_, ratio| finite(ratio));
        for shared in it.stages.values_mut() {
            shared.state = clean::bounded(&shared.state, 12);
            shared.range = shared.range.filter(|it| finite(it) && it[0] <= it[1]);
            shared.measured = shared.measured.filter(|it| it.is_finite());
            shared.ratio = shared.ratio.filter(|it| finite(it));
            shared.hints = shared.hints.min(99);
        }
        Ok(it)
    }

    /// Keeps what the earlier record has of a program that has ended since: results of races, and votes after a discussion.
    pub fn keep(&mut self, earlier: &Self) {
        for (task, ratio) in &earlier.races {
            let best = self.races.entry(task.clone()).or_insert(*ratio);
            if ratio[0] > best[0] {
                *best = *ratio;
            }
        }
        for (stage, was) in &earlier.stages {
            if let (Some(again), Some(now)) = (was.again, self.stages.get_mut(stage)) {
                now.again.get_or_insert(again);
            }
        }
        bound(&mut self.races);
    }

    pub fn passed(&self) -> usize {
        let stages = self.stages.values();
        stages.filter(|it| it.state == "passed").count()
    }

    /// The vote on a stage in a round.
    pub fn vote(&self, stage: &str, round: usize) -> Option<usize> {
        let shared = self.stages.get(stage)?;
        if round == 0 {
            shared.vote
        } else {
            shared.again
        }
    }
}

impl SharedWork {
    /// Whether more was done than looking.
    pub fn has_begun(&self) -> bool {
        self.vote.is_some() || !matches!(self.state.as_str(), "" | "new" | "seen" | "skipped")
    }
}

impl ClassState {
    pub fn new() -> Self {
        Self {
            version: VERSION,
            ..Self::default()
        }
    }

    /// Reads the record of the class.
    pub fn read(bytes: &[u8]) -> Result<Self, RecordError> {
        versioned(bytes, "no record of a room")
    }

    /// The vote that is open, with its stage.
    pub fn open_vote(&self) -> Option<(&str, &Vote)> {
        let mut votes = self.votes.iter();
        votes
            .find(|(_, vote)| vote.open)
            .map(|(stage, vote)| (stage.as_str(), vote))
    }

    /// Does what the instructor asks for. `count` gives the votes on a stage in a round.
    pub fn apply(&mut self, order: &InstructorRequest, count: impl Fn(&str, usize) -> Vec<u32>) {
        self.sequence += 1;
        match order {
            InstructorRequest::OpenVote(stage) => {
                self.close_vote(&count);
                self.last_vote = Some(stage.clone());
                let vote = self.votes.entry(stage.clone()).or_default();
                vote.open = true;
                // The last round is taken again where all were counted.
                vote.round = vote.counts.len().min(1);
            }
            InstructorRequest::CloseVote => self.close_vote(&count),
            InstructorRequest::Offer(stage) => self.offer.clone_from(stage),
            InstructorRequest::Race(task) => self.race.clone_from(task),
            InstructorRequest::Close(closed) => {
                self.close_vote(&count);
                self.closed = *closed;
            }
            InstructorRequest::Remove(id) => drop(self.removed.insert(id.clone())),
            InstructorRequest::LetIn => self.removed.clear(),
        }
    }

    fn close_vote(&mut self, count: &impl Fn(&str, usize) -> Vec<u32>) {
        let open = self.votes.iter_mut().filter(|(_, vote)| vote.open);
        for (stage, vote) in open {
            vote.open = false;
            vote.counts.truncate(vote.round);
            vote.counts.push(count(stage, vote.round));
        }
    }
}

/// A nickname as it is shown: one line, bounded.
pub fn clean_name(name: &str) -> String {
    clean::bounded(name.trim(), NAME)
}

fn bound<T>(all: &mut BTreeMap<String, T>) {
    all.retain(|id, _| id.len() <= 64 && !id.chars().any(clean::harmful));
    while all.len() > MOST {
        all.pop_last();
    }
}

/// A record whose version is looked at first: another one may have other fields.
fn versioned<T: for<'de> Deserialize<'de>>(bytes: &[u8], what: &str) -> Result<T, RecordError> {
    #[derive(Deserialize)]
    struct Version {
        version: u32,
    }
    let garbage = |error: serde_json::Error| {
        RecordError::Garbage(format!(
            "is {what}: {}",
            clean::bounded(&error.to_string(), 120)
        ))
    };
    let Version { version } = serde_json::from_slice(bytes).map_err(garbage)?;
    if version != VERSION {
        return Err(RecordError::Version(version));
    }
    serde_json::from_slice(bytes).map_err(garbage)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Participant, RecordError> {
        Participant::read(text.as_bytes())
    }

    const ID: &str = "0123456789abcdef0123456789abcdef";

    #[test]
    fn what_comes_from_outside_is_cleaned_and_bounded() {
        let hostile = format!(
            r#"{{"version":1,"id":"{ID}","name":"\u001b[2J<script>alert(1)</script>","device":"{}",
            "stages":{{"a":{{"range":[2,1],"hints":4000000}},"\u001b":{{}}}},"races":{{"k":[1,2,1e400]}}}}"#,
            "x".repeat(900)
        );
        // A number that no float holds is no record at all.
        assert!(matches!(read(&hostile), Err(RecordError::Garbage(_))));
        let it = read(&hostile.replace("1e400", "3")).expect("a record");
        assert_eq!(it.name, "·[2J<script>alert(1)</sc…");
        assert_eq!(it.device.chars().count(), 41);
        assert_eq!(it.stages.len(), 1);
        assert_eq!((it.stages["a"].range, it.stages["a"].hints), (None, 99));
    }

    #[test]
    fn garbage_is_told_in_one_line() {
        for text in [
            "",
            "[]",
            "{",
            "{\"version\":1}",
            "\u{0}\u{1b}]0;x",
            "{\"version\":1,\"id\":\"../../x\"}",
        ] {
            let Err(RecordError::Garbage(why)) = read(text) else {
                panic!("{text} is no record");
            };
            assert!(!why.chars().any(clean::harmful) && why.len() < 200, "{why}");
        }
        let long = format!(
            "{{\"version\":1,\"id\":\"{ID}\",\"name\":\"{}\"}}",
            "a".repeat(MOST_BYTES)
        );
        assert!(matches!(read(&long), Err(RecordError::Garbage(why)) if why.contains("longer")));
        assert_eq!(
            read("{\"version\":9,\"id\":[]}"),
            Err(RecordError::Version(9))
        );
    }

    #[test]
    fn a_question_is_voted_on_twice() {
        let mut class = ClassState::new();
        let count = |_: &str, round: usize| vec![3 - round as u32, round as u32];
        class.apply(&InstructorRequest::OpenVote("s".to_owned()), count);
        assert_eq!(
            class.open_vote().map(|(stage, it)| (stage, it.round)),
            Some(("s", 0))
        );
        class.apply(&InstructorRequest::CloseVote, count);
        assert_eq!(
            (class.open_vote(), &class.votes["s"].counts),
            (None, &vec![vec![3, 0]])
        );
        class.apply(&InstructorRequest::OpenVote("s".to_owned()), count);
        assert_eq!(class.votes["s"].round, 1);
        // Another vote closes the open one.
        class.apply(&InstructorRequest::OpenVote("t".to_owned()), count);
        assert_eq!(class.votes["s"].counts, [[3, 0], [2, 1]]);
        class.apply(&InstructorRequest::Close(true), count);
        assert!(class.closed && class.open_vote().is_none());
    }
}
