//! The measurements of a config exercise, and their table for a screen or a terminal. The table has a row for each run or comparison, such as
//! `8  22.65  353.2  against 1: 1.31x`.

use super::exercise::Configs;
use super::metric;
use crate::table;
use protocol::units::show;
use protocol::{Finished, Pair};

/// One run of the sweep.
#[derive(Clone, Debug)]
pub struct SweepPoint {
    /// The setting of the sweep's list `with`, such as `model.attention=flash`.
    pub with: Option<String>,
    /// The value of the sweep's key.
    pub value: String,
    /// The run, or the reason why there is none: the device may refuse a format.
    pub run: Result<Finished, String>,
}

/// All measurements of one exercise so far.
#[derive(Clone, Debug, Default)]
pub struct SweepRuns {
    pub points: Vec<SweepPoint>,
    /// The comparisons of the unchanged configuration with each change, in the order of the exercise.
    pub changes: Vec<Result<Pair, String>>,
    /// The comparisons of the first value with each other value, by this value.
    pub speeds: Vec<(String, Result<Pair, String>)>,
}

/// The table of a measurement, which grows run by run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SweepTable {
    /// The heads of the columns. The first column has the names of the rows.
    pub head: Vec<String>,
    pub rows: Vec<SweepRow>,
}

/// One run or comparison.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SweepRow {
    pub name: String,
    /// The figures; `None` for a missing figure.
    pub cells: Vec<Option<String>>,
    /// The reason why there are no figures.
    pub why: Option<String>,
}

/// Returns the table of all measurements so far.
pub fn table(configs: &Configs, found: &SweepRuns) -> SweepTable {
    if !configs.rank.is_empty() {
        return ranked(configs, found);
    }
    let Some(sweep) = &configs.sweep else {
        return SweepTable::default();
    };
    let key = sweep.key.rsplit('.').next().unwrap_or(&sweep.key);
    let mut head = vec![key.to_owned()];
    head.extend(sweep.metrics.iter().map(|name| head_of(name).to_owned()));
    let has_speeds = configs.compares_speeds();
    if has_speeds && let Some(first) = sweep.values.first() {
        head.push(format!("against {first}"));
    }
    let rows = found.points.iter().map(|point| {
        let run = point.run.as_ref();
        let figure = |name: &String| {
            let (decimals, _) = metric::decimals_and_unit(name);
            Some(show(metric::value(name, run.ok()?)?, decimals))
        };
        let mut cells: Vec<Option<String>> = sweep.metrics.iter().map(figure).collect();
        let mut why = run.err().cloned();
        if has_speeds {
            let is_of_point = |(value, _): &&(String, _)| *value == point.value;
            let speed = found.speeds.iter().find(is_of_point);
            let pair = speed.map(|(_, pair)| pair.as_ref());
            cells.push(pair.and_then(|pair| Some(as_times(pair.ok()?.ratio))));
            why = why.or_else(|| pair?.err().cloned());
        }
        SweepRow {
            name: point_name(point),
            cells,
            why,
        }
    });
    SweepTable {
        rows: rows.collect(),
        head,
    }
}

/// Returns the name of a run: `512` or `512 flash` for the value 512 with `model.attention=flash`.
fn point_name(point: &SweepPoint) -> String {
    match &point.with {
        None => point.value.clone(),
        Some(set) => {
            let setting = set.split_once('=').map_or(set.as_str(), |(_, value)| value);
            format!("{} {setting}", point.value)
        }
    }
}

/// Returns the table of the changes that the learner ranked.
fn ranked(configs: &Configs, found: &SweepRuns) -> SweepTable {
    let changes = configs.letters().into_iter().zip(&configs.rank);
    let rows = changes.zip(&found.changes).map(|((letter, rank), change)| {
        let pair = change.as_ref().ok();
        SweepRow {
            name: format!("{letter} {}", rank.label),
            cells: vec![
                pair.map(|pair| as_times(pair.ratio)),
                pair.and_then(|pair| {
                    let (low, high) = pair.low.zip(pair.high)?;
                    Some(format!("{low:.2} to {high:.2}"))
                }),
                pair.map(|pair| pair.n.to_string()),
            ],
            why: change.as_ref().err().cloned(),
        }
    });
    SweepTable {
        head: ["change", "faster", "interval", "pairs"]
            .map(str::to_owned)
            .into(),
        rows: rows.collect(),
    }
}

/// Returns the head of a metric's column: a short name, where there is one.
fn head_of(metric: &str) -> &str {
    match metric {
        "step_ms" => "step ms",
        "samples_per_s" => "samples/s",
        "tokens_per_s" => "tokens/s",
        "loss_first" => "first loss",
        "loss_last" => "last loss",
        "kernels.launches_per_step" => "launches",
        "memory.peak_mib" => "peak MiB",
        "grad.params_pct" => "trained %",
        _ => metric,
    }
}

fn as_times(ratio: f64) -> String {
    format!("{ratio:.2}x")
}

impl SweepTable {
    /// Returns the head and the rows as lines of plain text.
    pub fn lines(&self) -> Vec<String> {
        let mut rows = vec![self.head.clone()];
        for row in &self.rows {
            let mut line = vec![row.name.clone()];
            for cell in &row.cells {
                line.push(cell.clone().unwrap_or_else(|| "–".to_owned()));
            }
            rows.push(line);
        }
        table::lines(&rows, true)
    }

    /// Returns the lines, followed by the reasons why figures are missing.
    pub fn text(&self) -> String {
        let mut text = Vec::new();
        for line in self.lines() {
            text.push(format!("  {line}"));
        }
        for row in &self.rows {
            if let Some(why) = &row.why {
                text.push(format!("  {}: {why}", row.name));
            }
        }
        text.join("\n")
    }
}
