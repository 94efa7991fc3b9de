//! Versions side by side: the report of every device × preset × version, and the gate against an earlier one.

use anyhow::Result;
use serde::Serialize;

use super::figures::{Cell, FORMAT, Report};
use super::gate::{self, Gate, MIN_RATIO};
use super::sheet::{Part, Sheet, Table, absent, digits, interval};
use super::target::Target;
use super::{BenchArgs, plan};
use crate::measure::machine::bytes;
use crate::out::{Exit, notice};

#[derive(Serialize)]
struct Written<'a> {
    #[serde(flatten)]
    report: &'a Report,
    #[serde(skip_serializing_if = "Option::is_none")]
    gate: Option<&'a Gate>,
}

pub fn matrix(args: &BenchArgs, target: Target) -> Result<Exit> {
    let baseline = args.baseline.as_deref().map(gate::read).transpose()?;
    let jobs = plan::matrix(args)?;
    let configs: Vec<_> = jobs.iter().map(|job| vec![&job.config]).collect();
    let mut rig = super::rig(args, &args.devices(), &configs)?;
    let rounds = args.rounds();
    let measured = rig.measure(&jobs, args.steps, rounds)?;
    let mut exit = measured.exit();
    let report = Report {
        bench: "versions".to_owned(),
        format: FORMAT,
        machine: rig.machine.take().unwrap_or_default(),
        steps: args.steps,
        rounds,
        cells: measured.cells,
        missing: measured.missing,
        interrupted: measured.interrupted,
    };
    let mut sheet = sheet(&report);
    let gate = baseline.map(|then| gate::gate(&report, &then, args.min_ratio.unwrap_or(MIN_RATIO)));
    if let (Some(gate), Some(path)) = (&gate, &args.baseline) {
        sheet.parts.push(gate.part(&path.display().to_string()));
        if !gate.passed() {
            notice(&gate.summary());
            if exit == Exit::Ok {
                exit = Exit::Failed;
            }
        }
    }
    for missing in &report.missing {
        notice(&missing.text());
    }
    let written = Written {
        report: &report,
        gate: gate.as_ref(),
    };
    target.write(&written, &sheet)?;
    Ok(exit)
}

/// The report for people.
pub fn sheet(report: &Report) -> Sheet {
    let mut parts: Vec<Part> = report
        .cells
        .chunk_by(|a, b| (&a.select, &a.preset) == (&b.select, &b.preset))
        .map(group)
        .collect();
    parts.extend(not_measured(report));
    Sheet {
        title: "Versions compared".to_owned(),
        intro: intro(report),
        parts,
    }
}

/// Where, when and how.
pub fn intro(report: &Report) -> Vec<String> {
    let m = &report.machine;
    let turns = match report.rounds {
        1 => "one run".to_owned(),
        n => format!("{n} runs"),
    };
    let mut lines = vec![format!(
        "{} steps a run, {turns} of each in turns, an engine of its own for each run.",
        report.steps
    )];
    if !m.version.is_empty() {
        lines.push(format!(
            "perflings {} on {}, {} threads, {}.",
            m.version, m.os, m.cores, m.date
        ));
    }
    if report.interrupted {
        lines.push("Interrupted: what follows was measured before.".to_owned());
    }
    lines
}

/// What was asked for and has no figures.
pub fn not_measured(report: &Report) -> Option<Part> {
    (!report.missing.is_empty()).then(|| Part {
        title: "Not measured".to_owned(),
        tables: Vec::new(),
        remarks: report
            .missing
            .iter()
            .map(super::missing::Missing::text)
            .collect(),
    })
}

/// One preset on one device.
fn group(cells: &[Cell]) -> Part {
    let first = &cells[0];
    let mut remarks = Vec::new();
    for cell in cells {
        for lint in &cell.lints {
            let why = lint.why.trim_end_matches('.');
            remarks.push(format!(
                "{}: {}: {why}. Next: {}",
                cell.version, lint.name, lint.next
            ));
        }
    }
    if remarks.is_empty() {
        remarks.push("lints: none".to_owned());
    }
    Part {
        title: format!(
            "{} on {}: {} ({}), batch {}, context {}",
            first.preset,
            first.select,
            first.device.name,
            first.device.kind,
            first.batch,
            first.context
        ),
        tables: vec![speed(cells), work(cells), memory(cells), top(cells)],
        remarks,
    }
}

fn speed(cells: &[Cell]) -> Table {
    let first = &cells[0];
    let against = format!("against {}", first.version);
    let mut table = Table::new(&[
        "version",
        "samples/s [IQR]",
        "step ms [IQR]",
        "p95",
        "n",
        "state",
        &against,
    ]);
    for cell in cells {
        let Some(s) = &cell.speed else {
            let reason = cell.speed_reason.as_deref().unwrap_or("no reason given");
            table.push([cell.version.clone(), absent(reason)]);
            continue;
        };
        let ms = &s.step_ms;
        let batch = 1e3 * cell.batch as f64;
        let ratio = match &first.speed {
            _ if cell.version == first.version => "1".to_owned(),
            Some(f) => interval(
                f.step_ms.median / ms.median,
                f.low_ms / s.high_ms,
                f.high_ms / s.low_ms,
            ),
            None => absent("the first has no speed"),
        };
        table.push([
            cell.version.clone(),
            interval(s.samples_per_s, batch / ms.p75, batch / ms.p25),
            interval(ms.median, ms.p25, ms.p75),
            digits(ms.p95),
            ms.n.to_string(),
            s.state.to_string(),
            ratio,
        ]);
    }
    table
}

fn work(cells: &[Cell]) -> Table {
    let mut table = Table::new(&[
        "version",
        "first point",
        "later",
        "gradients",
        "launches",
        "kinds",
        "device ms",
        "coverage",
    ]);
    for cell in cells {
        let seconds =
            |s: Option<f64>, why: &str| s.map_or_else(|| absent(why), |s| format!("{s:.2} s"));
        let mut row = vec![
            cell.version.clone(),
            seconds(cell.first_point_s, "no loss point came"),
            seconds(cell.later_points_s, "one round only"),
            format!("{:.1} %", cell.grad.params_pct),
        ];
        match &cell.kernels {
            Some(k) => row.extend([
                k.launches_per_step.to_string(),
                k.unique.to_string(),
                digits(k.device_ms),
                format!("{:.0} %", 100.0 * k.coverage),
            ]),
            None => row.push(absent(
                cell.kernels_reason.as_deref().unwrap_or("no reason given"),
            )),
        }
        table.push(row);
    }
    table
}

fn memory(cells: &[Cell]) -> Table {
    let mut table = Table::new(&[
        "version",
        "weights",
        "gradients",
        "moments",
        "the rest at peak",
        "peak memory",
    ]);
    for cell in cells {
        let m = &cell.memory;
        if m.weights == 0 {
            table.push([
                cell.version.clone(),
                absent(m.reason.as_deref().unwrap_or("no step was profiled")),
            ]);
            continue;
        }
        let kept = m.weights + m.gradients + m.moments;
        let mut row = vec![
            cell.version.clone(),
            bytes(m.weights),
            bytes(m.gradients),
            bytes(m.moments),
        ];
        match m.peak {
            Some(peak) => row.extend([bytes(peak.saturating_sub(kept)), bytes(peak)]),
            None => row.push(absent(m.reason.as_deref().unwrap_or("no reason given"))),
        }
        table.push(row);
    }
    table
}

fn top(cells: &[Cell]) -> Table {
    let mut table = Table::new(&[
        "version",
        "ms",
        "calls",
        "longest operations",
        "computed by",
    ]);
    for cell in cells {
        let Some(k) = &cell.kernels else {
            table.push([
                cell.version.clone(),
                absent(cell.kernels_reason.as_deref().unwrap_or("no reason given")),
            ]);
            continue;
        };
        for row in &k.top {
            table.push([
                cell.version.clone(),
                digits(row.ms),
                row.calls.to_string(),
                row.scope.clone(),
                row.kernel.clone(),
            ]);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::super::figures::tests::{job, run};
    use super::super::missing::Missing;
    use super::*;

    #[test]
    fn a_report_has_every_figure_or_its_reason() {
        let cells = [
            Cell::of(&job("v1"), &[run(40.0, 25), run(41.0, 25)]),
            Cell::of(&job("v3"), &[run(20.0, 25)]),
            Cell::of(&job("v4"), &[run(20.0, 0)]),
        ];
        let report = Report {
            steps: 30,
            rounds: 2,
            cells: cells.into_iter().flatten().collect(),
            missing: vec![Missing::device("gpu", "no adapter".to_owned())],
            ..Report::default()
        };
        let sheet = sheet(&report);
        for text in [sheet.text(), sheet.markdown()] {
            for says in [
                "tiny on cpu: Chip (cpu), batch 8, context 64",
                "400.0 [396.0, 404.0]",
                "20.00 [19.80, 20.20]",
                "2.025 [",
                "not measured: no synchronised, unprofiled step",
                "not measured: the engine did not say",
                "90 %",
                "gpu is skipped: no adapter",
                "lints: none",
            ] {
                assert!(text.contains(says), "`{says}` is missing in\n{text}");
            }
        }
    }
}
