//! The report of `perflings bench` as a page of tables. The cells of a table, such as `samples`, are also used by `run all`.

use crate::measure::cell::{BaselineVerdict, BenchCell, Ratio};
use crate::measure::report::{BenchReport, Machine, MissingCell, PairedRow};
use crate::pages::report::in_words;
use crate::pages::sheet::{
    FilledColumn, Sheet, SheetBlock, SheetTable, digits, interval, ratio_with_interval,
};
use protocol::stats::operations;
use protocol::units::{bytes, percent, show};
use protocol::{Device, machine};

/// Returns the page.
pub(crate) fn sheet(report: &BenchReport) -> Sheet {
    let how = match report.steps.zip(report.rounds) {
        Some((steps, rounds)) => how(steps, rounds, "", &report.machine),
        None => format!(
            "Step time of the first version divided by that of the other version, measured in pairs, \
             with a 95 % interval. Above 1, the other version is faster. {}.",
            machine_in_words(&report.machine)
        ),
    };
    let mut blocks = vec![
        SheetBlock::Title("Versions compared".to_owned()),
        SheetBlock::Intro(how),
    ];
    blocks.extend(disturbances(report.interrupted, report.cells.iter()));
    let are_grouped =
        |a: &BenchCell, b: &BenchCell| (&a.select, &a.preset) == (&b.select, &b.preset);
    for cells in report.cells.chunk_by(are_grouped) {
        add_versions(&mut blocks, cells, report.only_then.is_some());
    }
    let are_grouped =
        |a: &PairedRow, b: &PairedRow| (&a.select, &a.preset) == (&b.select, &b.preset);
    for rows in report.pairs.chunk_by(are_grouped) {
        blocks.extend(paired_versions(rows));
    }
    if let Some((_, text)) = report.compared() {
        blocks.push(SheetBlock::Heading("Against the baseline".to_owned()));
        blocks.push(SheetBlock::Remark(text));
        let names = report.only_then.iter().flatten();
        let remarks = names.map(|name| format!("{name}: it was not measured now"));
        blocks.extend(remarks.map(SheetBlock::Remark));
    }
    if !report.missing.is_empty() {
        blocks.push(SheetBlock::Heading("Not measured".to_owned()));
        let remarks = report.missing.iter().map(MissingCell::text);
        blocks.extend(remarks.map(SheetBlock::Remark));
    }
    Sheet(blocks)
}

/// Returns the sentence about how the rows were measured in turns, and on which machine.
pub(crate) fn how(steps: u64, rounds: u32, device: &str, machine: &Machine) -> String {
    let runs = match rounds {
        1 => "one run".to_owned(),
        count => format!("{count} runs"),
    };
    let machine = machine_in_words(machine);
    format!(
        "{steps} steps a run, {runs} of each version in turns, each in an engine of its own{device}; {machine}."
    )
}

fn machine_in_words(machine: &Machine) -> String {
    format!(
        "perflings {} on {}, {} threads, {}",
        machine.version, machine.os, machine.cores, machine.date
    )
}

/// Returns remarks about an interruption and about other programs, which make the figures incomplete or imprecise.
pub(crate) fn disturbances<'a>(
    interrupted: bool,
    cells: impl Iterator<Item = &'a BenchCell>,
) -> Vec<SheetBlock> {
    let mut blocks = Vec::new();
    if interrupted {
        let text = "Interrupted: the following was measured before that.";
        blocks.push(SheetBlock::Intro(text.to_owned()));
    }
    let most = cells.filter_map(|cell| cell.others).reduce(f64::max);
    if let Some(most) = most.filter(|share| machine::disturbs(*share)) {
        blocks.push(SheetBlock::Intro(format!(
            "Other programs used up to {:.0} % of the machine meanwhile: times are longer \
             than necessary, and ratios imprecise. \
             `perflings compare` measures pairs; they need a steady load, too.",
            100.0 * most
        )));
    }
    blocks
}

/// Returns the samples/s of a cell, with their range over the runs; `None` if they were not measured.
pub(crate) fn samples(cell: &BenchCell) -> Option<String> {
    let speed = cell.speed.as_ref()?;
    let rate = |ms: f64| 1e3 * cell.batch as f64 / ms;
    let low = rate(speed.high_ms);
    let high = rate(speed.low_ms);
    Some(interval(speed.samples_per_s, low, high))
}

pub(crate) fn launches(cell: &BenchCell) -> Option<String> {
    let launches = cell.kernels.as_ref()?.launches_per_step;
    Some(show(f64::from(launches), 0))
}

pub(crate) fn device_ms(cell: &BenchCell) -> Option<String> {
    Some(digits(cell.kernels.as_ref()?.device_ms))
}

pub(crate) fn memory(cell: &BenchCell) -> Option<String> {
    cell.memory.peak.map(bytes)
}

/// Returns the share of parameters that have a gradient.
pub(crate) fn trained(cell: &BenchCell) -> Option<String> {
    Some(format!("{} %", percent(cell.grad.params_pct)))
}

/// Returns the operation that takes longest, with its time; `None` if no step was profiled.
pub(crate) fn top_kernel(cell: &BenchCell) -> Option<String> {
    let top = cell.kernels.as_ref()?.top.first()?;
    let (part, phase) = top.scope.split_once('/').unwrap_or((&top.scope, ""));
    let name = operations::name(&top.op, part, phase);
    Some(format!("{name} {} ms", digits(top.ms)))
}

pub(crate) fn ratio(ratio: Ratio) -> String {
    interval(ratio.ratio, ratio.low, ratio.high)
}

/// Returns the reasons why figures are missing or are of another kind.
pub(crate) fn reasons(cell: &BenchCell) -> impl Iterator<Item = String> {
    let because = |what: &str, why: &Option<String>| Some(format!("{what}: {}", why.as_ref()?));
    let by_wall = "speed by wall time: no step waited for the device";
    [
        because("no speed", &cell.speed_reason),
        cell.by_wall_time().then(|| by_wall.to_owned()),
        because("no kernels", &cell.kernels_reason),
        because("no memory", &cell.memory.reason),
    ]
    .into_iter()
    .flatten()
}

/// Returns a figure, or a dash if it is missing. A remark below the table gives the reason.
pub(crate) fn or_dash(figure: Option<String>) -> String {
    figure.unwrap_or_else(|| "-".to_owned())
}

/// Adds the table of the versions of one preset on one device. If `has_baseline`, its last column compares them with the baseline.
fn add_versions(blocks: &mut Vec<SheetBlock>, cells: &[BenchCell], has_baseline: bool) {
    let first = &cells[0];
    let Device { name, kind, .. } = &first.device;
    blocks.push(SheetBlock::Heading(format!(
        "{} on {}: {name} ({kind}), batch {}, context {}",
        first.preset, first.select, first.batch, first.context
    )));
    let against = format!("against {}", first.version);
    let seconds = |time: Option<f64>| or_dash(time.map(|seconds| format!("{seconds:.2} s")));
    let speed = |cell: &&BenchCell| cell.speed.clone();
    let step_ms = |cell: &&BenchCell| {
        let ms = speed(cell)?.step_ms;
        Some(interval(ms.median, ms.p25, ms.p75))
    };
    let columns: [FilledColumn<'_, &BenchCell>; 14] = [
        ("version", &|cell| cell.version.clone()),
        ("samples/s", &|cell| or_dash(samples(cell))),
        (&against, &|cell| or_dash(faster(first, cell))),
        ("step ms [IQR]", &|cell| or_dash(step_ms(cell))),
        ("n", &|cell| {
            or_dash(speed(cell).map(|speed| speed.step_ms.n.to_string()))
        }),
        ("state", &|cell| {
            or_dash(speed(cell).map(|speed| speed.state.to_string()))
        }),
        ("first point", &|cell| seconds(cell.first_point_s)),
        ("later", &|cell| seconds(cell.later_points_s)),
        ("launches", &|cell| or_dash(launches(cell))),
        ("device ms", &|cell| or_dash(device_ms(cell))),
        ("memory", &|cell| or_dash(memory(cell))),
        ("trained", &|cell| or_dash(trained(cell))),
        ("top kernel", &|cell| or_dash(top_kernel(cell))),
        ("now / then", &|cell| or_dash(verdict(cell))),
    ];
    let count = columns.len() - usize::from(!has_baseline);
    blocks.push(SheetBlock::Table(SheetTable::filled(
        cells,
        &columns[..count],
    )));
    for cell in cells {
        let remarks = reasons(cell).chain(cell.lints.iter().map(in_words));
        blocks.extend(remarks.map(|why| SheetBlock::Remark(format!("{}: {why}", cell.version))));
    }
}

/// Returns the tokens/s of a version over those of the first version; `None` if they cannot be compared.
fn faster(first: &BenchCell, cell: &BenchCell) -> Option<String> {
    if cell.version == first.version {
        Some("1".to_owned())
    } else {
        cell.against(first).ok().map(ratio)
    }
}

/// Returns the verdict of the comparison with the baseline; `None` without a baseline.
fn verdict(cell: &BenchCell) -> Option<String> {
    Some(match cell.since.as_ref()? {
        BaselineVerdict::Pass(now) => format!("pass {}", ratio(*now)),
        BaselineVerdict::Slower(now) => format!("SLOWER {}", ratio(*now)),
        BaselineVerdict::NotComparable(why) => format!("not comparable: {why}"),
    })
}

/// Returns the heading and the table for one preset on one device, whose versions were each measured in pairs with the first one.
fn paired_versions(rows: &[PairedRow]) -> [SheetBlock; 2] {
    let first = &rows[0];
    let table = SheetTable::filled(
        rows,
        &[
            ("version", &|row| row.version.clone()),
            (&format!("against {} [95 %]", first.first), &|row| {
                ratio_with_interval(row.pair.ratio, row.pair.low, row.pair.high)
            }),
            ("n", &|row| row.pair.n.to_string()),
            ("verdict", &|row| row.pair.verdict.to_string()),
            ("step ms [IQR]", &|row| {
                let ms = &row.pair.b_ms;
                interval(ms.median, ms.p25, ms.p75)
            }),
        ],
    );
    let heading = format!(
        "{} on {}: {}",
        first.preset, first.select, first.device.name
    );
    [SheetBlock::Heading(heading), SheetBlock::Table(table)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::cell::tests::cell;
    use protocol::{Pair, Verdict};

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
        let sheet = sheet(&report);
        for text in [sheet.text(), sheet.markdown()] {
            for part in [
                "tiny on cpu: Chip (cpu), batch 8, context 64",
                "400.0 [397.5, 402.5]",
                "20.00 [19.80, 20.20]",
                "2.025 [",
                "v4: no speed: no synchronised, unprofiled step",
                "v4: no memory: the engine did not say",
            ] {
                assert!(text.contains(part), "`{part}` is missing in\n{text}");
            }
        }
    }

    #[test]
    fn pairs_are_rows_with_their_verdicts() {
        let row = |version: &str, ratio, verdict| PairedRow {
            select: "cpu".to_owned(),
            device: cell("v1", &[20.0], 25).device,
            preset: "tiny".to_owned(),
            first: "v1".to_owned(),
            version: version.to_owned(),
            pair: Pair {
                n: 30,
                ratio,
                low: Some(1.0),
                high: Some(3.0),
                verdict,
                ..Pair::default()
            },
        };
        let report = BenchReport {
            pairs: vec![
                row("v1", 1.0, Verdict::Same),
                row("v1+model.norm=fused", 1.8, Verdict::Unclear),
            ],
            ..BenchReport::default()
        };
        let text = sheet(&report).text();
        for part in [
            "tiny on cpu: Chip\n",
            "against v1 [95 %]",
            "v1+model.norm=fused  1.800 [1.000, 3.000]  30  unclear",
        ] {
            assert!(text.contains(part), "`{part}` is missing in\n{text}");
        }
    }
}
