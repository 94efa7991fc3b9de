//! How far a long command has come, and about how long it still takes: one line at the foot of a terminal, from the third
//! second on. It knows nothing of what is done.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::Builder;
use std::time::{Duration, Instant};

use crate::out;

/// Before this nobody waits.
const PATIENCE: Duration = Duration::from_secs(2);
const AGAIN: Duration = Duration::from_millis(500);

/// The progress of a command, as long as this lives.
pub struct Meter(Option<Arc<Mutex<Done>>>);

struct Done {
    began: Instant,
    pieces: usize,
    of: usize,
}

impl Meter {
    /// Nothing is shown where nobody looks.
    pub fn begin() -> Self {
        if !out::has_foot() {
            return Self(None);
        }
        let done = Arc::new(Mutex::new(Done {
            began: Instant::now(),
            pieces: 0,
            of: 0,
        }));
        let weak = Arc::downgrade(&done);
        let thread = Builder::new().name("progress".to_owned());
        // Without a thread there is no such line.
        let started = thread.spawn(move || keep_up(&weak));
        Self(started.is_ok().then_some(done))
    }

    /// So many pieces of work are done, of so many.
    pub fn at(&self, pieces: usize, of: usize) {
        if let Some(done) = &self.0 {
            let mut done = locked(done);
            (done.pieces, done.of) = (pieces, of.max(pieces));
        }
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        if self.0.take().is_some() {
            out::foot(|| Some(String::new()));
        }
    }
}

fn locked(done: &Mutex<Done>) -> MutexGuard<'_, Done> {
    done.lock().unwrap_or_else(PoisonError::into_inner)
}

fn keep_up(of: &Weak<Mutex<Done>>) {
    let mut over = false;
    while !over {
        std::thread::sleep(AGAIN);
        // Asked while the line is held: once the command has taken it away, nothing is left to ask.
        out::foot(|| {
            let done = of.upgrade();
            over = done.is_none();
            let done = done?;
            let done = locked(&done);
            let passed = done.began.elapsed();
            (passed >= PATIENCE).then(|| line(done.pieces, done.of, passed))
        });
    }
}

fn line(pieces: usize, of: usize, passed: Duration) -> String {
    let so_far = seconds(passed.as_secs_f64());
    if of == 0 {
        return format!("{so_far} so far");
    }
    if pieces == 0 {
        return format!("0 of {of} · {so_far} so far");
    }
    let each = passed.as_secs_f64() / pieces as f64;
    let left = seconds(each * of.saturating_sub(pieces) as f64);
    format!("{pieces} of {of} · {so_far} so far, about {left} left")
}

fn seconds(seconds: f64) -> String {
    match seconds {
        s if s < 90.0 => format!("{s:.0} s"),
        s => format!("{:.0} min", s / 60.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_follows_from_the_pieces_done() {
        let text = |pieces| line(pieces, 4, Duration::from_secs(30));
        assert_eq!(text(0), "0 of 4 · 30 s so far");
        assert_eq!(text(1), "1 of 4 · 30 s so far, about 2 min left");
        assert_eq!(text(3), "3 of 4 · 30 s so far, about 10 s left");
    }
}
