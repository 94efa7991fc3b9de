//! Compares two runs that were not made in turns, and estimates how far the comparison can be trusted.

use super::phases::PhaseName;
use super::run::RunStory;
use crate::stats::robust::median;
use crate::units::percent;

/// The fewest steps of each run that are compared.
const LEAST: usize = 32;
/// The number of parts of A's latest steps whose medians show how much A alone changes.
const PARTS: usize = 4;

/// A comparison of B with A, from steps that were made at different times.
#[derive(Clone, Debug, PartialEq)]
pub struct Unpaired {
    /// The median step time of B divided by that of A.
    pub ratio: f64,
    /// Samples a second of A and B, where both are told.
    pub rates: Option<[f64; 2]>,
    /// Both ran on one device, as far as the runs tell theirs.
    pub on_one_device: bool,
    /// The distance between the smallest and the largest median of A's parts, as a share of the smallest. A smaller difference of B and A is
    /// no difference.
    pub wandered: f64,
    /// The phases that both runs have, with the milliseconds of A and of B.
    pub phases: Vec<(PhaseName, [f64; 2])>,
}

/// Compares the latest steps of two runs; `None` if one of them has too few.
pub fn unpaired(a: &RunStory, b: &RunStory) -> Option<Unpaired> {
    let [times_a, times_b] =
        [a, b].map(|run| run.step_ms.recent().map(|(_, ms)| ms).collect::<Vec<f64>>());
    if times_a.len() < LEAST || times_b.len() < LEAST {
        return None;
    }
    let (mut low, mut high) = (f64::INFINITY, 0.0_f64);
    for part in times_a.chunks_exact(times_a.len() / PARTS) {
        low = low.min(median(part));
        high = high.max(median(part));
    }
    let rates = a.throughput.as_ref().zip(b.throughput.as_ref());
    Some(Unpaired {
        ratio: median(&times_b) / median(&times_a),
        rates: rates.map(|(of_a, of_b)| [of_a.samples_per_s, of_b.samples_per_s]),
        on_one_device: a.description.device == b.description.device,
        wandered: high / low - 1.0,
        phases: match (a.phases(), b.phases()) {
            (Some(a), Some(b)) => a
                .parts()
                .filter_map(|(name, ms)| Some((name, [ms, b.time_of(name)?])))
                .collect(),
            _ => Vec::new(),
        },
    })
}

impl Unpaired {
    /// Returns what the comparison says, and what it is worth, in plain sentences.
    pub fn sentences(&self) -> [String; 2] {
        let than = if self.ratio < 1.0 { "less" } else { "more" };
        let by = (self.ratio - 1.0).abs();
        let [change, wandered] = [by, self.wandered].map(|share| percent(100.0 * share));
        let mut worth = format!("Unpaired: the quarters of A alone lie up to {wandered} % apart; ");
        worth += if by > self.wandered {
            "this is more."
        } else {
            "so this says nothing."
        };
        if !self.on_one_device {
            worth += " A and B ran on different devices.";
        }
        worth += " The load of the machine, its clocks and the state of the training may have changed as well: only runs in turns would tell.";
        let change = format!("A step of B takes {change} % {than} time than one of A.");
        [change, worth]
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
    fn a_steady_run_wanders_less_than_a_real_difference() {
        let steady = run(|step| 10.0 + 0.01 * (step % 4) as f64);
        let compared = unpaired(&steady, &run(|_| 9.0)).expect("enough steps");
        assert!(1.0 - compared.ratio > compared.wandered, "{compared:?}");
    }

    #[test]
    fn a_drifting_run_wanders_more_than_the_difference() {
        let drifting = run(|step| if step < 16 { 12.0 } else { 10.0 });
        let compared = unpaired(&drifting, &run(|_| 9.0)).expect("enough steps");
        assert!(1.0 - compared.ratio < compared.wandered, "{compared:?}");
    }

    #[test]
    fn few_steps_are_not_compared() {
        assert_eq!(unpaired(&RunStory::default(), &run(|_| 9.0)), None);
    }
}
