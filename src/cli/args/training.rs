//! The arguments of the commands that train: the workshop itself, `mystery`, `run` and `compare`.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

use super::{ChangeArgs, CourseArgs, EngineArgs};
use crate::app::ThemeName;
use crate::cli::values::{preset, seed, steps, theme};
use protocol::config::Preset;

#[derive(Args, Clone, Debug, Default)]
pub(crate) struct WorkshopArgs {
    /// Start at this stage: its number or id
    #[arg(long, value_name = "N", value_hint = ValueHint::Other)]
    pub stage: Option<String>,
    /// Model size for every stage
    #[arg(long, value_name = "PRESET", value_parser = preset())]
    pub preset: Option<Preset>,
    /// Run without a stage: every knob, any preset, no questions
    #[arg(long, conflicts_with_all = ["stage", "present"])]
    pub free: bool,
    /// The configuration that a free run begins with
    #[arg(long, value_name = "FILE", requires = "free")]
    pub config: Option<PathBuf>,
    /// The colours
    #[arg(long, value_name = "THEME", value_parser = theme(), default_value = "auto")]
    pub theme: ThemeName,
    /// Start in presenter mode: PgDn and PgUp, the keys of a hand clicker, go from beat to beat
    #[arg(long)]
    pub present: bool,
    /// Write the stream to this file as well
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    /// Join a class at the address that the instructor's board shows, or in a folder; the key I shows what is shared
    #[arg(long, value_name = "WHERE")]
    pub room: Option<String>,
    /// Your nickname in the room; without it you are anonymous
    #[arg(long, value_name = "NAME", requires = "room")]
    pub name: Option<String>,
    #[command(flatten)]
    pub course: CourseArgs,
    #[command(flatten)]
    pub engine: EngineArgs,
}

#[derive(Args, Clone, Debug)]
#[command(after_help = MYSTERY_HELP)]
pub(crate) struct MysteryArgs {
    /// The mystery's number, the same on every machine; without it, the first one that you have not solved
    #[arg(long, value_name = "N", value_parser = seed, allow_negative_numbers = true)]
    pub seed: Option<u64>,
    /// How many faults: 1 to 3
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=3))]
    pub level: u8,
    /// Model size
    #[arg(long, value_name = "PRESET", value_parser = preset())]
    pub preset: Option<Preset>,
    /// The colours
    #[arg(long, value_name = "THEME", value_parser = theme(), default_value = "auto")]
    pub theme: ThemeName,
    #[command(flatten)]
    pub course: CourseArgs,
    #[command(flatten)]
    pub engine: EngineArgs,
}

const MYSTERY_HELP: &str = "\
A is the run with the faults; its values are not shown. B is yours: f opens the knobs, t toggles, T asks for the verdict.
B is right when its outputs, gradients, times and loss are, and when it is no slower than a configuration known to be good.

Points: 100 for each fault, less 1 for each panel brought into focus, 10 for each configuration tried and 1 for each
minute begun; at least 10 for each fault, and none after giving up.

Examples:
  perflings mystery --seed 7             a mystery for a whole room
  perflings mystery --seed 7 --level 3   three faults at once";

#[derive(Args, Clone, Debug, Default)]
#[command(after_help = "\
Examples:
  perflings run 1 --as broken --device cpu
  perflings run 6 --as fixed --preset small --steps 20 --json
  perflings run all --device cpu --steps 20 --out journey
  perflings run --config mine.toml --set model.norm=fused --record run.jsonl")]
pub(crate) struct RunArgs {
    /// The stage's number or id; `all` runs every stage, broken and fixed in turns, and compares them with the plain baseline in one table
    #[arg(required_unless_present = "config", conflicts_with = "config", value_hint = ValueHint::Other)]
    pub stage: Option<String>,
    /// Run this configuration file instead of a stage
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The stage as shipped, or its solution; without it, your own file if you have one
    #[arg(
        long = "as",
        value_enum,
        value_name = "VARIANT",
        conflicts_with = "config"
    )]
    pub variant: Option<StageVariant>,
    #[command(flatten)]
    pub change: ChangeArgs,
    /// Steps to train
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = steps)]
    pub steps: u64,
    /// Print one event a line as JSON; the last one is `finished`. With `all`: print the table as one object
    #[arg(long)]
    pub json: bool,
    /// Write the stream to this file as well, for `replay`, `report` and `export`
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    /// With `all`: runs of each configuration [default: 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: Option<u32>,
    /// With `all`: a new folder for the log, the kernels and the trace of each configuration, and the table
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// With `all`: print the table as Markdown
    #[arg(long, conflicts_with = "json")]
    pub markdown: bool,
    #[command(flatten)]
    pub engine: EngineArgs,
    #[command(flatten)]
    pub course: CourseArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum StageVariant {
    Broken,
    Fixed,
}

#[derive(Args, Clone, Debug)]
#[command(after_help = "\
A and B are each one of:
  4:broken, 4:fixed    a stage as shipped, or its solution
  v1, small:v3         a version of a preset: v1 plain, v2 fused projections, v3 own kernels, v4 v2 with flash attention
  path/to/config.toml  a file

Examples:
  perflings compare 4:broken 4:fixed --device cpu
  perflings compare small:v1 small:v3 --device gpu --json")]
pub(crate) struct CompareArgs {
    /// First configuration. A ratio above 1 means that the second one is faster
    pub a: String,
    /// Second configuration
    pub b: String,
    /// Measure at most this many pairs; 0 chooses a number by the pace of the warm-up. A clear verdict ends them at 10, 20, 40, …
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub pairs: u32,
    #[command(flatten)]
    pub change: ChangeArgs,
    /// Print one event a line as JSON; the last one is `finished` or the last `pair`
    #[arg(long)]
    pub json: bool,
    /// Write the stream to this file as well
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    #[command(flatten)]
    pub engine: EngineArgs,
    #[command(flatten)]
    pub course: CourseArgs,
}
