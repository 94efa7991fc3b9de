//! The panel of the kernels shows the profile of one step: a row for each operation with its place, calls, time, share and rate, A beside
//! B, and a row for the rest of the step, so that all of its time is shown.
//!
//! ```text
//! 398 launches · 21 kernels · covers 93.7 % of 144.9 ms
//! 8 operations                    ms B    ms A  share  GFLOP/s  % roof
//! linear mlp.gate bwd            38.20   38.20 26.4 %    14.14  14.4 %
//! attention fwd                   7.40    7.40  5.1 %     9.05   9.2 %
//! …
//! rest of the step                9.10    9.10  6.3 %        -       -
//! ```
//!
//! A narrow panel leaves out the bars, the kernels' names, and the less important figures.

use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::content::{Block, Content, Figure, Picture, Renderer, missing};
use crate::app::kernel_rows::{name, sorted};
use crate::app::{App, Sort};
use crate::course::KernelFigure;
use crate::tui::table::{Columns, FigureColumn};
use crate::tui::text;
use crate::tui::theme::Theme;
use protocol::stats::roofline::{RowRates, reached};
use protocol::story::RunStory;
use protocol::units::{bytes, duration, ms, number, or_dash, percent};
use protocol::{KernelRow, Peaks, Slot, StepProfile};

pub(super) const EXPLANATION: &[&str] = &[
    "Profiled steps, which count in no median of step times. \
     A row shows the median of the latest profiles; ~: their middle half spans more than a quarter of it. \
     A row adds up all layers; fwd, bwd, opt: forward, backward, optimizer. \
     Rates are computed from the shapes, with each operand moved once.",
    "% roof: the least time that this device's measured peaks allow, over the time taken; \
     over 100 %, data was in a cache, or the peak was measured low. \
     Rest of the step: time that no row accounts for.",
];

pub(super) fn content<'a>(app: &'a App, theme: &'a Theme, area: Rect) -> Content<'a> {
    let Some((slot, kernels)) = app.shown_run().profiled() else {
        return Content::missing("no step was profiled yet", theme, area);
    };
    let run = app.shown_run().slot(slot);
    let name = app.shown_run().slot_name(slot);
    let sort = app.view.sort.into_str();
    let aside = match run.profiles.len() {
        count @ 2.. => format!("{name} · median of {count} profiles · by {sort}"),
        _ => format!("{name} · step {} · by {sort}", kernels.step),
    };
    let mut content = Content::with_aside(aside);
    let summary = summary(&kernels, theme, area.width);
    if let Some(reason) = &kernels.reason {
        content.lines([summary]);
        content.add(None, Block::Lines(missing(reason, theme, area)));
        return content;
    }
    let typical = app.shown_run().slot(slot.other()).typical();
    let other = typical.as_ref().filter(|profile| profile.reason.is_none());
    let shows_kernels = !app.reading().withholds("names");
    let table = Table::new(
        (slot, run),
        &kernels,
        other,
        area.width,
        shows_kernels,
        theme,
    );
    content.head = vec![summary, table.head()];
    let mut rows = table.rows(app.view.sort);
    let selected = app.view.kernel.min(rows.len().saturating_sub(2));
    if app.view.selects_kernels()
        && let Some(row) = rows.get_mut(selected)
    {
        *row = std::mem::take(row).patch_style(theme.selected);
    }
    content.selected = Some(selected);
    content.lines(rows);
    large(&mut content, app, &table, area.height);
    content
}

/// Returns the name of a figure that a beat asks for.
fn figure_name(figure: KernelFigure) -> &'static str {
    match figure {
        KernelFigure::Share => "share of the step",
        KernelFigure::Rate => "GFLOP/s",
        KernelFigure::Bytes => "bytes moved in a step",
        KernelFigure::Calls => "calls in a step",
        KernelFigure::TimeOfACall => "time of a call",
    }
}

/// Returns the value of a figure in a row of the table. `None` if it is not known.
fn figure_of_row(figure: KernelFigure, row: &KernelRow, table: &Table<'_>) -> Option<f64> {
    let kernels = table.kernels;
    match figure {
        KernelFigure::Share => Some(row.ms / (kernels.device_ms + kernels.unbracketed_ms.max(0.0))),
        KernelFigure::Rate => reached(row, table.peaks).flops_per_s,
        KernelFigure::Bytes => row.bytes,
        KernelFigure::Calls => Some(f64::from(row.calls)),
        KernelFigure::TimeOfACall => Some(row.ms / f64::from(row.calls.max(1))),
    }
}

/// Returns the value of a figure as text.
fn figure_text(figure: KernelFigure, value: f64) -> String {
    match figure {
        KernelFigure::Share => format!("{} %", percent(100.0 * value)),
        KernelFigure::Rate => number(value / 1e9),
        KernelFigure::Bytes => bytes(value as u64),
        KernelFigure::Calls => format!("{value}"),
        KernelFigure::TimeOfACall => duration(value),
    }
}

/// Adds the figures of the large renderer: the operations with the largest values of the beat's figure. The operations that the beat asks for
/// come first and stand out.
fn large(content: &mut Content<'_>, app: &App, table: &Table<'_>, rows_high: u16) {
    let Some(cue) = app.cue() else { return };
    let theme = table.theme;
    let run_name = app.shown_run().slot_name(table.slot);
    let heading = format!("{run_name} · each operation's {}", figure_name(cue.figure));
    let heading_line = Line::styled(heading, theme.dim);
    content.add(Renderer::Large, Block::Lines(vec![heading_line]));
    let is_asked = |row: &KernelRow| cue.asks(&name(row));
    let mut rows: Vec<(&KernelRow, f64)> = table
        .kernels
        .rows
        .iter()
        .filter_map(|row| Some((row, figure_of_row(cue.figure, row, table)?)))
        .collect();
    rows.sort_by(|(_, value), (_, other)| other.total_cmp(value));
    rows.sort_by_key(|(row, _)| !is_asked(row));
    let free_rows = rows_high.saturating_sub(1);
    let fitting = (free_rows / 6).max(4).min(free_rows / 3).max(1);
    rows.truncate(usize::from(fitting));
    let largest = rows
        .iter()
        .map(|(_, value)| *value)
        .fold(f64::MIN_POSITIVE, f64::max);
    for (row, value) in rows {
        let other_ms = table.other.and_then(|profile| counterpart(row, profile));
        let other_time = match other_ms {
            Some(time) => format!(", {} {}", table.slot.other().into_str(), ms(time)),
            None => String::new(),
        };
        let ink = if !cue.row.is_empty() && is_asked(row) {
            theme.bad
        } else {
            theme.slot(table.slot)
        };
        let bar = Picture::Bar(value / largest);
        let text = figure_text(cue.figure, value);
        let mut figure = Figure::new(name(row), text, bar, ink);
        figure.details = format!("{} ms{other_time}", ms(row.ms));
        figure.dim = !is_asked(row);
        content.figure(Renderer::Large, figure);
    }
}

/// Returns a line with the launches, the number of kernels, the device time and the coverage of a profile.
fn summary(profile: &StepProfile, theme: &Theme, width: u16) -> Line<'static> {
    let covers = format!("covers {} %", percent(100.0 * profile.coverage));
    let is_low = profile.coverage < 0.9;
    let [forward, backward, optimizer] = profile.launches_by_phase;
    let counts = [
        format!("{} launches · ", profile.launches),
        format!("{} kernels · ", profile.unique),
        format!(
            "{} ms on the {} clock · ",
            ms(profile.device_ms),
            profile.clock
        ),
        format!("forward {forward}, backward {backward}, optimizer {optimizer} · "),
    ];
    let mut parts: Vec<(u8, Span<'static>)> = [1, 2, 4, 5]
        .into_iter()
        .zip(counts.map(|text| Span::styled(text, theme.text)))
        .collect();
    let style = if is_low { theme.warning } else { theme.text };
    parts.push((0, Span::styled(covers, style)));
    if let Some(step_ms) = profile.step_ms
        && width >= 60
    {
        let unprofiled = if profile.coverage > 1.0 {
            " unprofiled"
        } else {
            ""
        };
        let of_step = format!(" of {} ms{unprofiled}", ms(step_ms));
        parts.push((3, Span::styled(of_step, style)));
    }
    text::ranked(parts, usize::from(width))
}

/// The columns of a row's figures, from left to right.
const COLUMNS: [FigureColumn; 8] = [
    ("calls", 6),
    ("ms", 8),
    ("", 8), // The time of the other slot.
    ("share", 7),
    ("GFLOP/s", 9),
    ("GB/s", 8),
    ("FLOP/B", 8),
    ("% roof", 8),
];
/// The indices of `COLUMNS`, the most important column first.
const ORDER: [usize; 8] = [1, 3, 2, 4, 7, 0, 5, 6];
/// The width of a row's bar.
const BAR: usize = 12;

/// The table of a slot's profile, with the times of the other slot.
struct Table<'a> {
    slot: Slot,
    run: &'a RunStory,
    kernels: &'a StepProfile,
    /// The profile of the other slot.
    other: Option<&'a StepProfile>,
    peaks: Option<&'a Peaks>,
    theme: &'a Theme,
    name_width: usize,
    /// The width of the kernel's name. 0 if it is left out.
    kernel_width: usize,
    columns: Columns<8>,
    /// The width of the bar. 0 if it is left out.
    bar_width: usize,
}

impl<'a> Table<'a> {
    /// Divides `width` among the columns of the table. `shows_kernels` is false while the kernels' names would give the fault away.
    fn new(
        (slot, run): (Slot, &'a RunStory),
        kernels: &'a StepProfile,
        other: Option<&'a StepProfile>,
        width: u16,
        shows_kernels: bool,
        theme: &'a Theme,
    ) -> Self {
        let widest = |text_of: fn(&KernelRow) -> String| {
            let widths = kernels.rows.iter().map(|row| text::width(&text_of(row)));
            widths.max().unwrap_or(0)
        };
        let name_width = (widest(name) + 3).clamp(16, 34);
        let mut free = usize::from(width).saturating_sub(name_width);
        // Column 2 has the time of the other slot.
        let order: Vec<usize> = ORDER
            .into_iter()
            .filter(|column| *column != 2 || other.is_some())
            .collect();
        let mut columns = Columns::fit(COLUMNS, &order, &mut free);
        if columns.0[2].1 > 0 {
            let heads = ["ms A", "ms B"];
            columns.0[1].0 = heads[slot as usize];
            columns.0[2].0 = heads[slot.other() as usize];
        }
        // A column is shown whole or not at all.
        let mut take = |wanted: usize| {
            let width = if wanted <= free { wanted } else { 0 };
            free -= width;
            width
        };
        // The kernel tells rows of one operation apart, so it is more important than the bar.
        let kernel_width = if shows_kernels {
            take(widest(|row| row.kernel.clone()) + 2)
        } else {
            0
        };
        let bar_width = take(BAR);
        Self {
            slot,
            run,
            kernels,
            other,
            peaks: run.description.peaks.as_deref(),
            theme,
            name_width: name_width + free,
            kernel_width,
            columns,
            bar_width,
        }
    }

    /// Returns the line of headings.
    fn head(&self) -> Line<'static> {
        let heading = match self.kernels.rows.len() {
            1 => "1 operation".to_owned(),
            rows => format!("{rows} operations"),
        };
        let operation = text::left(&heading, self.name_width);
        let kernel = text::left("kernel", self.kernel_width);
        let heads = format!("{operation}{kernel}{}", self.columns.heads());
        Line::styled(heads, self.theme.dim)
    }

    /// Returns the lines of all operations, and of the rest of the step.
    fn rows(&self, sort: Sort) -> Vec<Line<'static>> {
        let rows = sorted(self.kernels, sort);
        let longest_ms = rows.iter().map(|row| row.ms).fold(0.0, f64::max);
        let mut lines = Vec::new();
        for row in rows {
            let other_ms = self.other.and_then(|profile| counterpart(row, profile));
            let mark = if self.run.swings(row) { " ~" } else { "" };
            let name = format!("{}{mark}", name(row));
            lines.push(self.line(row, &name, other_ms, longest_ms));
        }
        let rest = KernelRow {
            ms: self.kernels.unbracketed_ms,
            ..KernelRow::default()
        };
        let other_ms = self.other.map(|profile| profile.unbracketed_ms);
        let full_ms = longest_ms.max(rest.ms);
        let line = self.line(&rest, "rest of the step", other_ms, full_ms);
        lines.push(line.style(self.theme.dim));
        lines
    }

    /// Returns the line of a row. `other_ms` is the time of the other slot. The bar is full at `full_ms`.
    fn line(
        &self,
        row: &KernelRow,
        name: &str,
        other_ms: Option<f64>,
        full_ms: f64,
    ) -> Line<'static> {
        let theme = self.theme;
        let rows_ms: f64 = self.kernels.rows.iter().map(|row| row.ms).sum();
        let step_ms = rows_ms + self.kernels.unbracketed_ms.max(0.0);
        let share = if step_ms > 0.0 { row.ms / step_ms } else { 0.0 };
        // The rest of the step has no calls and no rates.
        let (calls, reached) = if row.calls > 0 {
            (row.calls.to_string(), reached(row, self.peaks))
        } else {
            (String::new(), RowRates::default())
        };
        let percent = |share: f64| format!("{} %", percent(100.0 * share));
        let giga = |rate: f64| number(rate / 1e9);
        let plain = Style::new();
        let figures = [
            (calls, theme.dim),
            (ms(row.ms), theme.strong),
            (or_dash(other_ms, ms), theme.slot(self.slot.other())),
            (percent(share), plain),
            (or_dash(reached.flops_per_s, giga), theme.dim),
            (or_dash(reached.bytes_per_s, giga), theme.dim),
            (or_dash(reached.intensity, number), theme.dim),
            (or_dash(reached.share, percent), plain),
        ];
        let mut spans = vec![
            Span::raw(text::name(name, self.name_width)),
            Span::styled(text::name(&row.kernel, self.kernel_width), theme.dim),
        ];
        spans.extend(self.columns.cells(figures));
        if self.bar_width > 0 && full_ms > 0.0 {
            let bar = theme
                .symbols
                .bar(row.ms / full_ms, self.bar_width as u16 - 1);
            spans.push(Span::styled(format!(" {bar}"), theme.slot(self.slot)));
        }
        Line::from(spans)
    }
}

/// Returns the time in ms that the other run took for an operation at the same place and phase: the time of a kernel with the row's name, or
/// else of the longest kernel there. `None` if the other run has no such row.
fn counterpart(row: &KernelRow, other: &StepProfile) -> Option<f64> {
    let corresponds = |candidate: &&KernelRow| {
        candidate.op == row.op && candidate.part == row.part && candidate.phase == row.phase
    };
    let mut candidates = other.rows.iter().filter(corresponds);
    candidates
        .clone()
        .find(|candidate| candidate.kernel == row.kernel)
        .or_else(|| candidates.next())
        .map(|candidate| candidate.ms)
}
