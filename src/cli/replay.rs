//! `perflings replay`: a recording in the workshop's screen, badged with its device and date; its summary where
//! there is no terminal.

use anyhow::Result;

use super::check::state;
use super::export::{markdown, open};
use super::out::{Exit, result, usage};
use super::shelf::Shelf;
use super::{ReplayArgs, summary, workshop};
use crate::config::file::FileError;
use crate::course::exercise::Body;
use crate::protocol::Finished;
use crate::record::Recording;

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
    let shelf = Shelf::load(&args.course)?;
    let said = match detective(&shelf, args) {
        Some(recording) => text(&recording?, summary::without_lints),
        None => text(&open(&args.file)?, summary::text),
    };
    result(&said)?;
    Ok(Exit::Ok)
}

/// The recorded run of an exercise, where `d01` names one and no file does.
pub fn detective(shelf: &Shelf, args: &ReplayArgs) -> Option<Result<Recording, FileError>> {
    let name = args.file.to_str().filter(|_| !args.file.exists())?;
    let exercise = shelf.exercise(name)?;
    match &exercise.body {
        Body::Detective(detective) => {
            state::seen(shelf, exercise);
            Some(Recording::from_text(detective.shown(), &args.file))
        }
        _ => None,
    }
}

fn text(recording: &Recording, summary: fn(&Finished) -> String) -> String {
    let mut parts = vec![format!(
        "recording of {}, {} lines",
        recording.badge(),
        recording.len()
    )];
    let finished = recording.finished();
    if finished.is_empty() {
        parts.push(markdown(recording).trim_end().to_owned());
    }
    parts.extend(finished.iter().map(summary));
    parts.join("\n\n")
}
