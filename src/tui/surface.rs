//! The parts from which panels and cards are built: boxes with titles, lines that scroll, areas that are divided, and the names of A and B.

use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::{Margin, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::{Block, Borders, Paragraph, StatefulWidget, Widget};

use super::chart::grid;
use super::keys;
use super::text::{self, fit};
use super::theme::Theme;
use crate::app::{Action, App, ScreenSize};
use protocol::Slot;
use protocol::story::RunStory;

/// A text that does not scroll. A figure that does not fit is left out, never cut.
pub struct Fitted<'t>(pub Text<'t>);

impl Widget for Fitted<'_> {
    fn render(mut self, area: Rect, buffer: &mut Buffer) {
        for line in &mut self.0.lines {
            *line = fit(std::mem::take(line), usize::from(area.width));
        }
        Paragraph::new(self.0).render(area, buffer);
    }
}

/// A scroll position: the first line that is shown, and after drawing the largest first line (`limit`).
#[derive(Clone, Copy, Default)]
pub struct Scroll {
    pub from: u16,
    pub limit: u16,
}

impl Scroll {
    pub fn at(from: u16) -> Self {
        Self { from, limit: 0 }
    }
}

/// Lines that scroll. The border below the area shows the number of hidden lines.
pub struct Scrolled<'a> {
    pub lines: Vec<Line<'static>>,
    pub theme: &'a Theme,
}

impl StatefulWidget for Scrolled<'_> {
    type State = Scroll;

    fn render(self, area: Rect, buffer: &mut Buffer, scroll: &mut Scroll) {
        scroll.limit = height(self.lines.len()).saturating_sub(area.height);
        let from = scroll.from.min(scroll.limit);
        let visible: Vec<Line<'static>> = self
            .lines
            .into_iter()
            .skip(usize::from(from))
            .take(usize::from(area.height))
            .collect();
        Fitted(visible.into()).render(area, buffer);
        if scroll.limit > 0 && area.width > 12 {
            mark_more(area, [from, scroll.limit - from], self.theme, buffer);
        }
    }
}

/// Writes the numbers of lines that are hidden above and below on the border under the area, if there is a border.
fn mark_more(area: Rect, hidden: [u16; 2], theme: &Theme, buffer: &mut Buffer) {
    let marks: String = theme
        .symbols
        .scroll
        .iter()
        .zip(hidden)
        .filter(|(_, lines)| *lines > 0)
        .map(|(mark, lines)| format!(" {mark} {lines}"))
        .collect();
    let more = format!("{marks} more ");
    let columns = text::width(&more) as u16;
    let x = area.right().saturating_sub(columns);
    let y = area.bottom();
    let is_rule = |x: u16| {
        let cell = buffer.cell((x, y));
        cell.is_some_and(|cell| cell.symbol() == theme.symbols.rule)
    };
    if is_rule(x) && is_rule(area.right() - 1) {
        grid::put(buffer, x, y, &more, columns, theme.dim);
    }
}

/// Returns the box of a panel, or for a strip the rule above it.
pub fn panel_frame(
    (title, aside): (&str, &str),
    focused: bool,
    is_strip: bool,
    columns: u16,
    theme: &Theme,
) -> Block<'static> {
    let (border, style, mark) = if focused {
        let mark = format!("{} ", theme.symbols.pointer);
        (theme.border_focused, theme.title_focused, mark)
    } else {
        (theme.border, theme.title, String::new())
    };
    let borders = if is_strip { Borders::TOP } else { Borders::ALL };
    let name = (format!("{mark}{title}"), style);
    framed(name, aside, border, columns, theme).borders(borders)
}

/// Returns the area inside a panel's strip.
pub fn inside_strip(area: Rect) -> Rect {
    let inner = Block::new().borders(Borders::TOP).inner(area);
    let x = inner.x + u16::from(inner.width > 2);
    let width = inner.width.saturating_sub(2);
    Rect { x, width, ..inner }
}

/// Draws the explanation of a panel at the bottom of `inner` and takes its rows off `inner`. Draws nothing where the panel would keep too few
/// rows.
pub fn draw_reading(reading: &[String], inner: &mut Rect, theme: &Theme, frame: &mut Frame<'_>) {
    /// The rows that the panel keeps.
    const KEPT: u16 = 9;
    let columns = usize::from(inner.width);
    let rule = text::rule(theme.symbols.rule, "how to read this", columns);
    let mut lines = vec![Line::styled(rule, theme.dim)];
    for sentence in reading {
        lines.extend(text::wrapped(sentence, theme.dim, columns.min(110)));
    }
    let rows = height(lines.len());
    if rows > 1 && inner.height >= rows.saturating_add(KEPT) {
        put(frame, take_bottom(inner, rows), lines);
    }
}

/// Draws lines that do not scroll.
pub fn put<'t>(frame: &mut Frame<'_>, area: Rect, lines: impl Into<Text<'t>>) {
    frame.render_widget(Fitted(lines.into()), area);
}

/// Returns a box with a title. `columns` is its width. `aside` is at the right end of the top border, where it fits.
pub fn framed(
    (title, title_style): (String, Style),
    aside: &str,
    border: Style,
    columns: u16,
    theme: &Theme,
) -> Block<'static> {
    // The corners and a blank on each side take four columns.
    let shown_title = text::cut(&title, usize::from(columns).saturating_sub(4));
    let aside_columns = usize::from(columns).saturating_sub(text::width(&shown_title) + 9);
    let block = Block::bordered()
        .border_set(theme.symbols.border)
        .border_style(border)
        .title(Line::styled(format!(" {shown_title} "), title_style));
    if aside.is_empty() || aside_columns < 3 {
        return block;
    }
    let shown_aside = format!(" {} ", text::cut(aside, aside_columns));
    block.title(Line::styled(shown_aside, theme.dim).right_aligned())
}

/// Returns true where panels are drawn as strips under a rule, without boxes.
pub fn is_strip(app: &App) -> bool {
    let covered = app.view.expanded || app.view.lesson_open || app.knobs_open();
    app.view.screen_size() <= ScreenSize::Compact && !covered
}

/// Returns the area inside the border of a panel's box or of a card.
pub fn inside(area: Rect) -> Rect {
    let inner = Block::bordered().inner(area);
    // One column on each side stays empty, where there is room.
    let padding = u16::from(inner.width >= 20);
    inner.inner(Margin::new(padding, 0))
}

/// Converts a count of lines to rows of the screen.
pub fn height(lines: usize) -> u16 {
    u16::try_from(lines).unwrap_or(u16::MAX)
}

/// Returns the columns that the widest of these lines takes.
pub fn widest(lines: &[Line<'_>]) -> u16 {
    height(lines.iter().map(Line::width).max().unwrap_or(0))
}

/// Takes rows off the top of `rest`, at most as many as it has.
pub fn take_top(rest: &mut Rect, rows: u16) -> Rect {
    let height = rows.min(rest.height);
    let top = Rect { height, ..*rest };
    *rest = Rect::new(rest.x, top.bottom(), rest.width, rest.height - height);
    top
}

/// Takes rows off the bottom of `rest`, at most as many as it has.
pub fn take_bottom(rest: &mut Rect, rows: u16) -> Rect {
    let height = rows.min(rest.height);
    rest.height -= height;
    Rect::new(rest.x, rest.bottom(), rest.width, height)
}

/// Takes columns off the left of `rest`, at most as many as it has.
pub fn take_left(rest: &mut Rect, columns: u16) -> Rect {
    let width = columns.min(rest.width);
    let left = Rect { width, ..*rest };
    *rest = Rect::new(left.right(), rest.y, rest.width - width, rest.height);
    left
}

/// Returns a rectangle of at most this size in the middle of `area`.
pub fn centred(area: Rect, columns: u16, rows: u16) -> Rect {
    let width = columns.min(area.width);
    let height = rows.min(area.height);
    let left = area.x + (area.width - width) / 2;
    let top = area.y + (area.height - height) / 2;
    Rect::new(left, top, width, height)
}

/// Returns a hint with the key that closes a card.
pub fn close_hint(app: &App) -> String {
    format!("{} closes", keys::label(Action::Close, app))
}

/// Returns a hint with the keys that choose a line of a list and close the list. `effect` is a verb phrase for the choice, such as
/// `moves the run`.
pub fn choose_hint(effect: &str, app: &App) -> String {
    let choose = keys::label(Action::Choose, app);
    format!("{choose} {effect}, {}", close_hint(app))
}

/// Returns the name of a slot in its style: a mark for a running or a standing run, its letter, and the name of its configuration.
pub fn slot_label(slot: Slot, app: &App, theme: &Theme) -> Span<'static> {
    label(slot, &app.shown_run().slot_name(slot), app, theme)
}

/// Returns the name of a slot for a place that may be narrow: below 34 columns the letter alone.
pub fn short_label(slot: Slot, width: u16, app: &App, theme: &Theme) -> Span<'static> {
    if width < 34 {
        label(slot, slot.into_str(), app, theme)
    } else {
        slot_label(slot, app, theme)
    }
}

fn label(slot: Slot, name: &str, app: &App, theme: &Theme) -> Span<'static> {
    let is_running = app.shown_run().active == slot && app.shown_run().state.is_active();
    let mark = if is_running {
        theme.symbols.live
    } else {
        theme.symbols.circle
    };
    Span::styled(format!("{mark} {name}"), theme.slot(slot))
}

/// Returns the slots whose run has begun, A first.
pub fn slots(app: &App) -> impl Iterator<Item = (Slot, &RunStory)> {
    [Slot::A, Slot::B]
        .into_iter()
        .map(|slot| (slot, app.shown_run().slot(slot)))
        .filter(|(_, run)| run.has_begun())
}

/// One figure of both runs, or of one of them.
pub struct Measured<T> {
    /// The figure of each run that has it, A first.
    pub all: Vec<(Slot, T)>,
    /// The figure of the running slot; where that has none, the figure of the other slot.
    pub shown: (Slot, T),
}

/// Reads one figure of both runs. `None` if neither run has it.
pub fn measured<'a, T: Copy>(
    app: &'a App,
    figure: impl Fn(&'a RunStory) -> Option<T>,
) -> Option<Measured<T>> {
    let all: Vec<(Slot, T)> = slots(app)
        .filter_map(|(slot, run)| Some((slot, figure(run)?)))
        .collect();
    let running = all.iter().find(|(slot, _)| *slot == app.shown_run().active);
    let shown = *running.or(all.first())?;
    Some(Measured { all, shown })
}
