//! Where the learner is: the stage, the prediction, hints, what was measured. It judges predictions. It writes no file; progress is
//! saved by an effect.
//!
//! There are five activities: predict, evidence, fix, check, look back. A stage counts as predicted once the choice is made and, where there is
//! one, the range is set. Then the learner is asked which panel shows the fault, and which row of it (`Lesson::locate`); right is what an
//! `[[evidence]]` names that `shows` it. The first answer counts; after a wrong one there is a second try. Then `enter` leads through all these
//! panels and the background pages (`app::pages`) to the cause; who changes B first sees it then. A range over `pair.…` keeps the stage in
//! *check* until pairs have measured it, even if the stage already counts as passed.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use strum::{IntoStaticStr, VariantArray};

use super::estimate::RangeSteps;
use crate::course::save_file::{Prediction, Progress, StageProgress, StageState};
use crate::course::{Estimate, Question, SectionKind, Stage};
use crate::judge::StageReport;
use crate::panel::Panel;
use protocol::Pair;

/// The part of a stage's loop that comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase", const_into_str)]
pub enum Activity {
    /// Observe the symptom and say what will change.
    Predict,
    /// Look at what the panels show of it.
    Evidence,
    /// Know the cause and toggle the fix.
    Fix,
    /// Let the measured checks and the pairs decide.
    Check,
    /// Compare the prediction with the numbers.
    #[strum(serialize = "look back")]
    LookBack,
}

/// Most digits of a figure that is typed.
const MAX_DIGITS: usize = 8;

/// Where the learner is.
#[derive(Clone, Debug, Default)]
pub struct Study {
    /// Index into the course's stages.
    pub at: usize,
    pub progress: Progress,
    /// The solution was asked for in this session.
    pub solution: bool,
    /// The last paired comparison of this stage.
    pub pair: Option<Pair>,
    /// The stage's criteria against what was measured.
    pub report: Option<StageReport>,
    /// The range that is being set; none until the first key places it.
    pub range: Option<RangeSteps>,
    /// The pointer of the evidence that is looked at.
    pub pointer: Option<usize>,
    /// The first answer to where the fault shows was wrong; it is asked once more.
    pub second_try: bool,
    /// The figure that is typed as the middle of the range.
    pub typed: String,
    /// A recording is replayed: nothing is asked and nothing is hidden.
    pub nothing_hidden: bool,
    /// Stages whose evidence was looked at in this session.
    looked: BTreeSet<String>,
    /// Stages whose fix was tried in this session.
    tried: BTreeSet<String>,
    /// Questions of the quiz that are asked once more, by stage.
    again: BTreeMap<String, QuizRetry>,
}

/// A quiz that is asked once more, in this session.
#[derive(Clone, Debug, Default)]
struct QuizRetry {
    /// Questions still to be answered, the next one first.
    open: VecDeque<usize>,
    /// The answers given so far.
    said: BTreeMap<usize, usize>,
}

impl Study {
    /// Starts with the progress of earlier sessions.
    pub fn new(progress: Progress, nothing_hidden: bool) -> Self {
        Self {
            progress,
            nothing_hidden,
            ..Self::default()
        }
    }

    /// The progress of a stage.
    pub fn of(&self, stage: &Stage) -> StageProgress {
        self.progress.stage(&stage.id)
    }

    /// The progress of a stage or an exercise, to be changed.
    pub fn of_mut(&mut self, id: &str) -> &mut StageProgress {
        self.progress.stages.entry(id.to_owned()).or_default()
    }

    /// Moves to a stage; the measurements of the one before are dropped.
    pub fn enter(&mut self, at: usize, stage: &Stage) {
        self.at = at;
        (self.pair, self.report, self.solution) = (None, None, false);
        (self.pointer, self.second_try) = (None, false);
        self.range = None;
        self.typed.clear();
        self.progress.current = Some(stage.id.clone());
        let known = self.of_mut(&stage.id);
        known.state = known.state.max(StageState::Seen);
    }

    /// Forgets what the learner did in a stage.
    pub fn forget(&mut self, stage: &Stage) {
        self.progress.stages.remove(&stage.id);
        self.tried.remove(&stage.id);
        self.looked.remove(&stage.id);
        self.again.remove(&stage.id);
    }

    /// The first answer to the prediction.
    pub fn answered(&self, stage: &Stage) -> Option<usize> {
        match self.of(stage).prediction {
            Some(Prediction::Choice { choice, .. }) => Some(choice),
            _ => None,
        }
    }

    /// Notes that the evidence was looked at.
    pub fn note_evidence_seen(&mut self, stage: &Stage) {
        (self.pointer, self.second_try) = (None, false);
        self.looked.insert(stage.id.clone());
    }

    /// Notes that the fix was tried.
    pub fn note_fix_tried(&mut self, stage: &Stage) {
        (self.pointer, self.second_try) = (None, false);
        self.tried.insert(stage.id.clone());
    }

    /// Whether the fix was tried.
    pub fn tried(&self, stage: &Stage) -> bool {
        self.tried.contains(&stage.id) || self.of(stage).state == StageState::Passed
    }

    /// Whether the prediction is complete, with its range, so that the evidence may be pointed out.
    pub fn prediction_complete(&self, stage: &Stage) -> bool {
        self.nothing_hidden || self.predicted(stage) && self.estimate(stage).is_none()
    }

    /// Whether the cause may be told: the evidence was looked at, or the fix tried without it.
    pub fn revealed(&self, stage: &Stage) -> bool {
        let looked = stage.evidence.is_empty() || self.looked.contains(&stage.id);
        self.prediction_complete(stage) && (self.nothing_hidden || looked || self.tried(stage))
    }

    /// Whether the text that looks back may be read.
    pub fn looks_back(&self, stage: &Stage) -> bool {
        let paired = self.pair.as_ref().is_some_and(|pair| pair.done);
        self.nothing_hidden
            || self.of(stage).state == StageState::Passed
            || paired && self.tried(stage)
    }

    /// A knob other than the one that the stage is about in which the measured pairs differ: their ratio does not answer the stage's
    /// question.
    pub fn beside(&self, stage: &Stage) -> Option<&str> {
        let [about] = &stage.varies[..] else {
            return None;
        };
        let pairs = self.pair.as_ref().filter(|pair| pair.done)?;
        let other = pairs.differs.iter().find(|path| *path != about);
        other.map(String::as_str)
    }

    /// Whether the range that was drawn waits for pairs.
    fn awaits_pairs(&self, stage: &Stage) -> bool {
        let known = self.of(stage);
        let of_pairs = |of: &Estimate| of.of.starts_with("pair.");
        known.estimate.is_some()
            && known.measured.is_none()
            && stage.estimate.as_ref().is_some_and(of_pairs)
    }

    /// Whether the choice was made, or skipped.
    pub fn predicted(&self, stage: &Stage) -> bool {
        self.of(stage).prediction.is_some() || stage.prediction.choices.is_empty()
    }

    /// Whether something must not be shown yet, because it would answer the open question.
    pub fn withholds(&self, stage: &Stage, what: &str) -> bool {
        Self::hides(stage, what) && !self.nothing_hidden && !self.predicted(stage)
    }

    /// Whether it would answer the stage's question.
    pub fn hides(stage: &Stage, what: &str) -> bool {
        what == Panel::Lints.into_str() || stage.hides.iter().any(|it| it == what)
    }

    /// The fix is looked at before a prediction was made.
    pub fn skip(&mut self, stage: &Stage) {
        let known = self.of_mut(&stage.id);
        known.prediction.get_or_insert(Prediction::Skipped);
        known.state = known.state.max(StageState::Predicted);
    }

    /// The part of the loop that comes next.
    pub fn activity(&self, stage: &Stage) -> Activity {
        if self.nothing_hidden {
            Activity::LookBack
        } else if !self.prediction_complete(stage) {
            Activity::Predict
        } else if !self.revealed(stage) {
            Activity::Evidence
        } else if !self.tried(stage) {
            Activity::Fix
        } else if self.of(stage).state != StageState::Passed || self.awaits_pairs(stage) {
            Activity::Check
        } else {
            Activity::LookBack
        }
    }

    /// The question that waits for an answer: the prediction, and in the debrief the quiz. The index is that of the
    /// quiz question.
    pub fn question<'a>(&self, stage: &'a Stage) -> Option<(Option<usize>, &'a Question)> {
        match self.activity(stage) {
            Activity::Predict if !self.predicted(stage) => Some((None, &stage.prediction)),
            _ if self.looks_back(stage) && !self.nothing_hidden => {
                let at = self.quiz_at(stage)?;
                stage.quiz.get(at).map(|question| (Some(at), question))
            }
            _ => None,
        }
    }

    /// The figure to guess now: after the choice, before the cause is told.
    pub fn estimate<'a>(&self, stage: &'a Stage) -> Option<&'a Estimate> {
        let chosen = self.answered(stage).is_some() && !self.nothing_hidden;
        let open = self.of(stage).estimate.is_none() && !self.tried(stage);
        stage.estimate.as_ref().filter(|_| chosen && open)
    }

    /// Keeps the range as it is set.
    pub fn keep_range(&mut self, stage: &Stage) {
        if let Some((of, range)) = self.estimate(stage).zip(self.range) {
            self.of_mut(&stage.id).estimate = Some(range.values(of));
        }
    }

    /// Moves or resizes the range. The first key places it in the middle of the scale, and counts like the others.
    pub fn set_range(&mut self, by: i32, change: impl FnOnce(&mut RangeSteps, i32)) {
        change(self.range.get_or_insert_default(), by);
        self.typed.clear();
    }

    /// Types a digit of the figure round which the range lies, or takes the last one back.
    pub fn type_range(&mut self, of: &Estimate, letter: Option<char>) {
        match letter {
            Some(letter) if self.typed.len() < MAX_DIGITS => self.typed.push(letter),
            Some(_) => {}
            None => {
                self.typed.pop();
            }
        }
        if let Ok(value) = self.typed.parse() {
            self.range.get_or_insert_default().centre(of, value);
        }
    }

    /// The question of the quiz that comes next: the first without an answer, then those that are asked once more.
    fn quiz_at(&self, stage: &Stage) -> Option<usize> {
        let answered = self.of(stage).answers.len();
        if answered < stage.quiz.len() {
            return Some(answered);
        }
        self.again.get(&stage.id)?.open.front().copied()
    }

    /// Answers to the quiz, the first question's first: the first answer and the one that was given when the question was
    /// asked once more. A question that is open again is left out.
    pub fn quiz_answers(&self, stage: &Stage) -> Vec<(usize, usize, Option<usize>)> {
        let again = self.again.get(&stage.id);
        let firsts = self.of(stage).answers.into_iter().enumerate();
        firsts
            .filter(|(at, _)| again.is_none_or(|again| !again.open.contains(at)))
            .map(|(at, first)| {
                let later = again.and_then(|again| again.said.get(&at).copied());
                (at, first, later)
            })
            .collect()
    }

    /// Questions of the quiz whose first answer was right.
    pub fn right_at_first(&self, stage: &Stage) -> usize {
        let answers = self.of(stage).answers;
        let answers = stage.quiz.iter().zip(answers);
        answers.filter(|(it, said)| it.answer == *said).count()
    }

    /// Whether questions of the quiz can be asked once more: all were answered, and not all rightly.
    pub fn can_ask_again(&self, stage: &Stage) -> bool {
        let known = self.of(stage);
        let answered = known.answers.len() >= stage.quiz.len();
        self.looks_back(stage)
            && !self.nothing_hidden
            && answered
            && self.quiz_at(stage).is_none()
            && known.quiz.len() < stage.quiz.len()
    }

    /// Asks those questions once more. The score keeps the first answers.
    pub fn ask_again(&mut self, stage: &Stage) {
        let right = self.of(stage).quiz;
        let open = (0..stage.quiz.len()).filter(|at| !right.contains(at));
        let again = QuizRetry {
            open: open.collect(),
            said: BTreeMap::new(),
        };
        self.again.insert(stage.id.clone(), again);
    }

    /// Takes the answer to the open question, by its index in the course; of a prediction only the first one counts.
    pub fn answer(&mut self, stage: &Stage, choice: usize) {
        let Some((quiz, question)) = self.question(stage) else {
            return;
        };
        let right = choice == question.answer;
        match quiz {
            None => {
                let known = self.of_mut(&stage.id);
                known.prediction = Some(Prediction::Choice { choice, right });
                known.state = known.state.max(StageState::Predicted);
            }
            Some(at) => {
                let known = self.of_mut(&stage.id);
                if at == known.answers.len() {
                    known.answers.push(choice);
                }
                if right && !known.quiz.contains(&at) {
                    known.quiz.push(at);
                }
                if let Some(again) = self.again.get_mut(&stage.id) {
                    again.open.retain(|it| *it != at);
                    again.said.insert(at, choice);
                }
            }
        }
    }

    /// Questions of the quiz answered rightly at any try, once all were asked.
    pub fn quiz_right(&self, stage: &Stage) -> Option<usize> {
        let known = self.of(stage);
        let (asked, right, all) = (known.answers.len(), known.quiz.len(), stage.quiz.len());
        (asked >= all || right >= all).then_some(right)
    }
}

/// One page of the text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LessonPage {
    /// Where in the stage the learner is, the symptom, the hints.
    #[default]
    Start,
    /// Where to look.
    Evidence,
    /// A background section of the lesson, by its place there.
    Background(usize),
    /// What is wrong, and the fix.
    Cause,
    /// How the prediction fared, the pairs, the measured checks.
    Result,
    LookBack,
    /// The questions of the quiz.
    Quiz,
}

impl LessonPage {
    /// Where a learner who comes back to a stage goes on reading.
    pub fn of(study: &Study, stage: &Stage) -> Self {
        match study.activity(stage) {
            Activity::Evidence => Self::Evidence,
            Activity::Fix => Self::Cause,
            _ => Self::Start,
        }
    }

    /// Whether it may be read now. The cause waits for the prediction and the evidence.
    pub fn can_open(self, study: &Study, stage: &Stage) -> bool {
        match self {
            Self::Start => true,
            // The background would answer the open question about it.
            Self::Evidence | Self::Background(_) => study.prediction_complete(stage),
            Self::Cause => study.revealed(stage),
            Self::Result => study.tried(stage) && !study.nothing_hidden,
            Self::LookBack => study.looks_back(stage),
            Self::Quiz => {
                study.looks_back(stage) && !study.nothing_hidden && !stage.quiz.is_empty()
            }
        }
    }
}

/// The pages that can be read now.
pub fn pages(study: &Study, stage: &Stage) -> Vec<LessonPage> {
    let sections = stage.lesson.sections.iter().enumerate();
    let background = sections
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
        .filter(|page| page.can_open(study, stage))
        .collect()
}
