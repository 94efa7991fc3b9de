//! A room over HTTP. Learners post their record to `/join` and get the class back; the board's page is at `/KEY`, its data at
//! `/events/KEY` as server-sent events. Two codes are the secrets: the learners' and the instructor's. Everything that comes in
//! is bounded in size, rate, time and number.
//!
//! A connection is a thread with a small stack, so a class of five hundred needs no runtime of its own; `http` reads requests.

use std::collections::BTreeMap;
use std::io::Write;
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, sleep};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq;

use super::handle::RoomHandle;
use super::http::{Connection, Request, Response};
use super::page;
use super::record::{InstructorRequest, Participant, REMOVED, RecordError};
use super::state::JoinError;

/// How often the board's page hears of changes at most, and how often of none.
const EVENTS: Duration = Duration::from_millis(250);
const QUIET: Duration = Duration::from_secs(10);
/// Pages that follow the board, and connections altogether.
const MOST_VIEWERS: usize = 16;
const MOST_CONNECTIONS: usize = 1500;
/// Open files that are left to everything else.
const OTHER_FILES: u64 = 64;
/// Wrong codes are answered after this time, and only so many a second: nobody finds one by trying.
const WRONG_WAIT: Duration = Duration::from_millis(500);
const WRONG_RATE: f64 = 20.0;
/// Requests of one participant a second, and how many may come at once.
const OWN_RATE: f64 = 5.0;
const OWN_BURST: f64 = 20.0;
/// New participants of one address a second, and how many may come at once: a class may share an address. This machine's own
/// are not counted.
const JOIN_RATE: f64 = 0.5;
const JOIN_BURST: f64 = 60.0;
/// Stack of the thread of a connection.
const STACK: usize = 256 * 1024;

/// The secrets of a room.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoomSecrets {
    /// What learners join with.
    pub code: String,
    /// What the instructor's page and presenter use.
    pub key: String,
}

/// Letters and digits that are not taken for each other.
const LETTERS: &[u8] = b"abcdefghjkmnpqrstuvwxyz23456789";

impl RoomSecrets {
    pub fn draw() -> Self {
        Self {
            code: drawn(8),
            key: drawn(16),
        }
    }
}

/// A word nobody can guess, from the standard library's own source of randomness.
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

/// What a bucket lets through: so many a second, and some at once.
struct Bucket {
    left: f64,
    at: Instant,
}

impl Bucket {
    fn full(burst: f64) -> Self {
        Self {
            left: burst,
            at: Instant::now(),
        }
    }

    fn takes(&mut self, rate: f64, burst: f64) -> bool {
        let passed = self.at.elapsed().as_secs_f64();
        self.at = Instant::now();
        self.left = (self.left + passed * rate).min(burst);
        let takes = self.left >= 1.0;
        self.left -= f64::from(u8::from(takes));
        takes
    }
}

/// The room as the threads of connections share it.
struct Hosted {
    desk: RoomHandle,
    codes: RoomSecrets,
    /// By participant.
    buckets: Mutex<BTreeMap<String, Bucket>>,
    wrong: Mutex<Bucket>,
    /// New participants, by the address they come from.
    joins: Mutex<BTreeMap<IpAddr, Bucket>>,
    viewers: AtomicUsize,
    guests: Mutex<Guests>,
}

/// Every open connection. Where there is no room for one more, the least needed one is closed: first one that has not shown a code,
/// and of these the one that has been quiet for longest. So idle connections keep nobody out.
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
        // Its thread hears of it and ends.
        if let Some(guest) = least.and_then(|it| self.open.remove(&it)) {
            let _ = guest.stream.shutdown(Shutdown::Both);
        }
    }
}

/// Binds an address; the error is one line.
pub fn bind(address: &str) -> Result<TcpListener, String> {
    TcpListener::bind(address).map_err(|error| {
        let what = match error.kind() {
            std::io::ErrorKind::AddrInUse => {
                "another program listens there; name another port".to_owned()
            }
            std::io::ErrorKind::InvalidInput => {
                "no address; write one such as 0.0.0.0:7878".to_owned()
            }
            std::io::ErrorKind::PermissionDenied => {
                "this needs more rights; name a port above 1023".to_owned()
            }
            std::io::ErrorKind::AddrNotAvailable => {
                "this machine does not have that address; 0.0.0.0 stands for all it has".to_owned()
            }
            _ => crate::clean::line(&error.to_string()),
        };
        format!("--listen {address}: {what}")
    })
}

/// Serves the room on threads of its own until the process ends.
pub fn host(
    listener: TcpListener,
    desk: RoomHandle,
    codes: RoomSecrets,
) -> Result<SocketAddr, String> {
    let failed = |error: std::io::Error| format!("the room cannot be served: {error}");
    let address = listener.local_addr().map_err(failed)?;
    let most = allow_connections();
    let hosted = Arc::new(Hosted {
        desk,
        codes,
        buckets: Mutex::default(),
        wrong: Mutex::new(Bucket::full(WRONG_RATE)),
        joins: Mutex::default(),
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
                // A connection that is gone already, or too many open files of others.
                Err(_) => sleep(Duration::from_millis(20)),
            }
        }
    };
    let thread = Builder::new().name("room-server".to_owned()).spawn(accept);
    thread.map_err(failed)?;
    Ok(address)
}

/// Answers a connection on a thread of its own.
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

/// How many connections there may be. The system's usual limit of open files is lower than it has to be.
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

    /// A connection whose requests have a code is worth more than one that says nothing.
    fn note_request(&self, guest: u64, request: &Request) {
        let code = request.path.strip_prefix("/events/");
        let has_code = self.opens(code.unwrap_or(&request.code)).is_some();
        if let Some(guest) = self.guests().open.get_mut(&guest) {
            (guest.heard, guest.has_code) = (Instant::now(), has_code);
        }
    }

    /// Answers a request; false where the connection is of no more use.
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
            ("GET", path) if !path[1..].contains('/') => Ok(Response::page(page::live())),
            ("POST", "/join") => self.join(request, connection.peer()),
            ("POST", "/board") => self.admit(&request.code, true).map(|()| self.board()),
            ("POST", "/order") => self.order(request),
            _ => Err(Response::refused(404, "there is no such page")),
        };
        connection.answer(&answer.unwrap_or_else(|refused| refused))
    }

    fn join(&self, request: &Request, peer: Option<IpAddr>) -> Result<Response, Response> {
        self.admit(&request.code, false)?;
        let record = Participant::read(&request.body).map_err(|fault| {
            let status = match fault {
                RecordError::Version(_) => 426,
                RecordError::Garbage(_) => 400,
            };
            Response::refused(status, &format!("what was sent {fault}"))
        })?;
        if !self.lets(&record.id) {
            return Err(Response::refused(429, "too many requests"));
        }
        let known = self.desk.hall().people.contains_key(&record.id);
        if !known && !self.lets_in(peer) {
            let why = "too many new participants at once from this address";
            return Err(Response::refused(429, why));
        }
        let id = record.id.clone();
        let mut class = self.desk.hear(record).map_err(|refused| match refused {
            JoinError::Full => Response::refused(503, "the room is full"),
            JoinError::Removed => Response::refused(403, REMOVED),
        })?;
        class.renamed.retain(|of, _| *of == id);
        class.removed.clear();
        Ok(Response::json(&class))
    }

    fn board(&self) -> Response {
        Response::json(&self.desk.board())
    }

    fn order(&self, request: &Request) -> Result<Response, Response> {
        self.admit(&request.code, true)?;
        let order: InstructorRequest = serde_json::from_slice(&request.body)
            .map_err(|_| Response::refused(400, "what was sent is no order to a room"))?;
        let obeyed = self.desk.order(&order);
        obeyed.map_err(|why| Response::refused(500, &why))?;
        Ok(self.board())
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
            let revision = self.desk.hall().revision;
            // Times on the board grow although nothing is heard.
            if sent.is_none_or(|(of, at): (u64, Instant)| of != revision || at.elapsed() > QUIET) {
                let board = self.desk.board().for_everybody();
                let data = serde_json::to_string(&board).unwrap_or_default();
                stream.write_all(format!("data: {data}\n\n").as_bytes())?;
                sent = Some((revision, Instant::now()));
            }
            sleep(EVENTS);
        }
    }

    /// What a code opens: everything (true), or only what learners do. The time it takes does not tell how much of it was right.
    fn opens(&self, given: &str) -> Option<bool> {
        // Codes have no capitals; a QR code and who reads one aloud may.
        let given = given.to_ascii_lowercase();
        let is = |secret: &str| bool::from(secret.as_bytes().ct_eq(given.as_bytes()));
        let (key, code) = (is(&self.codes.key), is(&self.codes.code));
        (key || code).then_some(key)
    }

    /// Whether a code opens this: something for learners, or only for the instructor.
    fn admit(&self, given: &str, instructor: bool) -> Result<(), Response> {
        match self.opens(given) {
            Some(key) if key || !instructor => return Ok(()),
            // Whoever opens the learners' address in a browser has guessed nothing.
            Some(_) => return Err(Response::refused(403, "this asks for the instructor's key")),
            None => {}
        }
        let mut wrong = self.wrong.lock().unwrap_or_else(PoisonError::into_inner);
        let takes = wrong.takes(WRONG_RATE, WRONG_RATE);
        drop(wrong);
        if !takes {
            return Err(Response::refused(429, "too many wrong room codes"));
        }
        sleep(WRONG_WAIT);
        Err(Response::refused(403, "the room code is wrong"))
    }

    /// Whether one more participant may come from there now.
    fn lets_in(&self, peer: Option<IpAddr>) -> bool {
        let Some(peer) = peer.filter(|it| !it.is_loopback()) else {
            return true;
        };
        let mut joins = self.joins.lock().unwrap_or_else(PoisonError::into_inner);
        if joins.len() > 2 * super::state::MOST_PEOPLE {
            joins.clear();
        }
        let bucket = joins.entry(peer);
        let bucket = bucket.or_insert_with(|| Bucket::full(JOIN_BURST));
        bucket.takes(JOIN_RATE, JOIN_BURST)
    }

    /// Whether a participant may send something now.
    fn lets(&self, id: &str) -> bool {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() > 2 * super::state::MOST_PEOPLE {
            buckets.clear();
        }
        let bucket = buckets.entry(id.to_owned());
        let bucket = bucket.or_insert_with(|| Bucket::full(OWN_BURST));
        bucket.takes(OWN_RATE, OWN_BURST)
    }
}
