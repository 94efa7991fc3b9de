//! What the host says: free memory and the date.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Result, ensure};

use crate::units::bytes;

/// Bytes of memory that can be had without swapping, where the system says.
pub fn memory_available() -> Option<u64> {
    let text = crate::files::system("/proc/meminfo").ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kib * 1024)
}

/// Bytes of memory that this process occupies now, where the system says.
pub fn memory_resident() -> Option<u64> {
    let text = crate::files::system("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kib * 1024)
}

/// Refuses work that needs more bytes than this host has free, where it says, once the work before gave back its own;
/// `what` begins the sentence.
pub fn ensure_memory(what: &str, need: u64, given_back: u64) -> Result<()> {
    let free = memory_available().unwrap_or(u64::MAX);
    let free = free.saturating_add(given_back);
    ensure!(
        need <= free,
        "{what} about {}, and {} are free. Use a smaller preset, batch or context",
        bytes(need),
        bytes(free)
    );
    Ok(())
}

/// The date in UTC, `YYYY-MM-DD` (Hinnant's days-to-civil algorithm).
pub fn today() -> String {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or(Duration::ZERO);
    let days = (since.as_secs() / 86_400) as i64 + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = (shifted + 2) % 12 + 1;
    let year = year + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}
