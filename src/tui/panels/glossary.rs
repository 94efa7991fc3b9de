//! The words of the course with their meanings, and the background texts on the pages after them. A search leaves only the entries
//! that contain it.

use ratatui::layout::Rect;
use ratatui::text::{Line, Span as Run};

use super::content::Content;
use crate::app::figures::figures;
use crate::app::view::Search;
use crate::app::{Action, App};
use crate::course::lesson::plain;
use crate::course::{TextBlock, TextSpan};
use crate::tui::keys;
use crate::tui::prose::ProseWriter;
use crate::tui::surface::closes;
use crate::tui::theme::Theme;

pub(super) fn content<'a>(app: &'a App, theme: &'a Theme, area: Rect) -> Content<'a> {
    let page = app.view.page.checked_sub(1);
    let (title, text) = match page.and_then(|page| app.lesson.course.readings.get(page)) {
        Some(reading) => (reading.title.as_str(), Some(&reading.lesson)),
        None => ("glossary", app.lesson.course.glossary.as_ref()),
    };
    let figures = figures(app);
    let mut w = ProseWriter::new(app, theme, area.width);
    w.figures = figures.as_ref();
    let search = &app.view.search;
    let mut found = 0;
    for section in text.iter().flat_map(|text| &text.sections) {
        let blocks = matching(&section.blocks, search);
        found += entries(&blocks);
        if blocks.is_empty() {
            continue;
        }
        if !w.lines.is_empty() {
            w.blank();
        }
        if !section.title.is_empty() {
            w.line(section.title.clone(), theme.heading);
        }
        w.blocks(&blocks);
    }
    let mut head = Vec::new();
    if search.is_open() {
        let found = match (search.text.is_empty(), found) {
            (true, _) => "type part of a word".to_owned(),
            (false, 0) => "no entry contains that".to_owned(),
            (false, 1) => "1 entry".to_owned(),
            (false, n) => format!("{n} entries"),
        };
        head = vec![search_line(app, theme, &found), Line::default()];
    }
    Content {
        aside: aside(app),
        head,
        ..Content::titled(title, w.lines)
    }
}

fn aside(app: &App) -> String {
    let pages = app.lesson.course.readings.len() + 1;
    if app.view.search.is_open() {
        return format!("{} shows all", keys::label(Action::Close, app));
    }
    if pages == 1 {
        return closes(app);
    }
    let [back, on] = [-1, 1].map(|by| keys::label(Action::TurnPage(by), app));
    let (page, closes) = (app.view.page + 1, closes(app));
    format!("page {page} of {pages}, {back} {on} turn, {closes}")
}

/// The line of the search above what it found.
pub(super) fn search_line(app: &App, theme: &Theme, found: &str) -> Line<'static> {
    let search = &app.view.search;
    let cursor = if search.typing { "_" } else { "" };
    let key = keys::label(Action::Search, app);
    Line::from(vec![
        Run::styled(format!("{key} "), theme.key),
        Run::styled(search.text.clone(), theme.strong),
        Run::styled(cursor, theme.key),
        Run::styled(format!("  {found}"), theme.dim),
    ])
}

/// The blocks that hold what is looked for; of a table the rows that do. All where nothing is.
fn matching(blocks: &[TextBlock], search: &Search) -> Vec<TextBlock> {
    if search.text.is_empty() {
        return blocks.to_vec();
    }
    let holds = |spans: &Vec<TextSpan>| search.finds(&plain(spans));
    let kept = blocks.iter().filter_map(|block| match block {
        TextBlock::Table { head, rows } => {
            let rows = rows.iter().filter(|row| row.iter().any(holds));
            let rows: Vec<_> = rows.cloned().collect();
            let head = head.clone();
            (!rows.is_empty()).then_some(TextBlock::Table { head, rows })
        }
        TextBlock::Paragraph(spans) | TextBlock::Quote(spans) | TextBlock::Item { spans, .. } => {
            holds(spans).then(|| block.clone())
        }
        TextBlock::Heading(..) | TextBlock::Code { .. } | TextBlock::Rule => None,
    });
    kept.collect()
}

fn entries(blocks: &[TextBlock]) -> usize {
    let count = |block: &TextBlock| match block {
        TextBlock::Table { rows, .. } => rows.len(),
        _ => 1,
    };
    blocks.iter().map(count).sum()
}
