//! Tests of the rules by which a run goes on from another one, and of a run of another program.

use super::{PhaseName, RunDescription, RunStory, StreamStory};
use crate::config::{Preset, RunConfig};
use crate::lints::lints;
use crate::*;

fn described(slot: Slot, hash: &str, from_step: u64) -> RunDescription {
    RunDescription {
        slot,
        hash: Some(hash.to_owned()),
        from_step,
        ..RunDescription::default()
    }
}

fn side_of_pairs(slot: Slot, hash: &str) -> RunDescription {
    RunDescription {
        paired: true,
        ..described(slot, hash, 0)
    }
}

/// Makes steps in a slot, with a loss that falls from 7 by 0.001 in each step.
fn make_steps(story: &mut StreamStory, slot: Slot, steps: std::ops::Range<u64>) {
    for step in steps {
        let step = Step {
            slot,
            step,
            loss: Some(Num(7.0 - step as f64 / 1000.0)),
            ..Step::default()
        };
        story.on_event(&Event::Step(step), 0);
    }
}

/// Begins a run and makes its steps.
fn make_run(story: &mut StreamStory, slot: Slot, hash: &str, steps: std::ops::Range<u64>) {
    story.begin(described(slot, hash, steps.start), 0);
    make_steps(story, slot, steps);
}

/// Returns the first and the last step of a run's loss.
fn ends(run: &RunStory) -> Option<(u64, u64)> {
    Some((run.loss.first()?.0, run.loss.last()?.0))
}

/// Returns the story of a stream in which A, B and C train one set of weights, and B goes on after C.
fn story_of_three_on_one_set_of_weights() -> StreamStory {
    let mut story = StreamStory::default();
    make_run(&mut story, Slot::A, "a", 0..50);
    make_run(&mut story, Slot::B, "b", 50..60);
    make_run(&mut story, Slot::B, "c", 60..70);
    make_run(&mut story, Slot::B, "b", 70..80);
    story
}

#[test]
fn a_configuration_goes_on_with_its_run_on_the_same_weights() {
    let story = story_of_three_on_one_set_of_weights();

    let b = story.slot(Slot::B);
    assert_eq!(story.runs().count(), 3);
    assert_eq!(ends(b), Some((50, 79)));
    assert_eq!(b.went_on_from, Some(Slot::A));
    assert_eq!(story.first_loss(b), Some(7.0), "the loss of A's weights");
}

#[test]
fn a_run_keeps_the_loss_from_before_another_run_trained_its_weights() {
    let story = story_of_three_on_one_set_of_weights();

    let b = story.slot(Slot::B);
    assert_eq!(b.own_loss().map(|(step, _)| step), Some(59));
    assert_eq!(b.curve.points.last().map(|(step, _)| *step), Some(59));
}

#[test]
fn a_run_from_step_0_is_always_a_new_one() {
    let mut story = story_of_three_on_one_set_of_weights();

    story.begin(described(Slot::B, "b", 0), 0);

    assert_eq!(ends(story.slot(Slot::B)), None);
    assert_eq!(story.runs().count(), 4);
}

#[test]
fn a_run_is_not_left_while_no_other_trains_its_weights() {
    let mut story = StreamStory::default();
    make_run(&mut story, Slot::A, "a", 0..50);

    // A made steps 50 to 59 without reporting them, and B makes none.
    story.begin(described(Slot::B, "b", 60), 0);
    make_run(&mut story, Slot::A, "a", 60..70);

    let a = story.slot(Slot::A);
    assert_eq!(ends(a), Some((0, 69)));
    assert!(!a.was_left());
}

/// Begins a run whose summary is known, and makes its steps.
fn make_summed_up_run(story: &mut StreamStory, slot: Slot, steps: std::ops::Range<u64>) {
    let description = RunDescription {
        ln_vocab: Some(6.9),
        ..described(slot, slot.into_str(), steps.start)
    };
    story.begin(description, 0);
    make_steps(story, slot, steps);
}

/// Returns the first loss in the summary of a slot's run, and its step.
fn first_loss_in_summary(story: &StreamStory, slot: Slot) -> (u64, Num) {
    let summary = story.slot(slot).summary().expect("the run made steps");
    (summary.first_step, summary.loss_first)
}

#[test]
fn a_summary_names_the_step_of_its_first_loss() {
    let mut story = StreamStory::default();

    make_summed_up_run(&mut story, Slot::A, 0..50);
    make_summed_up_run(&mut story, Slot::B, 50..60);

    assert_eq!(first_loss_in_summary(&story, Slot::A), (0, Num(7.0)));
    assert_eq!(first_loss_in_summary(&story, Slot::B), (50, Num(6.95)));
}

#[test]
fn a_summary_of_a_run_that_went_on_has_the_first_loss_of_the_whole_run() {
    let mut story = StreamStory::default();
    make_summed_up_run(&mut story, Slot::A, 0..50);
    make_summed_up_run(&mut story, Slot::B, 50..60);
    make_summed_up_run(&mut story, Slot::A, 60..70);

    // The engine's summary begins where A goes on.
    let finished = Finished {
        loss_first: Num(6.94),
        first_step: 60,
        ..Finished::default()
    };
    story.on_event(&Event::Finished(Box::new(finished)), 0);

    assert_eq!(first_loss_in_summary(&story, Slot::A), (0, Num(7.0)));
}

/// Returns the story of a stream in which A ran alone, and then A and B were compared in five pairs.
fn story_of_pairs(pair: &Pair) -> StreamStory {
    let mut story = StreamStory::default();
    make_run(&mut story, Slot::A, "a", 0..50);
    story.begin(side_of_pairs(Slot::A, "a"), 0);
    story.begin(side_of_pairs(Slot::B, "b"), 0);
    make_steps(&mut story, Slot::A, 0..5);
    make_steps(&mut story, Slot::B, 0..5);
    story.on_event(&Event::Pair(pair.clone()), 0);
    story
}

#[test]
fn pairs_do_not_change_a_run() {
    let story = story_of_pairs(&Pair::default());
    assert_eq!(ends(story.slot(Slot::A)), Some((0, 49)));
}

#[test]
fn a_configuration_that_never_ran_alone_is_shown_as_a_run_of_pairs() {
    let pair = Pair {
        n: 5,
        done: true,
        ..Pair::default()
    };

    let story = story_of_pairs(&pair);

    let b = story.slot(Slot::B);
    assert!(b.of_pairs);
    assert_eq!(b.pair.as_ref(), Some(&pair));
    assert_eq!(story.pairs(), [(0, pair)]);
}

#[test]
fn a_run_of_pairs_gives_way_to_the_first_run_alone() {
    let mut story = story_of_pairs(&Pair::default());

    story.begin(described(Slot::B, "b", 0), 0);

    assert!(!story.slot(Slot::B).of_pairs);
    assert_eq!(ends(story.slot(Slot::B)), None);
}

#[test]
fn figures_of_a_run_that_is_no_longer_shown_reach_no_other_run() {
    let mut story = StreamStory::default();
    make_run(&mut story, Slot::B, "b", 0..3);

    story.show_b(|_| false);
    make_steps(&mut story, Slot::B, 3..5);

    assert!(!story.slot(Slot::B).has_begun());
    assert_eq!(story.current(Slot::B).and_then(ends), Some((0, 4)));
}

#[test]
fn many_runs_are_bounded_and_the_longest_of_each_configuration_stays() {
    let mut story = StreamStory::default();

    for number in 0..300 {
        let steps = if number == 7 { 20 } else { 3 };
        make_run(&mut story, Slot::A, "a", 0..steps);
        story.begin(described(Slot::B, &number.to_string(), 0), 0);
    }

    assert!(story.runs().count() <= super::KEPT + 2);
    assert_eq!(story.longest_a().steps(), 20);
    assert_eq!(story.slot(Slot::A).steps(), 20, "A shows it beside B");
}

#[test]
fn our_own_description_comes_back_whole() {
    let started = Started {
        run: RunSpec::new("custom", &RunConfig::preset(Preset::Tiny)),
        config: "0".to_owned(),
        device: Device::default(),
        parameters: 1,
        tensors: 2,
        ln_vocab: 6.9,
        entropy: Some(3.0),
        forward_flops: 4.0,
        from_step: 5,
        peaks: None,
        paired: false,
        matrix_cores: true,
        request: 7,
    };

    let description = RunDescription::from(&started);

    assert_eq!(description.started(), Some(started));
}

fn run_of_another_program() -> RunDescription {
    RunDescription {
        name: "train.py".to_owned(),
        rank: Some(1),
        from_step: 300,
        ..RunDescription::default()
    }
}

/// Returns the story of a training of another program: two steps with phases, a gradient audit and a memory reading.
fn story_of_another_program() -> StreamStory {
    let mut story = StreamStory::default();
    story.on_event(
        &Event::Hello(Hello {
            date: "2026-11-27".to_owned(),
            ..Hello::default()
        }),
        0,
    );
    story.begin(run_of_another_program(), 0);
    for step in [300, 301] {
        let step = Step {
            step,
            loss: Some(Num(5.0)),
            ms: 10.0,
            phases: Some(PhaseTimes::from_parts([2.0, 5.0, 1.0], 10.0)),
            ..Step::default()
        };
        story.on_event(&Event::Step(step), 0);
    }
    let gradients = Gradients {
        step: 301,
        tensors: 4,
        with_grad: 3,
        params_pct: 75.0,
        ..Gradients::default()
    };
    story.on_event(&Event::Gradients(gradients), 0);
    let memory = Memory {
        peak_bytes: Some(1),
        ..Memory::default()
    };
    story.on_event(&Event::Memory(memory), 0);
    story
}

#[test]
fn a_run_of_another_program_shows_every_figure_that_it_reports() {
    let story = story_of_another_program();

    let run = story.slot(Slot::A);
    assert_eq!(run.description, run_of_another_program());
    assert_eq!(run.date, "2026-11-27");
    assert_eq!(ends(run), Some((300, 301)));
    assert_eq!(
        run.memory.as_ref().and_then(|memory| memory.peak_bytes),
        Some(1)
    );
    let phases = run.phases().expect("the steps have phases");
    assert_eq!(phases.time_of(PhaseName::Rest), Some(2.0));
    assert_eq!(phases.time_of(PhaseName::Communication), None);
    let names: Vec<String> = lints(run).into_iter().map(|lint| lint.name).collect();
    assert_eq!(names, ["gradient-coverage", "ledger-open"]);
}

#[test]
fn a_run_of_another_program_shows_no_figure_that_needs_a_configuration() {
    let story = story_of_another_program();

    let run = story.slot(Slot::A);
    assert_eq!(run.went_on_from, None);
    assert_eq!(run.first_loss(), None);
    assert_eq!(run.summary(), None);
    assert_eq!(run.description.spec(), None);
    assert_eq!(run.description.format(), None);
}

#[test]
fn a_second_rank_is_another_run() {
    let mut story = story_of_another_program();

    story.begin(
        RunDescription {
            rank: Some(2),
            from_step: 0,
            ..run_of_another_program()
        },
        0,
    );

    assert_eq!(story.runs().count(), 2);
}

fn rate(best: f64) -> Rate {
    Rate {
        best,
        n: 1,
        ..Rate::default()
    }
}

#[test]
fn a_share_refers_to_the_best_known_peak() {
    let device = Device::default();
    let mut run = RunStory::new(RunDescription {
        device: Some(device.clone()),
        ..RunDescription::default()
    });
    let throughput = Throughput {
        flops: Some(27e9),
        peak_flops: Some(99e9),
        ..Throughput::default()
    };
    run.on_event(&Event::Throughput(throughput), 0);
    assert_eq!(run.peak_flops(), Some((99e9, None)));
    for (measured, best) in [(195e9, 195e9), (120e9, 195e9)] {
        let peaks = Peaks {
            flops: rate(measured),
            ..Peaks::default()
        };
        let device = device.clone();
        run.on_event(&Event::Calibrated { device, peaks }, 0);
        assert_eq!(run.peak_flops(), Some((best, None)));
    }
}

/// Reports a throughput at a time of the reader's clock, and returns the samples a second that are shown then.
fn report_throughput(run: &mut RunStory, at_ms: u64, samples_per_s: f64) -> Option<f64> {
    let throughput = Throughput {
        samples_per_s,
        ..Throughput::default()
    };
    run.on_event(&Event::Throughput(throughput), at_ms);
    run.throughput.as_ref().map(|shown| shown.samples_per_s)
}

#[test]
fn a_speed_stays_for_two_seconds() {
    let mut run = RunStory::new(RunDescription::default());
    assert_eq!(report_throughput(&mut run, 1000, 184.0), Some(184.0));
    assert_eq!(report_throughput(&mut run, 1900, 166.0), Some(184.0));
    assert_eq!(report_throughput(&mut run, 2800, 177.0), Some(184.0));
    assert_eq!(report_throughput(&mut run, 3700, 170.0), Some(170.0));
}

#[test]
fn a_finished_run_shows_its_latest_speed() {
    let mut run = RunStory::new(RunDescription::default());
    for samples_per_s in [170.0, 171.0, 172.0] {
        report_throughput(&mut run, 4000, samples_per_s);
    }

    run.on_event(&Event::Finished(Box::default()), 4000);

    let shown = run.throughput.map(|throughput| throughput.samples_per_s);
    assert_eq!(shown, Some(172.0));
}

fn run_with_peaks() -> RunDescription {
    RunDescription {
        peaks: Some(Box::new(Peaks {
            flops: rate(200e9),
            bytes: rate(20e9),
            ..Peaks::default()
        })),
        ..RunDescription::default()
    }
}

#[test]
fn a_step_that_takes_long_is_announced_once_the_peaks_are_known() {
    let mut config = RunConfig::preset(Preset::Tiny);
    config.model.hidden = 32;
    config.model.ffn = 128;
    config.model.vocab = 256;
    config.train.batch = 65_536;
    config.train.context = 8;

    let sentence = run_with_peaks().long_step(&config).expect("it takes long");

    assert_eq!(
        sentence,
        "a step takes about 16 s on this device: 0.23 TFLOP"
    );
    assert_eq!(RunDescription::default().long_step(&config), None);
}

#[test]
fn a_quick_step_is_not_announced() {
    for quick in [Preset::Tiny, Preset::Small] {
        let config = RunConfig::preset(quick);
        assert_eq!(run_with_peaks().long_step(&config), None);
    }
}

#[test]
fn figures_of_pairs_have_the_number_of_pairs_that_they_include() {
    let mut pair = Pair {
        n: 15,
        ratio: 1.009,
        low: Some(0.99),
        high: Some(1.03),
        ..Pair::default()
    };
    pair.a_ms.n = 10;
    assert_eq!(
        pair.figures(),
        "1.009x [0.990, 1.030] of the first 10 pairs"
    );
    pair.a_ms.n = 15;
    assert_eq!(pair.figures(), "1.009x [0.990, 1.030]");
}

#[test]
fn time_that_no_phase_explains_is_unaccounted() {
    assert_eq!(PhaseName::Rest.into_str(), "unaccounted");
}
