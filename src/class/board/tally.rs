//! The tally of a vote: the ballots by answer, and how many may still vote, in figures and in words.

use serde::{Deserialize, Serialize};

use crate::class::state::RoomState;
use crate::course::save_file::letter;
use crate::course::{Course, Stage};
use crate::sanitize;

/// The state of a vote with the counts of its rounds.
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
    /// The number of ballots in this round.
    pub voted: u32,
    /// The number of participants who are here, or were here when the round was closed.
    #[serde(rename = "of")]
    pub here: u32,
    /// The number of ballots from participants who are not counted in `here`.
    #[serde(default, rename = "left")]
    pub gone: u32,
    /// The number of ballots that may be the second vote of one person (`RoundCount::alike`).
    #[serde(default)]
    pub alike: u32,
    /// The numbers of votes by answer, for each round; empty while they are hidden.
    pub rounds: Vec<Vec<u32>>,
    /// The low and high end of each range that a participant has predicted.
    pub ranges: Vec<[f64; 2]>,
    /// The median of the participants' measurements.
    pub measured: Option<f64>,
    /// The unit of ranges and measurements.
    pub unit: String,
    /// The right answer, once the instructor has shown it.
    pub answer: Option<Answer>,
    /// The text of `turnout_sentence` for the board's page, which cannot compute it; empty on the instructor's own board.
    #[serde(default, rename = "said")]
    pub turnout_text: String,
}

/// The right answer to a vote: the index of the choice, and its explanation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    pub choice: usize,
    pub reason: String,
}

impl VoteTally {
    /// Returns how many have voted, in words: `27 of 28 here, and 1 who left`.
    pub fn turnout(&self) -> String {
        self.turnout_with("")
    }

    /// Returns how many have voted, with a verb while the vote is open: `27 of 28 here have voted, and 1 who left`.
    pub fn turnout_sentence(&self) -> String {
        let again = if self.round > 1 { " once more" } else { "" };
        if self.open {
            self.turnout_with(&format!(" have voted{again}"))
        } else {
            self.turnout()
        }
    }

    fn turnout_with(&self, verb: &str) -> String {
        let voted_here = self.voted.saturating_sub(self.gone);
        let mut sentence = format!("{voted_here} of {} here{verb}", self.here);
        if self.gone > 0 {
            sentence += &format!(", and {} who left", self.gone);
        }
        if self.alike > 0 {
            sentence += &format!("; {} perhaps from a phone that has voted", self.alike);
        }
        sentence
    }

    /// Returns the turnout of an open vote. Once the vote is closed, the votes of each answer come first: `a 3, then 5 · b 2, then 0: …`.
    pub fn in_words(&self) -> String {
        if self.open {
            return self.turnout_sentence();
        }
        let votes: Vec<String> = (0..self.choices.len())
            .map(|choice| format!("{} {}", letter(choice), self.votes_in_words(choice)))
            .collect();
        format!("{}: {}", votes.join(" · "), self.turnout())
    }

    /// Returns the votes for an answer in words: `3`, or with a second round `3, then 5`.
    pub fn votes_in_words(&self, choice: usize) -> String {
        let votes: Vec<String> = self.votes(choice).iter().map(u32::to_string).collect();
        votes.join(", then ")
    }

    /// Returns a title for the vote: `stage 4`, or `question`.
    pub fn title(&self) -> String {
        match self.stage {
            0 => "question".to_owned(),
            stage => format!("stage {stage}"),
        }
    }

    /// Returns the votes for an answer in each round.
    pub fn votes(&self, choice: usize) -> Vec<u32> {
        self.rounds
            .iter()
            .map(|counts| counts.get(choice).copied().unwrap_or(0))
            .collect()
    }
}

/// Returns the tally of the vote on the stage or free question with this id; `None` if there has been no such vote.
pub fn tally(room: &RoomState, course: &Course, id: &str) -> Option<VoteTally> {
    let vote = room.class.votes.get(id)?;
    let stage = course.stage_by_id(id);
    let mut tally = match stage {
        Some(stage) => tally_without_votes(room, stage),
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
        tally.here = round.here;
        tally.gone = round.gone;
        tally.alike = round.alike;
        tally.rounds.push(round.counts);
    }
    if let (Some(reason), Some(stage)) = (&vote.answer, stage) {
        tally.answer = Some(Answer {
            choice: stage.prediction.answer,
            reason: reason.clone(),
        });
    }
    Some(tally)
}

/// Returns a tally with the question of a stage and the ranges and measurements of the class, and no ballots.
pub fn tally_without_votes(room: &RoomState, stage: &Stage) -> VoteTally {
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
