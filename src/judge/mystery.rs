//! Judges a configuration in a mystery by the behaviour of a correct run, not by comparing it with the solution. The reports name unmet
//! criteria, never a knob.
//!
//! The verdict needs a fresh run of B, because a fault may have ruined the present weights, and pairs with the known-good configuration,
//! whose run is not shown. The configuration itself decides nothing, except that its `sync` says which times can be trusted.

use super::stage::StageFacts;
use super::{CriterionResult, Found, Outcome, StageReport, interval, not_measured};
use crate::course::metric;
use crate::course::mystery::Criterion;
use crate::course::placeholder::measured as shown;
use protocol::config::{RunConfig, Sync};
use protocol::thresholds::{FIRST_LOSS_NEAR, LOSS_MOVED, PARITY_F32, PHASES_MISS_STEP};
use protocol::units::show;
use protocol::{Finished, Pair, Verdict};

/// The number of steps of the judged run. The loss falls within them, and the learner can wait for them.
pub const STEPS: u64 = 60;

/// Judges every criterion. The pair compares the known-good configuration (A) with the learner's (B).
pub fn evaluate(measured: StageFacts<'_>) -> StageReport {
    let run = measured.finished.filter(|run| run.steps > 0);
    let of_run = |criterion: Criterion, asked: String, find: &dyn Fn(&Finished) -> Found| {
        let found = run.map_or_else(|| not_measured("no run yet"), find);
        CriterionResult::new(criterion.into_str(), asked, found)
    };
    let config = measured.config;
    let lines = vec![
        of_run(
            Criterion::Parity,
            format!("parity at most {PARITY_F32}"),
            &|run| parity(run, config),
        ),
        of_run(
            Criterion::Gradients,
            "100 % of the parameters".to_owned(),
            &|run| figure("grad.params_pct", run, |percent| percent >= 100.0),
        ),
        of_run(
            Criterion::Ledger,
            format!(
                "times end at a sync, phases miss the step by at most {} %",
                100.0 * PHASES_MISS_STEP
            ),
            &|run| ledger(run, config),
        ),
        of_run(
            Criterion::LossStarts,
            format!("first loss within {} % of ln V", 100.0 * FIRST_LOSS_NEAR),
            &|run| {
                figure("loss_first", run, |loss| {
                    (loss - run.ln_vocab).abs() <= FIRST_LOSS_NEAR * run.ln_vocab
                })
            },
        ),
        of_run(
            Criterion::LossFalls,
            format!("loss {LOSS_MOVED} below ln V after {STEPS} steps"),
            &falls,
        ),
        speed_line(measured.pair),
    ];
    StageReport {
        stage: "mystery".to_owned(),
        lines,
    }
}

/// Returns true if every criterion except speed is met, so that speed is worth measuring.
pub fn only_speed_is_open(report: &StageReport) -> bool {
    report
        .lines
        .iter()
        .all(|line| line.outcome == Outcome::Passed || line.name == Criterion::Speed.into_str())
}

/// Returns the names of the failed criteria.
pub fn unmet(report: &StageReport) -> Vec<&str> {
    report
        .lines
        .iter()
        .filter(|line| line.outcome == Outcome::Failed)
        .map(|line| line.name.as_str())
        .collect()
}

/// Judges a figure of the run.
fn figure(name: &str, run: &Finished, passes: impl Fn(f64) -> bool) -> Found {
    match metric::value(name, run) {
        Some(value) => (shown(name, value), Some(passes(value))),
        None => not_measured("this run did not measure it"),
    }
}

fn parity(run: &Finished, config: Option<&RunConfig>) -> Found {
    if config.is_some_and(RunConfig::is_reference) {
        return ("0, this is the reference itself".to_owned(), Some(true));
    }
    // The comparison is false for NaN, so NaN fails.
    figure("parity", run, |parity| parity <= PARITY_F32)
}

/// Judges the ledger. If the host waits only once a step, the phases are times of submitting, and only the whole step is judged.
fn ledger(run: &Finished, config: Option<&RunConfig>) -> Found {
    if run.step_ms.is_none() {
        return not_measured("no step was timed");
    }
    if run.clock != "host-sync" {
        return ("times do not end at a sync".to_owned(), Some(false));
    }
    let waits_once = |config: &RunConfig| config.measure.sync == Sync::PerStep || config.records();
    if config.is_some_and(waits_once) {
        return ("each step ends at a sync".to_owned(), Some(true));
    }
    figure("phases.residual_pct", run, |percent| {
        percent <= 100.0 * PHASES_MISS_STEP
    })
}

/// Judges whether the loss falls. A loss that has not fallen yet may still fall, but not one that became infinite or NaN.
fn falls(run: &Finished) -> Found {
    let last = run.loss_last.0;
    let text = format!("{} after {} steps", show(last, 3), run.steps);
    if run.ended.is_some() && !last.is_finite() {
        return (text, Some(false));
    }
    let falls = last <= run.ln_vocab - LOSS_MOVED;
    if !falls && run.steps < STEPS {
        return not_measured(format!("{} of {STEPS} steps", run.steps));
    }
    (text, Some(falls))
}

/// Judges whether the learner's configuration is as fast as the known-good one.
fn speed_line(pair: Option<&Pair>) -> CriterionResult {
    let found = match pair.filter(|pair| pair.done && pair.n > 0) {
        Some(pair) => (interval(pair), Some(pair.verdict != Verdict::Slower)),
        None => not_measured("needs a paired comparison"),
    };
    let asked = "compared in pairs, not `slower`".to_owned();
    CriterionResult::new(Criterion::Speed.into_str(), asked, found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::config::Preset;
    use protocol::{Evidence, GradSummary, Num, PhaseTimes, Spread};

    /// Returns a run that meets every criterion but speed.
    fn right_run() -> Finished {
        Finished {
            steps: STEPS,
            loss_first: Num(6.93),
            loss_last: Num(6.78),
            ln_vocab: 6.908,
            step_ms: Some(Spread::default()),
            clock: "host-sync".to_owned(),
            grad: GradSummary {
                tensors: 39,
                with_grad: 39,
                params_pct: 100.0,
                ..GradSummary::default()
            },
            phases_ms: Some(PhaseTimes {
                forward: 10.0,
                backward: 20.0,
                optimizer: 10.0,
                residual: 0.1,
                step: 40.1,
                ..PhaseTimes::default()
            }),
            evidence: Some(Evidence {
                parity: Some(Num(5e-7)),
                ..Evidence::default()
            }),
            ..Finished::default()
        }
    }

    fn pair(verdict: Verdict) -> Pair {
        Pair {
            n: 40,
            done: true,
            verdict,
            ..Pair::default()
        }
    }

    /// Returns the criteria that a right run does not meet after a change, with this `sync` and this verdict on speed.
    fn unmet_by(change: fn(&mut Finished), sync: Sync, verdict: Verdict) -> Vec<String> {
        let mut run = right_run();
        change(&mut run);
        let mut config = RunConfig::version("v3").expect("known");
        config.measure.sync = sync;
        let pair = pair(verdict);
        let report = evaluate(StageFacts {
            config: Some(&config),
            finished: Some(&run),
            pair: Some(&pair),
            quiz_right: None,
        });
        unmet(&report).into_iter().map(str::to_owned).collect()
    }

    #[test]
    fn each_fault_fails_only_its_own_criterion() {
        let good = Verdict::Same;
        type Case = (Criterion, fn(&mut Finished), Sync, Verdict);
        let cases: [Case; 8] = [
            (
                Criterion::Parity,
                |run| run.evidence.as_mut().expect("there").parity = Some(Num(0.3)),
                Sync::PerPhase,
                good,
            ),
            (
                Criterion::Parity,
                |run| run.evidence.as_mut().expect("there").parity = Some(Num(f64::NAN)),
                Sync::PerPhase,
                good,
            ),
            (
                Criterion::Gradients,
                |run| run.grad.params_pct = 11.5,
                Sync::PerPhase,
                good,
            ),
            (
                Criterion::Ledger,
                |run| run.clock = "enqueue".to_owned(),
                Sync::Never,
                good,
            ),
            (
                Criterion::Ledger,
                |run| run.phases_ms.as_mut().expect("there").residual = 9.0,
                Sync::PerPhase,
                good,
            ),
            (
                Criterion::LossStarts,
                |run| run.loss_first = Num(122.0),
                Sync::PerPhase,
                good,
            ),
            (
                Criterion::LossFalls,
                |run| run.loss_last = Num(6.93),
                Sync::PerPhase,
                good,
            ),
            (Criterion::Speed, |_| {}, Sync::PerPhase, Verdict::Slower),
        ];
        for (criterion, change, sync, verdict) in cases {
            assert_eq!(unmet_by(change, sync, verdict), [criterion.into_str()]);
        }
    }

    #[test]
    fn another_correct_configuration_passes_too() {
        let waits_once =
            |run: &mut Finished| run.phases_ms.as_mut().expect("there").residual = 39.0;
        for verdict in [Verdict::Same, Verdict::Faster, Verdict::Unclear] {
            assert!(unmet_by(|_| {}, Sync::PerPhase, verdict).is_empty());
            assert!(unmet_by(waits_once, Sync::PerStep, verdict).is_empty());
        }
    }

    #[test]
    fn a_criterion_that_was_not_measured_has_not_passed() {
        let config = RunConfig::preset(Preset::Tiny);
        let report = evaluate(StageFacts::default());
        assert_eq!(report.outcome(), Outcome::NotMeasured);
        let mut run = right_run();
        let measured = |run: &Finished| {
            evaluate(StageFacts {
                config: Some(&config),
                finished: Some(run),
                ..StageFacts::default()
            })
        };
        let report = measured(&run);
        assert!(only_speed_is_open(&report) && !report.passed());
        // A loss that has not fallen yet may still fall. A loss that is NaN will not.
        run.steps = 8;
        run.loss_last = Num(6.92);
        assert!(unmet(&measured(&run)).is_empty());
        assert!(!only_speed_is_open(&measured(&run)));
        run.loss_last = Num(f64::NAN);
        run.ended = Some("not-finite: loss".to_owned());
        assert_eq!(unmet(&measured(&run)), [Criterion::LossFalls.into_str()]);
    }
}
