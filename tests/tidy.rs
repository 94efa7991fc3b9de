//! Rules the compiler cannot check: who may import what, how files begin, how long they get, and who names colours,
//! keys and terminal modes.

use std::path::{Path, PathBuf};

/// Module prefix, and what its files must not mention.
const FORBIDDEN: &[(&str, &[&str])] = &[
    (
        "src/protocol",
        &[
            "burn",
            "ratatui",
            "crossterm",
            "crate::engine",
            "crate::app",
            "crate::tui",
            "crate::model",
            "crate::ops",
        ],
    ),
    (
        "src/config",
        &[
            "burn",
            "ratatui",
            "crossterm",
            "crate::engine",
            "crate::app",
            "crate::tui",
            "crate::model",
            "crate::ops",
        ],
    ),
    (
        "src/model",
        &[
            "ratatui",
            "crossterm",
            "crate::engine",
            "crate::app",
            "crate::tui",
            "crate::course",
            "std::thread",
            "println!",
        ],
    ),
    (
        "src/ops",
        &[
            "ratatui",
            "crossterm",
            "crate::engine",
            "crate::app",
            "crate::tui",
            "crate::course",
            "crate::model",
            "std::thread",
            "println!",
        ],
    ),
    (
        "src/data",
        &[
            "ratatui",
            "crossterm",
            "crate::engine",
            "crate::app",
            "crate::tui",
            "crate::course",
            "std::thread",
            "println!",
        ],
    ),
    (
        "src/engine",
        &[
            "ratatui",
            "crossterm",
            "crate::app",
            "crate::tui",
            "println!",
        ],
    ),
    (
        "src/course",
        &[
            "burn::",
            "ratatui",
            "crossterm",
            "crate::engine",
            "crate::tui",
            "crate::app",
        ],
    ),
    (
        "src/app",
        &[
            "burn::",
            "ratatui",
            "crossterm",
            "std::fs",
            "std::thread",
            "Instant::now",
            "SystemTime::now",
        ],
    ),
    ("src/tui", &["burn::", "crate::model", "crate::ops"]),
    (
        "src/tui/panels",
        &[
            "std::fs",
            "std::thread",
            "Mutex",
            "RwLock",
            "Instant::now",
            "crossterm",
        ],
    ),
];

/// A word that only one file may use.
const OWNED: &[(&str, &str)] = &[
    ("enable_raw_mode", "src/tui/terminal"),
    ("Color::Rgb", "src/tui/theme"),
    ("Color::Indexed", "src/tui/theme"),
];

/// Lines past which there is a second idea in a file, tests at its foot not counted. Files aim at 150.
const LONGEST: usize = 400;

fn sources() -> Vec<(PathBuf, String)> {
    fn walk(folder: &Path, found: &mut Vec<(PathBuf, String)>) {
        for entry in std::fs::read_dir(folder)
            .expect("a source folder")
            .flatten()
        {
            let path = entry.path();
            if path.is_dir() {
                walk(&path, found);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let text = std::fs::read_to_string(&path).expect("a source file");
                found.push((path, text));
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    walk(&root.join("src"), &mut found);
    found
        .into_iter()
        .map(|(path, text)| {
            (
                path.strip_prefix(root).expect("below the root").to_owned(),
                text,
            )
        })
        .collect()
}

/// The code before the tests at the foot, with line numbers.
fn code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let end = text.find("#[cfg(test)]").unwrap_or(text.len());
    text[..end]
        .lines()
        .enumerate()
        .map(|(number, line)| (number + 1, line))
        .filter(|(_, line)| !line.trim_start().starts_with("//"))
}

#[test]
fn modules_import_only_what_they_may() {
    let mut wrong = Vec::new();
    for (path, text) in sources() {
        let name = path.to_string_lossy();
        for (prefix, words) in FORBIDDEN {
            let below = name
                .strip_prefix(prefix)
                .is_some_and(|rest| rest.starts_with('/') || rest == ".rs");
            for (number, line) in code(&text).filter(|_| below) {
                wrong.extend(
                    words
                        .iter()
                        .filter(|word| line.contains(**word))
                        .map(|word| format!("{name}:{number}: mentions {word}")),
                );
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn one_file_each_names_modes_and_colours() {
    let mut wrong = Vec::new();
    for (path, text) in sources() {
        let name = path.to_string_lossy();
        for (word, owner) in OWNED.iter().filter(|(_, owner)| !name.starts_with(owner)) {
            wrong.extend(
                code(&text)
                    .filter(|(_, line)| line.contains(word))
                    .map(|(number, _)| format!("{name}:{number}: {word} belongs in {owner}")),
            );
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn files_say_what_they_are_and_stay_short() {
    let mut wrong = Vec::new();
    for (path, text) in sources() {
        let name = path.to_string_lossy();
        if !text.starts_with("//!") {
            wrong.push(format!("{name}:1: begins without saying what it is"));
        }
        let length = text
            .find("#[cfg(test)]")
            .map_or(text.lines().count(), |end| text[..end].lines().count());
        if length > LONGEST {
            wrong.push(format!(
                "{name}: {length} lines; past {LONGEST} there is a second idea in it"
            ));
        }
        if path.file_name().is_some_and(|file| file == "mod.rs") {
            wrong.push(format!("{name}: write foo.rs beside foo/"));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}
