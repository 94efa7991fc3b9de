//! Turns a text of the course into lines for a screen outside the workshop: without figures, and without keys that lead elsewhere.

use ratatui::text::{Line, Span as Run};

use super::text;
use super::theme::Theme;
use crate::course::lesson::plain;
use crate::course::{BackgroundText, TextBlock};
use crate::sanitize;

/// Returns the lines of a text. Prose wraps at `wide` columns.
pub(super) fn lines(text: &BackgroundText, wide: usize, theme: &Theme) -> Vec<Line<'static>> {
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
                    out.extend(text::wrapped(&plain(spans), theme.text, wide));
                }
                TextBlock::Item { marker, spans, .. } => {
                    let rest = " ".repeat(text::width(marker) + 1);
                    let runs = [Run::styled(plain(spans), theme.text)];
                    out.extend(text::wrap(&runs, wide, format!("{marker} "), rest));
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
