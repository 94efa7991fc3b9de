//! The prediction: the choice, the estimated range, and what stays hidden until then.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use perflings::tui::keys;

use super::*;

/// Presses a key. Returns the effects, or nothing if the key means nothing now.
fn press(app: &mut App, code: KeyCode) -> Vec<Effect> {
    let event = KeyEvent::new(code, KeyModifiers::NONE);
    match keys::action(event, app) {
        Some(action) => update(app, Message::Action(action)),
        None => Vec::new(),
    }
}

#[test]
fn only_the_first_answer_counts_and_only_when_the_question_is_seen() {
    let mut app = running(1);
    session::resize(&mut app, 80, 24);
    assert_eq!(act(&mut app, Action::Answer(1)), []);
    assert!(
        !revealed(&app) && app.view.notice.is_some(),
        "the lesson is not open"
    );
    act(&mut app, Action::Lesson);
    assert_eq!(act(&mut app, Action::Answer(9)), []);
    assert!(matches!(
        act(&mut app, Action::Answer(2))[..],
        [Effect::Save(ProgressChange::Stage(..))]
    ));
    act(&mut app, Action::Answer(1));
    let stage = app.stage().expect("a stage").clone();
    assert_eq!(
        app.lesson.learner.progress_of(&stage).prediction,
        Some(Prediction::Choice {
            choice: 2,
            right: false
        })
    );
    assert_eq!(
        app.lesson.learner.activity(&stage),
        Activity::Predict,
        "the range is asked next"
    );
    act(&mut app, Action::RangeShift(1));
    act(&mut app, Action::RangeKeep);
    assert_eq!(app.lesson.learner.activity(&stage), Activity::Evidence);
    assert!(!revealed(&app), "the cause waits for the evidence");
    skip_locating(&mut app);
    for _ in 0..stage.evidence.len() {
        act(&mut app, Action::NextPointer);
    }
    assert_eq!(app.lesson.learner.activity(&stage), Activity::Fix);
    assert!(revealed(&app) && app.reading().page().0 == LessonPage::Cause);
    let score = app.lesson.learner.progress.calibration();
    assert_eq!(
        (score.right, score.answered),
        (0, 0),
        "the score would give the answer away before the fix"
    );
}

#[test]
fn a_range_is_estimated_once_and_before_the_fix() {
    let mut app = running(10);
    assert_eq!(
        act(&mut app, Action::RangeKeep),
        [],
        "the prediction comes first"
    );
    act(&mut app, Action::Answer(1));
    assert!(
        app.lesson
            .learner
            .estimate(app.stage().expect("a stage"))
            .is_some()
    );
    act(&mut app, Action::RangeShift(1));
    act(&mut app, Action::RangeShift(-4));
    act(&mut app, Action::RangeWiden(4));
    let effects = act(&mut app, Action::RangeKeep);
    let [(_, progress)] = saved_progress(&effects)[..] else {
        panic!("saved: {effects:?}")
    };
    let (low, high) = progress.estimate.expect("a range");
    assert!(
        (2.0..2.2).contains(&low) && (18.0..19.0).contains(&high),
        "{low} {high}"
    );
    assert_eq!(
        act(&mut app, Action::RangeKeep),
        [],
        "the first range counts"
    );
    solve(&mut app);
    act(&mut app, Action::Toggle);
    train(&mut app, 5);
    assert_eq!(
        app.lesson.learner.progress.calibration().ranges,
        0,
        "a stage without checks is never passed"
    );
}

#[test]
fn a_range_that_was_not_kept_is_gone_in_the_next_stage() {
    let mut app = running(10);
    act(&mut app, Action::Answer(1));
    act(&mut app, Action::RangeShift(1));
    assert!(app.lesson.learner.range.is_some());
    act(&mut app, Action::NextStage);
    act(&mut app, Action::Yes);
    assert_eq!((app.lesson.learner.at, app.lesson.learner.range), (1, None));
}

#[test]
fn only_the_first_measurement_that_passes_judges_a_range() {
    let (mut app, _) = session::begin(checked(), Options::default());
    train(&mut app, 10);
    act(&mut app, Action::Answer(1));
    act(&mut app, Action::RangeShift(1));
    act(&mut app, Action::RangeKeep);
    let stage = app.stage().expect("a stage").clone();
    // A change that does not fix the fault judges nothing.
    let mut other = stage.broken.clone();
    other.train.seed += 1;
    save_and_train(&mut app, other, 6);
    assert_eq!(app.lesson.learner.progress_of(&stage).measured, None);

    let effects = save_and_train(&mut app, stage.fixed.clone(), 6);

    let known = app.lesson.learner.progress_of(&stage);
    let first = known.measured.expect("measured");
    assert!((6.8..7.0).contains(&first), "{first}");
    assert_eq!((known.state, known.ratio), (StageState::Passed, None));
    assert!(
        known
            .found
            .as_deref()
            .is_some_and(|found| found.starts_with("6."))
    );
    let id = stage.id.as_str();
    assert_eq!(saved_progress(&effects), [(id, &known)]);
    // A later run measures another figure, but the saved one stays.
    let run = wanted(&app);
    hear(&mut app, sample::started(&run, 0));
    let Event::Step(mut step) = sample::step(&run, 0) else {
        unreachable!()
    };
    step.loss = Some(9.0.into());
    let mut later = hear(&mut app, Event::Step(step));
    later.extend(hear(&mut app, sample::throughput(&run, 0)));
    assert_eq!(
        (later, app.lesson.learner.progress_of(&stage)),
        (Vec::new(), known.clone())
    );
    assert_eq!(truth(&app, &stage), Some(9.0), "the later figure is shown");
    // Of several results of pairs, the first one stays.
    for (n, ratio) in [(30, 1.5), (40, 1.2)] {
        act(&mut app, Action::Pair);
        begin_pairs(&mut app);
        let Event::Pair(mut pair) = sample::pair(n, true) else {
            unreachable!()
        };
        pair.ratio = ratio;
        hear(&mut app, Event::Pair(pair));
        let interval = app.lesson.learner.progress_of(&stage).ratio;
        assert_eq!(interval.map(|[ratio, ..]| ratio), Some(1.5));
    }
    // The figures are still there in the next session.
    let (app, _) = App::new(
        checked(),
        app.lesson.learner.progress.clone(),
        Options::default(),
    );
    let again = app.lesson.learner.progress_of(&stage);
    assert_eq!((again.measured, again.found), (Some(first), known.found));
}

#[test]
fn an_answer_is_the_index_of_a_choice_in_the_course() {
    let (mut app, _) = App::new(sample::course(), Progress::default(), Options::default());
    session::resize(&mut app, 120, 40);
    let stage = app.stage().expect("a stage").clone();
    act(&mut app, Action::Answer(1));
    let (choice, right) = (1, stage.prediction.answer == 1);
    assert_eq!(
        app.lesson.learner.progress_of(&stage).prediction,
        Some(Prediction::Choice { choice, right })
    );
}

/// A stage about one knob whose range is about the ratio of pairs. B is its solution.
fn asks_for_the_ratio() -> App {
    let mut course = sample::course();
    let stage = &mut course.stages[0];
    stage.varies.truncate(1);
    stage.estimate.as_mut().expect("asked").of = "pair.ratio".to_owned();
    stage.checks = vec![Check {
        name: "it is faster".to_owned(),
        metric: Metric::Ratio,
        test: Test::Above(Target::Number(1.0)),
        ..checked().stages[0].checks[0].clone()
    }];
    let (mut app, _) = session::begin(course, Options::default());
    train(&mut app, 10);
    act(&mut app, Action::Answer(1));
    act(&mut app, Action::RangeShift(1));
    act(&mut app, Action::RangeKeep);
    let fixed = app.stage().expect("a stage").fixed.clone();
    save_and_train(&mut app, fixed, 6);
    app
}

/// Measures pairs with this ratio, whose sides differ in these knobs.
fn measure_pairs(app: &mut App, ratio: f64, differs: &[&str]) {
    act(app, Action::Pair);
    begin_pairs(app);
    let Event::Pair(mut pair) = sample::pair(40, true) else {
        unreachable!()
    };
    pair.ratio = ratio;
    pair.differs = differs.iter().map(|path| (*path).to_owned()).collect();
    hear(app, Event::Pair(pair));
}

#[test]
fn a_range_about_one_knob_is_judged_by_pairs_of_that_knob_alone() {
    let mut app = asks_for_the_ratio();
    let stage = app.stage().expect("a stage").clone();
    let about = stage.varies[0].clone();
    let measured = |app: &App| {
        (
            app.lesson.learner.progress_of(&stage).measured,
            truth(app, &stage),
        )
    };
    measure_pairs(&mut app, 2.5, &[&about, "model.loss"]);
    assert_eq!(
        app.lesson.learner.progress_of(&stage).state,
        StageState::Passed
    );
    assert_eq!(
        (
            app.lesson.learner.other_differing_knob(&stage),
            measured(&app)
        ),
        (Some("model.loss"), (None, None))
    );
    measure_pairs(&mut app, 1.5, &[&about]);
    assert_eq!(
        (
            app.lesson.learner.other_differing_knob(&stage),
            measured(&app)
        ),
        (None, (Some(1.5), Some(1.5)))
    );
    // The first valid ratio stays, and a ratio of other knobs is not shown as a later one.
    measure_pairs(&mut app, 2.5, &[&about, "model.loss"]);
    assert_eq!(measured(&app), (Some(1.5), None));
    // A stage about two knobs asks for the ratio of both.
    let mut two = stage.clone();
    two.varies.push("model.loss".to_owned());
    assert_eq!(
        (
            app.lesson.learner.other_differing_knob(&two),
            truth(&app, &two)
        ),
        (None, Some(2.5))
    );
}

#[test]
fn nothing_names_the_fault_before_the_prediction() {
    let mut course = checked();
    course.stages[0].hides = vec!["trained".to_owned()];
    let (mut app, _) = session::begin(course, Options::default());
    train(&mut app, 10);
    let trained = |app: &App| perflings::app::guide::vitals(app)[1].value.clone();
    assert!(app.reading().withholds("lints") && app.reading().withholds("trained"));
    assert_eq!(trained(&app), "shown later");
    let mut presented = app.clone();
    act(&mut presented, Action::Present);
    assert!(presented.reading().withholds("lints"), "before the vote");
    act(&mut presented, Action::NextBeat);
    assert!(presented.reading().withholds("lints"), "during the vote");
    act(&mut presented, Action::NextBeat);
    assert!(!presented.reading().withholds("lints"), "after the vote");
    assert!(!presented.reading().withholds("trained"), "after the vote");
    act(&mut app, Action::Answer(2));
    assert!(!app.reading().withholds("lints") && !app.reading().withholds("trained"));
    // The header and the lints would answer the next question: which panel shows the fault.
    if app.reading().asked_here() {
        act(&mut app, Action::RangeShift(1));
        act(&mut app, Action::RangeKeep);
    }
    assert!(app.reading().asks_where() && app.reading().withholds_mark("lints"));
    assert_eq!(trained(&app), "shown later");
    act(&mut app, Action::Focus(Panel::Loss));
    // Both tries are wrong.
    act(&mut app, Action::Locate);
    act(&mut app, Action::Locate);
    assert!(!app.reading().withholds_mark("lints"));
    assert_ne!(trained(&app), "shown later");
}

#[test]
fn a_range_is_placed_before_it_is_kept() {
    let mut app = running(10);
    let stage = app.stage().expect("a stage").clone();
    let kept = |app: &App| app.lesson.learner.progress_of(&stage).estimate;
    press(&mut app, KeyCode::Char('a'));
    press(&mut app, KeyCode::Enter);
    assert_eq!(app.lesson.learner.range, None, "no range was placed");
    assert_eq!(kept(&app), None);
    press(&mut app, KeyCode::Left);
    let range = app.lesson.learner.range.expect("a range");
    assert_eq!((range.high, kept(&app)), (32, None));
    press(&mut app, KeyCode::Enter);
    assert!(kept(&app).is_some());
}

/// Returns an app in stage 2 that asks which panel shows the fault, with this panel marked.
fn asked_where(panel: Panel) -> App {
    let options = Options {
        stage: Some(2),
        ..Options::default()
    };
    let (mut app, _) = begin_with(options);
    train(&mut app, 10);
    act(&mut app, Action::Answer(0));
    assert!(app.reading().asks_where());
    act(&mut app, Action::Focus(panel));
    let drawn = DrawnFrame {
        rows: vec!["weights 1.0 MiB".to_owned()],
        ..DrawnFrame::default()
    };
    update(&mut app, Message::Drawn(drawn));
    app
}

/// Fails if the effects do not save whether the panel was right.
fn assert_located(effects: &[Effect], right: bool) {
    let saved = saved_progress(effects);
    let located: Vec<Option<bool>> = saved.iter().map(|(_, progress)| progress.located).collect();
    assert_eq!(located, [Some(right)]);
}

#[test]
fn the_right_panel_leads_to_the_evidence() {
    let mut app = asked_where(Panel::Loss);
    let effects = press(&mut app, KeyCode::Enter);
    assert_located(&effects, true);
    assert!(!app.reading().asks_where());
    assert_eq!(app.lesson.learner.pointer, Some(0));
    let score = app.lesson.learner.progress.calibration();
    assert_eq!((score.asked_where, score.located), (1, 1));
}

#[test]
fn a_wrong_panel_leaves_a_second_try_that_does_not_count() {
    let mut app = asked_where(Panel::Memory);
    let effects = press(&mut app, KeyCode::Enter);
    assert_located(&effects, false);
    assert!(app.reading().asks_where());
    press(&mut app, KeyCode::Enter);
    assert!(!app.reading().asks_where());
    assert_eq!(app.lesson.learner.pointer, Some(0));
    let score = app.lesson.learner.progress.calibration();
    assert_eq!((score.asked_where, score.located), (1, 0));
}
