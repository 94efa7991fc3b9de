//! Toggles and pairs of A and B, and the learner's file as B.

use super::*;

#[test]
fn toggling_before_the_prediction_asks_once_and_marks_it_skipped() {
    let mut app = running(10);
    solve(&mut app);
    assert_eq!(act(&mut app, Action::Toggle), []);
    assert_eq!(
        app.view.confirm,
        Some(Confirm::SkipPrediction(AfterSkip::Toggle))
    );
    assert_eq!(act(&mut app, Action::No), []);
    assert_eq!((app.view.confirm, revealed(&app)), (None, false));

    act(&mut app, Action::Toggle);
    let effects = act(&mut app, Action::Yes);
    let (_, run) = start_of(&effects);
    assert_eq!((run.variant.as_str(), run.slot), ("fixed", Slot::B));
    let (_, progress) = saved_progress(&effects)[0];
    assert_eq!(progress.prediction, Some(Prediction::Skipped));
    // The question is asked only once.
    assert!(revealed(&app));
    assert_eq!(start_of(&act(&mut app, Action::Toggle)).1.variant, "broken");
    // A skipped prediction stays skipped.
    act(&mut app, Action::Answer(1));
    assert_eq!(app.lesson.learner.progress.calibration().answered, 0);
}

#[test]
fn a_toggle_that_keeps_the_parameters_continues_the_run() {
    let mut app = running(0);
    act(&mut app, Action::Stage(2));
    train(&mut app, 20);
    act(&mut app, Action::Answer(0));
    solve(&mut app);
    let effects = act(&mut app, Action::Toggle);
    let [Command::Apply { run, .. }] = commands(&effects)[..] else {
        panic!("one apply in {effects:?}")
    };
    assert_eq!((run.variant.as_str(), run.slot), ("fixed", Slot::B));
    let fixed = run.clone();
    // The old run continues until the engine confirms the toggle.
    let broken = app
        .bench
        .run
        .slot(Slot::A)
        .description
        .spec()
        .expect("A ran");
    hear(&mut app, sample::step(&broken, 21));
    assert_eq!(
        (app.bench.run.active, app.shown_run().step()),
        (Slot::A, Some(21))
    );
    hear(&mut app, sample::started(&fixed, 22));
    hear(&mut app, sample::step(&fixed, 22));
    assert_eq!(
        (app.bench.run.active, app.shown_run().step()),
        (Slot::B, Some(22))
    );
    assert!(!app.bench.switching());
    assert_eq!(
        app.bench.run.other().expect("A stays").description.name,
        "broken"
    );

    act(&mut app, Action::Toggle);
    hear(&mut app, sample::started(&broken, 30));
    hear(&mut app, sample::step(&broken, 30));
    let a = app.bench.run.slot(Slot::A);
    assert_eq!(
        a.loss.last().map(|(step, _)| step),
        Some(30),
        "A continues its own curve"
    );
    assert_eq!(a.loss.first().map(|(step, _)| step), Some(0));
    assert!(
        a.loss.all().last().expect("points").gap,
        "with a gap in between"
    );
}

#[test]
fn a_toggle_that_changes_the_parameters_starts_b_at_step_0() {
    let mut app = running(20);
    act(&mut app, Action::Answer(1));
    solve(&mut app);
    let effects = act(&mut app, Action::Toggle);
    assert_eq!(start_of(&effects).1.slot, Slot::B);
    train(&mut app, 3);
    assert_eq!(
        (app.bench.run.active, app.shown_run().step()),
        (Slot::B, Some(3))
    );
    assert_eq!(
        app.bench
            .run
            .other()
            .and_then(|other| other.loss.last())
            .map(|(step, _)| step),
        Some(20)
    );
    assert_eq!(
        app.lesson.learner.activity(app.stage().expect("a stage")),
        Activity::Check
    );
}

#[test]
fn pairs_give_a_curve_to_a_side_that_never_ran_alone() {
    let mut app = running(5);
    act(&mut app, Action::Answer(1));
    solve(&mut app);
    let effects = act(&mut app, Action::Pair);
    let [Command::Pair { a, b, .. }] = commands(&effects)[..] else {
        panic!("one pair in {effects:?}")
    };
    let (a, b) = (a.clone(), b.clone());
    // Late steps of the old run are dropped.
    hear(&mut app, sample::step(&a, 6));
    for run in [&a, &b] {
        hear(&mut app, side(run));
    }
    for step in 0..3 {
        hear(&mut app, sample::step(&a, step));
        hear(&mut app, sample::step(&b, step));
    }
    let last = |app: &App, slot| app.bench.run.slot(slot).loss.last().map(|(step, _)| step);
    assert_eq!(last(&app, Slot::A), Some(5), "A keeps its own curve");
    assert_eq!(
        last(&app, Slot::B),
        Some(2),
        "B has only the steps of pairs"
    );
    assert_eq!(app.bench.run.active, Slot::A);
    pair(&mut app, 40, true);
    assert!(app.bench.run.slot(Slot::B).description.has(&b.config));
}

#[test]
fn pairs_end_with_a_verdict_and_leave_the_curves_as_they_were() {
    let mut app = running(5);
    act(&mut app, Action::Answer(1));
    solve(&mut app);
    let effects = act(&mut app, Action::Pair);
    let [
        Command::Pair {
            device,
            stage,
            a,
            b,
            pairs,
            ..
        },
    ] = commands(&effects)[..]
    else {
        panic!("one pair in {effects:?}")
    };
    assert_eq!(
        (device.as_str(), *stage, a.slot, b.slot, *pairs),
        ("cpu", 1, Slot::A, Slot::B, 0)
    );
    let (a, b) = (a.clone(), b.clone());
    assert!(app.bench.pairing());
    assert_eq!(act(&mut app, Action::Pause), [], "pairs cannot be paused");
    pair(&mut app, 6, false);
    hear(&mut app, sample::step(&a, 0));
    hear(&mut app, sample::step(&b, 0));
    assert_eq!(app.bench.run.state, RunState::Running);
    let first_result = app.lesson.learner.pair.as_ref().expect("pairs");
    assert_eq!(
        (first_result.n, first_result.verdict),
        (6, Verdict::Unclear)
    );
    pair(&mut app, 40, true);
    assert_eq!(
        (app.bench.run.state.clone(), app.bench.pairing()),
        (RunState::Finished, false)
    );
    let summary = Finished {
        slot: Slot::A,
        pair: Some(Pair::default()),
        ..Finished::default()
    };
    hear(&mut app, Event::Finished(Box::new(summary)));
    let shown = app.bench.run.slot(Slot::A);
    assert!(shown.finished.is_none(), "the summary is about pairs only");
    assert_eq!(shown.loss.last().map(|(step, _)| step), Some(5));
    let stage = app.stage().expect("a stage");
    assert_eq!(app.lesson.learner.activity(stage), Activity::Check);
    assert!(app.lesson.learner.looks_back(stage));
    assert!(
        !app.lesson.learner.has_passed(stage),
        "a stage without checks is never passed"
    );
    // A restart brings back the run that was on the screen before the pairs.
    assert_eq!(
        start_of(&act(&mut app, Action::Restart)).1.variant,
        "broken"
    );
}

#[test]
fn the_old_run_continues_if_the_engine_refuses_a_toggle() {
    let mut app = running(0);
    act(&mut app, Action::Stage(2));
    train(&mut app, 4);
    act(&mut app, Action::Answer(0));
    solve(&mut app);
    act(&mut app, Action::Toggle);

    hear(
        &mut app,
        Event::Failed(Failed {
            kind: FailedKind::Usage,
            reason: "needs 70 GiB".to_owned(),
            request: 0,
        }),
    );

    assert_eq!(app.bench.run.state, RunState::Running);
    assert_eq!(wanted(&app).variant, "broken");
    assert!(notice(&app).contains("70 GiB"));
}

#[test]
fn a_saved_configuration_runs_as_b() {
    let mut app = running(8);
    act(&mut app, Action::Answer(1));
    let mut config = app.stage().expect("a stage").fixed.clone();
    config.train.learning_rate = 1e-3;
    let effects = update(
        &mut app,
        Message::FileSaved {
            config: Ok(Box::new(config)),
        },
    );
    let (_, run) = start_of(&effects);
    assert_eq!((run.variant.as_str(), run.slot), ("custom", Slot::B));
    let effects = update(
        &mut app,
        Message::FileSaved {
            config: Err("config.toml:2: unknown key".to_owned()),
        },
    );
    assert_eq!(effects, []);
    assert!(notice(&app).contains("config.toml:2"));
    assert_eq!(
        app.bench.run.wanted.expect("still").variant,
        "custom",
        "a bad file replaces nothing"
    );
}
