//! The log of attempts: A, and each B that ran, with what it measured. Enter goes back to one.

use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::content::Content;
use crate::app::App;
use crate::tui::surface::{chooses, joined};
use crate::tui::text;
use crate::tui::theme::Theme;
use protocol::story::RunStory;
use protocol::units::number;
use protocol::{Pair, Slot};

/// The attempts, each with its knobs and its figures.
pub(super) fn content<'a>(app: &'a App, theme: &'a Theme, area: Rect) -> Content<'a> {
    let columns = usize::from(area.width);
    let mut list = Content::titled("attempts", Vec::new());
    list.aside = chooses("makes it B", app);
    for (at, attempt) in app.shown_run().attempts().into_iter().enumerate() {
        let mark = theme
            .symbols
            .pointer_at(app.shown_bench().is_present(attempt));
        let (name, knobs) = match attempt.description.slot {
            Slot::B => (
                format!("B {at}"),
                app.shown_bench().knobs_of_attempt(attempt),
            ),
            Slot::A => ("A".to_owned(), "as found".to_owned()),
        };
        let selected = at == app.view.selected;
        let style = theme.among(selected, theme.text);
        let first = format!("{mark} {}  ", text::left(&name, 4));
        // What tells attempts apart may be any of the knobs, so all are whole.
        for line in text::wrap(&[Span::raw(knobs)], columns, first, " ".repeat(8)) {
            let line = text::left(&line.to_string(), columns);
            list.entry(at, Line::styled(line, style));
        }
        let figures = figures(
            attempt,
            app.shown_run().pair_of_attempt(attempt),
            app.clock.now_ms,
        );
        let parts = figures.iter().map(String::as_str);
        let said = joined(parts, columns.saturating_sub(8), " · ");
        list.entry(at, Line::styled(format!("        {said}"), theme.dim));
    }
    if list.entries.is_empty() {
        list.between([Line::styled("nothing has run yet", theme.dim)]);
    }
    list.mark(app.view.selected);
    list
}

/// What it measured, the most important first: each figure is whole or left out.
fn figures(attempt: &RunStory, pair: Option<&Pair>, now_ms: u64) -> Vec<String> {
    let first = match (attempt.first_loss(), attempt.loss.first()) {
        (Some(loss), _) => format!("first loss {}", number(loss)),
        (None, Some((step, _))) => format!("continued from step {step}"),
        (None, None) => "no step yet".to_owned(),
    };
    let last = attempt.own_loss();
    let last = last.map(|(step, loss)| format!("loss {} at step {step}", number(loss)));
    let rate = attempt.throughput.as_ref();
    let rate = rate.map(|it| format!("{} samples/s", number(it.samples_per_s)));
    let pair = pair.map(|pair| format!("pairs {}, {}", pair.figures(), pair.verdict));
    let minutes = now_ms.saturating_sub(attempt.began_ms) / 60_000;
    let began = match minutes {
        0 => "just now".to_owned(),
        minutes => format!("{minutes} min ago"),
    };
    let figures = [Some(first), pair, rate, last, Some(began)];
    figures.into_iter().flatten().collect()
}
