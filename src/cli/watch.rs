//! `perflings watch`: follows the training of another program while it runs, on the screen, or as a summary where there is no terminal.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::mpsc::channel;
use std::time::Duration;

use anyhow::{Context, Result};

use super::args::WatchArgs;
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
        return checked(file);
    }
    // Signals are taken before the command begins: none may end this process and leave the command running.
    let mut signals = Signals::take()?;
    let mut source = begin(args)?;
    let record = args.record.as_deref();
    let recording = record.map(RecordingWriter::create).transpose()?;
    if terminal::is_present() && recording.is_none() {
        shown(args, &mut source, &mut signals)?;
    } else if let Some(signal) = follow(&mut source, recording, &mut signals)? {
        told(&source)?;
        std::process::exit(128 + signal);
    }
    told(&source)?;
    match source.job_mut() {
        Some(job) => std::process::exit(code_of(job.wait(&mut signals))),
        None => Ok(Exit::Ok),
    }
}

/// Says what is wrong with a file of watched lines.
fn checked(file: &Path) -> Result<Exit> {
    files::stream(file).with_context(|| format!("{} cannot be read", file.display()))?;
    let found = check(file);
    for (line, why) in &found.faults {
        let why = sanitize::line(why);
        out::result(&format!("{}:{line}: {why}", file.display()))?;
    }
    let CheckedFile { lines, steps, .. } = found;
    let count = found.faults.len();
    notice(&format!("{lines} lines, {steps} steps, {count} faults"));
    Ok(Exit::passed_if(found.faults.is_empty()))
}

/// Returns the source of the places that are followed, and starts the command if there is one.
fn begin(args: &WatchArgs) -> Result<WatchSource> {
    if args.command.is_empty() && args.places.is_empty() {
        return Err(usage(
            "say what to watch: `perflings watch -- python train.py`, a folder, a file of lines, or - for standard input",
        ));
    }
    let is_piped = |place: &&PathBuf| place.as_path() == Path::new("-");
    if args.places.iter().filter(is_piped).count() > 1 {
        return Err(usage(
            "standard input can be one of the two trainings, not both",
        ));
    }
    let mut named = args.places.clone();
    let folder = match (args.command.is_empty(), named.pop()) {
        (true, last) => {
            named.extend(last);
            None
        }
        (false, Some(folder)) => Some(folder),
        (false, None) => Some(new_folder()?),
    };
    let mut places = Vec::new();
    for place in &named {
        places.push(followed(place)?);
    }
    let Some(folder) = folder else {
        return Ok(WatchSource::new(places, None));
    };
    std::fs::create_dir_all(&folder)
        .with_context(|| format!("the folder {} cannot be made", folder.display()))?;
    let folder = folder.canonicalize().unwrap_or(folder);
    refuse_used(&folder)?;
    let path = folder.join(OUTPUT);
    let output =
        files::own(&path).with_context(|| format!("Failed to write {}", path.display()))?;
    let job = Job::start(&args.command, &folder, output)?;
    notice(&format!("the command writes to {}", folder.display()));
    places.push(WatchPlace::Folder(folder));
    Ok(WatchSource::new(places, Some(job)))
}

/// Lines of an earlier training must not be taken for those of this one.
fn refuse_used(folder: &Path) -> Result<()> {
    let entries = std::fs::read_dir(folder)
        .with_context(|| format!("the folder {} cannot be read", folder.display()))?;
    let shown = folder.display();
    let mut names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    match names.find(|name| name.ends_with(".jsonl")) {
        Some(name) => Err(usage(format!(
            "{shown} holds {name} of another training; name a new folder, or look at that one with `perflings watch {shown}`"
        ))),
        None => Ok(()),
    }
}

/// Makes a folder for the lines of a command that was given none.
fn new_folder() -> Result<PathBuf> {
    let made = tempfile::Builder::new()
        .prefix("perflings-watch-")
        .tempdir();
    Ok(made
        .context("no folder can be made for the lines of the training")?
        .keep())
}

/// Returns the place that an argument names: a folder, a file of lines, or standard input.
fn followed(place: &Path) -> Result<WatchPlace> {
    if place == Path::new("-") {
        return piped();
    }
    let metadata =
        std::fs::metadata(place).with_context(|| format!("{} cannot be read", place.display()))?;
    if metadata.is_dir() {
        return Ok(WatchPlace::Folder(place.to_owned()));
    }
    files::stream(place).with_context(|| format!("{} cannot be read", place.display()))?;
    Ok(WatchPlace::File(place.to_owned()))
}

/// Writes what comes from standard input to a file, which is followed.
fn piped() -> Result<WatchPlace> {
    let path = new_folder()?.join("rank-0.jsonl");
    let mut file =
        files::own(&path).with_context(|| format!("Failed to write {}", path.display()))?;
    let thread = std::thread::Builder::new().name("stdin".to_owned());
    thread
        .spawn(move || {
            let copied = std::io::copy(&mut std::io::stdin().lock(), &mut file);
            if copied.is_ok() {
                // The last line may lack its end.
                let _ = std::io::Write::write_all(&mut file, b"\n{\"event\":\"ended\"}\n");
            }
        })
        .context("no thread can be started for standard input")?;
    Ok(WatchPlace::File(path))
}

/// Shows the training in the workshop's panels until the learner leaves, and then asks what is to become of a command that goes on.
fn shown(args: &WatchArgs, source: &mut WatchSource, signals: &mut Signals) -> Result<()> {
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
        "{} goes on (process {}). Type w to wait for its end, e to end it, or press enter to leave it running",
        sanitize::line(&job.command),
        job.pid()
    ));
    match answer(signals).as_deref().map(str::trim) {
        Some("w") => {}
        Some("e") | None => job.terminate(),
        Some(_) => std::process::exit(0),
    }
    Ok(())
}

/// Returns the line that the learner types; `None` if a signal comes instead.
fn answer(signals: &mut Signals) -> Option<String> {
    let (send, answered) = channel();
    let reads = move || {
        let mut line = String::new();
        let _ = std::io::stdin().read_line(&mut line);
        let _ = send.send(line);
    };
    let thread = std::thread::Builder::new().name("answer".to_owned());
    // Where no thread can be had, the command is left running.
    if thread.spawn(reads).is_err() {
        return Some(String::new());
    }
    loop {
        match answered.recv_timeout(Duration::from_millis(50)) {
            Ok(line) => return Some(line),
            Err(_) if signals.to_pass_on().is_some() => return None,
            Err(_) => {}
        }
    }
}

/// Takes in what comes until the training is over. Signals go to the command; where there is none, one ends us, and is returned.
fn follow(
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
        let Some(heard) = source.try_recv() else {
            std::thread::sleep(Duration::from_millis(50));
            continue;
        };
        match heard {
            FromEngine::Line(line) => {
                if let Some(recording) = &mut recording {
                    recording.add(&line, &serde_json::to_string(&line)?)?;
                }
                if let Event::Log(message) = &line.event {
                    notice(&sanitize::line(&message.text));
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

/// Prints the figures and the lints of each run, and the comparison of A and B.
fn told(source: &WatchSource) -> Result<()> {
    let story = source.story();
    let [a, b] = &story.slots;
    let all: Option<Vec<Finished>> = story.runs().map(RunStory::summary).collect();
    let mut texts: Vec<String> = match all.filter(|all| !all.is_empty()) {
        Some(all) => all.iter().map(|run| summary::text(run, true)).collect(),
        None => vec![RunReport::from_story(story).sheet().markdown()],
    };
    texts.extend(compare_unpaired(a, b).map(|found| found.sentences().join(" ")));
    let trimmed: Vec<&str> = texts.iter().map(|text| text.trim_end()).collect();
    out::result(&trimmed.join("\n\n"))?;
    Ok(())
}
