//! A recorded run with a hidden fault. The recording is the unchanged stream of a real run. The fault's knob and the lints would name the
//! fault, so they are removed before the run is shown, and the screen says so.

use std::sync::Arc;

use serde::Deserialize;

use super::folder::ExerciseFolder;
use crate::course::Question;
use crate::course::check::{Check, CheckToml, checked};
use crate::course::config_file::FileError;
use crate::course::stage::{check_keys, check_question, plain_file};
use protocol::config::{Knob, KnobValue, RunConfig};
use protocol::{self, Device, Event, Finished, StreamLine};

/// A recorded run, and the question about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Detective {
    pub question: Question,
    /// The whole recording, one event on each line.
    pub recording: Arc<str>,
    /// The name of the recording's file, for messages.
    pub file: String,
    pub device: Device,
    /// The date of the recording, `YYYY-MM-DD`.
    pub date: String,
    /// The keys that would reveal the fault.
    pub hide: Vec<String>,
    /// The name of another program's profile for `perflings open`, which replaces the recording.
    pub profile: Option<String>,
    /// What the recording shows where a choice is right, for each choice. `judge::detective` compares it with the recording.
    pub shows: [Vec<Check>; 4],
    /// The line of the declared answer in `exercise.toml`, for messages.
    pub answer_line: usize,
}

impl Detective {
    /// Returns the command that shows the recording or the profile.
    pub fn command(&self) -> &'static str {
        match self.profile {
            Some(_) => "open",
            None => "replay",
        }
    }

    /// Makes an exercise about a recording. `file` is for messages only.
    ///
    /// # Errors
    /// If the recording does not begin with a greeting, or starts no run.
    pub fn new(
        question: Question,
        hide: Vec<String>,
        recording: String,
        file: String,
    ) -> Result<Self, FileError> {
        let mut head = recording.lines().map_while(event);
        let Some(Event::Hello(hello)) = head.next() else {
            let message =
                "is not a recording; write one with `perflings run --config FILE --record FILE`";
            return Err(FileError::new(file, 1, message));
        };
        let device = head.find_map(|event| Some(event.begins_run()?.device.clone()));
        let message = "starts no run; record one with `perflings run --config FILE --record FILE`";
        Ok(Self {
            question,
            device: device.ok_or_else(|| FileError::new(&file, 0, message))?,
            recording: recording.into(),
            file,
            date: hello.date,
            hide,
            profile: None,
            shows: Default::default(),
            answer_line: 0,
        })
    }

    /// Makes an exercise about another program's profile, without a recording.
    pub fn of_profile(question: Question, profile: String, device: String, date: String) -> Self {
        Self {
            question,
            recording: "".into(),
            file: profile.clone(),
            device: Device {
                kind: "gpu".to_owned(),
                name: device,
            },
            date,
            hide: Vec::new(),
            profile: Some(profile),
            shows: Default::default(),
            answer_line: 0,
        }
    }

    /// Returns device and date of the recording.
    pub fn badge(&self) -> String {
        format!("{}, {}", self.device.name, self.date)
    }

    /// Returns the stream that is shown: without lints, and with the preset's values for hidden keys.
    pub fn shown(&self) -> String {
        let mut out = String::with_capacity(self.recording.len());
        for text in self.recording.lines().filter(|text| !text.is_empty()) {
            let Ok(mut line) = serde_json::from_str::<StreamLine>(text) else {
                continue;
            };
            match &mut line.event {
                Event::Lints { .. } => continue,
                Event::Finished(finished) => finished.lints.clear(),
                _ => {}
            }
            line.event = line.event.with_config(|config| self.cover(config));
            if let Ok(text) = serde_json::to_string(&line) {
                out.push_str(&text);
                out.push('\n');
            }
        }
        out
    }

    /// Returns the complete summary of the run, for the explanation; `None` if the recording ends too early.
    pub fn finished(&self) -> Option<Finished> {
        let mut events = self.recording.lines().rev().filter_map(event);
        events.find_map(|event| match event {
            Event::Finished(finished) => Some(*finished),
            _ => None,
        })
    }

    /// Returns the recorded configuration.
    pub fn config(&self) -> Option<RunConfig> {
        let mut events = self.recording.lines().filter_map(event);
        events.find_map(|event| Some(event.begins_run()?.run.config.clone()))
    }

    /// Sets the hidden keys to the values of the preset.
    fn cover(&self, config: &mut RunConfig) {
        let plain = RunConfig::preset(config.preset);
        for knob in self.knobs() {
            // A key accepts every value of a preset.
            let _ = knob.set(config, &KnobValue::from_word(&(knob.get)(&plain)));
        }
    }

    fn knobs(&self) -> impl Iterator<Item = &'static Knob> {
        self.hide.iter().filter_map(|path| Knob::known(path))
    }

    /// Reads every line of the recording, and returns its first fault; `None` if it has no fault.
    pub fn problem(&self) -> Option<FileError> {
        let fault = |line, message: &str| Some(FileError::new(&self.file, line, message));
        if self.profile.is_some() {
            return None;
        }
        for (at, text) in self.recording.lines().enumerate() {
            if let Err(why) = protocol::read::<StreamLine>(text) {
                return fault(at + 1, &format!("is not a line of a recording: {why}"));
            }
        }
        if self.finished().is_none() {
            return fault(0, "ends without a summary; record the run to its end");
        }
        let config = self.config()?;
        let plain = RunConfig::preset(config.preset);
        let is_plain = |knob: &&Knob| (knob.get)(&config) == (knob.get)(&plain);
        let knob = self.knobs().find(is_plain)?;
        let value = (knob.get)(&config);
        let message = "the preset's value: `hide` hides nothing there";
        fault(
            0,
            &format!("was recorded with {} = {value}, {message}", knob.path),
        )
    }
}

/// The keys of `exercise.toml` that only detective exercises have.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DetectiveToml {
    question: Option<Question>,
    recording: Option<String>,
    #[serde(default)]
    hide: Vec<String>,
    // The keys below belong to a profile of another program.
    profile: Option<String>,
    device: Option<String>,
    date: Option<String>,
    #[serde(default)]
    shows: ShowsToml,
}

/// The conditions under which each choice is right, by its letter.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct ShowsToml {
    a: Vec<CheckToml>,
    b: Vec<CheckToml>,
    c: Vec<CheckToml>,
    d: Vec<CheckToml>,
}

/// Reads the question, the recording or profile that it is about, and what that shows where a choice is right.
pub(super) fn read(folder: &ExerciseFolder<'_>) -> Result<Detective, FileError> {
    let mut found: DetectiveToml = folder.own()?;
    let file = folder.file;
    let ShowsToml { a, b, c, d } = std::mem::take(&mut found.shows);
    let mut shows: [Vec<Check>; 4] = Default::default();
    for (choice, (letter, raw)) in [("a", a), ("b", b), ("c", c), ("d", d)]
        .into_iter()
        .enumerate()
    {
        for (at, raw) in raw.into_iter().enumerate() {
            match checked(file, &format!("shows.{letter}.{at}"), raw) {
                Ok(check) => shows[choice].push(check),
                Err(fault) => file.keep(Err(fault)),
            }
        }
    }
    Ok(Detective {
        shows,
        answer_line: file.line("question.answer"),
        ..about(folder, found)?
    })
}

/// Reads the question, and the recording or profile that it is about.
fn about(folder: &ExerciseFolder<'_>, found: DetectiveToml) -> Result<Detective, FileError> {
    let file = folder.file;
    let question = found
        .question
        .ok_or_else(|| file.fault("question", "has no question; write a table `[question]`"))?;
    check_question(file, "question", &question)?;
    if let Some(profile) = found.profile {
        let device = found.device.unwrap_or_default();
        let date = found.date.unwrap_or_default();
        return Ok(Detective::of_profile(question, profile, device, date));
    }
    if found.hide.is_empty() {
        return Err(file.missing("hide", "[\"model.init\"]"));
    }
    check_keys(file, "hide", &found.hide)?;
    let name = found.recording.as_deref().unwrap_or("run.jsonl");
    if !plain_file(name, &["jsonl"]) {
        let message = "name a .jsonl file beside exercise.toml";
        return Err(file.fault("recording", format!("`recording` is `{name}`; {message}")));
    }
    let path = folder.path_of(name);
    let recording = folder.loader.text(&path)?;
    let shown = folder.loader.source.shown(&path);
    Detective::new(question, found.hide, recording, shown)
}

/// Returns the event in a line of a recording; `None` if it cannot be read.
fn event(text: &str) -> Option<Event> {
    let line: StreamLine = serde_json::from_str(text).ok()?;
    Some(line.event)
}
