//! A race on the board: the results of one task, ranked.

use std::cmp::Reverse;

use serde::{Deserialize, Serialize};

use crate::class::record::{RaceResult, mystery_of};
use crate::class::state::RoomState;

/// A race at one kernel exercise or one mystery. Kernels are ranked by their ratio among the participants with equal devices, mysteries
/// by their points.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Race {
    pub task: String,
    /// The seconds until the race ends by itself; `None` if the instructor has to end it.
    #[serde(default, rename = "left_s")]
    pub remaining_s: Option<u64>,
    /// All results, the best first.
    pub ranks: Vec<RaceRank>,
}

/// The result of one participant in a race.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RaceRank {
    /// The place, from 1. Equal results share a place; `None` for a mystery that was given up.
    pub place: Option<usize>,
    pub name: String,
    pub device: String,
    #[serde(flatten)]
    pub result: RaceResult,
}

/// Returns the race at a task with the results of everybody in the room.
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
        remaining_s: None,
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
    for (index, rank) in ranks.iter_mut().enumerate() {
        if best != Some(effort(rank)) {
            best = Some(effort(rank));
            place = index + 1;
        }
        let mystery = rank.result.mystery;
        let is_solved = mystery.is_some_and(|mystery| mystery.points > 0);
        rank.place = is_solved.then_some(place);
    }
}

/// Ranks by ratio, for each device separately. A result shares a place with the first result of that place if their intervals overlap.
fn rank_kernels(ranks: &mut [RaceRank]) {
    let interval = |rank: &RaceRank| rank.result.ratio.unwrap_or_default();
    ranks.sort_by(|a, b| {
        let faster = interval(b)[0].total_cmp(&interval(a)[0]);
        a.device.cmp(&b.device).then(faster)
    });
    for same_device in ranks.chunk_by_mut(|a, b| a.device == b.device) {
        let mut place = 0;
        // The low end of the interval of the first result that has this place.
        let mut low_of_place = 0.0;
        for (index, rank) in same_device.iter_mut().enumerate() {
            let [_, low, high] = interval(rank);
            if place == 0 || high < low_of_place {
                place = index + 1;
                low_of_place = low;
            }
            rank.place = Some(place);
        }
    }
}
