//! A mystery: its hidden values, the verdict on B, and its end.

use perflings::app::Message;
use perflings::app::mystery::{JudgeStep, MysteryEnd};
use perflings::app::{Action, App, Confirm, Effect, Mode, Options, Overlay, Panel, update};
use perflings::course::save_file::ProgressChange;
use perflings::judge::mystery::STEPS;
use protocol::config::{Loss, Norm};
use protocol::*;

use super::sample;
use super::session::{act, begin, hear, train, wanted};

/// The mystery of seed 14 and level 1, whose learning rate is far too low. A has trained 30 steps.
fn open() -> App {
    let options = Options {
        mystery: Some((Some(14), 1)),
        ..Options::default()
    };
    let (mut app, _) = begin(sample::course(), options);
    train(&mut app, 30);
    app
}

/// Opens the knobs and selects the one with this path.
fn select_knob(app: &mut App, path: &str) {
    act(app, Action::Knobs);
    let offers = &app.bench.comparison.offers;
    let row = offers.iter().position(|knob| knob.path == path);
    app.bench.comparison.select(row.expect("offered"));
}

/// The learner has turned the learning rate once, which gives B the right value. B has started.
fn with_fix() -> App {
    let mut app = open();
    select_knob(&mut app, "train.learning-rate");
    act(&mut app, Action::KnobTurn(1));
    let run = wanted(&app);
    hear(&mut app, sample::started(&run, 31));
    app
}

/// Returns the end of the judged run, with this last loss and everything else right.
fn finished(app: &App, loss: f64) -> Event {
    Event::Finished(Box::new(Finished {
        slot: Slot::B,
        steps: STEPS,
        loss_first: 6.93.into(),
        loss_last: loss.into(),
        ln_vocab: wanted(app).config.ln_vocab(),
        step_ms: Some(Spread::default()),
        clock: "host-sync".to_owned(),
        grad: GradSummary {
            tensors: 39,
            with_grad: 39,
            params_pct: 100.0,
            ..GradSummary::default()
        },
        phases_ms: Some(PhaseTimes {
            forward: 10.0,
            backward: 20.0,
            optimizer: 10.0,
            residual: 0.0,
            step: 40.0,
            ..PhaseTimes::default()
        }),
        evidence: Some(Evidence {
            parity: Some(5e-7.into()),
            ..Evidence::default()
        }),
        ..Finished::default()
    }))
}

/// The learner has asked for the verdict, and the judged run has begun.
fn verdict_asked() -> App {
    let mut app = with_fix();
    act(&mut app, Action::Pair);
    let run = wanted(&app);
    assert_eq!((run.slot, run.steps), (Slot::B, Some(STEPS)));
    hear(&mut app, sample::started(&run, 0));
    app
}

/// Returns the two sides of the requested pairs.
fn paired(effects: &[Effect]) -> Option<(&RunSpec, &RunSpec)> {
    effects.iter().find_map(|effect| match effect {
        Effect::Send(Command::Pair { a, b, .. }) => Some((a, b)),
        _ => None,
    })
}

/// Returns the name and the best score of the mystery that these effects save.
fn saved_score(effects: &[Effect]) -> Option<(&str, u32)> {
    effects.iter().find_map(|effect| match effect {
        Effect::Save(ProgressChange::Mystery(name, score)) => Some((name.as_str(), score.best)),
        _ => None,
    })
}

/// Returns the end of pairs with this verdict.
fn pair(verdict: Verdict) -> Event {
    let Event::Pair(pair) = sample::pair(40, true) else {
        unreachable!()
    };
    Event::Pair(Pair { verdict, ..pair })
}

/// B was judged: everything but the speed was right, and the pairs ended with this verdict. Returns the effects of their end too.
fn judged(verdict: Verdict) -> (App, Vec<Effect>) {
    let mut app = verdict_asked();
    let event = finished(&app, 6.7);
    let effects = hear(&mut app, event);
    let (a, b) = paired(&effects).expect("pairs begin");
    let mystery = &app.mode.mystery().expect("open").mystery;
    assert_eq!(
        (&a.config, &b.config),
        (&mystery.good, &app.bench.comparison.config_b)
    );
    for run in [a.clone(), b.clone()] {
        let Event::Started(started) = sample::started(&run, 0) else {
            unreachable!()
        };
        hear(
            &mut app,
            Event::Started(Started {
                paired: true,
                ..started
            }),
        );
    }
    let effects = hear(&mut app, pair(verdict));
    (app, effects)
}

#[test]
fn b_restarts_even_if_its_new_value_equals_the_hidden_one() {
    let mut app = open();
    select_knob(&mut app, "model.init");
    let starts = |effects: &[Effect]| {
        effects
            .iter()
            .any(|effect| matches!(effect, Effect::Send(Command::Start { .. })))
    };
    act(&mut app, Action::KnobTurn(1));
    assert_eq!(app.bench.comparison.config_b, app.bench.comparison.config_a);
    let now_ms = app.clock.now_ms + 1000;
    assert!(starts(&update(&mut app, Message::Tick { now_ms })));
    let run = wanted(&app);
    hear(&mut app, sample::started(&run, 0));
    // A toggle back to A reveals nothing either.
    assert!(starts(&act(&mut app, Action::Toggle)));
}

#[test]
fn the_values_of_a_are_hidden() {
    let app = open();
    let mystery = app.mode.mystery().expect("open");
    assert_eq!(wanted(&app).config, mystery.mystery.broken);
    assert!(app.is_unsolved() && app.stage().is_none() && app.bench.comparison.hidden);
    assert!(
        app.bench
            .comparison
            .rows()
            .all(|row| row.a.is_none() && row.b.is_none())
    );
    assert_eq!(app.shown_run().slot_name(Slot::A), "A mystery");
}

#[test]
fn b_is_not_judged_before_a_change() {
    let mut app = open();
    for action in [Action::Toggle, Action::Pair] {
        let effects = act(&mut app, action);
        assert!(effects.is_empty() && app.knobs_open(), "{action:?}");
        act(&mut app, Action::Close);
    }
    assert!(app.mode.mystery().expect("open").judging.is_none());
}

#[test]
fn each_opened_panel_and_each_tried_configuration_counts_once() {
    let mut app = with_fix();
    for panel in [Panel::Kernels, Panel::Loss, Panel::Kernels, Panel::Lesson] {
        act(&mut app, Action::Focus(panel));
    }
    let run = wanted(&app);
    hear(&mut app, sample::started(&run, 40));
    let mystery = app.mode.mystery().expect("open");
    assert_eq!(mystery.opened_panels.len(), 1, "the loss is always visible");
    assert_eq!(mystery.changes, 0, "the run has just begun");
    let changes_after = |app: &mut App, ms: u64| {
        let now_ms = app.clock.now_ms + ms;
        update(app, Message::Tick { now_ms });
        app.mode.mystery().expect("open").changes
    };
    assert_eq!(changes_after(&mut app, 2_000), 1);
    // A configuration that runs for less than two seconds does not count.
    let mut run = wanted(&app);
    run.config.train.learning_rate = 0.5;
    hear(&mut app, sample::started(&run, 50));
    assert_eq!(changes_after(&mut app, 500), 1);
    // A configuration costs each knob that differs from the nearest tried one.
    run.config.model.norm = Norm::Composed;
    run.config.model.loss = Loss::Composed;
    hear(&mut app, sample::started(&run, 60));
    assert_eq!(changes_after(&mut app, 2_000), 4);
    hear(&mut app, sample::started(&run, 70));
    assert_eq!(changes_after(&mut app, 2_000), 4, "tried before");
}

#[test]
fn a_right_b_as_fast_as_the_known_good_configuration_solves_the_mystery() {
    let (app, effects) = judged(Verdict::Same);
    let mystery = app.mode.mystery().expect("open");
    let Some(MysteryEnd::Solved { points, .. }) = mystery.end else {
        panic!("{:?}", mystery.report);
    };
    assert_eq!(
        points, 90,
        "100 points for one fault, less 10 for one changed knob"
    );
    assert_eq!(saved_score(&effects), Some(("14-1", 90)));
    assert!(!app.is_unsolved() && !app.bench.comparison.hidden);
    // The screen still shows the broken A, not the known-good configuration.
    let a = &app.bench.run.slot(Slot::A).description;
    assert!(a.has(&mystery.mystery.broken));
}

#[test]
fn a_slower_b_does_not_solve_the_mystery_and_the_verdict_names_no_knob() {
    let (app, effects) = judged(Verdict::Slower);
    let mystery = app.mode.mystery().expect("open");
    assert!(mystery.end.is_none() && app.is_unsolved() && app.bench.comparison.hidden);
    assert_eq!(saved_score(&effects), None);
    let report = mystery.report.as_ref().expect("judged");
    assert!(!report.passed());
    for line in &report.lines {
        let words = format!("{} {} {}", line.name, line.asked, line.measured);
        for knob in &app.bench.comparison.offers {
            assert!(!words.contains(knob.path), "{words}");
        }
    }
}

#[test]
fn a_b_whose_run_fails_a_criterion_is_not_measured_in_pairs() {
    let mut app = verdict_asked();
    let event = finished(&app, 6.94);
    let effects = hear(&mut app, event);
    assert!(paired(&effects).is_none());
    let mystery = app.mode.mystery().expect("open");
    let unmet = perflings::judge::mystery::unmet(mystery.report.as_ref().expect("judged"));
    assert_eq!(unmet, ["the loss must fall"]);
}

#[test]
fn a_change_or_a_toggle_cancels_the_verdict() {
    let mut app = verdict_asked();
    act(&mut app, Action::Knobs);
    act(&mut app, Action::KnobTurn(1));
    let now_ms = app.clock.now_ms + 1000;
    update(&mut app, Message::Tick { now_ms });
    assert!(app.mode.mystery().expect("open").judging.is_none());
    let mut app = verdict_asked();
    assert!(matches!(
        app.mode.mystery().expect("open").judging,
        Some(JudgeStep::Run)
    ));
    act(&mut app, Action::Toggle);
    assert!(app.mode.mystery().expect("open").judging.is_none());
}

#[test]
fn giving_up_asks_first_and_leads_to_the_next_mystery() {
    let mut app = open();
    act(&mut app, Action::Solution);
    assert_eq!(app.view.confirm, Some(Confirm::GiveUp));
    act(&mut app, Action::No);
    assert!(app.is_unsolved());
    act(&mut app, Action::Solution);
    let effects = act(&mut app, Action::Yes);
    assert_eq!(
        app.mode.mystery().expect("open").end,
        Some(MysteryEnd::GivenUp)
    );
    assert!(!app.is_unsolved() && effects.is_empty());
    act(&mut app, Action::NextStage);
    let next = app.mode.mystery().expect("the next one");
    assert_eq!((next.mystery.seed, next.mystery.level()), (15, 1));
}

#[test]
fn a_report_is_written_only_after_the_end() {
    let mut app = open();
    assert!(act(&mut app, Action::Report).is_empty());
    let (mut app, _) = judged(Verdict::Same);
    assert!(matches!(
        &act(&mut app, Action::Report)[..],
        [Effect::WriteReport(_)]
    ));
}

#[test]
fn leaving_a_mystery_asks_first_and_the_list_leads_back() {
    let mut app = open();
    act(&mut app, Action::Stage(2));
    assert!(matches!(
        app.view.confirm,
        Some(Confirm::LeaveMystery { to: 1 })
    ));
    act(&mut app, Action::No);
    assert!(app.mode.mystery().is_some());
    act(&mut app, Action::Stage(2));
    act(&mut app, Action::Yes);
    assert!(matches!(app.mode, Mode::Stage));
    assert_eq!(app.stage().map(|stage| stage.number), Some(2));
    assert_eq!(wanted(&app).stage, 2);
    act(&mut app, Action::Open(Overlay::Stages));
    act(&mut app, Action::Scroll(99));
    act(&mut app, Action::Choose);
    let mystery = app.mode.mystery().expect("the last line");
    assert_eq!((mystery.mystery.seed, mystery.mystery.level()), (1, 1));
}
