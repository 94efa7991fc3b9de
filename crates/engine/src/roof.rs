//! The measured peaks of each device: measured once per device and driver, and kept in a file for later engines. They are measured after the
//! first step of a run, which waits for them, or before a comparison. A peak that other programs disturbed is marked, and measured again
//! once they are idle.
//!
//! There are two measurements: f32 multiply-adds on registers alone, and a triad over arrays far larger than the caches; nine repeats each. A
//! GPU with matrix cores has a third one. The best repeat is the roof, because noise only slows a run down. The median and the middle half are
//! stored beside it. While a roof is measured no other step runs. The event `calibrated` follows; `started` has the peaks that are on file. This
//! takes half a second on two cores, and about as long on lavapipe. A GPU works for 1.5 s first, because an idle one keeps a fraction of its
//! clock for a third of a second after work begins.
//!
//! Roofs are stored by device and driver in `$XDG_CACHE_HOME/perflings/roofs.json`. Where the middle half spans more than a quarter of the
//! median, up to three later engines measure again and keep the better one. `doctor --calibrate` measures again, keeps the higher of both and
//! says where they differ by more than 15 %. A damaged file is set aside, and impossible numbers are refused.
//!
//! A disturbed measurement never lowers a kept peak. A run above a marked peak gets the lint `peak-too-low` in place of `above-peak`, and
//! `doctor --calibrate` first waits up to ten seconds for quiet.

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
use protocol::{Device, Roof};

/// How often a device is measured again while its repeats differ widely.
const TRIES: u32 = 4;
/// How long the load of other programs is measured, and how long `anew` waits until they are idle.
const LOOK: Duration = Duration::from_millis(250);
const PATIENCE: Duration = Duration::from_secs(10);

/// Where roofs are kept.
fn folder() -> Option<PathBuf> {
    directories::BaseDirs::new().map(|dirs| dirs.cache_dir().join("perflings"))
}

/// Roofs that could not be written to the file: this process knows them.
static UNWRITTEN: Mutex<Vec<cache::CachedRoof>> = Mutex::new(Vec::new());

fn unwritten() -> MutexGuard<'static, Vec<cache::CachedRoof>> {
    UNWRITTEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sets a damaged file aside and says so.
pub fn notice() -> Option<String> {
    cache::read(&folder()?).1
}

/// What is known of a device under this driver, and a sentence if the file was damaged.
fn entry(device: &Device, driver: &str) -> (Option<cache::CachedRoof>, Option<String>) {
    let (on_file, notice) = folder().map_or_else(Default::default, |it| cache::read(&it));
    let mut entries = unwritten().clone().into_iter().chain(on_file);
    (entries.find(|it| it.is(device, driver)), notice)
}

/// The roof that is known of a device under this driver, from this process or from the file.
pub fn known(device: &Device, driver: &str) -> Option<Roof> {
    entry(device, driver).0.map(|it| it.roof)
}

/// The known roof, else measured now and kept. `say` is told of what does not go as it should.
///
/// # Errors
/// When the device could not be measured, with the reason.
pub fn of(opened: &OpenDevice, mut say: impl FnMut(String)) -> Result<Roof> {
    let (entry, notice) = entry(&opened.info, &opened.driver);
    notice.into_iter().for_each(&mut say);
    match entry {
        None => keep(opened, measured(opened)?, 1, say),
        Some(it) if !due(&it) || it.roof.load().is_some() && !quiet() => Ok(it.roof),
        Some(it) => {
            let roof = both(it.roof, measured(opened)?);
            keep(opened, roof, it.tries + 1, say)
        }
    }
}

/// Whether a kept roof is measured again: while it bears the mark of other programs, and where its numbers lie apart, a few times.
fn due(kept: &cache::CachedRoof) -> bool {
    let roof = &kept.roof;
    let rates = [&roof.flops, &roof.bytes].into_iter();
    let apart = rates.chain(&roof.matrix_cores).any(roofline::unsteady);
    roof.load().is_some() || apart && kept.tries < TRIES
}

/// Whether other programs leave the cores idle, as far as the system reports it.
fn quiet() -> bool {
    machine::look(LOOK).is_none_or(|others| !machine::disturbs(others))
}

/// Waits a limited time until other programs are idle.
fn wait_until_quiet(say: &mut impl FnMut(String)) {
    let until = Instant::now() + PATIENCE;
    let mut told = false;
    while let Some(others) = machine::look(LOOK)
        && machine::disturbs(others)
        && Instant::now() < until
    {
        if !told {
            told = true;
            say(format!(
                "other programs use {:.0} % of this machine: waiting up to {} s until they are idle",
                100.0 * others,
                PATIENCE.as_secs()
            ));
        }
    }
}

/// Measures now, whatever is on file. Of both the higher peaks are kept, since noise only slows; `say` is told where they
/// lie far apart.
///
/// # Errors
/// When the device could not be measured, with the reason.
pub fn anew(opened: &OpenDevice, mut say: impl FnMut(String)) -> Result<Roof> {
    let before = known(&opened.info, &opened.driver);
    if on_cores(&opened.info) {
        wait_until_quiet(&mut say);
    }
    let now = measured(opened)?;
    let kept = match before {
        Some(before) => {
            let file = folder().map(|folder| cache::file(&folder));
            let said = words::disagreements(&before, &now, file.as_deref());
            said.into_iter().for_each(&mut say);
            both(before, now)
        }
        None => now,
    };
    keep(opened, kept, 1, say)
}

/// The higher peaks of two measurements; with the date of the one before where nothing of it was reached again.
fn both(before: Roof, now: Roof) -> Roof {
    let better = roofline::better(before.clone(), now);
    let of = |it: &Roof| (it.flops, it.bytes, it.matrix_cores);
    match of(&better) == of(&before) {
        true => before,
        false => better,
    }
}

/// Whether a device computes on the cores of this machine, so that other programs take its time.
fn on_cores(device: &Device) -> bool {
    device.kind != "gpu"
}

/// Measures the device. Implausible results are an error; the result is marked where other programs disturbed it.
fn measured(opened: &OpenDevice) -> Result<Roof> {
    let (measured, others) =
        machine::during(|| catch_unwind(AssertUnwindSafe(|| measure::roof(opened))));
    // The arrays are large and are not needed again.
    allocator::release();
    allocator::reset_peak();
    let mut roof = measured.map_err(|_| anyhow!("the device failed while it was measured"))??;
    let load = others.filter(|it| on_cores(&opened.info) && machine::disturbs(*it));
    (roof.flops.load, roof.bytes.load) = (load, load);
    roofline::plausible(&roof).map_err(|why| anyhow!("{why}; it is not kept"))?;
    Ok(roof)
}

fn keep(opened: &OpenDevice, roof: Roof, tries: u32, mut say: impl FnMut(String)) -> Result<Roof> {
    let entry = cache::CachedRoof {
        device: opened.info.clone(),
        driver: opened.driver.clone(),
        roof: roof.clone(),
        tries,
    };
    unwritten().retain(|it| !it.is(&entry.device, &entry.driver));
    let folder = folder().ok_or_else(|| "there is no folder for caches".to_owned());
    if let Err(why) = folder.and_then(|folder| cache::keep(&folder, entry.clone())) {
        unwritten().push(entry);
        say(format!(
            "the measured peaks of this device are kept for this session only: {why}"
        ));
    }
    Ok(roof)
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::stats::roofline::rate;

    #[test]
    fn what_was_disturbed_is_measured_again_and_what_is_steady_is_not() {
        let rate = |seconds: &[f64]| rate(1e9, seconds).expect("it took time");
        let steady = rate(&[1.0; 9]);
        let apart = rate(&[1.0, 1.0, 2.0, 2.0, 4.0]);
        let disturbed = protocol::Rate {
            load: Some(0.5),
            ..steady
        };
        for (flops, tries, expected) in [
            (steady, 1, false),
            (apart, TRIES - 1, true),
            (apart, TRIES, false),
            (disturbed, TRIES, true),
        ] {
            let entry = cache::CachedRoof {
                device: Device::default(),
                driver: String::new(),
                roof: Roof {
                    flops,
                    bytes: steady,
                    ..Roof::default()
                },
                tries,
            };
            assert_eq!(due(&entry), expected, "{entry:?}");
        }
    }
}
