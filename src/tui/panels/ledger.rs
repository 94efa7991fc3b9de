//! Whether the parts of a step add up to the step: forward + backward + optimizer + residual, signed, all of one step. A
//! residual above five percent is marked: some time is unaccounted for, or was counted before the work was done.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::{duration, missing, open, show, slot_label, slots};
use crate::app::guide::percent;
use crate::app::{App, Panel, Reading, SlotRun};
use crate::protocol::{Phases, Slot};
use crate::tui::text;
use crate::tui::theme::Theme;

/// Share of the step above which the residual is marked.
const TOLERANCE: f64 = 0.05;
const NAMES: [&str; 4] = ["forward", "backward", "optimizer", "residual"];
/// Columns of a name, a time and a share.
const NAME: usize = 11;
const TIME: usize = 11;
const SHARE: usize = 9;

pub fn render(frame: &mut Frame<'_>, area: Rect, app: &App, theme: &Theme) -> u16 {
    let known: Vec<(Slot, Reading)> = slots(app)
        .filter_map(|(slot, run)| Some((slot, run.ledger?)))
        .collect();
    // The running slot first: it is the one to look at when there is room for one only.
    let first = known
        .iter()
        .find(|(slot, _)| *slot == app.run.active)
        .or(known.first());
    let aside = first.map_or(String::new(), |(slot, it)| {
        format!("{} · step {}", app.slot_name(*slot), it.step)
    });
    let inner = open(frame, area, Panel::Ledger, &aside, app, theme);
    let Some((slot, reading)) = first else {
        let why = missing("no step has reported its phases yet", theme);
        return show(frame, inner, vec![why], 0, theme);
    };
    let label = slot_label(*slot, app, theme);
    let mut lines = vec![stacked(label, &reading.phases, inner.width, theme)];
    lines.extend(parts(&reading.phases, inner.width, theme));
    let others = known.iter().filter(|(other, _)| other != slot);
    let beside: Vec<Line<'static>> = others
        .map(|(other, it)| {
            let mut label = slot_label(*other, app, theme);
            label.push(Span::styled(format!(", step {}", it.step), theme.dim));
            stacked(label, &it.phases, inner.width, theme)
        })
        .collect();
    let run = app.run.slot(*slot);
    // Three lines of clocks and a head, where nothing else has to go for them.
    let left = usize::from(inner.height).saturating_sub(lines.len() + beside.len());
    if left >= 4 {
        lines.extend((left > 5).then(Line::default));
        lines.extend(clocks(run, theme));
        lines.extend((left > 5 && !beside.is_empty()).then(Line::default));
    } else {
        lines.push(clocks_in_a_line(run, theme));
    }
    lines.extend(beside);
    show(
        frame,
        inner,
        lines,
        app.view.scroll_of(Panel::Ledger),
        theme,
    )
}

/// One line per phase, and whether they close.
fn parts(phases: &Phases, width: u16, theme: &Theme) -> Vec<Line<'static>> {
    let values = [
        phases.forward,
        phases.backward,
        phases.optimizer,
        phases.residual,
    ];
    let share = phases.residual / phases.step;
    let open = share.abs() > TOLERANCE;
    let room = width.saturating_sub((NAME + TIME + SHARE) as u16 + 3);
    let mut lines: Vec<Line<'static>> = values
        .into_iter()
        .enumerate()
        .map(|(at, value)| {
            let wrong = at == 3 && open;
            let style = if wrong { theme.bad } else { theme.phases[at] };
            let plain = if wrong { theme.bad } else { theme.text };
            let cells = (value.abs() / phases.step * f64::from(room)).round() as u16;
            let bar = theme.symbols.fills[at].repeat(usize::from(cells.min(room)));
            let (figure, percent) = (duration(value.abs()), percent(share_of(value, phases)));
            let sign = match at {
                3 if value < 0.0 => "-",
                3 => "+",
                _ => "",
            };
            Line::from(vec![
                Span::styled(text::left(NAMES[at], NAME), plain),
                Span::styled(text::right(&format!("{sign}{figure}"), TIME), plain),
                Span::styled(text::right(&format!("{sign}{percent} %"), SHARE + 1), plain),
                Span::raw("  "),
                Span::styled(bar, style),
            ])
        })
        .collect();
    let sum = phases.forward + phases.backward + phases.optimizer;
    let (mark, style, says) = match share {
        s if s > TOLERANCE => (
            theme.symbols.bad,
            theme.bad,
            "time is missing from the phases",
        ),
        s if s < -TOLERANCE => (
            theme.symbols.bad,
            theme.bad,
            "the phases claim more than the step took",
        ),
        _ => (
            theme.symbols.good,
            theme.good,
            "the phases add up to the step",
        ),
    };
    lines.push(Line::from(vec![
        Span::styled(format!("{mark} {says}"), style),
        Span::styled(
            format!(": {} of {}", duration(sum), duration(phases.step)),
            theme.dim,
        ),
    ]));
    lines
}

/// Percent of the step, without a sign.
fn share_of(value: f64, phases: &Phases) -> f64 {
    100.0 * value.abs() / phases.step
}

/// The step as one bar, whose parts have their own fillings.
fn stacked(
    mut spans: Vec<Span<'static>>,
    phases: &Phases,
    width: u16,
    theme: &Theme,
) -> Line<'static> {
    let used: usize = spans.iter().map(Span::width).sum();
    spans.push(Span::raw(" ".repeat(NAME.saturating_sub(used) + 1)));
    let room = usize::from(width).saturating_sub(used.max(NAME) + 13);
    let parts = [
        phases.forward,
        phases.backward,
        phases.optimizer,
        phases.residual.max(0.0),
    ];
    // Bars are cut from one length, so that rounding neither gains nor loses a cell.
    let whole = parts
        .iter()
        .sum::<f64>()
        .max(phases.step)
        .max(f64::MIN_POSITIVE);
    let mut until = 0.0;
    let mut drawn = 0;
    for (at, part) in parts.into_iter().enumerate() {
        until += if part.is_finite() { part.max(0.0) } else { 0.0 };
        let end = ((until / whole * room as f64).round() as usize).min(room);
        let style = if at == 3 { theme.bad } else { theme.phases[at] };
        spans.push(Span::styled(
            theme.symbols.fills[at].repeat(end.saturating_sub(drawn)),
            style,
        ));
        drawn = end.max(drawn);
    }
    spans.push(Span::styled(
        format!(" {}", duration(phases.step)),
        theme.strong,
    ));
    Line::from(spans)
}

const DEVICE: &str = "device, computing";
/// What each of the three clocks reads.
const CLOCKS: [(&str, &str); 3] = [
    ("host, handing over", "until its calls returned"),
    (DEVICE, "without waits and gaps"),
    ("host, to the sync", "until the device was done"),
];

/// The step of the ledger by three clocks.
fn clocks(run: &SlotRun, theme: &Theme) -> Vec<Line<'static>> {
    let Some((it, same)) = run.clocks() else {
        return vec![Line::styled(NO_CLOCKS, theme.dim)];
    };
    let head = if same {
        "The same step by three clocks"
    } else {
        "Another step by three clocks"
    };
    let mut lines = vec![Line::styled(head, theme.text)];
    let own = run.ledger.and_then(|it| it.clocks?.device).is_some();
    let profiled = run.kernels.as_ref().filter(|_| !own).map(|it| it.step);
    let times = [Some(it.enqueue), it.device, Some(it.host_sync)];
    lines.extend(CLOCKS.iter().zip(times).map(|((name, says), time)| {
        let says = match (*name, time, profiled) {
            (DEVICE, None, _) => "known once a step was profiled".to_owned(),
            (DEVICE, Some(_), Some(step)) => format!("its kernels, in the profiled step {step}"),
            _ => (*says).to_owned(),
        };
        Line::from(vec![
            Span::styled(text::left(name, NAME + TIME - 3), theme.text),
            Span::styled(
                text::right(&time.map_or_else(|| "-".to_owned(), duration), SHARE + 3),
                theme.strong,
            ),
            Span::styled(format!("  {says}"), theme.dim),
        ])
    }));
    lines
}

const NO_CLOCKS: &str = "three clocks: not measured yet";

/// The same in one line, for narrow places and the evidence.
pub fn clocks_in_a_line(run: &SlotRun, theme: &Theme) -> Line<'static> {
    let Some((it, _)) = run.clocks() else {
        return Line::styled(NO_CLOCKS, theme.dim);
    };
    let device = it.device.map_or_else(|| "-".to_owned(), duration);
    let bold = |text: String| Span::styled(text, theme.strong);
    Line::from(vec![
        Span::styled("handed over ", theme.dim),
        bold(duration(it.enqueue)),
        Span::styled(" · device ", theme.dim),
        bold(device),
        Span::styled(" · synced ", theme.dim),
        bold(duration(it.host_sync)),
    ])
}
