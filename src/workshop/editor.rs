//! Which editor opens a learner's file, and how: beside the workshop where the surroundings can do that, else in
//! its place.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::Builder;

use anyhow::{Context, Result, bail};

use crate::engine::client::split_words;

/// A command that opens a file, put at its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Editor {
    words: Vec<String>,
    /// It gets a pane or a window of tmux.
    in_tmux: bool,
    /// How it is told at which line to open the file.
    at_line: AtLine,
    /// Whether it draws on this terminal, so that the screen must make room.
    pub needs_terminal: bool,
}

/// How a line is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AtLine {
    /// `file:13`
    Colon,
    /// `+13 file`
    Plus,
    /// `--line-number 13 file`
    Option,
    /// We know no way.
    No,
}

impl AtLine {
    /// By the editor's name.
    fn of(words: &[String]) -> Self {
        match name_of(words).as_str() {
            "vi" | "vim" | "nvim" | "gvim" | "view" | "nano" | "emacs" | "emacsclient"
            | "micro" | "kak" | "joe" | "ne" | "mg" => Self::Plus,
            "hx" | "helix" | "zed" | "subl" | "code" | "codium" => Self::Colon,
            _ => Self::No,
        }
    }

    fn arguments(self, file: &Path, line: Option<u32>) -> Vec<OsString> {
        let mut named = file.as_os_str().to_owned();
        let Some(line) = line else {
            return vec![named];
        };
        match self {
            Self::Colon => {
                named.push(format!(":{line}"));
                vec![named]
            }
            Self::Plus => vec![format!("+{line}").into(), named],
            Self::Option => vec!["--line-number".into(), line.to_string().into(), named],
            Self::No => vec![named],
        }
    }
}

/// The program's name without its folder.
fn name_of(words: &[String]) -> String {
    let stem = words.first().map(Path::new).and_then(Path::file_stem);
    stem.map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

impl Editor {
    /// By what the environment says; none where nothing is named.
    pub fn find(variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let said = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        let named = ["VISUAL", "EDITOR"]
            .into_iter()
            .find_map(&said)
            .and_then(|line| split_words(&line).ok())
            .filter(|words| !words.is_empty());
        let beside = |words: &[&str], at_line: AtLine| {
            Some(Self {
                words: words.iter().map(|w| (*w).to_owned()).collect(),
                at_line,
                needs_terminal: false,
                in_tmux: false,
            })
        };
        if said("TERM_PROGRAM").is_some_and(|program| program == "vscode") {
            return beside(&["code", "--goto"], AtLine::Colon);
        }
        if said("ZELLIJ").is_some() {
            return beside(&["zellij", "action", "edit"], AtLine::Option);
        }
        let mut words = named?;
        let at_line = AtLine::of(&words);
        let name = name_of(&words);
        if ["code", "codium"].contains(&name.as_str()) && words.len() == 1 {
            words.push("--goto".to_owned());
        }
        // These draw in a window of their own.
        let window = ["code", "codium", "subl", "zed", "gedit", "kate", "gvim"];
        if window.contains(&name.as_str()) {
            return Some(Self {
                words,
                at_line,
                needs_terminal: false,
                in_tmux: false,
            });
        }
        if said("TMUX").is_some() {
            return Some(Self {
                words,
                at_line,
                needs_terminal: false,
                in_tmux: true,
            });
        }
        Some(Self {
            words,
            at_line,
            needs_terminal: true,
            in_tmux: false,
        })
    }

    /// Opens the file: waits for an editor on this terminal, leaves any other to itself.
    pub fn open(&self, file: &Path, line: Option<u32>, size: Option<(u16, u16)>) -> Result<()> {
        let mut words = self.words.clone();
        if self.in_tmux {
            // A pane whose program is not there closes before anybody can read why.
            if let Some(program) = words.first().filter(|program| !is_there(program)) {
                bail!("`{program}` is not there; set EDITOR to an editor that is");
            }
            words.splice(0..0, place(size).iter().map(|word| (*word).to_owned()));
        }
        let (program, args) = words.split_first().context("the editor has no name")?;
        let mut command = Command::new(program);
        command
            .args(args.iter().map(OsString::from))
            .args(self.at_line.arguments(file, line));
        let failed =
            || format!("Failed to start `{program}`; set EDITOR to an editor that is there");
        if self.needs_terminal {
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
        // Only to reap it; that it ended says nothing about the file.
        let _ = Builder::new()
            .name("editor".to_owned())
            .spawn(move || child.wait());
        Ok(())
    }
}

/// Whether a program can be found, by its path or along `PATH`.
fn is_there(program: &str) -> bool {
    if program.contains('/') {
        return Path::new(program).is_file();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// Beside the workshop or under it, where both stay readable; else a window of its own, which closes with the editor.
fn place(size: Option<(u16, u16)>) -> &'static [&'static str] {
    match size {
        Some((columns, _)) if columns >= 121 => &["tmux", "split-window", "-h"],
        Some((_, rows)) if rows >= 36 => &["tmux", "split-window", "-v"],
        _ => &["tmux", "new-window"],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(variables: &[(&str, &str)]) -> Option<(String, bool)> {
        let editor = Editor::find(|name| {
            variables
                .iter()
                .find(|(n, _)| *n == name)
                .map(|(_, value)| (*value).to_owned())
        })?;
        Some((editor.words.join(" "), editor.needs_terminal))
    }

    #[test]
    fn an_editor_opens_beside_the_workshop_where_it_can() {
        assert_eq!(
            find(&[("TERM_PROGRAM", "vscode"), ("EDITOR", "vi")]),
            Some(("code --goto".to_owned(), false))
        );
        assert_eq!(
            find(&[("ZELLIJ", "0")]),
            Some(("zellij action edit".to_owned(), false))
        );
        assert_eq!(
            find(&[("TMUX", "/tmp/x"), ("VISUAL", "emacs -nw")]),
            Some(("emacs -nw".to_owned(), false))
        );
        assert_eq!(
            find(&[("VISUAL", ""), ("EDITOR", "vi -u 'my rc'")]),
            Some(("vi -u my rc".to_owned(), true))
        );
        assert_eq!(find(&[("TMUX", "/tmp/x")]), None);
    }

    #[test]
    fn tmux_gives_it_a_place_where_both_can_be_read() {
        assert_eq!(place(Some((200, 50)))[1..], ["split-window", "-h"]);
        assert_eq!(place(Some((100, 40)))[1..], ["split-window", "-v"]);
        assert_eq!(place(Some((80, 24)))[1..], ["new-window"]);
        assert_eq!(place(None)[1..], ["new-window"]);
    }

    #[test]
    fn a_line_is_told_as_the_editor_wants_it() {
        let told = |variables: &[(&str, &str)], line| {
            let editor = Editor::find(|name| {
                let found = variables.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| (*value).to_owned())
            })
            .expect("an editor");
            let file = Path::new("k.wgsl");
            let arguments = editor.at_line.arguments(file, line).into_iter();
            let arguments = arguments.map(|it| it.to_string_lossy().into_owned());
            arguments.collect::<Vec<_>>().join(" ")
        };
        let code = [("TERM_PROGRAM", "vscode")];
        assert_eq!(told(&code, Some(13)), "k.wgsl:13");
        assert_eq!(told(&code, None), "k.wgsl");
        assert_eq!(
            told(&[("EDITOR", "/usr/bin/nano -w")], Some(2)),
            "+2 k.wgsl"
        );
        assert_eq!(told(&[("EDITOR", "hx")], Some(2)), "k.wgsl:2");
        assert_eq!(told(&[("ZELLIJ", "0")], Some(7)), "--line-number 7 k.wgsl");
        assert_eq!(told(&[("EDITOR", "ed")], Some(7)), "k.wgsl");
    }

    #[test]
    fn an_editor_that_is_not_there_is_named() {
        let editor = Editor {
            words: vec!["no-such-editor".to_owned()],
            at_line: AtLine::No,
            in_tmux: false,
            needs_terminal: true,
        };
        let error = editor
            .open(Path::new("x"), None, None)
            .expect_err("cannot start");
        assert!(
            error.to_string().contains("`no-such-editor`; set EDITOR"),
            "{error}"
        );
    }
}
