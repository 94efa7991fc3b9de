//! Reads and writes the learner's progress for commands. A command whose progress cannot be saved prints a notice and still succeeds.

use std::path::Path;

use crate::course::Stage;
use crate::course::config_file::FileError;
use crate::course::context::CourseContext;
use crate::course::exercise::Exercise;
use crate::course::save_file::{self, Progress, ProgressChange, StageProgress};
use crate::out::notice;

/// Returns the learner's progress. A damaged save file is set aside, and a notice names it.
pub(super) fn progress_of(context: &CourseContext) -> Progress {
    let state = context.state.as_deref();
    let (progress, aside) = state.map(save_file::load).unwrap_or_default();
    if let Some(problem) = aside {
        notice(&problem.to_string());
    }
    progress
}

/// Prints a notice if nothing was saved, or if a damaged save file was set aside.
pub(super) fn report_saved(saved: Result<Option<FileError>, FileError>) {
    match saved {
        Ok(None) => {}
        Ok(Some(problem)) => notice(&problem.to_string()),
        Err(error) => notice(&not_saved(&error)),
    }
}

/// Returns the message that progress is not saved, with the reason.
pub(super) fn not_saved(error: &FileError) -> String {
    format!("progress is not saved: {} ({})", error.message, error.path)
}

/// Prints a notice that a command uses the learner's file at `path`; nothing if there is none.
pub(super) fn report_file(stage: &Stage, path: Option<&Path>) {
    if let Some(path) = path {
        let shown = path.display();
        notice(&format!("stage {} with your {shown}", stage.number));
    }
}

/// Saves that the learner has looked at an exercise or tried it, and whether it passed.
pub(super) fn save_tried(context: &CourseContext, exercise: &Exercise, passed: bool) {
    change_progress(context, &exercise.id, |progress| {
        progress.record_attempt(passed);
    });
}

/// Changes and saves the progress of the stage or exercise with this id.
pub(super) fn change_progress(
    context: &CourseContext,
    id: &str,
    change: impl FnOnce(&mut StageProgress),
) {
    let Some(state) = &context.state else {
        return;
    };
    let before = progress_of(context).stage(id);
    let mut after = before.clone();
    change(&mut after);
    if after != before {
        let change = ProgressChange::Stage(id.to_owned(), Box::new(after));
        report_saved(save_file::save(state, &[change]).map(|(_, aside)| aside));
    }
}
