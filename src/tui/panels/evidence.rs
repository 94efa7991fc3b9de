//! What the stage's lesson points at, measured on this model: the logits, the residual stream, parity with the plain
//! reference, strides as the attention received them.

use ratatui::text::{Line, Span};

use super::large::{self, Picture, Row};
use super::ledger;
use crate::course::Beat;
use crate::limits::PARITY_F32;
use crate::panel::Panel;
use crate::protocol::{Evidence, Num, Slot};
use crate::tui::surface::{Surface, letter, missing, slots};
use crate::tui::text;
use crate::tui::theme::Theme;
use crate::units::{duration, number, show};

/// How to read it.
pub const READING: &[&str] = &[
    "Logits: the scores of all tokens. Predicts its input: positions whose highest score is the token they were given. \
             Parity: the largest difference from a plain model with the same weights, over the largest logit; \
             rounding stays below 1e-4, in f16 below 5e-3, in bf16 below 4e-2.",
];

/// Columns of a name, and the fewest of a figure.
const NAME: usize = 19;
const FIGURE: usize = 23;

pub fn draw(s: &mut Surface<'_, '_>) -> u16 {
    let (app, theme) = (s.app, s.theme);
    let known = slots(app).filter_map(|(slot, run)| Some((slot, run.evidence.as_ref()?)));
    let known: Vec<(Slot, &Evidence)> = known.collect();
    let steps = known.iter();
    let steps = steps.map(|(slot, it)| format!("{} at step {}", letter(*slot), it.step));
    s.open(Panel::Evidence, &steps.collect::<Vec<_>>().join(" · "));
    let mut figures = Figures {
        lines: Vec::new(),
        known: &known,
        width: usize::from(s.area.width),
        theme,
    };
    if known.is_empty() {
        figures
            .lines
            .push(missing("the engine has not looked yet", theme));
    }
    let f = &mut figures;
    f.plain("logits' spread", |it| it.logit_std.map(|x| number(x.0)));
    f.plain("logits from, to", |it| {
        let (low, high) = (it.logit_min?.0, it.logit_max?.0);
        Some(format!("{}, {}", number(low), number(high)))
    });
    f.plain("predicts its input", |it| {
        it.argmax_is_input.map(|it| format!("{:.0} %", 100.0 * it))
    });
    let started = app.run.shown().started.as_ref();
    let most = started.map_or(PARITY_F32, |it| it.run.config.rounding());
    f.add("parity", |it| {
        let far = it.parity?.0;
        Some((parity(far), Some(far.is_finite() && far <= most)))
    });
    if !known.is_empty() && !app.withholds("clocks") {
        let clocks = ledger::clocks_in_short(app.run.shown(), s.area.width, theme);
        f.lines.extend(clocks);
    }
    for (slot, it) in &known {
        f.lines.extend(rms(*slot, &it.rms, theme));
    }
    let shown = known.iter().filter(|_| !app.withholds("strides"));
    let strides = shown.flat_map(|(_, it)| &it.strides);
    let mut names: Vec<&str> = strides.map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    for name in names {
        f.plain(&format!("strides of {name}"), |it| {
            let found = it.strides.iter().find(|(of, _)| of == name);
            found.map(|(_, strides)| format!("{strides:?}"))
        });
    }
    let lines = figures.lines;
    s.show_panel(Panel::Evidence, lines)
}

/// The figures that are looked at, in large.
pub fn draw_large(s: &mut Surface<'_, '_>, cue: &Beat) -> u16 {
    let (app, theme) = (s.app, s.theme);
    let known = slots(app).filter_map(|(slot, run)| Some((slot, run.evidence.as_ref()?)));
    let known: Vec<(Slot, &Evidence)> = known.collect();
    let Some((_, it)) = known
        .iter()
        .find(|(slot, _)| *slot == app.run.active)
        .or(known.last())
    else {
        return s.missing("the engine has not looked yet");
    };
    let row = |name: &str, figure: String, picture: Picture| Row {
        name: name.to_owned(),
        style: theme.strong,
        details: String::new(),
        figure,
        figure_style: theme.strong,
        picture,
        ink: theme.slot(app.run.active),
    };
    // Both runs in one figure, where there are two.
    let both = |value: &dyn Fn(&Evidence) -> Option<String>| {
        let values: Vec<String> = known.iter().filter_map(|(_, it)| value(it)).collect();
        (!values.is_empty()).then(|| values.join(" → "))
    };
    let mut rows = Vec::new();
    let mut add = |name: &str, figure: Option<String>| {
        rows.extend(figure.map(|it| row(name, it, Picture::Nothing)))
    };
    add(
        "logits' spread",
        both(&|it| it.logit_std.map(|x| number(x.0))),
    );
    add(
        "largest logit",
        both(&|it| it.logit_max.map(|x| number(x.0))),
    );
    add(
        "predicts its input",
        both(&|it| it.argmax_is_input.map(|it| format!("{:.0}%", 100.0 * it))),
    );
    add("parity", both(&|it| it.parity.map(|x| parity(x.0))));
    let rms: Vec<f64> = it.rms.iter().map(|x| x.0).collect();
    if let Some((first, last)) = rms.first().zip(rms.last()) {
        let figure = format!("{}-{}", show(*first, 2), show(*last, 2));
        rows.push(row("rms by layer", figure, Picture::Columns(rms.clone())));
    }
    if let Some((clocks, _)) = app
        .run
        .shown()
        .clocks()
        .filter(|_| !app.withholds("clocks"))
    {
        let times = [
            ("clock: submitted", Some(clocks.enqueue)),
            ("clock: device computes", clocks.device),
            ("clock: submitted and waited", Some(clocks.host_sync)),
        ];
        let most = times
            .iter()
            .filter_map(|it| it.1)
            .fold(f64::MIN_POSITIVE, f64::max);
        let times = times
            .into_iter()
            .filter_map(|(name, time)| Some((name, time?)));
        rows.extend(times.map(|(name, time)| row(name, duration(time), Picture::Bar(time / most))));
    }
    if !app.withholds("strides") {
        let strides = it.strides.iter();
        rows.extend(
            strides.map(|(of, it)| row(&format!("strides of {of}"), spaced(it), Picture::Nothing)),
        );
    }
    rows.retain(|row| cue.asks(&row.name));
    large::draw(s, rows)
}

/// `4096 32 64 1`
fn spaced(strides: &[usize]) -> String {
    let strides: Vec<String> = strides.iter().map(usize::to_string).collect();
    strides.join(" ")
}

/// The largest difference of the logits, as it is shown.
fn parity(far: f64) -> String {
    match far {
        0.0 => "0".to_owned(),
        far if far >= 0.01 => number(far),
        near => format!("{near:.1e}"),
    }
}

/// The lines of all figures, each with the values of all slots.
struct Figures<'a> {
    lines: Vec<Line<'static>>,
    known: &'a [(Slot, &'a Evidence)],
    width: usize,
    theme: &'a Theme,
}

impl Figures<'_> {
    fn plain(&mut self, name: &str, value: impl Fn(&Evidence) -> Option<String>) {
        self.add(name, |it| Some((value(it)?, None)));
    }

    /// One figure of all slots, on one line where it fits, and whether it is as it should be; nothing where no slot
    /// has it.
    fn add(&mut self, name: &str, value: impl Fn(&Evidence) -> Option<(String, Option<bool>)>) {
        let mut spans: Vec<Span<'static>> = Vec::new();
        let (mut used, mut name) = (0, name);
        for (slot, it) in self.known {
            let Some((figure, good)) = value(it) else {
                continue;
            };
            let plain = ("", self.theme.text);
            let (mark, style) = good.map_or(plain, |good| self.theme.mark(good));
            let wide = FIGURE.max(text::width(&figure) + 3);
            let cell = text::left(&format!(" {figure} {mark}"), wide);
            if used > 0 && used + text::width(cell.trim_end()) + 1 > self.width {
                self.lines.push(Line::from(std::mem::take(&mut spans)));
                used = 0;
            }
            if used == 0 {
                // The name stands on the first line only.
                let name = text::left(std::mem::take(&mut name), NAME);
                spans.push(Span::styled(name, self.theme.dim));
                used = NAME;
            }
            used += text::width(&cell) + 1;
            spans.push(Span::styled(letter(*slot), self.theme.slot(*slot)));
            spans.push(Span::styled(cell, style));
        }
        if !spans.is_empty() {
            self.lines.push(Line::from(spans));
        }
    }
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
        Span::styled(format!("{} {heights} ", letter(slot)), theme.slot(slot)),
        Span::styled(ends, theme.text),
    ]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::{PARITY_BF16, PARITY_F16};

    #[test]
    fn the_text_names_the_limits_of_parity() {
        let limits =
            format!("{PARITY_F32:e}, in f16 below {PARITY_F16:e}, in bf16 below {PARITY_BF16:e}.");
        assert!(READING[0].contains(&limits), "{limits}");
    }
}
