//! The table of participants on the board.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::{BoardView, rule};
use crate::class::board::{Board, ParticipantRow, Presence, duration};
use crate::tui::surface::{put, take_top};
use crate::tui::table::{Columns, FigureColumn};
use crate::tui::text;
use crate::tui::theme::Theme;
use protocol::units::or_dash;

#[rustfmt::skip]
const COLUMNS: [FigureColumn; 7] = [
    ("at", 12),
    ("for", 12),
    ("passed", 8),
    ("checks", 8),
    ("hints", 7),
    ("best", 8),
    ("hand", 8),
];
/// The indices of the columns, the most important one first.
const ORDER: [usize; 7] = [0, 6, 1, 2, 5, 3, 4];
/// The least width of a name, and by how much it may grow.
const NAME: usize = 16;
const MORE_NAME: usize = 12;

/// Draws the rows that fit, with the chosen participant among them.
pub(super) fn draw(
    frame: &mut Frame<'_>,
    area: Rect,
    board: &Board,
    view: &BoardView,
    theme: &Theme,
) {
    let mut rest = area;
    let wide = usize::from(rest.width);
    let title = take_top(&mut rest, 1);
    // Below the title stands the head of the table.
    let high = usize::from(rest.height.saturating_sub(1));
    let chosen = view.chosen(board);
    let skipped = chosen.map_or(0, |at| (at + 1).saturating_sub(high));
    let all = board.rows.len();
    let last = all.min(skipped + high);
    let said = if last - skipped < all {
        format!("participants {} to {last} of {all}", skipped + 1)
    } else {
        "participants".to_owned()
    };
    put(frame, title, rule(&said, wide, theme));
    if board.rows.is_empty() {
        let line = Line::styled(" nobody has joined yet", theme.dim);
        return put(frame, rest, line);
    }
    let mut room = wide.saturating_sub(1 + NAME);
    let columns = Columns::fit(COLUMNS, &ORDER, &mut room);
    let name = NAME + room.min(MORE_NAME);
    let device = room.saturating_sub(MORE_NAME + 2);
    let heads = format!(
        " {}{}  {}",
        text::left("name", name),
        columns.heads(),
        text::cut("device", device)
    );
    put(
        frame,
        take_top(&mut rest, 1),
        Line::styled(heads, theme.dim),
    );
    let mut lines = Vec::new();
    for (at, row) in board.rows.iter().enumerate().skip(skipped).take(high) {
        let is_selected = view.selected.contains(&row.id);
        let style = match row.presence {
            _ if chosen == Some(at) || is_selected => theme.selected,
            Presence::Here => theme.text,
            Presence::Away | Presence::Left => theme.dim,
        };
        let mark = if is_selected { "*" } else { " " };
        let named = format!("{mark}{}", text::name(&row.name, name));
        let mut spans = vec![Span::styled(named, style)];
        spans.extend(columns.cells(cells(row, style, theme)));
        let on = format!("  {}", text::shorten(&row.device, device));
        spans.push(Span::styled(on, theme.dim));
        lines.push(Line::from(spans));
    }
    put(frame, rest, lines);
}

/// Returns the cells of `COLUMNS`.
fn cells(row: &ParticipantRow, style: Style, theme: &Theme) -> [(String, Style); 7] {
    let at = match row.presence {
        Presence::Left => "left".to_owned(),
        Presence::Away => "away".to_owned(),
        Presence::Here if row.open_task.parse::<u32>().is_ok() => {
            format!("stage {}", row.open_task)
        }
        Presence::Here => row.open_task.clone(),
    };
    let stay = if row.open_task.is_empty() {
        String::new()
    } else {
        duration(row.open_s)
    };
    let hand = row.hand.map(|place| format!("hand {place}"));
    [
        (at, style),
        (stay, if row.stuck { theme.warning } else { style }),
        (row.passed.to_string(), style),
        (
            or_dash(row.checks, |[met, all]| format!("{met}/{all}")),
            style,
        ),
        (row.hints.to_string(), style),
        (or_dash(row.best, |ratio| format!("{ratio:.2}x")), style),
        (hand.unwrap_or_default(), theme.warning),
    ]
}
