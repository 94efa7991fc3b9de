//! `perflings bench`: versions of presets on devices, each a finite run of a fresh engine, as a table, JSON or
//! Markdown; against an earlier result, knob by knob, or over sizes. Figures come from the runs and from nowhere else.

pub mod args;
mod sheet;
mod tables;

use std::path::Path;

use anyhow::{Context, Result};
use serde::Serialize;

use crate::config::file::set;
use crate::config::{Preset, RunConfig};
use crate::measure::gate::{self, Gate, MIN_RATIO};
use crate::measure::plan::{News, Progress};
use crate::measure::report::{Missing, Report, Subject, exit_of};
use crate::measure::runner::{Runner, engine_command};
use crate::measure::{ablation, report};
use crate::out::{Exit, notice, progress, result, usage};
use crate::protocol::Event;
use args::{Axis, BenchArgs, Extent};
use sheet::{Sheet, digits, interval};
use tables::Fitted;

pub fn bench(args: &BenchArgs) -> Result<Exit> {
    args.check()?;
    if let Some(path) = &args.output {
        check_output(path)?;
    }
    match args.ablate {
        Some(extent) => ablate(args, extent == Extent::Full),
        None => versions(args),
    }
}

/// A report, and what is said of it.
#[derive(Serialize)]
struct Written<'a> {
    #[serde(flatten)]
    report: &'a Report,
    #[serde(skip_serializing_if = "Option::is_none")]
    gate: Option<&'a Gate>,
    #[serde(skip_serializing_if = "Option::is_none")]
    axis: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fits: Option<&'a [Fitted]>,
}

/// Versions side by side, or over the values of a sweep.
fn versions(args: &BenchArgs) -> Result<Exit> {
    let baseline = args.baseline.as_deref().map(gate::read).transpose()?;
    let subjects = subjects(args)?;
    let mut runner = Runner::new(engine_command(args.engine.as_deref())?, None)?;
    let (steps, rounds) = (args.steps, args.rounds());
    let axis = args.sweep.as_ref().map(|sweep| sweep.axis);
    let report = Report {
        bench: axis.map_or("versions", |_| "sweep").to_owned(),
        ..report::measure(&mut runner, &subjects, steps, rounds, &mut say)?
    };
    let fits = axis.map(|axis| tables::fits(axis, &report.cells));
    let mut sheet = match (axis, &fits) {
        (Some(axis), Some(fits)) => tables::sweep(axis, &report, fits),
        _ => tables::versions(&report),
    };
    let min_ratio = args.min_ratio.unwrap_or(MIN_RATIO);
    let gate = baseline.map(|then| gate::gate(&report, &then, min_ratio));
    if let (Some(gate), Some(path)) = (&gate, &args.baseline) {
        sheet.parts.push(tables::gate(gate, path));
    }
    let written = Written {
        report: &report,
        gate: gate.as_ref(),
        axis: axis.map(Axis::name),
        fits: fits.as_deref(),
    };
    let any = !report.cells.is_empty();
    let exit = finish(any, report.interrupted, &report.missing);
    write(args, &written, &sheet)?;
    match gate.filter(|gate| !gate.passed()) {
        None => Ok(exit),
        Some(gate) => {
            notice(&gate.summary());
            Ok(if exit == Exit::Ok { Exit::Failed } else { exit })
        }
    }
}

/// What each knob with a faster version is worth.
fn ablate(args: &BenchArgs, full: bool) -> Result<Exit> {
    let mut bases: Vec<(Preset, RunConfig)> = Vec::new();
    for preset in args.presets() {
        let base = changed(args, RunConfig::preset(preset))?;
        ablation::check_base(&base).map_err(|path| {
            usage(format!(
                "--set {path}: --ablate gives this key its values; leave one of {} out",
                args.sets.join(", ")
            ))
        })?;
        bases.push((preset, base));
    }
    let mut runner = Runner::new(engine_command(args.engine.as_deref())?, None)?;
    let devices = args.devices();
    let ablation = ablation::measure(&mut runner, &devices, &bases, full, args.pairs, &mut say)?;
    let any = !ablation.groups.is_empty();
    let exit = finish(any, ablation.interrupted, &ablation.missing);
    write(args, &ablation, &tables::ablation(&ablation))?;
    Ok(exit)
}

/// Every device × preset × version, and with a sweep × value: versions of one preset and device are measured in turns,
/// or the values of one version.
fn subjects(args: &BenchArgs) -> Result<Vec<Subject>> {
    let mut subjects = Vec::new();
    let mut group = 0;
    for device in args.devices() {
        for preset in args.presets() {
            for version in args.versions() {
                let mut config = RunConfig::version(&version)
                    .ok_or_else(|| usage(format!("unknown version `{version}`")))?;
                config.set_preset(preset);
                let subject = Subject {
                    group,
                    device: device.clone(),
                    preset,
                    version,
                    value: None,
                    config: changed(args, config)?,
                };
                let Some(sweep) = &args.sweep else {
                    subjects.push(subject);
                    continue;
                };
                for &value in &sweep.values {
                    let mut config = subject.config.clone();
                    set(&mut config, &format!("{}={value}", sweep.axis.path()))
                        .map_err(|why| usage(format!("--sweep: {why}")))?;
                    subjects.push(Subject {
                        value: Some(value),
                        config: possible(config)?,
                        ..subject.clone()
                    });
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

/// Says on stderr what was measured.
fn say(now: Progress<'_>) -> Result<()> {
    let label = &now.job.label;
    match now.news {
        News::Measured(measured) => {
            let finished = measured.finished.as_ref();
            let speed = finished.and_then(|f| Some((f.samples_per_s?, f.step_ms?.median)));
            let said = match (&measured.pair, speed) {
                (Some(pair), _) => {
                    let worth = interval(pair.ratio, pair.low, pair.high);
                    format!("{worth} {}", pair.verdict)
                }
                (None, Some((speed, ms))) => {
                    format!("{} samples/s, step {} ms", digits(speed), digits(ms))
                }
                (None, None) => "no step was timed".to_owned(),
            };
            progress(&format!("{label}: {said}"));
        }
        News::Failed(stop) => progress(&format!("{label}: {}", stop.text)),
        News::Event(Event::Log(log)) if log.level == "error" => {
            progress(&format!("error: {}", log.text));
        }
        News::Begins { .. } | News::Event(_) => {}
    }
    Ok(())
}

/// Names what is missing on stderr, and gives the exit code.
fn finish(any: bool, interrupted: bool, missing: &[Missing]) -> Exit {
    for missing in missing {
        notice(&missing.text());
    }
    exit_of(interrupted, any, missing)
}

/// Refuses, before anything is measured, a file that cannot be written.
fn check_output(path: &Path) -> Result<()> {
    if path.is_dir() {
        let shown = path.display();
        return Err(usage(format!("--output: {shown} is a folder; name a file")));
    }
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    let folder = folder.unwrap_or(Path::new("."));
    if path.exists() {
        let opened = std::fs::OpenOptions::new().append(true).open(path);
        opened.map_err(|error| usage(format!("--output {}: {error}", path.display())))?;
    } else {
        tempfile::tempfile_in(folder).map_err(|error| {
            let folder = folder.display();
            usage(format!("--output: cannot write in {folder}: {error}"))
        })?;
    }
    Ok(())
}

/// Writes the result: `data` as JSON, or `sheet` as a table or Markdown.
fn write(args: &BenchArgs, data: &impl Serialize, sheet: &Sheet) -> Result<()> {
    let text = match (args.json, args.markdown) {
        (true, _) => serde_json::to_string(data)?,
        (_, true) => sheet.markdown(),
        _ => sheet.text(),
    };
    let text = text.trim_end();
    match &args.output {
        None => result(text)?,
        Some(path) => {
            let shown = path.display();
            std::fs::write(path, format!("{text}\n"))
                .with_context(|| format!("Failed to write {shown}"))?;
            notice(&format!("wrote {shown}"));
        }
    }
    Ok(())
}
