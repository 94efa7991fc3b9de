//! Quiz, hints, solution and reset of a stage.

use super::*;

#[test]
fn a_wrong_answer_to_the_quiz_can_be_repeated_and_the_first_one_counts() {
    let mut app = running(1);
    act(&mut app, Action::Answer(1));
    act(&mut app, Action::RangeShift(1));
    act(&mut app, Action::RangeKeep);
    let stage = app.stage().expect("a stage").clone();
    app.lesson.learner.progress_mut(&stage.id).state = StageState::Passed;
    act(&mut app, Action::Question);
    assert_eq!(app.reading().page(), LessonPage::Quiz);
    act(&mut app, Action::Answer(0));
    // In another session the answered question is not asked again by itself.
    let (mut app, _) = App::new(
        sample::course(),
        app.lesson.learner.progress.clone(),
        Options::default(),
    );
    session::resize(&mut app, 120, 40);
    let stage = app.stage().expect("a stage").clone();
    app.lesson.learner.progress_mut(&stage.id).state = StageState::Passed;
    assert_eq!(app.lesson.learner.quiz_answers(&stage), [(0, 0, None)]);
    assert!(
        app.lesson.learner.question(&stage).is_none() && app.lesson.learner.can_ask_again(&stage)
    );
    act(&mut app, Action::Question);
    assert_eq!(app.reading().page(), LessonPage::Quiz);
    assert_eq!(
        app.lesson.learner.quiz_answers(&stage),
        [],
        "the first answer is hidden while the question is open again"
    );
    act(&mut app, Action::Answer(1));
    assert_eq!(app.lesson.learner.quiz_answers(&stage), [(0, 0, Some(1))]);
    let known = app.lesson.learner.progress_of(&stage);
    assert_eq!((known.answers, known.quiz), (vec![0], vec![0]));
    assert_eq!(
        app.lesson.learner.right_at_first(&stage),
        0,
        "the first answer counts"
    );
    assert_eq!(app.lesson.learner.quiz_right(&stage), Some(1));
    assert!(!app.lesson.learner.can_ask_again(&stage));
}

#[test]
fn the_quiz_follows_the_pairs_on_a_page_of_its_own() {
    let mut app = running(1);
    act(&mut app, Action::Answer(1));
    solve(&mut app);
    act(&mut app, Action::Pair);
    pair(&mut app, 40, true);
    assert!(
        app.lesson
            .learner
            .question(app.stage().expect("a stage"))
            .is_some_and(|(quiz, _)| quiz == Some(0))
    );
    let mut small = app.clone();
    session::resize(&mut small, 80, 24);
    act(&mut small, Action::Lesson);
    assert_eq!(small.reading().page(), LessonPage::Result);
    assert_eq!(
        act(&mut small, Action::Answer(1)),
        [],
        "the question is not on this page"
    );
    act(&mut small, Action::TurnPage(2));
    assert_eq!(small.reading().page(), LessonPage::Quiz);
    assert_eq!(act(&mut small, Action::Answer(1)).len(), 1);
    assert_eq!(
        act(&mut app, Action::Answer(1)),
        [],
        "nor on this page of a large screen"
    );
    act(&mut app, Action::Question);
    act(&mut app, Action::Answer(1));
    assert_eq!(
        app.reading().page(),
        LessonPage::Quiz,
        "the page shows whether the answer was right"
    );
    let stage = app.stage().expect("a stage").clone();
    assert_eq!(
        (
            app.lesson.learner.progress_of(&stage).quiz,
            app.lesson.learner.question(&stage).is_none()
        ),
        (vec![0], true)
    );
}

#[test]
fn hints_come_one_by_one_and_the_second_waits_for_the_prediction() {
    let mut app = running(1);
    for n in 1..=3 {
        if n == 2 {
            assert_eq!(
                act(&mut app, Action::Hint),
                [],
                "the prediction comes first"
            );
            act(&mut app, Action::Answer(1));
        }
        assert!(matches!(
            act(&mut app, Action::Hint)[..],
            [Effect::Save(ProgressChange::Stage(..))]
        ));
        assert_eq!(app.reading().hints().shown, n);
    }
    assert_eq!(act(&mut app, Action::Hint), []);
    assert_eq!(app.reading().hints().shown, 3);
}

#[test]
fn the_solution_asks_for_confirmation_once() {
    let mut app = running(1);
    assert_eq!(act(&mut app, Action::Solution), []);
    assert_eq!(
        (app.view.confirm, app.view.overlay),
        (Some(Confirm::ShowSolution), None)
    );
    assert!(matches!(
        act(&mut app, Action::Yes)[..],
        [Effect::Save(ProgressChange::Stage(..))]
    ));
    assert_eq!(app.view.overlay, Some(Overlay::Solution));
    act(&mut app, Action::Close);
    act(&mut app, Action::Solution);
    assert_eq!(
        (app.view.confirm, app.view.overlay),
        (None, Some(Overlay::Solution))
    );
}

#[test]
fn a_reset_forgets_the_stage_and_restarts_it() {
    let mut app = running(4);
    act(&mut app, Action::Answer(1));
    act(&mut app, Action::Reset);
    let effects = act(&mut app, Action::Yes);
    assert_eq!(
        effects[0],
        Effect::ResetStage {
            stage: "broken-init".to_owned()
        }
    );
    assert_eq!(start_of(&effects).1.variant, "broken");
    assert!(!revealed(&app));
}
