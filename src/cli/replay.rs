//! `perflings replay`: a recording in the workshop's screen, badged with its device and date; its summary where
//! there is no terminal.

use anyhow::Result;

use super::check::state;
use super::export::{markdown, open};
use super::{ReplayArgs, summary, workshop};
use crate::config::file::FileError;
use crate::course::context::CourseContext;
use crate::course::exercise::Body;
use crate::out::{Exit, result, usage};
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
    let context = args.course.load()?;
    let said = match detective(&context, args) {
        Some(recording) => text(&recording?, summary::without_lints),
        None => text(&open(&args.file)?, summary::text),
    };
    result(&said)?;
    Ok(Exit::Ok)
}

/// The recorded run of an exercise, where `d01` names one and no file does.
pub fn detective(
    context: &CourseContext,
    args: &ReplayArgs,
) -> Option<Result<Recording, FileError>> {
    let name = args.file.to_str().filter(|_| !args.file.exists())?;
    let exercise = context.exercise(name)?;
    match &exercise.body {
        Body::Detective(detective) => {
            state::seen(context, exercise);
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
