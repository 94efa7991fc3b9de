//! An opened course, together with the learner's files and progress. Commands and the screen ask it for the stage or exercise that a learner
//! names, and for the configuration or folder that the learner works on.

mod edits;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::exercise::is_kind_letter;
use super::named::NamedConfig;
use super::source::within;
use super::text::hash;
use super::workspace::{self, Workspace};
use super::{
    Course, CourseFiles, Exercise, Stage, StageFile, UnusableContent, at_preset, embedded,
    save_file,
};
use crate::course::config_file::{FileError, MAX_BYTES, load, read_text};
use crate::exit::usage;
use crate::files;
use protocol::config::{Preset, close};

use edits::EditedStarter;

/// A loaded course, and the places of its learner's files.
#[derive(Debug)]
pub struct CourseContext {
    pub course: Course,
    pub source: CourseFiles,
    /// The state folder of the course; `None` if the system has no place for one.
    pub state: Option<PathBuf>,
    /// Starters that the learner edited in a copy of the course, by stage id.
    edits: BTreeMap<String, EditedStarter>,
}

impl CourseContext {
    /// Loads the course in a folder as its author sees it, or without a folder the course inside the program. Faults of files are in
    /// `course.problems`.
    pub fn load_as_author(folder: Option<&Path>) -> Result<Self> {
        let source = match folder {
            Some(folder) => CourseFiles::folder(folder)?,
            None => CourseFiles::Embedded,
        };
        let course = Course::open(&source);
        let state = save_file::directory(&course.id);
        Ok(Self {
            course,
            source,
            state,
            edits: BTreeMap::new(),
        })
    }

    /// Loads the course as its learner sees it: starters and answers that the learner edited are not faults of the course.
    pub fn load(folder: Option<&Path>) -> Result<Self> {
        let mut context = Self::load_as_author(folder)?;
        context.edits = edits::adopt(&mut context.course, &context.source);
        context.report_changed_exercises(Path::new("."));
        Ok(context)
    }

    /// Reports each exercise that differs in a copy of the course in this folder. A learner edits exercises in such a copy, but the course
    /// inside the program is used until the copy is named.
    fn report_changed_exercises(&mut self, folder: &Path) {
        if self.source != CourseFiles::Embedded {
            return;
        }
        for exercise in &self.course.exercises {
            let shown = format!("{}/exercise.toml", exercise.path);
            let path = folder.join(&shown);
            let is_same =
                |text: String| embedded::text(&shown).is_some_and(|own| hash(&own) == hash(&text));
            if files::is_taken(&path) && !read_text(&path, MAX_BYTES).is_ok_and(is_same) {
                let message = "differs from the file inside the program, which is used; \
                               write `--course .` to use this one";
                self.course.problems.push(FileError::new(shown, 0, message));
            }
            for file in exercise.files() {
                let path = format!("{}/{}", exercise.path, file.name);
                if let Err(message) = within(folder, Path::new(&path))
                    && files::is_taken(&folder.join(&path))
                {
                    self.course.problems.push(FileError::new(path, 0, message));
                }
            }
        }
    }

    /// Returns the stage with this number or id.
    ///
    /// # Errors
    /// If there is no such stage; the text says what else could have been meant.
    pub fn stage(&self, name: &str) -> Result<&Stage> {
        let by_number = name.parse::<u32>().ok();
        let found = match by_number {
            Some(number) => self.course.stage(number),
            None => self.course.stage_by_id(name),
        };
        found.ok_or_else(|| usage(self.no_stage(name, by_number.is_some())))
    }

    /// Returns the message for a name that no stage has.
    fn no_stage(&self, name: &str, is_number: bool) -> String {
        let shown = crate::sanitize::line(name);
        let course = &self.course;
        let is_named = |broken: &&UnusableContent| broken.answers_to(name);
        if let Some(broken) = course.broken.iter().find(is_named) {
            return format!("{} cannot be used: {}", broken.folder, broken.why);
        }
        if let Some(exercise) = self.exercise(name) {
            let commands = exercise.commands();
            return format!("`{shown}` is an exercise, not a stage; {commands}");
        }
        let looks_like_exercise = name.starts_with(is_kind_letter) && name.len() <= 3;
        if looks_like_exercise && !course.exercises.is_empty() {
            return self.no_exercise(name);
        }
        let ids = course.stages.iter().map(|stage| stage.id.as_str());
        let near = suggestion(if is_number { None } else { close(name, ids) });
        let stages: Vec<String> = course
            .stages
            .iter()
            .map(|stage| format!("{} {}", stage.number, stage.id))
            .collect();
        let known = match stages.join(", ").as_str() {
            "" => "The course has no stage that can be used".to_owned(),
            stages => format!("There are {stages}; `perflings list` shows all names"),
        };
        let problem = match course.problems.first() {
            Some(problem) => format!(". Not everything could be loaded: {problem}"),
            None => String::new(),
        };
        format!("there is no stage `{shown}`{near} {known}{problem}")
    }

    /// Returns the message for a name that no exercise has.
    pub fn no_exercise(&self, name: &str) -> String {
        let labels = self.course.exercises.iter().map(Exercise::label);
        let near = suggestion(close(name, labels));
        let shown = crate::sanitize::line(name);
        format!("there is no exercise `{shown}`{near} `perflings list` shows all names")
    }

    /// Returns the exercise with this label, folder or id: `k01`, `k01-swiglu`, `swiglu`. The id of a stage comes first.
    pub fn exercise(&self, name: &str) -> Option<&Exercise> {
        if self.course.stage_by_id(name).is_some() {
            return None;
        }
        self.course
            .exercises
            .iter()
            .find(|exercise| exercise.answers_to(name))
    }

    /// Returns the learner's own folder of an exercise: below the current folder in a copy made by `init`, or in the state folder. If a
    /// course folder was named, the learner's copies come before its starters.
    pub fn exercise_folder(&self, exercise: &Exercise) -> Option<PathBuf> {
        let in_workspace = self.folder_in_workspace(exercise);
        match &self.source {
            CourseFiles::Folder { root, .. } => {
                in_workspace.or_else(|| folder_without_links(root, exercise))
            }
            CourseFiles::Embedded => {
                folder_without_links(Path::new("."), exercise).or(in_workspace)
            }
        }
    }

    /// Returns the folder of an exercise in the workspace, where learners may link what they like; `None` if one of its files is missing.
    fn folder_in_workspace(&self, exercise: &Exercise) -> Option<PathBuf> {
        let folder = self.workspace().ok()?.folder(&exercise.id);
        let is_there = |file: &&StageFile| files::is_taken(&folder.join(&file.name));
        exercise.files().iter().all(is_there).then_some(folder)
    }

    /// Returns the path of the learner's own copy of one file of an exercise; `None` if there is none.
    pub fn exercise_file(&self, exercise: &Exercise, name: &str) -> Option<PathBuf> {
        Some(self.exercise_folder(exercise)?.join(name))
    }

    /// Returns the folder of the learner's files.
    ///
    /// # Errors
    /// If the system has no place for a program's state.
    pub fn workspace(&self) -> Result<Workspace> {
        let state = self
            .state
            .as_ref()
            .context("this system names no folder for a program's state; set XDG_STATE_HOME")?;
        Ok(Workspace::new(state))
    }

    /// Returns the folder of an exercise in a copy of the course that `init` made, in which the learner may edit it as well; `None` for the
    /// course inside the program.
    pub fn folder_in_copy(&self, exercise: &Exercise) -> Option<PathBuf> {
        match &self.source {
            CourseFiles::Embedded => None,
            CourseFiles::Folder { root, .. } => Some(root.join(&exercise.path)),
        }
    }

    /// Returns the learner's configuration of a stage with its path: their copy of the file, or the starter that they edited in place.
    /// If they edited neither, it is the starter of the course, without a path.
    pub fn learner_config(
        &self,
        stage: &Stage,
        preset: Option<Preset>,
    ) -> Result<(NamedConfig, Option<PathBuf>)> {
        let work = self.workspace().ok();
        let copy = work.and_then(|work| work.existing_config(stage));
        let (path, mut config) = match (copy, self.edits.get(&stage.id)) {
            (Some(path), _) => (path.clone(), load(&path)?),
            (None, Some(edit)) => (edit.path.clone(), edit.config.clone()),
            (None, None) => return Ok((NamedConfig::broken(stage, preset), None)),
        };
        if let Some(preset) = preset {
            config = at_preset(&config, preset);
        }
        let custom = NamedConfig::of_stage(stage, "custom", config);
        Ok((custom, Some(path)))
    }

    /// Restores the starter of a stage. Files that differ from it are kept under other names, which are returned.
    pub fn reset(&self, stage: &Stage) -> Result<Vec<PathBuf>> {
        let mut kept = Vec::from_iter(self.workspace()?.reset(stage)?);
        if let Some(edit) = self.edits.get(&stage.id) {
            kept.extend(workspace::restore(&edit.path, &edit.original)?);
        }
        Ok(kept)
    }
}

/// Returns the folder of an exercise in the copy of the course at `root`; `None` if one of its files is missing, or is a link that leads out
/// of the copy.
fn folder_without_links(root: &Path, exercise: &Exercise) -> Option<PathBuf> {
    let folder = Path::new(&exercise.path);
    let is_inside = |file: &&StageFile| within(root, &folder.join(&file.name)).is_ok();
    let path = root.join(folder);
    let shown = path.strip_prefix(".").unwrap_or(&path).to_owned();
    exercise.files().iter().all(is_inside).then_some(shown)
}

/// Returns the end of a sentence about a name that does not exist: a full stop, or the name that may have been meant.
fn suggestion(near: Option<&str>) -> String {
    near.map_or_else(
        || ".".to_owned(),
        |near| format!("; did you mean `{near}`?"),
    )
}
