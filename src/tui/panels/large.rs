//! Rows for the back of a room: a name, a figure in large glyphs, and a bar or a small chart as thick as the row. They share the
//! height between them; where there is not enough for large glyphs, the figures stand in plain letters.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span, Text};

use super::content::{Block, Figure, Picture, Size};
use crate::app::App;
use crate::panel::Panel;
use crate::tui::digits;
use crate::tui::prose::ProseWriter;
use crate::tui::surface::{self, centred, height, take_bottom, take_left, take_top, widest};
use crate::tui::text;
use crate::tui::theme::Theme;

/// Most columns of a name, and rows of one row.
const NAME: usize = 22;
const TALLEST: u16 = 12;
/// Rows from which on the names are large, too.
const TALL: u16 = 10;
/// Columns that a bar takes at least.
const LEAST: u16 = 8;

/// A rectangle of the frame for what fills the screen at a beat.
pub(super) struct Surface<'a, 'f> {
    pub frame: &'a mut Frame<'f>,
    pub area: Rect,
    pub app: &'a App,
    pub theme: &'a Theme,
}

impl<'a> Surface<'a, '_> {
    /// Lines of text as wide as the area.
    pub(super) fn writer(&self) -> ProseWriter<'a> {
        ProseWriter::new(self.app, self.theme, self.area.width)
    }

    /// Draws lines that do not scroll.
    pub(super) fn put<'t>(&mut self, area: Rect, lines: impl Into<Text<'t>>) {
        surface::put(self.frame, area, lines);
    }

    /// Draws lines in the middle of the area.
    pub(super) fn put_centred(&mut self, lines: Vec<Line<'static>>) {
        let place = centred(self.area, widest(&lines), height(lines.len()));
        self.put(place, lines);
    }
}

/// A figure as it stands in its row.
struct Row {
    figure: Figure,
    /// Its values.
    said: String,
    name_style: Style,
    said_style: Style,
}

impl Row {
    fn new(figure: Figure, theme: &Theme) -> Self {
        let values: Vec<&str> = figure.values.iter().map(|it| it.text.as_str()).collect();
        let good = match &figure.values[..] {
            [value] => value.good,
            _ => None,
        };
        let style = if figure.dim { theme.dim } else { theme.strong };
        Self {
            // A gap is wide in large glyphs.
            said: values.join(" → ").replace(" %", "%"),
            name_style: style,
            said_style: good.map_or(style, |good| theme.mark(good).1),
            figure,
        }
    }

    fn is_pictured(&self) -> bool {
        !matches!(self.figure.picture, Picture::Nothing)
    }

    /// What stands below the name.
    fn details(&self) -> &str {
        match &*self.figure.share {
            "" => &self.figure.details,
            share => share,
        }
    }

    /// Columns of the values in glyphs of this size, where these fit.
    fn large(&self, size: u16, room: u16) -> Option<u16> {
        let wide = digits::width(&self.said)? * size;
        (size > 0 && wide <= room).then_some(wide)
    }

    /// The same, or in plain letters.
    fn columns(&self, size: u16, room: u16) -> u16 {
        let plain = text::width(&self.said) as u16 + 1;
        self.large(size, room).unwrap_or(plain)
    }
}

/// Draws a text as large as it fits into so many rows at the top, and takes them; in plain letters where it has no large form.
pub(super) fn headline(s: &mut Surface<'_, '_>, said: &str, rows: u16, style: Style) {
    let size = digits::size(said, s.area.width, rows);
    let area = take_top(&mut s.area, digits::rows(size).max(1));
    digits::fill(s.frame.buffer_mut(), area, said, style);
    take_top(&mut s.area, u16::from(size > 0));
}

/// Draws what a panel shows: lines before its figures or its drawing above them, those after below, and of the figures those that
/// the beat asks for; those that do not fit are left out from the end. Text stands in the panel's box; the result is how many
/// lines of it can scroll.
pub(super) fn draw(s: &mut Surface<'_, '_>, panel: Panel) -> u16 {
    let (of, _) = super::row_of(panel, s.app);
    let mut content = of(s.app, s.theme, s.area);
    if !content.is_figures() {
        return super::draw(panel, s.area, s.app, s.theme, s.frame);
    }
    let (mut above, mut rows, mut below, mut plot) = (Vec::new(), Vec::new(), Vec::new(), None);
    let cue = s.app.cue();
    let asked = |it: &Figure| it.dim || cue.as_ref().is_none_or(|cue| cue.asks(&it.name));
    for block in content.take_blocks(Size::Large) {
        match block {
            Block::Figure(figure) if !asked(&figure) => {}
            Block::Figure(figure) => rows.push(Row::new(figure, s.theme)),
            Block::Plot(it) => plot = Some(it),
            Block::Lines(lines) if rows.is_empty() && plot.is_none() => above.extend(lines),
            Block::Lines(lines) => below.extend(lines),
        }
    }
    for (lines, take) in [
        (above, take_top as fn(&mut Rect, u16) -> Rect),
        (below, take_bottom),
    ] {
        let area = take(&mut s.area, height(lines.len()));
        s.put(area, lines);
    }
    match plot {
        Some(plot) => (plot.draw)(s.area, s.frame.buffer_mut()),
        None => draw_rows(s, rows),
    }
    0
}

fn draw_rows(s: &mut Surface<'_, '_>, rows: Vec<Row>) {
    // What the beat is about stays: where rows are few, each is one line in plain letters.
    let all = height(rows.len()).max(1);
    let is_high = s.area.height > digits::ROWS * (all - 1);
    let least = if is_high { digits::ROWS } else { 1 };
    let each = (s.area.height / all).clamp(least, TALLEST);
    let each = each.min(s.area.height);
    let gap = u16::from(each > digits::ROWS || each == 2);
    let fits = |row: &Row| digits::size(&row.figure.name, s.area.width, digits::ROWS) > 0;
    if each >= TALL && rows.iter().all(fits) {
        return draw_tall(s, rows, each);
    }
    let in_one_line = each < digits::ROWS;
    let longest = rows.iter().flat_map(|row| {
        let name = &*row.figure.name;
        let words = name.split_whitespace().chain([row.details()]);
        words.chain(in_one_line.then_some(name))
    });
    let most = if in_one_line {
        s.area.width.into()
    } else {
        NAME
    };
    let name = longest.map(text::width).max().unwrap_or(0);
    let name = (name.max(12).min(most) as u16 + 2).min(s.area.width / 2);
    // Pictures keep a quarter of what the names leave.
    let mut room = s.area.width - name;
    if rows.iter().any(Row::is_pictured) {
        room = room.saturating_sub((room / 4).max(LEAST));
    }
    let size = common_size(&rows, |_| room, each - gap);
    let wide = |row: &Row| row.columns(size, room);
    let figures = rows.iter().map(wide).max().unwrap_or(0).min(room);
    for row in rows {
        if s.area.height == 0 {
            break;
        }
        let mut area = take_top(&mut s.area, each);
        area.height = area.height.saturating_sub(gap).max(1);
        let left = take_left(&mut area, name);
        named(s, &row, left);
        figure_and_picture(s, &row, area, figures, size);
    }
}

/// The same with the names in large glyphs, too, above the figures.
fn draw_tall(s: &mut Surface<'_, '_>, rows: Vec<Row>, each: u16) {
    let high = each - digits::ROWS - 2;
    let whole = s.area.width;
    let room = |row: &Row| match row.is_pictured() {
        true => whole * 2 / 3,
        false => whole,
    };
    let size = common_size(&rows, room, high);
    let pictured = rows.iter().filter(|row| row.is_pictured());
    let beside = pictured.map(|row| row.columns(size, room(row))).max();
    for row in rows {
        let mut area = take_top(&mut s.area, each);
        let mut top = take_top(&mut area, digits::ROWS + 1);
        let (at, name) = ((top.x, top.y), &row.figure.name);
        digits::draw(s.frame.buffer_mut(), at, name, 1, row.name_style);
        take_left(&mut top, digits::width(name).unwrap_or(0) + 2);
        let details = row.details().to_owned();
        if text::width(&details) <= usize::from(top.width) {
            s.put(top, Line::styled(details, s.theme.dim));
        }
        area.height = area.height.saturating_sub(1);
        let beside = beside.filter(|_| row.is_pictured());
        let columns = beside.unwrap_or(area.width);
        figure_and_picture(s, &row, area, columns, size);
    }
}

/// The largest size at which the values of all rows fit that fit at all.
fn common_size(rows: &[Row], room: impl Fn(&Row) -> u16, high: u16) -> u16 {
    let sizes = rows
        .iter()
        .map(|row| digits::size(&row.said, room(row), high));
    sizes.filter(|size| *size > 0).min().unwrap_or(0)
}

/// The values in so many columns on the left, and the picture beside them.
fn figure_and_picture(s: &mut Surface<'_, '_>, row: &Row, mut area: Rect, columns: u16, size: u16) {
    let left = take_left(&mut area, columns);
    figure(s, row, left, size);
    take_left(&mut area, 2);
    picture(s, row, area);
}

fn named(s: &mut Surface<'_, '_>, row: &Row, area: Rect) {
    let columns = usize::from(area.width).saturating_sub(1);
    let name = Span::styled(row.figure.name.clone(), row.name_style);
    let mut lines = text::wrap(&[name], columns, "", "");
    let room = usize::from(area.height) - lines.len().min(area.height.into());
    if (1..=columns).contains(&text::width(row.details())) && room > 0 {
        lines.push(Line::styled(row.details().to_owned(), s.theme.dim));
    }
    s.put(centred(area, area.width, height(lines.len())), lines);
}

/// The values, in large glyphs where they fit.
fn figure(s: &mut Surface<'_, '_>, row: &Row, area: Rect, size: u16) {
    let rows = digits::rows(size);
    if row.large(size, area.width).is_none() || rows > area.height {
        let line = Line::styled(row.said.clone(), row.said_style);
        return s.put(centred(area, area.width, 1), line);
    }
    let at = (area.x, centred(area, area.width, rows).y);
    digits::draw(s.frame.buffer_mut(), at, &row.said, size, row.said_style);
}

fn picture(s: &mut Surface<'_, '_>, row: &Row, area: Rect) {
    if area.width < LEAST {
        return;
    }
    let symbols = &s.theme.symbols;
    // Reversed, a bar would be a hole.
    let ink = row.figure.ink.remove_modifier(Modifier::REVERSED);
    let lines: Vec<Line<'static>> = match &row.figure.picture {
        Picture::Nothing => return,
        Picture::Bar(share) | Picture::Phase(_, share) => {
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
