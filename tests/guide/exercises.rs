//! The states of the exercises and of the mysteries.

use perflings::app::Mode;
use perflings::app::exercise::ExerciseNews;
use perflings::app::exercise::measuring::{AnswerFile, Measurement};
use perflings::app::mystery::JudgeStep;
use perflings::judge::kernel::KernelVerdict;

use super::session::play_recording;
use super::*;

/// Sends news about the open exercise, and removes the notice about it.
fn send_news(app: &mut App, news: ExerciseNews) {
    let index = app.mode.exercise().expect("open");
    let exercise = app.lesson.course.exercises[index].id.clone();
    update(app, Message::Exercise { exercise, news });
    app.view.notice = None;
}

/// Opens each exercise of the course and reaches its states.
pub(super) fn exercises(reached: &mut ReachedSentences) {
    for exercise in &at_stage(1).lesson.course.exercises {
        let mut app = at_stage(1);
        train(&mut app, 5);
        open(&mut app, exercise.label());
        reached.check(&app);
        reached.check_without_notice(&mut app);
        reached.act(&mut app, Action::Lesson);
        reached.act(&mut app, Action::Lesson);
        reached.act(&mut app, Action::Reset);
        app.view.confirm = None;
        if app.detective().is_some() {
            recorded_run(reached, &mut app);
            continue;
        }
        reached.act(&mut app, Action::Knobs);
        app.view.notice = None;
        measurements(reached, &mut app);
        checks_of_a_kernel(reached, &mut app);
    }
}

/// Plays the recorded run and names its fault.
fn recorded_run(reached: &mut ReachedSentences, app: &mut App) {
    if app.detective().expect("open").profile.is_none() {
        play_recording(app);
    }
    reached.check_without_notice(app);
    reached.act(app, Action::Lesson);
    reached.act(app, Action::Answer(0));
    reached.check_without_notice(app);
    reached.act(app, Action::Lesson);
}

/// Answers a config exercise and measures it, without and with success.
fn measurements(reached: &mut ReachedSentences, app: &mut App) {
    for passed in [false, true] {
        for saved in [false, true] {
            let answer = AnswerFile::Given(vec![("batch".to_owned(), "8".to_owned())]);
            send_news(app, ExerciseNews::Answers { answer, saved });
            reached.check(app);
        }
        hear(app, Event::Paused { slot: Slot::A });
        send_news(app, ExerciseNews::Measuring(Box::default()));
        reached.check(app);
        let result = Measurement {
            passed,
            ..Measurement::default()
        };
        send_news(app, ExerciseNews::Measured(Box::new(result)));
        reached.check(app);
        act(app, Action::Answer(0));
        reached.check_without_notice(app);
    }
}

/// Checks a kernel with each outcome, and asks for all hints.
fn checks_of_a_kernel(reached: &mut ReachedSentences, app: &mut App) {
    let mut no_device = KernelVerdict::default();
    no_device.facts.failed = Some("no device".to_owned());
    let passed = KernelVerdict {
        passed: true,
        ..KernelVerdict::default()
    };
    for news in [
        ExerciseNews::Begun,
        ExerciseNews::Checked(Box::new(no_device)),
        ExerciseNews::Checked(Box::default()),
        ExerciseNews::Checked(Box::new(passed)),
    ] {
        send_news(app, news);
        for _ in 0..2 {
            reached.check(app);
            act(app, Action::Lesson);
        }
    }
    send_news(app, ExerciseNews::Checked(Box::default()));
    for _ in 0..8 {
        act(app, Action::Hint);
    }
    app.view.notice = None;
    app.view.lesson_open = true;
    reached.check(app);
}

/// Plays a mystery from its beginning to giving up.
pub(super) fn mysteries(reached: &mut ReachedSentences) {
    let options = Options {
        mystery: Some((Some(14), 1)),
        ..Options::default()
    };
    let (mut app, _) = begin(Course::builtin(), options);
    train(&mut app, 20);
    reached.check(&app);
    reached.act(&mut app, Action::Knobs);
    reached.act(&mut app, Action::KnobTurn(1));
    let run = wanted(&app);
    app.view.notice = None;
    reached.hear(&mut app, sample::started(&run, 21));
    reached.act(&mut app, Action::Knobs);
    reached.check_without_notice(&mut app);
    reached.act(&mut app, Action::Pair);
    let run = wanted(&app);
    hear(&mut app, sample::started(&run, 0));
    reached.check_without_notice(&mut app);
    let mut pairs = app.clone();
    if let Mode::Mystery(mystery) = &mut pairs.mode {
        mystery.judging = Some(JudgeStep::Pairs(Box::default()));
    }
    reached.check(&pairs);
    let end = Finished {
        slot: Slot::B,
        steps: 60,
        ..Finished::default()
    };
    reached.hear(&mut app, Event::Finished(Box::new(end)));
    reached.check_without_notice(&mut app);
    let mut leaves = app.clone();
    reached.act(&mut leaves, Action::Stage(1));
    reached.act(&mut app, Action::Solution);
    reached.act(&mut app, Action::Yes);
    reached.check_without_notice(&mut app);
}
