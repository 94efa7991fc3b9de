//! What is to be run, and in which order: versions of one preset and device take turns, forwards and backwards.

use std::ops::Range;

use anyhow::Result;

use super::BenchArgs;
use super::args::Axis;
use crate::cli::variant::version_of;
use crate::config::file::set;
use crate::config::{Preset, RunConfig};
use crate::out::usage;

/// One configuration on one device.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// Jobs of one group are measured in turns.
    pub group: usize,
    pub device: String,
    pub preset: Preset,
    pub version: String,
    /// What a sweep gave its key.
    pub value: Option<u64>,
    pub config: RunConfig,
}

impl Job {
    /// How messages call it.
    pub fn name(&self) -> String {
        let value = self.value.map(|v| format!(" {v}")).unwrap_or_default();
        format!("{} {}{value} on {}", self.preset, self.version, self.device)
    }
}

/// Every device × preset × version.
pub fn matrix(args: &BenchArgs) -> Result<Vec<Job>> {
    let mut jobs = Vec::new();
    let mut group = 0;
    for device in args.devices() {
        for preset in args.presets() {
            for version in args.versions() {
                let config = version_at(args, &version, preset)?;
                jobs.push(Job {
                    group,
                    device: device.clone(),
                    preset,
                    version,
                    value: None,
                    config,
                });
            }
            group += 1;
        }
    }
    Ok(jobs)
}

/// Every device × preset × version × value; the values of one version are measured in turns.
pub fn swept(args: &BenchArgs, axis: Axis, values: &[u64]) -> Result<Vec<Job>> {
    let mut jobs = Vec::new();
    for job in matrix(args)? {
        let group = jobs.len();
        for &value in values {
            let mut config = job.config.clone();
            let assignment = format!("train.{}={value}", axis.name());
            set(&mut config, &assignment).map_err(|why| usage(format!("--sweep: {why}")))?;
            refuse_impossible(&config)?;
            jobs.push(Job {
                group,
                value: Some(value),
                config,
                ..job.clone()
            });
        }
    }
    Ok(jobs)
}

/// A version at a preset, with what `--set` changes.
pub fn version_at(args: &BenchArgs, version: &str, preset: Preset) -> Result<RunConfig> {
    let mut config = version_of(version)
        .ok_or_else(|| usage(format!("unknown version `{}`", version.escape_debug())))?;
    config.set_preset(preset);
    changed(args, config)
}

/// The configuration with what `--set` changes.
pub fn changed(args: &BenchArgs, mut config: RunConfig) -> Result<RunConfig> {
    for assignment in &args.sets {
        set(&mut config, assignment).map_err(|why| usage(format!("--set {assignment}: {why}")))?;
    }
    refuse_impossible(&config)?;
    Ok(config)
}

fn refuse_impossible(config: &RunConfig) -> Result<()> {
    match config.problems().first() {
        Some(problem) => Err(usage(problem.what.clone())),
        None => Ok(()),
    }
}

/// The stretches of jobs that belong together.
pub fn groups(jobs: &[Job]) -> Vec<Range<usize>> {
    let mut start = 0;
    jobs.chunk_by(|a, b| a.group == b.group)
        .map(|chunk| {
            let range = start..start + chunk.len();
            start = range.end;
            range
        })
        .collect()
}

/// The order of one round: every second one backwards, so that a slow drift weighs on all alike.
pub fn order(group: Range<usize>, round: u32) -> Vec<usize> {
    if round.is_multiple_of(2) {
        group.collect()
    } else {
        group.rev().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_run_forwards_and_backwards() {
        let all: Vec<usize> = (0..3).flat_map(|round| order(4..7, round)).collect();
        assert_eq!(all, [4, 5, 6, 6, 5, 4, 4, 5, 6]);
    }
}
