//! Compares the memory of this machine with the needs of a configuration.

use anyhow::Result;

use crate::out::usage;
use protocol::config::RunConfig;
use protocol::machine::{kilobytes, system};
use protocol::units::{bytes, show};

/// Returns an error if the runs of these configurations need more memory than this machine has available. This checks only devices that
/// use the host's memory; the engine checks the others.
pub fn check_memory(device: &str, configs: &[&RunConfig]) -> Result<()> {
    if !matches!(device, "auto" | "cpu" | "vulkan-cpu") {
        return Ok(());
    }
    let need = RunConfig::memory_in_turns(configs);
    let most = |figure: fn(&RunConfig) -> u64| {
        let most = configs.iter().map(|config| figure(config)).max();
        show(most.unwrap_or(0) as f64, 0)
    };
    match available() {
        Some(have) if need > have => Err(usage(format!(
            "the configuration needs about {} and this machine has {} available ({} parameters, {} tokens a step); \
             make train.batch, train.context or the preset smaller",
            bytes(need),
            bytes(have),
            most(|config| config.parameters()),
            most(|config| config.tokens_per_step() as u64),
        ))),
        _ => Ok(()),
    }
}

/// Returns the bytes that the system calls available, at most the container's limit. `None` if neither is known.
fn available() -> Option<u64> {
    let of_system = if cfg!(target_os = "macos") {
        let output = std::process::Command::new("sysctl")
            .args(["-n", "hw.memsize"])
            .output()
            .ok()?;
        String::from_utf8_lossy(&output.stdout).trim().parse().ok()
    } else {
        let meminfo = |key: &str| kilobytes("/proc/meminfo", key);
        meminfo("MemAvailable").or_else(|| meminfo("MemTotal"))
    };
    let container = [
        "/sys/fs/cgroup/memory.max",
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
    ]
    .into_iter()
    .find_map(|path| system(path).ok()?.trim().parse::<u64>().ok());
    [of_system, container].into_iter().flatten().min()
}
