//! Shows the progress of a long command in one line at the foot of a terminal: how much is done, about how long the rest takes, and the
//! present work. The line appears in the third second. Nothing is printed where there is no terminal.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::Builder;
use std::time::{Duration, Instant};

use crate::measure::plan::{MeasureEvent, PlanProgress};
use crate::out;

/// A command that ends sooner shows no progress.
const PATIENCE: Duration = Duration::from_secs(2);
/// The time between two updates of the line.
const AGAIN: Duration = Duration::from_millis(500);

/// Shows the progress of a command until it is dropped.
pub(super) struct ProgressMeter(Option<Arc<Mutex<Done>>>);

struct Done {
    began: Instant,
    /// The pieces of work that are done.
    pieces: usize,
    /// The number of all pieces; 0 if it is not known.
    of: usize,
    /// The present work.
    what: String,
}

impl ProgressMeter {
    /// Begins to show the progress. Without a terminal nothing is shown.
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
        // If no thread can be started, nothing is shown.
        let started = Builder::new()
            .name("progress".to_owned())
            .spawn(move || update_line(&weak));
        Self(started.is_ok().then_some(done))
    }

    /// Sets how many pieces of work are done, and how many there are.
    pub(super) fn at(&self, pieces: usize, of: usize) {
        if let Some(done) = &self.0 {
            let mut done = locked(done);
            done.pieces = pieces;
            done.of = of.max(pieces);
        }
    }

    /// Shows which job of a plan begins.
    pub(super) fn begins(&self, now: &PlanProgress<'_>) {
        if let MeasureEvent::Begins { number, of } = now.event {
            self.at(number - 1, of);
            self.doing(&now.job.label);
        }
    }

    /// Sets the description of the present work.
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

/// Updates the line until the meter is dropped.
fn update_line(meter: &Weak<Mutex<Done>>) {
    let mut over = false;
    while !over {
        std::thread::sleep(AGAIN);
        // The meter is read while the line is locked, so that no line is written after the meter has removed it.
        out::foot(|| {
            let Some(done) = meter.upgrade() else {
                over = true;
                return None;
            };
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
    if seconds < 90.0 {
        format!("{seconds:.0} s")
    } else {
        format!("{:.0} min", seconds / 60.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_follows_from_the_pieces_done() {
        let text = |pieces, of, what: &str| {
            let done = Done {
                began: Instant::now(),
                pieces,
                of,
                what: what.to_owned(),
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
