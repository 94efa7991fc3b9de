//! `perflings notes`: shows the speaker view of a presentation that runs on this machine, in a second terminal or over ssh. The presentation
//! sends its notes as lines over a socket, and takes requests from the speaker's keys.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, sleep};
use std::time::Duration;

use anyhow::Result;

use super::args::class::NotesArgs;
use super::workshop::exit_of;
use crate::app::notes::{SpeakerNotes, SpeakerRequest};
use crate::course::{Agenda, Course};
use crate::out::{Exit, notice, result, usage};
use crate::shell::speaker;
use crate::tui::{speaker::show, terminal};

/// The time between two attempts to find a presentation that was left.
const RETRY_INTERVAL: Duration = Duration::from_millis(500);

/// Shows or prints the notes until the speaker leaves the view or the presentation ends.
pub(super) fn notes(args: &NotesArgs) -> Result<Exit> {
    let context = args.course.load()?;
    let agenda = match args.agenda {
        Some(minutes) => Some(find_agenda(&context.course, minutes)?),
        None => None,
    };
    let path = speaker::path().ok_or_else(|| usage("this system names no folder for sockets"))?;
    let Ok(stream) = UnixStream::connect(&path) else {
        return Err(usage(
            "there is no presentation on this machine; start `perflings --present` \
             on this machine as the same user, then `perflings notes` again",
        ));
    };
    let reader = BufReader::new(stream.try_clone()?);
    let requests = Arc::new(Mutex::new(stream));
    let writer = Arc::clone(&requests);
    let (sender, news) = channel();
    Builder::new()
        .name("notes".to_owned())
        .spawn(move || read_notes(&path, reader, &writer, &sender))?;
    if args.plain {
        return print_notes(&news);
    }
    if !terminal::is_present() {
        return Err(usage(
            "notes are shown on a screen, and there is no terminal here; --plain prints them",
        ));
    }
    // A request while nobody presents is lost.
    let send = |request: SpeakerRequest| {
        let mut stream = requests.lock().unwrap_or_else(PoisonError::into_inner);
        drop(writeln!(stream, "{request}"));
    };
    let clock = || jiff::Zoned::now().strftime("%H:%M").to_string();
    let end = show(&news, args.theme, agenda, clock, send)?;
    if end.is_none() {
        notice("the presentation has ended");
    }
    Ok(end.map_or(Exit::Ok, exit_of))
}

/// Returns the agenda of the course that takes this number of minutes.
fn find_agenda(course: &Course, minutes: u32) -> Result<&Agenda> {
    let agendas = &course.agendas;
    let found = agendas.iter().find(|agenda| agenda.minutes == minutes);
    found.ok_or_else(|| {
        let all: Vec<String> = agendas
            .iter()
            .map(|agenda| agenda.minutes.to_string())
            .collect();
        usage(format!(
            "--agenda {minutes}: the course has none of {minutes} minutes; it has {}",
            all.join(", ")
        ))
    })
}

/// Sends the notes that come from the presentation to the view, and `None` when the presentation is left. A presentation may
/// be continued after that, so this function connects again, and `writer` gets the new connection.
fn read_notes(
    path: &Path,
    mut reader: BufReader<UnixStream>,
    writer: &Mutex<UnixStream>,
    sender: &Sender<Option<SpeakerNotes>>,
) {
    loop {
        let lines = reader.lines().map_while(Result::ok);
        for notes in lines.filter_map(|line| SpeakerNotes::read(&line)) {
            if sender.send(Some(notes)).is_err() {
                return;
            }
        }
        if sender.send(None).is_err() {
            return;
        }
        let (input, output) = loop {
            sleep(RETRY_INTERVAL);
            let stream = UnixStream::connect(path);
            if let Ok(both) = stream.and_then(|stream| Ok((stream.try_clone()?, stream))) {
                break both;
            }
        };
        reader = BufReader::new(input);
        *writer.lock().unwrap_or_else(PoisonError::into_inner) = output;
    }
}

/// Prints the notes of each beat until the presentation is left, for a pipe or a terminal without a screen.
fn print_notes(news: &Receiver<Option<SpeakerNotes>>) -> Result<Exit> {
    let mut printed = (0, 0);
    while let Ok(Some(notes)) = news.recv() {
        let SpeakerNotes {
            stage, beat, of, ..
        } = notes;
        if (stage, beat) != printed {
            result(&format!(
                "stage {stage}, beat {beat}/{of}: {}\n{}\n",
                notes.says, notes.notes
            ))?;
            printed = (stage, beat);
        }
    }
    Ok(Exit::Ok)
}
