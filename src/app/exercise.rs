//! The state of the exercises in this session: answers, checks, measurements, and the learner's kernel in the model. The modules below
//! change it: `visit` opens and leaves an exercise, `work` carries out the learner's actions, `news` takes the results of checks, and
//! `measure` measures a config exercise.

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
use super::learner::LearnerState;
use super::{Bench, View};
use crate::course::Exercise;
use crate::course::save_file::StageProgress;
use crate::judge::kernel::{CardLine, KernelChecking, KernelVerdict};
use crate::lanes::KernelLanes;
use protocol::{KernelReport, KernelResult, KernelSwap};

/// The exercises of the course.
#[derive(Clone, Debug, Default)]
pub struct Exercises {
    /// The state of each exercise that was touched in this session, by its id.
    states: BTreeMap<String, ExerciseState>,
    /// The card that shows the lanes of a workgroup.
    pub lanes: LaneView,
}

/// The other parts of `App` that an exercise reads.
pub(super) struct Context<'a> {
    pub exercise: &'a Exercise,
    /// The index of the exercise in the course.
    pub at: usize,
    /// The exercise is on the screen instead of the stage's text.
    pub is_open: bool,
    pub learner: &'a LearnerState,
    pub bench: &'a Bench,
    pub devices: &'a Devices,
    pub view: &'a View,
    /// In milliseconds since the program began.
    pub now_ms: u64,
}

/// The state of one exercise.
#[derive(Clone, Debug, Default)]
pub struct ExerciseState {
    /// The paths of the learner's files.
    pub files: Vec<String>,
    pub checking: Option<Checking>,
    /// The result of the last check.
    pub report: Option<KernelVerdict>,
    pub in_model: InModel,
    /// The page begins with the task and the hints instead of the last check, until the learner saves.
    pub text_first: bool,
    /// The learner asked for the solution in this session.
    pub solution: bool,
    /// The answers given so far to the question about the fault in the recording.
    pub quiz: Vec<usize>,
    /// The learner's answers in a config exercise.
    pub answer: AnswerFile,
    pub draft: AnswerDraft,
    pub measuring: Option<Measuring>,
    pub measured: Option<Measurement>,
    /// The stage's run was paused for this exercise and has to be resumed afterwards.
    pub holds_run: bool,
    /// The kernels of the last check that passed.
    good: Option<KernelSwap>,
    /// The facts of the last check that passed. The next check compares its times with them.
    accepted: Option<KernelReport>,
}

/// A check in progress.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checking {
    /// The lines of the card so far.
    pub card: Vec<CardLine>,
    /// The present part of the check, in words.
    pub now: String,
    /// The time when the check began, in milliseconds since the program began.
    pub since_ms: u64,
}

/// The use of the learner's kernel in the model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum InModel {
    #[default]
    No,
    /// The engine was asked to use the kernel from the next step on.
    Asked,
    /// The model has used the kernel since this step. `None` if the run had made no step.
    Since(Option<u64>),
    /// The kernel passed its check, but the model does not use it. The text is the reason.
    Not(String),
}

/// News about an exercise from the shell.
#[derive(Clone, Debug)]
pub enum ExerciseNews {
    /// The paths of the learner's files.
    Files(Vec<String>),
    /// A check begins, because the exercise was opened or a file saved.
    Begun,
    Progress(Box<KernelChecking>),
    Checked(Box<KernelVerdict>),
    /// The recorded lanes of a workgroup, or why they cannot be recorded.
    Lanes(Result<Arc<KernelLanes>, String>),
    /// The content of the learner's answer file. `saved` is true if the learner has just saved it.
    Answers {
        answer: AnswerFile,
        saved: bool,
    },
    /// The progress of a measurement.
    Measuring(Box<Sweep>),
    Measured(Box<Measurement>),
}

impl ExerciseState {
    /// Returns the result of the last check for each file. Empty before the first check.
    pub fn checked_files(&self) -> &[KernelResult] {
        let report = self.report.as_ref();
        report.map_or(&[], |report| &report.facts.files)
    }
}

impl Context<'_> {
    fn progress(&self) -> StageProgress {
        self.learner.progress.stage(&self.exercise.id)
    }
}

impl Exercises {
    /// Returns the state of an exercise. `None` if nothing has happened to it in this session.
    pub fn state(&self, exercise: &Exercise) -> Option<&ExerciseState> {
        self.states.get(&exercise.id)
    }

    /// Returns the state of an exercise, which it creates if there is none.
    pub(super) fn state_mut(&mut self, exercise: &Exercise) -> &mut ExerciseState {
        self.states.entry(exercise.id.clone()).or_default()
    }
}
