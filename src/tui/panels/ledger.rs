//! The panel of the ledger shows whether the parts of one step add up to the step: forward, backward, optimizer and the unaccounted rest,
//! with its sign. A rest of more than five percent is marked: the time was spent elsewhere, or the work was not done when its time was
//! taken.
//!
//! ```text
//! ● A broken  █▓▓▒░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░ 177.0 ms
//! forward       0.200 ms     0.1 %
//! …
//! unaccounted  +176.2 ms   +99.5 %  ░░░░░░░░░░░░░░░░░░░░░░
//! ✗ time is missing from the phases: 0.800 ms of 177.0 ms
//! submitted 0.800 ms · device 174.3 ms · synced 177.0 ms
//! ```
//!
//! Where rows are short, the three clocks of the step shrink from a table to a line.

use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::content::{Block, Content, Figure, Picture};
use crate::app::App;
use crate::tui::surface::{measured, slot_label};
use crate::tui::text;
use crate::tui::theme::Theme;
use protocol::PhaseTimes;
use protocol::config::RunConfig;
use protocol::story::{PhaseName, RunStory};
use protocol::thresholds::PHASES_MISS_STEP;
use protocol::units::{duration, or_dash, percent};

pub(super) const EXPLANATION: &[&str] = &[
    "Submitted: work is queued; device: it computes; synced: it is done. \
     Unaccounted = step - (forward + backward + optimizer); over 5 % is marked. \
     A phase's timer runs until the calls return: it contains the work only where it then waits for \
     the device (a sync).",
    "Figures of one step. The header's figure is a mean over many steps, without the extremes.",
];

/// The width of a run's name.
const NAME_WIDTH: usize = 11;

/// Returns the reason why a run has no ledger.
fn missing(run: &RunStory) -> &'static str {
    let description = &run.description;
    let records = description.config.as_ref().is_some_and(RunConfig::records);
    if records && !description.on_cpu() {
        "a step that is replayed as a whole has no phases; set launches = \"each-step\" to see them"
    } else {
        "no step has reported its phases yet"
    }
}

pub(super) fn content<'a>(app: &'a App, theme: &'a Theme, area: Rect) -> Content<'a> {
    let Some(ledgers) = measured(app, |run| run.ledger) else {
        return Content::missing(missing(app.shown_run().shown()), theme, area);
    };
    let (slot, reading) = ledgers.shown;
    let name = app.shown_run().slot_name(slot);
    let mut content = Content::with_aside(format!("{name} · step {}", reading.step));
    let run = app.shown_run().slot(slot);
    let phases = &reading.phases;
    let label = vec![slot_label(slot, app, theme)];
    content.lines([stacked_bar(label, phases, area.width, theme)]);
    let waits_once = run.description.waits_once();
    for (name, ms) in phases.parts() {
        content.figure(None, part(name, ms, phases.step, waits_once, theme));
    }
    let sum = sum(phases, waits_once, area.width, theme);
    let others: Vec<Line<'static>> = ledgers
        .all
        .iter()
        .filter(|(other, _)| *other != slot)
        .map(|(other, reading)| {
            let step = Span::styled(format!(", step {}", reading.step), theme.dim);
            let label = vec![slot_label(*other, app, theme), step];
            stacked_bar(label, &reading.phases, area.width, theme)
        })
        .collect();
    let taken = 1 + phases.parts().count() + sum.len() + others.len();
    let free_rows = usize::from(area.height).saturating_sub(taken);
    content.add(None, Block::Lines(sum));
    if app.reading().withholds("clocks") {
        // The clocks would show where the time goes.
    } else if free_rows >= 4 {
        // Three clocks and their heading, with empty lines around them where rows are free.
        content.lines((free_rows > 5).then(Line::default));
        content.lines(clocks(run, area.width, theme));
        content.lines((free_rows > 5 && !others.is_empty()).then(Line::default));
    } else {
        content.lines(short_clocks(run, area.width, theme));
    }
    content.lines(others);
    content
}

/// Returns the index of a part's pattern in `Symbols::fills`, and of its style in `Theme::phases`.
fn filling(name: PhaseName) -> usize {
    match name {
        PhaseName::Forward => 0,
        PhaseName::Backward => 1,
        PhaseName::Optimizer => 2,
        PhaseName::Data | PhaseName::Communication | PhaseName::Rest => 3,
    }
}

/// Returns the figure of a phase or of the unaccounted time. If the host `waits_once` a step, the phases are times of submitting, so that
/// unaccounted time of any size is right.
fn part(name: PhaseName, ms: f64, step: f64, waits_once: bool, theme: &Theme) -> Figure {
    let filling = filling(name);
    let share = ms / step;
    let is_rest = name == PhaseName::Rest;
    let wrong = is_rest && share.abs() > PHASES_MISS_STEP && !waits_once;
    let sign = if !is_rest {
        ""
    } else if ms < 0.0 {
        "-"
    } else {
        "+"
    };
    let ink = if wrong {
        theme.bad
    } else {
        theme.phases[filling]
    };
    let time = format!("{sign}{}", duration(ms.abs()));
    let picture = Picture::Phase(filling, share.abs());
    let mut figure = Figure::new(name.into_str(), time, picture, ink);
    figure.share = format!("{sign}{} %", percent(100.0 * share.abs()));
    figure.values[0].good = wrong.then_some(false);
    figure
}

/// Returns the sentence that tells if the phases add up to the step.
fn sum(phases: &PhaseTimes, waits_once: bool, width: u16, theme: &Theme) -> Vec<Line<'static>> {
    let share = phases.residual / phases.step;
    let sum: f64 = phases.timed_parts().map(|(_, ms)| ms).sum();
    let (good, finding) = if share > PHASES_MISS_STEP && waits_once {
        (None, "one wait a step: the phases are times of submitting")
    } else if share > PHASES_MISS_STEP {
        (Some(false), "time is missing from the phases")
    } else if share < -PHASES_MISS_STEP {
        (Some(false), "the phases claim more than the step took")
    } else {
        (Some(true), "the phases add up to the step")
    };
    let (mark, style) = good.map_or((theme.symbols.circle, theme.text), |good| theme.mark(good));
    let sums = format!(": {} of {}", duration(sum), duration(phases.step));
    let spans = vec![
        Span::styled(format!("{mark} {finding}"), style),
        Span::styled(sums, theme.dim),
    ];
    text::wrapped_if_wide(spans, usize::from(width))
}

/// Returns the step as one bar after a label. Each phase of the bar has its own pattern.
fn stacked_bar(
    label: Vec<Span<'static>>,
    phases: &PhaseTimes,
    width: u16,
    theme: &Theme,
) -> Line<'static> {
    let label_width = text::width_of(&label);
    let mut spans = label;
    spans.push(
        " ".repeat(NAME_WIDTH.saturating_sub(label_width) + 1)
            .into(),
    );
    let bar_width = usize::from(width).saturating_sub(label_width.max(NAME_WIDTH) + 13);
    let drawn_ms = |ms: f64| if ms.is_finite() { ms.max(0.0) } else { 0.0 };
    let sum: f64 = phases.parts().map(|(_, ms)| drawn_ms(ms)).sum();
    let whole_ms = sum.max(phases.step).max(f64::MIN_POSITIVE);
    let mut end_ms = 0.0;
    let mut drawn = 0;
    for (name, ms) in phases.parts() {
        // The ends of the parts are rounded, not their lengths, so that rounding neither gains nor loses a cell.
        end_ms += drawn_ms(ms);
        let end = ((end_ms / whole_ms * bar_width as f64).round() as usize).min(bar_width);
        let filling = filling(name);
        let style = match name {
            PhaseName::Rest => theme.bad,
            _ => theme.phases[filling],
        };
        let cells = theme.symbols.fills[filling].repeat(end.saturating_sub(drawn));
        spans.push(Span::styled(cells, style));
        drawn = end.max(drawn);
    }
    let step = format!(" {}", duration(phases.step));
    spans.push(Span::styled(step, theme.strong));
    Line::from(spans)
}

const NO_CLOCKS: &str = "three clocks: not measured yet";

/// Returns a table with the time of a step by three clocks. The heading tells if it is the step of the ledger or another one.
fn clocks(run: &RunStory, width: u16, theme: &Theme) -> Vec<Line<'static>> {
    let Some((clocks, of_ledger)) = run.clocks() else {
        return vec![Line::styled(NO_CLOCKS, theme.dim)];
    };
    let own = run.ledger.and_then(|ledger| ledger.clocks?.device);
    let device = match clocks.device {
        None => "known after a profiled step",
        Some(_) if own.is_none() && run.kernels.is_some() => "its kernels, in a profiled step",
        Some(_) => "without waits and gaps",
    };
    let calls_returned = "until its calls returned";
    let device_done = "until the device was done";
    let rows = [
        ("host, submitting", Some(clocks.enqueue), calls_returned),
        ("device, computing", clocks.device, device),
        ("host, to the sync", Some(clocks.host_sync), device_done),
    ];
    let which = if of_ledger { "The same" } else { "Another" };
    let head = format!("{which} step by three clocks");
    let mut lines = vec![Line::styled(head, theme.text)];
    for (name, time, meaning) in rows {
        let time = text::right(&or_dash(time, duration), 12);
        let parts = vec![
            (0, Span::styled(text::left(name, 19), theme.text)),
            (0, Span::styled(time, theme.strong)),
            (1, Span::styled(format!("  {meaning}"), theme.dim)),
        ];
        lines.push(text::ranked(parts, usize::from(width)));
    }
    lines
}

/// Returns the time of a step by three clocks in one line, or in two where `width` is too narrow. The panel of the evidence has this line,
/// too.
pub(super) fn short_clocks(run: &RunStory, width: u16, theme: &Theme) -> Vec<Line<'static>> {
    let Some((clocks, _)) = run.clocks() else {
        return vec![Line::styled(NO_CLOCKS, theme.dim)];
    };
    let clocks = [
        ("submitted ", Some(clocks.enqueue)),
        (" · device ", clocks.device),
        (" · synced ", Some(clocks.host_sync)),
    ];
    let spans = clocks.into_iter().flat_map(|(name, time)| {
        let time = Span::styled(or_dash(time, duration), theme.strong);
        [Span::styled(name, theme.dim), time]
    });
    text::wrapped_if_wide(spans.collect(), usize::from(width))
}
