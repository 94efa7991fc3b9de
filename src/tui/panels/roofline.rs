//! The roofline: how fast each operation of the profiled step ran, against what this device was measured to allow at its
//! arithmetic intensity. An operation has one letter, small where A ran it and a capital where B did; the list beside it
//! says which, the longest first. A letter above the slope worked on what lay in a cache: the roof is that of memory.

mod plot;

use plot::Mark;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Wrap};

use crate::app::App;
use crate::panel::Panel;
use crate::profile::operations::{OperationRow, operations};
use crate::profile::roofline::{bounding, ridge};
use crate::protocol::{Roof, Slot};
use crate::tui::surface::{
    Surface, height, joined, missing, slots, take_bottom, take_left, take_top,
};
use crate::tui::table::{FigureColumn, cells, fit, heads, or_dash};
use crate::tui::text;
use crate::tui::theme::Theme;
use crate::units::{ms, number, percent, rate};

/// How to read it.
pub const READING: &[&str] = &[
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

pub fn draw(s: &mut Surface<'_, '_>) -> u16 {
    let (app, theme) = (s.app, s.theme);
    let roof = slots(app).find_map(|(_, run)| run.started.as_ref()?.roof.as_deref());
    let aside = roof.map_or(String::new(), |it| {
        let load = it.load().map_or("", |_| " under load");
        format!("{} clock · peaks measured {}{load}", it.clock, it.date)
    });
    s.open(Panel::Roofline, &aside);
    let rows = match Rows::of(app, roof, theme) {
        Ok(rows) => rows,
        Err(why) => return empty(s, why),
    };
    let mut legend = rows.legend(app, s.area.width);
    legend.truncate(usize::from(s.area.height / 5).max(1));
    let top = take_top(&mut s.area, height(legend.len()));
    s.put(top, legend);
    let (plot, mut list) = divide(s.area);
    let buffer = s.frame.buffer_mut();
    plot::draw(
        &rows.marks(),
        &rows.roofs(),
        &rows.roof_names(),
        plot,
        theme,
        buffer,
    );
    if list.height == 0 {
        return 0;
    }
    if list.height < LOW {
        let names = rows.letters(usize::from(list.width));
        return s.at(list).show_panel(Panel::Roofline, names);
    }
    let longest = rows.names.iter().map(|it| text::width(it)).max();
    let name = longest.unwrap_or(0).clamp(12, 24);
    let mut room = usize::from(list.width).saturating_sub(2 + name);
    let widths = fit(&COLUMNS, &ORDER, &mut room);
    let head = format!(
        "  {}{}",
        text::left("operation", name),
        heads(&COLUMNS, &widths)
    );
    let top = take_top(&mut list, 1);
    s.put(top, Line::styled(head, theme.dim));
    let shown = rows.shown.iter();
    let lines = shown.map(|(slot, it)| rows.line(*slot, it, name, &widths));
    s.at(list).show_panel(Panel::Roofline, lines.collect())
}

/// The plot alone, the operations in question with their names.
pub fn draw_bare(s: &mut Surface<'_, '_>) -> u16 {
    let (app, theme) = (s.app, s.theme);
    let Some(cue) = app.cue() else { return 0 };
    let roof = slots(app).find_map(|(_, run)| run.started.as_ref()?.roof.as_deref());
    let rows = match Rows::of(app, roof, theme) {
        Ok(rows) => rows,
        Err(why) => return empty(s, why),
    };
    let mut marks = rows.marks();
    let point = theme.symbols.live.chars().next().unwrap_or('o');
    let mut unnamed = usize::from(s.area.height / 6);
    for mark in &mut marks {
        let asked = !cue.row.is_empty() && cue.asks(&mark.name);
        // Those that the beat asks for have their names, and a few of the longest.
        if !asked {
            mark.style = theme.dim;
            mark.shows_name = unnamed > 0;
            unnamed = unnamed.saturating_sub(1);
        }
        (mark.letter, mark.shows_name) = (point, mark.shows_name || asked);
    }
    // They are placed first.
    marks.sort_by_key(|mark| !(cue.row.is_empty() || cue.asks(&mark.name)));
    let area = s.area;
    let buffer = s.frame.buffer_mut();
    plot::draw(
        &marks,
        &rows.roofs(),
        &rows.roof_names(),
        area,
        theme,
        buffer,
    );
    0
}

fn empty(s: &mut Surface<'_, '_>, why: &'static str) -> u16 {
    let why = Paragraph::new(missing(why, s.theme));
    s.frame.render_widget(why.wrap(Wrap { trim: true }), s.area);
    0
}

fn why_empty(app: &App, calibrated: bool) -> &'static str {
    let mut runs = slots(app).map(|(_, run)| run).peekable();
    if runs.peek().is_none() {
        return "nothing has run yet";
    }
    if !calibrated {
        return "this device's peaks are not known. The log says why; `perflings doctor --calibrate` tries again";
    }
    match runs.find_map(|run| run.kernels.as_ref()?.reason.as_deref()) {
        Some(_) => "the profiler saw no operation on this device",
        None => "no step was profiled yet",
    }
}

/// The chart, and the list beside or below it where there is room.
fn divide(mut area: Rect) -> (Rect, Rect) {
    if area.width >= WIDE {
        let columns = (area.width / 2).clamp(LIST.0, LIST.1);
        let columns = area.width - columns - 1;
        let plot = take_left(&mut area, columns);
        take_left(&mut area, 1);
        return (plot, area);
    }
    let rows = match area.height {
        TALL.. => area.height * 2 / 5,
        SHORT.. => LOW - 1,
        _ => 0,
    };
    let list = take_bottom(&mut area, rows);
    (area, list)
}

/// The figures of an operation as they stand side by side, and their places in the order of importance.
#[rustfmt::skip]
const COLUMNS: [FigureColumn; 6] = [
    FigureColumn { head: "ms", wide: 8 },
    FigureColumn { head: "FLOP/B", wide: 8 },
    FigureColumn { head: "GFLOP/s", wide: 9 },
    FigureColumn { head: "GB/s", wide: 8 },
    FigureColumn { head: "roof", wide: 7 },
    FigureColumn { head: "binds", wide: 8 },
];
const ORDER: [usize; 6] = [0, 4, 5, 2, 1, 3];

/// The operations of both slots, and the roofs above them.
struct Rows<'a> {
    shown: Vec<(Slot, OperationRow)>,
    names: Vec<String>,
    roof: &'a Roof,
    theme: &'a Theme,
}

impl<'a> Rows<'a> {
    /// Every operation of each slot, the longest first, or why there is none.
    fn of(app: &App, roof: Option<&'a Roof>, theme: &'a Theme) -> Result<Self, &'static str> {
        let mut shown: Vec<(Slot, OperationRow)> = Vec::new();
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
        for name in shown.iter().map(|(_, it)| it.name()) {
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
    fn letter(&self, slot: Slot, it: &OperationRow) -> Option<char> {
        let at = self.names.iter().position(|known| *known == it.name())?;
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
                let name = format!("{letters}: {}   ", app.slot_name(slot));
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
        let roofs = Line::styled(format!("roofs: {roofs}"), self.theme.reference);
        vec![Line::from(spans), roofs]
    }

    /// The operations whose work and arithmetic are known, the longest first.
    fn marks(&self) -> Vec<Mark> {
        let usable = |value: &f64| *value > 0.0 && value.is_finite();
        let mark = |(slot, it): &(Slot, OperationRow)| {
            let reached = it.reached(Some(self.roof));
            let x = reached.intensity.filter(usable)?;
            let y = reached.flops_per_s.filter(usable)?;
            Some(Mark {
                at: (x, y),
                letter: self.letter(*slot, it)?,
                name: it.name(),
                shows_name: false,
                style: self.theme.slot(*slot),
            })
        };
        self.shown.iter().filter_map(mark).collect()
    }

    /// An operation of the list.
    fn line(&self, slot: Slot, it: &OperationRow, name: usize, widths: &[usize]) -> Line<'static> {
        let theme = self.theme;
        let reached = it.reached(Some(self.roof));
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
            Span::raw(text::name(&it.name(), name)),
        ];
        spans.extend(cells(figures, widths));
        Line::from(spans)
    }
}
