//! The lints: runs with the fault of each, and runs at each limit, of which one just reaches the limit and the other just misses it.

use gputrace::lints;
use gputrace::summary::summary;

use super::fixtures::{self, Kernel, NAMES, Range, Run, Span, bytes};
use super::{figures_of, lint_names};

/// Returns a run of kernels of one length with equal gaps, both in nanoseconds. Each kernel is launched 1 µs before its start.
fn kernels(count: u64, length: u64, gap: u64) -> Run {
    let mut run = Run::default();
    for index in 0..count {
        let start = 10_000 + index * (length + gap);
        run.kernels.push(Kernel {
            name: NAMES[(index % 4) as usize],
            launch: (start - 1000, start - 900),
            span: (start, start + length),
            correlation: index + 1,
        });
    }
    run
}

/// Returns the run with a step around all kernels, and with these ranges.
fn within_step(mut run: Run, ranges: &[(&str, Span)]) -> Run {
    let end = run.kernels.last().map_or(0, |kernel| kernel.span.1) + 1000;
    for (name, span) in [&[("step 1", (5000, end))], ranges].concat() {
        let name = name.to_owned();
        run.ranges.push(Range { name, span });
    }
    run
}

fn lints_of(run: &Run) -> Vec<&'static str> {
    lint_names(&figures_of(fixtures::kineto(run)))
}

fn raises(run: &Run, lint: &str) -> bool {
    lints_of(run).contains(&lint)
}

#[test]
fn launch_bound_needs_idle_time_and_short_kernels() {
    // With 101 kernels and 100 gaps, the device is idle for 30.2 % and for 29.9 %.
    assert!(raises(&kernels(101, 10_000, 4370), "launch-bound"));
    assert!(!raises(&kernels(101, 10_000, 4310), "launch-bound"));
    assert!(raises(&kernels(101, 19_999, 20_000), "launch-bound"));
    assert!(!raises(&kernels(101, 20_000, 20_000), "launch-bound"));
}

#[test]
fn one_kernel_dominates_from_more_than_half_of_the_time() {
    let raises_with = |longest: u64| {
        let mut run = kernels(5, 1000, 10);
        run.kernels[0].span.1 = run.kernels[0].span.0 + longest;
        run.kernels[4].name = NAMES[4];
        raises(&run, "one-kernel-dominates")
    };
    // The other four kernels take 1 µs each, of which one has the same name.
    assert!(raises_with(4010));
    assert!(!raises_with(4000));
}

#[test]
fn waits_and_copies_count_only_within_steps() {
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
    assert!(!lint_names(&figures_of(within_device)).contains(&"copy-in-step"));
    copies.ranges.clear();
    copies.syncs = vec![(end - 100, end)];
    assert!(!raises(&copies, "copy-in-step") && !raises(&copies, "sync-in-step"));
}

#[test]
fn a_backward_pass_is_missing_below_half_of_the_forward_pass() {
    // The forward pass takes 10 µs, the backward pass `length` nanoseconds.
    let run_with = |length: u64| {
        let mut run = kernels(3, 10_000, 1000);
        run.kernels[2].name = NAMES[4];
        let backward = run.kernels[1].span.0;
        run.kernels[1].span.1 = backward + length;
        let launch = |index: usize| run.kernels[index].launch;
        let ranges = [
            ("forward", launch(0)),
            ("backward", launch(1)),
            ("optimizer", launch(2)),
        ]
        .map(|(name, (from, to))| (name, (from - 10, to)));
        within_step(run, &ranges)
    };
    assert!(raises(&run_with(4999), "missing-backward"));
    assert!(!raises(&run_with(5000), "missing-backward"));
    // Without ranges, the phases are not known.
    let mut unnamed = run_with(100);
    unnamed.ranges.truncate(1);
    assert!(!raises(&unnamed, "missing-backward"));
    // The rest of a truncated file may have the backward pass.
    let text = fixtures::kineto(&run_with(100));
    let (truncated, _) = text.split_once("\n],").unwrap();
    let lints = lint_names(&figures_of(truncated));
    assert!(lints.contains(&"truncated-file") && !lints.contains(&"missing-backward"));
    assert!(!raises(&run_with(100), "truncated-file"));
}

#[test]
fn clocks_disagree_if_more_than_one_percent_of_kernels_start_before_their_launch() {
    let raises_with = |early: usize| {
        let mut run = kernels(200, 1000, 1000);
        for kernel in &mut run.kernels[..early] {
            kernel.launch = (kernel.span.0 + 1, kernel.span.0 + 10);
        }
        raises(&run, "clock-mismatch")
    };
    // These are three and two of 200 kernels.
    assert!(raises_with(3));
    assert!(!raises_with(2));
}

#[test]
fn no_device_activity_means_launches_without_kernels() {
    let run = kernels(1, 1000, 10);
    let mut events = fixtures::events(&run, true);
    assert!(
        !lint_names(&figures_of(fixtures::kineto_file(&events))).contains(&"no-device-activity")
    );
    events.retain(|event| !event.contains("\"kernel\""));
    assert!(
        lint_names(&figures_of(fixtures::kineto_file(&events))).contains(&"no-device-activity")
    );
}

#[test]
fn the_profiler_costs_too_much_above_a_quarter_of_the_step() {
    let run = within_step(kernels(4, 1000, 10), &[]);
    let mut trace = bytes("a", fixtures::kineto(&run)).unwrap();
    let step = summary(&trace).steps.unwrap()[0].dur_ns;
    for (unprofiled, expected) in [(step * 4 / 5, false), (step * 79 / 100, true)] {
        trace.unprofiled_step = Some(unprofiled + 1);
        let found = lint_names(&summary(&trace));
        assert_eq!(found.contains(&"profiler-overhead"), expected, "{found:?}");
    }
}

/// Returns a run of long kernels without a fault.
fn faultless() -> Run {
    Run {
        syncs: Vec::new(),
        copies: Vec::new(),
        ..fixtures::run(3, 30_000, 250)
    }
}

#[test]
fn a_run_has_the_lints_of_its_faults_and_no_others() {
    assert_eq!(lints_of(&faultless()), [""; 0]);
    let with_waits = fixtures::run(3, 30_000, 250);
    assert_eq!(lints_of(&with_waits), ["sync-in-step", "copy-in-step"]);
    let with_gaps = fixtures::run(3, 400, 9000);
    assert_eq!(
        lints_of(&with_gaps),
        ["launch-bound", "sync-in-step", "copy-in-step"]
    );
    let mut one_name = faultless();
    for kernel in &mut one_name.kernels {
        kernel.name = NAMES[2];
    }
    assert_eq!(lints_of(&one_name), ["one-kernel-dominates"]);
    let mut without_optimizer = faultless();
    without_optimizer
        .kernels
        .retain(|kernel| kernel.name != NAMES[4]);
    assert_eq!(lints_of(&without_optimizer), ["missing-backward"]);
    // All tests together know each lint.
    assert_eq!(lints::names().count(), 9);
}

#[test]
fn clocks_that_are_far_apart_are_a_mismatch() {
    let mut early = faultless();
    for kernel in &mut early.kernels {
        kernel.launch = (kernel.span.0 + 5, kernel.span.0 + 9);
    }
    assert_eq!(lints_of(&early)[0], "clock-mismatch");
    let mut apart = faultless();
    for kernel in &mut apart.kernels {
        kernel.span = (kernel.span.0 + 9_000_000_000, kernel.span.1 + 9_000_000_000);
    }
    assert_eq!(lints_of(&apart)[0], "clock-mismatch");
}

#[test]
fn a_backward_pass_with_a_sixth_of_its_kernels_is_missing() {
    let mut run = faultless();
    let backward: Vec<Span> = run
        .ranges
        .iter()
        .filter(|range| range.name == "backward")
        .map(|range| range.span)
        .collect();
    let mut count = 0;
    run.kernels.retain(|kernel| {
        let launch = kernel.launch.0;
        let is_backward = backward
            .iter()
            .any(|span| (span.0..span.1).contains(&launch));
        count += usize::from(is_backward);
        !is_backward || count % 6 == 0
    });
    assert_eq!(lints_of(&run), ["missing-backward"]);
}

#[test]
fn the_overhead_of_the_profiler_explains_idle_time() {
    let with_overhead = |run: &Run| {
        let mut trace = bytes("a", fixtures::kineto(run)).unwrap();
        trace.unprofiled_step = Some(summary(&trace).steps.unwrap()[0].dur_ns / 3);
        lint_names(&summary(&trace))
    };
    assert_eq!(with_overhead(&faultless()), ["profiler-overhead"]);
    // The same gaps without the profiler's overhead are launch-bound.
    assert_eq!(
        with_overhead(&fixtures::run(3, 400, 9000)),
        ["sync-in-step", "copy-in-step", "profiler-overhead"]
    );
}
