//! The panel of the kernels shows the profile of one step: a row for each operation with its place, calls, time, share and rate, A beside
//! B, and a row for the rest of the step, so that all of its time is shown. An empty panel says why it is empty.

use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::content::{Block, Content, Figure, Picture, Size, missing};
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

/// The explanation of the panel.
pub(super) const READING: &[&str] = &[
    "Profiled steps, which count in no median of step times. A row shows the median of the latest profiles; ~: their middle half \
             spans more than a quarter of it. A row adds up all layers; fwd, bwd, opt: forward, backward, optimizer. \
             Rates are computed from the shapes, with each operand moved once.",
    "% roof: the least time that this device's measured peaks allow, over the time taken; over 100 %, data was in a \
             cache, or the peak was measured low. Rest of the step: time that no row accounts for.",
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
    let mut content = Content::beside(aside);
    let summary = summary(&kernels, theme, area.width);
    if let Some(reason) = &kernels.reason {
        content.lines([summary]);
        content.add(None, Block::Lines(missing(reason, theme, area)));
        return content;
    }
    let typical = app.shown_run().slot(slot.other()).typical();
    let other = typical.as_ref().filter(|profile| profile.reason.is_none());
    let names = !app.reading().withholds("names");
    let table = Table::new((slot, run), &kernels, other, area.width, names, theme);
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

/// Adds the figures of the large renderer: the operations with the largest values of the beat's figure. The operations in question come
/// first and stand out.
fn large(content: &mut Content<'_>, app: &App, table: &Table<'_>, rows_high: u16) {
    let Some(cue) = app.cue() else { return };
    let (kernels, theme) = (table.kernels, table.theme);
    let whole = kernels.device_ms + kernels.unbracketed_ms.max(0.0);
    let value = |row: &KernelRow| match cue.figure {
        KernelFigure::Share => Some(row.ms / whole),
        KernelFigure::Rate => reached(row, table.peaks).flops_per_s,
        KernelFigure::Bytes => row.bytes,
        KernelFigure::Calls => Some(f64::from(row.calls)),
        KernelFigure::TimeOfACall => Some(row.ms / f64::from(row.calls.max(1))),
    };
    let value_text = |value: f64| match cue.figure {
        KernelFigure::Share => format!("{} %", percent(100.0 * value)),
        KernelFigure::Rate => number(value / 1e9),
        KernelFigure::Bytes => bytes(value as u64),
        KernelFigure::Calls => format!("{value}"),
        KernelFigure::TimeOfACall => duration(value),
    };
    let figure_name = match cue.figure {
        KernelFigure::Share => "share of the step",
        KernelFigure::Rate => "GFLOP/s",
        KernelFigure::Bytes => "bytes moved in a step",
        KernelFigure::Calls => "calls in a step",
        KernelFigure::TimeOfACall => "time of a call",
    };
    let run_name = app.shown_run().slot_name(table.slot);
    let heading = format!("{run_name} · each operation's {figure_name}");
    let heading = vec![Line::styled(heading, theme.dim)];
    content.add(Size::Large, Block::Lines(heading));
    let in_question = |row: &KernelRow| cue.asks(&name(row));
    let mut rows: Vec<(&KernelRow, f64)> = kernels
        .rows
        .iter()
        .filter_map(|row| Some((row, value(row)?)))
        .collect();
    rows.sort_by(|(_, value), (_, other)| other.total_cmp(value));
    rows.sort_by_key(|(row, _)| !in_question(row));
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
        let ink = if !cue.row.is_empty() && in_question(row) {
            theme.bad
        } else {
            theme.slot(table.slot)
        };
        let bar = Picture::Bar(value / largest);
        let mut figure = Figure::new(name(row), value_text(value), bar, ink);
        figure.details = format!("{} ms{other_time}", ms(row.ms));
        figure.dim = !in_question(row);
        content.figure(Size::Large, figure);
    }
}

/// Returns a line with the launches, the number of kernels, the device time and the coverage of a profile.
fn summary(profile: &StepProfile, theme: &Theme, width: u16) -> Line<'static> {
    let covers = format!("covers {} %", percent(100.0 * profile.coverage));
    let low = profile.coverage < 0.9;
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
    let style = if low { theme.warning } else { theme.text };
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
#[rustfmt::skip]
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
    /// The width of the operation's name.
    name: usize,
    /// The width of the kernel's name.
    kernel: usize,
    columns: Columns<8>,
    /// The width of the bar.
    bar: usize,
}

impl<'a> Table<'a> {
    fn new(
        (slot, run): (Slot, &'a RunStory),
        kernels: &'a StepProfile,
        other: Option<&'a StepProfile>,
        width: u16,
        names: bool,
        theme: &'a Theme,
    ) -> Self {
        let widest = |text_of: fn(&KernelRow) -> String| {
            let widths = kernels.rows.iter().map(|row| text::width(&text_of(row)));
            widths.max().unwrap_or(0)
        };
        let name = (widest(name) + 3).clamp(16, 34);
        let mut room = usize::from(width).saturating_sub(name);
        // Column 2 has the time of the other slot.
        let order: Vec<usize> = ORDER
            .into_iter()
            .filter(|column| *column != 2 || other.is_some())
            .collect();
        let mut columns = Columns::fit(COLUMNS, &order, &mut room);
        if columns.0[2].1 > 0 {
            let heads = ["ms A", "ms B"];
            columns.0[1].0 = heads[slot as usize];
            columns.0[2].0 = heads[slot.other() as usize];
        }
        let mut take = |wanted: usize| {
            let wide = if wanted <= room { wanted } else { 0 };
            room -= wide;
            wide
        };
        // The kernel tells rows of one operation apart, so it comes before the bar. It is shown whole or not at all.
        let kernel = if names {
            take(widest(|row| row.kernel.clone()) + 2)
        } else {
            0
        };
        let bar = take(BAR);
        Self {
            slot,
            run,
            kernels,
            other,
            peaks: run.description.peaks.as_deref(),
            theme,
            name: name + room,
            kernel,
            columns,
            bar,
        }
    }

    fn head(&self) -> Line<'static> {
        let heading = match self.kernels.rows.len() {
            1 => "1 operation".to_owned(),
            rows => format!("{rows} operations"),
        };
        let names = text::left(&heading, self.name) + &text::left("kernel", self.kernel);
        Line::styled(names + &self.columns.heads(), self.theme.dim)
    }

    fn rows(&self, sort: Sort) -> Vec<Line<'static>> {
        let rows = sorted(self.kernels, sort);
        let longest = rows.iter().map(|row| row.ms).fold(0.0, f64::max);
        let mut lines = Vec::new();
        for row in rows {
            let other_ms = self.other.and_then(|profile| counterpart(row, profile));
            let mark = if self.run.swings(row) { " ~" } else { "" };
            lines.push(self.line(row, &format!("{}{mark}", name(row)), other_ms, longest));
        }
        let rest = KernelRow {
            ms: self.kernels.unbracketed_ms,
            ..KernelRow::default()
        };
        let other_ms = self.other.map(|profile| profile.unbracketed_ms);
        let longest = longest.max(rest.ms);
        let line = self.line(&rest, "rest of the step", other_ms, longest);
        lines.push(line.style(self.theme.dim));
        lines
    }

    /// Returns the line of a row. `other_ms` is the time of the other slot; `longest` is the time whose bar is full, in ms.
    fn line(
        &self,
        row: &KernelRow,
        name: &str,
        other_ms: Option<f64>,
        longest: f64,
    ) -> Line<'static> {
        let theme = self.theme;
        let rows: f64 = self.kernels.rows.iter().map(|row| row.ms).sum();
        let whole = rows + self.kernels.unbracketed_ms.max(0.0);
        let share = if whole > 0.0 { row.ms / whole } else { 0.0 };
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
            Span::raw(text::name(name, self.name)),
            Span::styled(text::name(&row.kernel, self.kernel), theme.dim),
        ];
        spans.extend(self.columns.cells(figures));
        if self.bar > 0 && longest > 0.0 {
            let bar = theme.symbols.bar(row.ms / longest, self.bar as u16 - 1);
            spans.push(Span::styled(format!(" {bar}"), theme.slot(self.slot)));
        }
        Line::from(spans)
    }
}

/// Returns the time in ms that the other run took for this operation, part and phase: the time of a kernel of this name, or else of the
/// longest kernel there. `None` if the other run has no such row.
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
