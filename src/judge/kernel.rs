//! Judges what the engine found out about a learner's kernels: the criteria of the exercise, and the card, line by line.

use serde::{Serialize, Serializer};

use super::{Found, Line, Outcome};
use crate::protocol::{
    KernelCheck, KernelError, KernelFacts, KernelFault, KernelFaultKind, KernelFile, KernelJob,
    KernelMetric, KernelProgress, KernelRatio, KernelReport, KernelResult, KernelStarter,
    KernelSwap, KernelText, KernelTime, KernelUntimed, Num, Spread,
};
use crate::units::{duration, rate, show};

/// A line of the card.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CardLine {
    /// Good, bad, or only a remark.
    pub good: Option<bool>,
    pub text: String,
}

/// A check of a learner's kernels, judged.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct KernelVerdict {
    /// What the engine found out.
    #[serde(flatten)]
    pub facts: KernelReport,
    #[serde(serialize_with = "criteria_as_json")]
    pub criteria: Vec<Line>,
    pub card: Vec<CardLine>,
    /// Whether no criterion failed and the text is no longer the starter's.
    pub passed: bool,
    /// What to give the training engine, where every file is right and the exercise asks for it.
    pub swap: Option<KernelSwap>,
}

/// How far a check has come, in words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelChecking {
    /// What is known already: the first lines of the card.
    pub card: Vec<CardLine>,
    /// What is done now.
    pub now: String,
}

/// As `check --json` has always written them: `passed` is null for what does not count on this device.
fn criteria_as_json<S: Serializer>(lines: &[Line], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(lines.iter().map(|line| {
        serde_json::json!({
            "name": line.name,
            "found": line.measured,
            "passed": line.outcome.decided(),
        })
    }))
}

/// Judges the criteria and writes the card.
pub fn verdict(job: &KernelJob, mut facts: KernelReport) -> KernelVerdict {
    for result in &mut facts.files {
        let array_length = result.facts.is_some_and(|facts| facts.array_length);
        if let Some(fault) = &mut result.fault {
            fault.text = sentence(fault, array_length);
        }
    }
    let checks = job.checks.iter();
    let criteria: Vec<Line> = checks.map(|check| criterion(&facts, job, check)).collect();
    let untouched = !job.files.is_empty() && job.is_starter();
    let mut checks = job.checks.iter();
    let starter_fails = checks.any(|check| check.starter == KernelStarter::Fails);
    let right = right(&facts, job);
    let fails = criteria.iter().any(|line| line.outcome == Outcome::Failed);
    let swap = job.replaces.as_ref().filter(|_| right && !untouched);
    let texts = job.files.iter().zip(&facts.files);
    let texts = texts.map(|(file, result)| KernelText {
        text: file.text.clone(),
        workgroup: result.facts.unwrap_or_default().workgroup,
    });
    let swap = swap.map(|part| KernelSwap {
        exercise: job.exercise.clone(),
        part: part.clone(),
        kernels: texts.collect(),
    });
    let mut card = lines(&facts.files, job);
    if let Some(why) = &facts.failed {
        card.push(bad(format!("not checked: {why}")));
    }
    card.extend(criteria.iter().map(|line| {
        let text = format!("{}: {}", line.name, line.measured);
        card_line(line.outcome.decided(), text)
    }));
    if facts.restart {
        card.push(remark(
            "the process that checks kernels is started anew; the model goes on training",
        ));
    }
    if untouched && starter_fails {
        card.push(remark("this is still the starter"));
    }
    KernelVerdict {
        passed: facts.failed.is_none() && right && !fails && !(untouched && starter_fails),
        facts,
        criteria,
        card,
        swap,
    }
}

/// What is known before the check is over, and what it does now.
pub fn checking(job: &KernelJob, progress: &KernelProgress) -> KernelChecking {
    let file = progress
        .file
        .and_then(|file| job.files.get(usize::try_from(file).ok()?));
    let now = match file {
        None => "opens the device".to_owned(),
        Some(file) if progress.shape.is_empty() => format!("reads {}", file.name),
        Some(file) if progress.running => format!("runs {} at `{}`", file.name, progress.shape),
        Some(file) => format!("prepares {} at `{}`", file.name, progress.shape),
    };
    KernelChecking {
        card: lines(&progress.files, job),
        now,
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

fn criterion(report: &KernelReport, job: &KernelJob, check: &KernelCheck) -> Line {
    let least = check.at_least;
    let asked = match check.metric {
        KernelMetric::Correct => "every output right".to_owned(),
        KernelMetric::Speed => format!("at least {least} times as fast as the starter"),
        KernelMetric::Invocations => format!("at least {least} invocations in a workgroup"),
        KernelMetric::Shared => "uses workgroup memory".to_owned(),
    };
    Line::new(&check.name, asked, found(report, job, check.metric, least))
}

fn found(report: &KernelReport, job: &KernelJob, metric: KernelMetric, least: f64) -> Found {
    if let Some(broken) = report.files.iter().find(|result| result.error.is_some()) {
        return (format!("{} does not compile", broken.name), Some(false));
    }
    let facts = report.files.iter().filter_map(|result| result.facts);
    match metric {
        KernelMetric::Invocations => {
            let size = |facts: KernelFacts| facts.workgroup.map(u64::from).iter().product::<u64>();
            let fewest = facts.map(size).min().unwrap_or(0);
            let said = format!("{fewest} invocations, {least} asked for");
            (said, Some(fewest as f64 >= least))
        }
        KernelMetric::Shared => match facts.map(|facts| facts.workgroup_bytes).max() {
            None | Some(0) => ("no var<workgroup> is used".to_owned(), Some(false)),
            Some(bytes) => (shared(bytes), Some(true)),
        },
        KernelMetric::Speed if report.failed.is_none() => speed(report, job, least),
        KernelMetric::Correct if report.failed.is_none() => {
            let mut faults = report
                .files
                .iter()
                .filter_map(|result| result.fault.as_ref());
            match faults.next() {
                Some(fault) => (format!("fails at `{}`", fault.shape), Some(false)),
                None if right(report, job) => (
                    "every element of every shape that ran".to_owned(),
                    Some(true),
                ),
                None => ("not run".to_owned(), None),
            }
        }
        KernelMetric::Correct | KernelMetric::Speed => ("not run".to_owned(), None),
    }
}

fn shared(bytes: u64) -> String {
    format!("{} bytes of workgroup memory", show(bytes as f64, 0))
}

fn speed(report: &KernelReport, job: &KernelJob, least: f64) -> Found {
    if !right(report, job) {
        return (
            "not timed: it has to be right first".to_owned(),
            Some(false),
        );
    }
    if job.is_starter() {
        return (
            "as fast as the starter: it is the starter".to_owned(),
            Some(false),
        );
    }
    let times = report
        .files
        .iter()
        .filter_map(|result| result.time.as_ref());
    let ratios = times.filter_map(|time| time.against_starter);
    if let Some(found) = ratios.min_by(|a, b| a.low.total_cmp(&b.low)) {
        let said = format!("{}, {least} asked for", faster(found, "the starter"));
        return (said, Some(found.low >= least));
    }
    let why = match report.files.iter().find_map(|result| result.time_reason) {
        None => "no time was taken",
        Some(KernelUntimed::OneShape) => {
            "there is one shape only, and the last of several is the one to time"
        }
        Some(KernelUntimed::CpuDriver) => "a CPU driver's time says nothing about a GPU",
        Some(KernelUntimed::NotAsked) => "nobody asked for it",
    };
    (format!("not timed: {why}"), None)
}

/// What is known of each file.
fn lines(files: &[KernelResult], job: &KernelJob) -> Vec<CardLine> {
    let mut card = Vec::new();
    for (result, file) in files.iter().zip(&job.files) {
        if job.files.len() > 1 {
            card.push(remark(result.name.as_str()));
        }
        file_lines(&mut card, result, file, job);
    }
    card
}

fn file_lines(card: &mut Vec<CardLine>, result: &KernelResult, file: &KernelFile, job: &KernelJob) {
    if let Some(error) = &result.error {
        let place = place(&result.name, error);
        card.push(bad(format!("does not compile: {place}")));
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
        let sizes = shape.iter().flat_map(|shape| &shape.sizes);
        let sizes: Vec<_> = sizes.map(|(name, n)| format!("{name} = {n}")).collect();
        let (label, sizes, text) = (&fault.shape, sizes.join(", "), &fault.text);
        card.push(bad(format!("fails at `{label}` ({sizes}): {text}")));
        return;
    }
    let errors = result.shapes.iter().map(|shape| shape.error);
    if let Some(worst) = errors.max_by(f64::total_cmp) {
        let error = if worst == 0.0 {
            "no error at all".to_owned()
        } else {
            format!("largest error {worst:.1e} of the largest value")
        };
        let (count, allowed) = (result.shapes.len(), tolerance(file.spec.tolerance));
        let text = format!("correct at {count} shapes: {error}, {allowed} allowed");
        card.push(good(text));
    }
    if let Some(shape) = &result.skipped {
        let why = match result.time_reason {
            Some(KernelUntimed::CpuDriver) => {
                "on a CPU driver being right counts, and speed does not"
            }
            _ => "nobody asked for it",
        };
        card.push(remark(format!(
            "`{shape}` was neither run nor timed: {why}"
        )));
    }
    if let Some(time) = &result.time {
        time_lines(card, time);
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
    let roof = if time.memory_bound {
        "memory"
    } else {
        "arithmetic"
    };
    let share = match time.share_of_peak {
        Some(share) => format!(
            "{:.0} % of this device's measured {roof} peak",
            100.0 * share
        ),
        None => "share of peak: not measured".to_owned(),
    };
    let (shape, clock) = (&time.shape, &time.clock);
    card.push(remark(format!(
        "time at `{shape}`, {clock} clock: {took} · {reached} · {share}"
    )));
    let others = [
        (time.against_starter, time.starter_ms, "the starter"),
        (time.against_solution, time.solution_ms, "the solution"),
    ];
    for (ratio, spread, name) in others {
        if let (Some(ratio), Some(Spread { median, .. })) = (ratio, spread) {
            let (faster, took) = (faster(ratio, name), duration(median));
            card.push(remark(format!("{faster} ({took})")));
        }
    }
}

/// `starter.wgsl:13:5 `upp`: no definition in scope`.
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

fn faster(ratio: KernelRatio, whom: &str) -> String {
    format!(
        "{:.2} times as fast as {whom} ({:.2} to {:.2})",
        ratio.ratio, ratio.low, ratio.high
    )
}

/// What went wrong when a kernel ran.
fn sentence(fault: &KernelFault, array_length: bool) -> String {
    let name = &fault.buffer;
    let at = fault.at.unwrap_or_default();
    let place = fault.place.as_ref().map(|it| {
        let KernelError {
            line, column, text, ..
        } = it;
        format!("line {line}, column {column}: `{text}`")
    });
    match (fault.kind, place) {
        (KernelFaultKind::Wrong, _) => wrong(fault),
        (KernelFaultKind::Unwritten, _) => format!(
            "never writes {} of the {} elements of `{name}`, first `{name}[{at}]`",
            fault.count, fault.of
        ),
        (KernelFaultKind::OutOfBounds, Some(place)) => format!(
            "{place} takes element {at}, and `{name}` has {}; compare the index with the size first",
            fault.of
        ),
        (KernelFaultKind::OutOfBounds, None) => {
            let why = if array_length {
                "a buffer may be longer than its tensor, so compare with the size and not with arrayLength"
            } else {
                "compare the index with the size before writing"
            };
            format!(
                "writes out of bounds: `{name}[{at}]`, and `{name}` has {} elements; {why}",
                fault.of
            )
        }
        (KernelFaultKind::WroteInput, _) => {
            format!("writes to `{name}[{at}]`, which is only to be read")
        }
        (KernelFaultKind::ReadsPastEnd, _) => format!(
            "reads past the end of a buffer: with other numbers behind it, `{name}[{at}]` comes out different; compare the index with the size \
             before reading"
        ),
        (KernelFaultKind::Races, _) => format!(
            "two runs on the same numbers differ, first in `{name}[{at}]`: invocations race. Is a workgroupBarrier() missing, or do two write \
             the same element?"
        ),
        (KernelFaultKind::Endless, Some(place)) => format!(
            "{place} does not end, or not within {} rounds; it needs a condition that changes inside the loop, or a `break` that can be reached",
            fault.limit
        ),
        (KernelFaultKind::Endless, None) => format!(
            "does not end: it was still running after {} s. A loop's condition stays true, or it is far too slow",
            fault.limit
        ),
        (KernelFaultKind::Device, _) => format!("the driver refused it: {}", fault.reason),
        (KernelFaultKind::Lost, _) => {
            format!("the device was lost while it ran: {}", fault.reason)
        }
    }
}

/// An output with a number that is too far off.
fn wrong(fault: &KernelFault) -> String {
    let shown = |x: Option<Num>| x.map_or("NaN".to_owned(), |x| number(x.0));
    let mut text = format!(
        "`{}[{}]` is {} and should be {}; ",
        fault.buffer,
        fault.at.unwrap_or_default(),
        shown(fault.found),
        shown(fault.expected)
    );
    text += &match fault.of {
        1 => "it is the only element".to_owned(),
        of => format!("{} of {of} elements are wrong", fault.count),
    };
    if let (Some(Num(error)), Some(allowed)) = (fault.error, fault.allowed)
        && error.is_finite()
    {
        text += &format!(
            ", the largest error is {error:.1e} of the largest value and {} allowed",
            tolerance(allowed)
        );
    }
    if fault.unsteady {
        text += "; and two runs differ: do invocations race?";
    }
    text
}

fn tolerance(allowed: f64) -> String {
    if allowed == 0.0 {
        "none is".to_owned()
    } else {
        format!("{allowed:.0e} is")
    }
}

/// Six digits, without zeros at the end.
fn number(x: f64) -> String {
    let size = x.abs();
    if !x.is_finite() || x == 0.0 {
        return x.to_string();
    }
    if !(1e-3..1e6).contains(&size) {
        return format!("{x:.4e}");
    }
    let decimals = 5_usize.saturating_sub(size.max(1.0).log10() as usize);
    let text = format!("{x:.decimals$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

fn card_line(good: Option<bool>, text: impl Into<String>) -> CardLine {
    let text = text.into();
    CardLine { good, text }
}

fn good(text: String) -> CardLine {
    card_line(Some(true), text)
}

fn bad(text: String) -> CardLine {
    card_line(Some(false), text)
}

fn remark(text: impl Into<String>) -> CardLine {
    card_line(None, text)
}
