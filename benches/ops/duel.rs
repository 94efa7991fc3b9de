//! Versions of one operation in turns.

use std::time::Instant;

use perflings::ops::Cost;
use perflings::profile::stats::spread;
use perflings::protocol::Spread;

/// One sample takes at least this long, in milliseconds: many calls of a short operation.
const SAMPLE_MS: f64 = 4.0;
/// Calls of one sample at most.
const MOST_CALLS: usize = 4096;

/// Something to be timed: `run(n)` calls it n times and waits for the device.
pub struct Entry {
    pub version: String,
    pub cost: Cost,
    pub run: Box<dyn FnMut(usize) + Send>,
}

/// An operation in one direction at one size, in its versions.
pub struct Duel {
    pub name: String,
    pub entries: Vec<Entry>,
}

/// What came out.
pub struct Measured {
    pub name: String,
    pub versions: Vec<(String, Cost, Spread)>,
}

impl Duel {
    /// So many samples of each, every second round in reverse, so that a drift favours none.
    pub fn measure(mut self, rounds: usize) -> Measured {
        let calls: Vec<usize> = self.entries.iter_mut().map(settle).collect();
        let mut samples = vec![Vec::with_capacity(rounds); self.entries.len()];
        for round in 0..rounds {
            let mut order: Vec<usize> = (0..self.entries.len()).collect();
            if round % 2 == 1 {
                order.reverse();
            }
            for at in order {
                samples[at].push(sample(&mut self.entries[at], calls[at]));
            }
        }
        let versions = self
            .entries
            .into_iter()
            .zip(&samples)
            .map(|(entry, ms)| (entry.version, entry.cost, spread(ms)))
            .collect();
        Measured {
            name: self.name,
            versions,
        }
    }
}

/// Warms up, and returns how many calls make a sample.
fn settle(entry: &mut Entry) -> usize {
    (entry.run)(1);
    let mut calls = 1;
    loop {
        let ms = sample(entry, calls) * calls as f64;
        if ms >= SAMPLE_MS || calls >= MOST_CALLS {
            return calls;
        }
        calls = (calls * 2).min(MOST_CALLS);
    }
}

/// Milliseconds of one call, from so many.
fn sample(entry: &mut Entry, calls: usize) -> f64 {
    let began = Instant::now();
    (entry.run)(calls);
    began.elapsed().as_secs_f64() * 1e3 / calls as f64
}
