//! The panel of the evidence shows the figures that the stage's lesson refers to, measured on this model: the logits, the residual stream,
//! parity with the plain reference, strides as the attention received them.

use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::content::{Block, Content, Figure, NAME, Picture, Size, Value};
use super::ledger;
use crate::app::App;
use crate::tui::surface::measured;
use crate::tui::text;
use crate::tui::theme::Theme;
use protocol::config::RunConfig;
use protocol::thresholds::PARITY_F32;
use protocol::units::{duration, number, parity, show};
use protocol::{Evidence, Num, Slot};

/// The explanation of the panel.
pub(super) const READING: &[&str] = &[
    "Logits: the scores of all tokens. Predicts its input: positions whose highest score is the token they were given. \
             Parity: the largest difference from a plain model with the same weights, over the largest logit; \
             rounding stays below 1e-4, in f16 below 5e-3, in bf16 below 4e-2.",
    "Submitted: the work is queued; device: it computes; synced: it is done. rms by layer: the typical size of what each \
             layer hands on. Strides: how far apart in memory neighbours are along each axis.",
];

pub(super) fn content<'a>(app: &'a App, theme: &'a Theme, area: Rect) -> Content<'a> {
    let Some(known) = measured(app, |run| run.evidence.as_ref()) else {
        return Content::missing("the engine has not looked yet", theme, area);
    };
    let shown = known.shown.1;
    // Only figures of the same step are compared.
    let mut known = known.all;
    known.retain(|(_, evidence)| evidence.step == shown.step);
    let steps: Vec<String> = known
        .iter()
        .map(|(slot, evidence)| format!("{} at step {}", slot.into_str(), evidence.step))
        .collect();
    let mut content = Content::beside(steps.join(" · "));
    let ink = theme.slot(app.shown_run().active);
    // Builds a figure of all runs that have a value.
    let figure = |size: Option<Size>, name: &str, value: &dyn Fn(&Evidence) -> Option<Value>| {
        let values: Vec<Value> = known
            .iter()
            .filter_map(|(slot, evidence)| {
                Some(Value {
                    slot: Some(*slot),
                    ..value(evidence)?
                })
            })
            .collect();
        if values.is_empty() {
            return None;
        }
        let mut figure = Figure::new(name, String::new(), Picture::Nothing, ink);
        figure.values = values;
        Some((size, Block::Figure(figure)))
    };
    let config = app.shown_run().shown().description.config.as_ref();
    let largest_parity = config.map_or(PARITY_F32, RunConfig::rounding);
    let figures = [
        figure(None, "logits' spread", &|evidence| {
            Some(number(evidence.logit_std?.0).into())
        }),
        figure(Some(Size::Normal), "logits from, to", &|evidence| {
            let (low, high) = (evidence.logit_min?.0, evidence.logit_max?.0);
            Some(format!("{}, {}", number(low), number(high)).into())
        }),
        figure(Some(Size::Large), "largest logit", &|evidence| {
            Some(number(evidence.logit_max?.0).into())
        }),
        figure(None, "predicts its input", &|evidence| {
            Some(format!("{:.0} %", 100.0 * evidence.argmax_is_input?).into())
        }),
        figure(None, "parity", &|evidence| {
            let found = evidence.parity?.0;
            Some(Value {
                good: Some(found.is_finite() && found <= largest_parity),
                ..parity(found).into()
            })
        }),
    ];
    content.blocks.extend(figures.into_iter().flatten());
    if !app.reading().withholds("clocks") {
        content.lines(ledger::clocks_in_short(
            app.shown_run().shown(),
            area.width,
            theme,
        ));
    }
    for (slot, evidence) in &known {
        content.lines(rms_line(*slot, &evidence.rms, theme));
    }
    let rms: Vec<f64> = shown.rms.iter().map(|rms| rms.0).collect();
    let mut large = |name: &str, value: String, picture: Picture| {
        content.figure(Size::Large, Figure::new(name, value, picture, ink));
    };
    if let Some((first, last)) = rms.first().zip(rms.last()) {
        let ends = format!("{}-{}", show(*first, 2), show(*last, 2));
        large("rms by layer", ends, Picture::Columns(rms));
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
            large(name, duration(time), Picture::Bar(time / longest));
        }
    }
    if app.reading().withholds("strides") {
        return content;
    }
    for (tensor, strides) in &shown.strides {
        let numbers: Vec<String> = strides.iter().map(usize::to_string).collect();
        let name = format!("strides of {tensor}");
        large(&name, numbers.join(" "), Picture::Nothing);
    }
    let mut tensors: Vec<&str> = known
        .iter()
        .flat_map(|(_, evidence)| &evidence.strides)
        .map(|(tensor, _)| tensor.as_str())
        .collect();
    tensors.sort_unstable();
    tensors.dedup();
    for tensor in tensors {
        let name = format!("strides of {tensor}");
        let figure = figure(Some(Size::Normal), &name, &|evidence| {
            let (_, strides) = evidence.strides.iter().find(|(of, _)| of == tensor)?;
            Some(format!("{strides:?}").into())
        });
        content.blocks.extend(figure);
    }
    content
}

/// Returns the rms of the residual stream from the embedding to the last layer as a row of heights from zero; `None` without values.
fn rms_line(slot: Slot, values: &[Num], theme: &Theme) -> Option<Line<'static>> {
    let (first, last) = (values.first()?, values.last()?);
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
        Span::styled(text::left("rms by layer", NAME), theme.dim),
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
        assert!(READING[0].contains(&limits), "{limits}");
    }
}
