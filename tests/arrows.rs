//! Checks the arrows between the rooms of the workshop, which cargo does not check: `cli ▶ shell ▶ app ◀ tui`. Each rule has a folder and the
//! words that its files must not have outside their tests.

use std::path::{Path, PathBuf};

/// A folder or file below `src`, and the words that must not stand there.
const RULES: [(&str, &str); 12] = [
    ("", "burn:: cubecl:: engine::serve"),
    ("shell", "crate::cli"),
    ("tui", "crate::cli crate::shell std::fs"),
    // A beat shows its own runs: panels read `App::shown_bench`, `shown_run` and `shown_pair`.
    (
        "tui/panels",
        "crossterm Mutex app.bench .bench learner.pair",
    ),
    (
        "app",
        "crate::cli crate::shell crate::tui ratatui crossterm",
    ),
    ("app", "std::fs std::thread Instant::now SystemTime::now"),
    ("judge", "crate::app crate::cli crate::shell crate::tui"),
    ("judge", "std::fs std::thread Instant::now SystemTime::now"),
    ("course", "crate::app crate::cli crate::shell crate::tui"),
    ("class", "crate::app crate::cli crate::shell crate::tui"),
    ("pages", "crate::app crate::cli crate::shell crate::tui"),
    ("measure", "crate::app crate::cli crate::shell crate::tui"),
];

/// Words with the only places below `src` that may name them.
const OWNED: [(&str, &str); 4] = [
    ("enable_raw_mode", "tui/terminal"),
    ("KeyCode", "tui/keys"),
    ("Color::Rgb", "tui/theme"),
    ("Color::Indexed", "tui/theme"),
];

/// Returns the files of Rust below `folder`.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
    found
}

/// Returns the lines of code of a file up to its tests, each with its number, without comments.
fn code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines()
        .enumerate()
        .take_while(|(_, line)| *line != "#[cfg(test)]")
        .map(|(index, line)| (index + 1, line.split("//").next().unwrap_or("")))
}

/// Returns true if `line` has `word` with no part of a name in front of it or behind it.
fn names(line: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(start, _)| {
        let before = line[..start].chars().next_back();
        let behind = line[start + word.len()..].chars().next();
        !before.is_some_and(is_part) && !behind.is_some_and(is_part)
    })
}

#[test]
fn no_room_of_the_workshop_names_a_room_above_it() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut wrong = Vec::new();
    for path in files(&src) {
        let text = std::fs::read_to_string(&path).expect("a text");
        let place = path
            .strip_prefix(&src)
            .expect("below src")
            .with_extension("");
        let mut forbidden: Vec<&str> = Vec::new();
        for (folder, words) in RULES {
            // `main` alone starts the engine.
            if place.starts_with(folder) && place != Path::new("main") {
                forbidden.extend(words.split(' '));
            }
        }
        let owned = OWNED.iter().filter(|(_, owner)| !place.starts_with(owner));
        forbidden.extend(owned.map(|(word, _)| word));
        for (number, line) in code(&text) {
            for word in forbidden.iter().filter(|word| names(line, word)) {
                wrong.push(format!(
                    "{}:{number}: must not name `{word}`",
                    path.display()
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}
