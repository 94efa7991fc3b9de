//! Compares the criteria of a stage with the measurements of a run and of pairs. A ratio passes only if its whole interval does.

use super::{CriterionResult, Found, StageReport, interval, not_measured};
use crate::course::check::{Check, Metric, Target, Test};
use crate::course::{Stage, formula, metric, placeholder};
use protocol::config::RunConfig;
use protocol::{Finished, Pair, Verdict};

/// The facts that are compared with the criteria.
#[derive(Clone, Copy, Debug, Default)]
pub struct StageFacts<'a> {
    /// The learner's present configuration.
    pub config: Option<&'a RunConfig>,
    /// The summary of its run.
    pub finished: Option<&'a Finished>,
    /// The comparison of the broken configuration (A) with the learner's (B).
    pub pair: Option<&'a Pair>,
    /// The number of questions answered correctly at any try. `None` before they were asked.
    pub quiz_right: Option<usize>,
}

/// Judges every criterion of the stage.
pub fn evaluate(stage: &Stage, facts: StageFacts<'_>) -> StageReport {
    let judge = Judge {
        facts,
        config: facts.config.unwrap_or(&stage.fixed),
        steps: stage.steps,
        questions: stage.quiz.len(),
    };
    let mut lines = Vec::from_iter(facts.config.map(|config| scope(stage, config)));
    lines.extend(stage.checks.iter().map(|check| judge.line(check)));
    StageReport {
        stage: stage.id.clone(),
        lines,
    }
}

/// Judges that only knobs which the stage offers were changed. If others were, a comparison says nothing about the fault.
fn scope(stage: &Stage, config: &RunConfig) -> CriterionResult {
    let started = stage.broken_at(config.preset);
    let mut other = started.differences(config);
    other.retain(|path| !stage.offers.iter().any(|offer| offer == path));
    let measured = match other.as_slice() {
        [] => "nothing else differs".to_owned(),
        other => format!("{} differs", other.join(", ")),
    };
    let asked = "only knobs of this stage may differ from the starter".to_owned();
    let passed = Some(other.is_empty());
    CriterionResult::new("nothing else may change", asked, (measured, passed))
}

/// Judges one criterion of a detective exercise by its recorded run alone.
pub(super) fn recorded(check: &Check, config: &RunConfig, run: &Finished) -> CriterionResult {
    let facts = StageFacts {
        config: Some(config),
        finished: Some(run),
        ..StageFacts::default()
    };
    let judge = Judge {
        facts,
        config,
        steps: 0,
        questions: 0,
    };
    judge.line(check)
}

/// The facts by which criteria are judged, and the settings of the stage.
#[derive(Clone, Copy)]
struct Judge<'a> {
    facts: StageFacts<'a>,
    /// The configuration from which formulas are computed.
    config: &'a RunConfig,
    /// The number of steps after which the last loss counts.
    steps: u64,
    /// The number of questions in the quiz.
    questions: usize,
}

impl Judge<'_> {
    /// Judges one criterion.
    fn line(self, check: &Check) -> CriterionResult {
        let run = self.facts.finished;
        let questions = self.questions;
        let wanted = check.test == Test::Present;
        let (asked, found) = match &check.metric {
            Metric::Figure(name) => {
                let decimals = metric::decimals_and_unit(name).0.min(4);
                let asked = format!("{name} {}", self.asked(&check.test, decimals));
                (asked, self.figure(name, check))
            }
            Metric::Ratio => {
                let asked = self.asked(&check.test, 2);
                let found = match self.facts.pair.filter(|pair| pair.n > 0) {
                    Some(pair) => self.ratio(pair, check),
                    None => not_measured("needs a paired comparison"),
                };
                (format!("ratio, its whole interval {asked}"), found)
            }
            Metric::Lint(name) => {
                let word = |is_present| if is_present { "present" } else { "absent" };
                let found = match run.filter(|run| run.steps > 0) {
                    Some(run) => {
                        let is_present = run.lints.iter().any(|lint| lint.name == *name);
                        (word(is_present).to_owned(), Some(is_present == wanted))
                    }
                    None => not_measured("no run yet"),
                };
                (format!("lint `{name}` {}", word(wanted)), found)
            }
            Metric::Part(part) => {
                let found = match run.and_then(|run| metric::has_part(run, part)) {
                    Some(true) => ("there".to_owned(), Some(wanted)),
                    Some(false) => ("not there".to_owned(), Some(!wanted)),
                    None => not_measured("no step was profiled"),
                };
                let place = if wanted { "in" } else { "not in" };
                (format!("`{part}` {place} the kernel list"), found)
            }
            Metric::Quiz => {
                let found = match self.facts.quiz_right {
                    Some(right) => (format!("{right} of {questions}"), Some(right >= questions)),
                    None => not_measured("not answered yet"),
                };
                (format!("all {questions} questions answered rightly"), found)
            }
        };
        CriterionResult {
            optional: check.optional,
            ..CriterionResult::new(&check.name, asked, found)
        }
    }

    /// Judges a figure of the run.
    fn figure(self, name: &str, check: &Check) -> Found {
        let Some(run) = self.facts.finished else {
            return not_measured("no run yet");
        };
        if name == "parity" && self.facts.config.is_some_and(RunConfig::is_reference) {
            return ("0, this is the reference itself".to_owned(), Some(true));
        }
        if name == "loss_last" && run.loss_last.0.is_finite() && run.steps < self.steps {
            return not_measured(format!("{} of {} steps", run.steps, self.steps));
        }
        let Some(found) = metric::value(name, run) else {
            return not_measured("this run did not measure it");
        };
        let shown = placeholder::measured(name, found);
        match self.passes(&check.test, found) {
            Some(false) => match self.distance(&check.test, found) {
                Some(distance) => {
                    let side = if distance > 0.0 { "high" } else { "low" };
                    let size = placeholder::difference(name, distance);
                    (format!("{shown}, {size} too {side}"), Some(false))
                }
                None => (shown, Some(false)),
            },
            Some(passed) => (shown, Some(passed)),
            None => (format!("{shown}; the other side was not measured"), None),
        }
    }

    /// Judges a ratio that was measured in pairs.
    fn ratio(self, pair: &Pair, check: &Check) -> Found {
        // The end of the interval that is less favourable for the claim decides.
        let worst = match check.test {
            Test::Below(_) | Test::AtMost(_) => pair.high,
            _ => pair.low,
        };
        let passed = worst.and_then(|worst| self.passes(&check.test, worst));
        // With an unclear verdict the claim is only decided if the whole interval supports it.
        let open = passed != Some(true) && pair.verdict == Verdict::Unclear;
        (interval(pair), if open { None } else { passed })
    }

    /// Returns the number of a target. `None` if it was not measured.
    fn target(self, target: &Target) -> Option<f64> {
        match target {
            Target::Number(x) => Some(*x),
            Target::Named(name) => match name.strip_prefix("formula.") {
                Some(name) => Some((formula::find(name)?.value)(self.config)),
                None if name == "ln_vocab" => Some(self.config.ln_vocab()),
                None => metric::value(name, self.facts.finished?),
            },
        }
    }

    /// Returns true if a figure passes a test. `None` if the test compares no figures, or its target was not measured.
    fn passes(self, test: &Test, found: f64) -> Option<bool> {
        let wanted = self.target(test.target()?)?;
        Some(match test {
            Test::Within(share, _) => (found - wanted).abs() <= share * wanted.abs(),
            Test::AtLeast(_) => found >= wanted,
            Test::AtMost(_) => found <= wanted,
            Test::Above(_) => found > wanted,
            Test::Below(_) => found < wanted,
            Test::Present | Test::Absent | Test::Right => return None,
        })
    }

    /// Returns the distance of a failed figure from the nearest one that would pass. It is positive if the figure is too high.
    fn distance(self, test: &Test, found: f64) -> Option<f64> {
        let wanted = self.target(test.target()?)?;
        let distance = match test {
            Test::Within(share, _) => {
                let allowed = share * wanted.abs();
                found - wanted - allowed.copysign(found - wanted)
            }
            _ => found - wanted,
        };
        distance.is_finite().then_some(distance)
    }

    /// Returns a test in words: "within 3 % of 6.93 (formula.first_loss)".
    fn asked(self, test: &Test, decimals: usize) -> String {
        let target = match test.target() {
            None => String::new(),
            Some(Target::Number(x)) => x.to_string(),
            Some(target @ Target::Named(name)) => match self.target(target) {
                Some(x) => format!("{} ({name})", protocol::units::show(x, decimals)),
                None => name.clone(),
            },
        };
        match test {
            Test::Within(share, _) => format!("within {} % of {target}", share * 100.0),
            Test::AtLeast(_) => format!("at least {target}"),
            Test::AtMost(_) => format!("at most {target}"),
            Test::Above(_) => format!("above {target}"),
            Test::Below(_) => format!("below {target}"),
            Test::Present => "present".to_owned(),
            Test::Absent => "absent".to_owned(),
            Test::Right => "right".to_owned(),
        }
    }
}
