//! The speaker view on another terminal: the notes of the present beat, the next beat, and the agenda with its times. The notes are made
//! from the state and sent to that terminal as one JSON object a line; its requests come back one a line, as in `go-to 3 2`.

use serde::{Deserialize, Serialize};

use super::beats::{VoteState, cues};
use super::figures::{as_found, figures};
use super::{Action, App};
use crate::class::board::VoteTally;
use crate::course::Stage;
use crate::course::placeholder::{FigureSources, fill};
use crate::course::save_file::letter;
use crate::sanitize;

/// The content of the speaker view.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SpeakerNotes {
    /// The number of the stage.
    pub stage: u32,
    /// The title of the stage.
    pub title: String,
    /// The number of the beat in the stage, from 1.
    pub beat: usize,
    /// The number of beats in the stage.
    pub of: usize,
    /// The text that the audience reads.
    pub says: String,
    /// The speaker's notes for this beat.
    pub notes: String,
    /// The text of the next beat. Empty after the last one.
    pub next: String,
    /// The seconds planned for this beat.
    pub planned_s: u64,
    /// The seconds for which this beat was shown.
    pub used_s: u64,
    /// The choices of the open vote, with a mark at the right one. Empty while no vote is open.
    pub vote: Vec<String>,
    /// The votes so far, in words.
    pub votes: String,
    /// `blank` or `frozen` while the audience's screen is covered, else empty.
    pub covered: String,
    /// The state of the run, as in `running` or `warming up`.
    pub run: String,
    pub agenda: Vec<AgendaItem>,
}

/// A stage of the agenda.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AgendaItem {
    /// The number of the stage.
    pub number: u32,
    /// The number of its beats.
    pub beats: usize,
    pub title: String,
    pub planned_s: u64,
    pub used_s: u64,
}

/// A request of the speaker, one a line. `go-to 3 2` asks for the second beat of stage 3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display)]
#[strum(serialize_all = "lowercase")]
pub enum SpeakerRequest {
    /// Shows a beat, given by the number of its stage and its own number, from 1.
    #[strum(to_string = "go-to {0} {1}")]
    GoTo(u32, usize),
    Blank,
    Freeze,
    /// Ends the presentation.
    End,
}

impl SpeakerRequest {
    /// Reads a request from a line. `None` if the line is no request.
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

    /// Returns the action of this request in the program that presents.
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

/// Returns the notes for the beat on the screen. `None` if no beat is shown.
pub fn notes(app: &App) -> Option<SpeakerNotes> {
    let presentation = app.presenter.presentation.as_ref()?;
    let beat = app.beat()?;
    let cue = app.cue()?;
    let stage = app.stage()?;
    let current = figures(app);
    let sources = current.as_ref().map(|current| as_found(app, current));
    let filled = |text: &str| match &sources {
        Some(sources) => fill(text, sources),
        None => text.to_owned(),
    };
    let next = match cues(stage).get(beat.at + 1) {
        Some(cue) => Some(filled(&cue.say)),
        None => first_text_of_stage(app, beat.stage + 1),
    };
    Some(SpeakerNotes {
        stage: stage.number,
        title: stage.title.clone(),
        beat: beat.at + 1,
        of: beat.of,
        says: filled(&cue.say),
        notes: filled(&cue.notes),
        next: next.unwrap_or_default(),
        planned_s: seconds(cue.minutes),
        used_s: used_ms(app, beat.stage, beat.at) / 1000,
        vote: if beat.vote == VoteState::Open {
            marked_choices(stage)
        } else {
            Vec::new()
        },
        votes: app.tally().map_or_else(String::new, VoteTally::in_words),
        covered: presentation.audience_screen.into_str().to_owned(),
        run: app.bench.run.state.into_str().to_owned(),
        agenda: agenda(app),
    })
}

/// Returns the text of the first beat of the stage at this index. Its figures are not measured yet. `None` past the last stage.
fn first_text_of_stage(app: &App, index: usize) -> Option<String> {
    let stage = app.lesson.course.stages.get(index)?;
    let no_figures = FigureSources::none(&stage.broken);
    Some(fill(&cues(stage).first()?.say, &no_figures))
}

/// Returns the time for which a beat was shown in this session, in milliseconds.
fn used_ms(app: &App, stage: usize, beat: usize) -> u64 {
    let times = &app.presenter.beat_ms;
    times.get(&(stage, beat)).copied().unwrap_or(0)
}

/// Returns the stages of the course with their times.
fn agenda(app: &App) -> Vec<AgendaItem> {
    let mut agenda = Vec::new();
    for (index, stage) in app.lesson.course.stages.iter().enumerate() {
        let beats = cues(stage);
        let total_ms: u64 = (0..beats.len()).map(|beat| used_ms(app, index, beat)).sum();
        agenda.push(AgendaItem {
            number: stage.number,
            beats: beats.len(),
            title: stage.title.clone(),
            planned_s: beats.iter().map(|cue| seconds(cue.minutes)).sum(),
            used_s: total_ms / 1000,
        });
    }
    agenda
}

/// Returns the choices of a stage's prediction with their letters, the right one marked.
fn marked_choices(stage: &Stage) -> Vec<String> {
    let question = &stage.prediction;
    let mut choices = Vec::new();
    for (index, choice) in question.choices.iter().enumerate() {
        let is_right = index == question.answer;
        let mark = if is_right { "  (right)" } else { "" };
        choices.push(format!("{}  {choice}{mark}", letter(index)));
    }
    choices
}

/// Converts minutes to whole seconds.
fn seconds(minutes: f64) -> u64 {
    (60.0 * minutes) as u64
}

impl SpeakerNotes {
    /// Returns the beat `by` places after `from`. Beats are pairs of the stage's number and the beat's number in it, from 1. `None` past
    /// either end.
    pub fn beat_from(&self, from: (u32, usize), by: isize) -> Option<(u32, usize)> {
        let beats: Vec<(u32, usize)> = self
            .agenda
            .iter()
            .flat_map(|stage| (1..=stage.beats).map(|beat| (stage.number, beat)))
            .collect();
        let index = beats.iter().position(|beat| *beat == from)?;
        beats.get(index.checked_add_signed(by)?).copied()
    }

    /// Returns the seconds for which all beats together were shown.
    pub fn used_in_all_s(&self) -> u64 {
        self.agenda.iter().map(|stage| stage.used_s).sum()
    }

    /// Reads the notes from a line of the presenting program and makes them safe for a terminal. `None` if the line holds no notes.
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
        let titles = notes.agenda.iter_mut().map(|stage| &mut stage.title);
        for text in texts.into_iter().chain(&mut notes.vote).chain(titles) {
            *text = sanitize::line(text);
        }
        Some(notes)
    }
}
