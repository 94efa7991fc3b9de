//! Tries each lint at its limit: a run that just reaches the limit raises the lint, a run that just misses it does not.

use gputrace::summary::summary;

use super::fixtures::{self, Kernel, NAMES, Range, Run, bytes};
use super::names;

/// Kernels of the same name and length, in nanoseconds, with so much between them, launched 1 µs before each.
fn kernels(count: u64, length: u64, gap: u64) -> Run {
    let kernels = (0..count).map(|i| {
        let start = 10_000 + i * (length + gap);
        Kernel {
            name: NAMES[(i % 4) as usize],
            launch: (start - 1000, start - 900),
            span: (start, start + length),
            correlation: i + 1,
        }
    });
    Run {
        kernels: kernels.collect(),
        ..Run::default()
    }
}

/// A step over all of it, and these ranges.
fn within_step(mut run: Run, ranges: &[(&str, (u64, u64))]) -> Run {
    let end = run.kernels.last().map_or(0, |kernel| kernel.span.1) + 1000;
    let step = ("step 1", (5000, end));
    let all = std::iter::once(&step).chain(ranges);
    run.ranges = all
        .map(|(name, span)| Range {
            name: (*name).to_owned(),
            span: *span,
        })
        .collect();
    run
}

fn raises(run: &Run, lint: &str) -> bool {
    let trace = bytes("a", fixtures::kineto(run)).unwrap();
    names(&summary(&trace)).contains(&lint)
}

#[test]
fn launch_bound_needs_idle_time_and_short_kernels() {
    // Of 101 kernels with 100 gaps: 30.2 % and 29.9 % idle.
    assert!(raises(&kernels(101, 10_000, 4370), "launch-bound"));
    assert!(!raises(&kernels(101, 10_000, 4310), "launch-bound"));
    assert!(raises(&kernels(101, 19_999, 20_000), "launch-bound"));
    assert!(!raises(&kernels(101, 20_000, 20_000), "launch-bound"));
}

#[test]
fn one_kernel_dominates_from_more_than_half_of_the_time() {
    let with = |longest: u64| {
        let mut run = kernels(5, 1000, 10);
        run.kernels[0].span.1 = run.kernels[0].span.0 + longest;
        run.kernels[4].name = NAMES[4];
        raises(&run, "one-kernel-dominates")
    };
    assert!(with(4010));
    assert!(!with(4000));
}

#[test]
fn waits_and_copies_count_within_steps_alone() {
    let run = within_step(kernels(4, 1000, 10), &[]);
    let end = run.ranges[0].span.1;
    for (at, expected) in [(end - 100, true), (end + 100, false)] {
        let mut waits = run.clone();
        waits.syncs = vec![(at, at + 50)];
        assert_eq!(raises(&waits, "sync-in-step"), expected, "{at}");
        let mut copies = run.clone();
        copies.copies = vec![(at, at + 50)];
        assert_eq!(raises(&copies, "copy-in-step"), expected, "{at}");
    }
    let mut copies = run.clone();
    copies.copies = vec![(end - 100, end - 50)];
    let within_device = fixtures::kineto(&copies).replace("HtoD (Pinned", "DtoD (Device");
    let within_device = summary(&bytes("a", within_device).unwrap());
    assert!(!names(&within_device).contains(&"copy-in-step"));
    copies.ranges.clear();
    copies.syncs = vec![(end - 100, end)];
    assert!(!raises(&copies, "copy-in-step") && !raises(&copies, "sync-in-step"));
}

#[test]
fn a_backward_pass_is_missing_below_half_of_the_forward_pass() {
    let with = |length: u64, last: &'static str| {
        let mut run = kernels(3, 10_000, 1000);
        run.kernels[2].name = last;
        let backward = run.kernels[1].span.0;
        run.kernels[1].span.1 = backward + length;
        let launches = |at: usize| run.kernels[at].launch;
        let ranges = [
            ("forward", launches(0)),
            ("backward", launches(1)),
            ("optimizer", launches(2)),
        ]
        .map(|(name, (from, to))| (name, (from - 10, to)));
        within_step(run, &ranges)
    };
    assert!(raises(&with(4999, NAMES[4]), "missing-backward"));
    assert!(!raises(&with(5000, NAMES[4]), "missing-backward"));
    // Without ranges of phases nothing is known of them, and of half a file neither.
    let mut unnamed = with(100, NAMES[4]);
    unnamed.ranges.truncate(1);
    assert!(!raises(&unnamed, "missing-backward"));
    let text = fixtures::kineto(&with(100, NAMES[4]));
    let half = text.split("\n],").next().unwrap();
    let cut = names(&summary(&bytes("a", half).unwrap()));
    assert!(cut.contains(&"truncated-file") && !cut.contains(&"missing-backward"));
    assert!(!names(&summary(&bytes("a", text).unwrap())).contains(&"truncated-file"));
}

#[test]
fn clocks_disagree_where_more_than_one_kernel_of_a_hundred_begins_before_its_launch() {
    let with = |early: usize| {
        let mut run = kernels(200, 1000, 1000);
        for kernel in &mut run.kernels[..early] {
            kernel.launch = (kernel.span.0 + 1, kernel.span.0 + 10);
        }
        raises(&run, "clock-mismatch")
    };
    assert!(with(3));
    assert!(!with(2));
}

#[test]
fn a_device_was_not_seen_where_calls_launch_and_nothing_runs() {
    let text = |run: &Run, kernels: bool| {
        let events = fixtures::events(run, true);
        let kept = events
            .iter()
            .filter(|event| kernels || !event.contains("\"kernel\""));
        let kept: Vec<&str> = kept.map(String::as_str).collect();
        format!(
            "{{\"schemaVersion\":1,\"traceEvents\":[{}]}}",
            kept.join(",")
        )
    };
    let lints = |text| names(&summary(&bytes("a", text).unwrap()));
    let run = kernels(1, 1000, 10);
    assert!(lints(text(&run, false)).contains(&"no-device-activity"));
    assert!(!lints(text(&run, true)).contains(&"no-device-activity"));
}

#[test]
fn the_profiler_costs_too_much_above_a_quarter() {
    let mut trace = bytes(
        "a",
        fixtures::kineto(&within_step(kernels(4, 1000, 10), &[])),
    )
    .unwrap();
    let step = summary(&trace).steps.unwrap()[0].dur_ns;
    for (plain, expected) in [(step * 4 / 5, false), (step * 79 / 100, true)] {
        trace.unprofiled_step = Some(plain + 1);
        let found = names(&summary(&trace));
        assert_eq!(found.contains(&"profiler-overhead"), expected, "{found:?}");
    }
}
