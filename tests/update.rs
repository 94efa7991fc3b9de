//! The state behind the screen: messages go in, changes and effects come out. The tests need no terminal, engine or clock. This file
//! makes the states that several topics share; each topic has a file of its own.

use crate::{sample, screen, session};

#[path = "update/attempts.rs"]
mod attempts;
#[path = "update/beats.rs"]
mod beats;
#[path = "update/course.rs"]
mod course;
#[path = "update/devices.rs"]
mod devices;
#[path = "update/engine.rs"]
mod engine;
#[path = "update/events.rs"]
mod events;
#[path = "update/knobs.rs"]
mod knobs;
#[path = "update/learner.rs"]
mod learner;
#[path = "update/leave.rs"]
mod leave;
#[path = "update/mystery.rs"]
mod mystery;
#[path = "update/next_move.rs"]
mod next_move;
#[path = "update/predict.rs"]
mod predict;
#[path = "update/quiz.rs"]
mod quiz;
#[path = "update/recordings.rs"]
mod recordings;
#[path = "update/requests.rs"]
mod requests;
#[path = "update/start.rs"]
mod start;
#[path = "update/toggle.rs"]
mod toggle;
#[path = "update/view.rs"]
mod view;
#[path = "update/watchdog.rs"]
mod watchdog;

use perflings::app::bench::Asked;
use perflings::app::busy;
use perflings::app::devices::GpuWarmUp;
use perflings::app::figures::truth;
use perflings::app::guide::SentencePart;
use perflings::app::learner::Activity;
use perflings::app::pages::LessonPage;
use perflings::app::source::{FromEngine, ReplayControl};
use perflings::app::{
    Action, AfterSkip, App, Confirm, DrawnFrame, Effect, Message, Options, Overlay, Panel, Replay,
    RunState, update,
};
use perflings::course::Course;
use perflings::course::check::{Check, Metric, Starter, Target, Test};
use perflings::course::save_file::{
    Prediction, Progress, ProgressChange, StageProgress, StageState,
};
use perflings::judge::Outcome;
use protocol::config::{Matmul, Precision, Preset, RunConfig};
use protocol::*;
use strum::VariantArray;

use session::{
    act, answer, begin_pairs, hear, pair, side, skip_locating, solve, spec, train, wanted,
};

/// Begins a session with the sample course. Returns the app and the effects of the start.
fn begin() -> (App, Vec<Effect>) {
    begin_with(Options::default())
}

fn begin_with(options: Options) -> (App, Vec<Effect>) {
    session::begin(sample::course(), options)
}

/// A session in stage 1 whose A has trained this many steps.
fn running(steps: u64) -> App {
    let (mut app, _) = begin();
    train(&mut app, steps);
    app
}

/// Returns true if the cause of the present stage may be shown.
fn revealed(app: &App) -> bool {
    app.stage()
        .is_some_and(|stage| app.lesson.learner.revealed(stage))
}

/// Returns the commands to the engine among these effects.
fn commands(effects: &[Effect]) -> Vec<&Command> {
    effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::Send(command) => Some(command),
            _ => None,
        })
        .collect()
}

/// Returns the progress that these effects save, with the id of its stage or exercise.
fn saved_progress(effects: &[Effect]) -> Vec<(&str, &StageProgress)> {
    effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::Save(ProgressChange::Stage(id, progress)) => Some((id.as_str(), &**progress)),
            _ => None,
        })
        .collect()
}

/// Returns the device and the run of the only start among these effects.
fn start_of(effects: &[Effect]) -> (&str, &RunSpec) {
    let started: Vec<_> = commands(effects)
        .into_iter()
        .filter_map(|command| match command {
            Command::Start { device, run, .. } => Some((device.as_str(), run)),
            _ => None,
        })
        .collect();
    assert_eq!(started.len(), 1, "one start in {effects:?}");
    started[0]
}

/// The sample course with one check in its first stage, which the broken configuration fails.
fn checked() -> Course {
    let mut course = sample::course();
    course.stages[0].checks = vec![Check {
        name: "the first loss is small".to_owned(),
        metric: Metric::Figure("loss_first".to_owned()),
        test: Test::Below(Target::Number(10.0)),
        starter: Starter::Fails,
        optional: false,
        line: 1,
    }];
    course
}

/// Saves a configuration in the learner's file and trains this many steps of its run. Returns the effects.
fn save_and_train(app: &mut App, config: RunConfig, steps: u64) -> Vec<Effect> {
    let config = Ok(Box::new(config));
    update(app, Message::FileSaved { config });
    let run = wanted(app);
    sample::until(&run, steps)
        .into_iter()
        .flat_map(|event| hear(app, event))
        .collect()
}

/// Returns the sentence of the learner's next move, with each key as its action in angle brackets.
fn next_move(app: &App) -> String {
    perflings::app::guide::next_move(app)
        .into_iter()
        .map(|part| match part {
            SentencePart::Text(text) => text,
            SentencePart::Key(action) => format!("<{action:?}>"),
        })
        .collect()
}

/// Checks that the sentence of the learner's next move contains this text.
fn assert_next_move(app: &App, expected: &str) {
    let sentence = next_move(app);
    assert!(sentence.contains(expected), "{sentence}");
}

/// Returns the text of the notice on the screen.
fn notice(app: &App) -> &str {
    &app.view.notice.as_ref().expect("a notice").text
}
