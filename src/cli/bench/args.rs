//! What `bench` takes, the checks that one flag alone cannot make, and the defaults of each kind of measurement.

use std::collections::HashSet;
use std::fmt::Display;
use std::hash::Hash;
use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, ValueEnum};

use crate::config::{Preset, VERSIONS, nearest};
use crate::measure::machine;
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
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = preset)]
    pub presets: Vec<Preset>,
    /// Versions: v1 to v4 [default: all; with --sweep: v1,v3]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = version)]
    pub versions: Vec<String>,
    /// Devices: auto, cpu, gpu, gpu:N, vulkan-cpu [default: cpu,gpu; with --ablate or --sweep: auto]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = machine::device_name)]
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
    /// Slower is a speed surely below this share of the baseline's [default: 0.95]
    #[arg(long, value_name = "R", requires = "baseline", allow_negative_numbers = true, value_parser = ratio)]
    pub min_ratio: Option<f64>,
    /// Measure each fusion knob alone, in pairs (from plain, and from everything on); `full`: all 128 combinations
    #[arg(long, value_enum, value_name = "EXTENT", num_args = 0..=1, require_equals = true, default_missing_value = "each", conflicts_with_all = ["sweep", "versions"])]
    pub ablate: Option<Extent>,
    /// Pairs of steps in each comparison of --ablate; 0 goes on until it is clear
    #[arg(long, value_name = "N", default_value_t = 30, requires = "ablate")]
    pub pairs: u32,
    /// One run for each value: batch=4,8,16 or context=64,128,256,512
    #[arg(long, value_name = "KEY=LIST", value_parser = sweep)]
    pub sweep: Option<Sweep>,
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

/// What a sweep varies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Axis {
    Batch,
    Context,
}

impl Axis {
    const NAMES: [&str; 2] = ["batch", "context"];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Batch => "batch",
            Self::Context => "context",
        }
    }

    /// The key of the configuration.
    pub const fn path(self) -> &'static str {
        match self {
            Self::Batch => "train.batch",
            Self::Context => "train.context",
        }
    }

    /// Degree of the polynomial that memory follows.
    pub const fn degree(self) -> usize {
        match self {
            Self::Batch => 1,
            Self::Context => 2,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sweep {
    pub axis: Axis,
    /// Ascending, each once.
    pub values: Vec<u64>,
}

impl BenchArgs {
    /// What is wrong with the flags together.
    pub fn check(&self) -> Result<()> {
        once("--presets", &self.presets)?;
        once("--versions", &self.versions)?;
        once("--devices", &self.devices)?;
        let swept = self.sweep.as_ref().map(|sweep| sweep.axis.path());
        for assignment in &self.sets {
            let key = assignment.split('=').next().unwrap_or_default().trim();
            let instead = match key {
                "preset" => "sizes are chosen with --presets",
                key if swept == Some(key) => "--sweep gives this key its values; leave one out",
                _ => continue,
            };
            return Err(usage(format!("--set {assignment}: {instead}")));
        }
        Ok(())
    }

    /// What was asked for, or the default of this kind of measurement.
    fn or<T: Clone>(given: &[T], default: Vec<T>) -> Vec<T> {
        if given.is_empty() {
            default
        } else {
            given.to_vec()
        }
    }

    fn is_matrix(&self) -> bool {
        self.ablate.is_none() && self.sweep.is_none()
    }

    pub fn presets(&self) -> Vec<Preset> {
        let mut default = vec![Preset::Tiny, Preset::Small];
        default.truncate(if self.is_matrix() { 2 } else { 1 });
        Self::or(&self.presets, default)
    }

    pub fn versions(&self) -> Vec<String> {
        let known = VERSIONS.iter().map(|(name, _)| (*name).to_owned());
        let swept = |name: &String| self.sweep.is_none() || name == "v1" || name == "v3";
        Self::or(&self.versions, known.filter(swept).collect())
    }

    pub fn devices(&self) -> Vec<String> {
        let default: &[&str] = match self.is_matrix() {
            true => &["cpu", "gpu"],
            false => &["auto"],
        };
        let default = default.iter().map(|&name| name.to_owned());
        Self::or(&self.devices, default.collect())
    }

    pub fn rounds(&self) -> u32 {
        let default = if self.sweep.is_some() { 1 } else { 3 };
        self.rounds.unwrap_or(default)
    }
}

fn once<T: Display + Eq + Hash>(flag: &str, list: &[T]) -> Result<()> {
    let mut seen = HashSet::new();
    match list.iter().find(|item| !seen.insert(*item)) {
        Some(twice) => Err(usage(format!("{flag}: {twice} is there twice"))),
        None => Ok(()),
    }
}

fn preset(text: &str) -> Result<Preset, String> {
    Preset::parse(text).ok_or_else(|| unknown("preset", text, Preset::NAMES))
}

fn version(text: &str) -> Result<String, String> {
    let names: Vec<&str> = VERSIONS.iter().map(|(name, _)| *name).collect();
    if names.contains(&text) {
        Ok(text.to_owned())
    } else {
        Err(unknown("version", text, &names))
    }
}

fn unknown(what: &str, text: &str, names: &[&str]) -> String {
    let near = nearest(text, names.iter().copied());
    format!(
        "unknown {what}; did you mean `{near}`? There are {}",
        names.join(", ")
    )
}

fn ratio(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(r) if r.is_finite() && r > 0.0 => Ok(r),
        _ => {
            Err("write a number above 0; with 0.95 a version may lose 5 % of its speed".to_owned())
        }
    }
}

fn sweep(text: &str) -> Result<Sweep, String> {
    let Some((key, list)) = text.split_once('=') else {
        let near = nearest(text, Axis::NAMES.into_iter());
        return Err(format!("it has no values; write `{near}=4,8,16`"));
    };
    let axis = match key {
        "batch" | "train.batch" => Axis::Batch,
        "context" | "train.context" => Axis::Context,
        other => {
            let near = nearest(other, Axis::NAMES.into_iter());
            return Err(format!(
                "`{}` cannot be swept; did you mean `{near}={list}`? It is batch or context",
                other.escape_debug()
            ));
        }
    };
    let mut values = Vec::new();
    for word in list.split(',').map(str::trim) {
        match word.parse::<u64>() {
            Ok(n) if n > 0 && !values.contains(&n) => values.push(n),
            Ok(0) => return Err(format!("{} 0 trains nothing; write 1 or more", axis.name())),
            Ok(n) => return Err(format!("{n} is there twice")),
            Err(_) => {
                return Err(format!(
                    "`{}` is not a whole number; write `{}=4,8,16`",
                    word.escape_debug(),
                    axis.name()
                ));
            }
        }
    }
    if values.len() > MAX_VALUES {
        return Err(format!(
            "{} values; the limit is {MAX_VALUES}",
            values.len()
        ));
    }
    values.sort_unstable();
    Ok(Sweep { axis, values })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sweeps_are_read_sorted_and_say_what_is_wrong() {
        let read = sweep("context=256,64,128").expect("is right");
        assert_eq!(
            (read.axis, read.values.as_slice()),
            (Axis::Context, &[64, 128, 256][..])
        );
        for (text, says) in [
            ("batch", "write `batch=4,8,16`"),
            ("bacth=4", "did you mean `batch=4`"),
            ("batch=4,0", "trains nothing"),
            ("batch=4,4", "4 is there twice"),
            ("batch=4,x", "`x` is not a whole number"),
            ("batch=", "`` is not a whole number"),
            ("batch=-1", "`-1` is not a whole number"),
        ] {
            let error = sweep(text).expect_err(text);
            assert!(error.contains(says), "{text}: {error}");
        }
    }

    #[test]
    fn a_ratio_is_a_number_above_0() {
        assert_eq!(ratio("0.95"), Ok(0.95));
        assert!(ratio("0").is_err() && ratio("NaN").is_err() && ratio("inf").is_err());
    }
}
