//! `perflings course check`, for authors: first finds mistakes in the files of a course, then tries every starter and every solution on a
//! device.

mod mutants;

use std::cell::RefCell;

use anyhow::Result;
use clap::Parser;
use serde_json::json;

use super::args::Cli;
use super::args::exercises::CourseCheckArgs;
use super::check::text::mark;
use super::exercise;
use super::meter::ProgressMeter;
use super::open::built_in_profile;
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
    problems.extend(detective_problems(&context));
    if let Some(item) = &args.item {
        let files = ItemFiles::find(item, &context)?;
        problems.retain(|problem| files.contain(&problem.path));
        let course = &mut context.course;
        course.stages.retain(|stage| stage.path == files.folder);
        course
            .exercises
            .retain(|exercise| exercise.path == files.folder);
    }
    for problem in &problems {
        let object = json!({
            "what": problem.path, "line": problem.line, "column": problem.column,
            "passed": false, "detail": problem.message,
        });
        out::json_or_text(args.json, &object, || format!("FAIL  {problem}"))?;
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
            0 => passed_line(&context, &tried, args),
            count => format!("not passed: {count} to fix"),
        })?;
    }
    Ok(Exit::passed_if(failed == 0))
}

/// Returns the mistakes in the declared answers of the exercises about recorded runs and profiles.
fn detective_problems(context: &CourseContext) -> Vec<FileError> {
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
            // The recording cannot be read, which `structure` reports.
            (None, None) => {}
        }
    }
    problems
}

/// Returns the summary of a run that has the lints of a profile inside this program; `None` if there is no such profile.
fn profile_summary(name: &str) -> Option<Finished> {
    let bytes = built_in_profile(name)?;
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

/// Prints a trial, with one line for each criterion.
fn print(trial: &CourseTrial, as_json: bool) -> Result<()> {
    out::json_or_text(as_json, trial, || {
        let mut text = format!("{}  {}", mark(trial.passed), trial.name);
        for criterion in trial.detail.replace("; `", "\n`").lines() {
            text += &format!("\n        {criterion}");
        }
        text
    })
}

/// Returns true if mysteries are tried. Mysteries belong to the program and not to a course, so they are left out for an author's own one.
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
    /// Finds an item by its number, label, id or folder name, even if its files cannot be read.
    ///
    /// # Errors
    /// If the course has no such item.
    fn find(item: &str, context: &CourseContext) -> Result<Self> {
        let stage = context.course.stage_by_id(item).map(|stage| &stage.path);
        let exercise = context.course.exercise_by_id(item);
        let folder = match stage.or(exercise.map(|exercise| &exercise.path)) {
            Some(path) => path.clone(),
            None => context
                .source
                .entries("exercises")
                .into_iter()
                .find(|entry| entry.is_folder && is_named(&entry.name, item))
                .map(|entry| format!("exercises/{}", entry.name))
                .ok_or_else(|| {
                    let name = line(item);
                    usage(format!("the course has no stage or exercise {name}"))
                })?,
        };
        let mut stages = context.course.stages.iter();
        let lesson_file = match stages.find(|stage| stage.path == folder) {
            Some(stage) => stage.lesson_file.clone(),
            None => format!("{}.md", folder.trim_start_matches("exercises/")),
        };
        Ok(Self {
            folder,
            lesson: format!("lessons/{lesson_file}"),
        })
    }

    /// Returns true if a file of the course belongs to the item.
    fn contain(&self, path: &str) -> bool {
        path.contains(&format!("{}/", self.folder)) || path.ends_with(&self.lesson)
    }
}

/// Returns true if `item` names a folder such as `01-broken-init`: by its number `1`, its label `01`, its id `broken-init` or its name.
fn is_named(folder: &str, item: &str) -> bool {
    let (label, id) = folder.split_once('-').unwrap_or((folder, ""));
    let number = item.parse::<u32>().ok();
    let has_number = number.is_some() && label.parse().ok() == number;
    has_number || [folder, label, id].contains(&item)
}

/// Returns the last line of a check without faults. It names everything that was skipped.
fn passed_line(context: &CourseContext, tried: &[CourseTrial], args: &CourseCheckArgs) -> String {
    let stages = context.course.stages.len();
    let exercises = context.course.exercises.len();
    let what = if let Some(item) = &args.item {
        item.clone()
    } else if with_mysteries(args) {
        let mysteries = mystery::all(Preset::Tiny).len();
        format!("{stages} stages, {exercises} exercises and {mysteries} mysteries")
    } else {
        format!("{stages} stages and {exercises} exercises")
    };
    if args.text {
        return format!("passed: {what}, as far as reading shows; nothing was run");
    }
    let mut text = format!(
        "passed: {what}, every starter and every wrong solution fails by name, \
         every solution passes"
    );
    let unmeasured = tried
        .iter()
        .filter(|trial| trial.passed.is_none() && trial.detail.starts_with(WITH_MEASURE))
        .count();
    if unmeasured > 0 {
        text.push_str(&format!(
            "; {unmeasured} were not measured: --measure judges their speed"
        ));
    }
    text
}

/// Tries the stages, and the faults of mysteries. A run that fails makes its trial fail.
///
/// # Errors
/// If the device is missing, or the author interrupts the check. Nothing further is tried then.
fn try_stages(context: &CourseContext, args: &CourseCheckArgs) -> Result<Vec<CourseTrial>> {
    let mut runner = args.engine.runner(None)?;
    let mut fatal = None;
    let meter = ProgressMeter::begin();
    let measure = RefCell::new(
        |what: String, task: EngineTask| -> Result<TaskResult, String> {
            if fatal.is_some() {
                return Err("not tried".to_owned());
            }
            meter.set_work(what);
            let error = match runner.measure(&args.engine.device, &task, |_, _| Ok(())) {
                Ok(measured) if !measured.interrupted => return Ok(measured),
                Ok(_) => ExitError::new(Exit::Interrupted, "interrupted").into(),
                Err(error) => error,
            };
            let text = format!("{error:#}");
            let is_fatal =
                |error: &ExitError| matches!(error.exit, Exit::NoDevice | Exit::Interrupted);
            if error.downcast_ref::<ExitError>().is_some_and(is_fatal) {
                fatal = Some(error);
            }
            Err(text)
        },
    );
    let mut run = |config: &RunConfig, steps| {
        let task = EngineTask::run("custom", config, steps);
        let measured = measure.borrow_mut()(format!("a run of {steps} steps"), task)?;
        Ok(measured.finished.unwrap_or_default())
    };
    let mut compare = |a: &RunConfig, b: &RunConfig| {
        let task = EngineTask::pair(("custom", a), ("custom", b), 0);
        let measured = measure.borrow_mut()("a paired comparison".to_owned(), task)?;
        Ok(measured.pair.unwrap_or_default())
    };
    let mut if_asked: Option<&mut CompareConfigs<'_>> = args.measure.then_some(&mut compare);
    let mut tried = stage_trials(&context.course, &mut run, if_asked.as_deref_mut());
    if with_mysteries(args) {
        tried.extend(mystery_trials(&mut run, if_asked));
    }
    fatal.map_or(Ok(tried), Err)
}

/// Checks that this program takes a command line that stands in a lesson. The error says why it does not.
fn is_command(line: &str) -> Result<(), String> {
    let words = split_words(line)?;
    match Cli::try_parse_from(&words) {
        Err(error) if error.exit_code() != 0 => {
            let message = error.to_string();
            Err(message.lines().next().unwrap_or("unknown").to_owned())
        }
        _ => Ok(()),
    }
}

/// Returns the names of the keys as the help writes them.
fn keys() -> Vec<String> {
    let keys = BINDINGS.iter().flat_map(|binding| binding.keys);
    keys.map(|key| key_name(*key)).collect()
}
