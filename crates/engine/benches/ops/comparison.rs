//! Versions of one operation, timed in turns.

use std::time::Instant;

use protocol::Peaks;
use protocol::stats::robust::spread;
use protocol::stats::roofline::shortest_seconds;
use tiny_llama::ops::Cost;

/// The shortest sample in milliseconds: a short operation is repeated until it takes as long.
const MIN_SAMPLE_MS: f64 = 4.0;
const MAX_CALLS: usize = 4096;

/// One version of an operation. `run(n)` calls it n times and waits for the device.
pub(crate) struct Version {
    pub name: String,
    pub cost: Cost,
    pub run: Box<dyn FnMut(usize) + Send>,
}

/// The versions of an operation in one direction at one size. Speed-ups compare with the first version.
pub(crate) struct Comparison {
    pub name: String,
    pub versions: Vec<Version>,
}

pub(crate) fn print_head() {
    println!(
        "\n  {:<20} {:>9} {:>20} {:>8} {:>7} {:>9}  share of peak",
        "version", "ms", "[p25, p75]", "GFLOP/s", "GB/s", "speed-up"
    );
}

impl Comparison {
    /// Takes `rounds` samples of each version and prints a row for each. Every second round goes in reverse order, so
    /// that linear drift favours no version.
    pub(crate) fn run(mut self, rounds: usize, peaks: Option<&Peaks>) {
        let calls: Vec<usize> = self.versions.iter_mut().map(Version::warm_up).collect();
        let mut samples = vec![Vec::with_capacity(rounds); self.versions.len()];
        for round in 0..rounds {
            let mut order: Vec<usize> = (0..self.versions.len()).collect();
            if round % 2 == 1 {
                order.reverse();
            }
            for index in order {
                samples[index].push(self.versions[index].sample(calls[index]));
            }
        }
        println!("{}", self.name);
        let mut first = None;
        for (version, samples) in self.versions.iter().zip(&samples) {
            let ms = spread(samples);
            let per_s = 1e3 / ms.median;
            let flops = version.cost.flops * per_s;
            let bytes = version.cost.bytes * per_s;
            println!(
                "  {:<20} {:>9.4} {:>20} {:>8.1} {:>7.1} {:>9.2}  {}",
                version.name,
                ms.median,
                format!("[{:.4}, {:.4}]", ms.p25, ms.p75),
                flops / 1e9,
                bytes / 1e9,
                *first.get_or_insert(ms.median) / ms.median,
                share(flops, bytes, peaks),
            );
        }
    }
}

impl Version {
    /// Runs until the caches are warm, and returns the number of calls of a sample.
    fn warm_up(&mut self) -> usize {
        (self.run)(1);
        let mut calls = 1;
        while self.sample(calls) * (calls as f64) < MIN_SAMPLE_MS && calls < MAX_CALLS {
            calls *= 2;
        }
        calls
    }

    /// Returns the milliseconds of one call, as the mean of `calls` calls.
    fn sample(&mut self, calls: usize) -> f64 {
        let began = Instant::now();
        (self.run)(calls);
        began.elapsed().as_secs_f64() * 1e3 / calls as f64
    }
}

/// Returns the share of the peak that limits the work. Above 100 % of bytes/s, the operands were in a cache; above 100 % of FLOP/s, the peak was
/// measured while the machine was busier.
fn share(flops: f64, bytes: f64, peaks: Option<&Peaks>) -> String {
    let Some(peaks) = peaks else {
        return "not measured".to_owned();
    };
    let (share, memory_bound) = shortest_seconds(peaks, flops, bytes);
    let unit = if memory_bound { "bytes/s" } else { "FLOP/s" };
    format!("{:.0} % of {unit}", 100.0 * share)
}
