//! What participants and instructors send to a room, and what the room tells them. Texts from outside are bounded and cleaned here.
//!
//! A participant's record is a whole state, so the newest one suffices: nothing is queued, and what was missed is part of the next
//! record. Every record passes through `Participant::read`, also those in files; texts are made harmless there, and the pages take
//! them as text only. Results that the course does not allow are left out by `Participant::leave_out_implausible`, before they are
//! heard. A record says for how long something has lasted, so clocks of different machines are never compared.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::course::Course;
use crate::course::mystery::{LEVELS, score};
use crate::sanitize;

/// Version of the records; both sides need the same one.
pub const VERSION: u32 = 2;
/// The longest record of a participant, in bytes.
pub const MOST_BYTES: usize = 16 * 1024;
/// Characters of a nickname, and of the reason of an answer.
const NAME: usize = 24;
const REASON: usize = 1200;
/// Most stages, exercises, races and ballots in one record.
const MOST: usize = 64;
/// Largest plausible ratio of a kernel or of a stage's fix, and of a mystery against its known-good configuration, whose speed a
/// solved mystery about equals.
const MOST_RATIO: f64 = 50.0;
const MOST_MYSTERY_RATIO: f64 = 3.0;
/// Least plausible seconds of a solved mystery: a step of its run is seen and a knob changed before the verdict is asked for.
const LEAST_MYSTERY_S: u64 = 5;
/// Characters of a free question and of its choices, and how many choices it may have.
const PROMPT: usize = 300;
const CHOICE: usize = 80;
pub const CHOICES: std::ops::RangeInclusive<usize> = 2..=4;

/// Everything that one participant shares.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Participant {
    pub version: u32,
    /// Drawn once on the learner's machine, and never shown: over the network, knowing it permits changing the record.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub id: String,
    /// A nickname, or empty.
    pub name: String,
    /// Grows with every heartbeat.
    pub sequence: u64,
    /// `cpu` or `gpu`, and which.
    pub device: String,
    /// The open stage or exercise.
    pub here: String,
    /// Seconds since it was opened.
    pub here_s: u64,
    pub raised: bool,
    /// True if the learner quit.
    pub left: bool,
    pub stages: BTreeMap<String, SharedWork>,
    /// Ballots, a = 0, by the number of the round (`Vote::asked`).
    pub ballots: BTreeMap<u64, usize>,
    /// Results by exercise or mystery.
    pub races: BTreeMap<String, RaceResult>,
}

/// Result of a kernel exercise or a mystery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RaceResult {
    /// The measured ratio with its interval; `None` for a mystery that was given up.
    pub ratio: Option<[f64; 3]>,
    /// For a mystery.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mystery: Option<MysteryResult>,
}

/// Points of a mystery, 0 if it was given up, and the effort.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MysteryResult {
    pub points: u32,
    pub seconds: u64,
    pub configurations: usize,
}

/// Shared work on one stage or exercise.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SharedWork {
    /// State in the progress: `seen`, `predicted`, `passed`.
    pub state: String,
    /// The prediction, a = 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vote: Option<usize>,
    /// The predicted range, and the measured value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub range: Option<[f64; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured: Option<f64>,
    /// Time of the broken configuration over the learner's, with its interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio: Option<[f64; 3]>,
    /// Number of checks met, and of all checks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checks: Option<[u32; 2]>,
    pub hints: u32,
}

/// What the room tells a participant of the class. The board makes it from its log; in a folder it is the file that everybody reads.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClassState {
    pub version: u32,
    /// Grows with every change.
    pub sequence: u64,
    /// The day on which the room was first opened.
    pub opened: String,
    /// True if the instructor has closed the room.
    pub closed: bool,
    /// Votes by stage, or by the id of a free question.
    pub votes: BTreeMap<String, Vote>,
    /// Free questions by their id.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub questions: BTreeMap<String, Question>,
    /// The stage or question whose vote was opened last.
    pub last_vote: Option<String>,
    /// The stage that is offered to everybody.
    pub offer: Option<String>,
    /// The exercise or mystery of the race: `k04-matmul`, `mystery 7-1`.
    pub race: Option<String>,
    /// True if nobody else may join; `names_required` is true if everybody who joins has to give a name.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub locked: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub names_required: bool,
    /// Numbered names, by id, of participants whose name was already in use. Over the network everybody sees only their own.
    pub renamed: BTreeMap<String, String>,
    /// Ids of participants whom the instructor has removed. Not sent over the network.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub removed: BTreeSet<String>,
    /// The choice that was counted in the open or last round, by participant. Over the network everybody sees only their own.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub counted: BTreeMap<String, Counted>,
    /// Why participants whose files lie in the folder are not in the room, by id. Only in a folder.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub refused: BTreeMap<String, String>,
    /// The code with which a phone takes this participant's seat. Only over the network.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub seat: String,
}

/// A ballot that the board has logged: the number of its round, and the choice, a = 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counted {
    pub round: u64,
    pub choice: usize,
}

/// A question of the instructor that belongs to no stage.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    pub prompt: String,
    pub choices: Vec<String>,
}

/// A vote on the prediction of a stage, or on a free question.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Vote {
    pub open: bool,
    /// 0 for the first round, 1 for the round after the discussion.
    pub round: usize,
    /// The number of each round. A ballot names its round, so older ballots do not count.
    pub asked: Vec<u64>,
    /// Number of choices.
    #[serde(skip_serializing_if = "is_zero")]
    pub choices: usize,
    /// Counts of each closed round, by choice. Only in exports.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub counts: Vec<Vec<u32>>,
    /// The reason for the right choice, once the instructor has shown it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
}

fn is_zero(n: &usize) -> bool {
    *n == 0
}

impl Vote {
    /// The number of the open or last round.
    pub fn number(&self) -> Option<u64> {
        self.asked.get(self.round).copied()
    }
}

/// A request of the instructor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InstructorRequest {
    /// Opens the vote on a stage's prediction, or the next round after a counted one.
    OpenVote(String),
    /// Asks a free question.
    Ask(Question),
    CloseVote,
    /// Marks the right choice of a stage's closed vote, with its reason.
    ShowAnswer {
        stage: String,
        reason: String,
    },
    Offer(Option<String>),
    Race(Option<String>),
    /// A race that ends by itself.
    RaceFor {
        task: String,
        minutes: u64,
    },
    Close(bool),
    /// Lets nobody else join, or everybody again.
    Lock(bool),
    /// Requires a name of everybody who joins, or no longer.
    RequireNames(bool),
    /// Removes participants by their ids or by their numbers on the board, and keeps them out.
    Remove(BTreeSet<String>),
    /// Removes everybody who joined from this address, and keeps them out.
    RemoveFrom(String),
    /// Readmits all removed participants.
    LetIn,
    /// Takes back the last order, for a minute.
    Undo,
}

/// The fault of a record.
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
                "comes from another version of perflings (room version {theirs}, here {VERSION}); install the same version"
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
        let mut it: Self = versioned(bytes, "not a participant's record")?;
        if it.id.len() != 32 || !it.id.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(RecordError::Garbage("names no participant".to_owned()));
        }
        it.id.make_ascii_lowercase();
        it.name = clean_name(&it.name);
        it.device = sanitize::bounded(&it.device, 40);
        it.here = sanitize::bounded(&it.here, 40);
        bound(&mut it.stages);
        bound(&mut it.races);
        while it.ballots.len() > MOST {
            it.ballots.pop_first();
        }
        for shared in it.stages.values_mut() {
            shared.state = sanitize::bounded(&shared.state, 12);
            shared.hints = shared.hints.min(99);
        }
        Ok(it)
    }

    /// Removes results that are impossible in this course; returns a line about them.
    pub fn leave_out_implausible(&mut self, course: &Course) -> Option<String> {
        let mut out = Vec::new();
        self.races.retain(|task, result| {
            let doubt = result.doubt(task, course);
            out.extend(doubt.iter().map(|what| format!("{what} in {task}")));
            doubt.is_none()
        });
        for (id, shared) in &mut self.stages {
            let Some(stage) = course.stage_by_id(id) else {
                continue;
            };
            let choices = stage.prediction.choices.len();
            shared.vote = shared.vote.filter(|it| *it < choices);
            shared.checks = shared.checks.filter(|[met, all]| met <= all && *all < 100);
            let scale = stage.estimate.as_ref();
            let on_scale = |[low, high]: &[f64; 2]| {
                // The error of rounding at an end.
                let little = scale.map_or(0.0, |it| 1e-6 * (it.to - it.from).abs());
                scale.is_some_and(|it| {
                    it.from - little <= *low && low <= high && *high <= it.to + little
                })
            };
            if let Some([low, high]) = shared.range.take_if(|range| !on_scale(range)) {
                let to = scale.map_or_else(String::new, |it| {
                    format!(", whose scale goes from {} to {}", it.from, it.to)
                });
                // A short form of a number of any size.
                let short = |x: f64| match x.abs() {
                    1e-3..1e6 => x.to_string(),
                    _ => format!("{x:e}"),
                };
                let (low, high) = (short(low), short(high));
                out.push(format!(
                    "a range from {low} to {high} in stage {}{to}",
                    stage.number
                ));
            }
            let most = scale.map_or(0.0, |it| 1000.0 * it.to.abs());
            shared.measured = shared.measured.filter(|it| it.abs() <= most);
            if let Some([ratio, ..]) = shared.ratio.take_if(|it| !holds(*it, MOST_RATIO)) {
                out.push(format!("a ratio of {ratio:.2}x in stage {}", stage.number));
            }
        }
        let more = out.len().saturating_sub(1);
        let first = sanitize::bounded(out.first()?, 160);
        Some(match more {
            0 => format!("shared {first}: left out, because it is not plausible"),
            _ => {
                format!("shared {first}, and {more} more: left out, because they are not plausible")
            }
        })
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

    pub fn passed(&self) -> usize {
        let stages = self.stages.values();
        stages.filter(|it| it.is_passed()).count()
    }

    /// The ballot in a round of a vote.
    pub fn ballot(&self, vote: &Vote, round: usize) -> Option<usize> {
        self.ballots.get(vote.asked.get(round)?).copied()
    }
}

impl RaceResult {
    /// Keeps the result that counts of two for one task; `older` came first. The first result of a mystery counts, because its faults
    /// are known afterwards; of a kernel's results, the best counts.
    pub fn keep(&mut self, older: &Self) {
        let ratio = |it: &Self| it.ratio.map_or(0.0, |it| it[0]);
        if older.mystery.is_some() || ratio(older) > ratio(self) {
            *self = *older;
        }
    }

    /// The figure that is impossible for that task of the course, if there is one.
    fn doubt(&self, task: &str, course: &Course) -> Option<String> {
        let ratio = |most| match self.ratio {
            Some(ratio) if holds(ratio, most) => None,
            Some([ratio, ..]) => Some(format!("a result of {ratio:.2}x")),
            None => Some("a result without a ratio".to_owned()),
        };
        let (level, it) = match (mystery_of(task), self.mystery) {
            (Some((_, level)), Some(it)) => (level, it),
            (None, None) if course.exercise_by_id(task).is_some() => return ratio(MOST_RATIO),
            _ => {
                let of = self.ratio.map(|[ratio, ..]| format!(" of {ratio:.2}x"));
                return Some(format!("a result{}", of.unwrap_or_default()));
            }
        };
        if it.points == 0 {
            return self
                .ratio
                .map(|[ratio, ..]| format!("a result of {ratio:.2}x without points"));
        }
        let (seconds, tried) = (it.seconds, it.configurations);
        // Each fault has a knob of its own.
        let most = score(level, 0, tried.max(usize::from(level)), seconds);
        if tried == 0 {
            Some("a solution without any configuration tried".to_owned())
        } else if seconds < LEAST_MYSTERY_S {
            Some(format!("a solution after {seconds} s"))
        } else if it.points > most {
            Some(format!(
                "a result of {} points, with at most {most} possible,",
                it.points
            ))
        } else {
            ratio(MOST_MYSTERY_RATIO)
        }
    }
}

/// Returns true if a ratio is in its interval, and the interval below a limit.
fn holds([ratio, low, high]: [f64; 3], most: f64) -> bool {
    0.0 < low && low <= ratio && ratio <= high && high <= most
}

/// The seed and the level of a race's mystery: `mystery 7-2`.
pub fn mystery_of(task: &str) -> Option<(u64, u8)> {
    let (seed, level) = task.strip_prefix("mystery ")?.split_once('-')?;
    let level = level
        .parse()
        .ok()
        .filter(|level| (1..=LEVELS).contains(level))?;
    Some((seed.parse().ok()?, level))
}

impl Question {
    /// The question, bounded and cleaned; an error says what it lacks.
    pub fn cleaned(&self) -> Result<Self, String> {
        let clean = |text: &String, most| sanitize::bounded(text.trim(), most);
        let cleaned = Self {
            prompt: clean(&self.prompt, PROMPT),
            choices: self.choices.iter().map(|it| clean(it, CHOICE)).collect(),
        };
        let whole = !cleaned.prompt.is_empty() && cleaned.choices.iter().all(|it| !it.is_empty());
        if whole && CHOICES.contains(&cleaned.choices.len()) {
            return Ok(cleaned);
        }
        Err(format!(
            "a question has a text and {} to {} choices, such as \"Who has seen this?\" yes no \"not sure\"",
            CHOICES.start(),
            CHOICES.end()
        ))
    }

    /// The line that `read` reads.
    pub fn line(&self) -> String {
        let words = std::iter::once(&self.prompt).chain(&self.choices);
        shlex::try_join(words.map(String::as_str)).unwrap_or_default()
    }

    /// Reads the questions of a file, a line each; empty lines and those that begin with # are left out.
    pub fn read_all(text: &str) -> Result<Vec<Self>, String> {
        let lines = text.lines().zip(1..).filter(|(line, _)| {
            let line = line.trim();
            !line.is_empty() && !line.starts_with('#')
        });
        let read =
            lines.map(|(line, at)| Self::read(line).map_err(|why| format!("line {at}: {why}")));
        read.collect()
    }

    /// Reads a line: `ask "Who has seen this?" yes no`, where the first word may be left out.
    pub fn read(line: &str) -> Result<Self, String> {
        let words = protocol::handle::split_words(line)?;
        let mut words = words.into_iter().peekable();
        if words.peek().is_some_and(|word| word == "ask") {
            words.next();
        }
        let prompt = words.next().unwrap_or_default();
        let choices = words.collect();
        Self { prompt, choices }.cleaned()
    }
}

/// A reason of an answer, bounded and cleaned.
pub fn clean_reason(reason: &str) -> String {
    sanitize::bounded(reason, REASON)
}

impl SharedWork {
    pub fn is_passed(&self) -> bool {
        self.state == "passed"
    }

    /// Returns true if the learner did more than open it.
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
        versioned(bytes, "not a room's record")
    }

    /// The number of the open round.
    pub fn open_round(&self) -> Option<u64> {
        self.open_vote().and_then(|(_, vote)| vote.number())
    }

    /// The open vote with its stage.
    pub fn open_vote(&self) -> Option<(&str, &Vote)> {
        let mut votes = self.votes.iter();
        votes
            .find(|(_, vote)| vote.open)
            .map(|(stage, vote)| (stage.as_str(), vote))
    }
}

/// A nickname for display: one line of bounded length.
pub fn clean_name(name: &str) -> String {
    sanitize::bounded(name.trim(), NAME)
}

fn bound<T>(all: &mut BTreeMap<String, T>) {
    all.retain(|id, _| id.len() <= 64 && !id.chars().any(sanitize::harmful));
    while all.len() > MOST {
        all.pop_last();
    }
}

/// Reads a record after checking its version: other versions may have other fields.
fn versioned<T: for<'de> Deserialize<'de>>(bytes: &[u8], what: &str) -> Result<T, RecordError> {
    #[derive(Deserialize)]
    struct Version {
        version: u32,
    }
    let garbage = |error: serde_json::Error| {
        RecordError::Garbage(format!(
            "is {what}: {}",
            sanitize::bounded(&error.to_string(), 120)
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
            r#"{{"version":{VERSION},"id":"{ID}","name":"\u001b[2J<script>alert(1)</script>","device":"{}",
            "stages":{{"a":{{"hints":4000000}},"\u001b":{{}}}},"races":{{"k":{{"ratio":[1,2,1e400]}}}}}}"#,
            "x".repeat(900)
        );
        // A number outside the range of a float makes the record invalid.
        assert!(matches!(read(&hostile), Err(RecordError::Garbage(_))));
        let it = read(&hostile.replace("1e400", "3")).expect("a record");
        assert_eq!(it.name, "·[2J<script>alert(1)</sc…");
        assert_eq!(it.device.chars().count(), 41);
        assert_eq!(it.stages.len(), 1);
        assert_eq!(it.stages["a"].hints, 99);
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
    fn what_cannot_have_been_measured_is_left_out() {
        let course = Course::builtin();
        let stage = course.stages[0].id.clone();
        let shared = |range| SharedWork {
            range: Some(range),
            measured: Some(7.0),
            vote: Some(1),
            ..SharedWork::default()
        };
        let result = |ratio, points: Option<u32>| RaceResult {
            ratio: Some(ratio),
            mystery: points.map(|points| MysteryResult {
                points,
                seconds: 60,
                configurations: 1,
            }),
        };
        let kernel = course.exercises.iter().find(|it| it.kernels().is_some());
        let kernel = kernel.expect("a kernel exercise").id.clone();
        let mut honest = Participant::default();
        honest.stages.insert(stage.clone(), shared([6.0, 8.0]));
        honest
            .races
            .insert(kernel.clone(), result([4.0, 3.0, 5.0], None));
        let of_mystery = result([1.01, 0.98, 1.05], Some(80));
        honest.races.insert("mystery 7-1".to_owned(), of_mystery);
        let before = honest.clone();
        assert_eq!(honest.leave_out_implausible(&course), None);
        assert_eq!(honest, before);
        for (task, it) in [
            ("mystery 7-1", result([51.0, 48.0, 54.0], Some(90))),
            ("mystery 7-1", result([1.0, 0.9, 1.1], Some(900))),
            ("mystery 7-1", result([1.0, 0.9, 1.1], None)),
            // Even the first minute costs points.
            ("mystery 7-1", result([1.0, 0.9, 1.1], Some(100))),
            ("mystery 7-9", result([1.0, 0.9, 1.1], Some(90))),
            (&kernel, result([51.0, 48.0, 54.0], None)),
            (&kernel, result([1.0, 2.0, 3.0], None)),
            ("nowhere", result([1.0, 0.9, 1.1], None)),
        ] {
            let mut hostile = Participant::default();
            hostile.races.insert(task.to_owned(), it);
            let said = hostile.leave_out_implausible(&course).unwrap_or_default();
            assert!(hostile.races.is_empty() && said.contains(task), "{said}");
        }
        let mut hostile = Participant::default();
        hostile.stages.insert(stage.clone(), shared([-5.0, 1e300]));
        let said = hostile.leave_out_implausible(&course).unwrap_or_default();
        assert!(said.contains("from 1 to 2000"), "{said}");
        assert_eq!(
            (hostile.stages[&stage].range, hostile.stages[&stage].vote),
            (None, Some(1))
        );
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

    #[test]
    fn a_forged_race_is_named_by_its_figure() {
        let course = Course::builtin();
        let said = |points, seconds, configurations, level| {
            let mut forged = Participant::default();
            let mystery = Some(MysteryResult {
                points,
                seconds,
                configurations,
            });
            let ratio = Some([1.0, 0.9, 1.1]);
            let task = format!("mystery 7-{level}");
            forged.races.insert(task, RaceResult { ratio, mystery });
            forged.leave_out_implausible(&course)
        };
        for (points, seconds, tried, level, figure) in [
            (99, 1, 0, 1, "any configuration"),
            (89, 1, 1, 1, "after 1 s"),
            // One knob for each fault is the least.
            (189, 60, 1, 2, "189 points, with at most 179"),
            (90, 60, 1, 1, "90 points, with at most 89"),
        ] {
            let said = said(points, seconds, tried, level).unwrap_or_default();
            assert!(said.contains(figure), "{figure}: {said}");
        }
        assert_eq!(said(89, 60, 1, 1), None);
        assert_eq!(said(179, 60, 1, 2), None);
    }

    #[test]
    fn a_question_is_a_line() {
        let asked =
            Question::read("ask \"Who has seen this?\" yes no \"not sure\"").expect("whole");
        assert_eq!(asked.prompt, "Who has seen this?");
        assert_eq!(asked.choices, ["yes", "no", "not sure"]);
        assert_eq!(Question::read(&asked.line()), Ok(asked));
        let file = "# at home\n\nask \"a \\\"b\\\"?\" yes no\n";
        let all = Question::read_all(file).expect("whole");
        assert_eq!(Question::read(&all[0].line()), Ok(all[0].clone()));
        let why = Question::read_all("a b c\nask why\n").expect_err("wrong");
        assert!(why.starts_with("line 2: "), "{why}");
        for wrong in [
            "",
            "ask",
            "ask why",
            "ask why yes",
            "ask \"why",
            "ask \"\" yes no",
        ] {
            assert!(Question::read(wrong).is_err(), "{wrong}");
        }
    }
}
