//! The phases of processes that train together, side by side.

use super::phases::PhaseName;
use crate::stats::robust::median;
use crate::{PhaseTimes, RankReading};

/// The shortest phase of a straggler, in multiples of the median of the other processes.
const STRAGGLER_RATIO: f64 = 1.2;
/// The smallest difference between a straggler's phase and the median of the other processes, as a share of the step.
const SHARE_OF_STEP: f64 = 0.02;

/// One phase in all processes, with its median and its longest time in milliseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct RankPhase {
    pub name: PhaseName,
    pub median: f64,
    pub worst: f64,
    /// The process with the longest time.
    pub rank: u32,
    /// True if the other processes wait for process `rank`.
    pub straggles: bool,
}

/// Returns the phases of the processes of one training, each with its median and its worst time. Neither backward nor communication names
/// a straggler: gradients are exchanged during backward, and a process that is early waits there, so backward ends at one time for all.
pub fn rank_phases(ranks: &[RankReading]) -> Vec<RankPhase> {
    let reported: Vec<(u32, PhaseTimes)> = ranks
        .iter()
        .filter_map(|reading| Some((reading.rank, reading.phases?)))
        .collect();
    let Some((_, first)) = reported.first() else {
        return Vec::new();
    };
    first
        .timed_parts()
        .filter_map(|(name, _)| rank_phase(name, &reported, first.step))
        .collect()
}

/// Returns one phase in all processes that report it, by their rank; `None` if none does. `step_ms` is the length of a step.
fn rank_phase(name: PhaseName, reported: &[(u32, PhaseTimes)], step_ms: f64) -> Option<RankPhase> {
    let times: Vec<(u32, f64)> = reported
        .iter()
        .filter_map(|(rank, phases)| Some((*rank, phases.time_of(name)?)))
        .collect();
    let (rank, worst) = *times.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let all: Vec<f64> = times.iter().map(|(_, ms)| *ms).collect();
    let others: Vec<f64> = times
        .iter()
        .filter(|(other, _)| *other != rank)
        .map(|(_, ms)| *ms)
        .collect();
    let usual = median(&others);
    let can_straggle = !matches!(name, PhaseName::Backward | PhaseName::Communication);
    Some(RankPhase {
        name,
        median: median(&all),
        worst,
        rank,
        straggles: can_straggle
            && !others.is_empty()
            && worst > STRAGGLER_RATIO * usual
            && worst - usual > SHARE_OF_STEP * step_ms,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the readings of processes with these forward and backward times, in steps of 100 ms.
    fn readings(times: &[(f64, f64)]) -> Vec<RankReading> {
        (0..)
            .zip(times)
            .map(|(rank, (forward, backward))| RankReading {
                rank,
                phases: Some(PhaseTimes::from_parts([*forward, *backward, 1.0], 100.0)),
                ..RankReading::default()
            })
            .collect()
    }

    fn stragglers(phases: &[RankPhase]) -> Vec<(PhaseName, u32)> {
        phases
            .iter()
            .filter(|phase| phase.straggles)
            .map(|phase| (phase.name, phase.rank))
            .collect()
    }

    #[test]
    fn the_longest_forward_straggles() {
        // The others wait for process 2 within their backward.
        let ranks = readings(&[(30.0, 60.0), (31.0, 59.0), (50.0, 40.0), (30.0, 60.0)]);

        let phases = rank_phases(&ranks);

        assert_eq!(stragglers(&phases), [(PhaseName::Forward, 2)]);
        assert_eq!(phases[0].median, 30.5);
        assert_eq!((phases[0].worst, phases[0].rank), (50.0, 2));
    }

    #[test]
    fn a_long_backward_does_not_straggle() {
        let ranks = readings(&[(30.0, 60.0), (30.0, 60.0), (30.0, 90.0), (30.0, 60.0)]);
        assert_eq!(stragglers(&rank_phases(&ranks)), []);
    }

    #[test]
    fn a_process_alone_does_not_straggle() {
        let ranks = readings(&[(30.0, 60.0)]);
        assert_eq!(stragglers(&rank_phases(&ranks)), []);
    }
}
