//! `perflings bench`: versions of presets on devices, each a finite run of a fresh engine, as a table, JSON or
//! Markdown; against an earlier result, knob by knob, or over sizes. Figures come from the runs and from nowhere else.

pub mod args;
mod tables;

use std::path::Path;

use anyhow::Result;

use super::meter::ProgressMeter;
use crate::config::{Preset, RunConfig};
use crate::course::config_file::set;
use crate::files;
use crate::measure::cell::Subject;
use crate::measure::plan::{MeasureEvent, PlanProgress};
use crate::measure::report::{self, BenchReport, MemoryFit};
use crate::measure::runner::{EngineTask, Runner, engine_command};
use crate::measure::{ablation, gate};
use crate::out::{self, Exit, notice, result, usage};
use crate::protocol::Event;
use args::{BenchArgs, Extent};

/// The smallest ratio of speeds that passes where `--min-ratio` names none.
const MIN_RATIO: f64 = 0.95;

pub fn bench(args: &BenchArgs) -> Result<Exit> {
    args.check()?;
    if let Some(path) = &args.output {
        check_output(path)?;
    }
    let baseline = args
        .baseline
        .as_deref()
        .map(BenchReport::read)
        .transpose()?;
    let (bench, subjects) = match (args.ablate, &args.sweep) {
        (Some(extent), _) => ("ablation", comparisons(args, extent)?),
        (None, Some(_)) => ("sweep", versions(args)?),
        (None, None) => ("versions", versions(args)?),
    };
    let mut runner = Runner::new(engine_command(args.engine.as_deref())?, None)?;
    let meter = ProgressMeter::begin();
    let mut tell = |now: PlanProgress<'_>| {
        match now.news {
            MeasureEvent::Begins { number, of } => {
                meter.at(number - 1, of);
                meter.doing(&now.job.label);
            }
            MeasureEvent::Line(line, _) => {
                if let Event::Log(log) = &line.event
                    && log.level == "error"
                {
                    out::log("error", &log.text);
                }
            }
            _ => {}
        }
        Ok(())
    };
    let mut report = report::measure(&mut runner, &subjects, args.rounds(), &mut tell)?;
    drop(meter);
    report.bench = bench.to_owned();
    if args.ablate.is_none() {
        (report.steps, report.rounds) = (Some(args.steps), Some(args.rounds()));
    }
    report.axis = args.sweep.as_ref().map(|sweep| sweep.axis);
    report.fits = report.axis.map(|axis| {
        let versions = report.cells.chunk_by(|a, b| a.same_version(b));
        versions.map(|cells| MemoryFit::of(axis, cells)).collect()
    });
    let min_ratio = args.min_ratio.unwrap_or(MIN_RATIO);
    report.gate = baseline.map(|then| gate::gate(&report.cells, &then.cells, min_ratio));
    for missing in &report.missing {
        notice(&missing.text());
    }
    let text = match (args.json, args.markdown) {
        (true, _) => serde_json::to_string(&report)?,
        (_, true) => tables::sheet(&report, args.baseline.as_deref()).markdown(),
        _ => tables::sheet(&report, args.baseline.as_deref()).text(),
    };
    match &args.output {
        None if args.json => out::json_line(&text)?,
        None => result(text.trim_end())?,
        Some(path) => out::file(path, format!("{}\n", text.trim_end()).as_bytes())?,
    }
    if let Some(gate) = report.gate.as_ref().filter(|gate| !gate.passed()) {
        notice(&gate.summary());
    }
    Ok(report.exit())
}

/// What an ablation compares: pairs of combinations of knobs, on each device at each preset.
fn comparisons(args: &BenchArgs, extent: Extent) -> Result<Vec<Subject>> {
    let mut subjects = Vec::new();
    for device in args.devices() {
        for preset in args.presets() {
            let base = changed(args, RunConfig::preset(preset))?;
            ablation::check_base(&base).map_err(|path| {
                usage(format!(
                    "--set {path}: --ablate gives this key its values; leave out one of {}",
                    args.sets.join(", ")
                ))
            })?;
            for contrast in ablation::contrasts(extent == Extent::Full) {
                let [a, b] = [contrast.a, contrast.b].map(ablation::name);
                let with_a = ablation::combine(&base, contrast.a)?;
                let with_b = ablation::combine(&base, contrast.b)?;
                subjects.push(Subject {
                    group: 0,
                    device: device.clone(),
                    preset,
                    version: format!("{b} against {a}"),
                    value: None,
                    contrast: Some(contrast),
                    work: EngineTask::pair((&a, &with_a), (&b, &with_b), args.pairs),
                });
            }
        }
    }
    Ok(subjects)
}

/// Every device × preset × version, and with a sweep × value: versions of one preset and device are measured in turns,
/// or the values of one version.
fn versions(args: &BenchArgs) -> Result<Vec<Subject>> {
    let mut subjects = Vec::new();
    let mut group = 0;
    let mut add = |group, device: &str, preset: Preset, version: &str, value: Option<u64>| {
        let mut config = RunConfig::version(version)
            .ok_or_else(|| usage(format!("unknown version `{version}`")))?;
        config.set_preset(preset);
        let mut config = changed(args, config)?;
        if let (Some(sweep), Some(value)) = (&args.sweep, value) {
            set(&mut config, &format!("{}={value}", sweep.path()))
                .map_err(|why| usage(format!("--sweep: {why}")))?;
            config = possible(config)?;
        }
        subjects.push(Subject {
            group,
            device: device.to_owned(),
            preset,
            version: version.to_owned(),
            value,
            contrast: None,
            work: EngineTask::run(version, &config, args.steps),
        });
        anyhow::Ok(())
    };
    for device in args.devices() {
        for preset in args.presets() {
            for version in args.versions() {
                let Some(sweep) = &args.sweep else {
                    add(group, &device, preset, &version, None)?;
                    continue;
                };
                for value in &sweep.values {
                    add(group, &device, preset, &version, Some(*value))?;
                }
                group += 1;
            }
            group += 1;
        }
    }
    Ok(subjects)
}

/// The configuration with what `--set` changes.
fn changed(args: &BenchArgs, mut config: RunConfig) -> Result<RunConfig> {
    for assignment in &args.sets {
        set(&mut config, assignment).map_err(|why| usage(format!("--set {assignment}: {why}")))?;
    }
    possible(config)
}

fn possible(config: RunConfig) -> Result<RunConfig> {
    match config.problems().first() {
        Some(problem) => Err(usage(problem.what.clone())),
        None => Ok(config),
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
