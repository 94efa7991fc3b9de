//! The child process that trains: commands in on stdin, events out on stdout, one JSON object a line. It exits at the
//! end of its input, so no engine outlives its reader. It knows no screen.

mod adapters;
pub mod allocator;
pub mod audit;
pub mod client;
pub mod devices;
pub mod kernel;
mod observer;
mod pair;
mod queue;
pub mod roof;
mod session;
mod trainer;
mod wire;
mod worker;

use anyhow::Result;

/// Bytes of memory that can be had without swapping, where the system says.
fn memory_available() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim()
        .trim_end_matches("kB")
        .trim()
        .parse::<u64>()
        .ok()
        .map(|kib| kib * 1024)
}

/// Serves one reader until its input ends or it says `quit`.
///
/// # Errors
/// When the streams cannot be set up.
pub fn serve() -> Result<()> {
    let (wire, commands) = wire::open()?;
    session::run(&wire, &commands);
    wire.close();
    Ok(())
}
