//! What this machine has: memory against what a configuration needs.

use anyhow::Result;

use crate::config::RunConfig;
use crate::out::usage;
use crate::units::{bytes, show};

/// Refuses configurations whose runs need more memory than this machine can give. Only devices that live in the
/// host's memory are judged here; the engine judges the others.
pub fn check_memory(device: &str, configs: &[&RunConfig]) -> Result<()> {
    if !matches!(device, "auto" | "cpu" | "vulkan-cpu") {
        return Ok(());
    }
    let need = needed(configs);
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

/// Two runs hold two sets of parameters, gradients and moments, and the larger of their activations.
fn needed(configs: &[&RunConfig]) -> u64 {
    let state = |c: &&RunConfig| 16 * c.parameters();
    let activations = configs
        .iter()
        .map(|c| c.memory_estimate().saturating_sub(state(c)))
        .max();
    configs
        .iter()
        .map(state)
        .sum::<u64>()
        .saturating_add(activations.unwrap_or(0))
}

/// Bytes that can be had now: what the system calls available, within a container's limit.
fn available() -> Option<u64> {
    let text = |path: &str| crate::files::system(path).ok();
    let system = if cfg!(target_os = "macos") {
        let said = std::process::Command::new("sysctl")
            .args(["-n", "hw.memsize"])
            .output()
            .ok()?;
        String::from_utf8_lossy(&said.stdout).trim().parse().ok()
    } else {
        let info = text("/proc/meminfo")?;
        meminfo(&info, "MemAvailable").or_else(|| meminfo(&info, "MemTotal"))
    };
    let container = [
        "/sys/fs/cgroup/memory.max",
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
    ]
    .into_iter()
    .find_map(|path| text(path)?.trim().parse::<u64>().ok());
    [system, container].into_iter().flatten().min()
}

fn meminfo(text: &str, key: &str) -> Option<u64> {
    let mut lines = text.lines();
    let line = lines.find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
    let kib = line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Preset;

    #[test]
    fn a_pair_holds_two_sets_of_parameters_and_one_of_activations() {
        let tiny = RunConfig::preset(Preset::Tiny);
        assert_eq!(needed(&[&tiny]), tiny.memory_estimate());
        assert_eq!(
            needed(&[&tiny, &tiny]),
            tiny.memory_estimate() + 16 * tiny.parameters()
        );
    }

    #[test]
    fn memory_is_read() {
        assert_eq!(
            meminfo("MemTotal:  24 kB\nMemAvailable:   16 kB\n", "MemAvailable"),
            Some(16 * 1024)
        );
    }
}
