//! Every key and what it does, from the one table: in two columns where there is room, what works now first.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::{card, closes, show};
use crate::app::{Action, App, Overlay, View};
use crate::tui::keys::{self, Group, Row};
use crate::tui::text;
use crate::tui::theme::Theme;

/// Columns of the keys, and of the gap between two columns of lines.
const KEYS: usize = 11;
const GAP: usize = 2;
/// From this width inside the card on there are two columns, and the widest that one gets.
const TWO: usize = 72;
const WIDEST: usize = 54;
/// What the card takes beside its lines: borders and air.
const FRAME: usize = 4;
/// What stands under the shorter column.
const NOTE: &str = "Dim: not now. A click marks a panel, a second one makes it large.";

/// Columns and rows of the card in a frame of this width.
pub fn size(width: u16, theme: &Theme) -> (u16, u16) {
    let columns = usize::from(width).saturating_sub(FRAME).max(1);
    let (count, each) = columns_of(columns);
    let rows = arranged(|_| true, count, each, theme).len() + 2;
    let wide = (count * each + (count - 1) * GAP + FRAME).min(usize::from(width));
    (
        u16::try_from(wide).unwrap_or(u16::MAX),
        u16::try_from(rows).unwrap_or(u16::MAX),
    )
}

pub fn render(frame: &mut Frame<'_>, area: Rect, app: &App, theme: &Theme) -> u16 {
    let aside = format!(
        "{} the welcome, {}",
        keys::label(Action::Open(Overlay::Welcome), app),
        closes(app)
    );
    let inner = card(frame, area, "keys", &aside, theme.border_focused, theme);
    let (count, each) = columns_of(usize::from(inner.width));
    // What works once the help is put away.
    let behind = App {
        view: View {
            overlay: None,
            ..app.view.clone()
        },
        ..app.clone()
    };
    let lines = arranged(|row| row.works(&behind), count, each, theme);
    show(frame, inner, lines, app.view.overlay_scroll, theme)
}

/// How many columns of lines, and how wide each is.
fn columns_of(columns: usize) -> (usize, usize) {
    if columns < TWO {
        (1, columns)
    } else {
        (2, ((columns - GAP) / 2).min(WIDEST))
    }
}

/// The lines of all headings in so many columns of this width. Headings stay whole; the columns end as evenly as they can.
fn arranged(
    works: impl Fn(&Row) -> bool,
    count: usize,
    each: usize,
    theme: &Theme,
) -> Vec<Line<'static>> {
    let rows = keys::reference();
    let blocks: Vec<Vec<Line<'static>>> = Group::ALL
        .iter()
        .map(|group| block(*group, &rows, &works, each, theme))
        .collect();
    let note = text::wrap_plain(NOTE, each, theme.dim);
    if count < 2 {
        return stacked(&[blocks, vec![note]].concat());
    }
    let height = |at: usize| {
        let (left, right) = blocks.split_at(at);
        stacked(left).len().max(stacked(right).len())
    };
    let at = (1..blocks.len()).min_by_key(|at| height(*at)).unwrap_or(1);
    let (left, right) = blocks.split_at(at);
    let (mut left, mut right) = (stacked(left), stacked(right));
    let shorter = if left.len() > right.len() {
        &mut right
    } else {
        &mut left
    };
    shorter.push(Line::default());
    shorter.extend(note);
    beside(left, right, each + GAP)
}

fn block(
    group: Group,
    rows: &[Row],
    works: &impl Fn(&Row) -> bool,
    columns: usize,
    theme: &Theme,
) -> Vec<Line<'static>> {
    let mut lines = vec![Line::styled(group.name(), theme.heading)];
    let of_group = || rows.iter().filter(|row| row.group == group);
    let (now, idle): (Vec<&Row>, Vec<&Row>) = of_group().partition(|row| works(row));
    for (rows, key, help) in [(now, theme.key, theme.text), (idle, theme.dim, theme.dim)] {
        for row in rows {
            let marker = format!("{} ", text::right(&row.names().join(" "), KEYS));
            lines.extend(text::wrap_item(&marker, key, row.help, columns, help));
        }
    }
    lines
}

fn stacked(blocks: &[Vec<Line<'static>>]) -> Vec<Line<'static>> {
    blocks.join(&Line::default())
}

fn beside(
    left: Vec<Line<'static>>,
    right: Vec<Line<'static>>,
    columns: usize,
) -> Vec<Line<'static>> {
    let rows = left.len().max(right.len());
    let mut right = right.into_iter();
    let mut left = left.into_iter();
    (0..rows)
        .map(|_| {
            let mut line = left.next().unwrap_or_default();
            if let Some(more) = right.next() {
                let gap = columns.saturating_sub(line.width());
                line.spans.push(Span::raw(" ".repeat(gap)));
                line.spans.extend(more.spans.into_iter().map(|span| {
                    let style = more.style.patch(span.style);
                    span.style(style)
                }));
            }
            line
        })
        .collect()
}
