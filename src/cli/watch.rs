//! `perflings watch`: follows the training of another program while it runs, on the screen. Without a terminal it prints a summary at the
//! end.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::mpsc::channel;
use std::time::Duration;

use anyhow::{Context, Result};

use super::args::recordings::WatchArgs;
use super::summary;
use super::workshop::markers;
use crate::app::source::{EventSource, FromEngine};
use crate::app::{Options, Replay};
use crate::course::save_file::Progress;
use crate::files;
use crate::measure::runner::engine_command;
use crate::out::{self, Exit, notice, usage};
use crate::pages::report::RunReport;
use crate::record::RecordingWriter;
use crate::sanitize;
use crate::shell::show;
use crate::tui::{SessionEnd, terminal};
use crate::watch::check::{CheckedFile, check};
use crate::watch::job::{Job, OUTPUT, Signals, code_of};
use crate::watch::source::{WatchPlace, WatchSource};
use protocol::story::{RunStory, StreamStory, compare_unpaired};
use protocol::{Event, Finished};

/// The text of `perflings.py`, which `--python` prints.
const PYTHON: &str = include_str!("../../python/perflings.py");

pub(super) fn watch(args: &WatchArgs) -> Result<Exit> {
    if args.python {
        out::result(PYTHON.trim_end())?;
        return Ok(Exit::Ok);
    }
    if let Some(file) = &args.check {
        return check_file(file);
    }
    // Signals are caught before the command starts, so that none can end this process and leave the command running.
    let mut signals = Signals::take()?;
    let mut source = open_source(args)?;
    let record = args.record.as_deref();
    let recording = record.map(RecordingWriter::create).transpose()?;
    if terminal::is_present() && recording.is_none() {
        show_screen(args, &mut source, &mut signals)?;
    } else if let Some(signal) = follow_without_screen(&mut source, recording, &mut signals)? {
        print_summary(&source)?;
        std::process::exit(128 + signal);
    }
    print_summary(&source)?;
    match source.job_mut() {
        Some(job) => std::process::exit(code_of(job.wait(&mut signals))),
        None => Ok(Exit::Ok),
    }
}

/// Prints the mistakes in a file of watched lines, for `--check`.
fn check_file(file: &Path) -> Result<Exit> {
    files::stream(file).with_context(|| format!("{} cannot be read", file.display()))?;
    let found = check(file);
    for (line, why) in &found.faults {
        let reason = sanitize::line(why);
        out::result(&format!("{}:{line}: {reason}", file.display()))?;
    }
    let CheckedFile { lines, steps, .. } = found;
    let faults = found.faults.len();
    notice(&format!("{lines} lines, {steps} steps, {faults} faults"));
    Ok(Exit::passed_if(faults == 0))
}

/// Starts the command if there is one, and returns the source of events from it and from the named places.
fn open_source(args: &WatchArgs) -> Result<WatchSource> {
    if args.command.is_empty() && args.places.is_empty() {
        return Err(usage(
            "say what to watch: `perflings watch -- python train.py`, a folder, \
             a file of lines, or - for standard input",
        ));
    }
    let is_piped = |place: &&PathBuf| place.as_path() == Path::new("-");
    if args.places.iter().filter(is_piped).count() > 1 {
        return Err(usage(
            "standard input can be one of the two trainings, not both",
        ));
    }
    let mut named = args.places.clone();
    // Before a command, the last place is the folder for its lines.
    let named_folder = named.pop_if(|_| !args.command.is_empty());
    let mut places = Vec::new();
    for place in &named {
        places.push(open_place(place)?);
    }
    if args.command.is_empty() {
        return Ok(WatchSource::new(places, None));
    }
    let relative = named_folder.map_or_else(new_folder, Ok)?;
    std::fs::create_dir_all(&relative)
        .with_context(|| format!("the folder {} cannot be made", relative.display()))?;
    let folder = relative.canonicalize().unwrap_or(relative);
    refuse_used(&folder)?;
    let path = folder.join(OUTPUT);
    let output =
        files::own(&path).with_context(|| format!("Failed to write {}", path.display()))?;
    let job = Job::start(&args.command, &folder, output)?;
    notice(&format!("the command writes to {}", folder.display()));
    places.push(WatchPlace::Folder(folder));
    Ok(WatchSource::new(places, Some(job)))
}

/// Refuses a folder with lines of an earlier training, which would be taken for lines of the new one.
fn refuse_used(folder: &Path) -> Result<()> {
    let entries = std::fs::read_dir(folder)
        .with_context(|| format!("the folder {} cannot be read", folder.display()))?;
    let shown = folder.display();
    let mut names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    match names.find(|name| name.ends_with(".jsonl")) {
        Some(name) => Err(usage(format!(
            "{shown} holds {name} of another training; \
             name a new folder, or look at that one with `perflings watch {shown}`"
        ))),
        None => Ok(()),
    }
}

/// Creates a folder for lines, for a command or standard input. The folder stays when this program ends.
fn new_folder() -> Result<PathBuf> {
    let folder = tempfile::Builder::new()
        .prefix("perflings-watch-")
        .tempdir()
        .context("no folder can be made for the lines of the training")?;
    Ok(folder.keep())
}

/// Returns the place that an argument names: a folder, a file of lines, or standard input.
fn open_place(place: &Path) -> Result<WatchPlace> {
    if place == Path::new("-") {
        return save_input();
    }
    let metadata =
        std::fs::metadata(place).with_context(|| format!("{} cannot be read", place.display()))?;
    if metadata.is_dir() {
        return Ok(WatchPlace::Folder(place.to_owned()));
    }
    files::stream(place).with_context(|| format!("{} cannot be read", place.display()))?;
    Ok(WatchPlace::File(place.to_owned()))
}

/// Copies standard input to a file in a thread, and returns this file as the place to follow.
fn save_input() -> Result<WatchPlace> {
    let path = new_folder()?.join("rank-0.jsonl");
    let mut file =
        files::own(&path).with_context(|| format!("Failed to write {}", path.display()))?;
    std::thread::Builder::new()
        .name("stdin".to_owned())
        .spawn(move || {
            let copied = std::io::copy(&mut std::io::stdin().lock(), &mut file);
            if copied.is_ok() {
                // The last line of the input may have no line break.
                let _ = std::io::Write::write_all(&mut file, b"\n{\"event\":\"ended\"}\n");
            }
        })
        .context("no thread can be started for standard input")?;
    Ok(WatchPlace::File(path))
}

/// Shows the training on the screen until the learner leaves. If the command still runs then, asks whether to wait for it, to end it, or to
/// leave it running; the last choice ends this process.
fn show_screen(args: &WatchArgs, source: &mut WatchSource, signals: &mut Signals) -> Result<()> {
    let context = args.course.load()?;
    let options = Options {
        theme: args.theme,
        markers: markers(),
        recording: Some(Replay {
            file: sanitize::line(&source.name()),
            speed: 1.0,
            watched: true,
            ..Replay::default()
        }),
        ..Options::default()
    };
    let story = Rc::new(RefCell::new(StreamStory::default()));
    let command = engine_command(None)?;
    let progress = Progress::default();
    let end = show(source, context, story, command, progress, options, None)?;
    let Some(job) = source.job_mut() else {
        return Ok(());
    };
    if job.ended().is_some() {
        return Ok(());
    }
    if matches!(end, SessionEnd::Signal) {
        job.terminate();
        return Ok(());
    }
    notice(&format!(
        "{} goes on (process {}). \
         Type w to wait for its end, e to end it, or press enter to leave it running",
        sanitize::line(&job.command),
        job.pid()
    ));
    match read_answer(signals).as_deref().map(str::trim) {
        Some("w") => {}
        Some("e") | None => job.terminate(),
        Some(_) => std::process::exit(0),
    }
    Ok(())
}

/// Waits for the line that the learner types; `None` if a signal comes first.
fn read_answer(signals: &mut Signals) -> Option<String> {
    let (sender, answers) = channel();
    let read = move || {
        let mut line = String::new();
        let _ = std::io::stdin().read_line(&mut line);
        let _ = sender.send(line);
    };
    let builder = std::thread::Builder::new().name("answer".to_owned());
    // If no thread can be started, the command is left running.
    if builder.spawn(read).is_err() {
        return Some(String::new());
    }
    loop {
        match answers.recv_timeout(Duration::from_millis(50)) {
            Ok(line) => return Some(line),
            Err(_) if signals.to_pass_on().is_some() => return None,
            Err(_) => {}
        }
    }
}

/// Follows the training until it is over: prints the other output of the command, and records the events. A signal is passed on to the
/// command; without a command the first signal ends this function, which returns it.
fn follow_without_screen(
    source: &mut WatchSource,
    mut recording: Option<RecordingWriter>,
    signals: &mut Signals,
) -> Result<Option<i32>> {
    let ended_by = loop {
        if let Some(signal) = signals.to_pass_on() {
            let Some(job) = source.job_mut() else {
                break Some(signal);
            };
            job.pass_on(signal);
        }
        let Some(message) = source.try_recv() else {
            std::thread::sleep(Duration::from_millis(50));
            continue;
        };
        match message {
            FromEngine::Line(line) => {
                if let Some(recording) = &mut recording {
                    recording.add(&line, &serde_json::to_string(&line)?)?;
                }
                if let Event::Log(log) = &line.event {
                    notice(&sanitize::line(&log.text));
                }
            }
            FromEngine::Stray(text) => out::result(&sanitize::line(&text))?,
            FromEngine::Malformed { line, .. } => notice(&sanitize::line(&line)),
            FromEngine::Gone { reason } => {
                notice(&sanitize::line(&reason));
                break None;
            }
            FromEngine::Silent => {}
        }
    };
    if let Some(recording) = recording {
        notice(&recording.finish()?.to_string());
    }
    Ok(ended_by)
}

/// Prints the figures and the lints of each run, and the comparison of A and B. If a run has no summary, a report is printed instead.
fn print_summary(source: &WatchSource) -> Result<()> {
    let story = source.story();
    let [a, b] = &story.slots;
    let summaries: Option<Vec<Finished>> = story.runs().map(RunStory::summary).collect();
    let mut texts: Vec<String> = match summaries {
        Some(runs) if !runs.is_empty() => runs.iter().map(|run| summary::text(run, true)).collect(),
        _ => vec![RunReport::from_story(story).sheet().markdown()],
    };
    texts.extend(compare_unpaired(a, b).map(|comparison| comparison.sentences().join(" ")));
    let trimmed: Vec<&str> = texts.iter().map(|text| text.trim_end()).collect();
    out::result(&trimmed.join("\n\n"))?;
    Ok(())
}
