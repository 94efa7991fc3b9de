//! The panel of the ledger shows whether the parts of one step add up to the step: forward, backward, optimizer and the unaccounted rest,
//! with its sign. A rest of more than five percent is marked: the time was spent elsewhere, or the work was not done when its time was
//! taken.

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

/// The explanation of the panel.
pub(super) const READING: &[&str] = &[
    "Submitted: work is queued; device: it computes; synced: it is done. \
             Unaccounted = step - (forward + backward + optimizer); over 5 % is marked. A phase's timer runs until the \
             calls return: it contains the work only where it then waits for the device (a sync).",
    "Figures of one step. The header's figure is a mean over many steps, without the extremes.",
];

/// The width of a run's name.
const NAME: usize = 11;

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
    // Where room is short, only the running slot is shown.
    let Some(known) = measured(app, |run| run.ledger) else {
        return Content::missing(missing(app.shown_run().shown()), theme, area);
    };
    let (slot, reading) = known.shown;
    let aside = format!(
        "{} · step {}",
        app.shown_run().slot_name(slot),
        reading.step
    );
    let mut content = Content::beside(aside);
    let (run, phases) = (app.shown_run().slot(slot), &reading.phases);
    let label = vec![slot_label(slot, app, theme)];
    content.lines([stacked(label, phases, area.width, theme)]);
    let once = run.description.waits_once();
    for (name, ms) in phases.parts() {
        content.figure(None, part(name, ms, phases.step, once, theme));
    }
    let sum = sum(phases, once, area.width, theme);
    let others: Vec<Line<'static>> = known
        .all
        .iter()
        .filter(|(other, _)| *other != slot)
        .map(|(other, reading)| {
            let step = Span::styled(format!(", step {}", reading.step), theme.dim);
            let label = vec![slot_label(*other, app, theme), step];
            stacked(label, &reading.phases, area.width, theme)
        })
        .collect();
    // The clocks take three lines and a heading where they displace nothing else, else one line.
    let taken = 1 + phases.parts().count() + sum.len() + others.len();
    let left = usize::from(area.height).saturating_sub(taken);
    content.add(None, Block::Lines(sum));
    if app.reading().withholds("clocks") {
        // The clocks would show where the time goes.
    } else if left >= 4 {
        content.lines((left > 5).then(Line::default));
        content.lines(clocks(run, area.width, theme));
        content.lines((left > 5 && !others.is_empty()).then(Line::default));
    } else {
        content.lines(clocks_in_short(run, area.width, theme));
    }
    content.lines(others);
    content
}

/// Returns the number of the theme's filling for a part.
fn filling(name: PhaseName) -> usize {
    match name {
        PhaseName::Forward => 0,
        PhaseName::Backward => 1,
        PhaseName::Optimizer => 2,
        PhaseName::Data | PhaseName::Communication | PhaseName::Rest => 3,
    }
}

/// Returns the figure of a phase or of the unaccounted time. Where the host waits once a step (`once`), the unaccounted time may be of any
/// size.
fn part(name: PhaseName, ms: f64, step: f64, once: bool, theme: &Theme) -> Figure {
    let filling = filling(name);
    let share = ms / step;
    let is_rest = name == PhaseName::Rest;
    let wrong = is_rest && share.abs() > PHASES_MISS_STEP && !once;
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

/// Says whether the phases add up to the step.
fn sum(phases: &PhaseTimes, once: bool, width: u16, theme: &Theme) -> Vec<Line<'static>> {
    let share = phases.residual / phases.step;
    let sum: f64 = phases.timed_parts().map(|(_, ms)| ms).sum();
    let (good, finding) = if share > PHASES_MISS_STEP && once {
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

/// Returns the step as one bar after `spans`. Each phase of the bar has its own filling.
fn stacked(
    mut spans: Vec<Span<'static>>,
    phases: &PhaseTimes,
    width: u16,
    theme: &Theme,
) -> Line<'static> {
    let used = text::width_of(&spans);
    spans.push(Span::raw(" ".repeat(NAME.saturating_sub(used) + 1)));
    let room = usize::from(width).saturating_sub(used.max(NAME) + 13);
    // The ends of the parts are rounded, not their lengths, so that rounding neither gains nor loses a cell.
    let drawn_ms = |ms: f64| if ms.is_finite() { ms.max(0.0) } else { 0.0 };
    let sum: f64 = phases.parts().map(|(_, ms)| drawn_ms(ms)).sum();
    let whole = sum.max(phases.step).max(f64::MIN_POSITIVE);
    let mut until = 0.0;
    let mut drawn = 0;
    for (name, ms) in phases.parts() {
        until += drawn_ms(ms);
        let filling = filling(name);
        let end = ((until / whole * room as f64).round() as usize).min(room);
        let style = match name {
            PhaseName::Rest => theme.bad,
            _ => theme.phases[filling],
        };
        let bar = theme.symbols.fills[filling].repeat(end.saturating_sub(drawn));
        spans.push(Span::styled(bar, style));
        drawn = end.max(drawn);
    }
    let step = format!(" {}", duration(phases.step));
    spans.push(Span::styled(step, theme.strong));
    Line::from(spans)
}

const NO_CLOCKS: &str = "three clocks: not measured yet";

/// Returns a step by three clocks: the step of the ledger, or another one, which the heading says.
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
    let (returned, done) = ("until its calls returned", "until the device was done");
    let rows = [
        ("host, submitting", Some(clocks.enqueue), returned),
        ("device, computing", clocks.device, device),
        ("host, to the sync", Some(clocks.host_sync), done),
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

/// Returns the three clocks in one line, or in two where it is too narrow, for the evidence and for places with little room.
pub(super) fn clocks_in_short(run: &RunStory, width: u16, theme: &Theme) -> Vec<Line<'static>> {
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
