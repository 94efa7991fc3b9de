//! The measurement of the CPU's peaks. It uses as many threads as the kernels have, each on its own part of the data. It starts these threads
//! itself, because the caller may occupy those of a pool.

use std::sync::{Barrier, Mutex, PoisonError};
use std::time::{Duration, Instant};

use protocol::machine::cores;
use tiny_llama::ops::cpu::peaks::{LANES, multiply_adds, triad};

/// The number of repeats of one measurement on the CPU, and of timed launches of each kernel on a GPU.
pub(super) const REPEATS: usize = 9;
/// The time that one repeat of the multiply-adds is meant to take.
const REPEAT: Duration = Duration::from_millis(6);
/// The fewest bytes of one of the triad's three arrays.
const SMALLEST: usize = 64 << 20;
/// The most bytes of one of the triad's three arrays.
const LARGEST: usize = 512 << 20;

/// The work of one repeat, in operations or bytes, and the seconds of each repeat.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TimedWork {
    pub work: f64,
    pub seconds: Vec<f64>,
}

/// Measures the f32 operations of all threads together, two for each multiply-add. It tries three kernels, and repeats the fastest.
pub(super) fn flops(threads: usize) -> TimedWork {
    let run = |kernel: usize, rounds: usize, repeats: usize| TimedWork {
        work: 2.0 * (LANES[kernel] * rounds * threads) as f64,
        seconds: run_on_threads(threads, repeats, |_| (), |()| multiply_adds(kernel, rounds)),
    };
    let trial = 50_000;
    let mut fastest = 0;
    let mut best_rate = 0.0;
    for kernel in 0..3 {
        let TimedWork { work, seconds } = run(kernel, trial, 3);
        let rate = work / seconds.into_iter().fold(f64::INFINITY, f64::min);
        if rate > best_rate {
            fastest = kernel;
            best_rate = rate;
        }
    }
    let per_round = 2.0 * (LANES[fastest] * threads) as f64;
    let rounds = (best_rate * REPEAT.as_secs_f64() / per_round) as usize;
    run(fastest, rounds.clamp(trial, 100 * trial), REPEATS)
}

/// Measures the bytes that a triad moves: it reads two arrays and writes a third. Each has `array` bytes, which the threads share.
pub(super) fn bytes(threads: usize, array: usize) -> TimedWork {
    let len = (array / 4 / threads.max(1)).max(1);
    // Each thread makes its own parts, so that they are in the memory near its core.
    let arrays = |_| (vec![0.0_f32; len], vec![1.0_f32; len], vec![2.0_f32; len]);
    let seconds = run_on_threads(threads, REPEATS + 1, arrays, |(out, a, b)| {
        triad(out, a, b);
        std::hint::black_box(out);
    });
    TimedWork {
        work: 12.0 * (len * threads) as f64,
        // The first repeat is slower, because it writes to new pages.
        seconds: seconds.into_iter().skip(1).collect(),
    }
}

/// Returns the bytes of one array of the triad. All three take several times the last-level cache, and at most an eighth of the `free` bytes of
/// memory.
pub(super) fn array_bytes(free: Option<u64>) -> usize {
    let limit = free.map_or(SMALLEST, |free| (free / 24) as usize);
    (2 * cache_bytes().unwrap_or(0))
        .clamp(SMALLEST, LARGEST)
        .min(limit.max(1 << 20))
}

/// Returns the bytes of all last-level caches together; `None` if the system does not report it.
fn cache_bytes() -> Option<usize> {
    let read = |index: usize, file: &str| {
        let folder = format!("/sys/devices/system/cpu/cpu0/cache/index{index}");
        protocol::machine::system(format!("{folder}/{file}")).ok()
    };
    let last = (0..8).rev().find(|index| read(*index, "size").is_some())?;
    let size = parse_size(&read(last, "size")?)?;
    let sharing = cores(&read(last, "shared_cpu_list")?).count().max(1);
    let all = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    Some(size * all.div_ceil(sharing))
}

/// Returns the bytes of a size such as `32768K` or `96M`; `None` for any other text.
fn parse_size(text: &str) -> Option<usize> {
    let size = text.trim();
    let (digits, unit) = size.split_at(size.len().checked_sub(1)?);
    let number: usize = digits.parse().ok()?;
    match unit {
        "K" => Some(number << 10),
        "M" => Some(number << 20),
        _ => None,
    }
}

/// Does the work on all threads at once, and returns the seconds of each repeat, from the first thread's start to the last one's end. The threads
/// begin each repeat together. `prepare` makes the data of a thread.
fn run_on_threads<S>(
    threads: usize,
    repeats: usize,
    prepare: impl Fn(usize) -> S + Sync,
    work: impl Fn(&mut S) + Sync,
) -> Vec<f64> {
    let barrier = Barrier::new(threads);
    let times: Mutex<Vec<(Instant, Instant)>> = Mutex::new(Vec::new());
    let body = |thread: usize| {
        let mut state = prepare(thread);
        let mut own_times = Vec::with_capacity(repeats);
        for _ in 0..repeats {
            barrier.wait();
            let began = Instant::now();
            work(&mut state);
            own_times.push((began, Instant::now()));
        }
        let mut all = times.lock().unwrap_or_else(PoisonError::into_inner);
        all.extend(own_times);
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
            let on_all_threads = || all.iter().skip(repeat).step_by(repeats);
            let began = on_all_threads().map(|(began, _)| *began).min()?;
            let ended = on_all_threads().map(|(_, ended)| *ended).max()?;
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
        let seconds = run_on_threads(
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
    fn sizes_of_caches_are_read_as_linux_writes_them() {
        assert_eq!(parse_size("32768K\n"), Some(32 << 20));
        assert_eq!(parse_size("96M"), Some(96 << 20));
        assert_eq!(parse_size(""), None);
    }

    #[test]
    fn arrays_leave_most_of_the_memory_free() {
        assert!(array_bytes(Some(240 << 20)) <= 10 << 20);
        assert!((SMALLEST..=LARGEST).contains(&array_bytes(Some(1 << 40))));
    }
}
