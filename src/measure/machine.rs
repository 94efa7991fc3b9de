//! What this machine has: memory against what a configuration needs.

use anyhow::Result;

use crate::out::usage;
use protocol::config::RunConfig;
use protocol::machine::{kilobytes, system};
use protocol::units::{bytes, show};

/// Refuses configurations whose runs need more memory than this machine can give. Only devices that live in the
/// host's memory are judged here; the engine judges the others.
pub fn check_memory(device: &str, configs: &[&RunConfig]) -> Result<()> {
    if !matches!(device, "auto" | "cpu" | "vulkan-cpu") {
        return Ok(());
    }
    let need = RunConfig::memory_in_turns(configs);
    let most = |of: fn(&RunConfig) -> u64| {
        let most = configs.iter().map(|c| of(c)).max().unwrap_or(0);
        show(most as f64, 0)
    };
    match available() {
        Some(have) if need > have => Err(usage(format!(
            "the configuration needs about {} and this machine has {} available ({} parameters, {} tokens a step); \
             make train.batch, train.context or the preset smaller",
            bytes(need),
            bytes(have),
            most(|c| c.parameters()),
            most(|c| c.tokens_per_step() as u64),
        ))),
        _ => Ok(()),
    }
}

/// Bytes that can be had now: what the system calls available, within a container's limit.
fn available() -> Option<u64> {
    let of_system = if cfg!(target_os = "macos") {
        let said = std::process::Command::new("sysctl")
            .args(["-n", "hw.memsize"])
            .output()
            .ok()?;
        String::from_utf8_lossy(&said.stdout).trim().parse().ok()
    } else {
        let of = |key: &str| kilobytes("/proc/meminfo", key);
        of("MemAvailable").or_else(|| of("MemTotal"))
    };
    let container = [
        "/sys/fs/cgroup/memory.max",
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
    ]
    .into_iter()
    .find_map(|path| system(path).ok()?.trim().parse::<u64>().ok());
    [of_system, container].into_iter().flatten().min()
}
