//! `perflings list`, `hint`, `reset` and `init`: show or write parts of the course, and need no engine.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::json;

use super::args::exercises::{HintArgs, InitArgs, ListArgs, ResetArgs};
use super::saved::{change_progress, not_saved, progress_of, report_saved};
use super::variant::stage_named;
use crate::course::CourseFiles;
use crate::course::placeholder::{FigureSources, fill_with_notices};
use crate::course::save_file::{self, Prediction, ProgressChange, StageProgress, letter};
use crate::course::workspace::write;
use crate::out::{self, Exit, notice, result, usage};
use crate::shell::exercise::restore_files;
use crate::{files, table};

pub(super) fn list(args: &ListArgs) -> Result<Exit> {
    let context = args.course.open()?;
    let progress = progress_of(&context);
    let mut lines = Vec::new();
    let mut stages = Vec::new();
    let mut exercises = Vec::new();
    for stage in &context.course.stages {
        let known = progress.stage(&stage.id);
        let is_current = progress.current.as_deref() == Some(&stage.id);
        let workspace = context.workspace().ok();
        let level = stage.level.into_str();
        let state = known.state.into_str();
        lines.push(json!({
            "number": stage.number, "id": stage.id, "title": stage.title, "level": level,
            "state": state, "hints": known.hints, "current": is_current,
            "file": workspace.and_then(|files| files.existing_config(stage)),
            "outcome": outcome(&known),
        }));
        let mark = if is_current { '>' } else { ' ' };
        stages.push(vec![
            format!("{mark} {}", stage.number),
            state.to_owned(),
            stage.id.clone(),
            format!("{} ({level})", stage.title),
        ]);
    }
    for exercise in &context.course.exercises {
        let known = progress.stage(&exercise.id);
        let label = exercise.label();
        let level = exercise.level.into_str();
        let state = known.state.into_str();
        let first_file = exercise.files().first().copied();
        lines.push(json!({
            "exercise": label, "kind": exercise.kind, "id": exercise.id, "title": exercise.title,
            "level": level, "state": state, "hints": known.hints, "outcome": outcome(&known),
            "file": first_file.and_then(|file| context.exercise_file(exercise, &file.name)),
        }));
        exercises.push(vec![
            format!("  {label}"),
            state.to_owned(),
            exercise.kind.to_owned(),
            format!("{} ({level})", exercise.title),
        ]);
    }
    for broken in &context.course.broken {
        let label = broken.label();
        let why = broken.why.to_string();
        lines.push(json!({
            "folder": broken.folder, "label": label, "state": "broken", "problem": why,
        }));
        exercises.push(vec![format!("  {label}"), "broken".to_owned(), why]);
    }
    if args.json {
        for line in &lines {
            out::json(line)?;
        }
    } else {
        result(&context.course.title)?;
        print_table(&stages)?;
        if !context.course.exercises.is_empty() {
            result("\nexercises: perflings check c01, hint c01, reset c01")?;
        }
        print_table(&exercises)?;
    }
    if context.course.stages.is_empty() {
        return Err(usage("the course has no stage that can be used"));
    }
    Ok(Exit::Ok)
}

/// Prints rows as a table.
pub(super) fn print_table(rows: &[Vec<String>]) -> Result<()> {
    for line in table::lines(rows, false) {
        result(&line)?;
    }
    Ok(())
}

/// Returns the learner's predictions and their results as JSON. Whatever the learner has not answered is null.
fn outcome(known: &StageProgress) -> serde_json::Value {
    let (choice, right) = match known.prediction {
        Some(Prediction::Choice { choice, right }) => (Some(letter(choice)), Some(right)),
        _ => (None, None),
    };
    json!({
        "prediction": choice, "prediction_right": right,
        "prediction_skipped": known.prediction == Some(Prediction::Skipped),
        "estimate": known.estimate, "measured": known.measured, "ratio": known.ratio,
        "solution_shown": known.solution_shown, "quiz_right": known.quiz.len(),
    })
}

pub(super) fn hint(args: &HintArgs) -> Result<Exit> {
    let context = args.course.open()?;
    let (id, hints): (&str, Vec<String>) = match context.exercise(&args.stage) {
        Some(exercise) => {
            let hints = exercise.hints.iter().map(|hint| hint.trim().to_owned());
            (&exercise.id, hints.collect())
        }
        None => {
            let stage = stage_named(&args.stage, &context)?;
            let figures = FigureSources::none(&stage.broken);
            let key = crate::tui::keys::name(crate::app::Action::Pair).unwrap_or_default();
            let filled = |hint: &String| fill_with_notices(hint.trim(), &figures, &key);
            (&stage.id, stage.hints.iter().map(filled).collect())
        }
    };
    let wanted = usize::from(args.hints).min(hints.len());
    for (number, hint) in (1..).zip(&hints[..wanted]) {
        result(&format!("hint {number}/{}: {hint}", hints.len()))?;
    }
    change_progress(&context, id, |progress| {
        progress.hints = progress.hints.max(u32::try_from(wanted).unwrap_or(0));
        progress.record_attempt(false);
    });
    Ok(Exit::Ok)
}

pub(super) fn reset(args: &ResetArgs) -> Result<Exit> {
    let context = args.course.open()?;
    let state = context
        .state
        .as_ref()
        .context("this system names no folder for a program's state")?;
    // The progress that a reset does not remove: the first answer to an exercise about a recorded run.
    let mut lasting = None;
    let (name, id, kept) = match context.exercise(&args.stage) {
        Some(exercise) => {
            let name = exercise.label().to_owned();
            lasting = progress_of(&context).stage(&exercise.id).after_reset();
            let folders: Vec<_> = context.exercise_folder(exercise).into_iter().collect();
            (name, &exercise.id, restore_files(&folders, exercise)?)
        }
        None => {
            let stage = stage_named(&args.stage, &context)?;
            let name = format!("stage {}", stage.number);
            (name, &stage.id, context.reset(stage)?)
        }
    };
    let remark = if lasting.is_some() {
        "; your first answer stays: after a wrong answer, a right one counts as seen"
    } else {
        ""
    };
    let mut changes = vec![ProgressChange::Reset(id.clone())];
    changes.extend(lasting.map(|progress| ProgressChange::Stage(id.clone(), Box::new(progress))));
    let (_, aside) =
        save_file::save(state, &changes).map_err(|error| anyhow::anyhow!(not_saved(&error)))?;
    report_saved(Ok(aside));
    result(&format!("{name} ({id}) is reset{remark}"))?;
    for path in kept {
        result(&format!("your file is kept as {}", path.display()))?;
    }
    Ok(Exit::Ok)
}

/// Checks that a folder is empty or does not exist.
pub(super) fn ensure_new(dir: &Path) -> Result<()> {
    match std::fs::read_dir(dir) {
        Ok(mut entries) => match entries.next() {
            None => Ok(()),
            Some(_) => Err(usage(format!(
                "{} is not empty; name a new folder",
                dir.display()
            ))),
        },
        Err(_) if !files::is_taken(dir) => Ok(()),
        Err(error) => Err(usage(format!("{}: {error}", dir.display()))),
    }
}

pub(super) fn init(args: &InitArgs) -> Result<Exit> {
    let dir = &args.dir;
    let files = CourseFiles::Embedded.files()?;
    // A folder of an earlier `init` gets the files that it lacks. Files that the user has changed stay.
    let has_course = files.iter().any(|(path, _)| dir.join(path).is_file());
    if !has_course {
        ensure_new(dir)?;
    }
    let mut written = 0;
    let mut changed = Vec::new();
    for (path, text) in &files {
        let target = dir.join(path);
        if !files::is_taken(&target) {
            write(&target, text)?;
            written += 1;
        } else if !files::read(&target, text.len() as u64).is_ok_and(|old| old == text.as_bytes()) {
            changed.push(path.clone());
        }
    }
    let noun = if written == 1 { "file" } else { "files" };
    result(&format!("wrote {written} {noun} into {}", dir.display()))?;
    if !changed.is_empty() {
        let more = if changed.len() > 3 { ", …" } else { "" };
        changed.truncate(3);
        notice(&format!(
            "files that differ from the built-in course are kept: {}{more}",
            changed.join(", ")
        ));
    }
    notice(&format!(
        "start with `perflings --course {}`",
        dir.display()
    ));
    Ok(Exit::Ok)
}
