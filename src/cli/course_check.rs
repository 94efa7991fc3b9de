//! `perflings course check`: first what reading shows, then every starter and every solution on a device.

use anyhow::Result;
use clap::Parser;
use serde_json::json;

use super::check::Bench;
use super::out::{self, Exit, result};
use super::shelf::Shelf;
use super::{Cli, CourseArgs, EngineArgs};
use crate::course::validate::{Compare, Tried, Vocabulary, behaviour, structure};
use crate::engine::client::split_words;
use crate::tui::keys::BINDINGS;

/// The plausibility lints, by the names under which `lints.rs` reports them.
const LINTS: &[&str] = &[
    "above-peak",
    "backward-too-short",
    "below-entropy",
    "gradient-coverage",
    "ledger-open",
    "no-kernels",
    "not-finite",
    "stuck-at-ln-vocab",
    "wrong-logits",
];

pub fn course_check(
    measure: bool,
    as_json: bool,
    engine: &EngineArgs,
    args: &CourseArgs,
) -> Result<Exit> {
    let shelf = Shelf::load(args)?;
    let lints: Vec<String> = LINTS.iter().map(|name| (*name).to_owned()).collect();
    let vocabulary = Vocabulary {
        keys: &keys(),
        lints: &lints,
        command: &is_command,
    };
    let problems = structure(&shelf.source, &shelf.course, &vocabulary);
    for problem in &problems {
        if as_json {
            out::json(
                &json!({ "what": problem.path, "line": problem.line, "passed": false, "detail": problem.what }),
            )?;
        } else {
            result(&format!("FAIL  {problem}"))?;
        }
    }
    let tried = try_all(&shelf, measure, engine)?;
    for tried in &tried {
        if as_json {
            out::json(tried)?;
        } else {
            let mark = if tried.passed { "pass" } else { "FAIL" };
            result(&format!("{mark}  {}: {}", tried.what, tried.detail))?;
        }
    }
    let failed = problems.len() + tried.iter().filter(|tried| !tried.passed).count();
    if !as_json {
        result(&match failed {
            0 => format!(
                "passed: {} stages, every starter fails by name, every solution passes",
                shelf.course.stages.len()
            ),
            n => format!("not passed: {n} to mend"),
        })?;
    }
    Ok(if failed == 0 { Exit::Ok } else { Exit::Failed })
}

fn try_all(shelf: &Shelf, measure: bool, engine: &EngineArgs) -> Result<Vec<Tried>> {
    let bench = std::cell::RefCell::new(Bench::new(engine)?);
    let interrupted = || "interrupted".to_owned();
    let mut run = |config: &_, steps| {
        let found = bench.borrow_mut().run(0, config, steps);
        found
            .map_err(|error| format!("{error:#}"))?
            .ok_or_else(interrupted)
    };
    let mut compare = |a: &_, b: &_| {
        let found = bench.borrow_mut().pair(0, a, b);
        found
            .map_err(|error| format!("{error:#}"))?
            .ok_or_else(interrupted)
    };
    let compare: Option<&mut Compare<'_>> = if measure { Some(&mut compare) } else { None };
    Ok(behaviour(&shelf.course, &mut run, compare))
}

/// Whether a lesson names a command line that this program takes.
fn is_command(line: &str) -> Result<(), String> {
    let words = split_words(line)?;
    match Cli::try_parse_from(&words) {
        Ok(_) => Ok(()),
        Err(error) if error.exit_code() == 0 => Ok(()),
        Err(error) => Err(error
            .to_string()
            .lines()
            .next()
            .unwrap_or("unknown")
            .to_owned()),
    }
}

/// Names of the keys as the help writes them.
fn keys() -> Vec<String> {
    BINDINGS
        .iter()
        .flat_map(|binding| binding.keys)
        .map(ToString::to_string)
        .collect()
}
