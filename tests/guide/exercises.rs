//! The states of the exercises and of the mysteries.

use perflings::app::Mode;
use perflings::app::exercise::ExerciseNews;
use perflings::app::exercise::measuring::{AnswerFile, Measurement};
use perflings::app::mystery::JudgeStep;
use perflings::judge::kernel::KernelVerdict;

use super::session::play_recording;
use super::*;

fn news(app: &mut App, news: ExerciseNews) {
    let at = app.mode.exercise().expect("open");
    let exercise = app.lesson.course.exercises[at].id.clone();
    update(app, Message::Exercise { exercise, news });
    app.view.notice = None;
}

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
        if let Some(detective) = app.detective() {
            if detective.profile.is_none() {
                play_recording(&mut app);
            }
            reached.check_without_notice(&mut app);
            reached.act(&mut app, Action::Lesson);
            reached.act(&mut app, Action::Answer(0));
            reached.check_without_notice(&mut app);
            reached.act(&mut app, Action::Lesson);
            continue;
        }
        reached.act(&mut app, Action::Knobs);
        app.view.notice = None;
        for passed in [false, true] {
            let answer = AnswerFile::Given(vec![("batch".to_owned(), "8".to_owned())]);
            let kept = ExerciseNews::Answers {
                answer: answer.clone(),
                saved: false,
            };
            news(&mut app, kept);
            reached.check(&app);
            let saved = true;
            news(&mut app, ExerciseNews::Answers { answer, saved });
            hear(&mut app, Event::Paused { slot: Slot::A });
            for found in [
                ExerciseNews::Measuring(Box::default()),
                ExerciseNews::Measured(Box::new(Measurement {
                    passed,
                    ..Measurement::default()
                })),
            ] {
                news(&mut app, found);
                reached.check(&app);
            }
            act(&mut app, Action::Answer(0));
            reached.check_without_notice(&mut app);
        }
        for found in [
            ExerciseNews::Begun,
            ExerciseNews::Checked(Box::new(KernelVerdict {
                facts: KernelReport {
                    failed: Some("no device".to_owned()),
                    ..KernelReport::default()
                },
                ..KernelVerdict::default()
            })),
            ExerciseNews::Checked(Box::default()),
            ExerciseNews::Checked(Box::new(KernelVerdict {
                passed: true,
                ..KernelVerdict::default()
            })),
        ] {
            news(&mut app, found);
            for _ in 0..2 {
                reached.check(&app);
                act(&mut app, Action::Lesson);
            }
        }
        news(&mut app, ExerciseNews::Checked(Box::default()));
        for _ in 0..8 {
            act(&mut app, Action::Hint);
        }
        app.view.notice = None;
        app.view.lesson_open = true;
        reached.check(&app);
    }
}

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
