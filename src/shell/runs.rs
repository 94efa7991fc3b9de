//! Keeps the last runs of each stage beside the progress, so that a learner's page has their curves. A file that cannot be read counts as
//! empty, because the runs are only shown.

use std::path::Path;

use anyhow::{Context, Result};

use crate::course::context::CourseContext;
use crate::course::save_file::Progress;
use crate::course::{Stage, journey};
use crate::files;
use crate::pages::learner;
use crate::pages::report::RunReport;
use crate::pages::sheet::Sheet;
use protocol::story::StreamStory;

/// The name of the file in the state folder of the course.
const FILE: &str = "last-runs.json";
/// The largest file that is read, in bytes.
const MAX_BYTES: u64 = 16 * 1024 * 1024;

/// Returns the runs that are kept in a folder, or no runs if the file cannot be read.
pub fn load(dir: &Path) -> RunReport {
    let bytes = files::read(&dir.join(FILE), MAX_BYTES).unwrap_or_default();
    serde_json::from_slice(&bytes).unwrap_or_default()
}

/// Saves this session's runs. Stages without a run in this session keep their earlier ones.
///
/// # Errors
/// Fails where the folder or the file cannot be written.
pub fn save(dir: &Path, session: &RunReport) -> Result<()> {
    let kept = session.kept(&load(dir));
    if !kept.is_empty() {
        let path = dir.join(FILE);
        files::write(&path, &serde_json::to_vec(&kept)?)
            .with_context(|| format!("{}: the last runs are not kept", path.display()))?;
    }
    Ok(())
}

/// Returns the page about the learner's work in the course: the last runs of each stage and, if there is one, this session's runs.
///
/// # Errors
/// Fails where the table of the last journey cannot be read.
pub fn learner_sheet(
    context: &CourseContext,
    progress: &Progress,
    session: Option<&StreamStory>,
) -> Result<Sheet> {
    let configuration = |stage: &Stage| Some(context.learner_config(stage, None).ok()?.0.config);
    let state = context.state.as_deref();
    let journey = state.map(journey::load).transpose()?.flatten();
    let earlier = state.map(load).unwrap_or_default();
    let present = session.map(RunReport::from_story);
    let kept = match &present {
        Some(report) => report.kept(&earlier),
        None => earlier,
    };
    Ok(learner::sheet(
        &context.course,
        progress,
        &configuration,
        journey.as_ref(),
        &kept,
        present.as_ref(),
    ))
}
