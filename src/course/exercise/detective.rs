//! A detective exercise: a recorded run with a fault that the learner names. The recording is the unchanged stream of a real run. The knob of
//! the fault and the lints would name the fault, so they are removed before the run is shown, and the screen says so.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;

use super::folder::ExerciseFolder;
use crate::course::Question;
use crate::course::check::{Check, CheckToml, read_check};
use crate::course::config_file::FileError;
use crate::course::save_file::letter;
use crate::course::stage::{ChoiceLetter, check_keys, check_question, plain_file};
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
    /// The name of another program's profile, which `perflings open` shows. It takes the place of the recording, which is then empty.
    pub profile: Option<String>,
    /// For each choice, the conditions that the recording meets if the choice is right. `judge::detective` compares them with the recording.
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

    /// Returns the device and the date of the recording.
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
        self.recording
            .lines()
            .rev()
            .find_map(|line| match event(line)? {
                Event::Finished(finished) => Some(*finished),
                _ => None,
            })
    }

    /// Returns the recorded configuration.
    pub fn config(&self) -> Option<RunConfig> {
        let config_in = |line| Some(event(line)?.begins_run()?.run.config.clone());
        self.recording.lines().find_map(config_in)
    }

    /// Sets the hidden keys to the values of the preset.
    fn cover(&self, config: &mut RunConfig) {
        let plain = RunConfig::preset(config.preset);
        for knob in self.knobs() {
            // A key accepts every value of a preset.
            let _ = knob.set(config, &KnobValue::from_word(&(knob.get)(&plain)));
        }
    }

    /// Returns the knobs of the hidden keys.
    fn knobs(&self) -> impl Iterator<Item = &'static Knob> {
        self.hide.iter().filter_map(|path| Knob::known(path))
    }

    /// Reads every line of the recording, and returns the first fault; `None` for a recording without a fault.
    pub fn problem(&self) -> Option<FileError> {
        let fault = |line, message: &str| Some(FileError::new(&self.file, line, message));
        if self.profile.is_some() {
            return None;
        }
        for (line, text) in (1..).zip(self.recording.lines()) {
            if let Err(why) = protocol::read::<StreamLine>(text) {
                let message = format!("is not a line of a recording: {why}; record the run again");
                return fault(line, &message);
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
        let path = knob.path;
        fault(
            0,
            &format!("was recorded with {path} = {value}, as in the preset; remove it from `hide`"),
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
    // The keys `profile`, `device` and `date` are about a profile of another program.
    profile: Option<String>,
    device: Option<String>,
    date: Option<String>,
    /// The conditions under which each choice is right.
    #[serde(default)]
    shows: BTreeMap<ChoiceLetter, Vec<CheckToml>>,
}

/// Reads the question, the recording or profile that it is about, and what that shows if a choice is right.
pub(super) fn read(folder: &ExerciseFolder<'_>) -> Result<Detective, FileError> {
    let found: DetectiveToml = folder.own()?;
    let file = folder.file;
    let mut shows: [Vec<Check>; 4] = Default::default();
    for (letter_of_choice, checks) in found.shows {
        let choice = letter_of_choice as usize;
        for (index, raw) in checks.into_iter().enumerate() {
            let path = format!("shows.{}.{index}", letter(choice));
            shows[choice].extend(file.ok_or_report(read_check(file, &path, raw)));
        }
    }
    let question = found
        .question
        .ok_or_else(|| file.fault("question", "has no question; write a table `[question]`"))?;
    check_question(file, "question", &question)?;
    let answer_line = file.line("question.answer");
    if let Some(profile) = found.profile {
        return Ok(Detective {
            question,
            recording: "".into(),
            file: profile.clone(),
            device: Device {
                kind: "gpu".to_owned(),
                name: found.device.unwrap_or_default(),
            },
            date: found.date.unwrap_or_default(),
            hide: Vec::new(),
            profile: Some(profile),
            shows,
            answer_line,
        });
    }
    if found.hide.is_empty() {
        return Err(file.missing("hide", "[\"model.init\"]"));
    }
    check_keys(file, "hide", &found.hide)?;
    let name = found.recording.as_deref().unwrap_or("run.jsonl");
    if !plain_file(name, &["jsonl"]) {
        let message = format!("`recording` is `{name}`; name a .jsonl file beside exercise.toml");
        return Err(file.fault("recording", message));
    }
    let path = folder.path_of(name);
    let recording = folder.loader.text(&path)?;
    let shown = folder.loader.source.shown(&path);
    let (device, date) = device_and_date(&recording, &shown)?;
    Ok(Detective {
        question,
        recording: recording.into(),
        file: shown,
        device,
        date,
        hide: found.hide,
        profile: None,
        shows,
        answer_line,
    })
}

/// Returns the device and the date in the first lines of a recording. `file` is its name in messages.
///
/// # Errors
/// If the recording does not begin with a greeting, or starts no run.
fn device_and_date(recording: &str, file: &str) -> Result<(Device, String), FileError> {
    let mut head = recording.lines().map_while(event);
    let Some(Event::Hello(hello)) = head.next() else {
        let message =
            "is not a recording; write one with `perflings run --config FILE --record FILE`";
        return Err(FileError::new(file, 1, message));
    };
    let Some(device) = head.find_map(|event| Some(event.begins_run()?.device.clone())) else {
        let message = "starts no run; record one with `perflings run --config FILE --record FILE`";
        return Err(FileError::new(file, 0, message));
    };
    Ok((device, hello.date))
}

/// Returns the event in a line of a recording; `None` if it cannot be read.
fn event(text: &str) -> Option<Event> {
    let line: StreamLine = serde_json::from_str(text).ok()?;
    Some(line.event)
}
