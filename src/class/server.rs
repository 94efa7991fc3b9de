//! A room over HTTP. Learners post their record to `/join` and get the class as the response; phones post to `/phone`. There are two
//! secret codes: the learners' and the instructor's. At `/CODE` is the phones' page, at `/KEY` the board's, whose data come from
//! `/events/KEY` as server-sent events. Requests are bounded in size, rate, time and number. Many participants from one address are
//! the rule, so no address is limited.
//!
//! Each connection has a thread with a small stack, so a class of five hundred needs no async runtime; `http` reads requests.

mod limits;

use std::collections::BTreeMap;
use std::io::{ErrorKind, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{Builder, sleep};
use std::time::{Duration, Instant};

use super::handle::{HearError, RoomHandle};
use super::http::{Connection, Request, Response};
use super::locked;
use super::log::Origin;
use super::page;
use super::phone::{self, PhoneRequest};
use super::record::{InstructorRequest, Participant, RecordError};
use super::secrets::{Access, RoomSecrets};
use super::state::{JoinError, MOST_PEOPLE};
use limits::{Guests, TokenBucket};

/// The shortest interval between events for the board's page.
const EVENTS: Duration = Duration::from_millis(250);
/// The interval between events without changes.
pub(super) const QUIET: Duration = Duration::from_secs(10);
/// The most pages that follow the board.
const MOST_VIEWERS: usize = 16;
/// The delay of the response to a wrong code.
const WRONG_WAIT: Duration = Duration::from_millis(500);
/// The number of wrong codes per second that are looked at, which prevents guessing.
const WRONG_RATE: f64 = 20.0;
/// The requests per second of one participant.
const OWN_RATE: f64 = 5.0;
/// The requests of one participant that may come at once.
const OWN_BURST: f64 = 20.0;
/// The stack of a connection's thread, in bytes.
const STACK: usize = 256 * 1024;

/// The room, shared by the threads of connections.
struct HostedRoom {
    handle: RoomHandle,
    secrets: RoomSecrets,
    /// The bucket of each participant.
    requests: Mutex<BTreeMap<String, TokenBucket>>,
    /// The bucket of wrong codes.
    wrong: Mutex<TokenBucket>,
    /// The number of pages that follow the board.
    viewers: AtomicUsize,
    guests: Mutex<Guests>,
}

/// Binds an address.
///
/// # Errors
/// One line, if that is not possible.
pub fn bind(address: &str) -> Result<TcpListener, String> {
    TcpListener::bind(address).map_err(|error| {
        let why = match error.kind() {
            ErrorKind::AddrInUse => "another program uses this port; name another port",
            ErrorKind::InvalidInput => "not an address; write one such as 0.0.0.0:7878",
            ErrorKind::PermissionDenied => {
                "this port needs more privileges; name a port above 1023"
            }
            ErrorKind::AddrNotAvailable => {
                "this machine does not have that address; 0.0.0.0 means all its addresses"
            }
            _ => &crate::sanitize::line(&error.to_string()),
        };
        format!("--listen {address}: {why}")
    })
}

/// Serves the room on separate threads until the process ends. Returns its address.
///
/// # Errors
/// If it cannot be served.
pub fn host(
    listener: TcpListener,
    handle: RoomHandle,
    secrets: RoomSecrets,
) -> Result<SocketAddr, String> {
    let failed = |error: std::io::Error| format!("the room cannot be served: {error}");
    let address = listener.local_addr().map_err(failed)?;
    let room = Arc::new(HostedRoom {
        handle,
        secrets,
        requests: Mutex::default(),
        wrong: Mutex::new(TokenBucket::new(WRONG_RATE, WRONG_RATE)),
        viewers: AtomicUsize::new(0),
        guests: Mutex::new(Guests::new()),
    });
    let accept = move || {
        loop {
            match listener.accept() {
                Ok((stream, _)) => begin(&room, stream),
                // The connection has already ended, or the system has too many open files.
                Err(_) => sleep(Duration::from_millis(20)),
            }
        }
    };
    let thread = Builder::new().name("room-server".to_owned()).spawn(accept);
    thread.map_err(failed)?;
    Ok(address)
}

/// Answers a connection on a separate thread.
fn begin(room: &Arc<HostedRoom>, stream: TcpStream) {
    let stream = Arc::new(stream);
    let guest = locked(&room.guests).enter(&stream);
    let host = Arc::clone(room);
    let answer = move || {
        if let Ok(mut connection) = Connection::new(stream) {
            while let Some(request) = connection.next_request() {
                host.note_request(guest, &request);
                if !host.answer(&request, &mut connection) {
                    break;
                }
            }
        }
        locked(&host.guests).leave(guest);
    };
    let thread = Builder::new()
        .name("room-guest".to_owned())
        .stack_size(STACK);
    if thread.spawn(answer).is_err() {
        locked(&room.guests).leave(guest);
    }
}

impl HostedRoom {
    /// Notes whether a connection's requests have a code, which makes it more important than others.
    fn note_request(&self, guest: u64, request: &Request) {
        let in_path = request.path.strip_prefix("/events/");
        let access = self.secrets.access(in_path.unwrap_or(&request.code));
        locked(&self.guests).note(guest, access.is_some());
    }

    /// Answers a request. Returns false if the connection ends.
    fn answer(&self, request: &Request, connection: &mut Connection) -> bool {
        let method = request.method.as_str();
        let path = request.path.as_str();
        if method == "GET"
            && let Some(key) = path.strip_prefix("/events/")
        {
            match self.admit(key, Access::Instructor) {
                Ok(()) => drop(self.events(connection)),
                Err(refused) => drop(connection.answer(&refused)),
            }
            return false;
        }
        let response = match (method, path) {
            ("GET", "/") => Ok(Response::page(phone::page())),
            ("GET", "/board") => Ok(Response::page(page::live())),
            ("GET", path) if !path[1..].contains(['/', '.']) => self.page(&path[1..]),
            ("POST", "/join") => self.join(request, connection.peer()),
            ("POST", "/phone") => self.phone(request, connection.peer()),
            ("POST", "/board") => self
                .admit(&request.code, Access::Instructor)
                .map(|()| Response::json(&self.handle.board())),
            ("POST", "/order") => self.order(request),
            _ => Err(Response::refused(404, "there is no such page")),
        };
        connection.answer(&response.unwrap_or_else(|refused| refused))
    }

    /// Returns the page that a code opens.
    fn page(&self, code: &str) -> Result<Response, Response> {
        self.admit(code, Access::Learner)?;
        let page = match self.secrets.access(code) {
            Some(Access::Instructor) => page::live(),
            _ => phone::page(),
        };
        Ok(Response::page(page))
    }

    fn join(&self, request: &Request, peer: Option<IpAddr>) -> Result<Response, Response> {
        self.admit(&request.code, Access::Learner)?;
        let record = Participant::read(&request.body).map_err(unread)?;
        self.limit(&record.id)?;
        let class = self.handle.hear(record, &origin(peer, String::new()));
        class.map(|class| Response::json(&class)).map_err(refused)
    }

    fn phone(&self, request: &Request, peer: Option<IpAddr>) -> Result<Response, Response> {
        self.admit(&request.code, Access::Learner)?;
        let asked = PhoneRequest::read(&request.body).map_err(unread)?;
        self.limit(&asked.id)?;
        self.handle.note_reached(&request.host);
        let origin = origin(peer, asked.browser.clone());
        let view = self.handle.hear_phone(&asked, &origin);
        view.map(|view| Response::json(&view)).map_err(refused)
    }

    fn order(&self, request: &Request) -> Result<Response, Response> {
        self.admit(&request.code, Access::Instructor)?;
        let order: InstructorRequest = serde_json::from_slice(&request.body)
            .map_err(|_| Response::refused(400, "not a valid request to a room"))?;
        let obeyed = self.handle.order(&order);
        obeyed.map_err(|why| Response::refused(409, &why))?;
        Ok(Response::json(&self.handle.board()))
    }

    /// Sends the board whenever it changes, until the page is gone.
    fn events(&self, connection: &mut Connection) -> std::io::Result<()> {
        let before = self.viewers.fetch_add(1, Ordering::SeqCst);
        let sent = if before < MOST_VIEWERS {
            self.send_events(connection)
        } else {
            connection.answer(&Response::refused(503, "too many pages follow this board"));
            Ok(())
        };
        self.viewers.fetch_sub(1, Ordering::SeqCst);
        sent
    }

    fn send_events(&self, connection: &mut Connection) -> std::io::Result<()> {
        let mut stream = connection.begin_events()?;
        let mut sent: Option<(u64, Instant)> = None;
        loop {
            let revision = self.handle.state().revision;
            // Times on the board grow even without news.
            if sent.is_none_or(|(last, at)| last != revision || at.elapsed() > QUIET) {
                let board = self.handle.board().for_everybody();
                let data = serde_json::to_string(&board).unwrap_or_default();
                stream.write_all(format!("data: {data}\n\n").as_bytes())?;
                sent = Some((revision, Instant::now()));
            }
            sleep(EVENTS);
        }
    }

    /// Checks that a code permits a request that needs this access.
    fn admit(&self, given: &str, needed: Access) -> Result<(), Response> {
        match (self.secrets.access(given), needed) {
            (Some(Access::Instructor), _) | (Some(_), Access::Learner) => return Ok(()),
            // Opening the learners' address in a browser is not a guess.
            (Some(Access::Learner), Access::Instructor) => {
                return Err(Response::refused(403, "this requires the instructor's key"));
            }
            (None, _) => {}
        }
        if !locked(&self.wrong).take() {
            return Err(Response::refused(429, "too many wrong room codes"));
        }
        sleep(WRONG_WAIT);
        Err(Response::refused(403, "the room code is wrong"))
    }

    /// Checks that a participant does not send too many requests.
    fn limit(&self, id: &str) -> Result<(), Response> {
        let mut requests = locked(&self.requests);
        if requests.len() > 2 * MOST_PEOPLE {
            requests.clear();
        }
        let bucket = requests
            .entry(id.to_owned())
            .or_insert_with(|| TokenBucket::new(OWN_RATE, OWN_BURST));
        if bucket.take() {
            Ok(())
        } else {
            Err(Response::refused(429, "too many requests"))
        }
    }
}

fn origin(peer: Option<IpAddr>, browser: String) -> Origin {
    Origin {
        address: peer.map_or_else(String::new, |peer| peer.to_string()),
        browser,
    }
}

/// Returns the response to a record that cannot be read.
fn unread(fault: RecordError) -> Response {
    let status = match fault {
        RecordError::Version(_) => 426,
        RecordError::Garbage(_) => 400,
    };
    Response::refused(status, &format!("the record {fault}"))
}

/// Returns the response to a request that the room did not take.
fn refused(error: HearError) -> Response {
    let why = match error {
        HearError::NotKept(why) => return Response::refused(500, &why),
        HearError::Refused(why) => why,
    };
    let status = match why {
        JoinError::Full => 503,
        JoinError::Removed => 403,
        JoinError::Closed | JoinError::Locked => 423,
        JoinError::NameRequired => 409,
        JoinError::NoSeat => 422,
    };
    Response::refused(status, &why.to_string())
}
