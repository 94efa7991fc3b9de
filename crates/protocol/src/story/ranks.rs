//! The phases of processes that train together, side by side.

use super::phases::{PhaseName, Phases};
use crate::RankReading;
use crate::stats::robust::median;

/// How many times the median of the other processes a phase takes, at least, in a process that is called a straggler, and which share of
/// the step it exceeds them by.
const STRAGGLES: f64 = 1.2;
const SHARE_OF_STEP: f64 = 0.02;

/// One phase in all processes. Times are in milliseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct RankPhase {
    pub name: PhaseName,
    pub median: f64,
    pub worst: f64,
    /// The process with the longest time.
    pub rank: u32,
    /// The others wait for that process.
    pub straggles: bool,
}

/// Returns the phases of the processes of one training, each with its median and its worst time. The exchange of gradients lies within
/// backward. A process that is early waits there, so that backward is as long in every process: it names no straggler, and neither does
/// communication.
pub fn rank_phases(ranks: &[RankReading]) -> Vec<RankPhase> {
    let told: Vec<(u32, Phases)> = ranks
        .iter()
        .filter_map(|rank| Some((rank.rank, Phases::from(rank.phases.as_ref()?))))
        .collect();
    let Some((_, first)) = told.first() else {
        return Vec::new();
    };
    let of_one = |(name, _): (PhaseName, f64)| {
        let times = told
            .iter()
            .filter_map(|(rank, phases)| Some((*rank, phases.time_of(name)?)));
        let times: Vec<(u32, f64)> = times.collect();
        let (rank, worst) = *times.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
        let others: Vec<f64> = times
            .iter()
            .filter(|(other, _)| *other != rank)
            .map(|(_, ms)| *ms)
            .collect();
        let all: Vec<f64> = times.iter().map(|(_, ms)| *ms).collect();
        let waited_for = !matches!(name, PhaseName::Backward | PhaseName::Communication);
        let usual = median(&others);
        let straggles = !others.is_empty()
            && waited_for
            && worst > STRAGGLES * usual
            && worst - usual > SHARE_OF_STEP * first.step;
        Some(RankPhase {
            name,
            median: median(&all),
            worst,
            rank,
            straggles,
        })
    };
    first.timed().filter_map(of_one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PhaseTimes;

    fn readings(forward: &[f64], backward: &[f64]) -> Vec<RankReading> {
        let pairs = forward.iter().zip(backward).enumerate();
        let readings = pairs.map(|(rank, (forward, backward))| RankReading {
            rank: rank as u32,
            phases: Some(PhaseTimes::from_parts([*forward, *backward, 1.0], 100.0)),
            ..RankReading::default()
        });
        readings.collect()
    }

    fn stragglers(ranks: &[RankReading]) -> Vec<(PhaseName, u32)> {
        let phases = rank_phases(ranks)
            .into_iter()
            .filter(|phase| phase.straggles);
        phases.map(|phase| (phase.name, phase.rank)).collect()
    }

    #[test]
    fn the_longest_forward_straggles_and_a_long_backward_does_not() {
        // The others wait for process 2 within their backward.
        let ranks = readings(&[30.0, 31.0, 50.0, 30.0], &[60.0, 59.0, 40.0, 60.0]);
        assert_eq!(stragglers(&ranks), [(PhaseName::Forward, 2)]);
        let forward = &rank_phases(&ranks)[0];
        assert_eq!(
            (forward.median, forward.worst, forward.rank),
            (30.5, 50.0, 2)
        );
        let alike = readings(&[30.0; 4], &[60.0, 60.0, 90.0, 60.0]);
        assert_eq!(stragglers(&alike), []);
        assert_eq!(stragglers(&readings(&[30.0], &[60.0])), [], "one alone");
    }
}
