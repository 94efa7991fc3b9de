//! The profile of one step: a row per operation with its place, calls, time, share and rate, A beside B, and a row for the rest of
//! the step, so that all of its time is shown. Where it is empty, it says why.

use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::content::{Block, Content, Figure, Picture, Size, missing};
use crate::app::kernel_rows::{name, sorted};
use crate::app::{App, Sort};
use crate::course::KernelFigure;
use crate::tui::surface::joined;
use crate::tui::table::{Columns, FigureColumn};
use crate::tui::text;
use crate::tui::theme::Theme;
use protocol::stats::roofline::{RowRates, reached};
use protocol::story::RunStory;
use protocol::units::{bytes, duration, ms, number, or_dash, percent};
use protocol::{KernelRow, Roof, Slot, StepProfile};

/// How to read it.
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
    let (name, sort) = (app.shown_run().slot_name(slot), app.view.sort.into_str());
    let aside = match app.shown_run().slot(slot).profiles.len() {
        n @ 2.. => format!("{name} · median of {n} profiles · by {sort}"),
        _ => format!("{name} · step {} · by {sort}", kernels.step),
    };
    let mut content = Content::beside(aside);
    let summary = summary(&kernels, theme, area.width);
    if let Some(reason) = &kernels.reason {
        content.lines([summary]);
        content.add(None, Block::Lines(missing(reason, theme, area)));
        return content;
    }
    let run = app.shown_run().slot(slot);
    let beside = app.shown_run().slot(slot.other()).typical();
    let beside = beside.as_ref().filter(|it| it.reason.is_none());
    let roof = run.description.roof.as_deref();
    let (width, names) = (area.width, !app.reading().withholds("names"));
    let table = Table::new((slot, run), &kernels, beside, roof, width, names, theme);
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

/// The operations with the most of what the beat looks at; those in question come first and stand out.
fn large(content: &mut Content<'_>, app: &App, table: &Table<'_>, rows_high: u16) {
    let Some(cue) = app.cue() else { return };
    let (kernels, theme) = (table.kernels, table.theme);
    let whole = kernels.device_ms + kernels.unbracketed_ms.max(0.0);
    let value = |row: &KernelRow| match cue.figure {
        KernelFigure::Share => Some(row.ms / whole),
        KernelFigure::Rate => reached(row, table.roof).flops_per_s,
        KernelFigure::Bytes => row.bytes,
        KernelFigure::Calls => Some(f64::from(row.calls)),
        KernelFigure::TimeOfACall => Some(row.ms / f64::from(row.calls.max(1))),
    };
    let figure = |it: f64| match cue.figure {
        KernelFigure::Share => format!("{} %", percent(100.0 * it)),
        KernelFigure::Rate => number(it / 1e9),
        KernelFigure::Bytes => bytes(it as u64),
        KernelFigure::Calls => format!("{it}"),
        KernelFigure::TimeOfACall => duration(it),
    };
    let says = match cue.figure {
        KernelFigure::Share => "share of the step",
        KernelFigure::Rate => "GFLOP/s",
        KernelFigure::Bytes => "bytes moved in a step",
        KernelFigure::Calls => "calls in a step",
        KernelFigure::TimeOfACall => "time of a call",
    };
    let said = format!(
        "{} · each operation's {says}",
        app.shown_run().slot_name(table.slot)
    );
    let said = vec![Line::styled(said, theme.dim)];
    content.add(Size::Large, Block::Lines(said));
    let asked = |row: &KernelRow| cue.asks(&name(row));
    let known = kernels
        .rows
        .iter()
        .filter_map(|row| Some((row, value(row)?)));
    let mut rows: Vec<(&KernelRow, f64)> = known.collect();
    rows.sort_by(|a, b| b.1.total_cmp(&a.1));
    rows.sort_by_key(|(row, _)| !asked(row));
    let rows_high = rows_high.saturating_sub(1);
    let fitting = (rows_high / 6).max(4).min(rows_high / 3).max(1);
    rows.truncate(usize::from(fitting));
    let most = rows.iter().map(|it| it.1).fold(f64::MIN_POSITIVE, f64::max);
    for (row, value) in rows {
        let was = table.beside.and_then(|it| counterpart(row, it));
        let other = table.slot.other().into_str();
        let was = was.map_or(String::new(), |was| format!(", {other} {}", ms(was)));
        let ink = match !cue.row.is_empty() && asked(row) {
            true => theme.bad,
            false => theme.slot(table.slot),
        };
        let bar = Picture::Bar(value / most);
        let mut figure = Figure::new(name(row), figure(value), bar, ink);
        figure.details = format!("{} ms{was}", ms(row.ms));
        figure.dim = !asked(row);
        content.figure(Size::Large, figure);
    }
}

/// Launches, unique kernels, device time and coverage.
fn summary(it: &StepProfile, theme: &Theme, width: u16) -> Line<'static> {
    let of = it.step_ms.filter(|_| width >= 60);
    let alone = if it.coverage > 1.0 { " unprofiled" } else { "" };
    let of = of.map_or(String::new(), |step| format!(" of {} ms{alone}", ms(step)));
    let covers = format!("covers {} %{of}", percent(100.0 * it.coverage));
    let low = it.coverage < 0.9;
    let [forward, backward, optimizer] = it.launches_by_phase;
    let parts = [
        format!("{} launches", it.launches),
        format!("{} kernels", it.unique),
        format!("{} ms on the {} clock", ms(it.device_ms), it.clock),
        format!("forward {forward}, backward {backward}, optimizer {optimizer}"),
    ];
    let room = usize::from(width).saturating_sub(text::width(&covers) + 3);
    let line = joined(parts.iter().map(String::as_str), room, " · ");
    let gap = if line.is_empty() { "" } else { " · " };
    Line::from(vec![
        Span::styled(format!("{line}{gap}"), theme.text),
        Span::styled(covers, if low { theme.warning } else { theme.text }),
    ])
}

/// The figures of a row, as they stand side by side.
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
/// Places in `COLUMNS`, the most important first.
const ORDER: [usize; 8] = [1, 3, 2, 4, 7, 0, 5, 6];
const BAR: usize = 12;

/// The rows of a slot's profile beside those of the other.
struct Table<'a> {
    slot: Slot,
    run: &'a RunStory,
    kernels: &'a StepProfile,
    beside: Option<&'a StepProfile>,
    roof: Option<&'a Roof>,
    theme: &'a Theme,
    /// Columns of the operation's name, of its kernel's, of the figures, and of the bar.
    name: usize,
    kernel: usize,
    columns: Columns<8>,
    bar: usize,
}

impl<'a> Table<'a> {
    fn new(
        (slot, run): (Slot, &'a RunStory),
        kernels: &'a StepProfile,
        beside: Option<&'a StepProfile>,
        roof: Option<&'a Roof>,
        width: u16,
        names: bool,
        theme: &'a Theme,
    ) -> Self {
        let longest = |of: fn(&KernelRow) -> String| {
            let widths = kernels.rows.iter().map(|row| text::width(&of(row)));
            widths.max().unwrap_or(0)
        };
        let name = (longest(name) + 3).clamp(16, 34);
        let mut room = usize::from(width).saturating_sub(name);
        let order = ORDER.into_iter();
        let order = order.filter(|at| *at != 2 || beside.is_some());
        let order: Vec<usize> = order.collect();
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
        // Which kernel it was, only whole: it tells rows of one operation apart, so it comes before the bar.
        let kernel = match names {
            true => take(longest(|row| row.kernel.clone()) + 2),
            false => 0,
        };
        let bar = take(BAR);
        Self {
            slot,
            run,
            kernels,
            beside,
            roof,
            theme,
            name: name + room,
            kernel,
            columns,
            bar,
        }
    }

    fn head(&self) -> Line<'static> {
        let swings = self.kernels.rows.iter().any(|row| self.run.swings(row));
        let rows = match self.kernels.rows.len() {
            1 => "1 operation".to_owned(),
            rows => format!("{rows} operations"),
        };
        let explained = format!("{rows} (~ time swings)");
        let named = match swings && text::width(&explained) < self.name {
            true => explained,
            false => rows,
        };
        let names = text::left(&named, self.name) + &text::left("kernel", self.kernel);
        Line::styled(names + &self.columns.heads(), self.theme.dim)
    }

    fn rows(&self, sort: Sort) -> Vec<Line<'static>> {
        let rows = sorted(self.kernels, sort);
        let longest = rows.iter().map(|row| row.ms).fold(0.0, f64::max);
        let line = |row: &KernelRow| {
            let was = self.beside.and_then(|it| counterpart(row, it));
            let mark = if self.run.swings(row) { " ~" } else { "" };
            self.line(row, &format!("{}{mark}", name(row)), was, longest)
        };
        let mut lines: Vec<Line<'static>> = rows.into_iter().map(line).collect();
        let rest = KernelRow {
            ms: self.kernels.unbracketed_ms,
            ..KernelRow::default()
        };
        let was = self.beside.map(|it| it.unbracketed_ms);
        let rest = self.line(&rest, "rest of the step", was, longest.max(rest.ms));
        lines.push(rest.style(self.theme.dim));
        lines
    }

    /// One row, and what the other slot took.
    fn line(&self, row: &KernelRow, name: &str, was: Option<f64>, longest: f64) -> Line<'static> {
        let theme = self.theme;
        let rows: f64 = self.kernels.rows.iter().map(|row| row.ms).sum();
        let whole = rows + self.kernels.unbracketed_ms.max(0.0);
        let share = if whole > 0.0 { row.ms / whole } else { 0.0 };
        let calls = Some(row.calls).filter(|calls| *calls > 0);
        let reached = match calls {
            Some(_) => reached(row, self.roof),
            None => RowRates::default(),
        };
        let percent = |share: f64| format!("{} %", percent(100.0 * share));
        let giga = |it: f64| number(it / 1e9);
        let plain = Style::new();
        let figures = [
            (calls.map_or(String::new(), |it| it.to_string()), theme.dim),
            (ms(row.ms), theme.strong),
            (or_dash(was, ms), theme.slot(self.slot.other())),
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

/// The other run's time at the same place: of the same kernel where it has one, else of its longest there.
fn counterpart(row: &KernelRow, beside: &StepProfile) -> Option<f64> {
    let here = |it: &&KernelRow| it.op == row.op && it.part == row.part && it.phase == row.phase;
    let mut same = beside.rows.iter().filter(here);
    let kernel = same.clone().find(|it| it.kernel == row.kernel);
    kernel.or_else(|| same.next()).map(|it| it.ms)
}
