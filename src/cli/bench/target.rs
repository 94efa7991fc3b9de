//! Where the result goes and in which form. A file is opened before anything is measured and appears whole at the end.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Serialize;
use tempfile::NamedTempFile;

use super::BenchArgs;
use super::sheet::Sheet;
use crate::out::{notice, result, usage};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Table,
    Json,
    Markdown,
}

enum Place {
    Stdout,
    /// Takes the place of the file at the end.
    Whole(NamedTempFile, PathBuf),
    /// A pipe or a device, which must not be replaced.
    Stream(File, PathBuf),
}

pub struct Target {
    form: Form,
    place: Place,
}

impl Target {
    pub fn open(args: &BenchArgs) -> Result<Self> {
        let form = match (args.json, args.markdown) {
            (true, _) => Form::Json,
            (_, true) => Form::Markdown,
            _ => Form::Table,
        };
        let place = match &args.output {
            None => Place::Stdout,
            Some(path) => open(path)?,
        };
        Ok(Self { form, place })
    }

    /// Writes the result: `data` as JSON, or `sheet` as a table or Markdown.
    pub fn write(self, data: &impl Serialize, sheet: &Sheet) -> Result<()> {
        let text = match self.form {
            Form::Json => serde_json::to_string(data)?,
            Form::Table => sheet.text(),
            Form::Markdown => sheet.markdown(),
        };
        let text = text.trim_end();
        let wrote = |path: &Path| format!("Failed to write {}", path.display());
        match self.place {
            Place::Stdout => result(text)?,
            Place::Stream(mut file, path) => {
                writeln!(file, "{text}").with_context(|| wrote(&path))?;
            }
            Place::Whole(mut file, path) => {
                writeln!(file, "{text}")
                    .and_then(|()| open_to_others(&file))
                    .with_context(|| wrote(&path))?;
                file.persist(&path)
                    .map_err(|error| error.error)
                    .with_context(|| wrote(&path))?;
                notice(&format!("wrote {}", path.display()));
            }
        }
        Ok(())
    }
}

fn open(path: &Path) -> Result<Place> {
    // A link stays, and what it points to is written.
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    if path.is_dir() {
        let shown = path.display();
        return Err(usage(format!("--output: {shown} is a folder; name a file")));
    }
    if path.exists() && !path.is_file() {
        let file = OpenOptions::new().write(true).open(&path);
        let file = file.map_err(|error| usage(format!("--output {}: {error}", path.display())))?;
        return Ok(Place::Stream(file, path));
    }
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    let file = NamedTempFile::new_in(folder).map_err(|error| {
        let folder = folder.display();
        usage(format!("--output: cannot write in {folder}: {error}"))
    })?;
    Ok(Place::Whole(file, path))
}

/// A temporary file is its owner's alone; a result is as readable as any new file.
#[cfg(unix)]
fn open_to_others(file: &NamedTempFile) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    file.as_file()
        .set_permissions(std::fs::Permissions::from_mode(0o644))
}

#[cfg(not(unix))]
fn open_to_others(_: &NamedTempFile) -> std::io::Result<()> {
    Ok(())
}
