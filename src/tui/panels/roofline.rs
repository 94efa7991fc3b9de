//! The panel of the roofline shows how fast each operation of the profiled step ran, and how fast this device was measured to be at that
//! arithmetic intensity. Each operation has a letter: a small one for A, a capital one for B.
//!
//! ```text
//! roofs: memory 21.00 GB/s · compute 98.00 GFLOP/s (f32) · they meet at 4.67 FLOP/byte
//!   100│         ⡠⠒⠒⠒⠒⠒⠒⠒⠒⠒   operation        ms  GFLOP/s   roof   binds
//!      │     ⢀⡠⠊      CD     c linear bwd   70.10    15.41 15.7 % compute
//!    10│  ⡠⠒⠁ F          cd  C linear bwd   23.37    46.22 47.2 % compute
//!      │⠔⠁ G                 f attention     7.40     9.05  9.2 % compute
//! GFLOP/s       1       10 FLOP/byte
//! ```
//!
//! A letter above the slope read its data from a cache, because the slope is the speed of memory. In a narrow panel the list stands below the
//! chart. In a low one it has letters and names only, or is left out.

mod plot;

use plot::{Mark, RoofPlot};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::content::{Content, Renderer};
use crate::app::{App, kernel_rows};
use crate::course::Beat;
use crate::tui::surface::{height, slots};
use crate::tui::table::{Columns, FigureColumn};
use crate::tui::text;
use crate::tui::theme::Theme;
use protocol::stats::operations::operations;
use protocol::stats::roofline::{bounding, reached, ridge};
use protocol::units::{ms, number, or_dash, percent, rate};
use protocol::{KernelRow, Peaks, Slot};

pub(super) const EXPLANATION: &[&str] = &[
    "Right: more arithmetic per byte moved. Up: faster. The slope is what memory delivers, the flat \
     part what arithmetic can do. roof: how near a letter comes to it; over 100 % under the slope, data \
     was in a cache.",
    "Bytes count each operand once, by its shape. An operation far below the roof moves too many bytes, \
     or waits.",
];

/// The letters of the operations. The letters a and b are left out, because they name the runs.
const LETTERS: &str = "cdefghijklmnopqrstuvwxyz";
/// The smallest width of a panel with the list beside the chart.
const LIST_BESIDE: u16 = 70;
/// The smallest and the largest width of the list beside the chart.
const LIST_WIDTH: (u16, u16) = (37, 72);
/// The smallest height of a narrow panel with the list below the chart.
const LIST_BELOW: u16 = 12;
/// The smallest height of a narrow panel with the letters and names below the chart.
const NAMES_BELOW: u16 = 7;
/// The smallest height of a list with figures. A lower one has letters and names only.
const WITH_FIGURES: u16 = 3;

pub(super) fn content<'a>(app: &'a App, theme: &'a Theme, area: Rect) -> Content<'a> {
    let peaks = slots(app).find_map(|(_, run)| run.description.peaks.as_deref());
    let aside = match peaks {
        Some(peaks) => {
            let under_load = peaks.load().is_some();
            let load = if under_load { " under load" } else { "" };
            format!(
                "{} clock · peaks measured {}{load}",
                peaks.clock, peaks.date
            )
        }
        None => String::new(),
    };
    let rows = match Rows::collect(app, peaks, theme) {
        Ok(rows) => rows,
        Err(why) => {
            let missing = Content::missing(why, theme, area);
            return Content { aside, ..missing };
        }
    };
    let mut content = Content::with_aside(aside);
    let mut legend = rows.legend(app, area.width);
    legend.truncate(usize::from(area.height / 5).max(1));
    let below_legend = area.height.saturating_sub(height(legend.len()));
    content.lines(legend);
    let (plot, (list_width, list_height)) = divide(area.width, below_legend);
    content.plot(Renderer::Normal, plot, rows.plot(rows.marks()));
    match list_height {
        0 => {}
        1..WITH_FIGURES => content.lines(rows.letters(list_width.into())),
        WITH_FIGURES.. => {
            let (head, lines) = rows.list(list_width.into());
            content.head = vec![head];
            content.lines(lines);
        }
    }
    if let Some(cue) = app.cue() {
        let marks = rows.presented(&cue, usize::from(area.height / 6));
        content.plot(Renderer::Large, plot, rows.plot(marks));
    }
    content
}

/// Returns the reason why there are no operations to show. `calibrated` is true if the peaks of the device are known.
fn why_empty(app: &App, calibrated: bool) -> &'static str {
    let mut runs = slots(app).map(|(_, run)| run).peekable();
    if runs.peek().is_none() {
        return "nothing has run yet";
    }
    match runs.find_map(|run| run.kernels.as_ref()) {
        // Peaks are measured before the first profile.
        None => "no step was profiled yet",
        Some(_) if !calibrated => {
            "this device's peaks are not known: the log says why, and `perflings doctor --calibrate` \
             measures them again"
        }
        Some(_) => "the profiler saw no operation on this device",
    }
}

/// Returns the columns and rows of the chart and those of the list beside or below it. A list that is left out has 0 rows.
fn divide(columns: u16, rows: u16) -> ((u16, u16), (u16, u16)) {
    if columns >= LIST_BESIDE {
        let list = (columns / 2).clamp(LIST_WIDTH.0, LIST_WIDTH.1);
        return ((columns - list - 1, rows), (list, rows));
    }
    let list = match rows {
        LIST_BELOW.. => rows * 2 / 5,
        NAMES_BELOW.. => WITH_FIGURES - 1,
        _ => 0,
    };
    ((columns, rows - list), (columns, list))
}

/// The columns of an operation's figures, from left to right.
const COLUMNS: [FigureColumn; 6] = [
    ("ms", 8),
    ("FLOP/B", 8),
    ("GFLOP/s", 9),
    ("GB/s", 8),
    ("roof", 7),
    ("binds", 8),
];
/// The indices of `COLUMNS`, the most important column first.
const ORDER: [usize; 6] = [0, 4, 5, 2, 1, 3];

/// The operations of both slots, and the peaks of the device.
struct Rows<'a> {
    /// The operations of each slot, the longest first.
    shown: Vec<(Slot, KernelRow)>,
    /// The names of the operations. The index of a name is the index of its letter.
    names: Vec<String>,
    peaks: &'a Peaks,
    theme: &'a Theme,
}

impl<'a> Rows<'a> {
    /// Collects the operations of both slots.
    ///
    /// # Errors
    /// Returns the reason if there are no operations, or if the peaks of the device are not known.
    fn collect(
        app: &App,
        peaks: Option<&'a Peaks>,
        theme: &'a Theme,
    ) -> Result<Self, &'static str> {
        let mut shown: Vec<(Slot, KernelRow)> = Vec::new();
        for (slot, run) in slots(app) {
            if let Some(profile) = &run.kernels {
                shown.extend(operations(profile).into_iter().map(|row| (slot, row)));
            }
        }
        shown.sort_by(|(_, row), (_, other)| other.ms.total_cmp(&row.ms));
        let peaks = peaks.ok_or_else(|| why_empty(app, false))?;
        if shown.is_empty() {
            return Err(why_empty(app, true));
        }
        let mut names: Vec<String> = Vec::new();
        for (_, row) in &shown {
            let name = kernel_rows::name(row);
            if !names.contains(&name) {
                names.push(name);
            }
        }
        Ok(Self {
            shown,
            names,
            peaks,
            theme,
        })
    }

    /// Returns the letter of an operation in a run; `None` where there are more operations than letters.
    fn letter(&self, slot: Slot, row: &KernelRow) -> Option<char> {
        let name = kernel_rows::name(row);
        let index = self.names.iter().position(|known| *known == name)?;
        let letter = LETTERS.chars().nth(index)?;
        Some(match slot {
            Slot::A => letter,
            Slot::B => letter.to_ascii_uppercase(),
        })
    }

    /// Returns the roof of f32 and, if an operation ran on matrix cores, their roof.
    fn roofs(&self) -> Vec<Peaks> {
        let mut roofs = vec![self.peaks.clone()];
        if self.shown.iter().any(|(_, row)| row.matrix_cores) {
            roofs.extend(bounding(self.peaks, true));
        }
        roofs
    }

    /// Returns the names of the roofs with their values: memory, then each roof of arithmetic.
    fn roof_names(&self) -> Vec<String> {
        let mut names = vec![format!("memory {}", rate(self.peaks.bytes.best, "B/s"))];
        for (name, roof) in ["compute", "matrix cores"].into_iter().zip(self.roofs()) {
            names.push(format!("{name} {}", rate(roof.flops.best, "FLOP/s")));
        }
        names
    }

    /// Returns the letters with their names, as many on a line as fit, as in `c swiglu mlp.activation bwd  d attention fwd`.
    fn letters(&self, columns: usize) -> Vec<Line<'static>> {
        let mut names = String::new();
        for (letter, name) in LETTERS.chars().zip(&self.names) {
            names += &format!("{letter} {name} ").replace(' ', text::NO_BREAK);
            names.push(' ');
        }
        text::wrapped(&names, Style::new(), columns)
    }

    /// Returns the legend: a line about the letters, and a line with the roofs and their values.
    fn legend(&self, app: &App, width: u16) -> Vec<Line<'static>> {
        let dim = self.theme.dim;
        let width = usize::from(width);
        let mut letters = Vec::new();
        for (slot, range) in [(Slot::A, "c-z"), (Slot::B, "C-Z")] {
            if self.shown.iter().any(|(shown, _)| *shown == slot) {
                let name = format!("{range}: {}   ", app.shown_run().slot_name(slot));
                letters.push((0, Span::styled(name, self.theme.slot(slot))));
            }
        }
        let has_both = letters.len() > 1;
        letters.push((1, Span::styled("a letter is an operation", dim)));
        if has_both {
            letters.push((2, Span::styled(", the same in both runs", dim)));
        }
        let mut roofs = self.roof_names();
        for (name, format) in roofs.iter_mut().skip(1).zip([" (f32)", " (f16)"]) {
            name.push_str(format);
        }
        let meeting = number(ridge(self.peaks));
        roofs.push(format!("they meet at {meeting} FLOP/byte"));
        let names = roofs.iter().map(String::as_str);
        let fitting = text::joined(names, width.saturating_sub("roofs: ".len()), " · ");
        let mut lines = vec![text::ranked(letters, width)];
        if !fitting.is_empty() {
            let line = format!("roofs: {fitting}");
            lines.push(Line::styled(line, self.theme.reference));
        }
        lines
    }

    /// Returns a mark for each operation whose speed and intensity are known, the longest first.
    fn marks(&self) -> Vec<Mark> {
        let usable = |value: &f64| *value > 0.0 && value.is_finite();
        let mark = |(slot, row): &(Slot, KernelRow)| {
            let reached = reached(row, Some(self.peaks));
            Some(Mark {
                intensity: reached.intensity.filter(usable)?,
                flops_per_s: reached.flops_per_s.filter(usable)?,
                letter: self.letter(*slot, row)?,
                name: kernel_rows::name(row),
                shows_name: false,
                style: self.theme.slot(*slot),
            })
        };
        self.shown.iter().filter_map(mark).collect()
    }

    /// Returns the marks for the back of a room, first the marks that the beat asks for. These and `max_others` of the longest others show
    /// their names.
    fn presented(&self, cue: &Beat, max_others: usize) -> Vec<Mark> {
        let mut marks = self.marks();
        let mut others = 0;
        let point = self.theme.symbols.live.chars().next().unwrap_or('o');
        for mark in &mut marks {
            mark.letter = point;
            mark.shows_name = !cue.row.is_empty() && cue.asks(&mark.name);
            if !mark.shows_name {
                mark.style = self.theme.dim;
                mark.shows_name = others < max_others;
                others += 1;
            }
        }
        marks.sort_by_key(|mark| !(cue.row.is_empty() || cue.asks(&mark.name)));
        marks
    }

    /// Returns a function that draws the roofs and these marks.
    fn plot(&self, marks: Vec<Mark>) -> impl Fn(Rect, &mut Buffer) + use<'a> {
        let plot = RoofPlot {
            marks,
            roofs: self.roofs(),
            names: self.roof_names(),
            theme: self.theme,
        };
        move |area, buffer| plot.draw(area, buffer)
    }

    /// Returns the headings of the list, and a line for each operation.
    fn list(&self, width: usize) -> (Line<'static>, Vec<Line<'static>>) {
        let longest = self.names.iter().map(|name| text::width(name)).max();
        let name_width = longest.unwrap_or(0).clamp(12, 24);
        let mut free = width.saturating_sub(2 + name_width);
        let columns = Columns::fit(COLUMNS, &ORDER, &mut free);
        let names = text::left("operation", name_width);
        let head = format!("  {names}{}", columns.heads());
        let lines = self
            .shown
            .iter()
            .map(|(slot, row)| self.line(*slot, row, name_width, &columns))
            .collect();
        (Line::styled(head, self.theme.dim), lines)
    }

    /// Returns the line of an operation in the list.
    fn line(
        &self,
        slot: Slot,
        row: &KernelRow,
        name_width: usize,
        columns: &Columns<6>,
    ) -> Line<'static> {
        let theme = self.theme;
        let reached = reached(row, Some(self.peaks));
        let bound = match (reached.memory_bound, reached.share) {
            // The operation is faster than memory allows, so its data lay in a cache.
            (Some(true), Some(share)) if share > 1.0 => "cache",
            (Some(true), _) => "memory",
            (Some(false), _) => "compute",
            (None, _) => "-",
        };
        let plain = Style::new();
        let giga = |rate: f64| number(rate / 1e9);
        let share = |share: f64| format!("{} %", percent(100.0 * share));
        let figures = [
            (ms(row.ms), theme.strong),
            (or_dash(reached.intensity, number), plain),
            (or_dash(reached.flops_per_s, giga), plain),
            (or_dash(reached.bytes_per_s, giga), plain),
            (or_dash(reached.share, share), theme.strong),
            (bound.to_owned(), theme.dim),
        ];
        let letter = self.letter(slot, row).unwrap_or(' ');
        let mut spans = vec![
            Span::styled(format!("{letter} "), theme.slot(slot)),
            Span::raw(text::name(&kernel_rows::name(row), name_width)),
        ];
        spans.extend(columns.cells(figures));
        Line::from(spans)
    }
}
