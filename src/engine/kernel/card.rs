//! What a check found, as a card: compiles, correct, time and share of the roof, then what the exercise asks for.

use super::check::same;
use super::watch::At;
use crate::protocol::{
    CardLine, KernelCheck, KernelCriterion, KernelError, KernelFile, KernelJob, KernelMetric,
    KernelProgress, KernelRatio, KernelReport, KernelResult, KernelStarter, KernelSwap, KernelText,
    KernelTime, Spread,
};

/// Judges the criteria and writes the card.
pub fn finish(report: &mut KernelReport, job: &KernelJob) {
    report.criteria = job
        .checks
        .iter()
        .map(|check| criterion(report, job, check))
        .collect();
    let untouched =
        !job.files.is_empty() && job.files.iter().all(|file| same(&file.text, &file.starter));
    let starter_fails = job
        .checks
        .iter()
        .any(|check| check.starter == KernelStarter::Fails);
    let right = right(report, job);
    let fails = report
        .criteria
        .iter()
        .any(|criterion| criterion.passed == Some(false));
    report.passed = report.failed.is_none() && right && !fails && !(untouched && starter_fails);
    report.swap = job
        .replaces
        .as_ref()
        .filter(|_| right && !untouched)
        .map(|part| KernelSwap {
            exercise: job.exercise.clone(),
            part: part.clone(),
            kernels: job
                .files
                .iter()
                .zip(&report.files)
                .map(|(file, result)| text(file, result))
                .collect(),
        });
    report.card = lines(report, job);
    if untouched && starter_fails {
        report.card.push(remark("this is still the starter"));
    }
}

/// What is known before the check is over, and what it is at.
pub fn progress(report: &KernelReport, job: &KernelJob, at: &At) -> KernelProgress {
    let now = match job.files.get(at.file) {
        None => "opens the device".to_owned(),
        Some(file) if at.shape.is_empty() => format!("reads {}", file.name),
        Some(file) if at.running => format!("runs {} at `{}`", file.name, at.shape),
        Some(file) => format!("prepares {} at `{}`", file.name, at.shape),
    };
    KernelProgress {
        id: job.id,
        exercise: job.exercise.clone(),
        card: lines(report, job),
        now,
    }
}

fn text(file: &KernelFile, result: &KernelResult) -> KernelText {
    KernelText {
        text: file.text.clone(),
        workgroup: result.facts.unwrap_or_default().workgroup,
    }
}

/// Whether every file ran and was right.
fn right(report: &KernelReport, job: &KernelJob) -> bool {
    let fine = |result: &KernelResult| {
        result.error.is_none() && result.fault.is_none() && !result.shapes.is_empty()
    };
    report.failed.is_none()
        && !job.files.is_empty()
        && report.files.len() == job.files.len()
        && report.files.iter().all(fine)
}

fn criterion(report: &KernelReport, job: &KernelJob, check: &KernelCheck) -> KernelCriterion {
    let (found, passed) = judge(report, job, check);
    KernelCriterion {
        name: check.name.clone(),
        found,
        passed,
    }
}

fn judge(report: &KernelReport, job: &KernelJob, check: &KernelCheck) -> (String, Option<bool>) {
    if let Some(broken) = report.files.iter().find(|result| result.error.is_some()) {
        return (format!("{} does not compile", broken.name), Some(false));
    }
    let facts = || report.files.iter().filter_map(|result| result.facts);
    let least = check.at_least;
    match check.metric {
        KernelMetric::Invocations => {
            let fewest = facts()
                .map(|facts| {
                    facts
                        .workgroup
                        .iter()
                        .map(|n| u64::from(*n))
                        .product::<u64>()
                })
                .min()
                .unwrap_or(0);
            (
                format!("{fewest} invocations, {least} asked for"),
                Some(fewest as f64 >= least),
            )
        }
        KernelMetric::Shared => match facts()
            .map(|facts| facts.workgroup_bytes)
            .max()
            .unwrap_or(0)
        {
            0 => ("no var<workgroup> is used".to_owned(), Some(false)),
            bytes => (
                format!("{} bytes of workgroup memory", thousands(bytes)),
                Some(true),
            ),
        },
        KernelMetric::Correct | KernelMetric::Speed if report.failed.is_some() => {
            ("not run".to_owned(), None)
        }
        KernelMetric::Correct => match report.files.iter().find_map(|result| result.fault.as_ref())
        {
            Some(fault) => (format!("fails at `{}`", fault.shape), Some(false)),
            None if right(report, job) => (
                "every element of every shape that ran".to_owned(),
                Some(true),
            ),
            None => ("not run".to_owned(), None),
        },
        KernelMetric::Speed => speed(report, job, least),
    }
}

fn speed(report: &KernelReport, job: &KernelJob, least: f64) -> (String, Option<bool>) {
    if !right(report, job) {
        return (
            "not timed: it has to be right first".to_owned(),
            Some(false),
        );
    }
    if job.files.iter().all(|file| same(&file.text, &file.starter)) {
        return (
            "as fast as the starter: it is the starter".to_owned(),
            Some(false),
        );
    }
    let ratios = report
        .files
        .iter()
        .filter_map(|result| result.time.as_ref()?.against_starter);
    match ratios.min_by(|a, b| a.low.total_cmp(&b.low)) {
        Some(found) => (
            format!("{}, {least} asked for", times(found, "the starter")),
            Some(found.low >= least),
        ),
        None => {
            let why = report
                .files
                .iter()
                .find_map(|result| result.time_reason.clone());
            (
                format!(
                    "not timed: {}",
                    why.unwrap_or_else(|| "no time was taken".to_owned())
                ),
                None,
            )
        }
    }
}

fn lines(report: &KernelReport, job: &KernelJob) -> Vec<CardLine> {
    let mut card = Vec::new();
    for (result, file) in report.files.iter().zip(&job.files) {
        if job.files.len() > 1 {
            card.push(remark(&result.name));
        }
        file_lines(&mut card, result, file, job);
    }
    if let Some(why) = &report.failed {
        card.push(bad(format!("not checked: {why}")));
    }
    for criterion in &report.criteria {
        card.push(CardLine {
            good: criterion.passed,
            text: format!("{}: {}", criterion.name, criterion.found),
        });
    }
    if report.restart {
        card.push(remark(
            "the process that checks kernels is started anew; the model goes on training",
        ));
    }
    card
}

fn file_lines(card: &mut Vec<CardLine>, result: &KernelResult, file: &KernelFile, job: &KernelJob) {
    if let Some(error) = &result.error {
        card.push(bad(format!(
            "does not compile: {}",
            place(&result.name, error)
        )));
        if !error.instead.is_empty() {
            card.push(remark(&format!("write instead: {}", error.instead)));
        }
        return;
    }
    if let Some(facts) = result.facts {
        let size: Vec<String> = facts.workgroup.iter().map(u32::to_string).collect();
        let shared = match facts.workgroup_bytes {
            0 => String::new(),
            bytes => format!(", {} bytes of workgroup memory", thousands(bytes)),
        };
        card.push(good(format!(
            "compiles: workgroups of {}{shared}",
            size.join(" × ")
        )));
    }
    if let Some(fault) = &result.fault {
        let shape = job.shapes.iter().find(|shape| shape.label == fault.shape);
        let sizes: Vec<String> = shape
            .iter()
            .flat_map(|s| &s.sizes)
            .map(|(name, n)| format!("{name} = {n}"))
            .collect();
        card.push(bad(format!(
            "fails at `{}` ({}): {}",
            fault.shape,
            sizes.join(", "),
            fault.text
        )));
        return;
    }
    if let Some(worst) = result
        .shapes
        .iter()
        .map(|shape| shape.error)
        .max_by(f64::total_cmp)
    {
        let error = if worst == 0.0 {
            "no error at all".to_owned()
        } else {
            format!("largest error {worst:.1e} of the largest value")
        };
        let allowed = if file.spec.tolerance == 0.0 {
            "none is".to_owned()
        } else {
            format!("{:.0e} is", file.spec.tolerance)
        };
        card.push(good(format!(
            "correct at {} shapes: {error}, {allowed} allowed",
            result.shapes.len()
        )));
    }
    card.extend(result.skipped.as_deref().map(remark));
    if let Some(time) = &result.time {
        time_lines(card, time);
    }
}

fn time_lines(card: &mut Vec<CardLine>, time: &KernelTime) {
    let seconds = time.ms.median / 1e3;
    let rate = |amount: f64, unit: &str| format!("{} {unit}", digits(amount / seconds / 1e9));
    let mut parts = vec![format!(
        "{} ({} to {}, n = {})",
        milliseconds(time.ms.median),
        milliseconds(time.ms.p25),
        milliseconds(time.ms.p75),
        time.ms.n
    )];
    if time.memory_bound || time.flops == 0.0 {
        parts.push(rate(time.bytes, "GB/s"));
    } else {
        parts.push(rate(time.flops, "GFLOP/s"));
    }
    match time.share_of_peak {
        Some(share) => {
            let roof = if time.memory_bound {
                "memory"
            } else {
                "arithmetic"
            };
            parts.push(format!(
                "{:.0} % of this device's measured {roof} peak",
                100.0 * share
            ));
        }
        None => parts.push("share of peak: not measured".to_owned()),
    }
    card.push(remark(&format!(
        "time at `{}`, {} clock: {}",
        time.shape,
        time.clock,
        parts.join(" · ")
    )));
    let others = [
        (time.against_starter, time.starter_ms, "the starter"),
        (time.against_solution, time.solution_ms, "the solution"),
    ];
    for (ratio, spread, name) in others {
        if let (Some(ratio), Some(Spread { median, .. })) = (ratio, spread) {
            card.push(remark(&format!(
                "{} ({})",
                times(ratio, name),
                milliseconds(median)
            )));
        }
    }
}

/// `starter.wgsl:13:5 `upp`: no definition in scope`.
pub fn place(name: &str, error: &KernelError) -> String {
    let place = if error.line == 0 {
        name.to_owned()
    } else {
        format!("{name}:{}:{}", error.line, error.column)
    };
    let text = if error.text.is_empty() {
        String::new()
    } else {
        format!(" `{}`", error.text)
    };
    format!("{place}{text}: {}", error.message)
}

fn times(ratio: KernelRatio, whom: &str) -> String {
    format!(
        "{:.2} times as fast as {whom} ({:.2} to {:.2})",
        ratio.ratio, ratio.low, ratio.high
    )
}

fn milliseconds(ms: f64) -> String {
    if ms < 1.0 {
        format!("{} µs", digits(ms * 1e3))
    } else {
        format!("{} ms", digits(ms))
    }
}

/// Three digits.
fn digits(x: f64) -> String {
    let decimals = if x >= 100.0 {
        0
    } else if x >= 10.0 {
        1
    } else {
        2
    };
    let text = format!("{x:.decimals$}");
    if x >= 1000.0 {
        thousands(x as u64)
    } else {
        text
    }
}

fn thousands(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

fn good(text: String) -> CardLine {
    CardLine {
        good: Some(true),
        text,
    }
}

fn bad(text: String) -> CardLine {
    CardLine {
        good: Some(false),
        text,
    }
}

fn remark(text: &str) -> CardLine {
    CardLine {
        good: None,
        text: text.to_owned(),
    }
}
