//! Limits on the requests and the connections that a room accepts.

use std::collections::BTreeMap;
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::Instant;

/// The most connections in total.
const MOST_CONNECTIONS: usize = 1500;
/// The number of open files that are reserved for purposes other than connections.
#[cfg(unix)]
const OTHER_FILES: u64 = 64;

/// A limit on requests in the form of a token bucket. Each request takes a token, the bucket is filled at a constant rate, and a request
/// that finds no token is refused.
pub(super) struct TokenBucket {
    tokens: f64,
    /// The time of the last call of `take`.
    last: Instant,
    per_second: f64,
    most: f64,
}

impl TokenBucket {
    /// Returns a full bucket, which holds at most `most` tokens and gets `per_second` new ones.
    pub(super) fn new(per_second: f64, most: f64) -> Self {
        Self {
            tokens: most,
            last: Instant::now(),
            per_second,
            most,
        }
    }

    /// Takes a token. Returns false if there is none.
    pub(super) fn take(&mut self) -> bool {
        let passed_s = self.last.elapsed().as_secs_f64();
        self.last = Instant::now();
        self.tokens = (self.tokens + passed_s * self.per_second).min(self.most);
        if self.tokens < 1.0 {
            return false;
        }
        self.tokens -= 1.0;
        true
    }
}

/// All open connections. At the limit, a new connection closes an old one: first one that has sent no code, and among these the one that
/// has been idle longest. So nobody can keep others out by opening connections and leaving them idle.
pub(super) struct Guests {
    most: usize,
    /// The number of the newest connection.
    number: u64,
    open: BTreeMap<u64, Guest>,
}

/// An open connection.
struct Guest {
    stream: Arc<TcpStream>,
    /// True if the last request had a code of the room.
    has_code: bool,
    /// The time of the last request.
    last_request: Instant,
}

impl Guests {
    pub(super) fn new() -> Self {
        Self {
            most: most_connections(),
            number: 0,
            open: BTreeMap::new(),
        }
    }

    /// Adds a connection, and returns its number.
    pub(super) fn enter(&mut self, stream: &Arc<TcpStream>) -> u64 {
        while self.open.len() >= self.most {
            self.close_one();
        }
        self.number += 1;
        let guest = Guest {
            stream: Arc::clone(stream),
            has_code: false,
            last_request: Instant::now(),
        };
        self.open.insert(self.number, guest);
        self.number
    }

    /// Marks the connection with this number as active now.
    pub(super) fn mark_active(&mut self, number: u64, has_code: bool) {
        if let Some(guest) = self.open.get_mut(&number) {
            guest.has_code = has_code;
            guest.last_request = Instant::now();
        }
    }

    /// Removes a connection that has ended.
    pub(super) fn leave(&mut self, number: u64) {
        self.open.remove(&number);
    }

    fn close_one(&mut self) {
        let idlest = self
            .open
            .iter()
            .min_by_key(|(_, guest)| (guest.has_code, guest.last_request))
            .map(|(number, _)| *number);
        if let Some(guest) = idlest.and_then(|number| self.open.remove(&number)) {
            // The thread of the connection ends when its stream is closed.
            let _ = guest.stream.shutdown(Shutdown::Both);
        }
    }
}

/// Raises the system's limit on open files as far as possible, and returns the most connections that it allows.
fn most_connections() -> usize {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, getrlimit, setrlimit};
        let mut limit = getrlimit(Resource::Nofile);
        limit.current = limit.maximum;
        let _ = setrlimit(Resource::Nofile, limit);
        let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        usize::try_from(files.saturating_sub(OTHER_FILES))
            .unwrap_or(MOST_CONNECTIONS)
            .clamp(1, MOST_CONNECTIONS)
    }
    #[cfg(not(unix))]
    MOST_CONNECTIONS
}
