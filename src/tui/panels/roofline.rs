//! The roofline: how fast each operation of the profiled step ran, against what this device was measured to allow at its
//! arithmetic intensity. An operation has one letter, small where A ran it and a capital where B did; the list beside it
//! says which, the longest first. A letter above the slope worked on what lay in a cache: the roof is that of memory.

mod plot;

use plot::{Mark, RoofPlot};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::content::{Content, Size};
use crate::app::{App, kernel_rows};
use crate::course::Beat;
use crate::tui::surface::{height, joined, slots};
use crate::tui::table::{Columns, FigureColumn};
use crate::tui::text;
use crate::tui::theme::Theme;
use protocol::stats::operations::operations;
use protocol::stats::roofline::{bounding, reached, ridge};
use protocol::units::{ms, number, or_dash, percent, rate};
use protocol::{KernelRow, Roof, Slot};

/// How to read it.
pub(super) const READING: &[&str] = &[
    "Right: more arithmetic per byte moved. Up: faster. The slope is what memory delivers, the flat part what \
             arithmetic can do. roof: how near a letter comes to it; over 100 % under the slope, data was in a cache.",
    "Bytes count each operand once, by its shape. An operation far below the roof moves too many bytes, or waits.",
];

/// Letters of operations. Not a and b: those are the runs.
const LETTERS: &str = "cdefghijklmnopqrstuvwxyz";
/// Columns from which on the list stands beside the chart, and how many it then takes.
const WIDE: u16 = 70;
const LIST: (u16, u16) = (37, 72);
/// Rows from which on it stands below where it does not stand beside.
const TALL: u16 = 12;
/// Rows from which on the letters have their names below, without figures; such a list has fewer rows than `LOW`.
const SHORT: u16 = 7;
const LOW: u16 = 3;

pub(super) fn content<'a>(app: &'a App, theme: &'a Theme, area: Rect) -> Content<'a> {
    let roof = slots(app).find_map(|(_, run)| run.description.roof.as_deref());
    let aside = roof.map_or(String::new(), |it| {
        let load = it.load().map_or("", |_| " under load");
        format!("{} clock · peaks measured {}{load}", it.clock, it.date)
    });
    let rows = match Rows::of(app, roof, theme) {
        Ok(rows) => rows,
        Err(why) => {
            let missing = Content::missing(why, theme, area);
            return Content { aside, ..missing };
        }
    };
    let mut content = Content::beside(aside);
    let mut legend = rows.legend(app, area.width);
    legend.truncate(usize::from(area.height / 5).max(1));
    let left = area.height.saturating_sub(height(legend.len()));
    content.lines(legend);
    let (plot, list) = divide(area.width, left);
    content.plot(Size::Normal, plot, rows.plot(rows.marks()));
    let columns = usize::from(list.0);
    match list.1 {
        0 => {}
        1..LOW => content.lines(rows.letters(columns)),
        LOW.. => {
            let (head, lines) = rows.list(columns);
            content.head = vec![head];
            content.lines(lines);
        }
    }
    if let Some(cue) = app.cue() {
        let named = usize::from(area.height / 6);
        let marks = rows.presented(&cue, named);
        content.plot(Size::Large, plot, rows.plot(marks));
    }
    content
}

fn why_empty(app: &App, calibrated: bool) -> &'static str {
    let mut runs = slots(app).map(|(_, run)| run).peekable();
    if runs.peek().is_none() {
        return "nothing has run yet";
    }
    match runs.find_map(|run| run.kernels.as_ref()) {
        // Peaks are measured before the first profile.
        None => "no step was profiled yet",
        Some(_) if !calibrated => {
            "this device's peaks are not known. The log says why; `perflings doctor --calibrate` tries again"
        }
        Some(_) => "the profiler saw no operation on this device",
    }
}

/// Columns and rows of the chart, and of the list beside or below it where there is room.
fn divide(columns: u16, rows: u16) -> ((u16, u16), (u16, u16)) {
    if columns >= WIDE {
        let list = (columns / 2).clamp(LIST.0, LIST.1);
        return ((columns - list - 1, rows), (list, rows));
    }
    let list = match rows {
        TALL.. => rows * 2 / 5,
        SHORT.. => LOW - 1,
        _ => 0,
    };
    ((columns, rows - list), (columns, list))
}

/// The figures of an operation as they stand side by side, and their places in the order of importance.
#[rustfmt::skip]
const COLUMNS: [FigureColumn; 6] = [
    ("ms", 8),
    ("FLOP/B", 8),
    ("GFLOP/s", 9),
    ("GB/s", 8),
    ("roof", 7),
    ("binds", 8),
];
const ORDER: [usize; 6] = [0, 4, 5, 2, 1, 3];

/// The operations of both slots, and the roofs above them.
struct Rows<'a> {
    shown: Vec<(Slot, KernelRow)>,
    names: Vec<String>,
    roof: &'a Roof,
    theme: &'a Theme,
}

impl<'a> Rows<'a> {
    /// Every operation of each slot, the longest first, or why there is none.
    fn of(app: &App, roof: Option<&'a Roof>, theme: &'a Theme) -> Result<Self, &'static str> {
        let mut shown: Vec<(Slot, KernelRow)> = Vec::new();
        for (slot, run) in slots(app) {
            let found = run.kernels.as_ref().map(operations);
            shown.extend(found.into_iter().flatten().map(|it| (slot, it)));
        }
        shown.sort_by(|a, b| b.1.ms.total_cmp(&a.1.ms));
        let (Some(roof), false) = (roof, shown.is_empty()) else {
            return Err(why_empty(app, roof.is_some()));
        };
        // The place of a name in this list is its letter.
        let mut names: Vec<String> = Vec::new();
        for name in shown.iter().map(|(_, it)| kernel_rows::name(it)) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        Ok(Self {
            shown,
            names,
            roof,
            theme,
        })
    }

    /// The letter of an operation in a run; none where there are more operations than letters.
    fn letter(&self, slot: Slot, it: &KernelRow) -> Option<char> {
        let at = self
            .names
            .iter()
            .position(|known| *known == kernel_rows::name(it))?;
        let letter = LETTERS.chars().nth(at)?;
        Some(match slot {
            Slot::A => letter,
            Slot::B => letter.to_ascii_uppercase(),
        })
    }

    /// The roof of f32, and of matrix cores where an operation ran on them.
    fn roofs(&self) -> Vec<Roof> {
        let cores = self.shown.iter().any(|(_, it)| it.matrix_cores);
        let cores = cores.then(|| bounding(self.roof, true)).flatten();
        [self.roof.clone()].into_iter().chain(cores).collect()
    }

    /// Memory and compute, each with its value.
    fn roof_names(&self) -> Vec<String> {
        let memory = format!("memory {}", rate(self.roof.bytes.best, "B/s"));
        let compute = ["compute", "matrix cores"].into_iter().zip(self.roofs());
        let compute =
            compute.map(|(name, roof)| format!("{name} {}", rate(roof.flops.best, "FLOP/s")));
        [memory].into_iter().chain(compute).collect()
    }

    /// Letters and names, as many on a line as fit: `c swiglu mlp.activation bwd  d attention fwd`.
    fn letters(&self, columns: usize) -> Vec<Line<'static>> {
        let (mut lines, mut line) = (Vec::new(), String::new());
        for (letter, name) in LETTERS.chars().zip(&self.names) {
            let next = format!("{letter} {name}");
            if !line.is_empty() && text::width(&line) + 2 + text::width(&next) > columns {
                lines.push(Line::raw(std::mem::take(&mut line)));
            }
            let gap = if line.is_empty() { "" } else { "  " };
            line += &format!("{gap}{next}");
        }
        lines.push(Line::raw(line));
        lines
    }

    /// Whose letters are whose, and the roofs with their values.
    fn legend(&self, app: &App, width: u16) -> Vec<Line<'static>> {
        let mut spans = Vec::new();
        for (slot, letters) in [(Slot::A, "c-z"), (Slot::B, "C-Z")] {
            if self.shown.iter().any(|(shown, _)| *shown == slot) {
                let name = format!("{letters}: {}   ", app.shown_run().slot_name(slot));
                spans.push(Span::styled(name, self.theme.slot(slot)));
            }
        }
        let both = "a letter is an operation, the same in both runs";
        let room = usize::from(width).saturating_sub(text::width_of(&spans));
        let wordings = [(2, both), (1, "a letter is an operation")];
        let fits = |(runs, says): &(usize, &str)| spans.len() >= *runs && text::width(says) <= room;
        if let Some((_, says)) = wordings.into_iter().find(fits) {
            spans.push(Span::styled(says, self.theme.dim));
        }
        let mut parts = self.roof_names();
        for (name, format) in parts.iter_mut().skip(1).zip([" (f32)", " (f16)"]) {
            name.push_str(format);
        }
        let meet = format!("they meet at {} FLOP/byte", number(ridge(self.roof)));
        let room = usize::from(width).saturating_sub(7);
        parts.push(meet);
        let roofs = joined(parts.iter().map(String::as_str), room, " · ");
        let mut lines = vec![Line::from(spans)];
        if !roofs.is_empty() {
            let roofs = format!("roofs: {roofs}");
            lines.push(Line::styled(roofs, self.theme.reference));
        }
        lines
    }

    /// The operations whose work and arithmetic are known, the longest first.
    fn marks(&self) -> Vec<Mark> {
        let usable = |value: &f64| *value > 0.0 && value.is_finite();
        let mark = |(slot, it): &(Slot, KernelRow)| {
            let reached = reached(it, Some(self.roof));
            let x = reached.intensity.filter(usable)?;
            let y = reached.flops_per_s.filter(usable)?;
            Some(Mark {
                at: (x, y),
                letter: self.letter(*slot, it)?,
                name: kernel_rows::name(it),
                shows_name: false,
                style: self.theme.slot(*slot),
            })
        };
        self.shown.iter().filter_map(mark).collect()
    }

    /// The same for the back of a room: those that the beat asks for first and with their names, as have a few of the longest others.
    fn presented(&self, cue: &Beat, mut named: usize) -> Vec<Mark> {
        let mut marks = self.marks();
        let point = self.theme.symbols.live.chars().next().unwrap_or('o');
        for mark in &mut marks {
            mark.letter = point;
            mark.shows_name = !cue.row.is_empty() && cue.asks(&mark.name);
            if !mark.shows_name {
                mark.style = self.theme.dim;
                mark.shows_name = named > 0;
                named = named.saturating_sub(1);
            }
        }
        marks.sort_by_key(|mark| !(cue.row.is_empty() || cue.asks(&mark.name)));
        marks
    }

    /// Draws these below the roofs.
    fn plot(&self, marks: Vec<Mark>) -> impl Fn(Rect, &mut Buffer) + use<'a> {
        let plot = RoofPlot {
            marks,
            roofs: self.roofs(),
            names: self.roof_names(),
            theme: self.theme,
        };
        move |area, buffer| plot.draw(area, buffer)
    }

    /// The headings of the list, and a line for each operation.
    fn list(&self, width: usize) -> (Line<'static>, Vec<Line<'static>>) {
        let longest = self.names.iter().map(|it| text::width(it)).max();
        let name = longest.unwrap_or(0).clamp(12, 24);
        let mut room = width.saturating_sub(2 + name);
        let columns = Columns::fit(COLUMNS, &ORDER, &mut room);
        let head = format!("  {}{}", text::left("operation", name), columns.heads());
        let line = |(slot, it): &(Slot, KernelRow)| self.line(*slot, it, name, &columns);
        let lines = self.shown.iter().map(line).collect();
        (Line::styled(head, self.theme.dim), lines)
    }

    /// An operation of the list.
    fn line(&self, slot: Slot, it: &KernelRow, name: usize, columns: &Columns<6>) -> Line<'static> {
        let theme = self.theme;
        let reached = reached(it, Some(self.roof));
        let bound = match (reached.memory_bound, reached.share) {
            // Faster than memory allows: what it read lay in a cache.
            (Some(true), Some(share)) if share > 1.0 => "cache",
            (Some(true), _) => "memory",
            (Some(false), _) => "compute",
            (None, _) => "-",
        };
        let plain = Style::new();
        let giga = |it: f64| number(it / 1e9);
        let share = |it: f64| format!("{} %", percent(100.0 * it));
        let figures = [
            (ms(it.ms), theme.strong),
            (or_dash(reached.intensity, number), plain),
            (or_dash(reached.flops_per_s, giga), plain),
            (or_dash(reached.bytes_per_s, giga), plain),
            (or_dash(reached.share, share), theme.strong),
            (bound.to_owned(), theme.dim),
        ];
        let letter = self.letter(slot, it).unwrap_or(' ');
        let mut spans = vec![
            Span::styled(format!("{letter} "), theme.slot(slot)),
            Span::raw(text::name(&kernel_rows::name(it), name)),
        ];
        spans.extend(columns.cells(figures));
        Line::from(spans)
    }
}
