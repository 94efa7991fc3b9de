//! Figures of a trace in words.

use super::figures::{Ledger, Summary};
use crate::units::{bytes, duration, show};

/// Replaces a figure that a file does not contain.
pub const ABSENT: &str = "not in this file";

/// Nanoseconds with a suitable unit.
pub fn time(ns: u64) -> String {
    duration(ns as f64 / 1e6)
}

/// A share as a percentage.
pub fn share(it: f64) -> String {
    format!("{:.1} %", 100.0 * it)
}

/// A figure, or the note that the file does not contain it.
pub fn known<T>(value: Option<T>, show: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| ABSENT.to_owned(), show)
}

/// Whole numbers.
pub fn count(n: u64) -> String {
    show(n as f64, 0)
}

/// The figures of a file, as rows.
pub fn figures(it: &Summary) -> Vec<(&'static str, String)> {
    let copies = it.copies.as_ref().map(|copies| {
        let sizes = copies
            .bytes
            .map_or(String::new(), |n| format!(", {}", bytes(n)));
        format!("{}{sizes}", count(copies.count))
    });
    let launches = it.launches.map(|n| match it.launches_without_kernel {
        Some(lost) if lost > 0 => format!("{}, {} of them without a kernel", count(n), count(lost)),
        _ => count(n),
    });
    let steps = it.steps.as_ref().map(|steps| count(steps.len() as u64));
    vec![
        ("kernels", count(it.kernels)),
        ("unique kernels", count(it.distinct_names)),
        ("kernel time", time(it.kernel_ns)),
        ("device busy", known(it.busy_ns, time)),
        ("from first to last kernel", known(it.device_span_ns, time)),
        ("idle share", known(it.idle_share, share)),
        ("median kernel", known(it.median_kernel_ns, time)),
        ("launch calls", known(launches, |it| it)),
        ("graph launches", known(it.graph_launches, count)),
        ("synchronisations", known(it.syncs, count)),
        ("copies", known(copies, |it| it)),
        ("memsets", known(it.memsets, |it| count(it.count))),
        ("steps", known(steps, |it| it)),
        ("median step", known(it.step_ns, time)),
        ("kernels per step", known(it.a_step(), |n| show(n, 1))),
        ("whole trace", known(it.trace_span_ns, time)),
    ]
}

/// Parts of a ledger: name, time and meaning.
pub fn ledger(it: &Ledger) -> [(&'static str, Option<u64>, &'static str); 5] {
    [
        ("busy", Some(it.busy), "at least one kernel runs"),
        (
            "copies",
            Some(it.copies),
            "no kernel, but a copy or a memset runs",
        ),
        (
            "waits",
            it.syncs,
            "nothing runs, and the host waits for the device",
        ),
        (
            "host-bound",
            it.host_bound,
            "nothing runs, and the next work is not launched yet",
        ),
        (
            "idle",
            Some(it.idle),
            "nothing runs, for no reason that the file shows",
        ),
    ]
}
