//! What `bench` takes, the checks that one flag alone cannot make, and the defaults of each kind of measurement.

use std::collections::HashSet;
use std::fmt::Display;
use std::hash::Hash;
use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, ValueEnum};

use crate::config::{Preset, nearest};
use crate::measure::machine;
use crate::out::usage;

/// The versions known by name.
pub const VERSIONS: &[&str] = &["v1", "v2", "v3", "v4"];
/// Values a sweep may have; each is a run.
const MOST_VALUES: usize = 64;

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
        for assignment in &self.sets {
            let key = assignment.split('=').next().unwrap_or_default().trim();
            let swept = self
                .sweep
                .as_ref()
                .map(|s| format!("train.{}", s.axis.name()));
            if key == "preset" {
                return Err(usage(format!(
                    "--set {assignment}: sizes are chosen with --presets"
                )));
            }
            if swept.is_some_and(|swept| swept == key) {
                return Err(usage(format!(
                    "--set {assignment}: --sweep gives this key its values; leave one out"
                )));
            }
        }
        Ok(())
    }

    fn alone(&self) -> bool {
        self.ablate.is_some() || self.sweep.is_some()
    }

    pub fn presets(&self) -> Vec<Preset> {
        match (self.presets.is_empty(), self.alone()) {
            (false, _) => self.presets.clone(),
            (true, true) => vec![Preset::Tiny],
            (true, false) => vec![Preset::Tiny, Preset::Small],
        }
    }

    pub fn versions(&self) -> Vec<String> {
        let default: &[&str] = if self.sweep.is_some() {
            &["v1", "v3"]
        } else {
            VERSIONS
        };
        or(&self.versions, default)
    }

    pub fn devices(&self) -> Vec<String> {
        let default: &[&str] = if self.alone() {
            &["auto"]
        } else {
            &["cpu", "gpu"]
        };
        or(&self.devices, default)
    }

    pub fn rounds(&self) -> u32 {
        self.rounds
            .unwrap_or(if self.sweep.is_some() { 1 } else { 3 })
    }
}

fn or(given: &[String], default: &[&str]) -> Vec<String> {
    if given.is_empty() {
        default.iter().map(|&name| name.to_owned()).collect()
    } else {
        given.to_vec()
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
    if VERSIONS.contains(&text) {
        Ok(text.to_owned())
    } else {
        Err(unknown("version", text, VERSIONS))
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
        _ => Err(
            "it is a number above 0; 0.95 lets a version lose 5 % of its speed at most".to_owned(),
        ),
    }
}

fn sweep(text: &str) -> Result<Sweep, String> {
    let Some((key, list)) = text.split_once('=') else {
        let near = nearest(text, Axis::NAMES.into_iter());
        return Err(format!("it has no values; write `{near}=4,8,16`"));
    };
    let axis = match key.strip_prefix("train.").unwrap_or(key) {
        "batch" => Axis::Batch,
        "context" => Axis::Context,
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
                    "`{}` is no whole number; write `{}=4,8,16`",
                    word.escape_debug(),
                    axis.name()
                ));
            }
        }
    }
    if values.len() > MOST_VALUES {
        return Err(format!(
            "{} values; the limit is {MOST_VALUES}",
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
            ("batch=4,x", "`x` is no whole number"),
            ("batch=", "`` is no whole number"),
            ("batch=-1", "`-1` is no whole number"),
        ] {
            let error = sweep(text).expect_err(text);
            assert!(error.contains(says), "{text}: {error}");
        }
    }

    #[test]
    fn names_and_ratios_are_checked() {
        assert!(
            version("v5")
                .expect_err("unknown")
                .contains("v1, v2, v3, v4")
        );
        assert!(
            preset("tinny")
                .expect_err("unknown")
                .contains("did you mean `tiny`")
        );
        assert!(ratio("0").is_err() && ratio("NaN").is_err() && ratio("inf").is_err());
        assert!(
            once("--versions", &["v1", "v1"])
                .expect_err("twice")
                .to_string()
                .contains("v1 is there twice")
        );
    }
}
