//! The presenter's other terminal: a socket in the runtime directory. Whoever connects gets the notes, a line whenever they change,
//! and sends requests, one a line. Nothing waits for it: a reader that does not read is let go.
//!
//! The notes go out as lines of JSON. Requests are `go-to 3 2`, `blank`, `freeze` and `end`.

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

/// How often the notes are looked at.
#[cfg(unix)]
const EVERY: Duration = Duration::from_millis(200);
/// Most terminals that listen at once.
#[cfg(unix)]
const MOST: usize = 8;

/// Where a presentation of this user is reached.
pub fn path() -> Option<PathBuf> {
    let dirs = directories::ProjectDirs::from("", "", "perflings")?;
    let folder = dirs.runtime_dir().or_else(|| dirs.state_dir());
    let folder = folder.unwrap_or_else(|| dirs.data_local_dir());
    Some(folder.join("notes.socket"))
}

#[cfg(not(unix))]
/// There are no sockets of this kind here.
#[derive(Default)]
pub struct SpeakerServer;

#[cfg(not(unix))]
impl SpeakerServer {
    pub fn serve(&mut self, _: &App) -> Option<Message> {
        None
    }
}

/// The listening side, in the program that presents.
#[cfg(unix)]
#[derive(Default)]
pub struct SpeakerServer {
    open: Option<(UnixListener, PathBuf)>,
    listeners: Vec<Listener>,
    orders: VecDeque<Message>,
    looked: Option<Instant>,
    said: String,
    failed: bool,
}

#[cfg(unix)]
struct Listener {
    stream: UnixStream,
    /// The beginning of its next request, as far as it has come.
    begun: String,
    /// It has not got the latest notes yet.
    behind: bool,
}

#[cfg(unix)]
impl SpeakerServer {
    /// Tells those who listen what has changed. The result is what they asked for next.
    pub fn serve(&mut self, app: &App) -> Option<Message> {
        if let Some(order) = self.orders.pop_front() {
            return Some(order);
        }
        if self.looked.is_some_and(|at| at.elapsed() < EVERY) {
            return None;
        }
        self.looked = Some(Instant::now());
        let Some(notes) = notes(app) else {
            self.close();
            return None;
        };
        if self.open.is_none() && !self.failed {
            self.open = listen();
            self.failed = self.open.is_none();
            if self.failed {
                let text =
                    "No speaker view: its socket could not be made, or another presentation has it";
                let warning = true;
                let text = text.to_owned();
                return Some(Message::Notice { text, warning });
            }
        }
        let fresh = serde_json::to_string(&notes).unwrap_or_default() + "\n";
        let changed = fresh != self.said;
        self.said = fresh;
        let (listener, _) = self.open.as_ref()?;
        while let Ok((stream, _)) = listener.accept() {
            let ready = stream.set_nonblocking(true).is_ok();
            if ready && self.listeners.len() < MOST {
                self.listeners.push(Listener {
                    stream,
                    begun: String::new(),
                    behind: true,
                });
            }
        }
        let (said, orders) = (&self.said, &mut self.orders);
        self.listeners.retain_mut(|it| {
            it.behind |= changed;
            it.tell(said) && it.hear(orders)
        });
        self.orders.pop_front()
    }

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
    /// Sends the latest notes; false once the listener is gone, or takes only part of a line.
    fn tell(&mut self, said: &str) -> bool {
        if !self.behind {
            return true;
        }
        match self.stream.write(said.as_bytes()) {
            Ok(written) => {
                self.behind = false;
                written == said.len()
            }
            Err(error) => error.kind() == std::io::ErrorKind::WouldBlock,
        }
    }

    /// Reads requests; false once the listener is gone, or sends what is no request.
    fn hear(&mut self, orders: &mut VecDeque<Message>) -> bool {
        let mut bytes = [0; 256];
        match self.stream.read(&mut bytes) {
            Ok(0) => return false,
            Ok(read) => self.begun += &String::from_utf8_lossy(&bytes[..read]),
            Err(error) => return error.kind() == std::io::ErrorKind::WouldBlock,
        }
        while let Some((line, rest)) = self.begun.split_once('\n') {
            let request = SpeakerRequest::parse(line);
            orders.extend(request.map(|it| Message::Action(it.action())));
            self.begun = rest.to_owned();
        }
        self.begun.len() < 64 && orders.len() < 64
    }
}

/// Opens the socket. One that nobody answers is left over from another presentation, and is replaced.
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
