//! The lesson: the course, and what the learner does in its stages. What can be read of a stage now is worked out in `pages.rs`.

use std::sync::Arc;

use super::estimate::{self, RangeSteps};
use super::may::neighbour;
use super::pages::Reading;
use super::part::{Follow, Follows, Place};
use super::study::{LessonPage, Study, pages};
use super::{Action, Bench, Confirm, Effect, Mode, Overlay, View};
use crate::course::check::Starter;
use crate::course::journey::LastJourney;
use crate::course::save_file::{Prediction, ProgressChange, StageState};
use crate::course::{Course, PanelPointer, Stage};
use crate::judge::stage::{StageFacts, evaluate};
use protocol::Finished;
use protocol::config::RunConfig;

/// The course, and where the learner is in it.
#[derive(Clone, Debug)]
pub struct Lesson {
    pub course: Arc<Course>,
    pub study: Study,
    /// The last table of `perflings run all`, once it was read.
    pub journey: Option<LastJourney>,
}

/// What the lesson reads of other parts.
#[derive(Clone, Copy)]
pub(super) struct Context<'a> {
    pub mode: &'a Mode,
    pub bench: &'a Bench,
    pub view: &'a View,
    /// Stages are shown to an audience.
    pub presents: bool,
}

impl Lesson {
    /// The stage that the learner is in; none in an empty course and in a run without a stage.
    pub(super) fn stage(&self, mode: &Mode) -> Option<&Stage> {
        let stage = self.course.stages.get(self.study.at);
        stage.filter(|_| mode.has_stage())
    }

    /// Where the course has the stage with this id.
    pub(super) fn place_of(&self, id: &str) -> Option<usize> {
        self.course.stages.iter().position(|stage| stage.id == id)
    }

    /// Where the course has the stage with this number.
    pub(super) fn place_of_number(&self, number: u32) -> Option<usize> {
        let mut stages = self.course.stages.iter();
        stages.position(|stage| stage.number == number)
    }

    /// Where the course has the exercise with this id.
    pub(super) fn place_of_exercise(&self, id: &str) -> Option<usize> {
        let mut exercises = self.course.exercises.iter();
        exercises.position(|exercise| exercise.id == id)
    }

    /// The place of the stage, and the beat, where the last presentation was.
    pub(super) fn presented(&self) -> Option<(usize, usize)> {
        let (id, beat) = self.study.progress.presented.as_ref()?;
        Some((self.place_of(id)?, *beat))
    }

    /// Stages before this one that were jumped over, by their place.
    pub fn skipped_stages(&self) -> Vec<usize> {
        let state = |at: usize| self.study.of(&self.course.stages[at]).state;
        let before = 0..self.study.at;
        before
            .filter(|at| state(*at) == StageState::Skipped)
            .collect()
    }

    /// Points for all ranges that were judged.
    pub fn range_points(&self) -> u32 {
        let stages = self.course.stages.iter();
        let points = stages.filter_map(|stage| {
            let known = self.study.of(stage);
            let of = stage.estimate.as_ref()?;
            Some(estimate::points(of, known.estimate?, known.measured?))
        });
        points.sum()
    }

    /// Saves what was done in a stage or an exercise.
    pub(super) fn saved(&self, id: &str) -> Effect {
        let progress = Box::new(self.study.progress.stage(id));
        Effect::Save(ProgressChange::Stage(id.to_owned(), progress))
    }

    /// Opens a page from its first line, if it can be read now.
    pub(super) fn opened(&self, stage: &Stage, page: LessonPage) -> Option<Follow> {
        page.can_open(&self.study, stage)
            .then_some(Follow::Page(page))
    }

    /// Carries out an action that a stage handles itself, live or recorded.
    pub(super) fn update(&mut self, action: Action, context: &Context) -> Option<Follows> {
        let course = Arc::clone(&self.course);
        let stage = course.stages.get(self.study.at)?;
        let follows = match action {
            Action::NextStage => self.go_by(1),
            Action::PreviousStage => self.go_by(-1),
            Action::Answer(choice) => self.answer(stage, choice),
            Action::Question => self.show_question(stage, context),
            Action::RangeShift(by) => {
                self.study.set_range(by, RangeSteps::shift);
                Vec::new()
            }
            Action::RangeWiden(by) => {
                self.study.set_range(by, RangeSteps::widen);
                Vec::new()
            }
            Action::Type(_) | Action::Erase if !context.view.typing() => {
                let of = self.study.estimate(stage)?;
                let letter = match action {
                    Action::Type(letter) => Some(letter),
                    _ => None,
                };
                self.study.type_range(of, letter);
                Vec::new()
            }
            Action::RangeKeep => {
                self.study.keep_range(stage);
                let page = self.opened(stage, LessonPage::Evidence).into_iter();
                page.chain([Follow::Effect(self.saved(&stage.id))])
                    .collect()
            }
            // Beside the open knobs the hint waits on its page.
            Action::Hint if context.view.knobs => {
                let (shown, of) = Reading::of(self, context).hints();
                let text = format!("Hint {} of {of} stands on page 1 of the lesson", shown + 1);
                vec![Follow::NextHint(stage.id.clone()), Follow::Tell(text)]
            }
            Action::Hint => vec![
                Follow::NextHint(stage.id.clone()),
                Follow::ShowLesson,
                Follow::Page(LessonPage::Start),
            ],
            Action::Solution if self.study.solution => {
                vec![Follow::Look(Action::Open(Overlay::Solution))]
            }
            Action::Solution => vec![Follow::Confirm(Confirm::ShowSolution)],
            Action::NextPointer if Reading::of(self, context).asks_where() => {
                vec![Follow::Confirm(Confirm::SkipLocating)]
            }
            Action::NextPointer => self.next_pointer(stage),
            Action::Locate => self.locate(stage, context),
            _ => return None,
        };
        // What was said before is about what has been done now.
        let untell = [Follow::Untell { warnings: true }];
        Some(untell.into_iter().chain(follows).collect())
    }

    /// Goes to the next stage or the one before; after the last one comes the summary.
    fn go_by(&self, by: isize) -> Follows {
        let to = neighbour(self.study.at, by, self.course.stages.len(), "stage");
        let summary = Follow::Look(Action::Open(Overlay::Summary));
        vec![to.map_or(summary, |at| Follow::Go(Place::Stage(at)))]
    }

    fn answer(&mut self, stage: &Stage, choice: usize) -> Follows {
        let asked = self.study.question(stage);
        let quiz = asked.is_some_and(|(quiz, _)| quiz.is_some());
        self.study.answer(stage, choice);
        // The prediction's verdict waits for a measurement; a question of the quiz is answered at once, and its page says
        // whether it was right, and why.
        let shown: &[LessonPage] = match quiz {
            true => &[LessonPage::Quiz],
            false => &[LessonPage::Start, LessonPage::Evidence],
        };
        let pages = shown.iter().filter_map(|page| self.opened(stage, *page));
        pages
            .chain([Follow::Effect(self.saved(&stage.id))])
            .collect()
    }

    /// Goes to the open question, from wherever the learner is; in the quiz, asks those again that were answered wrongly.
    fn show_question(&mut self, stage: &Stage, context: &Context) -> Follows {
        if Reading::of(self, context).asked_on().is_none() {
            self.study.ask_again(stage);
        }
        let page = Reading::of(self, context).asked_on();
        let page = page.and_then(|page| self.opened(stage, page));
        page.map_or_else(Vec::new, |page| {
            vec![Follow::ShowLesson, Follow::Shrink, page]
        })
    }

    /// Forgets what the learner did in the stage.
    pub(super) fn reset(&mut self, _: &Context) -> Option<Follows> {
        let stage = self.course.stages.get(self.study.at)?;
        self.study.forget(stage);
        let stage = stage.id.clone();
        Some(vec![Follow::Effect(Effect::ResetStage { stage })])
    }

    /// The learner looks at the fix without a prediction.
    pub(super) fn skip_prediction(&mut self, _: &Context) -> Option<Follows> {
        let course = Arc::clone(&self.course);
        let stage = course.stages.get(self.study.at)?;
        self.study.skip(stage);
        Some(vec![Follow::Effect(self.saved(&stage.id))])
    }

    /// The learner goes on without saying which panel shows the fault.
    pub(super) fn skip_locating(&mut self, _: &Context) -> Option<Follows> {
        let course = Arc::clone(&self.course);
        let stage = course.stages.get(self.study.at)?;
        self.study.of_mut(&stage.id).located.get_or_insert(false);
        self.study.second_try = false;
        let mut follows = vec![Follow::Effect(self.saved(&stage.id))];
        follows.extend(self.next_pointer(stage));
        Some(follows)
    }

    /// The fix of this stage is tried.
    pub(super) fn note_fix_tried(&mut self, mode: &Mode) {
        if let (Some(stage), true) = (self.course.stages.get(self.study.at), mode.has_stage()) {
            self.study.note_fix_tried(stage);
        }
    }

    /// The marked row is said to show the fault. The first answer counts; after a wrong one the learner tries once more. Then the walk through
    /// the evidence begins at its first pointer, so that what shows the fault is seen beside the rest.
    fn locate(&mut self, stage: &Stage, context: &Context) -> Follows {
        let reading = Reading::of(self, context);
        let (row, panels) = (reading.marked_row(), reading.panels_named(stage));
        let panel = context.view.focus.unwrap_or_default();
        let here = |it: &&PanelPointer| it.shows && it.panel == panel;
        let mut pointers = stage.evidence.iter().filter(here);
        let right = pointers.clone().any(|it| it.is_row(&row));
        let again = !right && !self.study.second_try;
        let said = panel.into_str();
        let text = match pointers.next() {
            Some(_) if right && self.study.second_try => {
                format!("Right, at the second try: the panel {said} shows it there")
            }
            Some(_) if right => format!("Right: the panel {said} shows it there"),
            Some(_) if again => {
                format!("The panel {said} shows it, in another row. Try once more: which row?")
            }
            Some(it) => {
                let rows = it.row.replace(", ", " or ");
                format!("The panel {said} shows it, in another row: {rows}")
            }
            None if again => {
                format!("The panel {said} does not show it. Try once more: {panels}?")
            }
            None => {
                let shows = stage.evidence.iter().find(|it| it.shows);
                let shows = shows.map_or("none", |it| it.panel.into_str());
                format!("The panel {said} does not show it; {shows} does")
            }
        };
        let located = &mut self.study.of_mut(&stage.id).located;
        located.get_or_insert(right);
        self.study.second_try = again;
        let tell = if right { Follow::Tell } else { Follow::Warn };
        let mut follows = vec![Follow::Effect(self.saved(&stage.id)), tell(text)];
        if !again {
            self.study.pointer = Some(0);
            let first = stage.evidence.first();
            follows.extend(first.map(|it| Follow::Mark(it.panel)));
        }
        follows
    }

    /// Shows the next thing that the evidence names, and after the last one the cause.
    fn next_pointer(&mut self, stage: &Stage) -> Follows {
        let at = self.study.pointer.map_or(0, |at| at + 1);
        if let Some(pointer) = stage.evidence.get(at) {
            self.study.pointer = Some(at);
            return vec![Follow::Mark(pointer.panel)];
        }
        self.study.note_evidence_seen(stage);
        // What the cause refers to comes before it.
        let mut pages = pages(&self.study, stage).into_iter();
        let first = pages.find(|it| !matches!(it, LessonPage::Start | LessonPage::Evidence));
        let page = self.opened(stage, first.unwrap_or(LessonPage::Cause));
        [Follow::ShowLesson].into_iter().chain(page).collect()
    }

    /// Returns from the walk through the evidence to the text, if there is one.
    pub(super) fn leave_walk(&mut self, _: &Context) -> Option<Follows> {
        self.study.pointer.take()?;
        let stage = self.course.stages.get(self.study.at)?;
        let page = self.opened(stage, LessonPage::Evidence);
        Some([Follow::ShowLesson].into_iter().chain(page).collect())
    }

    /// Marks the stages before this one that were not passed as skipped, if there are any; that never counts as passed.
    pub(super) fn mark_skipped(&mut self, to: usize, mode: &Mode) -> Option<Follows> {
        let mut follows = Follows::new();
        let course = Arc::clone(&self.course);
        let before = course.stages.iter().take(to);
        for stage in before.filter(|_| mode.is_live()) {
            let known = self.study.of_mut(&stage.id);
            if known.state < StageState::Skipped {
                known.state = StageState::Skipped;
                follows.push(Follow::Effect(self.saved(&stage.id)));
            }
        }
        (!follows.is_empty()).then_some(follows)
    }

    /// Shows one more hint of this stage or exercise.
    pub(super) fn next_hint(&mut self, id: &str) -> Effect {
        self.study.of_mut(id).hints += 1;
        self.saved(id)
    }

    /// Compares what a configuration has shown with the stage's criteria. Once passed, a stage stays passed. `truth` is the figure that its
    /// range is about.
    pub(super) fn judge(
        &mut self,
        config: Option<&RunConfig>,
        finished: Option<&Finished>,
        truth: Option<f64>,
        context: &Context,
    ) -> Option<Follows> {
        let course = Arc::clone(&self.course);
        let stage = course.stages.get(self.study.at)?;
        let measured = StageFacts {
            config,
            finished,
            pair: self.study.pair.as_ref().filter(|pair| pair.done),
            quiz_right: self.study.quiz_right(stage),
        };
        let report = evaluate(stage, measured);
        let passed = report.passed() && config.is_some() && !stage.checks.is_empty();
        let ratio = measured
            .pair
            .and_then(|pair| Some([pair.ratio, pair.low?, pair.high?]));
        let key = stage.checks.iter().find(|it| it.starter == Starter::Fails);
        let mut lines = report.lines.iter();
        let found = lines.find(|line| key.is_some_and(|key| key.name == line.name));
        let found = found.map(|line| line.measured.clone());
        self.study.report = Some(report);
        let known = self.study.of_mut(&stage.id);
        let before = known.clone();
        // The first measurement that passes the checks is the one that judges the range.
        if passed {
            let range = known.estimate;
            known.measured = known.measured.or(truth.filter(|_| range.is_some()));
            known.ratio = known.ratio.or(ratio);
            known.found = known.found.take().or(found);
            known.state = StageState::Passed;
        }
        let (known, mut follows) = (known.clone(), Follows::new());
        if known.state != before.state {
            let outside = stage.estimate.as_ref().is_some_and(|of| {
                let judged = known.estimate.zip(known.measured);
                judged.is_some_and(|(range, truth)| estimate::points(of, range, truth) == 0)
            });
            let predicted = match known.prediction {
                Some(Prediction::Choice { right: true, .. }) if outside => {
                    "; your answer was right, your range does not hold the figure"
                }
                Some(Prediction::Choice { right: true, .. }) => ", and your prediction was right",
                Some(Prediction::Choice { .. }) => "; your prediction was different",
                _ => "",
            };
            let place = Reading::of(self, context).place_of_result();
            let (number, place) = (stage.number, place.unwrap_or_default());
            follows.push(Follow::tell(format!(
                "Stage {number} passed: every required check is met{predicted}{place}"
            )));
        }
        if known != before {
            follows.push(Follow::Effect(self.saved(&stage.id)));
        }
        Some(follows)
    }
}
