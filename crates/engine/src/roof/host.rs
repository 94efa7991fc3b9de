//! The CPU's roofs: on as many threads as the kernels have, each on its own part. The threads are its own: the
//! caller may occupy those of a pool.

use std::sync::{Barrier, Mutex, PoisonError};
use std::time::{Duration, Instant};

use protocol::machine::cores;
use tiny_llama::ops::cpu::roof::{LANES, multiply_adds, triad};

/// Repeats of one measurement, and timed launches of each kernel on a GPU.
pub(super) const REPEATS: usize = 9;
/// A repeat of the multiply-adds takes about this long.
const REPEAT: Duration = Duration::from_millis(6);
/// Bytes of one of the triad's three arrays, at least and at most.
const SMALLEST: usize = 64 << 20;
const LARGEST: usize = 512 << 20;

/// Work done in each of several repeats, and the seconds they took.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct HostRates {
    pub work: f64,
    pub seconds: Vec<f64>,
}

/// f32 operations of all threads together, two for each multiply-add.
pub(super) fn flops(threads: usize) -> HostRates {
    let run = |which: usize, rounds: usize, repeats: usize| HostRates {
        work: 2.0 * (LANES[which] * rounds * threads) as f64,
        seconds: together(threads, repeats, |_| (), |()| multiply_adds(which, rounds)),
    };
    let trial = 50_000;
    let tried = (0..3).map(|which| {
        let HostRates { work, seconds } = run(which, trial, 3);
        let least = seconds.into_iter().fold(f64::INFINITY, f64::min);
        (work / least, which)
    });
    let (rate, best) = tried.fold((0.0, 0), |best, it| if it.0 > best.0 { it } else { best });
    let per_round = 2.0 * (LANES[best] * threads) as f64;
    let rounds = (rate * REPEAT.as_secs_f64() / per_round) as usize;
    run(best, rounds.clamp(trial, 100 * trial), REPEATS)
}

/// Bytes moved by a triad over arrays of `array` bytes each, cut among the threads: two read and one written.
pub(super) fn bytes(threads: usize, array: usize) -> HostRates {
    let len = (array / 4 / threads.max(1)).max(1);
    // Each thread writes its own parts first, so that they lie in memory near it.
    let arrays = |_| (vec![0.0_f32; len], vec![1.0_f32; len], vec![2.0_f32; len]);
    let seconds = together(threads, REPEATS + 1, arrays, |(out, a, b)| {
        triad(out, a, b);
        std::hint::black_box(out);
    });
    HostRates {
        work: 12.0 * (len * threads) as f64,
        // The first repeat meets pages that were never written.
        seconds: seconds.into_iter().skip(1).collect(),
    }
}

/// Bytes for one array of the triad: with all three, several times the last-level cache, and an eighth of the memory that
/// is free at most.
pub(super) fn array_bytes(free: Option<u64>) -> usize {
    let most = free.map_or(SMALLEST, |free| (free / 24) as usize);
    (2 * cache_bytes().unwrap_or(0))
        .clamp(SMALLEST, LARGEST)
        .min(most.max(1 << 20))
}

/// All last-level caches together, where Linux tells.
fn cache_bytes() -> Option<usize> {
    let read = |index: usize, file: &str| {
        let folder = format!("/sys/devices/system/cpu/cpu0/cache/index{index}");
        protocol::machine::system(format!("{folder}/{file}")).ok()
    };
    let last = (0..8).rev().find(|index| read(*index, "size").is_some())?;
    let size = kibibytes(&read(last, "size")?)?;
    let sharing = cores(&read(last, "shared_cpu_list")?).count().max(1);
    let all = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    Some(size * all.div_ceil(sharing))
}

/// `32768K` or `96M` in bytes.
fn kibibytes(text: &str) -> Option<usize> {
    let text = text.trim();
    let (number, unit) = text.split_at(text.len().checked_sub(1)?);
    let number: usize = number.parse().ok()?;
    match unit {
        "K" => Some(number << 10),
        "M" => Some(number << 20),
        _ => None,
    }
}

/// Seconds of each repeat, from the first thread's start to the last one's end. Threads start every repeat together.
fn together<S>(
    threads: usize,
    repeats: usize,
    prepare: impl Fn(usize) -> S + Sync,
    work: impl Fn(&mut S) + Sync,
) -> Vec<f64> {
    let barrier = Barrier::new(threads);
    let times: Mutex<Vec<(Instant, Instant)>> = Mutex::new(Vec::new());
    let body = |thread: usize| {
        let mut state = prepare(thread);
        let mut mine = Vec::with_capacity(repeats);
        for _ in 0..repeats {
            barrier.wait();
            let began = Instant::now();
            work(&mut state);
            mine.push((began, Instant::now()));
        }
        let mut all = times.lock().unwrap_or_else(PoisonError::into_inner);
        all.extend(mine);
    };
    std::thread::scope(|scope| {
        let body = &body;
        for thread in 1..threads {
            scope.spawn(move || body(thread));
        }
        body(0);
    });
    let all = times.into_inner().unwrap_or_else(PoisonError::into_inner);
    (0..repeats)
        .filter_map(|repeat| {
            let turns = || all.iter().skip(repeat).step_by(repeats);
            let began = turns().map(|turn| turn.0).min()?;
            let ended = turns().map(|turn| turn.1).max()?;
            Some((ended - began).as_secs_f64())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_thread_does_every_repeat() {
        let calls = std::sync::atomic::AtomicUsize::new(0);
        let seconds = together(
            3,
            4,
            |_| (),
            |()| {
                calls.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            },
        );
        assert_eq!(seconds.len(), 4);
        assert_eq!(calls.into_inner(), 12);
    }

    #[test]
    fn caches_are_read_as_linux_writes_them() {
        assert_eq!(kibibytes("32768K\n"), Some(32 << 20));
        assert_eq!(kibibytes("96M"), Some(96 << 20));
        assert_eq!(kibibytes(""), None);
    }

    #[test]
    fn arrays_leave_most_of_the_memory_alone() {
        assert!(array_bytes(Some(240 << 20)) <= 10 << 20);
        assert!((SMALLEST..=LARGEST).contains(&array_bytes(Some(1 << 40))));
    }
}
