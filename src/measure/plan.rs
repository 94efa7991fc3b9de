//! A plan: jobs in the order in which they are measured, and what follows when one of them fails.

use anyhow::Result;

use super::runner::{EngineTask, Runner, TaskResult};
use crate::out::{Exit, ExitError};
use protocol::StreamLine;

/// One thing to measure on one device.
#[derive(Clone, Debug)]
pub struct MeasureJob {
    /// What messages call it.
    pub label: String,
    /// What it measures. When one job of a subject fails, its other jobs are skipped.
    pub subject: usize,
    pub device: String,
    pub work: EngineTask,
    /// It begins with an engine of its own: it pays for opening the device and for compiling, and its memory is its own.
    pub fresh: bool,
    /// It counts as failed when it ends before its steps are done, or without a pair.
    pub must_finish: bool,
}

/// What happens while a plan is carried out.
#[derive(Clone, Copy, Debug)]
pub struct PlanProgress<'a> {
    /// Place of the job in the plan.
    pub at: usize,
    pub job: &'a MeasureJob,
    pub news: MeasureEvent<'a>,
}

#[derive(Clone, Copy, Debug)]
pub enum MeasureEvent<'a> {
    /// The job begins: its number, and how many jobs there are without those that are skipped.
    Begins {
        number: usize,
        of: usize,
    },
    /// A line of the stream, and its text.
    Line(&'a StreamLine, &'a str),
    Measured(&'a TaskResult),
    Failed(&'a ExitError),
}

/// A subject that could not be measured.
#[derive(Clone, Debug)]
pub struct SubjectFailure {
    pub subject: usize,
    pub device: String,
    /// The device is not here, so that nothing of it was measured.
    pub no_device: bool,
    pub stop: ExitError,
}

/// What came of a plan.
#[derive(Clone, Debug, Default)]
pub struct PlanResult {
    /// With the subject, in the order of measuring.
    pub measured: Vec<(usize, TaskResult)>,
    pub failures: Vec<SubjectFailure>,
    pub interrupted: bool,
}

impl PlanResult {
    /// Whether a failure makes the rest of this subject pointless.
    pub fn skips(&self, subject: usize, device: &str) -> bool {
        self.failures.iter().any(|failure| {
            failure.subject == subject || failure.no_device && failure.device == device
        })
    }
}

/// Carries out a plan. An error of `tell` ends it, and so does an engine that never greeted.
pub fn measure(
    runner: &mut Runner,
    jobs: &[MeasureJob],
    tell: &mut dyn FnMut(PlanProgress<'_>) -> Result<()>,
) -> Result<PlanResult> {
    let mut outcome = PlanResult::default();
    let (mut number, mut on_device) = (0, Vec::new());
    for (at, job) in jobs.iter().enumerate() {
        if outcome.skips(job.subject, &job.device) {
            continue;
        }
        number += 1;
        let later = jobs[at + 1..]
            .iter()
            .filter(|job| !outcome.skips(job.subject, &job.device));
        let of = number + later.count();
        let news = MeasureEvent::Begins { number, of };
        tell(PlanProgress { at, job, news })?;
        if job.fresh {
            runner.restart();
        }
        let measured = runner.measure(&job.device, &job.work, |line, text| {
            let news = MeasureEvent::Line(line, text);
            tell(PlanProgress { at, job, news })
        });
        let stop = match measured {
            Ok(measured) if measured.interrupted => {
                outcome.interrupted = true;
                break;
            }
            Ok(measured) => match unfinished(&measured).filter(|_| job.must_finish) {
                Some(text) => ExitError::new(Exit::Failed, text),
                None => {
                    let news = MeasureEvent::Measured(&measured);
                    tell(PlanProgress { at, job, news })?;
                    on_device.push(&job.device);
                    outcome.measured.push((job.subject, measured));
                    continue;
                }
            },
            Err(_) if runner.interrupted() => {
                outcome.interrupted = true;
                break;
            }
            Err(error) if runner.hello().is_none() => return Err(error),
            Err(error) => error.downcast::<ExitError>()?,
        };
        let news = MeasureEvent::Failed(&stop);
        tell(PlanProgress { at, job, news })?;
        outcome.failures.push(SubjectFailure {
            subject: job.subject,
            device: job.device.clone(),
            no_device: stop.exit == Exit::NoDevice && !on_device.contains(&&job.device),
            stop,
        });
    }
    runner.restart();
    Ok(outcome)
}

/// Why the work is not complete.
fn unfinished(measured: &TaskResult) -> Option<String> {
    let finished = measured.finished.as_ref()?;
    match (&finished.ended, &measured.pair) {
        (Some(why), _) => Some(format!("ended early: {why}")),
        (None, Some(pair)) if pair.n == 0 => Some("no pair was measured".to_owned()),
        _ => None,
    }
}

/// The jobs in so many rounds, where jobs with an equal `group` are measured in turns: every second round goes
/// backwards, so that a slow drift of the machine's speed affects all of them alike.
pub fn in_rounds(
    jobs: &[MeasureJob],
    group: impl Fn(&MeasureJob) -> usize,
    rounds: u32,
) -> Vec<MeasureJob> {
    let mut plan = Vec::new();
    for group in jobs.chunk_by(|a, b| group(a) == group(b)) {
        for round in 0..rounds {
            let mut turn = group.to_vec();
            if !round.is_multiple_of(2) {
                turn.reverse();
            }
            plan.append(&mut turn);
        }
    }
    let all = plan.len();
    for (number, job) in (1..).zip(&mut plan) {
        job.label = format!("{number} of {all}, {}", job.label);
    }
    plan
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::config::{Preset, RunConfig};

    #[test]
    fn rounds_run_forwards_and_backwards() {
        let job = |subject| MeasureJob {
            label: "tiny".to_owned(),
            subject,
            device: "cpu".to_owned(),
            work: EngineTask::run("v1", &RunConfig::preset(Preset::Tiny), 2),
            fresh: true,
            must_finish: true,
        };
        let plan = in_rounds(&[4, 5, 6, 7].map(job), |job| job.subject / 7, 3);
        let order: Vec<usize> = plan.iter().map(|job| job.subject).collect();
        assert_eq!(order, [4, 5, 6, 6, 5, 4, 4, 5, 6, 7, 7, 7]);
        assert_eq!(plan[3].label, "4 of 12, tiny");
    }
}
