//! The command line: its grammar, its exit codes, and which command does what. Each command is a file of its own
//! in `cli/`. Results go to stdout, notices to stderr; nothing here ends the process.

mod check;
mod compare;
mod course_check;
mod doctor;
mod drive;
mod export;
mod list;
mod machine;
mod out;
mod replay;
mod run;
mod shelf;
mod summary;
mod variant;
mod workshop;
mod workspace;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub use out::{Exit, Stop};

#[derive(Debug, Parser)]
#[command(
    name = "perflings",
    version,
    about = "A workshop in the terminal: watch a tiny Llama train, find what is wrong with it, measure the fix."
)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
struct Cli {
    #[command(subcommand)]
    command: Option<Task>,
    #[command(flatten)]
    workshop: WorkshopArgs,
}

const EXAMPLES: &str = "\
Examples:
  perflings                                      the workshop, where you left it
  perflings --stage 3 --device cpu               stage 3, on the CPU
  perflings run 1 --as fixed --steps 100 --json  a stage without a screen, one event a line
  perflings compare 4:broken 4:fixed             which is faster, with an interval
  perflings doctor                               what works on this machine, and what to do

Exit codes: 0 done or passed, 1 a check failed or the engine broke, 2 wrong usage or a fault in a file,
3 the device is not here, 130 interrupted.";

#[derive(Debug, Subcommand)]
enum Task {
    /// Train one stage or configuration without a screen
    Run(RunArgs),
    /// Measure two configurations in pairs on one device; says which is faster, or that it cannot tell
    Compare(CompareArgs),
    /// Check what you have now: one stage, or all of them
    Check(CheckArgs),
    /// Commands for authors of courses
    Course(CourseCommand),
    /// List the stages and where you are
    List(ListArgs),
    /// Show a stage's hints
    Hint(HintArgs),
    /// Put a stage's files back as they began; yours are kept aside
    Reset(ResetArgs),
    /// Write the course into a new folder, to edit it there
    Init(InitArgs),
    /// Say what works on this machine: devices, terminal, folders; and what to do where something is missing
    Doctor(DoctorArgs),
    /// Show a recording in the workshop's screen
    Replay(ReplayArgs),
    /// Write a recording's results as Markdown
    Report(ReportArgs),
    /// Convert a recording for other tools
    Export(ExportArgs),
    /// The engine process: commands on stdin, events on stdout, one JSON object a line
    Engine,
}

/// Where the course comes from.
#[derive(Args, Clone, Debug, Default)]
struct CourseArgs {
    /// Read the course from this folder instead of the one inside the program
    #[arg(long, value_name = "DIR")]
    course: Option<PathBuf>,
    /// Language of lessons, where there is a translation
    #[arg(long, value_name = "CODE")]
    lang: Option<String>,
}

/// What computes.
#[derive(Args, Clone, Debug)]
struct EngineArgs {
    /// auto, cpu, gpu, gpu:N or vulkan-cpu
    #[arg(long, value_name = "DEVICE", default_value = "auto", value_parser = machine::device_name)]
    device: String,
    /// A command that runs the engine elsewhere, such as `ssh host perflings engine`
    #[arg(long, value_name = "CMD")]
    engine: Option<String>,
}

/// Changes on top of a configuration.
#[derive(Args, Clone, Debug, Default)]
struct ChangeArgs {
    /// Model size: tiny, small or medium
    #[arg(long, value_name = "PRESET")]
    preset: Option<String>,
    /// Change one key, after the preset; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
}

#[derive(Args, Clone, Debug)]
struct WorkshopArgs {
    /// Begin at this stage: its number or id
    #[arg(long, value_name = "N")]
    stage: Option<String>,
    /// Model size for every stage: tiny, small or medium
    #[arg(long, value_name = "PRESET")]
    preset: Option<String>,
    /// auto, dark, light, high-contrast, colour-blind, mono or projector
    #[arg(long, value_name = "THEME")]
    theme: Option<String>,
    /// Write the stream to this file as well
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    #[command(flatten)]
    course: CourseArgs,
    #[command(flatten)]
    engine: EngineArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum As {
    Broken,
    Fixed,
}

#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  perflings run 1 --as broken --device cpu
  perflings run 6 --as fixed --preset small --steps 20 --json
  perflings run --config mine.toml --set model.norm=fused --record run.jsonl")]
struct RunArgs {
    /// The stage: its number or id
    #[arg(required_unless_present = "config", conflicts_with = "config")]
    stage: Option<String>,
    /// Run this configuration file instead of a stage
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The stage as shipped, or its solution; without it, your own file if you have one
    #[arg(
        long = "as",
        value_enum,
        value_name = "VARIANT",
        conflicts_with = "config"
    )]
    variant: Option<As>,
    #[command(flatten)]
    change: ChangeArgs,
    /// Steps to train
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u64).range(1..))]
    steps: u64,
    /// One event a line on stdout; the last is `finished`
    #[arg(long)]
    json: bool,
    /// Write the stream to this file as well, for `replay`, `report` and `export`
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    #[command(flatten)]
    engine: EngineArgs,
    #[command(flatten)]
    course: CourseArgs,
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
struct CompareArgs {
    /// The first; ratios are its time over the second's
    a: String,
    /// The second; above 1 it is faster
    b: String,
    /// Pairs to measure; 0 goes on until the verdict is clear, at least 30
    #[arg(long, value_name = "N", default_value_t = 0)]
    pairs: u32,
    #[command(flatten)]
    change: ChangeArgs,
    /// One event a line on stdout; the last is `finished` or the last `pair`
    #[arg(long)]
    json: bool,
    /// Write the stream to this file as well
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    #[command(flatten)]
    engine: EngineArgs,
    #[command(flatten)]
    course: CourseArgs,
}

#[derive(Args, Clone, Debug)]
struct CheckArgs {
    /// The stage: its number or id; all of them without it
    stage: Option<String>,
    /// One result a line, as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    engine: EngineArgs,
    #[command(flatten)]
    course: CourseArgs,
}

#[derive(Args, Clone, Debug)]
struct CourseCommand {
    #[command(subcommand)]
    task: CourseTask,
}

#[derive(Clone, Debug, Subcommand)]
enum CourseTask {
    /// Every starter runs and fails its check by name, every solution passes
    Check {
        /// Also the checks of speed
        #[arg(long)]
        measure: bool,
        /// One result a line, as JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        engine: EngineArgs,
        #[command(flatten)]
        course: CourseArgs,
    },
}

#[derive(Args, Clone, Debug)]
struct ListArgs {
    /// One stage a line, as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    course: CourseArgs,
}

#[derive(Args, Clone, Debug)]
struct HintArgs {
    /// The stage: its number or id
    stage: String,
    /// How many hints to show; one without it
    #[arg(value_parser = clap::value_parser!(u8).range(1..=3), default_value_t = 1)]
    hints: u8,
    #[command(flatten)]
    course: CourseArgs,
}

#[derive(Args, Clone, Debug)]
struct ResetArgs {
    /// The stage: its number or id
    stage: String,
    #[command(flatten)]
    course: CourseArgs,
}

#[derive(Args, Clone, Debug)]
struct InitArgs {
    /// A folder that is not there yet, or is empty
    dir: PathBuf,
}

#[derive(Args, Clone, Debug)]
struct DoctorArgs {
    /// One JSON object
    #[arg(long)]
    json: bool,
    /// A command that runs the engine elsewhere, such as `ssh host perflings engine`
    #[arg(long, value_name = "CMD")]
    engine: Option<String>,
}

#[derive(Args, Clone, Debug)]
struct ReplayArgs {
    /// A file written by --record, or by `run --json`
    file: PathBuf,
    /// Times the recorded pace
    #[arg(long, value_name = "X", default_value_t = 1.0)]
    speed: f64,
    /// auto, dark, light, high-contrast, colour-blind, mono or projector
    #[arg(long, value_name = "THEME")]
    theme: Option<String>,
    #[command(flatten)]
    course: CourseArgs,
}

#[derive(Args, Clone, Debug)]
struct ReportArgs {
    /// A file written by --record, or by `run --json`
    file: PathBuf,
}

#[derive(Args, Clone, Debug)]
struct ExportArgs {
    /// A file written by --record, or by `run --json`
    file: PathBuf,
    /// perfetto: a trace for ui.perfetto.dev; csv: a table
    #[arg(long, value_enum)]
    format: Format,
    /// Which table, with csv
    #[arg(long, value_enum, default_value_t = Table::Steps)]
    table: Table,
    /// Write here instead of stdout
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Perfetto,
    Csv,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Table {
    Steps,
    Kernels,
    Gradients,
}

/// Runs the program with this process's arguments.
pub fn main() -> ExitCode {
    ExitCode::from(run(std::env::args_os()) as u8)
}

/// Runs the program with these arguments, the first of which is its own name.
pub fn run(args: impl IntoIterator<Item = impl Into<OsString> + Clone>) -> Exit {
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are errors to clap, with an exit code of 0.
            let _ = error.print();
            return if error.exit_code() == 0 {
                Exit::Ok
            } else {
                Exit::Usage
            };
        }
    };
    match dispatch(cli) {
        Ok(exit) => exit,
        Err(error) => out::report(&error),
    }
}

fn dispatch(cli: Cli) -> anyhow::Result<Exit> {
    match cli.command {
        None => workshop::workshop(&cli.workshop),
        Some(Task::Run(args)) => run::run(&args),
        Some(Task::Compare(args)) => compare::compare(&args),
        Some(Task::Check(args)) => check::check(&args),
        Some(Task::Course(CourseCommand {
            task:
                CourseTask::Check {
                    measure,
                    json,
                    engine,
                    course,
                },
        })) => course_check::course_check(measure, json, &engine, &course),
        Some(Task::List(args)) => list::list(&args),
        Some(Task::Hint(args)) => list::hint(&args),
        Some(Task::Reset(args)) => list::reset(&args),
        Some(Task::Init(args)) => list::init(&args),
        Some(Task::Doctor(args)) => doctor::doctor(&args),
        Some(Task::Replay(args)) => replay::replay(&args),
        Some(Task::Report(args)) => export::report(&args),
        Some(Task::Export(args)) => export::export(&args),
        Some(Task::Engine) => crate::engine::serve().map(|()| Exit::Ok),
    }
}
