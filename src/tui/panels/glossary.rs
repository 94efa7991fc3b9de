//! The words of the course side by side, and the background texts on the pages after them. Letters that are typed leave
//! only the entries that hold them.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span as Run};

use super::{card, closes, show};
use crate::app::figures::Figures;
use crate::app::view::Search;
use crate::app::{Action, App};
use crate::course::lesson::plain;
use crate::course::placeholder::Lookup;
use crate::course::{Block, Span};
use crate::tui::theme::Theme;
use crate::tui::{keys, prose};

pub fn render(frame: &mut Frame<'_>, area: Rect, app: &App, theme: &Theme) -> u16 {
    let reading = app
        .view
        .page
        .checked_sub(1)
        .and_then(|page| app.course.readings.get(page));
    let (title, text) = match reading {
        Some(reading) => (reading.title.as_str(), Some(&reading.lesson)),
        None => ("glossary", app.course.glossary.as_ref()),
    };
    let inner = card(frame, area, title, &aside(app), theme.border_focused, theme);
    let figures = Figures::of(app);
    let figures = figures.as_ref().map(|it| it as &dyn Lookup);
    let search = &app.view.search;
    let mut lines = Vec::new();
    let mut found = 0;
    for section in text.iter().flat_map(|text| &text.sections) {
        let kept;
        let blocks = if search.text.is_empty() {
            &section.blocks
        } else {
            kept = matching(&section.blocks, search);
            found += entries(&kept);
            &kept
        };
        if blocks.is_empty() {
            continue;
        }
        if !lines.is_empty() {
            lines.push(Line::default());
        }
        if !section.title.is_empty() {
            lines.push(Line::styled(section.title.clone(), theme.heading));
        }
        lines.extend(prose::lines(
            blocks,
            usize::from(inner.width),
            figures,
            Some(&app.course),
            theme,
        ));
    }
    let rest = if search.is_open() {
        render_search(frame, inner, app, found, theme)
    } else {
        inner
    };
    show(frame, rest, lines, app.view.overlay_scroll, theme)
}

fn aside(app: &App) -> String {
    let pages = app.course.readings.len() + 1;
    if app.view.search.is_open() {
        let clear = keys::label(Action::Close, app);
        return format!("{clear} shows all");
    }
    if pages == 1 {
        return closes(app);
    }
    let (back, on) = (
        keys::label(Action::TurnPage(-1), app),
        keys::label(Action::TurnPage(1), app),
    );
    format!(
        "page {} of {pages}, {back} {on} turn, {}",
        app.view.page + 1,
        closes(app)
    )
}

/// The line of the search above the entries; the result is the room under it.
fn render_search(
    frame: &mut Frame<'_>,
    area: Rect,
    app: &App,
    found: usize,
    theme: &Theme,
) -> Rect {
    let search = &app.view.search;
    let said = match (search.text.is_empty(), found) {
        (true, _) => "  type a part of a word".to_owned(),
        (false, 0) => "  no entry holds that".to_owned(),
        (false, 1) => "  1 entry".to_owned(),
        (false, n) => format!("  {n} entries"),
    };
    let mark = if search.typing { "_" } else { "" };
    let line = Line::from(vec![
        Run::styled(format!("{} ", keys::label(Action::Search, app)), theme.key),
        Run::styled(search.text.clone(), theme.strong),
        Run::styled(mark, theme.key),
        Run::styled(said, theme.dim),
    ]);
    let top = Rect {
        height: area.height.min(1),
        ..area
    };
    frame.render_widget(line, top);
    let taken = area.height.min(2);
    Rect {
        y: area.y + taken,
        height: area.height - taken,
        ..area
    }
}

/// The blocks that hold what is looked for; of a table the rows that do.
fn matching(blocks: &[Block], search: &Search) -> Vec<Block> {
    let holds = |spans: &[Span]| search.finds(&plain(spans));
    blocks
        .iter()
        .filter_map(|block| match block {
            Block::Table { head, rows } => {
                let rows: Vec<_> = rows
                    .iter()
                    .filter(|row| row.iter().any(|cell| holds(cell)))
                    .cloned()
                    .collect();
                let head = head.clone();
                (!rows.is_empty()).then_some(Block::Table { head, rows })
            }
            Block::Paragraph(spans) | Block::Quote(spans) | Block::Item { spans, .. } => {
                holds(spans).then(|| block.clone())
            }
            Block::Heading(..) | Block::Code { .. } | Block::Rule => None,
        })
        .collect()
}

fn entries(blocks: &[Block]) -> usize {
    let count = |block: &Block| match block {
        Block::Table { rows, .. } => rows.len(),
        _ => 1,
    };
    blocks.iter().map(count).sum()
}
