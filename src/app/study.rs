//! Where the learner is: the stage, the prediction, hints, what was measured. It judges predictions; it never
//! touches a file: progress leaves as an effect.

use std::collections::{BTreeMap, BTreeSet};

use super::estimate::Guess;
use crate::course::progress::{Prediction, Progress, StageProgress, State};
use crate::course::{Estimate, Question, SectionKind, Stage};
use crate::judge::Report;
use crate::protocol::{Pair, Verdict};

/// The part of a stage's loop that comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Beat {
    /// Observe the symptom and say what will change.
    Predict,
    /// Look at what the panels show of it.
    Evidence,
    /// Know the cause and toggle the fix.
    Fix,
    /// Let the measured checks and the pairs decide.
    Check,
    /// Compare the prediction with the numbers.
    Debrief,
}

impl Beat {
    pub const ALL: [Self; 5] = [
        Self::Predict,
        Self::Evidence,
        Self::Fix,
        Self::Check,
        Self::Debrief,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Predict => "predict",
            Self::Evidence => "evidence",
            Self::Fix => "fix",
            Self::Check => "check",
            Self::Debrief => "look back",
        }
    }
}

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
    pub report: Option<Report>,
    /// The range that is being set.
    pub guess: Guess,
    /// The pointer of the evidence that is looked at.
    pub pointer: Option<usize>,
    /// A recording is replayed: nothing is asked and nothing is hidden.
    pub nothing_hidden: bool,
    /// Stages whose evidence was looked at in this session.
    looked: BTreeSet<String>,
    /// Stages whose fix was tried in this session.
    tried: BTreeSet<String>,
    /// Answers to the quiz in this session, by stage.
    quiz: BTreeMap<String, Vec<usize>>,
}

impl Study {
    /// With what was kept from earlier sessions.
    pub fn new(progress: Progress, nothing_hidden: bool) -> Self {
        Self {
            progress,
            nothing_hidden,
            ..Self::default()
        }
    }

    /// What is known of a stage.
    pub fn of(&self, stage: &Stage) -> StageProgress {
        self.progress.stage(&stage.id)
    }

    /// What is known of a stage or an exercise, to be changed.
    pub fn of_mut(&mut self, id: &str) -> &mut StageProgress {
        self.progress.stages.entry(id.to_owned()).or_default()
    }

    /// Moves to a stage: what belonged to the one before is put away.
    pub fn enter(&mut self, at: usize, stage: &Stage) {
        self.at = at;
        (self.pair, self.report, self.solution) = (None, None, false);
        self.pointer = None;
        self.guess = Guess::default();
        self.progress.current = Some(stage.id.clone());
        let known = self.of_mut(&stage.id);
        known.state = known.state.max(State::Seen);
    }

    /// Forgets what the learner did in a stage.
    pub fn forget(&mut self, stage: &Stage) {
        self.progress.stages.remove(&stage.id);
        self.tried.remove(&stage.id);
        self.looked.remove(&stage.id);
        self.quiz.remove(&stage.id);
    }

    /// The first answer to the prediction.
    pub fn answered(&self, stage: &Stage) -> Option<usize> {
        match self.of(stage).prediction {
            Some(Prediction::Choice { choice, .. }) => Some(choice),
            _ => None,
        }
    }

    /// The evidence was looked at.
    pub fn looked_at(&mut self, stage: &Stage) {
        self.pointer = None;
        self.looked.insert(stage.id.clone());
    }

    /// The fix was tried.
    pub fn tries(&mut self, stage: &Stage) {
        self.pointer = None;
        self.tried.insert(stage.id.clone());
    }

    /// Whether the fix was tried.
    pub fn tried(&self, stage: &Stage) -> bool {
        self.tried.contains(&stage.id) || self.of(stage).state == State::Passed
    }

    /// Whether the prediction is complete, with its range, so that the evidence may be pointed out.
    pub fn foretold(&self, stage: &Stage) -> bool {
        self.nothing_hidden || self.predicted(stage) && self.estimate(stage).is_none()
    }

    /// Whether the cause may be told: the evidence was looked at, or the fix tried without it.
    pub fn revealed(&self, stage: &Stage) -> bool {
        let looked = stage.evidence.is_empty() || self.looked.contains(&stage.id);
        self.foretold(stage) && (self.nothing_hidden || looked || self.tried(stage))
    }

    /// Whether the text that looks back may be read.
    pub fn looks_back(&self, stage: &Stage) -> bool {
        self.of(stage).state == State::Passed || self.beat(stage) == Beat::Debrief
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

    /// The fix is looked at before a prediction was made.
    pub fn skip(&mut self, stage: &Stage) {
        let known = self.of_mut(&stage.id);
        known.prediction.get_or_insert(Prediction::Skipped);
        known.state = known.state.max(State::Predicted);
    }

    /// The part of the loop that comes next.
    pub fn beat(&self, stage: &Stage) -> Beat {
        if self.nothing_hidden {
            Beat::Debrief
        } else if !self.foretold(stage) {
            Beat::Predict
        } else if !self.revealed(stage) {
            Beat::Evidence
        } else if !self.tried(stage) {
            Beat::Fix
        } else if (self.of(stage).state != State::Passed || self.awaits_pairs(stage))
            && self.pair.as_ref().is_none_or(|pair| !pair.done)
        {
            Beat::Check
        } else {
            Beat::Debrief
        }
    }

    /// The question that waits for an answer: the prediction, and in the debrief the quiz. The index is that of the
    /// quiz question.
    pub fn question<'a>(&self, stage: &'a Stage) -> Option<(Option<usize>, &'a Question)> {
        match self.beat(stage) {
            Beat::Predict if !self.predicted(stage) => Some((None, &stage.prediction)),
            _ if self.looks_back(stage) && !self.nothing_hidden => {
                let at = self.quiz_answers(stage).len();
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
    pub fn keep_guess(&mut self, stage: &Stage) -> bool {
        let Some(of) = self.estimate(stage) else {
            return false;
        };
        let values = self.guess.values(of);
        self.of_mut(&stage.id).estimate = Some(values);
        true
    }

    /// Answers to the quiz so far.
    pub fn quiz_answers(&self, stage: &Stage) -> &[usize] {
        self.quiz.get(&stage.id).map_or(&[], Vec::as_slice)
    }

    /// Takes an answer; of a prediction only the first one counts. Tells whether it was right; nothing when there
    /// was nothing to answer.
    pub fn answer(&mut self, stage: &Stage, choice: usize) -> Option<bool> {
        let (quiz, question) = self.question(stage)?;
        if choice >= question.choices.len() {
            return None;
        }
        let right = choice == question.answer;
        match quiz {
            None => {
                let known = self.of_mut(&stage.id);
                known.prediction = Some(Prediction::Choice { choice, right });
                known.state = known.state.max(State::Predicted);
            }
            Some(at) => {
                self.quiz.entry(stage.id.clone()).or_default().push(choice);
                let known = self.of_mut(&stage.id);
                if right && !known.quiz.contains(&at) {
                    known.quiz.push(at);
                }
            }
        }
        Some(right)
    }

    /// Questions of the quiz answered rightly, once all were asked.
    pub fn quiz_right(&self, stage: &Stage) -> Option<usize> {
        let right = self.of(stage).quiz.len();
        (self.quiz_answers(stage).len() == stage.quiz.len() || right == stage.quiz.len())
            .then_some(right)
    }

    /// Takes a paired comparison in. Tells whether its verdict is clear.
    pub fn measured(&mut self, pair: Pair) -> bool {
        let clear = pair.done && pair.verdict != Verdict::Unclear;
        self.pair = Some(pair);
        clear
    }
}

/// One page of the text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Page {
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

impl Page {
    /// Where a learner who comes back to a stage goes on reading.
    pub fn of(study: &Study, stage: &Stage) -> Self {
        match study.beat(stage) {
            Beat::Evidence => Self::Evidence,
            Beat::Fix => Self::Cause,
            _ => Self::Start,
        }
    }

    /// Whether it may be read now. The cause waits for the prediction and the evidence.
    pub fn can_open(self, study: &Study, stage: &Stage) -> bool {
        match self {
            Self::Start | Self::Background(_) => true,
            Self::Evidence => study.foretold(stage),
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
pub fn pages(study: &Study, stage: &Stage) -> Vec<Page> {
    let sections = stage.lesson.sections.iter().enumerate();
    let background = sections
        .filter(|(_, section)| section.kind == SectionKind::Background)
        .map(|(at, _)| Page::Background(at));
    [Page::Start, Page::Evidence]
        .into_iter()
        .chain(background)
        .chain([Page::Cause, Page::Result, Page::LookBack, Page::Quiz])
        .filter(|page| page.can_open(study, stage))
        .collect()
}
