//! Plays a session of the screen without a terminal, an engine or a clock: an `App` with the sample course, and the messages that it gets.
#![allow(dead_code, reason = "each test uses a part of it")]

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

/// Returns the app of a learner without progress on a screen of 120 × 40, and the effects of its start.
pub(crate) fn begin(course: Course, options: Options) -> (App, Vec<Effect>) {
    let (mut app, effects) = App::new(course, Progress::default(), options);
    resize(&mut app, 120, 40);
    (app, effects)
}

pub(crate) fn resize(app: &mut App, width: u16, height: u16) {
    update(app, Message::Resized { width, height });
}

/// Sends the app an event of the engine. Returns the effects.
pub(crate) fn hear(app: &mut App, event: Event) -> Vec<Effect> {
    let line = StreamLine { t: 0.0, event };
    update(app, Message::Engine(FromEngine::Line(line)))
}

/// Carries out an action of a key. Returns the effects.
pub(crate) fn act(app: &mut App, action: Action) -> Vec<Effect> {
    update(app, Message::Action(action))
}

/// Returns the run of a stage as shipped: for `broken` the run of A, for any other variant the run of the solution as B.
pub(crate) fn spec(stage: &Stage, variant: &str) -> RunSpec {
    let mut comparison = Comparison::of_stage(stage, None);
    if variant == "broken" {
        return comparison.run_a();
    }
    comparison.set_b(stage.fixed.clone(), true);
    comparison.run_b()
}

/// Returns the run that the app asked for.
pub(crate) fn wanted(app: &App) -> RunSpec {
    app.bench.run.wanted.clone().expect("a run was asked for")
}

/// Sends the app everything that the run it asked for reports up to this step.
pub(crate) fn train(app: &mut App, steps: u64) {
    let run = wanted(app);
    for event in sample::until(&run, steps) {
        hear(app, event);
    }
}

/// Opens the exercise with this label from the list. Returns the effects.
pub(crate) fn open(app: &mut App, label: &str) -> Vec<Effect> {
    let course = &app.lesson.course;
    let index = course
        .exercises
        .iter()
        .position(|exercise| exercise.label() == label)
        .expect("an exercise of the course");
    let entry = course.stages.len() + index;
    act(app, Action::Open(Overlay::Stages));
    act(app, Action::ChooseLine(entry))
}

/// Plays the recorded run that is open to its end. Returns the number of its lines.
pub(crate) fn play_recording(app: &mut App) -> usize {
    let text = app.detective().expect("a recorded run").shown();
    let recording = Recording::from_text(text, Path::new("run.jsonl")).expect("a whole recording");
    for line in recording.iter() {
        update(app, Message::Recorded(FromEngine::Line(line)));
    }
    recording.line_count()
}

/// Continues to the evidence without choosing the panel that shows the fault.
pub(crate) fn skip_locating(app: &mut App) {
    act(app, Action::NextPointer);
    act(app, Action::Yes);
}

/// Makes the stage's solution the learner's B, without starting it.
pub(crate) fn solve(app: &mut App) {
    let solution = app.stage().expect("a stage").fixed.clone();
    app.bench.comparison.set_b(solution, true);
}

/// Returns an event as the answer to the request with this number.
pub(crate) fn answer(mut event: Event, request: u64) -> Event {
    match &mut event {
        Event::Started(started) => started.request = request,
        Event::Pair(pair) => pair.request = request,
        Event::Finished(finished) => finished.request = request,
        Event::Failed(failed) => failed.request = request,
        _ => {}
    }
    event
}

/// Returns the event that begins a run as one side of a paired comparison.
pub(crate) fn side(run: &RunSpec) -> Event {
    let Event::Started(started) = sample::started(run, 0) else {
        unreachable!()
    };
    Event::Started(Started {
        paired: true,
        ..started
    })
}

/// Sends the result of `n` pairs, after both sides have begun. Returns the effects.
pub(crate) fn pair(app: &mut App, n: u32, done: bool) -> Vec<Effect> {
    begin_pairs(app);
    hear(app, sample::pair(n, done))
}

/// Begins both sides of the pairs that the app asked for, unless they have begun already.
pub(crate) fn begin_pairs(app: &mut App) {
    let Asked::Pairs { to_begin } = app.bench.pending.asked.clone() else {
        return;
    };
    for run in to_begin {
        hear(app, side(&run));
    }
}
