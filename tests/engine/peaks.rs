//! The peaks of a device: when they are measured, where they are kept, and the share of them that a row reaches.

use protocol::Peaks;

use super::*;

/// Returns the position of the first event that `is_wanted` accepts.
fn position(events: &[Event], is_wanted: fn(&Event) -> bool) -> usize {
    events.iter().position(is_wanted).expect("this event")
}

#[test]
fn every_row_has_its_work_or_a_reason_and_the_device_has_peaks() {
    let fixed = [
        ("model.norm", "fused"),
        ("model.attention", "flash"),
        ("model.loss", "fused"),
        ("train.optimizer", "fused"),
    ];
    let naive = [("model.swiglu", "naive-kernel")];
    let in_parts = [("model.loss", "in-parts")];
    for knobs in [&[][..], &fixed, &naive, &in_parts] {
        let mut engine = Engine::start();
        let (events, finished) = engine.run(small(knobs), 4);
        let peaks = events.iter().find_map(reported_peaks).expect("peaks");
        assert!(
            peaks.flops.best > 1e8 && peaks.bytes.best > 1e8,
            "{peaks:?}"
        );
        let rows = events.iter().find_map(|event| match event {
            Event::Kernels(profile) => Some(&profile.rows),
            _ => None,
        });
        for row in rows.expect("a profile") {
            let has_work = row.flops.is_some() && row.bytes > Some(0.0);
            assert_eq!(has_work, row.no_work.is_none(), "{row:?}");
        }
        let top = &finished.kernels.top[0];
        assert!(top.peak_share.is_some(), "{top:?}");
        assert!(top.gflop_per_s.is_some(), "{top:?}");
    }
}

/// Returns the peaks that were on file when a run started, or that were measured after its first step.
fn reported_peaks(event: &Event) -> Option<&Peaks> {
    match event {
        Event::Started(started) => started.peaks.as_deref(),
        Event::Calibrated { peaks, .. } => Some(peaks),
        _ => None,
    }
}

/// Returns true if a run had peaks from its start.
fn starts_with_peaks(events: &[Event]) -> bool {
    let started = events.iter().find_map(started).expect("a start");
    started.peaks.is_some()
}

#[test]
fn peaks_are_measured_after_the_first_loss() {
    let folder = tempfile::tempdir().expect("a folder");
    let (events, _) = Engine::start_in(folder.path()).run(small(&[]), 4);
    let first_loss = position(&events, |event| matches!(event, Event::Step(_)));
    let measured = position(&events, |event| matches!(event, Event::Calibrated { .. }));
    let profile = position(&events, |event| matches!(event, Event::Kernels(_)));
    assert!(first_loss < measured && measured < profile, "{events:?}");
}

#[test]
fn measured_peaks_are_known_to_the_next_run_and_to_other_engines() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut engine = Engine::start_in(folder.path());
    engine.run(small(&[]), 4);
    let mut other_engine = Engine::start_in(folder.path());
    for engine in [&mut engine, &mut other_engine] {
        let (events, _) = engine.run(small(&[]), 1);
        assert!(starts_with_peaks(&events), "{events:?}");
    }
}

#[test]
fn a_comparison_has_peaks_from_its_start_also_as_the_first_work_on_a_device() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut engine = Engine::start_in(folder.path());
    let run = endless(small(&[]));
    engine.send(&compare(run.clone(), run, 2, 0));
    let events = engine.events_until_step();
    assert!(starts_with_peaks(&events), "{events:?}");
}

#[test]
fn peaks_outlive_a_run_if_no_file_can_be_written() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("perflings"), "not a folder").expect("written");
    let mut engine = Engine::start_in(folder.path());
    let (first, _) = engine.run(small(&[]), 2);
    let is_measurement = |event: &Event| matches!(event, Event::Calibrated { .. });
    assert!(first.iter().any(is_measurement), "{first:?}");
    let (second, _) = engine.run(small(&[]), 2);
    assert!(starts_with_peaks(&second), "{second:?}");
}

#[test]
fn a_damaged_file_of_peaks_is_set_aside_with_a_warning() {
    let folder = tempfile::tempdir().expect("a folder");
    let cache = folder.path().join("perflings");
    std::fs::create_dir(&cache).expect("made");
    std::fs::write(cache.join("roofs.json"), "{ damaged").expect("written");
    let (events, _) = Engine::start_in(folder.path()).run(small(&[]), 2);
    let is_warning = |event: &Event| match event {
        Event::Log(message) => message.text.contains("it was set aside"),
        _ => false,
    };
    assert!(events.iter().any(is_warning), "{events:?}");
}

#[test]
fn a_device_is_measured_again_when_asked() {
    let mut engine = Engine::start();
    engine.send(&Command::Calibrate {
        device: "cpu".into(),
    });
    let events =
        engine.events_until(|event| matches!(event, Event::Calibrated { .. } | Event::Failed(_)));
    let Some(Event::Calibrated { device, peaks }) = events.last() else {
        panic!("{events:?}")
    };
    assert_eq!(device.kind, "cpu");
    assert_eq!(peaks.clock, "host");
    engine.send(&Command::Probe);
    let probed = engine.events_until(|event| matches!(event, Event::Devices { .. }));
    let Some(Event::Devices { devices }) = probed.last() else {
        unreachable!()
    };
    let known = devices[0].peaks.as_ref().expect("peaks");
    assert_eq!(known.date, peaks.date);
}

#[test]
fn a_calibration_of_an_unknown_device_fails() {
    let mut engine = Engine::start();
    engine.send(&Command::Calibrate {
        device: "toaster".into(),
    });
    engine.events_until_failure();
}
