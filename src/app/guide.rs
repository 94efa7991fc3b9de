//! The learner's next move, in one sentence that is always on the screen. A sentence names a key by its action, and `tui` shows the
//! key of that action. This file chooses the sentence; `guide/sentences.rs` has the texts.

mod missing;
mod sentences;
mod vitals;

use super::devices::GpuWarmUp;
use super::learner::{Activity, LessonPage};
use super::member::InstructorCall;
use super::mystery::{JudgeStep, MysteryRun};
use super::view::{AfterSkip, Confirm};
use super::{Action as A, App, Mode, Overlay, RunState};
use crate::course::{Exercise, Stage};
use protocol::Slot;
pub use sentences::Sentence;
use sentences::with_keys;
pub use vitals::{FigureState, RunFigure, vitals};

/// A piece of a sentence.
#[derive(Clone, Debug, PartialEq)]
pub enum SentencePart {
    Text(String),
    /// The key of this action.
    Key(A),
}

/// Builds a sentence in which each `{}` stands for the next of `keys`.
pub fn sentence(text: &str, keys: &[A]) -> Vec<SentencePart> {
    let mut remaining = keys.iter();
    pieces(text, |_| remaining.next().copied())
}

/// Splits a text at its braces and replaces each name in braces by the key that `key` returns for it.
fn pieces(text: &str, mut key: impl FnMut(&str) -> Option<A>) -> Vec<SentencePart> {
    text.split(['{', '}'])
        .enumerate()
        .filter_map(|(index, part)| match index % 2 {
            0 if part.is_empty() => None,
            0 => Some(SentencePart::Text(part.to_owned())),
            _ => key(part).map(SentencePart::Key),
        })
        .collect()
}

/// Returns the sentence for the learner's next move.
pub fn next_move(app: &App) -> Vec<SentencePart> {
    let urgent = silent_device(app)
        .or_else(|| card(app).map(|sentence| sentence.into_str().to_owned()))
        .or_else(|| instructor_call(app))
        .or_else(|| unmet_checks(app));
    let text = urgent.unwrap_or_else(|| ordinary_move(app).into_str().to_owned());
    with_keys(&text, app)
}

/// Returns the sentence for the open card, because the keys of the panels under it have no effect or another one.
fn card(app: &App) -> Option<Sentence> {
    if app.view.types_value() {
        return Some(Sentence::TypesValue);
    }
    Some(match app.view.overlay? {
        Overlay::Welcome => Sentence::Welcome,
        Overlay::Skipped => Sentence::SkippedStages,
        Overlay::Vote => Sentence::Vote,
        Overlay::Stages | Overlay::Devices | Overlay::Attempts => Sentence::List,
        _ => Sentence::Card,
    })
}

/// Returns a warning if the engine is alive but its device is silent.
fn silent_device(app: &App) -> Option<String> {
    let seconds = app.device_silent_s()?;
    Some(format!(
        "The engine is alive, but its device has not answered for {seconds} s. \
        {{restart}}: start a new engine"
    ))
}

/// Returns the sentence for the instructor's call to the class. `None` if there is none.
fn instructor_call(app: &App) -> Option<String> {
    let stages = &app.lesson.course.stages;
    let number = |index: usize| stages.get(index).map_or(0, |stage| stage.number);
    Some(match app.call()? {
        InstructorCall::Vote { at, again } => {
            let stage = number(at);
            let repeated = if again { " again" } else { "" };
            format!("The room votes on stage {stage}{repeated}. {{take-up}}: show the question")
        }
        InstructorCall::Ask { again } => {
            let asks = if again {
                "votes again"
            } else {
                "asks a question"
            };
            format!("The room {asks}. {{take-up}}: show the question")
        }
        InstructorCall::Stage(at) => {
            let stage = number(at);
            format!("The room goes on to stage {stage}. {{take-up}}: go there")
        }
        InstructorCall::Race(task) => format!("The room races {task}. {{take-up}}: begin the race"),
    })
}

/// Returns the sentence about a check that the stage does not meet yet, or no longer meets. `None` if another sentence is more urgent.
fn unmet_checks(app: &App) -> Option<String> {
    let failed = matches!(
        app.bench.run.state,
        RunState::EngineGone { .. } | RunState::Failed { .. }
    );
    if failed || !app.mode.compares() {
        return None;
    }
    let stage = app.stage()?;
    if !app.knobs_open()
        && let Some(sentence) = missing::missing(app, stage)
    {
        return Some(sentence);
    }
    if app.view.lesson_visible() && app.reading().asked_here() {
        return None;
    }
    missing::lost(app, stage)
}

/// Returns the sentence for the mode and the state of the run, if nothing is more urgent.
fn ordinary_move(app: &App) -> Sentence {
    match &app.mode {
        Mode::Watching { .. } => return watching(app),
        Mode::Replay(shown) if shown.watched && app.bench.run.state.has_ended() => {
            return Sentence::WatchedEnded;
        }
        Mode::Replay(shown) if shown.watched && !app.may_mark_b() => {
            return Sentence::WatchedBoth;
        }
        Mode::Replay(shown) if shown.watched => {
            return Sentence::Watched;
        }
        Mode::Replay(_) => return Sentence::Recording,
        _ => {}
    }
    match &app.bench.run.state {
        _ if app.bench.in_f32().is_some() => {
            return Sentence::StoppedOnMatrixCores;
        }
        RunState::EngineGone { .. } => return Sentence::EngineGone,
        RunState::Failed { .. } => {
            return Sentence::RunFailed;
        }
        _ => {}
    }
    if let Some(mystery) = app.mode.mystery() {
        return mystery_move(app, mystery);
    }
    if app.knobs_open() {
        return knobs_move(app);
    }
    match (app.exercise(), app.stage()) {
        (Some(exercise), _) => exercise_move(app, exercise),
        (None, Some(stage)) => stage_move(app, stage),
        (None, None) if app.can_edit() => Sentence::FreeRun,
        (None, None) => Sentence::NoStages,
    }
}

/// Returns the next move in a mystery.
fn mystery_move(app: &App, mystery: &MysteryRun) -> Sentence {
    match (&mystery.end, &mystery.judging) {
        (Some(_), _) => Sentence::MysteryEnded,
        (None, Some(JudgeStep::Run)) => Sentence::JudgedAlone,
        (None, Some(JudgeStep::Pairs(_))) => Sentence::JudgedInPairs,
        (None, None) if app.knobs_open() && app.bench.comparison.b_equals_a() => {
            Sentence::MysteryKnobs
        }
        (None, None) if app.bench.comparison.b_equals_a() => Sentence::MysteryUnchanged,
        (None, None) if app.knobs_open() => Sentence::MysteryChangedAtKnobs,
        (None, None) => Sentence::MysteryChanged,
    }
}

/// Returns the next move at the open knobs.
fn knobs_move(app: &App) -> Sentence {
    let looks_back = |stage| app.lesson.learner.activity(stage) == Activity::LookBack;
    if app.bench.comparison.b_equals_a() {
        Sentence::KnobsUnchanged
    } else if app.bench.pairing() {
        Sentence::KnobsInPairs
    } else if app.bench.pending.due_ms.is_some() {
        Sentence::ChangeIsDue
    } else if app.pairs_ended() {
        Sentence::PairsEnded
    } else if app.stage().is_some_and(looks_back) {
        Sentence::PassedAtKnobs
    } else if app.bench.run.active == Slot::A {
        Sentence::ARuns
    } else {
        Sentence::BRuns
    }
}

/// Returns the next move in a stage.
fn stage_move(app: &App, stage: &Stage) -> Sentence {
    let learner = &app.lesson.learner;
    let reads = app.view.lesson_visible();
    match learner.activity(stage) {
        Activity::Predict if !reads && learner.predicted(stage) => Sentence::EstimateInLesson,
        Activity::Predict if !reads => Sentence::PredictInLesson,
        Activity::Predict if learner.estimate(stage).is_some() && learner.range.is_none() => {
            Sentence::PlaceRange
        }
        Activity::Predict if learner.estimate(stage).is_some() => Sentence::KeepRange,
        Activity::Predict if app.reading().reads_on() => Sentence::AnswerOrReadOn,
        Activity::Predict => Sentence::Answer,
        Activity::Evidence => match learner.pointer {
            Some(at) if at + 1 == stage.evidence.len() => Sentence::LastPointer,
            Some(_) => Sentence::NextPointer,
            None if app.reading().asks_where() => Sentence::Locate,
            None if reads => Sentence::FirstPointer,
            None => Sentence::EvidenceInLesson,
        },
        Activity::Fix if app.reading().reads_background() => Sentence::Background,
        Activity::Fix if reads => Sentence::Cause,
        Activity::Fix => Sentence::Fix,
        Activity::Check | Activity::LookBack if app.bench.pairing() => Sentence::InPairs,
        Activity::Check if app.bench.switching() => Sentence::Switching,
        Activity::Check if learner.looks_back(stage) => Sentence::RangeUnchecked,
        Activity::Check if app.pairs_ended() => Sentence::PairsEnded,
        Activity::Check => Sentence::Check,
        Activity::LookBack if !reads => Sentence::LookBackInLesson,
        Activity::LookBack if learner.question(stage).is_some() => quiz_move(app),
        Activity::LookBack if learner.at + 1 < app.lesson.course.stages.len() => {
            Sentence::NextStage
        }
        Activity::LookBack => Sentence::LastStage,
    }
}

/// Returns the next move while a question of the quiz is open.
fn quiz_move(app: &App) -> Sentence {
    let reading = app.reading();
    if reading.asked_here() && reading.reads_on() {
        return Sentence::AnswerOrReasons;
    }
    if reading.asked_here() {
        return Sentence::AnswerOrTurnBack;
    }
    match reading.page().0 {
        LessonPage::Result | LessonPage::LookBack => Sentence::Questions,
        _ => Sentence::QuestionsOrResult,
    }
}

/// Returns the question of a confirmation.
pub fn confirmation(confirm: Confirm, app: &App) -> Vec<SentencePart> {
    let sentence = match confirm {
        Confirm::SkipPrediction(AfterSkip::Toggle) => Sentence::ConfirmToggle,
        Confirm::SkipPrediction(AfterSkip::Pair) => Sentence::ConfirmPair,
        Confirm::SkipPrediction(AfterSkip::Knobs) => Sentence::ConfirmKnobs,
        Confirm::SkipLocating => Sentence::ConfirmSkipLocating,
        Confirm::ShowSolution => Sentence::ConfirmSolution,
        Confirm::Reset if app.mode.is_exercise() => Sentence::ConfirmResetExercise,
        Confirm::Reset => Sentence::ConfirmResetStage,
        Confirm::Leave { .. } => leaving(app).unwrap_or(Sentence::ConfirmLeave),
        Confirm::LeaveMystery { .. } => Sentence::LeaveMystery,
        Confirm::Quit => Sentence::ConfirmQuit,
        Confirm::GiveUp => Sentence::ConfirmGiveUp,
    };
    with_keys(sentence.into_str(), app)
}

/// Returns the question to ask before the learner leaves the stage. `None` if nothing in it is unfinished.
pub(super) fn leaving(app: &App) -> Option<Sentence> {
    // Nothing is lost in a recording, and a presenter is not asked between two stages.
    if !app.mode.is_live() || !app.keeps_progress() {
        return None;
    }
    let stage = app.stage()?;
    let learner = &app.lesson.learner;
    let predicted = learner.answered(stage).is_some();
    let begun = (predicted || learner.tried(stage)) && !learner.has_passed(stage);
    // A stage that was measured in an earlier session does not ask for its answers again.
    let measured = learner.report.is_some() || learner.pair.is_some();
    let question = measured && matches!(learner.question(stage), Some((Some(_), _)));
    if question {
        return Some(if begun {
            Sentence::LeaveQuestionAndStage
        } else {
            Sentence::LeaveQuestion
        });
    }
    if !begun {
        return None;
    }
    Some(if predicted {
        Sentence::LeaveKeepingPrediction
    } else {
        Sentence::LeaveUnpassed
    })
}

/// Returns the state of a GPU that warms up during the run, or the offer to move there.
pub fn gpu_warm_up(app: &App) -> Option<Vec<SentencePart>> {
    let text = match &app.devices.gpu_warm_up {
        GpuWarmUp::None => return None,
        GpuWarmUp::Warming { kernels: 0, .. } => {
            "CPU first; the GPU warms up, sharing the cores".to_owned()
        }
        GpuWarmUp::Warming { kernels, .. } => {
            format!("CPU first; the GPU warms up: {kernels} kernels compiled")
        }
        GpuWarmUp::Ready { device, .. } => {
            // The device's name is not part of the pattern, because it may contain braces.
            let mut pieces = with_keys(" is ready. {switch}: move the run there", app);
            pieces.insert(0, SentencePart::Text(device.name.clone()));
            return Some(pieces);
        }
        GpuWarmUp::Failed { .. } => "CPU; the GPU could not be opened".to_owned(),
    };
    Some(with_keys(&text, app))
}

/// Returns the next move in a recorded run with a hidden fault.
fn watching(app: &App) -> Sentence {
    if app.question().is_none() {
        Sentence::FaultNamed
    } else if app.view.lesson_visible() {
        Sentence::NameFault
    } else {
        Sentence::FaultInLesson
    }
}

/// Returns the next move in an exercise.
fn exercise_move(app: &App, exercise: &Exercise) -> Sentence {
    if !app.view.lesson_visible() {
        return Sentence::ExerciseInLesson;
    }
    if app.question().is_some() {
        return Sentence::Answer;
    }
    if exercise.configs().is_some() {
        return runs_move(app, exercise);
    }
    if exercise.kernels().is_none() {
        return Sentence::NextExercise;
    }
    if app.checking().is_some() {
        return Sentence::KernelChecked;
    }
    let state = app.exercise.state(exercise);
    match state.and_then(|state| state.report.as_ref()) {
        None => Sentence::EditKernel,
        Some(report) if report.facts.failed.is_some() => Sentence::CheckFailed,
        Some(report) if report.passed => Sentence::KernelPassed,
        Some(_) if app.reading().hints().0 >= exercise.hints.len() => Sentence::FixKernelOrSolution,
        Some(_) => Sentence::FixKernel,
    }
}

/// Returns the next move in a config exercise.
fn runs_move(app: &App, exercise: &Exercise) -> Sentence {
    if app.measuring().is_some() {
        return Sentence::Measuring;
    }
    let state = app.exercise.state(exercise);
    let answered = app.may(A::Pair).is_ok();
    match state.and_then(|state| state.measured.as_ref()) {
        None if !answered => Sentence::PickAnswer,
        None => Sentence::Measure,
        Some(found) if !found.passed => Sentence::MeasureAgain,
        Some(_) => Sentence::NextExercise,
    }
}
