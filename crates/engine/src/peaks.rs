//! The measured peaks of each device. They are measured once for each device and driver, and kept in a file for later engines. The
//! first run waits for them after its first step; a comparison waits for them before it begins. A peak that other programs disturbed is marked, and
//! measured again once they are idle.
//!
//! There are two measurements: f32 multiply-adds on registers alone, and a triad over arrays far larger than the caches; nine repeats each. A
//! GPU with matrix cores has a third one. The best repeat is the peak, because noise only slows a run down. The median and the middle half are
//! stored with it. No step runs while peaks are measured. The event `calibrated` follows; `started` has the peaks that are on file. Measuring
//! takes half a second on two cores, and about as long on lavapipe. A GPU works for 1.5 s first, because an idle one keeps a fraction of its
//! clock for a third of a second after work begins.
//!
//! Peaks are stored by device and driver in `$XDG_CACHE_HOME/perflings/roofs.json`. If the middle half spans more than a quarter of the
//! median, up to three later engines measure again and keep the better one. `doctor --calibrate` measures again, keeps the higher of both and
//! reports differences of more than 15 %. A damaged file is set aside, and impossible numbers are refused.
//!
//! A disturbed measurement never lowers a kept peak. A run above a marked peak gets the lint `peak-too-low` in place of `above-peak`, and
//! `doctor --calibrate` first waits up to ten seconds until other programs are idle.

mod cache;
mod host;
mod measure;
pub mod words;

pub use measure::WARM_UP;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};

use super::allocator;
use super::devices::OpenDevice;
use protocol::machine;
use protocol::stats::roofline;
use protocol::{Device, Peaks};

/// The most times that a device is measured because its repeats differ widely.
const TRIES: u32 = 4;
/// The time for which the load of other programs is measured.
const LOAD_WINDOW: Duration = Duration::from_millis(250);
/// The longest time that [`measure_again`] waits until other programs are idle.
const PATIENCE: Duration = Duration::from_secs(10);

/// Returns the folder of the file of peaks; `None` if this user has no folder for caches.
fn folder() -> Option<PathBuf> {
    directories::BaseDirs::new().map(|dirs| dirs.cache_dir().join("perflings"))
}

/// The peaks that could not be written to the file. They last as long as this process.
static UNWRITTEN: Mutex<Vec<cache::CachedPeaks>> = Mutex::new(Vec::new());

fn unwritten() -> MutexGuard<'static, Vec<cache::CachedPeaks>> {
    UNWRITTEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sets a damaged file aside, and returns a sentence about it; `None` if the file is sound or missing.
pub fn set_damaged_file_aside() -> Option<String> {
    cache::read(&folder()?).1
}

/// Returns the entry of a device under this driver, and a sentence if the file was damaged.
fn cached(device: &Device, driver: &str) -> (Option<cache::CachedPeaks>, Option<String>) {
    let (on_file, damage) = folder().map_or_else(Default::default, |folder| cache::read(&folder));
    let mut entries = unwritten().clone().into_iter().chain(on_file);
    (entries.find(|entry| entry.is_for(device, driver)), damage)
}

/// Returns the peaks of a device under this driver, from this process or from the file; `None` if the device was not measured.
pub fn known(device: &Device, driver: &str) -> Option<Peaks> {
    cached(device, driver).0.map(|entry| entry.peaks)
}

/// Returns the known peaks, or measures and keeps them. `warn` gets a sentence for each thing that goes wrong.
///
/// # Errors
/// Fails when the device could not be measured, with the reason.
pub fn known_or_measured(opened: &OpenDevice, mut warn: impl FnMut(String)) -> Result<Peaks> {
    let (kept, damage) = cached(&opened.info, &opened.driver);
    damage.into_iter().for_each(&mut warn);
    let Some(kept) = kept else {
        return keep(opened, measure_and_check(opened)?, 1, warn);
    };
    if !is_due(&kept) || kept.peaks.load().is_some() && !others_are_idle() {
        return Ok(kept.peaks);
    }
    let peaks = higher(kept.peaks, measure_and_check(opened)?);
    keep(opened, peaks, kept.tries + 1, warn)
}

/// Measures the peaks of an opened device if that is due. `warn` gets a sentence for each thing that goes wrong.
pub fn measure_if_due(opened: &mut OpenDevice, mut warn: impl FnMut(String)) {
    if !std::mem::take(&mut opened.peaks_due) {
        return;
    }
    match known_or_measured(opened, &mut warn) {
        Ok(peaks) => opened.peaks = Some(peaks),
        Err(error) => warn(format!("no peaks of {}: {error:#}", opened.info.name)),
    }
}

/// Returns true if peaks are to be measured again: other programs disturbed them, or their repeats differ widely and they were measured fewer than
/// [`TRIES`] times.
fn is_due(kept: &cache::CachedPeaks) -> bool {
    let peaks = &kept.peaks;
    let mut rates = [&peaks.flops, &peaks.bytes]
        .into_iter()
        .chain(&peaks.matrix_cores);
    peaks.load().is_some() || kept.tries < TRIES && rates.any(roofline::unsteady)
}

/// Returns true if other programs leave the cores idle, or the system does not report it.
fn others_are_idle() -> bool {
    machine::others_within(LOAD_WINDOW).is_none_or(|others| !machine::disturbs(others))
}

/// Waits until other programs are idle, up to [`PATIENCE`].
fn wait_until_others_are_idle(warn: &mut impl FnMut(String)) {
    let until = Instant::now() + PATIENCE;
    let mut warned = false;
    while let Some(others) = machine::others_within(LOAD_WINDOW)
        && machine::disturbs(others)
        && Instant::now() < until
    {
        if !warned {
            warned = true;
            warn(format!(
                "other programs use {:.0} % of this machine: \
                 waiting up to {} s until they are idle",
                100.0 * others,
                PATIENCE.as_secs()
            ));
        }
    }
}

/// Measures the device even if its peaks are on file, and keeps the higher peaks of both, because noise only slows. `warn` gets a sentence for each peak
/// that differs much, and for each thing that goes wrong.
///
/// # Errors
/// Fails when the device could not be measured, with the reason.
pub fn measure_again(opened: &OpenDevice, mut warn: impl FnMut(String)) -> Result<Peaks> {
    let before = known(&opened.info, &opened.driver);
    if uses_cores(&opened.info) {
        wait_until_others_are_idle(&mut warn);
    }
    let now = measure_and_check(opened)?;
    let kept = match before {
        Some(before) => {
            let file = folder().map(|folder| cache::file(&folder));
            words::disagreements(&before, &now, file.as_deref())
                .into_iter()
                .for_each(&mut warn);
            higher(before, now)
        }
        None => now,
    };
    keep(opened, kept, 1, warn)
}

/// Returns the higher peaks of two measurements. If the earlier one has them all, its date stays too.
fn higher(before: Peaks, now: Peaks) -> Peaks {
    let better = roofline::better(before.clone(), now);
    let rates = |peaks: &Peaks| (peaks.flops, peaks.bytes, peaks.matrix_cores);
    if rates(&better) == rates(&before) {
        before
    } else {
        better
    }
}

/// Returns true if a device computes on the cores of this machine, where other programs take its time.
fn uses_cores(device: &Device) -> bool {
    device.kind != "gpu"
}

/// Measures the device, and marks the result if other programs disturbed it.
///
/// # Errors
/// Fails when the device fails, or the result is not plausible.
fn measure_and_check(opened: &OpenDevice) -> Result<Peaks> {
    let (measured, others) =
        machine::others_during(|| catch_unwind(AssertUnwindSafe(|| measure::measure(opened))));
    // The arrays are large and are not needed again.
    allocator::release();
    allocator::reset_peak();
    let mut peaks = measured.map_err(|_| anyhow!("the device failed while it was measured"))??;
    let load = others.filter(|share| uses_cores(&opened.info) && machine::disturbs(*share));
    peaks.flops.load = load;
    peaks.bytes.load = load;
    roofline::plausible(&peaks).map_err(|why| anyhow!("{why}; this measurement is not kept"))?;
    Ok(peaks)
}

/// Keeps peaks in the file, or in this process if the file cannot be written. Returns them.
fn keep(
    opened: &OpenDevice,
    peaks: Peaks,
    tries: u32,
    mut warn: impl FnMut(String),
) -> Result<Peaks> {
    let entry = cache::CachedPeaks {
        device: opened.info.clone(),
        driver: opened.driver.clone(),
        peaks: peaks.clone(),
        tries,
    };
    unwritten().retain(|kept| !kept.is_for(&entry.device, &entry.driver));
    let folder = folder().ok_or_else(|| "there is no folder for caches".to_owned());
    if let Err(why) = folder.and_then(|folder| cache::keep(&folder, entry.clone())) {
        unwritten().push(entry);
        warn(format!(
            "the measured peaks of this device are kept for this session only: {why}"
        ));
    }
    Ok(peaks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::stats::roofline::rate;

    #[test]
    fn peaks_that_are_disturbed_or_unsteady_are_measured_again() {
        let steady = rate(1e9, &[1.0; 9]).expect("it took time");
        let unsteady = rate(1e9, &[1.0, 1.0, 2.0, 2.0, 4.0]).expect("it took time");
        let disturbed = protocol::Rate {
            load: Some(0.5),
            ..steady
        };
        for (flops, tries, expected) in [
            (steady, 1, false),
            (unsteady, TRIES - 1, true),
            (unsteady, TRIES, false),
            (disturbed, TRIES, true),
        ] {
            let entry = cache::CachedPeaks {
                device: Device::default(),
                driver: String::new(),
                peaks: Peaks {
                    flops,
                    bytes: steady,
                    ..Peaks::default()
                },
                tries,
            };
            assert_eq!(is_due(&entry), expected, "{entry:?}");
        }
    }
}
