//! `perflings bench`: versions of presets on devices, each a finite run of a fresh engine or measured in pairs with the
//! first one, as a table, JSON or Markdown; and against an earlier result. Figures come from the runs and from nowhere else.

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

/// The smallest ratio of speeds that passes where `--min-ratio` names none.
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
    let mut tell = |now: PlanProgress<'_>| {
        match now.news {
            MeasureEvent::Line(line, _) if matches!(&line.event, Event::Log(log) if log.level == "error") =>
            {
                out::log(&line.event);
            }
            _ => meter.begins(&now),
        }
        Ok(())
    };
    let rounds = if args.pairs.is_some() { 1 } else { args.rounds };
    let mut report = report::measure(&mut runner, &subjects, rounds, &mut tell)?;
    drop(meter);
    match args.pairs {
        Some(_) => report.bench = "pairs".to_owned(),
        None => {
            report.bench = "versions".to_owned();
            (report.steps, report.rounds) = (Some(args.steps), Some(rounds));
        }
    }
    if let Some(then) = baseline {
        report.compare(&then, args.min_ratio.unwrap_or(MIN_RATIO));
    }
    for missing in &report.missing {
        notice(&missing.text());
    }
    let text = match (args.json, args.markdown) {
        (true, _) => serde_json::to_string(&report)?,
        (_, true) => tables::sheet(&report).markdown(),
        _ => tables::sheet(&report).text(),
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

/// Every device × preset × version. Versions of one preset and device are measured in turns, or in pairs with the first.
fn subjects(args: &BenchArgs) -> Result<Vec<Subject>> {
    let mut subjects = Vec::new();
    let of_device = |device| args.presets.iter().map(move |preset| (device, *preset));
    let groups = args.devices.iter().flat_map(of_device);
    for (group, (device, preset)) in groups.enumerate() {
        let rows = args.rows(preset)?;
        for (name, config) in &rows {
            subjects.push(Subject {
                group,
                device: device.clone(),
                preset,
                version: name.clone(),
                work: work(args, preset, &rows[0], (name, config))?,
            });
        }
    }
    Ok(subjects)
}

/// A run of the row, or pairs of it with the first one.
fn work(
    args: &BenchArgs,
    preset: Preset,
    (first, base): &(String, RunConfig),
    (name, config): (&str, &RunConfig),
) -> Result<EngineTask> {
    let Some(pairs) = args.pairs else {
        return Ok(EngineTask::run(name, config, args.steps));
    };
    let differs = base.differences(config).into_iter();
    let other_work = |knob: &&Knob| knob.changes_work() && !knob.changes_tokens();
    match differs.filter_map(Knob::known).find(other_work) {
        Some(knob) => Err(usage(format!(
            "--pairs: {first} and {name} do different work at {preset}, because {} differs; leave one out, or measure without --pairs",
            knob.path
        ))),
        None => Ok(EngineTask::pair((first, base), (name, config), pairs)),
    }
}

/// Refuses, before anything is measured, a file that cannot be written.
fn check_output(path: &Path) -> Result<()> {
    let target = files::target(path);
    let target = target.map_err(|error| usage(format!("--output: {} {error}", path.display())))?;
    let folder = files::folder(&target);
    tempfile::tempfile_in(folder).map_err(|error| {
        let folder = folder.display();
        usage(format!("--output: cannot write in {folder}: {error}"))
    })?;
    Ok(())
}
