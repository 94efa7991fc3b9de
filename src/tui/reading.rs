//! Turns a page of the course into lines for a screen outside the workshop, such as the viewer of profiles. Links name no keys there, and
//! figures are not filled in, because no run measures them.

use ratatui::text::{Line, Span};

use super::text;
use super::theme::Theme;
use crate::course::lesson::plain;
use crate::course::{BackgroundText, TextBlock};
use crate::sanitize;

/// Returns the lines of a page. Prose wraps at `columns`.
pub(super) fn lines(text: &BackgroundText, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let is_item = |block: Option<&TextBlock>| matches!(block, Some(TextBlock::Item { .. }));
    let mut out = Vec::new();
    for section in &text.lesson.sections {
        if !section.title.is_empty() {
            out.push(Line::styled(section.title.clone(), theme.heading));
        }
        for (index, block) in section.blocks.iter().enumerate() {
            match block {
                TextBlock::Heading(_, spans)
                | TextBlock::Paragraph(spans)
                | TextBlock::Quote(spans) => {
                    out.extend(text::wrapped(&plain(spans), theme.text, columns));
                }
                TextBlock::Item { marker, spans, .. } => {
                    let indent = " ".repeat(text::width(marker) + 1);
                    let item = [Span::styled(plain(spans), theme.text)];
                    out.extend(text::wrap(&item, columns, format!("{marker} "), indent));
                }
                TextBlock::Code { text, .. } => {
                    let code = text.lines().map(sanitize::line);
                    out.extend(code.map(|line| Line::styled(line, theme.code)));
                }
                TextBlock::Table { rows, .. } => {
                    for row in rows {
                        let cells: Vec<String> = row.iter().map(|cell| plain(cell)).collect();
                        out.push(Line::styled(cells.join("  "), theme.text));
                    }
                }
                TextBlock::Rule => {}
            }
            if !(is_item(Some(block)) && is_item(section.blocks.get(index + 1))) {
                out.push(Line::default());
            }
        }
    }
    out
}
