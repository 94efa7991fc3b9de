//! The records that travel between participants, instructors and the room.
//!
//! A participant's record is the whole state of that participant, so the newest record suffices: nothing is queued, and a record that
//! was lost is made up for by the next one. Records come from outside, over the network or from files in a shared folder:
//! `Participant::read` limits the length of their texts and removes control characters, and `Participant::leave_out_implausible`
//! removes results that are impossible in the course.

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
const MOST_NAME_CHARS: usize = 24;
/// The most characters of the explanation that comes with the right answer of a vote.
const MOST_REASON_CHARS: usize = 1200;
/// A record has at most this number of stages, this number of race results and this number of ballots.
const MOST_ENTRIES: usize = 64;

/// Everything that one participant shares.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Participant {
    pub version: u32,
    /// 32 hexadecimal digits, drawn at random once on the learner's machine. The id is never shown, because whoever knows it can
    /// replace this participant's record over the network.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub id: String,
    /// The nickname; empty for a participant without one.
    pub name: String,
    /// A number that grows with every heartbeat, so that the board can tell a new record from one that it has read before.
    pub sequence: u64,
    /// The kind and the name of the device: `cpu: AMD EPYC`.
    pub device: String,
    /// The id of the stage or exercise that is open on the screen; empty for none.
    #[serde(rename = "here")]
    pub open_task: String,
    /// The seconds for which that stage or exercise has been open.
    #[serde(rename = "here_s")]
    pub open_s: u64,
    /// True while the learner's hand is up.
    pub raised: bool,
    /// True if the learner has quit the program.
    pub left: bool,
    /// The shared work, by the id of the stage or exercise.
    pub stages: BTreeMap<String, SharedWork>,
    /// The chosen answers, by the number of the round (`Vote::asked`). The first answer, a, is 0.
    pub ballots: BTreeMap<u64, usize>,
    /// The results of races, by the id of the exercise, or by the name of the mystery, such as `mystery 7-2`.
    pub races: BTreeMap<String, RaceResult>,
}

/// The result of a kernel exercise or a mystery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RaceResult {
    /// The measured ratio, and the low and high end of its interval; `None` for a mystery that was given up.
    pub ratio: Option<[f64; 3]>,
    /// The points and the effort of a mystery; `None` for a kernel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mystery: Option<MysteryResult>,
}

/// The points that a participant has won with a mystery, and the effort that it took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MysteryResult {
    /// 0 for a mystery that was given up.
    pub points: u32,
    /// The time from the start to the verdict.
    pub seconds: u64,
    /// The number of configurations that the participant tried.
    pub configurations: usize,
}

/// What a participant shares about the work on one stage or exercise.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SharedWork {
    /// The state in the learner's save file, such as `seen`, `predicted` or `passed`.
    pub state: String,
    /// The predicted answer; the first answer, a, is 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vote: Option<usize>,
    /// The low and high end of the predicted range.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub range: Option<[f64; 2]>,
    /// The measured value of the figure whose range was predicted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured: Option<f64>,
    /// The time of the broken configuration over the time of the learner's, and the low and high end of this ratio's interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio: Option<[f64; 3]>,
    /// The number of checks that are met, and of all checks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checks: Option<[u32; 2]>,
    /// The number of hints that were read.
    pub hints: u32,
}

/// The reason why a record cannot be used. Its text continues a sentence that begins with the name of the file or of the sender.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordError {
    /// The record is of this version, which is not ours.
    Version(u32),
    Garbage(String),
}

impl std::fmt::Display for RecordError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Version(theirs) => write!(
                f,
                "comes from another version of perflings (room version {theirs}, here {VERSION}); install the same version"
            ),
            Self::Garbage(why) => f.write_str(why),
        }
    }
}

impl Participant {
    /// Reads and cleans a record from outside.
    ///
    /// # Errors
    /// If the bytes are too long, are of another version or are no record, or if the record has no id.
    pub fn read(bytes: &[u8]) -> Result<Self, RecordError> {
        if bytes.len() > MOST_BYTES {
            let long = format!("is longer than the limit of {MOST_BYTES} bytes");
            return Err(RecordError::Garbage(long));
        }
        let mut record: Self = versioned(bytes, "not a participant's record")?;
        record.id = clean_id(&record.id)?;
        record.name = clean_name(&record.name);
        record.device = sanitize::bounded(&record.device, 40);
        record.open_task = sanitize::bounded(&record.open_task, 40);
        limit_entries(&mut record.stages);
        limit_entries(&mut record.races);
        while record.ballots.len() > MOST_ENTRIES {
            record.ballots.pop_first();
        }
        for work in record.stages.values_mut() {
            work.state = sanitize::bounded(&work.state, 12);
            work.hints = work.hints.min(99);
        }
        Ok(record)
    }

    /// Adds the race results and ballots of an earlier record of this participant, which an earlier run of the program wrote.
    pub fn add_earlier(&mut self, earlier: &Self) {
        for (task, result) in &earlier.races {
            let kept = self.races.entry(task.clone()).or_insert(*result);
            kept.choose_between(result);
        }
        for (round, choice) in &earlier.ballots {
            self.ballots.entry(*round).or_insert(*choice);
        }
        limit_entries(&mut self.races);
    }

    /// Returns the number of passed stages and exercises.
    pub fn passed(&self) -> usize {
        self.stages.values().filter(|work| work.is_passed()).count()
    }

    /// Returns the participant's choice in a round of a vote, whose first round is 0; `None` without a ballot.
    pub fn ballot(&self, vote: &Vote, round: usize) -> Option<usize> {
        self.ballots.get(vote.asked.get(round)?).copied()
    }
}

impl RaceResult {
    /// Replaces this result by an older one of the same task if the older one counts. The first result of a mystery counts, because
    /// its faults are known afterwards; of a kernel's results, the best one counts.
    pub fn choose_between(&mut self, older: &Self) {
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

/// Returns a participant's id in small letters.
///
/// # Errors
/// If the text is not 32 hexadecimal digits.
pub fn clean_id(id: &str) -> Result<String, RecordError> {
    if is_id(id) {
        Ok(id.to_ascii_lowercase())
    } else {
        Err(RecordError::Garbage("names no participant".to_owned()))
    }
}

/// Returns a nickname for display: one line of bounded length.
pub fn clean_name(name: &str) -> String {
    sanitize::bounded(name.trim(), MOST_NAME_CHARS)
}

/// Returns the explanation of a vote's right answer for display: one line of bounded length.
pub fn clean_reason(reason: &str) -> String {
    sanitize::bounded(reason, MOST_REASON_CHARS)
}

/// Removes entries whose keys are too long or have control characters, and the last ones beyond `MOST_ENTRIES`.
fn limit_entries<T>(entries: &mut BTreeMap<String, T>) {
    entries.retain(|id, _| id.len() <= 64 && !id.chars().any(sanitize::harmful));
    while entries.len() > MOST_ENTRIES {
        entries.pop_last();
    }
}

/// Reads a record in JSON. The version is read first, because a record of another version may have other fields. The error for bytes
/// that cannot be read begins with "is" and the text `what`: `not a room's record`.
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
    fn a_record_from_outside_is_cleaned_and_bounded() {
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
        let record_with = |ballots: [(u64, usize); 2]| Participant {
            ballots: ballots.into(),
            ..Participant::default()
        };
        let mut newer = record_with([(2, 1), (3, 0)]);
        newer.add_earlier(&record_with([(1, 2), (2, 0)]));
        assert_eq!(newer.ballots, [(1, 2), (2, 1), (3, 0)].into());
    }

    #[test]
    fn the_error_for_garbage_is_one_harmless_line() {
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
