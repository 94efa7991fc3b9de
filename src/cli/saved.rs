//! Reads and writes the learner's progress for commands. If progress cannot be saved, a command prints a notice and still succeeds.

use std::path::Path;

use crate::course::Stage;
use crate::course::config_file::FileError;
use crate::course::context::CourseContext;
use crate::course::exercise::Exercise;
use crate::course::save_file::{self, Progress, ProgressChange, StageProgress};
use crate::out::notice;

/// Returns the learner's progress. A damaged file is reported and set aside.
pub(super) fn progress_of(context: &CourseContext) -> Progress {
    let state = context.state.as_deref();
    let (progress, aside) = state.map(save_file::load).unwrap_or_default();
    if let Some(problem) = aside {
        notice(&problem.to_string());
    }
    progress
}

/// Prints a notice about a damaged file that was set aside, or the reason why nothing was saved.
pub(super) fn report_saved(saved: Result<Option<FileError>, FileError>) {
    match saved {
        Ok(None) => {}
        Ok(Some(problem)) => notice(&problem.to_string()),
        Err(error) => notice(&unsaved(&error)),
    }
}

/// Says why nothing was saved.
pub(super) fn unsaved(error: &FileError) -> String {
    format!("progress is not saved: {} ({})", error.message, error.path)
}

/// Says which of the learner's files is used, if one is.
pub(super) fn say_file(stage: &Stage, path: Option<&Path>) {
    if let Some(path) = path {
        let path = path.display();
        notice(&format!("stage {} with your {path}", stage.number));
    }
}

/// Saves that an exercise was looked at or tried, and whether it passed.
pub(super) fn note_tried(context: &CourseContext, exercise: &Exercise, passed: bool) {
    change(context, &exercise.id, |known| known.record_attempt(passed));
}

/// Changes the progress of the stage or exercise `id`.
pub(super) fn change(context: &CourseContext, id: &str, change: impl FnOnce(&mut StageProgress)) {
    let Some(state) = &context.state else {
        return;
    };
    let mut known = progress_of(context).stage(id);
    let before = known.clone();
    change(&mut known);
    if known != before {
        let change = ProgressChange::Stage(id.to_owned(), Box::new(known));
        report_saved(save_file::save(state, &[change]).map(|(_, aside)| aside));
    }
}
