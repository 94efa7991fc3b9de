//! The learner's place in the course: the stage, the prediction, hints and measurements. This module judges predictions. It writes no file;
//! an effect saves the progress.
//!
//! There are five activities: predict, evidence, fix, check, look back. The prediction is complete once the choice is made and the range is
//! set, if the stage asks for a range. Then the learner is asked which panel and which row show the fault (`Lesson::locate`). The
//! right answers are the panels and rows that an `[[evidence]]` with `shows` names. Only the first answer counts, but after a wrong one
//! there is a second try. Then the key `enter` leads through all panels of the evidence and the background pages (`app::pages`) to the
//! cause. A learner who changes B earlier sees the cause at once. A range about `pair.…` keeps the stage in *check* until pairs have
//! measured it, even if it has passed.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use strum::{IntoStaticStr, VariantArray};

use super::estimate::RangeSteps;
use crate::course::save_file::{Prediction, Progress, StageProgress, StageState};
use crate::course::{Estimate, Question, SectionKind, Stage};
use crate::judge::StageReport;
use crate::panel::Panel;
use protocol::Pair;

/// An activity of the learner in a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase", const_into_str)]
pub enum Activity {
    /// Observe the symptom and predict what the fix will change.
    Predict,
    /// Look for the fault in the panels.
    Evidence,
    /// Read the cause and try the fix.
    Fix,
    /// Let the measured checks and the pairs decide.
    Check,
    /// Compare the prediction with the numbers.
    #[strum(serialize = "look back")]
    LookBack,
}

/// The largest number of digits of a typed figure.
const MAX_DIGITS: usize = 8;

/// The learner's place in the course.
#[derive(Clone, Debug, Default)]
pub struct LearnerState {
    /// The index of the present stage in the course.
    pub at: usize,
    pub progress: Progress,
    /// True if the learner asked for the stage's solution in this session.
    pub solution: bool,
    /// The latest result of pairs in this stage.
    pub pair: Option<Pair>,
    /// The last comparison of the stage's criteria with the measurements.
    pub report: Option<StageReport>,
    /// The range that the learner is setting. `None` until the first key places it.
    pub range: Option<RangeSteps>,
    /// The index of the evidence whose panel is pointed at; `None` outside of the walk through the evidence.
    pub pointer: Option<usize>,
    /// True while the learner is asked a second time where the fault shows, because the first answer was wrong.
    pub second_try: bool,
    /// The digits typed so far for the middle of the range.
    pub typed: String,
    /// True if nothing is asked and nothing is hidden, because a recording is replayed or the vote of a presentation is over.
    pub nothing_hidden: bool,
    /// The stages whose evidence the learner has seen in this session.
    seen_evidence: BTreeSet<String>,
    /// The stages whose fix the learner has tried in this session.
    tried: BTreeSet<String>,
    /// The quizzes that are repeated, by stage.
    retries: BTreeMap<String, QuizRetry>,
}

/// A quiz whose wrongly answered questions are asked again in this session.
#[derive(Clone, Debug, Default)]
struct QuizRetry {
    /// The questions still to be answered, the next one first.
    open: VecDeque<usize>,
    /// The second answers given so far, by question.
    answers: BTreeMap<usize, usize>,
}

impl LearnerState {
    /// Makes the state for the progress of earlier sessions.
    pub fn new(progress: Progress, nothing_hidden: bool) -> Self {
        Self {
            progress,
            nothing_hidden,
            ..Self::default()
        }
    }

    /// Returns the progress of a stage.
    pub fn progress_of(&self, stage: &Stage) -> StageProgress {
        self.progress.stage(&stage.id)
    }

    /// Returns true if a stage was passed, in this session or an earlier one.
    pub fn has_passed(&self, stage: &Stage) -> bool {
        self.progress_of(stage).state == StageState::Passed
    }

    /// Returns the progress of the stage or exercise with this id, which it creates if there is none.
    pub fn progress_mut(&mut self, id: &str) -> &mut StageProgress {
        self.progress.stages.entry(id.to_owned()).or_default()
    }

    /// Moves to the stage at index `at` and drops the measurements of the last one.
    pub fn enter(&mut self, at: usize, stage: &Stage) {
        self.at = at;
        self.forget_results();
        self.solution = false;
        self.end_walk();
        self.range = None;
        self.typed.clear();
        self.progress.current = Some(stage.id.clone());
        let progress = self.progress_mut(&stage.id);
        progress.state = progress.state.max(StageState::Seen);
    }

    /// Forgets the results of pairs and of the last judgement.
    pub fn forget_results(&mut self) {
        self.pair = None;
        self.report = None;
    }

    /// Forgets what the learner did in a stage.
    pub fn forget(&mut self, stage: &Stage) {
        self.progress.stages.remove(&stage.id);
        self.tried.remove(&stage.id);
        self.seen_evidence.remove(&stage.id);
        self.retries.remove(&stage.id);
    }

    /// Returns the learner's choice in the prediction. `None` before it, and if it was skipped.
    pub fn answered(&self, stage: &Stage) -> Option<usize> {
        match self.progress_of(stage).prediction {
            Some(Prediction::Choice { choice, .. }) => Some(choice),
            _ => None,
        }
    }

    /// Ends the walk through the evidence, and the question before it.
    fn end_walk(&mut self) {
        self.pointer = None;
        self.second_try = false;
    }

    /// Remembers that the learner has seen the evidence, which ends the walk through it.
    pub fn mark_evidence_seen(&mut self, stage: &Stage) {
        self.end_walk();
        self.seen_evidence.insert(stage.id.clone());
    }

    /// Remembers that the learner has tried the fix, which ends the walk through the evidence.
    pub fn mark_fix_tried(&mut self, stage: &Stage) {
        self.end_walk();
        self.tried.insert(stage.id.clone());
    }

    /// Returns true if the learner has tried the fix, or has passed the stage.
    pub fn tried(&self, stage: &Stage) -> bool {
        self.tried.contains(&stage.id) || self.has_passed(stage)
    }

    /// Returns true if the prediction with its range is complete, so that the evidence may be pointed out.
    pub fn prediction_complete(&self, stage: &Stage) -> bool {
        self.nothing_hidden || self.predicted(stage) && self.estimate(stage).is_none()
    }

    /// Returns true if the cause may be shown: the learner has seen the evidence, or tried the fix without it.
    pub fn revealed(&self, stage: &Stage) -> bool {
        let has_seen = stage.evidence.is_empty() || self.seen_evidence.contains(&stage.id);
        self.prediction_complete(stage) && (self.nothing_hidden || has_seen || self.tried(stage))
    }

    /// Returns true if the page that looks back may be read.
    pub fn looks_back(&self, stage: &Stage) -> bool {
        let has_pairs = self.pair.as_ref().is_some_and(|pair| pair.done);
        self.nothing_hidden || self.has_passed(stage) || has_pairs && self.tried(stage)
    }

    /// Returns a knob in which the sides of the measured pairs differ although the stage is about another knob. With such a difference the
    /// ratio does not answer the stage's question.
    pub fn other_differing_knob(&self, stage: &Stage) -> Option<&str> {
        let [about] = &stage.varies[..] else {
            return None;
        };
        let pairs = self.pair.as_ref().filter(|pair| pair.done)?;
        let mut differing = pairs.differs.iter().map(String::as_str);
        differing.find(|path| path != about)
    }

    /// Returns true if the learner's range is about pairs that have not been measured yet.
    fn awaits_pairs(&self, stage: &Stage) -> bool {
        let progress = self.progress_of(stage);
        let is_about_pairs = |estimate: &Estimate| estimate.of.starts_with("pair.");
        progress.estimate.is_some()
            && progress.measured.is_none()
            && stage.estimate.as_ref().is_some_and(is_about_pairs)
    }

    /// Returns true if the choice of the prediction was made or skipped.
    pub fn predicted(&self, stage: &Stage) -> bool {
        self.progress_of(stage).prediction.is_some() || stage.prediction.choices.is_empty()
    }

    /// Returns true if `what`, a panel or a part of one, must not be shown yet because it would answer the open question.
    pub fn withholds(&self, stage: &Stage, what: &str) -> bool {
        Self::hides(stage, what) && !self.nothing_hidden && !self.predicted(stage)
    }

    /// Returns true if `what`, a panel or a part of one, would answer the stage's question.
    pub fn hides(stage: &Stage, what: &str) -> bool {
        what == Panel::Lints.into_str() || stage.hides.iter().any(|name| name == what)
    }

    /// Marks the prediction as skipped, because the learner looks at the fix without it.
    pub fn skip(&mut self, stage: &Stage) {
        let progress = self.progress_mut(&stage.id);
        progress.prediction.get_or_insert(Prediction::Skipped);
        progress.state = progress.state.max(StageState::Predicted);
    }

    /// Returns the learner's next activity in a stage.
    pub fn activity(&self, stage: &Stage) -> Activity {
        if self.nothing_hidden {
            Activity::LookBack
        } else if !self.prediction_complete(stage) {
            Activity::Predict
        } else if !self.revealed(stage) {
            Activity::Evidence
        } else if !self.tried(stage) {
            Activity::Fix
        } else if !self.has_passed(stage) || self.awaits_pairs(stage) {
            Activity::Check
        } else {
            Activity::LookBack
        }
    }

    /// Returns the question that waits for an answer: the prediction, or a question of the quiz with its index.
    pub fn question<'a>(&self, stage: &'a Stage) -> Option<(Option<usize>, &'a Question)> {
        match self.activity(stage) {
            Activity::Predict if !self.predicted(stage) => Some((None, &stage.prediction)),
            _ if self.looks_back(stage) && !self.nothing_hidden => {
                let index = self.next_quiz_question(stage)?;
                Some((Some(index), stage.quiz.get(index)?))
            }
            _ => None,
        }
    }

    /// Returns the figure that the learner has to estimate now, after the choice and before the fix. `None` if there is none.
    pub fn estimate<'a>(&self, stage: &'a Stage) -> Option<&'a Estimate> {
        let has_chosen = self.answered(stage).is_some() && !self.nothing_hidden;
        if !has_chosen || self.progress_of(stage).estimate.is_some() || self.tried(stage) {
            return None;
        }
        stage.estimate.as_ref()
    }

    /// Keeps the range as the learner's estimate.
    pub fn keep_range(&mut self, stage: &Stage) {
        if let Some((estimate, range)) = self.estimate(stage).zip(self.range) {
            self.progress_mut(&stage.id).estimate = Some(range.values(estimate));
        }
    }

    /// Moves or resizes the range with `change`, by `by` steps. The first key also places it in the middle of the scale.
    pub fn set_range(&mut self, by: i32, change: impl FnOnce(&mut RangeSteps, i32)) {
        change(self.range.get_or_insert_default(), by);
        self.typed.clear();
    }

    /// Types a digit of the figure in the middle of the range. `None` erases the last digit.
    pub fn type_range(&mut self, estimate: &Estimate, letter: Option<char>) {
        match letter {
            Some(letter) if self.typed.len() < MAX_DIGITS => self.typed.push(letter),
            Some(_) => {}
            None => {
                self.typed.pop();
            }
        }
        if let Ok(value) = self.typed.parse() {
            self.range.get_or_insert_default().centre(estimate, value);
        }
    }

    /// Returns the index of the next question of the quiz: the first one without an answer, then those that are asked again.
    fn next_quiz_question(&self, stage: &Stage) -> Option<usize> {
        let answered = self.progress_of(stage).answers.len();
        if answered < stage.quiz.len() {
            return Some(answered);
        }
        self.retries.get(&stage.id)?.open.front().copied()
    }

    /// Returns the answers to the quiz: the index of the question, the first answer, and the second one if the question was asked again.
    /// A question that waits for its second answer is left out.
    pub fn quiz_answers(&self, stage: &Stage) -> Vec<(usize, usize, Option<usize>)> {
        let first_answers = self.progress_of(stage).answers.into_iter().enumerate();
        let Some(retry) = self.retries.get(&stage.id) else {
            return first_answers.map(|(at, first)| (at, first, None)).collect();
        };
        first_answers
            .filter(|(at, _)| !retry.open.contains(at))
            .map(|(at, first)| (at, first, retry.answers.get(&at).copied()))
            .collect()
    }

    /// Returns the number of quiz questions whose first answer was right.
    pub fn right_at_first(&self, stage: &Stage) -> usize {
        let first_answers = self.progress_of(stage).answers;
        stage
            .quiz
            .iter()
            .zip(first_answers)
            .filter(|(question, first)| question.answer == *first)
            .count()
    }

    /// Returns true if the quiz can be repeated: all questions were answered, and not all of them correctly.
    pub fn can_ask_again(&self, stage: &Stage) -> bool {
        let progress = self.progress_of(stage);
        self.looks_back(stage)
            && !self.nothing_hidden
            && progress.answers.len() >= stage.quiz.len()
            && self.next_quiz_question(stage).is_none()
            && progress.quiz.len() < stage.quiz.len()
    }

    /// Asks the wrongly answered questions of the quiz again. The score keeps the first answers.
    pub fn ask_again(&mut self, stage: &Stage) {
        let answered_right = self.progress_of(stage).quiz;
        let retry = QuizRetry {
            open: (0..stage.quiz.len())
                .filter(|index| !answered_right.contains(index))
                .collect(),
            answers: BTreeMap::new(),
        };
        self.retries.insert(stage.id.clone(), retry);
    }

    /// Takes the answer to the open question, as the index of a choice.
    pub fn answer(&mut self, stage: &Stage, choice: usize) {
        let Some((quiz_index, question)) = self.question(stage) else {
            return;
        };
        let right = choice == question.answer;
        match quiz_index {
            None => {
                let progress = self.progress_mut(&stage.id);
                progress.prediction = Some(Prediction::Choice { choice, right });
                progress.state = progress.state.max(StageState::Predicted);
            }
            Some(index) => {
                let progress = self.progress_mut(&stage.id);
                if index == progress.answers.len() {
                    progress.answers.push(choice);
                }
                if right && !progress.quiz.contains(&index) {
                    progress.quiz.push(index);
                }
                if let Some(retry) = self.retries.get_mut(&stage.id) {
                    retry.open.retain(|open| *open != index);
                    retry.answers.insert(index, choice);
                }
            }
        }
    }

    /// Returns the number of quiz questions answered correctly at any try. `None` until all were asked.
    pub fn quiz_right(&self, stage: &Stage) -> Option<usize> {
        let progress = self.progress_of(stage);
        let right = progress.quiz.len();
        let all = stage.quiz.len();
        (progress.answers.len() >= all || right >= all).then_some(right)
    }
}

/// A page of a stage's text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LessonPage {
    /// The learner's activities, the symptom and the hints.
    #[default]
    Start,
    /// The panels to look at.
    Evidence,
    /// The background section at this index of the lesson.
    Background(usize),
    /// The cause and the fix.
    Cause,
    /// The verdict on the prediction, the pairs and the checks.
    Result,
    LookBack,
    /// The questions of the quiz.
    Quiz,
}

impl LessonPage {
    /// Returns the page on which a learner who comes back to a stage resumes reading.
    pub fn to_resume(learner: &LearnerState, stage: &Stage) -> Self {
        match learner.activity(stage) {
            Activity::Evidence => Self::Evidence,
            Activity::Fix => Self::Cause,
            _ => Self::Start,
        }
    }

    /// Returns true if the page may be read now.
    pub fn can_open(self, learner: &LearnerState, stage: &Stage) -> bool {
        match self {
            Self::Start => true,
            // The background would answer the open question about it.
            Self::Evidence | Self::Background(_) => learner.prediction_complete(stage),
            Self::Cause => learner.revealed(stage),
            Self::Result => learner.tried(stage) && !learner.nothing_hidden,
            Self::LookBack => learner.looks_back(stage),
            Self::Quiz => {
                learner.looks_back(stage) && !learner.nothing_hidden && !stage.quiz.is_empty()
            }
        }
    }
}

/// Returns the pages that can be read now.
pub fn pages(learner: &LearnerState, stage: &Stage) -> Vec<LessonPage> {
    let background = stage
        .lesson
        .sections
        .iter()
        .enumerate()
        .filter(|(_, section)| section.kind == SectionKind::Background)
        .map(|(at, _)| LessonPage::Background(at));
    [LessonPage::Start, LessonPage::Evidence]
        .into_iter()
        .chain(background)
        .chain([
            LessonPage::Cause,
            LessonPage::Result,
            LessonPage::LookBack,
            LessonPage::Quiz,
        ])
        .filter(|page| page.can_open(learner, stage))
        .collect()
}
