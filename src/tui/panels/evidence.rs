//! The figures that the stage's lesson refers to, measured on this model: the logits, the residual stream, parity with the plain
//! reference, strides as the attention received them.

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

/// How to read it.
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
    let (mut known, (_, it)) = (known.all, known.shown);
    // Only what was seen at the same step is compared.
    known.retain(|(_, other)| other.step == it.step);
    let steps = known.iter();
    let steps = steps.map(|(slot, it)| format!("{} at step {}", slot.into_str(), it.step));
    let mut content = Content::beside(steps.collect::<Vec<_>>().join(" · "));
    let ink = theme.slot(app.shown_run().active);
    // A figure of all runs that have it.
    let figure = |size: Option<Size>, name: &str, value: &dyn Fn(&Evidence) -> Option<Value>| {
        let values = known.iter().filter_map(|(slot, it)| {
            let slot = Some(*slot);
            Some(Value { slot, ..value(it)? })
        });
        let mut figure = Figure::new(name, String::new(), Picture::Nothing, ink);
        figure.values = values.collect();
        (!figure.values.is_empty()).then_some((size, Block::Figure(figure)))
    };
    let config = app.shown_run().shown().description.config.as_ref();
    let most = config.map_or(PARITY_F32, RunConfig::rounding);
    let figures = [
        figure(None, "logits' spread", &|it| {
            Some(number(it.logit_std?.0).into())
        }),
        figure(Some(Size::Normal), "logits from, to", &|it| {
            let (low, high) = (it.logit_min?.0, it.logit_max?.0);
            Some(format!("{}, {}", number(low), number(high)).into())
        }),
        figure(Some(Size::Large), "largest logit", &|it| {
            Some(number(it.logit_max?.0).into())
        }),
        figure(None, "predicts its input", &|it| {
            Some(format!("{:.0} %", 100.0 * it.argmax_is_input?).into())
        }),
        figure(None, "parity", &|it| {
            let far = it.parity?.0;
            let good = Some(far.is_finite() && far <= most);
            Some(Value {
                good,
                ..parity(far).into()
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
    let lines = known.iter();
    content.lines(lines.filter_map(|(slot, it)| rms(*slot, &it.rms, theme)));
    let rms: Vec<f64> = it.rms.iter().map(|x| x.0).collect();
    let mut large = |name: &str, value: String, picture: Picture| {
        content.figure(Size::Large, Figure::new(name, value, picture, ink));
    };
    if let Some((first, last)) = rms.first().zip(rms.last()) {
        let ends = format!("{}-{}", show(*first, 2), show(*last, 2));
        large("rms by layer", ends, Picture::Columns(rms));
    }
    let clocks = app.shown_run().shown().clocks();
    if let Some((clocks, _)) = clocks.filter(|_| !app.reading().withholds("clocks")) {
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
    for (of, strides) in &it.strides {
        let name = format!("strides of {of}");
        large(&name, spaced(strides), Picture::Nothing);
    }
    let strides = known.iter().flat_map(|(_, it)| &it.strides);
    let mut names: Vec<&str> = strides.map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    for name in names {
        let figure = figure(Some(Size::Normal), &format!("strides of {name}"), &|it| {
            let found = it.strides.iter().find(|(of, _)| of == name);
            Some(format!("{:?}", found?.1).into())
        });
        content.blocks.extend(figure);
    }
    content
}

/// `4096 32 64 1`
fn spaced(strides: &[usize]) -> String {
    let strides: Vec<String> = strides.iter().map(usize::to_string).collect();
    strides.join(" ")
}

/// The residual stream from the embedding to the last layer, as heights from zero.
fn rms(slot: Slot, values: &[Num], theme: &Theme) -> Option<Line<'static>> {
    let (first, last) = (values.first()?, values.last()?);
    let finite = values.iter().map(|x| x.0).filter(|x| x.is_finite());
    let high = finite.fold(0.0, f64::max) * 1.2;
    let heights = values.iter().map(|x| theme.symbols.spark(x.0, 0.0, high));
    let heights: String = heights.collect();
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
