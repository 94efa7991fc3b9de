//! The learner's files: the configuration of the present stage, reports, the file in the editor, and the recording of an exercise.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::Workshop;
use crate::app::Message;
use crate::course::config_file::FileError;
use crate::course::exercise::config::ANSWERS;
use crate::course::save_file::{Progress, ProgressChange};
use crate::course::workspace;
use crate::course::{CourseFiles, Exercise, Stage};
use crate::files;
use crate::pages::html;
use crate::record::Recording;
use crate::shell::exercise::as_it_began;
use crate::shell::kernel_file::name_of;
use crate::shell::replay::ReplaySource;
use crate::shell::runs;
use crate::shell::watch::FileWatch;
use crate::tui::terminal;

impl Workshop {
    /// Watches the files of the present stage and of the open exercise.
    pub(super) fn watch_files(&mut self) {
        let stage = self.current.as_deref();
        let mut files = stage.map_or_else(Vec::new, |id| self.watched(id));
        files.extend(self.exercise.watched());
        self.watch = FileWatch::new(files);
    }

    fn stage(&self, id: &str) -> Result<&Stage> {
        self.context
            .course
            .stage_by_id(id)
            .with_context(|| format!("there is no stage `{id}`"))
    }

    /// Returns the files in which the learner may edit a stage's configuration: the learner's copy and, in a course folder, the file there.
    fn watched(&self, id: &str) -> Vec<PathBuf> {
        let Ok(stage) = self.stage(id) else {
            return Vec::new();
        };
        let workspace = self.context.workspace().ok();
        let copy = workspace.map(|workspace| workspace.config(stage));
        let in_course = match &self.context.source {
            CourseFiles::Embedded => None,
            CourseFiles::Folder { root, .. } => Some(root.join(&stage.path).join("config.toml")),
        };
        copy.into_iter().chain(in_course).collect()
    }

    /// Reads the learner's file of a stage, if there is one. Its configuration, or its problem, comes to the screen as `FileRead`.
    pub(super) fn read_learner_file(&mut self, id: &str) {
        let Ok(stage) = self.stage(id) else {
            return;
        };
        let config = match self.context.learner_config(stage, None) {
            Ok((_, None)) => return,
            Ok((named, Some(_))) => Ok(Box::new(named.config)),
            Err(error) => Err(match error.downcast::<FileError>() {
                Ok(error) => in_short(error),
                Err(error) => format!("{error:#}"),
            }),
        };
        let stage = id.to_owned();
        self.news.push_back(Message::FileRead { stage, config });
    }

    /// Writes the knobs that are not written yet. A message follows if this has become possible or impossible.
    pub(super) fn write_knobs(&mut self) -> Result<()> {
        let why_before = self.knobs.why().map(str::to_owned);
        let written = self.knobs.write(&self.context);
        for path in written.paths {
            self.watch.acknowledge(&path);
        }
        for problem in written.unreadable {
            let config = Err(in_short(problem));
            self.news.push_back(Message::FileSaved { config });
        }
        if self.knobs.why() != why_before.as_deref() {
            self.news.push_back(self.unsaved_message());
        }
        written.result
    }

    /// Returns a message with the reason why progress or knobs are not on the disk, or without a reason if all of them are.
    pub(super) fn unsaved_message(&self) -> Message {
        let why = self.unsaved.as_deref().or(self.knobs.why());
        Message::ProgressUnsaved {
            why: why.map(str::to_owned),
        }
    }

    /// Puts the starter of a stage back and forgets its progress. Returns a sentence for the screen.
    pub(super) fn reset_stage(&mut self, id: &str) -> Result<String> {
        let stage = self.stage(id)?;
        let moved_aside = self.context.reset(stage)?;
        self.keep(ProgressChange::Reset(id.to_owned()))?;
        for path in self.watched(id) {
            self.watch.acknowledge(&path);
        }
        Ok(as_it_began("stage", moved_aside.first()))
    }

    /// Writes a report as Markdown and as an HTML page. Returns the paths of both.
    pub(super) fn write_report(&self, progress: &Progress) -> Result<[PathBuf; 2]> {
        let folder = self
            .reports
            .as_ref()
            .context("this system names no folder for a program's data; set XDG_DATA_HOME")?;
        let story = self.story.borrow();
        let date = match &*story.hello.date {
            "" => "undated",
            date => date,
        };
        let paths_with_number = |number: u32| {
            ["md", "html"].map(|kind| folder.join(format!("report-{date}-{number}.{kind}")))
        };
        let are_free = |paths: &[PathBuf; 2]| !paths.iter().any(|path| files::is_taken(path));
        let Some(paths) = (1..10_000).map(paths_with_number).find(are_free) else {
            bail!("{} is full of reports", folder.display());
        };
        let sheet = runs::learner_sheet(&self.context, progress, Some(&story))?;
        let [text, page] = &paths;
        workspace::write(text, sheet.markdown())?;
        workspace::write(page, html::page(&sheet))?;
        Ok(paths)
    }

    /// Shows the recorded run of an exercise from its beginning.
    pub(super) fn show_recording(&mut self, id: &str) -> Result<()> {
        let detective = self
            .context
            .course
            .exercise_by_id(id)
            .and_then(Exercise::recording)
            .with_context(|| format!("{id} has no recording"))?;
        let path = PathBuf::from(&detective.file);
        let recording = Recording::from_text(detective.shown(), &path)?;
        self.replay = Some(ReplaySource::new(recording, 1.0));
        Ok(())
    }

    /// Opens a learner's file in the editor, at a line (from 1) if one is given. `id` names its stage or exercise. Returns a sentence for the
    /// screen. Fails with the path of the file if there is no editor.
    pub(super) fn open_editor(
        &mut self,
        id: &str,
        file: &str,
        line: Option<u32>,
    ) -> Result<String> {
        let (path, consequence) = match self.exercise.path(id, file) {
            Some(path) if file == ANSWERS => (path, "is measured"),
            Some(path) => (path, "is checked"),
            None => {
                let workspace = self.context.workspace()?;
                let path = workspace.open_file(id, &self.stage(id)?.file)?;
                self.watch.acknowledge(&path);
                (path, "runs")
            }
        };
        let Some(editor) = &self.editor else {
            bail!(
                "EDITOR is not set; this file {consequence} when you save it: {}",
                path.display()
            );
        };
        editor.open(&path, line, terminal::columns_and_rows())?;
        Ok(format!("{file} {consequence} when you save it"))
    }
}

/// Returns the error's text with the file's name instead of its path, because the screen has one line for it.
pub(super) fn in_short(error: FileError) -> String {
    let path = name_of(Path::new(&error.path));
    FileError { path, ..error }.to_string()
}
