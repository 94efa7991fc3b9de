//! The learner's own files of a course: copies of the starters, in the state folder, made when they are first
//! edited. A course itself is never written to.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::{Stage, StageFile};
use crate::files;

/// `<state>/<course>/work`, with a folder for each stage.
#[derive(Clone, Debug)]
pub struct Workspace {
    root: PathBuf,
}

impl Workspace {
    /// The workspace under a course's state folder.
    pub fn new(state: &Path) -> Self {
        Self {
            root: state.join("work"),
        }
    }

    /// Where the learner's copy is, or would be.
    pub fn path(&self, stage: &Stage, file: &str) -> PathBuf {
        self.root.join(&stage.id).join(file)
    }

    /// The learner's copy, if there is one, or whatever is in its place.
    pub fn existing(&self, stage: &Stage, file: &str) -> Option<PathBuf> {
        Some(self.path(stage, file)).filter(|path| files::is_taken(path))
    }

    /// The learner's copy, made from the starter where there is none.
    pub fn open(&self, stage: &Stage, file: &str) -> Result<PathBuf> {
        let found = stage.files.iter().find(|known| known.name == file);
        let (number, shown) = (stage.number, crate::sanitize::line(file));
        let found = found.with_context(|| format!("stage {number} has no file `{shown}`"))?;
        self.open_file(&stage.id, found)
    }

    /// The same for a file of the stage or exercise `id`.
    pub fn open_file(&self, id: &str, file: &StageFile) -> Result<PathBuf> {
        let path = self.folder(id).join(&file.name);
        if !files::is_taken(&path) {
            write(&path, &file.starter)?;
        }
        Ok(path)
    }

    /// Where the learner's files of a stage or exercise are.
    pub fn folder(&self, id: &str) -> PathBuf {
        self.root.join(id)
    }

    /// Puts the starters back. Files that differ are kept beside them; the result names those.
    pub fn reset(&self, stage: &Stage) -> Result<Vec<PathBuf>> {
        let mut kept = Vec::new();
        for file in &stage.files {
            kept.extend(restore(&self.path(stage, &file.name), &file.starter)?);
        }
        Ok(kept)
    }
}

/// Puts a text back where a file is. If that held something else, it is kept beside it, and named.
pub fn restore(path: &Path, text: &str) -> Result<Option<PathBuf>> {
    if !files::is_taken(path) {
        return Ok(None);
    }
    // What cannot be read is not the text, whatever it is.
    let same = files::read(path, text.len() as u64).is_ok_and(|mine| mine == text.as_bytes());
    if same {
        return Ok(None);
    }
    let aside = files::set_aside(path, "");
    let aside = aside.with_context(|| format!("Failed to set {} aside", path.display()))?;
    write(path, text)?;
    Ok(Some(aside))
}

/// Writes a file whole or not at all, in a folder that is made where there is none.
pub fn write(path: &Path, text: impl AsRef<[u8]>) -> Result<()> {
    let context = || format!("Failed to write {}", path.display());
    fs::create_dir_all(files::folder(path)).with_context(context)?;
    files::write(path, text.as_ref()).with_context(context)?;
    Ok(())
}
