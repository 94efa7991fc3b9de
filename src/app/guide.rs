//! The learner's next move, in one sentence that is always on the screen. A sentence names a key by its action, and `tui` shows the
//! key of that action.

mod missing;
mod vitals;

use super::devices::GpuWarmUp;
use super::learner::{Activity, LessonPage};
use super::member::InstructorCall;
use super::mystery::{JudgeStep, MysteryRun};
use super::view::{AfterSkip, Confirm};
use super::{Action as A, App, Mode, Overlay, RunState};
use crate::course::{Exercise, Stage};
use protocol::Slot;
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
    let mut keys = keys.iter();
    pieces(text, |_| keys.next().copied())
}

/// Splits a text at its braces and replaces each name in braces by the key that `key` returns for it.
fn pieces(text: &str, mut key: impl FnMut(&str) -> Option<A>) -> Vec<SentencePart> {
    text.split(['{', '}'])
        .enumerate()
        .filter_map(|(at, part)| match at % 2 {
            0 if part.is_empty() => None,
            0 => Some(SentencePart::Text(part.to_owned())),
            _ => key(part).map(SentencePart::Key),
        })
        .collect()
}

/// The names that the sentences below use in braces, each with its action.
const KEYS: [(&str, A); 46] = [
    ("a", A::Answer(0)),
    ("choose", A::Choose),
    ("close", A::Close),
    ("devices", A::Open(Overlay::Devices)),
    ("down", A::RangeShift(-1)),
    ("edit", A::OpenEditor),
    ("summary", A::Open(Overlay::Summary)),
    ("focus", A::FocusNext),
    ("hint", A::Hint),
    ("glossary", A::Open(Overlay::Glossary)),
    ("in-f32", A::InF32),
    ("keep", A::RangeKeep),
    ("keep-value", A::KeepSearch),
    ("knob-down", A::KnobRow(1)),
    ("knob-less", A::KnobTurn(-1)),
    ("knob-more", A::KnobTurn(1)),
    ("knob-up", A::KnobRow(-1)),
    ("knobs", A::Knobs),
    ("leave", A::LeaveExercise),
    ("lesson", A::Lesson),
    ("list", A::Open(Overlay::Stages)),
    ("narrower", A::RangeWiden(-1)),
    ("locate", A::Locate),
    ("mark-b", A::MarkB),
    ("next", A::NextStage),
    ("no", A::No),
    ("page", A::TurnPage(1)),
    ("page-back", A::TurnPage(-1)),
    ("pair", A::Pair),
    ("pause", A::Pause),
    ("pick", A::PickThis),
    ("pick-next", A::PickOther(1)),
    ("pick-previous", A::PickOther(-1)),
    ("pointer", A::NextPointer),
    ("question", A::Question),
    ("restart", A::Restart),
    ("row", A::Scroll(1)),
    ("solution", A::Solution),
    ("step", A::ReplayStep),
    ("stop", A::StopMeasuring),
    ("switch", A::SwitchDevice),
    ("take-up", A::TakeUp),
    ("toggle", A::Toggle),
    ("up", A::RangeShift(1)),
    ("wider", A::RangeWiden(1)),
    ("yes", A::Yes),
];

/// Builds a sentence in which each name in braces stands for a key of `KEYS`, and `{last}` for the last choice of the open question.
fn named(text: &str, app: &App) -> Vec<SentencePart> {
    let choices = app.question().map_or(0, |question| question.choices.len());
    pieces(text, |name| match name {
        "last" => Some(A::Answer(choices.saturating_sub(1))),
        _ => KEYS
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, action)| *action),
    })
}

/// Returns the sentence for the learner's next move.
pub fn next_move(app: &App) -> Vec<SentencePart> {
    let urgent = silent_device(app)
        .or_else(|| card(app).map(str::to_owned))
        .or_else(|| instructor_call(app))
        .or_else(|| unmet_checks(app));
    named(urgent.as_deref().unwrap_or_else(|| next_text(app)), app)
}

/// Returns the sentence for the open card, because the keys of the panels under it have no effect or another one.
fn card(app: &App) -> Option<&'static str> {
    if app.view.types_value() {
        return Some("Type a value for B. {keep-value}: use it · {close}: cancel");
    }
    Some(match app.view.overlay? {
        Overlay::Welcome => "Press any key to close this card",
        Overlay::Skipped => "You skipped these stages. {page}: next page · {close}: continue here",
        Overlay::Vote => "Type one letter to vote; only your first letter counts",
        Overlay::Stages | Overlay::Devices | Overlay::Attempts => {
            "{choose}: take the marked line · {close}: close the list"
        }
        _ => "{close}: go back to where you were",
    })
}

/// Returns a warning if the engine is alive but its device is silent.
fn silent_device(app: &App) -> Option<String> {
    let seconds = app.device_silent_s()?;
    Some(format!(
        "The engine is alive, but its device has not answered for {seconds} s. {{restart}}: start a new engine"
    ))
}

/// Returns what the instructor asks the class to do.
fn instructor_call(app: &App) -> Option<String> {
    let stages = &app.lesson.course.stages;
    let number = |at: usize| stages.get(at).map_or(0, |stage| stage.number);
    Some(match app.call()? {
        InstructorCall::Vote { at, again: true } => format!(
            "The room votes on stage {} again. {{take-up}}: show the question",
            number(at)
        ),
        InstructorCall::Vote { at, .. } => format!(
            "The room votes on stage {}. {{take-up}}: show the question",
            number(at)
        ),
        InstructorCall::Ask { again: true } => {
            "The room votes again. {take-up}: show the question".to_owned()
        }
        InstructorCall::Ask { again: false } => {
            "The room asks a question. {take-up}: show the question".to_owned()
        }
        InstructorCall::Stage(at) => format!(
            "The room goes on to stage {}. {{take-up}}: go there",
            number(at)
        ),
        InstructorCall::Race(task) => format!("The room races {task}. {{take-up}}: begin the race"),
    })
}

/// Returns which check the stage does not meet yet, or no longer. `None` if another sentence is more urgent.
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
    let asked = app.view.lesson_visible() && app.reading().asked_here();
    if asked {
        return None;
    }
    missing::lost(app, stage)
}

fn next_text(app: &App) -> &'static str {
    match &app.mode {
        Mode::Watching { .. } => return watching(app),
        Mode::Replay(shown) if shown.watched && app.bench.run.state.has_ended() => {
            return "The training has ended. {glossary}: read about its first lint";
        }
        Mode::Replay(shown) if shown.watched && !app.may_mark_b() => {
            return "A and B stand side by side. {glossary}: read about the first lint";
        }
        Mode::Replay(shown) if shown.watched => {
            return "{mark-b}: begin B here · {glossary}: read about the first lint";
        }
        Mode::Replay(_) => return "This is a recording. {pause}: pause · {step}: advance one step",
        _ => {}
    }
    match &app.bench.run.state {
        _ if app.bench.in_f32().is_some() => {
            return "The run stopped on matrix cores. {restart}: try again · {in-f32}: run it in f32";
        }
        RunState::EngineGone { .. } => return "The engine is gone. {restart}: start a new engine",
        RunState::Failed { .. } => {
            return "{restart}: try again · {devices}: list the devices · {close}: close this card";
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
        (None, None) if app.can_edit() => {
            "{knobs}: open the knobs · {toggle}: toggle A and B · {pair}: measure both"
        }
        (None, None) => "This course has no stages",
    }
}

/// Returns the next move in a mystery.
fn mystery_move(app: &App, mystery: &MysteryRun) -> &'static str {
    match (&mystery.end, &mystery.judging) {
        (Some(_), _) => "{next}: begin the next mystery · {list}: show the whole course",
        (None, Some(JudgeStep::Run)) => "B is being judged: first it trains again from step 0",
        (None, Some(JudgeStep::Pairs(_))) => {
            "B is being judged: now it runs in turns with a known-good configuration"
        }
        (None, None) if app.knobs_open() && app.bench.comparison.b_equals_a() => {
            "{knob-up} {knob-down}: choose a knob · {knob-less} {knob-more}: change it in B"
        }
        (None, None) if app.bench.comparison.b_equals_a() => {
            "Something is wrong. {focus}: change the panel · {knobs}: open the knobs"
        }
        (None, None) if app.knobs_open() => {
            "B runs your change. {toggle}: toggle A and B · {pair}: ask for the verdict"
        }
        (None, None) => {
            "{knobs}: change B · {toggle}: toggle A and B · {pair}: ask for the verdict"
        }
    }
}

/// The next move after pairs, when the engine runs nothing.
const VERDICT_GIVEN: &str =
    "Pairs are done, nothing runs. {restart}: train again · {knobs}: open the knobs";

/// Returns the next move at the open knobs.
fn knobs_move(app: &App) -> &'static str {
    let looks_back = |stage| app.lesson.learner.activity(stage) == Activity::LookBack;
    if app.bench.comparison.b_equals_a() {
        "{knob-up} {knob-down}: choose a knob · {knob-less} {knob-more}: change it · {knobs}: close"
    } else if app.bench.pairing() {
        "A and B run in turns; a change of B restarts the pairs"
    } else if app.bench.pending.due_ms.is_some() {
        "B restarts with your change in a moment"
    } else if app.pairs_ended() {
        VERDICT_GIVEN
    } else if app.stage().is_some_and(looks_back) {
        "The stage is passed. {knobs}: close the knobs · {lesson}: go on in the lesson"
    } else if app.bench.run.active == Slot::A {
        "A runs. {toggle}: toggle to B with your change · {pair}: measure both"
    } else {
        "B runs with your change. {toggle}: toggle to A · {pair}: measure both"
    }
}

/// Returns the next move in a stage.
fn stage_move(app: &App, stage: &Stage) -> &'static str {
    let learner = &app.lesson.learner;
    let reads = app.view.lesson_visible();
    match learner.activity(stage) {
        Activity::Predict if !reads && learner.predicted(stage) => {
            "Estimate how much. {lesson}: go back to the question"
        }
        Activity::Predict if !reads => "Look at the panels. {lesson}: read the lesson and predict",
        Activity::Predict if learner.estimate(stage).is_some() && learner.range.is_none() => {
            "How much? {down} {up}: place a range on the scale, or type the figure"
        }
        Activity::Predict if learner.estimate(stage).is_some() => {
            "How much? {down} {up}: move · {wider} {narrower}: resize · {keep}: keep the range"
        }
        Activity::Predict if app.reading().reads_on() => {
            "Answer the question: {a} to {last} · {page}: read on"
        }
        Activity::Predict => "Answer the question: {a} to {last}",
        Activity::Evidence => match learner.pointer {
            Some(at) if at + 1 == stage.evidence.len() => "{pointer}: continue to the cause",
            Some(_) => "{pointer}: show the next panel · {close}: return to the lesson",
            None if app.reading().asks_where() => {
                "Which number? {focus}: change panel · {row}: change row · {locate}: choose it"
            }
            None if reads => {
                "Now look for it. {pointer}: show one panel after the other, then the cause"
            }
            None => "{lesson}: show where to look",
        },
        Activity::Fix if app.reading().reads_background() => {
            "Read the background. {page}: continue to the cause"
        }
        Activity::Fix if reads => "Read the cause, then fix it. {knobs}: open the knobs of your B",
        Activity::Fix => "Fix it. {knobs}: open the knobs of your B · {lesson}: show the cause",
        Activity::Check | Activity::LookBack if app.bench.pairing() => {
            "A and your B run in turns until the verdict is clear"
        }
        Activity::Check if app.bench.switching() => "The knobs change at the next step",
        Activity::Check if learner.looks_back(stage) => {
            "Passed. Your range is not checked yet. {pair}: compare A and B in pairs"
        }
        Activity::Check if app.pairs_ended() => VERDICT_GIVEN,
        Activity::Check => "{toggle}: toggle A and B · {pair}: measure both · {knobs}: change B",
        Activity::LookBack if !reads => "{lesson}: open the lesson to look back at your prediction",
        Activity::LookBack
            if learner.question(stage).is_some()
                && app.reading().asked_here()
                && app.reading().reads_on() =>
        {
            "Answer the question: {a} to {last} · {page}: show the rest of the reasons"
        }
        Activity::LookBack if learner.question(stage).is_some() && app.reading().asked_here() => {
            "Answer the question: {a} to {last} · {page-back}: turn back"
        }
        Activity::LookBack if learner.question(stage).is_some() => match app.reading().page().0 {
            LessonPage::Result | LessonPage::LookBack => {
                "{question}: go to the questions · {page}: read on"
            }
            _ => "{question}: go to the questions · {page}: read on to your result",
        },
        Activity::LookBack if learner.at + 1 < app.lesson.course.stages.len() => {
            "Look back at your prediction. {next}: next stage · {list}: show the course"
        }
        Activity::LookBack => {
            "The last stage is done. {summary}: see your results · {list}: show the course"
        }
    }
}

/// Returns the question of a confirmation.
pub fn confirmation(confirm: Confirm, app: &App) -> Vec<SentencePart> {
    let text = match confirm {
        Confirm::SkipPrediction(AfterSkip::Toggle) => {
            "No prediction yet: it will count as skipped. Toggle? {yes} {no}"
        }
        Confirm::SkipPrediction(AfterSkip::Pair) => {
            "No prediction yet: it will count as skipped. Measure? {yes} {no}"
        }
        Confirm::SkipPrediction(AfterSkip::Knobs) => {
            "No prediction yet: it will count as skipped. Open the knobs? {yes} {no}"
        }
        Confirm::SkipLocating => {
            "No panel is marked: the fault will count as not found. Go on? {yes} {no}"
        }
        Confirm::ShowSolution => "Show the solution? Your progress will say so. {yes} {no}",
        Confirm::Reset if app.mode.is_exercise() => {
            "Forget this exercise and put its files back? {yes} {no}"
        }
        Confirm::Reset => "Forget this stage and put its files back? {yes} {no}",
        Confirm::Leave { .. } => {
            leaving(app).unwrap_or("Leave this stage? Its run ends. {yes} {no}")
        }
        Confirm::LeaveMystery { .. } => "Leave this mystery? It is not solved. {yes} {no}",
        Confirm::Quit => "Quit? The next presentation begins at this beat. {yes} {no}",
        Confirm::GiveUp => "Give up? The faults are shown, and there are no points. {yes} {no}",
    };
    named(text, app)
}

/// Returns the question to ask before the learner leaves the stage. `None` if nothing in it is unfinished.
pub(super) fn leaving(app: &App) -> Option<&'static str> {
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
    Some(match (question, begun) {
        (true, true) => "A question is still open, and the stage is not passed. Go on? {yes} {no}",
        (true, false) => "A question is still open. Go on without it? {yes} {no}",
        (false, true) if predicted => {
            "Leave this stage? Its run ends; your prediction is kept. {yes} {no}"
        }
        (false, true) => "Leave this stage? Its run ends, and it is not passed. {yes} {no}",
        (false, false) => return None,
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
            let mut pieces = named(" is ready. {switch}: move the run there", app);
            pieces.insert(0, SentencePart::Text(device.name.clone()));
            return Some(pieces);
        }
        GpuWarmUp::Failed { .. } => "CPU; the GPU could not be opened".to_owned(),
    };
    Some(named(&text, app))
}

/// Returns the next move in a recorded run with a hidden fault.
fn watching(app: &App) -> &'static str {
    if app.question().is_none() {
        "Look again with the answer in mind. {leave}: go back to the stage"
    } else if app.view.lesson_visible() {
        "Name the fault: {a} to {last} · {focus}: change the panel · {pause}: pause"
    } else {
        "This recording has a fault. {focus}: change panel · {lesson}: show the question"
    }
}

/// Returns the next move in an exercise.
fn exercise_move(app: &App, exercise: &Exercise) -> &'static str {
    if !app.view.lesson_visible() {
        return "{lesson}: open the exercise · {leave}: go back to the stage";
    }
    if app.question().is_some() {
        return "Answer the question: {a} to {last}";
    }
    if exercise.configs().is_some() {
        return runs_move(app, exercise);
    }
    if exercise.kernels().is_none() {
        return "{next}: begin the next exercise · {list}: list all of them";
    }
    if app.checking().is_some() {
        return "Your kernel is being checked; the stage's run waits";
    }
    let state = app.exercise.state(exercise);
    match state.and_then(|state| state.report.as_ref()) {
        None => "{edit}: open the file in your editor · {hint}: read a hint",
        Some(report) if report.facts.failed.is_some() => {
            "Nothing was checked. The card says what to do"
        }
        Some(report) if report.passed => {
            "{next}: begin the next exercise · {solution}: see the solution · {leave}: leave"
        }
        Some(_) if app.reading().hints().0 >= exercise.hints.len() => {
            "Fix the file and save it. {edit}: open the file · {solution}: show the solution"
        }
        Some(_) => "Fix the file and save it. {edit}: open the file · {hint}: read a hint",
    }
}

/// Returns the next move in a config exercise.
fn runs_move(app: &App, exercise: &Exercise) -> &'static str {
    if app.measuring().is_some() {
        return "The measurement runs; the stage's run waits. {stop}: stop the measurement";
    }
    let state = app.exercise.state(exercise);
    let given = app.may(A::Pair).is_ok();
    match state.and_then(|state| state.measured.as_ref()) {
        None if !given => {
            "What do you expect? {pick-previous}/{pick-next}: select · {pick}: confirm · {edit}: edit"
        }
        None => "{pair}: measure and compare with your answers · {edit}: open the file",
        Some(found) if !found.passed => "{edit}: open your answer · {pair}: measure again",
        Some(_) => "{next}: begin the next exercise · {list}: list all of them",
    }
}

#[cfg(test)]
mod tests {
    use super::KEYS;

    /// The marker of the line.
    const MARKER: &str = " ? ";
    /// The widest name of a key that a sentence may hold.
    const KEY: &str = "right";

    #[test]
    fn every_line_fits_the_smallest_screen_and_names_known_keys() {
        let code = include_str!("guide.rs").split("#[cfg(test)]").next();
        let sentences = code.and_then(|code| code.split_once("pub fn next_move"));
        let texts = sentences
            .expect("sentences")
            .1
            .split('"')
            .skip(1)
            .step_by(2);
        // Texts with doubled braces are formats: their length depends on a figure.
        for text in texts.filter(|text| !text.contains("{{")) {
            let mut line = MARKER.to_owned();
            for (at, part) in text.split(['{', '}']).enumerate() {
                let known = part == "last" || KEYS.iter().any(|(name, _)| *name == part);
                assert!(
                    at % 2 == 0 || known || part == "kernels",
                    "{part} in {text}"
                );
                line += if at % 2 == 0 { part } else { KEY };
            }
            assert!(line.chars().count() <= 77, "{line}");
        }
    }
}
