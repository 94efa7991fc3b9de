//! Compares the memory of this machine with the needs of a configuration, before an engine starts to train it.

use anyhow::Result;

use crate::out::usage;
use protocol::config::RunConfig;
use protocol::machine::{kilobytes, system};
use protocol::units::{bytes, show};

/// Checks that the runs of these configurations fit into the available memory. Only devices that use the host's memory are checked here. The
/// engine checks the others.
///
/// # Errors
/// Returns an error with both sizes if the runs do not fit.
pub fn check_memory(device: &str, configs: &[&RunConfig]) -> Result<()> {
    if !matches!(device, "auto" | "cpu" | "vulkan-cpu") {
        return Ok(());
    }
    let needed = RunConfig::memory_in_turns(configs);
    let Some(available) = available().filter(|available| needed > *available) else {
        return Ok(());
    };
    let largest = |figure: fn(&RunConfig) -> u64| {
        let largest = configs.iter().map(|config| figure(config)).max();
        show(largest.unwrap_or(0) as f64, 0)
    };
    Err(usage(format!(
        "the configuration needs about {} and this machine has {} available ({} parameters, {} tokens a \
         step); make train.batch, train.context or the preset smaller",
        bytes(needed),
        bytes(available),
        largest(|config| config.parameters()),
        largest(|config| config.tokens_per_step() as u64),
    )))
}

/// Returns the available memory of the system or the limit of the container, whichever is smaller, in bytes. `None` if neither is known.
fn available() -> Option<u64> {
    let system_memory = if cfg!(target_os = "macos") {
        let output = std::process::Command::new("sysctl")
            .args(["-n", "hw.memsize"])
            .output()
            .ok()?;
        String::from_utf8_lossy(&output.stdout).trim().parse().ok()
    } else {
        let meminfo = |key: &str| kilobytes("/proc/meminfo", key);
        meminfo("MemAvailable").or_else(|| meminfo("MemTotal"))
    };
    let container_limit = [
        "/sys/fs/cgroup/memory.max",
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
    ]
    .into_iter()
    .find_map(|path| system(path).ok()?.trim().parse::<u64>().ok());
    system_memory.into_iter().chain(container_limit).min()
}
