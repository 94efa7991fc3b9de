//! The course, and the learner's work in its stages. `pages.rs` works out which pages can be read now.

use std::sync::Arc;

use super::estimate::{self, RangeSteps};
use super::learner::{LearnerState, LessonPage, pages};
use super::may::neighbour;
use super::pages::Reading;
use super::part::{FollowUp, FollowUps, Place};
use super::{Action, Bench, Confirm, Effect, Mode, Overlay, View};
use crate::course::check::{Check, Starter};
use crate::course::journey::LastJourney;
use crate::course::save_file::{Prediction, ProgressChange, StageProgress, StageState};
use crate::course::{Course, Estimate, PanelPointer, Stage};
use crate::judge::StageReport;
use crate::judge::stage::{StageFacts, evaluate};
use protocol::Finished;
use protocol::config::RunConfig;

/// The course, and where the learner is in it.
#[derive(Clone, Debug)]
pub struct Lesson {
    pub course: Arc<Course>,
    pub learner: LearnerState,
    /// The last table of `perflings run all`. `None` until it was read, and if there is none.
    pub journey: Option<LastJourney>,
}

/// The other parts of `App` that the lesson reads.
#[derive(Clone, Copy)]
pub(super) struct Context<'a> {
    pub mode: &'a Mode,
    pub bench: &'a Bench,
    pub view: &'a View,
    /// Stages are shown to an audience.
    pub presents: bool,
}

impl Lesson {
    /// Returns the stage that the learner is in. `None` in an empty course and in a run without a stage.
    pub(super) fn stage(&self, mode: &Mode) -> Option<&Stage> {
        if mode.has_stage() {
            self.course.stages.get(self.learner.at)
        } else {
            None
        }
    }

    /// Returns the index of the stage with this id.
    pub(super) fn place_of(&self, id: &str) -> Option<usize> {
        self.course.stages.iter().position(|stage| stage.id == id)
    }

    /// Returns the index of the stage with this number.
    pub(super) fn place_of_number(&self, number: u32) -> Option<usize> {
        let stages = &self.course.stages;
        stages.iter().position(|stage| stage.number == number)
    }

    /// Returns the index of the exercise with this id.
    pub(super) fn place_of_exercise(&self, id: &str) -> Option<usize> {
        let exercises = &self.course.exercises;
        exercises.iter().position(|exercise| exercise.id == id)
    }

    /// Returns the index of the stage and the beat at which the last presentation ended.
    pub(super) fn presented(&self) -> Option<(usize, usize)> {
        let (id, beat) = self.learner.progress.presented.as_ref()?;
        Some((self.place_of(id)?, *beat))
    }

    /// Returns the indices of the skipped stages before the present one.
    pub fn skipped_stages(&self) -> Vec<usize> {
        let state = |at: usize| self.learner.progress_of(&self.course.stages[at]).state;
        (0..self.learner.at)
            .filter(|at| state(*at) == StageState::Skipped)
            .collect()
    }

    /// Returns the sum of the points for all ranges that were judged.
    pub fn range_points(&self) -> u32 {
        let points = |stage: &Stage| {
            let progress = self.learner.progress_of(stage);
            let estimate = stage.estimate.as_ref()?;
            Some(estimate::points(
                estimate,
                progress.estimate?,
                progress.measured?,
            ))
        };
        self.course.stages.iter().filter_map(points).sum()
    }

    /// Returns the effect that saves the progress of a stage or an exercise.
    pub(super) fn saved(&self, id: &str) -> Effect {
        let progress = Box::new(self.learner.progress.stage(id));
        Effect::Save(ProgressChange::Stage(id.to_owned(), progress))
    }

    /// Returns the follow-up that opens a page from its first line. `None` if the page cannot be read yet.
    pub(super) fn opened(&self, stage: &Stage, page: LessonPage) -> Option<FollowUp> {
        page.can_open(&self.learner, stage)
            .then_some(FollowUp::Page(page))
    }

    /// Carries out an action that a stage handles itself, live or recorded. `None` for any other action.
    pub(super) fn update(
        &mut self,
        action: Action,
        stage: &Stage,
        context: &Context,
    ) -> Option<FollowUps> {
        let follows = match action {
            Action::NextStage => self.go_by(1),
            Action::PreviousStage => self.go_by(-1),
            Action::Answer(choice) => self.answer(stage, choice),
            Action::Question => self.show_question(stage, context),
            Action::RangeShift(by) => {
                self.learner.set_range(by, RangeSteps::shift);
                Vec::new()
            }
            Action::RangeWiden(by) => {
                self.learner.set_range(by, RangeSteps::widen);
                Vec::new()
            }
            Action::Type(_) | Action::Erase if !context.view.typing() => {
                let estimate = self.learner.estimate(stage)?;
                let letter = match action {
                    Action::Type(letter) => Some(letter),
                    _ => None,
                };
                self.learner.type_range(estimate, letter);
                Vec::new()
            }
            Action::RangeKeep => {
                self.learner.keep_range(stage);
                let mut follows = Vec::from_iter(self.opened(stage, LessonPage::Evidence));
                follows.push(FollowUp::Effect(self.saved(&stage.id)));
                follows
            }
            // The open knobs cover the lesson, so a notice names the place of the hint.
            Action::Hint if context.view.knobs => {
                let (shown, of) = Reading::new(self, context).hints();
                let text = format!("Hint {} of {of} is on page 1 of the lesson", shown + 1);
                vec![FollowUp::NextHint(stage.id.clone()), FollowUp::Tell(text)]
            }
            Action::Hint => vec![
                FollowUp::NextHint(stage.id.clone()),
                FollowUp::ShowLesson,
                FollowUp::Page(LessonPage::Start),
            ],
            Action::Solution if self.learner.solution => {
                vec![FollowUp::View(Action::Open(Overlay::Solution))]
            }
            Action::Solution => vec![FollowUp::Confirm(Confirm::ShowSolution)],
            Action::NextPointer if Reading::new(self, context).asks_where() => {
                vec![FollowUp::Confirm(Confirm::SkipLocating)]
            }
            Action::NextPointer => self.next_pointer(stage),
            Action::Locate => self.locate(stage, context),
            _ => return None,
        };
        // An earlier notice asked for what the learner has done now.
        let mut all = vec![FollowUp::ClearNotice { warnings: true }];
        all.extend(follows);
        Some(all)
    }

    /// Goes to the next stage or the one before. After the last stage, shows the summary.
    fn go_by(&self, by: isize) -> FollowUps {
        let to = neighbour(self.learner.at, by, self.course.stages.len(), "stage");
        let summary = FollowUp::View(Action::Open(Overlay::Summary));
        vec![to.map_or(summary, |at| FollowUp::Go(Place::Stage(at)))]
    }

    /// Takes the answer to the open question and saves it. The verdict on a prediction waits for a measurement. The page of the quiz shows at
    /// once whether an answer was right, and why.
    fn answer(&mut self, stage: &Stage, choice: usize) -> FollowUps {
        let question = self.learner.question(stage);
        let is_quiz = question.is_some_and(|(quiz, _)| quiz.is_some());
        self.learner.answer(stage, choice);
        let pages: &[LessonPage] = if is_quiz {
            &[LessonPage::Quiz]
        } else {
            &[LessonPage::Start, LessonPage::Evidence]
        };
        pages
            .iter()
            .filter_map(|page| self.opened(stage, *page))
            .chain([FollowUp::Effect(self.saved(&stage.id))])
            .collect()
    }

    /// Goes to the page of the open question. If no question is open, first asks the wrongly answered ones of the quiz again.
    fn show_question(&mut self, stage: &Stage, context: &Context) -> FollowUps {
        if Reading::new(self, context).asked_on().is_none() {
            self.learner.ask_again(stage);
        }
        let page = Reading::new(self, context).asked_on();
        match page.and_then(|page| self.opened(stage, page)) {
            Some(open) => vec![FollowUp::ShowLesson, FollowUp::Shrink, open],
            None => Vec::new(),
        }
    }

    /// Forgets what the learner did in the stage.
    pub(super) fn reset(&mut self, stage: &Stage) -> FollowUps {
        self.learner.forget(stage);
        vec![FollowUp::Effect(Effect::ResetStage {
            stage: stage.id.clone(),
        })]
    }

    /// Saves that the learner looks at the fix without a prediction.
    pub(super) fn skip_prediction(&mut self, stage: &Stage) -> FollowUps {
        self.learner.skip(stage);
        vec![FollowUp::Effect(self.saved(&stage.id))]
    }

    /// Saves that the learner did not find the panel that shows the fault, and goes on to the first panel of the evidence.
    pub(super) fn skip_locating(&mut self, stage: &Stage) -> FollowUps {
        let progress = self.learner.progress_mut(&stage.id);
        progress.located.get_or_insert(false);
        self.learner.second_try = false;
        let mut follows = vec![FollowUp::Effect(self.saved(&stage.id))];
        follows.extend(self.next_pointer(stage));
        follows
    }

    /// Remembers that the learner has tried the fix of the stage.
    pub(super) fn mark_fix_tried(&mut self, mode: &Mode) {
        if mode.has_stage()
            && let Some(stage) = self.course.stages.get(self.learner.at)
        {
            self.learner.mark_fix_tried(stage);
        }
    }

    /// Takes the marked row as the learner's answer to where the fault shows. Only the first answer counts, but after a wrong one the
    /// learner tries once more. Then the walk through the evidence begins at its first pointer, so that the learner sees all of it.
    fn locate(&mut self, stage: &Stage, context: &Context) -> FollowUps {
        let reading = Reading::new(self, context);
        let row = reading.marked_row();
        let panel = context.view.focus.unwrap_or_default();
        let pointers: Vec<&PanelPointer> = stage
            .evidence
            .iter()
            .filter(|pointer| pointer.shows && pointer.panel == panel)
            .collect();
        let right = pointers.iter().any(|pointer| pointer.is_row(&row));
        let again = !right && !self.learner.second_try;
        let name = panel.into_str();
        let text = match pointers.first() {
            Some(_) if right && self.learner.second_try => {
                format!("Right, at the second try: you can see it in the panel {name}")
            }
            Some(_) if right => format!("Right: you can see it in the panel {name}"),
            Some(_) if again => {
                format!("The panel {name} shows it, in another row. Try once more: which row?")
            }
            Some(pointer) => {
                let rows = pointer.row.replace(", ", " or ");
                format!("The panel {name} shows it, in another row: {rows}")
            }
            None if again => {
                let panels = reading.panels_named(stage);
                format!("The panel {name} does not show it. Try once more: {panels}?")
            }
            None => {
                let shows = stage.evidence.iter().find(|pointer| pointer.shows);
                let other = shows.map_or("none", |pointer| pointer.panel.into_str());
                format!("The panel {name} does not show it; {other} does")
            }
        };
        let located = &mut self.learner.progress_mut(&stage.id).located;
        located.get_or_insert(right);
        self.learner.second_try = again;
        let tell = if right {
            FollowUp::Tell
        } else {
            FollowUp::Warn
        };
        let mut follows = vec![FollowUp::Effect(self.saved(&stage.id)), tell(text)];
        if !again {
            self.learner.pointer = Some(0);
            let first = stage.evidence.first();
            follows.extend(first.map(|pointer| FollowUp::Mark(pointer.panel)));
        }
        follows
    }

    /// Shows the next panel that the evidence names. After the last panel, opens the first background page, or the cause if there is none.
    fn next_pointer(&mut self, stage: &Stage) -> FollowUps {
        let next = self.learner.pointer.map_or(0, |index| index + 1);
        if let Some(pointer) = stage.evidence.get(next) {
            self.learner.pointer = Some(next);
            return vec![FollowUp::Mark(pointer.panel)];
        }
        self.learner.mark_evidence_seen(stage);
        // The background pages come first, because the cause refers to them.
        let page = pages(&self.learner, stage)
            .into_iter()
            .find(|page| !matches!(page, LessonPage::Start | LessonPage::Evidence));
        let mut follows = vec![FollowUp::ShowLesson];
        follows.extend(self.opened(stage, page.unwrap_or(LessonPage::Cause)));
        follows
    }

    /// Ends the walk through the evidence and shows the text again. `None` if the learner is not on that walk.
    pub(super) fn leave_walk(&mut self, stage: &Stage) -> Option<FollowUps> {
        self.learner.pointer.take()?;
        let mut follows = vec![FollowUp::ShowLesson];
        follows.extend(self.opened(stage, LessonPage::Evidence));
        Some(follows)
    }

    /// Marks the stages before index `to` as skipped if they were not passed. `None` if there are none to mark.
    pub(super) fn mark_skipped(&mut self, to: usize, mode: &Mode) -> Option<FollowUps> {
        if !mode.is_live() {
            return None;
        }
        let mut follows = FollowUps::new();
        let course = Arc::clone(&self.course);
        for stage in course.stages.iter().take(to) {
            let progress = self.learner.progress_mut(&stage.id);
            if progress.state < StageState::Skipped {
                progress.state = StageState::Skipped;
                follows.push(FollowUp::Effect(self.saved(&stage.id)));
            }
        }
        (!follows.is_empty()).then_some(follows)
    }

    /// Compares the measurements of a configuration with the stage's criteria. A stage that was passed once stays passed. `truth` is the
    /// measured figure that the stage's estimate is about.
    pub(super) fn judge(
        &mut self,
        stage: &Stage,
        config: Option<&RunConfig>,
        finished: Option<&Finished>,
        truth: Option<f64>,
        context: &Context,
    ) -> FollowUps {
        let measured = StageFacts {
            config,
            finished,
            pair: self.learner.pair.as_ref().filter(|pair| pair.done),
            quiz_right: self.learner.quiz_right(stage),
        };
        let report = evaluate(stage, measured);
        let passed = report.passed() && config.is_some() && !stage.checks.is_empty();
        let ratio = measured
            .pair
            .and_then(|pair| Some([pair.ratio, pair.low?, pair.high?]));
        let figure = remembered_figure(stage, &report);
        self.learner.report = Some(report);
        let progress = self.learner.progress_mut(&stage.id);
        let before = progress.clone();
        if passed {
            // Only the first measurement that passes the checks judges the range.
            if progress.estimate.is_some() && progress.measured.is_none() {
                progress.measured = truth;
            }
            progress.ratio = progress.ratio.or(ratio);
            progress.found = progress.found.take().or(figure);
            progress.state = StageState::Passed;
        }
        let after = progress.clone();
        let mut follows = FollowUps::new();
        if after.state != before.state {
            let number = stage.number;
            let verdict = verdict_on_prediction(stage, &after);
            let place = Reading::new(self, context)
                .place_of_result()
                .unwrap_or_default();
            follows.push(FollowUp::tell(format!(
                "Stage {number} passed: every required check is met{verdict}{place}"
            )));
        }
        if after != before {
            follows.push(FollowUp::Effect(self.saved(&stage.id)));
        }
        follows
    }
}

/// Returns the measured figure that is remembered of a passed stage: that of the check which the broken configuration fails.
fn remembered_figure(stage: &Stage, report: &StageReport) -> Option<String> {
    let fails = |check: &&Check| check.starter == Starter::Fails;
    let name = &stage.checks.iter().find(fails)?.name;
    let line = report.lines.iter().find(|line| line.name == *name)?;
    Some(line.measured.clone())
}

/// Returns the verdict on the learner's prediction, as the end of a sentence. Empty if the prediction was skipped.
fn verdict_on_prediction(stage: &Stage, progress: &StageProgress) -> &'static str {
    let is_outside = |estimate: &Estimate| {
        let judged = progress.estimate.zip(progress.measured);
        judged.is_some_and(|(range, truth)| estimate::points(estimate, range, truth) == 0)
    };
    match progress.prediction {
        Some(Prediction::Choice { right: true, .. })
            if stage.estimate.as_ref().is_some_and(is_outside) =>
        {
            "; your answer was right, your range does not hold the figure"
        }
        Some(Prediction::Choice { right: true, .. }) => ", and your prediction was right",
        Some(Prediction::Choice { .. }) => "; your prediction was different",
        _ => "",
    }
}
