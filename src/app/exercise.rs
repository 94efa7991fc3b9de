//! The state of the exercises in this session: answers, checks, measurements, and whether the model uses a learner's kernel.
//! Plain data; the files below change it.

mod measure;
pub mod measuring;
mod news;
mod visit;
mod work;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use measuring::{AnswerChoice, AnswerDraft};
use measuring::{AnswerFile, Measurement, Measuring, Sweep};

use super::devices::Devices;
use super::lane_view::LaneView;
use super::study::Study;
use super::{Bench, View};
use crate::course::Exercise;
use crate::course::save_file::StageProgress;
use crate::judge::kernel::{CardLine, KernelChecking, KernelVerdict};
use crate::lanes::KernelLanes;
use protocol::{KernelReport, KernelResult, KernelSwap};

/// The exercises of the course.
#[derive(Clone, Debug, Default)]
pub struct Exercises {
    /// What is known of each, by its id.
    states: BTreeMap<String, ExerciseState>,
    /// The card about the lanes of a workgroup.
    pub lanes: LaneView,
}

/// What an exercise reads of other parts.
pub(super) struct Context<'a> {
    pub exercise: &'a Exercise,
    /// Its place in the course.
    pub at: usize,
    /// It stands in the place of the stage's text.
    pub is_open: bool,
    pub study: &'a Study,
    pub bench: &'a Bench,
    pub devices: &'a Devices,
    pub view: &'a View,
    /// In milliseconds since the program began.
    pub now_ms: u64,
}

/// The state of one exercise.
#[derive(Clone, Debug, Default)]
pub struct ExerciseState {
    /// Where the learner's files are.
    pub files: Vec<String>,
    pub checking: Option<Checking>,
    /// The last check.
    pub report: Option<KernelVerdict>,
    pub in_model: InModel,
    /// The task or a hint comes first on the page, not the last check: until the learner saves.
    pub text_first: bool,
    /// The solution was asked for in this session.
    pub solution: bool,
    /// The answers given to what the fault of its recording is.
    pub quiz: Vec<usize>,
    /// What the learner expects, in a config exercise.
    pub answer: AnswerFile,
    pub draft: AnswerDraft,
    pub measuring: Option<Measuring>,
    pub measured: Option<Measurement>,
    /// The stage's run was paused for this exercise and goes on afterwards.
    pub holds_run: bool,
    /// Kernels of the last check that passed.
    good: Option<KernelSwap>,
    /// The last check that passed, to set its times beside those of the next one.
    accepted: Option<KernelReport>,
}

/// A check in progress.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checking {
    pub card: Vec<CardLine>,
    pub now: String,
    pub since_ms: u64,
}

/// Whether the model computes with the learner's kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum InModel {
    #[default]
    No,
    /// From the next step on.
    Asked,
    /// Since this step.
    Since(Option<u64>),
    /// It passed, but the model does not use it, for this reason.
    Not(String),
}

/// An event about an exercise that happened outside the screen.
#[derive(Clone, Debug)]
pub enum ExerciseNews {
    /// Where its files are.
    Files(Vec<String>),
    /// A check begins: the exercise was opened or a file saved.
    Begun,
    Progress(Box<KernelChecking>),
    Checked(Box<KernelVerdict>),
    /// What the lanes of a workgroup do, or why that cannot be seen.
    Lanes(Result<Arc<KernelLanes>, String>),
    /// What the learner's answers say, and whether they were saved just now.
    Answers {
        answer: AnswerFile,
        saved: bool,
    },
    /// How far a measurement has come.
    Measuring(Box<Sweep>),
    Measured(Box<Measurement>),
}

impl ExerciseState {
    /// What the last check found in each file.
    pub fn checked_files(&self) -> &[KernelResult] {
        let report = self.report.as_ref();
        report.map_or(&[], |report| &report.facts.files)
    }
}

impl Context<'_> {
    fn progress(&self) -> StageProgress {
        self.study.progress.stage(&self.exercise.id)
    }
}

impl Exercises {
    /// What is known of an exercise.
    pub fn of(&self, exercise: &Exercise) -> Option<&ExerciseState> {
        self.states.get(&exercise.id)
    }

    /// The same, to be changed.
    pub(super) fn of_mut(&mut self, exercise: &Exercise) -> &mut ExerciseState {
        self.states.entry(exercise.id.clone()).or_default()
    }
}
