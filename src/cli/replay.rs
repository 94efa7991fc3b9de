//! `perflings replay`: a recording in the workshop's screen, badged with its device and date; its summary where
//! there is no terminal.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;

use anyhow::Result;
use ratatui::backend::TestBackend;

use super::args::ReplayArgs;
use super::exercise::detective::refuse_as_file;
use super::export::open;
use super::progress::note_seen;
use super::summary;
use super::workshop::{exit_of, has_terminal, markers};
use crate::app::source::FromEngine;
use crate::app::{self, App, Message, Options, update};
use crate::course::config_file::FileError;
use crate::course::context::CourseContext;
use crate::course::progress;
use crate::export::report::collect;
use crate::measure::runner::engine_command;
use crate::out::{self, Exit, result, usage};
use crate::protocol::Finished;
use crate::record::Recording;
use crate::tui::picture::animated;
use crate::tui::theme::{Background, Colours, Terminal, Theme};
use crate::tui::view;
use crate::workshop::replay::ReplaySource;
use crate::workshop::show;

pub fn replay(args: &ReplayArgs) -> Result<Exit> {
    if let Some(file) = args.picture.as_deref().filter(|file| !takes_svg(file)) {
        return Err(usage(format!(
            "--picture {}: the picture is an SVG; write a name that ends in .svg",
            file.display()
        )));
    }
    let context = args.course.load()?;
    let found = detective(&context, args).transpose()?;
    let is_detective = found.is_some();
    if !is_detective {
        refuse_as_file(&args.file, &args.course)?;
    }
    let shown = has_terminal();
    let recording = match found {
        Some(recording) => recording,
        // The screen shows the recording's notice itself.
        None if shown => Recording::read(&args.file)?,
        None => open(&args.file)?,
    };
    if let Some(file) = &args.picture {
        let options = options(args, &context, &recording, is_detective);
        let picture = picture(args, context, &recording, options)?;
        out::file(file, picture.as_bytes())?;
        return Ok(Exit::Ok);
    }
    if shown {
        return show_recording(args, context, recording, is_detective);
    }
    let summary = if is_detective {
        summary::without_lints
    } else {
        summary::text
    };
    result(&text(&recording, summary))?;
    Ok(Exit::Ok)
}

fn show_recording(
    args: &ReplayArgs,
    context: CourseContext,
    recording: Recording,
    detective: bool,
) -> Result<Exit> {
    let options = options(args, &context, &recording, detective);
    let collector = Rc::new(RefCell::new(collect(&recording)));
    let mut replay = ReplaySource::new(recording, args.speed);
    let progress = progress::Progress::default();
    let command = engine_command(None)?;
    let outcome = show(
        &mut replay,
        context,
        collector,
        command,
        progress,
        options,
        None,
    );
    Ok(exit_of(outcome?))
}

fn options(
    args: &ReplayArgs,
    context: &CourseContext,
    recording: &Recording,
    detective: bool,
) -> Options {
    let stage = recording
        .stage()
        .filter(|number| context.course.stage(*number).is_some());
    Options {
        stage,
        theme: args.theme,
        markers: markers(),
        present: args.present,
        notice: recording.notice.clone(),
        recording: Some(app::Replay {
            file: args.file.display().to_string(),
            device: recording.device.clone().unwrap_or_default(),
            date: recording.hello.date.clone(),
            paused: false,
            speed: args.speed,
            unsolved: detective,
        }),
        ..Options::default()
    }
}

/// Whether an SVG may have this name; `-` is stdout.
fn takes_svg(file: &Path) -> bool {
    file == Path::new("-") || file.extension().is_some_and(|it| it == "svg")
}

/// Frames of a picture, and seconds for which each is seen.
const FRAMES: usize = 24;
const FRAME_SECONDS: f64 = 0.6;

/// The screen at even distances in the recording's time, as an animated SVG.
fn picture(
    args: &ReplayArgs,
    context: CourseContext,
    recording: &Recording,
    options: Options,
) -> Result<String> {
    let abilities = Terminal {
        colours: Colours::Indexed,
        background: Some(Background::Dark),
        ascii: false,
    };
    let (width, height) = args.size;
    let mut screen = ratatui::Terminal::new(TestBackend::new(width, height))?;
    let (mut app, _) = App::new(context.course, progress::Progress::default(), options);
    update(&mut app, Message::Resized { width, height });
    let last = recording.len().saturating_sub(1);
    let [begin, end] = [0, last].map(|at| recording.time(at).unwrap_or(0.0));
    let mut frames = Vec::with_capacity(FRAMES);
    let mut at = 0;
    for frame in 1..=FRAMES {
        let until = begin + (end - begin) * frame as f64 / FRAMES as f64;
        while recording.time(at).is_some_and(|time| time <= until) {
            if let Some(line) = recording.line(at) {
                let now_ms = (1e3 * (line.t - begin)) as u64;
                update(&mut app, Message::Tick { now_ms });
                update(&mut app, Message::Engine(FromEngine::Line(line)));
            }
            at += 1;
        }
        let theme = Theme::new(args.theme, app.view.markers, abilities);
        let mut limits = None;
        screen.draw(|frame| limits = Some(view(frame, &app, &theme)))?;
        if let Some(limits) = limits {
            update(&mut app, Message::Drawn(limits));
        }
        frames.push(screen.backend().buffer().clone());
    }
    let label = format!("perflings in a terminal: {}", recording.badge());
    Ok(animated(&frames, FRAME_SECONDS * FRAMES as f64, &label))
}

/// The recorded run of an exercise, where `d01` names one and no file does.
fn detective(context: &CourseContext, args: &ReplayArgs) -> Option<Result<Recording, FileError>> {
    let name = args.file.to_str().filter(|_| !args.file.exists())?;
    let exercise = context.exercise(name)?;
    let detective = exercise.recording()?;
    note_seen(context, exercise);
    Some(Recording::from_text(detective.shown(), &args.file))
}

fn text(recording: &Recording, summary: fn(&Finished) -> String) -> String {
    let mut parts = vec![format!(
        "recording of {}, {} lines",
        recording.badge(),
        recording.len()
    )];
    let finished = recording.finished();
    if finished.is_empty() {
        parts.push(collect(recording).sheet().markdown().trim_end().to_owned());
    }
    parts.extend(finished.iter().map(summary));
    parts.join("\n\n")
}
