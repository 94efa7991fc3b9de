//! The progress of a long command, in one line at the foot of the terminal: `3 of 4 · 30 s so far, about 10 s left · v1`. The line appears
//! after two seconds. Without a terminal nothing is printed.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::Builder;
use std::time::{Duration, Instant};

use crate::measure::plan::{MeasureEvent, PlanProgress};
use crate::out;

/// A command that ends sooner shows no progress.
const DELAY: Duration = Duration::from_secs(2);
/// The time between two updates of the line.
const UPDATE_INTERVAL: Duration = Duration::from_millis(500);

/// Shows the progress of a command until this meter is dropped. Empty where no progress is shown.
pub(super) struct ProgressMeter(Option<Arc<Mutex<MeterState>>>);

/// The work of a command so far.
struct MeterState {
    began: Instant,
    /// The number of pieces of work that are done.
    done: usize,
    /// The number of all pieces; 0 if it is not known.
    total: usize,
    /// A description of the present work.
    work: String,
}

impl ProgressMeter {
    /// Begins to show the progress. Without a terminal nothing is shown.
    pub(super) fn begin() -> Self {
        if !out::has_foot() {
            return Self(None);
        }
        let progress = Arc::new(Mutex::new(MeterState {
            began: Instant::now(),
            done: 0,
            total: 0,
            work: String::new(),
        }));
        let weak = Arc::downgrade(&progress);
        // If no thread can be started, nothing is shown.
        let started = Builder::new()
            .name("progress".to_owned())
            .spawn(move || update_line(&weak));
        Self(started.is_ok().then_some(progress))
    }

    /// Sets how many pieces of work are done, and how many there are.
    pub(super) fn set_done(&self, done: usize, total: usize) {
        if let Some(progress) = &self.0 {
            let mut state = locked(progress);
            state.done = done;
            state.total = total.max(done);
        }
    }

    /// Shows the job of a plan that begins. Other events of the plan change nothing.
    pub(super) fn on_plan(&self, plan: &PlanProgress<'_>) {
        if let MeasureEvent::Begins { number, of } = plan.event {
            self.set_done(number - 1, of);
            self.set_work(&plan.job.label);
        }
    }

    /// Sets the description of the present work.
    pub(super) fn set_work(&self, work: impl Into<String>) {
        if let Some(progress) = &self.0 {
            locked(progress).work = work.into();
        }
    }
}

impl Drop for ProgressMeter {
    fn drop(&mut self) {
        if self.0.take().is_some() {
            out::set_foot(|| Some(String::new()));
        }
    }
}

fn locked(progress: &Mutex<MeterState>) -> MutexGuard<'_, MeterState> {
    progress.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Updates the line until the meter is dropped.
fn update_line(meter: &Weak<Mutex<MeterState>>) {
    let mut over = false;
    while !over {
        std::thread::sleep(UPDATE_INTERVAL);
        // The closure runs while the foot is locked, so no line is written after a dropped meter has cleared the foot.
        out::set_foot(|| {
            let Some(shared) = meter.upgrade() else {
                over = true;
                return None;
            };
            let progress = locked(&shared);
            let passed = progress.began.elapsed();
            (passed >= DELAY).then(|| progress_line(&progress, passed))
        });
    }
}

fn progress_line(progress: &MeterState, passed: Duration) -> String {
    let MeterState { done, total, .. } = *progress;
    let mut line = format!("{} so far", duration(passed.as_secs_f64()));
    if done > 0 {
        let each_s = passed.as_secs_f64() / done as f64;
        let remaining_s = each_s * total.saturating_sub(done) as f64;
        line += &format!(", about {} left", duration(remaining_s));
    }
    if total > 0 {
        line = format!("{done} of {total} · {line}");
    }
    if !progress.work.is_empty() {
        line += &format!(" · {}", progress.work);
    }
    line
}

fn duration(seconds: f64) -> String {
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
        let text = |done, total, work: &str| {
            let progress = MeterState {
                began: Instant::now(),
                done,
                total,
                work: work.to_owned(),
            };
            progress_line(&progress, Duration::from_secs(30))
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
