//! The arguments of `bench`, and the rows that follow from them. Flags of earlier versions are refused with their new form.

use std::collections::HashSet;
use std::fmt::Display;
use std::hash::Hash;
use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use crate::cli::values::{devices, positive, preset, unknown, versions};
use crate::course::config_file::set;
use crate::out::usage;
use protocol::config::{Knob, Preset, RunConfig, VERSIONS};

#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Versions: v1 plain, v2 fused projections, v3 own kernels, v4 v2 with flash attention; `+KEY=VALUE` changes a key of one.
Every run has an engine of its own; versions alternate in rounds (v1 v2 v3 v4, v4 v3 v2 v1, …), so that drift
favours none. Rounds do not resolve a difference of 2 %; with --pairs every version alternates with the first one step by step, in one
process. Exit code 1: a run broke off, or a version got slower than the baseline allows; 3: no device was here.

Examples:
  perflings bench --presets tiny --devices cpu
  perflings bench --devices gpu --markdown --output report.md
  perflings bench --json --output before.json
  perflings bench --baseline before.json --min-ratio 0.95
  perflings bench --versions v1+train.batch=4,v1+train.batch=8,v1+train.batch=16 --presets tiny
  perflings bench --versions v1 --knobs --pairs 30 --presets small --devices gpu")]
pub(crate) struct BenchArgs {
    /// Model sizes: tiny, small, medium
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = preset(), default_values = ["tiny", "small"])]
    pub presets: Vec<Preset>,
    /// Versions: v1 to v4, and with a key changed v3+model.norm=composed or v1+train.batch=16
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = versions(), hide_possible_values = true, default_values = ["v1", "v2", "v3", "v4"])]
    pub versions: Vec<String>,
    /// Also measure each version with one knob changed: turned on where it is plain, made plain where it is on
    #[arg(long)]
    pub knobs: bool,
    /// Devices: auto, cpu, gpu, gpu:N, vulkan-cpu
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = devices(), hide_possible_values = true, default_values = ["cpu", "gpu"])]
    pub devices: Vec<String>,
    /// Steps of each run, warm-up included
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub steps: u64,
    /// Runs of each version
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: u32,
    /// Measure every version in N pairs of steps with the first version, itself included; 0 continues until the verdict is clear
    #[arg(long, value_name = "N", conflicts_with_all = ["steps", "rounds", "baseline"])]
    pub pairs: Option<u32>,
    /// Change one key in every version; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub sets: Vec<String>,
    /// Print the result as one JSON object, which --baseline reads
    #[arg(long, conflicts_with = "markdown")]
    pub json: bool,
    /// Print the result as a Markdown report
    #[arg(long)]
    pub markdown: bool,
    /// Write the result here instead of to stdout
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Compare with an earlier result (JSON); exit code 1 when a version got slower
    #[arg(long, value_name = "FILE")]
    pub baseline: Option<PathBuf>,
    /// Call a version slower if its speed is clearly below this share of the baseline's: 0.95 allows a loss of 5 % [default: 0.95]
    #[arg(long, value_name = "R", requires = "baseline", allow_negative_numbers = true, value_parser = positive)]
    pub min_ratio: Option<f64>,
    /// A command that runs the engine elsewhere, such as `ssh host perflings engine`
    #[arg(long, value_name = "CMD")]
    pub engine: Option<String>,
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true)]
    ablate: Option<Option<String>>,
    #[arg(long, hide = true)]
    sweep: Option<String>,
}

impl BenchArgs {
    /// Refuses a value that is given twice, and flags of earlier versions; the error says what to write instead.
    pub(crate) fn check(&self) -> Result<()> {
        if self.ablate.is_some() {
            return Err(usage(
                "`bench --ablate` is now `bench --versions v1 --knobs --pairs 30`; \
                 and `--versions v3+model.qkv=fused --knobs --pairs 30`, \
                 where all knobs are on and one is turned off at a time",
            ));
        }
        if let Some(values) = &self.sweep {
            return Err(usage(format!(
                "`bench --sweep {values}` is now a list of versions: `--sweep batch=4,8` \
                 is `bench --versions v1+train.batch=4,v1+train.batch=8`"
            )));
        }
        refuse_repeats("--presets", &self.presets)?;
        refuse_repeats("--versions", &self.versions)?;
        refuse_repeats("--devices", &self.devices)
    }

    /// Returns the names and the configurations that are measured at a preset, such as `v1` and `v1+model.norm=fused`.
    pub(crate) fn rows(&self, preset: Preset) -> Result<Vec<(String, RunConfig)>> {
        let mut rows = Vec::new();
        for version in &self.versions {
            let config = self.configuration(version, preset)?;
            rows.push((version.clone(), config.clone()));
            if !self.knobs {
                continue;
            }
            for knob in Knob::with_fast_version() {
                let is_plain = knob.plain() == Some(&*(knob.get)(&config));
                let other = if is_plain { knob.fast } else { knob.plain() };
                let name = format!("{version}+{}={}", knob.path, other.unwrap_or_default());
                let config = self.configuration(&name, preset)?;
                rows.push((name, config));
            }
        }
        Ok(rows)
    }

    /// Returns a version at a preset, with the changes of `--set` and then those in its name.
    fn configuration(&self, name: &str, preset: Preset) -> Result<RunConfig> {
        let mut words = name.split('+');
        let version = words.next().unwrap_or_default();
        let mut config = RunConfig::version(version).ok_or_else(|| {
            let mut known = VERSIONS.iter().map(|(name, _)| *name);
            let what = unknown("version", version, &mut known);
            usage(format!("--versions: {what}"))
        })?;
        config.set_preset(preset);
        let of_all_versions = self.sets.iter().map(|change| ("--set", change.as_str()));
        let of_this_version = words.map(|change| ("--versions", change));
        for (flag, change) in of_all_versions.chain(of_this_version) {
            let key = change.split('=').next().unwrap_or_default().trim();
            let changed = if key == "preset" {
                Err("sizes are chosen with --presets".to_owned())
            } else {
                set(&mut config, change)
            };
            changed.map_err(|why| usage(format!("{flag} {change}: {why}")))?;
        }
        match config.problems().first() {
            Some(problem) => Err(usage(format!("{name}: {}", problem.message))),
            None => Ok(config),
        }
    }
}

fn refuse_repeats<T: Display + Eq + Hash>(flag: &str, list: &[T]) -> Result<()> {
    let mut seen = HashSet::new();
    match list.iter().find(|item| !seen.insert(*item)) {
        Some(twice) => Err(usage(format!("{flag}: {twice} is given twice"))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Bench {
        #[command(flatten)]
        args: BenchArgs,
    }

    fn args(line: &str) -> BenchArgs {
        let words = std::iter::once("bench").chain(line.split_whitespace());
        Bench::try_parse_from(words).expect("is right").args
    }

    #[test]
    fn rows_are_the_versions_and_with_knobs_each_knob_changed() {
        let all = args("");
        assert_eq!(all.presets, [Preset::Tiny, Preset::Small]);
        assert_eq!(all.devices, ["cpu", "gpu"]);
        let names = |args: &BenchArgs| -> Vec<String> {
            let rows = args.rows(Preset::Small).expect("rows");
            rows.into_iter().map(|(name, _)| name).collect()
        };
        assert_eq!(names(&all), ["v1", "v2", "v3", "v4"]);
        // A change of one version is stronger than one of all.
        let batches = args("--set train.batch=2 --versions v1,v3+train.batch=16");
        let rows = batches.rows(Preset::Small).expect("rows");
        let found: Vec<(Preset, usize)> = rows
            .iter()
            .map(|(_, config)| (config.preset, config.train.batch))
            .collect();
        assert_eq!(found, [(Preset::Small, 2), (Preset::Small, 16)]);

        let count = Knob::with_fast_version().count();
        let full = "v3+model.qkv=fused";
        for (version, last) in [
            ("v1", "v1+train.optimizer=fused"),
            (full, "v3+model.qkv=fused+train.optimizer=library"),
        ] {
            let knobs = args(&format!("--knobs --versions {version}"));
            let rows = knobs.rows(Preset::Tiny).expect("rows");
            assert_eq!(rows.len(), 1 + count);
            let (_, first) = &rows[0];
            assert!(
                rows[1..]
                    .iter()
                    .all(|(_, config)| first.differences(config).len() == 1)
            );
            assert_eq!(rows[count].0, last);
        }
    }
}
