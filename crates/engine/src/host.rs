//! Facts about the host: its memory and the date.

use anyhow::{Result, ensure};

use protocol::machine::kilobytes;
use protocol::units::bytes;

/// Returns the bytes of memory that are free without swapping; `None` if the system does not report it.
pub(crate) fn memory_available() -> Option<u64> {
    kilobytes("/proc/meminfo", "MemAvailable")
}

/// Returns the bytes of memory that this process occupies now; `None` if the system does not report it.
pub(crate) fn memory_resident() -> Option<u64> {
    kilobytes("/proc/self/status", "VmRSS")
}

/// Checks that work of `need` bytes fits into the free memory of this host. `given_back` is the number of bytes that earlier work frees when it
/// ends. A system that does not report its free memory passes every check.
///
/// # Errors
/// Fails when `need` bytes are not free. The sentence begins with `subject`.
pub(crate) fn ensure_memory(subject: &str, need: u64, given_back: u64) -> Result<()> {
    let available = memory_available().unwrap_or(u64::MAX);
    let free = available.saturating_add(given_back);
    ensure!(
        need <= free,
        "{subject} about {}, and {} are free. Use a smaller preset, batch or context",
        bytes(need),
        bytes(free)
    );
    Ok(())
}

/// Returns today's date in UTC as `YYYY-MM-DD`.
pub(crate) fn today() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%d").to_string()
}
