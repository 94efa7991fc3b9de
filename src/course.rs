//! A course: its stages, lessons and exercises as checked data. A bad file is reported and skipped, and the rest still loads. The folder
//! `exercises/01-broken-init` becomes a [`Stage`], `exercises/k01-swiglu` an [`Exercise`], and `lessons/01-broken-init.md` a [`Lesson`].
//!
//! A course runs no model and opens no terminal: checks read what a run reported, and the screen decides when a text is shown.

pub mod check;
pub mod config_file;
pub mod context;
pub mod embedded;
pub mod exercise;
pub mod formula;
pub mod journey;
pub mod lesson;
mod load;
pub mod metric;
pub mod mystery;
pub mod named;
pub mod placeholder;
pub mod save_file;
pub mod source;
pub mod stage;
pub mod sweep;
pub mod text;
mod toml_file;
pub mod trace_lints;
pub mod validate;
pub mod workspace;

pub use check::Check;
pub use exercise::Exercise;
pub use lesson::{Lesson, LessonSection, SectionKind, TextBlock, TextSpan};
pub use source::CourseFiles;
pub use stage::{
    Beat, BeatChange, Estimate, KernelFigure, PanelPointer, PublishedClaim, Question, Stage,
    StageFile, StageLevel, at_preset,
};

use serde::Deserialize;

use crate::course::config_file::FileError;

/// Everything a learner can go through, in order.
#[derive(Clone, Debug, Default)]
pub struct Course {
    /// The name of the folder with the learner's progress: lower-case letters, digits and `-`.
    pub id: String,
    pub title: String,
    /// The stages, sorted by number.
    pub stages: Vec<Stage>,
    /// The faults of files that could not be loaded, which the screen shows as a card.
    pub problems: Vec<FileError>,
    /// Stages and exercises whose files cannot be used, in the order of their folders.
    pub broken: Vec<UnusableContent>,
    /// The exercises beside the stages.
    pub exercises: Vec<Exercise>,
    /// The words of the lessons, side by side in four dialects.
    pub glossary: Option<Lesson>,
    /// Background texts that belong to no single stage.
    pub readings: Vec<BackgroundText>,
    /// Plans for a class.
    pub agendas: Vec<Agenda>,
}

/// A plan for a class that takes a number of minutes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Agenda {
    pub minutes: u32,
    #[serde(rename = "part")]
    pub parts: Vec<AgendaPart>,
}

/// One part of an agenda.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgendaPart {
    pub minutes: u32,
    /// The content of the part in a few words.
    #[serde(rename = "what")]
    pub topic: String,
    /// The numbers of the stages that are shown.
    #[serde(default)]
    pub stages: Vec<u32>,
}

impl Course {
    /// Returns the stage with this number.
    pub fn stage(&self, number: u32) -> Option<&Stage> {
        self.stages.iter().find(|stage| stage.number == number)
    }

    /// Returns the stage with this id.
    pub fn stage_by_id(&self, id: &str) -> Option<&Stage> {
        self.stages.iter().find(|stage| stage.id == id)
    }

    /// Returns the code that reproduces a stage's fault in PyTorch: the first code block of its page, which is `pytorch-7.md` for stage 7.
    /// `None` if there is no such page, or no code in it.
    pub fn in_pytorch(&self, stage: &Stage) -> Option<&TextBlock> {
        let file = format!("pytorch-{}.md", stage.number);
        let page = self.readings.iter().find(|page| page.file == file)?;
        page.lesson
            .sections
            .iter()
            .flat_map(|section| &section.blocks)
            .find(|block| matches!(block, TextBlock::Code { .. }))
    }

    /// Returns the exercise with this id.
    pub fn exercise_by_id(&self, id: &str) -> Option<&Exercise> {
        self.exercises.iter().find(|exercise| exercise.id == id)
    }
}

/// A stage or an exercise whose files cannot be used. Lists show it as unusable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnusableContent {
    /// The name of the folder: `k01-swiglu`.
    pub folder: String,
    /// The first problem.
    pub why: FileError,
}

impl UnusableContent {
    /// Returns the short name: `k01`, or the number of a stage.
    pub fn label(&self) -> &str {
        let label = self.folder.split('-').next().unwrap_or_default();
        label.trim_start_matches('0')
    }

    /// Returns true if `name` is the label, the folder, or the part of the folder's name after the label.
    pub fn answers_to(&self, name: &str) -> bool {
        let id = self.folder.split_once('-').map(|(_, id)| id);
        [Some(self.label()), Some(&self.folder), id].contains(&Some(name))
    }
}

/// A text beside the stages.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BackgroundText {
    /// The name of the file, which links use: `counting.md`.
    pub file: String,
    pub title: String,
    pub lesson: Lesson,
}
