//! An opened course with the learner's files and progress beside it.

mod edits;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::exercise::KINDS;
use super::named::NamedConfig;
use super::source::within;
use super::text::hash;
use super::workspace::{self, Workspace};
use super::{Course, CourseFiles, Exercise, Stage, at_preset, embedded, save_file};
use crate::course::config_file::{FileError, MAX_BYTES, load, read_text};
use crate::exit::usage;
use crate::files;
use protocol::config::{Preset, close};

use edits::EditedStarter;

/// A loaded course and where its learner's files are.
#[derive(Debug)]
pub struct CourseContext {
    pub course: Course,
    pub source: CourseFiles,
    /// The course's state folder; none where the system has no place for one.
    pub state: Option<PathBuf>,
    /// Starters that the learner edited in a copy of the course, by stage id.
    edits: BTreeMap<String, EditedStarter>,
}

impl CourseContext {
    /// The course as its author sees it: what could not be loaded is in `course.problems`. Without a folder it is the
    /// course inside the program.
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

    /// The same course as its learner sees it: starters and answers that they edited are theirs, not the course's.
    pub fn load(folder: Option<&Path>) -> Result<Self> {
        let mut context = Self::load_as_author(folder)?;
        context.edits = edits::adopt(&mut context.course, &context.source);
        context.compare_copy(Path::new("."));
        Ok(context)
    }

    /// In a folder with a copy of the course, exercises are edited where they are, but the course is the one inside the
    /// program until the copy is named: says so where they differ.
    fn compare_copy(&mut self, folder: &Path) {
        if self.source != CourseFiles::Embedded {
            return;
        }
        for exercise in &self.course.exercises {
            let shown = format!("{}/exercise.toml", exercise.path);
            let path = folder.join(&shown);
            let same =
                |text: String| embedded::text(&shown).is_some_and(|own| hash(&own) == hash(&text));
            if files::is_taken(&path) && !read_text(&path, MAX_BYTES).is_ok_and(same) {
                let what = "is not the one inside the program, which is used; write `--course .` to use this one";
                self.course.problems.push(FileError::new(shown, 0, what));
            }
            for file in exercise.files() {
                let path = format!("{}/{}", exercise.path, file.name);
                let leads = within(folder, Path::new(&path));
                if let Some(what) = leads.err().filter(|_| files::is_taken(&folder.join(&path))) {
                    self.course.problems.push(FileError::new(path, 0, what));
                }
            }
        }
    }

    /// The stage with this number or id.
    pub fn stage(&self, name: &str) -> Result<&Stage> {
        let by_number = name.parse::<u32>().ok();
        let found = match by_number {
            Some(number) => self.course.stage(number),
            None => self.course.stage_by_id(name),
        };
        found.ok_or_else(|| usage(self.no_stage(name, by_number.is_some())))
    }

    /// What to say where no stage has this name.
    fn no_stage(&self, name: &str, is_number: bool) -> String {
        let (shown, stages) = (crate::sanitize::line(name), &self.course.stages);
        if let Some(broken) = self.course.broken.iter().find(|it| it.answers_to(name)) {
            return format!("{} cannot be used: {}", broken.folder, broken.why);
        }
        if let Some(exercise) = self.exercise(name) {
            let commands = exercise.commands();
            return format!("`{shown}` is an exercise, not a stage; {commands}");
        }
        let looks_like = name.starts_with(|it: char| KINDS.iter().any(|row| row.letter == it));
        let looks_like = looks_like && name.len() <= 3;
        if looks_like && !self.course.exercises.is_empty() {
            return self.no_exercise(name);
        }
        let ids = stages.iter().map(|stage| stage.id.as_str());
        let near = meant(close(name, ids).filter(|_| !is_number));
        let all = stages.iter().map(|it| format!("{} {}", it.number, it.id));
        let known = match all.collect::<Vec<_>>().join(", ") {
            none if none.is_empty() => "The course has no stage that can be used".to_owned(),
            all => format!("There are {all}; `perflings list` shows all names"),
        };
        let problem = self
            .course
            .problems
            .first()
            .map(|problem| format!(". Not everything could be loaded: {problem}"));
        let problem = problem.unwrap_or_default();
        format!("there is no stage `{shown}`{near} {known}{problem}")
    }

    /// What to say where no exercise has this name.
    pub fn no_exercise(&self, name: &str) -> String {
        let labels = self.course.exercises.iter().map(Exercise::label);
        let (shown, near) = (crate::sanitize::line(name), meant(close(name, labels)));
        format!("there is no exercise `{shown}`{near} `perflings list` shows all names")
    }

    /// The exercise of this number, folder or id: `k01`, `k01-swiglu`, `swiglu`. A stage's id comes first.
    pub fn exercise(&self, name: &str) -> Option<&Exercise> {
        if self.course.stage_by_id(name).is_some() {
            return None;
        }
        self.course
            .exercises
            .iter()
            .find(|exercise| exercise.answers_to(name))
    }

    /// The learner's own folder of an exercise: below the current one (an `init` copy), or in their state folder. Of a
    /// course folder that was named, the learner's copies come before its starters.
    pub fn exercise_folder(&self, exercise: &Exercise) -> Option<PathBuf> {
        let work = self.workspace().ok().map(|work| work.folder(&exercise.id));
        let files = exercise.files();
        let holds = |folder: &PathBuf| {
            let mut files = files.iter();
            files.all(|file| files::is_taken(&folder.join(&file.name)))
        };
        // No link of a copy leads out of it; what the learner links in their own folder is theirs.
        let of_copy = |root: &Path| {
            let inside = |name: &str| within(root, &Path::new(&exercise.path).join(name)).is_ok();
            let folder = match root == Path::new(".") {
                true => PathBuf::from(&exercise.path),
                false => root.join(&exercise.path),
            };
            let mut files = files.iter();
            files.all(|file| inside(&file.name)).then_some(folder)
        };
        let work = work.filter(holds);
        match &self.source {
            CourseFiles::Folder { root, .. } => work.or_else(|| of_copy(root)),
            CourseFiles::Embedded => of_copy(Path::new(".")).or(work),
        }
    }

    /// The learner's own copy of one file of an exercise.
    pub fn exercise_file(&self, exercise: &Exercise, name: &str) -> Option<PathBuf> {
        Some(self.exercise_folder(exercise)?.join(name))
    }

    /// The learner's files, where there is a place for them.
    pub fn workspace(&self) -> Result<Workspace> {
        let state = self
            .state
            .as_ref()
            .context("this system names no folder for a program's state; set XDG_STATE_HOME")?;
        Ok(Workspace::new(state))
    }

    /// The folder of an exercise in a copy of the course that `init` made: the learner may edit it there as well.
    pub fn copy_of(&self, exercise: &Exercise) -> Option<PathBuf> {
        match &self.source {
            CourseFiles::Embedded => None,
            CourseFiles::Folder { root, .. } => Some(root.join(&exercise.path)),
        }
    }

    /// What the learner has now: their copy of the file, or the starter they edited in place, with its path; else the
    /// stage as shipped.
    pub fn learner(
        &self,
        stage: &Stage,
        preset: Option<Preset>,
    ) -> Result<(NamedConfig, Option<PathBuf>)> {
        let work = self.workspace().ok();
        let copy = work.and_then(|work| work.existing(stage, "config.toml"));
        let (path, mut config) = match (copy, self.edits.get(&stage.id)) {
            (Some(path), _) => (path.clone(), load(&path)?),
            (None, Some(edit)) => (edit.path.clone(), edit.config.clone()),
            (None, None) => return Ok((NamedConfig::broken(stage, preset), None)),
        };
        if let Some(preset) = preset.filter(|preset| *preset != config.preset) {
            config = at_preset(&config, preset);
        }
        Ok((NamedConfig::of(stage, "custom", config), Some(path)))
    }

    /// Puts the stage's files back as they began. Those that differ are kept beside them; the result names those.
    pub fn reset(&self, stage: &Stage) -> Result<Vec<PathBuf>> {
        let mut kept = self.workspace()?.reset(stage)?;
        if let Some(edit) = self.edits.get(&stage.id) {
            kept.extend(workspace::restore(&edit.path, &edit.original)?);
        }
        Ok(kept)
    }
}

/// What follows the name of something that is not there.
fn meant(near: Option<&str>) -> String {
    near.map_or_else(
        || ".".to_owned(),
        |near| format!("; did you mean `{near}`?"),
    )
}
