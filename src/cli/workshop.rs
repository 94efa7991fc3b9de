//! `perflings`: the workshop. Builds the screen's state and its source, and hands both to the screen. Without a
//! terminal it runs a stage headless, and says so.

mod editor;
pub mod exercise;
mod host;
mod last_resort;
mod live;
mod replay;
mod sweep;
mod watch;

use std::cell::RefCell;
use std::rc::Rc;

use anyhow::Result;

use super::variant::preset_of;
use super::{ChangeArgs, ReplayArgs, RunArgs, WorkshopArgs, run};
use crate::app::{self, App, Options, ThemeName};
use crate::config::nearest;
use crate::course::progress;
use crate::export::report::{Collector, collect};
use crate::measure::drive::engine_command;
use crate::out::{Exit, notice, usage};
use crate::record::{Recorder, Recording};
use crate::tui::{self, Outcome, terminal};

use host::Host;
use live::Live;
use replay::Replay;

/// Whether there is somebody to show a screen to, and keys to read.
pub fn has_terminal() -> bool {
    terminal::is_present()
}

pub fn workshop(args: &WorkshopArgs) -> Result<Exit> {
    if !has_terminal() {
        return headless(args);
    }
    let preset = preset_of(&changes(args))?;
    let theme = theme_of(args.theme.as_deref())?;
    let shelf = args.course.load()?;
    let stage = args
        .stage
        .as_deref()
        .map(|name| shelf.stage(name).map(|stage| stage.number))
        .transpose()?;
    let (progress, aside) = match &shelf.state {
        Some(state) => progress::load(state),
        None => Default::default(),
    };
    let recorder = args
        .record
        .as_deref()
        .map(Recorder::create)
        .transpose()
        .map_err(|e| usage(format!("--record: {e:#}")))?;
    let collector = Rc::new(RefCell::new(Collector::default()));
    let command = engine_command(args.engine.engine.as_deref())?;
    let mut live = Live::new(command.clone(), recorder, Rc::clone(&collector))
        .map_err(|error| usage(format!("{error:#}")))?;
    let options = Options {
        device: args.engine.device.clone(),
        preset,
        stage,
        theme,
        present: args.present,
        welcome: progress.is_first(),
        notice: aside.map(|problem| problem.to_string()),
        ..Options::default()
    };
    let (mut app, first) = App::new(shelf.course.clone(), progress, options);
    let mut host = Host::new(shelf, collector, false, command);
    last_resort::watch();
    let outcome = tui::run(&mut live, &mut host, &mut app, first, abilities());
    live.close();
    Ok(exit_of(outcome?))
}

/// Shows a recording in the same screen.
pub fn show_recording(args: &ReplayArgs) -> Result<Exit> {
    let theme = theme_of(args.theme.as_deref())?;
    let shelf = args.course.load()?;
    let detective = super::replay::detective(&shelf, args);
    let riddle = detective.is_some();
    let recording = match detective {
        Some(recording) => recording?,
        None => Recording::read(&args.file)?,
    };
    let stage = recording
        .stage()
        .filter(|number| shelf.course.stage(*number).is_some());
    let options = Options {
        stage,
        theme,
        notice: recording.notice.clone(),
        recording: Some(app::Recording {
            file: args.file.display().to_string(),
            device: recording.device.clone().unwrap_or_default(),
            date: recording.hello.date.clone(),
            paused: false,
            speed: args.speed,
            riddle,
        }),
        ..Options::default()
    };
    let collector = Rc::new(RefCell::new(collect(&recording)));
    let mut replay = Replay::new(recording, args.speed);
    let (mut app, first) = App::new(shelf.course.clone(), progress::Progress::default(), options);
    let mut host = Host::new(shelf, collector, true, engine_command(None)?);
    last_resort::watch();
    let outcome = tui::run(&mut replay, &mut host, &mut app, first, abilities())?;
    Ok(exit_of(outcome))
}

fn headless(args: &WorkshopArgs) -> Result<Exit> {
    let stage = args.stage.clone().unwrap_or_else(|| "1".to_owned());
    notice(&format!(
        "there is no terminal here; running stage {stage} without a screen, as `perflings run {stage}`"
    ));
    run::run(&RunArgs {
        stage: Some(stage),
        config: None,
        variant: None,
        change: changes(args),
        steps: 50,
        json: false,
        record: args.record.clone(),
        engine: args.engine.clone(),
        course: args.course.clone(),
    })
}

fn changes(args: &WorkshopArgs) -> ChangeArgs {
    ChangeArgs {
        preset: args.preset.clone(),
        sets: Vec::new(),
    }
}

fn theme_of(name: Option<&str>) -> Result<ThemeName> {
    let Some(name) = name else {
        return Ok(ThemeName::default());
    };
    let all: Vec<&str> = ThemeName::ALL.iter().map(|theme| theme.name()).collect();
    let found = ThemeName::parse(name);
    found.ok_or_else(|| {
        let near = nearest(name, all.iter().copied());
        usage(format!(
            "--theme: unknown theme `{}`; did you mean `{near}`? There are {}",
            name.escape_debug(),
            all.join(", ")
        ))
    })
}

fn abilities() -> tui::theme::Terminal {
    terminal::abilities(|name| std::env::var(name).ok())
}

fn exit_of(outcome: Outcome) -> Exit {
    match outcome {
        Outcome::Quit => Exit::Ok,
        Outcome::Signal => Exit::Interrupted,
    }
}
