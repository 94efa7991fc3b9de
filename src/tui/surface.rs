//! What panels and cards are drawn with: a rectangle of the frame beside the state and the theme, boxes with titles, and
//! lines that scroll.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::{Block, Borders, Clear, Paragraph};

use super::chart::grid;
use super::keys;
use super::prose::ProseWriter;
use super::text::{self, fit};
use super::theme::Theme;
use crate::app::{Action, App, ScreenSize};
use crate::panel::Panel;
use protocol::Slot;
use protocol::story::RunStory;

/// A rectangle of the frame, and what to draw in it.
pub struct Surface<'a, 'f> {
    pub frame: &'a mut Frame<'f>,
    /// The rectangle; after `open` and `card` what lies inside the border.
    pub area: Rect,
    pub app: &'a App,
    pub theme: &'a Theme,
    /// How to read the panel that is drawn.
    pub reading: &'static [&'static str],
}

impl<'a> Surface<'a, '_> {
    /// The same frame at another rectangle.
    pub fn at(&mut self, area: Rect) -> &mut Self {
        self.area = area;
        self
    }

    /// Draws the panel's box or rule with its title and, on the right, what is shown.
    pub fn open(&mut self, panel: Panel, title: &str, aside: &str) {
        let (app, theme) = (self.app, self.theme);
        let focused = app.view.focus == Some(panel);
        let (border, style, mark) = if focused {
            let mark = format!("{} ", theme.symbols.pointer);
            (theme.border_focused, theme.title_focused, mark)
        } else {
            (theme.border, theme.title, String::new())
        };
        let name = format!(" {mark}{title} ");
        let room = usize::from(self.area.width).saturating_sub(text::width(&name) + 5);
        let strip = is_strip(app);
        let mut block = Block::new()
            .borders(if strip { Borders::TOP } else { Borders::ALL })
            .border_set(theme.symbols.border)
            .border_style(border)
            .title(Line::styled(name, style));
        if room > 4 && !aside.is_empty() {
            let aside = format!(" {} ", text::cut(aside, room - 2));
            block = block.title(Line::styled(aside, theme.dim).right_aligned());
        }
        let inner = block.inner(self.area);
        self.frame.render_widget(block, self.area);
        if strip {
            let x = inner.x + u16::from(inner.width > 2);
            self.area = Rect::new(x, inner.y, inner.width.saturating_sub(2), inner.height);
            return;
        }
        self.area = padded(inner);
        if focused && app.view.expanded {
            self.explain();
        }
    }

    /// Writes how to read the panel at the bottom of the area, under a rule, where enough rows remain for the panel.
    fn explain(&mut self) {
        const KEPT: u16 = 9;
        let columns = usize::from(self.area.width.min(110));
        let lines: Vec<Line<'static>> = self
            .reading
            .iter()
            .flat_map(|one| text::wrap(&[Span::styled(*one, self.theme.dim)], columns, "", ""))
            .collect();
        let rows = height(lines.len());
        if rows == 0 || self.area.height < rows.saturating_add(1 + KEPT) {
            return;
        }
        let below = take_bottom(&mut self.area, rows);
        let rule = take_bottom(&mut self.area, 1);
        let symbol = self.theme.symbols.rule;
        let line = text::rule(symbol, "how to read this", usize::from(rule.width));
        self.put(rule, Line::styled(line, self.theme.dim));
        self.put(below, lines);
    }

    /// What explains the panel's words, sentence by sentence, as far as rows are free below so many lines. The learner who marks a
    /// row sees figures only.
    pub fn reading_below(&self, lines: usize, panel: Panel) -> Vec<Line<'static>> {
        let explained = self.app.view.expanded && self.app.view.focus == Some(panel);
        if is_strip(self.app) || explained || self.app.marks_row(panel) {
            return Vec::new();
        }
        let mut free = usize::from(self.area.height).saturating_sub(lines);
        let sentences = self.reading.iter().flat_map(|it| it.split_inclusive(". "));
        let mut shown = Vec::new();
        for sentence in sentences {
            let said = Span::styled(sentence.trim_end(), self.theme.dim);
            let wrapped = text::wrap(&[said], usize::from(self.area.width), "", "");
            if wrapped.len() <= free {
                free -= wrapped.len();
                shown.extend(wrapped);
            }
        }
        shown
    }

    /// Draws a box on top of everything, with its own background.
    pub fn card(&mut self, title: &str, aside: &str, border: Style) {
        self.area = boxed(self.frame, self.area, title, aside, border, self.theme);
    }

    /// Draws a card of the list of all cards, which says how it is closed.
    pub fn overlay(&mut self, title: &str) {
        self.card(title, &closes(self.app), self.theme.border_focused);
    }

    /// Lines of text as wide as the area.
    pub fn writer(&self) -> ProseWriter<'a> {
        ProseWriter::new(self.app, self.theme, usize::from(self.area.width))
    }

    /// Draws lines that do not scroll.
    pub fn put<'t>(&mut self, area: Rect, lines: impl Into<Text<'t>>) {
        let mut text: Text<'t> = lines.into();
        for line in &mut text.lines {
            *line = fit(std::mem::take(line), usize::from(area.width));
        }
        self.frame.render_widget(Paragraph::new(text), area);
    }

    /// Draws lines in the middle of the area.
    pub fn put_centred(&mut self, lines: Vec<Line<'static>>) {
        let place = centred(self.area, widest(&lines), height(lines.len()));
        self.put(place, lines);
    }

    /// Shows lines from `scroll` on, with marks where there are more; the result is how far they can scroll.
    pub fn show(&mut self, area: Rect, lines: Vec<Line<'static>>, scroll: u16) -> u16 {
        let limit = height(lines.len()).saturating_sub(area.height);
        let from = scroll.min(limit);
        let visible = lines.into_iter().skip(usize::from(from));
        let visible: Vec<Line<'static>> = visible.take(usize::from(area.height)).collect();
        self.put(area, visible);
        let left = limit - from;
        if limit > 0 && area.width > 12 {
            self.mark_more(area, [from, left]);
        }
        limit
    }

    /// Shows lines in the whole area, scrolled as the open card is.
    pub fn show_card(&mut self, lines: Vec<Line<'static>>) -> u16 {
        self.show(self.area, lines, self.app.view.overlay_scroll)
    }

    /// Says on the line that closes the area below, where there is one, how many lines are above and below.
    fn mark_more(&mut self, area: Rect, hidden: [u16; 2]) {
        let rule = self.theme.symbols.rule;
        let marks = self.theme.symbols.scroll.iter().zip(hidden);
        let marks = marks.filter(|(_, lines)| *lines > 0);
        let marks: String = marks
            .map(|(mark, lines)| format!(" {mark} {lines}"))
            .collect();
        let more = format!("{marks} more ");
        let wide = text::width(&more) as u16;
        let (x, y) = (area.right().saturating_sub(wide), area.bottom());
        let buffer = self.frame.buffer_mut();
        let mut ends = [x, area.right() - 1].into_iter();
        let is_rule = |x: u16| {
            buffer
                .cell((x, y))
                .is_some_and(|cell| cell.symbol() == rule)
        };
        if ends.all(is_rule) {
            grid::put(buffer, x, y, &more, wide, self.theme.dim);
        }
    }
}

/// Draws lines where there is no surface.
pub fn put(frame: &mut Frame<'_>, area: Rect, lines: Vec<Line<'static>>) {
    frame.render_widget(Paragraph::new(lines), area);
}

/// Draws a box on top of everything; the result is the area inside.
pub fn boxed(
    frame: &mut Frame<'_>,
    area: Rect,
    title: &str,
    aside: &str,
    border: Style,
    theme: &Theme,
) -> Rect {
    let mut block = Block::bordered()
        .border_set(theme.symbols.border)
        .border_style(border)
        .style(theme.text)
        .title(Line::styled(format!(" {title} "), theme.title_focused));
    if !aside.is_empty() {
        block = block.title(Line::styled(format!(" {aside} "), theme.dim).right_aligned());
    }
    frame.render_widget(Clear, area);
    frame.render_widget(block, area);
    inside(area)
}

/// Panels stand as strips under a rule, without boxes.
pub fn is_strip(app: &App) -> bool {
    let covered = app.view.expanded || app.view.lesson_open || app.knobs_open();
    app.view.screen_size() <= ScreenSize::Compact && !covered
}

/// What lies inside the border of a panel's box or of a card.
pub fn inside(area: Rect) -> Rect {
    padded(Block::bordered().inner(area))
}

/// One empty column on both sides, where there is room.
fn padded(area: Rect) -> Rect {
    if area.width < 20 {
        return area;
    }
    Rect::new(area.x + 1, area.y, area.width - 2, area.height)
}

/// A count of lines as rows of the screen.
pub fn height(lines: usize) -> u16 {
    u16::try_from(lines).unwrap_or(u16::MAX)
}

/// Columns that the widest of these lines takes.
pub fn widest(lines: &[Line<'_>]) -> u16 {
    height(lines.iter().map(Line::width).max().unwrap_or(0))
}

/// Takes rows off the top.
pub fn take_top(rest: &mut Rect, rows: u16) -> Rect {
    let rows = rows.min(rest.height);
    let top = Rect::new(rest.x, rest.y, rest.width, rows);
    *rest = Rect::new(rest.x, rest.y + rows, rest.width, rest.height - rows);
    top
}

/// Takes rows off the bottom.
pub fn take_bottom(rest: &mut Rect, rows: u16) -> Rect {
    let rows = rows.min(rest.height);
    rest.height -= rows;
    Rect::new(rest.x, rest.bottom(), rest.width, rows)
}

/// Takes columns off the left.
pub fn take_left(rest: &mut Rect, columns: u16) -> Rect {
    let columns = columns.min(rest.width);
    let left = Rect::new(rest.x, rest.y, columns, rest.height);
    *rest = Rect::new(rest.x + columns, rest.y, rest.width - columns, rest.height);
    left
}

/// A rectangle of at most this size in the middle.
pub fn centred(area: Rect, columns: u16, rows: u16) -> Rect {
    let (width, height) = (columns.min(area.width), rows.min(area.height));
    let (left, top) = ((area.width - width) / 2, (area.height - height) / 2);
    Rect::new(area.x + left, area.y + top, width, height)
}

/// How a card is closed.
pub fn closes(app: &App) -> String {
    format!("{} closes", keys::label(Action::Close, app))
}

/// How a line of a list is chosen, and the list closed.
pub fn chooses(what: &str, app: &App) -> String {
    let choose = keys::label(Action::Choose, app);
    format!("{choose} {what}, {}", closes(app))
}

/// The letter of a slot in its style, with a mark for the one that runs, and what runs there.
pub fn slot_label(slot: Slot, app: &App, theme: &Theme) -> Span<'static> {
    label(slot, &app.slot_name(slot), app, theme)
}

/// The same where room may be short: the letter alone in narrow places.
pub fn short_label(slot: Slot, width: u16, app: &App, theme: &Theme) -> Span<'static> {
    match width {
        0..34 => label(slot, slot.into_str(), app, theme),
        _ => slot_label(slot, app, theme),
    }
}

fn label(slot: Slot, name: &str, app: &App, theme: &Theme) -> Span<'static> {
    let running = app.shown_run().active == slot && app.shown_run().state.is_active();
    let mark = if running {
        theme.symbols.live
    } else {
        theme.symbols.circle
    };
    Span::styled(format!("{mark} {name}"), theme.slot(slot))
}

/// The slots that have something to show, A first.
pub fn slots(app: &App) -> impl Iterator<Item = (Slot, &RunStory)> {
    [Slot::A, Slot::B]
        .into_iter()
        .map(|slot| (slot, app.shown_run().slot(slot)))
        .filter(|(_, run)| run.has_begun())
}

/// As many of the parts as fit whole, the first ones first, with a separator between them; nothing where the first does not fit.
pub fn joined<'p>(
    parts: impl IntoIterator<Item = &'p str>,
    columns: usize,
    separator: &str,
) -> String {
    let mut text = String::new();
    for part in parts {
        let separator = if text.is_empty() { "" } else { separator };
        let wide = text::width(&text) + text::width(separator) + text::width(part);
        if wide > columns {
            break;
        }
        text = text + separator + part;
    }
    text
}
