//! A text of the course as lines, where there is no workshop around it: without figures, and without keys that lead elsewhere.

use ratatui::text::{Line, Span as Run};

use super::text;
use super::theme::Theme;
use crate::course::lesson::plain;
use crate::course::{BackgroundText, TextBlock};
use crate::sanitize;

/// The lines of a text, at most `wide` columns of prose.
pub(super) fn lines(it: &BackgroundText, wide: usize, theme: &Theme) -> Vec<Line<'static>> {
    let mut out = Vec::new();
    for section in &it.lesson.sections {
        if !section.title.is_empty() {
            out.push(Line::styled(section.title.clone(), theme.heading));
        }
        for (at, block) in section.blocks.iter().enumerate() {
            match block {
                TextBlock::Heading(_, spans)
                | TextBlock::Paragraph(spans)
                | TextBlock::Quote(spans) => {
                    out.extend(text::wrapped(&plain(spans), theme.text, wide));
                }
                TextBlock::Item { marker, spans, .. } => {
                    let rest = " ".repeat(text::width(marker) + 1);
                    let said = [Run::styled(plain(spans), theme.text)];
                    out.extend(text::wrap(&said, wide, format!("{marker} "), rest));
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
            let item = |block: Option<&TextBlock>| matches!(block, Some(TextBlock::Item { .. }));
            if !(item(Some(block)) && item(section.blocks.get(at + 1))) {
                out.push(Line::default());
            }
        }
    }
    out
}
