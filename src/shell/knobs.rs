//! Writes knobs to the learner's files. Where the disk refuses a file, the write is tried again until it succeeds or the learner has written
//! the file.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result};

use super::saving::AGAIN;
use crate::course::config_file::{FileError, MAX_BYTES, read_text, rewritten};
use crate::course::context::CourseContext;
use crate::course::save_file::explain_write_error;
use crate::course::workspace;
use protocol::config::{KNOBS, Knob, RunConfig};

/// The knobs of stages that are not in the learner's files yet.
#[derive(Default)]
pub(super) struct Knobs {
    /// The values by the id of their stage.
    unwritten: BTreeMap<String, KnobValues>,
    /// The time of the last attempt.
    tried: Option<Instant>,
    /// The reason why the last attempt failed.
    why: Option<String>,
}

/// The values of a stage's knobs.
struct KnobValues {
    config: Box<RunConfig>,
    /// The keys that the stage offers; only these change in the file.
    offers: Vec<String>,
}

/// The result of an attempt to write knobs.
pub(super) struct FileUpdate {
    /// The files that were written.
    pub paths: Vec<PathBuf>,
    /// Problems of files that cannot be read. These files stay as they are.
    pub unreadable: Vec<FileError>,
    /// The first failure that has nothing to do with the disk, so that another attempt would not help.
    pub result: Result<()>,
}

impl Knobs {
    /// Adds the knobs of a stage. They replace values of this stage that are not written yet.
    pub(super) fn add(&mut self, stage: String, config: Box<RunConfig>, offers: Vec<String>) {
        self.unwritten.insert(stage, KnobValues { config, offers });
    }

    /// Returns the reason why knobs are not on the disk, or `None` if all are.
    pub(super) fn why(&self) -> Option<&str> {
        self.why.as_deref()
    }

    /// Returns true if it is time for another attempt.
    pub(super) fn are_due(&self) -> bool {
        let waited = self.tried.is_none_or(|tried| tried.elapsed() > AGAIN);
        waited && !self.unwritten.is_empty()
    }

    /// Forgets the values that are not written yet.
    pub(super) fn forget(&mut self) {
        self.unwritten.clear();
    }

    /// Writes the knobs that are not written yet.
    pub(super) fn write(&mut self, context: &CourseContext) -> FileUpdate {
        self.tried = Some(Instant::now());
        self.why = None;
        let mut written = FileUpdate {
            paths: Vec::new(),
            unreadable: Vec::new(),
            result: Ok(()),
        };
        for (stage, values) in std::mem::take(&mut self.unwritten) {
            let Err(error) = write(context, &stage, &values, &mut written) else {
                continue;
            };
            if let Some(cause) = error.root_cause().downcast_ref() {
                self.why = Some(explain_write_error(cause));
                self.unwritten.insert(stage, values);
            } else {
                written.result = written.result.and(Err(error));
            }
        }
        written
    }
}

/// Writes the knobs of a stage to the learner's file. Makes the file from the starter where there is none.
fn write(
    context: &CourseContext,
    id: &str,
    values: &KnobValues,
    written: &mut FileUpdate,
) -> Result<()> {
    let stage = context
        .course
        .stage_by_id(id)
        .with_context(|| format!("there is no stage `{id}`"))?;
    let learner = context.learner_config(stage, None).ok();
    let path = match learner.and_then(|(_, path)| path) {
        Some(path) => path,
        None => context.workspace()?.open_file(id, &stage.file)?,
    };
    let text = read_text(&path, MAX_BYTES)?;
    let is_offered = |knob: &&Knob| values.offers.iter().any(|path| path == knob.path);
    let knobs: Vec<&'static Knob> = KNOBS.iter().filter(is_offered).collect();
    match rewritten(&text, &path.display().to_string(), &values.config, &knobs) {
        Ok(new) if new == text => {}
        Ok(new) => {
            workspace::write(&path, &new)?;
            written.paths.push(path);
        }
        Err(problem) => written.unreadable.push(problem),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knobs_that_the_disk_refuses_are_written_later_and_no_others_are_lost() {
        let dir = tempfile::tempdir().expect("a folder");
        let mut context = CourseContext::load(None).expect("the built-in course");
        context.state = Some(dir.path().join("state"));
        let stage = &context.course.stages[0];
        let mut config = stage.broken.clone();
        config.train.learning_rate = 0.0625;
        let offers = || vec!["train.learning-rate".to_owned()];
        let mut knobs = Knobs::default();
        // A file is in the place of the folder.
        std::fs::write(dir.path().join("state"), "").expect("written");
        knobs.add(stage.id.clone(), Box::new(config.clone()), offers());
        let written = knobs.write(&context);
        assert!(written.result.is_ok() && knobs.why().is_some() && !knobs.are_due());
        // Knobs of an unknown stage can never be written, but do not keep the others from being written.
        knobs.add("a-nowhere".to_owned(), Box::new(config), offers());
        let written = knobs.write(&context);
        let error = written.result.expect_err("no stage").to_string();
        assert!(
            error.contains("a-nowhere") && knobs.why().is_some(),
            "{error}"
        );
        std::fs::remove_file(dir.path().join("state")).expect("removed");
        knobs.tried = None;
        assert!(knobs.are_due());
        let written = knobs.write(&context);
        assert!(written.result.is_ok() && knobs.why().is_none() && !knobs.are_due());
        let text = std::fs::read_to_string(&written.paths[0]).expect("there");
        assert!(text.contains("learning-rate = 0.0625"), "{text}");
    }
}
