//! The wall is the board's screen for a projector. It shows what the class may see, as large as the screen allows. The counts of a vote are
//! hidden until its round is closed.

use std::cmp::Reverse;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Line;

use super::results::{place_and_name, rank_lines, result_in_words};
use super::{BoardView, WallPart, join};
use crate::class::board::{Board, ParticipantRow, Race, VoteTally};
use crate::class::state::NO_NAME;
use crate::course::save_file::letter;
use crate::tui::speaker::time;
use crate::tui::surface::{height, put, take_bottom, take_left, take_top};
use crate::tui::theme::Theme;
use crate::tui::votes::bar;
use crate::tui::{digits, text};

/// The number of results that the wall shows.
const RANKS: usize = 10;

/// Draws the part of the wall that the instructor chose, or else the part for what the class does now.
pub(super) fn draw(
    frame: &mut Frame<'_>,
    area: Rect,
    board: &Board,
    view: &BoardView,
    theme: &Theme,
) {
    let absence = |text: &'static str| Line::styled(text, theme.dim);
    match view.wall.unwrap_or(WallPart::now(board)) {
        WallPart::Join => draw_join(frame, area, board, view, theme),
        WallPart::Vote => match &board.vote {
            Some(vote) => draw_vote(frame, area, vote, theme),
            None => put(frame, area, absence(" no vote yet")),
        },
        WallPart::Hands => draw_hands(frame, area, board, theme),
        WallPart::Race => match &board.race {
            Some(race) => draw_race(frame, area, race, theme),
            None => put(frame, area, absence(" no race")),
        },
    }
}

/// Draws how to join, and the names of those who are here.
fn draw_join(frame: &mut Frame<'_>, area: Rect, board: &Board, view: &BoardView, theme: &Theme) {
    let mut rest = join::beside_code(frame, area, view, theme);
    let columns = usize::from(rest.width);
    let place = view.places.get(view.place).map_or("", String::as_str);
    let mut lines = vec![Line::styled("join the class", theme.heading)];
    lines.extend(text::wrapped(place, theme.strong, columns));
    put(frame, take_top(&mut rest, height(lines.len())), lines);
    draw_here(frame, &mut rest, board.here, theme);
    let names = name_lines(board, columns, usize::from(rest.height))
        .into_iter()
        .map(|line| Line::styled(line, theme.text));
    put(frame, rest, names.collect::<Vec<_>>());
}

/// Draws the number of participants who are here, large where it fits, and takes its rows off `rest`.
fn draw_here(frame: &mut Frame<'_>, rest: &mut Rect, here: usize, theme: &Theme) {
    let number = here.to_string();
    let size = digits::size(&number, rest.width, rest.height / 4);
    if size == 0 {
        let line = Line::styled(format!("{number} here"), theme.strong);
        return put(frame, take_top(rest, 1), line);
    }
    let mut area = take_top(rest, digits::rows(size) + 1);
    let columns = digits::width(&number).unwrap_or(0) * size + 1;
    let large = take_left(&mut area, columns);
    let corner = (large.x, large.y);
    digits::draw(frame.buffer_mut(), corner, &number, size, theme.strong);
    put(frame, area, Line::styled("here", theme.strong));
}

/// Returns lines with the names of the participants, those who joined last first. If not all names fit, the last line has the number of the
/// others; no name is cut.
fn name_lines(board: &Board, columns: usize, max_lines: usize) -> Vec<String> {
    let order_of_joining = |row: &&ParticipantRow| -> usize {
        let number = row.id.trim_start_matches('n');
        number.parse().unwrap_or(0)
    };
    let mut people: Vec<&ParticipantRow> = board.rows.iter().collect();
    people.retain(|row| row.name != NO_NAME);
    people.sort_by_key(|row| Reverse(order_of_joining(row)));
    let mut lines: Vec<String> = Vec::new();
    for (index, row) in people.iter().enumerate() {
        if let Some(last) = lines.last_mut()
            && text::width(last) + 2 + text::width(&row.name) <= columns
        {
            *last += &format!("  {}", row.name);
        } else if lines.len() + 1 < max_lines {
            lines.push(row.name.clone());
        } else {
            lines.push(format!("and {} more", people.len() - index));
            break;
        }
    }
    lines
}

/// Draws the question with its choices, and once the round is closed the count of each choice.
fn draw_vote(frame: &mut Frame<'_>, area: Rect, vote: &VoteTally, theme: &Theme) {
    let mut rest = area;
    let mut top = area;
    top.height = (area.height / 4).max(1);
    let prompt_rows = draw_text(frame, top, &vote.prompt, theme.heading);
    take_top(&mut rest, prompt_rows);
    let legend = if vote.round > 1 && !vote.open {
        "left: the first vote; right: after the discussion · "
    } else {
        ""
    };
    let standing = format!(" {legend}{}", vote.turnout_sentence());
    let bottom = take_bottom(&mut rest, 1);
    put(frame, bottom, Line::styled(standing, theme.strong));
    let each = rest.height / height(vote.choices.len()).max(1);
    for choice in 0..vote.choices.len() {
        draw_choice(frame, take_top(&mut rest, each), vote, choice, theme);
    }
}

/// Draws a choice: its letter, its text over its bars, and its counts.
fn draw_choice(frame: &mut Frame<'_>, area: Rect, vote: &VoteTally, choice: usize, theme: &Theme) {
    let mut rest = area;
    let size = (area.height.saturating_sub(1) / digits::ROWS).clamp(1, 4);
    let answer = vote.answer.as_ref();
    let is_right = answer.is_some_and(|answer| answer.choice == choice);
    let (style, style_of_letter) = if is_right {
        (theme.good, theme.good)
    } else {
        (theme.text, theme.strong)
    };
    let mark = take_left(&mut rest, 5 * size + 1);
    draw_large(frame, mark, &letter(choice), size, style_of_letter);
    // An open vote hides its counts.
    let counts = if vote.open {
        Vec::new()
    } else {
        vote.votes(choice)
    };
    let numbers: Vec<String> = counts.iter().map(u32::to_string).collect();
    let figures = numbers.join(" ");
    let figure_columns = (digits::width(&figures).unwrap_or(0) * size).min(rest.width / 2);
    let figure_area = take_right(&mut rest, figure_columns);
    draw_large(frame, figure_area, &figures, size, style);
    take_right(&mut rest, 1);
    let rows = height(counts.len()).min(rest.height.saturating_sub(1));
    let bars = take_bottom(&mut rest, rows);
    draw_text(frame, rest, &vote.choices[choice], style);
    let mut lines = Vec::new();
    for (count, style) in counts.into_iter().zip([theme.a, theme.b]) {
        let bar = bar(vote, count, usize::from(bars.width), style, theme);
        lines.push(Line::from(bar));
    }
    put(frame, bars, lines);
}

/// Draws a text in large glyphs if all of it fits, or else in letters. Returns the rows that it takes.
fn draw_text(frame: &mut Frame<'_>, area: Rect, text: &str, style: Style) -> u16 {
    if let Some(lines) = digits::wrap(text, area.width)
        && digits::rows_of(lines.len()) <= area.height
    {
        digits::draw_lines(frame.buffer_mut(), (area.x, area.y), &lines, style);
        return (digits::rows_of(lines.len()) + 1).min(area.height);
    }
    let lines = text::wrapped(text, style, usize::from(area.width));
    let rows = height(lines.len()).min(area.height);
    put(frame, area, lines);
    rows
}

/// Draws a word in large glyphs of at most `size`, or in letters where no size fits.
fn draw_large(frame: &mut Frame<'_>, area: Rect, word: &str, size: u16, style: Style) {
    let largest = digits::size(word, area.width + size, area.height);
    match size.min(largest) {
        0 => put(frame, area, Line::styled(word.to_owned(), style)),
        size => digits::draw(frame.buffer_mut(), (area.x, area.y), word, size, style),
    }
}

/// Draws the names of those who raised a hand, in the order of raising.
fn draw_hands(frame: &mut Frame<'_>, area: Rect, board: &Board, theme: &Theme) {
    let title = format!(" {} raised a hand", board.raised);
    let mut lines = vec![Line::styled(title, theme.heading)];
    for row in &board.rows {
        if let Some(place) = row.hand {
            let line = format!(" {place:>3}  {}", row.name);
            lines.push(Line::styled(line, theme.strong));
        }
    }
    put(frame, area, lines);
}

/// Draws the first results of a race, and the remaining time.
fn draw_race(frame: &mut Frame<'_>, area: Rect, race: &Race, theme: &Theme) {
    let mut rest = area;
    let mut title = take_top(&mut rest, digits::ROWS + 1);
    if let Some(remaining_s) = race.remaining_s {
        let remaining = time(remaining_s);
        let columns = digits::width(&remaining).unwrap_or(0);
        let clock = take_right(&mut title, columns + 1);
        draw_large(frame, clock, &remaining, 1, theme.strong);
    }
    let task = format!(" race: {}", race.task);
    put(frame, title, Line::styled(task, theme.heading));
    let shown = &race.ranks[..race.ranks.len().min(RANKS)];
    let lines = rank_lines(shown, theme.good, theme, |rank| {
        format!("{}  {}", place_and_name(rank), result_in_words(rank))
    });
    put(frame, rest, lines);
}

/// Takes columns off the right of `rest`, at most as many as it has.
fn take_right(rest: &mut Rect, columns: u16) -> Rect {
    let width = columns.min(rest.width);
    rest.width -= width;
    Rect::new(rest.right(), rest.y, width, rest.height)
}
