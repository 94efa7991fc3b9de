//! Devices: a GPU that warms up during the run, measured peaks, and the load of other programs.

use super::*;

/// A GPU as the engine's probe reports it.
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
fn a_gpu_warms_up_during_the_run_and_is_offered() {
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
        "the run continues on the CPU"
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
fn the_run_continues_if_the_gpu_cannot_be_opened() {
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

/// A report of the engine that other programs use this share of the machine.
fn load(others: f64, busy: bool) -> Event {
    Event::Load(Load {
        others: Some(others),
        busy,
        reason: None,
    })
}

#[test]
fn a_banner_names_the_share_of_other_programs_while_they_are_busy() {
    let mut app = running(3);
    let banner = |app: &App| busy::wordings(app).map(|[full, ..]| full);
    // Between its two limits the engine may report either state.
    for (others, share) in [(0.62, "60 %"), (0.12, "10 %")] {
        hear(&mut app, load(others, true));
        assert!(banner(&app).is_some_and(|text| text.contains(share)));
    }
    for others in [0.05, 0.12] {
        hear(&mut app, load(others, false));
        assert_eq!(banner(&app), None);
    }
    // A change within 5 % changes no digit, so no frame is drawn.
    hear(&mut app, load(0.61, true));
    let before = app.view.revision;
    hear(&mut app, load(0.59, true));
    assert_eq!(app.view.revision, before);
    hear(&mut app, load(0.90, true));
    assert!(app.view.revision > before);
    // The load is not known any more after the engine has ended.
    let gone = FromEngine::Gone {
        reason: "it ended".to_owned(),
    };
    update(&mut app, Message::Engine(gone));
    assert_eq!(banner(&app), None);
}

#[test]
fn a_banner_reports_noisy_steps_if_the_load_is_unknown() {
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
    assert_eq!(busy::wordings(&app), None, "the load is not reported yet");
    hear(&mut app, Event::Load(unknown));
    let [banner, ..] = busy::wordings(&app).expect("a banner");
    assert!(banner.starts_with("Step times vary a lot"), "{banner}");
    for quiet in [
        steps(TimingState::Noisy, 10),
        steps(TimingState::Steady, 100),
    ] {
        hear(&mut app, quiet);
        assert_eq!(busy::wordings(&app), None);
    }
}

#[test]
fn both_slots_are_compared_with_the_best_peaks() {
    let mut app = running(3);
    let run = wanted(&app);
    let started = |best: f64, slot: Slot| {
        let Event::Started(mut started) = sample::started(&run, 0) else {
            unreachable!()
        };
        let mut peaks = sample::peaks();
        peaks.flops.best = best;
        started.run.slot = slot;
        started.peaks = Some(Box::new(peaks));
        Event::Started(started)
    };
    app.bench.pending.asked = Asked::Nothing;
    hear(&mut app, started(65e9, Slot::A));
    hear(&mut app, started(265e9, Slot::B));
    for slot in [Slot::A, Slot::B] {
        let run = &app.bench.run.slot(slot).description;
        assert_eq!(
            run.peaks.as_ref().map(|peaks| peaks.flops.best),
            Some(265e9)
        );
    }
}

#[test]
fn late_peaks_apply_only_to_runs_on_their_device() {
    let mut app = running(3);
    let run = wanted(&app);
    let Event::Started(mut started) = sample::started(&run, 0) else {
        unreachable!()
    };
    started.peaks = None;
    let device = started.device.clone();
    app.bench.pending.asked = Asked::Nothing;
    hear(&mut app, Event::Started(started));
    let shown = |app: &App| app.bench.run.shown().description.peaks.clone();
    assert_eq!(shown(&app), None);
    let peaks = sample::peaks();
    let other = Device {
        name: "another".to_owned(),
        ..device.clone()
    };
    let calibrated = |device| Event::Calibrated {
        device,
        peaks: peaks.clone(),
    };

    hear(&mut app, calibrated(other));
    assert_eq!(shown(&app), None);

    hear(&mut app, calibrated(device));
    assert_eq!(shown(&app), Some(Box::new(peaks.clone())));
}
