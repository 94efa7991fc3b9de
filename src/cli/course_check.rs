//! `perflings course check`: first what reading shows, then every starter and every solution on a device.

mod exercises;

use std::cell::RefCell;

use anyhow::Result;
use clap::Parser;
use serde_json::json;

use super::{Cli, CourseArgs, EngineArgs};
use crate::config::RunConfig;
use crate::course::context::CourseContext;
use crate::course::validate::{Compare, Tried, Vocabulary, behaviour, structure};
use crate::engine::client::split_words;
use crate::lints;
use crate::measure::bench::Bench;
use crate::out::{self, Exit, Stop, progress, result};
use crate::tui::keys::{BINDINGS, key_name};

pub fn course_check(
    measure: bool,
    as_json: bool,
    engine: &EngineArgs,
    args: &CourseArgs,
) -> Result<Exit> {
    let context = CourseContext::load_as_author(args.course.as_deref(), args.lang.as_deref())?;
    let lints: Vec<String> = lints::names().map(str::to_owned).collect();
    let vocabulary = Vocabulary {
        keys: &keys(),
        lints: &lints,
        command: &is_command,
    };
    let problems = structure(&context.source, &context.course, &vocabulary);
    for problem in &problems {
        if as_json {
            out::json(
                &json!({ "what": problem.path, "line": problem.line, "passed": false, "detail": problem.what }),
            )?;
        } else {
            result(&format!("FAIL  {problem}"))?;
        }
    }
    let mut tried = try_all(&context, measure, engine)?;
    match exercises::all(&context, measure, engine)? {
        Some(more) => tried.extend(more),
        None => return Ok(Exit::Interrupted),
    }
    for tried in &tried {
        if as_json {
            out::json(tried)?;
        } else {
            let mark = match tried.passed {
                true if tried.detail.starts_with("skipped") => "----",
                true => "pass",
                false => "FAIL",
            };
            result(&format!("{mark}  {}", tried.what))?;
            // One criterion a line: half a dozen of them are no sentence.
            for part in tried.detail.replace("; `", "\n`").lines() {
                result(&format!("        {part}"))?;
            }
        }
    }
    let failed = problems.len() + tried.iter().filter(|tried| !tried.passed).count();
    if !as_json {
        result(&match failed {
            0 => passed(&context, &tried),
            n => format!("not passed: {n} to mend"),
        })?;
    }
    Ok(if failed == 0 { Exit::Ok } else { Exit::Failed })
}

/// What the last line says; what was skipped is said loudly.
fn passed(context: &CourseContext, tried: &[Tried]) -> String {
    let mut text = format!(
        "passed: {} stages and {} exercises, every starter fails by name, every solution passes",
        context.course.stages.len(),
        context.course.exercises.len()
    );
    let skipped = tried
        .iter()
        .filter(|tried| tried.detail.starts_with("skipped"))
        .count();
    if skipped > 0 {
        text.push_str(&format!(
            "; {skipped} kernel texts were {}: a CPU driver of Vulkan runs them (mesa-vulkan-drivers)",
            exercises::NO_ADAPTER
        ));
    }
    text
}

/// What was tried; an error where nothing could be tried at all.
fn try_all(context: &CourseContext, measure: bool, engine: &EngineArgs) -> Result<Vec<Tried>> {
    let judge = RefCell::new(Judge {
        bench: engine.bench()?,
        fatal: None,
    });
    let mut run = |config: &RunConfig, steps| {
        progress(&format!("a run of {steps} steps"));
        judge.borrow_mut().ask(|bench| bench.run(0, config, steps))
    };
    let mut compare = |a: &RunConfig, b: &RunConfig| {
        progress("a paired comparison");
        judge.borrow_mut().ask(|bench| bench.pair(0, a, b))
    };
    let compare: Option<&mut Compare<'_>> = if measure { Some(&mut compare) } else { None };
    let tried = behaviour(&context.course, &mut run, compare);
    match judge.into_inner().fatal {
        None => Ok(tried),
        Some(error) => Err(error),
    }
}

/// Measures until something makes measuring pointless: a missing device, or ctrl-c.
struct Judge {
    bench: Bench,
    fatal: Option<anyhow::Error>,
}

impl Judge {
    fn ask<T>(
        &mut self,
        measure: impl FnOnce(&mut Bench) -> Result<Option<T>>,
    ) -> Result<T, String> {
        if self.fatal.is_some() {
            return Err("not tried".to_owned());
        }
        match measure(&mut self.bench) {
            Ok(Some(found)) => Ok(found),
            Ok(None) => {
                self.fatal = Some(
                    Stop {
                        exit: Exit::Interrupted,
                        text: "interrupted".to_owned(),
                    }
                    .into(),
                );
                Err("interrupted".to_owned())
            }
            Err(error) => {
                let text = format!("{error:#}");
                let pointless =
                    |stop: &Stop| matches!(stop.exit, Exit::NoDevice | Exit::Interrupted);
                if error.downcast_ref::<Stop>().is_some_and(pointless) {
                    self.fatal = Some(error);
                }
                Err(text)
            }
        }
    }
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
    let keys = BINDINGS.iter().flat_map(|binding| binding.keys);
    keys.map(|key| key_name(*key)).collect()
}
