//! Reads what a config exercise varies: one key over several values, or changes to rank.

use super::{Change, Sweep, apply};
use crate::config::{RunConfig, nearest};
use crate::course::fields::{Fields, Table};
use crate::course::metric;

pub fn sweep(fields: &mut Fields<'_>, t: Table<'_>, config: &RunConfig) -> Sweep {
    fields.known(t, &["key", "values", "with", "metrics"]);
    let key = fields.text(t, "key");
    let values = fields.words(t, "values");
    let line = fields.line_of(t, "values");
    if values.len() < 2 {
        fields.fail(
            line,
            "`values` needs at least two values to compare".to_owned(),
        );
    }
    for value in &values {
        if let Err(what) = apply(config, &format!("{key}={value}")) {
            fields.fail(line, what);
        }
    }
    let with = fields.texts(t, "with");
    for set in &with {
        if let Err(what) = apply(config, set) {
            let line = fields.line_of(t, "with");
            fields.fail(line, what);
        }
    }
    let metrics = fields.texts(t, "metrics");
    for name in &metrics {
        if !metric::known(name) {
            let near = nearest(name, metric::METRICS.iter().map(|metric| metric.name));
            let line = fields.line_of(t, "metrics");
            fields.fail(
                line,
                format!("unknown metric `{name}`; the nearest known one is `{near}`"),
            );
        }
    }
    Sweep {
        key,
        values,
        with,
        metrics,
    }
}

pub fn change(fields: &mut Fields<'_>, t: Table<'_>, config: &RunConfig) -> Change {
    fields.known(t, &["label", "set"]);
    let set = fields.texts(t, "set");
    let line = fields.line_of(t, "set");
    if set.is_empty() {
        fields.fail(
            line,
            "`set` changes nothing; write set = [\"model.norm=fused\"]".to_owned(),
        );
    }
    for assignment in &set {
        if let Err(what) = apply(config, assignment) {
            fields.fail(line, what);
        }
    }
    Change {
        label: fields.text(t, "label"),
        set,
    }
}
