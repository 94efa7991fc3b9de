//! The knobs panel, the learner's file, and what follows from both for A, B and pairs.

use perflings::app::{Action, App, Confirm, Effect, Message, Mode, Options, RunState, update};
use perflings::course::save_file::ProgressChange;
use protocol::config::{Init, Loss, Norm, Preset, RunConfig};
use protocol::*;

use super::sample;
use super::session::{act, begin, hear, pair, solve, train, wanted};

/// Stage 1 after the prediction. A has trained 30 steps.
fn at_the_knobs() -> App {
    let (mut app, _) = begin(sample::course(), Options::default());
    train(&mut app, 30);
    act(&mut app, Action::Answer(1));
    act(&mut app, Action::RangeShift(1));
    act(&mut app, Action::RangeKeep);
    app
}

/// Lets this many milliseconds pass.
fn later(app: &mut App, ms: u64) -> Vec<Effect> {
    let now_ms = app.clock.now_ms + ms;
    update(app, Message::Tick { now_ms })
}

/// Returns the commands among these effects.
fn sent(effects: &[Effect]) -> Vec<&Command> {
    effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::Send(command) => Some(command),
            _ => None,
        })
        .collect()
}

/// Returns the configuration that is written to the learner's file.
fn written(effects: &[Effect]) -> Option<&RunConfig> {
    effects.iter().find_map(|effect| match effect {
        Effect::WriteKnobs { config, .. } => Some(&**config),
        _ => None,
    })
}

/// Selects the knob with this path.
fn select(app: &mut App, path: &str) {
    let offers = &app.bench.comparison.offers;
    let row = offers.iter().position(|knob| knob.path == path);
    app.bench.comparison.select(row.expect("offered"));
}

/// Saves the learner's file with this configuration, or with this problem.
fn save_file(app: &mut App, config: Result<RunConfig, &str>) -> Vec<Effect> {
    let config = config.map(Box::new).map_err(str::to_owned);
    update(app, Message::FileSaved { config })
}

#[test]
fn the_knobs_open_instead_of_the_lesson_and_close_again() {
    let mut app = at_the_knobs();
    assert!(app.view.lesson_visible());
    act(&mut app, Action::Knobs);
    assert!(app.knobs_open() && !app.view.lesson_visible());
    act(&mut app, Action::KnobRow(2));
    act(&mut app, Action::KnobRow(-1));
    assert_eq!(app.bench.comparison.row, 1);
    act(&mut app, Action::KnobRow(99));
    assert_eq!(
        app.bench.comparison.row + 1,
        app.bench.comparison.offers.len(),
        "the last one"
    );
    act(&mut app, Action::Close);
    assert!(!app.knobs_open() && app.view.lesson_visible());
    act(&mut app, Action::Knobs);
    act(&mut app, Action::NextStage);
    act(&mut app, Action::Yes);
    assert!(!app.knobs_open(), "another stage begins with its text");
}

#[test]
fn the_knobs_ask_for_confirmation_once_before_the_prediction() {
    let (mut app, _) = begin(sample::course(), Options::default());
    act(&mut app, Action::Knobs);
    assert!(matches!(app.view.confirm, Some(Confirm::SkipPrediction(_))));
    act(&mut app, Action::No);
    assert!(!app.knobs_open());
    act(&mut app, Action::Knobs);
    act(&mut app, Action::Yes);
    assert!(app.knobs_open());
}

#[test]
fn a_knob_that_keeps_the_weights_changes_b_at_the_next_step() {
    let mut app = at_the_knobs();
    act(&mut app, Action::Knobs);
    select(&mut app, "model.norm");
    let effects = act(&mut app, Action::KnobTurn(1));
    let [Command::Apply { run, .. }] = sent(&effects)[..] else {
        panic!("{effects:?}");
    };
    assert_eq!((run.variant.as_str(), run.slot), ("custom", Slot::B));
    assert_eq!(run.config.model.norm, Norm::Fused);
    assert_eq!(
        run.config.model.init,
        Init::LibraryDefault,
        "the rest is A's"
    );
    assert_eq!(written(&effects), Some(&run.config), "the file follows");
    // Back to what A has: A runs again.
    train(&mut app, 5);
    let effects = act(&mut app, Action::KnobTurn(-1));
    assert_eq!(wanted(&app).slot, Slot::A);
    assert!(written(&effects).is_some());
}

#[test]
fn a_knob_that_needs_new_weights_restarts_b_after_the_last_change() {
    let mut app = at_the_knobs();
    act(&mut app, Action::Knobs);
    select(&mut app, "model.init");
    for _ in 0..3 {
        let effects = act(&mut app, Action::KnobTurn(1));
        assert_eq!(sent(&effects), Vec::<&Command>::new());
        assert_eq!(sent(&later(&mut app, 100)), Vec::<&Command>::new());
    }
    let effects = later(&mut app, 1000);
    let [Command::Start { run, .. }] = sent(&effects)[..] else {
        panic!("{effects:?}");
    };
    assert_eq!(
        (run.config.model.init, run.slot),
        (Init::Normal002, Slot::B)
    );
    assert_eq!(sent(&later(&mut app, 5000)), Vec::<&Command>::new(), "once");
}

#[test]
fn toggles_and_pairs_open_the_knobs_while_b_equals_a() {
    for action in [Action::Toggle, Action::Pair] {
        let mut app = at_the_knobs();
        assert_eq!(sent(&act(&mut app, action)), Vec::<&Command>::new());
        assert!(app.knobs_open());
        let notice = app.view.notice.expect("a notice").text;
        assert!(notice.contains("the same as A"), "{notice}");
    }
}

#[test]
fn a_toggle_switches_between_a_and_the_learner_s_b() {
    let mut app = at_the_knobs();
    act(&mut app, Action::Knobs);
    select(&mut app, "model.loss");
    act(&mut app, Action::KnobTurn(1));
    train(&mut app, 5);
    act(&mut app, Action::Toggle);
    assert_eq!(
        (wanted(&app).variant.as_str(), wanted(&app).slot),
        ("broken", Slot::A)
    );
    train(&mut app, 5);
    act(&mut app, Action::Toggle);
    let run = wanted(&app);
    assert_eq!((run.slot, run.config.model.loss), (Slot::B, Loss::Fused));
    let stage = app.stage().expect("a stage");
    assert_ne!(run.config, stage.fixed, "not the solution");
}

#[test]
fn pairs_measure_the_learner_s_b_and_restart_when_it_changes() {
    let mut app = at_the_knobs();
    select(&mut app, "model.loss");
    act(&mut app, Action::Knobs);
    act(&mut app, Action::KnobTurn(1));
    train(&mut app, 5);
    let effects = act(&mut app, Action::Pair);
    let [Command::Pair { a, b, .. }] = sent(&effects)[..] else {
        panic!("{effects:?}");
    };
    assert_eq!(a.config.differences(&b.config), ["model.loss"]);
    assert_eq!(
        app.bench.comparison.differences(),
        "model.loss fused",
        "the title"
    );
    pair(&mut app, 8, false);
    select(&mut app, "model.norm");
    let effects = act(&mut app, Action::KnobTurn(1));
    assert_eq!(sent(&effects), Vec::<&Command>::new(), "more may come");
    let effects = later(&mut app, 1000);
    let [Command::Pair { b, .. }] = sent(&effects)[..] else {
        panic!("{effects:?}");
    };
    assert_eq!(
        (b.config.model.loss, b.config.model.norm),
        (Loss::Fused, Norm::Fused)
    );
    assert!(app.bench.pairing() && app.lesson.learner.pair.is_none());
    // A comparison that is over says nothing about another B.
    pair(&mut app, 30, true);
    assert!(app.lesson.learner.pair.is_some());
    act(&mut app, Action::KnobTurn(1));
    assert!(app.lesson.learner.pair.is_none());
}

#[test]
fn knobs_that_cover_the_panels_close_for_pairs() {
    for (width, height, stay) in [(80, 24, false), (120, 36, true)] {
        let mut app = at_the_knobs();
        super::session::resize(&mut app, width, height);
        act(&mut app, Action::Knobs);
        select(&mut app, "model.norm");
        act(&mut app, Action::KnobTurn(1));
        act(&mut app, Action::Pair);
        assert!(app.bench.pairing(), "{width}x{height}");
        assert_eq!(app.knobs_open(), stay, "{width}x{height}");
    }
}

#[test]
fn a_change_that_the_device_refuses_is_explained_on_its_row_and_undone() {
    let (mut app, _) = begin(
        sample::course(),
        Options {
            free: Some(RunConfig::preset(Preset::Tiny)),
            ..Options::default()
        },
    );
    train(&mut app, 10);
    select(&mut app, "model.init");
    act(&mut app, Action::KnobTurn(1));
    later(&mut app, 1000);
    assert_eq!(wanted(&app).config.model.init, Init::LibraryDefault);
    let effects = hear(
        &mut app,
        Event::Failed(Failed {
            kind: FailedKind::Usage,
            reason: "this device has no room".to_owned(),
            request: 0,
        }),
    );
    assert!(matches!(sent(&effects)[..], [Command::Start { .. }]));
    assert_eq!(wanted(&app).config.model.init, Init::Normal002);
    assert_eq!(app.bench.run.state, RunState::Starting, "no card");
    let row = app
        .bench
        .comparison
        .rows()
        .nth(app.bench.comparison.row)
        .expect("selected");
    assert_eq!(row.refused, Some("this device has no room"));
}

#[test]
fn a_refused_change_leaves_the_run_and_its_curve_as_they_were() {
    let free = Some(RunConfig::preset(Preset::Tiny));
    let options = Options {
        free,
        ..Options::default()
    };
    let (mut app, _) = begin(sample::course(), options);
    train(&mut app, 10);
    let last = |app: &App| app.bench.run.shown().loss.last().map(|(step, _)| step);
    let before = last(&app);
    select(&mut app, "model.init");
    act(&mut app, Action::KnobTurn(1));
    later(&mut app, 1000);
    assert_eq!(app.bench.run.state, RunState::Starting);
    let failed = Failed {
        kind: FailedKind::Refused,
        reason: "this device has no room".to_owned(),
        request: 0,
    };
    let effects = hear(&mut app, Event::Failed(failed));
    assert_eq!(
        sent(&effects),
        Vec::<&Command>::new(),
        "nothing begins again"
    );
    assert_eq!(app.bench.run.state, RunState::Running);
    assert_eq!(
        (app.bench.run.active, wanted(&app).slot),
        (Slot::A, Slot::A)
    );
    let run = wanted(&app);
    hear(&mut app, sample::step(&run, 11));
    assert!(before < last(&app), "the curve goes on");
    let first = app.bench.run.shown().loss.first();
    assert_eq!(first.map(|(step, _)| step), Some(0));
    let row = app
        .bench
        .comparison
        .rows()
        .nth(app.bench.comparison.row)
        .expect("selected");
    assert_eq!(row.refused, Some("this device has no room"));
}

#[test]
fn a_notice_about_b_disappears_when_b_changes() {
    let mut app = at_the_knobs();
    act(&mut app, Action::Toggle);
    assert!(app.view.notice.is_some(), "B is the same as A");
    select(&mut app, "model.norm");
    act(&mut app, Action::KnobTurn(1));
    assert!(app.view.notice.is_none(), "{:?}", app.view.notice);
}

#[test]
fn the_learner_s_file_becomes_b_at_the_start_and_whenever_it_is_saved() {
    let mut app = at_the_knobs();
    let mut mine = app.bench.comparison.config_a.clone();
    mine.model.norm = Norm::Fused;
    let kept = Message::FileRead {
        stage: "broken-init".to_owned(),
        config: Ok(Box::new(mine.clone())),
    };
    let effects = update(&mut app, kept);
    assert_eq!(
        (sent(&effects), &app.bench.comparison.config_b),
        (Vec::new(), &mine)
    );
    act(&mut app, Action::Toggle);
    assert_eq!(wanted(&app).config, mine, "as it was left");
    mine.model.init = Init::Normal002;
    let effects = save_file(&mut app, Ok(mine.clone()));
    assert!(matches!(sent(&effects)[..], [Command::Start { run, .. }] if run.config == mine));
    assert_eq!(written(&effects), None, "it is in the file already");
    let elsewhere = Message::FileRead {
        stage: "strides".to_owned(),
        config: Ok(Box::new(app.bench.comparison.config_a.clone())),
    };
    update(&mut app, elsewhere);
    assert_eq!(app.bench.comparison.config_b, mine, "another stage's file");
}

#[test]
fn a_file_that_cannot_be_read_leaves_b_and_is_not_written() {
    let mut app = at_the_knobs();
    act(&mut app, Action::Knobs);
    select(&mut app, "model.norm");
    act(&mut app, Action::KnobTurn(1));
    let before = app.bench.comparison.config_b.clone();
    assert_eq!(
        sent(&save_file(&mut app, Err("config.toml:4: unknown key"))),
        Vec::<&Command>::new()
    );
    assert_eq!(app.bench.comparison.config_b, before);
    assert!(
        app.bench
            .comparison
            .problem
            .as_deref()
            .is_some_and(|problem| problem.contains("config.toml:4"))
    );
    select(&mut app, "model.loss");
    let effects = act(&mut app, Action::KnobTurn(1));
    assert_eq!(written(&effects), None);
    assert!(
        app.view
            .notice
            .as_ref()
            .is_some_and(|notice| notice.text.contains("its file did not"))
    );
    save_file(&mut app, Ok(before.clone()));
    assert_eq!(
        (
            &app.bench.comparison.config_b,
            &app.bench.comparison.problem
        ),
        (&before, &None),
        "the file counts"
    );
    assert!(written(&act(&mut app, Action::KnobTurn(1))).is_some());
}

#[test]
fn the_solution_can_be_taken_after_it_was_shown() {
    let mut app = at_the_knobs();
    act(&mut app, Action::Solution);
    act(&mut app, Action::Yes);
    assert!(app.bench.comparison.b_equals_a(), "shown, not taken");
    let effects = act(&mut app, Action::TakeSolution);
    let run = wanted(&app);
    assert_eq!((run.variant.as_str(), run.slot), ("fixed", Slot::B));
    assert_eq!(written(&effects), Some(&run.config));
    let stage = app.stage().expect("a stage").clone();
    assert!(app.lesson.learner.progress_of(&stage).solution_shown);
}

#[test]
fn a_presentation_has_the_solution_as_b_and_brings_the_learner_s_b_back() {
    let mut app = at_the_knobs();
    act(&mut app, Action::Knobs);
    select(&mut app, "model.norm");
    act(&mut app, Action::KnobTurn(1));
    let mine = app.bench.comparison.config_b.clone();
    train(&mut app, 5);
    act(&mut app, Action::Present);
    // Nothing of B is shown before the vote.
    let mut effects = act(&mut app, Action::Toggle);
    for _ in 0..12 {
        if sent(&effects).is_empty() {
            act(&mut app, Action::NextBeat);
            effects = act(&mut app, Action::Toggle);
        }
    }
    assert!(!sent(&effects).is_empty());
    act(&mut app, Action::Toggle);
    let stage = app.stage().expect("a stage").clone();
    let shown = wanted(&app);
    assert!(shown.variant == "fixed" && shown.config == stage.fixed || shown.slot == Slot::A);
    let effects = act(&mut app, Action::Present);
    assert_eq!(written(&effects), None);
    let back = app.bench.comparison.config_b == mine
        || effects.contains(&Effect::Save(ProgressChange::Current(stage.id)));
    assert!(back, "as it was, or read again from the file");
}

#[test]
fn a_free_run_has_every_knob_and_no_stage() {
    let (mut app, effects) = begin(
        sample::course(),
        Options {
            free: Some(RunConfig::preset(Preset::Small)),
            ..Options::default()
        },
    );
    let Some(Command::Start { run, .. }) = sent(&effects).first().copied() else {
        panic!("{effects:?}");
    };
    assert_eq!((run.stage, run.config.preset), (0, Preset::Small));
    assert!(app.stage().is_none() && app.knobs_open());
    assert_eq!(
        app.bench.comparison.offers.len(),
        protocol::config::KNOBS.len()
    );
    train(&mut app, 10);
    select(&mut app, "train.batch");
    let effects = act(&mut app, Action::KnobTurn(-1));
    assert_eq!(written(&effects), None, "it has no file");
    assert_eq!(wanted(&app).config.train.batch, 4);
    train(&mut app, 5);
    act(&mut app, Action::Toggle);
    assert_eq!(wanted(&app).slot, Slot::A);
    assert!(matches!(
        sent(&act(&mut app, Action::Pair))[..],
        [Command::Pair { .. }]
    ));
    // To a stage, and back by the last line of the list.
    act(&mut app, Action::Stage(1));
    assert!(app.stage().is_some() && matches!(app.mode, Mode::Stage));
    solve(&mut app);
    act(&mut app, Action::Open(perflings::app::Overlay::Stages));
    let last = app.lesson.course.stages.len() + app.lesson.course.exercises.len();
    act(&mut app, Action::ChooseLine(last));
    assert!(app.stage().is_none() && app.bench.comparison.b_equals_a());
}
