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
/// The smallest width of the column of names.
const NAME: usize = 16;
/// The columns by which the column of names may grow.
const NAME_GROWTH: usize = 12;

/// Draws the rows that fit, with the chosen participant among them.
pub(super) fn draw(
    frame: &mut Frame<'_>,
    area: Rect,
    board: &Board,
    view: &BoardView,
    theme: &Theme,
) {
    let mut rest = area;
    let width = usize::from(rest.width);
    let title_area = take_top(&mut rest, 1);
    // The head of the table takes one more row.
    let visible = usize::from(rest.height.saturating_sub(1));
    let chosen = view.chosen(board);
    let skipped = chosen.map_or(0, |index| (index + 1).saturating_sub(visible));
    let all = board.rows.len();
    let last = all.min(skipped + visible);
    let title = if last - skipped < all {
        format!("participants {} to {last} of {all}", skipped + 1)
    } else {
        "participants".to_owned()
    };
    put(frame, title_area, rule(&title, width, theme));
    if board.rows.is_empty() {
        let line = Line::styled(" nobody has joined yet", theme.dim);
        return put(frame, rest, line);
    }
    let mut spare = width.saturating_sub(1 + NAME);
    let columns = Columns::fit(COLUMNS, &ORDER, &mut spare);
    let name_width = NAME + spare.min(NAME_GROWTH);
    let device_width = spare.saturating_sub(NAME_GROWTH + 2);
    let heads = format!(
        " {}{}  {}",
        text::left("name", name_width),
        columns.heads(),
        text::cut("device", device_width)
    );
    put(
        frame,
        take_top(&mut rest, 1),
        Line::styled(heads, theme.dim),
    );
    let mut lines = Vec::new();
    let rows = board.rows.iter().enumerate();
    for (index, row) in rows.skip(skipped).take(visible) {
        let is_selected = view.selected.contains(&row.id);
        let style = match row.presence {
            _ if chosen == Some(index) || is_selected => theme.selected,
            Presence::Here => theme.text,
            Presence::Away | Presence::Left => theme.dim,
        };
        let mark = if is_selected { "*" } else { " " };
        let name = format!("{mark}{}", text::name(&row.name, name_width));
        let mut spans = vec![Span::styled(name, style)];
        spans.extend(columns.cells(cells(row, style, theme)));
        let device = format!("  {}", text::shorten(&row.device, device_width));
        spans.push(Span::styled(device, theme.dim));
        lines.push(Line::from(spans));
    }
    put(frame, rest, lines);
}

/// Returns the cells of a participant in the order of `COLUMNS`.
fn cells(row: &ParticipantRow, style: Style, theme: &Theme) -> [(String, Style); 7] {
    let place = match row.presence {
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
        (place, style),
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
