//! Recordings: files with the stream of an engine, one event a line. The first line is `hello`. The output of `run --json` is a recording,
//! too. The writer leaves out lines of a long run, so that an hour takes less than 50 MB; statistics and summaries stay complete.

mod thin;

use std::fmt;
use std::fs::{File, TryLockError};
use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::course::config_file::{FileError, read_text};
use crate::files::{self, WriteOutcome};
use crate::sanitize;
use protocol::story::StreamStory;
use protocol::{self, Device, Event, Finished, PROTOCOL, StreamLine};

/// The size of the largest recording that is read, in bytes.
pub const MAX_BYTES: u64 = 256 * 1024 * 1024;

/// Writes a recording line by line into `FILE.part`, which is renamed to `FILE` at the end.
#[derive(Debug)]
pub struct RecordingWriter {
    file: File,
    part: PathBuf,
    target: PathBuf,
    thinning: thin::Thinning,
    /// The seconds that are added to the time of each line. The time of an engine begins at 0, also if it replaces another engine.
    offset_s: f64,
    /// The time of the latest line with the offset, in seconds.
    latest_s: f64,
}

impl RecordingWriter {
    /// Opens `FILE.part` in the folder of `path`.
    ///
    /// # Errors
    /// If the file cannot be created, or if another perflings is writing it.
    pub fn create(path: &Path) -> Result<Self> {
        let target = files::target(path).with_context(|| path.display().to_string())?;
        let mut name = target
            .file_name()
            .context("a recording needs a file name")?
            .to_owned();
        name.push(".part");
        let part = target.with_file_name(name);
        let failed = || format!("Failed to create {}", part.display());
        let file = files::own(&part).with_context(failed)?;
        if let Err(TryLockError::WouldBlock) = file.try_lock() {
            bail!("{} is written by another perflings", part.display());
        }
        file.set_len(0).with_context(failed)?;
        Ok(Self {
            file,
            part,
            target,
            thinning: thin::Thinning::default(),
            offset_s: 0.0,
            latest_s: 0.0,
        })
    }

    /// Adds a line, which is passed as a value and as text. The line is written at once, so it is not lost if the program is killed later.
    pub fn add(&mut self, line: &StreamLine, text: &str) -> Result<()> {
        if line.t + self.offset_s < self.latest_s {
            self.offset_s = self.latest_s - line.t;
        }
        let t = line.t + self.offset_s;
        self.latest_s = t;
        if !self.thinning.keeps(t, &line.event) {
            return Ok(());
        }
        let written = if self.offset_s == 0.0 {
            writeln!(self.file, "{}", sanitize::json(text))
        } else {
            // The event is read again from the text, because `line` may hold fields that are not recorded.
            let event = protocol::read::<StreamLine>(text)
                .map_err(anyhow::Error::msg)?
                .event;
            let moved = serde_json::to_string(&StreamLine { t, event })?;
            writeln!(self.file, "{moved}")
        };
        written.with_context(|| format!("Failed to write {}", self.part.display()))
    }

    /// Completes the recording and renames the file.
    pub fn finish(self) -> Result<FinishedRecording> {
        self.file
            .sync_all()
            .with_context(|| format!("Failed to write {}", self.part.display()))?;
        let written = files::rename(&self.part, &self.target).with_context(|| {
            let target = self.target.display();
            let part = self.part.display();
            format!("Failed to write {target}; the recording is in {part}")
        })?;
        Ok(FinishedRecording {
            path: self.target,
            written,
        })
    }
}

/// A recording that was written completely.
#[derive(Debug)]
pub struct FinishedRecording {
    pub path: PathBuf,
    written: WriteOutcome,
}

impl fmt::Display for FinishedRecording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "recorded in {}", self.path.display())?;
        match self.written {
            WriteOutcome::New => Ok(()),
            WriteOutcome::Replaced => f.write_str(", in place of an older file"),
        }
    }
}

/// A recording in memory. Its lines are kept as text and parsed when they are needed, because parsed lines would take more memory.
#[derive(Debug)]
pub struct Recording {
    text: String,
    /// The time of each line, in seconds, and the bytes of the text that it takes.
    lines: Vec<(f64, Range<usize>)>,
    /// The story of all runs in the recording.
    pub story: StreamStory,
    /// The warning about an incomplete recording; `None` for a complete one.
    pub notice: Option<String>,
}

impl Recording {
    /// Reads a file. A recording with a damaged line is read up to this line.
    ///
    /// # Errors
    /// If the file cannot be read, is no recording, or has a newer version of the protocol.
    pub fn read(path: &Path) -> Result<Self, FileError> {
        Self::from_text(read_text(path, MAX_BYTES)?, path)
    }

    /// Reads a recording from its text. Messages name it by `path`.
    pub fn from_text(text: String, path: &Path) -> Result<Self, FileError> {
        let fail = |line, what| FileError::new(path.display().to_string(), line, what);
        let mut lines = Vec::new();
        let mut story = StreamStory::default();
        let mut finished = false;
        let mut notice = None;
        for (number, range) in (1..).zip(line_ranges(&text)) {
            let line_text = &text[range.clone()];
            let line = match protocol::read::<StreamLine>(line_text) {
                Ok(line) => line,
                Err(_) if let Some(problem) = unknown_protocol(line_text) => {
                    return Err(fail(number, problem));
                }
                Err(why) if number == 1 => {
                    let what =
                        format!("is not a recording: its first line is not an event ({why})");
                    return Err(fail(1, what));
                }
                Err(why) => {
                    let damage = if range.end == text.len() {
                        "is cut in the middle, from"
                    } else {
                        "cannot be read from"
                    };
                    notice = Some(format!(
                        "{}: the recording {damage} line {number} on ({why}); \
                         the {} lines before it are shown",
                        path.display(),
                        number - 1
                    ));
                    break;
                }
            };
            match &line.event {
                Event::Hello(_) if number == 1 => {
                    if let Some(problem) = unknown_protocol(line_text) {
                        return Err(fail(1, problem));
                    }
                }
                _ if number == 1 => {
                    let what = "is not a recording: it does not begin with `hello`";
                    return Err(fail(1, what.to_owned()));
                }
                Event::Finished(_) => finished = true,
                _ => {}
            }
            story.on_event(&line.event, (line.t * 1e3) as u64);
            lines.push((line.t, range));
        }
        if lines.is_empty() {
            return Err(fail(0, "is empty, so it is not a recording".to_owned()));
        }
        if notice.is_none() && !finished {
            notice = Some(format!(
                "{}: the recording ends without a summary; its run was cut short",
                path.display()
            ));
        }
        Ok(Self {
            text,
            lines,
            story,
            notice,
        })
    }

    pub fn line_count(&self) -> usize {
        self.lines.len()
    }

    /// Returns the time of a line in seconds since the engine started.
    pub fn time(&self, index: usize) -> Option<f64> {
        self.lines.get(index).map(|(t, _)| *t)
    }

    /// Returns a line.
    pub fn line(&self, index: usize) -> Option<StreamLine> {
        let (_, range) = self.lines.get(index)?;
        serde_json::from_str(&self.text[range.clone()]).ok()
    }

    /// Iterates over all lines in order.
    pub fn iter(&self) -> impl Iterator<Item = StreamLine> + '_ {
        (0..self.line_count()).filter_map(|index| self.line(index))
    }

    /// Returns the number of the stage of the first run; `None` if this run belongs to no stage.
    pub fn stage(&self) -> Option<u32> {
        let first = self.story.first.as_ref()?;
        (first.stage > 0).then_some(first.stage)
    }

    /// Returns the device of the first run.
    pub fn device(&self) -> Option<&Device> {
        self.story.first.as_ref()?.device.as_ref()
    }

    /// Returns the summaries of all runs.
    pub fn finished(&self) -> Vec<Finished> {
        let mut summaries = Vec::new();
        for line in self.iter() {
            if let Event::Finished(finished) = line.event {
                summaries.push(*finished);
            }
        }
        summaries
    }

    /// Returns the device and the date of the recorded run, which every screen and report about it shows: `NVIDIA H100, 2026-11-21`.
    pub fn badge(&self) -> String {
        let device = self
            .device()
            .map_or("no run", |device| device.name.as_str());
        let date = match self.story.hello.date.as_str() {
            "" => "date unknown",
            known => known,
        };
        format!("{device}, {date}")
    }
}

/// Iterates over the byte ranges of the lines that are not blank, without their line breaks.
fn line_ranges(text: &str) -> impl Iterator<Item = Range<usize>> + '_ {
    let mut next_start = 0;
    text.split_inclusive('\n').filter_map(move |line| {
        let start = next_start;
        next_start += line.len();
        let trimmed = line.trim_end();
        (!trimmed.is_empty()).then(|| start..start + trimmed.len())
    })
}

/// Returns the error for a `hello` with an unknown version of the protocol, even if other fields of the line cannot be read. `None` for any
/// other line.
fn unknown_protocol(text: &str) -> Option<String> {
    let value: serde_json::Value = serde_json::from_str(text).ok()?;
    let protocol = value["protocol"].as_u64()?;
    if value["event"] != "hello" || (1..=u64::from(PROTOCOL)).contains(&protocol) {
        return None;
    }
    if protocol == 0 {
        return Some(format!(
            "is not a recording: it names protocol 0, and there are 1 to {PROTOCOL}"
        ));
    }
    Some(format!(
        "was recorded by perflings {} with protocol {protocol}; \
         this is perflings {} with protocol {PROTOCOL}. Update perflings to replay it",
        value["version"].as_str().unwrap_or("unknown"),
        env!("CARGO_PKG_VERSION")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELLO: &str = r#"{"t":0.0,"event":"hello","protocol":1,"version":"0.1.0","pid":1,"os":"linux","cores":2,"date":"2026-11-21"}"#;
    const STEP: &str = r#"{"t":1.0,"event":"step","slot":"a","step":0,"loss":6.9,"ms":3.0,"synced":true,"profiled":false,"phases":null}"#;

    #[test]
    fn time_continues_when_one_engine_replaces_another() {
        let dir = tempfile::tempdir().expect("a folder");
        let mut recorder = RecordingWriter::create(&dir.path().join("run.jsonl")).expect("created");
        for text in [HELLO, STEP, HELLO, STEP] {
            recorder
                .add(&serde_json::from_str(text).expect("a line"), text)
                .expect("written");
        }
        let recording =
            Recording::read(&recorder.finish().expect("renamed").path).expect("a recording");
        let times: Vec<f64> = recording.iter().map(|line| line.t).collect();
        assert_eq!(times, [0.0, 1.0, 1.0, 2.0]);
    }

    #[test]
    fn the_message_names_a_line_that_is_nested_too_deeply() {
        let nested = format!("{}{}", "[".repeat(300), "]".repeat(300));
        let deep = format!("{{\"t\":1.0,\"event\":\"log\",\"x\":{nested}}}\n");
        let read = |text: String| Recording::from_text(text, Path::new("run.jsonl"));
        let cut = read(format!("{HELLO}\n{STEP}\n{deep}{STEP}\n")).expect("a recording");
        assert_eq!(
            cut.notice.as_deref(),
            Some(
                "run.jsonl: the recording cannot be read from line 3 on (nested too deeply); \
                 the 2 lines before it are shown"
            )
        );
        assert_eq!(
            read(deep).expect_err("refused").to_string(),
            "run.jsonl:1: is not a recording: its first line is not an event (nested too deeply)"
        );
    }
}
