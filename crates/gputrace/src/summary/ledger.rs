//! The work of a device, and the ledger of where the time of a window went.

use super::intervals::{Span, Union, within};
use crate::figures::{DeviceFigures, Ledger};

/// The work of a device.
#[derive(Default)]
pub(super) struct DeviceWork {
    pub(super) figures: DeviceFigures,
    /// The intervals in which kernels run.
    pub(super) kernels: Union,
    /// The intervals in which kernels of collectives run.
    pub(super) communication: Union,
    /// The intervals in which all other kernels run.
    pub(super) compute: Union,
    /// The intervals in which copies and memsets run.
    pub(super) copies: Union,
    /// For each kernel that is linked with a launch, its start and the end of the launching call.
    pub(super) launched: Vec<(i64, i64)>,
}

/// Returns the ledger of a window on one device. `waits` are the intervals in which the host waits for a device. `has_calls` is false if
/// the file does not contain calls of the host: waits and the host-bound time are then `None`.
pub(super) fn ledger_of_device(
    work: &DeviceWork,
    waits: &Union,
    window: Span,
    has_calls: bool,
) -> Ledger {
    let mut ledger = Ledger {
        wall: window.1.abs_diff(window.0),
        syncs: Some(0),
        host_bound: Some(0),
        ..Ledger::default()
    };
    let mut at = window.0;
    for (start, end) in within(&work.kernels, window) {
        add_gap(&mut ledger, work, waits, (at, start));
        ledger.busy = ledger.busy.saturating_add(end.abs_diff(start));
        at = end;
    }
    add_gap(&mut ledger, work, waits, (at, window.1));
    if !has_calls {
        ledger.syncs = None;
        ledger.host_bound = None;
    }
    ledger
}

/// Adds a gap between two kernels to a ledger: copies come first, then waits of the host, then the time until the next work is launched.
fn add_gap(ledger: &mut Ledger, work: &DeviceWork, waits: &Union, (from, to): Span) {
    let next = work.launched.partition_point(|kernel| kernel.0 < to);
    let launched = work.launched.get(next).map_or(i64::MIN, |kernel| kernel.1);
    let mut at = from;
    for (start, end) in within(&work.copies, (from, to)) {
        add_idle(ledger, waits, launched, (at, start));
        ledger.copies = ledger.copies.saturating_add(end.abs_diff(start));
        at = end;
    }
    add_idle(ledger, waits, launched, (at, to));
}

/// Adds an interval without work of the device to a ledger. `launched` is the time at which the next kernel has been launched.
fn add_idle(ledger: &mut Ledger, waits: &Union, launched: i64, (from, to): Span) {
    let add = |sum: &mut Option<u64>, from: i64, to: i64| {
        *sum = sum.map(|ns| ns.saturating_add(to.abs_diff(from)));
    };
    let add_free = |ledger: &mut Ledger, from: i64, to: i64| {
        let until = launched.clamp(from, to);
        add(&mut ledger.host_bound, from, until);
        ledger.idle = ledger.idle.saturating_add(to.abs_diff(until));
    };
    let mut at = from;
    for (start, end) in within(waits, (from, to)) {
        add_free(ledger, at, start);
        add(&mut ledger.syncs, start, end);
        at = end;
    }
    add_free(ledger, at, to);
}
