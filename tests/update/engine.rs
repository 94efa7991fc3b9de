//! The life of a run: pausing it, failures, and an engine that ends.

use super::*;

#[test]
fn a_pause_is_requested_and_then_confirmed() {
    let mut app = running(3);
    assert_eq!(act(&mut app, Action::Pause), [Effect::Send(Command::Pause)]);
    assert_eq!(app.bench.run.state, RunState::Pausing);
    hear(&mut app, Event::Paused { slot: Slot::A });
    assert_eq!(app.bench.run.state, RunState::Paused);
    assert_eq!(
        act(&mut app, Action::Pause),
        [Effect::Send(Command::Resume)]
    );
    assert_eq!(app.bench.run.state, RunState::Resuming);
    hear(&mut app, Event::Resumed { slot: Slot::A });
    assert_eq!(app.bench.run.state, RunState::Running);
}

#[test]
fn a_restart_replaces_a_dead_engine_and_keeps_the_figures_until_then() {
    let mut app = running(12);
    let effects = update(
        &mut app,
        Message::Engine(FromEngine::Gone {
            reason: "ended by signal 9".to_owned(),
        }),
    );
    assert_eq!(effects, []);
    assert_eq!(
        app.bench.run.state,
        RunState::EngineGone {
            reason: "ended by signal 9".to_owned()
        }
    );
    assert_eq!(
        app.bench.run.shown().loss.last().map(|(step, _)| step),
        Some(12)
    );
    let effects = act(&mut app, Action::Restart);
    assert_eq!(effects[0], Effect::Restart);
    assert_eq!(start_of(&effects).1.variant, "broken");
    assert_eq!(app.bench.run.state, RunState::Starting);
    train(&mut app, 1);
    assert_eq!(app.bench.run.state, RunState::Running);
}

#[test]
fn a_run_that_failed_on_matrix_cores_can_be_repeated_in_f32() {
    let mut app = free_run(&in_f16(), true);
    assert_eq!(app.bench.in_f32(), None, "the run has not failed");
    let reason = "ended by signal 6".to_owned();

    update(&mut app, Message::Engine(FromEngine::Gone { reason }));

    assert!(next_move(&app).contains("run it in f32"));
    let effects = act(&mut app, Action::InF32);
    assert_eq!(effects[0], Effect::Restart);
    assert_eq!(start_of(&effects).1.config, RunConfig::preset(Preset::Tiny));
}

#[test]
fn a_run_that_lost_its_device_on_matrix_cores_can_be_repeated_in_f32() {
    let mut app = free_run(&in_f16(), true);

    hear(&mut app, Event::Failed(Failed::default()));

    assert!(app.bench.in_f32().is_some());
    assert_eq!(act(&mut app, Action::Restart)[0], Effect::Restart);
}

#[test]
fn a_run_that_split_f32_into_two_f16_is_repeated_with_plain_products() {
    let mut split = RunConfig::preset(Preset::Tiny);
    split.model.matmul = Matmul::Split;
    let mut plain = split.clone();
    plain.model.matmul = Matmul::Own;
    let mut app = free_run(&split, true);

    hear(&mut app, Event::Failed(Failed::default()));

    assert_eq!(app.bench.in_f32(), Some(plain));
}

#[test]
fn a_run_without_matrix_cores_is_not_repeated_in_f32() {
    let mut app = free_run(&in_f16(), false);

    hear(&mut app, Event::Failed(Failed::default()));

    assert_eq!(app.bench.in_f32(), None);
}

/// A configuration that trains in f16.
fn in_f16() -> RunConfig {
    let mut config = RunConfig::preset(Preset::Tiny);
    config.train.precision = Precision::F16;
    config
}

/// A free run that has started, with or without matrix cores.
fn free_run(config: &RunConfig, matrix_cores: bool) -> App {
    let (mut app, _) = begin_with(Options {
        free: Some(config.clone()),
        ..Options::default()
    });
    let Event::Started(started) = sample::started(&wanted(&app), 0) else {
        unreachable!()
    };
    hear(
        &mut app,
        Event::Started(Started {
            matrix_cores,
            ..started
        }),
    );
    app
}

#[test]
fn a_silent_engine_is_killed_and_the_reason_stays() {
    let mut app = running(1);
    assert_eq!(
        update(&mut app, Message::Engine(FromEngine::Silent)),
        [Effect::Kill]
    );
    // The end of its process does not replace the reason.
    update(
        &mut app,
        Message::Engine(FromEngine::Gone {
            reason: "ended by signal 9".to_owned(),
        }),
    );
    let RunState::EngineGone { reason } = &app.bench.run.state else {
        panic!("{:?}", app.bench.run.state)
    };
    assert!(reason.contains("heartbeat"), "{reason}");
}

#[test]
fn a_failed_run_keeps_its_reason_until_it_is_closed() {
    let (mut app, _) = begin();
    hear(
        &mut app,
        Event::Failed(Failed {
            kind: FailedKind::Usage,
            reason: "needs 70 GiB".to_owned(),
            request: 0,
        }),
    );
    assert_eq!(
        app.bench.run.state,
        RunState::Failed {
            kind: FailedKind::Usage,
            reason: "needs 70 GiB".to_owned()
        }
    );
    assert_eq!(app.devices.log.entries.len(), 1);
    act(&mut app, Action::Close);
    assert_eq!(app.bench.run.state, RunState::Idle);
}

#[test]
fn a_nan_ends_the_run_and_names_its_tensor() {
    let mut app = running(6);
    let run = wanted(&app);
    let Event::Step(mut step) = sample::step(&run, 7) else {
        unreachable!()
    };
    step.loss = Some(f64::NAN.into());
    hear(&mut app, Event::Step(step));
    let finished = Finished {
        steps: 7,
        ended: Some("not-finite: layers.0.mlp".to_owned()),
        ..Finished::default()
    };
    hear(&mut app, Event::Finished(Box::new(finished)));
    assert_eq!(
        app.bench.run.shown().loss.not_finite.map(|(step, _)| step),
        Some(7)
    );
    assert_eq!(app.bench.run.state, RunState::Finished);
    assert!(notice(&app).contains("layers.0.mlp"));
}

#[test]
fn a_run_pauses_after_ten_minutes_without_a_key() {
    let mut app = running(20);
    let run = wanted(&app);
    // Each second has a step and a tick.
    let train_seconds = |app: &mut App, from: u64, to: u64| -> Vec<Effect> {
        let mut effects = Vec::new();
        for second in from..to {
            hear(app, sample::step(&run, 20 + second));
            let now_ms = 1000 * second;
            effects.extend(update(app, Message::Tick { now_ms }));
        }
        effects
    };
    assert_eq!(train_seconds(&mut app, 0, 600), []);
    let mut presented = app.clone();
    act(&mut presented, Action::Present);
    train(&mut presented, 20);

    let effects = train_seconds(&mut app, 600, 602);

    assert_eq!(commands(&effects), [&Command::Pause]);
    assert!(notice(&app).contains("ten minutes"));
    // The notice stays until the next key.
    hear(&mut app, Event::Paused { slot: Slot::A });
    update(&mut app, Message::Tick { now_ms: 700_000 });
    assert!(notice(&app).contains("ten minutes"));
    let resumed = act(&mut app, Action::Pause);
    assert_eq!(commands(&resumed), [&Command::Resume]);
    assert_eq!(app.view.notice, None);
    // A presentation is not paused, because its audience presses no key.
    train_seconds(&mut presented, 600, 1300);
    assert_eq!(presented.bench.run.state, RunState::Running);
}

#[test]
fn the_engine_pauses_while_the_program_is_suspended() {
    let mut app = running(5);
    let effects = act(&mut app, Action::Suspend);
    let order = [
        Effect::Send(Command::Pause),
        Effect::Suspend,
        Effect::Send(Command::Resume),
    ];
    assert_eq!(effects[..3], order);
}
