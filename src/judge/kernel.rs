//! Judges the engine's report about a learner's kernels: the criteria of the exercise, the card that the screen shows, and the kernels that the
//! model may use.

mod card;
mod fault;

use serde::{Serialize, Serializer};

use super::{CriterionResult, Found, Outcome};
use protocol::USES;
use protocol::{
    KernelAccess, KernelCheck, KernelJob, KernelMatch, KernelMetric, KernelProgress, KernelReport,
    KernelResult, KernelRole, KernelShape, KernelStarter, KernelSwap, KernelText, KernelUntimed,
    KernelWait, Sizes,
};

pub use card::CardLine;
use card::{AS_FAST, TIME, bad, card_line, faster, lines, refusal, remark, shared};
use fault::{as_f32_holds_it, sentence};

/// The verdict on a learner's kernels.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct KernelVerdict {
    /// The engine's report.
    #[serde(flatten)]
    pub facts: KernelReport,
    #[serde(serialize_with = "criteria_as_json")]
    pub criteria: Vec<CriterionResult>,
    /// The lines of the card, from top to bottom.
    pub card: Vec<CardLine>,
    /// True if no criterion failed and the text differs from the starter.
    pub passed: bool,
    /// Kernels for the training engine, if every file is right and the exercise replaces a part of the model.
    pub swap: Option<KernelSwap>,
}

impl KernelVerdict {
    /// Returns the line of the card that says why the exercise was not passed.
    pub fn reason(&self) -> Option<&str> {
        let bad = self.card.iter().find(|line| line.good == Some(false));
        bad.or(self.card.last()).map(|line| line.text.as_str())
    }

    /// Returns the lines of the card about speed; `None` if there are none.
    pub fn timing(&self) -> Option<String> {
        let times: Vec<&str> = self
            .card
            .iter()
            .map(|line| line.text.as_str())
            .filter(|text| text.starts_with(TIME) || text.contains(AS_FAST))
            .collect();
        (!times.is_empty()).then(|| times.join("; "))
    }
}

/// The progress of a check, in words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelChecking {
    /// The card so far.
    pub card: Vec<CardLine>,
    /// The present activity of the check.
    pub now: String,
}

/// Writes criteria as `check --json` has them: `passed` is null for a criterion that does not count on this device.
fn criteria_as_json<S: Serializer>(
    lines: &[CriterionResult],
    serializer: S,
) -> Result<S::Ok, S::Error> {
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
            fault.expected = fault.expected.map(as_f32_holds_it);
            fault.text = sentence(fault, array_length);
        }
    }
    let criteria: Vec<CriterionResult> = job
        .checks
        .iter()
        .map(|check| criterion(&facts, job, check))
        .collect();
    let is_untouched = !job.files.is_empty() && job.is_starter();
    let fails_as_starter = |check: &KernelCheck| check.starter == KernelStarter::Fails;
    let is_open_starter = is_untouched && job.checks.iter().any(fails_as_starter);
    let right = is_right(&facts, job);
    let fails = criteria.iter().any(|line| line.outcome == Outcome::Failed);
    let ran = facts.host_only.is_none();
    let swap = (right && ran && !is_untouched)
        .then(|| swap(&facts, job))
        .flatten();
    let mut card = lines(&facts.files, job);
    if let Some(why) = &facts.failed {
        card.push(bad(format!("not checked: {why}")));
    }
    for line in &criteria {
        let text = format!("{}: {}", line.name, line.measured);
        card.push(card_line(line.outcome.decided(), text));
    }
    if let Some(why) = &facts.host_only {
        card.push(remark(format!(
            "only small sizes ran, on the host; no device ran the kernel \
             and nothing was timed: {why}"
        )));
    }
    if facts.restart {
        card.push(remark(
            "the process that checks kernels restarts; the model continues training",
        ));
    }
    if is_open_starter {
        card.push(remark("this is still the starter"));
    }
    KernelVerdict {
        passed: facts.failed.is_none() && right && !fails && !is_open_starter,
        facts,
        criteria,
        card,
        swap,
    }
}

/// Returns the kernels for the model; `None` if the exercise replaces no part of it.
fn swap(report: &KernelReport, job: &KernelJob) -> Option<KernelSwap> {
    let texts = job.files.iter().zip(&report.files);
    Some(KernelSwap {
        exercise: job.exercise.clone(),
        part: job.replaces.clone()?,
        kernels: texts
            .map(|(file, result)| KernelText {
                text: file.text.clone(),
                workgroup: result.facts.unwrap_or_default().workgroup,
            })
            .collect(),
        sizes: right_at(report, job),
    })
}

/// Returns the results so far, and the present activity.
pub fn checking(job: &KernelJob, progress: &KernelProgress) -> KernelChecking {
    let file = progress
        .file
        .and_then(|file| job.files.get(usize::try_from(file).ok()?));
    let mut now = match file {
        None => "opens the device".to_owned(),
        Some(file) if progress.shape.is_empty() => format!("reads {}", file.name),
        Some(file) if progress.running => format!("runs {} at `{}`", file.name, progress.shape),
        Some(file) => format!("prepares {} at `{}`", file.name, progress.shape),
    };
    if let Some(KernelWait { wall, processor }) = progress.waits {
        now += &format!("; the machine is busy: {wall:.0} s of wall time");
        if let Some(seconds) = processor {
            now += &format!(", {seconds:.0} s of processor time");
        }
        now += "; the check continues";
    }
    KernelChecking {
        card: lines(&progress.files, job),
        now,
    }
}

/// Returns true if every file ran and was right.
fn is_right(report: &KernelReport, job: &KernelJob) -> bool {
    let ran_without_fault = |result: &KernelResult| {
        result.error.is_none() && result.fault.is_none() && !result.shapes.is_empty()
    };
    report.failed.is_none()
        && !job.files.is_empty()
        && report.files.len() == job.files.len()
        && report.files.iter().all(ran_without_fault)
}

/// Returns the sizes at which every file was right.
fn right_at(report: &KernelReport, job: &KernelJob) -> Vec<Sizes> {
    let is_right = |shape: &&KernelShape| {
        let is_shape = |found: &KernelMatch| found.shape == shape.label;
        let has_shape = |result: &KernelResult| result.shapes.iter().any(is_shape);
        report.files.iter().all(has_shape)
    };
    job.shapes
        .iter()
        .filter(is_right)
        .map(|shape| shape.sizes.clone())
        .collect()
}

/// Judges one criterion.
fn criterion(report: &KernelReport, job: &KernelJob, check: &KernelCheck) -> CriterionResult {
    let least = check.at_least;
    let asked = match check.metric {
        KernelMetric::Correct => "every output right".to_owned(),
        KernelMetric::Speed => format!("at least {least} times as fast as the starter"),
        KernelMetric::Invocations => format!("at least {least} invocations in a workgroup"),
        KernelMetric::Shared => "uses workgroup memory".to_owned(),
        KernelMetric::Fetches => format!(
            "at most {} fetches for {USES} uses of an element",
            check.at_most
        ),
        KernelMetric::Neighbours => {
            format!("{least} consecutive invocations access neighbouring elements")
        }
        KernelMetric::Cores => "multiplies on matrix cores".to_owned(),
    };
    CriterionResult::new(&check.name, asked, finding(report, job, check))
}

/// Returns the finding about a criterion. A file that does not compile fails each of them.
fn finding(report: &KernelReport, job: &KernelJob, check: &KernelCheck) -> Found {
    let least = check.at_least;
    for result in &report.files {
        if let Some(error) = &result.error {
            let found = format!("{} {}", result.name, refusal(error));
            return (found, Some(false));
        }
    }
    let mut facts = report.files.iter().filter_map(|result| result.facts);
    match check.metric {
        KernelMetric::Invocations => invocations(report, job, least),
        KernelMetric::Shared => match facts.map(|facts| facts.workgroup_bytes).max() {
            None | Some(0) => ("no var<workgroup> is used".to_owned(), Some(false)),
            Some(_) if is_shared_idle(report) => {
                let found = "the kernel reads no element of a var<workgroup>";
                (found.to_owned(), Some(false))
            }
            Some(bytes) => (shared(bytes), Some(true)),
        },
        KernelMetric::Cores => {
            let multiplies = facts.any(|facts| facts.matrix_cores);
            let found = if multiplies {
                "coopMultiplyAdd multiplies"
            } else {
                "no output contains products of coopMultiplyAdd"
            };
            (found.to_owned(), Some(multiplies))
        }
        KernelMetric::Fetches => fetches(report, job, check.at_most),
        KernelMetric::Neighbours => neighbours(report, job, least),
        KernelMetric::Speed if report.failed.is_none() => speed(report, job, least),
        KernelMetric::Correct if report.failed.is_none() => {
            let fault = report.files.iter().find_map(|result| result.fault.as_ref());
            match fault {
                Some(fault) => (format!("fails at `{}`", fault.shape), Some(false)),
                None if is_right(report, job) => {
                    let found = "every element of every shape that ran";
                    (found.to_owned(), Some(true))
                }
                None => ("not run".to_owned(), None),
            }
        }
        KernelMetric::Correct | KernelMetric::Speed => ("not run".to_owned(), None),
    }
}

/// Judges the number of invocations in a workgroup that store outputs at the same time.
fn invocations(report: &KernelReport, job: &KernelJob, least: f64) -> Found {
    let sizes = report.files.iter().filter_map(|result| {
        let workgroup = result.facts?.workgroup;
        Some(workgroup.map(u64::from).iter().product::<u64>())
    });
    let fewest = sizes.min().unwrap_or(0) as f64;
    let most_together = buffers(report, job, false)
        .map(|access| access.lanes)
        .reduce(f64::max)
        .unwrap_or(fewest);
    let found = if most_together < least && fewest >= least {
        format!("{most_together:.0} of {fewest} invocations store together")
    } else {
        format!("{fewest} invocations")
    };
    let passed = fewest.min(most_together) >= least;
    let finding = format!("{found}; at least {least} are required");
    (finding, Some(passed))
}

/// Returns true if the kernel ran and read nothing from workgroup memory.
fn is_shared_idle(report: &KernelReport) -> bool {
    let accesses = || report.files.iter().flat_map(|result| &result.access);
    let reads_shared = |access: &KernelAccess| access.binding.is_none() && access.fetches > 0.0;
    accesses().next().is_some() && !accesses().any(reads_shared)
}

/// Returns the accesses to the inputs if `input` is true, and those to the outputs if it is false.
fn buffers<'a>(
    report: &'a KernelReport,
    job: &'a KernelJob,
    input: bool,
) -> impl Iterator<Item = &'a KernelAccess> {
    let files = job.files.iter().zip(&report.files);
    files.flat_map(move |(file, result)| {
        result.access.iter().filter(move |access| {
            access
                .binding
                .and_then(|index| file.spec.bindings.get(index as usize))
                .is_some_and(|binding| (binding.role == KernelRole::In) == input)
        })
    })
}

/// Judges the fetches of the input element that is fetched most often for its uses.
fn fetches(report: &KernelReport, job: &KernelJob, most: f64) -> Found {
    match buffers(report, job, true).max_by(|a, b| a.fetches.total_cmp(&b.fetches)) {
        None => uncounted(report, job),
        Some(KernelAccess { array, fetches, .. }) => {
            let found = format!(
                "{USES} uses of an element of `{array}` need {fetches:.1} fetches; \
                 at most {most} are allowed"
            );
            (found, Some(*fetches <= most))
        }
    }
}

/// Judges a kernel whose accesses were not counted: it fails the criterion if it is right.
fn uncounted(report: &KernelReport, job: &KernelJob) -> Found {
    if is_right(report, job) {
        let found = "accesses were not counted, because the kernel ended at no size on the host";
        return (found.to_owned(), Some(false));
    }
    ("not counted".to_owned(), None)
}

/// Judges how many consecutive invocations access neighbouring elements of a buffer, at the access where they are fewest.
fn neighbours(report: &KernelReport, job: &KernelJob, least: f64) -> Found {
    let fewest = report
        .files
        .iter()
        .flat_map(|result| &result.access)
        .filter(|access| access.binding.is_some() && access.neighbours > 0)
        .min_by_key(|access| access.neighbours);
    let Some(KernelAccess {
        line,
        array,
        neighbours,
        ..
    }) = fewest
    else {
        return uncounted(report, job);
    };
    if *neighbours as f64 >= least {
        let found = format!("{least} or more consecutive invocations, everywhere");
        return (found, Some(true));
    }
    let found = if *neighbours <= 1 {
        format!("line {line}: neighbouring invocations access distant elements of `{array}`")
    } else {
        format!(
            "line {line}: {neighbours} consecutive invocations access neighbouring elements \
             of `{array}`; at least {least} are required"
        )
    };
    (found, Some(false))
}

/// Judges how fast the kernels are, compared with the starters. The lower end of the interval of the slowest one decides.
fn speed(report: &KernelReport, job: &KernelJob, least: f64) -> Found {
    if !is_right(report, job) {
        let found = "not timed: the kernel has to be correct first";
        return (found.to_owned(), Some(false));
    }
    if job.is_starter() {
        let found = "as fast as the starter, because this is the starter";
        return (found.to_owned(), Some(false));
    }
    let slowest = report
        .files
        .iter()
        .filter_map(|result| result.time.as_ref()?.against_starter)
        .min_by(|a, b| a.low.total_cmp(&b.low));
    if let Some(ratio) = slowest {
        let shown = faster(ratio, "the starter");
        let passed = ratio.low >= least;
        return (
            format!("{shown}; at least {least} is required"),
            Some(passed),
        );
    }
    let why = match report.files.iter().find_map(|result| result.time_reason) {
        None => "no time was measured",
        Some(KernelUntimed::OneShape) => {
            "only the last of several shapes is timed, and there is only one"
        }
        Some(KernelUntimed::CpuDriver) => "a CPU driver's time says nothing about a GPU",
        Some(KernelUntimed::NotAsked) => "timing was not requested",
    };
    (format!("not timed: {why}"), None)
}
