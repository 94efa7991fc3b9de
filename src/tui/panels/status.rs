//! One line: stage, run state, step, samples/s with its spread, clock, hints. And above it the next move, or the
//! question that wants yes or no.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::{ms, sentence};
use crate::app::figures::{AsFound, Figures};
use crate::app::guide::{confirmation, next_move, number};
use crate::app::{App, RunState};
use crate::course::Cue;
use crate::course::placeholder::Lookup;
use crate::tui::prose;
use crate::tui::theme::Theme;

/// What comes next, in one sentence.
pub fn render_guide(frame: &mut Frame<'_>, area: Rect, app: &App, theme: &Theme) {
    if let (Some((cue, at, of)), None) = (app.cue(), app.view.confirm) {
        return render_beat(frame, area, app, (&cue, at, of), theme);
    }
    if let (Some(at), None) = (app.study.pointer, app.view.confirm)
        && area.height > 1
    {
        return render_pointer(frame, area, app, at, theme);
    }
    let line = if let Some(confirm) = app.view.confirm {
        let mut line = sentence(&confirmation(confirm, app), app, theme, theme.warning);
        line.spans.insert(0, Span::styled(" ? ", theme.badge));
        line.spans.insert(1, Span::raw(" "));
        line
    } else if let Some(notice) = &app.notice {
        let style = if notice.warning {
            theme.warning
        } else {
            theme.text
        };
        let mark = if notice.warning {
            theme.symbols.warning
        } else {
            theme.symbols.pointer
        };
        Line::styled(format!(" {mark} {}", notice.text), style)
    } else {
        next_line(app, theme)
    };
    frame.render_widget(line, area);
}

/// The next move, after its mark.
fn next_line(app: &App, theme: &Theme) -> Line<'static> {
    let mut line = sentence(&next_move(app), app, theme, theme.text);
    let mark = format!(" {} ", theme.symbols.pointer);
    line.spans.insert(0, Span::styled(mark, theme.key));
    line
}

/// A beat of presenter mode: its number, and what the room reads.
fn render_beat(
    frame: &mut Frame<'_>,
    area: Rect,
    app: &App,
    (cue, at, of): (&Cue, usize, usize),
    theme: &Theme,
) {
    let figures = Figures::of(app);
    let found = figures.as_ref().map(AsFound);
    let marker = format!(" {at}/{of} ");
    let lines = prose::item(
        &marker,
        theme.badge,
        cue.say.trim(),
        usize::from(area.width.saturating_sub(1)),
        theme.strong,
        found.as_ref().map(|it| it as &dyn Lookup),
    );
    frame.render_widget(Paragraph::new(lines), area);
}

/// What to look for in the panel that the evidence names, and how to go on.
fn render_pointer(frame: &mut Frame<'_>, area: Rect, app: &App, at: usize, theme: &Theme) {
    let Some((pointer, of)) = app
        .stage()
        .and_then(|stage| Some((stage.evidence.get(at)?, stage.evidence.len())))
    else {
        return;
    };
    let figures = Figures::of(app);
    let found = figures.as_ref().map(AsFound);
    let marker = format!(" {}/{of} {} ", at + 1, pointer.panel);
    let mut lines = prose::item(
        &marker,
        theme.badge,
        pointer.text.trim(),
        usize::from(area.width.saturating_sub(1)),
        theme.strong,
        found.as_ref().map(|it| it as &dyn Lookup),
    );
    if lines.len() < usize::from(area.height) {
        lines.push(next_line(app, theme));
    }
    frame.render_widget(Paragraph::new(lines), area);
}

/// Steps below which a spread says nothing.
const FEW: u64 = 5;

/// The status line: as many parts as fit, the less telling ones dropped first.
pub fn render(frame: &mut Frame<'_>, area: Rect, app: &App, theme: &Theme) {
    let run = app.run.shown();
    // Each part with its rank: 0 stays longest.
    let mut parts: Vec<(u8, Vec<Span<'static>>)> = Vec::new();
    let mut part =
        |rank: u8, text: String, style: Style| parts.push((rank, vec![Span::styled(text, style)]));
    if let Some(exercise) = app.exercise() {
        part(4, exercise.label().to_owned(), theme.text);
    } else if let Some(stage) = app.stage() {
        part(
            4,
            format!("stage {}/{}", stage.number, app.course.stages.len()),
            theme.text,
        );
    }
    parts.push((0, state(app, theme)));
    let mut part =
        |rank: u8, text: String, style: Style| parts.push((rank, vec![Span::styled(text, style)]));
    if let Some(step) = app.step() {
        part(2, format!("step {step}"), theme.text);
    }
    if let Some(it) = run.throughput.as_ref().filter(|it| it.step_ms.median > 0.0) {
        // Half the distance between the quartiles, in samples/s.
        let spread =
            it.samples_per_s * it.step_ms.median * (1.0 / it.step_ms.p25 - 1.0 / it.step_ms.p75)
                / 2.0;
        // Times of handing work over spread over anything: their rate is no throughput.
        let rate = match it.clock.as_str() {
            "enqueue" => format!("{} samples/s without a sync", number(it.samples_per_s)),
            _ if it.step_ms.n < FEW => format!("{} samples/s", number(it.samples_per_s)),
            _ => format!(
                "{} ± {} samples/s",
                number(it.samples_per_s),
                number(spread.max(0.0))
            ),
        };
        part(1, rate, theme.strong);
        part(
            3,
            format!("{} clock", it.clock),
            if it.clock == "enqueue" {
                theme.warning
            } else {
                theme.text
            },
        );
    }
    let hints = app.hints();
    if hints.1 > 0 {
        part(5, format!("hint {}/{}", hints.0, hints.1), theme.text);
    }
    let wide = |parts: &[(u8, Vec<Span<'static>>)]| -> usize {
        parts
            .iter()
            .map(|(_, spans)| spans.iter().map(Span::width).sum::<usize>() + 3)
            .sum()
    };
    while wide(&parts) > usize::from(area.width) + 2 && parts.len() > 1 {
        let least = parts.iter().map(|(rank, _)| *rank).max();
        parts.retain(|(rank, _)| Some(*rank) != least);
    }
    let mut spans = vec![Span::raw(" ")];
    for (at, (_, part)) in parts.into_iter().enumerate() {
        if at > 0 {
            spans.push(Span::styled(" · ", theme.dim));
        }
        spans.extend(part);
    }
    frame.render_widget(Line::from(spans), area);
}

/// The run's state in words, with what it waits for.
fn state(app: &App, theme: &Theme) -> Vec<Span<'static>> {
    let waited = app.now_ms.saturating_sub(app.run.asked_ms) / 1000;
    let (mark, style): (&str, Style) = match &app.run.state {
        RunState::Running => (theme.symbols.live, theme.good),
        RunState::Failed { .. } | RunState::EngineGone { .. } => (theme.symbols.bad, theme.bad),
        RunState::Finished => (theme.symbols.good, theme.text),
        RunState::Idle => (theme.symbols.ghost, theme.dim),
        _ => (theme.symbols.ghost, theme.warning),
    };
    let mut text = match &app.run.state {
        RunState::Starting if waited >= 2 => format!("{mark} starting, {waited} s"),
        RunState::Warming => match &app.run.compiling {
            Some((kernels, latest)) => {
                format!("{mark} compiling: {kernels} kernels so far, {latest}, {waited} s")
            }
            None => format!("{mark} warming up"),
        },
        state => format!("{mark} {}", state.words()),
    };
    if let Some(seconds) = app.stalled_s() {
        text += &format!(", no step for {seconds} s");
    }
    if app.run.pairing {
        text += " in pairs";
    }
    if app.run.switching.is_some() {
        text += ", switching at the next step";
    }
    if let Some(step) = app.run.shown().last.as_ref().filter(|step| step.profiled) {
        text += &format!(", profiled step {} ms", ms(step.ms));
    }
    let mut spans = vec![Span::styled(text, style)];
    let variant = app.run.shown().variant();
    if !variant.is_empty() {
        spans.push(Span::styled(
            format!(" {}", app.slot_name(app.run.active)),
            theme.slot(app.run.active),
        ));
    }
    spans
}
