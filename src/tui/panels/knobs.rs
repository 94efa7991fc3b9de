//! The knobs, in the lesson's place: what the stage offers, in A and in B; under the list what the selected one does, which
//! values it takes and when a change counts. Where the panel covers the others it also shows what comes of it.

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

/// More knobs than these stand under headings.
const FEW: usize = 12;
/// Behind a knob whose change starts B again.
const AGAIN: &str = " restart";
/// Behind a knob that does nothing now, or not with each value.
const IDLE: &str = " idle";
/// A panel with fewer rows has one line about a knob, two where its values need them, and one about what comes of it.
const LOW: u16 = 14;

pub fn content<'a>(app: &'a App, theme: &'a Theme, area: Rect) -> Content<'a> {
    let comparison = &app.shown_bench().comparison;
    let differ = match comparison.rows().filter(KnobRow::differs).count() {
        0 => "B is the same as A".to_owned(),
        1 => "1 differs".to_owned(),
        many => format!("{many} differ"),
    };
    // Not every row is on a small screen.
    let (row, all) = (comparison.row + 1, comparison.offers.len());
    let columns = usize::from(area.width);
    let low = area.height < LOW;
    let mut head = ProseWriter::new(app, theme, columns);
    if app.view.screen_size() <= ScreenSize::Compact && !(low && comparison.problem.is_some()) {
        let whole = effect(app, theme, true);
        match low && text::width_of(&whole) > columns {
            true => head.runs(&effect(app, theme, false), "", ""),
            false => head.runs(&whole, "", ""),
        }
    }
    if let Some(problem) = &comparison.problem {
        let mark = (theme.symbols.warning, theme.bad);
        let said = format!(
            "{problem}. B keeps its last values; the file is not written until it can be read"
        );
        head.marked(mark, &said, theme.bad);
    }
    let mut foot = ProseWriter::new(app, theme, columns);
    let known = &app.shown_run().shown().description;
    if let Some(said) = known
        .long_step(&comparison.config_b)
        .filter(|_| !comparison.hidden)
    {
        foot.marked(
            (theme.symbols.warning, theme.warning),
            &format!("B: {said}"),
            theme.warning,
        );
    }
    about(comparison, low, &mut foot);
    let mut list = list(app, theme, columns);
    list.aside = format!("{row} of {all} · {differ}");
    (list.head, list.foot) = (head.lines, foot.lines);
    list.mark(comparison.row);
    list
}

/// The row of the knobs on this row of the screen, the panel being in `area`.
pub fn row_at(y: u16, area: Rect, app: &App) -> Option<usize> {
    let (inner, theme) = (inside(area), Theme::plain(app.view.markers));
    content(app, &theme, inner).entry_at(y, inner)
}

/// The result of the changes so far: the figures that a learner would look for in the covered panels, or the losses alone.
fn effect(app: &App, theme: &Theme, all: bool) -> Vec<Span<'static>> {
    let mut spans = Vec::new();
    for (slot, run) in slots(app) {
        let mut said = Vec::new();
        if let Some((_, loss)) = run.own_loss() {
            said.push(format!("loss {}", number(loss)));
        }
        if let Some(it) = run.throughput.as_ref().filter(|_| all) {
            said.push(format!("{}/s", number(it.samples_per_s)));
        }
        let parity = run.evidence.as_ref().and_then(|it| it.parity);
        if let Some(parity) = parity.filter(|_| all) {
            said.push(format!("parity {}", number(parity.0)));
        }
        if said.is_empty() {
            said.push("starts".to_owned());
        }
        let gap = if spans.is_empty() { "" } else { " · " };
        spans.push(Span::raw(gap));
        spans.push(Span::styled(slot.into_str(), theme.slot(slot)));
        spans.push(Span::styled(format!(" {}", said.join(", ")), theme.text));
    }
    if spans.is_empty() {
        spans.push(Span::styled("the run is starting", theme.dim));
    }
    spans
}

/// What the selected knob does, what it takes, when a change counts, and why the last one could not be.
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
    let when = match Comparison::starts_again(knob) {
        true => "A change restarts B at step 0, from its seed.",
        false => "A change takes effect at the next step.",
    };
    let (name, allowed) = (format!("{}: ", knob.name()), knob.allowed());
    if low {
        let about = row.idle.unwrap_or(knob.about).trim_end_matches('.');
        let wordings = [
            format!("{about}. Takes {allowed}. {when}"),
            format!("{about}. Takes {allowed}"),
            format!("takes {allowed}"),
        ];
        let fits = |said: &&String| text::width(&name) + text::width(said) <= w.columns;
        // What it takes is never cut: where it is too long for one line, it goes on below.
        let said = wordings.iter().find(fits).unwrap_or(&wordings[2]);
        let runs = [
            Span::styled(&name, theme.key),
            Span::styled(said, theme.text),
        ];
        return w.runs(&runs, "", "");
    }
    w.item(&name, theme.key, knob.about);
    w.item("takes ", theme.dim, &allowed);
    if let Some(why) = row.idle {
        w.plain(why, theme.warning);
    }
    w.dim(when);
}

/// A line for each knob where A and B fit beside the name, else two.
fn list<'a>(app: &App, theme: &Theme, columns: usize) -> Content<'a> {
    let comparison = &app.shown_bench().comparison;
    let typed = app.view.value.as_ref().map(|text| format!("{text}_"));
    let shown = |value: &Option<String>| value.clone().unwrap_or_else(|| "?".to_owned());
    let widest = |of: &dyn Fn(&KnobRow<'_>) -> usize| {
        comparison.rows().map(|row| of(&row)).max().unwrap_or(0)
    };
    let name = widest(&|row| text::width(row.knob.name()));
    let a = widest(&|row| text::width(&shown(&row.a))).max(1);
    let b = widest(&|row| text::width(&shown(&row.b))).max(1);
    let wide = 2 + name + 2 + a + 2 + b + 4 <= columns;
    let mut list = Content::titled("knobs", Vec::new());
    if wide {
        let head = format!("  {}  {}    B, yours", " ".repeat(name), text::left("A", a));
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
        let (of_a, mut of_b) = (shown(&row.a), shown(&row.b));
        if let Some(typed) = typed.as_ref().filter(|_| selected) {
            of_b.clone_from(typed);
        }
        let style = |style| theme.among(selected, style);
        let yours = if row.differs() { theme.b } else { theme.dim };
        let named = format!("{mark} {}  ", text::name(row.knob.name(), name));
        let mut line = vec![Span::styled(named, style(theme.text))];
        if wide {
            let of_a = format!("{}  ", text::name(&of_a, a));
            line.push(Span::styled(of_a, style(theme.a)));
        }
        let of_b = text::name(&of_b, b);
        let of_b = match selected {
            true => format!("< {of_b} >"),
            false => format!("  {of_b}  "),
        };
        line.push(Span::styled(of_b, style(yours)));
        let again = Comparison::starts_again(row.knob);
        if again && text::width_of(&line) + AGAIN.len() <= columns {
            line.push(Span::styled(AGAIN, theme.dim));
        }
        if row.idle.is_some() && text::width_of(&line) + IDLE.len() <= columns {
            line.push(Span::styled(IDLE, theme.warning));
        }
        list.entry(at, Line::from(line));
        if !wide && (row.differs() || selected) {
            let said = Span::styled(format!("    in A: {of_a}"), style(theme.a));
            list.entry(at, Line::from(said));
        }
    }
    list
}
