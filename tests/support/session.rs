//! A session of the screen without terminal, engine or clock: an `App`, and functions that send it the messages of a learner and an engine.
#![allow(dead_code, reason = "each test uses some of the functions")]

use std::path::Path;

use perflings::app::bench::Asked;
use perflings::app::comparison::Comparison;
use perflings::app::source::FromEngine;
use perflings::app::{Action, App, Effect, Message, Options, Overlay, update};
use perflings::course::save_file::Progress;
use perflings::course::{Course, Stage};
use perflings::record::Recording;
use protocol::{Event, RunSpec, Started, StreamLine};

use crate::sample;

/// Makes an app without progress on a screen of 120 × 40. Returns the app and the effects of its start.
pub(crate) fn begin(course: Course, options: Options) -> (App, Vec<Effect>) {
    let (mut app, effects) = App::new(course, Progress::default(), options);
    resize(&mut app, 120, 40);
    (app, effects)
}

pub(crate) fn resize(app: &mut App, width: u16, height: u16) {
    update(app, Message::Resized { width, height });
}

/// Sends an event of the engine. Returns the effects.
pub(crate) fn hear(app: &mut App, event: Event) -> Vec<Effect> {
    let line = StreamLine { t: 0.0, event };
    update(app, Message::Engine(FromEngine::Line(line)))
}

/// Carries out an action of the learner. Returns the effects.
pub(crate) fn act(app: &mut App, action: Action) -> Vec<Effect> {
    update(app, Message::Action(action))
}

/// Returns A's run of a stage for `broken`, else the run of its solution as B.
pub(crate) fn spec(stage: &Stage, variant: &str) -> RunSpec {
    let mut comparison = Comparison::of_stage(stage, None);
    if variant == "broken" {
        return comparison.run_a();
    }
    comparison.set_b(stage.fixed.clone(), true);
    comparison.run_b()
}

/// Returns the run that was requested last.
pub(crate) fn wanted(app: &App) -> RunSpec {
    app.bench.run.wanted.clone().expect("a run was requested")
}

/// Sends all events of the requested run from its start to this step.
pub(crate) fn train(app: &mut App, steps: u64) {
    let run = wanted(app);
    for event in sample::until(&run, steps) {
        hear(app, event);
    }
}

/// Opens the exercise with this label from the list. Returns the effects.
pub(crate) fn open(app: &mut App, label: &str) -> Vec<Effect> {
    let exercises = &app.lesson.course.exercises;
    let index = exercises
        .iter()
        .position(|exercise| exercise.label() == label);
    let line = app.lesson.course.stages.len() + index.expect("the course has it");
    act(app, Action::Open(Overlay::Stages));
    act(app, Action::ChooseLine(line))
}

/// Plays the open recorded run to its end. Returns the number of its lines.
pub(crate) fn play_recording(app: &mut App) -> usize {
    let text = app.detective().expect("a recorded run").shown();
    let recording = Recording::from_text(text, Path::new("run.jsonl")).expect("a whole recording");
    for line in recording.iter() {
        update(app, Message::Recorded(FromEngine::Line(line)));
    }
    recording.len()
}

/// Goes on to the evidence without choosing the panel that shows the fault.
pub(crate) fn skip_locating(app: &mut App) {
    act(app, Action::NextPointer);
    act(app, Action::Yes);
}

/// Makes the stage's solution B without running it.
pub(crate) fn solve(app: &mut App) {
    let solution = app.stage().expect("a stage").fixed.clone();
    app.bench.comparison.set_b(solution, true);
}

/// Returns the event as the answer to the request with the number `to`.
pub(crate) fn answer(mut event: Event, to: u64) -> Event {
    match &mut event {
        Event::Started(started) => started.request = to,
        Event::Pair(pair) => pair.request = to,
        Event::Finished(finished) => finished.request = to,
        Event::Failed(failed) => failed.request = to,
        _ => {}
    }
    event
}

/// Returns the event with which a side of pairs begins.
pub(crate) fn side(run: &RunSpec) -> Event {
    let Event::Started(started) = sample::started(run, 0) else {
        unreachable!()
    };
    let paired = true;
    Event::Started(Started { paired, ..started })
}

/// Begins both sides of the requested pairs, if they have not begun, and sends the result of `n` pairs. Returns the effects.
pub(crate) fn pair(app: &mut App, n: u32, done: bool) -> Vec<Effect> {
    begin_pairs(app);
    hear(app, sample::pair(n, done))
}

/// Begins both sides of the requested pairs.
pub(crate) fn begin_pairs(app: &mut App) {
    let Asked::Pairs { to_begin } = app.bench.pending.asked.clone() else {
        return;
    };
    for run in to_begin {
        hear(app, side(&run));
    }
}
