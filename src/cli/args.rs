//! The grammar of the command line: its commands and flags with their values, defaults and help. This file has the list of commands and
//! the flags that several commands share; the arguments of each command are in a file by topic.

pub(super) mod class;
pub(super) mod exercises;
pub(super) mod machine;
pub(super) mod recordings;
pub(super) mod training;

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::{Args, Parser, Subcommand};

use super::bench::args::BenchArgs;
use super::values::{devices, preset};
use crate::course::context::CourseContext;
use crate::measure::runner::{Runner, engine_command};
use crate::out::notice;
use protocol::config::Preset;
use protocol::handle::EngineCommand;

/// The whole command line.
#[derive(Debug, Parser)]
#[command(
    name = "perflings",
    bin_name = "perflings",
    version,
    about = "A workshop in the terminal: watch a tiny Llama train, find what is wrong with it, measure the fix."
)]
#[command(after_help = EXAMPLES, override_usage = "perflings [OPTIONS]\n       perflings <COMMAND>")]
pub(super) struct Cli {
    #[command(subcommand)]
    pub command: Option<CliCommand>,
    #[command(flatten)]
    pub workshop: training::WorkshopArgs,
    #[command(flatten)]
    pub global: GlobalArgs,
}

/// The flags of every command.
#[derive(Args, Clone, Copy, Debug)]
pub(super) struct GlobalArgs {
    /// Print results and errors only
    #[arg(long, global = true)]
    pub quiet: bool,
    /// Print no progress
    #[arg(long, global = true)]
    pub no_progress: bool,
    /// Threads of the CPU device, and of a driver that computes on the CPU
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: Option<u32>,
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

/// A command with its arguments.
#[derive(Debug, Subcommand)]
pub(super) enum CliCommand {
    /// Train one stage or configuration without a screen
    Run(training::RunArgs),
    /// Train with hidden faults: find them in the panels, fix them with the knobs
    Mystery(training::MysteryArgs),
    /// Measure two configurations in pairs on one device to find which one is faster
    Compare(training::CompareArgs),
    /// Measure versions side by side on every device, or against an earlier result, knob by knob, or over sizes
    Bench(BenchArgs),
    /// Check your own files: one stage or exercise, or all of them
    Check(exercises::CheckArgs),
    /// Commands for authors of courses
    #[command(subcommand)]
    Course(exercises::CourseCommand),
    /// List the stages and where you are
    List(exercises::ListArgs),
    /// Show a stage's hints
    Hint(exercises::HintArgs),
    /// Reset a stage's files; yours are kept under another name
    Reset(exercises::ResetArgs),
    /// Write the course into a new folder, to edit it there
    Init(exercises::InitArgs),
    /// Write program, course, recordings and a start script into a new folder, for a USB stick or a share
    Kit(exercises::KitArgs),
    /// Check the devices, the terminal and the folders of this machine, and say what to do where something is missing
    Doctor(machine::DoctorArgs),
    /// Show a recording in the workshop's screen
    Replay(recordings::ReplayArgs),
    /// Watch your own training while it runs: loss, throughput, phases, gradients, memory, kernels and lints
    Watch(recordings::WatchArgs),
    /// Open a profile of your own program: its kernels, ledger, timeline and lints; two files side by side
    Open(recordings::OpenArgs),
    /// Show the speaker view: notes, agenda and clock beside a presentation on this machine
    Notes(class::NotesArgs),
    /// Write a page of what you did, or a recording's results, as Markdown or HTML
    Report(recordings::ReportArgs),
    /// Convert a recording for other tools
    Export(recordings::ExportArgs),
    /// Open a class: learners share where they are, you see the board, open votes and offer stages
    Room(class::RoomArgs),
    /// Show and set defaults for flags: theme, markers, device, editor, threads
    Config(machine::ConfigArgs),
    /// Print the script that completes this command line in a shell
    Completions(machine::CompletionsArgs),
    /// Print the manual page, or write those of all commands into a folder
    Man(machine::ManArgs),
    /// Run the engine process: commands on stdin, events on stdout, one JSON object a line
    Engine {
        /// Also send the text of each kernel that is compiled
        #[arg(long)]
        kernel_texts: bool,
    },
}

/// The flags that choose the course.
#[derive(Args, Clone, Debug, Default)]
pub(super) struct CourseArgs {
    /// Read the course from this folder instead of the one inside the program
    #[arg(long, value_name = "DIR", overrides_with = "course")]
    pub course: Option<PathBuf>,
    /// Has no effect any more: all lessons are in English
    #[arg(long, value_name = "CODE", hide = true)]
    lang: Option<String>,
}

/// The flags that choose the device and the engine.
#[derive(Args, Clone, Debug, Default)]
pub(super) struct EngineArgs {
    /// auto, cpu, gpu, gpu:N or vulkan-cpu
    #[arg(long, value_name = "DEVICE", default_value = "auto", value_parser = devices(), hide_possible_values = true)]
    pub device: String,
    /// A command that runs the engine elsewhere, such as `ssh host perflings engine`
    #[arg(long, value_name = "CMD")]
    pub engine: Option<String>,
}

/// The flags that change a configuration.
#[derive(Args, Clone, Debug, Default)]
pub(super) struct ChangeArgs {
    /// Model size
    #[arg(long, value_name = "PRESET", value_parser = preset())]
    pub preset: Option<Preset>,
    /// Change one key, after the preset; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub sets: Vec<String>,
}

impl CourseArgs {
    /// Loads the course that the command line names for its learner, with the learner's files.
    pub(super) fn load(&self) -> Result<CourseContext> {
        CourseContext::load(self.folder())
    }

    /// Loads the course that the command line names for its author, without the files of a learner.
    pub(super) fn load_as_author(&self) -> Result<CourseContext> {
        CourseContext::load_as_author(self.folder())
    }

    /// Returns the folder that `--course` names; `None` for the course inside the program. Prints a notice if the retired flag `--lang` is
    /// given.
    fn folder(&self) -> Option<&Path> {
        if self.lang.is_some() {
            notice("--lang has no effect any more: all lessons are in English; leave it out");
        }
        self.course.as_deref()
    }

    /// Loads the course like `load`, and prints its problems on stderr.
    pub(super) fn open(&self) -> Result<CourseContext> {
        let context = self.load()?;
        for problem in &context.course.problems {
            notice(&problem.to_string());
        }
        Ok(context)
    }
}

impl EngineArgs {
    /// Returns the command that starts the engine.
    pub(super) fn command(&self) -> Result<EngineCommand> {
        engine_command(self.engine.as_deref())
    }

    /// Starts an engine for runs and comparisons. If `record` names a file, the engine's stream is also written there.
    pub(super) fn runner(&self, record: Option<&Path>) -> Result<Runner> {
        Runner::new(self.command()?, record)
    }
}
