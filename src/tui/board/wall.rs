//! The wall: what the class is to see, and nothing else, as large as the screen allows. Votes are hidden until their round is closed.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::{BoardView, WallPart, join, result};
use crate::class::board::{Board, Race, VoteTally};
use crate::course::save_file::letter;
use crate::tui::surface::{height, put, take_bottom, take_left, take_top};
use crate::tui::theme::Theme;
use crate::tui::{digits, text};
use protocol::units::or_dash;

/// Results that the wall shows.
const RANKS: usize = 10;

/// Draws what the class does, or what the instructor turned to.
pub(super) fn draw(
    frame: &mut Frame<'_>,
    area: Rect,
    board: &Board,
    view: &BoardView,
    theme: &Theme,
) {
    let nothing = |said| Line::styled(format!(" {said}"), theme.dim);
    match view.wall.unwrap_or(WallPart::of(board)) {
        WallPart::Join => names(frame, area, board, view, theme),
        WallPart::Vote => match &board.vote {
            Some(vote) => votes(frame, area, vote, theme),
            None => put(frame, area, nothing("no vote yet")),
        },
        WallPart::Hands => hands(frame, area, board, theme),
        WallPart::Race => match &board.race {
            Some(race) => ranks(frame, area, race, theme),
            None => put(frame, area, nothing("no race")),
        },
    }
}

/// How to join, and who is here.
fn names(frame: &mut Frame<'_>, area: Rect, board: &Board, view: &BoardView, theme: &Theme) {
    let mut rest = join::beside_code(frame, area, view, theme);
    let wide = usize::from(rest.width);
    let place = view.places.get(view.place).map_or("", String::as_str);
    let mut lines = vec![Line::styled("join the class", theme.heading)];
    lines.extend(text::wrap(
        &[Span::styled(place.to_owned(), theme.strong)],
        wide,
        "",
        "",
    ));
    put(frame, take_top(&mut rest, height(lines.len())), lines);
    let here = board.here.to_string();
    let size = digits::size(&here, rest.width, rest.height / 4);
    match size {
        0 => put(
            frame,
            take_top(&mut rest, 1),
            Line::styled(format!("{here} here"), theme.strong),
        ),
        size => {
            let area = take_top(&mut rest, digits::rows(size) + 1);
            digits::draw(
                frame.buffer_mut(),
                (area.x, area.y),
                &here,
                size,
                theme.strong,
            );
            let right = digits::width(&here).unwrap_or(0) * size;
            let after = Rect {
                x: area.x + right + 1,
                width: area.width.saturating_sub(right + 1),
                ..area
            };
            put(frame, after, Line::styled("here", theme.strong));
        }
    }
    // Names are whole; where not all fit, those who came last are shown.
    let mut people: Vec<_> = board
        .rows
        .iter()
        .filter(|row| row.name != "no name")
        .collect();
    people.sort_by_key(|row| {
        std::cmp::Reverse(row.id.trim_start_matches('n').parse::<usize>().unwrap_or(0))
    });
    let mut lines: Vec<String> = Vec::new();
    for (at, row) in people.iter().enumerate() {
        let longer = lines.last().map(|line| format!("{line}  {}", row.name));
        match longer.filter(|line| text::width(line) <= wide) {
            Some(longer) => *lines.last_mut().unwrap_or(&mut String::new()) = longer,
            None if lines.len() + 1 < usize::from(rest.height) => lines.push(row.name.clone()),
            None => {
                lines.push(format!("and {} more", people.len() - at));
                break;
            }
        }
    }
    let lines = lines.into_iter().map(|line| Line::styled(line, theme.text));
    put(frame, rest, lines.collect::<Vec<_>>());
}

/// The question with its choices, and after the close how many chose each.
fn votes(frame: &mut Frame<'_>, area: Rect, vote: &VoteTally, theme: &Theme) {
    let mut rest = area;
    let most = (area.height / 4).max(1);
    let top = Rect {
        height: most,
        ..rest
    };
    let used = words(frame, top, &vote.prompt, theme.heading);
    take_top(&mut rest, used);
    let said = match vote.open {
        true => vote.in_words(),
        false => vote.who(),
    };
    let again = if vote.round > 1 {
        "left: the first vote; right: after the discussion · "
    } else {
        ""
    };
    let again = if vote.open { "" } else { again };
    put(
        frame,
        take_bottom(&mut rest, 1),
        Line::styled(format!(" {again}{said}"), theme.strong),
    );
    let answer = vote.answer.as_ref();
    let longest = vote
        .rounds
        .iter()
        .flatten()
        .max()
        .copied()
        .unwrap_or(0)
        .max(1);
    let each = rest.height / height(vote.choices.len()).max(1);
    let size = (each.saturating_sub(1) / digits::ROWS).clamp(1, 4);
    for (at, choice) in vote.choices.iter().enumerate() {
        let mut row = take_top(&mut rest, each);
        let right = answer.is_some_and(|it| it.choice == at);
        let style = if right { theme.good } else { theme.text };
        let mark = take_left(&mut row, 5 * size + 1);
        large(
            frame,
            mark,
            &letter(at),
            size,
            if right { theme.good } else { theme.strong },
        );
        let counts: Vec<u32> = if vote.open {
            Vec::new()
        } else {
            vote.votes(at)
        };
        let said = counts
            .iter()
            .map(u32::to_string)
            .collect::<Vec<_>>()
            .join(" ");
        let columns = digits::width(&said).unwrap_or(0) * size;
        let columns = columns.min(row.width / 2);
        let figures = take_right(&mut row, columns);
        large(frame, figures, &said, size, style);
        take_right(&mut row, 1);
        let bars = height(counts.len()).min(row.height.saturating_sub(1));
        let bars = take_bottom(&mut row, bars);
        words(frame, row, choice, style);
        let bar = |(n, style): (&u32, Style)| {
            let full = (*n as usize * usize::from(bars.width)).div_ceil(longest as usize);
            Line::styled(theme.symbols.fills[0].repeat(full), style)
        };
        let lines = counts.iter().zip([theme.a, theme.b]).map(bar);
        put(frame, bars, lines.collect::<Vec<_>>());
    }
}

/// Draws words in large glyphs where all fit, or in letters; the rows that they take.
fn words(frame: &mut Frame<'_>, area: Rect, said: &str, style: Style) -> u16 {
    let large = digits::wrap(said, area.width);
    if let Some(lines) = large.filter(|lines| digits::rows_of(lines.len()) <= area.height) {
        digits::draw_lines(frame.buffer_mut(), (area.x, area.y), &lines, style);
        return (digits::rows_of(lines.len()) + 1).min(area.height);
    }
    let lines = text::wrap(
        &[Span::styled(said.to_owned(), style)],
        usize::from(area.width),
        "",
        "",
    );
    let rows = height(lines.len()).min(area.height);
    put(frame, area, lines);
    rows
}

/// Draws a word in large glyphs, or in letters where there is no room.
fn large(frame: &mut Frame<'_>, area: Rect, word: &str, size: u16, style: Style) {
    let fits = digits::size(word, area.width + size, area.height);
    match size.min(fits) {
        0 => put(frame, area, Line::styled(word.to_owned(), style)),
        size => digits::draw(frame.buffer_mut(), (area.x, area.y), word, size, style),
    }
}

/// Whose hand is up, in their order.
fn hands(frame: &mut Frame<'_>, area: Rect, board: &Board, theme: &Theme) {
    let mut lines = vec![Line::styled(
        format!(" {} raised a hand", board.raised),
        theme.heading,
    )];
    let raised = board
        .rows
        .iter()
        .filter_map(|row| Some((row.hand?, &row.name)));
    lines.extend(
        raised.map(|(place, name)| Line::styled(format!(" {place:>3}  {name}"), theme.strong)),
    );
    put(frame, area, lines);
}

/// The first of a race, and the time that is left.
fn ranks(frame: &mut Frame<'_>, area: Rect, race: &Race, theme: &Theme) {
    let mut rest = area;
    let mut title = take_top(&mut rest, digits::ROWS + 1);
    if let Some(left) = race.left_s {
        let left = format!("{}:{:02}", left / 60, left % 60);
        let columns = digits::width(&left).unwrap_or(0);
        let clock = take_right(&mut title, columns + 1);
        large(frame, clock, &left, 1, theme.strong);
    }
    put(
        frame,
        title,
        Line::styled(format!(" race: {}", race.task), theme.heading),
    );
    let mut lines = Vec::new();
    for rank in race.ranks.iter().take(RANKS) {
        let place = or_dash(rank.place, |place| place.to_string());
        let style = if rank.place == Some(1) {
            theme.good
        } else {
            theme.text
        };
        lines.push(Line::styled(
            format!(
                " {place:>3}  {}  {}",
                text::name(&rank.name, 24),
                result(rank)
            ),
            style,
        ));
    }
    if lines.is_empty() {
        lines.push(Line::styled(" nobody has a result yet", theme.dim));
    }
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
