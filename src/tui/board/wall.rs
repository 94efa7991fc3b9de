//! The wall: what the class is to see, and nothing else, as large as the screen allows. Votes are hidden until their round is closed.

use std::cmp::Reverse;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Line;

use super::results::{place_and_name, rank_lines, result_in_words};
use super::{BoardView, WallPart, join};
use crate::class::board::{Board, ParticipantRow, Race, VoteTally};
use crate::course::save_file::letter;
use crate::tui::surface::{height, put, take_bottom, take_left, take_top};
use crate::tui::theme::Theme;
use crate::tui::{digits, text};

/// The number of results that the wall shows.
const RANKS: usize = 10;

/// Draws what the class does, or what the instructor turned to.
pub(super) fn draw(
    frame: &mut Frame<'_>,
    area: Rect,
    board: &Board,
    view: &BoardView,
    theme: &Theme,
) {
    let nothing = |said: &str| Line::styled(format!(" {said}"), theme.dim);
    match view.wall.unwrap_or(WallPart::shown_on(board)) {
        WallPart::Join => draw_join(frame, area, board, view, theme),
        WallPart::Vote => match &board.vote {
            Some(vote) => draw_vote(frame, area, vote, theme),
            None => put(frame, area, nothing("no vote yet")),
        },
        WallPart::Hands => draw_hands(frame, area, board, theme),
        WallPart::Race => match &board.race {
            Some(race) => draw_race(frame, area, race, theme),
            None => put(frame, area, nothing("no race")),
        },
    }
}

/// Draws how to join, and who is here.
fn draw_join(frame: &mut Frame<'_>, area: Rect, board: &Board, view: &BoardView, theme: &Theme) {
    let mut rest = join::beside_code(frame, area, view, theme);
    let wide = usize::from(rest.width);
    let place = view.places.get(view.place).map_or("", String::as_str);
    let mut lines = vec![Line::styled("join the class", theme.heading)];
    lines.extend(text::wrapped(place, theme.strong, wide));
    put(frame, take_top(&mut rest, height(lines.len())), lines);
    draw_here(frame, &mut rest, board.here, theme);
    let lines = name_lines(board, wide, usize::from(rest.height));
    let lines = lines.into_iter().map(|line| Line::styled(line, theme.text));
    put(frame, rest, lines.collect::<Vec<_>>());
}

/// Draws how many are here, large if there is room, and takes the rows off `rest`.
fn draw_here(frame: &mut Frame<'_>, rest: &mut Rect, here: usize, theme: &Theme) {
    let here = here.to_string();
    let size = digits::size(&here, rest.width, rest.height / 4);
    if size == 0 {
        let line = Line::styled(format!("{here} here"), theme.strong);
        return put(frame, take_top(rest, 1), line);
    }
    let mut area = take_top(rest, digits::rows(size) + 1);
    let columns = digits::width(&here).unwrap_or(0) * size + 1;
    let number = take_left(&mut area, columns);
    let at = (number.x, number.y);
    digits::draw(frame.buffer_mut(), at, &here, size, theme.strong);
    put(frame, area, Line::styled("here", theme.strong));
}

/// Returns the names in lines. Names are whole; if not all fit, those who came last are shown.
fn name_lines(board: &Board, wide: usize, high: usize) -> Vec<String> {
    let joined = |row: &&ParticipantRow| -> usize {
        let number = row.id.trim_start_matches('n');
        number.parse().unwrap_or(0)
    };
    let mut people: Vec<&ParticipantRow> = board.rows.iter().collect();
    people.retain(|row| row.name != "no name");
    people.sort_by_key(|row| Reverse(joined(row)));
    let mut lines: Vec<String> = Vec::new();
    for (at, row) in people.iter().enumerate() {
        if let Some(last) = lines.last_mut()
            && text::width(last) + 2 + text::width(&row.name) <= wide
        {
            *last += &format!("  {}", row.name);
        } else if lines.len() + 1 < high {
            lines.push(row.name.clone());
        } else {
            lines.push(format!("and {} more", people.len() - at));
            break;
        }
    }
    lines
}

/// Draws the question with its choices, and after the close how many chose each.
fn draw_vote(frame: &mut Frame<'_>, area: Rect, vote: &VoteTally, theme: &Theme) {
    let mut rest = area;
    let mut top = area;
    top.height = (area.height / 4).max(1);
    let used = draw_words(frame, top, &vote.prompt, theme.heading);
    take_top(&mut rest, used);
    let legend = if vote.round > 1 && !vote.open {
        "left: the first vote; right: after the discussion · "
    } else {
        ""
    };
    let standing = format!(" {legend}{}", vote.turnout_sentence());
    let bottom = take_bottom(&mut rest, 1);
    put(frame, bottom, Line::styled(standing, theme.strong));
    let each = rest.height / height(vote.choices.len()).max(1);
    for at in 0..vote.choices.len() {
        draw_choice(frame, take_top(&mut rest, each), vote, at, theme);
    }
}

/// Draws a choice: its letter, its text over its bars, and its counts.
fn draw_choice(frame: &mut Frame<'_>, area: Rect, vote: &VoteTally, at: usize, theme: &Theme) {
    let mut rest = area;
    let size = (area.height.saturating_sub(1) / digits::ROWS).clamp(1, 4);
    let answer = vote.answer.as_ref();
    let is_right = answer.is_some_and(|answer| answer.choice == at);
    let (style, style_of_letter) = if is_right {
        (theme.good, theme.good)
    } else {
        (theme.text, theme.strong)
    };
    let mark = take_left(&mut rest, 5 * size + 1);
    draw_large(frame, mark, &letter(at), size, style_of_letter);
    // An open vote hides its counts.
    let counts = if vote.open {
        Vec::new()
    } else {
        vote.votes(at)
    };
    let said: Vec<String> = counts.iter().map(u32::to_string).collect();
    let said = said.join(" ");
    let columns = digits::width(&said).unwrap_or(0) * size;
    let columns = columns.min(rest.width / 2);
    let figures = take_right(&mut rest, columns);
    draw_large(frame, figures, &said, size, style);
    take_right(&mut rest, 1);
    let rows = height(counts.len()).min(rest.height.saturating_sub(1));
    let bars = take_bottom(&mut rest, rows);
    draw_words(frame, rest, &vote.choices[at], style);
    let most = vote.rounds.iter().flatten().max().copied();
    let most = most.unwrap_or(0).max(1) as usize;
    let mut lines = Vec::new();
    for (count, style) in counts.iter().zip([theme.a, theme.b]) {
        let full = (*count as usize * usize::from(bars.width)).div_ceil(most);
        lines.push(Line::styled(theme.symbols.fills[0].repeat(full), style));
    }
    put(frame, bars, lines);
}

/// Draws words in large glyphs if all fit, or in letters. Returns the rows that they take.
fn draw_words(frame: &mut Frame<'_>, area: Rect, said: &str, style: Style) -> u16 {
    if let Some(lines) = digits::wrap(said, area.width)
        && digits::rows_of(lines.len()) <= area.height
    {
        digits::draw_lines(frame.buffer_mut(), (area.x, area.y), &lines, style);
        return (digits::rows_of(lines.len()) + 1).min(area.height);
    }
    let lines = text::wrapped(said, style, usize::from(area.width));
    let rows = height(lines.len()).min(area.height);
    put(frame, area, lines);
    rows
}

/// Draws a word in large glyphs, or in letters if there is no room.
fn draw_large(frame: &mut Frame<'_>, area: Rect, word: &str, size: u16, style: Style) {
    let fits = digits::size(word, area.width + size, area.height);
    match size.min(fits) {
        0 => put(frame, area, Line::styled(word.to_owned(), style)),
        size => digits::draw(frame.buffer_mut(), (area.x, area.y), word, size, style),
    }
}

/// Draws whose hand is up, in their order.
fn draw_hands(frame: &mut Frame<'_>, area: Rect, board: &Board, theme: &Theme) {
    let title = format!(" {} raised a hand", board.raised);
    let mut lines = vec![Line::styled(title, theme.heading)];
    for row in &board.rows {
        if let Some(place) = row.hand {
            let said = format!(" {place:>3}  {}", row.name);
            lines.push(Line::styled(said, theme.strong));
        }
    }
    put(frame, area, lines);
}

/// Draws the first of a race, and the time that is left.
fn draw_race(frame: &mut Frame<'_>, area: Rect, race: &Race, theme: &Theme) {
    let mut rest = area;
    let mut title = take_top(&mut rest, digits::ROWS + 1);
    if let Some(remaining_s) = race.remaining_s {
        let left = format!("{}:{:02}", remaining_s / 60, remaining_s % 60);
        let columns = digits::width(&left).unwrap_or(0);
        let clock = take_right(&mut title, columns + 1);
        draw_large(frame, clock, &left, 1, theme.strong);
    }
    let said = format!(" race: {}", race.task);
    put(frame, title, Line::styled(said, theme.heading));
    let shown = &race.ranks[..race.ranks.len().min(RANKS)];
    let lines = rank_lines(shown, theme.good, theme, |rank| {
        format!("{}  {}", place_and_name(rank), result_in_words(rank))
    });
    put(frame, rest, lines);
}

/// Takes columns at the right.
fn take_right(rest: &mut Rect, columns: u16) -> Rect {
    let columns = columns.min(rest.width);
    rest.width -= columns;
    Rect {
        x: rest.x + rest.width,
        width: columns,
        ..*rest
    }
}
