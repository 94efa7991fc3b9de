//! What was measured for a config exercise, and its table: a row for each run or comparison, for a screen or a terminal.

use super::exercise::Configs;
use super::metric;
use crate::table;
use protocol::units::show;
use protocol::{Finished, Pair};

/// One run of the sweep.
#[derive(Clone, Debug)]
pub struct SweepPoint {
    pub with: Option<String>,
    pub value: String,
    /// Or why there is no run: a format that the device refuses.
    pub run: Result<Finished, String>,
}

/// Everything measured for one exercise.
#[derive(Clone, Debug, Default)]
pub struct SweepRuns {
    pub points: Vec<SweepPoint>,
    /// Plain against each change, in the order of the exercise.
    pub changes: Vec<Result<Pair, String>>,
    /// The first value against each other one.
    pub speeds: Vec<(String, Result<Pair, String>)>,
}

/// The table of a measurement, growing run by run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SweepTable {
    /// Above the names, then above each column.
    pub head: Vec<String>,
    pub rows: Vec<SweepRow>,
}

/// One run or comparison.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SweepRow {
    pub name: String,
    /// A missing figure is none.
    pub cells: Vec<Option<String>>,
    /// Why there are no figures.
    pub why: Option<String>,
}

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
pub fn table(configs: &Configs, found: &SweepRuns) -> SweepTable {
    if !configs.rank.is_empty() {
        return ranked(configs, found);
    }
    let Some(sweep) = &configs.sweep else {
        return SweepTable::default();
    };
    let key = sweep.key.rsplit('.').next().unwrap_or(&sweep.key);
    let mut head = vec![key.to_owned()];
    head.extend(sweep.metrics.iter().map(|name| short(name).to_owned()));
    let timed = configs.compares_speeds();
    if timed && let Some(first) = sweep.values.first() {
        head.push(format!("against {first}"));
    }
    let rows = found.points.iter().map(|point| {
        // `flash` of `model.attention=flash`.
        let with = point.with.as_deref();
        let with = with.map(|set| set.split_once('=').map_or(set, |(_, value)| value));
        let name = [Some(point.value.as_str()), with];
        let name = name.into_iter().flatten().collect::<Vec<_>>().join(" ");
        let run = point.run.as_ref();
        let figure = |name| Some(show(metric::value(name, run.ok()?)?, metric::form(name).0));
        let mut cells: Vec<_> = sweep.metrics.iter().map(|name| figure(name)).collect();
        let mut why = run.err().cloned();
        if timed {
            let of = found.speeds.iter().find(|(value, _)| *value == point.value);
            let pair = of.map(|(_, pair)| pair.as_ref());
            cells.push(pair.and_then(|pair| Some(times(pair.ok()?.ratio))));
            why = why.or_else(|| pair?.err().cloned());
        }
        SweepRow { name, cells, why }
    });
    SweepTable {
        rows: rows.collect(),
        head,
    }
}

fn ranked(configs: &Configs, found: &SweepRuns) -> SweepTable {
    let changes = configs.letters().into_iter().zip(&configs.rank);
    let rows = changes.zip(&found.changes).map(|((letter, rank), change)| {
        let pair = change.as_ref().ok();
        SweepRow {
            name: format!("{letter} {}", rank.label),
            cells: vec![
                pair.map(|pair| times(pair.ratio)),
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

fn short(name: &str) -> &str {
    let found = HEADS.iter().find(|(metric, _)| *metric == name);
    found.map_or(name, |(_, head)| head)
}

fn times(ratio: f64) -> String {
    format!("{ratio:.2}x")
}

impl SweepTable {
    /// The head and the rows as lines of plain text.
    pub fn lines(&self) -> Vec<String> {
        let dash = || "–".to_owned();
        let rows = self.rows.iter().map(|row| {
            let cells = row.cells.iter().map(|it| it.clone().unwrap_or_else(dash));
            std::iter::once(row.name.clone()).chain(cells).collect()
        });
        let rows: Vec<_> = std::iter::once(self.head.clone()).chain(rows).collect();
        table::lines(&rows, true)
    }

    /// The lines, and below them why something was not measured.
    pub fn text(&self) -> String {
        let lines = self.lines().into_iter();
        let missing = self
            .rows
            .iter()
            .filter_map(|row| Some((&row.name, row.why.as_ref()?)));
        let missing = missing.map(|(name, why)| format!("{name}: {why}"));
        let all: Vec<_> = lines
            .chain(missing)
            .map(|line| format!("  {line}"))
            .collect();
        all.join("\n")
    }
}
