//! What the stage's lesson points at, measured on this model: the logits, the residual stream, parity with the plain
//! reference, strides as the attention received them.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::{ledger, missing, open, show, slots};
use crate::app::guide::number;
use crate::app::{App, Panel};
use crate::protocol::{Evidence, Num, Slot};
use crate::tui::text;
use crate::tui::theme::Theme;

/// Largest parity that rounding explains.
const PARITY: f64 = 1e-4;

pub fn render(frame: &mut Frame<'_>, area: Rect, app: &App, theme: &Theme) -> u16 {
    let known: Vec<(Slot, &Evidence)> = slots(app)
        .filter_map(|(slot, run)| Some((slot, run.evidence.as_ref()?)))
        .collect();
    let steps: Vec<String> = known
        .iter()
        .map(|(slot, it)| format!("{} at step {}", letter(*slot), it.step))
        .collect();
    let aside = steps.join(" · ");
    let inner = open(frame, area, Panel::Evidence, &aside, app, theme);
    let mut lines = Vec::new();
    if known.is_empty() {
        lines.push(missing("the engine has not looked yet", theme));
    }
    figure(
        &mut lines,
        "logits' spread",
        &known,
        (inner.width, theme),
        |it| it.logit_std.map(|x| (number(x.0), None)),
    );
    figure(
        &mut lines,
        "logits from, to",
        &known,
        (inner.width, theme),
        |it| {
            Some((
                format!("{}, {}", number(it.logit_min?.0), number(it.logit_max?.0)),
                None,
            ))
        },
    );
    figure(
        &mut lines,
        "predicts its input",
        &known,
        (inner.width, theme),
        |it| {
            it.argmax_is_input
                .map(|share| (format!("{:.0} %", 100.0 * share), None))
        },
    );
    figure(&mut lines, "parity", &known, (inner.width, theme), |it| {
        it.parity.map(|x| {
            let good = x.0.is_finite() && x.0 <= PARITY;
            (
                match x.0 {
                    0.0 => "0".to_owned(),
                    far if far >= 0.01 => number(far),
                    near => format!("{near:.1e}"),
                },
                Some(good),
            )
        })
    });
    if !known.is_empty() {
        lines.push(ledger::clocks_in_a_line(app.run.shown(), theme));
    }
    for (slot, it) in &known {
        lines.extend(rms(*slot, &it.rms, theme));
    }
    let mut names: Vec<&str> = known
        .iter()
        .flat_map(|(_, it)| it.strides.iter().map(|(name, _)| name.as_str()))
        .collect();
    names.sort_unstable();
    names.dedup();
    for name in names {
        figure(
            &mut lines,
            &format!("strides of {name}"),
            &known,
            (inner.width, theme),
            |it| {
                let (_, strides) = it.strides.iter().find(|(of, _)| of == name)?;
                Some((format!("{strides:?}"), None))
            },
        );
    }
    show(
        frame,
        inner,
        lines,
        app.view.scroll_of(Panel::Evidence),
        theme,
    )
}

fn letter(slot: Slot) -> &'static str {
    if slot == Slot::A { "A" } else { "B" }
}

/// One figure of all slots, on one line where it fits; nothing where none has it.
fn figure(
    lines: &mut Vec<Line<'static>>,
    name: &str,
    known: &[(Slot, &Evidence)],
    (width, theme): (u16, &Theme),
    value: impl Fn(&Evidence) -> Option<(String, Option<bool>)>,
) {
    const NAME: usize = 19;
    const FIGURE: usize = 23;
    let mut spans = Vec::new();
    let mut used = 0;
    for (slot, it) in known {
        let Some((figure, good)) = value(it) else {
            continue;
        };
        let (mark, style): (&str, Style) = match good {
            None => ("", theme.text),
            Some(true) => (theme.symbols.good, theme.good),
            Some(false) => (theme.symbols.bad, theme.bad),
        };
        let cell = text::left(
            &format!(" {figure} {mark}"),
            FIGURE.max(text::width(&figure) + 3),
        );
        if used > 0 && used + text::width(cell.trim_end()) + 1 > usize::from(width) {
            lines.push(Line::from(std::mem::take(&mut spans)));
            used = 0;
        }
        if used == 0 {
            // The name stands on the first line only.
            let name = if spans.is_empty()
                && lines
                    .last()
                    .is_none_or(|line| !line.to_string().starts_with(name))
            {
                name
            } else {
                ""
            };
            spans.push(Span::styled(text::left(name, NAME), theme.dim));
            used = NAME;
        }
        used += text::width(&cell) + 1;
        spans.push(Span::styled(letter(*slot), theme.slot(*slot)));
        spans.push(Span::styled(cell, style));
    }
    if !spans.is_empty() {
        lines.push(Line::from(spans));
    }
}

/// The residual stream from the embedding to the last layer, as heights from zero.
fn rms(slot: Slot, values: &[Num], theme: &Theme) -> Option<Line<'static>> {
    let (first, last) = (values.first()?, values.last()?);
    let high = values
        .iter()
        .map(|x| x.0)
        .filter(|x| x.is_finite())
        .fold(0.0, f64::max);
    let heights: String = values
        .iter()
        .map(|x| theme.symbols.spark(x.0, 0.0, high * 1.2))
        .collect();
    Some(Line::from(vec![
        Span::styled(text::left("rms by layer", 19), theme.dim),
        Span::styled(letter(slot), theme.slot(slot)),
        Span::styled(format!(" {heights} "), theme.slot(slot)),
        Span::styled(
            format!(" from {} to {}", number(first.0), number(last.0)),
            theme.text,
        ),
    ]))
}
