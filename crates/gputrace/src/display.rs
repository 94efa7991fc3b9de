//! Shows the figures of a trace in words.

use super::figures::{Ledger, Summary};

/// Replaces a figure that a file does not contain.
pub const ABSENT: &str = "not in this file";

/// Shows nanoseconds as microseconds below 0.1 ms, otherwise as milliseconds, with three significant digits: `5.20 µs`, `0.520 ms`.
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

/// Shows a share from 0 to 1 as a percentage.
pub fn share(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// Shows a figure, or [`ABSENT`] if the file does not contain it.
pub fn known<T>(value: Option<T>, show: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| ABSENT.to_owned(), show)
}

/// Shows a whole number with its thousands separated.
pub fn count(n: u64) -> String {
    show(n as f64, 0)
}

/// Returns the figures of a file as rows of a name and a text.
pub fn figures(summary: &Summary) -> Vec<(&'static str, String)> {
    let idle = |idle| format!("{}, from first to last kernel", share(idle));
    let steps = summary.steps.as_ref().map(|steps| steps.len() as u64);
    let per_step = summary.kernels_per_step();
    let span = known(summary.device_span_ns, time);
    let memsets = summary.memsets.map(|memsets| memsets.count);
    let mut rows = vec![
        ("kernels", count(summary.kernels)),
        ("unique kernels", count(summary.distinct_names)),
        ("kernel time", time(summary.kernel_ns)),
        ("device busy", known(summary.busy_ns, time)),
        ("from first to last kernel", span),
        ("idle share", known(summary.idle_share, idle)),
        ("median kernel", known(summary.median_kernel_ns, time)),
        ("launch calls", launches(summary)),
        ("graph launches", known(summary.graph_launches, count)),
        ("synchronisations", known(summary.syncs, count)),
        ("copies", copies(summary)),
        ("memsets", known(memsets, count)),
        ("steps", known(steps, count)),
        ("median step", known(summary.step_ns, time)),
        ("kernels per step", known(per_step, |n| show(n, 1))),
        ("whole trace", known(summary.trace_span_ns, time)),
    ];
    if summary.communication_ns > 0 {
        rows.push(("communication", communication(summary)));
    }
    let world = summary
        .world_size
        .map_or(String::new(), |world| format!(" of {world}"));
    if !summary.ranks.is_empty() {
        let processes = count(summary.ranks.len() as u64);
        let text = format!("{processes}{world}: figures are sums over them");
        rows.push(("processes", text));
    } else if let Some(rank) = summary.rank {
        rows.push(("rank", format!("{rank}{world}")));
    }
    if let Some(device) = &summary.shared_device {
        let text = format!(
            "several processes name device {device}: the file does not say whether they share one \
             device"
        );
        rows.push(("shared device", text));
    }
    rows
}

fn launches(summary: &Summary) -> String {
    let Some(all) = summary.launches else {
        return ABSENT.to_owned();
    };
    let mut text = count(all);
    for (part, meaning) in [
        (summary.launches_without_kernel, "without a kernel"),
        (summary.launches_captured, "captured into a graph"),
    ] {
        if let Some(part) = part.filter(|part| *part > 0) {
            text += &format!(", {} of them {meaning}", count(part));
        }
    }
    text
}

fn copies(summary: &Summary) -> String {
    let Some(copies) = &summary.copies else {
        return ABSENT.to_owned();
    };
    let mut text = count(copies.all.count);
    if let Some(n) = copies.all.bytes {
        text += &format!(", {}", bytes(n));
    }
    text
}

fn communication(summary: &Summary) -> String {
    let mut text = time(summary.communication_ns);
    if let Some(exposed) = summary.communication_exposed_ns {
        text += &format!(
            ", {} of it alone on a device, {} beside other kernels",
            time(exposed),
            time(summary.communication_hidden_ns.unwrap_or(0))
        );
    }
    text
}

/// Returns a sentence for each kind of doubtful slices.
pub fn doubts(summary: &Summary) -> impl Iterator<Item = String> + '_ {
    summary.doubts.iter().map(|doubt| {
        format!(
            "in doubt: {}. {} The first: {}.",
            count(doubt.count),
            doubt.why,
            doubt.first
        )
    })
}

/// Returns a sentence about the processes that arrive last at collectives; `None` without several processes or collectives.
pub fn stragglers(summary: &Summary) -> Option<String> {
    if summary.ranks.is_empty() || summary.communication_ns == 0 {
        return None;
    }
    let Some(arrivals) = &summary.arrivals else {
        return Some(format!(
            "Who arrives last at collectives: {ABSENT}, because its collectives have no sequence \
             numbers. A long wait does not show \
             which rank is slow."
        ));
    };
    let mut late: Vec<String> = Vec::new();
    for last in arrivals.last.iter().take(3) {
        let collectives = count(last.collectives);
        let awaited = time(last.awaited_ns);
        late.push(format!(
            "{} at {collectives} (others waited {awaited})",
            last.process
        ));
    }
    let who = if late.is_empty() {
        "no process by a clear margin".to_owned()
    } else {
        late.join(", ")
    };
    Some(format!(
        "Last at {} numbered collectives: {who}.",
        count(arrivals.collectives)
    ))
}

/// Returns the parts of a ledger: name, nanoseconds (`None` if the file does not contain them) and meaning.
pub fn ledger(ledger: &Ledger) -> [(&'static str, Option<u64>, &'static str); 5] {
    [
        ("busy", Some(ledger.busy), "at least one kernel runs"),
        (
            "copies",
            Some(ledger.copies),
            "no kernel, but a copy or a memset runs",
        ),
        (
            "waits",
            ledger.syncs,
            "nothing runs, and the host waits for the device",
        ),
        (
            "host-bound",
            ledger.host_bound,
            "nothing runs, and the next work is not launched yet",
        ),
        (
            "unexplained",
            Some(ledger.idle),
            "nothing runs, for no reason that the file shows",
        ),
    ]
}

/// Shows a number with some decimals and its thousands separated. A number that would read 0 or fill a screen gets an exponent.
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

/// Shows bytes in the largest suitable unit: `1.5 GiB`.
fn bytes(count: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if count < 1024 {
        return format!("{count} B");
    }
    let power = (count.ilog2() / 10).min(UNITS.len() as u32);
    let scaled = count as f64 / 1024_f64.powi(power as i32);
    format!("{scaled:.1} {}", UNITS[power as usize - 1])
}
