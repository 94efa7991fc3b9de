//! Messages in, state and effects out. No terminal, no engine, no clock.

use crate::{sample, screen, session};

#[path = "update/attempts.rs"]
mod attempts;
#[path = "update/beats.rs"]
mod beats;
#[path = "update/course.rs"]
mod course;
#[path = "update/knobs.rs"]
mod knobs;
#[path = "update/learner.rs"]
mod learner;
#[path = "update/leave.rs"]
mod leave;
#[path = "update/mystery.rs"]
mod mystery;
#[path = "update/requests.rs"]
mod requests;
#[path = "update/silence.rs"]
mod silence;

use perflings::app::bench::Asked;
use perflings::app::busy;
use perflings::app::devices::GpuWarmUp;
use perflings::app::figures::truth;
use perflings::app::guide::SentencePart;
use perflings::app::pages::LessonPage;
use perflings::app::source::{FromEngine, ReplayControl};
use perflings::app::study::Activity;
use perflings::app::{
    Action, AfterSkip, App, Confirm, DrawnFrame, Effect, Message, Options, Overlay, Panel, Replay,
    RunState, update,
};
use perflings::course::Course;
use perflings::course::check::{Check, Metric, Starter, Target, Test};
use perflings::course::save_file::{
    Prediction, Progress, ProgressChange, StageProgress, StageState,
};
use perflings::judge::Outcome;
use protocol::config::{Matmul, Precision, Preset, RunConfig};
use protocol::*;
use strum::VariantArray;

use session::{
    act, answer, begin_pairs, hear, pair, side, skip_locating, solve, spec, train, wanted,
};

fn begin() -> (App, Vec<Effect>) {
    begin_with(Options::default())
}

fn begin_with(options: Options) -> (App, Vec<Effect>) {
    session::begin(sample::course(), options)
}

/// A run of the present stage, trained for some steps.
fn running(steps: u64) -> App {
    let (mut app, _) = begin();
    train(&mut app, steps);
    app
}

fn revealed(app: &App) -> bool {
    app.stage()
        .is_some_and(|stage| app.lesson.study.revealed(stage))
}

fn commands(effects: &[Effect]) -> Vec<&Command> {
    effects
        .iter()
        .filter_map(|effect| {
            if let Effect::Send(command) = effect {
                Some(command)
            } else {
                None
            }
        })
        .collect()
}

/// The one run that was started, and where.
fn start_of(effects: &[Effect]) -> (&str, &RunSpec) {
    let started: Vec<_> = commands(effects)
        .into_iter()
        .filter_map(|command| {
            if let Command::Start { device, run, .. } = command {
                Some((device.as_str(), run))
            } else {
                None
            }
        })
        .collect();
    assert_eq!(started.len(), 1, "one start in {effects:?}");
    started[0]
}

#[test]
fn the_first_run_starts_on_the_cpu_before_devices_are_asked_for() {
    let (app, effects) = begin();
    let (device, run) = start_of(&effects);
    assert_eq!(
        (device, run.stage, run.variant.as_str(), run.slot, run.steps),
        ("cpu", 1, "broken", Slot::A, None)
    );
    assert!(matches!(
        commands(&effects)[..],
        [Command::Start { .. }, Command::Probe]
    ));
    assert!(effects.contains(&Effect::Save(ProgressChange::Current(
        "broken-init".to_owned()
    ))));
    assert_eq!(app.bench.run.state, RunState::Starting);
}

#[test]
fn a_named_device_is_used_as_it_is() {
    let (_, effects) = begin_with(Options {
        device: Some("vulkan-cpu".to_owned()),
        ..Options::default()
    });
    assert_eq!(start_of(&effects).0, "vulkan-cpu");
}

#[test]
fn the_learner_comes_back_to_where_they_were() {
    let progress = Progress {
        current: Some("strides".to_owned()),
        ..Progress::default()
    };
    let (app, effects) = App::new(sample::course(), progress.clone(), Options::default());
    assert_eq!((app.lesson.study.at, start_of(&effects).1.stage), (1, 2));
    let (app, _) = App::new(
        sample::course(),
        progress,
        Options {
            stage: Some(3),
            ..Options::default()
        },
    );
    assert_eq!(app.lesson.study.at, 2, "the command line decides");
    let (app, _) = begin_with(Options {
        stage: Some(9),
        ..Options::default()
    });
    assert_eq!(app.lesson.study.at, 0);
    assert!(
        app.view
            .notice
            .expect("it is said")
            .text
            .contains("no stage 9")
    );
}

#[test]
fn a_run_warms_up_and_then_runs() {
    let (mut app, _) = begin();
    hear(
        &mut app,
        Event::Compiling {
            kernels: 3,
            latest: "matmul".to_owned(),
        },
    );
    assert_eq!(app.bench.run.state, RunState::Warming);
    assert_eq!(app.bench.run.compiling, Some((3, "matmul".to_owned())));
    let run = wanted(&app);
    hear(&mut app, sample::started(&run, 0));
    assert_eq!(
        (app.bench.run.state.clone(), app.bench.run.compiling.clone()),
        (RunState::Warming, None)
    );
    hear(&mut app, sample::step(&run, 0));
    assert_eq!(app.bench.run.state, RunState::Running);
    assert_eq!(app.shown_run().step(), Some(0));
}

#[test]
fn events_of_a_replaced_run_are_dropped() {
    let mut app = running(30);
    let (old, request) = (wanted(&app), app.bench.pending.request);
    act(&mut app, Action::NextStage);
    for event in [
        sample::step(&old, 31),
        sample::throughput(&old, 31),
        answer(sample::started(&old, 0), request),
    ] {
        hear(&mut app, event);
    }
    assert_eq!(app.bench.run.state, RunState::Starting);
    assert!(app.bench.run.shown().loss.is_empty() && app.bench.run.shown().throughput.is_none());
    let new = wanted(&app);
    hear(&mut app, sample::started(&new, 0));
    hear(&mut app, sample::step(&new, 0));
    assert_eq!(app.shown_run().step(), Some(0));
}

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
    let saved = effects.iter().find_map(|e| {
        if let Effect::Save(ProgressChange::Stage(_, progress)) = e {
            Some(progress)
        } else {
            None
        }
    });
    assert_eq!(saved.expect("saved").prediction, Some(Prediction::Skipped));
    // Asked once: from now on it toggles.
    assert!(revealed(&app));
    assert_eq!(start_of(&act(&mut app, Action::Toggle)).1.variant, "broken");
    // A skipped prediction stays skipped.
    act(&mut app, Action::Answer(1));
    assert_eq!(app.lesson.study.progress.calibration().answered, 0);
}

#[test]
fn knobs_that_keep_the_parameters_switch_in_mid_run_and_back() {
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
    // Until the engine confirms, the old run goes on.
    let broken = app.bench.run.slot(Slot::A).description.spec();
    let broken = broken.expect("A ran");
    hear(&mut app, sample::step(&broken, 21));
    assert_eq!(
        (app.bench.run.active, app.shown_run().step()),
        (Slot::A, Some(21))
    );
    hear(&mut app, sample::started(&fixed, 22));
    hear(&mut app, sample::step(&fixed, 22));
    assert_eq!(
        (
            app.bench.run.active,
            app.shown_run().step(),
            !app.bench.switching()
        ),
        (Slot::B, Some(22), true)
    );
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
        "A goes on where it was"
    );
    assert_eq!(a.loss.first().map(|(step, _)| step), Some(0));
    assert!(
        a.loss.all().last().expect("points").gap,
        "with a gap in between"
    );
}

#[test]
fn knobs_that_change_the_parameters_start_from_the_same_beginning() {
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
        app.lesson.study.activity(app.stage().expect("a stage")),
        Activity::Check
    );
}

#[test]
fn pairs_before_the_toggle_draw_the_side_that_never_ran() {
    let mut app = running(5);
    act(&mut app, Action::Answer(1));
    solve(&mut app);
    let effects = act(&mut app, Action::Pair);
    let [Command::Pair { a, b, .. }] = commands(&effects)[..] else {
        panic!("one pair in {effects:?}")
    };
    let (a, b) = (a.clone(), b.clone());
    // What is left of the run before belongs to nothing.
    hear(&mut app, sample::step(&a, 6));
    for run in [&a, &b] {
        hear(&mut app, side(run));
    }
    for step in 0..3 {
        hear(&mut app, sample::step(&a, step));
        hear(&mut app, sample::step(&b, step));
    }
    let last = |app: &App, slot| app.bench.run.slot(slot).loss.last().map(|(step, _)| step);
    assert_eq!(last(&app, Slot::A), Some(5), "its own run stays");
    assert_eq!(last(&app, Slot::B), Some(2), "the pairs are all it has");
    assert_eq!(app.bench.run.active, Slot::A);
    pair(&mut app, 40, true);
    assert!(app.bench.run.slot(Slot::B).description.has(&b.config));
}

#[test]
fn pairs_end_in_a_verdict_and_leave_the_figures_alone() {
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
    assert_eq!(
        app.lesson
            .study
            .pair
            .as_ref()
            .map(|pair| (pair.n, pair.verdict)),
        Some((6, Verdict::Unclear))
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
    assert!(shown.finished.is_none(), "it sums up no run");
    assert_eq!(shown.loss.last().map(|(step, _)| step), Some(5));
    let stage = app.stage().expect("a stage");
    assert_eq!(app.lesson.study.activity(stage), Activity::Check);
    assert!(app.lesson.study.looks_back(stage));
    assert_ne!(
        app.lesson.study.of(stage).state,
        StageState::Passed,
        "no check, no pass"
    );
    // The run that was on the screen comes back.
    assert_eq!(
        start_of(&act(&mut app, Action::Restart)).1.variant,
        "broken"
    );
}

#[test]
fn knobs_that_cannot_be_changed_leave_the_run_alone() {
    let mut app = running(0);
    act(&mut app, Action::Stage(2));
    train(&mut app, 4);
    act(&mut app, Action::Answer(0));
    solve(&mut app);
    act(&mut app, Action::Toggle);
    let reason = "needs 70 GiB".to_owned();
    let kind = FailedKind::Usage;
    hear(
        &mut app,
        Event::Failed(Failed {
            kind,
            reason,
            request: 0,
        }),
    );
    assert_eq!(app.bench.run.state, RunState::Running);
    assert_eq!(wanted(&app).variant, "broken");
    assert!(app.view.notice.expect("it is said").text.contains("70 GiB"));
}

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
fn a_dead_engine_is_replaced_on_request_and_loses_nothing_shown() {
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
fn a_run_that_broke_off_on_matrix_cores_goes_on_in_f32_on_request() {
    let mut half = RunConfig::preset(Preset::Tiny);
    half.train.precision = Precision::F16;
    let plain = |matmul| {
        let mut config = RunConfig::preset(Preset::Tiny);
        config.model.matmul = matmul;
        config
    };
    let of = |config: &RunConfig, matrix_cores| {
        let options = Options {
            free: Some(config.clone()),
            ..Options::default()
        };
        let (mut app, _) = begin_with(options);
        let Event::Started(started) = sample::started(&wanted(&app), 0) else {
            panic!("it started");
        };
        hear(
            &mut app,
            Event::Started(Started {
                matrix_cores,
                ..started
            }),
        );
        app
    };
    let free = |matrix_cores| of(&half, matrix_cores);
    let mut app = free(true);
    assert_eq!(app.bench.in_f32(), None, "it runs");
    let reason = "ended by signal 6".to_owned();
    update(&mut app, Message::Engine(FromEngine::Gone { reason }));
    assert!(next(&app).contains("runs it in f32"), "{}", next(&app));
    let effects = act(&mut app, Action::InF32);
    assert_eq!(effects[0], Effect::Restart);
    assert_eq!(start_of(&effects).1.config, RunConfig::preset(Preset::Tiny));
    // A device that was lost without its process.
    let mut app = free(true);
    hear(&mut app, Event::Failed(Failed::default()));
    assert!(app.bench.in_f32().is_some());
    assert_eq!(act(&mut app, Action::Restart)[0], Effect::Restart);
    // f32 as two f16.
    let mut app = of(&plain(Matmul::Split), true);
    hear(&mut app, Event::Failed(Failed::default()));
    assert_eq!(app.bench.in_f32(), Some(plain(Matmul::Own)));
    // Emulated, the format has no part in it.
    let mut app = free(false);
    hear(&mut app, Event::Failed(Failed::default()));
    assert_eq!(app.bench.in_f32(), None);
}

#[test]
fn a_silent_engine_is_ended() {
    let mut app = running(1);
    assert_eq!(
        update(&mut app, Message::Engine(FromEngine::Silent)),
        [Effect::Kill]
    );
    // The end that follows does not hide the reason.
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

fn gpu() -> DeviceInfo {
    let device = Device {
        kind: "gpu".to_owned(),
        name: "H100".to_owned(),
    };
    DeviceInfo {
        select: "gpu:0".to_owned(),
        device,
        ..DeviceInfo::default()
    }
}

#[test]
fn a_gpu_warms_up_beside_the_run_and_is_offered() {
    let mut app = running(5);
    let effects = hear(
        &mut app,
        Event::Devices {
            devices: vec![gpu()],
        },
    );
    assert_eq!(
        effects,
        [Effect::Send(Command::Open {
            device: "gpu:0".to_owned()
        })]
    );
    hear(
        &mut app,
        Event::Compiling {
            kernels: 7,
            latest: "matmul".to_owned(),
        },
    );
    assert_eq!(
        app.devices.gpu_warm_up,
        GpuWarmUp::Warming {
            select: "gpu:0".to_owned(),
            kernels: 7
        }
    );
    assert_eq!(
        app.bench.run.state,
        RunState::Running,
        "the run is not the one that compiles"
    );
    hear(
        &mut app,
        Event::DeviceReady {
            device: gpu().device,
        },
    );
    assert_eq!(app.devices.offer(), Some("gpu:0"));
    let effects = act(&mut app, Action::SwitchDevice);
    assert_eq!(start_of(&effects).0, "gpu:0");
    assert!(
        app.bench.run.other().is_none() && app.bench.run.shown().loss.is_empty(),
        "two devices are not compared"
    );
    assert_eq!(app.devices.offer(), None);
}

#[test]
fn a_gpu_that_does_not_open_leaves_the_run_alone() {
    let mut app = running(5);
    hear(
        &mut app,
        Event::Devices {
            devices: vec![gpu()],
        },
    );
    hear(
        &mut app,
        Event::Failed(Failed {
            kind: FailedKind::Device,
            reason: "lost".to_owned(),
            request: 0,
        }),
    );
    assert_eq!(app.bench.run.state, RunState::Running);
    assert_eq!(
        app.devices.gpu_warm_up,
        GpuWarmUp::Failed {
            reason: "lost".to_owned()
        }
    );
}

#[test]
fn without_a_gpu_or_with_a_named_device_nothing_warms_up() {
    let mut app = running(1);
    let cpu = DeviceInfo {
        select: "cpu".to_owned(),
        device: sample::device(),
        ..DeviceInfo::default()
    };
    assert_eq!(hear(&mut app, Event::Devices { devices: vec![cpu] }), []);
    let (mut app, _) = begin_with(Options {
        device: Some("cpu".to_owned()),
        ..Options::default()
    });
    assert_eq!(
        hear(
            &mut app,
            Event::Devices {
                devices: vec![gpu()]
            }
        ),
        []
    );
}

#[test]
fn a_run_that_fails_says_why() {
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
fn only_the_first_answer_counts_and_only_when_the_question_is_seen() {
    let mut app = running(1);
    update(
        &mut app,
        Message::Resized {
            width: 80,
            height: 24,
        },
    );
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
        app.lesson.study.of(&stage).prediction,
        Some(Prediction::Choice {
            choice: 2,
            right: false
        })
    );
    assert_eq!(
        app.lesson.study.activity(&stage),
        Activity::Predict,
        "how much is asked next"
    );
    act(&mut app, Action::RangeShift(1));
    act(&mut app, Action::RangeKeep);
    assert_eq!(app.lesson.study.activity(&stage), Activity::Evidence);
    assert!(!revealed(&app), "the cause waits for the evidence");
    skip_locating(&mut app);
    for _ in 0..stage.evidence.len() {
        act(&mut app, Action::NextPointer);
    }
    assert_eq!(app.lesson.study.activity(&stage), Activity::Fix);
    assert!(revealed(&app) && app.reading().page().0 == LessonPage::Cause);
    let score = app.lesson.study.progress.calibration();
    assert_eq!(
        (score.right, score.answered),
        (0, 0),
        "the score would tell before the fix is made"
    );
}

#[test]
fn a_range_is_guessed_before_the_fix_and_held_against_the_truth() {
    let mut app = running(10);
    assert_eq!(
        act(&mut app, Action::RangeKeep),
        [],
        "the prediction comes first"
    );
    act(&mut app, Action::Answer(1));
    assert!(
        app.lesson
            .study
            .estimate(app.stage().expect("a stage"))
            .is_some()
    );
    act(&mut app, Action::RangeShift(1));
    act(&mut app, Action::RangeShift(-4));
    act(&mut app, Action::RangeWiden(4));
    let effects = act(&mut app, Action::RangeKeep);
    let [Effect::Save(ProgressChange::Stage(_, progress))] = &effects[..] else {
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
        app.lesson.study.progress.calibration().ranges,
        0,
        "a stage without checks is never passed"
    );
}

#[test]
fn a_range_that_was_not_kept_does_not_stand_in_the_next_stage() {
    let mut app = running(10);
    act(&mut app, Action::Answer(1));
    act(&mut app, Action::RangeShift(1));
    assert!(app.lesson.study.range.is_some());
    act(&mut app, Action::NextStage);
    act(&mut app, Action::Yes);
    assert_eq!((app.lesson.study.at, app.lesson.study.range), (1, None));
}

/// The sample course, with one check that its first stage begins with failing.
fn checked() -> Course {
    let mut course = sample::course();
    course.stages[0].checks = vec![Check {
        name: "the first loss is small".to_owned(),
        metric: Metric::Figure("loss_first".to_owned()),
        test: Test::Below(Target::Number(10.0)),
        starter: Starter::Fails,
        optional: false,
        line: 1,
    }];
    course
}

/// The learner's own configuration, and its run's first steps.
fn fix_b(app: &mut App, config: RunConfig, steps: u64) -> Vec<Effect> {
    let config = Ok(Box::new(config));
    update(app, Message::FileSaved { config });
    let run = wanted(app);
    sample::until(&run, steps)
        .into_iter()
        .flat_map(|event| hear(app, event))
        .collect()
}

#[test]
fn what_judged_a_range_stays() {
    let (mut app, _) = session::begin(checked(), Options::default());
    train(&mut app, 10);
    act(&mut app, Action::Answer(1));
    act(&mut app, Action::RangeShift(1));
    act(&mut app, Action::RangeKeep);
    let stage = app.stage().expect("a stage").clone();
    // A change that fixes nothing passes nothing.
    let mut other = stage.broken.clone();
    other.train.seed += 1;
    fix_b(&mut app, other, 6);
    assert_eq!(app.lesson.study.of(&stage).measured, None);
    let saved = fix_b(&mut app, stage.fixed.clone(), 6);
    let known = app.lesson.study.of(&stage);
    let first = known.measured.expect("measured");
    assert!((6.8..7.0).contains(&first), "{first}");
    assert_eq!((known.state, known.ratio), (StageState::Passed, None));
    assert!(
        known
            .found
            .as_deref()
            .is_some_and(|it| it.starts_with("6."))
    );
    let kept = |effect: &&Effect| matches!(effect, Effect::Save(ProgressChange::Stage(_, progress)) if **progress == known);
    assert_eq!(saved.iter().filter(kept).count(), 1, "written once");
    // A later run measures something else: score and file stay.
    let run = wanted(&app);
    hear(&mut app, sample::started(&run, 0));
    let Event::Step(mut step) = sample::step(&run, 0) else {
        unreachable!()
    };
    step.loss = Some(9.0.into());
    let mut later = hear(&mut app, Event::Step(step));
    later.extend(hear(&mut app, sample::throughput(&run, 0)));
    assert_eq!(
        (later, app.lesson.study.of(&stage)),
        (Vec::new(), known.clone())
    );
    assert_eq!(truth(&app, &stage), Some(9.0), "it is shown as a later one");
    // So do pairs: the first ratio counts.
    for (n, ratio) in [(30, 1.5), (40, 1.2)] {
        act(&mut app, Action::Pair);
        begin_pairs(&mut app);
        let Event::Pair(mut pair) = sample::pair(n, true) else {
            unreachable!()
        };
        pair.ratio = ratio;
        hear(&mut app, Event::Pair(pair));
        let ratio = app.lesson.study.of(&stage).ratio.map(|it| it[0]);
        assert_eq!(ratio, Some(1.5));
    }
    // After a restart it is all there.
    let (app, _) = App::new(
        checked(),
        app.lesson.study.progress.clone(),
        Options::default(),
    );
    let again = app.lesson.study.of(&stage);
    assert_eq!((again.measured, again.found), (Some(first), known.found));
}

#[test]
fn letters_of_choices_are_those_of_the_course() {
    let (mut app, _) = App::new(sample::course(), Progress::default(), Options::default());
    update(
        &mut app,
        Message::Resized {
            width: 120,
            height: 40,
        },
    );
    let stage = app.stage().expect("a stage").clone();
    act(&mut app, Action::Answer(1));
    let (choice, right) = (1, stage.prediction.answer == 1);
    assert_eq!(
        app.lesson.study.of(&stage).prediction,
        Some(Prediction::Choice { choice, right })
    );
}

#[test]
fn answers_to_the_quiz_stay_and_can_be_given_again() {
    let mut app = running(1);
    act(&mut app, Action::Answer(1));
    act(&mut app, Action::RangeShift(1));
    act(&mut app, Action::RangeKeep);
    let stage = app.stage().expect("a stage").clone();
    app.lesson.study.of_mut(&stage.id).state = StageState::Passed;
    act(&mut app, Action::Question);
    assert_eq!(app.reading().page().0, LessonPage::Quiz);
    act(&mut app, Action::Answer(0));
    // Another session: what was answered is not asked again by itself.
    let (mut app, _) = App::new(
        sample::course(),
        app.lesson.study.progress.clone(),
        Options::default(),
    );
    update(
        &mut app,
        Message::Resized {
            width: 120,
            height: 40,
        },
    );
    let stage = app.stage().expect("a stage").clone();
    app.lesson.study.of_mut(&stage.id).state = StageState::Passed;
    assert_eq!(app.lesson.study.quiz_answers(&stage), [(0, 0, None)]);
    assert!(app.lesson.study.question(&stage).is_none() && app.lesson.study.can_ask_again(&stage));
    act(&mut app, Action::Question);
    assert_eq!(app.reading().page().0, LessonPage::Quiz);
    assert_eq!(
        app.lesson.study.quiz_answers(&stage),
        [],
        "the answer is not shown while it is asked"
    );
    act(&mut app, Action::Answer(1));
    assert_eq!(app.lesson.study.quiz_answers(&stage), [(0, 0, Some(1))]);
    let known = app.lesson.study.of(&stage);
    assert_eq!((known.answers, known.quiz), (vec![0], vec![0]));
    assert_eq!(
        app.lesson.study.right_at_first(&stage),
        0,
        "the first answer counts"
    );
    assert_eq!(app.lesson.study.quiz_right(&stage), Some(1));
    assert!(!app.lesson.study.can_ask_again(&stage));
}

/// The next move as a sentence, keys left out.
fn next(app: &App) -> String {
    let pieces = perflings::app::guide::next_move(app);
    let texts = pieces.into_iter().map(|piece| match piece {
        SentencePart::Text(text) => text,
        SentencePart::Key(action) => format!("<{action:?}>"),
    });
    texts.collect()
}

#[test]
fn the_next_move_says_what_is_missing() {
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
    assert!(
        next(&app).starts_with("Answer the question"),
        "{}",
        next(&app)
    );
    act(&mut app, Action::Answer(1));
    assert!(next(&app).starts_with("How much?"), "{}", next(&app));
    act(&mut app, Action::RangeShift(1));
    act(&mut app, Action::RangeKeep);
    app.lesson.study.note_evidence_seen(&stage);
    app.lesson.study.note_fix_tried(&stage);
    let is = |app: &App, says: &[&str]| {
        let said = next(app);
        assert!(said.starts_with("Stage 1 is not passed. "), "{said}");
        says.iter()
            .for_each(|it| assert!(said.contains(it), "{it}: {said}"));
    };
    is(&app, &["as the stage was found", "<Knobs>"]);
    app.bench.comparison.config_b = stage.fixed.clone();
    app.lesson.study.report = None;
    is(&app, &["has not run", "<Toggle>"]);
    let mut other = stage.broken.clone();
    other.train.seed += 1;
    fix_b(&mut app, other, 6);
    is(&app, &["Not met so far", "<Knobs> changes B"]);
    fix_b(&mut app, stage.fixed.clone(), 6);
    is(&app, &["Not measured", "it is faster", "<Pair>"]);
    act(&mut app, Action::Pair);
    assert!(next(&app).contains("run in turns"), "{}", next(&app));
    pair(&mut app, 40, true);
    assert_eq!(app.lesson.study.of(&stage).state, StageState::Passed);
    assert!(next(&app).contains("<Question>"), "{}", next(&app));
    // B is changed once more, so that it fails: said on the page and at the knobs, though the stage stays passed.
    let mut other = stage.broken.clone();
    other.train.seed += 1;
    fix_b(&mut app, other, 6);
    let fails = "your B as it is now fails: the first loss is small";
    assert!(next(&app).contains(fails), "{}", next(&app));
    act(&mut app, Action::Knobs);
    assert!(next(&app).contains(fails), "{}", next(&app));
    assert_eq!(app.lesson.study.of(&stage).state, StageState::Passed);
    act(&mut app, Action::Knobs);
    fix_b(&mut app, stage.fixed.clone(), 6);
    assert!(!next(&app).contains(fails), "{}", next(&app));
    // The last stage leads on.
    act(&mut app, Action::Stage(3));
    act(&mut app, Action::Yes);
    act(&mut app, Action::NextStage);
    assert_eq!(app.view.overlay, Some(Overlay::Summary));
}

#[test]
fn what_was_not_measured_comes_before_what_fails_after_it_and_pairs_come_last() {
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
    app.lesson.study.note_fix_tried(&stage);
    // B goes on from A's weights, so that it has no first loss; its last one is too large.
    let mut config = stage.broken.clone();
    config.train.seed += 1;
    let config = Ok(Box::new(config));
    update(&mut app, Message::FileSaved { config });
    let run = wanted(&app);
    hear(&mut app, sample::started(&run, 30));
    hear(&mut app, sample::step(&run, 30));
    hear(&mut app, sample::throughput(&run, 30));
    let outcomes = |app: &App| {
        let report = app.lesson.study.report.as_ref().expect("judged");
        let lines = report.lines.iter().map(|it| it.outcome);
        lines.collect::<Vec<_>>()
    };
    let (open, failed) = (Outcome::NotMeasured, Outcome::Failed);
    assert_eq!(outcomes(&app)[1..], [open, open, failed]);
    let said = next(&app);
    assert!(
        said.contains("the first loss is small. <Restart>"),
        "{said}"
    );
}

/// A stage about one knob, whose range is over the ratio of pairs; B is its solution.
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
    fix_b(&mut app, fixed, 6);
    app
}

fn measure_pairs(app: &mut App, ratio: f64, differs: &[&str]) {
    act(app, Action::Pair);
    begin_pairs(app);
    let Event::Pair(mut pair) = sample::pair(40, true) else {
        unreachable!()
    };
    pair.ratio = ratio;
    pair.differs = differs.iter().map(|it| (*it).to_owned()).collect();
    hear(app, Event::Pair(pair));
}

#[test]
fn a_range_about_one_knob_is_judged_by_pairs_of_that_knob_alone() {
    let mut app = asks_for_the_ratio();
    let stage = app.stage().expect("a stage").clone();
    let about = stage.varies[0].clone();
    let measured = |app: &App| (app.lesson.study.of(&stage).measured, truth(app, &stage));
    measure_pairs(&mut app, 2.5, &[&about, "model.loss"]);
    assert_eq!(app.lesson.study.of(&stage).state, StageState::Passed);
    assert_eq!(
        (app.lesson.study.beside(&stage), measured(&app)),
        (Some("model.loss"), (None, None))
    );
    measure_pairs(&mut app, 1.5, &[&about]);
    assert_eq!(
        (app.lesson.study.beside(&stage), measured(&app)),
        (None, (Some(1.5), Some(1.5)))
    );
    // The first that counts stays, and a ratio of other knobs is no later one.
    measure_pairs(&mut app, 2.5, &[&about, "model.loss"]);
    assert_eq!(measured(&app), (Some(1.5), None));
    // A stage about two knobs asks for the ratio of both.
    let mut two = stage.clone();
    two.varies.push("model.loss".to_owned());
    assert_eq!(
        (app.lesson.study.beside(&two), truth(&app, &two)),
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
    assert_eq!(trained(&app), "told later");
    let mut room = app.clone();
    act(&mut room, Action::Present);
    assert!(room.reading().withholds("lints"), "before the vote");
    act(&mut room, Action::NextBeat);
    assert!(room.reading().withholds("lints"), "while it is open");
    act(&mut room, Action::NextBeat);
    assert!(!room.reading().withholds("lints") && !room.reading().withholds("trained"));
    act(&mut app, Action::Answer(2));
    assert!(!app.reading().withholds("lints") && !app.reading().withholds("trained"));
    // The header and the lints would answer what is asked next: which panel shows it.
    if app.reading().asked_here() {
        act(&mut app, Action::RangeShift(1));
        act(&mut app, Action::RangeKeep);
    }
    assert!(app.reading().asks_where() && app.reading().withholds_mark("lints"));
    assert_eq!(trained(&app), "told later");
    act(&mut app, Action::Focus(Panel::Loss));
    // A wrong answer is followed by a second try.
    act(&mut app, Action::Locate);
    act(&mut app, Action::Locate);
    assert!(!app.reading().withholds_mark("lints"));
    assert_ne!(trained(&app), "told later");
}

#[test]
fn the_quiz_comes_in_the_debrief() {
    let mut app = running(1);
    act(&mut app, Action::Answer(1));
    solve(&mut app);
    act(&mut app, Action::Pair);
    pair(&mut app, 40, true);
    assert!(
        app.lesson
            .study
            .question(app.stage().expect("a stage"))
            .is_some_and(|(quiz, _)| quiz == Some(0))
    );
    let (width, height) = (80, 24);
    let mut small = app.clone();
    update(&mut small, Message::Resized { width, height });
    act(&mut small, Action::Lesson);
    assert_eq!(small.reading().page().0, LessonPage::Result);
    let unasked = act(&mut small, Action::Answer(1));
    assert_eq!(unasked, [], "where room is short the quiz has its own page");
    act(&mut small, Action::TurnPage(2));
    assert_eq!(small.reading().page().0, LessonPage::Quiz);
    assert_eq!(act(&mut small, Action::Answer(1)).len(), 1);
    assert_eq!(act(&mut app, Action::Answer(1)), [], "so it has elsewhere");
    act(&mut app, Action::Question);
    act(&mut app, Action::Answer(1));
    assert_eq!(
        app.reading().page().0,
        LessonPage::Quiz,
        "which says whether it was right"
    );
    let stage = app.stage().expect("a stage").clone();
    assert_eq!(
        (
            app.lesson.study.of(&stage).quiz,
            app.lesson.study.question(&stage).is_none()
        ),
        (vec![0], true)
    );
}

#[test]
fn hints_come_one_by_one_and_end() {
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
        assert_eq!(app.reading().hints().0, n);
    }
    assert_eq!(act(&mut app, Action::Hint), []);
    assert_eq!(app.reading().hints().0, 3);
}

#[test]
fn the_solution_asks_once() {
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
fn a_reset_asks_forgets_and_starts_over() {
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

#[test]
fn stages_are_reached_by_number_by_neighbour_and_from_the_list() {
    let mut app = running(1);
    assert_eq!(start_of(&act(&mut app, Action::Stage(3))).1.stage, 3);
    assert_eq!(act(&mut app, Action::NextStage), [Effect::ReadJourney]);
    assert_eq!(start_of(&act(&mut app, Action::PreviousStage)).1.stage, 2);
    assert_eq!(act(&mut app, Action::Stage(7)), []);
    act(&mut app, Action::Open(Overlay::Stages));
    assert_eq!(app.view.selected, 1);
    act(&mut app, Action::Scroll(-5));
    assert_eq!(start_of(&act(&mut app, Action::Choose)).1.stage, 1);
    assert_eq!(app.view.overlay, None);
}

#[test]
fn a_nan_stops_the_run_at_its_step() {
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
    assert!(
        app.view
            .notice
            .expect("it is said")
            .text
            .contains("layers.0.mlp")
    );
}

#[test]
fn a_saved_configuration_runs_beside_the_starter() {
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
    assert!(
        app.view
            .notice
            .expect("it is said")
            .text
            .contains("config.toml:2")
    );
    assert_eq!(
        app.bench.run.wanted.expect("still").variant,
        "custom",
        "a bad file replaces nothing"
    );
}

fn recording() -> App {
    let badge = Replay {
        file: "h100.jsonl".to_owned(),
        device: sample::device(),
        date: "2026-11-01".to_owned(),
        stage: Some(1),
        paused: false,
        speed: 1.0,
        unsolved: false,
        watched: false,
    };
    let (app, effects) = begin_with(Options {
        recording: Some(badge),
        ..Options::default()
    });
    assert_eq!(effects, [], "a recording starts nothing");
    app
}

#[test]
fn a_recording_is_steered_and_changes_nothing() {
    let mut app = recording();
    let stage = app.lesson.course.stages[1].clone();
    for event in sample::until(&spec(&stage, "broken"), 10) {
        hear(&mut app, event);
    }
    assert_eq!(
        (
            app.lesson.study.at,
            app.shown_run().step(),
            app.bench.run.state.clone()
        ),
        (1, Some(10), RunState::Running),
        "it shows its own stage"
    );
    assert_eq!(
        act(&mut app, Action::Pause),
        [Effect::Replay(ReplayControl::Pause)]
    );
    assert_eq!(
        act(&mut app, Action::ReplayStep),
        [Effect::Replay(ReplayControl::Step)]
    );
    assert_eq!(
        act(&mut app, Action::Pause),
        [Effect::Replay(ReplayControl::Resume)]
    );
    assert_eq!(
        act(&mut app, Action::ReplayFaster),
        [Effect::Replay(ReplayControl::Speed(2.0))]
    );
    for action in [
        Action::Toggle,
        Action::Pair,
        Action::Restart,
        Action::Profile,
        Action::Hint,
    ] {
        assert_eq!(
            commands(&act(&mut app, action)),
            Vec::<&Command>::new(),
            "{action:?}"
        );
    }
    update(
        &mut app,
        Message::Engine(FromEngine::Gone {
            reason: "end of file".to_owned(),
        }),
    );
    assert_eq!(app.bench.run.state, RunState::Finished);
}

#[test]
fn what_is_no_event_goes_to_the_log() {
    let mut app = running(1);
    update(
        &mut app,
        Message::Engine(FromEngine::Stray("\u{1b}[2Jdriver\u{7} says".to_owned())),
    );
    update(
        &mut app,
        Message::Engine(FromEngine::Malformed {
            line: "{".to_owned(),
            why: "end of input".to_owned(),
        }),
    );
    assert_eq!(
        (
            app.devices.log.entries.len(),
            app.devices.log.unseen,
            app.devices.log.malformed
        ),
        (2, 2, 1)
    );
    assert_eq!(app.devices.log.entries[0].text, "·[2Jdriver· says");
    act(&mut app, Action::Open(Overlay::Log));
    assert_eq!(app.devices.log.unseen, 0);
    for n in 0..5_000 {
        update(
            &mut app,
            Message::Engine(FromEngine::Stray(format!("line {n}"))),
        );
    }
    assert_eq!(app.devices.log.entries.len(), 500);
}

#[test]
fn a_long_run_does_not_grow_the_state() {
    let mut app = running(0);
    let run = wanted(&app);
    let mut held = Vec::new();
    for at in 1..200_000 {
        hear(&mut app, sample::step(&run, at));
        if at % 50_000 == 0 {
            held.push(app.bench.run.shown().loss.held() + app.bench.run.shown().step_ms.held());
        }
    }
    assert!(
        held.iter().all(|held| *held <= 2 * (512 + 1024)),
        "{held:?}"
    );
}

#[test]
fn what_an_event_carries_is_bounded() {
    let mut app = running(1);
    let row = KernelRow {
        op: "x".repeat(10_000),
        ..KernelRow::default()
    };
    hear(
        &mut app,
        Event::Kernels(StepProfile {
            rows: vec![row; 5_000],
            ..StepProfile::default()
        }),
    );
    let kernels = app.bench.run.shown().kernels.as_ref().expect("kernels");
    assert!(kernels.rows.len() <= 512 && kernels.rows[0].op.len() < 100);
}

#[test]
fn nothing_new_is_nothing_to_draw() {
    let mut app = running(3);
    let before = app.view.revision;
    hear(&mut app, Event::Heartbeat { device_s: None });
    update(&mut app, Message::Tick { now_ms: 40 });
    update(&mut app, Message::Drawn(DrawnFrame::default()));
    assert_eq!(app.view.revision, before);
    let run = wanted(&app);
    hear(&mut app, sample::step(&run, 4));
    assert!(app.view.revision > before);
}

fn load(others: f64, busy: bool) -> Event {
    Event::Load(Load {
        others: Some(others),
        busy,
        reason: None,
    })
}

#[test]
fn other_programs_are_named_while_they_keep_the_machine_busy() {
    let mut app = running(3);
    let said = |app: &App| busy::busy(app).map(|[full, ..]| full);
    for (others, is_busy, expected) in [
        (0.05, false, None),
        (0.62, true, Some("60 %")),
        // Between the limits the engine leaves it as it was.
        (0.12, true, Some("10 %")),
        (0.12, false, None),
    ] {
        hear(&mut app, load(others, is_busy));
        let said = said(&app);
        assert_eq!(said.is_some(), expected.is_some(), "{others}: {said:?}");
        let names = |text: String| expected.is_some_and(|share| text.contains(share));
        assert!(said.is_none_or(names), "{others}");
    }
    // Digits that nobody reads are nothing to draw.
    hear(&mut app, load(0.61, true));
    let before = app.view.revision;
    hear(&mut app, load(0.59, true));
    assert_eq!(app.view.revision, before);
    hear(&mut app, load(0.90, true));
    assert!(app.view.revision > before);
    // What an engine said that is gone is not known any more.
    let gone = FromEngine::Gone {
        reason: "it ended".to_owned(),
    };
    update(&mut app, Message::Engine(gone));
    assert_eq!(said(&app), None);
}

#[test]
fn where_the_system_tells_nothing_the_spread_of_the_steps_does() {
    let mut app = running(3);
    let unknown = Load {
        reason: Some("/proc/stat: no such file".to_owned()),
        ..Load::default()
    };
    let steps = |state, n| {
        Event::Throughput(Throughput {
            state,
            step_ms: Spread {
                n,
                ..Spread::default()
            },
            ..Throughput::default()
        })
    };
    hear(&mut app, steps(TimingState::Noisy, 100));
    assert_eq!(busy::busy(&app), None, "the engine may know better");
    hear(&mut app, Event::Load(unknown));
    let said = busy::busy(&app).expect("a banner");
    assert!(said[0].starts_with("Step times vary a lot"), "{said:?}");
    for quiet in [
        steps(TimingState::Noisy, 10),
        steps(TimingState::Steady, 100),
    ] {
        hear(&mut app, quiet);
        assert_eq!(busy::busy(&app), None);
    }
}

#[test]
fn both_slots_are_shown_against_the_best_peaks() {
    let mut app = running(3);
    let run = wanted(&app);
    let started = |best: f64, slot: Slot| {
        let Event::Started(mut started) = sample::started(&run, 0) else {
            unreachable!()
        };
        let mut roof = sample::roof();
        (roof.flops.best, started.run.slot) = (best, slot);
        started.roof = Some(Box::new(roof));
        Event::Started(started)
    };
    app.bench.pending.asked = Asked::Nothing;
    hear(&mut app, started(65e9, Slot::A));
    hear(&mut app, started(265e9, Slot::B));
    for slot in [Slot::A, Slot::B] {
        let run = &app.bench.run.slot(slot).description;
        assert_eq!(run.roof.as_ref().map(|it| it.flops.best), Some(265e9));
    }
}

#[test]
fn peaks_that_follow_the_first_loss_are_those_of_runs_on_that_device() {
    let mut app = running(3);
    let run = wanted(&app);
    let Event::Started(mut started) = sample::started(&run, 0) else {
        unreachable!()
    };
    started.roof = None;
    let device = started.device.clone();
    app.bench.pending.asked = Asked::Nothing;
    hear(&mut app, Event::Started(started));
    let shown = |app: &App| app.bench.run.shown().description.roof.clone();
    assert_eq!(shown(&app), None);
    let roof = sample::roof();
    let other = Device {
        name: "another".to_owned(),
        ..device.clone()
    };
    for (device, known) in [(other, None), (device, Some(Box::new(roof.clone())))] {
        let roof = roof.clone();
        hear(&mut app, Event::Calibrated { device, roof });
        assert_eq!(shown(&app), known);
    }
}

#[test]
fn a_notice_goes_after_a_while() {
    let mut app = running(1);
    update(
        &mut app,
        Message::Notice {
            text: "written".to_owned(),
            warning: false,
        },
    );
    update(&mut app, Message::Tick { now_ms: 7_000 });
    assert!(app.view.notice.is_some());
    let before = app.view.revision;
    update(&mut app, Message::Tick { now_ms: 8_001 });
    assert!(app.view.notice.is_none() && app.view.revision > before);
}

#[test]
fn focus_goes_round_and_expands() {
    let mut app = running(1);
    assert_eq!(app.view.focus, Some(Panel::Lesson));
    for panel in Panel::VARIANTS
        .iter()
        .copied()
        .cycle()
        .skip(1)
        .take(Panel::VARIANTS.len())
    {
        act(&mut app, Action::FocusNext);
        assert_eq!(app.view.focus, Some(panel));
    }
    act(&mut app, Action::FocusPrevious);
    let last = Panel::VARIANTS.last().copied();
    assert_eq!((app.view.focus, app.view.third), (last, last));
    act(&mut app, Action::Expand);
    assert!(app.view.expanded);
    act(&mut app, Action::Close);
    assert!(!app.view.expanded);
}

#[test]
fn scrolling_stops_where_the_text_ends() {
    let mut app = running(1);
    update(
        &mut app,
        Message::Drawn(DrawnFrame {
            panels: vec![(Panel::Lesson, 7)],
            overlay: 0,
            rows: Vec::new(),
        }),
    );
    act(&mut app, Action::Scroll(50));
    assert_eq!(app.view.scroll_of(Panel::Lesson), 7);
    act(&mut app, Action::Scroll(-1));
    assert_eq!(app.view.scroll_of(Panel::Lesson), 6);
    act(&mut app, Action::ScrollToTop);
    assert_eq!(app.view.scroll_of(Panel::Lesson), 0);
}

#[test]
fn an_empty_course_is_a_state_not_a_crash() {
    let (mut app, effects) = App::new(
        perflings::course::Course::default(),
        Progress::default(),
        Options::default(),
    );
    assert_eq!(commands(&effects), [&Command::Probe]);
    for action in [
        Action::Toggle,
        Action::Pair,
        Action::Answer(0),
        Action::Hint,
        Action::NextStage,
        Action::Restart,
        Action::OpenEditor,
    ] {
        act(&mut app, action);
    }
    act(&mut app, Action::Solution);
    act(&mut app, Action::Yes);
}

#[test]
fn progress_of_earlier_sittings_is_shown() {
    let known = StageProgress {
        state: StageState::Passed,
        prediction: Some(Prediction::Choice {
            choice: 1,
            right: true,
        }),
        hints: 2,
        ..StageProgress::default()
    };
    let progress = Progress {
        stages: [("broken-init".to_owned(), known)].into(),
        ..Progress::default()
    };
    let (app, _) = App::new(sample::course(), progress, Options::default());
    let stage = app.stage().expect("a stage");
    assert_eq!(
        (app.lesson.study.activity(stage), app.reading().hints().0),
        (Activity::LookBack, 2)
    );
}

#[test]
fn a_forgotten_run_pauses_itself_and_says_so() {
    let mut app = running(20);
    let run = wanted(&app);
    // A second after the other, with a step in each.
    let wait = |app: &mut App, from: u64, to: u64| -> Vec<Effect> {
        let second = |s: u64, app: &mut App| {
            hear(app, sample::step(&run, 20 + s));
            update(app, Message::Tick { now_ms: 1000 * s })
        };
        (from..to).flat_map(|s| second(s, app)).collect()
    };
    assert_eq!(wait(&mut app, 0, 600), []);
    let mut shown = app.clone();
    act(&mut shown, Action::Present);
    train(&mut shown, 20);
    let effects = wait(&mut app, 600, 602);
    assert_eq!(commands(&effects), [&Command::Pause]);
    let said = app.view.notice.clone().expect("it is said");
    assert!(said.text.contains("ten minutes"));
    hear(&mut app, Event::Paused { slot: Slot::A });
    update(&mut app, Message::Tick { now_ms: 700_000 });
    assert_eq!(app.view.notice, Some(said), "until somebody is there");
    let effects = act(&mut app, Action::Pause);
    assert_eq!(commands(&effects), [&Command::Resume]);
    assert_eq!(app.view.notice, None);
    wait(&mut shown, 600, 1300);
    assert_eq!(shown.bench.run.state, RunState::Running, "a room looks on");
}

#[test]
fn the_engine_rests_while_the_screen_is_suspended() {
    let mut app = running(5);
    let effects = act(&mut app, Action::Suspend);
    let at = |wanted: &Effect| effects.iter().position(|effect| effect == wanted);
    let order = [
        Effect::Send(Command::Pause),
        Effect::Suspend,
        Effect::Send(Command::Resume),
    ];
    assert_eq!(order.each_ref().map(at), [Some(0), Some(1), Some(2)]);
}
