//! The log of attempts: A, and each B that ran, with what it measured. Enter goes back to one.

use ratatui::text::Line;

use crate::app::{App, SlotRun};
use crate::protocol::{Pair, Slot};
use crate::tui::surface::{Surface, chooses, height, joined};
use crate::tui::text;
use crate::units::number;

/// Lines of an attempt: its knobs, and its figures.
const LINES: u16 = 2;

/// Columns and rows that the card wants.
pub fn size(app: &App) -> (u16, u16) {
    let lines = height(app.attempts().len()).saturating_mul(LINES);
    (100, lines.saturating_add(4))
}

/// First line shown of a card with so many rows inside: the selected attempt stays in view.
fn scrolled(app: &App, rows: u16) -> u16 {
    (height(app.view.selected + 1).saturating_mul(LINES)).saturating_sub(rows)
}

/// The attempt on a line inside the card, of which `rows` are shown.
pub fn entry_at(line: u16, rows: u16, app: &App) -> Option<usize> {
    let at = usize::from((line + scrolled(app, rows)) / LINES);
    (at < app.attempts().len()).then_some(at)
}

pub fn draw(s: &mut Surface<'_, '_>) -> u16 {
    let (app, theme) = (s.app, s.theme);
    let aside = chooses("makes it B", app);
    s.card("attempts", &aside, theme.border_focused);
    let mut w = s.writer();
    for (at, attempt) in app.attempts().into_iter().enumerate() {
        let present = app.is_present(attempt);
        let mark = if present { theme.symbols.pointer } else { " " };
        let (name, knobs) = match attempt.slot() {
            Some(Slot::B) => (format!("B {at}"), app.knobs_of_attempt(attempt)),
            _ => ("A".to_owned(), "as found".to_owned()),
        };
        let line = format!("{mark} {}  {knobs}", text::left(&name, 4));
        let selected = at == app.view.selected;
        let style = if selected { theme.selected } else { theme.text };
        w.line(text::left(&line, w.columns), style);
        let figures = figures(attempt, app.pair_of_attempt(attempt), app.now_ms);
        let parts = figures.iter().map(String::as_str);
        let room = w.columns.saturating_sub(8);
        let said = joined(parts, room, " · ");
        w.lines
            .push(Line::styled(format!("        {said}"), theme.dim));
    }
    if w.lines.is_empty() {
        w.line("nothing has run yet", theme.dim);
    }
    s.show(s.area, w.lines, scrolled(app, s.area.height))
}

/// What it measured, the most important first: each figure is whole or left out.
fn figures(attempt: &SlotRun, pair: Option<&Pair>, now_ms: u64) -> Vec<String> {
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
