//! `{{run.loss_first}}` and its kin: which names there are, and what each stands for in this learner's runs. A figure
//! nobody measured reads `not measured yet`; a name nobody knows is an error of the course.

mod awaited;
mod pieces;
mod ratio;
mod told;
mod words;

pub use crate::units::show;
pub use awaited::{Awaited, awaited};
pub use pieces::{Piece, measured, pieces};
pub use told::{NO_FIGURE, figure, notice, told};

use super::{formula, metric};
use crate::config::{KNOBS, RunConfig, nearest};
use crate::protocol::{Finished, Pair};
use words::{TEXTS, words};

/// What stands where a figure is missing.
pub const NOT_MEASURED: &str = "not measured yet";

/// Whose figure is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// The run on the screen.
    Run,
    /// The last run of the stage as it starts.
    Broken,
    /// The last run of the stage's solution.
    Fixed,
    /// The runs of slots A and B.
    A,
    B,
}

impl Subject {
    const ALL: &'static [(&'static str, Self)] = &[
        ("run", Self::Run),
        ("broken", Self::Broken),
        ("fixed", Self::Fixed),
        ("a", Self::A),
        ("b", Self::B),
    ];
}

/// Where figures come from. Everything may be missing but the configuration.
pub trait Lookup {
    fn finished(&self, subject: Subject) -> Option<&Finished>;
    fn pair(&self) -> Option<&Pair>;
    /// The configuration that formulas and `config.…` speak about.
    fn config(&self) -> &RunConfig;
    /// The language of the text they stand in.
    fn language(&self) -> &str {
        "en"
    }
    /// The learner's answer, as `b`, and their range for the stage's estimate.
    fn prediction(&self) -> (Option<String>, Option<(f64, f64)>) {
        (None, None)
    }
}

/// A plain holder of figures.
#[derive(Clone, Debug)]
pub struct Figures<'a> {
    pub run: Option<&'a Finished>,
    pub broken: Option<&'a Finished>,
    pub fixed: Option<&'a Finished>,
    pub a: Option<&'a Finished>,
    pub b: Option<&'a Finished>,
    pub pair: Option<&'a Pair>,
    pub config: &'a RunConfig,
    pub choice: Option<usize>,
    pub estimate: Option<(f64, f64)>,
}

impl<'a> Figures<'a> {
    /// Nothing measured yet.
    pub fn none(config: &'a RunConfig) -> Self {
        let (run, broken, fixed, a, b) = (None, None, None, None, None);
        Self {
            run,
            broken,
            fixed,
            a,
            b,
            pair: None,
            config,
            choice: None,
            estimate: None,
        }
    }
}

impl Lookup for Figures<'_> {
    fn finished(&self, subject: Subject) -> Option<&Finished> {
        match subject {
            Subject::Run => self.run,
            Subject::Broken => self.broken,
            Subject::Fixed => self.fixed,
            Subject::A => self.a,
            Subject::B => self.b,
        }
    }

    fn pair(&self) -> Option<&Pair> {
        self.pair
    }

    fn config(&self) -> &RunConfig {
        self.config
    }

    fn prediction(&self) -> (Option<String>, Option<(f64, f64)>) {
        let letter = self
            .choice
            .and_then(|choice| char::from_u32('a' as u32 + u32::try_from(choice).ok()?));
        (letter.map(String::from), self.estimate)
    }
}

const PAIR: &[&str] = &["ratio", "low", "high", "n", "verdict", "a_ms", "b_ms"];

/// What is wrong with a name, or nothing.
pub fn problem(name: &str) -> Option<String> {
    let (head, rest) = name.split_once('.').unwrap_or((name, ""));
    let known = match head {
        "ln_vocab" => rest.is_empty(),
        "config" => knob(rest).is_some(),
        "formula" => formula::find(rest).is_some(),
        "pair" => PAIR.contains(&rest),
        "prediction" => ["choice", "estimate"].contains(&rest),
        "ratio" => metric::known(rest),
        _ => {
            Subject::ALL.iter().any(|(word, _)| *word == head)
                && (metric::known(rest) || TEXTS.contains(&rest))
        }
    };
    if known {
        return None;
    }
    let all = names();
    let near = nearest(name, all.iter().map(String::as_str));
    Some(format!(
        "unknown figure `{{{{{name}}}}}`; the nearest known one is `{{{{{near}}}}}`"
    ))
}

/// Every name there is, but for `part.<name>.ms`.
pub fn names() -> Vec<String> {
    let mut all = vec![
        "ln_vocab".to_owned(),
        "prediction.choice".to_owned(),
        "prediction.estimate".to_owned(),
    ];
    all.extend(
        KNOBS
            .iter()
            .map(|knob| format!("config.{}", last(knob.path))),
    );
    all.extend(
        formula::FORMULAS
            .iter()
            .map(|formula| format!("formula.{}", formula.name)),
    );
    all.extend(PAIR.iter().map(|name| format!("pair.{name}")));
    all.extend(
        metric::METRICS
            .iter()
            .map(|metric| format!("ratio.{}", metric.name)),
    );
    for (subject, _) in Subject::ALL {
        all.extend(
            metric::METRICS
                .iter()
                .map(|metric| format!("{subject}.{}", metric.name)),
        );
        all.extend(TEXTS.iter().map(|name| format!("{subject}.{name}")));
    }
    all
}

/// The text for a name. Total: an unknown name reads as itself, in braces.
pub fn resolve(name: &str, from: &dyn Lookup) -> String {
    if problem(name).is_some() {
        return format!("{{{{{name}}}}}");
    }
    value(name, from).unwrap_or_else(|| NOT_MEASURED.to_owned())
}

/// `text` with every `{{name}}` in it resolved.
pub fn fill(text: &str, from: &dyn Lookup) -> String {
    pieces(text)
        .into_iter()
        .map(|piece| match piece {
            Piece::Text(text) => text.to_owned(),
            Piece::Name(name) => resolve(name, from),
        })
        .collect()
}

/// The number behind a name, for an estimate.
pub fn number(name: &str, from: &dyn Lookup) -> Option<f64> {
    let (head, rest) = name.split_once('.')?;
    match head {
        "formula" => Some((formula::find(rest)?.value)(from.config())),
        "pair" => {
            let pair = from.pair().filter(|pair| pair.n > 0)?;
            match rest {
                "ratio" => Some(pair.ratio),
                "low" => Some(pair.low),
                "high" => Some(pair.high),
                _ => None,
            }
        }
        "ratio" => {
            let broken = metric::value(rest, from.finished(Subject::Broken)?)?;
            let fixed = metric::value(rest, from.finished(Subject::Fixed)?)?;
            (fixed != 0.0).then(|| broken / fixed)
        }
        _ => metric::value(rest, from.finished(subject(head)?)?),
    }
}

fn value(name: &str, from: &dyn Lookup) -> Option<String> {
    let (head, rest) = name.split_once('.').unwrap_or((name, ""));
    match head {
        "ln_vocab" => Some(show(from.config().ln_vocab(), 3)),
        "config" => Some((knob(rest)?.get)(from.config())),
        "formula" => Some(show(number(name, from)?, formula::find(rest)?.decimals)),
        "pair" => pair(rest, from.pair().filter(|pair| pair.n > 0)?),
        "prediction" => match (rest, from.prediction()) {
            ("choice", (choice, _)) => choice,
            (_, (_, range)) => {
                range.map(|(low, high)| format!("{} to {}", show(low, 2), show(high, 2)))
            }
        },
        "ratio" => {
            let ratio = show(number(name, from)?, 2);
            Some(format!(
                "{ratio}x{}",
                ratio::profiles(rest, from).unwrap_or_default()
            ))
        }
        _ if TEXTS.contains(&rest) => words(rest, from.finished(subject(head)?)?),
        _ => Some(measured(rest, number(name, from)?)),
    }
}

fn pair(name: &str, pair: &Pair) -> Option<String> {
    match name {
        "ratio" => Some(format!("{}x", show(pair.ratio, 3))),
        "low" => Some(show(pair.low, 3)),
        "high" => Some(show(pair.high, 3)),
        "n" => Some(pair.n.to_string()),
        "verdict" => Some(pair.verdict.to_string()),
        "a_ms" => Some(format!("{} ms", show(pair.a_ms.median, 2))),
        "b_ms" => Some(format!("{} ms", show(pair.b_ms.median, 2))),
        _ => None,
    }
}

fn subject(word: &str) -> Option<Subject> {
    Subject::ALL
        .iter()
        .find(|(name, _)| *name == word)
        .map(|(_, subject)| *subject)
}

fn last(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or(path)
}

fn knob(name: &str) -> Option<&'static crate::config::Knob> {
    KNOBS.iter().find(|knob| {
        knob.path == name || last(knob.path) == name || last(knob.path).replace('-', "_") == name
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Preset;

    #[test]
    fn every_listed_name_is_known_and_resolves_without_a_run() {
        let config = RunConfig::preset(Preset::Tiny);
        for name in names() {
            assert_eq!(problem(&name), None);
            let shown = resolve(&name, &Figures::none(&config));
            assert!(
                !shown.is_empty() && !shown.contains("{{"),
                "{name}: {shown}"
            );
        }
    }

    #[test]
    fn figures_come_from_their_run() {
        let config = RunConfig::preset(Preset::Tiny);
        let broken = Finished {
            steps: 20,
            loss_first: 122.04.into(),
            ..Finished::default()
        };
        let figures = Figures {
            broken: Some(&broken),
            choice: Some(2),
            ..Figures::none(&config)
        };
        let text =
            "{{broken.loss_first}} and {{ fixed.loss_first }}, you said {{prediction.choice}}";
        assert_eq!(
            fill(text, &figures),
            "122.04 and not measured yet, you said c"
        );
        assert_eq!(
            fill("ln {{config.vocab}} = {{ln_vocab}}", &figures),
            "ln 1000 = 6.908"
        );
        assert_eq!(fill("a {{ b", &figures), "a {{ b");
        assert_eq!(
            resolve("broken.kernels.launches_per_step", &figures),
            NOT_MEASURED
        );
    }

    #[test]
    fn a_misspelt_name_is_told_its_neighbour() {
        assert_eq!(
            problem("fixed.los_first").as_deref(),
            Some(
                "unknown figure `{{fixed.los_first}}`; the nearest known one is `{{fixed.loss_first}}`"
            )
        );
        assert!(problem("formula.nothing").is_some());
        assert_eq!(problem("ratio.part.attention.ms"), None);
    }

    #[test]
    fn numbers_read_well() {
        assert_eq!(show(31_977_984.0, 0), "31,977,984");
        assert_eq!(show(-1234.5, 1), "-1,234.5");
        assert_eq!(show(0.000_000_4, 3), "4.0e-7");
        assert_eq!(show(f64::NAN, 2), "NaN");
        assert_eq!(measured("phases.forward", 0.0123), "12.3 µs");
        assert_eq!(measured("phases.forward", 41.5), "41.50 ms");
        assert_eq!(measured("phases.residual", 4e-5), "< 0.1 µs");
        assert_eq!(measured("phases.residual_pct", 8.8e-5), "< 0.1 %");
        assert_eq!(measured("parity", 3.66e-7), "3.7e-7");
        assert_eq!(measured("parity", 0.4219), "0.422");
    }
}
