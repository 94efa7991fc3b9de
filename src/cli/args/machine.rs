//! The arguments of the commands about this machine and this program: `doctor`, `config`, `completions` and `man`.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use clap_complete::Shell;

use crate::cli::values::key;

#[derive(Args, Clone, Debug)]
pub(crate) struct DoctorArgs {
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
pub(crate) struct ConfigArgs {
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
pub(crate) struct CompletionsArgs {
    pub shell: Shell,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct ManArgs {
    /// A folder for one page for each command, such as ~/.local/share/man/man1
    pub dir: Option<PathBuf>,
}
