//! Whether the parts of a step add up to the step: forward, backward, optimizer and what they leave unaccounted, signed, all of one
//! step. More than five percent unaccounted is marked: it was spent elsewhere, or the work was not done when its time was taken.

use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::content::{Block, Content, Figure, Picture};
use crate::app::App;
use crate::tui::surface::{measured, slot_label};
use crate::tui::text;
use crate::tui::theme::Theme;
use protocol::config::RunConfig;
use protocol::story::{PhaseName, Phases, RunStory};
use protocol::thresholds::PHASES_MISS_STEP;
use protocol::units::{duration, or_dash, percent};

/// How to read it.
pub(super) const READING: &[&str] = &[
    "Submitted: work is queued; device: it computes; synced: it is done. \
             Unaccounted = step - (forward + backward + optimizer); over 5 % is marked. A phase's timer runs until the \
             calls return: it contains the work only where it then waits for the device (a sync).",
    "All of one step; the header's is a mean over many, without the extremes.",
];

/// Columns of a run's name.
const NAME: usize = 11;

/// Why there is no ledger.
fn missing(run: &RunStory) -> &'static str {
    let run = &run.description;
    if run.config.as_ref().is_some_and(RunConfig::records) && !run.on_cpu() {
        "a step that is replayed as a whole has no phases; set launches = \"each-step\" to see them"
    } else {
        "no step has reported its phases yet"
    }
}

pub(super) fn content<'a>(app: &'a App, theme: &'a Theme, area: Rect) -> Content<'a> {
    // The running slot is the one to look at when there is room for one only.
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
    let (run, phases) = (app.shown_run().slot(slot), &Phases::from(&reading.phases));
    let label = vec![slot_label(slot, app, theme)];
    content.lines([stacked(label, phases, area.width, theme)]);
    let once = run.description.waits_once();
    for (name, ms) in &phases.parts {
        content.figure(None, part(*name, *ms, phases.step, once, theme));
    }
    let sum = sum(phases, once, area.width, theme);
    let others = known.all.iter().filter(|(other, _)| *other != slot);
    let others = others.map(|(other, it)| {
        let step = Span::styled(format!(", step {}", it.step), theme.dim);
        let label = vec![slot_label(*other, app, theme), step];
        stacked(label, &Phases::from(&it.phases), area.width, theme)
    });
    let others: Vec<Line<'static>> = others.collect();
    // Three lines of clocks and their heading, where they displace nothing else.
    let taken = 1 + phases.parts.len() + sum.len() + others.len();
    let left = usize::from(area.height).saturating_sub(taken);
    content.add(None, Block::Lines(sum));
    if app.reading().withholds("clocks") {
        // They would show where the time goes.
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

/// Which of the theme's fillings a part has.
fn filling(name: PhaseName) -> usize {
    match name {
        PhaseName::Forward => 0,
        PhaseName::Backward => 1,
        PhaseName::Optimizer => 2,
        PhaseName::Data | PhaseName::Communication | PhaseName::Rest => 3,
    }
}

/// A phase, or the unaccounted time; where the host waits once a step, this one may be of any size.
fn part(name: PhaseName, ms: f64, step: f64, once: bool, theme: &Theme) -> Figure {
    let (at, share, rest) = (filling(name), ms / step, name == PhaseName::Rest);
    let wrong = rest && share.abs() > PHASES_MISS_STEP && !once;
    let sign = if !rest {
        ""
    } else if ms < 0.0 {
        "-"
    } else {
        "+"
    };
    let ink = if wrong { theme.bad } else { theme.phases[at] };
    let time = format!("{sign}{}", duration(ms.abs()));
    let picture = Picture::Phase(at, share.abs());
    let mut figure = Figure::new(name.into_str(), time, picture, ink);
    figure.share = format!("{sign}{} %", percent(100.0 * share.abs()));
    figure.values[0].good = wrong.then_some(false);
    figure
}

/// Whether the phases add up.
fn sum(phases: &Phases, once: bool, width: u16, theme: &Theme) -> Vec<Line<'static>> {
    let share = phases.time_of(PhaseName::Rest).unwrap_or_default() / phases.step;
    let sum: f64 = phases.timed().map(|(_, ms)| ms).sum();
    let (good, says) = match share {
        s if s > PHASES_MISS_STEP && once => {
            (None, "one wait a step: the phases are times of submitting")
        }
        s if s > PHASES_MISS_STEP => (Some(false), "time is missing from the phases"),
        s if s < -PHASES_MISS_STEP => (Some(false), "the phases claim more than the step took"),
        _ => (Some(true), "the phases add up to the step"),
    };
    let (mark, style) = good.map_or((theme.symbols.circle, theme.text), |good| theme.mark(good));
    let sums = format!(": {} of {}", duration(sum), duration(phases.step));
    let said = vec![
        Span::styled(format!("{mark} {says}"), style),
        Span::styled(sums, theme.dim),
    ];
    text::whole(said, usize::from(width))
}

/// The step as one bar, whose parts have their own fillings.
fn stacked(
    mut spans: Vec<Span<'static>>,
    phases: &Phases,
    width: u16,
    theme: &Theme,
) -> Line<'static> {
    let used = text::width_of(&spans);
    spans.push(Span::raw(" ".repeat(NAME.saturating_sub(used) + 1)));
    let room = usize::from(width).saturating_sub(used.max(NAME) + 13);
    // Bars are cut from one length, so that rounding neither gains nor loses a cell.
    let drawn_ms = |ms: f64| if ms.is_finite() { ms.max(0.0) } else { 0.0 };
    let sum: f64 = phases.parts.iter().map(|(_, ms)| drawn_ms(*ms)).sum();
    let whole = sum.max(phases.step).max(f64::MIN_POSITIVE);
    let (mut until, mut drawn) = (0.0, 0);
    for (name, ms) in &phases.parts {
        until += drawn_ms(*ms);
        let at = filling(*name);
        let end = ((until / whole * room as f64).round() as usize).min(room);
        let style = match name {
            PhaseName::Rest => theme.bad,
            _ => theme.phases[at],
        };
        let bar = theme.symbols.fills[at].repeat(end.saturating_sub(drawn));
        spans.push(Span::styled(bar, style));
        drawn = end.max(drawn);
    }
    let step = format!(" {}", duration(phases.step));
    spans.push(Span::styled(step, theme.strong));
    Line::from(spans)
}

const NO_CLOCKS: &str = "three clocks: not measured yet";

/// The step of the ledger by three clocks.
fn clocks(run: &RunStory, width: u16, theme: &Theme) -> Vec<Line<'static>> {
    let Some((it, same)) = run.clocks() else {
        return vec![Line::styled(NO_CLOCKS, theme.dim)];
    };
    let own = run.ledger.and_then(|it| it.clocks?.device).is_some();
    let profiled = run.kernels.as_ref().filter(|_| !own).map(|it| it.step);
    let profiled = profiled.map(|step| format!("its kernels, in the profiled step {step}"));
    let device = match (it.device, &profiled) {
        (None, _) => ["known after a profiled step", "not known yet"],
        (Some(_), Some(said)) => [said.as_str(), "its kernels, profiled"],
        (Some(_), None) => ["without waits and gaps"; 2],
    };
    let returned = ["until its calls returned", "calls returned"];
    let done = ["until the device was done", "device done"];
    let clocks = [
        ("host, submitting", Some(it.enqueue), returned),
        ("device, computing", it.device, device),
        ("host, to the sync", Some(it.host_sync), done),
    ];
    let which = if same { "The same" } else { "Another" };
    let head = format!("{which} step by three clocks");
    let mut lines = vec![Line::styled(head, theme.text)];
    lines.extend(clocks.map(|(name, time, [long, short])| {
        let name = Span::styled(text::left(name, 19), theme.text);
        let time = text::right(&or_dash(time, duration), 12);
        let time = Span::styled(time, theme.strong);
        let wordings = [format!("  {long}"), format!("  {short}"), String::new()];
        let wordings = wordings.map(|says| {
            let says = Span::styled(says, theme.dim);
            Line::from_iter([name.clone(), time.clone(), says])
        });
        text::longest(wordings, usize::from(width))
    }));
    lines
}

/// The same in a line, or two where it is too narrow, for the evidence and for where there is little room.
pub(super) fn clocks_in_short(run: &RunStory, width: u16, theme: &Theme) -> Vec<Line<'static>> {
    let Some((it, _)) = run.clocks() else {
        return vec![Line::styled(NO_CLOCKS, theme.dim)];
    };
    let clocks = [
        ("submitted ", Some(it.enqueue)),
        (" · device ", it.device),
        (" · synced ", Some(it.host_sync)),
    ];
    let spans = clocks.into_iter().flat_map(|(name, time)| {
        let time = Span::styled(or_dash(time, duration), theme.strong);
        [Span::styled(name, theme.dim), time]
    });
    text::whole(spans.collect(), usize::from(width))
}
