//! What `bench` takes, the checks that one flag alone cannot make, and the defaults of each kind of measurement.

use std::collections::HashSet;
use std::fmt::Display;
use std::hash::Hash;
use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, ValueEnum};

use crate::cli::values::{devices, positive, preset, version};
use crate::config::{Preset, VERSIONS, nearest};
use crate::measure::report::SweepAxis;
use crate::out::usage;

/// Values a sweep may have; each is a run.
const MAX_VALUES: usize = 64;

#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Versions: v1 plain, v2 fused projections, v3 own kernels, v4 v2 with flash attention.
Every run has an engine of its own; versions alternate in rounds (v1 v2 v3 v4, v4 v3 v2 v1, …), so that drift
favours none. Exit code 1: a run broke off, or a version got slower than the baseline allows; 3: no device was here.

Examples:
  perflings bench --presets tiny --devices cpu
  perflings bench --devices gpu --markdown --output report.md
  perflings bench --json --output before.json
  perflings bench --baseline before.json --min-ratio 0.95
  perflings bench --ablate --presets small --devices gpu
  perflings bench --sweep context=64,128,256,512 --versions v1,v3")]
pub struct BenchArgs {
    /// Model sizes: tiny, small, medium [default: tiny,small; with --ablate or --sweep: tiny]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = preset())]
    pub presets: Vec<Preset>,
    /// Versions: v1 to v4 [default: all; with --sweep: v1,v3]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = version())]
    pub versions: Vec<String>,
    /// Devices: auto, cpu, gpu, gpu:N, vulkan-cpu [default: cpu,gpu; with --ablate or --sweep: auto]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = devices(), hide_possible_values = true)]
    pub devices: Vec<String>,
    /// Steps of each run, warm-up included
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub steps: u64,
    /// Runs of each version [default: 3; with --sweep: 1]
    #[arg(long, value_name = "N", conflicts_with = "ablate", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: Option<u32>,
    /// Change one key in every version; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub sets: Vec<String>,
    /// The result as one JSON object, which --baseline reads
    #[arg(long, conflicts_with = "markdown")]
    pub json: bool,
    /// The result as a Markdown report
    #[arg(long)]
    pub markdown: bool,
    /// Write the result here instead of to stdout
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Compare with an earlier result (JSON); exit code 1 when a version got slower
    #[arg(long, value_name = "FILE", conflicts_with_all = ["ablate", "sweep"])]
    pub baseline: Option<PathBuf>,
    /// Slower means a speed that is clearly below this share of the baseline's: 0.95 allows a loss of 5 % [default: 0.95]
    #[arg(long, value_name = "R", requires = "baseline", allow_negative_numbers = true, value_parser = positive)]
    pub min_ratio: Option<f64>,
    /// Measure each fusion knob alone, in pairs (from plain, and from everything on); `full`: all 128 combinations
    #[arg(long, value_enum, value_name = "EXTENT", num_args = 0..=1, require_equals = true, default_missing_value = "each", conflicts_with_all = ["sweep", "versions"])]
    pub ablate: Option<Extent>,
    /// Pairs of steps in each comparison of --ablate; 0 goes on until it is clear
    #[arg(long, value_name = "N", default_value_t = 30, requires = "ablate")]
    pub pairs: u32,
    /// One run for each value: batch=4,8,16 or context=64,128,256,512
    #[arg(long, value_name = "KEY=LIST", value_parser = sweep)]
    pub sweep: Option<BenchSweep>,
    /// A command that runs the engine elsewhere, such as `ssh host perflings engine`
    #[arg(long, value_name = "CMD")]
    pub engine: Option<String>,
}

/// How much of the ablation is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Extent {
    /// Each knob alone, all and none
    Each,
    /// Every combination
    Full,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BenchSweep {
    pub axis: SweepAxis,
    /// Ascending, each once.
    pub values: Vec<u64>,
}

impl BenchSweep {
    /// The key of the configuration.
    pub fn path(&self) -> String {
        format!("train.{}", self.axis.name())
    }
}

impl BenchArgs {
    /// What is wrong with the flags together.
    pub fn check(&self) -> Result<()> {
        once("--presets", &self.presets)?;
        once("--versions", &self.versions)?;
        once("--devices", &self.devices)?;
        let swept = self.sweep.as_ref().map(BenchSweep::path);
        for assignment in &self.sets {
            let key = assignment.split('=').next().unwrap_or_default().trim();
            let instead = match key {
                "preset" => "sizes are chosen with --presets",
                key if swept.as_deref() == Some(key) => {
                    "--sweep gives this key its values; leave out one of the two"
                }
                _ => continue,
            };
            return Err(usage(format!("--set {assignment}: {instead}")));
        }
        Ok(())
    }

    fn is_matrix(&self) -> bool {
        self.ablate.is_none() && self.sweep.is_none()
    }

    pub fn presets(&self) -> Vec<Preset> {
        match (self.presets.is_empty(), self.is_matrix()) {
            (false, _) => self.presets.clone(),
            (true, true) => vec![Preset::Tiny, Preset::Small],
            (true, false) => vec![Preset::Tiny],
        }
    }

    pub fn versions(&self) -> Vec<String> {
        match (self.versions.is_empty(), &self.sweep) {
            (false, _) => self.versions.clone(),
            (true, None) => VERSIONS.iter().map(|(name, _)| (*name).into()).collect(),
            (true, Some(_)) => vec!["v1".to_owned(), "v3".to_owned()],
        }
    }

    pub fn devices(&self) -> Vec<String> {
        match (self.devices.is_empty(), self.is_matrix()) {
            (false, _) => self.devices.clone(),
            (true, true) => vec!["cpu".to_owned(), "gpu".to_owned()],
            (true, false) => vec!["auto".to_owned()],
        }
    }

    pub fn rounds(&self) -> u32 {
        let default = if self.is_matrix() { 3 } else { 1 };
        self.rounds.unwrap_or(default)
    }
}

fn once<T: Display + Eq + Hash>(flag: &str, list: &[T]) -> Result<()> {
    let mut seen = HashSet::new();
    match list.iter().find(|item| !seen.insert(*item)) {
        Some(twice) => Err(usage(format!("{flag}: {twice} is given twice"))),
        None => Ok(()),
    }
}

fn sweep(text: &str) -> Result<BenchSweep, String> {
    let (key, list) = text.split_once('=').unwrap_or((text, ""));
    let axis = match key {
        "batch" | "train.batch" => SweepAxis::Batch,
        "context" | "train.context" => SweepAxis::Context,
        other => {
            let near = nearest(other, ["batch", "context"].into_iter());
            let list = if list.is_empty() { "4,8,16" } else { list };
            return Err(format!(
                "did you mean `{near}={list}`? It is batch or context"
            ));
        }
    };
    let number = |word: &str| {
        let number = word.trim().parse().ok().filter(|n: &u64| *n > 0);
        let (word, name) = (crate::sanitize::line(word), axis.name());
        number
            .ok_or_else(|| format!("`{word}` is not a whole number above 0; write `{name}=4,8,16`"))
    };
    let mut values = list.split(',').map(number).collect::<Result<Vec<_>, _>>()?;
    values.sort_unstable();
    match values.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(twice) => Err(format!("{} is given twice", twice[0])),
        None if values.len() > MAX_VALUES => Err(format!(
            "{} values; the limit is {MAX_VALUES}",
            values.len()
        )),
        None => Ok(BenchSweep { axis, values }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sweeps_are_read_sorted_and_say_what_is_wrong() {
        let read = sweep("context=256,64,128").expect("is right");
        assert_eq!(
            (read.axis, read.values),
            (SweepAxis::Context, vec![64, 128, 256])
        );
        for (text, says) in [
            ("batch", "write `batch=4,8,16`"),
            ("bacth=4", "did you mean `batch=4`"),
            ("batch=4,0", "`0` is not a whole number above 0"),
            ("batch=4,4", "4 is given twice"),
            ("batch=4,x", "`x` is not a whole number"),
            ("batch=-1", "`-1` is not a whole number"),
        ] {
            let error = sweep(text).expect_err(text);
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
