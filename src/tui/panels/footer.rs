//! The footer shows the keys that work now, as many as fit. Help and quit are always there:
//!
//! ```text
//!  esc close  enter choose  l stages  ? help  q quit
//! ```

use ratatui::text::{Line, Span};

use crate::app::App;
use crate::tui::theme::Theme;
use crate::tui::{keys, text};

/// Returns the footer for a screen of `columns` columns.
pub fn line(app: &App, theme: &Theme, columns: u16) -> Line<'static> {
    let (always, others): (Vec<_>, Vec<_>) = keys::footer(app)
        .into_iter()
        .partition(|(_, label)| ["help", "quit"].contains(label));
    let width = |(key, label): &(String, &str)| text::width(key) + text::width(label) + 3;
    let mut used = 1 + always.iter().map(width).sum::<usize>();
    let mut shown = Vec::new();
    for offer in others {
        if used + width(&offer) <= columns.into() {
            used += width(&offer);
            shown.push(offer);
        }
    }
    shown.extend(always);
    line_of_keys(shown.into_iter(), "  ", theme)
}

/// Returns a line of keys with their labels and a gap after each.
pub fn line_of_keys(
    offers: impl Iterator<Item = (String, &'static str)>,
    gap: &str,
    theme: &Theme,
) -> Line<'static> {
    let mut spans = vec![Span::raw(" ")];
    for (key, label) in offers {
        spans.push(Span::styled(key, theme.key));
        spans.push(Span::styled(format!(" {label}{gap}"), theme.dim));
    }
    Line::from(spans)
}
