//! What was measured for an exercise as a table: a row for each run or comparison, for a screen or a terminal.

use unicode_width::UnicodeWidthStr;

use super::super::judge::Found;
use crate::app::exercise::measuring::{Row, Table};
use crate::course::exercise::{ConfigMetric, Configs};
use crate::course::metric;
use crate::protocol::{Finished, Pair};
use crate::units::show;

/// Heads of columns that are shorter than their metric's name.
const HEADS: &[(&str, &str)] = &[
    ("step_ms", "step ms"),
    ("samples_per_s", "samples/s"),
    ("tokens_per_s", "tokens/s"),
    ("loss_first", "first loss"),
    ("loss_last", "last loss"),
    ("kernels.launches_per_step", "launches"),
    ("memory.peak_mib", "peak MiB"),
    ("grad.params_pct", "trained %"),
];

/// Everything so far.
pub fn table(configs: &Configs, found: &Found) -> Table {
    if !configs.rank.is_empty() {
        return ranked(configs, found);
    }
    let Some(sweep) = &configs.sweep else {
        return Table::default();
    };
    let key = sweep.key.rsplit('.').next().unwrap_or(&sweep.key);
    let mut head = vec![key.to_owned()];
    head.extend(sweep.metrics.iter().map(|name| short(name).to_owned()));
    let timed = configs
        .checks
        .iter()
        .any(|check| matches!(check.metric, ConfigMetric::Speed { .. }));
    if timed && let Some(first) = sweep.values.first() {
        head.push(format!("against {first}"));
    }
    let rows = found.points.iter().map(|point| {
        // `flash` of `model.attention=flash`.
        let with = point.with.as_deref().map(|set| match set.split_once('=') {
            Some((_, value)) => value,
            None => set,
        });
        let name = with.map_or_else(
            || point.value.clone(),
            |with| format!("{} {with}", point.value),
        );
        let figures = sweep.metrics.iter();
        let figure = |name: &String| figure(name, point.run.as_ref().ok()?);
        let mut cells: Vec<Option<String>> = figures.map(figure).collect();
        let mut why = point.run.as_ref().err().cloned();
        if timed {
            let of = found.speeds.iter().find(|(value, _)| *value == point.value);
            let pair = of.map(|(_, pair)| pair.as_ref());
            cells.push(pair.and_then(|pair| Some(times(pair.ok()?.ratio))));
            why = why.or_else(|| pair?.err().cloned());
        }
        Row { name, cells, why }
    });
    Table {
        rows: rows.collect(),
        head,
    }
}

fn ranked(configs: &Configs, found: &Found) -> Table {
    let row = |(letter, change): (String, &Result<Pair, String>), label: &str| {
        let cells = match change {
            Ok(pair) => vec![
                Some(times(pair.ratio)),
                Some(format!("{:.2} to {:.2}", pair.low, pair.high)),
                Some(pair.n.to_string()),
            ],
            Err(_) => vec![None; 3],
        };
        Row {
            name: format!("{letter} {label}"),
            cells,
            why: change.as_ref().err().cloned(),
        }
    };
    let changes = configs.letters().into_iter().zip(&found.changes);
    let labelled = changes.zip(&configs.rank);
    Table {
        head: ["change", "faster", "interval", "pairs"]
            .map(str::to_owned)
            .to_vec(),
        rows: labelled.map(|(it, rank)| row(it, &rank.label)).collect(),
    }
}

fn short(name: &str) -> &str {
    let found = HEADS.iter().find(|(metric, _)| *metric == name);
    found.map_or(name, |(_, head)| head)
}

fn figure(name: &str, run: &Finished) -> Option<String> {
    Some(show(metric::value(name, run)?, metric::form(name).0))
}

fn times(ratio: f64) -> String {
    format!("{ratio:.2}x")
}

/// The table in plain text, aligned.
pub fn text(table: &Table) -> String {
    let dash = || "–".to_owned();
    let mut lines = vec![table.head.clone()];
    lines.extend(table.rows.iter().map(|row| {
        let cells = row.cells.iter().map(|it| it.clone().unwrap_or_else(dash));
        std::iter::once(row.name.clone()).chain(cells).collect()
    }));
    let width = |at: usize| {
        let cells = lines.iter().filter_map(|line| line.get(at));
        cells.map(|cell| cell.width()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..table.head.len()).map(width).collect();
    let line = |cells: &Vec<String>| {
        let mut out = String::new();
        for (at, (cell, width)) in cells.iter().zip(&widths).enumerate() {
            let blank = " ".repeat(width.saturating_sub(cell.width()));
            out += &match at {
                0 => format!("  {cell}{blank}"),
                _ => format!("  {blank}{cell}"),
            };
        }
        out
    };
    let mut out: Vec<String> = lines.iter().map(line).collect();
    for row in &table.rows {
        if let Some(why) = &row.why {
            out.push(format!("  {}: {why}", row.name));
        }
    }
    out.join("\n")
}
