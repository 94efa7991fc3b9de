//! The screen: a picture of each state at one size, of one state at each size, and properties of every frame. The tests need no
//! terminal. This file makes the states and draws them; each topic has a file of its own.

#[path = "screens/cards.rs"]
mod cards;
#[path = "screens/figures.rs"]
mod figures;
#[path = "screens/footer.rs"]
mod footer;
#[path = "screens/knobs.rs"]
mod knobs;
#[path = "screens/located.rs"]
mod located;
#[path = "screens/looks.rs"]
mod looks;
#[path = "screens/loss.rs"]
mod loss;
#[path = "screens/mystery.rs"]
mod mystery;
#[path = "screens/pairs.rs"]
mod pairs;
#[path = "screens/panels.rs"]
mod panels;
#[path = "screens/presentation.rs"]
mod presentation;
#[path = "screens/stages.rs"]
mod stages;
#[path = "screens/whole.rs"]
mod whole;

use crate::{sample, screen, session};
use perflings::app::figures::truth;
use perflings::app::mystery::MysteryEnd;
use perflings::app::source::FromEngine;
use perflings::app::{
    Action, App, Effect, Markers, Message, Mode, Options, Overlay, Panel, RunState, ThemeName,
    update,
};
use perflings::course::config_file::FileError;
use perflings::course::journey::{JourneyRow, LastJourney};
use perflings::course::save_file::{Prediction, Progress};
use perflings::course::{Course, TextBlock, TextSpan, UnusableContent};
use perflings::judge::Outcome;
use perflings::tui::digits;
use perflings::tui::panels::CARDS;
use protocol::config::{Preset, RunConfig};
use protocol::*;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Style};
use strum::VariantArray;

use screen::{LOOKS, text, with_styles};
use session::{act, hear, open, pair, play_recording, skip_locating, solve, train};

/// A function that makes a state.
type Make = fn() -> App;

fn begin(course: Course) -> App {
    session::begin(course, Options::default()).0
}

/// The sample course before the first event of the engine.
fn before_any_event() -> App {
    begin(sample::course())
}

/// A has trained 40 steps, and the learner has not predicted.
fn a_trains() -> App {
    let mut app = before_any_event();
    train(&mut app, 40);
    app
}

/// The learner has predicted and is asked for a range.
fn range_asked() -> App {
    let mut app = a_trains();
    act(&mut app, Action::Answer(1));
    app
}

/// The learner has predicted and toggled; B has trained 60 steps.
fn b_trains() -> App {
    let mut app = a_trains();
    act(&mut app, Action::Answer(1));
    act(&mut app, Action::RangeShift(1));
    act(&mut app, Action::RangeKeep);
    solve(&mut app);
    act(&mut app, Action::Toggle);
    train(&mut app, 60);
    app
}

/// Stage 3, whose phases do not add up to the step.
fn stage_without_syncs() -> App {
    let mut app = before_any_event();
    act(&mut app, Action::Stage(3));
    act(&mut app, Action::Lesson);
    act(&mut app, Action::Answer(0));
    train(&mut app, 30);
    app
}

/// A and B were measured in 40 pairs.
fn pairs_measured() -> App {
    let mut app = b_trains();
    solve(&mut app);
    act(&mut app, Action::Pair);
    pair(&mut app, 40, true);
    app
}

/// Other programs use the machine, and did so when its peaks were measured.
fn on_a_busy_machine() -> App {
    let mut app = a_trains();
    let load = Load {
        others: Some(0.62),
        busy: true,
        reason: None,
    };
    hear(&mut app, Event::Load(load));
    let run = &mut app.bench.run.story.slots[0].description;
    run.peaks.as_mut().expect("peaks").flops.load = Some(0.5);
    app
}

/// Only 11.5 % of the parameters have a gradient.
fn without_gradients() -> App {
    let mut app = a_trains();
    let run = app.bench.run.wanted.clone().expect("a run");
    hear(&mut app, sample::gradients(&run, 40, true));
    app
}

/// The loss of step 41 is NaN.
fn ended_by_nan() -> App {
    let mut app = a_trains();
    let run = app.bench.run.wanted.clone().expect("a run");
    let Event::Step(mut step) = sample::step(&run, 41) else {
        unreachable!()
    };
    step.loss = Some(f64::NAN.into());
    hear(&mut app, Event::Step(step));
    app
}

/// Stage 2 after a toggle: B continues with A's weights from step 41 on.
fn b_continues_a() -> App {
    let mut app = before_any_event();
    act(&mut app, Action::Stage(2));
    train(&mut app, 40);
    act(&mut app, Action::Answer(1));
    solve(&mut app);
    act(&mut app, Action::Toggle);
    let run = app.bench.run.wanted.clone().expect("a run");
    hear(&mut app, sample::started(&run, 41));
    for at in 41..80 {
        for event in sample::at_step(&run, at) {
            hear(&mut app, event);
        }
    }
    app
}

/// The sizes of a screen whose layouts differ most.
const SIZES: [(u16, u16); 4] = [(60, 16), (80, 24), (120, 36), (200, 50)];

/// The size of most pictures.
const TYPICAL: (u16, u16) = (120, 36);

/// Returns the text of the whole screen in the dark theme.
fn text_at((width, height): (u16, u16), app: &mut App) -> String {
    let buffer = screen::screen(app, width, height, ThemeName::Dark, Markers::Braille);
    text(&buffer)
}

/// Returns the text of one panel in the dark theme.
fn panel_text(panel: Panel, app: &mut App, (width, height): (u16, u16)) -> String {
    let buffer = screen::panel(app, panel, width, height, ThemeName::Dark, Markers::Braille);
    text(&buffer)
}

/// Keeps a picture of one panel in the dark theme.
fn picture_of_panel(panel: Panel, state: &str, app: &mut App, (width, height): (u16, u16)) {
    let buffer = screen::panel(app, panel, width, height, ThemeName::Dark, Markers::Braille);
    let name = format!("panel_{}_{state}_{width}x{height}", panel.into_str());
    insta::assert_snapshot!(name, with_styles(&buffer));
}

/// Keeps a picture of the whole screen in another theme.
fn picture_in_theme(name: &str, app: &mut App, theme: ThemeName, markers: Markers) {
    let (width, height) = TYPICAL;
    let buffer = screen::screen(app, width, height, theme, markers);
    insta::assert_snapshot!(format!("{name}_{width}x{height}"), with_styles(&buffer));
}

/// Keeps a picture of the whole screen in the dark theme: its text, and its styles unless the screen is very wide.
fn picture(name: &str, app: &mut App, (width, height): (u16, u16)) {
    let buffer = screen::screen(app, width, height, ThemeName::Dark, Markers::Braille);
    let drawn = match width {
        200.. => text(&buffer),
        _ => with_styles(&buffer),
    };
    insta::assert_snapshot!(format!("{name}_{width}x{height}"), drawn);
}

/// Fails if the whole screen at one of these sizes lacks one of these texts.
fn assert_says(sizes: &[(u16, u16)], app: &App, texts: &[&str]) {
    for size in sizes {
        let shown = text_at(*size, &mut app.clone());
        for wanted in texts {
            assert!(shown.contains(wanted), "{wanted} at {size:?}: {shown}");
        }
    }
}

/// A mystery whose B was judged and is not solved yet.
fn mystery_not_solved() -> App {
    let options = Options {
        mystery: Some((Some(14), 1)),
        ..Options::default()
    };
    let mut app = session::begin(sample::course(), options).0;
    train(&mut app, 40);
    act(&mut app, Action::Knobs);
    act(&mut app, Action::KnobRow(4));
    act(&mut app, Action::KnobTurn(1));
    let run = app.bench.run.wanted.clone().expect("a run");
    hear(&mut app, sample::started(&run, 41));
    act(&mut app, Action::Pair);
    train(&mut app, 59);
    let finished = Finished {
        slot: Slot::B,
        steps: 60,
        loss_first: 6.93.into(),
        loss_last: 6.94.into(),
        ln_vocab: 6.908,
        step_ms: Some(Spread::default()),
        clock: "host-sync".to_owned(),
        ..Finished::default()
    };
    hear(&mut app, Event::Finished(Box::new(finished)));
    app
}

/// The built-in course at 80 columns. A has trained 40 steps.
fn built_in_course() -> App {
    let mut app = begin(Course::builtin());
    session::resize(&mut app, 80, 24);
    train(&mut app, 40);
    app
}

/// The exercise with this label, whose recorded run was played to its end.
fn recorded_run(label: &str) -> App {
    let mut app = built_in_course();
    open(&mut app, label);
    play_recording(&mut app);
    app
}

/// The open knobs: one was changed and its B trains, another one is selected.
fn at_the_knobs() -> App {
    let mut app = a_trains();
    act(&mut app, Action::Answer(1));
    act(&mut app, Action::RangeShift(1));
    act(&mut app, Action::RangeKeep);
    act(&mut app, Action::Knobs);
    act(&mut app, Action::KnobRow(2));
    act(&mut app, Action::KnobTurn(1));
    train(&mut app, 50);
    act(&mut app, Action::KnobRow(3));
    app
}

/// A run without a stage, with a value of a knob that was refused.
fn free_run() -> App {
    let options = Options {
        free: Some(RunConfig::preset(Preset::Tiny)),
        ..Options::default()
    };
    let mut app = session::begin(sample::course(), options).0;
    train(&mut app, 40);
    let heads = app
        .bench
        .comparison
        .offers
        .iter()
        .position(|knob| knob.path == "model.kv-heads");
    app.bench.comparison.select(heads.expect("a knob"));
    act(&mut app, Action::KnobTurn(1));
    act(&mut app, Action::KnobTurn(1));
    app
}

/// Returns true if a word is on the screen in large glyphs of any size.
fn has_large(screen: &Buffer, word: &str) -> bool {
    let found = |size: u16| {
        let (wide, high) = (digits::width(word)? * size, digits::rows(size));
        let mut glyphs = Buffer::empty(Rect::new(0, 0, wide, high));
        digits::draw(&mut glyphs, (0, 0), word, size, Style::new());
        let rows = 0..=screen.area.height.checked_sub(high)?;
        let mut places = rows.flat_map(|y| (0..screen.area.width).map(move |x| (x, y)));
        let same = |x: u16, y: u16| {
            // The gap after the last glyph may be cut off.
            let cells = (0..high).flat_map(|row| (0..wide - size).map(move |at| (at, row)));
            cells.into_iter().all(|(at, row)| {
                let shown = screen.cell((x + at, y + row));
                shown.is_some_and(|cell| cell.symbol() == glyphs[(at, row)].symbol())
            })
        };
        places.any(|(x, y)| same(x, y)).then_some(())
    };
    (1..=5).any(|size| found(size).is_some())
}

/// Returns every card over the built-in course, with its name.
fn open_cards() -> Vec<(String, App)> {
    let mut apps = Vec::new();
    // The card of the lanes needs a kernel exercise; `lanes.rs` tests it.
    for card in CARDS.iter().filter(|card| card.overlay != Overlay::Lanes) {
        let mut app = built_in_course();
        let line = "error: XDG_RUNTIME_DIR is invalid or not set in the environment.";
        for line in [line, "vulkan: device lost"] {
            update(
                &mut app,
                Message::Engine(FromEngine::Stray(line.to_owned())),
            );
        }
        act(&mut app, Action::Open(card.overlay));
        // Some keys open no card here, because nothing was skipped or tried.
        app.view.overlay = Some(card.overlay);
        apps.push((format!("{:?}", card.overlay).to_lowercase(), app));
    }
    apps
}

/// Returns very different states, for tests that try all of them.
pub(crate) fn all_states() -> Vec<App> {
    let mut states = vec![
        before_any_event(),
        a_trains(),
        range_asked(),
        b_trains(),
        stage_without_syncs(),
        pairs_measured(),
        ended_by_nan(),
        hostile(),
        begin(Course::default()),
        built_in_course(),
        recorded_run("d03"),
        at_the_knobs(),
        free_run(),
    ];
    for card in &CARDS {
        let mut app = b_trains();
        act(&mut app, Action::Open(card.overlay));
        states.push(app);
    }
    let mut gone = a_trains();
    update(
        &mut gone,
        Message::Engine(FromEngine::Gone {
            reason: "x".repeat(3000),
        }),
    );
    states.push(gone);
    let mut expanded = b_trains();
    act(&mut expanded, Action::Focus(Panel::Kernels));
    act(&mut expanded, Action::Expand);
    states.push(expanded);
    let mut open = a_trains();
    open.view.lesson_open = true;
    open.view.confirm = Some(perflings::app::Confirm::Reset);
    states.push(open);
    states
}

const HOSTILE: &str =
    "\u{1b}[2J\u{1b}]0;title\u{7}\r\n\t\u{202e}reversed\u{200b} 表示 👩‍👩‍👧 e\u{301} ";

/// Returns a state in which every text has control characters and every number is absurd.
fn hostile() -> App {
    let mut app = begin(hostile_course());
    let slot = app.bench.run.wanted.as_ref().expect("a run").slot;
    train(&mut app, 3);
    let absurd = [
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::MAX,
        f64::MIN,
        0.0,
        -0.0,
        1e-300,
    ];
    for (index, value) in absurd.into_iter().enumerate() {
        let step = u64::MAX - 9 + index as u64;
        for event in hostile_events(slot, step, value) {
            hear(&mut app, event);
        }
        app.lesson.learner.pair = Some(Pair {
            n: u32::MAX,
            wanted: 1,
            ratio: value,
            low: Some(value),
            high: Some(value),
            remaining_s: value,
            ..Pair::default()
        });
    }
    let stray = FromEngine::Stray(HOSTILE.repeat(50));
    update(&mut app, Message::Engine(stray));
    app
}

/// Returns the sample course with hostile texts in every stage.
fn hostile_course() -> Course {
    let mut course = sample::course();
    for stage in &mut course.stages {
        for text in [
            &mut stage.title,
            &mut stage.symptom,
            &mut stage.fault,
            &mut stage.fix,
            &mut stage.prediction.prompt,
        ] {
            *text = HOSTILE.repeat(5);
        }
        stage.prediction.choices = vec![HOSTILE.to_owned(); 4];
        let spans = vec![
            TextSpan::Text(HOSTILE.repeat(20)),
            TextSpan::Code("x".repeat(500)),
            TextSpan::Placeholder("no.such".to_owned()),
        ];
        stage.lesson.sections[0].blocks = vec![
            TextBlock::Heading(1, spans.clone()),
            TextBlock::Item {
                depth: 200,
                marker: HOSTILE.to_owned(),
                spans: spans.clone(),
            },
            TextBlock::Code {
                text: HOSTILE.repeat(9),
            },
            TextBlock::Table {
                head: vec![spans.clone(); 9],
                rows: vec![vec![spans; 12]; 2],
            },
            TextBlock::Rule,
        ];
    }
    course
}

/// Returns an event of each kind in which every text is hostile and every figure is `value`.
fn hostile_events(slot: Slot, step: u64, value: f64) -> Vec<Event> {
    let phases = PhaseTimes {
        forward: value,
        backward: -value,
        optimizer: value,
        residual: value,
        step: value,
        ..PhaseTimes::default()
    };
    let clocks = StepClocks {
        enqueue: value,
        host_sync: value,
        device: Some(value),
    };
    let kernel = KernelRow {
        part: HOSTILE.to_owned(),
        op: HOSTILE.to_owned(),
        ms: value,
        flops: Some(value),
        bytes: Some(value),
        no_work: Some(HOSTILE.to_owned()),
        calls: u32::MAX,
        layers: u32::MAX,
        ..KernelRow::default()
    };
    let gradient = GradientRow {
        name: HOSTILE.to_owned(),
        parameters: u64::MAX,
        norm: Some(value.into()),
        zero_pct: Some(value),
    };
    let lint = Lint {
        name: HOSTILE.to_owned(),
        why: HOSTILE.repeat(9),
        next: String::new(),
    };
    vec![
        Event::Step(Step {
            slot,
            step,
            loss: Some(value.into()),
            ms: value,
            synced: true,
            profiled: false,
            phases: Some(phases),
            clocks: Some(clocks),
        }),
        Event::Throughput(Throughput {
            slot,
            step_ms: Spread {
                median: value,
                p25: value,
                p75: value,
                p95: value,
                n: u64::MAX,
            },
            samples_per_s: value,
            tokens_per_s: value,
            wall_samples_per_s: value,
            phases: Some(phases),
            flops: Some(value),
            peak_flops: Some(value),
            clock: HOSTILE.to_owned(),
            ..Throughput::default()
        }),
        Event::Kernels(StepProfile {
            slot,
            rows: vec![kernel; 3],
            device_ms: value,
            coverage: value,
            unbracketed_ms: value,
            ..StepProfile::default()
        }),
        Event::Gradients(Gradients {
            slot,
            params_pct: value,
            norm: value.into(),
            rows: vec![gradient; 3],
            ..Gradients::default()
        }),
        Event::Evidence(Evidence {
            slot,
            logit_std: Some(value.into()),
            logit_min: Some(value.into()),
            logit_max: Some(value.into()),
            argmax_is_input: Some(value),
            rms: vec![value.into(); 200],
            parity: Some(value.into()),
            strides: vec![(HOSTILE.to_owned(), vec![usize::MAX; 8])],
            clocks: Some(clocks),
            ..Evidence::default()
        }),
        Event::Memory(Memory {
            slot,
            peak_bytes: Some(u64::MAX),
            weights: u64::MAX / 4,
            reason: Some(HOSTILE.to_owned()),
            ..Memory::default()
        }),
        Event::Lints {
            slot,
            lints: vec![lint; 40],
        },
    ]
}
