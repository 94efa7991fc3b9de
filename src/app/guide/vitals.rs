//! The four vital signs every run shows, and how a figure is written in few characters.

use crate::app::App;
use crate::lints::FIRST_LOSS_LIMIT;
use crate::protocol::State;
use crate::units::{number, percent};

/// Whether a figure is as it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    Good,
    Bad,
    /// Neither, or not known yet.
    Open,
}

/// One figure every run shows.
#[derive(Clone, Debug, PartialEq)]
pub struct Vital {
    pub label: &'static str,
    pub value: String,
    pub mark: Mark,
}

/// Loss against ln(vocab), parameters with a gradient, whether the phases add up, FLOP/s against the peak.
pub fn vitals(app: &App) -> Vec<Vital> {
    let slot = app.run.shown();
    let vital = |label, value: String, mark| Vital { label, value, mark };
    if app.riddle() {
        // A mark would name the fault; the panels have the figures.
        let labels = ["loss", "trained", "residual", "peak"];
        return labels
            .map(|label| vital(label, "?".to_owned(), Mark::Open))
            .to_vec();
    }
    let unknown = |label| vital(label, "not measured".to_owned(), Mark::Open);
    let loss = match (slot.latest_loss(), &slot.started) {
        (Some(loss), Some(started)) if !began_well(app, started.ln_vocab) => {
            // A later loss below ln V does not undo it: the weights began wrong, and steps were spent on correcting that.
            let first = app.run.first_loss().unwrap_or(loss);
            vital(
                "first loss",
                format!(
                    "{} of ln V {:.2}, now {}",
                    number(first),
                    started.ln_vocab,
                    number(loss)
                ),
                Mark::Bad,
            )
        }
        (Some(loss), Some(started)) => {
            let mark = match loss {
                _ if !loss.is_finite() => Mark::Bad,
                _ if loss > FIRST_LOSS_LIMIT * started.ln_vocab => Mark::Bad,
                _ if started.entropy.is_some_and(|floor| loss < floor - 0.05) => Mark::Bad,
                _ if loss < started.ln_vocab => Mark::Good,
                _ => Mark::Open,
            };
            vital(
                "loss",
                format!("{} of ln V {:.2}", number(loss), started.ln_vocab),
                mark,
            )
        }
        _ => unknown("loss"),
    };
    let gradients = slot.gradients.as_ref().map_or_else(
        || unknown("trained"),
        |it| {
            let mark = if it.params_pct >= 100.0 - 1e-9 {
                Mark::Good
            } else {
                Mark::Bad
            };
            vital(
                "trained",
                format!("{} % of parameters", percent(it.params_pct)),
                mark,
            )
        },
    );
    let ledger = slot
        .phases()
        .filter(|phases| phases.step > 0.0)
        .map_or_else(
            || unknown("residual"),
            |phases| {
                let share = 100.0 * phases.residual / phases.step;
                let sign = if share < 0.0 { '-' } else { '+' };
                let mark = if share.abs() > 5.0 {
                    Mark::Bad
                } else {
                    Mark::Good
                };
                vital(
                    "residual",
                    format!("{sign}{} % of the step", percent(share.abs())),
                    mark,
                )
            },
        );
    let peak = match slot
        .throughput
        .as_ref()
        .map(|it| (it.flops, it.peak_flops, it.state))
    {
        Some((Some(flops), Some(peak), _)) if peak > 0.0 => {
            let share = 100.0 * flops / peak;
            vital(
                "peak",
                format!("{} % reached", percent(share)),
                // Plausible is not good: how near the peak a step should come, the roofline says.
                if share > 100.0 { Mark::Bad } else { Mark::Open },
            )
        }
        Some((Some(flops), ..)) => vital(
            "speed",
            format!("{} GFLOP/s", number(flops / 1e9)),
            Mark::Open,
        ),
        Some((None, _, State::Warming)) | None => unknown("peak"),
        Some((None, ..)) => vital("peak", "not synchronised".to_owned(), Mark::Open),
    };
    vec![loss, gradients, ledger, peak]
}

/// Whether the weights that train here began at a loss that knowing nothing explains; true while nobody saw them begin.
fn began_well(app: &App, ln_vocab: f64) -> bool {
    app.run
        .first_loss()
        .is_none_or(|first| first.is_finite() && first <= FIRST_LOSS_LIMIT * ln_vocab)
}
