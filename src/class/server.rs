//! A room over HTTP, with two secret codes: the learners' CODE and the instructor's KEY.
//!
//! ```text
//! GET  /CODE         the page for phones          POST /phone   a phone's request; the response is what the phone shows
//! GET  /KEY          the page of the board        POST /join    a participant's record; the response is the state of the class
//! GET  /events/KEY   the board, whenever it       POST /board   nothing; the response is the board
//!                    changes (server-sent)        POST /order   an order of the instructor; the response is the board
//! ```
//!
//! A class often sits behind one router, so the number of requests is limited for each participant and not for each address. Each
//! connection has a thread with a small stack, so a class of five hundred needs no async runtime.

mod limits;

use std::collections::BTreeMap;
use std::io::{ErrorKind, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{Builder, sleep};
use std::time::{Duration, Instant};

use super::handle::{Refusal, RoomHandle};
use super::http::{Connection, Request, Response};
use super::locked;
use super::log::Origin;
use super::page::LIVE_PAGE;
use super::phone::{PHONE_PAGE, PhoneRequest};
use super::record::{InstructorRequest, Participant, RecordError};
use super::secrets::{Access, RoomSecrets};
use super::state::{JoinError, MOST_PEOPLE};
use limits::{Guests, TokenBucket};

/// The interval at which the board is checked for changes, for the pages that follow it.
const CHECK_INTERVAL: Duration = Duration::from_millis(250);
/// The longest time between two events; a page that gets no event for longer knows that it has lost the room.
pub(super) const MAX_EVENT_INTERVAL: Duration = Duration::from_secs(10);
/// The most pages that follow the board.
const MOST_VIEWERS: usize = 16;
/// The delay of the response to a wrong code.
const WRONG_CODE_DELAY: Duration = Duration::from_millis(500);
/// The wrong codes per second that get a delayed response; more are refused at once. Both slow down guessing.
const WRONG_CODE_RATE: f64 = 20.0;
/// The requests per second that a participant may send.
const PARTICIPANT_RATE: f64 = 5.0;
/// The requests that a participant may send at once after a pause.
const PARTICIPANT_BURST: f64 = 20.0;
/// The stack of a connection's thread, in bytes.
const STACK_BYTES: usize = 256 * 1024;

/// The room, shared by the threads of all connections.
struct HostedRoom {
    handle: RoomHandle,
    secrets: RoomSecrets,
    /// The limit on the requests of each participant, by id.
    request_limits: Mutex<BTreeMap<String, TokenBucket>>,
    /// The limit on wrong codes.
    wrong_code_limit: Mutex<TokenBucket>,
    /// The number of pages that follow the board.
    viewers: AtomicUsize,
    guests: Mutex<Guests>,
}

/// Listens at an address such as `0.0.0.0:7878`.
///
/// # Errors
/// If the address cannot be used; the error is one line that says what to write instead.
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

/// Serves a room on separate threads until the process ends. Returns the address at which it is served.
///
/// # Errors
/// If the address is not known, or the first thread cannot be started.
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
        request_limits: Mutex::default(),
        wrong_code_limit: Mutex::new(TokenBucket::new(WRONG_CODE_RATE, WRONG_CODE_RATE)),
        viewers: AtomicUsize::new(0),
        guests: Mutex::new(Guests::new()),
    });
    let accept = move || {
        loop {
            match listener.accept() {
                Ok((stream, _)) => start_connection(&room, stream),
                // The connection has already ended, or the system has too many open files.
                Err(_) => sleep(Duration::from_millis(20)),
            }
        }
    };
    let thread = Builder::new().name("room-server".to_owned()).spawn(accept);
    thread.map_err(failed)?;
    Ok(address)
}

/// Answers the requests of a connection on a separate thread.
fn start_connection(room: &Arc<HostedRoom>, stream: TcpStream) {
    let stream = Arc::new(stream);
    let guest = locked(&room.guests).enter(&stream);
    let host = Arc::clone(room);
    let answer = move || {
        if let Ok(mut connection) = Connection::new(stream) {
            while let Some(request) = connection.next_request() {
                host.rank_guest(guest, &request);
                if !host.answer(&request, &mut connection) {
                    break;
                }
            }
        }
        locked(&host.guests).leave(guest);
    };
    let thread = Builder::new()
        .name("room-guest".to_owned())
        .stack_size(STACK_BYTES);
    if thread.spawn(answer).is_err() {
        locked(&room.guests).leave(guest);
    }
}

impl HostedRoom {
    /// Marks the connection of a request as active, and as one with a code if the request has a right one.
    fn rank_guest(&self, guest: u64, request: &Request) {
        let code_in_path = request.path.strip_prefix("/events/");
        let code = code_in_path.unwrap_or(&request.code);
        let has_code = self.secrets.access(code).is_some();
        locked(&self.guests).mark_active(guest, has_code);
    }

    /// Answers a request. Returns false if the connection ends with the response.
    fn answer(&self, request: &Request, connection: &mut Connection) -> bool {
        let method = request.method.as_str();
        let path = request.path.as_str();
        if method == "GET"
            && let Some(key) = path.strip_prefix("/events/")
        {
            match self.admit(key, Access::Instructor) {
                // An error means that the page has been closed.
                Ok(()) => drop(self.events(connection)),
                Err(refused) => drop(connection.answer(&refused)),
            }
            return false;
        }
        let response = match (method, path) {
            ("GET", "/") => Ok(Response::page(PHONE_PAGE)),
            ("GET", "/board") => Ok(Response::page(LIVE_PAGE)),
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
            Some(Access::Instructor) => LIVE_PAGE,
            _ => PHONE_PAGE,
        };
        Ok(Response::page(page))
    }

    fn join(&self, request: &Request, peer: Option<IpAddr>) -> Result<Response, Response> {
        self.admit(&request.code, Access::Learner)?;
        let record = Participant::read(&request.body).map_err(unread)?;
        self.limit(&record.id)?;
        self.handle
            .receive(record, &origin(peer, String::new()))
            .map(|class| Response::json(&class))
            .map_err(refused)
    }

    fn phone(&self, request: &Request, peer: Option<IpAddr>) -> Result<Response, Response> {
        self.admit(&request.code, Access::Learner)?;
        let phone_request = PhoneRequest::read(&request.body).map_err(unread)?;
        self.limit(&phone_request.id)?;
        self.handle.add_reached(&request.host);
        self.handle
            .receive_phone(&phone_request, &origin(peer, phone_request.browser.clone()))
            .map(|view| Response::json(&view))
            .map_err(refused)
    }

    fn order(&self, request: &Request) -> Result<Response, Response> {
        self.admit(&request.code, Access::Instructor)?;
        let order: InstructorRequest = serde_json::from_slice(&request.body)
            .map_err(|_| Response::refused(400, "not a valid request to a room"))?;
        self.handle
            .order(&order)
            .map_err(|why| Response::refused(409, &why))?;
        Ok(Response::json(&self.handle.board()))
    }

    /// Sends the board whenever it changes, until the page is closed. Refuses a page beyond `MOST_VIEWERS`.
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
            // The times on the board grow even if nothing happens.
            if sent
                .is_none_or(|(last, time)| last != revision || time.elapsed() > MAX_EVENT_INTERVAL)
            {
                let board = self.handle.board().for_everybody();
                let data = serde_json::to_string(&board).unwrap_or_default();
                stream.write_all(format!("data: {data}\n\n").as_bytes())?;
                sent = Some((revision, Instant::now()));
            }
            sleep(CHECK_INTERVAL);
        }
    }

    /// Checks that a code gives the access that a request needs. The error is the response that refuses it.
    fn admit(&self, code: &str, needed: Access) -> Result<(), Response> {
        match (self.secrets.access(code), needed) {
            (Some(Access::Instructor), _) | (Some(_), Access::Learner) => return Ok(()),
            // The learners' code in place of the key is a mistake and no attempt to guess, so it needs no delay.
            (Some(Access::Learner), Access::Instructor) => {
                return Err(Response::refused(403, "this requires the instructor's key"));
            }
            (None, _) => {}
        }
        if !locked(&self.wrong_code_limit).take() {
            return Err(Response::refused(429, "too many wrong room codes"));
        }
        sleep(WRONG_CODE_DELAY);
        Err(Response::refused(403, "the room code is wrong"))
    }

    /// Checks that a participant does not send too many requests. The error is the response that refuses one.
    fn limit(&self, id: &str) -> Result<(), Response> {
        let mut limits = locked(&self.request_limits);
        // Ids that were made up must not fill the memory.
        if limits.len() > 2 * MOST_PEOPLE {
            limits.clear();
        }
        let bucket = limits
            .entry(id.to_owned())
            .or_insert_with(|| TokenBucket::new(PARTICIPANT_RATE, PARTICIPANT_BURST));
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
fn refused(error: Refusal) -> Response {
    let why = match error {
        Refusal::NotLogged(why) => return Response::refused(500, &why),
        Refusal::Join(why) => why,
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
