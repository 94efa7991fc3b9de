//! `perflings open`: shows a profile of another program on the screen, as text, as JSON or as a page, or compares two profiles.

use std::path::Path;

use anyhow::{Context, Result};

use super::args::recordings::OpenArgs;
use super::exercise::detective::refuse_as_file;
use super::meter::ProgressMeter;
use super::saved::save_tried;
use super::workshop::{exit_of, markers, theme};
use crate::app::opened::Opened;
use crate::course::trace_lints::page_of;
use crate::files;
use crate::out::{self, Exit, notice, usage};
use crate::pages::sheet::Sheet;
use crate::pages::{html, opened};
use crate::record::{MAX_BYTES, Recording};
use crate::run_trace;
use crate::sanitize;
use crate::tui;
use crate::tui::terminal;
use gputrace::compare::compare;
use gputrace::figures::Summary;
use gputrace::model::Trace;
use gputrace::ranks::open_folder;
use gputrace::summary::summary;
use gputrace::{self, OpenError, ReadProgress, TraceSource, write};

/// The unit of the shown progress, in bytes.
const MB: u64 = 1_000_000;

pub(super) fn open(args: &OpenArgs) -> Result<Exit> {
    if let (Some(second), Some(name)) = (args.files.get(1), args.export.first()) {
        return Err(usage(format!(
            "--export writes one profile, and two are open; run `perflings open {} --export {}`, \
             and the same for the other",
            second.display(),
            name.display()
        )));
    }
    let first = read(args, &args.files[0])?;
    let figures = summary(&first);
    for path in &args.export {
        out::file(path, &exported(path, first.counted(), &figures)?)?;
    }
    if let Some(path) = args.files.get(1) {
        let second = summary(&read(args, path)?);
        let both = compare(&figures, &second);
        return if args.json {
            out::json_line(&both.json())?;
            Ok(Exit::Ok)
        } else {
            page(args, &opened::comparison(&both))
        };
    }
    if args.json {
        out::json_line(&json(&figures)?)?;
        return Ok(Exit::Ok);
    }
    let written = args.report.is_some() || !args.export.is_empty();
    if written || !terminal::is_present() {
        let only_exports = args.report.is_none() && written;
        return if only_exports {
            Ok(Exit::Ok)
        } else {
            page(args, &opened::sheet(&figures, &first))
        };
    }
    let theme = theme(args.theme, markers());
    let texts = args.course.load()?.course.readings;
    tui::opened::show(Opened::new(first, figures, &texts), &theme).map(exit_of)
}

/// Returns the figures as JSON. Each lint gets the field `page`, the page of the course about it.
fn json(figures: &Summary) -> Result<String> {
    let mut text = serde_json::to_string(figures)?;
    for lint in &figures.lints {
        let plain = serde_json::to_string(lint)?;
        let page = serde_json::to_string(&page_of(lint.name))?;
        let with_page = format!("{},\"page\":{page}}}", plain.trim_end_matches('}'));
        // The lint's object cannot be part of a name, because the quotes in names are escaped.
        text = text.replacen(&plain, &with_page, 1);
    }
    Ok(text)
}

/// Returns the error for the profile `name` that could not be opened, in one line.
fn refused(name: &str, error: &OpenError) -> anyhow::Error {
    let [name, problem, advice] = [name, &error.what, &error.next].map(sanitize::line);
    usage(format!("{name}: {problem} {advice}"))
}

/// Writes the sheet into the file of `--report`, or prints it without that flag.
fn page(args: &OpenArgs, sheet: &Sheet) -> Result<Exit> {
    let Some(path) = &args.report else {
        out::result(sheet.text().trim_end())?;
        return Ok(Exit::Ok);
    };
    let text = match path.extension().and_then(|ending| ending.to_str()) {
        Some("html") => html::page(sheet),
        Some("md") => sheet.markdown(),
        _ => {
            return Err(usage(format!(
                "--report {}: write a name that ends in .md or .html",
                path.display()
            )));
        }
    };
    out::file(path, text.as_bytes())?;
    Ok(Exit::Ok)
}

/// Returns the trace in the format that the file name's ending selects.
fn exported(path: &Path, trace: &Trace, figures: &Summary) -> Result<Vec<u8>> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if name.ends_with("kernel_stats.csv") {
        return Ok(write::rocprof_csv::kernel_stats(figures).into_bytes());
    }
    if trace.stats.is_some() && trace.slices.is_empty() {
        return Err(usage(format!(
            "--export {}: {} contains sums without times; \
             write a name that ends in kernel_stats.csv",
            path.display(),
            sanitize::line(&trace.source)
        )));
    }
    if name.ends_with("kernel_trace.csv") {
        return Ok(write::rocprof_csv::kernel_trace(trace).into_bytes());
    }
    if name.ends_with(".pftrace") || name.ends_with(".perfetto-trace") {
        return Ok(write::perfetto::write(trace));
    }
    Err(usage(format!(
        "--export {}: write a name that ends in .pftrace, kernel_trace.csv or kernel_stats.csv",
        path.display()
    )))
}

/// Returns the bytes of a profile inside this program by its name in exercises; `None` if there is no such profile.
pub(super) fn built_in_profile(name: &str) -> Option<&'static [u8]> {
    match name {
        "eager" => Some(include_bytes!("../../assets/eager.json.gz")),
        _ => None,
    }
}

/// Reads a profile inside this program, by its name or by the name of an exercise that asks about it. `None` if there is no such profile,
/// or if a file has this name.
fn read_built_in(args: &OpenArgs, path: &Path) -> Option<Result<Trace>> {
    if files::is_taken(path) {
        return None;
    }
    let name = path.to_str()?;
    let bytes = built_in_profile(name).or_else(|| {
        // The course is loaded only for a text that may be the name of an exercise.
        let is_name =
            name.len() < 20 && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
        let context = is_name.then(|| args.course.load().ok())??;
        let exercise = context.exercise(name)?;
        let bytes = built_in_profile(exercise.detective()?.profile.as_deref()?)?;
        save_tried(&context, exercise, false);
        Some(bytes)
    })?;
    let read = gputrace::read(name, std::io::Cursor::new(bytes), bytes.len() as u64);
    Some(read.map_err(|error| refused(name, &error)))
}

/// Reads a profile of any format, a recording of this program, or a folder with the profiles of several ranks.
fn read(args: &OpenArgs, path: &Path) -> Result<Trace> {
    if let Some(found) = read_built_in(args, path) {
        return found;
    }
    refuse_as_file(path, &args.course)?;
    // The input of a pipe is saved to a file first, because a database cannot be read from a pipe.
    let saved_input = (path == Path::new("-"))
        .then(|| gputrace::scratch(std::io::stdin()))
        .transpose()
        .context("Failed to save the input from the pipe")?;
    let path = saved_input.as_deref().unwrap_or(path);
    let name = if saved_input.is_some() {
        "stdin".to_owned()
    } else {
        sanitize::line(&path.display().to_string())
    };
    let meter = ProgressMeter::begin();
    meter.set_work(format!("MB of {name}"));
    let mut on_progress = |progress: ReadProgress| {
        let [read, total] = [progress.read, progress.total].map(|bytes| (bytes / MB) as usize);
        meter.set_done(read, total);
    };
    let found = if path.is_dir() {
        read_folder(path, &mut on_progress)
    } else {
        read_recording(path, &mut on_progress)
            .transpose()
            .unwrap_or_else(|| {
                gputrace::open(path, &mut on_progress).map_err(|error| refused(&name, &error))
            })
    };
    drop(meter);
    let mut trace = found?;
    if saved_input.is_some() {
        trace.source = "stdin".to_owned();
    }
    if let Some(reason) = &trace.truncated {
        notice(&format!("{name}: {}", sanitize::line(reason)));
    }
    Ok(trace)
}

/// Reads a folder with one trace for each rank as one trace. Prints a notice about files that are not read.
fn read_folder(path: &Path, progress: &mut dyn FnMut(ReadProgress)) -> Result<Trace> {
    let name = path.display().to_string();
    let folder = open_folder(path, progress).map_err(|error| refused(&name, &error))?;
    if let Some(first) = folder.skipped.first() {
        let first = sanitize::line(&first.to_string());
        let skipped = folder.skipped.len();
        notice(&format!(
            "{}: {skipped} files are not read; the first: {first}",
            sanitize::line(&name)
        ));
    }
    Ok(folder.trace)
}

/// Reads a file as a recording of this program; `None` if it does not begin with the line of a recording.
fn read_recording(path: &Path, progress: &mut dyn FnMut(ReadProgress)) -> Result<Option<Trace>> {
    let Ok(mut source) = TraceSource::open(path, progress) else {
        return Ok(None);
    };
    let Ok(head) = source.head() else {
        return Ok(None);
    };
    let first = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let value = serde_json::from_slice::<serde_json::Value>(first).unwrap_or_default();
    if value["event"] != "hello" || value["protocol"].is_null() {
        return Ok(None);
    }
    let text = source
        .text(MAX_BYTES)
        .map_err(|error| anyhow::anyhow!("{}: {} {}", path.display(), error.what, error.next))?;
    let recording = Recording::from_text(text, path).context("A recording of perflings")?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut trace = run_trace::stream(recording.iter(), &name, &recording.badge());
    // The recording's notice begins with its path, which the caller prints.
    let reason = recording.notice.as_deref().map(|notice| {
        let (_, sentence) = notice.split_once(": the ").unwrap_or(("", notice));
        format!("The {sentence}.")
    });
    trace.truncated = source.damage().or(reason);
    if let Some(counted) = &mut trace.counted {
        counted.truncated.clone_from(&trace.truncated);
    }
    Ok(Some(trace))
}
