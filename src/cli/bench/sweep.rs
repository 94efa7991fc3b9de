//! Throughput and memory over batch sizes or context lengths, and the polynomial that memory follows.

use anyhow::Result;
use serde::Serialize;

use super::args::{Axis, Sweep};
use super::figures::{Cell, FORMAT, Report};
use super::matrix::{intro, not_measured};
use super::sheet::{Part, Sheet, Table, absent, digits, interval};
use super::target::Target;
use super::{BenchArgs, plan};
use crate::measure::machine::bytes;
use crate::out::{Exit, notice, usage};
use crate::profile::fit::{Fit, polynomial};

#[derive(Serialize)]
struct Written<'a> {
    #[serde(flatten)]
    report: &'a Report,
    axis: &'static str,
    fits: Vec<Line>,
}

/// The fit of one version's peak memory, in bytes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Line {
    pub device: String,
    pub preset: String,
    pub version: String,
    pub fit: Option<Fit>,
    pub reason: Option<String>,
}

pub fn sweep(args: &BenchArgs, target: Target) -> Result<Exit> {
    let Some(Sweep { axis, values }) = &args.sweep else {
        return Err(usage("--sweep has no values"));
    };
    let jobs = plan::swept(args, *axis, values)?;
    let configs: Vec<_> = jobs.iter().map(|job| vec![&job.config]).collect();
    let mut rig = super::rig(args, &args.devices(), &configs)?;
    let rounds = args.rounds();
    let measured = rig.measure(&jobs, args.steps, rounds)?;
    let exit = measured.exit();
    let report = Report {
        bench: "sweep".to_owned(),
        format: FORMAT,
        machine: rig.machine.take().unwrap_or_default(),
        steps: args.steps,
        rounds,
        cells: measured.cells,
        missing: measured.missing,
        interrupted: measured.interrupted,
    };
    for missing in &report.missing {
        notice(&missing.text());
    }
    let fits = lines_of(&report).map(|cells| line(*axis, cells)).collect();
    let written = Written {
        report: &report,
        axis: axis.name(),
        fits,
    };
    target.write(&written, &sheet(*axis, &report))?;
    Ok(exit)
}

fn lines_of(report: &Report) -> impl Iterator<Item = &[Cell]> {
    report
        .cells
        .chunk_by(|a, b| (&a.select, &a.preset, &a.version) == (&b.select, &b.preset, &b.version))
}

fn line(axis: Axis, cells: &[Cell]) -> Line {
    let points: Vec<(f64, f64)> = cells
        .iter()
        .filter_map(|cell| Some((cell.value? as f64, cell.memory.peak? as f64)))
        .collect();
    let unmeasured = cells.iter().find_map(|cell| cell.memory.reason.clone());
    let (fit, reason) = match (polynomial(&points, axis.degree()), unmeasured) {
        (Ok(fit), _) => (Some(fit), None),
        (Err(why), Some(unmeasured)) => (None, Some(format!("{why} ({})", absent(&unmeasured)))),
        (Err(why), None) => (None, Some(why)),
    };
    Line {
        device: cells[0].select.clone(),
        preset: cells[0].preset.clone(),
        version: cells[0].version.clone(),
        fit,
        reason,
    }
}

fn sheet(axis: Axis, report: &Report) -> Sheet {
    let mut parts: Vec<Part> = lines_of(report).map(|cells| part(axis, cells)).collect();
    parts.extend(not_measured(report));
    Sheet {
        title: format!("Speed and memory over {}", axis.name()),
        intro: intro(report),
        parts,
    }
}

fn part(axis: Axis, cells: &[Cell]) -> Part {
    let first = &cells[0];
    let other = match axis {
        Axis::Batch => format!("context {}", first.context),
        Axis::Context => format!("batch {}", first.batch),
    };
    let mut table = Table::new(&[
        axis.name(),
        "peak memory",
        "samples/s [IQR]",
        "tokens/s",
        "step ms",
        "n",
        "state",
    ]);
    for cell in cells {
        let value = cell.value.map(|v| v.to_string()).unwrap_or_default();
        let peak = match (cell.memory.peak, &cell.memory.reason) {
            (Some(peak), _) => bytes(peak),
            (None, reason) => absent(reason.as_deref().unwrap_or("no reason given")),
        };
        let mut row = vec![value, peak];
        match &cell.speed {
            Some(s) => {
                let batch = 1e3 * cell.batch as f64;
                row.extend([
                    interval(
                        s.samples_per_s,
                        batch / s.step_ms.p75,
                        batch / s.step_ms.p25,
                    ),
                    digits(s.tokens_per_s),
                    digits(s.step_ms.median),
                    s.step_ms.n.to_string(),
                    s.state.to_string(),
                ]);
            }
            None => row.push(absent(
                cell.speed_reason.as_deref().unwrap_or("no reason given"),
            )),
        }
        table.push(row);
    }
    Part {
        title: format!(
            "{} {} on {}: {}, {other}",
            first.preset, first.version, first.select, first.device.name
        ),
        tables: vec![table],
        remarks: vec![said(axis, &line(axis, cells))],
    }
}

/// The fit as a formula in bytes, with its residual.
fn said(axis: Axis, line: &Line) -> String {
    let Some(fit) = &line.fit else {
        return format!(
            "peak memory: {}",
            line.reason.as_deref().unwrap_or("no fit")
        );
    };
    let mut formula = signed_bytes(fit.coefficients[0]);
    for (power, c) in fit.coefficients.iter().enumerate().skip(1) {
        let sign = if *c < 0.0 { '-' } else { '+' };
        let square = if power == 2 { "²" } else { "" };
        formula = format!(
            "{formula} {sign} {}·{}{square}",
            signed_bytes(c.abs()),
            axis.name()
        );
    }
    format!(
        "peak memory = {formula}; residual {} rms, {} at most, n = {}",
        signed_bytes(fit.residual),
        signed_bytes(fit.largest),
        fit.n
    )
}

fn signed_bytes(x: f64) -> String {
    let sign = if x < 0.0 { "-" } else { "" };
    let a = x.abs();
    if a < 1024.0 {
        return format!("{sign}{} B", digits(a));
    }
    // Saturates at the largest u64.
    format!("{sign}{}", bytes(a.round() as u64))
}

#[cfg(test)]
mod tests {
    use super::super::figures::tests::{job, run};
    use super::*;

    fn cell(value: u64, peak: Option<u64>) -> Cell {
        let mut cell = Cell::of(&job("v1"), &[run(20.0, 25)]).expect("a run");
        cell.value = Some(value);
        cell.memory.peak = peak;
        cell.memory.reason = peak.is_none().then(|| "no counter".to_owned());
        cell
    }

    #[test]
    fn memory_over_batch_is_a_line() {
        let mib = 1024 * 1024;
        let cells: Vec<Cell> = [4, 8, 16]
            .map(|b| cell(b, Some((10 + 2 * b) * mib)))
            .to_vec();
        let part = part(Axis::Batch, &cells);
        let says =
            "peak memory = 10.0 MiB + 2.0 MiB·batch; residual 0.000 B rms, 0.000 B at most, n = 3";
        assert_eq!(part.remarks, [says]);
    }

    #[test]
    fn without_memory_or_points_there_is_no_fit() {
        let few = [cell(4, Some(1)), cell(8, Some(2))];
        assert!(
            part(Axis::Batch, &few).remarks[0].contains("needs at least 3 points, and there are 2")
        );
        let none = [4, 8, 16].map(|b| cell(b, None));
        let remark = &part(Axis::Batch, &none).remarks[0];
        assert!(
            remark.contains("there are 0 (not measured: no counter)"),
            "{remark}"
        );
    }
}
