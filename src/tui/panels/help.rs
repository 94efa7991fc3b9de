//! Every key and what it does, from the one table.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::{card, closes, show};
use crate::app::App;
use crate::tui::theme::Theme;
use crate::tui::{keys, text};

pub fn render(frame: &mut Frame<'_>, area: Rect, app: &App, theme: &Theme) -> u16 {
    let inner = card(
        frame,
        area,
        "keys",
        &closes(app),
        theme.border_focused,
        theme,
    );
    let mut lines = Vec::new();
    let mut group = None;
    for (of, keys, help) in keys::reference() {
        if group != Some(of) {
            if group.is_some() {
                lines.push(Line::default());
            }
            lines.push(Line::styled(of.name(), theme.heading));
            group = Some(of);
        }
        lines.push(Line::from(vec![
            Span::styled(text::right(&keys, 10), theme.key),
            Span::styled(format!("  {help}"), theme.text),
        ]));
    }
    lines.push(Line::default());
    lines.push(Line::styled(
        "A click marks a panel, a second one expands it; the wheel scrolls.",
        theme.dim,
    ));
    show(frame, inner, lines, app.view.overlay_scroll, theme)
}
