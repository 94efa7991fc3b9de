//! The rules by which a start goes on from a run, and a run of another program.

use super::{PhaseName, Phases, RunDescription, RunStory, StreamStory};
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

fn side(slot: Slot, hash: &str) -> RunDescription {
    let paired = true;
    RunDescription {
        paired,
        ..described(slot, hash, 0)
    }
}

fn steps(story: &mut StreamStory, slot: Slot, steps: std::ops::Range<u64>) {
    for step in steps {
        let loss = Some(Num(7.0 - step as f64 / 1000.0));
        let step = Step {
            slot,
            step,
            loss,
            ..Step::default()
        };
        story.hear(&Event::Step(step), 0);
    }
}

fn ends(run: &RunStory) -> Option<(u64, u64)> {
    Some((run.loss.first()?.0, run.loss.last()?.0))
}

#[test]
fn a_start_goes_on_from_the_run_of_its_configuration_on_the_same_weights() {
    let mut story = StreamStory::default();
    story.begin(described(Slot::A, "a", 0), 0);
    steps(&mut story, Slot::A, 0..50);
    story.begin(described(Slot::B, "b", 50), 0);
    steps(&mut story, Slot::B, 50..60);
    story.begin(described(Slot::B, "c", 60), 0);
    steps(&mut story, Slot::B, 60..70);
    story.begin(described(Slot::B, "b", 70), 0);
    steps(&mut story, Slot::B, 70..80);
    let b = story.slot(Slot::B);
    assert_eq!((ends(b), b.went_on_from), (Some((50, 79)), Some(Slot::A)));
    // C has trained its weights in between.
    assert_eq!(b.own_loss().map(|it| it.0), Some(59));
    assert_eq!(b.curve.points.last().map(|it| it.0), Some(59));
    assert_eq!(story.runs().count(), 3);
    assert_eq!(story.first_loss(b), Some(7.0), "that of A's weights");
    // Begun again: other weights, and another run.
    story.begin(described(Slot::B, "b", 0), 0);
    assert_eq!(ends(story.slot(Slot::B)), None);
    assert_eq!(story.runs().count(), 4);
}

#[test]
fn a_run_that_only_stopped_to_report_is_not_left() {
    let mut story = StreamStory::default();
    story.begin(described(Slot::A, "a", 0), 0);
    steps(&mut story, Slot::A, 0..50);
    // Steps 50 to 59 were made and not told; B makes none before A goes on.
    story.begin(described(Slot::B, "b", 60), 0);
    story.begin(described(Slot::A, "a", 60), 0);
    steps(&mut story, Slot::A, 60..70);
    let a = story.slot(Slot::A);
    assert_eq!((ends(a), a.was_left()), (Some((0, 69)), false));
}

#[test]
fn a_summary_names_the_step_of_its_first_loss() {
    let mut story = StreamStory::default();
    let begin = |story: &mut StreamStory, slot, hash, from_step| {
        let ln_vocab = Some(6.9);
        let run = described(slot, hash, from_step);
        story.begin(RunDescription { ln_vocab, ..run }, 0);
    };
    begin(&mut story, Slot::A, "a", 0);
    steps(&mut story, Slot::A, 0..50);
    begin(&mut story, Slot::B, "b", 50);
    steps(&mut story, Slot::B, 50..60);
    let first = |story: &StreamStory, slot| {
        let summary = story.slot(slot).summary().expect("it made steps");
        (summary.first_step, summary.loss_first)
    };
    assert_eq!(first(&story, Slot::A), (0, Num(7.0)));
    assert_eq!(first(&story, Slot::B), (50, Num(6.95)));
    // The engine's summary begins where A goes on.
    begin(&mut story, Slot::A, "a", 60);
    steps(&mut story, Slot::A, 60..70);
    let finished = Finished {
        loss_first: Num(6.94),
        first_step: 60,
        ..Finished::default()
    };
    story.hear(&Event::Finished(Box::new(finished)), 0);
    assert_eq!(first(&story, Slot::A), (0, Num(7.0)));
}

#[test]
fn pairs_leave_a_run_as_it_is_and_are_a_run_where_there_is_none() {
    let mut story = StreamStory::default();
    story.begin(described(Slot::A, "a", 0), 0);
    steps(&mut story, Slot::A, 0..50);
    story.begin(side(Slot::A, "a"), 0);
    story.begin(side(Slot::B, "b"), 0);
    steps(&mut story, Slot::A, 0..5);
    steps(&mut story, Slot::B, 0..5);
    let pair = Pair {
        n: 5,
        done: true,
        ..Pair::default()
    };
    story.hear(&Event::Pair(pair.clone()), 0);
    assert_eq!(ends(story.slot(Slot::A)), Some((0, 49)));
    let b = story.slot(Slot::B);
    assert!(b.of_pairs && b.pair.as_ref() == Some(&pair));
    assert_eq!(story.pairs(), [(0, pair)]);
    // Alone, B has a curve of its own.
    story.begin(described(Slot::B, "b", 0), 0);
    assert!(!story.slot(Slot::B).of_pairs);
    assert_eq!(ends(story.slot(Slot::B)), None);
}

#[test]
fn figures_of_a_run_that_is_not_shown_any_more_reach_no_other() {
    let mut story = StreamStory::default();
    story.begin(described(Slot::B, "b", 0), 0);
    steps(&mut story, Slot::B, 0..3);
    story.show_b(|_| false);
    steps(&mut story, Slot::B, 3..5);
    assert!(!story.slot(Slot::B).has_begun());
    assert_eq!(story.told(Slot::B).and_then(ends), Some((0, 4)));
}

#[test]
fn many_runs_are_bounded_and_the_longest_of_each_configuration_stays() {
    let mut story = StreamStory::default();
    for number in 0..300 {
        story.begin(described(Slot::A, "a", 0), 0);
        steps(&mut story, Slot::A, 0..if number == 7 { 20 } else { 3 });
        story.begin(described(Slot::B, &number.to_string(), 0), 0);
    }
    assert!(story.runs().count() <= super::KEPT + 2);
    assert_eq!(story.longest_a().steps(), 20);
    assert_eq!(story.slot(Slot::A).steps(), 20, "beside B");
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
        roof: None,
        paired: false,
        matrix_cores: true,
        request: 7,
    };
    let description = RunDescription::from(&started);
    assert_eq!(description.started(), Some(started));
}

/// Six events, no configuration: what is known is there, what follows from a configuration is not.
#[test]
fn a_run_of_another_program_is_shown_as_far_as_it_tells() {
    let mut story = StreamStory::default();
    let hello = Hello {
        date: "2026-11-27".to_owned(),
        ..Hello::default()
    };
    story.hear(&Event::Hello(hello), 0);
    let run = RunDescription {
        name: "train.py".to_owned(),
        rank: Some(1),
        from_step: 300,
        ..RunDescription::default()
    };
    story.begin(run.clone(), 0);
    let step = |step| {
        Event::Step(Step {
            step,
            loss: Some(Num(5.0)),
            ms: 10.0,
            phases: Some(PhaseTimes::from_parts([2.0, 5.0, 1.0], 10.0)),
            ..Step::default()
        })
    };
    let gradients = Gradients {
        step: 301,
        tensors: 4,
        with_grad: 3,
        params_pct: 75.0,
        ..Gradients::default()
    };
    let memory = Memory {
        peak_bytes: Some(1),
        ..Memory::default()
    };
    for event in [
        step(300),
        step(301),
        Event::Gradients(gradients),
        Event::Memory(memory),
    ] {
        story.hear(&event, 0);
    }
    let shown = story.slot(Slot::A);
    assert_eq!((&shown.description, &*shown.date), (&run, "2026-11-27"));
    assert_eq!((ends(shown), shown.went_on_from), (Some((300, 301)), None));
    assert_eq!((shown.first_loss(), shown.summary()), (None, None));
    assert_eq!((run.spec(), run.format()), (None, None));
    assert_eq!(shown.memory.as_ref().map(|it| it.step), Some(301));
    let phases = shown.phases().expect("the steps have phases");
    let phases = Phases::from(&phases);
    assert_eq!(phases.time_of(PhaseName::Rest), Some(2.0));
    assert_eq!(phases.time_of(PhaseName::Communication), None);
    let held: Vec<String> = lints(shown).into_iter().map(|it| it.name).collect();
    assert_eq!(held, ["gradient-coverage", "ledger-open"]);
    // A second rank is another run.
    let second = RunDescription {
        rank: Some(2),
        from_step: 0,
        ..run
    };
    story.begin(second, 0);
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
fn a_share_is_of_the_best_peak_that_is_known() {
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
    run.note(&Event::Throughput(throughput), 0);
    assert_eq!(run.peak_flops(), Some((99e9, None)));
    for (measured, best) in [(195e9, 195e9), (120e9, 195e9)] {
        let roof = Roof {
            flops: rate(measured),
            ..Roof::default()
        };
        let device = device.clone();
        run.note(&Event::Calibrated { device, roof }, 0);
        assert_eq!(run.peak_flops(), Some((best, None)));
    }
}

#[test]
fn a_speed_stays_until_it_can_be_read_and_the_last_one_counts() {
    let mut run = RunStory::new(RunDescription::default());
    let mut shown = Vec::new();
    for (at, samples_per_s) in [184.0, 166.0, 177.0, 170.0].into_iter().enumerate() {
        let throughput = Throughput {
            samples_per_s,
            ..Throughput::default()
        };
        run.note(&Event::Throughput(throughput), 1_000 + 900 * at as u64);
        shown.extend(run.throughput.as_ref().map(|it| it.samples_per_s));
    }
    assert_eq!(shown, [184.0, 184.0, 184.0, 170.0]);
    for samples_per_s in [171.0, 172.0] {
        let throughput = Throughput {
            samples_per_s,
            ..Throughput::default()
        };
        run.note(&Event::Throughput(throughput), 4_000);
    }
    run.note(&Event::Finished(Box::default()), 4_000);
    assert_eq!(run.throughput.map(|it| it.samples_per_s), Some(172.0));
}

#[test]
fn a_step_that_takes_long_is_told_before_it_is_made() {
    let mut run = RunDescription::default();
    let mut config = RunConfig::preset(Preset::Tiny);
    (config.model.hidden, config.model.ffn, config.model.vocab) = (32, 128, 256);
    (config.train.batch, config.train.context) = (65_536, 8);
    assert_eq!(run.long_step(&config), None, "nothing was measured");
    run.roof = Some(Box::new(Roof {
        flops: rate(200e9),
        bytes: rate(20e9),
        ..Roof::default()
    }));
    let said = run.long_step(&config).expect("it takes long");
    assert_eq!(said, "a step takes about 16 s on this device: 0.23 TFLOP");
    for quick in [Preset::Tiny, Preset::Small] {
        assert_eq!(run.long_step(&RunConfig::preset(quick)), None);
    }
}

#[test]
fn figures_of_pairs_say_of_how_many_they_are() {
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
