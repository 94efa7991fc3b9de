//! The card that shows what the lanes of a workgroup do in the learner's kernel: which workgroup, and the step that is
//! looked at.

use std::sync::Arc;

use super::threads::{ThreadMove, Threads};
use super::{App, Effect, Overlay};
use crate::threads::{ThreadsWanted, WorkgroupRun};

impl App {
    /// Shows the threads of the open kernel exercise, where its last check failed.
    pub(super) fn open_threads(&mut self) {
        let exercise = self.exercise().filter(|it| it.kernels().is_some());
        let Some(exercise) = exercise else {
            self.view.overlay = None;
            return self.tell("Threads belong to the exercises about kernels", false);
        };
        let report = self.exercises.of(exercise);
        let report = report.and_then(|known| known.report.as_ref());
        let results = report.map_or(&[][..], |report| &report.facts.files);
        let mut faults = results.iter().enumerate();
        let fault = faults.find_map(|(file, it)| Some((file, it.fault.as_ref()?)));
        let wanted = fault.map_or_else(ThreadsWanted::default, |(file, fault)| ThreadsWanted {
            file,
            shape: Some(fault.shape.clone()),
            group: None,
        });
        self.view.overlay = Some(Overlay::Threads);
        self.record_threads(wanted);
    }

    fn record_threads(&mut self, wanted: ThreadsWanted) {
        self.threads = Threads {
            wanted: wanted.clone(),
            ..Threads::default()
        };
        self.view.overlay_scroll = 0;
        self.effects.push(Effect::RecordThreads { wanted });
    }

    /// Takes in what was recorded: the card begins at the first fault.
    pub(super) fn threads_recorded(&mut self, found: Result<Arc<WorkgroupRun>, String>) {
        let fault = found.as_ref().ok().and_then(|run| run.faults.first());
        self.threads.at = fault.map_or(0, |it| it.step);
        self.threads.found = Some(found);
    }

    pub(super) fn move_threads(&mut self, to: ThreadMove) {
        let Some(Ok(run)) = &self.threads.found else {
            return;
        };
        let (run, at) = (Arc::clone(run), self.threads.at);
        let last = run.steps.len().saturating_sub(1);
        let to = match to {
            ThreadMove::Step(by) => {
                Some((at as i64 + i64::from(by)).clamp(0, last as i64) as usize)
            }
            ThreadMove::Barrier => {
                let mut later = run.steps.iter().enumerate().skip(at + 1);
                later.find(|(_, it)| it.barrier.is_some()).map(|(at, _)| at)
            }
            ThreadMove::Fault => {
                let places = run.faults.iter().flat_map(|it| {
                    let other = it.other.filter(|(step, _)| *step != it.step);
                    [Some(it.step), other.map(|(step, _)| step)]
                });
                let places: Vec<usize> = places.flatten().collect();
                let here = places.iter().position(|step| *step == at);
                let next = here.map_or(0, |it| (it + 1) % places.len());
                places.get(next).copied()
            }
            ThreadMove::Shape => {
                let known = run.shapes.iter().position(|it| *it == run.shape);
                let next = known.map_or(0, |it| it + 1);
                let files = self
                    .exercise()
                    .and_then(|it| Some(it.kernels()?.kernels.len()));
                let file = self.threads.wanted.file + usize::from(next >= run.shapes.len());
                return self.record_threads(ThreadsWanted {
                    file: file % files.unwrap_or(1).max(1),
                    shape: run.shapes.get(next).or(run.shapes.first()).cloned(),
                    group: None,
                });
            }
            ThreadMove::Workgroup => {
                return self.record_threads(ThreadsWanted {
                    shape: Some(run.shape.clone()),
                    group: Some((run.group + 1) % run.groups.max(1)),
                    ..self.threads.wanted.clone()
                });
            }
        };
        match to {
            Some(to) => (self.threads.at, self.view.overlay_scroll) = (to, 0),
            None => self.tell(
                "There is none in this workgroup, or none after this step",
                false,
            ),
        }
    }
}
