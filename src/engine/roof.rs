//! What each device was measured to do at most: once per device and driver, kept in a file for later engines. It is measured
//! before a model is built, so that no timed step runs beside it.

mod cache;
mod host;
mod measure;
pub mod words;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use anyhow::{Result, anyhow};

use super::allocator;
use super::devices::Opened;
use crate::profile::roofline;
use crate::protocol::{Device, Roof};

/// Engines that measure a device again while its numbers lie far apart.
const TRIES: u32 = 4;

/// Where roofs are kept.
fn folder() -> Option<PathBuf> {
    directories::BaseDirs::new().map(|dirs| dirs.cache_dir().join("perflings"))
}

/// Sets a damaged file aside and says so.
pub fn notice() -> Option<String> {
    cache::read(&folder()?).1
}

/// The roof on file for a device under this driver.
pub fn known(device: &Device, driver: &str) -> Option<Roof> {
    let (entries, _) = cache::read(&folder()?);
    entries
        .into_iter()
        .find(|it| it.is(device, driver))
        .map(|it| it.roof)
}

/// The roof on file, else measured now and put there. `say` is told of what does not go as it should.
///
/// # Errors
/// When the device could not be measured, with the reason.
pub fn of(opened: &Opened, mut say: impl FnMut(String)) -> Result<Roof> {
    let (entries, notice) = folder().map_or_else(Default::default, |it| cache::read(&it));
    notice.into_iter().for_each(&mut say);
    let before = entries
        .into_iter()
        .find(|it| it.is(&opened.info, &opened.driver));
    // A busy machine's numbers lie apart: a few later engines measure again, then it is left at that.
    let steady = |rate| !roofline::unsteady(rate);
    match before {
        None => keep(opened, measured(opened)?, 1, say),
        Some(it) if it.tries >= TRIES || steady(&it.roof.flops) && steady(&it.roof.bytes) => {
            Ok(it.roof)
        }
        Some(it) => {
            let roof = both(it.roof, measured(opened)?);
            keep(opened, roof, it.tries + 1, say)
        }
    }
}

/// Measures now, whatever is on file. Of both the higher peaks are kept, since noise only slows; `say` is told where they
/// lie far apart.
///
/// # Errors
/// When the device could not be measured, with the reason.
pub fn anew(opened: &Opened, mut say: impl FnMut(String)) -> Result<Roof> {
    let before = known(&opened.info, &opened.driver);
    let now = measured(opened)?;
    let kept = match before {
        Some(before) => {
            let file = folder().map(|folder| cache::file(&folder));
            words::disagreements(&before, &now, file.as_deref())
                .into_iter()
                .for_each(&mut say);
            both(before, now)
        }
        None => now,
    };
    keep(opened, kept, 1, say)
}

/// The higher peaks of two measurements; with the date of the one before where nothing of it was reached again.
fn both(before: Roof, now: Roof) -> Roof {
    let better = roofline::better(before.clone(), now);
    if better.flops == before.flops && better.bytes == before.bytes {
        before
    } else {
        better
    }
}

/// What the device does now, if that can be true.
fn measured(opened: &Opened) -> Result<Roof> {
    let measured = catch_unwind(AssertUnwindSafe(|| measure::roof(opened)));
    // The arrays are large and are not asked for again.
    allocator::release();
    allocator::reset_peak();
    let roof = measured.map_err(|_| anyhow!("the device gave up while it was measured"))??;
    roofline::plausible(&roof).map_err(|why| anyhow!("{why}; it is not kept"))?;
    Ok(roof)
}

fn keep(opened: &Opened, roof: Roof, tries: u32, mut say: impl FnMut(String)) -> Result<Roof> {
    let kept = folder()
        .ok_or_else(|| "there is no folder for caches".to_owned())
        .and_then(|folder| {
            let entry = cache::Entry {
                device: opened.info.clone(),
                driver: opened.driver.clone(),
                roof: roof.clone(),
                tries,
            };
            cache::keep(&folder, entry)
        });
    if let Err(why) = kept {
        say(format!(
            "the measured peaks of this device are not kept: {why}"
        ));
    }
    Ok(roof)
}
