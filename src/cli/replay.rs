//! `perflings replay` shows a recording in the workshop's screen, with a badge of its device and date. Without a terminal it prints the
//! summary of the recording.

use std::cell::RefCell;
use std::rc::Rc;

use anyhow::Result;

use super::args::ReplayArgs;
use super::exercise::detective::refuse_as_file;
use super::export::open;
use super::saved::note_tried;
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
    let found = detective(&context, args).transpose()?;
    let is_detective = found.is_some();
    if !is_detective {
        refuse_as_file(&args.file, &args.course)?;
    }
    let shown = terminal::is_present();
    let recording = match found {
        Some(recording) => recording,
        // The screen shows the recording's notice itself.
        None if shown => Recording::read(&args.file)?,
        None => open(&args.file)?,
    };
    if shown {
        return show_recording(args, context, recording, is_detective);
    }
    result(&text(&recording, !is_detective))?;
    Ok(Exit::Ok)
}

fn show_recording(
    args: &ReplayArgs,
    context: CourseContext,
    recording: Recording,
    detective: bool,
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
            unsolved: detective,
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

/// Returns the recorded run of an exercise such as `d01`. `None` if the name is no exercise with a recording, or a file has the name.
fn detective(context: &CourseContext, args: &ReplayArgs) -> Option<Result<Recording, FileError>> {
    if args.file.exists() {
        return None;
    }
    let exercise = context.exercise(args.file.to_str()?)?;
    let detective = exercise.recording()?;
    note_tried(context, exercise, false);
    Some(Recording::from_text(detective.shown(), &args.file))
}

fn text(recording: &Recording, lints: bool) -> String {
    let mut parts = vec![format!(
        "recording of {}, {} lines",
        recording.badge(),
        recording.len()
    )];
    let finished = recording.finished();
    if finished.is_empty() {
        let sheet = RunReport::from_story(&recording.story).sheet();
        parts.push(sheet.markdown().trim_end().to_owned());
    }
    parts.extend(finished.iter().map(|run| summary::text(run, lints)));
    parts.join("\n\n")
}
