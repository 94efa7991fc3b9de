//! Reads how busy other programs keep this machine's cores. The engine's own time does not count, nor that of the program that
//! reads its stream.

use std::time::Duration;

use crate::files;
use crate::protocol::Load;
use crate::stats::load::{ProcessorTime, Watch, limit, others, process};

/// The counters of the system now, or why there are none.
pub fn read() -> Result<ProcessorTime, String> {
    let text = |path: &str| files::system(path).map_err(|error| format!("{path}: {error}"));
    let stat = text("/proc/stat")?;
    let engine = text("/proc/self/stat")?;
    let parent = parent(&engine).and_then(|id| text(&format!("/proc/{id}/stat")).ok());
    let status = text("/proc/self/status")?;
    let mut lines = status.lines();
    let allowed = lines.find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let may_use = |core| allowed.is_none_or(|list| cores(list).any(|it| it == core));
    ProcessorTime::parse(&stat, &[&engine, &parent.unwrap_or_default()], may_use)
        .ok_or_else(|| "/proc/stat counts no time of the cores".to_owned())
}

/// Processor time of this process, in user and in system mode, where the system tells it.
pub fn own_time() -> Option<Duration> {
    let ticks = process(&files::system("/proc/self/stat").ok()?)?;
    // Linux tells programs hundredths of a second, whatever it counts in.
    Some(Duration::from_millis(10 * ticks))
}

fn parent(stat: &str) -> Option<u32> {
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().nth(1)?.parse().ok()
}

/// The cores of a list such as `0-3,8`.
pub fn cores(list: &str) -> impl Iterator<Item = u32> + '_ {
    list.trim().split(',').flat_map(|part| {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let ends = from.parse().ok().zip(to.parse().ok());
        ends.into_iter().flat_map(|(from, to)| from..=to)
    })
}

/// The share of the cores that others use over a while from now on; waits that long.
pub fn look(window: Duration) -> Option<f64> {
    during(|| std::thread::sleep(window)).1
}

/// The share that others used while something was done here.
pub fn during<T>(work: impl FnOnce() -> T) -> (T, Option<f64>) {
    let before = read();
    let done = work();
    (done, since(&before))
}

/// The share that others used since a reading.
pub fn since(before: &Result<ProcessorTime, String>) -> Option<f64> {
    others(before.as_ref().ok()?, &read().ok()?)
}

/// Whether a share disturbs what is measured on all cores.
pub fn disturbs(share: f64) -> bool {
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get() as u32);
    share >= limit(cores)
}

/// Readings from window to window.
pub struct LoadMeter {
    before: Result<ProcessorTime, String>,
    watch: Watch,
    /// The reason why nothing is known was logged.
    told: bool,
}

impl LoadMeter {
    /// The first window begins now.
    pub fn start() -> Self {
        Self {
            before: read(),
            watch: Watch::default(),
            told: false,
        }
    }

    /// Ends the window and begins the next. Logs once why nothing is known here.
    pub fn window(&mut self) -> Option<Load> {
        let now = read();
        let before = std::mem::replace(&mut self.before, now);
        match (&before, &self.before) {
            (Ok(before), Ok(now)) => self.watch.take(others(before, now)?, now.cores),
            (_, Err(why)) if !self.told => {
                self.told = true;
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

    #[test]
    fn a_list_of_cores_names_them() {
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
