//! Every key and what it does, from the one table: in two columns where there is room, what works now first.

use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use strum::VariantArray;

use super::content::Content;
use crate::app::{Action, App, Overlay};
use crate::tui::keys::{self, Group, HelpLine};
use crate::tui::prose::FRAME;
use crate::tui::surface::closes;
use crate::tui::text;
use crate::tui::theme::Theme;

/// Columns that the card wants in so many.
pub(super) fn columns(most: u16) -> u16 {
    let columns = usize::from(most).saturating_sub(FRAME).max(1);
    let (count, each) = columns_of(columns);
    let wide = count * each + (count - 1) * GAP + FRAME;
    most.min(wide as u16)
}

/// Columns of the keys, and of the gap between two columns of lines.
const KEYS: usize = 11;
const GAP: usize = 2;
/// From this width inside the card on there are two columns, and the widest that one gets.
const TWO: usize = 72;
const WIDEST: usize = 54;
/// The note under the shorter column.
const NOTE: &str = "Dim keys do nothing now. A click marks a panel, a second click enlarges it.";

pub(super) fn content<'a>(app: &'a App, theme: &'a Theme, area: Rect) -> Content<'a> {
    let welcome = keys::label(Action::Open(Overlay::Welcome), app);
    let (count, each) = columns_of(usize::from(area.width));
    // What works once the help is closed.
    let mut behind = app.clone();
    behind.view.overlay = None;
    let lines = arranged(|row| row.works(&behind), count, each, theme);
    Content {
        aside: format!("{welcome} the welcome, {}", closes(app)),
        ..Content::titled("keys", lines)
    }
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
    works: impl Fn(&HelpLine) -> bool,
    count: usize,
    each: usize,
    theme: &Theme,
) -> Vec<Line<'static>> {
    let rows = keys::reference();
    let block = |group: &Group| {
        let mut lines = vec![Line::styled(group.into_str(), theme.heading)];
        let of_group = rows.iter().filter(|row| row.group == *group);
        let (now, idle): (Vec<&HelpLine>, Vec<&HelpLine>) = of_group.partition(|row| works(row));
        for (rows, key, help) in [(now, theme.key, theme.text), (idle, theme.dim, theme.dim)] {
            for row in rows {
                let marker = format!("{} ", text::right(&row.names().join(" "), KEYS));
                let rest = " ".repeat(text::width(&marker));
                let marker = Span::styled(marker, key);
                let help = Span::styled(row.help, help);
                lines.extend(text::wrap(&[help], each, marker, rest));
            }
        }
        lines
    };
    let blocks: Vec<_> = Group::VARIANTS.iter().map(block).collect();
    let note = text::wrapped(NOTE, theme.dim, each);
    if count < 2 {
        return stacked(&[&blocks[..], &[note]].concat());
    }
    let height = |at: &usize| {
        let (left, right) = blocks.split_at(*at);
        stacked(left).len().max(stacked(right).len())
    };
    let at = (1..blocks.len()).min_by_key(height).unwrap_or(1);
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

fn stacked(blocks: &[Vec<Line<'static>>]) -> Vec<Line<'static>> {
    blocks.join(&Line::default())
}

fn beside(
    mut left: Vec<Line<'static>>,
    right: Vec<Line<'static>>,
    columns: usize,
) -> Vec<Line<'static>> {
    left.resize(left.len().max(right.len()), Line::default());
    for (line, more) in left.iter_mut().zip(right) {
        let gap = columns.saturating_sub(line.width());
        line.spans.push(Span::raw(" ".repeat(gap)));
        let spans = more.spans.into_iter();
        line.spans.extend(spans.map(|span| {
            let style = more.style.patch(span.style);
            span.style(style)
        }));
    }
    left
}
