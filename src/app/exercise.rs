//! Exercises on the screen: which one is open, what its last check found, whether its kernel computes for the model.
//! It checks nothing and reads no file: effects ask for that, messages bring the answers.

mod measure;
pub mod measuring;
mod news;
mod pick;
mod visit;
mod work;

use std::collections::BTreeMap;

pub use pick::{Choice, Draft};

use super::App;
use measuring::{Answer, Measured, Measuring, Sweep};

use crate::course::Exercise;
use crate::course::Question;
use crate::course::exercise::config::ANSWERS;
use crate::course::exercise::{Body, Detective};
use crate::course::progress::{StageProgress, State};
use crate::judge::kernel::{CardLine, KernelChecking, KernelVerdict};
use crate::protocol::KernelSwap;

/// The exercises of this sitting.
#[derive(Clone, Debug, Default)]
pub struct Exercises {
    /// Index into the course's exercises.
    pub open: Option<usize>,
    /// Hints on screen, of the open one.
    pub hints: u32,
    /// The task or a hint is what comes next, not the last check: until the learner saves.
    pub text_first: bool,
    /// The panels show the recorded run of the open one; the engine stands still.
    pub watching: bool,
    /// The engine ended meanwhile.
    engine_gone: bool,
    /// What was done and found, by the exercise's id.
    desks: BTreeMap<String, Desk>,
}

/// What is known of one exercise.
#[derive(Clone, Debug, Default)]
pub struct Desk {
    /// Where the learner's files are.
    pub files: Vec<String>,
    pub checking: Option<Checking>,
    /// The last check.
    pub report: Option<KernelVerdict>,
    pub in_model: InModel,
    /// The solution was asked for in this sitting.
    pub solution: bool,
    /// Answers to its questions.
    pub quiz: Vec<usize>,
    /// What the learner expects, in a config exercise.
    pub answer: Answer,
    pub draft: Draft,
    pub measuring: Option<Measuring>,
    pub measured: Option<Measured>,
    /// Kernels of the last check that passed.
    good: Option<KernelSwap>,
}

/// A check in progress.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checking {
    pub card: Vec<CardLine>,
    pub now: String,
    pub since_ms: u64,
}

/// Whether the learner's kernel computes for the model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum InModel {
    #[default]
    No,
    /// From the next step on.
    Asked,
    /// Since this step.
    Since(Option<u64>),
    /// It passed and does not compute, for this reason.
    Not(String),
}

/// What the world says about an exercise.
#[derive(Clone, Debug)]
pub enum ExerciseNews {
    /// Where its files are.
    Files(Vec<String>),
    /// A check begins: the exercise was opened or a file saved.
    Begun,
    Progress(Box<KernelChecking>),
    Checked(Box<KernelVerdict>),
    /// What the learner's answers say, and whether they were saved just now.
    Answers {
        answer: Answer,
        saved: bool,
    },
    /// How far a measurement has come.
    Measuring(Box<Sweep>),
    Measured(Box<Measured>),
}

impl Exercises {
    /// What is known of an exercise.
    pub fn desk(&self, exercise: &Exercise) -> Option<&Desk> {
        self.desks.get(&exercise.id)
    }

    fn desk_mut(&mut self, exercise: &Exercise) -> &mut Desk {
        self.desks.entry(exercise.id.clone()).or_default()
    }
}

impl App {
    /// The open exercise.
    pub fn exercise(&self) -> Option<&Exercise> {
        self.course.exercises.get(self.exercises.open?)
    }

    /// What the learner did in an exercise so far.
    pub fn exercise_progress(&self, exercise: &Exercise) -> StageProgress {
        self.study.progress.stage(&exercise.id)
    }

    /// Whether its solution may be shown without asking.
    pub fn solved(&self, exercise: &Exercise) -> bool {
        let shown = self
            .exercises
            .desk(exercise)
            .is_some_and(|desk| desk.solution);
        shown || self.exercise_progress(exercise).state == State::Passed
    }

    /// Whether a config exercise was measured, in this sitting or an earlier one.
    pub fn looked_at(&self, exercise: &Exercise) -> bool {
        let desk = self.exercises.desk(exercise);
        let found = desk.and_then(|desk| desk.measured.as_ref());
        let here = found.is_some_and(|found| found.failed.is_none());
        let busy = desk.is_some_and(|desk| desk.measuring.is_some());
        !busy && (here || self.solved(exercise))
    }

    /// The question that waits for an answer: the stage's, or that of the open exercise.
    pub fn question(&self) -> Option<&Question> {
        let Some(exercise) = self.exercise() else {
            let (_, question) = self.study.question(self.stage()?)?;
            return Some(question);
        };
        // A kernel's questions look back at it, and those about runs at what was measured.
        let waits = match &exercise.body {
            Body::Kernel(_) => !self.solved(exercise),
            Body::Config(_) => !self.looked_at(exercise),
            Body::Detective(_) => false,
        };
        if waits {
            return None;
        }
        let answered = self
            .exercises
            .desk(exercise)
            .map_or(0, |desk| desk.quiz.len());
        match &exercise.body {
            Body::Detective(detective) => self.riddle().then_some(&detective.question),
            _ => exercise.quiz.get(answered),
        }
    }

    /// Whether a recorded run is looked at whose fault is still to be named: rightly, or wrongly twice.
    pub fn riddle(&self) -> bool {
        let Some((exercise, detective)) = self.exercise().zip(self.detective()) else {
            return self.recording.as_ref().is_some_and(|it| it.riddle);
        };
        let desk = self.exercises.desk(exercise);
        let given = desk.map_or(&[][..], |desk| &desk.quiz);
        given.len() < 2 && given.last() != Some(&detective.question.answer)
    }

    /// The recorded run that is looked at.
    pub fn detective(&self) -> Option<&Detective> {
        match &self.exercise()?.body {
            Body::Detective(detective) => Some(detective),
            _ => None,
        }
    }

    /// The check of the open exercise that is in progress.
    pub fn checking(&self) -> Option<&Checking> {
        self.exercises.desk(self.exercise()?)?.checking.as_ref()
    }

    /// The file of the open exercise to look at next, and the line: where the last check found something.
    pub fn exercise_file(&self) -> Option<(String, Option<u32>)> {
        let exercise = self.exercise()?;
        if exercise.configs().is_some() {
            return Some((ANSWERS.to_owned(), None));
        }
        let kernels = exercise.kernels()?;
        let report = self
            .exercises
            .desk(exercise)
            .and_then(|desk| desk.report.as_ref());
        let results = report.map_or(&[][..], |report| &report.facts.files);
        let wrong = results
            .iter()
            .find(|result| result.error.is_some() || result.fault.is_some());
        let line = wrong
            .and_then(|result| result.error.as_ref())
            .map(|error| error.line)
            .filter(|line| *line > 0);
        match wrong {
            Some(result) => Some((result.name.clone(), line)),
            None => Some((kernels.kernels.first()?.file.name.clone(), None)),
        }
    }
}
