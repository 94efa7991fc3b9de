//! The status line: stage, run state, step, samples/s with its spread, clock, hints. Above it the next move, or the confirmation that
//! is open.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::Widget;

use super::watched;
use crate::app::beats::VoteState;
use crate::app::guide::{confirmation, next_move};
use crate::app::member::{Link, Membership};
use crate::app::{App, RunState};
use crate::tui::prose::{filled_as_found, sentence, told_as_found};
use crate::tui::surface::{Fitted, height};
use crate::tui::theme::Theme;
use crate::tui::{digits, text};
use protocol::Step;
use protocol::units::{ms, number, show};

/// That progress is not saved, and why. It comes before everything else.
pub fn unsaved(app: &App, theme: &Theme, width: u16) -> Vec<Line<'static>> {
    let Some(why) = &app.view.unsaved else {
        return Vec::new();
    };
    let said = Span::styled(format!("Progress is not saved: {why}"), theme.bad);
    marked((theme.symbols.warning, theme.bad), &[said], width)
}

/// Spans behind a mark.
fn marked((mark, style): (&str, Style), spans: &[Span<'_>], width: u16) -> Vec<Line<'static>> {
    let mark = Span::styled(format!(" {mark} "), style);
    text::wrap(spans, usize::from(width), mark, "   ")
}

/// Draws what comes next, in one sentence; what the room reads at a beat in large glyphs.
pub fn draw_guide(app: &App, theme: &Theme, area: Rect, buffer: &mut Buffer) {
    Fitted(lines(app, theme, area.width).into()).render(area, buffer);
    let fits = |large: &Vec<String>| digits::rows_of(large.len()) <= area.height;
    if let Some(large) = large_sentence(app, area.width).filter(fits) {
        digits::draw_lines(buffer, (area.x + 1, area.y), &large, theme.strong);
    }
}

/// Rows that the guide wants at this width, so that nothing of it is cut.
pub fn rows(app: &App, theme: &Theme, width: u16) -> u16 {
    height(lines(app, theme, width).len())
}

/// What the room reads at a beat in large glyphs, where it takes at most a quarter of the screen.
fn large_sentence(app: &App, width: u16) -> Option<Vec<String>> {
    let cue = app.cue().filter(|_| app.view.confirm.is_none())?;
    let said = filled_as_found(app, &cue.say).unwrap_or_else(|| cue.say.clone());
    let lines = digits::wrap(&said, width.saturating_sub(2))?;
    (4 * digits::rows_of(lines.len()) <= app.view.size.1).then_some(lines)
}

fn lines(app: &App, theme: &Theme, width: u16) -> Vec<Line<'static>> {
    if let Some(confirm) = app.view.confirm {
        let asked = sentence(&confirmation(confirm, app), app, theme, theme.warning);
        return marked(("?", theme.badge), &asked.spans, width);
    }
    if let Some((beat, cue)) = app.beat().zip(app.cue()) {
        // What the room reads.
        let mut lines = match large_sentence(app, width) {
            Some(large) => vec![Line::default(); usize::from(digits::rows_of(large.len()))],
            None => said(app, theme, width, " ", &cue.say),
        };
        if let Some(vote) = app.tally().filter(|_| beat.vote == VoteState::Open) {
            let vote = [Span::styled(vote.in_words(), theme.strong)];
            lines.extend(text::wrap(&vote, usize::from(width), " ", " "));
        }
        if app.view.notice.is_some() {
            lines.extend(told(app, theme, width));
        }
        return lines;
    }
    let evidence = app.stage().map(|stage| &stage.evidence);
    if let Some((at, evidence)) = app.lesson.study.pointer.zip(evidence)
        && let Some(pointer) = evidence.get(at)
    {
        // What to look for in the panel that the evidence names, and how to go on.
        let marker = format!(
            " {}/{} {} ",
            at + 1,
            evidence.len(),
            pointer.panel.into_str()
        );
        let mut lines = said(app, theme, width, &marker, &pointer.text);
        lines.extend(told(app, theme, width));
        return lines;
    }
    told(app, theme, width)
}

/// The notice, or the next move.
fn told(app: &App, theme: &Theme, width: u16) -> Vec<Line<'static>> {
    let (pointer, warning) = (theme.symbols.pointer, theme.symbols.warning);
    let Some(notice) = &app.view.notice else {
        let next = sentence(&next_move(app), app, theme, theme.text);
        return marked((pointer, theme.key), &next.spans, width);
    };
    let (mark, style) = match notice.warning {
        true => (warning, theme.warning),
        false => (pointer, theme.text),
    };
    let said = Span::styled(notice.text.as_str(), style);
    marked((mark, style), &[said], width)
}

/// A text of the course behind a badge.
fn said(app: &App, theme: &Theme, width: u16, marker: &str, text: &str) -> Vec<Line<'static>> {
    let place = (app, theme, width.saturating_sub(1));
    told_as_found(place, (marker, theme.badge), text.trim(), theme.strong)
}

/// Steps below which a spread says nothing.
const FEW: u64 = 5;

/// The status line: as many parts as fit, the less important ones dropped first.
pub fn line(app: &App, theme: &Theme, columns: u16) -> Line<'static> {
    // Each part with its rank: 0 stays longest.
    let mut parts: Vec<(u8, Vec<Span<'static>>)> = Vec::new();
    let part = |rank: u8, text: String, style: Style| (rank, vec![Span::styled(text, style)]);
    if let Some(exercise) = app.exercise() {
        parts.push(part(4, exercise.label().to_owned(), theme.text));
    } else if let Some(stage) = app.stage() {
        let number = format!("stage {}/{}", stage.number, app.lesson.course.stages.len());
        parts.push(part(4, number, theme.text));
    }
    parts.push((0, state(app, theme)));
    if let Some(step) = app.shown_run().step() {
        parts.push(part(2, format!("step {step}"), theme.text));
    }
    let throughput = app.shown_run().shown().throughput.as_ref();
    if let Some(it) = throughput.filter(|it| it.step_ms.median > 0.0) {
        let times = it.step_ms;
        // Half the distance between the quartiles, in samples/s.
        let spread = it.samples_per_s * times.median * (1.0 / times.p25 - 1.0 / times.p75) / 2.0;
        let rate = number(it.samples_per_s);
        // With the decimals of the rate.
        let decimals = rate.split_once('.').map_or(0, |(_, it)| it.len());
        let spread = show(spread.max(0.0), decimals);
        // Times of submitting work say nothing about the spread of the rate.
        let unsynced = it.clock == "enqueue";
        let rate = match unsynced {
            true => format!("{rate} samples/s by wall time"),
            false if times.n < FEW => format!("{rate} samples/s"),
            false => format!("{rate} ± {spread} samples/s"),
        };
        parts.push(part(1, rate, theme.strong));
        let style = if unsynced { theme.warning } else { theme.text };
        parts.push(part(3, format!("{} clock", it.clock), style));
    }
    if let Some((text, warning)) = app.class.as_ref().and_then(|it| membership(it)) {
        let style = if warning { theme.warning } else { theme.text };
        parts.push(part(2, text, style));
    }
    let (shown, hints) = app.reading().hints();
    if hints > 0 {
        parts.push(part(5, format!("hint {shown}/{hints}"), theme.text));
    }
    let room = usize::from(columns) + 2;
    let wide = |(_, spans): &(u8, Vec<Span<'static>>)| text::width_of(spans) + 3;
    while parts.iter().map(wide).sum::<usize>() > room && parts.len() > 1 {
        let least = parts.iter().map(|(rank, _)| *rank).max();
        parts.retain(|(rank, _)| Some(*rank) != least);
    }
    let mut spans = vec![Span::raw(" ")];
    for (at, (_, part)) in parts.into_iter().enumerate() {
        spans.extend((at > 0).then(|| Span::styled(" · ", theme.dim)));
        spans.extend(part);
    }
    Line::from(spans)
}

/// Whether the learner is in a room, and their hand is raised.
fn membership(member: &Membership) -> Option<(String, bool)> {
    Some(match &member.link {
        Link::Joining => ("room: joining".to_owned(), false),
        Link::Joined if member.raised => ("room: hand raised".to_owned(), true),
        Link::Joined if member.class.closed => ("room: closed".to_owned(), false),
        Link::Joined => ("room".to_owned(), false),
        Link::Lost(_) => ("room: not reached".to_owned(), true),
        Link::Over(_) => return None,
    })
}

/// The run's state in words, with what it waits for.
fn state(app: &App, theme: &Theme) -> Vec<Span<'static>> {
    let waited = app.clock.now_ms.saturating_sub(app.shown_run().asked_ms) / 1000;
    let run = app.shown_run().shown();
    let (mark, style): (&str, Style) = match &app.shown_run().state {
        RunState::Running => (theme.symbols.live, theme.good),
        RunState::Failed { .. } | RunState::EngineGone { .. } => theme.mark(false),
        RunState::Finished => (theme.symbols.good, theme.text),
        RunState::Idle => (theme.symbols.circle, theme.dim),
        _ => (theme.symbols.circle, theme.warning),
    };
    let state = app.shown_run().state.into_str();
    let mut text = match (&app.shown_run().state, &app.shown_run().compiling) {
        (RunState::Starting, _) if waited >= 2 => format!("{mark} starting, {waited} s"),
        (RunState::Warming, Some((kernels, latest))) => {
            format!("{mark} compiling: {kernels} kernels so far, {latest}, {waited} s")
        }
        _ if app.pairs_ended() => format!("{mark} pairs done, nothing runs"),
        _ => format!("{mark} {state}"),
    };
    if let Some(seconds) = app.device_silent_s() {
        text += &format!(", the device is silent for {seconds} s");
    } else if let Some(seconds) = app.stalled_s() {
        text += &format!(", no step for {seconds} s");
    }
    if app.shown_bench().pairing() {
        text += " in pairs";
    }
    if app.shown_bench().switching() {
        text += ", switching at the next step";
    }
    let profiled = |step: &&Step| step.profiled && !app.shown_bench().pairing();
    if let Some(step) = run.last.as_ref().filter(profiled) {
        text += &format!(", profiled step {} ms", ms(step.ms));
    }
    // A process of a watched training that does not go on is not running.
    let (text, style) = match watched::trouble(app, theme) {
        Some(trouble) => (
            format!("{} {trouble}", theme.symbols.warning),
            theme.warning,
        ),
        None => (text, style),
    };
    let mut spans = vec![Span::styled(text, style)];
    if !run.description.name.is_empty() {
        let name = format!(" {}", app.shown_run().slot_name(app.shown_run().active));
        spans.push(Span::styled(name, theme.slot(app.shown_run().active)));
    }
    spans
}
