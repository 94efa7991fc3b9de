//! `perflings completions` and `perflings man`, both from the one grammar.

use std::path::Path;

use anyhow::{Context, Result};
use clap::{Command, CommandFactory};

use super::args::{Cli, CompletionsArgs, ManArgs};
use crate::files;
use crate::out::{self, Exit, result};

pub fn completions(args: &CompletionsArgs) -> Result<Exit> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "perflings", &mut text);
    out::bytes(&text)?;
    Ok(Exit::Ok)
}

pub fn man(args: &ManArgs) -> Result<Exit> {
    let mut grammar = Cli::command().disable_help_subcommand(true);
    grammar.build();
    match &args.dir {
        None => out::bytes(&page(&grammar)?.1)?,
        Some(dir) => {
            std::fs::create_dir_all(dir)
                .with_context(|| format!("Failed to create {}", dir.display()))?;
            let pages = write(&grammar, dir)?;
            result(&format!("wrote {pages} pages into {}", dir.display()))?;
        }
    }
    Ok(Exit::Ok)
}

/// The name of a page's file, and its text.
fn page(command: &Command) -> Result<(String, Vec<u8>)> {
    let man = clap_mangen::Man::new(command.clone());
    let mut text = Vec::new();
    man.render(&mut text)?;
    Ok((man.get_filename(), text))
}

/// Writes the pages of a command and of those below it; the result is their number.
fn write(command: &Command, dir: &Path) -> Result<usize> {
    let (name, text) = page(command)?;
    let path = dir.join(name);
    files::write(&path, &text).with_context(|| format!("Failed to write {}", path.display()))?;
    let below = command.get_subcommands().map(|it| write(it, dir));
    Ok(1 + below.sum::<Result<usize>>()?)
}
