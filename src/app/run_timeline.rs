//! The latest profiled step of a run as a timeline.

use std::sync::Arc;

use super::timeline::{TimelineMove, TimelineSeen, TimelineView};
use super::{RequestedRun, View};
use crate::run_trace;
use protocol::Slot;

/// A profiled step of a run as a timeline.
pub struct RunTimeline {
    pub view: TimelineView,
    pub slot: Slot,
    /// The step whose phases the host's lane shows. `None` without phases.
    pub phases_step: Option<u64>,
    /// The step of the profile.
    pub profile_step: u64,
}

impl View {
    /// Returns the timeline of the latest profile. `None` if there is no profile.
    pub fn timeline_of(&self, run: &RequestedRun) -> Option<RunTimeline> {
        let (slot, profile) = run.profiled()?;
        let ledger = run.slot(slot).ledger;
        let phases = ledger.as_ref().map(|reading| &reading.phases);
        let trace = run_trace::step(&run.slot_name(slot), phases, &profile);
        let mut view = TimelineView::new(Arc::new(trace), Vec::new(), 0);
        let seen = &self.timeline;
        let (low, high) = view.timeline.bounds;
        let time = |share: f64| low.saturating_add((share * low.abs_diff(high) as f64) as i64);
        if let Some((from, to)) = seen.shares {
            view.seen = (time(from), time(to));
        }
        view.held = seen.held;
        view.row = seen.row.min(view.timeline.rows.len().saturating_sub(1));
        view.slice = seen
            .slice
            .filter(|index| (*index as usize) < view.trace.slices.len());
        Some(RunTimeline {
            view,
            slot,
            phases_step: ledger.map(|reading| reading.step),
            profile_step: profile.step,
        })
    }

    /// Moves the visible part of the timeline. Does nothing without a profile.
    pub(super) fn move_timeline(&mut self, to: TimelineMove, run: &RequestedRun) {
        let Some(RunTimeline { mut view, .. }) = self.timeline_of(run) else {
            return;
        };
        view.go(to);
        let (low, high) = view.timeline.bounds;
        let share = |time: i64| time.abs_diff(low) as f64 / low.abs_diff(high).max(1) as f64;
        let is_whole = view.seen == (low, high);
        self.timeline = TimelineSeen {
            shares: (!is_whole).then(|| (share(view.seen.0), share(view.seen.1))),
            row: view.row,
            slice: view.slice,
            held: view.held,
        };
    }
}
