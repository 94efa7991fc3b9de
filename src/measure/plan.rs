//! A plan: jobs in the order in which they are measured. If a job fails, the other jobs of its subject are skipped.

use anyhow::Result;

use super::runner::{EngineTask, Runner, TaskResult};
use crate::out::{Exit, ExitError};
use protocol::StreamLine;

/// One measurement on one device.
#[derive(Clone, Debug)]
pub struct MeasureJob {
    /// The name of the job in messages.
    pub label: String,
    /// The number of the subject. When one job of a subject fails, its other jobs are skipped.
    pub subject: usize,
    pub device: String,
    pub work: EngineTask,
    /// The job begins with a fresh engine, so that its times and its memory include opening the device and compiling.
    pub fresh: bool,
    /// The job counts as failed if it ends before its steps are done, or without a pair.
    pub must_finish: bool,
}

/// An event while a plan is carried out.
#[derive(Clone, Copy, Debug)]
pub struct PlanProgress<'a> {
    /// The index of the job in the plan.
    pub index: usize,
    pub job: &'a MeasureJob,
    pub event: MeasureEvent<'a>,
}

/// An event of one job.
#[derive(Clone, Copy, Debug)]
pub enum MeasureEvent<'a> {
    /// The job begins. It is job `number` of `of`, without the jobs that are skipped.
    Begins {
        number: usize,
        of: usize,
    },
    /// A line of the stream, parsed and as text.
    Line(&'a StreamLine, &'a str),
    Measured(&'a TaskResult),
    Failed(&'a ExitError),
}

/// A subject that could not be measured.
#[derive(Clone, Debug)]
pub struct SubjectFailure {
    pub subject: usize,
    pub device: String,
    /// True if this machine does not have the device, so that none of the device's subjects can be measured.
    pub no_device: bool,
    pub stop: ExitError,
}

/// The result of a plan.
#[derive(Clone, Debug, Default)]
pub struct PlanResult {
    /// The subject and result of each measured job, in the order of measuring.
    pub measured: Vec<(usize, TaskResult)>,
    pub failures: Vec<SubjectFailure>,
    pub interrupted: bool,
}

impl PlanResult {
    /// Returns true if the remaining jobs of this subject are skipped because of a failure.
    pub fn skips(&self, subject: usize, device: &str) -> bool {
        self.failures.iter().any(|failure| {
            failure.subject == subject || failure.no_device && failure.device == device
        })
    }
}

/// Carries out a plan and calls `on_progress` with each event.
///
/// # Errors
/// Returns an error of `on_progress`, and an error if the engine never sent its greeting.
pub fn measure(
    runner: &mut Runner,
    jobs: &[MeasureJob],
    on_progress: &mut dyn FnMut(PlanProgress<'_>) -> Result<()>,
) -> Result<PlanResult> {
    let mut outcome = PlanResult::default();
    let mut number = 0;
    // The devices on which a job was measured.
    let mut present_devices = Vec::new();
    for (index, job) in jobs.iter().enumerate() {
        if outcome.skips(job.subject, &job.device) {
            continue;
        }
        let mut report = |event: MeasureEvent<'_>| on_progress(PlanProgress { index, job, event });
        number += 1;
        let later = jobs[index + 1..]
            .iter()
            .filter(|job| !outcome.skips(job.subject, &job.device));
        let of = number + later.count();
        report(MeasureEvent::Begins { number, of })?;
        if job.fresh {
            runner.restart();
        }
        let measured = runner.measure(&job.device, &job.work, |line, text| {
            report(MeasureEvent::Line(line, text))
        });
        let stop = match measured {
            Ok(measured) if measured.interrupted => {
                outcome.interrupted = true;
                break;
            }
            Ok(measured) => match unfinished(&measured) {
                Some(text) if job.must_finish => ExitError::new(Exit::Failed, text),
                _ => {
                    report(MeasureEvent::Measured(&measured))?;
                    present_devices.push(&job.device);
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
        report(MeasureEvent::Failed(&stop))?;
        let was_present = present_devices.contains(&&job.device);
        outcome.failures.push(SubjectFailure {
            subject: job.subject,
            device: job.device.clone(),
            no_device: stop.exit == Exit::NoDevice && !was_present,
            stop,
        });
    }
    runner.restart();
    Ok(outcome)
}

/// Returns the reason why a task is not complete. `None` if it is complete, or if it was interrupted before its summary.
fn unfinished(measured: &TaskResult) -> Option<String> {
    let finished = measured.finished.as_ref()?;
    match (&finished.ended, &measured.pair) {
        (Some(why), _) => Some(format!("ended early: {why}")),
        (None, Some(pair)) if pair.n == 0 => Some("no pair was measured".to_owned()),
        _ => None,
    }
}

/// Returns a plan that repeats the jobs in `rounds` rounds. Jobs with an equal `group` are measured in turns. Every second round runs backwards,
/// so that a slow drift of the machine's speed affects all jobs equally.
pub fn in_rounds(
    jobs: &[MeasureJob],
    group: impl Fn(&MeasureJob) -> usize,
    rounds: u32,
) -> Vec<MeasureJob> {
    let mut plan = Vec::new();
    for in_turns in jobs.chunk_by(|job, next| group(job) == group(next)) {
        for round in 0..rounds {
            let mut turn = in_turns.to_vec();
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
        // Subjects 4 to 6 are one group, and 7 is another one.
        let group = |job: &MeasureJob| usize::from(job.subject == 7);

        let plan = in_rounds(&[4, 5, 6, 7].map(job), group, 3);

        let order: Vec<usize> = plan.iter().map(|job| job.subject).collect();
        assert_eq!(order, [4, 5, 6, 6, 5, 4, 4, 5, 6, 7, 7, 7]);
        assert_eq!(plan[3].label, "4 of 12, tiny");
    }
}
