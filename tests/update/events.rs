//! What the state keeps of the engine's lines.

use super::*;

#[test]
fn lines_that_are_no_events_go_to_a_log_of_limited_length() {
    let mut app = running(1);
    update(
        &mut app,
        Message::Engine(FromEngine::Stray("\u{1b}[2Jdriver\u{7} says".to_owned())),
    );
    update(
        &mut app,
        Message::Engine(FromEngine::Malformed {
            line: "{".to_owned(),
            why: "end of input".to_owned(),
        }),
    );
    let log = &app.devices.log;
    assert_eq!((log.entries.len(), log.unseen, log.malformed), (2, 2, 1));
    assert_eq!(log.entries[0].text, "·[2Jdriver· says");
    act(&mut app, Action::Open(Overlay::Log));
    assert_eq!(app.devices.log.unseen, 0);
    for n in 0..5_000 {
        update(
            &mut app,
            Message::Engine(FromEngine::Stray(format!("line {n}"))),
        );
    }
    assert_eq!(app.devices.log.entries.len(), 500);
}

#[test]
fn a_long_run_does_not_grow_the_state() {
    let mut app = running(0);
    let run = wanted(&app);
    for step in 1..200_000 {
        hear(&mut app, sample::step(&run, step));
        if step % 50_000 == 0 {
            let shown = app.bench.run.shown();
            for series in [&shown.loss, &shown.step_ms] {
                assert!(series.recent().len() <= 512 && series.all().len() <= 1024);
            }
        }
    }
}

#[test]
fn texts_and_lists_of_events_are_limited() {
    let mut app = running(1);
    let row = KernelRow {
        op: "x".repeat(10_000),
        ..KernelRow::default()
    };
    hear(
        &mut app,
        Event::Kernels(StepProfile {
            rows: vec![row; 5_000],
            ..StepProfile::default()
        }),
    );
    let kernels = app.bench.run.shown().kernels.as_ref().expect("kernels");
    assert!(kernels.rows.len() <= 512 && kernels.rows[0].op.len() < 100);
}

#[test]
fn no_frame_is_drawn_without_a_change() {
    let mut app = running(3);
    let before = app.view.revision;
    hear(&mut app, Event::Heartbeat { device_s: None });
    update(&mut app, Message::Tick { now_ms: 40 });
    update(&mut app, Message::Drawn(DrawnFrame::default()));
    assert_eq!(app.view.revision, before);
    let run = wanted(&app);
    hear(&mut app, sample::step(&run, 4));
    assert!(app.view.revision > before);
}
