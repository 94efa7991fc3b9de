//! Exercises on the screen: which one is open, what its last check found, whether its kernel computes for the model.
//! It checks nothing and reads no file: effects ask for that, messages bring the answers.

mod news;

use std::collections::BTreeMap;
use std::sync::Arc;

use super::source::FromEngine;
use super::{App, Effect, Panel, Recording, Run, RunState};
use crate::course::Exercise;
use crate::course::exercise::{Body, Detective};
use crate::course::progress::{Prediction, StageProgress, State};
use crate::course::{Course, Question};
use crate::protocol::{CardLine, Command, KernelProgress, KernelReport, KernelSwap};

/// The exercises of this sitting.
#[derive(Clone, Debug, Default)]
pub struct Exercises {
    /// Index into the course's exercises.
    pub open: Option<usize>,
    /// Hints on screen, of the open one.
    pub hints: u32,
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
    pub report: Option<KernelReport>,
    pub in_model: InModel,
    /// The solution was asked for in this sitting.
    pub solution: bool,
    /// Answers to its questions.
    pub quiz: Vec<usize>,
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
    Progress(Box<KernelProgress>),
    Checked(Box<KernelReport>),
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

    /// The question that waits for an answer: the stage's, or that of the open exercise.
    pub fn question(&self) -> Option<&Question> {
        let Some(exercise) = self.exercise() else {
            let (_, question) = self.study.question(self.stage()?)?;
            return Some(question);
        };
        // A kernel's questions look back at it.
        if exercise.kernels().is_some() && !self.solved(exercise) {
            return None;
        }
        let answered = self
            .exercises
            .desk(exercise)
            .map_or(0, |desk| desk.quiz.len());
        match &exercise.body {
            Body::Detective(detective) => (answered == 0).then_some(&detective.question),
            _ => exercise.quiz.get(answered),
        }
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
        let kernels = exercise.kernels()?;
        let report = self
            .exercises
            .desk(exercise)
            .and_then(|desk| desk.report.as_ref());
        let results = report.map_or(&[][..], |report| &report.files);
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

    /// Opens an exercise: its text takes the lesson's place while the run goes on.
    pub(super) fn open_exercise(&mut self, at: usize) -> Vec<Effect> {
        let course = Arc::clone(&self.course);
        let Some(exercise) = course.exercises.get(at) else {
            return Vec::new();
        };
        if self.recording.is_some() && !self.exercises.watching {
            self.tell("This is a recording: exercises need a live run", false);
            return Vec::new();
        }
        self.view.overlay = None;
        if self.exercises.open == Some(at) {
            self.show_text();
            return Vec::new();
        }
        let mut effects = self.leave_exercise();
        self.show_text();
        self.exercises.open = Some(at);
        let known = self.study.progress.stages.entry(exercise.id.clone());
        let known = known.or_default();
        known.state = known.state.max(State::Seen);
        self.exercises.hints = known.hints.min(exercise.hints.len() as u32);
        effects.push(self.save_exercise(exercise));
        if exercise.kernels().is_some() {
            effects.push(Effect::OpenExercise {
                exercise: exercise.id.clone(),
                device: self.devices.for_kernels().to_owned(),
            });
        }
        if let Body::Detective(detective) = &exercise.body {
            effects.extend(self.watch(exercise, detective));
        }
        effects
    }

    /// Puts a recorded run in the place of the live one, which stops.
    fn watch(&mut self, exercise: &Exercise, detective: &Detective) -> Vec<Effect> {
        (self.exercises.watching, self.exercises.engine_gone) = (true, false);
        self.recording = Some(Recording {
            file: detective.file.clone(),
            device: detective.device.clone(),
            date: detective.date.clone(),
            paused: false,
            speed: 1.0,
        });
        self.run = Run {
            state: RunState::Starting,
            asked_ms: self.now_ms,
            ..Run::default()
        };
        (self.study.pair, self.study.report) = (None, None);
        self.exercises.desk_mut(exercise).quiz.clear();
        vec![
            Effect::Send(Command::Stop),
            Effect::ShowRecording {
                exercise: exercise.id.clone(),
            },
        ]
    }

    /// Back from a recorded run: the stage runs again, from its first step.
    fn unwatch(&mut self) -> Vec<Effect> {
        if !std::mem::take(&mut self.exercises.watching) {
            return Vec::new();
        }
        (self.recording, self.notice) = (None, None);
        self.run = Run::default();
        let mut effects = vec![Effect::HideRecording];
        if std::mem::take(&mut self.exercises.engine_gone) {
            effects.push(Effect::Restart);
        }
        let run = self
            .stage()
            .map(|stage| super::spec(stage, "broken", self.preset));
        effects.extend(run.into_iter().flat_map(|run| self.start(run)));
        effects
    }

    /// What the engine says while a recorded run is looked at: nothing of it is about that run.
    pub(super) fn overhear(&mut self, report: &FromEngine) -> Vec<Effect> {
        self.revision -= 1;
        match report {
            FromEngine::Gone { .. } => self.exercises.engine_gone = true,
            FromEngine::Silent => {
                self.exercises.engine_gone = true;
                return vec![Effect::Kill];
            }
            FromEngine::Line(_) | FromEngine::Stray(_) | FromEngine::Malformed { .. } => {}
        }
        Vec::new()
    }

    /// Leaves the open exercise; the model gets its own kernels back, so that stages compare like with like.
    pub(super) fn leave_exercise(&mut self) -> Vec<Effect> {
        let course = Arc::clone(&self.course);
        let Some(exercise) = self
            .exercises
            .open
            .take()
            .and_then(|at| course.exercises.get(at))
        else {
            return Vec::new();
        };
        self.view.scroll.remove(&Panel::Lesson);
        (self.view.confirm, self.view.lesson_open) = (None, false);
        let mut effects = self.take_out(exercise);
        let desk = self.exercises.desk_mut(exercise);
        desk.checking = None;
        if exercise.kernels().is_some() {
            effects.push(Effect::LeaveExercise);
        }
        effects.extend(self.unwatch());
        effects
    }

    /// The next exercise, or the one before.
    pub(super) fn exercise_by(&mut self, by: isize) -> Vec<Effect> {
        let to = self
            .exercises
            .open
            .and_then(|at| at.checked_add_signed(by))
            .filter(|at| *at < self.course.exercises.len());
        match to {
            Some(at) => self.open_exercise(at),
            None if by > 0 => {
                self.tell("This is the last exercise", false);
                Vec::new()
            }
            None => {
                self.tell("This is the first exercise", false);
                Vec::new()
            }
        }
    }

    /// Shows the next hint of the open exercise.
    pub(super) fn exercise_hint(&mut self) -> Vec<Effect> {
        self.show_text();
        self.changed(|exercise, app| {
            if app.exercises.hints as usize >= exercise.hints.len() {
                app.tell("All hints are shown", false);
                return false;
            }
            app.exercises.hints += 1;
            let shown = app.exercises.hints;
            let known = app.study.progress.stages.entry(exercise.id.clone());
            let known = known.or_default();
            known.hints = known.hints.max(shown);
            true
        })
    }

    /// The solution is shown before the exercise was passed: that is remembered.
    pub(super) fn exercise_solution(&mut self) -> Vec<Effect> {
        self.changed(|exercise, app| {
            app.exercises.desk_mut(exercise).solution = true;
            let known = app.study.progress.stages.entry(exercise.id.clone());
            known.or_default().solution_shown = true;
            true
        })
    }

    /// Answers the open question of an exercise.
    pub(super) fn exercise_answer(&mut self, choice: usize) -> Vec<Effect> {
        let Some(question) = self.question() else {
            return Vec::new();
        };
        if choice >= question.choices.len() || !self.view.lesson_visible() {
            return Vec::new();
        }
        let right = choice == question.answer;
        self.changed(|exercise, app| {
            let desk = app.exercises.desk_mut(exercise);
            let at = desk.quiz.len();
            desk.quiz.push(choice);
            let all = desk.quiz.len() == exercise.quiz.len();
            let known = app.study.progress.stages.entry(exercise.id.clone());
            let known = known.or_default();
            if right && !known.quiz.contains(&at) {
                known.quiz.push(at);
            }
            if matches!(exercise.body, Body::Detective(_)) {
                known
                    .prediction
                    .get_or_insert(Prediction::Choice { choice, right });
                if right {
                    known.state = State::Passed;
                }
                return true;
            }
            // Where nothing is launched, the answers are the check.
            if all && exercise.kernels().is_none() && known.quiz.len() == exercise.quiz.len() {
                known.state = State::Passed;
            }
            true
        })
    }

    /// Forgets what was done in the open exercise and puts its files back.
    pub(super) fn exercise_reset(&mut self) -> Vec<Effect> {
        let course = Arc::clone(&self.course);
        let Some(exercise) = self.exercises.open.and_then(|at| course.exercises.get(at)) else {
            return Vec::new();
        };
        let mut effects = self.take_out(exercise);
        let files = std::mem::take(self.exercises.desk_mut(exercise)).files;
        self.exercises.desk_mut(exercise).files = files;
        self.study.progress.stages.remove(&exercise.id);
        self.exercises.hints = 0;
        effects.push(Effect::ResetExercise {
            exercise: exercise.id.clone(),
            device: self.devices.for_kernels().to_owned(),
        });
        effects
    }

    /// Changes what is known of the open exercise, and keeps it where `change` says so.
    fn changed(&mut self, change: impl FnOnce(&Exercise, &mut Self) -> bool) -> Vec<Effect> {
        let course: Arc<Course> = Arc::clone(&self.course);
        let open = self.exercises.open;
        match open.and_then(|at| course.exercises.get(at)) {
            Some(exercise) if change(exercise, self) => vec![self.save_exercise(exercise)],
            _ => Vec::new(),
        }
    }

    fn save_exercise(&self, exercise: &Exercise) -> Effect {
        Effect::SaveStage {
            stage: exercise.id.clone(),
            progress: Box::new(self.exercise_progress(exercise)),
        }
    }

    /// Brings the lesson, or what stands in its place, into view.
    pub(super) fn show_text(&mut self) {
        // Also for a frame that gets smaller, as beside an editor.
        (self.view.lesson_open, self.view.expanded) = (true, false);
        self.view.focus = Some(Panel::Lesson);
        self.view.scroll.remove(&Panel::Lesson);
    }
}
