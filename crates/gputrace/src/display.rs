//! Figures of a trace in words.

use super::figures::{Ledger, Summary};
use super::model::Doubt;

/// Replaces a figure that a file does not contain.
pub const ABSENT: &str = "not in this file";

/// Nanoseconds as microseconds below 0.1 ms, otherwise as milliseconds, with three significant digits: `5.20 µs`, `0.520 ms`.
pub fn time(ns: u64) -> String {
    let ms = ns as f64 / 1e6;
    match ns {
        1..10_000 => format!("{:.2} µs", ms * 1e3),
        10_000..100_000 => format!("{:.1} µs", ms * 1e3),
        100_000..1_000_000 => format!("{ms:.3} ms"),
        0 | 1_000_000..100_000_000 => format!("{ms:.2} ms"),
        100_000_000..1_000_000_000 => format!("{ms:.1} ms"),
        1_000_000_000..10_000_000_000_000 => format!("{} ms", show(ms, 0)),
        _ => format!("{ms:.1e} ms"),
    }
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
            .all
            .bytes
            .map_or(String::new(), |n| format!(", {}", bytes(n)));
        format!("{}{sizes}", count(copies.all.count))
    });
    let launches = it.launches.map(|n| {
        let part = |part: Option<u64>, what: &str| match part.unwrap_or(0) {
            0 => String::new(),
            part => format!(", {} of them {what}", count(part)),
        };
        let lost = part(it.launches_without_kernel, "without a kernel");
        count(n) + &lost + &part(it.launches_captured, "captured into a graph")
    });
    let alone = it.communication_exposed_ns.map(|exposed| {
        let hidden = it.communication_hidden_ns.unwrap_or(0);
        format!(
            ", {} of it alone on a device, {} beside other kernels",
            time(exposed),
            time(hidden)
        )
    });
    let communication = time(it.communication_ns) + &alone.unwrap_or_default();
    let idle = |idle| format!("{}, from first to last kernel", share(idle));
    let steps = it.steps.as_ref().map(|steps| count(steps.len() as u64));
    let mut rows = vec![
        ("kernels", count(it.kernels)),
        ("unique kernels", count(it.distinct_names)),
        ("kernel time", time(it.kernel_ns)),
        ("device busy", known(it.busy_ns, time)),
        ("from first to last kernel", known(it.device_span_ns, time)),
        ("idle share", known(it.idle_share, idle)),
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
    ];
    if it.communication_ns > 0 {
        rows.push(("communication", communication));
    }
    let all = it
        .world_size
        .map_or(String::new(), |world| format!(" of {world}"));
    match it.ranks.len() {
        0 => rows.extend(it.rank.map(|rank| ("rank", format!("{rank}{all}")))),
        n => rows.push((
            "processes",
            format!("{}{all}: figures are sums over them", count(n as u64)),
        )),
    }
    if let Some(device) = &it.shared_device {
        let said = format!(
            "several processes name device {device}: the file does not tell whether it is one"
        );
        rows.push(("shared device", said));
    }
    rows
}

/// What is in doubt, in a sentence for each kind.
pub fn doubts(it: &Summary) -> impl Iterator<Item = String> + '_ {
    let said = |doubt: &Doubt| {
        format!(
            "in doubt: {}. {} The first: {}.",
            count(doubt.count),
            doubt.why,
            doubt.first
        )
    };
    it.doubts.iter().map(said)
}

/// What can be said about who arrives late.
pub fn stragglers(it: &Summary) -> Option<String> {
    if it.ranks.is_empty() || it.communication_ns == 0 {
        return None;
    }
    let Some(arrivals) = &it.arrivals else {
        return Some(format!(
            "Who arrives last at collectives: {ABSENT}, they have no sequence numbers. A long wait is no slow rank."
        ));
    };
    let late = arrivals.last.iter().take(3).map(|last| {
        let (n, awaited) = (count(last.collectives), time(last.awaited_ns));
        format!("{} at {n} (others waited {awaited})", last.process)
    });
    let late: Vec<String> = late.collect();
    let who = match late.is_empty() {
        true => "no process by a clear margin".to_owned(),
        false => late.join(", "),
    };
    Some(format!(
        "Last at {} numbered collectives: {who}.",
        count(arrivals.collectives)
    ))
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
            "unexplained",
            Some(it.idle),
            "nothing runs, for no reason that the file shows",
        ),
    ]
}

/// A number with some decimals and its thousands separated. A number that would read 0 or fill a screen has an exponent.
fn show(number: f64, decimals: usize) -> String {
    let least = 0.5 * 10_f64.powi(-(decimals as i32));
    if number >= 1e15 || (number > 0.0 && number < least) {
        return format!("{number:.1e}");
    }
    let plain = format!("{number:.decimals$}");
    let whole = plain.find('.').unwrap_or(plain.len());
    let mut text = String::new();
    for (at, digit) in plain.char_indices() {
        if at > 0 && at < whole && (whole - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Bytes in the largest suitable unit: `1.5 GiB`.
fn bytes(count: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if count < 1024 {
        return format!("{count} B");
    }
    let power = (count.ilog2() / 10).min(UNITS.len() as u32);
    let scaled = count as f64 / 1024_f64.powi(power as i32);
    format!("{scaled:.1} {}", UNITS[power as usize - 1])
}
