//! The card of a check: the results of each file, line by line, such as `compiles: workgroups of 64 × 1 × 1`.

use serde::Serialize;

use super::KernelVerdict;
use protocol::units::{duration, rate, show};
use protocol::{
    KernelError, KernelFault, KernelFaultKind, KernelJob, KernelMatch, KernelRatio, KernelReport,
    KernelResult, KernelShape, KernelTime, KernelUntimed, with_names,
};

/// The words with which the line about time begins.
pub(super) const TIME: &str = "time at";
/// The words in each line that compares times.
pub(super) const AS_FAST: &str = "times as fast as";

/// A line of the card.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CardLine {
    /// True for a good result, false for a bad one, `None` for a remark.
    pub good: Option<bool>,
    pub text: String,
}

/// Returns the lines about the results of all files.
pub(super) fn lines(files: &[KernelResult], job: &KernelJob) -> Vec<CardLine> {
    let mut card = Vec::new();
    for result in files {
        if job.files.len() > 1 {
            card.push(remark(result.name.as_str()));
        }
        file_lines(&mut card, result, job);
    }
    card
}

/// Adds the lines about one file. After an error or a fault there are no further results.
fn file_lines(card: &mut Vec<CardLine>, result: &KernelResult, job: &KernelJob) {
    if let Some(error) = &result.error {
        let place = place(&result.name, error);
        card.push(bad(format!("{}: {place}", refusal(error))));
        if !error.instead.is_empty() {
            card.push(remark(format!("write instead: {}", error.instead)));
        }
        return;
    }
    if let Some(facts) = result.facts {
        let [x, y, z] = facts.workgroup;
        let shared = match facts.workgroup_bytes {
            0 => String::new(),
            bytes => format!(", {}", shared(bytes)),
        };
        let text = format!("compiles: workgroups of {x} × {y} × {z}{shared}");
        card.push(good(text));
    }
    if let Some(fault) = &result.fault {
        return fault_lines(card, fault, job);
    }
    card.extend(line_about_shapes(result, job));
    for suspect in &result.remarks {
        let KernelError {
            line,
            text,
            message,
            instead,
            ..
        } = suspect;
        card.push(remark(format!(
            "line {line}: `{text}`: {message}; write {instead}"
        )));
    }
    if let Some(shape) = &result.skipped {
        let why = match result.time_reason {
            Some(KernelUntimed::CpuDriver) => "the shape is too large for a CPU driver",
            _ => "this was not requested",
        };
        card.push(remark(format!(
            "`{shape}` was neither run nor timed: {why}"
        )));
    }
    if let Some(time) = &result.time {
        time_lines(card, time);
    }
}

/// Adds the lines about a fault: what went wrong at which shape, the idea that the kernel may miss, and how to repeat the check.
fn fault_lines(card: &mut Vec<CardLine>, fault: &KernelFault, job: &KernelJob) {
    let shape = job.shapes.iter().find(|shape| shape.label == fault.shape);
    let mut sizes = shape.map_or_else(String::new, |shape| with_names(&shape.sizes));
    if let Some(values) = fault.values {
        sizes += &format!("; {}", values.into_str());
    }
    let sentence = format!("fails at `{}` ({sizes}): {}", fault.shape, fault.text);
    card.push(bad(sentence));
    let has_wrong_numbers = matches!(
        fault.kind,
        KernelFaultKind::Wrong | KernelFaultKind::Unwritten | KernelFaultKind::Races
    );
    // A race in workgroup memory needs a barrier; a race in a buffer may come from a wrong index.
    let may_miss_idea = fault.place.is_none() || !fault.buffer.is_empty();
    if let Some(idea) = shape.and_then(|shape| shape.idea.as_ref())
        && has_wrong_numbers
        && may_miss_idea
    {
        card.push(remark(format!("consider this: {idea}")));
    }
    if fault.error.is_some() || shape.is_some_and(KernelShape::is_drawn) {
        card.push(remark(format!(
            "numbers and some sizes are drawn anew for each check; \
             `perflings check {} --seed {}` repeats these",
            job.exercise, job.seed
        )));
    }
}

/// Returns the line about the shapes at which a file was right; `None` if it ran at none.
fn line_about_shapes(result: &KernelResult, job: &KernelJob) -> Option<CardLine> {
    let mut matches: Vec<(&KernelShape, &KernelMatch)> = Vec::new();
    for found in &result.shapes {
        let shape = job.shapes.iter().find(|shape| shape.label == found.shape);
        matches.extend(shape.map(|shape| (shape, found)));
    }
    let largest_share = matches
        .iter()
        .map(|(_, found)| found.share)
        .max_by(f64::total_cmp)?;
    let error = match largest_share {
        0.0 => "no error at all".to_owned(),
        share => format!("errors up to {} of what rounding explains", percent(share)),
    };
    let mut sizes: Vec<String> = matches
        .iter()
        .filter(|(shape, _)| !shape.is_drawn())
        .map(|(shape, _)| with_names(&shape.sizes))
        .collect();
    match matches.len() - sizes.len() {
        0 => {}
        1 => sizes.push("one drawn for this check".to_owned()),
        drawn => sizes.push(format!("{drawn} drawn for this check")),
    }
    Some(good(format!("correct at {}: {error}", sizes.join(" · "))))
}

/// Returns the consequence of an error in words.
pub(super) fn refusal(error: &KernelError) -> &'static str {
    if error.launch {
        "cannot be launched"
    } else {
        "does not compile"
    }
}

/// Adds the line about the time of a kernel, and the lines that compare it with the starter and the solution.
fn time_lines(card: &mut Vec<CardLine>, time: &KernelTime) {
    let median = time.ms.median;
    let seconds = median / 1e3;
    let took = format!(
        "{} ({} to {}, n = {})",
        duration(median),
        duration(time.ms.p25),
        duration(time.ms.p75),
        time.ms.n
    );
    let reached = if time.memory_bound || time.flops == 0.0 {
        rate(time.bytes / seconds, "B/s")
    } else {
        rate(time.flops / seconds, "FLOP/s")
    };
    let limit = if time.memory_bound {
        "memory"
    } else {
        "arithmetic"
    };
    let share = match time.share_of_peak {
        Some(share) => format!(
            "{:.0} % of this device's measured {limit} peak",
            100.0 * share
        ),
        None => "share of peak: not known".to_owned(),
    };
    card.push(remark(format!(
        "{TIME} `{}`, {} clock: {took} · {reached} · {share}",
        time.shape, time.clock
    )));
    let others = [
        (time.against_starter, time.starter_ms, "the starter"),
        (time.against_solution, time.solution_ms, "the solution"),
    ];
    for (ratio, spread, name) in others {
        if let (Some(ratio), Some(old)) = (ratio, spread) {
            let times = old_and_new(old.median, name, median);
            card.push(remark(format!("{times}: {}", faster(ratio, name))));
        }
    }
}

/// Returns two medians side by side: of the kernel called `old`, and of the checked kernel.
fn old_and_new(old_ms: f64, old: &str, new_ms: f64) -> String {
    format!(
        "{} with {old}, {} with this kernel",
        duration(old_ms),
        duration(new_ms)
    )
}

impl KernelVerdict {
    /// Adds lines that compare the times with those of the last accepted kernels, if both checks timed the same shape with the same clock.
    pub fn compare_with(&mut self, accepted: &KernelReport) {
        for (result, before) in self.facts.files.iter().zip(&accepted.files) {
            if let (Some(new), Some(old)) = (&result.time, &before.time)
                && (&new.shape, &new.clock) == (&old.shape, &old.clock)
            {
                let times = old_and_new(old.ms.median, "the last accepted one", new.ms.median);
                let text = format!("{}: {times}, in two checks", result.name);
                self.card.push(remark(text));
            }
        }
    }
}

/// Returns a share from 0 to 1 as a percentage with about two digits.
fn percent(share: f64) -> String {
    match 100.0 * share {
        small if small < 0.1 => "less than 0.1 %".to_owned(),
        small if small < 10.0 => format!("{small:.1} %"),
        share => format!("{share:.0} %"),
    }
}

/// Returns the place and message of an error, as in ``starter.wgsl:13:5 `upp`: no definition in scope``.
fn place(name: &str, error: &KernelError) -> String {
    let place = match error.line {
        0 => name.to_owned(),
        line => format!("{name}:{line}:{}", error.column),
    };
    let text = match error.text.as_str() {
        "" => String::new(),
        text => format!(" `{text}`"),
    };
    format!("{place}{text}: {}", error.message)
}

/// Returns a ratio of speeds with its interval: "1.04 times as fast as the starter (1.02 to 1.07)".
pub(super) fn faster(ratio: KernelRatio, whom: &str) -> String {
    format!(
        "{:.2} {AS_FAST} {whom} ({:.2} to {:.2})",
        ratio.ratio, ratio.low, ratio.high
    )
}

/// Returns the size of a kernel's workgroup memory in words.
pub(super) fn shared(bytes: u64) -> String {
    format!("{} bytes of workgroup memory", show(bytes as f64, 0))
}

pub(super) fn card_line(good: Option<bool>, text: impl Into<String>) -> CardLine {
    CardLine {
        good,
        text: text.into(),
    }
}

fn good(text: String) -> CardLine {
    card_line(Some(true), text)
}

pub(super) fn bad(text: String) -> CardLine {
    card_line(Some(false), text)
}

pub(super) fn remark(text: impl Into<String>) -> CardLine {
    card_line(None, text)
}
