//! A recording is the engine's stream in a file, with one event per line, beginning with `hello`. The output of `run --json` is a recording,
//! too. A long run is thinned while it is written, so that an hour stays below 50 MB; statistics and summaries stay whole.

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

/// The largest recording that is read, in bytes.
pub const MAX_BYTES: u64 = 256 * 1024 * 1024;

/// Writes a recording into `FILE.part` line by line, and renames it to `FILE` at the end.
#[derive(Debug)]
pub struct RecordingWriter {
    file: File,
    part: PathBuf,
    target: PathBuf,
    thin: thin::Thinning,
    /// The seconds to add to a line's time, because an engine that replaces another counts from 0 again.
    offset: f64,
    latest: f64,
}

impl RecordingWriter {
    /// Opens `FILE.part` beside the target. Fails if another perflings writes it.
    pub fn create(target: &Path) -> Result<Self> {
        let shown = || target.display().to_string();
        let target = files::target(target).with_context(shown)?;
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
            thin: thin::Thinning::default(),
            offset: 0.0,
            latest: 0.0,
        })
    }

    /// Adds a line as it came. A recording that is cut later keeps the line.
    pub fn add(&mut self, line: &StreamLine, text: &str) -> Result<()> {
        if line.t + self.offset < self.latest {
            self.offset = self.latest - line.t;
        }
        let t = line.t + self.offset;
        self.latest = t;
        if !self.thin.keeps(t, &line.event) {
            return Ok(());
        }
        let written = if self.offset == 0.0 {
            writeln!(self.file, "{}", sanitize::json(text))
        } else {
            // The text is read again, because the line may have more than is recorded.
            let event = protocol::read::<StreamLine>(text)
                .map_err(anyhow::Error::msg)?
                .event;
            let moved = serde_json::to_string(&StreamLine { t, event })?;
            writeln!(self.file, "{moved}")
        };
        written.with_context(|| format!("Failed to write {}", self.part.display()))
    }

    /// Completes the recording and renames it to its target.
    pub fn finish(self) -> Result<FinishedRecording> {
        self.file
            .sync_all()
            .with_context(|| format!("Failed to write {}", self.part.display()))?;
        let written = files::rename(&self.part, &self.target).with_context(|| {
            let (part, target) = (self.part.display(), self.target.display());
            format!("Failed to write {target}; the recording is in {part}")
        })?;
        Ok(FinishedRecording {
            path: self.target,
            written,
        })
    }
}

/// A recording that is complete.
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

/// A recording in memory: its text, and the time and the place of each line. Lines are parsed again when they are shown, so that an hour's
/// recording takes no more memory than its file.
#[derive(Debug)]
pub struct Recording {
    text: String,
    lines: Vec<(f64, Range<usize>)>,
    pub path: PathBuf,
    /// What the whole recording showed.
    pub story: StreamStory,
    /// A notice that the recording is cut or ends without a summary.
    pub notice: Option<String>,
}

impl Recording {
    /// Reads a file. A cut recording is read up to the cut.
    pub fn read(path: &Path) -> Result<Self, FileError> {
        Self::from_text(read_text(path, MAX_BYTES)?, path)
    }

    /// Reads a recording from its text; `path` names it in messages.
    pub fn from_text(text: String, path: &Path) -> Result<Self, FileError> {
        let fail = |line, what| FileError::new(path.display().to_string(), line, what);
        let mut lines = Vec::new();
        let mut story = StreamStory::default();
        let mut finished = false;
        let mut notice = None;
        for (number, range) in (1..).zip(spans(&text)) {
            let piece = &text[range.clone()];
            let line = match protocol::read::<StreamLine>(piece) {
                Ok(line) => line,
                Err(_) if let Some(problem) = newer(piece) => return Err(fail(number, problem)),
                Err(why) if number == 1 => {
                    let what =
                        format!("is not a recording: its first line is not an event ({why})");
                    return Err(fail(1, what));
                }
                Err(why) => {
                    let shown = if range.end == text.len() {
                        "is cut in the middle of"
                    } else {
                        "cannot be read from"
                    };
                    notice = Some(format!(
                        "{}: the recording {shown} line {number} on ({why}); the {} lines before it are shown",
                        path.display(),
                        number - 1
                    ));
                    break;
                }
            };
            match &line.event {
                Event::Hello(_) if number == 1 => {
                    if let Some(problem) = newer(piece) {
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
            story.hear(&line.event, (line.t * 1e3) as u64);
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
            path: path.to_owned(),
            story,
            notice,
        })
    }

    pub fn len(&self) -> usize {
        self.lines.len()
    }

    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Returns the time of line `at`, in seconds since the engine started. `None` past the end.
    pub fn time(&self, at: usize) -> Option<f64> {
        self.lines.get(at).map(|(t, _)| *t)
    }

    /// Returns line `at`, or `None` past the end.
    pub fn line(&self, at: usize) -> Option<StreamLine> {
        let (_, range) = self.lines.get(at)?;
        serde_json::from_str(&self.text[range.clone()]).ok()
    }

    /// Returns all lines in order.
    pub fn iter(&self) -> impl Iterator<Item = StreamLine> + '_ {
        (0..self.len()).filter_map(|at| self.line(at))
    }

    /// Returns the stage of the first run, or `None` if that belongs to no stage.
    pub fn stage(&self) -> Option<u32> {
        let stage = self.story.first.as_ref().map(|run| run.stage);
        stage.filter(|stage| *stage > 0)
    }

    /// Returns the device of the first run.
    pub fn device(&self) -> Option<&Device> {
        self.story.first.as_ref()?.device.as_ref()
    }

    /// Returns the summaries of the runs in the recording.
    pub fn finished(&self) -> Vec<Finished> {
        self.iter()
            .filter_map(|line| match line.event {
                Event::Finished(finished) => Some(*finished),
                _ => None,
            })
            .collect()
    }

    /// Returns the device and the date, such as `NVIDIA H100 (Vulkan), 2026-11-21`, for every screen and report that shows the recording.
    pub fn badge(&self) -> String {
        let device = match self.device() {
            Some(device) => &device.name,
            None => "no run",
        };
        let date = match self.story.hello.date.as_str() {
            "" => "date unknown",
            date => date,
        };
        format!("{device}, {date}")
    }
}

/// Returns the byte range of every line that is not blank.
fn spans(text: &str) -> impl Iterator<Item = Range<usize>> + '_ {
    let mut from = 0;
    text.split_inclusive('\n').filter_map(move |piece| {
        let start = from;
        from += piece.len();
        let trimmed = piece.trim_end();
        (!trimmed.is_empty()).then(|| start..start + trimmed.len())
    })
}

/// Returns the problem of a `hello` with a newer protocol or with protocol 0, even if the rest of the line cannot be read. `None` for other
/// lines.
fn newer(text: &str) -> Option<String> {
    let value: serde_json::Value = serde_json::from_str(text).ok()?;
    let protocol = value["protocol"].as_u64()?;
    if value["event"] != "hello" || (1..=u64::from(PROTOCOL)).contains(&protocol) {
        return None;
    }
    if protocol == 0 {
        let what =
            format!("is not a recording: it names protocol 0, and there are 1 to {PROTOCOL}");
        return Some(what);
    }
    let version = value["version"].as_str().unwrap_or("unknown");
    let ours = env!("CARGO_PKG_VERSION");
    Some(format!(
        "was recorded by perflings {version} with protocol {protocol}; this is perflings {ours} with protocol {PROTOCOL}. Update perflings to replay it"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELLO: &str = r#"{"t":0.0,"event":"hello","protocol":1,"version":"0.1.0","pid":1,"os":"linux","cores":2,"date":"2026-11-21"}"#;
    const STEP: &str = r#"{"t":1.0,"event":"step","slot":"a","step":0,"loss":6.9,"ms":3.0,"synced":true,"profiled":false,"phases":null}"#;

    #[test]
    fn time_runs_on_when_an_engine_replaces_another() {
        let dir = tempfile::tempdir().expect("a folder");
        let mut recorder = RecordingWriter::create(&dir.path().join("run.jsonl")).expect("created");
        for text in [HELLO, STEP, HELLO, STEP] {
            recorder
                .add(&serde_json::from_str(text).expect("a line"), text)
                .expect("written");
        }
        let recording =
            Recording::read(&recorder.finish().expect("renamed").path).expect("a recording");
        let times: Vec<f64> = (0..recording.len())
            .filter_map(|at| recording.time(at))
            .collect();
        assert_eq!(times, [0.0, 1.0, 1.0, 2.0]);
    }

    #[test]
    fn a_deep_line_is_named() {
        let nested = format!("{}{}", "[".repeat(300), "]".repeat(300));
        let deep = format!("{{\"t\":1.0,\"event\":\"log\",\"x\":{nested}}}\n");
        let read = |text: String| Recording::from_text(text, Path::new("run.jsonl"));
        let cut = read(format!("{HELLO}\n{STEP}\n{deep}{STEP}\n")).expect("a recording");
        let want = "run.jsonl: the recording cannot be read from line 3 on (nested too deeply); the 2 lines before it are shown";
        assert_eq!(cut.notice.as_deref(), Some(want));
        let refused = read(deep).expect_err("refused").to_string();
        let want =
            "run.jsonl:1: is not a recording: its first line is not an event (nested too deeply)";
        assert_eq!(refused, want);
    }
}
