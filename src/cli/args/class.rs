//! The arguments of the commands for instructors: `room` and `notes`.

use std::path::PathBuf;

use clap::Args;

use super::CourseArgs;
use crate::app::ThemeName;
use crate::cli::values::theme;

#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  perflings room --dir /shared/class              a folder that everybody can write to
  perflings room --listen 0.0.0.0:7878            over the network; the board shows what learners type
  perflings room --listen 0.0.0.0:7878 --resume   the last one again
  perflings room --dir /shared/class --export class.csv")]
pub(crate) struct RoomArgs {
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

#[derive(Args, Clone, Debug)]
pub(crate) struct NotesArgs {
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
