//! How many requests and connections a room takes at once.

use std::collections::BTreeMap;
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::Instant;

/// The most connections in total.
const MOST_CONNECTIONS: usize = 1500;
/// The number of open files that are reserved for everything else.
#[cfg(unix)]
const OTHER_FILES: u64 = 64;

/// A token bucket: it lets a number of requests through at once, and then so many per second.
pub(super) struct TokenBucket {
    /// The number of tokens that are left.
    left: f64,
    /// The time at which it was last asked.
    at: Instant,
    per_second: f64,
    at_once: f64,
}

impl TokenBucket {
    pub(super) fn new(per_second: f64, at_once: f64) -> Self {
        Self {
            left: at_once,
            at: Instant::now(),
            per_second,
            at_once,
        }
    }

    /// Takes a token. Returns false if there is none.
    pub(super) fn take(&mut self) -> bool {
        let passed = self.at.elapsed().as_secs_f64();
        self.at = Instant::now();
        self.left = (self.left + passed * self.per_second).min(self.at_once);
        if self.left < 1.0 {
            return false;
        }
        self.left -= 1.0;
        true
    }
}

/// All open connections. A new connection beyond the limit closes another: first those that have not sent a code, and of these the
/// one that has been idle longest. Idle connections therefore keep nobody out.
pub(super) struct Guests {
    most: usize,
    /// The number of the last connection.
    number: u64,
    open: BTreeMap<u64, Guest>,
}

struct Guest {
    stream: Arc<TcpStream>,
    /// True if its last request had a code of the room.
    has_code: bool,
    /// The time of its last request.
    heard: Instant,
}

impl Guests {
    pub(super) fn new() -> Self {
        Self {
            most: most_connections(),
            number: 0,
            open: BTreeMap::new(),
        }
    }

    /// Takes a connection, and returns its number.
    pub(super) fn enter(&mut self, stream: &Arc<TcpStream>) -> u64 {
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

    /// Notes a request of a connection.
    pub(super) fn note(&mut self, number: u64, has_code: bool) {
        if let Some(guest) = self.open.get_mut(&number) {
            guest.has_code = has_code;
            guest.heard = Instant::now();
        }
    }

    /// Forgets a connection that has ended.
    pub(super) fn leave(&mut self, number: u64) {
        self.open.remove(&number);
    }

    fn close_one(&mut self) {
        let guests = self.open.iter();
        let least = guests.min_by_key(|(_, guest)| (guest.has_code, guest.heard));
        let least = least.map(|(number, _)| *number);
        if let Some(guest) = least.and_then(|number| self.open.remove(&number)) {
            // This ends the thread of the connection.
            let _ = guest.stream.shutdown(Shutdown::Both);
        }
    }
}

/// Returns the most connections, after raising the system's limit on open files, which is usually low.
fn most_connections() -> usize {
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
