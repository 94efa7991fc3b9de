//! Placeholders in the texts of a course, such as `{{run.loss_first}}`: their names, and the figures of the learner's runs that replace
//! them. `It began at {{run.loss_first}}.` becomes `It began at 122.04.`, or `It began at not measured yet.` before there is a run. An
//! unknown name is an error of the course.

mod pieces;
mod sentences;

pub use pieces::{TextPiece, difference, measured, pieces};
use protocol::units::show;
pub use sentences::{
    NO_FIGURE, figure, fill_known, fill_with_notices, first_omitted_sentence, notice,
};

use super::save_file::letter;
use super::{formula, metric};
use protocol::config::{KNOBS, RunConfig, nearest};
use protocol::{Finished, Pair, Slot, TimingState};

/// The text of a missing figure.
pub const NOT_MEASURED: &str = "not measured yet";

/// The number of step times after which their median counts even if they are not steady.
const SETTLED_STEPS: u64 = 64;

/// The sources of figures. All of them but the configuration may be missing.
#[derive(Clone, Debug)]
pub struct FigureSources<'a> {
    /// The configuration of `formula.…` and `config.…`.
    pub config: &'a RunConfig,
    /// The runs of slots A and B.
    pub slots: [Option<Finished>; 2],
    /// The slot of the run on the screen.
    pub shown: Slot,
    pub pair: Option<&'a Pair>,
    /// The index of the learner's answer to the prediction.
    pub choice: Option<usize>,
    /// The learner's range for the stage's estimate.
    pub estimate: Option<(f64, f64)>,
}

impl<'a> FigureSources<'a> {
    /// Returns sources without any measurement.
    pub const fn none(config: &'a RunConfig) -> Self {
        Self {
            config,
            slots: [None, None],
            shown: Slot::A,
            pair: None,
            choice: None,
            estimate: None,
        }
    }

    /// Returns the run that one of [`RUNS`] names.
    fn run(&self, name: &str) -> Option<&Finished> {
        let runs = || self.slots.iter().flatten();
        let variant = |name| runs().find(|run| run.variant == name);
        match name {
            "run" => self.slots[self.shown as usize].as_ref(),
            "a" => self.slots[0].as_ref(),
            "b" => self.slots[1].as_ref(),
            "broken" => variant("broken"),
            "fixed" => variant("fixed").or_else(|| variant("custom")),
            _ => None,
        }
    }

    fn pair(&self) -> Option<&Pair> {
        self.pair.filter(|pair| pair.n > 0)
    }
}

/// The names of runs: the run on the screen, the stage as it starts, its solution, and the two slots.
const RUNS: &[&str] = &["run", "broken", "fixed", "a", "b"];
/// The figures of a paired comparison.
const PAIR: &[&str] = &["ratio", "low", "high", "n", "verdict", "a_ms", "b_ms"];

/// Returns the problem of a name that does not exist; `None` for a known name.
pub fn problem(name: &str) -> Option<String> {
    let (head, rest) = name.split_once('.').unwrap_or((name, ""));
    let is_known = match head {
        "ln_vocab" => rest.is_empty(),
        "config" => knob(rest).is_some(),
        "formula" => formula::find(rest).is_some(),
        "pair" => PAIR.contains(&rest),
        "prediction" => ["choice", "estimate"].contains(&rest),
        "ratio" => metric::is_known(rest),
        _ => RUNS.contains(&head) && (metric::is_known(rest) || TEXTS.contains(&rest)),
    };
    if is_known {
        return None;
    }
    let all = names();
    let near = nearest(name, closest(name, &all));
    Some(format!(
        "unknown figure `{{{{{name}}}}}`; the nearest known figure is `{{{{{near}}}}}`"
    ))
}

/// Returns the names that share the most words with `name`, such as `run.phases.optimizer` for `run.optimizer_ms`; all names where none
/// shares a word.
fn closest<'a>(name: &'a str, all: &'a [String]) -> impl Iterator<Item = &'a str> {
    let shared_words = |other: &str| {
        name.split(['.', '_'])
            .filter(|word| word.len() > 2)
            .filter(|word| other.split(['.', '_']).any(|part| part == *word))
            .count()
    };
    let most = all.iter().map(|other| shared_words(other)).max();
    all.iter()
        .map(String::as_str)
        .filter(move |other| Some(shared_words(other)) == most)
}

/// Returns all names except those of the times of parts, such as `run.part.attention.ms`.
pub fn names() -> Vec<String> {
    let metrics: Vec<&str> = metric::names().collect();
    let formulas = formula::FORMULAS.iter().map(|formula| formula.name);
    let knobs = KNOBS.iter().map(|knob| last_part(knob.path));
    let mut all = vec!["ln_vocab".to_owned()];
    let mut under = |head: &str, names: &[&str]| {
        all.extend(names.iter().map(|name| format!("{head}.{name}")));
    };
    under("prediction", &["choice", "estimate"]);
    under("config", &knobs.collect::<Vec<_>>());
    under("formula", &formulas.collect::<Vec<_>>());
    under("pair", PAIR);
    under("ratio", &metrics);
    for run in RUNS {
        under(run, &metrics);
        under(run, TEXTS);
    }
    all
}

/// Returns the text for a name. The text for an unknown name is the name in braces.
pub fn resolve(name: &str, from: &FigureSources<'_>) -> String {
    if problem(name).is_some() {
        return format!("{{{{{name}}}}}");
    }
    measured_text(name, from).unwrap_or_else(|| NOT_MEASURED.to_owned())
}

/// Returns a text in which figures replace all `{{name}}`.
pub fn fill(text: &str, from: &FigureSources<'_>) -> String {
    pieces(text)
        .into_iter()
        .map(|piece| match piece {
            TextPiece::Text(text) => text.to_owned(),
            TextPiece::Name(name) => resolve(name, from),
        })
        .collect()
}

/// Returns the number for a name; `None` if it is not a number or was not measured.
pub fn number(name: &str, from: &FigureSources<'_>) -> Option<f64> {
    let (head, rest) = name.split_once('.')?;
    match head {
        "formula" => Some((formula::find(rest)?.value)(from.config)),
        "pair" => {
            let pair = from.pair()?;
            match rest {
                "ratio" => Some(pair.ratio),
                "low" => pair.low,
                "high" => pair.high,
                _ => None,
            }
        }
        "ratio" => {
            let broken = metric::value(rest, from.run("broken")?)?;
            let fixed = metric::value(rest, from.run("fixed")?)?;
            (fixed != 0.0).then(|| broken / fixed)
        }
        _ => metric::value(rest, from.run(head)?),
    }
}

/// Returns the number for a name once it is settled. Figures of step times need enough steps, and the last loss needs `steps`, after which
/// a stage is judged.
pub fn settled(name: &str, from: &FigureSources<'_>, steps: u64) -> Option<f64> {
    let is_early = name.split_once('.').is_some_and(|(head, figure)| {
        from.run(head).is_some_and(|run| match figure {
            "loss_last" => run.steps < steps,
            _ => metric::depends_on_step_times(figure) && !times_are_settled(run),
        })
    });
    number(name, from).filter(|value| value.is_finite() && !is_early)
}

/// Returns true if the median of a run's step times will hardly change any more.
fn times_are_settled(run: &Finished) -> bool {
    let timed = run.step_ms.map_or(0, |times| times.n);
    run.state == TimingState::Steady || timed >= SETTLED_STEPS
}

/// Returns the text for a known name; `None` if its figure was not measured.
fn measured_text(name: &str, from: &FigureSources<'_>) -> Option<String> {
    let (head, rest) = name.split_once('.').unwrap_or((name, ""));
    Some(match head {
        "ln_vocab" => show(from.config.ln_vocab(), 3),
        "config" => (knob(rest)?.get)(from.config),
        "formula" => show(number(name, from)?, formula::find(rest)?.decimals),
        "pair" => match rest {
            "ratio" => format!("{}x", show(from.pair()?.ratio, 3)),
            "n" => from.pair()?.n.to_string(),
            "verdict" => from.pair()?.verdict.to_string(),
            "a_ms" => format!("{} ms", show(from.pair()?.a_ms.median, 2)),
            "b_ms" => format!("{} ms", show(from.pair()?.b_ms.median, 2)),
            _ => show(number(name, from)?, 3),
        },
        "prediction" if rest == "choice" => letter(from.choice?),
        "prediction" => {
            let (low, high) = from.estimate?;
            format!("{} to {}", show(low, 2), show(high, 2))
        }
        "ratio" => {
            let ratio = show(number(name, from)?, 2);
            format!("{ratio}x{}", profile_counts(rest, from).unwrap_or_default())
        }
        _ if TEXTS.contains(&rest) => return text_figure(rest, from.run(head)?),
        _ => measured(rest, number(name, from)?),
    })
}

/// The figures of a run that are words or lists of numbers.
const TEXTS: &[&str] = &[
    "device",
    "clock",
    "state",
    "lints",
    "rms",
    "strides",
    "top_kernel",
];

/// Returns the text for one of [`TEXTS`]; `None` if the run has not shown it.
fn text_figure(name: &str, run: &Finished) -> Option<String> {
    let evidence = run.evidence.as_ref();
    let text = match name {
        "device" => run.device.name.clone(),
        "clock" => run.clock.clone(),
        "state" => run.state.to_string(),
        "lints" if run.lints.is_empty() => "none".to_owned(),
        "lints" => join(&run.lints, ", ", |lint| lint.name.clone()),
        "rms" => join(&evidence?.rms, " ", |size| show(size.0, 3)),
        "strides" => join(&evidence?.strides, "  ", |(name, strides)| {
            format!("{name} {strides:?}")
        }),
        "top_kernel" => {
            let top = run.kernels.top.first()?;
            format!("{} ({}), {} ms", top.scope, top.kernel, show(top.ms, 2))
        }
        _ => return None,
    };
    (!text.is_empty()).then_some(text)
}

/// Returns the texts of some items with `between` between them.
fn join<T>(items: &[T], between: &str, text: impl Fn(&T) -> String) -> String {
    items.iter().map(text).collect::<Vec<_>>().join(between)
}

/// Returns the number of profiles behind each side of a ratio of kernel times, as words in brackets; `None` for other figures.
fn profile_counts(name: &str, from: &FigureSources<'_>) -> Option<String> {
    // Only the times of kernels are measured in profiled steps.
    metric::part_of(name)?;
    let count = |run| Some(from.run(run)?.kernels.profiles.max(1));
    Some(match (count("broken")?, count("fixed")?) {
        (1, 1) => " (one profile each)".to_owned(),
        (a, b) if a == b => format!(" (medians, n {a} profiles each)"),
        (a, b) => format!(" (medians, n {a} and {b} profiles)"),
    })
}

/// Returns the part of a path after its last point: `norm` for `model.norm`.
fn last_part(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or(path)
}

/// Returns the knob that a text calls `model.kv-heads`, `kv-heads` or `kv_heads`.
fn knob(name: &str) -> Option<&'static protocol::config::Knob> {
    KNOBS.iter().find(|knob| {
        let key = last_part(knob.path);
        knob.path == name || key == name || key.replace('-', "_") == name
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::config::Preset;
    use protocol::{PhaseTimes, Spread, TopKernel};

    #[test]
    fn every_listed_name_is_known_and_resolves_without_a_run() {
        let config = RunConfig::preset(Preset::Tiny);
        for name in names() {
            assert_eq!(problem(&name), None);
            let shown = resolve(&name, &FigureSources::none(&config));
            assert!(
                !shown.is_empty() && !shown.contains("{{"),
                "{name}: {shown}"
            );
        }
    }

    #[test]
    fn figures_come_from_the_run_that_their_name_begins_with() {
        let config = RunConfig::preset(Preset::Tiny);
        let broken = Finished {
            variant: "broken".to_owned(),
            steps: 20,
            loss_first: 122.04.into(),
            ..Finished::default()
        };
        let figures = FigureSources {
            slots: [Some(broken), None],
            choice: Some(2),
            ..FigureSources::none(&config)
        };
        for (text, filled) in [
            ("{{broken.loss_first}} and", "122.04 and"),
            ("at {{ fixed.loss_first }}", "at not measured yet"),
            ("you said {{prediction.choice}}", "you said c"),
            ("ln {{config.vocab}} = {{ln_vocab}}", "ln 1000 = 6.908"),
            ("a {{ b", "a {{ b"),
            ("{{broken.kernels.launches_per_step}}", NOT_MEASURED),
        ] {
            assert_eq!(fill(text, &figures), filled);
        }
    }

    /// Early medians still change, and so does the loss before the stage's last step. Other figures count at once.
    #[test]
    fn only_settled_figures_judge_a_range() {
        let config = RunConfig::preset(Preset::Tiny);
        let settled_at = |steps: u64, state: TimingState| {
            let times = |n| Spread {
                median: 30.0,
                n,
                ..Spread::default()
            };
            let run = Finished {
                variant: "fixed".to_owned(),
                steps,
                loss_first: 6.9.into(),
                loss_last: 6.5.into(),
                step_ms: Some(times(steps)),
                phases_ms: Some(PhaseTimes {
                    forward: 12.0,
                    backward: 16.0,
                    ..PhaseTimes::default()
                }),
                state,
                ..Finished::default()
            };
            let figures = FigureSources {
                slots: [None, Some(run)],
                ..FigureSources::none(&config)
            };
            let names = [
                "loss_first",
                "loss_last",
                "phases.backward_over_forward",
                "step_ms",
            ];
            names.map(|name| settled(&format!("fixed.{name}"), &figures, 40).is_some())
        };
        use TimingState::{Settling, Steady};
        assert_eq!(settled_at(10, Settling), [true, false, false, false]);
        assert_eq!(settled_at(40, Settling), [true, true, false, false]);
        assert_eq!(settled_at(40, Steady), [true; 4]);
        assert_eq!(settled_at(SETTLED_STEPS, Settling), [true; 4]);
    }

    #[test]
    fn shares_differ_by_percentage_points_and_times_by_milliseconds() {
        assert_eq!(
            difference("phases.residual_pct", -88.49),
            "88.5 percentage points"
        );
        assert_eq!(difference("step_ms", -12.5), "12.50 ms");
    }

    #[test]
    fn the_message_about_a_misspelt_name_has_the_nearest_name() {
        assert_eq!(
            problem("fixed.los_first").as_deref(),
            Some(
                "unknown figure `{{fixed.los_first}}`; the nearest known figure is `{{fixed.loss_first}}`"
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
        let run = |variant: &str, ms: f64, profiles: u32| {
            let mut run = Finished::default();
            variant.clone_into(&mut run.variant);
            run.kernels.profiles = profiles;
            run.kernels.top = vec![TopKernel {
                scope: "attention/forward".to_owned(),
                ms,
                ..TopKernel::default()
            }];
            Some(run)
        };
        let ratio = |a: u32, b: u32| {
            let figures = FigureSources {
                slots: [run("broken", 3.0, a), run("fixed", 2.0, b)],
                ..FigureSources::none(&config)
            };
            resolve("ratio.part.attention.ms", &figures)
        };
        assert_eq!(ratio(0, 1), "1.50x (one profile each)");
        assert_eq!(ratio(4, 4), "1.50x (medians, n 4 profiles each)");
        assert_eq!(ratio(5, 2), "1.50x (medians, n 5 and 2 profiles)");
    }
}
