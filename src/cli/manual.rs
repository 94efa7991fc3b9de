//! `perflings completions` and `perflings man`: write the grammar of the command line as a script for a shell, and as manual pages.

use std::path::Path;

use anyhow::{Context, Result};
use clap::{Command, CommandFactory};
use clap_complete::Shell;

use super::args::Cli;
use super::args::machine::{CompletionsArgs, ManArgs};
use crate::files;
use crate::out::{self, Exit, result};

pub(super) fn completions(args: &CompletionsArgs) -> Result<Exit> {
    let mut grammar = Cli::command();
    let mut bytes = Vec::new();
    clap_complete::generate(args.shell, &mut grammar, "perflings", &mut bytes);
    let mut text = String::from_utf8(bytes)?;
    if args.shell == Shell::Fish {
        text = text.replace(FISH_PARSE, &[FISH_PARSE, FISH_PARSE_AGAIN].concat());
        text.extend(grammar.get_subcommands().filter_map(fish_words));
    }
    out::bytes(text.as_bytes())?;
    Ok(Exit::Ok)
}

/// The line of the generated script for fish that looks for a command on the command line. It fails if the last word is a flag without its
/// value, and then fish would not offer the values of the flag.
const FISH_PARSE: &str = "    argparse -s (__fish_perflings_global_optspecs) -- $cmd 2>/dev/null\n";
/// The line that is added after `FISH_PARSE`: it tries again without the last word.
const FISH_PARSE_AGAIN: &str =
    "    or argparse -s (__fish_perflings_global_optspecs) -- $cmd[1..-2] 2>/dev/null\n";

/// Returns a line for fish that completes the words that a command takes, such as the keys of `config`; `None` if the command takes no fixed
/// words. `clap_complete` itself writes only the words of flags.
fn fish_words(command: &Command) -> Option<String> {
    let values = command.get_positionals().next()?.get_possible_values();
    if values.is_empty() {
        return None;
    }
    let names: Vec<&str> = values.iter().map(|value| value.get_name()).collect();
    let words = names.join(" ");
    let name = command.get_name();
    Some(format!(
        "complete -c perflings -n \"__fish_perflings_using_subcommand {name}; \
         and not __fish_seen_subcommand_from {words}\" -f -a \"{words}\"\n"
    ))
}

pub(super) fn man(args: &ManArgs) -> Result<Exit> {
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

/// Returns the name of a manual page's file, and its text.
fn page(command: &Command) -> Result<(String, Vec<u8>)> {
    let man = clap_mangen::Man::new(command.clone());
    let mut text = Vec::new();
    man.render(&mut text)?;
    let page = keep_examples(&String::from_utf8(text)?);
    Ok((man.get_filename(), page.into_bytes()))
}

/// Marks indented lines, which are examples, so that `man` keeps their line breaks and does not fill them.
fn keep_examples(page: &str) -> String {
    let mut kept = String::new();
    let mut was_example = false;
    for line in page.lines() {
        let is_example = line.starts_with("  ");
        if is_example != was_example {
            kept.push_str(if is_example { ".nf\n" } else { ".fi\n" });
            was_example = is_example;
        }
        kept.push_str(line);
        kept.push('\n');
    }
    kept
}

/// Writes the pages of a command and of its subcommands. Returns their number.
fn write(command: &Command, dir: &Path) -> Result<usize> {
    let (name, text) = page(command)?;
    let path = dir.join(name);
    files::write(&path, &text).with_context(|| format!("Failed to write {}", path.display()))?;
    let mut pages = 1;
    for subcommand in command.get_subcommands() {
        pages += write(subcommand, dir)?;
    }
    Ok(pages)
}
