//! The help lists every key and its effect, from the table of keys: in two columns where there is room, the keys that work now first.

use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use strum::VariantArray;

use super::content::Content;
use crate::app::{Action, App, Overlay};
use crate::tui::keys::{self, Group, HelpLine};
use crate::tui::prose::FRAME;
use crate::tui::surface::close_hint;
use crate::tui::text;
use crate::tui::theme::Theme;

/// Returns the columns that the card wants on a screen of `most` columns.
pub(super) fn columns(most: u16) -> u16 {
    let columns = usize::from(most).saturating_sub(FRAME).max(1);
    let (count, each) = columns_of(columns);
    let wide = count * each + (count - 1) * GAP + FRAME;
    most.min(wide as u16)
}

/// The width of the keys before their texts.
const KEYS: usize = 11;
/// The width of the gap between the two columns of lines.
const GAP: usize = 2;
/// From this width inside the card on there are two columns of lines.
const TWO: usize = 72;
/// The largest width of one of the two columns.
const WIDEST: usize = 54;
/// The note under the shorter column.
const NOTE: &str = "Dim keys do nothing now. A click marks a panel, a second click enlarges it.";

pub(super) fn content<'a>(app: &'a App, theme: &'a Theme, area: Rect) -> Content<'a> {
    let welcome = keys::label(Action::Open(Overlay::Welcome), app);
    let (count, each) = columns_of(usize::from(area.width));
    // The help shows which keys work after it is closed.
    let mut behind = app.clone();
    behind.view.overlay = None;
    let lines = arranged(|row| row.works(&behind), count, each, theme);
    Content {
        aside: format!("{welcome} shows the welcome, {}", close_hint(app)),
        ..Content::titled("keys", lines)
    }
}

/// Returns the number of columns of lines, and the width of each.
fn columns_of(columns: usize) -> (usize, usize) {
    if columns < TWO {
        (1, columns)
    } else {
        (2, ((columns - GAP) / 2).min(WIDEST))
    }
}

/// Returns the lines of all headings in `count` columns, each `each` wide. The lines of a heading stay in one column; the columns end as
/// evenly as possible.
fn arranged(
    works: impl Fn(&HelpLine) -> bool,
    count: usize,
    each: usize,
    theme: &Theme,
) -> Vec<Line<'static>> {
    let rows = keys::reference();
    let block = |group: &Group| {
        let mut lines = vec![Line::styled(group.into_str(), theme.heading)];
        let (working, idle): (Vec<&HelpLine>, Vec<&HelpLine>) = rows
            .iter()
            .filter(|row| row.group == *group)
            .partition(|row| works(row));
        for (rows, key_style, help_style) in [
            (working, theme.key, theme.text),
            (idle, theme.dim, theme.dim),
        ] {
            for row in rows {
                let keys = format!("{} ", text::right(&row.names().join(" "), KEYS));
                let rest = " ".repeat(text::width(&keys));
                let first = Span::styled(keys, key_style);
                let help = Span::styled(row.help, help_style);
                lines.extend(text::wrap(&[help], each, first, rest));
            }
        }
        lines
    };
    let blocks: Vec<_> = Group::VARIANTS.iter().map(block).collect();
    let note = text::wrapped(NOTE, theme.dim, each);
    if count < 2 {
        return stacked(&[&blocks[..], &[note]].concat());
    }
    let height_of_split = |split: &usize| {
        let (left, right) = blocks.split_at(*split);
        stacked(left).len().max(stacked(right).len())
    };
    let split = (1..blocks.len()).min_by_key(height_of_split).unwrap_or(1);
    let mut left = stacked(&blocks[..split]);
    let mut right = stacked(&blocks[split..]);
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
        for span in more.spans {
            let style = more.style.patch(span.style);
            line.spans.push(span.style(style));
        }
    }
    left
}
