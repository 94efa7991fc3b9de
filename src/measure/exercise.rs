//! The runs of a config exercise, for the command line and for the screen: first a run for every value of its sweep, then pairs for the
//! questions about times.
//!
//! ```text
//! sweep batch = 1, 2, 4    ─▶  run of 1, run of 2, run of 4
//! check speed of 4         ─▶  pairs of 1 and 4
//! rank three changes       ─▶  pairs of the exercise's configuration and each change
//! ```

use anyhow::{Result, anyhow};

use super::plan::{MeasureEvent, MeasureJob, PlanProgress, measure};
use super::runner::{EngineTask, Runner};
use crate::course::exercise::{ConfigMetric, Configs, apply};
use crate::course::sweep::{SweepPoint, SweepRuns};
use crate::out::{Exit, usage};
use protocol::config::RunConfig;
use protocol::{Finished, Pair};

/// The number of steps of a run that only shows that its configuration works.
const SHORT: u64 = 2;

/// The summary and the comparison at the end of a job, or the reason why the job was refused.
type JobResult = Result<(Finished, Pair), String>;
/// A function that adds the result of a job to the runs.
type AddResult<'a> = Box<dyn Fn(&mut SweepRuns, JobResult) + 'a>;

/// Makes every run of the exercise and calls `on_progress` with each event and the runs so far. Without `timed` each run is only long enough to
/// show that its configuration works. Returns `None` if interrupted.
///
/// # Errors
/// Returns an error if a device is missing, if the engine broke, or if the first value of the sweep was refused.
pub fn measure_exercise(
    runner: &mut Runner,
    configs: &Configs,
    device: &str,
    timed: bool,
    mut on_progress: impl FnMut(PlanProgress<'_>, &SweepRuns),
) -> Result<Option<SweepRuns>> {
    let (adders, jobs): (Vec<_>, Vec<_>) = plan(configs, device, timed)?.into_iter().unzip();
    let mut runs = SweepRuns::default();
    let outcome = measure(runner, &jobs, &mut |progress| {
        let add_result: &AddResult<'_> = &adders[progress.index];
        match progress.event {
            MeasureEvent::Measured(measured) => {
                let finished = measured.finished.clone().unwrap_or_default();
                let pair = measured.pair.clone().unwrap_or_default();
                add_result(&mut runs, Ok((finished, pair)));
            }
            // A refusal of the engine is a result. A missing device and a broken engine are errors. So is a refusal of the first value,
            // because all others are compared with it.
            MeasureEvent::Failed(stop) if stop.exit != Exit::Usage => {
                return Err(stop.clone().into());
            }
            MeasureEvent::Failed(stop) if runs.points.is_empty() && configs.sweep.is_some() => {
                return Err(anyhow!(stop.text.clone()));
            }
            MeasureEvent::Failed(stop) => add_result(&mut runs, Err(stop.text.clone())),
            MeasureEvent::Begins { .. } | MeasureEvent::Line(..) => {}
        }
        on_progress(progress, &runs);
        Ok(())
    })?;
    Ok((!outcome.interrupted).then_some(runs))
}

/// Returns the jobs of the exercise, each with the function that adds its result to the runs.
fn plan<'a>(
    configs: &'a Configs,
    device: &str,
    timed: bool,
) -> Result<Vec<(AddResult<'a>, MeasureJob)>> {
    let steps = if timed { configs.steps } else { SHORT };
    let points = configs.points();
    let key = configs.sweep.as_ref().map_or("", |sweep| &sweep.key);
    let job = |label: String, subject, work, fresh| MeasureJob {
        label,
        subject,
        device: device.to_owned(),
        work,
        fresh,
        must_finish: false,
    };
    let run = |config: &RunConfig| EngineTask::run("custom", config, steps);
    let pair = |a: &RunConfig, b: &RunConfig| EngineTask::pair(("custom", a), ("custom", b), 0);
    let mut plan: Vec<(AddResult<'a>, MeasureJob)> = Vec::new();
    for (subject, (with, value)) in points.iter().copied().enumerate() {
        let config = config_at(configs, with, value)?;
        // Each run has a fresh engine, because the memory pools of an earlier run would count as its own.
        let with_set = with.map_or_else(String::new, |set| format!(", {set}"));
        let label = format!("{key} = {value}{with_set}");
        let job = job(label, subject, run(&config), true);
        let add_point = move |runs: &mut SweepRuns, result: JobResult| {
            runs.points.push(SweepPoint {
                with: with.map(str::to_owned),
                value: value.to_owned(),
                run: result.map(|(finished, _)| finished),
            });
        };
        plan.push((Box::new(add_point), job));
    }
    for check in &configs.checks {
        let value = match &check.metric {
            ConfigMetric::Speed { of } if timed => of,
            _ => continue,
        };
        // The pairs have the subject of the run with this value, so that they are skipped if the value was refused.
        let subject = points.iter().position(|(_, other)| other == value);
        let Some((subject, (with, first))) = subject.zip(points.first()) else {
            continue;
        };
        let work = pair(
            &config_at(configs, *with, first)?,
            &config_at(configs, None, value)?,
        );
        let job = job(format!("pairs: {value}"), subject, work, false);
        let add_speed = move |runs: &mut SweepRuns, result: JobResult| {
            let pair = result.map(|(_, pair)| pair);
            runs.speeds.push((value.clone(), pair));
        };
        plan.push((Box::new(add_speed), job));
    }
    for (index, change) in configs.rank.iter().enumerate() {
        let changed = change
            .set
            .iter()
            .try_fold(configs.config.clone(), |config, set| apply(&config, set))
            .map_err(usage)?;
        let work = if timed {
            pair(&configs.config, &changed)
        } else {
            run(&changed)
        };
        let label = format!("pairs: {}", change.label);
        let job = job(label, points.len() + index, work, false);
        let add_change = |runs: &mut SweepRuns, result: JobResult| {
            runs.changes.push(result.map(|(_, pair)| pair));
        };
        plan.push((Box::new(add_change), job));
    }
    Ok(plan)
}

/// Returns the exercise's configuration at a value of its sweep, with the setting `with`.
fn config_at(configs: &Configs, with: Option<&str>, value: &str) -> Result<RunConfig> {
    let mut config = configs.config.clone();
    if let Some(sweep) = &configs.sweep {
        config = apply(&config, &format!("{}={value}", sweep.key)).map_err(usage)?;
    }
    match with {
        Some(set) => apply(&config, set).map_err(usage),
        None => Ok(config),
    }
}
