//! Config exercises on the screen: nothing is measured before there is an answer, the stage's run pauses during the measurement, and answers
//! are picked with keys.

use perflings::app::exercise::ExerciseNews;
use perflings::app::exercise::measuring::{AnswerFile, Measurement, Sweep};
use perflings::app::source::FromEngine;
use perflings::app::{Action, App, Effect, Message, RunState, update};
use perflings::course::exercise::config::Answers;
use perflings::course::save_file::StageState;
use perflings::course::sweep::{SweepRow, SweepTable};
use perflings::judge::{CriterionResult, Outcome};
use protocol::{Command, Event, Slot};

use super::session::{act, hear, open};
use super::{about, begin, sends, state};

fn answers(app: &mut App, answer: AnswerFile, saved: bool) -> Vec<Effect> {
    about(app, ExerciseNews::Answers { answer, saved })
}

/// Opens c01, which has no answer yet.
pub(super) fn asked() -> App {
    let mut app = begin();
    open(&mut app, "c01");
    let why = "answer.toml:3: no answer yet: batch; write one of 1, 2, 4, 8, 16, 32, 64";
    answers(&mut app, AnswerFile::Open(vec![why.to_owned()]), false);
    app
}

/// Returns the answer file of c01 with this answer.
fn answered(word: &str) -> AnswerFile {
    AnswerFile::Given(vec![("batch".to_owned(), word.to_owned())])
}

/// Returns the table of c01 with its first rows. The third run has no samples per second.
fn table(rows: usize) -> SweepTable {
    let row = |name: &str, cells: [Option<&str>; 3]| SweepRow {
        name: name.to_owned(),
        cells: cells.map(|cell| cell.map(str::to_owned)).to_vec(),
        why: None,
    };
    let all = [
        row("1", [Some("7.81"), Some("128.0"), Some("97")]),
        row("2", [Some("8.56"), Some("233.7"), Some("97")]),
        row("4", [Some("22.65"), None, Some("97")]),
    ];
    SweepTable {
        head: ["batch", "step ms", "samples/s", "launches"]
            .map(str::to_owned)
            .to_vec(),
        rows: all[..rows].to_vec(),
    }
}

/// Opens c01 and measures up to the third run of its sweep.
pub(super) fn measuring() -> App {
    let mut app = asked();
    answers(&mut app, answered("2"), true);
    hear(&mut app, Event::Paused { slot: Slot::A });
    let sweep = Sweep {
        number: 3,
        of: 7,
        what: "train.batch = 4".to_owned(),
        done: "step 5 of 12".to_owned(),
        table: table(2),
    };
    about(&mut app, ExerciseNews::Measuring(Box::new(sweep)));
    app
}

fn result(passed: bool) -> Measurement {
    let outcome = if passed {
        Outcome::Passed
    } else {
        Outcome::Failed
    };
    Measurement {
        passed,
        lines: vec![CriterionResult {
            name: "the bend is where you said".to_owned(),
            asked: "the largest batch; you said 2".to_owned(),
            measured: "step time by batch: 1: 7.81 ms, 2: 1.10x, 4: 2.65x; the bend is at 2"
                .to_owned(),
            outcome,
            optional: false,
        }],
        table: table(3),
        device: "a CPU".to_owned(),
        seconds: 12.0,
        failed: None,
    }
}

/// Opens c01 and measures its whole sweep.
pub(super) fn measured() -> App {
    let mut app = measuring();
    about(&mut app, ExerciseNews::Measured(Box::new(result(true))));
    app
}

#[test]
fn nothing_is_measured_or_asked_before_there_is_an_answer() {
    let mut app = asked();
    assert_eq!(app.question(), None);
    assert_eq!(act(&mut app, Action::Pair), Vec::new());
    assert!(app.measuring().is_none());
}

#[test]
fn a_saved_answer_pauses_the_stages_run_and_starts_the_measurement() {
    let mut app = asked();
    let exercise = app.exercise().expect("open").id.clone();
    let effects = answers(&mut app, answered("2"), true);
    assert_eq!(effects, vec![Effect::Send(Command::Pause)]);
    let effects = hear(&mut app, Event::Paused { slot: Slot::A });
    let device = "vulkan-cpu".to_owned();
    assert_eq!(effects, vec![Effect::Measure { exercise, device }]);
    for action in [
        Action::Pause,
        Action::Restart,
        Action::Profile,
        Action::Pair,
    ] {
        assert_eq!(act(&mut app, action), Vec::new(), "{action:?}");
    }
}

#[test]
fn a_right_answer_passes_the_exercise_and_its_quiz_follows() {
    let mut app = measuring();
    let id = app.exercise().expect("open").id.clone();
    let effects = about(&mut app, ExerciseNews::Measured(Box::new(result(true))));
    assert!(sends(&effects, &Command::Resume), "{effects:?}");
    assert_eq!(
        app.lesson.learner.progress.stage(&id).state,
        StageState::Passed
    );
    let quiz = app.exercise().expect("open").quiz.clone();
    for question in &quiz {
        assert_eq!(app.question(), Some(question));
        act(&mut app, Action::Answer(question.answer));
    }
    assert_eq!(
        app.lesson.learner.progress.stage(&id).quiz.len(),
        quiz.len()
    );
}

/// Fails if the notice lacks a text.
fn assert_notice(app: &App, part: &str) {
    let notice = app.view.notice.as_ref().expect("a notice");
    assert!(notice.text.contains(part), "{}", notice.text);
}

#[test]
fn the_knobs_of_a_config_exercise_open_once_its_answer_is_measured() {
    let mut app = asked();
    act(&mut app, Action::Knobs);
    assert!(!app.knobs_open() && app.exercise().is_some());
    assert_notice(&app, "after your answer was measured");
    let mut app = measuring();
    about(&mut app, ExerciseNews::Measured(Box::new(result(true))));
    let config = app.configs().expect("c01").config.clone();
    act(&mut app, Action::Knobs);
    assert!(app.knobs_open() && app.exercise().is_none());
    assert_eq!(app.bench.comparison.config_a, config, "a free run of it");
    // A kernel is changed in its file.
    let mut app = begin();
    open(&mut app, "k01");
    act(&mut app, Action::Knobs);
    assert_notice(&app, "in its file");
}

#[test]
fn stopping_a_measurement_resumes_the_stages_run() {
    let mut app = measuring();
    let effects = act(&mut app, Action::StopMeasuring);
    let resume = Effect::Send(Command::Resume);
    assert_eq!(effects, [Effect::StopMeasuring, resume]);
    assert!(app.measuring().is_none() && app.exercise().is_some());
}

#[test]
fn a_result_that_comes_after_the_measurement_was_stopped_does_not_count() {
    let mut app = measuring();
    act(&mut app, Action::StopMeasuring);
    about(&mut app, ExerciseNews::Measured(Box::new(result(true))));
    let id = app.exercise().expect("open").id.clone();
    let progress = app.lesson.learner.progress.stage(&id);
    assert_eq!(progress.state, StageState::Seen);
}

#[test]
fn leaving_the_exercise_stops_its_measurement() {
    let mut app = measuring();
    let effects = act(&mut app, Action::LeaveExercise);
    let resume = Effect::Send(Command::Resume);
    assert_eq!(effects, [Effect::LeaveExercise, resume]);
}

#[test]
fn a_run_that_the_learner_paused_stays_paused_after_a_measurement() {
    let mut app = asked();
    act(&mut app, Action::Pause);
    hear(&mut app, Event::Paused { slot: Slot::A });
    let effects = answers(&mut app, answered("2"), true);
    assert!(matches!(effects.as_slice(), [Effect::Measure { .. }]));
    let stopped = act(&mut app, Action::StopMeasuring);
    assert_eq!(stopped, [Effect::StopMeasuring]);
    assert_eq!(app.bench.run.state, RunState::Paused);
}

#[test]
fn an_engine_of_the_stage_that_dies_does_not_end_the_measurement() {
    let mut app = measuring();
    let reason = "killed".to_owned();
    update(&mut app, Message::Engine(FromEngine::Gone { reason }));
    assert!(app.measuring().is_some());
    let effects = about(&mut app, ExerciseNews::Measured(Box::new(result(false))));
    assert_eq!(effects, []);
    assert!(state(&app).measured.is_some());
}

#[test]
fn one_answer_is_picked_with_keys() {
    let mut app = asked();
    act(&mut app, Action::PickOther(1));
    assert_eq!(app.picking().expect("asked").at, 1);
    let effects = act(&mut app, Action::PickThis);
    assert_eq!(written_answers(&effects)["batch"], ["2"]);
}

#[test]
fn an_order_is_picked_place_by_place_and_its_last_place_follows() {
    let mut app = begin();
    open(&mut app, "c03");
    let problems = vec!["answer.toml".to_owned()];
    answers(&mut app, AnswerFile::Open(problems), false);
    for _ in 0..3 {
        act(&mut app, Action::PickOther(9));
        assert_eq!(act(&mut app, Action::PickThis), []);
    }
    let effects = act(&mut app, Action::PickThis);
    let order = ["e", "d", "c", "a", "b"];
    assert_eq!(written_answers(&effects)["order"], order);
}

/// Returns the answers that the only effect writes.
fn written_answers(effects: &[Effect]) -> &Answers {
    match effects {
        [Effect::WriteAnswers { answers, .. }] => answers,
        _ => panic!("{effects:?}"),
    }
}
