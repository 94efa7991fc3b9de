//! `perflings` without a command: loads the course, starts an engine and shows the workshop's screen. Where there is no terminal, it trains
//! a stage without a screen, and a notice says so. `perflings mystery` opens the same screen with hidden faults.

use std::cell::RefCell;
use std::rc::Rc;

use anyhow::Result;

use super::args::ChangeArgs;
use super::args::training::{MysteryArgs, RunArgs, WorkshopArgs};
use super::run;
use super::variant::stage_named;
use crate::app::member::JoinSettings;
use crate::app::{Markers, Options, ThemeName};
use crate::class;
use crate::class::member::{Member, identity};
use crate::class::record::clean_name;
use crate::course::context::CourseContext;
use crate::course::named::NamedConfig;
use crate::course::save_file;
use crate::out::{Exit, notice, usage};
use crate::pages::report::RunReport;
use crate::record::RecordingWriter;
use crate::sanitize;
use crate::settings;
use crate::shell::engine_link::LiveEngine;
use crate::shell::{runs, show};
use crate::tui::theme::Theme;
use crate::tui::{SessionEnd, terminal};
use protocol::config::RunConfig;
use protocol::story::StreamStory;

pub(super) fn workshop(args: &WorkshopArgs) -> Result<Exit> {
    if terminal::is_present() {
        return show_screen(args, None);
    }
    if args.room.is_some() {
        return Err(usage(
            "--room shares what is done on the screen, but there is no terminal here",
        ));
    }
    run_without_screen(args)
}

/// Shows the workshop's screen with a mystery, for `perflings mystery`.
pub(super) fn mystery(args: &MysteryArgs) -> Result<Exit> {
    if !terminal::is_present() {
        return Err(usage(
            "a mystery needs a screen, but there is no terminal here",
        ));
    }
    let workshop = WorkshopArgs {
        preset: args.preset,
        theme: args.theme,
        course: args.course.clone(),
        engine: args.engine.clone(),
        ..WorkshopArgs::default()
    };
    show_screen(&workshop, Some((args.seed, args.level)))
}

/// Shows the screen until the learner leaves. It begins at a stage, in a free run, or with a mystery of this seed and level.
fn show_screen(args: &WorkshopArgs, mystery: Option<(Option<u64>, u8)>) -> Result<Exit> {
    let context = args.course.load()?;
    let free = args.free.then(|| free_configuration(args)).transpose()?;
    let stage = args
        .stage
        .as_deref()
        .map(|name| stage_named(name, &context).map(|stage| stage.number))
        .transpose()?;
    let state = context.state.as_deref();
    let (progress, aside) = state.map(save_file::load).unwrap_or_default();
    let join_room = |place| join(place, args, &context);
    let (room, member) = args.room.as_deref().map(join_room).transpose()?.unzip();
    let recorder = args
        .record
        .as_deref()
        .map(RecordingWriter::create)
        .transpose()
        .map_err(|error| usage(format!("--record: {error:#}")))?;
    let story = Rc::new(RefCell::new(StreamStory::default()));
    let command = args.engine.command()?;
    let mut live = LiveEngine::new(command.clone(), recorder, Rc::clone(&story))
        .map_err(|error| usage(format!("{error:#}")))?;
    let options = Options {
        device: Some(args.engine.device.clone()),
        preset: args.preset,
        stage,
        free,
        mystery,
        theme: args.theme,
        markers: markers(),
        present: args.present,
        room,
        welcome: mystery.is_none() && progress.is_first(),
        notice: aside.map(|problem| problem.to_string()),
        ..Options::default()
    };
    let state = context.state.clone();
    let session = Rc::clone(&story);
    let outcome = show(
        &mut live, context, story, command, progress, options, member,
    );
    if let Some(dir) = state
        && let Err(error) = runs::save(&dir, &RunReport::from_story(&session.borrow()))
    {
        notice(&format!("{error:#}"));
    }
    match live.close() {
        Ok(None) => {}
        Ok(Some(recorded)) => notice(&recorded.to_string()),
        Err(error) => notice(&format!("{error:#}")),
    }
    Ok(exit_of(outcome?))
}

/// Joins the room at an address or in a folder, as a participant or as the instructor's presenter.
///
/// # Errors
/// If the address is wrong. Whether a room is open there is found out later.
fn join(
    place: &str,
    args: &WorkshopArgs,
    context: &CourseContext,
) -> Result<(JoinSettings, Member)> {
    let failed = |why: String| usage(format!("--room: {why}"));
    let member = if args.present {
        Member::teach(class::instructor_link(place, &context.course).map_err(failed)?)?
    } else {
        Member::join(class::participant_link(place).map_err(failed)?)?
    };
    // The screen shows only the host, because the rest of the address is the room's code.
    let host = place
        .strip_prefix("http://")
        .and_then(|address| address.split('/').next());
    let settings = JoinSettings {
        id: identity(context.state.as_deref(), host.is_some()),
        name: clean_name(args.name.as_deref().unwrap_or_default()),
        instructor: args.present,
        at: sanitize::line(host.unwrap_or(place)),
    };
    Ok((settings, member))
}

/// Returns the characters that curves are drawn with: those of the settings, or the default ones.
pub(super) fn markers() -> Markers {
    let name = settings::load().unwrap_or_default().get("markers");
    name.and_then(|name| name.parse().ok()).unwrap_or_default()
}

/// Returns a theme with the colours that this terminal can show.
pub(super) fn theme(name: ThemeName, markers: Markers) -> Theme {
    let abilities = terminal::abilities(|name| std::env::var(name).ok());
    Theme::new(name, markers, abilities)
}

/// Returns the configuration with which a free run begins: that of `--config`, or the preset.
fn free_configuration(args: &WorkshopArgs) -> Result<RunConfig> {
    match &args.config {
        Some(path) => Ok(NamedConfig::file(path, args.preset)?.config),
        None => Ok(RunConfig::preset(args.preset.unwrap_or_default())),
    }
}

/// Trains a stage like `perflings run`, because there is no terminal.
fn run_without_screen(args: &WorkshopArgs) -> Result<Exit> {
    if args.free {
        return Err(usage(
            "--free needs a screen, but there is no terminal here; \
             `perflings run --config FILE` runs without one",
        ));
    }
    let stage = args.stage.clone().unwrap_or_else(|| "1".to_owned());
    notice(&format!(
        "there is no terminal here; \
         running stage {stage} without a screen, as `perflings run {stage}`"
    ));
    run::run(&RunArgs {
        stage: Some(stage),
        change: ChangeArgs {
            preset: args.preset,
            sets: Vec::new(),
        },
        steps: 50,
        record: args.record.clone(),
        engine: args.engine.clone(),
        course: args.course.clone(),
        ..RunArgs::default()
    })
}

/// Returns the exit code of a command whose screen has ended.
pub(super) fn exit_of(outcome: SessionEnd) -> Exit {
    match outcome {
        SessionEnd::Quit => Exit::Ok,
        SessionEnd::Signal => Exit::Interrupted,
    }
}
