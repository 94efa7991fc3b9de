//! The card of the glossary shows the words of the course with their meanings, and the background texts on the pages after them. A search
//! leaves only the entries that contain a word.
//!
//! ```text
//! ╭ glossary ─────────────── page 1 of 14, ← → turn, esc closes ╮
//! │ / trac_  2 entries                                          │
//! │                                                             │
//! │ The course                                                  │
//! │ • trace: the model of a profiler's file.                    │
//! ╰─────────────────────────────────────────────────────────────╯
//! ```

use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::content::Content;
use crate::app::figures::figures;
use crate::app::view::Search;
use crate::app::{Action, App};
use crate::course::lesson::plain;
use crate::course::{TextBlock, TextSpan};
use crate::tui::keys;
use crate::tui::prose::ProseWriter;
use crate::tui::surface::close_hint;
use crate::tui::theme::Theme;

pub(super) fn content<'a>(app: &'a App, theme: &'a Theme, area: Rect) -> Content<'a> {
    let page = app.view.page.checked_sub(1);
    let (title, text) = match page.and_then(|page| app.lesson.course.readings.get(page)) {
        Some(reading) => (reading.title.as_str(), Some(&reading.lesson)),
        None => ("glossary", app.lesson.course.glossary.as_ref()),
    };
    let figures = figures(app);
    let mut writer = ProseWriter::new(app, theme, area.width);
    writer.figures = figures.as_ref();
    let search = &app.view.search;
    let mut count = 0;
    for section in text.iter().flat_map(|text| &text.sections) {
        let blocks = matching(&section.blocks, search);
        count += count_entries(&blocks);
        if blocks.is_empty() {
            continue;
        }
        if !writer.lines.is_empty() {
            writer.blank();
        }
        if !section.title.is_empty() {
            writer.line(section.title.clone(), theme.heading);
        }
        writer.blocks(&blocks);
    }
    let mut head = Vec::new();
    if search.is_open() {
        let result = match count {
            _ if search.text.is_empty() => "type part of a word".to_owned(),
            0 => "no entry contains that".to_owned(),
            1 => "1 entry".to_owned(),
            _ => format!("{count} entries"),
        };
        head = vec![search_line(app, theme, &result), Line::default()];
    }
    Content {
        aside: aside(app),
        head,
        ..Content::titled(title, writer.lines)
    }
}

/// Returns the text on the right of the title: the page, and the keys that turn pages and close the card.
fn aside(app: &App) -> String {
    let pages = app.lesson.course.readings.len() + 1;
    if app.view.search.is_open() {
        return format!("{} shows all", keys::label(Action::Close, app));
    }
    let closes = close_hint(app);
    if pages == 1 {
        return closes;
    }
    let back = keys::label(Action::TurnPage(-1), app);
    let next = keys::label(Action::TurnPage(1), app);
    let page = app.view.page + 1;
    format!("page {page} of {pages}, {back} {next} turn, {closes}")
}

/// Returns the line of a search: its key, the word so far, and the result.
pub(super) fn search_line(app: &App, theme: &Theme, result: &str) -> Line<'static> {
    let search = &app.view.search;
    let cursor = if search.typing { "_" } else { "" };
    let key = keys::label(Action::Search, app);
    Line::from(vec![
        Span::styled(format!("{key} "), theme.key),
        Span::styled(search.text.clone(), theme.strong),
        Span::styled(cursor, theme.key),
        Span::styled(format!("  {result}"), theme.dim),
    ])
}

/// Returns the blocks that contain the word of the search. A table keeps the rows that contain the word. Without a word, returns all blocks.
fn matching(blocks: &[TextBlock], search: &Search) -> Vec<TextBlock> {
    if search.text.is_empty() {
        return blocks.to_vec();
    }
    let contains = |spans: &Vec<TextSpan>| search.finds(&plain(spans));
    let matching_part = |block: &TextBlock| match block {
        TextBlock::Table { head, rows } => {
            let mut rows = rows.clone();
            rows.retain(|row| row.iter().any(contains));
            let head = head.clone();
            (!rows.is_empty()).then_some(TextBlock::Table { head, rows })
        }
        TextBlock::Paragraph(spans) | TextBlock::Quote(spans) | TextBlock::Item { spans, .. } => {
            contains(spans).then(|| block.clone())
        }
        TextBlock::Heading(..) | TextBlock::Code { .. } | TextBlock::Rule => None,
    };
    blocks.iter().filter_map(matching_part).collect()
}

fn count_entries(blocks: &[TextBlock]) -> usize {
    blocks
        .iter()
        .map(|block| match block {
            TextBlock::Table { rows, .. } => rows.len(),
            _ => 1,
        })
        .sum()
}
