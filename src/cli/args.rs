//! The grammar of the command line: its commands and flags with their values, defaults and help.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use clap_complete::Shell;

use super::bench::args::BenchArgs;
use super::values::{devices, hints, key, positive, preset, seed, steps, theme};
use crate::app::ThemeName;
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
    pub workshop: WorkshopArgs,
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
    Run(RunArgs),
    /// Train with hidden faults: find them in the panels, fix them with the knobs
    Mystery(MysteryArgs),
    /// Measure two configurations in pairs on one device to find which one is faster
    Compare(CompareArgs),
    /// Measure versions side by side on every device, or against an earlier result, knob by knob, or over sizes
    Bench(BenchArgs),
    /// Check your own files: one stage or exercise, or all of them
    Check(CheckArgs),
    /// Commands for authors of courses
    #[command(subcommand)]
    Course(CourseCommand),
    /// List the stages and where you are
    List(ListArgs),
    /// Show a stage's hints
    Hint(HintArgs),
    /// Reset a stage's files; yours are kept under another name
    Reset(ResetArgs),
    /// Write the course into a new folder, to edit it there
    Init(InitArgs),
    /// Write program, course, recordings and a start script into a new folder, for a USB stick or a share
    Kit(KitArgs),
    /// Check the devices, the terminal and the folders of this machine, and say what to do where something is missing
    Doctor(DoctorArgs),
    /// Show a recording in the workshop's screen
    Replay(ReplayArgs),
    /// Watch your own training while it runs: loss, throughput, phases, gradients, memory, kernels and lints
    Watch(WatchArgs),
    /// Open a profile of your own program: its kernels, ledger, timeline and lints; two files side by side
    Open(OpenArgs),
    /// Show the speaker view: notes, agenda and clock beside a presentation on this machine
    Notes(NotesArgs),
    /// Write a page of what you did, or a recording's results, as Markdown or HTML
    Report(ReportArgs),
    /// Convert a recording for other tools
    Export(ExportArgs),
    /// Open a class: learners share where they are, you see the board, open votes and offer stages
    Room(RoomArgs),
    /// Show and set defaults for flags: theme, markers, device, editor, threads
    Config(ConfigArgs),
    /// Print the script that completes this command line in a shell
    Completions(CompletionsArgs),
    /// Print the manual page, or write those of all commands into a folder
    Man(ManArgs),
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

#[derive(Args, Clone, Debug)]
pub(super) struct NotesArgs {
    /// The colours
    #[arg(long, value_name = "THEME", value_parser = theme(), default_value = "auto")]
    pub theme: ThemeName,
    /// Print the notes as they change, without a screen
    #[arg(long)]
    pub plain: bool,
    /// Show the agenda of this many minutes (30, 90 or 180), with the minutes left
    #[arg(long, value_name = "MINUTES")]
    pub agenda: Option<u32>,
    #[command(flatten)]
    pub course: CourseArgs,
}

#[derive(Args, Clone, Debug, Default)]
pub(super) struct WorkshopArgs {
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
#[command(after_help = MYSTERY)]
pub(super) struct MysteryArgs {
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

const MYSTERY: &str = "\
A is the run with the faults; its values are not shown. B is yours: f opens the knobs, t toggles, T asks for the verdict.
B is right when its outputs, gradients, times and loss are, and when it is no slower than a configuration known to be good.

Points: 100 for each fault, less 1 for each panel brought into focus, 10 for each configuration tried and 1 for each
minute begun; at least 10 for each fault, and none after giving up.

Examples:
  perflings mystery --seed 7             a mystery for a whole room
  perflings mystery --seed 7 --level 3   three faults at once";

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum As {
    Broken,
    Fixed,
}

#[derive(Args, Clone, Debug, Default)]
#[command(after_help = "\
Examples:
  perflings run 1 --as broken --device cpu
  perflings run 6 --as fixed --preset small --steps 20 --json
  perflings run all --device cpu --steps 20 --out journey
  perflings run --config mine.toml --set model.norm=fused --record run.jsonl")]
pub(super) struct RunArgs {
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
    pub variant: Option<As>,
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

#[derive(Args, Clone, Debug)]
#[command(after_help = "\
A and B are each one of:
  4:broken, 4:fixed    a stage as shipped, or its solution
  v1, small:v3         a version of a preset: v1 plain, v2 fused projections, v3 own kernels, v4 v2 with flash attention
  path/to/config.toml  a file

Examples:
  perflings compare 4:broken 4:fixed --device cpu
  perflings compare small:v1 small:v3 --device gpu --json")]
pub(super) struct CompareArgs {
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

#[derive(Args, Clone, Debug)]
pub(super) struct CheckArgs {
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

#[derive(Clone, Debug, Subcommand)]
pub(super) enum CourseCommand {
    /// Check that every starter fails its check by name and that every solution passes
    Check(CourseCheckArgs),
    /// Write a small example that passes its check, with comments, to be changed from there
    New(CourseNewArgs),
}

/// What an author begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum NewItem {
    /// A fault in a configuration
    Stage,
    /// A kernel to write in WGSL
    Kernel,
    /// A recorded run with a hidden fault
    Recording,
}

#[derive(Args, Clone, Debug)]
pub(super) struct CourseNewArgs {
    /// What to write
    pub what: NewItem,
    /// The name of the stage or exercise: lower-case letters, digits and `-`
    pub name: String,
    #[command(flatten)]
    pub course: CourseArgs,
}

#[derive(Args, Clone, Debug)]
pub(super) struct CourseCheckArgs {
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
pub(super) struct ListArgs {
    /// Print one stage a line as JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub course: CourseArgs,
}

#[derive(Args, Clone, Debug)]
pub(super) struct HintArgs {
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
pub(super) struct ResetArgs {
    /// The stage's number or id, or an exercise such as k01
    #[arg(value_hint = ValueHint::Other)]
    pub stage: String,
    #[command(flatten)]
    pub course: CourseArgs,
}

#[derive(Args, Clone, Debug)]
pub(super) struct InitArgs {
    /// A new or empty folder
    pub dir: PathBuf,
}

#[derive(Args, Clone, Debug)]
pub(super) struct KitArgs {
    /// A new or empty folder
    pub dir: PathBuf,
    /// A recording to take along, for `replay`; may be repeated
    #[arg(long = "recording", value_name = "FILE")]
    pub recordings: Vec<PathBuf>,
    #[command(flatten)]
    pub course: CourseArgs,
}

#[derive(Args, Clone, Debug)]
pub(super) struct DoctorArgs {
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    /// Print one line for a class: whether this machine is ready, or what is missing
    #[arg(long, conflicts_with = "calibrate")]
    pub room: bool,
    /// Measure the peaks of every device again: arithmetic and memory bandwidth
    #[arg(long)]
    pub calibrate: bool,
    /// A command that runs the engine elsewhere, such as `ssh host perflings engine`
    #[arg(long, value_name = "CMD")]
    pub engine: Option<String>,
}

#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  perflings config                  what is set, and where it is kept
  perflings config theme projector
  perflings config device --unset")]
pub(super) struct ConfigArgs {
    /// theme, markers, device, editor or threads; without it, all of them
    #[arg(value_parser = key(), hide_possible_values = true)]
    pub key: Option<String>,
    /// The new value
    #[arg(requires = "key", value_hint = ValueHint::Other)]
    pub value: Option<String>,
    /// Remove the setting
    #[arg(long, requires = "key", conflicts_with = "value")]
    pub unset: bool,
}

#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  perflings completions bash > ~/.local/share/bash-completion/completions/perflings
  perflings completions zsh > ~/.zfunc/_perflings
  perflings completions fish > ~/.config/fish/completions/perflings.fish")]
pub(super) struct CompletionsArgs {
    pub shell: Shell,
}

#[derive(Args, Clone, Debug)]
pub(super) struct ManArgs {
    /// A folder for one page for each command, such as ~/.local/share/man/man1
    pub dir: Option<PathBuf>,
}

#[derive(Args, Clone, Debug)]
pub(super) struct ReplayArgs {
    /// A file written by --record, or by `run --json`; or a detective exercise such as d01
    pub file: PathBuf,
    /// Start in presenter mode: PgDn and PgUp, the keys of a hand clicker, go from beat to beat
    #[arg(long)]
    pub present: bool,
    /// Play this many times as fast as recorded
    #[arg(long, value_name = "X", default_value_t = 1.0, value_parser = positive)]
    pub speed: f64,
    /// The colours
    #[arg(long, value_name = "THEME", value_parser = theme(), default_value = "auto")]
    pub theme: ThemeName,
    #[arg(long, hide = true, value_parser = no_picture)]
    pub picture: Option<String>,
    #[command(flatten)]
    pub course: CourseArgs,
}

#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  perflings watch -- python train.py              starts the command, and shows its training
  perflings watch before after                    two trainings side by side, finished or running
  perflings watch before after -- python train.py the folder of an earlier training, and a new one that writes to `after`
  perflings watch --python > perflings.py         the file that train.py imports")]
pub(super) struct WatchArgs {
    /// A folder that a training writes to, the file of one of its processes, or - for standard input; a second one is shown beside it as
    /// B. Before a command, the last one is the folder for its lines
    #[arg(num_args = 0..=2, value_name = "PLACE")]
    pub places: Vec<PathBuf>,
    /// The command to start and to watch, such as `python train.py`
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
    /// Print perflings.py, which a PyTorch training imports to be watched
    #[arg(long, conflicts_with_all = ["places", "command", "check"])]
    pub python: bool,
    /// Say what is wrong with a file of lines
    #[arg(long, value_name = "FILE", conflicts_with_all = ["places", "command"])]
    pub check: Option<PathBuf>,
    /// Write the stream to this file, for `replay`, `report` and `export`; without a screen
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    /// The colours
    #[arg(long, value_name = "THEME", value_parser = theme(), default_value = "auto")]
    pub theme: ThemeName,
    #[command(flatten)]
    pub course: CourseArgs,
}

/// Refuses the flag of the animated picture, which earlier versions drew.
fn no_picture(_: &str) -> Result<String, String> {
    Err("`replay` draws no picture any more; record its terminal with another program".to_owned())
}

#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Formats, known by content, plain or gzip: PyTorch profiler and Chrome trace JSON, rocprofv3 kernel_trace.csv and
kernel_stats.csv, rocpd and Nsight Systems SQLite, cuda_gpu_kern_sum CSV, Perfetto .pftrace, recordings of perflings.

Examples:
  perflings open trace.json.gz                   the screen; a summary where there is no terminal
  perflings open eager.json compiled.json        what vanished, what is new, what got faster
  perflings open results.db --report page.html
  perflings open run.jsonl --export run.pftrace --export run_kernel_stats.csv")]
pub(super) struct OpenArgs {
    /// A profile, or a folder with the profile of each rank; a second one is shown beside the first
    #[arg(required = true, num_args = 1..=2)]
    pub files: Vec<PathBuf>,
    /// Print the figures and lints as one JSON object
    #[arg(long)]
    pub json: bool,
    /// Write the figures to a page whose name ends in .md or .html
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Write the profile of one FILE: .pftrace, or a name that ends in kernel_trace.csv or kernel_stats.csv; may be repeated
    #[arg(long, value_name = "FILE")]
    pub export: Vec<PathBuf>,
    /// The colours
    #[arg(long, value_name = "THEME", value_parser = theme(), default_value = "auto")]
    pub theme: ThemeName,
    #[command(flatten)]
    pub course: CourseArgs,
}

#[derive(Args, Clone, Debug)]
pub(super) struct ReportArgs {
    /// A file written by --record, or by `run --json`; without one, what you did in the course
    pub file: Option<PathBuf>,
    /// Write one HTML file that needs nothing else, in place of Markdown
    #[arg(long)]
    pub html: bool,
    /// Write to this file; a name that ends in .html is written as HTML
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub course: CourseArgs,
}

#[derive(Args, Clone, Debug)]
#[command(after_help = "\
With --kernels, FILE is what `compare` takes: 4:fixed, small:v3 or a configuration file; without it, the stage you are in.

Examples:
  perflings export run.jsonl --format csv --table kernels
  perflings export 5:fixed --kernels kernels --device gpu")]
pub(super) struct ExportArgs {
    /// A file written by --record, or by `run --json`
    #[arg(required_unless_present = "kernels")]
    pub file: Option<PathBuf>,
    /// perfetto: a trace for ui.perfetto.dev; csv: a table; kernel-trace and kernel-stats: as rocprofv3 writes them
    #[arg(long, value_enum, required_unless_present = "kernels")]
    pub format: Option<ExportFormat>,
    /// Write the text of every kernel that a step launches into this folder
    #[arg(long, value_name = "DIR", conflicts_with_all = ["format", "table", "out"])]
    pub kernels: Option<PathBuf>,
    /// With csv: the table to write
    #[arg(long, value_enum, default_value_t = ExportTable::Steps)]
    pub table: ExportTable,
    /// Write here instead of stdout
    #[arg(long, short, value_name = "FILE")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub change: ChangeArgs,
    #[command(flatten)]
    pub engine: EngineArgs,
    #[command(flatten)]
    pub course: CourseArgs,
}

#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  perflings room --dir /shared/class              a folder that everybody can write to
  perflings room --listen 0.0.0.0:7878            over the network; the board shows what learners type
  perflings room --listen 0.0.0.0:7878 --resume   the last one again
  perflings room --dir /shared/class --export class.csv")]
pub(super) struct RoomArgs {
    /// The folder of the room; with --listen the folder of all rooms of this machine, which has a default
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// Serve a new room over HTTP at this address, with a code of its own
    #[arg(long, value_name = "ADDRESS", conflicts_with = "export")]
    pub listen: Option<String>,
    /// Continue the room that was served last, with its code and everybody's results
    #[arg(long, requires = "listen")]
    pub resume: bool,
    /// The address that learners and phones use, such as that of a tunnel: http://HOST:PORT
    #[arg(long, value_name = "URL", requires = "listen")]
    pub address: Option<String>,
    /// Show the board of a room that is open elsewhere: the address with the instructor's key
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["dir", "listen", "export"])]
    pub board: Option<String>,
    /// Questions to ask, a line each: ask "Who has seen this?" yes no "not sure"
    #[arg(long, value_name = "FILE", conflicts_with = "export")]
    pub questions: Option<PathBuf>,
    /// Also write the board's page to this file: one HTML file that loads nothing
    #[arg(long, value_name = "FILE", conflicts_with = "export")]
    pub page: Option<PathBuf>,
    /// Write the results of the class to a file that ends in .html, .json or .csv, and exit
    #[arg(long, value_name = "FILE")]
    pub export: Option<PathBuf>,
    /// Print the board as one JSON object a line whenever it changes, without a screen
    #[arg(long, conflicts_with = "export")]
    pub json: bool,
    /// The colours
    #[arg(long, value_name = "THEME", value_parser = theme(), default_value = "auto")]
    pub theme: ThemeName,
    #[command(flatten)]
    pub course: CourseArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ExportFormat {
    Perfetto,
    Csv,
    KernelTrace,
    KernelStats,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ExportTable {
    Steps,
    Kernels,
    Gradients,
}

impl EngineArgs {
    /// Returns the command that starts the engine.
    pub(super) fn command(&self) -> Result<EngineCommand> {
        engine_command(self.engine.as_deref())
    }

    /// Starts an engine for runs and comparisons. Its stream is also written to the file `record`.
    pub(super) fn runner(&self, record: Option<&Path>) -> Result<Runner> {
        Runner::new(self.command()?, record)
    }
}

impl CourseArgs {
    /// Loads the course that the command line names, as its learner sees it.
    pub(super) fn load(&self) -> Result<CourseContext> {
        CourseContext::load(self.folder())
    }

    /// Loads the course that the command line names, as its author sees it.
    pub(super) fn load_as_author(&self) -> Result<CourseContext> {
        CourseContext::load_as_author(self.folder())
    }

    /// Returns the folder that `--course` names. Prints a notice if `--lang` is given, because it has no effect any more.
    fn folder(&self) -> Option<&Path> {
        if self.lang.is_some() {
            notice("--lang has no effect any more: all lessons are in English; leave it out");
        }
        self.course.as_deref()
    }

    /// Loads the course like `load` and prints on stderr what could not be loaded.
    pub(super) fn open(&self) -> Result<CourseContext> {
        let context = self.load()?;
        for problem in &context.course.problems {
            notice(&problem.to_string());
        }
        Ok(context)
    }
}
