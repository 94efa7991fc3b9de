//! The reports of a bench for people: which figures stand in which table, and what they say together.

use std::path::Path;

use serde::Serialize;

use super::args::Axis;
use super::sheet::{Part, Sheet, Table, absent, digits, interval};
use crate::config::Knob;
use crate::measure::ablation::{Ablation, Effect, Group, Place, rank};
use crate::measure::gate::{Gate, Judgement};
use crate::measure::report::{Cell, Kernels, Machine, Missing, Report, Speed};
use crate::profile::fit::{Fit, polynomial};
use crate::protocol::Verdict;
use crate::units::bytes;

/// Versions side by side: every device × preset × version.
pub fn versions(report: &Report) -> Sheet {
    let groups = report
        .cells
        .chunk_by(|a, b| (&a.select, &a.preset) == (&b.select, &b.preset));
    sheet("Versions compared", report, groups.map(version_part))
}

fn sheet(title: &str, report: &Report, parts: impl Iterator<Item = Part>) -> Sheet {
    let turns = match report.rounds {
        1 => "one run".to_owned(),
        n => format!("{n} runs"),
    };
    let how = format!(
        "{} steps a run, {turns} of each in turns, an engine of its own for each run.",
        report.steps
    );
    Sheet {
        title: title.to_owned(),
        intro: intro(how, &report.machine, report.interrupted),
        parts: parts.chain(not_measured(&report.missing)).collect(),
    }
}

/// How, where and when.
fn intro(how: String, m: &Machine, interrupted: bool) -> Vec<String> {
    let mut lines = vec![how];
    if !m.version.is_empty() {
        lines.push(format!(
            "perflings {} on {}, {} threads, {}.",
            m.version, m.os, m.cores, m.date
        ));
    }
    if interrupted {
        lines.push("Interrupted: what follows was measured before.".to_owned());
    }
    lines
}

/// What was asked for and has no figures.
fn not_measured(missing: &[Missing]) -> Option<Part> {
    (!missing.is_empty()).then(|| Part {
        title: "Not measured".to_owned(),
        tables: Vec::new(),
        remarks: missing.iter().map(Missing::text).collect(),
    })
}

fn why(reason: &Option<String>) -> &str {
    reason.as_deref().unwrap_or("no reason given")
}

fn speed(cell: &Cell) -> Result<&Speed, &str> {
    cell.speed.as_ref().ok_or_else(|| why(&cell.speed_reason))
}

fn kernels(cell: &Cell) -> Result<&Kernels, &str> {
    let kernels = cell.kernels.as_ref();
    kernels.ok_or_else(|| why(&cell.kernels_reason))
}

/// Samples a second with those of the slow and of the fast quartile of its steps.
fn samples(cell: &Cell, speed: &Speed) -> String {
    let batch = 1e3 * cell.batch as f64;
    let ms = &speed.step_ms;
    interval(speed.samples_per_s, batch / ms.p75, batch / ms.p25)
}

/// One preset on one device.
fn version_part(cells: &[Cell]) -> Part {
    let first = &cells[0];
    let mut remarks = Vec::new();
    for cell in cells {
        for lint in &cell.lints {
            let why = lint.why.trim_end_matches('.');
            let (version, name, next) = (&cell.version, &lint.name, &lint.next);
            remarks.push(format!("{version}: {name}: {why}. Next: {next}"));
        }
    }
    if remarks.is_empty() {
        remarks.push("lints: none".to_owned());
    }
    let (device, kind) = (&first.device.name, &first.device.kind);
    Part {
        title: format!(
            "{} on {}: {device} ({kind}), batch {}, context {}",
            first.preset, first.select, first.batch, first.context
        ),
        tables: version_tables(cells).into(),
        remarks,
    }
}

fn version_tables(cells: &[Cell]) -> [Table; 4] {
    let first = &cells[0];
    let against = format!("against {}", first.version);
    #[rustfmt::skip] // A head reads best on one line.
    let mut tables = [
        Table::new(["version", "samples/s [IQR]", "step ms [IQR]", "p95", "n", "state", &against]),
        Table::new(["version", "first point", "later", "gradients", "launches", "kinds", "device ms", "coverage"]),
        Table::new(["version", "weights", "gradients", "moments", "the rest at peak", "peak memory"]),
        Table::new(["version", "ms", "calls", "longest operations", "computed by"]),
    ];
    for cell in cells {
        let name = cell.version.as_str();
        let timed = speed(cell).map(|s| {
            let ms = &s.step_ms;
            let ratio = match &first.speed {
                _ if cell.version == first.version => "1".to_owned(),
                Some(f) => interval(
                    f.step_ms.median / ms.median,
                    f.low_ms / s.high_ms,
                    f.high_ms / s.low_ms,
                ),
                None => absent("the first has no speed"),
            };
            vec![
                samples(cell, s),
                interval(ms.median, ms.p25, ms.p75),
                digits(ms.p95),
                ms.n.to_string(),
                s.state.to_string(),
                ratio,
            ]
        });
        tables[0].push(name, timed);
        let seconds =
            |s: Option<f64>, why: &str| s.map_or_else(|| absent(why), |s| format!("{s:.2} s"));
        let mut work = vec![
            seconds(cell.first_point_s, "no loss point came"),
            seconds(cell.later_points_s, "one round only"),
            format!("{:.1} %", cell.grad.params_pct),
        ];
        match kernels(cell) {
            Ok(k) => work.extend([
                k.launches_per_step.to_string(),
                k.unique.to_string(),
                digits(k.device_ms),
                format!("{:.0} %", 100.0 * k.coverage),
            ]),
            Err(why) => work.push(absent(why)),
        }
        tables[1].push(name, Ok(work));
        tables[2].push(name, memory(cell));
        match kernels(cell) {
            Err(why) => tables[3].push(name, Err(why)),
            Ok(k) => {
                for row in &k.top {
                    let (scope, kernel) = (row.scope.clone(), row.kernel.clone());
                    let cells = vec![digits(row.ms), row.calls.to_string(), scope, kernel];
                    tables[3].push(name, Ok(cells));
                }
            }
        }
    }
    tables
}

fn memory(cell: &Cell) -> Result<Vec<String>, &str> {
    let m = &cell.memory;
    if m.weights == 0 {
        return Err(m.reason.as_deref().unwrap_or("no step was profiled"));
    }
    let mut row = [m.weights, m.gradients, m.moments].map(bytes).to_vec();
    match m.peak {
        Some(peak) => {
            let kept = m.weights + m.gradients + m.moments;
            row.extend([bytes(peak.saturating_sub(kept)), bytes(peak)]);
        }
        None => row.push(absent(why(&m.reason))),
    }
    Ok(row)
}

/// The polynomial that one version's peak memory follows, in bytes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fitted {
    device: String,
    preset: String,
    version: String,
    fit: Option<Fit>,
    reason: Option<String>,
}

/// The cells of each version in turn.
fn by_version(cells: &[Cell]) -> impl Iterator<Item = &[Cell]> {
    cells.chunk_by(|a, b| (&a.select, &a.preset, &a.version) == (&b.select, &b.preset, &b.version))
}

/// The fit of each version.
pub fn fits(axis: Axis, cells: &[Cell]) -> Vec<Fitted> {
    by_version(cells).map(|cells| fitted(axis, cells)).collect()
}

fn fitted(axis: Axis, cells: &[Cell]) -> Fitted {
    let points: Vec<(f64, f64)> = cells
        .iter()
        .filter_map(|cell| Some((cell.value? as f64, cell.memory.peak? as f64)))
        .collect();
    let unmeasured = cells.iter().find_map(|cell| cell.memory.reason.as_ref());
    let (fit, reason) = match (polynomial(&points, axis.degree()), unmeasured) {
        (Ok(fit), _) => (Some(fit), None),
        (Err(why), Some(reason)) => (None, Some(format!("{why} ({})", absent(reason)))),
        (Err(why), None) => (None, Some(why)),
    };
    Fitted {
        device: cells[0].select.clone(),
        preset: cells[0].preset.clone(),
        version: cells[0].version.clone(),
        fit,
        reason,
    }
}

/// Throughput and memory over batch sizes or context lengths.
pub fn sweep(axis: Axis, report: &Report, fits: &[Fitted]) -> Sheet {
    let parts = by_version(&report.cells).zip(fits);
    sheet(
        &format!("Speed and memory over {}", axis.name()),
        report,
        parts.map(|(cells, fit)| sweep_part(axis, cells, fit)),
    )
}

fn sweep_part(axis: Axis, cells: &[Cell], fit: &Fitted) -> Part {
    let first = &cells[0];
    let other = match axis {
        Axis::Batch => format!("context {}", first.context),
        Axis::Context => format!("batch {}", first.batch),
    };
    #[rustfmt::skip] // A head reads best on one line.
    let mut table = Table::new([axis.name(), "peak memory", "samples/s [IQR]", "tokens/s", "step ms", "n", "state"]);
    for cell in cells {
        let value = cell.value.map(|v| v.to_string()).unwrap_or_default();
        let peak = cell.memory.peak.map(bytes);
        let mut row = vec![peak.unwrap_or_else(|| absent(why(&cell.memory.reason)))];
        match speed(cell) {
            Ok(s) => row.extend([
                samples(cell, s),
                digits(s.tokens_per_s),
                digits(s.step_ms.median),
                s.step_ms.n.to_string(),
                s.state.to_string(),
            ]),
            Err(why) => row.push(absent(why)),
        }
        table.push(&value, Ok(row));
    }
    Part {
        title: format!(
            "{} {} on {}: {}, {other}",
            first.preset, first.version, first.select, first.device.name
        ),
        tables: vec![table],
        remarks: vec![formula(axis, fit)],
    }
}

/// The fit as a formula in bytes, with its residual.
fn formula(axis: Axis, fitted: &Fitted) -> String {
    let Some(fit) = &fitted.fit else {
        return format!("peak memory: {}", why(&fitted.reason));
    };
    let mut formula = signed_bytes(fit.coefficients[0]);
    for (power, c) in fit.coefficients.iter().enumerate().skip(1) {
        let sign = if *c < 0.0 { '-' } else { '+' };
        let square = if power == 2 { "²" } else { "" };
        let c = signed_bytes(c.abs());
        formula += &format!(" {sign} {c}·{}{square}", axis.name());
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
    match x.abs() {
        a if a < 1024.0 => format!("{sign}{} B", digits(a)),
        // Saturates at the largest u64.
        a => format!("{sign}{}", bytes(a.round() as u64)),
    }
}

/// Each cell against its baseline.
pub fn gate(gate: &Gate, baseline: &Path) -> Part {
    let mut table = Table::new(["device", "preset", "version", "verdict", "speed now / then"]);
    for cell in &gate.cells {
        let verdict = match cell.judgement {
            Judgement::Pass => "pass",
            Judgement::Slower => "SLOWER",
            Judgement::NotComparable => "not comparable",
        };
        let figure = match (cell.ratio, cell.low, cell.high) {
            (Some(ratio), Some(low), Some(high)) => interval(ratio, low, high),
            _ => cell.reason.clone().unwrap_or_default(),
        };
        let (preset, version) = (cell.preset.clone(), cell.version.clone());
        let row = vec![preset, version, verdict.to_owned(), figure];
        table.push(&cell.device, Ok(row));
    }
    let (baseline, least) = (baseline.display(), digits(gate.min_ratio));
    Part {
        title: format!("Against {baseline}: at least {least}"),
        tables: vec![table],
        remarks: vec![gate.summary()],
    }
}

/// What each knob is worth.
pub fn ablation(ablation: &Ablation) -> Sheet {
    let how = "Time without a knob over time with it, in pairs, with a 95 % interval; above 1 the knob helps.";
    let parts = ablation.groups.iter().map(ablation_part);
    Sheet {
        title: "What each knob is worth".to_owned(),
        intro: intro(how.to_owned(), &ablation.machine, ablation.interrupted),
        parts: parts.chain(not_measured(&ablation.missing)).collect(),
    }
}

fn ablation_part(group: &Group) -> Part {
    let at = |place: Place| -> Vec<Effect> {
        let here = group.effects.iter().filter(|e| e.place == place);
        rank(here.cloned().collect())
    };
    let ends: Vec<Effect> = [Place::None, Place::All].into_iter().flat_map(at).collect();
    let tables = [
        ("everything, and nothing", ends),
        ("turned on, the others plain", at(Place::FromPlain)),
        ("turned on last, the others on", at(Place::FromFull)),
        ("mean over all combinations", group.means.clone()),
        ("combination", at(Place::Combination)),
    ];
    Part {
        title: format!("{} on {}: {}", group.preset, group.select, group.device),
        tables: tables
            .into_iter()
            .filter(|(_, effects)| !effects.is_empty())
            .map(|(head, effects)| effect_table(head, &effects))
            .collect(),
        remarks: ablation_remarks(group),
    }
}

fn effect_table(head: &str, effects: &[Effect]) -> Table {
    let mut table = Table::new(["rank", head, "worth [95 %]", "n", "verdict"]);
    for (at, effect) in effects.iter().enumerate() {
        let control = matches!(effect.place, Place::None | Place::All);
        let rank = match control || effect.verdict == Verdict::Unclear {
            true => "-".to_owned(),
            false => (at + 1).to_string(),
        };
        let row = vec![
            effect.name.clone(),
            interval(effect.ratio, effect.low, effect.high),
            effect.n.to_string(),
            effect.verdict.to_string(),
        ];
        table.push(&rank, Ok(row));
    }
    table
}

/// What the figures say together.
fn ablation_remarks(group: &Group) -> Vec<String> {
    let mut remarks = Vec::new();
    let effects = || group.effects.iter();
    let alone = effects().filter(|e| e.place == Place::FromPlain);
    let alone: Vec<f64> = alone.map(|e| e.ratio).collect();
    let all = effects().find(|e| e.place == Place::All);
    if let Some(all) = all.filter(|_| alone.len() == Knob::with_fast_version().count()) {
        remarks.push(format!(
            "the product of the single effects is {}, all together are worth {}",
            digits(alone.iter().product()),
            digits(all.ratio)
        ));
    }
    let unclear: Vec<String> = effects()
        .filter(|e| e.verdict == Verdict::Unclear)
        .filter_map(|e| match e.place {
            Place::FromPlain => Some(format!("{} from plain", e.name)),
            Place::FromFull => Some(format!("{} turned on last", e.name)),
            _ => None,
        })
        .collect();
    if !unclear.is_empty() {
        remarks.push(format!(
            "unclear, so not ranked: {}; more --pairs may tell",
            unclear.join(", ")
        ));
    }
    remarks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::ablation::tests::effects;
    use crate::measure::report::tests::cell;

    #[test]
    fn a_report_has_every_figure_or_its_reason() {
        let report = Report {
            steps: 30,
            rounds: 2,
            cells: vec![
                cell("v1", &[40.0, 41.0], 25),
                cell("v3", &[20.0], 25),
                cell("v4", &[20.0], 0),
            ],
            ..Report::default()
        };
        let sheet = versions(&report);
        for text in [sheet.text(), sheet.markdown()] {
            for says in [
                "tiny on cpu: Chip (cpu), batch 8, context 64",
                "400.0 [396.0, 404.0]",
                "20.00 [19.80, 20.20]",
                "2.025 [",
                "not measured: no synchronised, unprofiled step",
                "not measured: the engine did not say",
                "90 %",
                "lints: none",
            ] {
                assert!(text.contains(says), "`{says}` is missing in\n{text}");
            }
        }
    }

    fn swept(value: u64, peak: Option<u64>) -> Cell {
        let mut cell = cell("v1", &[20.0], 25);
        cell.value = Some(value);
        cell.memory.peak = peak;
        cell.memory.reason = peak.is_none().then(|| "no counter".to_owned());
        cell
    }

    fn batch_remark(cells: &[Cell]) -> String {
        formula(Axis::Batch, &fitted(Axis::Batch, cells))
    }

    #[test]
    fn memory_over_batch_is_a_line_or_says_what_is_missing() {
        let mib = 1024 * 1024;
        assert_eq!(
            batch_remark(&[4, 8, 16].map(|b| swept(b, Some((10 + 2 * b) * mib)))),
            "peak memory = 10.0 MiB + 2.0 MiB·batch; residual 0.000 B rms, 0.000 B at most, n = 3"
        );
        let few = batch_remark(&[swept(4, Some(1)), swept(8, Some(2))]);
        assert!(
            few.contains("needs at least 3 points, and there are 2"),
            "{few}"
        );
        let none = batch_remark(&[4, 8, 16].map(|b| swept(b, None)));
        assert!(
            none.contains("there are 0 (not measured: no counter)"),
            "{none}"
        );
    }

    #[test]
    fn knobs_are_ranked_and_unclear_ones_are_named() {
        let group = Group {
            select: "cpu".to_owned(),
            device: "Chip".to_owned(),
            preset: "tiny".to_owned(),
            effects: effects(|at| match at {
                // The last knob of the table, turned on alone.
                8 => (1.8, Verdict::Unclear),
                at => (1.0 + at as f64 / 10.0, Verdict::Faster),
            }),
            means: Vec::new(),
        };
        let report = Ablation {
            groups: vec![group],
            ..Ablation::default()
        };
        let text = ablation(&report).text();
        for says in [
            "tiny on cpu: Chip",
            "1     model.matmul = own",
            "-     train.optimizer = fused",
            // Unclear effects come last, whatever their size.
            "1.800 [1.000, 3.000]  30  unclear\n\n",
            "unclear, so not ranked: train.optimizer = fused from plain; more",
            "all together are worth 1.100",
        ] {
            assert!(text.contains(says), "`{says}` is missing in\n{text}");
        }
    }
}
