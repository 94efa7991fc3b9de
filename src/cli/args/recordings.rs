//! The arguments of the commands that show and convert recordings, profiles, and trainings of other programs.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{ChangeArgs, CourseArgs, EngineArgs};
use crate::app::ThemeName;
use crate::cli::values::{positive, theme};

#[derive(Args, Clone, Debug)]
pub(crate) struct ReplayArgs {
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

/// Refuses the flag of the animated picture, which earlier versions drew.
fn no_picture(_: &str) -> Result<String, String> {
    Err("`replay` draws no picture any more; record its terminal with another program".to_owned())
}

#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  perflings watch -- python train.py              starts the command, and shows its training
  perflings watch before after                    two trainings side by side, finished or running
  perflings watch before after -- python train.py the folder of an earlier training, and a new one that writes to `after`
  perflings watch --python > perflings.py         the file that train.py imports")]
pub(crate) struct WatchArgs {
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
    /// Check a file of lines, and list its mistakes
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

#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Formats, known by content, plain or gzip: PyTorch profiler and Chrome trace JSON, rocprofv3 kernel_trace.csv and
kernel_stats.csv, rocpd and Nsight Systems SQLite, cuda_gpu_kern_sum CSV, Perfetto .pftrace, recordings of perflings.

Examples:
  perflings open trace.json.gz                   the screen; a summary where there is no terminal
  perflings open eager.json compiled.json        what vanished, what is new, what got faster
  perflings open results.db --report page.html
  perflings open run.jsonl --export run.pftrace --export run_kernel_stats.csv")]
pub(crate) struct OpenArgs {
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
pub(crate) struct ReportArgs {
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
pub(crate) struct ExportArgs {
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

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    Perfetto,
    Csv,
    KernelTrace,
    KernelStats,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportTable {
    Steps,
    Kernels,
    Gradients,
}
