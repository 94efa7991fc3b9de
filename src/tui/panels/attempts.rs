//! The card of the attempts lists A and each B that ran, with its knobs and figures. Enter makes an earlier attempt B again.
//!
//! ```text
//!   A     as found
//!         first loss 120.6 · 44.35 samples/s · loss 77.42 at step 40 · just now
//! ▸ B 1   model.norm fused
//!         first loss 120.6 · pairs 1.138x [1.121, 1.154], faster · 2 min ago
//! ```

use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::content::Content;
use crate::app::App;
use crate::tui::surface::choose_hint;
use crate::tui::text;
use crate::tui::theme::Theme;
use protocol::story::RunStory;
use protocol::units::number;
use protocol::{Pair, Slot};

/// Returns the list of attempts, each with its knobs and its figures.
pub(super) fn content<'a>(app: &'a App, theme: &'a Theme, area: Rect) -> Content<'a> {
    let columns = usize::from(area.width);
    let run = app.shown_run();
    let bench = app.shown_bench();
    let mut list = Content::titled("attempts", Vec::new());
    list.aside = choose_hint("makes it B", app);
    for (number, attempt) in run.attempts().into_iter().enumerate() {
        let pointer = theme.symbols.pointer_at(bench.is_present(attempt));
        let (name, knobs) = match attempt.description.slot {
            Slot::B => (format!("B {number}"), bench.knobs_of_attempt(attempt)),
            Slot::A => ("A".to_owned(), "as found".to_owned()),
        };
        let marker = format!("{pointer} {}  ", text::left(&name, 4));
        // Any knob may be the one that differs, so no knob is left out.
        for line in text::wrap(&[Span::raw(knobs)], columns, marker, " ".repeat(8)) {
            list.entry(number, line.style(theme.text));
        }
        let figures = figures(attempt, run.pair_of_attempt(attempt), app.clock.now_ms);
        let parts = figures.iter().map(String::as_str);
        let fitting = text::joined(parts, columns.saturating_sub(8), " · ");
        list.entry(
            number,
            Line::styled(format!("        {fitting}"), theme.dim),
        );
    }
    if list.entries.is_empty() {
        list.between([Line::styled("nothing has run yet", theme.dim)]);
    }
    list.mark(app.view.selected);
    list
}

/// Returns the figures of an attempt, the most important first, and at the end its age. Figures that were not measured are left out.
fn figures(attempt: &RunStory, pair: Option<&Pair>, now_ms: u64) -> Vec<String> {
    let first = match (attempt.first_loss(), attempt.loss.first()) {
        (Some(loss), _) => format!("first loss {}", number(loss)),
        (None, Some((step, _))) => format!("continued from step {step}"),
        (None, None) => "no step yet".to_owned(),
    };
    let began = match now_ms.saturating_sub(attempt.began_ms) / 60_000 {
        0 => "just now".to_owned(),
        minutes => format!("{minutes} min ago"),
    };
    let mut figures = vec![first];
    if let Some(pair) = pair {
        figures.push(format!("pairs {}, {}", pair.figures(), pair.verdict));
    }
    if let Some(throughput) = &attempt.throughput {
        figures.push(format!("{} samples/s", number(throughput.samples_per_s)));
    }
    if let Some((step, loss)) = attempt.own_loss() {
        figures.push(format!("loss {} at step {step}", number(loss)));
    }
    figures.push(began);
    figures
}
