//! The profile of one step: a row per operation with its place, calls, time, share and rate, A beside B, and the rest
//! of the step as a row of its own, so that nothing hides. Empty only with its reason.

use std::cmp::Ordering;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::{joined, missing, ms, open, show};
use crate::app::guide::{number, percent};
use crate::app::{App, Panel, Sort};
use crate::profile::operations;
use crate::profile::roofline::{Reached, reached};
use crate::protocol::{KernelRow, Kernels, Roof, Slot};
use crate::tui::text;
use crate::tui::theme::Theme;

pub fn render(frame: &mut Frame<'_>, area: Rect, app: &App, theme: &Theme) -> u16 {
    // The running slot's profile, and until it has one, the other's.
    let shown = [app.run.active, other(app.run.active)]
        .into_iter()
        .find(|slot| app.run.slot(*slot).kernels.is_some());
    let aside = shown.map_or(String::new(), |slot| {
        let step = app
            .run
            .slot(slot)
            .kernels
            .as_ref()
            .map_or(0, |kernels| kernels.step);
        format!(
            "{} · step {step} · by {}",
            app.slot_name(slot),
            app.view.sort.name()
        )
    });
    let inner = open(frame, area, Panel::Kernels, &aside, app, theme);
    let Some((slot, kernels)) =
        shown.and_then(|slot| Some((slot, app.run.slot(slot).kernels.as_ref()?)))
    else {
        frame.render_widget(missing("no step was profiled yet", theme), inner);
        return 0;
    };
    let beside = app
        .run
        .slot(other(slot))
        .kernels
        .as_ref()
        .filter(|it| it.reason.is_none());
    let summary = summary(kernels, theme, inner.width);
    if let Some(reason) = &kernels.reason {
        let mut lines = summary;
        lines.push(missing(reason, theme));
        return show(frame, inner, lines, 0, theme);
    }
    let longest = |of: fn(&KernelRow) -> String| {
        let widths = kernels.rows.iter().map(|row| text::width(&of(row)));
        widths.max().unwrap_or(0)
    };
    let names = [longest(name), longest(|row| row.kernel.clone())];
    let columns = Columns::fit(usize::from(inner.width), names, beside.is_some());
    let table = Table {
        slot,
        kernels,
        beside,
        roof: app
            .run
            .slot(slot)
            .started
            .as_ref()
            .and_then(|it| it.roof.as_deref()),
        columns,
    };
    // Summary and headings stay; the rows scroll.
    let mut fixed = if inner.height >= 6 {
        summary
    } else {
        Vec::new()
    };
    if inner.height >= 3 {
        fixed.push(table.head(theme));
    }
    let rows = u16::try_from(fixed.len()).unwrap_or(0).min(inner.height);
    frame.render_widget(
        ratatui::widgets::Paragraph::new(fixed),
        Rect {
            height: rows,
            ..inner
        },
    );
    let rest = Rect {
        y: inner.y + rows,
        height: inner.height - rows,
        ..inner
    };
    show(
        frame,
        rest,
        table.rows(app.view.sort, theme),
        app.view.scroll_of(Panel::Kernels),
        theme,
    )
}

fn other(slot: Slot) -> Slot {
    if slot == Slot::A { Slot::B } else { Slot::A }
}

/// Launches, unique kernels, device time and coverage.
fn summary(it: &Kernels, theme: &Theme, width: u16) -> Vec<Line<'static>> {
    let of = it
        .step_ms
        .filter(|_| width >= 60)
        .map_or(String::new(), |step| format!(" of {} ms", ms(step)));
    let covers = format!("covers {} %{of}", percent(100.0 * it.coverage));
    let style = if it.coverage < 0.9 {
        theme.warning
    } else {
        theme.text
    };
    let [forward, backward, optimizer] = it.launches_by_phase;
    let parts = [
        format!("{} launches", it.launches),
        format!("{} unique", it.unique),
        format!("{} ms on the {} clock", ms(it.device_ms), it.clock),
        format!("forward {forward}, backward {backward}, optimizer {optimizer}"),
    ];
    let room = usize::from(width).saturating_sub(text::width(&covers) + 3);
    let line = format!("{} · ", joined(&parts, room, " · "));
    vec![Line::from(vec![
        Span::styled(line, theme.text),
        Span::styled(covers, style),
    ])]
}

struct Table<'a> {
    slot: Slot,
    kernels: &'a Kernels,
    beside: Option<&'a Kernels>,
    roof: Option<&'a Roof>,
    columns: Columns,
}

/// Widths; 0 where a column has no room.
struct Columns {
    name: usize,
    kernel: usize,
    calls: usize,
    beside: usize,
    share: usize,
    rate: usize,
    roof: usize,
    bytes: usize,
    intensity: usize,
    bar: usize,
}

/// Width of a time.
const MS: usize = 8;

impl Columns {
    /// The name and the time come first, then what tells most.
    fn fit(width: usize, [name, kernel]: [usize; 2], beside: bool) -> Self {
        let name = (name + 1).clamp(16, 34);
        let mut room = width.saturating_sub(name + MS);
        let mut take = |wanted: usize| {
            let wide = if wanted <= room { wanted } else { 0 };
            room -= wide;
            wide
        };
        let share = take(7);
        let beside = if beside { take(MS) } else { 0 };
        let rate = take(9);
        let roof = take(8);
        let calls = take(6);
        let bytes = take(8);
        let intensity = take(8);
        let bar = take(12);
        // Which kernel it was: the last to come, and only whole.
        let kernel = take(kernel + 2);
        Self {
            name: name + room.min(width),
            kernel,
            calls,
            beside,
            share,
            rate,
            roof,
            bytes,
            intensity,
            bar,
        }
    }
}

impl Table<'_> {
    fn head(&self, theme: &Theme) -> Line<'static> {
        let columns = &self.columns;
        let letters = if self.slot == Slot::A {
            ["ms A", "ms B"]
        } else {
            ["ms B", "ms A"]
        };
        let mut line = text::left("operation", columns.name);
        line += &text::left("kernel", columns.kernel);
        line += &text::right("calls", columns.calls);
        line += &text::right(if columns.beside > 0 { letters[0] } else { "ms" }, MS);
        line += &text::right(letters[1], columns.beside);
        line += &text::right("share", columns.share);
        line += &text::right("GFLOP/s", columns.rate);
        line += &text::right("GB/s", columns.bytes);
        line += &text::right("FLOP/B", columns.intensity);
        line += &text::right("% roof", columns.roof);
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
                let was = self.beside.and_then(|it| counterpart(row, it));
                let reached = reached(row, self.roof);
                self.row(
                    [&name(row), &row.kernel],
                    row.calls,
                    row.ms,
                    was,
                    reached,
                    (whole, longest),
                    theme,
                )
            })
            .collect();
        let rest = self.kernels.unbracketed_ms;
        let was = self.beside.map(|it| it.unbracketed_ms);
        let mut last = self.row(
            ["rest of the step", ""],
            0,
            rest,
            was,
            Reached::default(),
            (whole, longest.max(rest)),
            theme,
        );
        last = last.style(theme.dim);
        lines.push(last);
        lines
    }

    #[expect(clippy::too_many_arguments, reason = "one cell each")]
    fn row(
        &self,
        [name, kernel]: [&str; 2],
        calls: u32,
        time: f64,
        was: Option<f64>,
        reached: Reached,
        (whole, longest): (f64, f64),
        theme: &Theme,
    ) -> Line<'static> {
        let columns = &self.columns;
        let share = if whole > 0.0 { time / whole } else { 0.0 };
        let calls = if calls > 0 {
            calls.to_string()
        } else {
            String::new()
        };
        let was = was.map_or_else(|| "-".to_owned(), ms);
        let figure = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), number);
        let roof = reached.share.map_or_else(
            || "-".to_owned(),
            |share| format!("{} %", percent(100.0 * share)),
        );
        let mut spans = vec![
            Span::raw(text::left(name, columns.name)),
            Span::styled(text::left(kernel, columns.kernel), theme.dim),
            Span::styled(text::right(&calls, columns.calls), theme.dim),
            Span::styled(text::right(&ms(time), MS), theme.strong),
            Span::styled(
                text::right(&was, columns.beside),
                theme.slot(other(self.slot)),
            ),
            Span::raw(text::right(
                &format!("{} %", percent(100.0 * share)),
                columns.share,
            )),
            Span::styled(
                text::right(
                    &figure(reached.flops_per_s.map(|it| it / 1e9)),
                    columns.rate,
                ),
                theme.dim,
            ),
            Span::styled(
                text::right(
                    &figure(reached.bytes_per_s.map(|it| it / 1e9)),
                    columns.bytes,
                ),
                theme.dim,
            ),
            Span::styled(
                text::right(&figure(reached.intensity), columns.intensity),
                theme.dim,
            ),
            Span::raw(text::right(&roof, columns.roof)),
        ];
        if columns.bar > 0 && longest > 0.0 {
            let bar = theme.symbols.bar(time / longest, columns.bar as u16 - 1);
            spans.push(Span::styled(format!(" {bar}"), theme.slot(self.slot)));
        }
        Line::from(spans)
    }
}

/// The other run's time at the same place: of the same kernel where it has one, else of its longest there.
fn counterpart(row: &KernelRow, beside: &Kernels) -> Option<f64> {
    let here = |other: &&KernelRow| {
        other.op == row.op && other.part == row.part && other.phase == row.phase
    };
    let mut same = beside.rows.iter().filter(here);
    same.clone()
        .find(|other| other.kernel == row.kernel)
        .or_else(|| same.next())
        .map(|it| it.ms)
}

/// `linear mlp.gate bwd`
fn name(row: &KernelRow) -> String {
    operations::name(&row.op, &row.part, &row.phase)
}

fn order(a: &KernelRow, b: &KernelRow, sort: Sort) -> Ordering {
    let rate = |row: &KernelRow| reached(row, None).flops_per_s.unwrap_or(0.0);
    match sort {
        Sort::Time => b.ms.total_cmp(&a.ms),
        Sort::Calls => b.calls.cmp(&a.calls),
        Sort::Rate => rate(b).total_cmp(&rate(a)),
        Sort::Name => name(a).cmp(&name(b)),
    }
}
