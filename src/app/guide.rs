//! What the screen says unasked: the next move in one sentence, and the four vital signs every run shows. Keys are
//! named by their action; the screen knows which key that is.

use super::devices::FirstLight;
use super::message::{AfterSkip, Confirm};
use super::study::Beat;
use super::{Action, App, Overlay, RunState};
use crate::course::Exercise;
use crate::protocol::State;

/// A piece of a sentence.
#[derive(Clone, Debug, PartialEq)]
pub enum Piece {
    Text(String),
    /// The key that does this.
    Key(Action),
}

/// Builds a sentence: `{}` stands for the next key.
pub fn sentence(text: &str, keys: &[Action]) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut keys = keys.iter();
    for (at, part) in text.split("{}").enumerate() {
        if at > 0
            && let Some(key) = keys.next()
        {
            pieces.push(Piece::Key(*key));
        }
        if !part.is_empty() {
            pieces.push(Piece::Text(part.to_owned()));
        }
    }
    pieces
}

/// The next move before a recorded run with a hidden fault.
fn watching(app: &App) -> Vec<Piece> {
    if app.question().is_none() {
        return sentence(
            "Look again with the answer in mind; {} goes back to the stage",
            &[Action::LeaveExercise],
        );
    }
    if !app.view.lesson_visible() {
        return sentence(
            "A hidden fault, recorded: {} turns the panels, {} reads the question",
            &[Action::FocusNext, Action::Lesson],
        );
    }
    sentence(
        "Name the fault: {} to {}; {} turns the panels, {} pauses",
        &[
            Action::Answer(0),
            Action::Answer(3),
            Action::FocusNext,
            Action::Pause,
        ],
    )
}

/// The learner's next move.
pub fn next_move(app: &App) -> Vec<Piece> {
    if app.exercises.watching {
        return watching(app);
    }
    if app.recording.is_some() {
        return sentence(
            "A recording: {} pauses, {} goes one step on",
            &[Action::Pause, Action::ReplayStep],
        );
    }
    match &app.run.state {
        RunState::EngineGone { .. } => {
            return sentence(
                "The engine is gone; {} starts a new one",
                &[Action::Restart],
            );
        }
        RunState::Failed { .. } => {
            let keys = [
                Action::Restart,
                Action::Open(Overlay::Devices),
                Action::Close,
            ];
            return sentence(
                "{} tries again, {} lists the devices, {} puts this away",
                &keys,
            );
        }
        _ => {}
    }
    if let Some(exercise) = app.exercise() {
        return exercise_move(app, exercise);
    }
    let Some(stage) = app.stage() else {
        return sentence("This course has no stages", &[]);
    };
    match app.study.beat(stage) {
        Beat::Predict if !app.view.lesson_visible() => sentence(
            "Look at the panels, then {} to read and predict",
            &[Action::Lesson],
        ),
        Beat::Predict if app.study.estimate(stage).is_some() => {
            let keys = [
                Action::GuessShift(-1),
                Action::GuessShift(1),
                Action::GuessWiden(1),
                Action::GuessWiden(-1),
                Action::GuessKeep,
            ];
            sentence(
                "How much? {} {} move the range, {} {} size it, {} keeps it",
                &keys,
            )
        }
        Beat::Predict => sentence(
            "Answer the question: {} to {}",
            &[Action::Answer(0), last_answer(app)],
        ),
        Beat::Fix => sentence(
            "{} goes through the panels; {} toggles the fix while it trains",
            &[Action::FocusNext, Action::Toggle],
        ),
        Beat::Measure if app.run.pairing => sentence(
            "Broken and fixed run in turns until the verdict is clear",
            &[],
        ),
        Beat::Measure if app.run.switching.is_some() => {
            sentence("The knobs change at the next step", &[])
        }
        Beat::Measure => {
            let keys = [Action::Toggle, Action::Pair];
            sentence(
                "{} toggles back and forth; {} measures both in pairs",
                &keys,
            )
        }
        Beat::Debrief if !app.view.lesson_visible() => sentence(
            "{} opens the lesson to look back at your prediction",
            &[Action::Lesson],
        ),
        Beat::Debrief if app.study.question(stage).is_some() => {
            sentence("Look back at your prediction, and answer the question", &[])
        }
        Beat::Debrief if app.study.at + 1 < app.course.stages.len() => sentence(
            "Look back at your prediction; {} next stage, {} stages and exercises",
            &[Action::NextStage, Action::Open(Overlay::Stages)],
        ),
        Beat::Debrief => sentence(
            "The last stage is done; {} shows the whole course",
            &[Action::Open(Overlay::Stages)],
        ),
    }
}

/// The next move in an exercise.
fn exercise_move(app: &App, exercise: &Exercise) -> Vec<Piece> {
    let desk = app.exercises.desk(exercise);
    let report = desk.and_then(|desk| desk.report.as_ref());
    let back = [Action::Lesson, Action::LeaveExercise];
    if !app.view.lesson_visible() {
        return sentence("{} opens the exercise, {} goes back to the stage", &back);
    }
    if app.question().is_some() {
        return sentence(
            "Answer the question: {} to {}",
            &[Action::Answer(0), last_answer(app)],
        );
    }
    if exercise.kernels().is_none() {
        return sentence(
            "{} is the next exercise, {} lists all of them",
            &[Action::NextStage, Action::Open(Overlay::Stages)],
        );
    }
    if app.checking().is_some() {
        return sentence("Your kernel is checked; the run goes on beside it", &[]);
    }
    let keys = [Action::OpenEditor, Action::Hint];
    match report {
        None => sentence("{} opens the file in your editor, {} gives a hint", &keys),
        Some(report) if report.failed.is_some() => {
            sentence("Nothing was checked: the card says what to do", &[])
        }
        Some(report) if report.passed => {
            let keys = [Action::NextStage, Action::Solution, Action::LeaveExercise];
            sentence(
                "{} next exercise, {} the solution, {} back to the stage",
                &keys,
            )
        }
        Some(_) if app.exercises.hints as usize >= exercise.hints.len() => sentence(
            "{} opens the file; mend it and save. {} shows the solution",
            &[Action::OpenEditor, Action::Solution],
        ),
        Some(_) => sentence(
            "{} opens the file; mend it and save. {} gives a hint",
            &keys,
        ),
    }
}

fn last_answer(app: &App) -> Action {
    let choices = app.question().map_or(0, |question| question.choices.len());
    Action::Answer(choices.saturating_sub(1))
}

/// The open yes-or-no question.
pub fn confirmation(confirm: Confirm, app: &App) -> Vec<Piece> {
    let keys = [Action::Yes, Action::No];
    match confirm {
        Confirm::SkipPrediction(AfterSkip::Toggle) => sentence(
            "No prediction yet: it will count as skipped. Toggle? {} {}",
            &keys,
        ),
        Confirm::SkipPrediction(AfterSkip::Pair) => sentence(
            "No prediction yet: it will count as skipped. Measure? {} {}",
            &keys,
        ),
        Confirm::ShowSolution => {
            sentence("Show the solution? Your progress will say so. {} {}", &keys)
        }
        Confirm::Reset if app.exercises.open.is_some() => {
            sentence("Forget this exercise and put its files back? {} {}", &keys)
        }
        Confirm::Reset => sentence("Forget this stage and put its files back? {} {}", &keys),
    }
}

/// The offer or the state of a GPU that warms up beside the run.
pub fn first_light(app: &App) -> Option<Vec<Piece>> {
    match &app.devices.first_light {
        FirstLight::None => None,
        FirstLight::Warming { kernels: 0, .. } => Some(sentence(
            "CPU first; the GPU warms up, sharing the cores",
            &[],
        )),
        FirstLight::Warming { kernels, .. } => Some(sentence(
            &format!("CPU first; the GPU warms up: {kernels} kernels compiled"),
            &[],
        )),
        FirstLight::Ready { device, .. } => Some(sentence(
            &format!("{} is ready: {{}} moves the run there", device.name),
            &[Action::SwitchDevice],
        )),
        FirstLight::Failed { .. } => Some(sentence("CPU; the GPU could not be opened", &[])),
    }
}

/// Whether a figure is as it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    Good,
    Bad,
    /// Neither, or not known yet.
    Open,
}

/// One figure every run shows.
#[derive(Clone, Debug, PartialEq)]
pub struct Vital {
    pub label: &'static str,
    pub value: String,
    pub mark: Mark,
}

/// Loss against ln(vocab), parameters with a gradient, whether the phases add up, FLOP/s against the peak.
pub fn vitals(app: &App) -> Vec<Vital> {
    let slot = app.run.shown();
    let vital = |label, value: String, mark| Vital { label, value, mark };
    let unknown = |label| vital(label, "not measured".to_owned(), Mark::Open);
    let loss = match (slot.latest_loss(), &slot.started) {
        (Some(loss), Some(started)) => {
            let mark = match loss {
                _ if !loss.is_finite() => Mark::Bad,
                _ if loss > 1.1 * started.ln_vocab => Mark::Bad,
                _ if started.entropy.is_some_and(|floor| loss < floor - 0.05) => Mark::Bad,
                _ if loss < started.ln_vocab => Mark::Good,
                _ => Mark::Open,
            };
            vital(
                "loss",
                format!("{} of ln V {:.2}", number(loss), started.ln_vocab),
                mark,
            )
        }
        _ => unknown("loss"),
    };
    let gradients = slot.gradients.as_ref().map_or_else(
        || unknown("trained"),
        |it| {
            let mark = if it.params_pct >= 100.0 - 1e-9 {
                Mark::Good
            } else {
                Mark::Bad
            };
            vital(
                "trained",
                format!("{} % of parameters", percent(it.params_pct)),
                mark,
            )
        },
    );
    let ledger = slot
        .phases()
        .filter(|phases| phases.step > 0.0)
        .map_or_else(
            || unknown("residual"),
            |phases| {
                let share = 100.0 * phases.residual / phases.step;
                let mark = if share.abs() > 5.0 {
                    Mark::Bad
                } else {
                    Mark::Good
                };
                vital("residual", format!("{share:+.1} % of the step"), mark)
            },
        );
    let peak = match slot
        .throughput
        .as_ref()
        .map(|it| (it.flops, it.peak_flops, it.state))
    {
        Some((Some(flops), Some(peak), _)) if peak > 0.0 => {
            let share = 100.0 * flops / peak;
            vital(
                "peak",
                format!("{} % reached", percent(share)),
                if share > 100.0 { Mark::Bad } else { Mark::Good },
            )
        }
        Some((Some(flops), ..)) => vital(
            "speed",
            format!("{} GFLOP/s", number(flops / 1e9)),
            Mark::Open,
        ),
        Some((None, _, State::Warming)) | None => unknown("peak"),
        Some((None, ..)) => vital("peak", "not synchronised".to_owned(), Mark::Open),
    };
    vec![loss, gradients, ledger, peak]
}

/// A figure in at most about six characters.
pub fn number(x: f64) -> String {
    match x {
        _ if x.is_nan() => "NaN".to_owned(),
        _ if x.is_infinite() => if x > 0.0 { "inf" } else { "-inf" }.to_owned(),
        _ if x == 0.0 => "0".to_owned(),
        _ if x.abs() >= 1e7 || x.abs() < 1e-3 => format!("{x:.1e}"),
        _ if x.abs() >= 1000.0 => crate::course::placeholder::show(x, 0),
        _ if x.abs() >= 100.0 => format!("{x:.1}"),
        _ if x.abs() >= 0.1 => format!("{x:.2}"),
        _ => format!("{x:.4}"),
    }
}

/// A percentage that reads 100 only when it is.
pub fn percent(x: f64) -> String {
    match x {
        _ if !x.is_finite() => number(x),
        _ if x >= 100.0 => format!("{x:.0}"),
        _ if x >= 99.9 => "99.9".to_owned(),
        _ => format!("{x:.1}"),
    }
}

#[cfg(test)]
mod tests {
    /// Marker of the line, and the widest name of a key it may hold.
    const MARKER: &str = " ? ";
    const KEY: &str = "right";

    #[test]
    fn every_line_fits_the_smallest_screen() {
        let source = include_str!("guide.rs");
        let code = source.split("#[cfg(test)]").next().unwrap();
        let texts = code
            .split("sentence(")
            .filter_map(|it| it.split('"').nth(1));
        for text in texts {
            let line = format!("{MARKER} {}", text.replace("{}", KEY));
            assert!(line.chars().count() <= 78, "{line}");
        }
    }
}
