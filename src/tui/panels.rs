//! The panels, one file each: free functions that draw a part of the state into a rectangle and say how far their
//! text can scroll. They read files, clocks and threads never.

pub mod cards;
pub mod devices;
pub mod evidence;
pub mod exercise;
pub mod footer;
pub mod glossary;
pub mod gradients;
pub mod header;
pub mod help;
pub mod kernels;
pub mod ledger;
pub mod lesson;
pub mod lints;
pub mod log;
pub mod loss;
pub mod memory;
pub mod numbers;
pub mod question;
mod reading;
pub mod roofline;
pub mod solution;
pub mod stages;
pub mod status;
pub mod throughput;
pub mod welcome;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Clear, Paragraph};

pub use crate::units::{bytes, duration, ms};

use super::theme::Theme;
use super::{chart, keys, text};
use crate::app::guide::Piece;
use crate::app::{Action, App, Panel, Room};
use crate::protocol::Slot;

/// Draws a panel; the result is how many lines it can scroll.
pub fn render(panel: Panel, frame: &mut Frame<'_>, area: Rect, app: &App, theme: &Theme) -> u16 {
    let draw = match panel {
        Panel::Lesson => lesson::render,
        Panel::Loss => loss::render,
        Panel::Throughput => throughput::render,
        Panel::Kernels => kernels::render,
        Panel::Roofline => roofline::render,
        Panel::Ledger => ledger::render,
        Panel::Gradients => gradients::render,
        Panel::Memory => memory::render,
        Panel::Evidence => evidence::render,
        Panel::Lints => lints::render,
    };
    draw(frame, area, app, theme)
}

/// Panels stand as strips under a rule, without boxes.
fn as_strip(app: &App) -> bool {
    app.view.room() <= Room::Compact && !app.view.expanded && !app.view.lesson_open
}

/// Draws the panel's box or rule with its name and, on the right, what is shown; the result is the room inside.
pub fn open(
    frame: &mut Frame<'_>,
    area: Rect,
    panel: Panel,
    aside: &str,
    app: &App,
    theme: &Theme,
) -> Rect {
    open_as(frame, area, (panel, panel.name()), aside, app, theme)
}

/// The same, under another name.
pub fn open_as(
    frame: &mut Frame<'_>,
    area: Rect,
    (panel, name): (Panel, &str),
    aside: &str,
    app: &App,
    theme: &Theme,
) -> Rect {
    let focused = app.view.focus == Some(panel);
    let (border, title) = if focused {
        (theme.border_focused, theme.title_focused)
    } else {
        (theme.border, theme.title)
    };
    let mark = if focused {
        format!("{} ", theme.symbols.pointer)
    } else {
        String::new()
    };
    let name = format!(" {mark}{name} ");
    let room = usize::from(area.width).saturating_sub(text::width(&name) + 5);
    let aside = if aside.is_empty() {
        String::new()
    } else {
        format!(" {} ", text::cut(aside, room.saturating_sub(2)))
    };
    let strip = as_strip(app);
    let whole = focused && app.view.expanded;
    let mut block = Block::new()
        .borders(if strip { Borders::TOP } else { Borders::ALL })
        .border_set(theme.symbols.border)
        .border_style(border)
        .title(Line::styled(name, title));
    if room > 4 {
        block = block.title(Line::styled(aside, theme.dim).right_aligned());
    }
    let inner = block.inner(area);
    frame.render_widget(block, area);
    match strip {
        true => Rect {
            x: inner.x + u16::from(inner.width > 2),
            width: inner.width.saturating_sub(2),
            ..inner
        },
        false if whole => reading::below(frame, pad(inner), panel, app, theme),
        false => pad(inner),
    }
}

/// One column of air on both sides, where there is room.
fn pad(area: Rect) -> Rect {
    if area.width < 20 {
        area
    } else {
        Rect {
            x: area.x + 1,
            width: area.width - 2,
            ..area
        }
    }
}

/// A box on top of everything, with its own background.
pub fn card(
    frame: &mut Frame<'_>,
    area: Rect,
    title: &str,
    aside: &str,
    border: Style,
    theme: &Theme,
) -> Rect {
    frame.render_widget(Clear, area);
    let mut block = Block::bordered()
        .border_set(theme.symbols.border)
        .border_style(border)
        .style(theme.card)
        .title(Line::styled(format!(" {title} "), theme.title_focused));
    if !aside.is_empty() {
        block = block.title(Line::styled(format!(" {aside} "), theme.dim).right_aligned());
    }
    let inner = block.inner(area);
    frame.render_widget(block, area);
    pad(inner)
}

/// How a card is put away.
pub fn closes(app: &App) -> String {
    format!("{} closes", keys::label(Action::Close, app))
}

/// How a line of a list is taken, and the list put away.
pub fn chooses(what: &str, app: &App) -> String {
    format!(
        "{} {what}, {}",
        keys::label(Action::Choose, app),
        closes(app)
    )
}

/// Shows lines from `scroll` on, with a mark where more follow; the result is how far they can scroll.
pub fn show(
    frame: &mut Frame<'_>,
    area: Rect,
    lines: Vec<Line<'static>>,
    scroll: u16,
    theme: &Theme,
) -> u16 {
    let limit = u16::try_from(lines.len())
        .unwrap_or(u16::MAX)
        .saturating_sub(area.height);
    let from = scroll.min(limit);
    let visible: Vec<Line<'static>> = lines
        .into_iter()
        .skip(usize::from(from))
        .take(usize::from(area.height))
        .collect();
    frame.render_widget(Paragraph::new(visible), area);
    let left = limit - from;
    if left > 0 && area.width > 12 {
        mark_more(frame, area, left, theme);
    }
    limit
}

/// Says on the line that closes the area below, where there is one, that more follows.
fn mark_more(frame: &mut Frame<'_>, area: Rect, left: u16, theme: &Theme) {
    let more = format!(" {} {left} more ", theme.symbols.scroll);
    let wide = text::width(&more) as u16;
    let (x, y) = (area.right().saturating_sub(wide), area.bottom());
    let buffer = frame.buffer_mut();
    let line = |x: u16| {
        buffer
            .cell((x, y))
            .is_some_and(|cell| cell.symbol() == theme.symbols.rule)
    };
    if line(x) && line(area.right() - 1) {
        chart::put(buffer, x, y, &more, wide, theme.dim);
    }
}

/// What stands where a figure is missing.
pub fn missing(reason: &str, theme: &Theme) -> Line<'static> {
    Line::styled(format!("not measured: {reason}"), theme.dim)
}

/// The letter of a slot in its style, with a mark for the one that runs, and what runs there.
pub fn slot_label(slot: Slot, app: &App, theme: &Theme) -> Vec<Span<'static>> {
    vec![Span::styled(
        format!("{} {}", slot_mark(slot, app, theme), app.slot_name(slot)),
        theme.slot(slot),
    )]
}

/// The same for narrow places: the letter alone.
pub fn slot_letter(slot: Slot, app: &App, theme: &Theme) -> Vec<Span<'static>> {
    let letter = if slot == Slot::A { "A" } else { "B" };
    vec![Span::styled(
        format!("{} {letter}", slot_mark(slot, app, theme)),
        theme.slot(slot),
    )]
}

fn slot_mark(slot: Slot, app: &App, theme: &Theme) -> &'static str {
    let running = app.run.active == slot && app.run.state.is_active();
    if running {
        theme.symbols.live
    } else {
        theme.symbols.ghost
    }
}

/// The slots that have something to show, A first.
pub fn slots(app: &App) -> impl Iterator<Item = (Slot, &crate::app::SlotRun)> {
    [Slot::A, Slot::B]
        .into_iter()
        .map(|slot| (slot, app.run.slot(slot)))
        .filter(|(_, run)| run.started.is_some())
}

/// A sentence of the guide, its keys named from the table.
pub fn sentence(pieces: &[Piece], app: &App, theme: &Theme, plain: Style) -> Line<'static> {
    let spans = pieces.iter().map(|piece| match piece {
        Piece::Text(text) => Span::styled(text.clone(), plain),
        Piece::Key(action) => Span::styled(keys::label(*action, app), theme.key),
    });
    Line::from(spans.collect::<Vec<_>>())
}

/// As many of the parts as fit, with a separator between them.
pub fn joined(parts: &[String], columns: usize, separator: &str) -> String {
    let mut text = String::new();
    for part in parts {
        let more = if text.is_empty() {
            part.clone()
        } else {
            format!("{separator}{part}")
        };
        if text::width(&text) + text::width(&more) > columns && !text.is_empty() {
            break;
        }
        text += &more;
    }
    text
}
