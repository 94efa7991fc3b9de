//! `perflings bench`: measures versions of presets on devices, each in runs of a fresh engine, or in pairs with the first version. The result
//! is printed as a table, as JSON or as Markdown, and can be compared with an earlier one.

pub(super) mod args;
pub(super) mod tables;

use std::path::Path;

use anyhow::Result;

use super::meter::ProgressMeter;
use crate::files;
use crate::measure::cell::Subject;
use crate::measure::plan::{MeasureEvent, PlanProgress};
use crate::measure::report::{self, BenchReport};
use crate::measure::runner::{EngineTask, Runner, engine_command};
use crate::out::{self, Exit, notice, result, usage};
use args::BenchArgs;
use protocol::Event;
use protocol::config::{Knob, Preset, RunConfig};

/// The smallest ratio of speeds that passes, unless `--min-ratio` names another.
const MIN_RATIO: f64 = 0.95;

pub(super) fn bench(args: &BenchArgs) -> Result<Exit> {
    args.check()?;
    if let Some(path) = &args.output {
        check_output(path)?;
    }
    let baseline = args
        .baseline
        .as_deref()
        .map(BenchReport::read)
        .transpose()?;
    let subjects = subjects(args)?;
    let mut runner = Runner::new(engine_command(args.engine.as_deref())?, None)?;
    let meter = ProgressMeter::begin();
    let mut on_progress = |plan: PlanProgress<'_>| {
        if let MeasureEvent::Line(line, _) = plan.event
            && let Event::Log(log) = &line.event
            && log.level == "error"
        {
            out::log(&line.event);
        }
        meter.on_plan(&plan);
        Ok(())
    };
    let rounds = if args.pairs.is_some() { 1 } else { args.rounds };
    let mut report = report::measure(&mut runner, &subjects, rounds, &mut on_progress)?;
    drop(meter);
    if args.pairs.is_some() {
        report.bench = "pairs".to_owned();
    } else {
        report.bench = "versions".to_owned();
        report.steps = Some(args.steps);
        report.rounds = Some(rounds);
    }
    if let Some(baseline) = baseline {
        report.compare(&baseline, args.min_ratio.unwrap_or(MIN_RATIO));
    }
    for missing in &report.missing {
        notice(&missing.text());
    }
    let text = if args.json {
        serde_json::to_string(&report)?
    } else if args.markdown {
        tables::sheet(&report).markdown()
    } else {
        tables::sheet(&report).text()
    };
    match &args.output {
        None if args.json => out::json_line(&text)?,
        None => result(text.trim_end())?,
        Some(path) => out::file(path, format!("{}\n", text.trim_end()).as_bytes())?,
    }
    if let Some((false, text)) = report.compared() {
        notice(&text);
    }
    Ok(report.exit())
}

/// Returns every version of every preset on every device. The versions of one preset on one device form a group. A group is measured in
/// turns, or in pairs with its first version.
fn subjects(args: &BenchArgs) -> Result<Vec<Subject>> {
    let mut subjects = Vec::new();
    let mut group = 0;
    for device in &args.devices {
        for &preset in &args.presets {
            let rows = args.rows(preset)?;
            for (name, config) in &rows {
                subjects.push(Subject {
                    group,
                    device: device.clone(),
                    preset,
                    version: name.clone(),
                    work: engine_task(args, preset, &rows[0], (name, config))?,
                });
            }
            group += 1;
        }
    }
    Ok(subjects)
}

/// Returns what the engine does for a row: a run, or pairs with the first row.
fn engine_task(
    args: &BenchArgs,
    preset: Preset,
    (first, base): &(String, RunConfig),
    (name, config): (&str, &RunConfig),
) -> Result<EngineTask> {
    let Some(pairs) = args.pairs else {
        return Ok(EngineTask::run(name, config, args.steps));
    };
    let changes_work = |knob: &&Knob| knob.changes_work() && !knob.changes_tokens();
    let mut differences = base.differences(config).into_iter().filter_map(Knob::known);
    match differences.find(changes_work) {
        Some(knob) => Err(usage(format!(
            "--pairs: {first} and {name} do different work at {preset}, because {} differs; \
             leave one out, or measure without --pairs",
            knob.path
        ))),
        None => Ok(EngineTask::pair((first, base), (name, config), pairs)),
    }
}

/// Refuses an output file that cannot be written. This is checked before anything is measured.
fn check_output(path: &Path) -> Result<()> {
    let target = files::target(path)
        .map_err(|error| usage(format!("--output: {} {error}", path.display())))?;
    let folder = files::folder(&target);
    tempfile::tempfile_in(folder).map_err(|error| {
        let shown = folder.display();
        usage(format!("--output: cannot write in {shown}: {error}"))
    })?;
    Ok(())
}
