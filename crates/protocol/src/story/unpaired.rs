//! Two runs that were not made in turns, and what their comparison is worth.

use super::phases::{PhaseName, Phases};
use super::run::RunStory;
use crate::stats::robust::median;
use crate::units::percent;

/// Fewest steps of each run.
const LEAST: usize = 32;
/// Parts of A's latest steps, whose medians show how far A alone wanders.
const PARTS: usize = 4;

/// B beside A, from steps that were made at different times.
#[derive(Clone, Debug, PartialEq)]
pub struct Unpaired {
    /// Median step time of B over that of A.
    pub ratio: f64,
    /// Samples a second of A and B, where both are told.
    pub rates: Option<[f64; 2]>,
    /// Both ran on one device, as far as the runs tell theirs.
    pub on_one_device: bool,
    /// How far the medians of A's parts lie apart, as a share of the smallest: a difference below this is no difference.
    pub wandered: f64,
    /// Phases of A and B in milliseconds, those that both have.
    pub phases: Vec<(PhaseName, [f64; 2])>,
}

/// Compares the latest steps of two runs; `None` where one has too few.
pub fn unpaired(a: &RunStory, b: &RunStory) -> Option<Unpaired> {
    let [of_a, of_b] =
        [a, b].map(|run| run.step_ms.recent().map(|(_, ms)| ms).collect::<Vec<f64>>());
    if of_a.len() < LEAST || of_b.len() < LEAST {
        return None;
    }
    let parts = of_a.chunks_exact(of_a.len() / PARTS).map(median);
    let (low, high) = parts.fold((f64::INFINITY, 0.0_f64), |(low, high), part| {
        (low.min(part), high.max(part))
    });
    let phases = a.phases().zip(b.phases()).map(|(of_a, of_b)| {
        let of_b = Phases::from(&of_b);
        let of_a = Phases::from(&of_a).parts.into_iter();
        let both = of_a.filter_map(|(name, ms)| Some((name, [ms, of_b.time_of(name)?])));
        both.collect()
    });
    Some(Unpaired {
        ratio: median(&of_b) / median(&of_a),
        rates: a
            .throughput
            .as_ref()
            .zip(b.throughput.as_ref())
            .map(|(of_a, of_b)| [of_a.samples_per_s, of_b.samples_per_s]),
        on_one_device: a.description.device == b.description.device,
        wandered: high / low - 1.0,
        phases: phases.unwrap_or_default(),
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

    fn run(ms: impl Fn(u64) -> f64) -> RunStory {
        let mut run = RunStory::default();
        for step in 0..64 {
            let step = Step {
                step,
                ms: ms(step),
                ..Step::default()
            };
            run.note(&Event::Step(step), 0);
        }
        run
    }

    #[test]
    fn a_difference_is_worth_no_more_than_what_a_wanders_by() {
        let steady = run(|step| 10.0 + 0.01 * (step % 4) as f64);
        let drifting = run(|step| if step < 16 { 12.0 } else { 10.0 });
        let b = run(|_| 9.0);
        let said = unpaired(&steady, &b).expect("enough steps");
        assert!(1.0 - said.ratio > said.wandered, "{said:?}");
        let said = unpaired(&drifting, &b).expect("enough steps");
        assert!(1.0 - said.ratio < said.wandered, "{said:?}");
        assert_eq!(unpaired(&RunStory::default(), &b), None);
    }
}
