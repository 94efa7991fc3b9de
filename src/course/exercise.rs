//! Exercises beside the stages. A kind of exercise is one row of [`KINDS`] and a function that reads its `exercise.toml`. The task of an
//! exercise is plain data, its [`ExerciseWork`]. The rest of the program asks for the kernels, the runs or the recording of an exercise,
//! and does not know its kind.

pub mod config;
mod detective;
mod folder;
pub mod kernel;
mod read;

pub use config::{ConfigCheck, ConfigMetric, Configs, RankedChange, Sweep, apply};
pub use detective::Detective;
pub use kernel::{DrawnSizes, Kernel, Kernels, WrongSolution};
pub use read::{KINDS, is_label, names_exercise, read};
pub(super) use read::{is_kind_letter, two_digits};

use serde::Deserialize;

use super::{Question, StageFile, StageLevel};
use crate::course::config_file::FileError;
use folder::ExerciseFolder;

/// A kind of exercise.
pub struct ExerciseKind {
    /// The name in `exercise.toml`.
    pub name: &'static str,
    /// The first letter of its folders.
    pub letter: char,
    read: ReadWork,
}

/// A function that reads the task of an exercise from its folder.
type ReadWork = fn(&ExerciseFolder<'_>) -> Result<ExerciseWork, FileError>;

/// One exercise, with the keys that `exercise.toml` has in every kind.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Exercise {
    /// The name of its kind.
    pub kind: String,
    /// The key of the learner's progress.
    pub id: String,
    pub title: String,
    #[serde(default = "advanced")]
    pub level: StageLevel,
    /// The task in a few sentences.
    pub task: String,
    /// The size of the task: `about 3 lines`.
    pub size: String,
    /// Three hints.
    #[serde(default)]
    pub hints: Vec<String>,
    /// The lesson that explains the background.
    pub lesson: Option<String>,
    #[serde(default)]
    pub quiz: Vec<Question>,
    /// A text about the figures of measured runs, shown after the measurement.
    pub debrief: Option<String>,
    // The fields below are not keys of the file.
    /// The task, with the data that only exercises of its kind have.
    #[serde(skip, default = "unread")]
    pub work: ExerciseWork,
    /// The folder: `exercises/k01-swiglu`.
    #[serde(skip)]
    pub path: String,
}

const fn advanced() -> StageLevel {
    StageLevel::Advanced
}

fn unread() -> ExerciseWork {
    ExerciseWork::Kernels(Kernels::default())
}

/// The task of an exercise, with its data. Only this file and `cli/exercise.rs` distinguish the kinds.
#[derive(Clone, Debug, PartialEq, strum::EnumTryAs)]
pub enum ExerciseWork {
    /// The learner writes kernels, which are checked.
    Kernels(Kernels),
    /// The learner predicts what runs will show, before they are measured.
    Configs(Configs),
    /// The learner names the fault of a recorded run or a profile.
    Detective(Detective),
}

impl Exercise {
    /// Returns the name of the folder: `k01-swiglu`.
    pub fn folder(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }

    /// Returns the short name: `k01`.
    pub fn label(&self) -> &str {
        self.folder().split('-').next().unwrap_or_default()
    }

    /// Returns true if `name` is the exercise's label, folder or id.
    pub fn answers_to(&self, name: &str) -> bool {
        self.id == name || self.folder() == name || self.label() == name
    }

    /// Returns a sentence about the commands for this exercise.
    pub fn commands(&self) -> String {
        let label = self.label();
        match self.detective() {
            Some(detective) => format!(
                "`perflings {} {label}` shows what was recorded, \
                 `perflings check {label}` takes the answer",
                detective.command()
            ),
            None => format!(
                "`perflings check {label}` checks it, \
                 and the list of stages in the workshop opens it"
            ),
        }
    }

    /// Returns the words that the screen writes before the size of the task.
    pub const fn asks(&self) -> &'static str {
        match self.work {
            ExerciseWork::Kernels(_) => "To write: ",
            ExerciseWork::Configs(_) | ExerciseWork::Detective(_) => "To answer: ",
        }
    }

    /// Returns the kernels to write; `None` for other kinds.
    pub fn kernels(&self) -> Option<&Kernels> {
        self.work.try_as_kernels_ref()
    }

    /// Returns the runs to predict; `None` for other kinds.
    pub fn configs(&self) -> Option<&Configs> {
        self.work.try_as_configs_ref()
    }

    /// Returns the recorded run or profile, and the question about it; `None` for other kinds.
    pub fn detective(&self) -> Option<&Detective> {
        self.work.try_as_detective_ref()
    }

    /// Returns the recorded run that is shown instead of a live one. It is `None` for a profile, which `perflings open` shows on a screen
    /// of its own.
    pub fn recording(&self) -> Option<&Detective> {
        let detective = self.detective()?;
        detective.profile.is_none().then_some(detective)
    }

    /// Returns the files that the learner edits.
    pub fn files(&self) -> Vec<&StageFile> {
        match &self.work {
            ExerciseWork::Kernels(work) => work.kernels.iter().map(|kernel| &kernel.file).collect(),
            ExerciseWork::Configs(configs) => vec![&configs.file],
            ExerciseWork::Detective(_) => Vec::new(),
        }
    }

    /// Returns the faults that do not keep an exercise from being read. `toml` is the name of its exercise.toml in messages.
    pub fn problems(&self, toml: &str) -> Vec<FileError> {
        match &self.work {
            ExerciseWork::Kernels(kernels) => kernels.problems(toml),
            ExerciseWork::Configs(_) => Vec::new(),
            ExerciseWork::Detective(detective) => detective.problem().into_iter().collect(),
        }
    }
}
