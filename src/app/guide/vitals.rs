//! The four figures that every run shows in the header, and how a figure is written in few characters.

use crate::app::App;
use protocol::TimingState;
use protocol::story::RunStory;
use protocol::thresholds;
use protocol::units::{number, percent, signed_percent};

/// The verdict on a figure of the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FigureState {
    Good,
    Bad,
    /// The figure is neither good nor bad, or it is not known yet.
    Open,
}

/// One of the four figures of the header.
#[derive(Clone, Debug, PartialEq)]
pub struct RunFigure {
    pub label: &'static str,
    pub value: String,
    pub mark: FigureState,
}

/// Returns the four figures: the loss compared with ln(vocab), the share of parameters with a gradient, the share of the step that no
/// phase accounts for, and FLOP/s as a share of the peak.
pub fn vitals(app: &App) -> Vec<RunFigure> {
    if app.is_unsolved() {
        // A mark would reveal the fault; the panels have the figures.
        let labels = ["loss", "trained", UNACCOUNTED, SPEED];
        return labels
            .map(|label| vital(label, Some(("?".to_owned(), FigureState::Open))))
            .to_vec();
    }
    let slot = app.shown_run().shown();
    let trained = slot.gradients.as_ref().map(|gradients| {
        let value = format!("{} % of parameters", percent(gradients.params_pct));
        (value, good(gradients.params_pct >= 100.0))
    });
    let phases = slot.phases().filter(|phases| phases.step > 0.0);
    let unaccounted = phases.map(|phases| {
        let share = 100.0 * phases.residual / phases.step;
        let value = format!("{} % of the step", signed_percent(share));
        // With one wait a step the phases are only the times of submitting, so a gap is no fault.
        let waits_once = slot.description.waits_once();
        let limit = 100.0 * thresholds::PHASES_MISS_STEP;
        if share > limit && waits_once {
            (value, FigureState::Open)
        } else {
            (value, good(share.abs() <= limit))
        }
    });
    let all = [
        loss(app),
        vital("trained", trained),
        vital(UNACCOUNTED, unaccounted),
        speed(slot),
    ];
    let reading = app.reading();
    all.map(|figure| {
        // Stages name the speed `peak` in the list of what they hide.
        let name = if figure.label == SPEED {
            "peak"
        } else {
            figure.label
        };
        if reading.withholds_mark(name) {
            let later = ("shown later".to_owned(), FigureState::Open);
            vital(figure.label, Some(later))
        } else {
            figure
        }
    })
    .to_vec()
}

/// Makes a figure from its value and its verdict, or a figure that was not measured.
fn vital(label: &'static str, found: Option<(String, FigureState)>) -> RunFigure {
    let (value, mark) = found.unwrap_or_else(|| ("not measured".to_owned(), FigureState::Open));
    RunFigure { label, value, mark }
}

fn good(is_good: bool) -> FigureState {
    if is_good {
        FigureState::Good
    } else {
        FigureState::Bad
    }
}

/// Returns the figure of the loss, compared with the natural logarithm of the number of tokens. A first loss that is too high stays there.
fn loss(app: &App) -> RunFigure {
    let slot = app.shown_run().shown();
    let (Some((_, loss)), Some(ln_vocab)) = (slot.loss.last(), slot.description.ln_vocab) else {
        return vital("loss", None);
    };
    let limit = thresholds::highest_first_loss(ln_vocab);
    let of_ln_vocab = format!("of ln V {ln_vocab:.2}");
    // A later loss below ln V does not make up for a bad start: steps were spent on correcting the weights.
    if let Some(first) = app.shown_run().first_loss()
        && !(first.is_finite() && first <= limit)
    {
        let value = format!("{} {of_ln_vocab}, now {}", number(first), number(loss));
        return vital("first loss", Some((value, FigureState::Bad)));
    }
    // No model can predict better than the entropy of the data.
    let entropy = slot.description.entropy;
    let is_too_low = entropy.is_some_and(|entropy| loss < entropy - thresholds::LOSS_MOVED);
    let mark = if !loss.is_finite() || loss > limit || is_too_low {
        FigureState::Bad
    } else if loss < ln_vocab {
        FigureState::Good
    } else {
        FigureState::Open
    };
    let value = format!("{} {of_ln_vocab}", number(loss));
    vital("loss", Some((value, mark)))
}

const UNACCOUNTED: &str = "unaccounted";
const SPEED: &str = "speed";

/// Returns the figure of the speed: as a share of the measured peak, or in GFLOP/s where no peak can be used.
fn speed(run: &RunStory) -> RunFigure {
    let Some(throughput) = &run.throughput else {
        return vital(SPEED, None);
    };
    let value = match (throughput.flops, run.peak_flops()) {
        // A peak that was measured too low because other programs ran meanwhile is no use.
        (Some(flops), Some((peak, load))) if peak > 0.0 && (flops <= peak || load.is_none()) => {
            let share = 100.0 * flops / peak;
            // A plausible speed is not yet a good one: the roofline shows how near the peak a step should come.
            let mark = if share > 100.0 {
                FigureState::Bad
            } else {
                FigureState::Open
            };
            Some((format!("{} % of peak FLOP/s", percent(share)), mark))
        }
        (Some(flops), _) => Some((
            format!("{} GFLOP/s", number(flops / 1e9)),
            FigureState::Open,
        )),
        (None, _) if throughput.state == TimingState::Warming => None,
        // The arithmetic of another program's step is not known.
        (None, _) if run.description.forward_flops.is_none() => None,
        (None, _) => Some(("not synchronised".to_owned(), FigureState::Open)),
    };
    vital(SPEED, value)
}
