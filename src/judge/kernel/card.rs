//! The card of a check: the results of each file, line by line.

use serde::Serialize;

use super::KernelVerdict;
use protocol::units::{duration, rate, show};
use protocol::{
    KernelError, KernelFaultKind, KernelJob, KernelMatch, KernelRatio, KernelReport, KernelResult,
    KernelShape, KernelTime, KernelUntimed, Spread, with_names,
};

/// The beginning of the line about time.
pub(super) const TIME: &str = "time at";
/// The phrase of the lines that compare times.
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
        let shape = job.shapes.iter().find(|shape| shape.label == fault.shape);
        let mut sizes = shape.map_or_else(String::new, |shape| with_names(&shape.sizes));
        if let Some(values) = fault.values {
            sizes += &format!("; {}", values.into_str());
        }
        let (label, text) = (&fault.shape, &fault.text);
        card.push(bad(format!("fails at `{label}` ({sizes}): {text}")));
        let numbers = [
            KernelFaultKind::Wrong,
            KernelFaultKind::Unwritten,
            KernelFaultKind::Races,
        ];
        if let Some(idea) = shape.and_then(|shape| shape.idea.as_ref())
            && numbers.contains(&fault.kind)
            // A race in workgroup memory needs a barrier; a race in a buffer may come from a wrong index.
            && (fault.place.is_none() || !fault.buffer.is_empty())
        {
            card.push(remark(format!("consider this: {idea}")));
        }
        if fault.error.is_some() || shape.is_some_and(KernelShape::is_drawn) {
            let (exercise, seed) = (&job.exercise, job.seed);
            card.push(remark(format!(
                "numbers and some sizes are drawn anew for each check; `perflings check {exercise} --seed {seed}` repeats these"
            )));
        }
        return;
    }
    let mut matches: Vec<(&KernelShape, &KernelMatch)> = Vec::new();
    for found in &result.shapes {
        let shape = job.shapes.iter().find(|shape| shape.label == found.shape);
        matches.extend(shape.map(|shape| (shape, found)));
    }
    // The worst shape is the one whose error is closest to its bound.
    let worst = matches
        .iter()
        .max_by(|(_, a), (_, b)| a.share.total_cmp(&b.share));
    if let Some((_, worst)) = worst {
        let error = match worst.share {
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
        card.push(good(format!("correct at {}: {error}", sizes.join(" · "))));
    }
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

/// Returns the consequence of an error in words.
pub(super) fn refusal(error: &KernelError) -> &'static str {
    if error.launch {
        "cannot be launched"
    } else {
        "does not compile"
    }
}

fn time_lines(card: &mut Vec<CardLine>, time: &KernelTime) {
    let Spread {
        median,
        p25,
        p75,
        n,
        ..
    } = time.ms;
    let (p25, p75, seconds) = (duration(p25), duration(p75), median / 1e3);
    let took = format!("{} ({p25} to {p75}, n = {n})", duration(median));
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
    let (shape, clock) = (&time.shape, &time.clock);
    card.push(remark(format!(
        "{TIME} `{shape}`, {clock} clock: {took} · {reached} · {share}"
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
    pub fn set_beside(&mut self, accepted: &KernelReport) {
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

/// Returns a share as a percentage with about two digits.
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

pub(super) fn faster(ratio: KernelRatio, whom: &str) -> String {
    format!(
        "{:.2} {AS_FAST} {whom} ({:.2} to {:.2})",
        ratio.ratio, ratio.low, ratio.high
    )
}

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
