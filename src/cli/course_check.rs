//! `perflings course check`: first what reading shows, then every starter and every solution on a device.

mod mutants;

use std::cell::RefCell;

use anyhow::Result;
use clap::Parser;
use serde_json::json;

use super::args::{Cli, CourseCheckArgs};
use super::check::text::mark;
use super::exercise;
use super::meter::ProgressMeter;
use super::open::profile;
use crate::course::config_file::FileError;
use crate::course::context::CourseContext;
use crate::course::mystery;
use crate::course::validate::{Vocabulary, structure};
use crate::judge::course::{
    CompareConfigs, CourseTrial, WITH_MEASURE, mystery_trials, stage_trials,
};
use crate::judge::detective;
use crate::measure::runner::{EngineTask, TaskResult};
use crate::out::{self, Exit, ExitError, result, usage};
use crate::sanitize::line;
use crate::tui::keys::{BINDINGS, key_name};
use gputrace::summary::summary;
use protocol::config::{Preset, RunConfig};
use protocol::handle::split_words;
use protocol::{Finished, Lint, lints};

pub(super) fn check(args: &CourseCheckArgs) -> Result<Exit> {
    let mut context = args.course.load_as_author()?;
    if let Some(count) = args.mutants {
        return mutants::check(count, &context, args);
    }
    let names = lints::names().chain(gputrace::lints::names());
    let lints: Vec<String> = names.map(str::to_owned).collect();
    let vocabulary = Vocabulary {
        keys: &keys(),
        lints: &lints,
        command: &is_command,
    };
    let mut problems = structure(&context.source, &context.course, &vocabulary);
    problems.extend(answers(&context));
    if let Some(item) = &args.item {
        let files = ItemFiles::find(item, &context)?;
        problems.retain(|problem| files.hold(&problem.path));
        let course = &mut context.course;
        course.stages.retain(|stage| stage.path == files.folder);
        course
            .exercises
            .retain(|exercise| exercise.path == files.folder);
    }
    for problem in &problems {
        let told = json!({
            "what": problem.path, "line": problem.line, "column": problem.column,
            "passed": false, "detail": problem.message,
        });
        out::json_or_text(args.json, &told, || format!("FAIL  {problem}"))?;
    }
    let mut tried = Vec::new();
    if !args.text {
        tried = try_stages(&context, args)?;
        match exercise::try_all(&context, args.measure, &args.engine)? {
            Some(more) => tried.extend(more),
            None => return Ok(Exit::Interrupted),
        }
    }
    let mut failed = problems.len();
    for trial in &tried {
        failed += usize::from(trial.passed == Some(false));
        print(trial, args.json)?;
    }
    if !args.json {
        result(&match failed {
            0 => passed(&context, &tried, args),
            count => format!("not passed: {count} to fix"),
        })?;
    }
    Ok(Exit::passed_if(failed == 0))
}

/// Returns what is wrong with the declared answers of detective exercises.
fn answers(context: &CourseContext) -> Vec<FileError> {
    let mut problems = Vec::new();
    for exercise in &context.course.exercises {
        let Some(detective) = exercise.detective() else {
            continue;
        };
        let path = format!("{}/exercise.toml", exercise.path);
        let toml = context.source.shown(&path);
        let recorded = match &detective.profile {
            Some(profile) => profile_summary(profile),
            None => detective.finished(),
        };
        match (recorded, &detective.profile) {
            (Some(recorded), _) => {
                problems.extend(detective::problems(detective, &toml, &recorded));
            }
            (None, Some(profile)) => {
                let what = format!(
                    "`profile` is `{profile}`; write \"eager\", the profile in this program"
                );
                problems.push(FileError::new(toml, 0, what));
            }
            // The recording itself is at fault, which `structure` reports.
            (None, None) => {}
        }
    }
    problems
}

/// Returns a summary that has the lints of a profile in this program; `None` if there is no such profile.
fn profile_summary(name: &str) -> Option<Finished> {
    let bytes = profile(name)?;
    let length = bytes.len() as u64;
    let trace = gputrace::read(name, std::io::Cursor::new(bytes), length).ok()?;
    let lints = summary(&trace).lints.into_iter().map(|lint| Lint {
        name: lint.name.to_owned(),
        why: lint.why,
        next: lint.next,
    });
    Some(Finished {
        steps: 1,
        lints: lints.collect(),
        ..Finished::default()
    })
}

/// Prints a trial, with one line for each criterion: there may be half a dozen.
fn print(tried: &CourseTrial, as_json: bool) -> Result<()> {
    out::json_or_text(as_json, tried, || {
        let detail = tried.detail.replace("; `", "\n`");
        let detail = detail.lines().map(|part| format!("\n        {part}"));
        let (mark, what) = (mark(tried.passed), &tried.name);
        format!("{mark}  {what}{}", detail.collect::<String>())
    })
}

/// Returns true if mysteries are tried: they are the program's, so an author's own course leaves them out.
fn with_mysteries(args: &CourseCheckArgs) -> bool {
    args.course.course.is_none() && args.item.is_none() && !args.text
}

/// The files of one stage or exercise.
struct ItemFiles {
    /// The folder of the item: `exercises/01-broken-init`.
    folder: String,
    /// The lesson of the item: `lessons/01-broken-init.md`.
    lesson: String,
}

impl ItemFiles {
    /// Finds an item by a number, a label, an id or a name, even if its files cannot be read.
    ///
    /// # Errors
    /// If the course has no such item.
    fn find(item: &str, context: &CourseContext) -> Result<Self> {
        let stage = context.course.stage_by_id(item).map(|stage| &stage.path);
        let exercise = context.course.exercise_by_id(item);
        let folder = match stage.or(exercise.map(|exercise| &exercise.path)) {
            Some(path) => path.clone(),
            None => {
                let folders = context.source.entries("exercises").into_iter();
                let mut folders = folders.filter(|entry| entry.is_folder);
                let Some(found) = folders.find(|entry| is_named(&entry.name, item)) else {
                    let item = line(item);
                    return Err(usage(format!("the course has no stage or exercise {item}")));
                };
                format!("exercises/{}", found.name)
            }
        };
        let mut stages = context.course.stages.iter();
        let lesson = match stages.find(|stage| stage.path == folder) {
            Some(stage) => stage.lesson_file.clone(),
            None => format!("{}.md", folder.trim_start_matches("exercises/")),
        };
        let lesson = format!("lessons/{lesson}");
        Ok(Self { folder, lesson })
    }

    /// Returns true if a file of the course belongs to the item.
    fn hold(&self, path: &str) -> bool {
        path.contains(&format!("{}/", self.folder)) || path.ends_with(&self.lesson)
    }
}

/// Returns true if `item` is the number, the label, the id or the name of a folder such as `01-broken-init`.
fn is_named(folder: &str, item: &str) -> bool {
    let (label, id) = folder.split_once('-').unwrap_or((folder, ""));
    let number = item.parse::<u32>().ok();
    let has_number = number.is_some() && label.parse().ok() == number;
    has_number || [folder, label, id].contains(&item)
}

/// Returns the last line, which names what was skipped.
fn passed(context: &CourseContext, tried: &[CourseTrial], args: &CourseCheckArgs) -> String {
    let (stages, exercises) = (context.course.stages.len(), context.course.exercises.len());
    let what = match (&args.item, with_mysteries(args)) {
        (Some(item), _) => item.clone(),
        (None, true) => {
            let mysteries = mystery::all(Preset::Tiny).len();
            format!("{stages} stages, {exercises} exercises and {mysteries} mysteries")
        }
        (None, false) => format!("{stages} stages and {exercises} exercises"),
    };
    if args.text {
        return format!("passed: {what}, as far as reading shows; nothing was run");
    }
    let mut text = format!(
        "passed: {what}, every starter and every wrong solution fails by name, every solution passes"
    );
    let is_open =
        |trial: &&CourseTrial| trial.passed.is_none() && trial.detail.starts_with(WITH_MEASURE);
    let open = tried.iter().filter(is_open).count();
    if open > 0 {
        text.push_str(&format!(
            "; {open} were not measured: --measure judges their speed"
        ));
    }
    text
}

/// Tries the stages and the faults of mysteries.
///
/// # Errors
/// If a missing device or ctrl-c makes the rest pointless.
fn try_stages(context: &CourseContext, args: &CourseCheckArgs) -> Result<Vec<CourseTrial>> {
    let (mut runner, mut fatal) = (args.engine.runner(None)?, None);
    let meter = ProgressMeter::begin();
    let ask = RefCell::new(
        |what: String, work: EngineTask| -> Result<TaskResult, String> {
            if fatal.is_some() {
                return Err("not tried".to_owned());
            }
            meter.doing(what);
            let measured = runner.measure(&args.engine.device, &work, |_, _| Ok(()));
            let error = match measured {
                Ok(measured) if !measured.interrupted => return Ok(measured),
                Ok(_) => ExitError::new(Exit::Interrupted, "interrupted").into(),
                Err(error) => error,
            };
            let text = format!("{error:#}");
            let pointless =
                |stop: &ExitError| matches!(stop.exit, Exit::NoDevice | Exit::Interrupted);
            if error.downcast_ref::<ExitError>().is_some_and(pointless) {
                fatal = Some(error);
            }
            Err(text)
        },
    );
    let mut run = |config: &RunConfig, steps| {
        let work = EngineTask::run("custom", config, steps);
        let measured = ask.borrow_mut()(format!("a run of {steps} steps"), work)?;
        Ok(measured.finished.unwrap_or_default())
    };
    let mut compare = |a: &RunConfig, b: &RunConfig| {
        let work = EngineTask::pair(("custom", a), ("custom", b), 0);
        let measured = ask.borrow_mut()("a paired comparison".to_owned(), work)?;
        Ok(measured.pair.unwrap_or_default())
    };
    let mut compare: Option<&mut CompareConfigs<'_>> = if args.measure {
        Some(&mut compare)
    } else {
        None
    };
    let mut tried = stage_trials(&context.course, &mut run, compare.as_deref_mut());
    if with_mysteries(args) {
        tried.extend(mystery_trials(&mut run, compare));
    }
    fatal.map_or(Ok(tried), Err)
}

/// Checks that a command line in a lesson is one that this program takes. The error says why it is not.
fn is_command(line: &str) -> Result<(), String> {
    let words = split_words(line)?;
    match Cli::try_parse_from(&words) {
        Err(error) if error.exit_code() != 0 => {
            let said = error.to_string();
            Err(said.lines().next().unwrap_or("unknown").to_owned())
        }
        _ => Ok(()),
    }
}

/// Returns the names of the keys as the help writes them.
fn keys() -> Vec<String> {
    let keys = BINDINGS.iter().flat_map(|binding| binding.keys);
    keys.map(|key| key_name(*key)).collect()
}
