//! A session of the screen without terminal, engine or clock: an `App` over the sample course, and what happens to it.
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

/// The app with no progress on a screen of 120 × 40, and the effects of its start.
pub(crate) fn begin(course: Course, options: Options) -> (App, Vec<Effect>) {
    let (mut app, effects) = App::new(course, Progress::default(), options);
    resize(&mut app, 120, 40);
    (app, effects)
}

pub(crate) fn resize(app: &mut App, width: u16, height: u16) {
    update(app, Message::Resized { width, height });
}

pub(crate) fn hear(app: &mut App, event: Event) -> Vec<Effect> {
    let line = StreamLine { t: 0.0, event };
    update(app, Message::Engine(FromEngine::Line(line)))
}

pub(crate) fn act(app: &mut App, action: Action) -> Vec<Effect> {
    update(app, Message::Action(action))
}

/// The run of a stage's variant as shipped: `broken` is A's, anything else, the solution, B's.
pub(crate) fn spec(stage: &Stage, variant: &str) -> RunSpec {
    let mut comparison = Comparison::of_stage(stage, None);
    if variant == "broken" {
        return comparison.run_a();
    }
    comparison.set_b(stage.fixed.clone(), true);
    comparison.run_b()
}

/// The run that the app asked for.
pub(crate) fn wanted(app: &App) -> RunSpec {
    app.bench.run.wanted.clone().expect("a run was asked for")
}

/// Everything that the run wanted now reports up to this step.
pub(crate) fn train(app: &mut App, steps: u64) {
    let run = wanted(app);
    for event in sample::until(&run, steps) {
        hear(app, event);
    }
}

/// Opens the exercise of this label from the list.
pub(crate) fn open(app: &mut App, label: &str) -> Vec<Effect> {
    let mut exercises = app.lesson.course.exercises.iter();
    let at = exercises.position(|one| one.label() == label);
    let entry = app.lesson.course.stages.len() + at.expect("the course has it");
    act(app, Action::Open(Overlay::Stages));
    act(app, Action::ChooseLine(entry))
}

/// Plays the open recorded run to its end, and returns how many lines it has.
pub(crate) fn play_recording(app: &mut App) -> usize {
    let text = app.detective().expect("a recorded run").shown();
    let recording = Recording::from_text(text, Path::new("run.jsonl")).expect("a whole recording");
    for line in recording.iter() {
        update(app, Message::Recorded(FromEngine::Line(line)));
    }
    recording.line_count()
}

/// Goes on to the evidence without saying which panel shows the fault.
pub(crate) fn skip_locating(app: &mut App) {
    act(app, Action::NextPointer);
    act(app, Action::Yes);
}

/// The learner's B is the stage's solution from now on; nothing runs yet.
pub(crate) fn solve(app: &mut App) {
    let solution = app.stage().expect("a stage").fixed.clone();
    app.bench.comparison.set_b(solution, true);
}

/// An event as the answer to the request of this number.
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

/// A side of pairs begins.
pub(crate) fn side(run: &RunSpec) -> Event {
    let Event::Started(started) = sample::started(run, 0) else {
        unreachable!()
    };
    let paired = true;
    Event::Started(Started { paired, ..started })
}

/// Pairs that were asked for: both sides begin, if they have not, and so many are measured.
pub(crate) fn pair(app: &mut App, n: u32, done: bool) -> Vec<Effect> {
    begin_pairs(app);
    hear(app, sample::pair(n, done))
}

/// Both sides of the pairs that were asked for begin.
pub(crate) fn begin_pairs(app: &mut App) {
    let Asked::Pairs { to_begin } = app.bench.pending.asked.clone() else {
        return;
    };
    for run in to_begin {
        hear(app, side(&run));
    }
}
