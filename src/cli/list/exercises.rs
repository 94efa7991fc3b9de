//! The exercises in `list`, `hint` and `reset`.

use anyhow::Result;
use serde_json::json;

use crate::course::Exercise;
use crate::course::context::CourseContext;
use crate::course::exercise::Body;
use crate::course::progress::{Progress, State, save_stage};
use crate::course::workspace::restore;
use crate::out::{self, result};

/// What kind of exercise it is, in a word.
pub const fn kind(body: &Body) -> &'static str {
    match body {
        Body::Kernel(_) => "kernel",
        Body::Config(_) => "config",
        Body::Detective(_) => "detective",
    }
}

/// One line for each exercise, under a heading of its own.
pub fn list(context: &CourseContext, progress: &Progress, as_json: bool) -> Result<()> {
    if !as_json && !context.course.exercises.is_empty() {
        result("")?;
        result("exercises: perflings check c01, hint c01, reset c01")?;
    }
    for exercise in &context.course.exercises {
        let known = progress.stage(&exercise.id);
        if as_json {
            out::json(&json!({
                "exercise": exercise.label(), "kind": kind(&exercise.body), "id": exercise.id,
                "title": exercise.title, "level": exercise.level.name(), "state": known.state.name(),
                "hints": known.hints,
                "file": exercise.files().first().and_then(|file| context.exercise_file(exercise, &file.name)),
            }))?;
        } else {
            result(&format!(
                "  {}  {:<9}  {:<10} {} ({})",
                exercise.label(),
                known.state.name(),
                kind(&exercise.body),
                exercise.title,
                exercise.level.name()
            ))?;
        }
    }
    Ok(())
}

/// The first hints of an exercise; noted in the learner's progress.
pub fn hint(context: &CourseContext, exercise: &Exercise, wanted: usize) -> Result<()> {
    let wanted = wanted.min(exercise.hints.len());
    for (n, hint) in (1..).zip(&exercise.hints[..wanted]) {
        result(&format!(
            "hint {n}/{}: {}",
            exercise.hints.len(),
            hint.trim()
        ))?;
    }
    if let Some(state) = &context.state {
        let mut known = super::progress_of(context).stage(&exercise.id);
        known.hints = known.hints.max(u32::try_from(wanted).unwrap_or(0));
        known.state = known.state.max(State::Seen);
        super::keep(save_stage(state, &exercise.id, &known).map(|(_, aside)| aside));
    }
    Ok(())
}

/// Puts the learner's files back as they began; those that differ are kept beside them.
pub fn reset(context: &CourseContext, exercise: &Exercise) -> Result<()> {
    if let Some(folder) = context.exercise_folder(exercise) {
        for file in exercise.files() {
            if let Some(kept) = restore(&folder.join(&file.name), &file.starter)? {
                result(&format!("your file is kept as {}", kept.display()))?;
            }
        }
    }
    if let Some(state) = &context.state {
        let (_, aside) = crate::course::progress::reset_stage(state, &exercise.id)?;
        super::keep(Ok(aside));
    }
    result(&format!(
        "{} ({}) is as it began",
        exercise.label(),
        exercise.id
    ))?;
    Ok(())
}
