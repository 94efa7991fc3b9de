//! The progress of a long command: how far it is, about how long it still takes, and what it does, in one line at the foot of a
//! terminal, from the third second on. Nothing is printed where there is no terminal.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::Builder;
use std::time::{Duration, Instant};

use crate::measure::plan::{MeasureEvent, PlanProgress};
use crate::out;

/// A command that ends sooner shows no progress.
const PATIENCE: Duration = Duration::from_secs(2);
const AGAIN: Duration = Duration::from_millis(500);

/// The progress of a command, as long as this lives.
pub(super) struct ProgressMeter(Option<Arc<Mutex<Done>>>);

struct Done {
    began: Instant,
    pieces: usize,
    of: usize,
    what: String,
}

impl ProgressMeter {
    /// Shows nothing without a terminal.
    pub(super) fn begin() -> Self {
        if !out::has_foot() {
            return Self(None);
        }
        let done = Arc::new(Mutex::new(Done {
            began: Instant::now(),
            pieces: 0,
            of: 0,
            what: String::new(),
        }));
        let weak = Arc::downgrade(&done);
        let thread = Builder::new().name("progress".to_owned());
        // Without a thread there is no such line.
        let started = thread.spawn(move || keep_up(&weak));
        Self(started.is_ok().then_some(done))
    }

    /// So many pieces of work are done, of so many.
    pub(super) fn at(&self, pieces: usize, of: usize) {
        if let Some(done) = &self.0 {
            let mut done = locked(done);
            (done.pieces, done.of) = (pieces, of.max(pieces));
        }
    }

    /// Shows which job of a plan begins.
    pub(super) fn begins(&self, now: &PlanProgress<'_>) {
        if let MeasureEvent::Begins { number, of } = now.news {
            self.at(number - 1, of);
            self.doing(&now.job.label);
        }
    }

    /// What is done now.
    pub(super) fn doing(&self, what: impl Into<String>) {
        if let Some(done) = &self.0 {
            locked(done).what = what.into();
        }
    }
}

impl Drop for ProgressMeter {
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
            (passed >= PATIENCE).then(|| line(&done, passed))
        });
    }
}

fn line(done: &Done, passed: Duration) -> String {
    let (pieces, of) = (done.pieces, done.of);
    let mut line = format!("{} so far", seconds(passed.as_secs_f64()));
    if pieces > 0 {
        let each = passed.as_secs_f64() / pieces as f64;
        let left = each * of.saturating_sub(pieces) as f64;
        line += &format!(", about {} left", seconds(left));
    }
    if of > 0 {
        line = format!("{pieces} of {of} · {line}");
    }
    if !done.what.is_empty() {
        line += &format!(" · {}", done.what);
    }
    line
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
        let text = |pieces, of, what: &str| {
            let (began, what) = (Instant::now(), what.to_owned());
            let done = Done {
                began,
                pieces,
                of,
                what,
            };
            line(&done, Duration::from_secs(30))
        };
        assert_eq!(text(0, 4, ""), "0 of 4 · 30 s so far");
        assert_eq!(text(1, 4, ""), "1 of 4 · 30 s so far, about 2 min left");
        assert_eq!(
            text(3, 4, "v1"),
            "3 of 4 · 30 s so far, about 10 s left · v1"
        );
        assert_eq!(text(0, 0, "a run"), "30 s so far · a run");
    }
}
