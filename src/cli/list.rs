//! `perflings list`, `hint`, `reset` and `init`: the course without running it.

mod exercises;

use anyhow::{Context, Result};
use serde_json::json;

use super::{HintArgs, InitArgs, ListArgs, ResetArgs};
use crate::course::context::CourseContext;
use crate::course::embedded;
use crate::course::placeholder::{Figures, told};
use crate::course::progress::{self, Progress, State};
use crate::out::{self, Exit, notice, result, usage};

pub fn list(args: &ListArgs) -> Result<Exit> {
    let context = args.course.open()?;
    let progress = progress_of(&context);
    if !args.json {
        result(&context.course.title)?;
    }
    for stage in &context.course.stages {
        let known = progress.stage(&stage.id);
        let current = progress.current.as_deref() == Some(&stage.id);
        if args.json {
            let edited = context
                .workspace()
                .ok()
                .and_then(|work| work.existing(stage, "config.toml"));
            out::json(&json!({
                "number": stage.number, "id": stage.id, "title": stage.title, "level": stage.level.name(),
                "state": known.state.name(), "hints": known.hints, "current": current, "file": edited,
            }))?;
        } else {
            let mark = if current { '>' } else { ' ' };
            let state = known.state.name();
            result(&format!(
                "{mark} {}  {:<9}  {:<24} {} ({})",
                stage.number,
                state,
                stage.id,
                stage.title,
                stage.level.name()
            ))?;
        }
    }
    exercises::list(&context, &progress, args.json)?;
    if context.course.stages.is_empty() {
        return Err(usage("the course has no stage that can be used"));
    }
    Ok(Exit::Ok)
}

pub fn hint(args: &HintArgs) -> Result<Exit> {
    let context = args.course.open()?;
    if let Some(exercise) = context.exercise(&args.stage) {
        exercises::hint(&context, exercise, usize::from(args.hints))?;
        return Ok(Exit::Ok);
    }
    let stage = context.stage(&args.stage)?;
    let wanted = usize::from(args.hints).min(stage.hints.len());
    let figures = Figures::none(&stage.broken);
    let key = crate::tui::keys::name(crate::app::Action::Pair).unwrap_or_default();
    for (n, hint) in (1..).zip(&stage.hints[..wanted]) {
        result(&format!(
            "hint {n}/{}: {}",
            stage.hints.len(),
            told(hint.trim(), &figures, &key)
        ))?;
    }
    if let Some(state) = &context.state {
        let (progress, _) = progress::load(state);
        let mut known = progress.stage(&stage.id);
        known.hints = known.hints.max(u32::try_from(wanted).unwrap_or(0));
        known.state = known.state.max(State::Seen);
        keep(progress::save_stage(state, &stage.id, &known).map(|(_, aside)| aside));
    }
    Ok(Exit::Ok)
}

pub fn reset(args: &ResetArgs) -> Result<Exit> {
    let context = args.course.open()?;
    if let Some(exercise) = context.exercise(&args.stage) {
        exercises::reset(&context, exercise)?;
        return Ok(Exit::Ok);
    }
    let stage = context.stage(&args.stage)?;
    let kept = context.reset(stage)?;
    let state = context
        .state
        .as_ref()
        .context("this system names no folder for a program's state")?;
    let (_, aside) = progress::reset_stage(state, &stage.id)?;
    keep(Ok(aside));
    result(&format!(
        "stage {} ({}) is as it began",
        stage.number, stage.id
    ))?;
    for path in kept {
        result(&format!("your file is kept as {}", path.display()))?;
    }
    Ok(Exit::Ok)
}

pub fn init(args: &InitArgs) -> Result<Exit> {
    let dir = &args.dir;
    match std::fs::read_dir(dir) {
        Ok(mut entries) => {
            if entries.next().is_some() {
                return Err(usage(format!(
                    "{} is not empty; name a new folder",
                    dir.display()
                )));
            }
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(usage(format!("{}: {error}", dir.display()))),
    }
    let files = embedded::files();
    for (path, bytes) in &files {
        let target = dir.join(path);
        let folder = target.parent().unwrap_or(dir);
        std::fs::create_dir_all(folder)
            .with_context(|| format!("Failed to create {}", folder.display()))?;
        std::fs::write(&target, bytes)
            .with_context(|| format!("Failed to write {}", target.display()))?;
    }
    result(&format!(
        "wrote {} files into {}",
        files.len(),
        dir.display()
    ))?;
    notice(&format!(
        "start with `perflings --course {}`",
        dir.display()
    ));
    Ok(Exit::Ok)
}

/// The learner's progress; a damaged file is named and set aside.
pub fn progress_of(context: &CourseContext) -> Progress {
    let Some(state) = &context.state else {
        return Progress::default();
    };
    let (progress, aside) = progress::load(state);
    if let Some(problem) = aside {
        notice(&problem.to_string());
    }
    progress
}

/// Progress that cannot be saved is worth a word, not the command's failure.
fn keep(saved: Result<Option<crate::config::file::FileError>, crate::config::file::FileError>) {
    if let Ok(Some(problem)) | Err(problem) = saved {
        notice(&problem.to_string());
    }
}
