//! The course a command works on, with the learner's files and progress beside it.

use std::path::PathBuf;

use anyhow::{Context, Result};

use super::CourseArgs;
use super::out::{notice, usage};
use super::variant::Subject;
use super::workspace::Workspace;
use crate::config::file::load;
use crate::config::{Preset, RunConfig, nearest};
use crate::course::{Course, Source, Stage, progress};

/// A loaded course and where its learner's things are.
#[derive(Debug)]
pub struct Shelf {
    pub course: Course,
    pub source: Source,
    /// The course's state folder; none where the system has no place for one.
    pub state: Option<PathBuf>,
}

impl Shelf {
    /// Loads the course that the command line names; the one inside the program without `--course`. What could not
    /// be loaded is in `course.problems`.
    pub fn load(args: &CourseArgs) -> Result<Self> {
        let source = match &args.course {
            Some(folder) => Source::folder(folder)?,
            None => Source::Embedded,
        };
        let course = Course::open(&source, args.lang.as_deref().unwrap_or("en"));
        let state = progress::directory(&course.id);
        Ok(Self {
            course,
            source,
            state,
        })
    }

    /// As `load`; names what could not be loaded on stderr.
    pub fn open(args: &CourseArgs) -> Result<Self> {
        let shelf = Self::load(args)?;
        shelf
            .course
            .problems
            .iter()
            .for_each(|problem| notice(&problem.to_string()));
        Ok(shelf)
    }

    #[cfg(test)]
    pub fn empty() -> Self {
        Self {
            course: Course::default(),
            source: Source::Embedded,
            state: None,
        }
    }

    /// The stage with this number or id.
    pub fn stage(&self, name: &str) -> Result<&Stage> {
        let stages = &self.course.stages;
        let by_number = name.parse::<u32>().ok();
        let found = match by_number {
            Some(number) => self.course.stage(number),
            None => self.course.stage_by_id(name),
        };
        found.ok_or_else(|| {
            let all: Vec<String> = stages
                .iter()
                .map(|s| format!("{} {}", s.number, s.id))
                .collect();
            let near = match by_number {
                None if !stages.is_empty() => {
                    format!(
                        "; did you mean `{}`?",
                        nearest(name, stages.iter().map(|s| s.id.as_str()))
                    )
                }
                _ => ".".to_owned(),
            };
            let known = if all.is_empty() {
                "The course has no stage that can be used".to_owned()
            } else {
                format!("There are {}", all.join(", "))
            };
            let broken = self
                .course
                .problems
                .first()
                .map(|p| format!(". Not everything could be loaded: {p}"))
                .unwrap_or_default();
            usage(format!(
                "there is no stage `{}`{near} {known}{broken}",
                name.escape_debug()
            ))
        })
    }

    /// The learner's files, where there is a place for them.
    pub fn workspace(&self) -> Result<Workspace> {
        let state = self
            .state
            .as_ref()
            .context("this system names no folder for a program's state; set XDG_STATE_HOME")?;
        Ok(Workspace::new(state))
    }

    /// What the learner has now: their file if there is one, else the stage as shipped.
    pub fn learner(&self, stage: &Stage, preset: Option<Preset>) -> Result<Subject> {
        let mine = self
            .workspace()
            .ok()
            .and_then(|work| work.existing(stage, "config.toml"));
        let mut config = match &mine {
            Some(path) => load(path)?,
            None if self.is_edited(stage) => stage.broken.clone(),
            None => return Ok(Subject::broken(stage, preset)),
        };
        if let Some(path) = &mine {
            notice(&format!(
                "stage {} with your {}",
                stage.number,
                path.display()
            ));
        }
        if let Some(preset) = preset.filter(|preset| *preset != config.preset) {
            config.set_preset(preset);
        }
        Ok(Subject::of(stage, "custom", config))
    }

    /// The configuration the stage began with. In a copy made by `init` the learner may have edited the starter
    /// itself; then the one inside the program is the beginning.
    pub fn starter(&self, stage: &Stage) -> RunConfig {
        self.original(stage).unwrap_or_else(|| stage.broken.clone())
    }

    fn is_edited(&self, stage: &Stage) -> bool {
        self.original(stage)
            .is_some_and(|original| original != stage.broken)
    }

    fn original(&self, stage: &Stage) -> Option<RunConfig> {
        if self.source == Source::Embedded {
            return None;
        }
        let builtin = Course::builtin("en");
        (builtin.id == self.course.id)
            .then(|| builtin.stage_by_id(&stage.id).map(|s| s.broken.clone()))
            .flatten()
    }
}
