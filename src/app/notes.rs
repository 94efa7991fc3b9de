//! What a presenter reads on another terminal: the notes of this beat, the next one, the agenda with its times. Plain data, made
//! from the state; one JSON object a line on the way there.

use serde::{Deserialize, Serialize};

use super::beats::{VoteState, beats, cues};
use super::figures::{as_found, figures};
use super::{Action, App, AudienceScreen};
use crate::clean;
use crate::course::placeholder::fill;

/// What stands on the speaker's screen.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Notes {
    /// Number and title of the stage.
    pub stage: u32,
    pub title: String,
    /// The beat's number in the stage, from 1.
    pub beat: usize,
    pub of: usize,
    /// What the room reads.
    pub says: String,
    pub notes: String,
    /// What the next beat says; empty after the last.
    pub next: String,
    /// Of this beat.
    pub planned_s: u64,
    pub used_s: u64,
    /// The vote, while it is open: its choices, and which is right.
    pub vote: Vec<String>,
    /// Votes as they come.
    pub votes: String,
    /// `blank` or `frozen` while the room does not see what happens.
    pub covered: String,
    /// What goes on in the run: `running`, `warming up`.
    pub run: String,
    pub agenda: Vec<AgendaItem>,
}

/// A stage of the agenda.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AgendaItem {
    pub title: String,
    pub planned_s: u64,
    pub used_s: u64,
}

/// What the speaker can ask for, a word a line.
pub const ORDERS: [(&str, Action); 4] = [
    ("next", Action::NextBeat),
    ("back", Action::PreviousBeat),
    ("blank", Action::BlankScreen),
    ("freeze", Action::FreezeScreen),
];

/// Notes of what is presented; none while nothing is.
pub fn notes(app: &App) -> Option<Notes> {
    let presentation = app.presentation.as_ref()?;
    let (beat, cue, stage) = (app.beat()?, app.cue()?, app.stage()?);
    let now = figures(app);
    let found = now.as_ref().map(|now| as_found(app, now));
    let filled = |text: &str| match &found {
        Some(found) => fill(text, found),
        None => text.to_owned(),
    };
    let seconds = |minutes: f64| (60.0 * minutes) as u64;
    let course = &app.course.stages;
    let here = cues(stage);
    let next = here.get(beat.at + 1).cloned();
    let next = next.or_else(|| cues(course.get(beat.stage + 1)?).first().cloned());
    let used = |stage: usize, at: usize| presentation.used_ms.get(&(stage, at)).copied();
    let item = |(at, stage): (usize, &crate::course::Stage)| AgendaItem {
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
        let letter = crate::course::progress::letter(at);
        format!("{letter}  {choice}{right}")
    });
    Some(Notes {
        stage: stage.number,
        title: stage.title.clone(),
        beat: beat.at + 1,
        of: beat.of,
        says: filled(&cue.say),
        notes: filled(&cue.notes),
        next: next.map_or(String::new(), |cue| cue.say),
        planned_s: seconds(cue.minutes),
        used_s: used(beat.stage, beat.at).unwrap_or(0) / 1000,
        vote: choices.filter(|_| beat.vote == VoteState::Open).collect(),
        votes: app.tally_in_words().unwrap_or_default(),
        covered: match presentation.audience_screen {
            AudienceScreen::Live => "",
            AudienceScreen::Blank => "blank",
            AudienceScreen::Frozen => "frozen",
        }
        .to_owned(),
        run: app.run.state.words().to_owned(),
        agenda: course.iter().enumerate().map(item).collect(),
    })
}

impl Notes {
    /// A line as it comes from the other side; nothing in it can harm a terminal.
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
        all.for_each(|text| *text = clean::line(text));
        Some(notes)
    }
}
