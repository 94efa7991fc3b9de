//! `perflings replay`: a recording in the workshop's screen, badged with its device and date; its summary where
//! there is no terminal.

mod source;

use anyhow::Result;

use super::export::{markdown, open};
use super::out::{Exit, result, usage};
use super::{ReplayArgs, summary, workshop};
use crate::record::Recording;

pub use source::Replay;

pub fn replay(args: &ReplayArgs) -> Result<Exit> {
    if !(args.speed.is_finite() && args.speed > 0.0) {
        return Err(usage(format!(
            "--speed {}: write a number above 0, such as 4",
            args.speed
        )));
    }
    if workshop::has_terminal() {
        return workshop::show_recording(args);
    }
    let recording = open(&args.file)?;
    result(&text(&recording))?;
    Ok(Exit::Ok)
}

fn text(recording: &Recording) -> String {
    let mut parts = vec![format!(
        "recording of {}, {} lines",
        recording.badge(),
        recording.len()
    )];
    let finished = recording.finished();
    if finished.is_empty() {
        parts.push(markdown(recording).trim_end().to_owned());
    }
    parts.extend(finished.iter().map(summary::text));
    parts.join("\n\n")
}
