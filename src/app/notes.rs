//! What a presenter reads on another terminal: the notes of this beat, the next one, the agenda with its times. Plain data, made
//! from the state; one JSON object a line on the way there.

use serde::{Deserialize, Serialize};

use super::beats::{VoteState, beats, cues};
use super::figures::{as_found, figures};
use super::{Action, App};
use crate::class::board::VoteTally;
use crate::course::placeholder::{FigureSources, fill};
use crate::sanitize;

/// What the speaker view shows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SpeakerNotes {
    /// Number and title of the stage.
    pub stage: u32,
    pub title: String,
    /// The beat's number in the stage, from 1.
    pub beat: usize,
    pub of: usize,
    /// What the audience reads.
    pub says: String,
    /// The speaker's notes of this beat.
    pub notes: String,
    /// What the next beat says; empty after the last.
    pub next: String,
    /// Seconds planned for this beat, and seconds for which it was shown.
    pub planned_s: u64,
    pub used_s: u64,
    /// The vote, while it is open: its choices, and which is right.
    pub vote: Vec<String>,
    /// Votes as they come.
    pub votes: String,
    /// `blank` or `frozen` while the room does not see what happens.
    pub covered: String,
    /// The state of the run: `running`, `warming up`.
    pub run: String,
    pub agenda: Vec<AgendaItem>,
}

/// A stage of the agenda.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AgendaItem {
    /// The number of the stage, and its beats.
    pub number: u32,
    pub beats: usize,
    pub title: String,
    pub planned_s: u64,
    pub used_s: u64,
}

/// What the speaker can ask for, a line each: `go-to 3 2` is the second beat of stage 3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display)]
#[strum(serialize_all = "lowercase")]
pub enum SpeakerRequest {
    /// A beat by the number of its stage and its own number, from 1.
    #[strum(to_string = "go-to {0} {1}")]
    GoTo(u32, usize),
    Blank,
    Freeze,
    /// Ends the presentation.
    End,
}

impl SpeakerRequest {
    /// Reads a line.
    pub fn parse(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split_whitespace().collect();
        Some(match words.as_slice() {
            ["go-to", stage, beat] => Self::GoTo(stage.parse().ok()?, beat.parse().ok()?),
            ["blank"] => Self::Blank,
            ["freeze"] => Self::Freeze,
            ["end"] => Self::End,
            _ => return None,
        })
    }

    /// What it means to the program that presents.
    pub fn action(self) -> Action {
        match self {
            Self::GoTo(stage, beat) => Action::GoToBeat {
                stage,
                beat: beat.saturating_sub(1),
            },
            Self::Blank => Action::BlankScreen,
            Self::Freeze => Action::FreezeScreen,
            Self::End => Action::EndPresentation,
        }
    }
}

/// Notes of what is presented; none while nothing is.
pub fn notes(app: &App) -> Option<SpeakerNotes> {
    let presentation = app.presenter.presentation.as_ref()?;
    let (beat, cue, stage) = (app.beat()?, app.cue()?, app.stage()?);
    let now = figures(app);
    let found = now.as_ref().map(|now| as_found(app, now));
    let filled = |text: &str| match &found {
        Some(found) => fill(text, found),
        None => text.to_owned(),
    };
    let seconds = |minutes: f64| (60.0 * minutes) as u64;
    let course = &app.lesson.course.stages;
    let here = cues(stage);
    // Of another stage nothing is measured now.
    let of_next_stage = || {
        let stage = course.get(beat.stage + 1)?;
        let none = FigureSources::none(&stage.broken);
        Some(fill(&cues(stage).first()?.say, &none))
    };
    let next = here.get(beat.at + 1).map(|cue| filled(&cue.say));
    let next = next.or_else(of_next_stage);
    let used = |stage: usize, at: usize| app.presenter.beat_ms.get(&(stage, at)).copied();
    let item = |(at, stage): (usize, &crate::course::Stage)| AgendaItem {
        number: stage.number,
        beats: cues(stage).len(),
        title: stage.title.clone(),
        planned_s: cues(stage).iter().map(|cue| seconds(cue.minutes)).sum(),
        used_s: (0..beats(at, stage).len())
            .filter_map(|beat| used(at, beat))
            .sum::<u64>()
            / 1000,
    };
    let question = &stage.prediction;
    let choices = question.choices.iter().enumerate().map(|(at, choice)| {
        let right = if at == question.answer {
            "  (right)"
        } else {
            ""
        };
        let letter = crate::course::save_file::letter(at);
        format!("{letter}  {choice}{right}")
    });
    Some(SpeakerNotes {
        stage: stage.number,
        title: stage.title.clone(),
        beat: beat.at + 1,
        of: beat.of,
        says: filled(&cue.say),
        notes: filled(&cue.notes),
        next: next.unwrap_or_default(),
        planned_s: seconds(cue.minutes),
        used_s: used(beat.stage, beat.at).unwrap_or(0) / 1000,
        vote: choices.filter(|_| beat.vote == VoteState::Open).collect(),
        votes: app.tally().map_or_else(String::new, VoteTally::in_words),
        covered: presentation.audience_screen.into_str().to_owned(),
        run: app.bench.run.state.into_str().to_owned(),
        agenda: course.iter().enumerate().map(item).collect(),
    })
}

impl SpeakerNotes {
    /// The beat so many further on than another one, by the number of its stage and its own, from 1; none beyond the ends.
    pub fn beat_from(&self, (stage, beat): (u32, usize), by: isize) -> Option<(u32, usize)> {
        let all = self
            .agenda
            .iter()
            .flat_map(|it| (1..=it.beats).map(|at| (it.number, at)));
        let all: Vec<(u32, usize)> = all.collect();
        let at = all.iter().position(|it| *it == (stage, beat))?;
        all.get(at.checked_add_signed(by)?).copied()
    }

    /// Seconds for which beats were shown, altogether.
    pub fn used_in_all_s(&self) -> u64 {
        self.agenda.iter().map(|it| it.used_s).sum()
    }

    /// A line from the other program, made safe for a terminal.
    pub fn read(line: &str) -> Option<Self> {
        let mut notes: Self = serde_json::from_str(line).ok()?;
        let texts = [
            &mut notes.title,
            &mut notes.says,
            &mut notes.notes,
            &mut notes.next,
            &mut notes.votes,
            &mut notes.covered,
            &mut notes.run,
        ];
        let all = texts.into_iter().chain(&mut notes.vote);
        let all = all.chain(notes.agenda.iter_mut().map(|item| &mut item.title));
        all.for_each(|text| *text = sanitize::line(text));
        Some(notes)
    }
}
