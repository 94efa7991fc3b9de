//! Finds the learner's editor and opens files in it. An editor with a window of its own, or a pane of tmux, opens beside the workshop. Any
//! other editor takes the place of the workshop until it ends.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::Builder;

use anyhow::{Context, Result, bail};

use protocol::handle::split_words;

/// A command that opens a file. The file is its last argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Editor {
    /// The program and its arguments before the file.
    command: Vec<String>,
    window: Window,
    line_argument: LineArgument,
}

/// The place where the editor draws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Window {
    /// On this terminal, so that the screen must make room.
    Here,
    /// In a window of its own.
    Own,
    /// In a pane or a window of tmux.
    Tmux,
}

/// How a line number is passed to the editor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineArgument {
    /// `file:13`
    Colon,
    /// `+13 file`
    Plus,
    /// `--line-number 13 file`
    Option,
    /// The editor takes no line number, or it is not known how.
    Unknown,
}

impl LineArgument {
    /// Returns how the editor with this name takes a line number.
    fn for_editor(name: &str) -> Self {
        match name {
            "vi" | "vim" | "nvim" | "gvim" | "view" | "nano" | "emacs" | "emacsclient"
            | "micro" | "kak" | "joe" | "ne" | "mg" => Self::Plus,
            "hx" | "helix" | "zed" | "subl" | "code" | "codium" => Self::Colon,
            _ => Self::Unknown,
        }
    }

    /// Returns the arguments that open a file at a line, from 1.
    fn arguments(self, file: &Path, line: Option<u32>) -> Vec<OsString> {
        let mut name = file.as_os_str().to_owned();
        match (self, line) {
            (Self::Colon, Some(line)) => name.push(format!(":{line}")),
            (Self::Plus, Some(line)) => return vec![format!("+{line}").into(), name],
            (Self::Option, Some(line)) => {
                return vec!["--line-number".into(), line.to_string().into(), name];
            }
            (Self::Unknown, _) | (_, None) => {}
        }
        vec![name]
    }
}

impl Editor {
    /// Finds the editor that the environment names. `variable` returns the value of an environment variable. `None` if no editor is named.
    pub(super) fn find(variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let is_set = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        if is_set("TERM_PROGRAM").is_some_and(|program| program == "vscode") {
            return Some(Self::with_window(&["code", "--goto"], LineArgument::Colon));
        }
        if is_set("ZELLIJ").is_some() {
            let command = ["zellij", "action", "edit"];
            return Some(Self::with_window(&command, LineArgument::Option));
        }
        let line = ["VISUAL", "EDITOR"].into_iter().find_map(&is_set)?;
        let mut command = split_words(&line).ok()?;
        let stem = Path::new(command.first()?).file_stem();
        let name = stem.map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        if ["code", "codium"].contains(&name.as_str()) && command.len() == 1 {
            command.push("--goto".to_owned());
        }
        let window = match name.as_str() {
            "code" | "codium" | "subl" | "zed" | "gedit" | "kate" | "gvim" => Window::Own,
            _ if is_set("TMUX").is_some() => Window::Tmux,
            _ => Window::Here,
        };
        Some(Self {
            line_argument: LineArgument::for_editor(&name),
            command,
            window,
        })
    }

    /// Makes an editor that has a window of its own.
    fn with_window(command: &[&str], line_argument: LineArgument) -> Self {
        Self {
            command: command.iter().map(|word| (*word).to_owned()).collect(),
            window: Window::Own,
            line_argument,
        }
    }

    /// Returns true if the editor draws on this terminal.
    pub(super) fn needs_terminal(&self) -> bool {
        self.window == Window::Here
    }

    /// Opens the file at a line, from 1. Waits for the end of an editor on this terminal, but not of any other editor. `size` is the width
    /// and height of the terminal, in characters.
    pub(super) fn open(
        &self,
        file: &Path,
        line: Option<u32>,
        size: Option<(u16, u16)>,
    ) -> Result<()> {
        let mut words = Vec::new();
        if self.window == Window::Tmux {
            // A pane whose program is missing closes before anybody can read why.
            if let Some(program) = self.command.first().filter(|program| !is_found(program)) {
                bail!("`{program}` was not found; set EDITOR to an editor that is installed");
            }
            words.extend(tmux_command(size));
        }
        words.extend(self.command.iter().map(String::as_str));
        let (program, args) = words.split_first().context("the editor has no name")?;
        let mut command = Command::new(program);
        command
            .args(args)
            .args(self.line_argument.arguments(file, line));
        let failed =
            || format!("Failed to start `{program}`; set EDITOR to an editor that is installed");
        if self.needs_terminal() {
            let status = command.status().with_context(failed)?;
            if !status.success() {
                bail!("`{program}` ended with {status}");
            }
            return Ok(());
        }
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut child = command.spawn().with_context(failed)?;
        // The thread only reaps the process; its end says nothing about the file.
        let _ = Builder::new()
            .name("editor".to_owned())
            .spawn(move || child.wait());
        Ok(())
    }
}

/// Returns true if a program can be found, by its path or along `PATH`.
fn is_found(program: &str) -> bool {
    if program.contains('/') {
        return Path::new(program).is_file();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// Returns the command that opens a pane beside or under the workshop, if both stay readable; else a window, which closes with the editor.
fn tmux_command(size: Option<(u16, u16)>) -> &'static [&'static str] {
    match size {
        Some((columns, _)) if columns >= 121 => &["tmux", "split-window", "-h"],
        Some((_, rows)) if rows >= 36 => &["tmux", "split-window", "-v"],
        _ => &["tmux", "new-window"],
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    /// Finds the editor in an environment with these variables.
    fn find(variables: &[(&str, &str)]) -> Option<Editor> {
        Editor::find(|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn an_editor_opens_beside_the_workshop_where_it_can() {
        let code = [("TERM_PROGRAM", "vscode"), ("EDITOR", "vi")];
        let zellij = [("ZELLIJ", "0")];
        let emacs = [("TMUX", "/tmp/x"), ("VISUAL", "emacs -nw")];
        let vi = [("VISUAL", ""), ("EDITOR", "vi -u 'my rc'")];
        for (variables, command, window) in [
            (&code[..], "code --goto", Window::Own),
            (&zellij, "zellij action edit", Window::Own),
            (&emacs, "emacs -nw", Window::Tmux),
            (&vi, "vi -u my rc", Window::Here),
        ] {
            let editor = find(variables).expect("an editor");
            assert_eq!(editor.command.join(" "), command);
            assert_eq!(editor.window, window, "{command}");
        }
        assert_eq!(find(&[("TMUX", "/tmp/x")]), None);
    }

    #[test]
    fn tmux_opens_a_pane_where_both_can_be_read_else_a_window() {
        assert_eq!(tmux_command(Some((200, 50)))[1..], ["split-window", "-h"]);
        assert_eq!(tmux_command(Some((100, 40)))[1..], ["split-window", "-v"]);
        assert_eq!(tmux_command(Some((80, 24)))[1..], ["new-window"]);
        assert_eq!(tmux_command(None)[1..], ["new-window"]);
    }

    #[test]
    fn a_line_is_passed_as_the_editor_takes_it() {
        for (variable, line, expected) in [
            (("TERM_PROGRAM", "vscode"), Some(13), "k.wgsl:13"),
            (("TERM_PROGRAM", "vscode"), None, "k.wgsl"),
            (("EDITOR", "/usr/bin/nano -w"), Some(2), "+2 k.wgsl"),
            (("EDITOR", "hx"), Some(2), "k.wgsl:2"),
            (("ZELLIJ", "0"), Some(7), "--line-number 7 k.wgsl"),
            (("EDITOR", "ed"), Some(7), "k.wgsl"),
        ] {
            let editor = find(&[variable]).expect("an editor");
            let arguments = editor.line_argument.arguments(Path::new("k.wgsl"), line);
            assert_eq!(arguments.join(OsStr::new(" ")), expected, "{variable:?}");
        }
    }

    #[test]
    fn a_missing_editor_is_named() {
        let editor = find(&[("EDITOR", "no-such-editor")]).expect("an editor");
        let error = editor
            .open(Path::new("x"), None, None)
            .expect_err("missing");
        assert!(
            error.to_string().contains("`no-such-editor`; set EDITOR"),
            "{error}"
        );
    }
}
