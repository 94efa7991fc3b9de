//! The last runs of each stage, kept beside the progress, so that a learner's page has their curves. A file that cannot be read is
//! no runs: they are only shown.

use std::path::Path;

use anyhow::{Context, Result};

use crate::files;
use crate::pages::report::RunCollector;

const FILE: &str = "last-runs.json";
const MAX_BYTES: u64 = 16 * 1024 * 1024;

pub fn load(dir: &Path) -> RunCollector {
    let bytes = files::read(&dir.join(FILE), MAX_BYTES).unwrap_or_default();
    serde_json::from_slice(&bytes).unwrap_or_default()
}

/// Keeps this session's runs beside those of stages that had none in it.
///
/// # Errors
/// Where the folder or the file cannot be written.
pub fn save(dir: &Path, session: &RunCollector) -> Result<()> {
    let kept = session.kept(&load(dir));
    if !kept.is_empty() {
        let path = dir.join(FILE);
        files::write(&path, &serde_json::to_vec(&kept)?)
            .with_context(|| format!("{}: the last runs are not kept", path.display()))?;
    }
    Ok(())
}
