//! Counts a vote, and says how it stands.

use serde::{Deserialize, Serialize};

use crate::class::state::RoomState;
use crate::course::save_file::letter;
use crate::course::{Course, Stage};
use crate::sanitize;

/// A vote as it stands.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct VoteTally {
    /// The number of the stage; 0 for a free question.
    pub stage: u32,
    /// The id of the stage or question.
    #[serde(default)]
    pub vote: String,
    pub prompt: String,
    pub choices: Vec<String>,
    pub open: bool,
    /// The open or last round, from 1.
    pub round: usize,
    /// The number of ballots in it.
    pub voted: u32,
    /// The number of participants who are here, or were here at the end of the round.
    pub of: u32,
    /// The number of ballots from people who are no longer here.
    #[serde(default)]
    pub left: u32,
    /// The number of ballots from a phone that looks like another that has voted, at the same address.
    #[serde(default)]
    pub alike: u32,
    /// The votes by choice in each round; empty while they are hidden.
    pub rounds: Vec<Vec<u32>>,
    /// The ranges that participants predicted.
    pub ranges: Vec<[f64; 2]>,
    /// The median of what participants measured.
    pub measured: Option<f64>,
    /// The unit of ranges and measurements.
    pub unit: String,
    /// The right choice and its reason, once the instructor has shown them.
    pub answer: Option<Answer>,
    /// The standing of the vote in words; only on the board for everybody.
    #[serde(default)]
    pub said: String,
}

/// The answer to a vote.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    pub choice: usize,
    pub reason: String,
}

impl VoteTally {
    /// Returns how many have voted, in words: `27 of 28 here, and 1 who left`.
    pub fn who(&self) -> String {
        self.counted("")
    }

    /// Returns how many have voted, in words, while the vote is open and once it is closed.
    pub fn standing(&self) -> String {
        match (self.open, self.round > 1) {
            (true, true) => self.counted(" have voted once more"),
            (true, false) => self.counted(" have voted"),
            (false, _) => self.who(),
        }
    }

    /// Returns how many have voted. `did` stands after those who are here.
    fn counted(&self, did: &str) -> String {
        let here = self.voted.saturating_sub(self.left);
        let mut said = format!("{here} of {} here{did}", self.of);
        if self.left > 0 {
            said += &format!(", and {} who left", self.left);
        }
        if self.alike > 0 {
            said += &format!("; {} perhaps from a phone that has voted", self.alike);
        }
        said
    }

    /// Returns how the vote stands: who has voted, and once it is closed each choice with its votes, in both rounds.
    pub fn in_words(&self) -> String {
        if self.open {
            return self.standing();
        }
        let mut choices: Vec<String> = Vec::new();
        for at in 0..self.choices.len() {
            choices.push(format!("{} {}", letter(at), self.votes_in_words(at)));
        }
        format!("{}: {}", choices.join(" · "), self.who())
    }

    /// Returns the votes for a choice in words: `3`, or with a second round `3, then 5`.
    pub fn votes_in_words(&self, choice: usize) -> String {
        let votes: Vec<String> = self.votes(choice).iter().map(u32::to_string).collect();
        votes.join(", then ")
    }

    /// Returns the place of the question in words: `stage 4`, or `question`.
    pub fn named(&self) -> String {
        match self.stage {
            0 => "question".to_owned(),
            stage => format!("stage {stage}"),
        }
    }

    /// Returns the votes for a choice in each round.
    pub fn votes(&self, choice: usize) -> Vec<u32> {
        let rounds = self.rounds.iter();
        rounds
            .map(|counts| counts.get(choice).copied().unwrap_or(0))
            .collect()
    }
}

/// Counts the vote on a stage of the course or on a free question. Returns `None` if there is no such vote.
pub fn tally(room: &RoomState, course: &Course, id: &str) -> Option<VoteTally> {
    let vote = room.class.votes.get(id)?;
    let stage = course.stage_by_id(id);
    let mut tally = match stage {
        Some(stage) => predicted(room, stage),
        None => {
            let question = room.class.questions.get(id)?;
            VoteTally {
                prompt: question.prompt.clone(),
                choices: question.choices.clone(),
                ..VoteTally::default()
            }
        }
    };
    tally.vote = id.to_owned();
    tally.open = vote.open;
    tally.round = vote.round + 1;
    for number in &vote.asked {
        let round = room.round(vote, *number);
        tally.voted = round.counts.iter().sum();
        tally.of = round.here;
        tally.left = round.gone;
        tally.alike = round.alike;
        tally.rounds.push(round.counts);
    }
    if let (Some(reason), Some(stage)) = (&vote.answer, stage) {
        let choice = stage.prediction.answer;
        let reason = reason.clone();
        tally.answer = Some(Answer { choice, reason });
    }
    Some(tally)
}

/// Returns what the class predicted and measured of a stage, without votes.
pub fn predicted(room: &RoomState, stage: &Stage) -> VoteTally {
    let mut ranges = Vec::new();
    let mut measured = Vec::new();
    for person in room.people.values() {
        if let Some(work) = person.record.stages.get(&stage.id) {
            ranges.extend(work.range);
            measured.extend(work.measured);
        }
    }
    measured.sort_by(f64::total_cmp);
    let one_line = |text: &String| sanitize::line(text.trim());
    let scale = stage.estimate.as_ref();
    VoteTally {
        stage: stage.number,
        prompt: one_line(&stage.prediction.prompt),
        choices: stage.prediction.choices.iter().map(one_line).collect(),
        ranges,
        measured: measured.get(measured.len() / 2).copied(),
        unit: scale.map_or_else(String::new, |scale| scale.unit.clone()),
        ..VoteTally::default()
    }
}
