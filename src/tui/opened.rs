//! Shows a profile of another program: the kernels, the ledger, the timeline and the lints, or one of these on a small terminal.

use std::time::Duration;

use anyhow::Result;
use crossterm::event::{Event, MouseButton, MouseEvent, MouseEventKind};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Block;
use strum::VariantArray;

use super::keys::opened::{action, footer, help, key_of};
use super::mouse::timeline_move;
use super::panels::content::{Content, Inside};
use super::panels::{draw_in_card, timeline};
use super::prose::READING;
use super::reading;
use super::run::{self, SessionEnd};
use super::surface::{
    Scroll, centred, height, panel_frame, put, take_bottom, take_left, take_top, widest,
};
use super::table::{Columns, FigureColumn};
use super::text;
use super::theme::Theme;
use crate::app::opened::{Opened, OpenedAction, OpenedPanel};
use crate::app::timeline::TimelineMove;
use crate::course::trace_lints::page_of;
use crate::sanitize;
use gputrace::display::{self, ABSENT, figures, share, time};
use gputrace::figures::{Ledger, Summary};
use gputrace::model::Unread;
use protocol::units::{or_dash, show as digits};

/// The time to wait for a key before the next frame.
const WAIT: Duration = Duration::from_millis(250);

/// Shows a profile until a key ends it.
pub fn show(opened: Opened, theme: &Theme) -> Result<SessionEnd> {
    run::show(
        &mut (opened, Rect::default()),
        WAIT,
        SessionEnd::Signal,
        |(opened, area), frame| {
            *area = frame.area();
            draw(frame, opened, theme);
            None
        },
        |(opened, area), event| {
            let action = match event {
                Event::Key(key) => action(key),
                Event::Mouse(event) => mouse(event, opened, *area),
                _ => None,
            }?;
            let card_is_open = opened.help || opened.naming || opened.page.is_some();
            match action {
                OpenedAction::Quit if card_is_open => {
                    opened.help = false;
                    opened.naming = false;
                    opened.page = None;
                }
                OpenedAction::Quit => return Some(SessionEnd::Quit),
                action => opened.act(action),
            }
            None
        },
    )
}

/// Returns the panels and their areas: all four, or the marked one alone where it is expanded or the terminal is small.
fn panels(area: Rect, opened: &Opened) -> Vec<(OpenedPanel, Rect)> {
    let mut rest = area;
    // The first and the last row are the head and the footer.
    take_top(&mut rest, 1);
    take_bottom(&mut rest, 1);
    if opened.expanded || area.width < 120 || area.height < 34 {
        return vec![(opened.focus, rest)];
    }
    let timeline_rows = (opened.view.timeline.rows.len() as u16)
        .saturating_add(6)
        .clamp(9, rest.height / 2);
    let below = take_bottom(&mut rest, timeline_rows);
    let columns = rest.width * 3 / 5;
    let left = take_left(&mut rest, columns);
    let ledger = take_top(&mut rest, 21.min(area.height / 2 - 4));
    vec![
        (OpenedPanel::Kernels, left),
        (OpenedPanel::Ledger, ledger),
        (OpenedPanel::Lints, rest),
        (OpenedPanel::Timeline, below),
    ]
}

/// Returns the action of a mouse event: a click selects a panel; in the timeline the wheel zooms and dragging pans; elsewhere the wheel
/// scrolls.
pub fn mouse(event: MouseEvent, opened: &Opened, area: Rect) -> Option<OpenedAction> {
    let position = (event.column, event.row).into();
    let (panel, place) = panels(area, opened)
        .into_iter()
        .find(|(_, place)| place.contains(position))?;
    let inner = Block::bordered().inner(place);
    let column = event.column.saturating_sub(inner.x);
    let row = event.row.saturating_sub(inner.y);
    match event.kind {
        MouseEventKind::ScrollLeft => Some(OpenedAction::Timeline(TimelineMove::Pan(-1))),
        MouseEventKind::ScrollRight => Some(OpenedAction::Timeline(TimelineMove::Pan(1))),
        kind if panel == OpenedPanel::Timeline => {
            let under = timeline::at(&opened.view, (column, row), (inner.width, inner.height))?;
            timeline_move(kind, under).map(OpenedAction::Timeline)
        }
        MouseEventKind::Down(MouseButton::Left) => Some(OpenedAction::Focus(panel)),
        MouseEventKind::ScrollUp | MouseEventKind::ScrollDown if panel != opened.focus => {
            Some(OpenedAction::Focus(panel))
        }
        MouseEventKind::ScrollUp => Some(OpenedAction::Move(-3)),
        MouseEventKind::ScrollDown => Some(OpenedAction::Move(3)),
        _ => None,
    }
}

/// Draws one frame.
pub fn draw(frame: &mut Frame<'_>, opened: &Opened, theme: &Theme) {
    let area = frame.area();
    frame.render_widget(Block::new().style(theme.text), area);
    let mut rest = area;
    let columns = usize::from(area.width);
    put(frame, take_top(&mut rest, 1), head(opened, columns, theme));
    let foot = Line::styled(text::cut(&footer(columns), columns), theme.dim);
    put(frame, take_bottom(&mut rest, 1), foot);
    for (panel, place) in panels(area, opened) {
        let titles = (panel.into_str(), "");
        let border = panel_frame(titles, panel == opened.focus, false, place.width, theme);
        frame.render_widget(border, place);
        let inner = Block::bordered().inner(place);
        let columns = usize::from(inner.width);
        let rows = usize::from(inner.height);
        let figures = &opened.figures;
        let text = |lines| Content::text("", lines);
        let (content, from) = match panel {
            OpenedPanel::Kernels => (kernels(opened, columns, theme), 0),
            OpenedPanel::Ledger => (text(ledger(figures, columns, theme)), opened.scroll[0]),
            OpenedPanel::Lints => (text(lints(figures, columns, theme)), opened.scroll[1]),
            OpenedPanel::Timeline => (text(timeline::lines(&opened.view, columns, rows, theme)), 0),
        };
        frame.render_stateful_widget(Inside { content, theme }, inner, &mut Scroll::at(from));
    }
    draw_open_card(frame, opened, theme);
    theme.symbols.finish(frame.buffer_mut());
}

/// Draws the card that is open: the help, a page of the course or the full name of a kernel.
fn draw_open_card(frame: &mut Frame<'_>, opened: &Opened, theme: &Theme) {
    let columns = usize::from(frame.area().width);
    if opened.help {
        let lines = help().into_iter().map(|(keys, text)| {
            Line::from(vec![
                Span::styled(text::left(&keys, 14), theme.key),
                Span::styled(text, theme.text),
            ])
        });
        card(frame, "keys", lines.collect(), 0, theme);
    } else if let Some((page, line)) = opened.page
        && let Some(text) = opened.pages.get(page)
    {
        let text_columns = columns.saturating_sub(4).clamp(10, READING);
        let lines = reading::lines(text, text_columns, theme);
        card(frame, &text.title, lines, line, theme);
    } else if opened.naming
        && let Some(row) = opened.kernel()
    {
        let name_columns = columns.saturating_sub(8).clamp(10, 100);
        let name = sanitize::bounded(&row.name, 4000);
        let lines = text::wrapped(&name, theme.text, name_columns);
        card(frame, "full name", lines, 0, theme);
    }
}

/// Draws a box over the panels with the lines from number `from` on.
fn card(frame: &mut Frame<'_>, title: &str, lines: Vec<Line<'static>>, from: u16, theme: &Theme) {
    let columns = widest(&lines).max(20).saturating_add(4);
    let place = centred(frame.area(), columns, height(lines.len() + 2));
    let content = Content::titled(title, lines);
    let border = theme.border_focused;
    draw_in_card(content, Scroll::at(from), place, border, theme, frame);
}

/// Returns the top line: the panels with their numbers, the count of lints, the name of the file and its format.
fn head(opened: &Opened, columns: usize, theme: &Theme) -> Line<'static> {
    let mut spans = Vec::new();
    for (number, panel) in (1..).zip(OpenedPanel::VARIANTS) {
        let style = theme.among(*panel == opened.focus, theme.dim);
        spans.push(Span::styled(
            format!(" {number} {} ", panel.into_str()),
            style,
        ));
    }
    let figures = &opened.figures;
    let count = figures.lints.len();
    if count > 0 {
        let noun = if count == 1 { "lint" } else { "lints" };
        let warning = format!(" {} {count} {noun} ", theme.symbols.warning);
        spans.push(Span::styled(warning, theme.warning));
    }
    let columns_left = columns.saturating_sub(text::width_of(&spans) + 1);
    let source = format!("{} · {}", sanitize::line(&figures.file), figures.format);
    let shown = format!(" {}", text::cut(&source, columns_left));
    spans.push(Span::styled(shown, theme.strong));
    Line::from(spans)
}

const COLUMNS: [FigureColumn; 6] = [
    ("calls", 8),
    ("a step", 8),
    ("total", 11),
    ("median", 10),
    ("of all", 9),
    ("wall", 8),
];

/// Returns the list of the kernels, or the list of the host's operations for a trace without kernels.
fn kernels<'a>(opened: &Opened, columns: usize, theme: &Theme) -> Content<'a> {
    let figures = &opened.figures;
    let summary = format!(
        "{} kernels of {} names, {}; idle {}; median {}",
        digits(figures.kernels as f64, 0),
        figures.distinct_names,
        time(figures.kernel_ns),
        display::known(figures.idle_share, |idle| {
            format!("{} from first to last kernel", share(idle))
        }),
        display::known(figures.median_kernel_ns, time),
    );
    let mut spare = columns.saturating_sub(26);
    let figure_columns = Columns::fit(COLUMNS, &[2, 4, 0, 3, 5, 1], &mut spare);
    let name_width = 24 + spare;
    let heading = if figures.operations.is_empty() {
        "kernel"
    } else {
        "operation of the host, own time"
    };
    let top = text::left(heading, name_width) + &figure_columns.heads();
    let mut out = Vec::new();
    if figures.table.is_empty() {
        out.push(Line::styled("no kernels: see the lints", theme.dim));
    }
    let selected = out.len() + opened.row;
    for (index, row) in figures.rows().iter().enumerate() {
        let style = theme.among(index == opened.row, theme.text);
        let name = text::shorten(&sanitize::line(&row.short), name_width - 1);
        let mut spans = vec![Span::styled(text::left(&name, name_width), style)];
        spans.extend(figure_columns.cells([
            (digits(row.calls as f64, 0), style),
            (or_dash(row.a_step, |n| digits(n, 1)), style),
            (time(row.total_ns), style),
            (or_dash(row.median_ns, time), style),
            (share(row.share_of_kernels), style),
            (or_dash(row.share_of_wall, share), style),
        ]));
        out.push(Line::from(spans));
    }
    Content {
        head: vec![
            Line::styled(text::cut(&summary, columns), theme.strong),
            Line::styled(text::cut(&top, columns), theme.dim),
        ],
        selected: Some(selected),
        ..Content::text("", out)
    }
}

/// Returns the parts of the ledger as bars, followed by the other figures, the processes and the steps.
fn ledger(summary: &Summary, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let Theme { dim, text, .. } = *theme;
    let steps = summary.steps.as_ref().map_or(0, Vec::len);
    let mut out = match &summary.ledger {
        None => vec![Line::styled(format!("when kernels ran is {ABSENT}"), dim)],
        Some(times) => ledger_bars(times, steps, columns, theme),
    };
    out.push(Line::default());
    // The first three figures are above the list of kernels.
    for (name, value) in figures(summary).into_iter().skip(3) {
        let style = if value == ABSENT { dim } else { text };
        let row = text::left(name, 26) + &sanitize::line(&value);
        out.push(Line::styled(row, style));
    }
    if !summary.phases_of_ranks.is_empty() {
        out.push(Line::styled(
            "processes, a step: median, longest",
            theme.strong,
        ));
    }
    for phase in &summary.phases_of_ranks {
        let median = time(phase.median_ns);
        let worst = time(phase.worst_ns);
        let figures = format!("{median}, {worst} ({})", sanitize::line(&phase.worst));
        out.push(Line::styled(
            text::left(phase.name, 26) + &figures,
            theme.text,
        ));
    }
    for step in summary.steps.iter().flatten() {
        let process = step.process.as_ref().map(|process| format!("{process} "));
        let row = format!(
            "{}{}: {}, busy {}",
            sanitize::line(&process.unwrap_or_default()),
            sanitize::line(&step.name),
            time(step.dur_ns),
            display::known(step.busy_ns, time)
        );
        out.push(Line::styled(text::cut(&row, columns), theme.dim));
    }
    out
}

/// Returns a line for each part of the ledger: its time, its share and a bar. Where `steps` steps are annotated, it also has the time a step.
fn ledger_bars(times: &Ledger, steps: usize, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let span = match steps {
        0 => "first to last kernel".to_owned(),
        count => format!("{count} steps"),
    };
    let heading = format!("{span}, {}", time(times.wall));
    let mut out = vec![Line::styled(heading, theme.strong)];
    let wall_ns = times.wall.max(1) as f64;
    let [forward, ..] = theme.phases;
    let styles = [forward, theme.a, theme.warning, theme.bad, theme.dim];
    for ((name, ns, _), style) in display::ledger(times).into_iter().zip(styles) {
        let mut row = text::left(name, 12);
        let Some(ns) = ns else {
            out.push(Line::styled(row + ABSENT, theme.dim));
            continue;
        };
        let part = ns as f64 / wall_ns;
        row += &text::right(&time(ns), 10);
        row += &text::right(&share(part), 8);
        if steps > 1 && columns >= text::width(&row) + 17 {
            row += &text::right(&format!("{} a step", time(ns / steps as u64)), 17);
        }
        row += "  ";
        let bar_columns = columns.saturating_sub(text::width(&row)).min(30) as u16;
        let bar = theme.symbols.bar(part, bar_columns);
        out.push(Line::from_iter([
            Span::styled(row, theme.text),
            Span::styled(bar, style),
        ]));
    }
    out
}

fn lints(summary: &Summary, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let mut out = Vec::new();
    let mut item = |head: &'static str, text: &str, style| {
        let spans = [Span::styled(sanitize::line(text), style)];
        out.extend(text::wrap(&spans, columns, head, "        "));
    };
    if summary.lints.is_empty() {
        let nothing = format!("{} nothing found", theme.symbols.good);
        item("", &nothing, theme.good);
    }
    for lint in &summary.lints {
        let name = format!("{} {}", theme.symbols.warning, lint.name);
        item("", &name, theme.bad);
        item("  why:  ", &lint.why, theme.text);
        item("  next: ", &lint.next, theme.text);
        if let Some(page) = page_of(lint.name) {
            let how = format!("{page}, press {}", key_of(OpenedAction::Page));
            item("  page: ", &how, theme.dim);
        }
    }
    let stragglers = display::stragglers(summary).into_iter();
    for warning in stragglers.chain(display::doubts(summary)) {
        item("", &warning, theme.warning);
    }
    for reason in summary.unread.iter().flat_map(|unread| &unread.why) {
        let Unread { count, why, first } = reason;
        let warning = format!("not read: {count}, {why}; first at {first}");
        item("", &warning, theme.warning);
    }
    out
}
