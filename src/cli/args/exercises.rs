//! The arguments of the commands on the stages and exercises of a course: for learners, and for authors.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum, ValueHint};

use super::{CourseArgs, EngineArgs};
use crate::cli::values::{hints, seed};

#[derive(Args, Clone, Debug)]
pub(crate) struct CheckArgs {
    /// A stage's number or id, or an exercise such as k01, c01 or d01; without it all stages, and the exercises you have begun
    #[arg(value_hint = ValueHint::Other)]
    pub stage: Option<String>,
    /// Your answer to an exercise that asks for one: a word, or KEY=WORD
    #[arg(long, value_name = "ANSWER", requires = "stage")]
    pub answer: Vec<String>,
    /// Repeat the numbers and sizes that a kernel exercise was checked with
    #[arg(long, value_name = "N", requires = "stage", value_parser = seed, allow_negative_numbers = true)]
    pub seed: Option<u64>,
    /// Print what the lanes of one workgroup do in your kernel, line by line, in place of a check (needs no device)
    #[arg(long, requires = "stage", conflicts_with_all = ["answer", "json"])]
    pub trace: bool,
    /// Print one result a line as JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub engine: EngineArgs,
    #[command(flatten)]
    pub course: CourseArgs,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct ListArgs {
    /// Print one stage a line as JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub course: CourseArgs,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct HintArgs {
    /// The stage's number or id, or an exercise such as k01
    #[arg(value_hint = ValueHint::Other)]
    pub stage: String,
    /// How many hints to show
    #[arg(value_parser = hints, allow_negative_numbers = true, default_value_t = 1)]
    pub hints: u8,
    #[command(flatten)]
    pub course: CourseArgs,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct ResetArgs {
    /// The stage's number or id, or an exercise such as k01
    #[arg(value_hint = ValueHint::Other)]
    pub stage: String,
    #[command(flatten)]
    pub course: CourseArgs,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct InitArgs {
    /// A new or empty folder
    pub dir: PathBuf,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct KitArgs {
    /// A new or empty folder
    pub dir: PathBuf,
    /// A recording to take along, for `replay`; may be repeated
    #[arg(long = "recording", value_name = "FILE")]
    pub recordings: Vec<PathBuf>,
    #[command(flatten)]
    pub course: CourseArgs,
}

#[derive(Clone, Debug, Subcommand)]
pub(crate) enum CourseCommand {
    /// Check that every starter fails its check by name and that every solution passes
    Check(CourseCheckArgs),
    /// Write a small example that passes its check, with comments, to be changed from there
    New(CourseNewArgs),
}

#[derive(Args, Clone, Debug)]
pub(crate) struct CourseCheckArgs {
    /// Only this stage or exercise: its number, label, id or folder
    #[arg(conflicts_with = "mutants")]
    pub item: Option<String>,
    /// Only read: run nothing
    #[arg(long, conflicts_with_all = ["measure", "mutants"])]
    pub text: bool,
    /// Also check speed
    #[arg(long)]
    pub measure: bool,
    /// Only make N wrong kernels and right variants from the solutions, and check them
    #[arg(long, value_name = "N", conflicts_with = "measure")]
    pub mutants: Option<usize>,
    /// The seed that chooses the kernels
    #[arg(long, requires = "mutants", default_value_t = 1, value_parser = seed)]
    pub seed: u64,
    /// Print one result a line as JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub engine: EngineArgs,
    #[command(flatten)]
    pub course: CourseArgs,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct CourseNewArgs {
    /// What to write
    pub what: NewItem,
    /// The name of the stage or exercise: lower-case letters, digits and `-`
    pub name: String,
    #[command(flatten)]
    pub course: CourseArgs,
}

/// What an author wants to begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum NewItem {
    /// A fault in a configuration
    Stage,
    /// A kernel to write in WGSL
    Kernel,
    /// A recorded run with a hidden fault
    Recording,
}
