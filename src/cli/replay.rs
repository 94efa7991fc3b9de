//! `perflings replay`: shows a recording in the workshop's screen, with the device and the date of the recorded run. Without a terminal it
//! prints the recording's summary.

use std::cell::RefCell;
use std::rc::Rc;

use anyhow::Result;

use super::args::recordings::ReplayArgs;
use super::exercise::detective::refuse_as_file;
use super::export::open_recording;
use super::saved::save_tried;
use super::summary;
use super::workshop::{exit_of, markers};
use crate::app::{Options, Replay};
use crate::course::config_file::FileError;
use crate::course::context::CourseContext;
use crate::course::save_file;
use crate::measure::runner::engine_command;
use crate::out::{Exit, result};
use crate::pages::report::RunReport;
use crate::record::Recording;
use crate::shell::replay::ReplaySource;
use crate::shell::show;
use crate::tui::terminal;

pub(super) fn replay(args: &ReplayArgs) -> Result<Exit> {
    let context = args.course.load()?;
    let of_exercise = recording_of_exercise(&context, args).transpose()?;
    let is_exercise = of_exercise.is_some();
    if !is_exercise {
        refuse_as_file(&args.file, &args.course)?;
    }
    let has_screen = terminal::is_present();
    let recording = match of_exercise {
        Some(recording) => recording,
        // The screen shows the notice about an incomplete recording itself.
        None if has_screen => Recording::read(&args.file)?,
        None => open_recording(&args.file)?,
    };
    if has_screen {
        return show_recording(args, context, recording, is_exercise);
    }
    result(&text(&recording, !is_exercise))?;
    Ok(Exit::Ok)
}

/// Shows a recording on the screen. If it belongs to an exercise, everything that reveals the fault stays hidden.
fn show_recording(
    args: &ReplayArgs,
    context: CourseContext,
    recording: Recording,
    is_exercise: bool,
) -> Result<Exit> {
    let stage = recording
        .stage()
        .filter(|number| context.course.stage(*number).is_some());
    let options = Options {
        stage,
        theme: args.theme,
        markers: markers(),
        present: args.present,
        notice: recording.notice.clone(),
        recording: Some(Replay {
            file: args.file.display().to_string(),
            device: recording.device().cloned().unwrap_or_default(),
            date: recording.story.hello.date.clone(),
            stage,
            paused: false,
            speed: args.speed,
            unsolved: is_exercise,
            watched: false,
        }),
        ..Options::default()
    };
    let story = Rc::new(RefCell::new(recording.story.clone()));
    let mut replay = ReplaySource::new(recording, args.speed);
    let progress = save_file::Progress::default();
    let command = engine_command(None)?;
    let outcome = show(
        &mut replay,
        context,
        story,
        command,
        progress,
        options,
        None,
    );
    Ok(exit_of(outcome?))
}

/// Returns the recorded run of an exercise such as `d01`. `None` if the name is no exercise with a recording, or if a file has this name.
fn recording_of_exercise(
    context: &CourseContext,
    args: &ReplayArgs,
) -> Option<Result<Recording, FileError>> {
    if args.file.exists() {
        return None;
    }
    let exercise = context.exercise(args.file.to_str()?)?;
    let detective = exercise.recording()?;
    save_tried(context, exercise, false);
    Some(Recording::from_text(detective.shown(), &args.file))
}

/// Returns the summaries of all runs in a recording, or a report if no run has finished.
fn text(recording: &Recording, with_lints: bool) -> String {
    let mut parts = vec![format!(
        "recording of {}, {} lines",
        recording.badge(),
        recording.line_count()
    )];
    let finished = recording.finished();
    if finished.is_empty() {
        let sheet = RunReport::from_story(&recording.story).sheet();
        parts.push(sheet.markdown().trim_end().to_owned());
    }
    parts.extend(finished.iter().map(|run| summary::text(run, with_lints)));
    parts.join("\n\n")
}
