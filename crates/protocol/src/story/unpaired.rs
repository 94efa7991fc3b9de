//! Compares two runs whose steps were not made in turns. The machine may have changed between them, so the comparison also measures how much the
//! steps of one run change by themselves.

use super::phases::PhaseName;
use super::run::RunStory;
use crate::stats::robust::median;
use crate::units::percent;

/// The fewest steps of each run that are compared.
const FEWEST_STEPS: usize = 32;
/// The number of parts of A's latest steps whose medians are compared with each other.
const PARTS: usize = 4;

/// A comparison of B with A, from steps that were made at different times.
#[derive(Clone, Debug, PartialEq)]
pub struct Unpaired {
    /// The median step time of B divided by that of A.
    pub ratio: f64,
    /// The samples a second of A and of B; `None` if one of them does not report its rate.
    pub rates: Option<[f64; 2]>,
    /// The phases that both runs have, with the milliseconds of A and of B.
    pub phases: Vec<(PhaseName, [f64; 2])>,
    /// True if both runs report one device, or if neither reports one.
    on_one_device: bool,
    /// The largest median of A's parts divided by the smallest, minus 1. A difference between A and B that is not larger may be chance.
    change_of_a: f64,
}

/// Compares the latest steps of two runs; `None` if one of them has too few.
pub fn compare_unpaired(a: &RunStory, b: &RunStory) -> Option<Unpaired> {
    let [times_a, times_b] =
        [a, b].map(|run| run.step_ms.recent().map(|(_, ms)| ms).collect::<Vec<f64>>());
    if times_a.len() < FEWEST_STEPS || times_b.len() < FEWEST_STEPS {
        return None;
    }
    let medians = times_a.chunks_exact(times_a.len() / PARTS).map(median);
    let lowest = medians.clone().reduce(f64::min)?;
    let highest = medians.reduce(f64::max)?;
    let throughputs = a.throughput.as_ref().zip(b.throughput.as_ref());
    Some(Unpaired {
        ratio: median(&times_b) / median(&times_a),
        rates: throughputs.map(|(a, b)| [a.samples_per_s, b.samples_per_s]),
        phases: match (a.phases(), b.phases()) {
            (Some(phases_a), Some(phases_b)) => phases_a
                .parts()
                .filter_map(|(name, ms)| Some((name, [ms, phases_b.time_of(name)?])))
                .collect(),
            _ => Vec::new(),
        },
        on_one_device: a.description.device == b.description.device,
        change_of_a: highest / lowest - 1.0,
    })
}

impl Unpaired {
    /// Returns a sentence with the difference between B and A, and a text about how far it can be trusted.
    pub fn sentences(&self) -> [String; 2] {
        let than = if self.ratio < 1.0 { "less" } else { "more" };
        let difference = (self.ratio - 1.0).abs();
        let [change, change_of_a] =
            [difference, self.change_of_a].map(|share| percent(100.0 * share));
        let judgement = if difference > self.change_of_a {
            "B differs from A by more."
        } else {
            "B differs from A by no more, so this may be chance."
        };
        let devices = if self.on_one_device {
            ""
        } else {
            " A and B ran on different devices."
        };
        [
            format!("A step of B takes {change} % {than} time than one of A."),
            format!(
                "A and B did not take turns. The medians of four quarters of A alone differ by up to {change_of_a} %; \
                 {judgement}{devices} The load of the machine, its clocks and the state of the training may have \
                 changed as well; only steps in turns would show that."
            ),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Event, Step};

    /// Returns a run of 64 steps that take `ms(step)` milliseconds.
    fn run(ms: impl Fn(u64) -> f64) -> RunStory {
        let mut run = RunStory::default();
        for step in 0..64 {
            let step = Step {
                step,
                ms: ms(step),
                ..Step::default()
            };
            run.on_event(&Event::Step(step), 0);
        }
        run
    }

    #[test]
    fn a_difference_is_real_if_a_changes_less_by_itself() {
        let steady = run(|step| 10.0 + 0.01 * (step % 4) as f64);

        let compared = compare_unpaired(&steady, &run(|_| 9.0)).expect("enough steps");

        let [change, trust] = compared.sentences();
        assert_eq!(change, "A step of B takes 10.1 % less time than one of A.");
        assert!(
            trust.contains("up to 0.0 %; B differs from A by more."),
            "{trust}"
        );
    }

    #[test]
    fn a_difference_may_be_chance_if_a_changes_as_much_by_itself() {
        let drifting = run(|step| if step < 16 { 12.0 } else { 10.0 });

        let compared = compare_unpaired(&drifting, &run(|_| 9.0)).expect("enough steps");

        let [_, trust] = compared.sentences();
        assert!(
            trust.contains("up to 20.0 %; B differs from A by no more"),
            "{trust}"
        );
    }

    #[test]
    fn few_steps_are_not_compared() {
        assert_eq!(compare_unpaired(&RunStory::default(), &run(|_| 9.0)), None);
    }
}
