//! Exercises beside the stages. A kind of exercise is one row of [`KINDS`] and what reads its `exercise.toml`. What an exercise
//! has its learner do is plain data, its [`ExerciseWork`]: the rest of the program asks for the kernels, the runs or the recording of
//! an exercise and knows no kind.

pub mod config;
mod detective;
mod folder;
pub mod kernel;
mod read;

pub use config::{ConfigCheck, ConfigMetric, Configs, RankedChange, Sweep, apply};
pub use detective::Detective;
pub use kernel::{DrawnSizes, Kernel, Kernels, WrongSolution};
pub(super) use read::two_digits;
pub use read::{KINDS, is_label, names_exercise, read};

use serde::Deserialize;

use super::{Question, StageFile, StageLevel};
use crate::course::config_file::FileError;
use folder::ExerciseFolder;

/// A kind of exercise.
pub struct ExerciseKind {
    /// Name in `exercise.toml`.
    pub name: &'static str,
    /// First letter of its folders.
    pub letter: char,
    /// Words before the size of the task.
    pub asks: &'static str,
    read: fn(&ExerciseFolder<'_>) -> Result<ExerciseWork, FileError>,
}

/// One exercise, as `exercise.toml` gives it in every kind.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Exercise {
    /// Name of its kind, and the kind's words before the size of the task.
    #[serde(skip)]
    pub kind: &'static str,
    #[serde(skip)]
    pub asks: &'static str,
    /// Key of the learner's progress.
    pub id: String,
    pub title: String,
    #[serde(default = "advanced")]
    pub level: StageLevel,
    /// What to do.
    pub task: String,
    /// `about 3 lines`.
    pub size: String,
    /// Three hints.
    #[serde(default)]
    pub hints: Vec<String>,
    /// Lesson that explains the background.
    pub lesson: Option<String>,
    #[serde(default)]
    pub quiz: Vec<Question>,
    /// Text about the figures of measured runs, shown after the measurement.
    pub debrief: Option<String>,
    // What follows is not in those keys.
    #[serde(skip, default = "unread")]
    pub work: ExerciseWork,
    /// `exercises/k01-swiglu`.
    #[serde(skip)]
    pub path: String,
}

const fn advanced() -> StageLevel {
    StageLevel::Advanced
}

fn unread() -> ExerciseWork {
    ExerciseWork::Kernels(Kernels::default())
}

/// What an exercise has its learner do, with its data. Only this file and `cli/exercise.rs` tell one from another; all else asks for
/// what it needs.
#[derive(Clone, Debug, PartialEq, strum::EnumTryAs)]
pub enum ExerciseWork {
    /// Write kernels that are checked.
    Kernels(Kernels),
    /// Say what runs will show before they are measured.
    Configs(Configs),
    /// Name the fault of a recorded run or a profile.
    Detective(Detective),
}

impl Exercise {
    /// `k01-swiglu`
    pub fn folder(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }

    /// Its short name: `k01`.
    pub fn label(&self) -> &str {
        self.folder().split('-').next().unwrap_or_default()
    }

    /// Whether `name` is the exercise's label, folder or id.
    pub fn answers_to(&self, name: &str) -> bool {
        self.id == name || self.folder() == name || self.label() == name
    }

    /// Which commands take it.
    pub fn commands(&self) -> String {
        let label = self.label();
        match self.detective() {
            Some(detective) => format!(
                "`perflings {} {label}` shows what was recorded, `perflings check {label}` takes the answer",
                detective.command()
            ),
            None => format!(
                "`perflings check {label}` checks it, and the list of stages in the workshop opens it"
            ),
        }
    }

    /// The kernels to write.
    pub fn kernels(&self) -> Option<&Kernels> {
        self.work.try_as_kernels_ref()
    }

    /// The runs to predict.
    pub fn configs(&self) -> Option<&Configs> {
        self.work.try_as_configs_ref()
    }

    /// What was recorded, and the question about it.
    pub fn detective(&self) -> Option<&Detective> {
        self.work.try_as_detective_ref()
    }

    /// The recorded run that is shown in the place of a live one; `perflings open` shows a profile on a screen of its own.
    pub fn recording(&self) -> Option<&Detective> {
        self.detective().filter(|it| it.profile.is_none())
    }

    /// The files that the learner edits.
    pub fn files(&self) -> Vec<&StageFile> {
        match &self.work {
            ExerciseWork::Kernels(kernels) => kernels.kernels.iter().map(|it| &it.file).collect(),
            ExerciseWork::Configs(configs) => vec![&configs.file],
            ExerciseWork::Detective(_) => Vec::new(),
        }
    }

    /// What is wrong with it although it could be read; `toml` names its exercise.toml in messages.
    pub fn problems(&self, toml: &str) -> Vec<FileError> {
        match &self.work {
            ExerciseWork::Kernels(kernels) => kernels.problems(toml),
            ExerciseWork::Configs(_) => Vec::new(),
            ExerciseWork::Detective(detective) => detective.problem().into_iter().collect(),
        }
    }
}
