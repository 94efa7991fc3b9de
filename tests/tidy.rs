//! Rules the compiler cannot check: which module uses which, that no files use each other in a circle, how files begin and
//! are named, and who names colours, keys and terminal modes. The rules about modules are the table of ARCHITECTURE.md.

#[path = "tidy/arrows.rs"]
mod arrows;
#[path = "tidy/source.rs"]
mod source;

use std::collections::BTreeSet;
use std::fmt::Write as _;

use arrows::{Sources, circles};
use source::{File, files};

/// What only some files may name, tests included.
const OWNED: &[(&[&str], &[&str])] = &[
    (&["enable_raw_mode"], &["src/tui/terminal"]),
    (&["KeyCode"], &["src/tui/keys"]),
    (&["Color", "::", "Rgb"], &["src/tui/theme"]),
    (&["Color", "::", "Indexed"], &["src/tui/theme"]),
];

/// The files that print: everything else asks `out`, which lets no escape sequence through.
const PRINTS: &[&str] = &["src/out.rs", "src/tui/terminal.rs", "src/engine/wire.rs"];
/// Where files are opened: nothing else may wait at a pipe or replace a device.
const OPENS: &[&str] = &["src/files.rs", "src/gputrace/file.rs"];

/// The same, tests left out.
const OWNED_OUTSIDE_TESTS: &[(&[&str], &[&str])] = &[
    (&["print", "!"], PRINTS),
    (&["println", "!"], PRINTS),
    (&["eprint", "!"], PRINTS),
    (&["eprintln", "!"], PRINTS),
    (&["dbg", "!"], PRINTS),
    (&["io", "::", "stdout"], PRINTS),
    (&["io", "::", "stderr"], PRINTS),
    (&["fs", "::", "read"], OPENS),
    (&["fs", "::", "read_to_string"], OPENS),
    (&["fs", "::", "write"], OPENS),
    (&["fs", "::", "rename"], OPENS),
    (&["fs", "::", "copy"], OPENS),
    (&["File", "::", "open"], OPENS),
    (&["File", "::", "create"], OPENS),
    (&["File", "::", "create_new"], OPENS),
    (&["File", "::", "options"], OPENS),
    (&["OpenOptions", "::"], OPENS),
    (&["NamedTempFile"], OPENS),
    // A new kind of exercise, or of its work, is not a new arm everywhere.
    (
        &["ExerciseWork", "::"],
        &["src/course/exercise", "src/cli/exercise.rs"],
    ),
];

/// Names that say nothing about what a file holds.
const EMPTY_NAMES: [&str; 5] = ["common", "helper", "helpers", "util", "utils"];

/// A row of the table of modules.
struct Rule {
    /// `["tui", "panels"]`
    module: Vec<String>,
    /// Modules of ours that it may use, beside itself.
    uses: Vec<Vec<String>>,
    /// Crates, paths and macros that it must not name. `burn` stands for `burn_wgpu` and the like as well.
    never: Vec<String>,
}

impl Rule {
    fn is_about(&self, module: &[String]) -> bool {
        module.starts_with(&self.module)
    }

    fn allows(&self, module: &[String]) -> bool {
        self.is_about(module) || self.uses.iter().any(|it| module.starts_with(it))
    }
}

/// The rows below `| module |` in ARCHITECTURE.md: module, what it holds, what it uses, what it never names.
fn rules() -> Vec<Rule> {
    let page = std::fs::read_to_string("ARCHITECTURE.md").expect("ARCHITECTURE.md");
    let rows = page.lines().skip_while(|it| !it.starts_with("| module |"));
    let rows = rows.skip(2).take_while(|it| it.starts_with('|'));
    rows.flat_map(|row| {
        let cells: Vec<&str> = row.split('|').collect();
        let module = |name: &str| name.split("::").map(str::to_owned).collect::<Vec<_>>();
        let uses: Vec<_> = quoted(cells[3]).map(module).collect();
        let never: Vec<_> = quoted(cells[4]).map(str::to_owned).collect();
        let rows = quoted(cells[1]).map(|name| Rule {
            module: module(name),
            uses: uses.clone(),
            never: never.clone(),
        });
        rows.collect::<Vec<_>>()
    })
    .collect()
}

/// What stands between backquotes.
fn quoted(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

/// Fails with all of these lines, if there are any.
fn report(wrong: &[String]) {
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn every_module_has_a_row_in_the_table_and_every_row_a_module() {
    let (rules, files) = (rules(), files());
    let modules = files.iter().filter_map(|file| file.module.first());
    let modules: BTreeSet<&String> = modules.collect();
    let mut wrong = Vec::new();
    for module in modules {
        if !rules.iter().any(|rule| rule.module == [module.clone()]) {
            wrong.push(format!("ARCHITECTURE.md: the table has no row `{module}`"));
        }
    }
    for rule in &rules {
        for module in rule.uses.iter().chain([&rule.module]) {
            if !files.iter().any(|file| file.module.starts_with(module)) {
                let module = module.join("::");
                wrong.push(format!("ARCHITECTURE.md: there is no module `{module}`"));
            }
        }
    }
    report(&wrong);
}

#[test]
fn modules_use_only_what_the_table_allows() {
    let (rules, files) = (rules(), files());
    let sources = Sources::new(&files);
    let mut wrong = Vec::new();
    for ((from, to), arrow) in &sources.arrows() {
        let (from, to) = (&files[*from], &files[*to]);
        // The row with the longest name is the most particular one.
        let rows = rules.iter().filter(|rule| rule.is_about(&from.module));
        let Some(rule) = rows.max_by_key(|rule| rule.module.len()) else {
            continue;
        };
        if !to.module.is_empty() && !rule.allows(&to.module) {
            wrong.push(format!(
                "{}:{}: `{}` must not use {} ({})",
                from.path,
                arrow.line,
                rule.module.join("::"),
                to.path,
                list(&arrow.names)
            ));
        }
    }
    report(&wrong);
}

#[test]
fn modules_never_name_what_the_table_forbids() {
    let (rules, files) = (rules(), files());
    let sources = Sources::new(&files);
    let mut wrong = Vec::new();
    for (file, named) in files.iter().zip(&sources.named) {
        for rule in rules.iter().filter(|rule| rule.is_about(&file.module)) {
            for word in &rule.never {
                let paths = named.iter().filter(|one| names(&one.path, word));
                let lines = paths.map(|one| one.line).chain(macros(file, word));
                wrong.extend(lines.map(|line| {
                    let module = rule.module.join("::");
                    format!("{}:{line}: `{module}` must not name {word}", file.path)
                }));
            }
        }
    }
    report(&wrong);
}

/// Whether the path holds the word: `std::fs`, `Instant::now`, or a crate and those whose names begin with it.
fn names(path: &[String], word: &str) -> bool {
    let word: Vec<&str> = word.split("::").collect();
    let family = format!("{}_", word[0]);
    path.windows(word.len()).any(|part| part == word)
        || (word.len() == 1 && path.first().is_some_and(|it| it.starts_with(&family)))
}

/// The lines outside of tests that call this macro.
fn macros(file: &File, word: &str) -> Vec<usize> {
    let name = word.strip_suffix('!');
    let tokens = file.tokens.iter().enumerate();
    tokens
        .filter(|(at, token)| {
            !token.test && Some(token.text.as_str()) == name && file.token(at + 1) == "!"
        })
        .map(|(_, token)| token.line)
        .collect()
}

#[test]
fn no_files_use_each_other_in_a_circle() {
    let files = files();
    let arrows = Sources::new(&files).arrows();
    // The interpreter is one machine whose methods stand in several files.
    let machine = |at: &usize| files[*at].path.starts_with("src/lockstep");
    let mut circles = circles(&arrows);
    circles.retain(|circle| !circle.iter().all(machine));
    let mut shown = String::new();
    for circle in &circles {
        let _ = writeln!(shown, "\nThese {} files use each other:", circle.len());
        for ((from, to), arrow) in &arrows {
            if circle.contains(from) && circle.contains(to) {
                let (from, to) = (&files[*from].path, &files[*to].path);
                let (line, names) = (arrow.line, list(&arrow.names));
                let _ = writeln!(shown, "  {from}:{line} -> {to} ({names})");
            }
        }
    }
    assert!(
        circles.is_empty(),
        "{shown}\nMove what both sides need into a file of its own, or the call into the file that needs it."
    );
}

fn list(names: &BTreeSet<String>) -> String {
    names
        .iter()
        .map(String::as_str)
        .collect::<Vec<_>>()
        .join(", ")
}

#[test]
fn only_their_owners_name_colours_keys_terminal_modes_output_files_and_work() {
    let mut wrong = Vec::new();
    let outside_tests = OWNED_OUTSIDE_TESTS.iter().map(|it| (it, false));
    for ((words, owners), in_tests) in OWNED.iter().map(|it| (it, true)).chain(outside_tests) {
        for file in files() {
            if owners.iter().any(|owner| file.path.starts_with(owner)) {
                continue;
            }
            let counts = |at: &usize| in_tests || !file.tokens[*at].test;
            for at in (0..file.tokens.len()).filter(|at| counts(at) && file.has(*at, words)) {
                let (line, word, owners) =
                    (file.tokens[at].line, words.concat(), owners.join(" or "));
                wrong.push(format!("{}:{line}: {word} belongs in {owners}", file.path));
            }
        }
    }
    report(&wrong);
}

#[test]
fn files_say_what_they_are_and_do_not_unwrap() {
    let mut wrong = Vec::new();
    for file in files() {
        let (path, name) = (&file.path, file.module.last());
        if !file.text.starts_with("//!") {
            wrong.push(format!("{path}:1: begins without saying what it is"));
        }
        match name.map(String::as_str) {
            Some("mod") => wrong.push(format!("{path}: write foo.rs beside foo/")),
            Some(name) if EMPTY_NAMES.contains(&name) => {
                wrong.push(format!("{path}: name the file after what it holds"));
            }
            _ => {}
        }
        for at in 0..file.tokens.len() {
            let token = &file.tokens[at];
            if !token.test && file.has(at, &[".", "unwrap", "(", ")"]) {
                let line = token.line;
                wrong.push(format!(
                    "{path}:{line}: unwrap; return an error or `expect` with the reason"
                ));
            }
        }
    }
    report(&wrong);
}

/// A suite that no binary has would never run.
#[test]
fn every_suite_is_in_a_binary() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &str| std::fs::read_to_string(root.join(path)).expect("read");
    let mut binaries = read("Cargo.toml");
    for group in ["compute", "data", "program", "screen"] {
        binaries += &read(&format!("tests/groups/{group}.rs"));
    }
    for entry in std::fs::read_dir(root.join("tests"))
        .expect("tests")
        .flatten()
    {
        let name = entry.file_name().to_string_lossy().into_owned();
        if let Some(suite) = name.strip_suffix(".rs") {
            let (module, alone) = (
                format!("\"../{name}\""),
                format!("[[test]]\nname = \"{suite}\""),
            );
            assert!(
                binaries.contains(&module) || binaries.contains(&alone),
                "tests/{name} is in no file of tests/groups"
            );
        }
    }
}

/// The rules themselves, on files made up for this.
mod itself {
    use super::*;

    fn made(files: &[(&str, &str)]) -> Vec<File> {
        let made = files.iter();
        made.map(|(path, text)| File::new(path, (*text).to_owned()))
            .collect()
    }

    /// `from -> to: names`, in order.
    fn drawn(files: &[File]) -> Vec<String> {
        let arrows = Sources::new(files).arrows();
        let name = |at: &usize| files[*at].module.join("::");
        let arrows = arrows.iter();
        arrows
            .map(|((from, to), it)| format!("{} -> {}: {}", name(from), name(to), list(&it.names)))
            .collect()
    }

    #[test]
    fn names_lead_to_the_file_that_defines_them() {
        let files = made(&[
            ("src/lib.rs", "pub mod app; pub mod tui;"),
            (
                "src/app.rs",
                "pub use message::Action; pub mod message; pub fn update() {}",
            ),
            ("src/app/message.rs", "pub enum Action { Quit }"),
            (
                "src/tui.rs",
                "use crate::app::{self, Action as A}; mod panel;\nfn draw() { app::update(); panel::render(); }",
            ),
            (
                "src/tui/panel.rs",
                "use super::A;\n// crate::app::comment\npub fn render() { \"crate::app::text\"; }\n\
                 #[cfg(test)]\nmod tests { use crate::app::update; }",
            ),
        ]);
        assert_eq!(
            drawn(&files),
            [
                "tui -> app: update",
                "tui -> app::message: Action",
                "tui -> tui::panel: render",
                "tui::panel -> app::message: Action",
            ]
        );
        assert!(circles(&Sources::new(&files).arrows()).is_empty());
    }

    #[test]
    fn a_circle_of_three_is_one_circle() {
        let files = made(&[
            ("src/a.rs", "use crate::b::B; pub struct A;"),
            ("src/b.rs", "pub struct B; fn f() { crate::c::c() }"),
            ("src/c.rs", "pub fn c() { let _: super::a::A; }"),
            ("src/d.rs", "use crate::a::A;"),
        ]);
        let found = circles(&Sources::new(&files).arrows());
        assert_eq!(found, [BTreeSet::from([0, 1, 2])]);
    }

    #[test]
    fn literals_lifetimes_and_inline_modules_do_not_mislead() {
        let files = made(&[
            (
                "src/a.rs",
                "fn f<'a>(x: &'a str) { let _ = ('\"', '\\'', b'{', r#\"}\"#); }\n\
                 mod inner { use super::Own; use crate::b::B; }\nstruct Own;\nuse crate::b::last;",
            ),
            ("src/b.rs", "pub struct B; pub fn last() {}"),
        ]);
        assert_eq!(drawn(&files), ["a -> b: B, last"]);
        let line = files[0].tokens.iter().find(|token| token.text == "last");
        assert_eq!(line.map(|token| token.line), Some(4));
    }

    #[test]
    fn words_are_found_in_paths_and_macros() {
        let path = |text: &str| text.split("::").map(str::to_owned).collect::<Vec<_>>();
        assert!(names(&path("burn_wgpu::wgpu"), "burn"));
        assert!(names(&path("std::fs::read"), "std::fs"));
        assert!(names(&path("Instant::now"), "Instant::now"));
        assert!(!names(&path("crate::burned"), "burn"));
        let file = &made(&[(
            "src/a.rs",
            "fn f() {\n println!(); }\n#[cfg(test)]\nfn g() { println!() }",
        )])[0];
        assert_eq!(macros(file, "println!"), [2]);
    }
}
