//! The command line: its grammar, its exit codes, and which command does what. Each command is a file of its own
//! in `cli/`. Results go to stdout, notices to stderr; nothing here ends the process.

mod args;
mod bench;
pub(crate) mod check;
mod compare;
mod course_check;
mod doctor;
mod export;
mod list;
mod replay;
mod run;
mod summary;
mod unknown;
mod variant;
mod workshop;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

pub use crate::out::{Exit, Stop};

use args::*;

use crate::course::Course;
use crate::out;

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
    /// Measure versions side by side on every device; against an earlier result, knob by knob, or over sizes
    Bench(bench::BenchArgs),
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

/// Runs the program with this process's arguments.
pub fn main() -> ExitCode {
    ExitCode::from(run(std::env::args_os()) as u8)
}

/// Runs the program with these arguments, the first of which is its own name.
pub fn run(args: impl IntoIterator<Item = impl Into<OsString> + Clone>) -> Exit {
    let args: Vec<OsString> = args.into_iter().map(Into::into).collect();
    let cli = match Cli::try_parse_from(&args) {
        Ok(cli) => cli,
        Err(error) if unknown::is_of(&error, &args) => {
            let word = args[1].to_string_lossy();
            out::progress(&unknown::answer(
                &word,
                &Course::builtin("en"),
                &Cli::command(),
            ));
            return Exit::Usage;
        }
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
        Some(Task::Bench(args)) => bench::bench(&args),
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
