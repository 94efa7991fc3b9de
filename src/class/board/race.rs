//! Ranks the results of a race.

use std::cmp::Reverse;

use serde::{Deserialize, Serialize};

use crate::class::record::{RaceResult, mystery_of};
use crate::class::state::RoomState;

/// A race: the same task for all participants. Kernels are ranked by their ratio within a kind of device, mysteries by points.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Race {
    pub task: String,
    /// Seconds until it ends by itself; `None` if the instructor ends it.
    #[serde(default)]
    pub left_s: Option<u64>,
    /// All results, the best first.
    pub ranks: Vec<RaceRank>,
}

/// The result of one participant in a race.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RaceRank {
    /// The place, from 1; equal results share a place. `None` for a mystery that was given up.
    pub place: Option<usize>,
    pub name: String,
    pub device: String,
    #[serde(flatten)]
    pub result: RaceResult,
}

/// Returns all results of a task, the best first.
pub fn race(room: &RoomState, task: &str) -> Race {
    let mut ranks = Vec::new();
    for person in room.people.values() {
        if let Some(result) = person.record.races.get(task) {
            ranks.push(RaceRank {
                place: None,
                name: room.name_of(&person.record).to_owned(),
                device: person.record.device.clone(),
                result: *result,
            });
        }
    }
    match mystery_of(task) {
        Some(_) => rank_mysteries(&mut ranks),
        None => rank_kernels(&mut ranks),
    }
    Race {
        task: task.to_owned(),
        left_s: None,
        ranks,
    }
}

/// Ranks by points, then time, then number of configurations tried. The ratio does not count, because every solved mystery is about
/// as fast as the known-good configuration.
fn rank_mysteries(ranks: &mut [RaceRank]) {
    let effort = |rank: &RaceRank| {
        let mystery = rank.result.mystery.unwrap_or_default();
        (
            Reverse(mystery.points),
            mystery.seconds,
            mystery.configurations,
        )
    };
    ranks.sort_by_cached_key(|rank| (effort(rank), rank.name.to_lowercase()));
    let mut place = 0;
    let mut best = None;
    for (at, rank) in ranks.iter_mut().enumerate() {
        if best != Some(effort(rank)) {
            best = Some(effort(rank));
            place = at + 1;
        }
        let mystery = rank.result.mystery;
        rank.place = mystery
            .is_some_and(|mystery| mystery.points > 0)
            .then_some(place);
    }
}

/// Ranks by ratio within a kind of device. A result shares a place if its interval overlaps that of the place's first result.
fn rank_kernels(ranks: &mut [RaceRank]) {
    let interval = |rank: &RaceRank| rank.result.ratio.unwrap_or_default();
    ranks.sort_by(|a, b| {
        let faster = interval(b)[0].total_cmp(&interval(a)[0]);
        a.device.cmp(&b.device).then(faster)
    });
    for same_device in ranks.chunk_by_mut(|a, b| a.device == b.device) {
        let mut place = 0;
        // The lower end of the interval of the place's first result.
        let mut low = 0.0;
        for (at, rank) in same_device.iter_mut().enumerate() {
            let [_, from, to] = interval(rank);
            if place == 0 || to < low {
                place = at + 1;
                low = from;
            }
            rank.place = Some(place);
        }
    }
}
