//! Reads one `[[check]]` of a config exercise.

use serde::Deserialize;

use super::{ConfigCheck, ConfigMetric, FigureTest, Sweep};
use crate::course::config_file::FileError;
use crate::course::metric;
use crate::course::toml_file::TomlFile;
use protocol::config::nearest;

/// Metrics of a config exercise, in addition to the figures of a run.
pub const OWN_METRICS: [&str; 5] = [
    "bend",
    "quadratic-leads",
    "quadratic-share",
    "order",
    "speed",
];

/// A `[[check]]` of a config exercise, as it is written.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct ConfigCheckToml {
    name: String,
    metric: String,
    answer: Option<String>,
    ask: Option<String>,
    of: Option<String>,
    factor: Option<f64>,
    at_most: Option<f64>,
    at_least: Option<f64>,
    within: Option<f64>,
}

/// Reads the criterion in the table at `path`; `changes` is the number of changes to rank.
pub(super) fn config_check(
    file: &TomlFile<'_>,
    path: &str,
    raw: ConfigCheckToml,
    sweep: Option<&Sweep>,
    changes: usize,
) -> Result<ConfigCheck, FileError> {
    let at = |key: &str| format!("{path}.{key}");
    let required = |key: &str, found: Option<f64>, example: f64| {
        found.ok_or_else(|| file.missing(&at(key), &example.to_string()))
    };
    let text = |key: &str, found: &Option<String>| match found {
        Some(text) => Ok(text.clone()),
        None => Err(file.missing(&at(key), "\"…\"")),
    };
    // `of` names a setting (`with`) or a value.
    let of = |place: &str| {
        let Some(sweep) = sweep else {
            return Err(file.fault(path, "needs a `[sweep]`; write one"));
        };
        let all = match place {
            "with" => &sweep.with,
            _ => &sweep.values,
        };
        let named = text("of", &raw.of)?;
        if !all.contains(&named) {
            let near = nearest(&named, all.iter().map(String::as_str));
            let message =
                format!("which is not in the sweep's `{place}`; the nearest there is `{near}`");
            return Err(file.fault(&at("of"), format!("`of` names `{named}`, {message}")));
        }
        Ok(named)
    };
    let metric = match raw.metric.as_str() {
        "bend" => ConfigMetric::Bend {
            factor: required("factor", raw.factor, 1.5)?,
        },
        "quadratic-leads" => ConfigMetric::Leads { of: of("with")? },
        "quadratic-share" => ConfigMetric::QuadraticShare {
            of: of("with")?,
            at_most: required("at-most", raw.at_most, 0.1)?,
        },
        "order" => {
            if changes < 2 {
                let message = "`order` needs changes to rank; write at least two `[[rank]]`";
                return Err(file.fault(&at("metric"), message));
            }
            ConfigMetric::Order {
                at_most: raw.at_most.unwrap_or(0.0) as u64,
            }
        }
        "speed" => ConfigMetric::Speed { of: of("values")? },
        name => {
            if !metric::is_known(name) {
                let own = OWN_METRICS.into_iter();
                let all = metric::METRICS.iter().map(|metric| metric.name);
                return Err(file.unknown(&at("metric"), "metric", name, own.chain(all)));
            }
            let test = match (raw.within, raw.at_least, raw.at_most) {
                (Some(share), None, None) => FigureTest::WithinOfFirst(share),
                (None, Some(least), None) => FigureTest::AtLeast(least),
                (None, None, Some(most)) => FigureTest::AtMost(most),
                _ => {
                    let message = "a figure needs one of `within`, `at-least`, `at-most`";
                    return Err(file.fault(path, format!("{message}; write one of them")));
                }
            };
            ConfigMetric::Figure {
                name: name.to_owned(),
                of: of("values")?,
                test,
            }
        }
    };
    let answer = match metric {
        ConfigMetric::QuadraticShare { .. } | ConfigMetric::Figure { .. } => None,
        _ => Some((text("answer", &raw.answer)?, text("ask", &raw.ask)?)),
    };
    Ok(ConfigCheck {
        name: raw.name,
        metric,
        answer,
    })
}
