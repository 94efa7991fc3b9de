//! Starts an engine process and serves its three pipes, each with a thread of its own: lines in, stray output in, commands
//! out. Nothing here interprets a line; only its length is limited.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::Builder;
use std::time::Instant;

use anyhow::{Context, Result};

use super::command::{EngineCommand, kill_group};
use crate::{Command, PROTOCOL};

/// The number of messages that are held for a slow reader. Beyond that the engine's pipe fills, which costs no timed step.
const INBOX: usize = 1024;
/// The number of commands that are held for an engine that does not read.
const OUTBOX: usize = 64;

/// The longest line of the stream, in bytes.
pub const MAX_LINE: usize = 8 * 1024 * 1024;
/// The longest line of stderr that is kept, in bytes.
const MAX_STRAY: usize = 4096;

/// A piece that came from a pipe.
#[derive(Debug)]
pub(super) enum FromPipe {
    /// A line of stdout.
    Text(String),
    /// A line of stdout above `MAX_LINE`, which was dropped.
    TooLong,
    /// A line of stderr.
    Stray(String),
    /// The engine's stdout ended.
    Closed,
}

/// The messages of an engine, and the commands to it.
#[derive(Debug)]
pub(super) struct Pipes {
    pub inbox: Receiver<FromPipe>,
    /// `None` once the engine was asked to end. Dropping the sender closes the engine's input.
    pub outbox: Option<SyncSender<Command>>,
    last_byte: LastByte,
}

impl Pipes {
    /// Returns the time at which the last byte came; `None` before the first one. A byte in the middle of a line counts, because a long line
    /// takes time in a slow pipe.
    pub(super) fn last_byte(&self) -> Option<Instant> {
        self.last_byte.lock().ok().and_then(|time| *time)
    }
}

type LastByte = Arc<Mutex<Option<Instant>>>;

/// A reader that records the time of the last read.
struct TimedReader<R>(R, LastByte);

impl<R: Read> Read for TimedReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.0.read(buffer)?;
        if let Ok(mut time) = self.1.lock() {
            *time = Some(Instant::now());
        }
        Ok(count)
    }
}

/// Starts an engine, and returns its process and its pipes.
pub(super) fn launch(command: &EngineCommand) -> Result<(Child, Pipes)> {
    let mut child = command
        .prepare()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("Failed to start the engine `{command}`"))?;
    match attach(&mut child) {
        Ok(pipes) => Ok((child, pipes)),
        Err(error) => {
            kill_group(&mut child);
            let _ = child.wait();
            Err(error).context("Failed to start a thread for the engine's pipes")
        }
    }
}

/// Takes the pipes of a child, starts a thread for each, and sends our greeting.
fn attach(child: &mut Child) -> io::Result<Pipes> {
    let missing = || io::Error::other("a pipe is missing");
    let (to_inbox, inbox) = sync_channel(INBOX);
    let (outbox, commands) = sync_channel(OUTBOX);
    let last_byte = LastByte::default();
    let stdout = TimedReader(
        child.stdout.take().ok_or_else(missing)?,
        Arc::clone(&last_byte),
    );
    read_stdout(stdout, to_inbox.clone())?;
    read_stderr(child.stderr.take().ok_or_else(missing)?, to_inbox)?;
    write_stdin(child.stdin.take().ok_or_else(missing)?, commands)?;
    let _ = outbox.try_send(Command::Hello {
        protocol: PROTOCOL,
        threads: EngineCommand::threads(),
    });
    Ok(Pipes {
        inbox,
        outbox: Some(outbox),
        last_byte,
    })
}

/// Returns a line that a program wrote, cut to at most `limit` bytes. Control characters, which were meant for a terminal, become spaces.
/// Whoever shows the line has to make the rest of it safe.
pub(super) fn printable(text: &str, limit: usize) -> String {
    let mut line = String::with_capacity(text.len().min(limit));
    for character in text.trim_end().chars() {
        if line.len() + character.len_utf8() > limit {
            line.push('…');
            break;
        }
        line.push(if character.is_control() {
            ' '
        } else {
            character
        });
    }
    line.truncate(line.trim_end().len());
    line
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    Builder::new().name(name.to_owned()).spawn(work).map(drop)
}

fn read_stdout(pipe: impl Read + Send + 'static, inbox: SyncSender<FromPipe>) -> io::Result<()> {
    spawn("engine-events", move || {
        let mut reader = BufReader::with_capacity(64 * 1024, pipe);
        let mut bytes = Vec::new();
        loop {
            let piece = match bounded_line(&mut reader, &mut bytes, MAX_LINE) {
                Ok(Bounded::End) | Err(_) => break,
                Ok(Bounded::TooLong) => FromPipe::TooLong,
                Ok(Bounded::Line) if bytes.iter().all(u8::is_ascii_whitespace) => continue,
                Ok(Bounded::Line) => FromPipe::Text(String::from_utf8_lossy(&bytes).into_owned()),
            };
            if inbox.send(piece).is_err() {
                break;
            }
        }
        let _ = inbox.send(FromPipe::Closed);
    })
}

fn read_stderr(pipe: impl Read + Send + 'static, inbox: SyncSender<FromPipe>) -> io::Result<()> {
    spawn("engine-stderr", move || {
        let mut reader = BufReader::new(pipe);
        let mut bytes = Vec::new();
        loop {
            let text = match bounded_line(&mut reader, &mut bytes, MAX_STRAY) {
                Ok(Bounded::End) | Err(_) => return,
                Ok(Bounded::Line) => printable(&String::from_utf8_lossy(&bytes), MAX_STRAY),
                Ok(Bounded::TooLong) => {
                    format!("{}…", printable(&String::from_utf8_lossy(&bytes), 200))
                }
            };
            if !text.is_empty() && inbox.send(FromPipe::Stray(text)).is_err() {
                return;
            }
        }
    })
}

/// Writes commands until the other side of the channel is gone, then closes the engine's input.
fn write_stdin(
    mut pipe: impl Write + Send + 'static,
    commands: Receiver<Command>,
) -> io::Result<()> {
    spawn("engine-commands", move || {
        for command in commands {
            let Ok(text) = serde_json::to_string(&command) else {
                continue;
            };
            let sent = pipe.write_all(format!("{text}\n").as_bytes());
            if sent.and_then(|()| pipe.flush()).is_err() {
                return;
            }
        }
    })
}

/// The result of reading one line.
enum Bounded {
    Line,
    TooLong,
    /// The pipe ended.
    End,
}

/// Reads one line into `bytes`, without its end. Of a line that is longer than `limit` bytes, only the first `limit` bytes are kept.
fn bounded_line(
    reader: &mut impl BufRead,
    bytes: &mut Vec<u8>,
    limit: usize,
) -> io::Result<Bounded> {
    bytes.clear();
    let mut piece = reader.by_ref().take(limit as u64 + 1);
    if piece.read_until(b'\n', bytes)? == 0 {
        return Ok(Bounded::End);
    }
    if bytes.pop_if(|last| *last == b'\n').is_some() || bytes.len() <= limit {
        return Ok(Bounded::Line);
    }
    bytes.truncate(limit);
    reader.skip_until(b'\n')?;
    Ok(Bounded::TooLong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_cut_and_the_next_one_is_whole() {
        let mut reader = BufReader::with_capacity(3, &b"abcdefgh\nxy\n\nend"[..]);
        let mut bytes = Vec::new();
        let mut seen = Vec::new();
        loop {
            match bounded_line(&mut reader, &mut bytes, 4).expect("reads from memory") {
                Bounded::End => break,
                Bounded::TooLong => seen.push(format!("{}+", String::from_utf8_lossy(&bytes))),
                Bounded::Line => seen.push(String::from_utf8_lossy(&bytes).into_owned()),
            }
        }
        assert_eq!(seen, ["abcd+", "xy", "", "end"]);
    }

    #[test]
    fn control_characters_become_spaces() {
        assert_eq!(printable("a\u{1b}[31mred\u{7}\r\n", 100), "a [31mred");
        assert_eq!(printable("äöü", 4), "äö…");
    }
}
