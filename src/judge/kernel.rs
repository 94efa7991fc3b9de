//! Judges what the engine found out about a learner's kernels: the criteria of the exercise, and the card, line by line.

use serde::{Serialize, Serializer};

use super::{Found, Line, Outcome};
use crate::protocol::{
    KernelAccess, KernelCheck, KernelError, KernelFacts, KernelFault, KernelFaultKind, KernelFile,
    KernelJob, KernelMatch, KernelMetric, KernelProgress, KernelRatio, KernelReport, KernelResult,
    KernelRole, KernelShape, KernelStarter, KernelSwap, KernelText, KernelTime, KernelUntimed, Num,
    Sizes, Spread,
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
        sizes: right_at(&facts, job),
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

/// The sizes at which every file was right.
fn right_at(report: &KernelReport, job: &KernelJob) -> Vec<Sizes> {
    let shapes = job.shapes.iter().filter(|shape| {
        let here = |found: &KernelMatch| found.shape == shape.label;
        let mut files = report.files.iter();
        files.all(|result| result.shapes.iter().any(here))
    });
    shapes.map(|shape| shape.sizes.clone()).collect()
}

fn criterion(report: &KernelReport, job: &KernelJob, check: &KernelCheck) -> Line {
    let least = check.at_least;
    let asked = match check.metric {
        KernelMetric::Correct => "every output right".to_owned(),
        KernelMetric::Speed => format!("at least {least} times as fast as the starter"),
        KernelMetric::Invocations => format!("at least {least} invocations in a workgroup"),
        KernelMetric::Shared => "uses workgroup memory".to_owned(),
        KernelMetric::Fetches => format!("each number fetched at most {} times", check.at_most),
        KernelMetric::Neighbours => format!("{least} invocations in a row take neighbours"),
    };
    Line::new(&check.name, asked, found(report, job, check))
}

fn found(report: &KernelReport, job: &KernelJob, check: &KernelCheck) -> Found {
    let least = check.at_least;
    if let Some(broken) = report.files.iter().find(|result| result.error.is_some()) {
        return (format!("{} does not compile", broken.name), Some(false));
    }
    let facts = report.files.iter().filter_map(|result| result.facts);
    match check.metric {
        KernelMetric::Invocations => {
            let size = |facts: KernelFacts| facts.workgroup.map(u64::from).iter().product::<u64>();
            let fewest = facts.map(size).min().unwrap_or(0);
            let said = format!("{fewest} invocations, {least} asked for");
            (said, Some(fewest as f64 >= least))
        }
        KernelMetric::Shared => match facts.map(|facts| facts.workgroup_bytes).max() {
            None | Some(0) => ("no var<workgroup> is used".to_owned(), Some(false)),
            Some(_) if is_shared_idle(report) => {
                let said = "no element of a var<workgroup> is read or written when it runs";
                (said.to_owned(), Some(false))
            }
            Some(bytes) => (shared(bytes), Some(true)),
        },
        KernelMetric::Fetches => fetches(report, job, check.at_most),
        KernelMetric::Neighbours => neighbours(report, least),
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

/// Whether the kernel ran, and no place that takes elements of workgroup memory was passed.
fn is_shared_idle(report: &KernelReport) -> bool {
    let mut access = report.files.iter().flat_map(|result| &result.access);
    let ran = access.clone().next().is_some();
    ran && !access.any(|one| one.binding.is_none() && one.fetches > 0.0)
}

/// How often each number of an input is fetched, where that is most.
fn fetches(report: &KernelReport, job: &KernelJob, most: f64) -> Found {
    let files = job.files.iter().zip(&report.files);
    let inputs = files.flat_map(|(file, result)| {
        let is_input = |at: u64| {
            let binding = file.spec.bindings.get(at as usize);
            binding.is_some_and(|binding| binding.role == KernelRole::In)
        };
        let access = result.access.iter();
        access.filter(move |one| one.binding.is_some_and(is_input))
    });
    match inputs.max_by(|a, b| a.fetches.total_cmp(&b.fetches)) {
        None => ("not counted".to_owned(), None),
        Some(KernelAccess { array, fetches, .. }) => {
            let said = format!(
                "each number of `{array}` is fetched {fetches:.1} times at most; up to {most} is asked for"
            );
            (said, Some(*fetches <= most))
        }
    }
}

/// How many invocations in a row take neighbouring elements of a buffer, at the place where they are fewest.
fn neighbours(report: &KernelReport, least: f64) -> Found {
    let access = report.files.iter().flat_map(|result| &result.access);
    let buffers = access.filter(|one| one.binding.is_some() && one.fetches > 0.0);
    match buffers.min_by_key(|one| one.neighbours) {
        None => ("not counted".to_owned(), None),
        Some(one) => {
            let found = one.neighbours as f64;
            let said = match one.neighbours {
                _ if found >= least => format!("{least} or more in a row, everywhere"),
                0 | 1 => format!(
                    "line {}: invocations 0 and 1 take elements of `{}` that lie apart",
                    one.line, one.array
                ),
                count => format!(
                    "line {}: {count} invocations in a row take neighbours in `{}`, {least} asked for",
                    one.line, one.array
                ),
            };
            (said, Some(found >= least))
        }
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
        let sizes = shape.map(sizes_of).unwrap_or_default();
        let (label, text) = (&fault.shape, &fault.text);
        card.push(bad(format!("fails at `{label}` ({sizes}): {text}")));
        let numbers = [
            KernelFaultKind::Wrong,
            KernelFaultKind::Unwritten,
            KernelFaultKind::Races,
        ];
        if let Some(idea) = shape.and_then(|shape| shape.idea.as_ref())
            && numbers.contains(&fault.kind)
            && fault.place.is_none()
        {
            card.push(remark(format!("think about this: {idea}")));
        }
        return;
    }
    let found = result.shapes.iter().filter_map(|found| {
        let mut shapes = job.shapes.iter();
        let shape = shapes.find(|shape| shape.label == found.shape)?;
        let allowed = shape.tolerance.unwrap_or(file.spec.tolerance);
        Some((shape, found.error, allowed))
    });
    let found: Vec<(&KernelShape, f64, f64)> = found.collect();
    // The one that comes nearest to what is allowed there.
    let share =
        |(_, error, allowed): &(&KernelShape, f64, f64)| error / allowed.max(f64::MIN_POSITIVE);
    let worst = found.iter().max_by(|a, b| share(a).total_cmp(&share(b)));
    if let Some((_, error, allowed)) = worst {
        let error = match *error {
            0.0 => "no error at all".to_owned(),
            error => format!("largest error {error:.1e} of the largest value"),
        };
        let at: Vec<String> = found.iter().map(|(shape, ..)| sizes_of(shape)).collect();
        let (at, allowed) = (at.join(" · "), tolerance(*allowed));
        let text = format!("correct at {at}: {error}, {allowed} allowed");
        card.push(good(text));
    }
    if let Some(shape) = &result.skipped {
        let why = match result.time_reason {
            Some(KernelUntimed::CpuDriver) => "it is too large for a CPU driver",
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

/// `M = 17, N = 33`.
fn sizes_of(shape: &KernelShape) -> String {
    let sizes = shape.sizes.iter();
    let sizes: Vec<_> = sizes.map(|(name, n)| format!("{name} = {n}")).collect();
    sizes.join(", ")
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
        (KernelFaultKind::Races, Some(place)) => format!(
            "{place}: one invocation writes `{name}[{at}]` and another one takes it, with no barrier between them; put a workgroupBarrier() \
             where everybody has written, or where everybody has read"
        ),
        (KernelFaultKind::Races, None) => format!(
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
        (KernelFaultKind::TooMuch, place) => {
            let place = place.map_or_else(String::new, |place| format!("; look at {place}"));
            format!("{}, and the check was given up{place}", fault.reason)
        }
        (KernelFaultKind::Device, _) => format!("the driver refused it: {}", fault.reason),
        (KernelFaultKind::Lost, _) => {
            format!("the device was lost while it ran: {}", fault.reason)
        }
    }
}

/// An output with a number that is too far off.
fn wrong(fault: &KernelFault) -> String {
    let value = |x: Option<Num>| x.map_or(f64::NAN, |x| x.0);
    let (found, expected) = apart(value(fault.found), value(fault.expected));
    let mut text = format!(
        "`{}[{}]` is {found} and should be {expected}; ",
        fault.buffer,
        fault.at.unwrap_or_default(),
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

/// Two numbers with six digits, or as many as they need to differ.
fn apart(found: f64, expected: f64) -> (String, String) {
    let both = |digits| (number(found, digits), number(expected, digits));
    let differ = (6..=17).map(both).find(|(one, other)| one != other);
    differ.unwrap_or_else(|| both(6))
}

/// So many digits, without zeros at the end.
fn number(x: f64, digits: usize) -> String {
    let size = x.abs();
    if !x.is_finite() || x == 0.0 {
        return x.to_string();
    }
    if !(1e-3..1e6).contains(&size) {
        let decimals = digits - 2;
        return format!("{x:.decimals$e}");
    }
    let decimals = (digits - 1).saturating_sub(size.max(1.0).log10() as usize);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_as_many_digits_as_differ() {
        let text = |found: f32, expected: f32| {
            let (found, expected) = apart(found.into(), expected.into());
            format!("{found} for {expected}")
        };
        assert_eq!(text(1.01768, 0.01768), "1.01768 for 0.01768");
        assert_eq!(text(-1.111_25, -1.111_251), "-1.11125 for -1.111251");
        assert_eq!(text(1e-9, 1.001e-9), "1.0000e-9 for 1.0010e-9");
        assert_eq!(text(f32::INFINITY, 2.0), "inf for 2");
        assert_eq!(text(0.5, 0.5), "0.5 for 0.5");
    }
}
