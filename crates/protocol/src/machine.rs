//! The memory of this machine, and the load of its cores by other programs. The engine and the program that reads its stream do not count
//! as other programs.
//!
//! Once a second, the engine's heartbeat thread reads `/proc/stat` for the cores that the engine may use, and subtracts its own time and its
//! parent's. The engine reports the median of five such windows as `load`. `busy` turns on when other programs use three quarters of one
//! core, but at least 5 % and at most 15 % of all cores; it turns off at 0.6 of that. Without `/proc/stat`, the engine reports the reason
//! once, and the screen judges by the spread of the steps. A run's summary has the share over the whole run (`others`). A second engine of
//! ours counts as another program, so the screen shows no load while one works.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::time::Duration;

use crate::Load;
use crate::stats::robust::median;

/// The longest text of the system that is read, in bytes.
const MAX_BYTES: u64 = 16 * 1024 * 1024;

/// Reads a text of the system, such as `/proc/meminfo`.
pub fn system(path: impl AsRef<Path>) -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_BYTES).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns the bytes of an entry of the file `path` that the system gives in kB, for example `MemTotal` of `/proc/meminfo`; `None` if there
/// is no such entry.
pub fn kilobytes(path: &str, key: &str) -> Option<u64> {
    let kib: u64 = system(path)
        .ok()?
        .lines()
        .find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?
        .trim()
        .strip_suffix("kB")?
        .trim()
        .parse()
        .ok()?;
    Some(kib * 1024)
}

/// The fewest ticks between two readings that give a share. The system counts ticks of a hundredth of a second.
const MIN_TICKS: u64 = 20;
/// The number of windows whose median is reported.
const WINDOWS: usize = 5;
/// The number of windows before a load is reported.
const MIN_WINDOWS: usize = 3;

/// Processor time since the system's start, in ticks, over the cores that this process may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessorTime {
    pub cores: u32,
    /// The time in which the cores worked.
    pub busy: u64,
    /// All time of the cores.
    pub all: u64,
    /// The part of `busy` that belongs to the program's own processes.
    pub own: u64,
}

impl ProcessorTime {
    /// Reads the texts of `/proc/stat` and of `/proc/PID/stat` of the program's processes. `may_use` returns true for a core that counts.
    /// `None` if a text cannot be read.
    pub fn parse(stat: &str, own: &[&str], may_use: impl Fn(u32) -> bool) -> Option<Self> {
        let mut reading = Self::default();
        for line in stat.lines() {
            let after_cpu = line.strip_prefix("cpu");
            let Some((core, fields)) = after_cpu.and_then(|rest| rest.split_once(' ')) else {
                continue;
            };
            // The first line, without a number, is the sum of the others.
            if !core.parse().is_ok_and(&may_use) {
                continue;
            }
            // The fields are user nice system idle iowait irq softirq steal; guests are part of user.
            let ticks: Vec<u64> = fields
                .split_whitespace()
                .take(8)
                .map(str::parse)
                .collect::<Result<_, _>>()
                .ok()?;
            let idle = ticks.get(3)? + ticks.get(4).unwrap_or(&0);
            let all: u64 = ticks.iter().sum();
            reading.cores += 1;
            reading.all += all;
            reading.busy += all - idle;
        }
        reading.own = own.iter().filter_map(|stat| process_ticks(stat)).sum();
        (reading.all > 0).then_some(reading)
    }
}

/// Returns the fields of `/proc/PID/stat` after the name of the process, which is in parentheses and may contain anything.
fn fields_after_name(stat: &str) -> Option<impl Iterator<Item = &str>> {
    let (_, fields) = stat.rsplit_once(')')?;
    Some(fields.split_whitespace())
}

/// Returns the time of a process in user and in system mode, in ticks, from the text of `/proc/PID/stat`.
pub fn process_ticks(stat: &str) -> Option<u64> {
    let mut times = fields_after_name(stat)?.skip(11);
    let user: u64 = times.next()?.parse().ok()?;
    let system: u64 = times.next()?.parse().ok()?;
    Some(user + system)
}

/// Returns the share of the cores, 0 to 1, that other programs used between two readings; `None` if too little time passed.
pub fn share_of_others(before: &ProcessorTime, after: &ProcessorTime) -> Option<f64> {
    let all = after.all.checked_sub(before.all)?;
    let busy = after.busy.saturating_sub(before.busy);
    let own = after.own.saturating_sub(before.own);
    (all >= MIN_TICKS).then(|| (busy.saturating_sub(own) as f64 / all as f64).min(1.0))
}

/// Returns the share of the cores, 0 to 1, from which other programs disturb a measurement: most of one core, because every kernel works on
/// all cores, but not less than an idle desktop uses.
pub fn disturbing_share(cores: u32) -> f64 {
    (0.75 / f64::from(cores.max(1))).clamp(0.05, 0.15)
}

/// Judges the load window by window. It uses the median of several windows and two limits, so that its result does not flicker.
#[derive(Clone, Debug, Default)]
pub struct LoadJudge {
    windows: VecDeque<f64>,
    busy: bool,
}

impl LoadJudge {
    /// Adds the share of one window and returns the load; `None` until there are enough windows.
    pub fn add_window(&mut self, share: f64, cores: u32) -> Option<Load> {
        if self.windows.len() == WINDOWS {
            self.windows.pop_front();
        }
        self.windows.push_back(share);
        if self.windows.len() < MIN_WINDOWS {
            return None;
        }
        let others = median(self.windows.make_contiguous());
        let limit = disturbing_share(cores);
        self.busy = others >= if self.busy { 0.6 * limit } else { limit };
        Some(Load {
            others: Some((others * 1e3).round() / 1e3),
            busy: self.busy,
            reason: None,
        })
    }
}

/// Reads the counters of the system.
///
/// # Errors
/// Fails on a system without these counters, with the reason.
pub fn read() -> Result<ProcessorTime, String> {
    let text = |path: &str| system(path).map_err(|error| format!("{path}: {error}"));
    let stat = text("/proc/stat")?;
    let engine = text("/proc/self/stat")?;
    let parent = parent(&engine).and_then(|id| text(&format!("/proc/{id}/stat")).ok());
    let status = text("/proc/self/status")?;
    let allowed = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let may_use = |core| allowed.is_none_or(|list| cores(list).any(|listed| listed == core));
    ProcessorTime::parse(&stat, &[&engine, &parent.unwrap_or_default()], may_use)
        .ok_or_else(|| "/proc/stat counts no time of the cores".to_owned())
}

/// Returns the processor time of this process in user and in system mode; `None` if the system does not report it.
pub fn own_time() -> Option<Duration> {
    let ticks = process_ticks(&system("/proc/self/stat").ok()?)?;
    // A tick that Linux reports to programs is always a hundredth of a second.
    Some(Duration::from_millis(10 * ticks))
}

/// Returns the id of a process's parent from the text of `/proc/PID/stat`.
fn parent(stat: &str) -> Option<u32> {
    fields_after_name(stat)?.nth(1)?.parse().ok()
}

/// Returns the cores of a list such as `0-3,8`.
pub fn cores(list: &str) -> impl Iterator<Item = u32> + '_ {
    list.trim().split(',').flat_map(|part| {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let ends = from.parse().ok().zip(to.parse().ok());
        ends.into_iter().flat_map(|(from, to)| from..=to)
    })
}

/// Waits for a time, and returns the share of the cores, 0 to 1, that other programs used meanwhile; `None` if it is not known.
pub fn others_within(window: Duration) -> Option<f64> {
    others_during(|| std::thread::sleep(window)).1
}

/// Does some work, and returns its result with the share of the cores that other programs used meanwhile; `None` if it is not known.
pub fn others_during<T>(work: impl FnOnce() -> T) -> (T, Option<f64>) {
    let before = read();
    let result = work();
    (result, others_since(&before))
}

/// Returns the share of the cores that other programs used since a reading; `None` if it is not known.
pub fn others_since(before: &Result<ProcessorTime, String>) -> Option<f64> {
    share_of_others(before.as_ref().ok()?, &read().ok()?)
}

/// Returns true if a share of the cores disturbs measurements on all cores.
pub fn disturbs(share: f64) -> bool {
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get() as u32);
    share >= disturbing_share(cores)
}

/// Measures the load in windows, one after the other.
pub struct LoadMeter {
    /// The reading at the beginning of the window.
    before: Result<ProcessorTime, String>,
    judge: LoadJudge,
    /// True once the reason was reported why the load is not known.
    reason_reported: bool,
}

impl LoadMeter {
    /// Starts the first window.
    pub fn start() -> Self {
        Self {
            before: read(),
            judge: LoadJudge::default(),
            reason_reported: false,
        }
    }

    /// Ends the window, starts the next one, and returns the load. If the load is not known, only the first call returns the reason.
    pub fn window(&mut self) -> Option<Load> {
        let now = read();
        let before = std::mem::replace(&mut self.before, now);
        match (&before, &self.before) {
            (Ok(before), Ok(now)) => self
                .judge
                .add_window(share_of_others(before, now)?, now.cores),
            (_, Err(why)) if !self.reason_reported => {
                self.reason_reported = true;
                Some(Load {
                    reason: Some(why.clone()),
                    ..Load::default()
                })
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = "cpu  300 0 0 300 0 0 0 0 0 0\n\
        cpu0 100 0 0 100 0 0 0 0 0 0\ncpu1 100 0 0 100 0 0 0 0 0 0\ncpu2 100 0 0 100 0 0 0 0 0 0\n\
        intr 12 0\nctxt 5\n";
    const AFTER: &str = "cpu  450 20 20 400 10 5 5 10 40 0\n\
        cpu0 150 10 20 110 2 2 2 4 40 0\ncpu1 140 10 0 138 8 2 1 1 0 0\ncpu2 200 0 0 100 0 0 0 0 0 0\n";

    /// Returns `/proc/PID/stat` of a process with these ticks in user and in system mode.
    fn process_stat(user: u64, system: u64) -> String {
        format!("17 (a (b) c) R 3 17 17 0 -1 4194560 90 0 0 0 {user} {system} 7 7 20 0 5 0 9 1 2")
    }

    #[test]
    fn other_programs_have_the_busy_time_that_is_not_ours() {
        let may_use = |core| core < 2;

        let before = ProcessorTime::parse(BEFORE, &[&process_stat(40, 10)], may_use)
            .expect("a reading before");
        let after = ProcessorTime::parse(AFTER, &[&process_stat(80, 20)], may_use)
            .expect("a reading after");

        assert_eq!((before.cores, before.all, before.own), (2, 400, 50));
        assert_eq!((after.all, after.own), (600, 100));
        // Of 200 ticks, 58 are idle and 50 our own: guest time counts once, and core 2 is not ours to use.
        assert_eq!(after.busy - before.busy, 142);
        assert_eq!(share_of_others(&before, &after), Some(0.46));
    }

    fn reading(all: u64, busy: u64, own: u64) -> ProcessorTime {
        ProcessorTime {
            cores: 2,
            busy,
            all,
            own,
        }
    }

    #[test]
    fn readings_too_close_or_in_the_wrong_order_give_no_share() {
        let before = reading(100, 50, 10);
        assert_eq!(share_of_others(&before, &reading(110, 60, 10)), None);
        assert_eq!(share_of_others(&before, &reading(90, 60, 10)), None);
    }

    #[test]
    fn own_time_above_the_busy_time_leaves_nothing_for_others() {
        // Our own clock runs ahead of the system's by a tick or two.
        let share = share_of_others(&reading(100, 50, 10), &reading(300, 250, 213));
        assert_eq!(share, Some(0.0));
    }

    #[test]
    fn a_damaged_text_is_no_reading() {
        for stat in ["cpu0 0 0 0 0 0", "cpu0 x 0 0 0 0", ""] {
            assert_eq!(ProcessorTime::parse(stat, &[], |_| true), None, "{stat}");
        }
    }

    #[test]
    fn a_machine_is_busy_for_a_while_or_not_at_all() {
        let mut judge = LoadJudge::default();
        let mut busy_after = |shares: &[f64]| {
            let loads = shares.iter().map(|share| judge.add_window(*share, 2));
            loads.last().flatten().map(|load| load.busy)
        };
        assert_eq!(busy_after(&[0.9, 0.9]), None, "two windows are too few");
        assert_eq!(busy_after(&[0.9]), Some(true));
        assert_eq!(
            busy_after(&[0.0, 0.9, 0.0, 0.9]),
            Some(true),
            "two of five are quiet"
        );
        assert_eq!(busy_after(&[0.1; 5]), Some(true), "between the limits");
        assert_eq!(busy_after(&[0.02; 5]), Some(false));
        assert_eq!(busy_after(&[0.1; 5]), Some(false), "between the limits");
        assert_eq!(busy_after(&[0.9, 0.9]), Some(false), "two of five are busy");
    }

    #[test]
    fn the_limit_is_most_of_a_core() {
        assert_eq!(
            [1, 2, 8, 64].map(disturbing_share),
            [0.15, 0.15, 0.093_75, 0.05]
        );
    }

    #[test]
    fn a_list_of_cores_may_have_ranges() {
        assert_eq!(cores("\t0-2,8\n").collect::<Vec<_>>(), [0, 1, 2, 8]);
        assert_eq!(cores("").chain(cores("3-1")).chain(cores("x")).count(), 0);
    }

    #[test]
    fn the_parent_is_the_second_field_after_the_name() {
        assert_eq!(parent("5 (a) b) S 41 5 5"), Some(41));
        assert_eq!(parent("5 a"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn own_work_counts_as_own() {
        let before = read().expect("a reading");
        // Work until the system has counted some of it, however long that takes.
        while read().expect("a reading").own < before.own + 10 {
            std::hint::black_box((0..100_000_u64).sum::<u64>());
        }
        let after = read().expect("a reading");
        assert!(after.busy - before.busy >= 8, "{before:?} {after:?}");
        assert!(after.all >= after.busy);
    }
}
