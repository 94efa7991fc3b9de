//! `perflings notes`: shows the speaker view of a presentation that runs on this machine, in a second terminal or over ssh.

use anyhow::Result;

use super::args::NotesArgs;
use crate::out::{Exit, usage};

#[cfg(unix)]
pub(super) fn notes(args: &NotesArgs) -> Result<Exit> {
    use std::io::{BufRead, BufReader, Write};
    use std::os::unix::net::UnixStream;
    use std::sync::mpsc::channel;
    use std::sync::{Arc, Mutex, PoisonError};
    use std::time::Duration;

    use crate::app::notes::{SpeakerNotes, SpeakerRequest};
    use crate::out::notice;
    use crate::shell::speaker;

    /// The time between two attempts to find a presentation that was left.
    const AGAIN: Duration = Duration::from_millis(500);

    let context = args.course.load()?;
    let agendas = &context.course.agendas;
    let find_agenda = |minutes: u32| {
        let found = agendas.iter().find(|agenda| agenda.minutes == minutes);
        found.ok_or_else(|| {
            let all = agendas.iter().map(|agenda| agenda.minutes.to_string());
            let all: Vec<String> = all.collect();
            usage(format!(
                "--agenda {minutes}: the course has none of {minutes} minutes; it has {}",
                all.join(", ")
            ))
        })
    };
    let agenda = args.agenda.map(find_agenda).transpose()?;
    let path = speaker::path().ok_or_else(|| usage("this system names no folder for sockets"))?;
    let Ok(stream) = UnixStream::connect(&path) else {
        return Err(usage(
            "there is no presentation on this machine; start `perflings --present` on this machine as the same user, then `perflings notes` again",
        ));
    };
    let mut reader = BufReader::new(stream.try_clone()?);
    let stream = Arc::new(Mutex::new(stream));
    let (send, news) = channel();
    let writer = Arc::clone(&stream);
    let read = move || {
        loop {
            let lines = reader.lines().map_while(Result::ok);
            for notes in lines.filter_map(|line| SpeakerNotes::read(&line)) {
                if send.send(Some(notes)).is_err() {
                    return;
                }
            }
            if send.send(None).is_err() {
                return;
            }
            // The presentation was left and may be continued.
            let (input, output) = loop {
                std::thread::sleep(AGAIN);
                let stream = UnixStream::connect(&path);
                if let Ok(both) = stream.and_then(|stream| Ok((stream.try_clone()?, stream))) {
                    break both;
                }
            };
            reader = BufReader::new(input);
            *writer.lock().unwrap_or_else(PoisonError::into_inner) = output;
        }
    };
    std::thread::Builder::new()
        .name("notes".into())
        .spawn(read)?;
    if args.plain {
        // The notes are printed as they change, for a pipe or a terminal that shows no screen.
        let mut printed = (0, 0);
        for notes in news.into_iter().map_while(std::convert::identity) {
            let (stage, beat, of) = (notes.stage, notes.beat, notes.of);
            if (stage, beat) != printed {
                crate::out::result(&format!(
                    "stage {stage}, beat {beat}/{of}: {}\n{}\n",
                    notes.says, notes.notes
                ))?;
                printed = (stage, beat);
            }
        }
        return Ok(Exit::Ok);
    }
    if !crate::tui::terminal::is_present() {
        return Err(usage(
            "notes are shown on a screen, and there is no terminal here; --plain prints them",
        ));
    }
    // A request while nobody presents is lost.
    let send = |request: SpeakerRequest| {
        let mut stream = stream.lock().unwrap_or_else(PoisonError::into_inner);
        drop(writeln!(stream, "{request}"));
    };
    let clock = || jiff::Zoned::now().strftime("%H:%M").to_string();
    let outcome = crate::tui::speaker::show(&news, args.theme, agenda, clock, send)?;
    if outcome.is_none() {
        notice("the presentation has ended");
    }
    Ok(outcome.map_or(Exit::Ok, super::workshop::exit_of))
}

#[cfg(not(unix))]
pub fn notes(_: &NotesArgs) -> Result<Exit> {
    Err(usage("the speaker view needs a Unix system"))
}
