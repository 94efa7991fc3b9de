//! A room over HTTP. Learners post their record to `/join` and get the class as the response; phones post to `/phone`. There are two
//! secret codes: the learners' and the instructor's. At `/CODE` is the phones' page, at `/KEY` the board's, whose data come from
//! `/events/KEY` as server-sent events. Requests are bounded in size, rate, time and number. Many participants from one address are
//! the rule, so no address is limited.
//!
//! Each connection has a thread with a small stack, so a class of five hundred needs no async runtime; `http` reads requests.

use std::collections::BTreeMap;
use std::io::Write;
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, sleep};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq;

use super::handle::{HearError, RoomHandle};
use super::http::{Connection, Request, Response};
use super::log::Origin;
use super::page;
use super::phone::{self, PhoneRequest};
use super::record::{InstructorRequest, Participant, RecordError};
use super::state::JoinError;

/// Shortest interval between events for the board's page, and the interval without changes.
const EVENTS: Duration = Duration::from_millis(250);
const QUIET: Duration = Duration::from_secs(10);
/// Most pages that follow the board, and most connections in total.
const MOST_VIEWERS: usize = 16;
const MOST_CONNECTIONS: usize = 1500;
/// Open files reserved for everything else.
const OTHER_FILES: u64 = 64;
/// Wrong codes are answered after this delay, and only this many per second, which prevents guessing.
const WRONG_WAIT: Duration = Duration::from_millis(500);
const WRONG_RATE: f64 = 20.0;
/// Requests per second of one participant, and how many may come at once.
const OWN_RATE: f64 = 5.0;
const OWN_BURST: f64 = 20.0;
/// Stack of a connection's thread, in bytes.
const STACK: usize = 256 * 1024;

/// The secrets of a room.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoomSecrets {
    /// The code with which learners join.
    pub code: String,
    /// The key for the instructor's page and presenter.
    pub key: String,
}

/// Letters and digits that are not easily confused.
const LETTERS: &[u8] = b"abcdefghjkmnpqrstuvwxyz23456789";

impl RoomSecrets {
    pub fn draw() -> Self {
        Self {
            code: drawn(8),
            key: drawn(16),
        }
    }
}

/// A random word that cannot be guessed, from the standard library's source of randomness.
pub fn drawn(letters: usize) -> String {
    use std::hash::{BuildHasher, Hasher};
    let bits = || {
        std::collections::hash_map::RandomState::new()
            .build_hasher()
            .finish()
    };
    let letter = |_| char::from(LETTERS[(bits() % LETTERS.len() as u64) as usize]);
    (0..letters).map(letter).collect()
}

/// A token bucket: a rate per second, and a number at once.
struct TokenBucket {
    left: f64,
    at: Instant,
}

impl TokenBucket {
    fn takes(&mut self, rate: f64, burst: f64) -> bool {
        let passed = self.at.elapsed().as_secs_f64();
        self.at = Instant::now();
        self.left = (self.left + passed * rate).min(burst);
        let takes = self.left >= 1.0;
        self.left -= f64::from(u8::from(takes));
        takes
    }
}

/// The room, shared by the threads of connections.
struct Hosted {
    handle: RoomHandle,
    codes: RoomSecrets,
    /// Buckets by participant.
    buckets: Mutex<BTreeMap<String, TokenBucket>>,
    wrong: Mutex<BTreeMap<(), TokenBucket>>,
    viewers: AtomicUsize,
    guests: Mutex<Guests>,
}

/// All open connections. A new connection beyond the limit closes another: first those that have not sent a code, and of these the
/// one that has been idle longest. Idle connections therefore keep nobody out.
struct Guests {
    most: usize,
    number: u64,
    open: BTreeMap<u64, Guest>,
}

struct Guest {
    stream: Arc<TcpStream>,
    has_code: bool,
    heard: Instant,
}

impl Guests {
    fn enter(&mut self, stream: &Arc<TcpStream>) -> u64 {
        while self.open.len() >= self.most {
            self.close_one();
        }
        self.number += 1;
        let guest = Guest {
            stream: Arc::clone(stream),
            has_code: false,
            heard: Instant::now(),
        };
        self.open.insert(self.number, guest);
        self.number
    }

    fn close_one(&mut self) {
        let guests = self.open.iter();
        let least = guests.min_by_key(|(_, it)| (it.has_code, it.heard));
        let least = least.map(|(number, _)| *number);
        // This ends its thread.
        if let Some(guest) = least.and_then(|it| self.open.remove(&it)) {
            let _ = guest.stream.shutdown(Shutdown::Both);
        }
    }
}

/// Binds an address; an error is one line.
pub fn bind(address: &str) -> Result<TcpListener, String> {
    TcpListener::bind(address).map_err(|error| {
        let what = match error.kind() {
            std::io::ErrorKind::AddrInUse => {
                "another program uses this port; name another port".to_owned()
            }
            std::io::ErrorKind::InvalidInput => {
                "not an address; write one such as 0.0.0.0:7878".to_owned()
            }
            std::io::ErrorKind::PermissionDenied => {
                "this port needs more privileges; name a port above 1023".to_owned()
            }
            std::io::ErrorKind::AddrNotAvailable => {
                "this machine does not have that address; 0.0.0.0 means all its addresses"
                    .to_owned()
            }
            _ => crate::sanitize::line(&error.to_string()),
        };
        format!("--listen {address}: {what}")
    })
}

/// Serves the room on separate threads until the process ends.
pub fn host(
    listener: TcpListener,
    handle: RoomHandle,
    codes: RoomSecrets,
) -> Result<SocketAddr, String> {
    let failed = |error: std::io::Error| format!("the room cannot be served: {error}");
    let address = listener.local_addr().map_err(failed)?;
    let most = allow_connections();
    let hosted = Arc::new(Hosted {
        handle,
        codes,
        buckets: Mutex::default(),
        wrong: Mutex::default(),
        viewers: AtomicUsize::new(0),
        guests: Mutex::new(Guests {
            most,
            number: 0,
            open: BTreeMap::new(),
        }),
    });
    let accept = move || {
        loop {
            match listener.accept() {
                Ok((stream, _)) => begin(&hosted, stream),
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
fn begin(hosted: &Arc<Hosted>, stream: TcpStream) {
    let stream = Arc::new(stream);
    let guest = hosted.guests().enter(&stream);
    let host = Arc::clone(hosted);
    let answer = move || {
        if let Ok(mut connection) = Connection::new(stream) {
            while let Some(request) = connection.next_request() {
                host.note_request(guest, &request);
                if !host.answer(&request, &mut connection) {
                    break;
                }
            }
        }
        host.guests().open.remove(&guest);
    };
    let thread = Builder::new()
        .name("room-guest".to_owned())
        .stack_size(STACK);
    if thread.spawn(answer).is_err() {
        hosted.guests().open.remove(&guest);
    }
}

/// The most connections; raises the system's limit on open files, which is usually low, if necessary.
fn allow_connections() -> usize {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, getrlimit, setrlimit};
        let mut limit = getrlimit(Resource::Nofile);
        limit.current = limit.maximum;
        let _ = setrlimit(Resource::Nofile, limit);
        let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let most = usize::try_from(files.saturating_sub(OTHER_FILES));
        most.unwrap_or(MOST_CONNECTIONS).clamp(1, MOST_CONNECTIONS)
    }
    #[cfg(not(unix))]
    MOST_CONNECTIONS
}

impl Hosted {
    fn guests(&self) -> MutexGuard<'_, Guests> {
        self.guests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes whether a connection's requests have a code, which makes it more important than others.
    fn note_request(&self, guest: u64, request: &Request) {
        let code = request.path.strip_prefix("/events/");
        let has_code = self.opens(code.unwrap_or(&request.code)).is_some();
        if let Some(guest) = self.guests().open.get_mut(&guest) {
            (guest.heard, guest.has_code) = (Instant::now(), has_code);
        }
    }

    /// Answers a request; returns false if the connection ends.
    fn answer(&self, request: &Request, connection: &mut Connection) -> bool {
        if let ("GET", Some(key)) = (
            request.method.as_str(),
            request.path.strip_prefix("/events/"),
        ) {
            match self.admit(key, true) {
                Ok(()) => drop(self.events(connection)),
                Err(refused) => drop(connection.answer(&refused)),
            }
            return false;
        }
        let answer = match (request.method.as_str(), request.path.as_str()) {
            ("GET", "/") => Ok(Response::page(phone::page())),
            ("GET", "/board") => Ok(Response::page(page::live())),
            ("GET", path) if !path[1..].contains(['/', '.']) => self.page(&path[1..]),
            ("POST", "/join") => self.join(request, connection.peer()),
            ("POST", "/phone") => self.phone(request, connection.peer()),
            ("POST", "/board") => self
                .admit(&request.code, true)
                .map(|()| Response::json(&self.handle.board())),
            ("POST", "/order") => self.order(request),
            _ => Err(Response::refused(404, "there is no such page")),
        };
        connection.answer(&answer.unwrap_or_else(|refused| refused))
    }

    /// The page that a code opens.
    fn page(&self, code: &str) -> Result<Response, Response> {
        self.admit(code, false)?;
        let page = match self.opens(code) {
            Some(true) => page::live(),
            _ => phone::page(),
        };
        Ok(Response::page(page))
    }

    fn join(&self, request: &Request, peer: Option<IpAddr>) -> Result<Response, Response> {
        self.admit(&request.code, false)?;
        let record = Participant::read(&request.body).map_err(unread)?;
        self.limit(&record.id)?;
        let class = self.handle.hear(record, &origin(peer, String::new()));
        class.map(|class| Response::json(&class)).map_err(refused)
    }

    fn phone(&self, request: &Request, peer: Option<IpAddr>) -> Result<Response, Response> {
        self.admit(&request.code, false)?;
        let asked = PhoneRequest::read(&request.body).map_err(unread)?;
        self.limit(&asked.id)?;
        self.handle.note_reached(&request.host);
        let view = self
            .handle
            .hear_phone(&asked, &origin(peer, asked.browser.clone()));
        view.map(|view| Response::json(&view)).map_err(refused)
    }

    fn limit(&self, id: &str) -> Result<(), Response> {
        match takes(&self.buckets, id.to_owned(), OWN_RATE, OWN_BURST) {
            true => Ok(()),
            false => Err(Response::refused(429, "too many requests")),
        }
    }

    fn order(&self, request: &Request) -> Result<Response, Response> {
        self.admit(&request.code, true)?;
        let order: InstructorRequest = serde_json::from_slice(&request.body)
            .map_err(|_| Response::refused(400, "not a valid request to a room"))?;
        let obeyed = self.handle.order(&order);
        obeyed.map_err(|why| Response::refused(409, &why))?;
        Ok(Response::json(&self.handle.board()))
    }

    /// Sends the board whenever it changes, until the page is gone.
    fn events(&self, connection: &mut Connection) -> std::io::Result<()> {
        if self.viewers.fetch_add(1, Ordering::SeqCst) >= MOST_VIEWERS {
            self.viewers.fetch_sub(1, Ordering::SeqCst);
            connection.answer(&Response::refused(503, "too many pages follow this board"));
            return Ok(());
        }
        let sent = self.send_events(connection);
        self.viewers.fetch_sub(1, Ordering::SeqCst);
        sent
    }

    fn send_events(&self, connection: &mut Connection) -> std::io::Result<()> {
        let mut stream = connection.begin_events()?;
        let mut sent = None;
        loop {
            let revision = self.handle.state().revision;
            // Times on the board grow even without news.
            if sent.is_none_or(|(of, at): (u64, Instant)| of != revision || at.elapsed() > QUIET) {
                let board = self.handle.board().for_everybody();
                let data = serde_json::to_string(&board).unwrap_or_default();
                stream.write_all(format!("data: {data}\n\n").as_bytes())?;
                sent = Some((revision, Instant::now()));
            }
            sleep(EVENTS);
        }
    }

    /// Whether a code is the instructor's (true), a learner's (false) or wrong. The time of the comparison does not depend on how much
    /// of the code is right.
    fn opens(&self, given: &str) -> Option<bool> {
        // Codes have no capitals, but QR codes and people may use them.
        let given = given.to_ascii_lowercase();
        let is = |secret: &str| bool::from(secret.as_bytes().ct_eq(given.as_bytes()));
        let (key, code) = (is(&self.codes.key), is(&self.codes.code));
        (key || code).then_some(key)
    }

    /// Checks that a code permits a request; `instructor` requires the instructor's key.
    fn admit(&self, given: &str, instructor: bool) -> Result<(), Response> {
        match self.opens(given) {
            Some(key) if key || !instructor => return Ok(()),
            // Opening the learners' address in a browser is not a guess.
            Some(_) => return Err(Response::refused(403, "this requires the instructor's key")),
            None => {}
        }
        if !takes(&self.wrong, (), WRONG_RATE, WRONG_RATE) {
            return Err(Response::refused(429, "too many wrong room codes"));
        }
        sleep(WRONG_WAIT);
        Err(Response::refused(403, "the room code is wrong"))
    }
}

fn origin(peer: Option<IpAddr>, browser: String) -> Origin {
    Origin {
        address: peer.map_or_else(String::new, |peer| peer.to_string()),
        browser,
    }
}

fn unread(fault: RecordError) -> Response {
    let status = match fault {
        RecordError::Version(_) => 426,
        RecordError::Garbage(_) => 400,
    };
    Response::refused(status, &format!("the record {fault}"))
}

fn refused(why: HearError) -> Response {
    match why {
        HearError::NotKept(why) => Response::refused(500, &why),
        HearError::Refused(why) => {
            let status = match why {
                JoinError::Full => 503,
                JoinError::Removed => 403,
                JoinError::Closed | JoinError::Locked => 423,
                JoinError::NameRequired => 409,
                JoinError::NoSeat => 422,
            };
            Response::refused(status, &why.to_string())
        }
    }
}

/// Takes a token out of the bucket of this key; returns false if there is none.
fn takes<K: Ord>(buckets: &Mutex<BTreeMap<K, TokenBucket>>, key: K, rate: f64, burst: f64) -> bool {
    let mut buckets = buckets.lock().unwrap_or_else(PoisonError::into_inner);
    if buckets.len() > 2 * super::state::MOST_PEOPLE {
        buckets.clear();
    }
    let full = || TokenBucket {
        left: burst,
        at: Instant::now(),
    };
    let bucket = buckets.entry(key).or_insert_with(full);
    bucket.takes(rate, burst)
}
