//! Draws the contents of a panel for the back of a room: a drawing, or a row for each figure.
//!
//! ```text
//! linear        ▀▀█ █▀▀   █ █ ▀ ▄▀   ████████████████
//! mlp.gate bwd  █▀▀ █▀█   ▀▀█  █▀    ████████████████
//! 38.20 ms      ▀▀▀ ▀▀▀ ▀   ▀ ▀  ▀   ████████████████
//!
//! linear        ▀▀█ ▀▀█   █▀█ ▀ ▄▀   █████████████▌
//! mlp.down bwd  █▀▀ █▀▀   █ █  █▀    █████████████▌
//! 31.90 ms      ▀▀▀ ▀▀▀ ▀ ▀▀▀ ▀  ▀   █████████████▌
//! ```
//!
//! The rows share the height of the screen. Where it is too low for large glyphs, the figures stand in plain letters. Where it is very high,
//! the names are large, too, and stand above the figures.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span, Text};

use super::content::{Block, Figure, Picture, Renderer};
use crate::app::App;
use crate::panel::Panel;
use crate::tui::digits;
use crate::tui::prose::ProseWriter;
use crate::tui::surface::{self, centred, height, take_bottom, take_left, take_top, widest};
use crate::tui::text;
use crate::tui::theme::Theme;

/// The largest width of a name.
const MAX_NAME: usize = 22;
/// The largest height of a row.
const MAX_HEIGHT: u16 = 12;
/// The smallest height of a row whose name is large, too.
const LARGE_NAMES: u16 = 10;
/// The smallest width of a picture.
const MIN_PICTURE: u16 = 8;

/// The frame of a beat, and the area in it that is still to be filled.
pub(super) struct Surface<'a, 'f> {
    pub frame: &'a mut Frame<'f>,
    pub area: Rect,
    pub app: &'a App,
    pub theme: &'a Theme,
}

impl<'a> Surface<'a, '_> {
    /// Returns a writer for text as wide as the area.
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

/// A figure as it is drawn in its row.
struct Row {
    figure: Figure,
    /// The values of the figure as one text.
    values: String,
    name_style: Style,
    values_style: Style,
}

impl Row {
    fn new(figure: Figure, theme: &Theme) -> Self {
        let values: Vec<&str> = figure
            .values
            .iter()
            .map(|value| value.text.as_str())
            .collect();
        let good = match &figure.values[..] {
            [value] => value.good,
            _ => None,
        };
        let style = if figure.dim { theme.dim } else { theme.strong };
        Self {
            // The gap before a percent sign would be wide in large glyphs.
            values: values.join(" → ").replace(" %", "%"),
            name_style: style,
            values_style: good.map_or(style, |good| theme.mark(good).1),
            figure,
        }
    }

    fn has_picture(&self) -> bool {
        !matches!(self.figure.picture, Picture::Nothing)
    }

    /// Returns the text below the name: the share of the figure, or else its details.
    fn details(&self) -> &str {
        if self.figure.share.is_empty() {
            &self.figure.details
        } else {
            &self.figure.share
        }
    }

    /// Returns the width of the values in glyphs of a size. `None` where the values have no large form or do not fit into `max` columns.
    fn large_width(&self, size: u16, max: u16) -> Option<u16> {
        let width = digits::width(&self.values)? * size;
        (size > 0 && width <= max).then_some(width)
    }

    /// Returns the width of the values in glyphs of a size, or in plain letters where these do not fit into `max` columns.
    fn width(&self, size: u16, max: u16) -> u16 {
        let plain = text::width(&self.values) as u16 + 1;
        self.large_width(size, max).unwrap_or(plain)
    }
}

/// Draws a text at the top of the area and takes its rows off the area. The text has the largest glyphs that fit into `rows`, or plain letters
/// where it has no large form.
pub(super) fn headline(s: &mut Surface<'_, '_>, text: &str, rows: u16, style: Style) {
    let size = digits::size(text, s.area.width, rows);
    let area = take_top(&mut s.area, digits::rows(size).max(1));
    digits::fill(s.frame.buffer_mut(), area, text, style);
    take_top(&mut s.area, u16::from(size > 0));
}

/// Draws a panel for the back of a room: its drawing, or the figures that the beat asks for. Lines before the figures stand above them, lines
/// after them below. A panel of text is drawn in its box. Returns how many lines it can scroll.
pub(super) fn draw(s: &mut Surface<'_, '_>, panel: Panel) -> u16 {
    let (mut content, _) = super::content_and_explanation(panel, s.app, s.theme, s.area);
    if !content.has_large_form() {
        return super::draw(panel, s.area, s.app, s.theme, s.frame);
    }
    let mut above = Vec::new();
    let mut rows = Vec::new();
    let mut below = Vec::new();
    let mut plot = None;
    let cue = s.app.cue();
    let is_shown =
        |figure: &Figure| figure.dim || cue.as_ref().is_none_or(|cue| cue.asks(&figure.name));
    for block in content.take_blocks(Renderer::Large) {
        match block {
            Block::Figure(figure) if !is_shown(&figure) => {}
            Block::Figure(figure) => rows.push(Row::new(figure, s.theme)),
            Block::Plot(drawing) => plot = Some(drawing),
            Block::Lines(lines) if rows.is_empty() && plot.is_none() => above.extend(lines),
            Block::Lines(lines) => below.extend(lines),
        }
    }
    let top = take_top(&mut s.area, height(above.len()));
    s.put(top, above);
    let bottom = take_bottom(&mut s.area, height(below.len()));
    s.put(bottom, below);
    match plot {
        Some(plot) => (plot.draw)(s.area, s.frame.buffer_mut()),
        None => draw_rows(s, rows),
    }
    0
}

/// Draws the rows below each other, each with an equal share of the height.
fn draw_rows(s: &mut Surface<'_, '_>, rows: Vec<Row>) {
    let count = height(rows.len()).max(1);
    // On a low screen each row is one line in plain letters, so that all of them stay visible.
    let is_high = s.area.height > digits::ROWS * (count - 1);
    let min_height = if is_high { digits::ROWS } else { 1 };
    let row_height = (s.area.height / count)
        .clamp(min_height, MAX_HEIGHT)
        .min(s.area.height);
    let gap = u16::from(row_height > digits::ROWS || row_height == 2);
    let fits = |row: &Row| digits::size(&row.figure.name, s.area.width, digits::ROWS) > 0;
    if row_height >= LARGE_NAMES && rows.iter().all(fits) {
        return draw_with_large_names(s, rows, row_height);
    }
    let name_width = name_width(&rows, s.area.width, row_height < digits::ROWS);
    // Pictures keep a quarter of the columns beside the names.
    let mut max_figure = s.area.width - name_width;
    if rows.iter().any(Row::has_picture) {
        max_figure = max_figure.saturating_sub((max_figure / 4).max(MIN_PICTURE));
    }
    let size = common_size(&rows, |_| max_figure, row_height - gap);
    let widths = rows.iter().map(|row| row.width(size, max_figure));
    let figure_width = widths.max().unwrap_or(0).min(max_figure);
    for row in rows {
        if s.area.height == 0 {
            break;
        }
        let mut area = take_top(&mut s.area, row_height);
        area.height = area.height.saturating_sub(gap).max(1);
        let left = take_left(&mut area, name_width);
        name_and_details(s, &row, left);
        figure_and_picture(s, &row, area, figure_width, size);
    }
}

/// Returns the columns of the names, at most half of the screen. A name may wrap between words, except in a row of one line.
fn name_width(rows: &[Row], screen: u16, in_one_line: bool) -> u16 {
    let widest = rows
        .iter()
        .flat_map(|row| {
            let name = &*row.figure.name;
            let words = name.split_whitespace().chain([row.details()]);
            words.chain(in_one_line.then_some(name))
        })
        .map(text::width)
        .max()
        .unwrap_or(0);
    let most = if in_one_line { screen.into() } else { MAX_NAME };
    (widest.max(12).min(most) as u16 + 2).min(screen / 2)
}

/// Draws rows whose names stand in large glyphs above the figures.
fn draw_with_large_names(s: &mut Surface<'_, '_>, rows: Vec<Row>, row_height: u16) {
    let screen = s.area.width;
    let max_figure = |row: &Row| {
        if row.has_picture() {
            screen * 2 / 3
        } else {
            screen
        }
    };
    let size = common_size(&rows, max_figure, row_height - digits::ROWS - 2);
    // The pictures of all rows begin at one column.
    let before_pictures = rows
        .iter()
        .filter(|row| row.has_picture())
        .map(|row| row.width(size, max_figure(row)))
        .max()
        .unwrap_or(0);
    for row in rows {
        let mut area = take_top(&mut s.area, row_height);
        let mut top = take_top(&mut area, digits::ROWS + 1);
        let name = &row.figure.name;
        let buffer = s.frame.buffer_mut();
        digits::draw(buffer, (top.x, top.y), name, 1, row.name_style);
        take_left(&mut top, digits::width(name).unwrap_or(0) + 2);
        let details = row.details().to_owned();
        if text::width(&details) <= usize::from(top.width) {
            s.put(top, Line::styled(details, s.theme.dim));
        }
        area.height = area.height.saturating_sub(1);
        let columns = if row.has_picture() {
            before_pictures
        } else {
            area.width
        };
        figure_and_picture(s, &row, area, columns, size);
    }
}

/// Returns the largest size of glyphs at which the values of all rows fit into `max_width` columns and `max_height` rows. Rows whose values fit
/// at no size do not count. Returns 0 where no row counts.
fn common_size(rows: &[Row], max_width: impl Fn(&Row) -> u16, max_height: u16) -> u16 {
    rows.iter()
        .map(|row| digits::size(&row.values, max_width(row), max_height))
        .filter(|size| *size > 0)
        .min()
        .unwrap_or(0)
}

/// Draws the values in `columns` on the left, and the picture beside them.
fn figure_and_picture(s: &mut Surface<'_, '_>, row: &Row, mut area: Rect, columns: u16, size: u16) {
    let left = take_left(&mut area, columns);
    figure(s, row, left, size);
    take_left(&mut area, 2);
    picture(s, row, area);
}

/// Draws the name of a figure and, where a row is free, its details below.
fn name_and_details(s: &mut Surface<'_, '_>, row: &Row, area: Rect) {
    let columns = usize::from(area.width).saturating_sub(1);
    let name = Span::styled(row.figure.name.clone(), row.name_style);
    let mut lines = text::wrap(&[name], columns, "", "");
    let has_free_row = lines.len() < area.height.into();
    if has_free_row && (1..=columns).contains(&text::width(row.details())) {
        lines.push(Line::styled(row.details().to_owned(), s.theme.dim));
    }
    s.put(centred(area, area.width, height(lines.len())), lines);
}

/// Draws the values, in large glyphs where they fit.
fn figure(s: &mut Surface<'_, '_>, row: &Row, area: Rect, size: u16) {
    let rows = digits::rows(size);
    if row.large_width(size, area.width).is_none() || rows > area.height {
        let line = Line::styled(row.values.clone(), row.values_style);
        return s.put(centred(area, area.width, 1), line);
    }
    let corner = (area.x, centred(area, area.width, rows).y);
    let buffer = s.frame.buffer_mut();
    digits::draw(buffer, corner, &row.values, size, row.values_style);
}

/// Draws the bar or the columns of a figure. Draws nothing in a narrow area.
fn picture(s: &mut Surface<'_, '_>, row: &Row, area: Rect) {
    if area.width < MIN_PICTURE {
        return;
    }
    let symbols = &s.theme.symbols;
    // A reversed bar would look empty.
    let ink = row.figure.ink.remove_modifier(Modifier::REVERSED);
    let lines: Vec<Line<'static>> = match &row.figure.picture {
        Picture::Nothing => return,
        Picture::Bar(share) | Picture::Phase(_, share) => {
            let bar = symbols.bar(*share, area.width);
            vec![Line::styled(bar, ink); usize::from(area.height)]
        }
        Picture::Columns(values) => {
            let width = (usize::from(area.width) / values.len().max(1)).clamp(1, 12);
            let gap = if width > 1 { " " } else { "" };
            let column = |cell: &str| cell.repeat((width - 1).max(1)) + gap;
            symbols
                .columns(values, area.height)
                .into_iter()
                .map(|row| Line::styled(row.into_iter().map(column).collect::<String>(), ink))
                .collect()
        }
    };
    s.put(area, lines);
}
