//! Opening and leaving an exercise: what comes into view, and whether a recorded run stands in the live one's place.

use std::sync::Arc;

use crate::app::source::FromEngine;
use crate::app::{App, Effect, Panel, Recording, Run, RunState, spec};
use crate::course::Exercise;
use crate::course::exercise::{Body, Detective};
use crate::course::progress::State;
use crate::protocol::Command;

impl App {
    /// Opens an exercise: its text takes the lesson's place while the run goes on.
    pub(in crate::app) fn open_exercise(&mut self, at: usize) -> Vec<Effect> {
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
        self.notice = None;
        (self.exercises.open, self.exercises.text_first) = (Some(at), true);
        let known = self.study.progress.stages.entry(exercise.id.clone());
        let known = known.or_default();
        known.state = known.state.max(State::Seen);
        self.exercises.hints = known.hints.min(exercise.hints.len() as u32);
        effects.push(self.save_exercise(exercise));
        if !exercise.files().is_empty() {
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

    /// Leaves the open exercise; the model gets its own kernels back, so that stages compare like with like.
    pub(in crate::app) fn leave_exercise(&mut self) -> Vec<Effect> {
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
        desk.draft.clear();
        if !exercise.files().is_empty() {
            effects.push(Effect::LeaveExercise);
        }
        effects.extend(self.after_measuring(exercise));
        effects.extend(self.unwatch());
        effects
    }

    /// The next exercise, or the one before.
    pub(in crate::app) fn exercise_by(&mut self, by: isize) -> Vec<Effect> {
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

    /// Puts a recorded run in the place of the live one, which stops.
    fn watch(&mut self, exercise: &Exercise, detective: &Detective) -> Vec<Effect> {
        (self.exercises.watching, self.exercises.engine_gone) = (true, false);
        self.recording = Some(Recording {
            file: detective.file.clone(),
            device: detective.device.clone(),
            date: detective.date.clone(),
            paused: false,
            speed: 1.0,
            riddle: true,
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
        let run = self.stage().map(|stage| spec(stage, "broken", self.preset));
        effects.extend(run.into_iter().flat_map(|run| self.start(run)));
        effects
    }

    /// What the engine says while a recorded run is looked at: nothing of it is about that run.
    pub(in crate::app) fn overhear(&mut self, report: &FromEngine) -> Vec<Effect> {
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

    /// Brings the lesson, or what stands in its place, into view.
    pub(in crate::app) fn show_text(&mut self) {
        // Also for a frame that gets smaller, as beside an editor.
        (self.view.lesson_open, self.view.expanded) = (true, false);
        self.view.focus = Some(Panel::Lesson);
        self.view.scroll.remove(&Panel::Lesson);
    }
}
