//! The panel of the knobs stands in the place of the lesson. It lists the knobs that the stage offers with their values in A and in B;
//! below the list it says what the selected knob does, which values it takes and when a change takes effect. Where it covers the other
//! panels it also shows the result of the changes.

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

/// A list of more knobs than this has headings.
const FEW: usize = 12;
/// The mark of a knob whose change starts B again.
const AGAIN: &str = " restart";
/// The mark of a knob that has no effect now, or not with each value.
const IDLE: &str = " idle";
/// A panel with fewer rows has one or two lines about the selected knob and one line about the result of the changes.
const LOW: u16 = 14;

pub fn content<'a>(app: &'a App, theme: &'a Theme, area: Rect) -> Content<'a> {
    let comparison = &app.shown_bench().comparison;
    let differ = match comparison.rows().filter(KnobRow::differs).count() {
        0 => "B is the same as A".to_owned(),
        1 => "1 differs".to_owned(),
        count => format!("{count} differ"),
    };
    let columns = usize::from(area.width);
    let low = area.height < LOW;
    let mut head = ProseWriter::new(app, theme, columns);
    if app.view.screen_size() <= ScreenSize::Compact && !(low && comparison.problem.is_some()) {
        let mut effect = result(app, theme, true);
        if low && text::width_of(&effect) > columns {
            effect = result(app, theme, false);
        }
        head.runs(&effect, "", "");
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
    about(comparison, low, &mut foot);
    let mut list = list(app, theme, columns);
    // The number of rows is shown because a small screen does not show them all.
    let (row, all) = (comparison.row + 1, comparison.offers.len());
    list.aside = format!("{row} of {all} · {differ}");
    list.head = head.lines;
    list.foot = foot.lines;
    list.mark(comparison.row);
    list
}

/// Returns the knob at row `y` of the screen, when the panel is in `area`; `None` where no knob is.
pub fn row_at(y: u16, area: Rect, app: &App) -> Option<usize> {
    let (inner, theme) = (inside(area), Theme::plain(app.view.markers));
    content(app, &theme, inner).entry_at(y, inner)
}

/// Returns the result of the changes so far: the losses and, with `all`, the other figures that a learner would look for in the covered
/// panels.
fn result(app: &App, theme: &Theme, all: bool) -> Vec<Span<'static>> {
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

/// Says what the selected knob does, which values it takes, when a change takes effect, and why the last change was refused.
fn about(comparison: &Comparison, low: bool, w: &mut ProseWriter<'_>) {
    let theme = w.theme;
    let Some((knob, row)) = comparison.knob().zip(comparison.rows().nth(comparison.row)) else {
        return;
    };
    if !low {
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
    let (name, allowed) = (format!("{}: ", knob.name()), knob.allowed());
    if low {
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

/// Returns the list of the knobs: a line for each knob where the values in A and B fit beside its name, else two lines.
fn list<'a>(app: &App, theme: &Theme, columns: usize) -> Content<'a> {
    let comparison = &app.shown_bench().comparison;
    let typed = app.view.value.as_ref().map(|text| format!("{text}_"));
    let shown = |value: &Option<String>| value.clone().unwrap_or_else(|| "?".to_owned());
    let widest = |width: &dyn Fn(&KnobRow<'_>) -> usize| {
        comparison.rows().map(|row| width(&row)).max().unwrap_or(0)
    };
    let name_width = widest(&|row| text::width(row.knob.name()));
    let a_width = widest(&|row| text::width(&shown(&row.a))).max(1);
    let b_width = widest(&|row| text::width(&shown(&row.b))).max(1);
    let wide = 2 + name_width + 2 + a_width + 2 + b_width + 4 <= columns;
    let mut list = Content::titled("knobs", Vec::new());
    if wide {
        let indent = " ".repeat(name_width);
        let head = format!("  {indent}  {}    B, yours", text::left("A", a_width));
        list.entry(None, Line::styled(head, theme.dim));
    }
    let mut section = "";
    for (at, row) in comparison.rows().enumerate() {
        let head = row.knob.path.split_once('.').map_or("", |(head, _)| head);
        if comparison.offers.len() > FEW && head != section {
            list.entry(None, Line::styled(head.to_owned(), theme.heading));
            section = head;
        }
        let selected = at == comparison.row;
        let mark = match (selected, row.refused.is_some()) {
            (true, _) => theme.symbols.pointer,
            (false, true) => theme.symbols.warning,
            (false, false) => " ",
        };
        let value_a = shown(&row.a);
        let value_b = match &typed {
            Some(typed) if selected => typed.clone(),
            _ => shown(&row.b),
        };
        let name = format!("{mark} {}  ", text::name(row.knob.name(), name_width));
        let mut line = vec![Span::styled(name, theme.text)];
        if wide {
            let cell_a = format!("{}  ", text::name(&value_a, a_width));
            line.push(Span::styled(cell_a, theme.a));
        }
        let mut cell_b = text::name(&value_b, b_width);
        cell_b = if selected {
            format!("< {cell_b} >")
        } else {
            format!("  {cell_b}  ")
        };
        let style_b = if row.differs() { theme.b } else { theme.dim };
        line.push(Span::styled(cell_b, style_b));
        let again = Comparison::needs_restart(row.knob);
        if again && text::width_of(&line) + AGAIN.len() <= columns {
            line.push(Span::styled(AGAIN, theme.dim));
        }
        if row.idle.is_some() && text::width_of(&line) + IDLE.len() <= columns {
            line.push(Span::styled(IDLE, theme.warning));
        }
        list.entry(at, Line::from(line));
        if !wide && (row.differs() || selected) {
            let line_a = format!("    in A: {value_a}");
            list.entry(at, Line::styled(line_a, theme.a));
        }
    }
    list
}
