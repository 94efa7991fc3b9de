//! Serves the speaker view, which runs on another terminal, over a socket in the runtime directory. Each connected terminal gets the notes
//! as a line of JSON whenever they change, and sends requests, one a line: `go-to 3 2`, `blank`, `freeze` or `end`. The screen never waits:
//! a terminal that does not read is disconnected.

use std::path::PathBuf;
#[cfg(unix)]
use std::{
    collections::VecDeque,
    io::{Read, Write},
    os::unix::net::{UnixListener, UnixStream},
    time::{Duration, Instant},
};

#[cfg(unix)]
use crate::app::notes::{SpeakerRequest, notes};
use crate::app::{App, Message};

/// The time between two updates of the notes.
#[cfg(unix)]
const INTERVAL: Duration = Duration::from_millis(200);
/// The largest number of connected terminals.
#[cfg(unix)]
const MAX_LISTENERS: usize = 8;

/// Returns the path of the socket of this user's presentation, or `None` if the system names no folder for it.
pub fn path() -> Option<PathBuf> {
    let dirs = directories::ProjectDirs::from("", "", "perflings")?;
    let folder = dirs
        .runtime_dir()
        .or_else(|| dirs.state_dir())
        .unwrap_or_else(|| dirs.data_local_dir());
    Some(folder.join("notes.socket"))
}

#[cfg(not(unix))]
/// A server that does nothing, because this system has no Unix sockets.
#[derive(Default)]
pub struct SpeakerServer;

#[cfg(not(unix))]
impl SpeakerServer {
    pub fn serve(&mut self, _: &App) -> Option<Message> {
        None
    }
}

/// The server of the speaker view, in the program that presents.
#[cfg(unix)]
#[derive(Default)]
pub struct SpeakerServer {
    /// The socket and its path. `None` while no presentation is shown.
    open: Option<(UnixListener, PathBuf)>,
    listeners: Vec<Listener>,
    /// The requests that wait for the screen.
    requests: VecDeque<Message>,
    /// The time of the last update.
    updated: Option<Instant>,
    /// The latest notes, as a line.
    notes: String,
    /// True if the socket could not be opened for this presentation.
    failed: bool,
}

#[cfg(unix)]
/// A terminal that shows the speaker view.
struct Listener {
    stream: UnixStream,
    /// The part of the terminal's next request that has arrived.
    begun: String,
    /// True if the terminal has not got the latest notes yet.
    behind: bool,
}

#[cfg(unix)]
impl SpeakerServer {
    /// Sends changed notes to all listeners. Returns the next request of a listener, or `None` if there is none.
    pub fn serve(&mut self, app: &App) -> Option<Message> {
        if let Some(request) = self.requests.pop_front() {
            return Some(request);
        }
        if self.updated.is_some_and(|time| time.elapsed() < INTERVAL) {
            return None;
        }
        self.updated = Some(Instant::now());
        let Some(notes) = notes(app) else {
            self.close();
            return None;
        };
        if self.open.is_none() && !self.failed {
            self.open = listen();
            self.failed = self.open.is_none();
            if self.failed {
                let text = "No speaker view: its socket could not be opened, \
                            or another presentation uses it";
                return Some(Message::Notice {
                    text: text.to_owned(),
                    warning: true,
                });
            }
        }
        let latest = serde_json::to_string(&notes).unwrap_or_default() + "\n";
        let changed = latest != self.notes;
        self.notes = latest;
        let (listener, _) = self.open.as_ref()?;
        while let Ok((stream, _)) = listener.accept() {
            let ready = stream.set_nonblocking(true).is_ok();
            if ready && self.listeners.len() < MAX_LISTENERS {
                self.listeners.push(Listener {
                    stream,
                    begun: String::new(),
                    behind: true,
                });
            }
        }
        self.listeners.retain_mut(|listener| {
            listener.behind |= changed;
            listener.send(&self.notes) && listener.receive(&mut self.requests)
        });
        self.requests.pop_front()
    }

    /// Disconnects all listeners and removes the socket.
    fn close(&mut self) {
        self.listeners.clear();
        if let Some((_, path)) = self.open.take() {
            let _ = std::fs::remove_file(path);
        }
        self.failed = false;
    }
}

#[cfg(unix)]
impl Drop for SpeakerServer {
    fn drop(&mut self) {
        self.close();
    }
}

#[cfg(unix)]
impl Listener {
    /// Sends the latest notes, unless they were sent before. Returns false if the listener is gone or takes only a part of the line.
    fn send(&mut self, notes: &str) -> bool {
        if !self.behind {
            return true;
        }
        match self.stream.write(notes.as_bytes()) {
            Ok(written) => {
                self.behind = false;
                written == notes.len()
            }
            Err(error) => error.kind() == std::io::ErrorKind::WouldBlock,
        }
    }

    /// Reads requests. Returns false if the listener is gone, or sends too much.
    fn receive(&mut self, requests: &mut VecDeque<Message>) -> bool {
        let mut bytes = [0; 256];
        match self.stream.read(&mut bytes) {
            Ok(0) => return false,
            Ok(read) => self.begun += &String::from_utf8_lossy(&bytes[..read]),
            Err(error) => return error.kind() == std::io::ErrorKind::WouldBlock,
        }
        while let Some((line, rest)) = self.begun.split_once('\n') {
            if let Some(request) = SpeakerRequest::parse(line) {
                requests.push_back(Message::Action(request.action()));
            }
            self.begun = rest.to_owned();
        }
        self.begun.len() < 64 && requests.len() < 64
    }
}

/// Opens the socket. Returns `None` if that fails, or if another presentation uses the socket. A socket that nobody answers was left by an
/// earlier program and is replaced.
#[cfg(unix)]
fn listen() -> Option<(UnixListener, PathBuf)> {
    use std::os::unix::fs::DirBuilderExt;
    let path = path()?;
    let folder = path.parent()?;
    let _ = std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder);
    if UnixStream::connect(&path).is_ok() {
        return None;
    }
    let _ = std::fs::remove_file(&path);
    let listener = UnixListener::bind(&path).ok()?;
    listener.set_nonblocking(true).ok()?;
    Some((listener, path))
}
