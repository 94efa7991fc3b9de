//! The panel of the evidence shows the figures that the stage's lesson refers to, measured on this model: the logits, the residual stream,
//! parity with the plain reference, and the strides of the tensors that the attention received.
//!
//! ```text
//! predicts its input A 98 %                  B 2 %
//! parity             A 3.0e-7 ✓              B 3.0e-7 ✓
//! submitted 0.800 ms · device 174.3 ms · synced 177.0 ms
//! rms by layer       A ▇▇▇▇▇  from 1.00 to 1.04
//! strides of k       A [8192, 2048, 32, 1]   B [8192, 2048, 32, 1]
//! ```

use std::collections::BTreeSet;

use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::content::{Content, Figure, NAME_OF_RUNS, Picture, Renderer, Value};
use super::ledger;
use crate::app::App;
use crate::tui::surface::measured;
use crate::tui::text;
use crate::tui::theme::Theme;
use protocol::config::RunConfig;
use protocol::thresholds::PARITY_F32;
use protocol::units::{duration, number, parity, show};
use protocol::{Evidence, Num, Slot};

pub(super) const EXPLANATION: &[&str] = &[
    "Logits: the scores of all tokens. \
     Predicts its input: positions whose highest score is the token they were given. \
     Parity: the largest difference from a plain model with the same weights, over the largest logit; \
     rounding stays below 1e-4, in f16 below 5e-3, in bf16 below 4e-2.",
    "Submitted: the work is queued; device: it computes; synced: it is done. \
     rms by layer: the typical size of what each layer hands on. \
     Strides: how far apart in memory neighbours are along each axis.",
];

/// The evidence of one step of A, of B or of both.
type EvidenceOfRuns<'a> = [(Slot, &'a Evidence)];

pub(super) fn content<'a>(app: &'a App, theme: &'a Theme, area: Rect) -> Content<'a> {
    let Some(evidence) = measured(app, |run| run.evidence.as_ref()) else {
        return Content::missing("the engine has not looked yet", theme, area);
    };
    let (_, shown) = evidence.shown;
    // Only figures of the same step are compared.
    let mut runs = evidence.all;
    runs.retain(|(_, evidence)| evidence.step == shown.step);
    let steps: Vec<String> = runs
        .iter()
        .map(|(slot, evidence)| format!("{} at step {}", slot.into_str(), evidence.step))
        .collect();
    let mut content = Content::with_aside(steps.join(" · "));
    compare_outputs(&runs, app, &mut content);
    if !app.reading().withholds("clocks") {
        content.lines(ledger::short_clocks(
            app.shown_run().shown(),
            area.width,
            theme,
        ));
    }
    for (slot, evidence) in &runs {
        content.lines(rms_line(*slot, &evidence.rms, theme));
    }
    large(shown, app, theme, &mut content);
    if !app.reading().withholds("strides") {
        compare_strides(&runs, &mut content);
    }
    content
}

/// Adds a figure with the value of each run that has one. Adds nothing if no run has a value.
fn compare(
    renderer: impl Into<Option<Renderer>>,
    name: &str,
    runs: &EvidenceOfRuns<'_>,
    value: impl Fn(&Evidence) -> Option<Value>,
    content: &mut Content<'_>,
) {
    let mut figure = Figure::new(name, String::new(), Picture::Nothing, Style::new());
    figure.values.clear();
    for (slot, evidence) in runs {
        if let Some(value) = value(evidence) {
            let slot = Some(*slot);
            figure.values.push(Value { slot, ..value });
        }
    }
    if !figure.values.is_empty() {
        content.figure(renderer, figure);
    }
}

/// Adds the figures of the logits and the parity of all runs.
fn compare_outputs(runs: &EvidenceOfRuns<'_>, app: &App, content: &mut Content<'_>) {
    let spread = |evidence: &Evidence| Some(number(evidence.logit_std?.0).into());
    compare(None, "logits' spread", runs, spread, content);
    let range = |evidence: &Evidence| {
        let low = number(evidence.logit_min?.0);
        let high = number(evidence.logit_max?.0);
        Some(format!("{low}, {high}").into())
    };
    compare(Renderer::Normal, "logits from, to", runs, range, content);
    let largest = |evidence: &Evidence| Some(number(evidence.logit_max?.0).into());
    compare(Renderer::Large, "largest logit", runs, largest, content);
    let inputs = |evidence: &Evidence| {
        let percent = 100.0 * evidence.argmax_is_input?;
        Some(format!("{percent:.0} %").into())
    };
    compare(None, "predicts its input", runs, inputs, content);
    let config = app.shown_run().shown().description.config.as_ref();
    let largest_parity = config.map_or(PARITY_F32, RunConfig::rounding);
    let judged_parity = |evidence: &Evidence| {
        let found = evidence.parity?.0;
        Some(Value {
            good: Some(found.is_finite() && found <= largest_parity),
            ..parity(found).into()
        })
    };
    compare(None, "parity", runs, judged_parity, content);
}

/// Adds the strides of each tensor, of all runs.
fn compare_strides(runs: &EvidenceOfRuns<'_>, content: &mut Content<'_>) {
    let tensors: BTreeSet<&str> = runs
        .iter()
        .flat_map(|(_, evidence)| &evidence.strides)
        .map(|(tensor, _)| tensor.as_str())
        .collect();
    for tensor in tensors {
        let strides = |evidence: &Evidence| {
            let (_, strides) = evidence.strides.iter().find(|(name, _)| name == tensor)?;
            Some(format!("{strides:?}").into())
        };
        let name = format!("strides of {tensor}");
        compare(Renderer::Normal, &name, runs, strides, content);
    }
}

/// Adds the figures of the shown run that only the large renderer draws: the rms by layer, the clocks, and the strides.
fn large(shown: &Evidence, app: &App, theme: &Theme, content: &mut Content<'_>) {
    let ink = theme.slot(app.shown_run().active);
    let mut add = |name: &str, value: String, picture: Picture| {
        content.figure(Renderer::Large, Figure::new(name, value, picture, ink));
    };
    let rms: Vec<f64> = shown.rms.iter().map(|rms| rms.0).collect();
    if let Some((first, last)) = rms.first().zip(rms.last()) {
        let ends = format!("{}-{}", show(*first, 2), show(*last, 2));
        add("rms by layer", ends, Picture::Columns(rms));
    }
    if !app.reading().withholds("clocks")
        && let Some((clocks, _)) = app.shown_run().shown().clocks()
    {
        let times = [
            ("clock: submitted", Some(clocks.enqueue)),
            ("clock: device computes", clocks.device),
            ("clock: submitted and waited", Some(clocks.host_sync)),
        ];
        let measured = times.iter().filter_map(|(_, time)| *time);
        let longest = measured.fold(f64::MIN_POSITIVE, f64::max);
        for (name, time) in times {
            let Some(time) = time else { continue };
            add(name, duration(time), Picture::Bar(time / longest));
        }
    }
    if !app.reading().withholds("strides") {
        for (tensor, strides) in &shown.strides {
            let numbers: Vec<String> = strides.iter().map(usize::to_string).collect();
            let name = format!("strides of {tensor}");
            add(&name, numbers.join(" "), Picture::Nothing);
        }
    }
}

/// Returns the rms of the residual stream from the embedding to the last layer as a row of heights from zero. `None` without values.
fn rms_line(slot: Slot, values: &[Num], theme: &Theme) -> Option<Line<'static>> {
    let first = values.first()?;
    let last = values.last()?;
    let largest = values
        .iter()
        .map(|value| value.0)
        .filter(|value| value.is_finite())
        .fold(0.0, f64::max);
    let heights: String = values
        .iter()
        .map(|value| theme.symbols.spark(value.0, 0.0, largest * 1.2))
        .collect();
    let ends = format!(" from {} to {}", number(first.0), number(last.0));
    Some(Line::from(vec![
        Span::styled(text::left("rms by layer", NAME_OF_RUNS), theme.dim),
        Span::styled(format!("{} {heights} ", slot.into_str()), theme.slot(slot)),
        Span::styled(ends, theme.text),
    ]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::thresholds::{PARITY_BF16, PARITY_F16};

    #[test]
    fn the_text_names_the_limits_of_parity() {
        let limits =
            format!("{PARITY_F32:e}, in f16 below {PARITY_F16:e}, in bf16 below {PARITY_BF16:e}.");
        assert!(EXPLANATION[0].contains(&limits), "{limits}");
    }
}
