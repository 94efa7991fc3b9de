//! What the world says about exercises: files, checks, and whether a kernel computes for the model. Only kernels that
//! passed are asked for, and the last good one stays where a later one fails.

use std::sync::Arc;

use super::{Checking, ExerciseNews, InModel};
use crate::app::{App, Effect, Panel};
use crate::course::Exercise;
use crate::course::progress::State;
use crate::judge::kernel::KernelVerdict;
use crate::protocol::{Command, KernelSwap};

impl App {
    /// Takes in what the world says about an exercise.
    pub(in crate::app) fn exercise_news(&mut self, id: &str, news: ExerciseNews) -> Vec<Effect> {
        let course = Arc::clone(&self.course);
        let Some(exercise) = course.exercises.iter().find(|known| known.id == id) else {
            return Vec::new();
        };
        let now = self.now_ms;
        let desk = self.exercises.desk_mut(exercise);
        match news {
            ExerciseNews::Files(files) => desk.files = files,
            ExerciseNews::Begun => {
                desk.checking = Some(Checking {
                    now: "starts".to_owned(),
                    since_ms: now,
                    ..Checking::default()
                });
            }
            ExerciseNews::Progress(progress) => {
                if let Some(checking) = &mut desk.checking {
                    (checking.card, checking.now) = (progress.card, progress.now);
                }
            }
            ExerciseNews::Checked(report) => return self.checked(exercise, *report),
            ExerciseNews::Answers { answer, saved } => {
                return self.answered(exercise, answer, saved);
            }
            ExerciseNews::Measuring(sweep) => {
                if let Some(measuring) = &mut desk.measuring {
                    measuring.sweep = *sweep;
                }
            }
            // One that was given up says nothing any more.
            ExerciseNews::Measured(_) if desk.measuring.is_none() => {}
            ExerciseNews::Measured(found) => return self.measured(exercise, *found),
        }
        Vec::new()
    }

    fn checked(&mut self, exercise: &Exercise, report: KernelVerdict) -> Vec<Effect> {
        let open = self.exercise().is_some_and(|it| it.id == exercise.id);
        let (passed, swap) = (report.passed, report.swap.clone());
        let desk = self.exercises.desk_mut(exercise);
        desk.checking = None;
        let again = desk.report.replace(report).is_some();
        if open && (again || passed) {
            self.exercises.text_first = false;
            // The card is what was waited for.
            self.view.scroll.remove(&Panel::Lesson);
        }
        let mut effects = Vec::new();
        if !passed {
            return effects;
        }
        let known = self.study.progress.stages.entry(exercise.id.clone());
        let known = known.or_default();
        let newly = known.state != State::Passed;
        known.state = State::Passed;
        if newly {
            let text = format!("{} passed: every check holds", exercise.label());
            self.tell(&text, false);
            effects.push(self.save_exercise(exercise));
        }
        if let (Some(swap), true) = (swap, open) {
            let desk = self.exercises.desk_mut(exercise);
            desk.good = Some(swap);
            effects.extend(self.use_kernel());
        }
        effects
    }

    /// Asks for the open exercise's last good kernel to compute for the model. A new engine has to be asked again.
    pub(in crate::app) fn use_kernel(&mut self) -> Option<Effect> {
        let course = Arc::clone(&self.course);
        let exercise = course.exercises.get(self.exercises.open?)?;
        let desk = self.exercises.desk_mut(exercise);
        let swap = desk.good.clone()?;
        desk.in_model = InModel::Asked;
        Some(Effect::Send(Command::UseKernel { swap }))
    }

    /// The engine says whether the kernel computes.
    pub(in crate::app) fn kernel_used(&mut self, id: &str, why_not: Option<String>) {
        let course = Arc::clone(&self.course);
        let Some(exercise) = course.exercises.iter().find(|known| known.id == id) else {
            return;
        };
        let step = self.step();
        let label = exercise.label().to_owned();
        let desk = self.exercises.desk_mut(exercise);
        if desk.in_model == InModel::No {
            return;
        }
        let text = match why_not {
            None => {
                desk.in_model = InModel::Since(step);
                format!("{label}: the model computes with your kernel now")
            }
            Some(why) => {
                desk.in_model = InModel::Not(why);
                return;
            }
        };
        self.tell(&text, false);
    }

    /// Gives the model its own kernels back.
    pub(super) fn take_out(&mut self, exercise: &Exercise) -> Vec<Effect> {
        let desk = self.exercises.desk_mut(exercise);
        let was_in = std::mem::take(&mut desk.in_model) != InModel::No;
        let swap = desk.good.take().filter(|_| was_in);
        swap.into_iter()
            .map(|swap| {
                Effect::Send(Command::UseKernel {
                    swap: KernelSwap {
                        kernels: Vec::new(),
                        ..swap
                    },
                })
            })
            .collect()
    }
}
