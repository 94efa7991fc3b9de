//! Draws a profile of another program: kernels, ledger, timeline and lints, or one of these on a small terminal.

use std::time::Duration;

use anyhow::Result;
use crossterm::event::{Event, MouseButton, MouseEvent, MouseEventKind};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Block;
use strum::VariantArray;

use super::keys::opened::{action, footer, help};
use super::mouse::timeline_move;
use super::panels::timeline;
use super::prose::READING;
use super::reading;
use super::run::{self, SessionEnd};
use super::surface::{
    Scroll, Scrolled, centred, draw_card_frame, framed, height, inside, put, take_bottom,
    take_left, take_top, widest,
};
use super::table::{Columns, FigureColumn};
use super::text;
use super::theme::Theme;
use crate::app::opened::{Opened, OpenedAction, OpenedPanel};
use crate::app::timeline::TimelineMove;
use crate::course::trace_lints::page_of;
use crate::sanitize;
use gputrace::display::{self, ABSENT, figures, share, time};
use gputrace::figures::Summary;
use protocol::units::{or_dash, show as digits};

/// How long to wait for a key.
const WAIT: Duration = Duration::from_millis(250);

/// Shows a profile until a key ends it.
pub fn show(it: Opened, theme: &Theme) -> Result<SessionEnd> {
    run::show(
        &mut (it, Rect::default()),
        WAIT,
        SessionEnd::Signal,
        |(it, area), frame| {
            *area = frame.area();
            draw(frame, it, theme);
            None
        },
        |(it, area), event| {
            let asked = match event {
                Event::Key(key) => action(key),
                Event::Mouse(event) => mouse(event, it, *area),
                _ => None,
            }?;
            match asked {
                OpenedAction::Quit if it.help || it.naming || it.page.is_some() => {
                    (it.help, it.naming, it.page) = (false, false, None);
                }
                OpenedAction::Quit => return Some(SessionEnd::Quit),
                asked => it.act(asked),
            }
            None
        },
    )
}

/// The area of each panel.
fn panels(area: Rect, it: &Opened) -> Vec<(OpenedPanel, Rect)> {
    let mut rest = area;
    take_top(&mut rest, 1);
    take_bottom(&mut rest, 1);
    if it.expanded || area.width < 120 || area.height < 34 {
        return vec![(it.focus, rest)];
    }
    let rows = (it.view.timeline.rows.len() as u16).saturating_add(6);
    let rows = rows.clamp(9, rest.height / 2);
    let below = take_bottom(&mut rest, rows);
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

/// The action of the mouse: a click selects; in the timeline the wheel zooms and dragging pans; elsewhere the wheel scrolls.
pub fn mouse(event: MouseEvent, it: &Opened, area: Rect) -> Option<OpenedAction> {
    let (x, y) = (event.column, event.row);
    let mut panels = panels(area, it).into_iter();
    let (panel, place) = panels.find(|(_, place)| place.contains((x, y).into()))?;
    let place = Block::bordered().inner(place);
    let cell = (x.saturating_sub(place.x), y.saturating_sub(place.y));
    match event.kind {
        MouseEventKind::ScrollLeft => Some(OpenedAction::Timeline(TimelineMove::Pan(-1))),
        MouseEventKind::ScrollRight => Some(OpenedAction::Timeline(TimelineMove::Pan(1))),
        kind if panel == OpenedPanel::Timeline => {
            let under = timeline::at(&it.view, cell, (place.width, place.height))?;
            timeline_move(kind, under).map(OpenedAction::Timeline)
        }
        MouseEventKind::Down(MouseButton::Left) => Some(OpenedAction::Focus(panel)),
        MouseEventKind::ScrollUp | MouseEventKind::ScrollDown if panel != it.focus => {
            Some(OpenedAction::Focus(panel))
        }
        MouseEventKind::ScrollUp => Some(OpenedAction::Move(-3)),
        MouseEventKind::ScrollDown => Some(OpenedAction::Move(3)),
        _ => None,
    }
}

/// Draws one frame.
pub fn draw(frame: &mut Frame<'_>, it: &Opened, theme: &Theme) {
    let area = frame.area();
    frame.render_widget(Block::new().style(theme.text), area);
    let mut rest = area;
    let wide = usize::from(area.width);
    put(frame, take_top(&mut rest, 1), head(it, wide, theme));
    let foot = Line::styled(text::cut(&footer(wide), wide), theme.dim);
    put(frame, take_bottom(&mut rest, 1), foot);
    for (panel, place) in panels(area, it) {
        let marked = panel == it.focus;
        let (border, title) = match marked {
            true => (theme.border_focused, theme.title_focused),
            false => (theme.border, theme.title),
        };
        let title = (panel.into_str().to_owned(), title);
        frame.render_widget(framed(title, "", border, place.width, theme), place);
        let place = Block::bordered().inner(place);
        let (wide, high) = (usize::from(place.width), usize::from(place.height));
        let (lines, from) = match panel {
            OpenedPanel::Kernels => (kernels(it, wide, high, theme), 0),
            OpenedPanel::Ledger => (ledger(&it.figures, wide, theme), it.scroll[0]),
            OpenedPanel::Lints => (lints(&it.figures, wide, theme), it.scroll[1]),
            OpenedPanel::Timeline => (timeline::lines(&it.view, wide, high, theme), 0),
        };
        frame.render_stateful_widget(Scrolled { lines, theme }, place, &mut Scroll::at(from));
    }
    if it.help {
        let lines = help().into_iter().map(|(keys, said)| {
            Line::from(vec![
                Span::styled(text::left(&keys, 14), theme.key),
                Span::styled(said, theme.text),
            ])
        });
        card(frame, "keys", lines.collect(), 0, theme);
    } else if let Some((at, line)) = it.page
        && let Some(text) = it.pages.get(at)
    {
        let wide = wide.saturating_sub(4).clamp(10, READING);
        let lines = reading::lines(text, wide, theme);
        card(frame, &text.title, lines, line, theme);
    } else if let Some(row) = it.kernel().filter(|_| it.naming) {
        let wide = wide.saturating_sub(8).clamp(10, 100);
        let name = sanitize::bounded(&row.name, 4000);
        let lines = text::wrapped(&name, theme.text, wide);
        card(frame, "full name", lines, 0, theme);
    }
    theme.symbols.finish(frame.buffer_mut());
}

/// A box over the panels, and in it the lines from this one on.
fn card(frame: &mut Frame<'_>, title: &str, lines: Vec<Line<'static>>, from: u16, theme: &Theme) {
    let columns = widest(&lines).max(20).saturating_add(4);
    let place = centred(frame.area(), columns, height(lines.len() + 2));
    draw_card_frame((title, ""), theme.border_focused, theme, place, frame);
    let lines = Scrolled { lines, theme };
    frame.render_stateful_widget(lines, inside(place), &mut Scroll::at(from));
}

/// The file and its panels.
fn head(it: &Opened, wide: usize, theme: &Theme) -> Line<'static> {
    let mut spans = Vec::new();
    for (number, panel) in (1..).zip(OpenedPanel::VARIANTS) {
        let style = theme.among(*panel == it.focus, theme.dim);
        spans.push(Span::styled(
            format!(" {number} {} ", panel.into_str()),
            style,
        ));
    }
    let warned = it.figures.lints.len();
    if warned > 0 {
        let lints = if warned == 1 { "lint" } else { "lints" };
        let said = format!(" {} {warned} {lints} ", theme.symbols.warning);
        spans.push(Span::styled(said, theme.warning));
    }
    let room = wide.saturating_sub(text::width_of(&spans) + 1);
    let said = format!(
        "{} · {}",
        sanitize::line(&it.figures.file),
        it.figures.format
    );
    let said = format!(" {}", text::cut(&said, room));
    spans.push(Span::styled(said, theme.strong));
    Line::from(spans)
}

#[rustfmt::skip]
const COLUMNS: [FigureColumn; 6] = [
    ("calls", 8),
    ("a step", 8),
    ("total", 11),
    ("median", 10),
    ("of all", 9),
    ("wall", 8),
];

fn kernels(it: &Opened, wide: usize, high: usize, theme: &Theme) -> Vec<Line<'static>> {
    let rows = it.figures.rows();
    let sum = format!(
        "{} kernels of {} names, {}; idle {}; median {}",
        digits(it.figures.kernels as f64, 0),
        it.figures.distinct_names,
        time(it.figures.kernel_ns),
        display::known(it.figures.idle_share, |idle| {
            format!("{} of first to last kernel", share(idle))
        }),
        display::known(it.figures.median_kernel_ns, time),
    );
    let mut room = wide.saturating_sub(26);
    let columns = Columns::fit(COLUMNS, &[2, 4, 0, 3, 5, 1], &mut room);
    let name = 24 + room;
    let what = match it.figures.operations.is_empty() {
        true => "kernel",
        false => "operation of the host, own time",
    };
    let top = text::left(what, name) + &columns.heads();
    let mut out = vec![
        Line::styled(text::cut(&sum, wide), theme.strong),
        Line::styled(text::cut(&top, wide), theme.dim),
    ];
    if it.figures.table.is_empty() {
        out.push(Line::styled("no kernels: see the lints", theme.dim));
    }
    let fits = high.saturating_sub(out.len());
    let first = (it.row + 1).saturating_sub(fits);
    for (at, row) in rows.iter().enumerate().skip(first).take(fits) {
        let style = theme.among(at == it.row, theme.text);
        let name_shown = text::shorten(&sanitize::line(&row.short), name - 1);
        let mut spans = vec![Span::styled(text::left(&name_shown, name), style)];
        spans.extend(columns.cells([
            (digits(row.calls as f64, 0), style),
            (or_dash(row.a_step, |n| digits(n, 1)), style),
            (time(row.total_ns), style),
            (or_dash(row.median_ns, time), style),
            (share(row.share_of_kernels), style),
            (or_dash(row.share_of_wall, share), style),
        ]));
        out.push(Line::from(spans));
    }
    out
}

fn ledger(it: &Summary, wide: usize, theme: &Theme) -> Vec<Line<'static>> {
    let (dim, [forward, ..]) = (theme.dim, theme.phases);
    let styles = [forward, theme.a, theme.warning, theme.bad, dim];
    let mut out = Vec::new();
    match &it.ledger {
        None => out.push(Line::styled(format!("when kernels ran is {ABSENT}"), dim)),
        Some(sum) => {
            let steps = it.steps.as_ref().map_or(0, Vec::len);
            let of = match steps {
                0 => "first to last kernel".to_owned(),
                n => format!("{n} steps"),
            };
            let said = format!("{of}, {}", time(sum.wall));
            out.push(Line::styled(said, theme.strong));
            let wall = sum.wall.max(1) as f64;
            for ((name, ns, _), style) in display::ledger(sum).into_iter().zip(styles) {
                let name = text::left(name, 12);
                let Some(ns) = ns else {
                    out.push(Line::styled(name + ABSENT, dim));
                    continue;
                };
                let part = ns as f64 / wall;
                let time_of_all = text::right(&time(ns), 10);
                let mut said = name + &time_of_all + &text::right(&share(part), 8);
                if steps > 1 && wide >= text::width(&said) + 17 {
                    said += &text::right(&format!("{} a step", time(ns / steps as u64)), 17);
                }
                let room = wide.saturating_sub(text::width(&said) + 2).min(30) as u16;
                let bar = theme.symbols.bar(part, room);
                let said = Span::styled(format!("{said}  "), theme.text);
                out.push(Line::from_iter([said, Span::styled(bar, style)]));
            }
        }
    }
    out.push(Line::default());
    // The first three figures are above the kernels.
    for (name, value) in figures(it).into_iter().skip(3) {
        let absent = value == ABSENT;
        let style = if absent { dim } else { theme.text };
        let said = text::left(name, 26) + &sanitize::line(&value);
        out.push(Line::styled(said, style));
    }
    if !it.phases_of_ranks.is_empty() {
        out.push(Line::styled(
            "processes, a step: median, longest",
            theme.strong,
        ));
    }
    for phase in &it.phases_of_ranks {
        let [median, worst] = [phase.median_ns, phase.worst_ns].map(time);
        let said = format!("{median}, {worst} ({})", sanitize::line(&phase.worst));
        out.push(Line::styled(text::left(phase.name, 26) + &said, theme.text));
    }
    for step in it.steps.iter().flatten() {
        let process = step.process.as_ref().map(|process| format!("{process} "));
        let said = format!(
            "{}{}: {}, busy {}",
            sanitize::line(&process.unwrap_or_default()),
            sanitize::line(&step.name),
            time(step.dur_ns),
            display::known(step.busy_ns, time)
        );
        out.push(Line::styled(text::cut(&said, wide), theme.dim));
    }
    out
}

fn lints(it: &Summary, wide: usize, theme: &Theme) -> Vec<Line<'static>> {
    let mut out = Vec::new();
    let mut item = |head: &'static str, said: &str, style| {
        let spans = [Span::styled(sanitize::line(said), style)];
        out.extend(text::wrap(&spans, wide, head, "        "));
    };
    let (good, warning) = (theme.symbols.good, theme.symbols.warning);
    if it.lints.is_empty() {
        item("", &format!("{good} nothing found"), theme.good);
    }
    for lint in &it.lints {
        item("", &format!("{warning} {}", lint.name), theme.bad);
        item("  why:  ", &lint.why, theme.text);
        item("  next: ", &lint.next, theme.text);
        if let Some(page) = page_of(lint.name) {
            item("  page: ", &format!("{page}, press g"), theme.dim);
        }
    }
    for said in display::stragglers(it)
        .into_iter()
        .chain(display::doubts(it))
    {
        item("", &said, theme.warning);
    }
    for why in it.unread.iter().flat_map(|it| &it.why) {
        let (count, first) = (why.count, &why.first);
        let said = format!("not read: {count}, {}; first at {first}", why.why);
        item("", &said, theme.warning);
    }
    out
}
