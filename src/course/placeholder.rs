//! Placeholders such as `{{run.loss_first}}`: their names, and the text that each one stands for in this learner's runs. A
//! figure that was not measured reads `not measured yet`; an unknown name is an error of the course.

mod pieces;
mod told;

use crate::units::show;
pub use pieces::{Piece, measured, pieces};
pub use told::{NO_FIGURE, figure, notice, told};

use super::{formula, metric};
use crate::config::{KNOBS, RunConfig, nearest};
use crate::protocol::{Finished, Pair};

/// The text in place of a missing figure.
pub const NOT_MEASURED: &str = "not measured yet";

/// The run that a figure belongs to.
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
    fn language(&self) -> &str;
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
    pub config: &'a RunConfig,
    pub choice: Option<usize>,
    pub language: &'a str,
}

impl<'a> Figures<'a> {
    /// Nothing measured yet.
    pub const fn none(config: &'a RunConfig) -> Self {
        Self {
            run: None,
            broken: None,
            fixed: None,
            config,
            choice: None,
            language: "en",
        }
    }
}

impl Lookup for Figures<'_> {
    fn finished(&self, subject: Subject) -> Option<&Finished> {
        match subject {
            Subject::Run => self.run,
            Subject::Broken => self.broken,
            Subject::Fixed => self.fixed,
            Subject::A | Subject::B => None,
        }
    }

    fn pair(&self) -> Option<&Pair> {
        None
    }

    fn config(&self) -> &RunConfig {
        self.config
    }

    fn language(&self) -> &str {
        self.language
    }

    fn prediction(&self) -> (Option<String>, Option<(f64, f64)>) {
        let letter = |choice| char::from_u32('a' as u32 + u32::try_from(choice).ok()?);
        (self.choice.and_then(letter).map(String::from), None)
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
    let metrics = || metric::METRICS.iter().map(|metric| metric.name);
    let formulas = formula::FORMULAS.iter().map(|formula| formula.name);
    let under = |head: &str, names: Vec<&str>| -> Vec<String> {
        names.iter().map(|name| format!("{head}.{name}")).collect()
    };
    let mut all = vec!["ln_vocab".to_owned()];
    all.extend(under("prediction", vec!["choice", "estimate"]));
    all.extend(under(
        "config",
        KNOBS.iter().map(|knob| last(knob.path)).collect(),
    ));
    all.extend(under("formula", formulas.collect()));
    all.extend(under("pair", PAIR.to_vec()));
    all.extend(under("ratio", metrics().collect()));
    for (subject, _) in Subject::ALL {
        all.extend(under(
            subject,
            metrics().chain(TEXTS.iter().copied()).collect(),
        ));
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
                profiles(rest, from).unwrap_or_default()
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

/// Figures of a run that are words or lists of numbers.
const TEXTS: &[&str] = &[
    "device",
    "clock",
    "state",
    "lints",
    "rms",
    "strides",
    "top_kernel",
];

/// A figure of [`TEXTS`] in words; `None` where the run has not shown it.
fn words(name: &str, run: &Finished) -> Option<String> {
    let text = match name {
        "device" => run.device.name.clone(),
        "clock" => run.clock.clone(),
        "state" => run.state.to_string(),
        "lints" if run.lints.is_empty() => "none".to_owned(),
        "lints" => run
            .lints
            .iter()
            .map(|lint| lint.name.clone())
            .collect::<Vec<_>>()
            .join(", "),
        "rms" => {
            let rms = &run.evidence.as_ref()?.rms;
            rms.iter()
                .map(|x| show(x.0, 3))
                .collect::<Vec<_>>()
                .join(" ")
        }
        "strides" => {
            let strides = run.evidence.as_ref()?.strides.iter();
            strides
                .map(|(name, s)| format!("{name} {s:?}"))
                .collect::<Vec<_>>()
                .join("  ")
        }
        "top_kernel" => {
            let top = run.kernels.top.first()?;
            format!("{} ({}), {} ms", top.scope, top.kernel, show(top.ms, 2))
        }
        _ => return None,
    };
    (!text.is_empty()).then_some(text)
}

/// How many profiled steps are behind each side of a ratio of kernel times, which are profiled and not timed steps; `None`
/// for other figures.
fn profiles(name: &str, from: &dyn Lookup) -> Option<String> {
    if !metric::of_profiles(name) {
        return None;
    }
    let of = |subject| Some(from.finished(subject)?.kernels.profiles.max(1));
    Some(match (of(Subject::Broken)?, of(Subject::Fixed)?) {
        (1, 1) => " (one profile each)".to_owned(),
        (a, b) if a == b => format!(" (medians, n {a} profiles each)"),
        (a, b) => format!(" (medians, n {a} and {b} profiles)"),
    })
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
    use crate::protocol::TopKernel;

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
        assert_eq!(measured("phases.forward", 0.0123), "12.3 µs");
        assert_eq!(measured("phases.forward", 41.5), "41.50 ms");
        assert_eq!(measured("phases.residual", 4e-5), "< 0.1 µs");
        assert_eq!(measured("phases.residual_pct", 8.8e-5), "< 0.1 %");
        assert_eq!(measured("parity", 3.66e-7), "3.7e-7");
        assert_eq!(measured("parity", 0.4219), "0.422");
    }

    #[test]
    fn a_ratio_of_kernel_times_says_how_many_profiles_it_rests_on() {
        let config = RunConfig::preset(Preset::Tiny);
        let run = |ms: f64, profiles: u32| {
            let mut run = Finished::default();
            run.kernels.profiles = profiles;
            run.kernels.top = vec![TopKernel {
                scope: "attention/forward".to_owned(),
                ms,
                ..TopKernel::default()
            }];
            run
        };
        let said = |a: u32, b: u32| {
            let (broken, fixed) = (run(3.0, a), run(2.0, b));
            let figures = Figures {
                broken: Some(&broken),
                fixed: Some(&fixed),
                ..Figures::none(&config)
            };
            resolve("ratio.part.attention.ms", &figures)
        };
        assert_eq!(said(0, 1), "1.50x (one profile each)");
        assert_eq!(said(4, 4), "1.50x (medians, n 4 profiles each)");
        assert_eq!(said(5, 2), "1.50x (medians, n 5 and 2 profiles)");
    }
}
