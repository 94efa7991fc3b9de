//! Facts about the host: free memory and the date.

use anyhow::{Result, ensure};

use protocol::machine::kilobytes;
use protocol::units::bytes;

/// Bytes of memory that can be had without swapping, where the system says.
pub(crate) fn memory_available() -> Option<u64> {
    kilobytes("/proc/meminfo", "MemAvailable")
}

/// Bytes of memory that this process occupies now, where the system says.
pub(crate) fn memory_resident() -> Option<u64> {
    kilobytes("/proc/self/status", "VmRSS")
}

/// Refuses work that needs more bytes than this host has free, where it says, once the work before gave back its own;
/// `what` begins the sentence.
pub(crate) fn ensure_memory(what: &str, need: u64, given_back: u64) -> Result<()> {
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

/// The date in UTC, `YYYY-MM-DD`.
pub(crate) fn today() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%d").to_string()
}
