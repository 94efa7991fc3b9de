//! Whether the parts of a step add up to the step: forward + backward + optimizer + residual, signed, all of one step. A
//! residual above five percent is marked: some time is unaccounted for, or was counted before the work was done.

use ratatui::text::{Line, Span};

use super::large::{self, Picture, Row};
use crate::app::{SlotRun, StepReading};
use crate::config::Sync;
use crate::limits::PHASES_MISS_STEP;
use crate::panel::Panel;
use crate::protocol::{Phases, Slot};
use crate::tui::surface::{Surface, height, slot_label, slots, take_bottom};
use crate::tui::table::or_dash;
use crate::tui::text;
use crate::tui::theme::Theme;
use crate::units::{duration, percent};

/// How to read it.
pub const READING: &[&str] = &[
    "One step. Residual = step - (forward + backward + optimizer); over 5 % is marked. A phase's timer runs until the \
             calls return: it contains the work only where it then waits for the device (a sync).",
    "The header's residual is the median of many steps.",
];

const NAMES: [&str; 4] = ["forward", "backward", "optimizer", "residual"];
/// Columns of a name, a time and a share.
const NAME: usize = 11;
const TIME: usize = 11;
const SHARE: usize = 10;

/// Why there is no ledger.
fn missing(run: &SlotRun) -> &'static str {
    let started = run.started.as_ref();
    if started.is_some_and(|it| it.run.config.records() && it.device.kind != "cpu") {
        "a step that is replayed whole has no phases; launches = \"each-step\" has them"
    } else {
        "no step has reported its phases yet"
    }
}

pub fn draw(s: &mut Surface<'_, '_>) -> u16 {
    let (app, theme) = (s.app, s.theme);
    let known = slots(app).filter_map(|(slot, run)| Some((slot, run.ledger?)));
    let known: Vec<(Slot, StepReading)> = known.collect();
    // The running slot first: it is the one to look at when there is room for one only.
    let active = known.iter().find(|(slot, _)| *slot == app.run.active);
    let first = active.or(known.first());
    let aside = first.map_or(String::new(), |(slot, it)| {
        format!("{} · step {}", app.slot_name(*slot), it.step)
    });
    s.open(Panel::Ledger, &aside);
    let Some((slot, reading)) = first else {
        return s.missing(missing(app.run.shown()));
    };
    let width = s.area.width;
    let label = vec![slot_label(*slot, app, theme)];
    let mut lines = vec![stacked(label, &reading.phases, width, theme)];
    let sync = app.run.slot(*slot).started.as_ref();
    let once = sync.is_some_and(|it| it.run.config.measure.sync == Sync::PerStep);
    lines.extend(parts(&reading.phases, once, width, theme));
    let others = known.iter().filter(|(other, _)| other != slot);
    let others = others.map(|(other, it)| {
        let step = Span::styled(format!(", step {}", it.step), theme.dim);
        let label = vec![slot_label(*other, app, theme), step];
        stacked(label, &it.phases, width, theme)
    });
    let others: Vec<Line<'static>> = others.collect();
    let run = app.run.slot(*slot);
    // Three lines of clocks and a head, where nothing else has to go for them.
    let left = usize::from(s.area.height).saturating_sub(lines.len() + others.len());
    if app.withholds("clocks") {
        // They say where the time is.
    } else if left >= 4 {
        lines.extend((left > 5).then(Line::default));
        lines.extend(clocks(run, theme));
        lines.extend((left > 5 && !others.is_empty()).then(Line::default));
    } else {
        lines.extend(clocks_in_short(run, width, theme));
    }
    lines.extend(others);
    s.show_panel(Panel::Ledger, lines)
}

/// The phases of the shown slot's step in large, and whether they add up.
pub fn draw_large(s: &mut Surface<'_, '_>) -> u16 {
    let (app, theme) = (s.app, s.theme);
    let active = app.run.shown();
    let Some(reading) = active.ledger else {
        return s.missing(missing(app.run.shown()));
    };
    let (phases, started) = (&reading.phases, active.started.as_ref());
    let once = started.is_some_and(|it| it.run.config.measure.sync == Sync::PerStep);
    let sum = sum(phases, once, s.area.width, theme);
    let below = take_bottom(&mut s.area, height(sum.len()));
    s.put(below, sum);
    let row = |(at, value): (usize, f64)| {
        let wrong = at == 3 && (value / phases.step).abs() > PHASES_MISS_STEP && !once;
        let of_step = value.abs() / phases.step;
        let (style, ink) = match wrong {
            true => (theme.bad, theme.bad),
            false => (theme.strong, theme.phases[at]),
        };
        Row {
            name: NAMES[at].to_owned(),
            style: theme.strong,
            details: format!("{} %", percent(100.0 * of_step)),
            figure: format!(
                "{}{}",
                if value < 0.0 { "-" } else { "" },
                duration(value.abs())
            ),
            figure_style: style,
            picture: Picture::Bar(of_step),
            ink,
        }
    };
    let rows = values(phases).into_iter().enumerate().map(row).collect();
    large::draw(s, rows)
}

/// Forward, backward, optimizer and residual.
fn values(phases: &Phases) -> [f64; 4] {
    [
        phases.forward,
        phases.backward,
        phases.optimizer,
        phases.residual,
    ]
}

/// One line per phase, and whether they add up; where the host waits once a step, they need not.
fn parts(phases: &Phases, once: bool, width: u16, theme: &Theme) -> Vec<Line<'static>> {
    let share = phases.residual / phases.step;
    let room = width.saturating_sub((NAME + TIME + SHARE) as u16 + 2);
    let part = |(at, value): (usize, f64)| {
        let wrong = at == 3 && share.abs() > PHASES_MISS_STEP && !once;
        let style = if wrong { theme.bad } else { theme.phases[at] };
        let plain = if wrong { theme.bad } else { theme.text };
        let of_step = value.abs() / phases.step;
        let cells = (of_step * f64::from(room)).round() as u16;
        let bar = theme.symbols.fills[at].repeat(usize::from(cells.min(room)));
        let sign = match at {
            3 if value < 0.0 => "-",
            3 => "+",
            _ => "",
        };
        let time = format!("{sign}{}", duration(value.abs()));
        let percent = format!("{sign}{} %", percent(100.0 * of_step));
        let name = text::left(NAMES[at], NAME);
        let figures = text::right(&time, TIME) + &text::right(&percent, SHARE);
        Line::from(vec![
            Span::styled(format!("{name}{figures}  "), plain),
            Span::styled(bar, style),
        ])
    };
    let mut lines: Vec<Line<'static>> = values(phases).into_iter().enumerate().map(part).collect();
    lines.extend(sum(phases, once, width, theme));
    lines
}

/// Whether the phases add up.
fn sum(phases: &Phases, once: bool, width: u16, theme: &Theme) -> Vec<Line<'static>> {
    let share = phases.residual / phases.step;
    let sum = phases.forward + phases.backward + phases.optimizer;
    let (good, says) = match share {
        s if s > PHASES_MISS_STEP && once => (
            None,
            "one wait a step: the phases are times of handing over",
        ),
        s if s > PHASES_MISS_STEP => (Some(false), "time is missing from the phases"),
        s if s < -PHASES_MISS_STEP => (Some(false), "the phases claim more than the step took"),
        _ => (Some(true), "the phases add up to the step"),
    };
    let (mark, style) = good.map_or((theme.symbols.ghost, theme.text), |good| theme.mark(good));
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
    let parts = values(phases).map(|part| if part.is_finite() { part.max(0.0) } else { 0.0 });
    let whole = parts.iter().sum::<f64>().max(phases.step);
    let whole = whole.max(f64::MIN_POSITIVE);
    let (mut until, mut drawn) = (0.0, 0);
    for (at, part) in parts.into_iter().enumerate() {
        until += part;
        let end = ((until / whole * room as f64).round() as usize).min(room);
        let style = if at == 3 { theme.bad } else { theme.phases[at] };
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
fn clocks(run: &SlotRun, theme: &Theme) -> Vec<Line<'static>> {
    let Some((it, same)) = run.clocks() else {
        return vec![Line::styled(NO_CLOCKS, theme.dim)];
    };
    let own = run.ledger.and_then(|it| it.clocks?.device).is_some();
    let profiled = run.kernels.as_ref().filter(|_| !own).map(|it| it.step);
    let device = match (it.device, profiled) {
        (None, _) => "known after a profiled step".to_owned(),
        (Some(_), Some(step)) => format!("its kernels, in the profiled step {step}"),
        (Some(_), None) => "without waits and gaps".to_owned(),
    };
    let clocks = [
        (
            "host, handing over",
            Some(it.enqueue),
            "until its calls returned",
        ),
        ("device, computing", it.device, &device),
        (
            "host, to the sync",
            Some(it.host_sync),
            "until the device was done",
        ),
    ];
    let which = if same { "The same" } else { "Another" };
    let mut lines = vec![Line::styled(
        format!("{which} step by three clocks"),
        theme.text,
    )];
    lines.extend(clocks.map(|(name, time, says)| {
        let time = text::right(&or_dash(time, duration), 12);
        Line::from(vec![
            Span::styled(text::left(name, 19), theme.text),
            Span::styled(time, theme.strong),
            Span::styled(format!("  {says}"), theme.dim),
        ])
    }));
    lines
}

/// The same in a line, or two where it is too narrow, for the evidence and for where there is little room.
pub fn clocks_in_short(run: &SlotRun, width: u16, theme: &Theme) -> Vec<Line<'static>> {
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
