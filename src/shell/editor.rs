//! Finds the editor that opens a learner's file, and opens it: beside the workshop where the environment can do that, else in its place.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::Builder;

use anyhow::{Context, Result, bail};

use protocol::handle::split_words;

/// A command that opens a file. The file is its last argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Editor {
    words: Vec<String>,
    window: Window,
    at_line: AtLine,
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

/// The form in which the editor is told at which line to open the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AtLine {
    /// `file:13`
    Colon,
    /// `+13 file`
    Plus,
    /// `--line-number 13 file`
    Option,
    /// The editor opens the file without a line.
    Unknown,
}

impl AtLine {
    /// Returns the form that the editor with this name takes.
    fn for_editor(name: &str) -> Self {
        match name {
            "vi" | "vim" | "nvim" | "gvim" | "view" | "nano" | "emacs" | "emacsclient"
            | "micro" | "kak" | "joe" | "ne" | "mg" => Self::Plus,
            "hx" | "helix" | "zed" | "subl" | "code" | "codium" => Self::Colon,
            _ => Self::Unknown,
        }
    }

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
    /// Finds the editor that the environment names, or `None` if it names none.
    pub(super) fn find(variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let set = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        let own = |words: &[&str], at_line: AtLine| {
            Some(Self {
                words: words.iter().map(|word| (*word).to_owned()).collect(),
                window: Window::Own,
                at_line,
            })
        };
        if set("TERM_PROGRAM").is_some_and(|program| program == "vscode") {
            return own(&["code", "--goto"], AtLine::Colon);
        }
        if set("ZELLIJ").is_some() {
            return own(&["zellij", "action", "edit"], AtLine::Option);
        }
        let line = ["VISUAL", "EDITOR"].into_iter().find_map(&set)?;
        let mut words = split_words(&line).ok()?;
        let stem = Path::new(words.first()?).file_stem();
        let name = stem.map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        if ["code", "codium"].contains(&name.as_str()) && words.len() == 1 {
            words.push("--goto".to_owned());
        }
        let window = match name.as_str() {
            "code" | "codium" | "subl" | "zed" | "gedit" | "kate" | "gvim" => Window::Own,
            _ if set("TMUX").is_some() => Window::Tmux,
            _ => Window::Here,
        };
        Some(Self {
            at_line: AtLine::for_editor(&name),
            words,
            window,
        })
    }

    /// Returns true if the editor draws on this terminal.
    pub(super) fn needs_terminal(&self) -> bool {
        self.window == Window::Here
    }

    /// Opens the file at a line. Waits for the end of an editor on this terminal, but not of any other. `size` is the terminal's.
    pub(super) fn open(
        &self,
        file: &Path,
        line: Option<u32>,
        size: Option<(u16, u16)>,
    ) -> Result<()> {
        let mut words = self.words.clone();
        if self.window == Window::Tmux {
            // A pane whose program is missing closes before anybody can read why.
            if let Some(program) = words.first().filter(|program| !is_found(program)) {
                bail!("`{program}` was not found; set EDITOR to an editor that is installed");
            }
            let tmux = tmux_command(size).iter().map(|word| (*word).to_owned());
            words.splice(0..0, tmux);
        }
        let (program, args) = words.split_first().context("the editor has no name")?;
        let mut command = Command::new(program);
        command.args(args).args(self.at_line.arguments(file, line));
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

    fn find(variables: &[(&str, &str)]) -> Option<Editor> {
        Editor::find(|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn an_editor_opens_beside_the_workshop_where_it_can() {
        let opens = |variables: &[(&str, &str)], words: &str, window: Window| {
            let editor = find(variables).expect("an editor");
            assert_eq!(editor.words.join(" "), words);
            assert_eq!(editor.window, window);
        };
        let code = [("TERM_PROGRAM", "vscode"), ("EDITOR", "vi")];
        opens(&code, "code --goto", Window::Own);
        opens(&[("ZELLIJ", "0")], "zellij action edit", Window::Own);
        let emacs = [("TMUX", "/tmp/x"), ("VISUAL", "emacs -nw")];
        opens(&emacs, "emacs -nw", Window::Tmux);
        let vi = [("VISUAL", ""), ("EDITOR", "vi -u 'my rc'")];
        opens(&vi, "vi -u my rc", Window::Here);
        assert_eq!(find(&[("TMUX", "/tmp/x")]), None);
    }

    #[test]
    fn tmux_opens_it_where_both_can_be_read() {
        assert_eq!(tmux_command(Some((200, 50)))[1..], ["split-window", "-h"]);
        assert_eq!(tmux_command(Some((100, 40)))[1..], ["split-window", "-v"]);
        assert_eq!(tmux_command(Some((80, 24)))[1..], ["new-window"]);
        assert_eq!(tmux_command(None)[1..], ["new-window"]);
    }

    #[test]
    fn a_line_is_named_as_the_editor_wants_it() {
        let named = |variable: (&str, &str), line| {
            let editor = find(&[variable]).expect("an editor");
            let arguments = editor.at_line.arguments(Path::new("k.wgsl"), line);
            arguments.join(OsStr::new(" ")).into_string().expect("text")
        };
        let code = ("TERM_PROGRAM", "vscode");
        assert_eq!(named(code, Some(13)), "k.wgsl:13");
        assert_eq!(named(code, None), "k.wgsl");
        let nano = ("EDITOR", "/usr/bin/nano -w");
        assert_eq!(named(nano, Some(2)), "+2 k.wgsl");
        assert_eq!(named(("EDITOR", "hx"), Some(2)), "k.wgsl:2");
        assert_eq!(named(("ZELLIJ", "0"), Some(7)), "--line-number 7 k.wgsl");
        assert_eq!(named(("EDITOR", "ed"), Some(7)), "k.wgsl");
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
