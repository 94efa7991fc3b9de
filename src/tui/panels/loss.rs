//! The loss of A and B over steps, with ln V, where a model knows nothing, and the entropy of the data, below which
//! nothing honest can go. What is not finite is said, with its step, not drawn.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::{missing, open, slot_label, slots};
use crate::app::guide::number;
use crate::app::series::{Bucket, Series};
use crate::app::{App, Panel, Window};
use crate::protocol::Slot;
use crate::tui::chart::{Chart, Curve, Moment, Reference};
use crate::tui::theme::Theme;

pub fn render(frame: &mut Frame<'_>, area: Rect, app: &App, theme: &Theme) -> u16 {
    let scale = if app.log_axis() {
        "log axis"
    } else {
        "linear axis"
    };
    let inner = open(
        frame,
        area,
        Panel::Loss,
        &format!("nats · {scale} · {}", app.view.window.name()),
        app,
        theme,
    );
    if inner.height == 0 {
        return 0;
    }
    let legend = legend(app, theme, inner.width);
    let first = Rect { height: 1, ..inner };
    if legend.is_empty() {
        frame.render_widget(missing("no step has been trained yet", theme), first);
        return 0;
    }
    frame.render_widget(Line::from(legend), first);
    let plot = Rect {
        y: inner.y + 1,
        height: inner.height - 1,
        ..inner
    };
    chart(app, theme)
        .as_chart(app, theme)
        .render(plot, frame.buffer_mut());
    0
}

/// Which curve is whose, and where it stands, in as many words as there is room for.
fn legend(app: &App, theme: &Theme, columns: u16) -> Vec<Span<'static>> {
    let columns = usize::from(columns);
    let wordings = (0..=WORDS).rev().map(|words| legend_in(app, theme, words));
    let mut last = Vec::new();
    for spans in wordings {
        let used: usize = spans.iter().map(Span::width).sum();
        last = spans;
        if used <= columns {
            break;
        }
    }
    last
}

/// The most words that a legend takes.
const WORDS: u8 = 3;

/// The legend; more `words` say where a curve began, too.
fn legend_in(app: &App, theme: &Theme, words: u8) -> Vec<Span<'static>> {
    let mut spans = Vec::new();
    for (slot, run) in slots(app) {
        let Some(((begin, first), (step, loss))) = run.loss.first().zip(run.loss.last()) else {
            continue;
        };
        if !spans.is_empty() {
            spans.push(Span::raw(if words == 0 { "  " } else { "   " }));
        }
        spans.extend(slot_label(slot, app, theme));
        // A toggle keeps the weights: what follows is no start, and its first loss says nothing of this variant.
        let (before, after) = match begin {
            0 if words > 1 && begin < step => (
                format!("{} {} ", number(first), theme.symbols.to),
                String::new(),
            ),
            0 => (String::new(), String::new()),
            _ => (String::new(), went_on(slot, begin, words)),
        };
        let style = if loss.is_finite() {
            theme.strong
        } else {
            theme.bad
        };
        spans.push(Span::styled(format!(" {before}"), theme.dim));
        spans.push(Span::styled(number(loss), style));
        spans.push(Span::styled(after, theme.dim));
    }
    spans
}

fn went_on(slot: Slot, begin: u64, words: u8) -> String {
    let other = if slot == Slot::A { "B" } else { "A" };
    match words {
        0 => String::new(),
        1 => format!(" from step {begin} on"),
        2 => format!(" from step {begin} on, {other}'s weights"),
        _ => format!(" from step {begin} on, with {other}'s weights of then"),
    }
}

/// The points of both slots, kept while they are drawn.
struct Points {
    all: Vec<(Slot, Vec<Bucket>)>,
}

fn chart(app: &App, _theme: &Theme) -> Points {
    let mut all: Vec<(Slot, Vec<Bucket>)> = slots(app)
        .map(|(slot, run)| (slot, points(&run.loss, app.view.window)))
        .collect();
    // The one that runs lies on top.
    all.sort_by_key(|(slot, _)| *slot == app.run.active);
    Points { all }
}

fn points(series: &Series, window: Window) -> Vec<Bucket> {
    match window {
        Window::All => series.all().to_vec(),
        Window::Recent => {
            let mut last = None;
            let point = |(step, value): (u64, f64)| {
                let gap = last.replace(step).is_some_and(|before| before + 1 != step);
                Bucket {
                    first: step,
                    last: step,
                    low: value,
                    high: value,
                    mean: value,
                    points: 1,
                    gap,
                }
            };
            let skip = series.recent().len().saturating_sub(128);
            series.recent().skip(skip).map(point).collect()
        }
    }
}

impl Points {
    fn as_chart(&self, app: &App, theme: &Theme) -> Chart<'_> {
        let curve =
            |(slot, points): &'_ (Slot, Vec<Bucket>)| -> (usize, &'static str, Slot, usize) {
                (
                    *slot as usize,
                    if *slot == Slot::A { "A" } else { "B" },
                    *slot,
                    points.len(),
                )
            };
        let curves = self.all.iter().map(|entry| {
            let (kind, letter, slot, _) = curve(entry);
            Curve {
                points: &entry.1,
                kind,
                letter,
                style: theme.slot(slot),
            }
        });
        let mut references = Vec::new();
        if let Some(started) = app.run.shown().started.as_ref() {
            references.push(Reference {
                value: started.ln_vocab,
                name: format!("ln V {:.2}: knows nothing", started.ln_vocab),
                symbol: theme.symbols.reference,
                style: theme.reference,
            });
            if let Some(entropy) = started.entropy {
                references.push(Reference {
                    value: entropy,
                    name: format!("entropy {entropy:.2}: the floor"),
                    symbol: theme.symbols.floor,
                    style: theme.floor,
                });
            }
        }
        let moments = slots(app).filter_map(|(slot, run)| {
            let (step, value) = run.loss.not_finite?;
            let letter = if slot == Slot::A { "A" } else { "B" };
            Some(Moment {
                step,
                name: format!("{letter}: {} at step {step}", number(value)),
                style: theme.bad,
            })
        });
        Chart {
            curves: curves.collect(),
            references,
            moments: moments.collect(),
            log: app.log_axis(),
            axis: theme.dim,
            symbols: theme.symbols,
        }
    }
}
