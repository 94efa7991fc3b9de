//! The sentence about the learner's next move while a stage's checks are not all met.

use super::*;

/// Checks that the sentence says that stage 1 is not passed, and contains these parts.
fn assert_not_passed(app: &App, parts: &[&str]) {
    assert_next_move(app, "Stage 1 is not passed. ");
    for part in parts {
        assert_next_move(app, part);
    }
}

#[test]
fn the_next_move_names_the_unmet_check_and_the_key() {
    let mut course = checked();
    let ratio = Check {
        name: "it is faster".to_owned(),
        metric: Metric::Ratio,
        test: Test::Above(Target::Number(1.0)),
        ..course.stages[0].checks[0].clone()
    };
    course.stages[0].checks.push(ratio);
    course.stages[0].offers.push("train.seed".to_owned());
    let (mut app, _) = session::begin(course, Options::default());
    train(&mut app, 10);
    let stage = app.stage().expect("a stage").clone();
    assert_next_move(&app, "Answer the question");
    act(&mut app, Action::Answer(1));
    assert_next_move(&app, "How much?");
    act(&mut app, Action::RangeShift(1));
    act(&mut app, Action::RangeKeep);
    app.lesson.learner.mark_evidence_seen(&stage);
    app.lesson.learner.mark_fix_tried(&stage);
    assert_not_passed(&app, &["still the stage as found", "<Knobs>"]);
    app.bench.comparison.config_b = stage.fixed.clone();
    app.lesson.learner.report = None;
    assert_not_passed(&app, &["has not run", "<Toggle>"]);
    let mut other = stage.broken.clone();
    other.train.seed += 1;
    save_and_train(&mut app, other.clone(), 6);
    assert_not_passed(&app, &["Not met so far", "<Knobs>: change B"]);
    save_and_train(&mut app, stage.fixed.clone(), 6);
    assert_not_passed(&app, &["Not measured", "it is faster", "<Pair>"]);
    act(&mut app, Action::Pair);
    assert_next_move(&app, "run in turns");
    pair(&mut app, 40, true);
    assert_eq!(
        app.lesson.learner.progress_of(&stage).state,
        StageState::Passed
    );
    assert_next_move(&app, "<Question>");
    // A later B fails a check. The sentence says so on the page and at the knobs, but the stage stays passed.
    save_and_train(&mut app, other, 6);
    let fails = "your B as it is now fails: the first loss is small";
    assert_next_move(&app, fails);
    act(&mut app, Action::Knobs);
    assert_next_move(&app, fails);
    assert_eq!(
        app.lesson.learner.progress_of(&stage).state,
        StageState::Passed
    );
    act(&mut app, Action::Knobs);
    save_and_train(&mut app, stage.fixed.clone(), 6);
    assert!(!next_move(&app).contains(fails), "{}", next_move(&app));
    // After the last stage comes the summary.
    act(&mut app, Action::Stage(3));
    act(&mut app, Action::Yes);
    act(&mut app, Action::NextStage);
    assert_eq!(app.view.overlay, Some(Overlay::Summary));
}

#[test]
fn the_next_move_follows_the_order_of_the_checks_with_pairs_last() {
    let mut course = checked();
    let check = |name: &str, metric| Check {
        name: name.to_owned(),
        metric,
        ..checked().stages[0].checks[0].clone()
    };
    let last = check("it learns", Metric::Figure("loss_last".to_owned()));
    let ratio = check("it is faster", Metric::Ratio);
    course.stages[0].checks.insert(0, ratio);
    course.stages[0].checks.push(last);
    course.stages[0].offers.push("train.seed".to_owned());
    let (mut app, _) = session::begin(course, Options::default());
    train(&mut app, 10);
    act(&mut app, Action::Answer(1));
    act(&mut app, Action::RangeShift(1));
    act(&mut app, Action::RangeKeep);
    let stage = app.stage().expect("a stage").clone();
    app.lesson.learner.mark_fix_tried(&stage);
    // B continues with A's weights, so it has no first loss. Its last loss is too large.
    let mut config = stage.broken.clone();
    config.train.seed += 1;
    let config = Ok(Box::new(config));
    update(&mut app, Message::FileSaved { config });
    let run = wanted(&app);
    hear(&mut app, sample::started(&run, 30));
    hear(&mut app, sample::step(&run, 30));
    hear(&mut app, sample::throughput(&run, 30));

    let report = app.lesson.learner.report.as_ref().expect("judged");
    let outcomes: Vec<Outcome> = report.lines.iter().map(|line| line.outcome).collect();
    let (open, failed) = (Outcome::NotMeasured, Outcome::Failed);
    assert_eq!(outcomes[1..], [open, open, failed]);
    assert_next_move(&app, "the first loss is small. <Restart>");
}
