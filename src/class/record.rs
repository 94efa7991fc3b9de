//! The records that travel between participants, instructors and the room. Texts from outside are bounded and cleaned here.
//!
//! A participant's record is a whole state, so the newest one suffices: nothing is queued, and what was missed is part of the next
//! record. Every record passes through `Participant::read`, also those in files; texts are made harmless there, and the pages take
//! them as text only. Results that the course does not allow are left out by `Participant::leave_out_implausible`, before the room
//! takes the record. A record says for how long something has lasted, so clocks of different machines are never compared.

mod class_state;
mod order;
mod plausible;
mod question;

pub use class_state::{ClassState, Counted, Vote};
pub use order::InstructorRequest;
pub use plausible::mystery_of;
pub use question::Question;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::sanitize;

/// The version of the records. Both sides need the same one.
pub const VERSION: u32 = 2;
/// The longest record of a participant, in bytes.
pub const MOST_BYTES: usize = 16 * 1024;
/// The most characters of a nickname.
const NAME: usize = 24;
/// The most characters of the reason of an answer.
const REASON: usize = 1200;
/// The most stages, races and ballots in one record, each.
const MOST: usize = 64;

/// Everything that one participant shares.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Participant {
    pub version: u32,
    /// The id, 32 hexadecimal digits. It is drawn once on the learner's machine and never shown, because over the network knowing it
    /// permits changing the record.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub id: String,
    /// The nickname; empty for a participant without one.
    pub name: String,
    /// A number that grows with every heartbeat.
    pub sequence: u64,
    /// The kind and the name of the device: `cpu: AMD EPYC`.
    pub device: String,
    /// The id of the open stage or exercise; empty for none.
    pub here: String,
    /// Seconds since it was opened.
    pub here_s: u64,
    /// True while the learner's hand is up.
    pub raised: bool,
    /// True if the learner quit.
    pub left: bool,
    /// The shared work by stage or exercise.
    pub stages: BTreeMap<String, SharedWork>,
    /// The ballots, a = 0, by the number of the round (`Vote::asked`).
    pub ballots: BTreeMap<u64, usize>,
    /// The results by exercise or mystery.
    pub races: BTreeMap<String, RaceResult>,
}

/// The result of a kernel exercise or a mystery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RaceResult {
    /// The measured ratio with its interval; `None` for a mystery that was given up.
    pub ratio: Option<[f64; 3]>,
    /// The points and the effort; `None` for a kernel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mystery: Option<MysteryResult>,
}

/// The points and the effort of a mystery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MysteryResult {
    /// The points; 0 for a mystery that was given up.
    pub points: u32,
    /// The time that the participant took.
    pub seconds: u64,
    /// The number of configurations that the participant tried.
    pub configurations: usize,
}

/// The shared work on one stage or exercise.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SharedWork {
    /// The state in the progress: `seen`, `predicted`, `passed`.
    pub state: String,
    /// The prediction, a = 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vote: Option<usize>,
    /// The predicted range.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub range: Option<[f64; 2]>,
    /// The measured value of the figure whose range was predicted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured: Option<f64>,
    /// The time of the broken configuration over the learner's, with its interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio: Option<[f64; 3]>,
    /// The number of checks that are met, and of all checks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checks: Option<[u32; 2]>,
    /// The number of hints that were read.
    pub hints: u32,
}

/// The fault of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordError {
    /// The record has this other version.
    Version(u32),
    /// The record cannot be used. The text follows the name of the file or the sender.
    Garbage(String),
}

impl std::fmt::Display for RecordError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Version(theirs) => write!(
                f,
                "comes from another version of perflings (room version {theirs}, here {VERSION}); install the same version"
            ),
            Self::Garbage(what) => f.write_str(what),
        }
    }
}

impl Participant {
    /// Reads and cleans a record from outside.
    ///
    /// # Errors
    /// If it is too long, has another version, is no record, or has no id.
    pub fn read(bytes: &[u8]) -> Result<Self, RecordError> {
        if bytes.len() > MOST_BYTES {
            let long = format!("is longer than the limit of {MOST_BYTES} bytes");
            return Err(RecordError::Garbage(long));
        }
        let mut record: Self = versioned(bytes, "not a participant's record")?;
        record.id = clean_id(&record.id)?;
        record.name = clean_name(&record.name);
        record.device = sanitize::bounded(&record.device, 40);
        record.here = sanitize::bounded(&record.here, 40);
        bound(&mut record.stages);
        bound(&mut record.races);
        while record.ballots.len() > MOST {
            record.ballots.pop_first();
        }
        for work in record.stages.values_mut() {
            work.state = sanitize::bounded(&work.state, 12);
            work.hints = work.hints.min(99);
        }
        Ok(record)
    }

    /// Adds race results and ballots of an earlier record, from a program that has ended since.
    pub fn keep(&mut self, earlier: &Self) {
        for (task, result) in &earlier.races {
            let kept = self.races.entry(task.clone()).or_insert(*result);
            kept.keep(result);
        }
        for (round, choice) in &earlier.ballots {
            self.ballots.entry(*round).or_insert(*choice);
        }
        bound(&mut self.races);
    }

    /// Returns the number of passed stages and exercises.
    pub fn passed(&self) -> usize {
        let works = self.stages.values();
        works.filter(|work| work.is_passed()).count()
    }

    /// Returns the ballot in a round of a vote, with 0 for its first round; `None` if there is none.
    pub fn ballot(&self, vote: &Vote, round: usize) -> Option<usize> {
        self.ballots.get(vote.asked.get(round)?).copied()
    }
}

impl RaceResult {
    /// Keeps the result that counts of two for one task; `older` came first. The first result of a mystery counts, because its faults
    /// are known afterwards; of a kernel's results, the best counts.
    pub fn keep(&mut self, older: &Self) {
        let ratio = |result: &Self| result.ratio.map_or(0.0, |[ratio, ..]| ratio);
        if older.mystery.is_some() || ratio(older) > ratio(self) {
            *self = *older;
        }
    }
}

impl SharedWork {
    /// Returns true if the stage or exercise is passed.
    pub fn is_passed(&self) -> bool {
        self.state == "passed"
    }

    /// Returns true if the learner did more than open it.
    pub fn has_begun(&self) -> bool {
        self.vote.is_some() || !matches!(self.state.as_str(), "" | "new" | "seen" | "skipped")
    }
}

/// Returns true for an id of a participant: 32 hexadecimal digits.
pub fn is_id(id: &str) -> bool {
    id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Returns an id in small letters.
///
/// # Errors
/// If it is no id of a participant.
pub fn clean_id(id: &str) -> Result<String, RecordError> {
    if is_id(id) {
        Ok(id.to_ascii_lowercase())
    } else {
        Err(RecordError::Garbage("names no participant".to_owned()))
    }
}

/// Returns a nickname for display: one line of bounded length.
pub fn clean_name(name: &str) -> String {
    sanitize::bounded(name.trim(), NAME)
}

/// Returns the reason of an answer, bounded and cleaned.
pub fn clean_reason(reason: &str) -> String {
    sanitize::bounded(reason, REASON)
}

/// Removes entries with names that no course has, and those beyond the limit.
fn bound<T>(entries: &mut BTreeMap<String, T>) {
    entries.retain(|id, _| id.len() <= 64 && !id.chars().any(sanitize::harmful));
    while entries.len() > MOST {
        entries.pop_last();
    }
}

/// Reads a record after checking its version, because other versions may have other fields. `what` says what the bytes are if they
/// cannot be read.
fn versioned<T: for<'de> Deserialize<'de>>(bytes: &[u8], what: &str) -> Result<T, RecordError> {
    #[derive(Deserialize)]
    struct Version {
        version: u32,
    }
    let garbage = |error: serde_json::Error| {
        let why = sanitize::bounded(&error.to_string(), 120);
        RecordError::Garbage(format!("is {what}: {why}"))
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
            r#"{{"version":{VERSION},"id":"{ID}","name":"\u001b[2J<script>alert(1)</script>","device":"{}",
            "stages":{{"a":{{"hints":4000000}},"\u001b":{{}}}},"races":{{"k":{{"ratio":[1,2,1e400]}}}}}}"#,
            "x".repeat(900)
        );
        // A number outside the range of a float makes the record invalid.
        assert!(matches!(read(&hostile), Err(RecordError::Garbage(_))));
        let record = read(&hostile.replace("1e400", "3")).expect("a record");
        assert_eq!(record.name, "·[2J<script>alert(1)</sc…");
        assert_eq!(record.device.chars().count(), 41);
        assert_eq!(record.stages.len(), 1);
        assert_eq!(record.stages["a"].hints, 99);
    }

    #[test]
    fn the_newest_ballot_of_a_round_counts() {
        let of = |ballots: [(u64, usize); 2]| Participant {
            ballots: ballots.into(),
            ..Participant::default()
        };
        let mut now = of([(2, 1), (3, 0)]);
        now.keep(&of([(1, 2), (2, 0)]));
        assert_eq!(now.ballots, [(1, 2), (2, 1), (3, 0)].into());
    }

    #[test]
    fn garbage_is_told_in_one_line() {
        for text in [
            "",
            "[]",
            "{",
            "{\"version\":2}",
            "\u{0}\u{1b}]0;x",
            "{\"version\":2,\"id\":\"../../x\"}",
        ] {
            let Err(RecordError::Garbage(why)) = read(text) else {
                panic!("{text} is no record");
            };
            assert!(
                !why.chars().any(sanitize::harmful) && why.len() < 200,
                "{why}"
            );
        }
        let long = format!(
            "{{\"version\":{VERSION},\"id\":\"{ID}\",\"name\":\"{}\"}}",
            "a".repeat(MOST_BYTES)
        );
        assert!(matches!(read(&long), Err(RecordError::Garbage(why)) if why.contains("longer")));
        assert_eq!(
            read("{\"version\":9,\"id\":[]}"),
            Err(RecordError::Version(9))
        );
    }
}
