//! Reads a table `[[check]]` of a config exercise, such as
//!
//! ```toml
//! [[check]]
//! name = "the bend is where you said"
//! metric = "bend"
//! factor = 1.5
//! answer = "batch"
//! ask = "up to which batch is a doubling cheap?"
//! ```

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
    // The key `of` names one entry of the sweep's list `with` or `values`.
    let of = |list: &str| {
        let Some(sweep) = sweep else {
            let message =
                "the metric needs a sweep; write a table `[sweep]` with `key` and `values`";
            return Err(file.fault(path, message));
        };
        let entries = match list {
            "with" => &sweep.with,
            _ => &sweep.values,
        };
        let named = file.required(path, "of", raw.of.clone(), "\"…\"")?;
        if entries.contains(&named) {
            return Ok(named);
        }
        let near = nearest(&named, entries.iter().map(String::as_str));
        let message = format!(
            "`of` names `{named}`, which is not in the sweep's `{list}`; \
             the nearest there is `{near}`"
        );
        Err(file.fault(&at("of"), message))
    };
    let metric = match raw.metric.as_str() {
        "bend" => ConfigMetric::Bend {
            factor: file.required(path, "factor", raw.factor, "1.5")?,
        },
        "quadratic-leads" => ConfigMetric::Leads { of: of("with")? },
        "quadratic-share" => ConfigMetric::QuadraticShare {
            of: of("with")?,
            at_most: file.required(path, "at-most", raw.at_most, "0.1")?,
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
        name if !metric::is_known(name) => {
            let known = OWN_METRICS.into_iter().chain(metric::names());
            return Err(file.unknown(&at("metric"), "metric", name, known));
        }
        name => {
            let test = match (raw.within, raw.at_least, raw.at_most) {
                (Some(share), None, None) => FigureTest::WithinOfFirst(share),
                (None, Some(least), None) => FigureTest::AtLeast(least),
                (None, None, Some(most)) => FigureTest::AtMost(most),
                _ => {
                    let message = "a check of a figure has one condition; \
                                   write one of `within`, `at-least`, `at-most`";
                    return Err(file.fault(path, message));
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
        _ => Some((
            file.required(path, "answer", raw.answer, "\"batch\"")?,
            file.required(path, "ask", raw.ask, "\"…\"")?,
        )),
    };
    Ok(ConfigCheck {
        name: raw.name,
        metric,
        answer,
    })
}
