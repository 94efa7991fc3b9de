//! The report of a bench for people: which figures stand in which table, and what they say together.

use std::path::Path;

use crate::config::Knob;
use crate::export::sheet::{Sheet, SheetBlock, SheetTable, absent, digits, interval, worth};
use crate::measure::ablation::{ChangeEffect, EffectPlace, PresetEffects, rank};
use crate::measure::cell::{BenchCell, CellMemory, CellSpeed};
use crate::measure::gate::{Gate, GateVerdict, GatedCell};
use crate::measure::report::{BenchReport, MemoryFit, MissingCell, SweepAxis};
use crate::protocol::{KernelSummary, Spread, Verdict};
use crate::units::bytes;

/// The whole report; `baseline` is the file that it was compared with.
pub fn sheet(report: &BenchReport, baseline: Option<&Path>) -> Sheet {
    let title = match report.axis {
        Some(axis) => format!("Speed and memory over {}", axis.name()),
        None if report.bench == "ablation" => "What each knob is worth".to_owned(),
        None => "Versions compared".to_owned(),
    };
    let how = match (report.steps, report.rounds) {
        (Some(steps), Some(rounds)) => format!(
            "{steps} steps a run, {} of each in turns, an engine of its own for each run.",
            match rounds {
                1 => "one run".to_owned(),
                n => format!("{n} runs"),
            }
        ),
        _ => "Time without a knob over time with it, in pairs, with a 95 % interval; above 1 the knob helps."
            .to_owned(),
    };
    let mut blocks = vec![SheetBlock::Title(title), SheetBlock::Intro(how)];
    let m = &report.machine;
    if !m.version.is_empty() {
        blocks.push(SheetBlock::Intro(format!(
            "perflings {} on {}, {} threads, {}.",
            m.version, m.os, m.cores, m.date
        )));
    }
    if report.interrupted {
        let text = "Interrupted: the following was measured before that.";
        blocks.push(SheetBlock::Intro(text.to_owned()));
    }
    if let (Some(axis), Some(fits)) = (report.axis, &report.fits) {
        let versions = report.cells.chunk_by(|a, b| a.same_version(b));
        for (cells, fit) in versions.zip(fits) {
            sweep(&mut blocks, axis, cells, fit);
        }
    } else {
        let same = |a: &BenchCell, b: &BenchCell| (&a.select, &a.preset) == (&b.select, &b.preset);
        let groups = report.cells.chunk_by(same);
        groups.for_each(|cells| versions(&mut blocks, cells));
    }
    let groups = report.groups.iter();
    groups.for_each(|group| ablation(&mut blocks, group));
    if let (Some(result), Some(path)) = (&report.gate, baseline) {
        gate(&mut blocks, result, path);
    }
    if !report.missing.is_empty() {
        blocks.push(SheetBlock::Heading("Not measured".to_owned()));
        blocks.extend(
            report
                .missing
                .iter()
                .map(MissingCell::text)
                .map(SheetBlock::Remark),
        );
    }
    Sheet(blocks)
}

fn why(reason: &Option<String>) -> &str {
    reason.as_deref().unwrap_or("no reason given")
}

fn speed(cell: &BenchCell) -> Result<&CellSpeed, &str> {
    cell.speed.as_ref().ok_or_else(|| why(&cell.speed_reason))
}

fn kernels(cell: &BenchCell) -> Result<&KernelSummary, &str> {
    let kernels = cell.kernels.as_ref();
    kernels.ok_or_else(|| why(&cell.kernels_reason))
}

/// Samples a second with those of the slow and of the fast quartile of its steps.
fn samples(cell: &BenchCell) -> Result<String, String> {
    let (batch, speed) = (1e3 * cell.batch as f64, speed(cell)?);
    let ms = &speed.step_ms;
    Ok(interval(
        speed.samples_per_s,
        batch / ms.p75,
        batch / ms.p25,
    ))
}

/// The versions of one preset on one device.
fn versions(blocks: &mut Vec<SheetBlock>, cells: &[BenchCell]) {
    let first = &cells[0];
    let (device, kind) = (&first.device.name, &first.device.kind);
    blocks.push(SheetBlock::Heading(format!(
        "{} on {}: {device} ({kind}), batch {}, context {}",
        first.preset, first.select, first.batch, first.context
    )));
    let version = |cell: &&BenchCell| Ok(cell.version.clone());
    let seconds = |s: Option<f64>, why: &str| match s {
        Some(s) => format!("{s:.2} s"),
        None => absent(why),
    };
    let peak = |c: &BenchCell| c.memory.peak.ok_or(why(&c.memory.reason).to_owned());
    let longest = cells.iter().flat_map(|cell| match kernels(cell) {
        Ok(kernels) => kernels.top.iter().map(|row| (cell, Ok(row))).collect(),
        Err(why) => vec![(cell, Err(why))],
    });
    #[rustfmt::skip] // One line for each column.
    let tables = [
        SheetTable::of(cells, &[
            ("version", &version),
            ("samples/s [IQR]", &|c| samples(c)),
            ("step ms [IQR]", &|c| quartiles(&speed(c)?.step_ms)),
            ("p95", &|c| Ok(digits(speed(c)?.step_ms.p95))),
            ("n", &|c| Ok(speed(c)?.step_ms.n.to_string())),
            ("state", &|c| Ok(speed(c)?.state.to_string())),
            (&format!("against {}", first.version), &|c| against(first, c)),
        ]),
        SheetTable::of(cells, &[
            ("version", &version),
            ("first point", &|c| Ok(seconds(c.first_point_s, "no loss was reported"))),
            ("later", &|c| Ok(seconds(c.later_points_s, "one round only"))),
            ("gradients", &|c| Ok(format!("{:.1} %", c.grad.params_pct))),
            ("launches", &|c| Ok(kernels(c)?.launches_per_step.to_string())),
            ("kinds", &|c| Ok(kernels(c)?.unique.to_string())),
            ("device ms", &|c| Ok(digits(kernels(c)?.device_ms))),
            ("coverage", &|c| Ok(format!("{:.0} %", 100.0 * kernels(c)?.coverage))),
        ]),
        SheetTable::of(cells, &[
            ("version", &version),
            ("weights", &|c| weights(&c.memory)),
            ("gradients", &|c| Ok(bytes(c.memory.gradients))),
            ("moments", &|c| Ok(bytes(c.memory.moments))),
            ("the rest at peak", &|c| Ok(bytes(peak(c)?.saturating_sub(c.memory.kept())))),
            ("peak memory", &|c| peak(c).map(bytes)),
        ]),
        SheetTable::of(longest, &[
            ("version", &|(cell, _)| Ok(cell.version.clone())),
            ("ms", &|(_, row)| Ok(digits((*row)?.ms))),
            ("calls", &|(_, row)| Ok((*row)?.calls.to_string())),
            ("longest operations", &|(_, row)| Ok((*row)?.scope.clone())),
            ("computed by", &|(_, row)| Ok((*row)?.kernel.clone())),
        ]),
    ];
    blocks.extend(tables.map(SheetBlock::Table));
    let mut lints = Vec::new();
    for cell in cells {
        for lint in &cell.lints {
            let (version, why) = (&cell.version, lint.why.trim_end_matches('.'));
            lints.push(format!(
                "{version}: {}: {why}. Next: {}",
                lint.name, lint.next
            ));
        }
    }
    if lints.is_empty() {
        lints.push("lints: none".to_owned());
    }
    blocks.extend(lints.into_iter().map(SheetBlock::Remark));
}

fn quartiles(ms: &Spread) -> Result<String, String> {
    Ok(interval(ms.median, ms.p25, ms.p75))
}

fn weights(memory: &CellMemory) -> Result<String, String> {
    match (memory.weights, &memory.reason) {
        (0, Some(reason)) => Err(reason.clone()),
        (0, None) => Err("no step was profiled".to_owned()),
        (weights, _) => Ok(bytes(weights)),
    }
}

/// How much faster than the first version.
fn against(first: &BenchCell, cell: &BenchCell) -> Result<String, String> {
    if cell.version == first.version {
        return Ok("1".to_owned());
    }
    let now = speed(cell)?;
    let then = speed(first).map_err(|_| "the first has no speed")?;
    let ratio = then.step_ms.median / now.step_ms.median;
    Ok(interval(
        ratio,
        then.low_ms / now.high_ms,
        then.high_ms / now.low_ms,
    ))
}

/// One version over batch sizes or context lengths.
fn sweep(blocks: &mut Vec<SheetBlock>, axis: SweepAxis, cells: &[BenchCell], fit: &MemoryFit) {
    let first = &cells[0];
    let other = match axis {
        SweepAxis::Batch => format!("context {}", first.context),
        SweepAxis::Context => format!("batch {}", first.batch),
    };
    let peak = |cell: &BenchCell| match cell.memory.peak {
        Some(peak) => bytes(peak),
        None => absent(why(&cell.memory.reason)),
    };
    #[rustfmt::skip] // One line for each column.
    let table = SheetTable::of(cells, &[
        (axis.name(), &|c| Ok(c.value.unwrap_or_default().to_string())),
        ("peak memory", &|c| Ok(peak(c))),
        ("samples/s [IQR]", &|c| samples(c)),
        ("tokens/s", &|c| Ok(digits(speed(c)?.tokens_per_s))),
        ("step ms", &|c| Ok(digits(speed(c)?.step_ms.median))),
        ("n", &|c| Ok(speed(c)?.step_ms.n.to_string())),
        ("state", &|c| Ok(speed(c)?.state.to_string())),
    ]);
    blocks.extend([
        SheetBlock::Heading(format!(
            "{} {} on {}: {}, {other}",
            first.preset, first.version, first.select, first.device.name
        )),
        SheetBlock::Table(table),
        SheetBlock::Remark(formula(axis, fit)),
    ]);
}

/// The fit as a formula in bytes, with its residual.
fn formula(axis: SweepAxis, fitted: &MemoryFit) -> String {
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
fn gate(blocks: &mut Vec<SheetBlock>, gate: &Gate, baseline: &Path) {
    let verdict = |judgement| match judgement {
        GateVerdict::Pass => "pass",
        GateVerdict::Slower => "SLOWER",
        GateVerdict::NotComparable => "not comparable",
    };
    let figure = |it: &GatedCell| match (it.ratio, it.low, it.high) {
        (Some(ratio), Some(low), Some(high)) => Ok(interval(ratio, low, high)),
        _ => Ok(it.reason.clone().unwrap_or_default()),
    };
    #[rustfmt::skip] // One line for each column.
    let table = SheetTable::of(&gate.cells, &[
        ("device", &|it| Ok(it.device.clone())),
        ("preset", &|it| Ok(it.preset.clone())),
        ("version", &|it| Ok(it.version.clone())),
        ("verdict", &|it| Ok(verdict(it.judgement).to_owned())),
        ("speed now / then", &|it| figure(it)),
    ]);
    let (baseline, least) = (baseline.display(), digits(gate.min_ratio));
    blocks.extend([
        SheetBlock::Heading(format!("Against {baseline}: at least {least}")),
        SheetBlock::Table(table),
        SheetBlock::Remark(gate.summary()),
    ]);
}

/// What each knob is worth, at one preset on one device.
fn ablation(blocks: &mut Vec<SheetBlock>, group: &PresetEffects) {
    let heading = format!("{} on {}: {}", group.preset, group.select, group.device);
    blocks.push(SheetBlock::Heading(heading));
    let at = |place: EffectPlace| -> Vec<ChangeEffect> {
        let here = group.effects.iter().filter(|e| e.place == place);
        rank(here.cloned().collect())
    };
    let ends: Vec<ChangeEffect> = [EffectPlace::None, EffectPlace::All]
        .into_iter()
        .flat_map(at)
        .collect();
    for (head, effects) in [
        ("everything, and nothing", &ends),
        ("turned on alone", &at(EffectPlace::FromPlain)),
        ("turned on last, all others on", &at(EffectPlace::FromFull)),
        ("mean over all combinations", &group.means),
        ("combination", &at(EffectPlace::Combination)),
    ] {
        if !effects.is_empty() {
            blocks.push(SheetBlock::Table(effect_table(head, effects)));
        }
    }
    let from_plain = group
        .effects
        .iter()
        .filter(|e| e.place == EffectPlace::FromPlain);
    let alone: Vec<f64> = from_plain.map(|e| e.ratio).collect();
    let all = group.effects.iter().find(|e| e.place == EffectPlace::All);
    if let Some(all) = all.filter(|_| alone.len() == Knob::with_fast_version().count()) {
        blocks.push(SheetBlock::Remark(format!(
            "the product of the single effects is {}, all of them together give {}",
            digits(alone.iter().product()),
            digits(all.ratio)
        )));
    }
    let unclear = group
        .effects
        .iter()
        .filter(|e| e.verdict == Verdict::Unclear);
    let unclear: Vec<String> = unclear
        .filter_map(|e| match e.place {
            EffectPlace::FromPlain => Some(format!("{} from plain", e.name)),
            EffectPlace::FromFull => Some(format!("{} turned on last", e.name)),
            _ => None,
        })
        .collect();
    if !unclear.is_empty() {
        blocks.push(SheetBlock::Remark(format!(
            "unclear, so not ranked: {}; more --pairs may decide",
            unclear.join(", ")
        )));
    }
}

fn effect_table(head: &str, effects: &[ChangeEffect]) -> SheetTable {
    let rank = |at: usize, effect: &ChangeEffect| match (effect.place, effect.verdict) {
        (EffectPlace::None | EffectPlace::All, _) | (_, Verdict::Unclear) => "-".to_owned(),
        _ => (at + 1).to_string(),
    };
    #[rustfmt::skip] // One line for each column.
    let table = SheetTable::of(effects.iter().enumerate(), &[
        ("rank", &|(at, it)| Ok(rank(*at, it))),
        (head, &|(_, it)| Ok(it.name.clone())),
        ("worth [95 %]", &|(_, it)| Ok(worth(it.ratio, it.low, it.high))),
        ("n", &|(_, it)| Ok(it.n.to_string())),
        ("verdict", &|(_, it)| Ok(it.verdict.to_string())),
    ]);
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::ablation::{Contrast, contrasts, effect};
    use crate::measure::cell::tests::cell;
    use crate::protocol::Pair;

    #[test]
    fn a_report_has_every_figure_or_its_reason() {
        let report = BenchReport {
            steps: Some(30),
            rounds: Some(2),
            cells: vec![
                cell("v1", &[40.0, 41.0], 25),
                cell("v3", &[20.0], 25),
                cell("v4", &[20.0], 0),
            ],
            ..BenchReport::default()
        };
        let sheet = sheet(&report, None);
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

    fn swept(value: u64, peak: Option<u64>) -> BenchCell {
        let mut cell = cell("v1", &[20.0], 25);
        cell.value = Some(value);
        cell.memory.peak = peak;
        cell.memory.reason = peak.is_none().then(|| "no counter".to_owned());
        cell
    }

    fn batch_remark(cells: &[BenchCell]) -> String {
        formula(SweepAxis::Batch, &MemoryFit::of(SweepAxis::Batch, cells))
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
        let effect = |(at, contrast): (usize, &Contrast)| {
            let (ratio, verdict) = match at {
                // The last knob of the table, turned on alone.
                8 => (1.8, Verdict::Unclear),
                at => (1.0 + at as f64 / 10.0, Verdict::Faster),
            };
            let pair = Pair {
                n: 30,
                ratio,
                low: Some(1.0),
                high: Some(3.0),
                verdict,
                ..Pair::default()
            };
            effect(contrast, &pair)
        };
        let group = PresetEffects {
            select: "cpu".to_owned(),
            device: "Chip".to_owned(),
            preset: "tiny".to_owned(),
            effects: contrasts(false).iter().enumerate().map(effect).collect(),
            means: Vec::new(),
        };
        let report = BenchReport {
            groups: vec![group],
            ..BenchReport::default()
        };
        let text = sheet(&report, None).text();
        for says in [
            "tiny on cpu: Chip",
            "1     model.matmul = own",
            "-     train.optimizer = fused",
            // Unclear effects come last, whatever their size.
            "1.800 [1.000, 3.000]  30  unclear\n\n",
            "unclear, so not ranked: train.optimizer = fused from plain; more",
            "all of them together give 1.100",
        ] {
            assert!(text.contains(says), "`{says}` is missing in\n{text}");
        }
    }
}
