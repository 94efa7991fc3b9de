//! The learner's own files of a course: copies of the starters in the state folder, such as `work/strides/config.toml`. A copy is made when a
//! learner first edits the file. The course itself is never written to.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::stage::CONFIG;
use super::{Stage, StageFile};
use crate::files;

/// The folder `<state>/<course>/work`, with a folder for each stage and exercise.
#[derive(Clone, Debug)]
pub struct Workspace {
    root: PathBuf,
}

impl Workspace {
    /// Returns the workspace in a course's state folder.
    pub fn new(state: &Path) -> Self {
        Self {
            root: state.join("work"),
        }
    }

    /// Returns the path of the learner's configuration of a stage, which need not exist.
    pub fn config(&self, stage: &Stage) -> PathBuf {
        self.folder(&stage.id).join(CONFIG)
    }

    /// Returns the path of the learner's configuration of a stage; `None` if nothing has this path.
    pub fn existing_config(&self, stage: &Stage) -> Option<PathBuf> {
        Some(self.config(stage)).filter(|path| files::is_taken(path))
    }

    /// Returns the path of the learner's copy of a file of the stage or exercise `id`, which is made from the starter if there is none.
    pub fn open_file(&self, id: &str, file: &StageFile) -> Result<PathBuf> {
        let path = self.folder(id).join(&file.name);
        if !files::is_taken(&path) {
            write(&path, &file.starter)?;
        }
        Ok(path)
    }

    /// Returns the folder of the learner's files of a stage or exercise.
    pub fn folder(&self, id: &str) -> PathBuf {
        self.root.join(id)
    }

    /// Restores the starter of a stage. A file that differs from it is kept under another name, which is returned.
    pub fn reset(&self, stage: &Stage) -> Result<Option<PathBuf>> {
        restore(&self.config(stage), &stage.file.starter)
    }
}

/// Writes a text into an existing file. If the file has another text, it is kept under another name, which is returned.
pub fn restore(path: &Path, text: &str) -> Result<Option<PathBuf>> {
    if !files::is_taken(path) {
        return Ok(None);
    }
    // A file that cannot be read, because it is longer or for another reason, has another text.
    if files::read(path, text.len() as u64).is_ok_and(|found| found == text.as_bytes()) {
        return Ok(None);
    }
    let aside = files::set_aside(path, "")
        .with_context(|| format!("Failed to set {} aside", path.display()))?;
    write(path, text)?;
    Ok(Some(aside))
}

/// Writes a file whole or not at all. The folder is made if there is none.
pub fn write(path: &Path, text: impl AsRef<[u8]>) -> Result<()> {
    let context = || format!("Failed to write {}", path.display());
    fs::create_dir_all(files::folder(path)).with_context(context)?;
    files::write(path, text.as_ref()).with_context(context)?;
    Ok(())
}
