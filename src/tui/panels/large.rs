//! Rows for the back of a room: a name, a figure in large glyphs, and a bar or a small chart as thick as the row. They share the
//! height between them; where there is not enough for large glyphs, the figures stand in plain letters.

use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

use crate::tui::digits;
use crate::tui::surface::{Surface, height, take_left, take_top};
use crate::tui::text;

/// One row.
pub struct Row {
    pub name: String,
    pub style: Style,
    /// Below the name, where there is room.
    pub details: String,
    pub figure: String,
    pub figure_style: Style,
    pub picture: Picture,
    pub ink: Style,
}

/// What stands right of a figure.
pub enum Picture {
    Nothing,
    /// A share of the width.
    Bar(f64),
    /// A column for each value, from zero.
    Columns(Vec<f64>),
}

/// Most columns of a name, and rows of one row.
const NAME: usize = 22;
const TALLEST: u16 = 12;
/// Rows from which on the names are large, too.
const TALL: u16 = 10;
/// Columns that a bar takes at least.
const LEAST: u16 = 8;

/// Draws the rows; those that do not fit are left out from the end.
pub fn draw(s: &mut Surface<'_, '_>, rows: Vec<Row>) -> u16 {
    let all = height(rows.len()).max(1);
    let each = (s.area.height / all)
        .clamp(digits::ROWS, TALLEST)
        .min(s.area.height);
    let gap = u16::from(each > digits::ROWS);
    let fits = |row: &Row| digits::size(&row.name, s.area.width, digits::ROWS) > 0;
    if each >= TALL && rows.iter().all(fits) {
        return draw_tall(s, rows, each);
    }
    let longest = rows
        .iter()
        .flat_map(|row| row.name.split_whitespace().chain([&*row.details]));
    let name = longest.map(text::width).max().unwrap_or(0).clamp(12, NAME) as u16 + 2;
    let name = name.min(s.area.width / 2);
    // Pictures keep a quarter of what the names leave.
    let pictured = rows
        .iter()
        .any(|row| !matches!(row.picture, Picture::Nothing));
    let room = s.area.width - name;
    let room = if pictured {
        room.saturating_sub((room / 4).max(LEAST))
    } else {
        room
    };
    let size = |row: &Row| digits::size(&row.figure, room, each - gap);
    let size = rows
        .iter()
        .map(size)
        .filter(|size| *size > 0)
        .min()
        .unwrap_or(0);
    let wide = |row: &Row| match large(&row.figure, size, room) {
        Some(wide) => wide,
        None => text::width(&row.figure) as u16 + 1,
    };
    let figures = rows.iter().map(wide).max().unwrap_or(0).min(room);
    for row in rows {
        if s.area.height == 0 {
            break;
        }
        let mut area = take_top(&mut s.area, each);
        area.height = area.height.saturating_sub(gap).max(1);
        let left = take_left(&mut area, name);
        named(s, &row, left);
        let at = take_left(&mut area, figures);
        figure(s, &row, at, size);
        take_left(&mut area, 2);
        picture(s, &row, area);
    }
    0
}

/// The same with the names in large glyphs, too, above the figures.
fn draw_tall(s: &mut Surface<'_, '_>, rows: Vec<Row>, each: u16) -> u16 {
    let high = each - digits::ROWS - 2;
    let pictured = |row: &Row| !matches!(row.picture, Picture::Nothing);
    let room = |row: &Row| {
        if pictured(row) {
            s.area.width * 2 / 3
        } else {
            s.area.width
        }
    };
    let size = rows
        .iter()
        .map(|row| digits::size(&row.figure, room(row), high));
    let size = size.filter(|size| *size > 0).min().unwrap_or(0);
    let wide = |row: &Row| {
        large(&row.figure, size, room(row)).unwrap_or(text::width(&row.figure) as u16 + 1)
    };
    let beside = rows
        .iter()
        .filter(|row| pictured(row))
        .map(wide)
        .max()
        .unwrap_or(0);
    for row in rows {
        let mut area = take_top(&mut s.area, each);
        let mut top = take_top(&mut area, digits::ROWS + 1);
        digits::draw(
            s.frame.buffer_mut(),
            (top.x, top.y),
            &row.name,
            1,
            row.style,
        );
        take_left(&mut top, digits::width(&row.name).unwrap_or(0) + 2);
        s.put(top, Line::styled(row.details.clone(), s.theme.dim));
        area.height = area.height.saturating_sub(1);
        let columns = if pictured(&row) { beside } else { area.width };
        let at = take_left(&mut area, columns);
        figure(s, &row, at, size);
        take_left(&mut area, 2);
        picture(s, &row, area);
    }
    0
}

/// Columns of a text at a size, where it has a large form that fits.
fn large(figure: &str, size: u16, room: u16) -> Option<u16> {
    let wide = digits::width(figure)? * size;
    (size > 0 && wide <= room).then_some(wide)
}

fn named(s: &mut Surface<'_, '_>, row: &Row, area: Rect) {
    let columns = usize::from(area.width).saturating_sub(1);
    let mut lines = text::wrap(
        &[Span::styled(row.name.clone(), row.style)],
        columns,
        "",
        "",
    );
    if !row.details.is_empty() && lines.len() < usize::from(area.height) {
        let details = text::cut(&row.details, columns);
        lines.push(Line::styled(details, s.theme.dim));
    }
    s.put(middle(area, height(lines.len())), lines);
}

/// The figure, in large glyphs where it has them.
fn figure(s: &mut Surface<'_, '_>, row: &Row, area: Rect, size: u16) {
    let rows = digits::rows(size);
    if large(&row.figure, size, area.width).is_none() || rows > area.height {
        let line = Line::styled(row.figure.clone(), row.figure_style);
        return s.put(middle(area, 1), line);
    }
    let at = (area.x, middle(area, rows).y);
    let buffer = s.frame.buffer_mut();
    digits::draw(buffer, at, &row.figure, size, row.figure_style);
}

fn picture(s: &mut Surface<'_, '_>, row: &Row, area: Rect) {
    if area.width < LEAST {
        return;
    }
    let symbols = &s.theme.symbols;
    // Reversed, a bar would be a hole.
    let ink = row.ink.remove_modifier(Modifier::REVERSED);
    let lines: Vec<Line<'static>> = match &row.picture {
        Picture::Nothing => return,
        Picture::Bar(share) => {
            let bar = symbols.bar(*share, area.width);
            vec![Line::styled(bar, ink); usize::from(area.height)]
        }
        Picture::Columns(values) => {
            let rows = symbols.columns(values, area.height);
            let each = (usize::from(area.width) / values.len().max(1)).clamp(1, 12);
            let gap = if each > 1 { " " } else { "" };
            let line = |cells: Vec<&'static str>| {
                let cells = cells.into_iter();
                let cells = cells.map(|cell| cell.repeat((each - 1).max(1)) + gap);
                Line::styled(cells.collect::<String>(), ink)
            };
            rows.into_iter().map(line).collect()
        }
    };
    s.put(area, lines);
}

/// So many rows in the middle of an area.
fn middle(area: Rect, rows: u16) -> Rect {
    let rows = rows.min(area.height);
    Rect {
        y: area.y + (area.height - rows) / 2,
        height: rows,
        ..area
    }
}
