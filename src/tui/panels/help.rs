//! The help lists every key and its effect, from the table of keys: in two columns where there is room, the keys that work now first.
//!
//! ```text
//! the stage                              the screen
//!       enter continue or select                 esc go back: close or leave
//!           t run your B; show threads           tab mark the next panel
//! ```

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

type Lines = Vec<Line<'static>>;

/// The width of the keys before their effects.
const KEYS_WIDTH: usize = 11;
/// The gap between the two columns.
const GAP: usize = 2;
/// The smallest width inside the card at which there are two columns.
const TWO_COLUMNS: usize = 72;
/// The largest width of one of the two columns.
const MAX_COLUMN: usize = 54;
/// The note under the shorter column.
const NOTE: &str = "Dim keys do nothing now. A click marks a panel, a second click enlarges it.";

/// Returns the width that the card wants on a screen of `screen` columns, borders included.
pub(super) fn columns(screen: u16) -> u16 {
    let inside = usize::from(screen).saturating_sub(FRAME).max(1);
    let (count, width) = divide(inside);
    let wanted = count * width + (count - 1) * GAP + FRAME;
    screen.min(wanted as u16)
}

pub(super) fn content<'a>(app: &'a App, theme: &'a Theme, area: Rect) -> Content<'a> {
    let welcome = keys::label(Action::Open(Overlay::Welcome), app);
    let (count, width) = divide(usize::from(area.width));
    // The help shows which keys work once it is closed.
    let mut closed = app.clone();
    closed.view.overlay = None;
    let blocks: Vec<_> = Group::VARIANTS
        .iter()
        .map(|group| block(*group, &closed, width, theme))
        .collect();
    let note = text::wrapped(NOTE, theme.dim, width);
    let lines = if count < 2 {
        stacked(&[&blocks[..], &[note]].concat())
    } else {
        in_two_columns(&blocks, note, width)
    };
    Content {
        aside: format!("{welcome} shows the welcome, {}", close_hint(app)),
        ..Content::titled("keys", lines)
    }
}

/// Divides the width of the card: returns the number of columns, and the width of each.
fn divide(width: usize) -> (usize, usize) {
    if width < TWO_COLUMNS {
        (1, width)
    } else {
        (2, ((width - GAP) / 2).min(MAX_COLUMN))
    }
}

/// Returns the heading of a group of keys and its lines, the keys that work now first.
fn block(group: Group, app: &App, width: usize, theme: &Theme) -> Lines {
    let mut lines = vec![Line::styled(group.into_str(), theme.heading)];
    let (working, idle): (Vec<HelpLine>, Vec<HelpLine>) = keys::reference()
        .into_iter()
        .filter(|row| row.group == group)
        .partition(|row| row.works(app));
    for (rows, key_style, help_style) in [
        (working, theme.key, theme.text),
        (idle, theme.dim, theme.dim),
    ] {
        for row in rows {
            let keys = format!("{} ", text::right(&row.names().join(" "), KEYS_WIDTH));
            let indent = " ".repeat(text::width(&keys));
            let help = Span::styled(row.help, help_style);
            let keys = Span::styled(keys, key_style);
            lines.extend(text::wrap(&[help], width, keys, indent));
        }
    }
    lines
}

/// Arranges the blocks in two columns that are about equally high, with the note below the shorter one.
fn in_two_columns(blocks: &[Lines], note: Lines, width: usize) -> Lines {
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
    left.resize(left.len().max(right.len()), Line::default());
    for (line, on_right) in left.iter_mut().zip(right) {
        let gap = (width + GAP).saturating_sub(line.width());
        line.push_span(" ".repeat(gap));
        for span in on_right.spans {
            let style = on_right.style.patch(span.style);
            line.push_span(span.style(style));
        }
    }
    left
}

/// Joins blocks with an empty line between them.
fn stacked(blocks: &[Lines]) -> Lines {
    blocks.join(&Line::default())
}
