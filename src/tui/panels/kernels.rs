//! The profile of one step: a row per operation with its place, calls, time, share and rate, A beside B, and the rest
//! of the step as a row of its own, so that nothing hides. Empty only with its reason.

use std::cmp::Ordering;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::{missing, ms, open, show};
use crate::app::guide::{number, percent};
use crate::app::{App, Panel, Sort};
use crate::protocol::{KernelRow, Kernels, Slot};
use crate::tui::text;
use crate::tui::theme::Theme;

pub fn render(frame: &mut Frame<'_>, area: Rect, app: &App, theme: &Theme) -> u16 {
    // The running slot's profile, and until it has one, the other's.
    let shown = [app.run.active, other(app.run.active)].into_iter().find(|slot| app.run.slot(*slot).kernels.is_some());
    let aside = shown.map_or(String::new(), |slot| {
        let step = app.run.slot(slot).kernels.as_ref().map_or(0, |kernels| kernels.step);
        format!("{} · step {step} · by {}", app.slot_name(slot), app.view.sort.name())
    });
    let inner = open(frame, area, Panel::Kernels, &aside, app, theme);
    let Some((slot, kernels)) = shown.and_then(|slot| Some((slot, app.run.slot(slot).kernels.as_ref()?))) else {
        frame.render_widget(missing("no step was profiled yet", theme), inner);
        return 0;
    };
    let beside = app.run.slot(other(slot)).kernels.as_ref().filter(|it| it.reason.is_none());
    let summary = summary(kernels, theme, inner.width);
    if let Some(reason) = &kernels.reason {
        let mut lines = summary;
        lines.push(missing(reason, theme));
        return show(frame, inner, lines, 0, theme);
    }
    let table = Table { slot, kernels, beside, width: usize::from(inner.width) };
    // Summary and headings stay; the rows scroll.
    let mut fixed = summary;
    if inner.height >= 6 {
        fixed.push(table.head(theme));
    } else {
        fixed.clear();
    }
    let rows = u16::try_from(fixed.len()).unwrap_or(0).min(inner.height);
    frame.render_widget(ratatui::widgets::Paragraph::new(fixed), Rect { height: rows, ..inner });
    let rest = Rect { y: inner.y + rows, height: inner.height - rows, ..inner };
    show(frame, rest, table.rows(app.view.sort, theme), app.view.scroll_of(Panel::Kernels), theme)
}

fn other(slot: Slot) -> Slot {
    if slot == Slot::A { Slot::B } else { Slot::A }
}

/// Launches, unique kernels, device time and coverage.
fn summary(it: &Kernels, theme: &Theme, width: u16) -> Vec<Line<'static>> {
    let mut spans = vec![
        Span::styled(format!("{} launches", it.launches), theme.strong),
        Span::styled(format!(", {} unique  ·  ", it.unique), theme.text),
        Span::styled(format!("{} ms in kernels ({} clock)  ·  ", ms(it.device_ms), it.clock), theme.text),
    ];
    let style = if it.coverage < 0.9 { theme.warning } else { theme.text };
    spans.push(Span::styled(format!("covers {} %", percent(100.0 * it.coverage)), style));
    if width >= 90 {
        let [forward, backward, optimizer] = it.launches_by_phase;
        let phases = format!("  ·  forward {forward}, backward {backward}, optimizer {optimizer}");
        spans.push(Span::styled(phases, theme.dim));
    }
    vec![Line::from(spans)]
}

struct Table<'a> {
    slot: Slot,
    kernels: &'a Kernels,
    beside: Option<&'a Kernels>,
    width: usize,
}

/// Columns of the figures right of the name.
const CALLS: usize = 6;
const MS: usize = 9;
const SHARE: usize = 7;
const RATE: usize = 9;
const BAR: usize = 12;

impl Table<'_> {
    fn bar(&self) -> usize {
        if self.width >= 78 { BAR } else { 0 }
    }

    fn rate(&self) -> usize {
        if self.width >= 56 { RATE } else { 0 }
    }

    fn beside_width(&self) -> usize {
        if self.beside.is_some() && self.width >= 50 { MS } else { 0 }
    }

    fn name(&self) -> usize {
        let figures = CALLS + MS + SHARE + self.rate() + self.beside_width() + self.bar();
        self.width.saturating_sub(figures)
    }

    fn head(&self, theme: &Theme) -> Line<'static> {
        let mut line = text::left("operation", self.name());
        line += &text::right("calls", CALLS);
        let letters = if self.slot == Slot::A { ["ms A", "ms B"] } else { ["ms B", "ms A"] };
        line += &text::right(if self.beside.is_some() { letters[0] } else { "ms" }, MS);
        if self.beside_width() > 0 {
            line += &text::right(letters[1], MS);
        }
        line += &text::right("share", SHARE);
        if self.rate() > 0 {
            line += &text::right("GFLOP/s", RATE);
        }
        Line::styled(line, theme.dim)
    }

    fn rows(&self, sort: Sort, theme: &Theme) -> Vec<Line<'static>> {
        let mut rows: Vec<&KernelRow> = self.kernels.rows.iter().collect();
        rows.sort_by(|a, b| order(a, b, sort));
        let whole = self.kernels.device_ms + self.kernels.unbracketed_ms.max(0.0);
        let longest = rows.iter().map(|row| row.ms).fold(0.0, f64::max);
        let mut lines: Vec<Line<'static>> = rows
            .into_iter()
            .map(|row| {
                let was = self.beside.and_then(|it| it.rows.iter().find(|other| same_place(row, other))).map(|it| it.ms);
                let rate = (row.flops > 0.0 && row.ms > 0.0).then(|| row.flops / row.ms / 1e6);
                self.row(&name(row), row.calls, row.ms, was, rate, (whole, longest), theme)
            })
            .collect();
        let rest = self.kernels.unbracketed_ms;
        let was = self.beside.map(|it| it.unbracketed_ms);
        let mut last = self.row("unbracketed", 0, rest, was, None, (whole, longest.max(rest)), theme);
        last = last.style(theme.dim);
        lines.push(last);
        lines
    }

    #[expect(clippy::too_many_arguments, reason = "one cell each")]
    fn row(
        &self,
        name: &str,
        calls: u32,
        time: f64,
        was: Option<f64>,
        rate: Option<f64>,
        (whole, longest): (f64, f64),
        theme: &Theme,
    ) -> Line<'static> {
        let share = if whole > 0.0 { time / whole } else { 0.0 };
        let mut spans = vec![Span::raw(text::left(name, self.name()))];
        let calls = if calls > 0 { calls.to_string() } else { String::new() };
        spans.push(Span::styled(text::right(&calls, CALLS), theme.dim));
        spans.push(Span::styled(text::right(&ms(time), MS), theme.strong));
        if self.beside_width() > 0 {
            let was = was.map_or_else(|| "-".to_owned(), ms);
            spans.push(Span::styled(text::right(&was, MS), theme.slot(other(self.slot))));
        }
        spans.push(Span::raw(text::right(&format!("{} %", percent(100.0 * share)), SHARE)));
        if self.rate() > 0 {
            spans.push(Span::raw(text::right(&rate.map_or_else(|| "-".to_owned(), number), RATE)));
        }
        if self.bar() > 0 && longest > 0.0 {
            let bar = theme.symbols.bar(time / longest, BAR as u16 - 1);
            spans.push(Span::styled(format!(" {bar}"), theme.slot(self.slot)));
        }
        Line::from(spans)
    }
}

/// `linear mlp.gate ×4 forward`
fn name(row: &KernelRow) -> String {
    let layers = if row.layers > 1 { format!(" ×{}", row.layers) } else { String::new() };
    format!("{} {}{layers} {}", row.op, row.part, row.phase)
}

fn same_place(a: &KernelRow, b: &KernelRow) -> bool {
    a.op == b.op && a.part == b.part && a.phase == b.phase
}

fn order(a: &KernelRow, b: &KernelRow, sort: Sort) -> Ordering {
    let rate = |row: &KernelRow| if row.ms > 0.0 { row.flops / row.ms } else { 0.0 };
    match sort {
        Sort::Time => b.ms.total_cmp(&a.ms),
        Sort::Calls => b.calls.cmp(&a.calls),
        Sort::Rate => rate(b).total_cmp(&rate(a)),
        Sort::Name => name(a).cmp(&name(b)),
    }
}
