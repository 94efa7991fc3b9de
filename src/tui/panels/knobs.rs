//! The panel of the knobs stands in the place of the lesson. It lists the knobs that the stage offers with their values in A and in B. Below
//! the list it tells what the selected knob does, which values it takes and when a change takes effect.
//!
//! ```text
//! ╭ knobs ───────────────────── 6 of 6 · 1 differs ╮
//! │   init             library-default   restart   │
//! │   norm             fused                       │
//! │     in A: composed                             │
//! │ ▸ learning-rate  < 0.0003          >           │
//! │ ────────────────────────────────────────────── │
//! │ learning-rate: AdamW's learning rate           │
//! │ takes a number above 0, such as 1e-4 or 1e-3   │
//! │ A change takes effect at the next step.        │
//! ╰────────────────────────────────────────────────╯
//! ```
//!
//! A wide panel has one line for each knob, with a column for A. On a small screen, where the panel covers the others, it also shows the losses
//! and rates of both runs.

use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::content::Content;
use crate::app::comparison::{Comparison, KnobRow};
use crate::app::{App, ScreenSize};
use crate::tui::prose::ProseWriter;
use crate::tui::surface::{inside, slots};
use crate::tui::text;
use crate::tui::theme::Theme;
use protocol::units::number;

/// The most knobs of a list without headings.
const MAX_WITHOUT_HEADINGS: usize = 12;
/// The mark of a knob whose change starts B again.
const RESTART: &str = " restart";
/// The mark of a knob that has no effect now, or not with each value.
const IDLE: &str = " idle";
/// The rows from which a panel is high. A lower one has one or two lines about the selected knob and one line about the runs.
const HIGH: u16 = 14;

pub fn content<'a>(app: &'a App, theme: &'a Theme, area: Rect) -> Content<'a> {
    let comparison = &app.shown_bench().comparison;
    let differ = match comparison.rows().filter(KnobRow::differs).count() {
        0 => "B is the same as A".to_owned(),
        1 => "1 differs".to_owned(),
        count => format!("{count} differ"),
    };
    let columns = usize::from(area.width);
    let is_low = area.height < HIGH;
    let mut head = ProseWriter::new(app, theme, columns);
    if app.view.screen_size() <= ScreenSize::Compact && !(is_low && comparison.problem.is_some()) {
        let mut figures = figures_of_runs(app, theme, true);
        if is_low && text::width_of(&figures) > columns {
            figures = figures_of_runs(app, theme, false);
        }
        head.runs(&figures, "", "");
    }
    if let Some(problem) = &comparison.problem {
        let mark = (theme.symbols.warning, theme.bad);
        let text = format!(
            "{problem}. B keeps its last values; the file is not written until it can be read"
        );
        head.marked(mark, &text, theme.bad);
    }
    let mut foot = ProseWriter::new(app, theme, columns);
    let run = &app.shown_run().shown().description;
    if !comparison.hidden
        && let Some(warning) = run.long_step(&comparison.config_b)
    {
        let mark = (theme.symbols.warning, theme.warning);
        foot.marked(mark, &format!("B: {warning}"), theme.warning);
    }
    about(comparison, is_low, &mut foot);
    let mut list = list(app, theme, columns);
    // The number of rows is shown because a small screen does not show them all.
    let row = comparison.row + 1;
    let count = comparison.offers.len();
    list.aside = format!("{row} of {count} · {differ}");
    list.head = head.lines;
    list.foot = foot.lines;
    list.mark(comparison.row);
    list
}

/// Returns the index of the knob at row `y` of the screen, for a panel in `area`. `None` where no knob is.
pub fn row_at(y: u16, area: Rect, app: &App) -> Option<usize> {
    let inner = inside(area);
    let theme = Theme::plain(app.view.markers);
    content(app, &theme, inner).entry_at(y, inner)
}

/// Returns the loss of each run and, with `all`, its rate and parity, which the panel covers.
fn figures_of_runs(app: &App, theme: &Theme, all: bool) -> Vec<Span<'static>> {
    let mut spans = Vec::new();
    for (slot, run) in slots(app) {
        let mut figures = Vec::new();
        if let Some((_, loss)) = run.own_loss() {
            figures.push(format!("loss {}", number(loss)));
        }
        if all && let Some(throughput) = &run.throughput {
            figures.push(format!("{}/s", number(throughput.samples_per_s)));
        }
        let parity = run.evidence.as_ref().and_then(|evidence| evidence.parity);
        if all && let Some(parity) = parity {
            figures.push(format!("parity {}", number(parity.0)));
        }
        if figures.is_empty() {
            figures.push("starts".to_owned());
        }
        let gap = if spans.is_empty() { "" } else { " · " };
        spans.push(Span::raw(gap));
        spans.push(Span::styled(slot.into_str(), theme.slot(slot)));
        spans.push(Span::styled(format!(" {}", figures.join(", ")), theme.text));
    }
    if spans.is_empty() {
        spans.push(Span::styled("the run is starting", theme.dim));
    }
    spans
}

/// Writes what the selected knob does, which values it takes, when a change takes effect, and why the last change was refused.
fn about(comparison: &Comparison, is_low: bool, w: &mut ProseWriter<'_>) {
    let theme = w.theme;
    let Some((knob, row)) = comparison.knob().zip(comparison.rows().nth(comparison.row)) else {
        return;
    };
    if !is_low {
        w.line(theme.symbols.rule.repeat(w.columns), theme.border);
    }
    if let Some(why) = row.refused {
        w.marked((theme.symbols.warning, theme.bad), why, theme.bad);
    }
    let when = if Comparison::needs_restart(knob) {
        "A change restarts B at step 0, from its seed."
    } else {
        "A change takes effect at the next step."
    };
    let name = format!("{}: ", knob.name());
    let allowed = knob.allowed();
    if is_low {
        let about = row.idle.unwrap_or(knob.about).trim_end_matches('.');
        let parts = vec![
            (0, Span::styled(name, theme.key)),
            (0, Span::styled(format!("takes {allowed}"), theme.text)),
            (1, Span::styled(format!(". {about}"), theme.text)),
            (2, Span::styled(format!(". {when}"), theme.text)),
        ];
        // The values are never cut: where they are too long for one line, they wrap.
        let line = text::ranked(parts, w.columns);
        return w.runs(&line.spans, "", "");
    }
    w.item(&name, theme.key, knob.about);
    w.item("takes ", theme.dim, &allowed);
    if let Some(why) = row.idle {
        w.plain(why, theme.warning);
    }
    w.dim(when);
}

/// The widths of a line of the list.
struct Widths {
    name: usize,
    a: usize,
    b: usize,
    /// The width of the panel.
    panel: usize,
    /// True if the value in A fits on the line, beside the name and the value in B.
    has_a: bool,
}

/// Returns the width of the widest text, at least 1.
fn widest<'a>(texts: impl Iterator<Item = &'a str>) -> usize {
    texts.map(text::width).max().unwrap_or(0).max(1)
}

/// Returns a value as the list shows it. A hidden value is a question mark.
fn shown(value: &Option<String>) -> &str {
    value.as_deref().unwrap_or("?")
}

/// Returns the list of the knobs: a line for each knob where the values in A and B fit beside its name, else two lines.
fn list<'a>(app: &App, theme: &Theme, columns: usize) -> Content<'a> {
    let comparison = &app.shown_bench().comparison;
    let rows: Vec<KnobRow<'_>> = comparison.rows().collect();
    let name = widest(rows.iter().map(|row| row.knob.name()));
    let a = widest(rows.iter().map(|row| shown(&row.a)));
    let b = widest(rows.iter().map(|row| shown(&row.b)));
    let widths = Widths {
        name,
        a,
        b,
        panel: columns,
        has_a: 2 + name + 2 + a + 2 + b + 4 <= columns,
    };
    let mut list = Content::titled("knobs", Vec::new());
    if widths.has_a {
        let indent = " ".repeat(widths.name);
        let head = format!("  {indent}  {}    B, yours", text::left("A", widths.a));
        list.entry(None, Line::styled(head, theme.dim));
    }
    let mut heading = "";
    for (index, row) in rows.iter().enumerate() {
        let (section, _) = row.knob.path.split_once('.').unwrap_or_default();
        if comparison.offers.len() > MAX_WITHOUT_HEADINGS && section != heading {
            list.entry(None, Line::styled(section.to_owned(), theme.heading));
            heading = section;
        }
        let selected = index == comparison.row;
        let typed = app.view.value.as_deref();
        list.entry(index, knob_line(row, selected, typed, &widths, theme));
        if !widths.has_a && (row.differs() || selected) {
            let line_a = format!("    in A: {}", shown(&row.a));
            list.entry(index, Line::styled(line_a, theme.a));
        }
    }
    list
}

/// Returns the line of a knob. `typed` is the value that the learner is typing for the selected knob.
fn knob_line(
    row: &KnobRow<'_>,
    selected: bool,
    typed: Option<&str>,
    widths: &Widths,
    theme: &Theme,
) -> Line<'static> {
    let mark = if selected {
        theme.symbols.pointer
    } else if row.refused.is_some() {
        theme.symbols.warning
    } else {
        " "
    };
    let name = format!("{mark} {}  ", text::name(row.knob.name(), widths.name));
    let mut spans = vec![Span::styled(name, theme.text)];
    if widths.has_a {
        let cell_a = format!("{}  ", text::name(shown(&row.a), widths.a));
        spans.push(Span::styled(cell_a, theme.a));
    }
    let value_b = match typed {
        Some(typed) if selected => format!("{typed}_"),
        _ => shown(&row.b).to_owned(),
    };
    let [before, after] = if selected { ["< ", " >"] } else { ["  ", "  "] };
    let cell_b = format!("{before}{}{after}", text::name(&value_b, widths.b));
    let style_b = if row.differs() { theme.b } else { theme.dim };
    spans.push(Span::styled(cell_b, style_b));
    let restarts = Comparison::needs_restart(row.knob);
    for (is_shown, mark, style) in [
        (restarts, RESTART, theme.dim),
        (row.idle.is_some(), IDLE, theme.warning),
    ] {
        if is_shown && text::width_of(&spans) + mark.len() <= widths.panel {
            spans.push(Span::styled(mark, style));
        }
    }
    Line::from(spans)
}
