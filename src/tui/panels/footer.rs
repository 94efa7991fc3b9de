//! The keys that work now, as many as fit; help and quit always.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use crate::app::App;
use crate::tui::theme::Theme;
use crate::tui::{keys, text};

pub fn render(frame: &mut Frame<'_>, area: Rect, app: &App, theme: &Theme) {
    let all = keys::footer(app);
    let (last, first): (Vec<_>, Vec<_>) = all
        .into_iter()
        .partition(|(_, label)| ["help", "quit"].contains(label));
    let wide = |(key, label): &(String, &str)| text::width(key) + 1 + text::width(label) + 2;
    let mut room = usize::from(area.width).saturating_sub(1 + last.iter().map(wide).sum::<usize>());
    let fitting = first.into_iter().filter(|entry| {
        let fits = wide(entry) <= room;
        room = if fits { room - wide(entry) } else { room };
        fits
    });
    let mut spans = vec![Span::raw(" ")];
    for (key, label) in fitting.chain(last) {
        spans.push(Span::styled(key, theme.key));
        spans.push(Span::styled(format!(" {label}  "), theme.dim));
    }
    frame.render_widget(Line::from(spans), area);
}
