//! The keys that work now, as many as fit; help and quit always.

use ratatui::text::{Line, Span};

use crate::app::App;
use crate::tui::theme::Theme;
use crate::tui::{keys, text};

pub fn line(app: &App, theme: &Theme, columns: u16) -> Line<'static> {
    let all = keys::footer(app).into_iter();
    let (last, first): (Vec<_>, Vec<_>) =
        all.partition(|(_, label)| ["help", "quit"].contains(label));
    let wide = |(key, label): &(String, &str)| text::width(key) + text::width(label) + 3;
    let kept = 1 + last.iter().map(wide).sum::<usize>();
    let mut room = usize::from(columns).saturating_sub(kept);
    let fitting = first.into_iter().filter(|entry| {
        let fits = wide(entry) <= room;
        room -= if fits { wide(entry) } else { 0 };
        fits
    });
    of_keys(fitting.chain(last), "  ", theme)
}

/// Keys with their labels, and a gap behind each.
pub fn of_keys(
    named: impl Iterator<Item = (String, &'static str)>,
    gap: &str,
    theme: &Theme,
) -> Line<'static> {
    let keys = named.flat_map(|(key, label)| {
        let label = Span::styled(format!(" {label}{gap}"), theme.dim);
        [Span::styled(key, theme.key), label]
    });
    [Span::raw(" ")].into_iter().chain(keys).collect()
}
