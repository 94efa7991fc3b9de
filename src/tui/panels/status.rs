//! The lines above the footer: the guide, which tells the next move, and below it the status line.
//!
//! ```text
//!  ▸ t: toggle A and B · T: measure both · f: change B
//!  stage 1/3 · ● running B fixed · step 60 · 44.35 ± 0.63 samples/s · host-sync clock · hint 0/3
//! ```
//!
//! A confirmation, the text of a beat or a notice takes the place of the next move. Where columns are short, the less important parts of the
//! status line are left out.

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
use crate::tui::prose::{filled_as_found, lines_as_found, sentence};
use crate::tui::surface::{Fitted, height};
use crate::tui::theme::Theme;
use crate::tui::{digits, text};
use protocol::units::{ms, number, show};
use protocol::{ENQUEUE, Throughput};

/// Returns the notice that progress is not saved, with the reason. Empty while progress is saved.
pub fn unsaved(app: &App, theme: &Theme, width: u16) -> Vec<Line<'static>> {
    let Some(why) = &app.view.unsaved else {
        return Vec::new();
    };
    let notice = Span::styled(format!("Progress is not saved: {why}"), theme.bad);
    marked((theme.symbols.warning, theme.bad), &[notice], width)
}

/// Wraps spans after a mark.
fn marked((mark, style): (&str, Style), spans: &[Span<'_>], width: u16) -> Vec<Line<'static>> {
    let mark = Span::styled(format!(" {mark} "), style);
    text::wrap(spans, usize::from(width), mark, "   ")
}

/// Draws the guide. At a beat the guide is the sentence that the room reads, in large glyphs where they fit.
pub fn draw_guide(app: &App, theme: &Theme, area: Rect, buffer: &mut Buffer) {
    Fitted(lines(app, theme, area.width).into()).render(area, buffer);
    if let Some(large) = large_sentence(app, area.width)
        && digits::rows_of(large.len()) <= area.height
    {
        digits::draw_lines(buffer, (area.x + 1, area.y), &large, theme.strong);
    }
}

/// Returns the rows that the guide needs at this width.
pub fn rows(app: &App, theme: &Theme, width: u16) -> u16 {
    height(lines(app, theme, width).len())
}

/// Returns the lines of the sentence that the room reads at a beat, wrapped for large glyphs. `None` where they would take more than a
/// quarter of the screen, and outside a beat.
fn large_sentence(app: &App, width: u16) -> Option<Vec<String>> {
    if app.view.confirm.is_some() || is_counted(app) {
        return None;
    }
    let cue = app.cue()?;
    let sentence = filled_as_found(app, &cue.say).unwrap_or_else(|| cue.say.clone());
    let lines = digits::wrap(&sentence, width.saturating_sub(2))?;
    (4 * digits::rows_of(lines.len()) <= app.view.size.1).then_some(lines)
}

/// Returns true if the class has voted at this beat. The guide then has the count of the votes in the place of the call for hands.
fn is_counted(app: &App) -> bool {
    let asked = app.beat().is_some_and(|beat| beat.vote == VoteState::Open);
    asked && app.tally().is_some_and(|tally| !tally.open)
}

/// Returns the lines of the guide: a confirmation, the text of a beat, the pointed-out evidence, or the next move.
fn lines(app: &App, theme: &Theme, width: u16) -> Vec<Line<'static>> {
    if let Some(confirm) = app.view.confirm {
        let question = sentence(&confirmation(confirm, app), app, theme, theme.warning);
        return marked(("?", theme.badge), &question.spans, width);
    }
    let course_text = |marker: &str, text: &str| {
        let place = (app, theme, width.saturating_sub(1));
        lines_as_found(place, (marker, theme.badge), text.trim(), theme.strong)
    };
    if let Some((beat, cue)) = app.beat().zip(app.cue()) {
        let mut lines = match large_sentence(app, width) {
            // The large glyphs are drawn over empty lines.
            Some(large) => vec![Line::default(); usize::from(digits::rows_of(large.len()))],
            None if is_counted(app) => Vec::new(),
            None => course_text(" ", &cue.say),
        };
        if beat.vote == VoteState::Open
            && let Some(tally) = app.tally()
        {
            let votes = [Span::styled(tally.in_words(), theme.strong)];
            lines.extend(text::wrap(&votes, usize::from(width), " ", " "));
        }
        if app.view.notice.is_some() {
            lines.extend(notice_or_next_move(app, theme, width));
        }
        return lines;
    }
    let evidence = app.stage().map(|stage| &stage.evidence);
    if let Some((index, evidence)) = app.lesson.learner.pointer.zip(evidence)
        && let Some(pointer) = evidence.get(index)
    {
        let number = index + 1;
        let count = evidence.len();
        let marker = format!(" {number}/{count} {} ", pointer.panel.into_str());
        let mut lines = course_text(&marker, &pointer.text);
        lines.extend(notice_or_next_move(app, theme, width));
        return lines;
    }
    notice_or_next_move(app, theme, width)
}

fn notice_or_next_move(app: &App, theme: &Theme, width: u16) -> Vec<Line<'static>> {
    let symbols = &theme.symbols;
    let Some(notice) = &app.view.notice else {
        let next = sentence(&next_move(app), app, theme, theme.text);
        return marked((symbols.pointer, theme.key), &next.spans, width);
    };
    let (mark, style) = if notice.warning {
        (symbols.warning, theme.warning)
    } else {
        (symbols.pointer, theme.text)
    };
    let text = Span::styled(notice.text.as_str(), style);
    marked((mark, style), &[text], width)
}

/// The fewest steps whose spread is shown, because a spread of fewer steps says nothing.
const MIN_STEPS: u64 = 5;

/// Returns the status line with as many parts as fit; the less important parts are left out first.
pub fn line(app: &App, theme: &Theme, columns: u16) -> Line<'static> {
    let gap = Span::styled(" · ", theme.dim);
    let mut parts = vec![(0, Span::raw(" "))];
    let place = match (app.exercise(), app.stage()) {
        (Some(exercise), _) => Some(exercise.label().to_owned()),
        (None, Some(stage)) => {
            let stages = app.lesson.course.stages.len();
            Some(format!("stage {}/{stages}", stage.number))
        }
        (None, None) => None,
    };
    if let Some(place) = place {
        parts.extend([(4, Span::styled(place, theme.text)), (4, gap.clone())]);
    }
    parts.extend(state(app, theme).into_iter().map(|span| (0, span)));
    let mut add = |rank: u8, text: String, style: Style| {
        parts.extend([(rank, gap.clone()), (rank, Span::styled(text, style))]);
    };
    if let Some(step) = app.shown_run().step() {
        add(2, format!("step {step}"), theme.text);
    }
    let throughput = app.shown_run().shown().throughput.as_ref();
    if let Some(throughput) = throughput
        && throughput.step_ms.median > 0.0
    {
        let unsynced = throughput.clock == ENQUEUE;
        add(1, rate_and_spread(throughput), theme.strong);
        let style = if unsynced { theme.warning } else { theme.text };
        add(3, format!("{} clock", throughput.clock), style);
    }
    if let Some((text, warning)) = app.class.as_ref().and_then(|member| membership(member)) {
        let style = if warning { theme.warning } else { theme.text };
        add(2, text, style);
    }
    let (shown, hints) = app.reading().hints();
    if hints > 0 {
        add(5, format!("hint {shown}/{hints}"), theme.text);
    }
    text::ranked(parts, usize::from(columns))
}

/// Returns the rate with its spread, as in `44.35 ± 0.63 samples/s`. The spread is half the distance between the quartiles of the rate.
fn rate_and_spread(throughput: &Throughput) -> String {
    let times = throughput.step_ms;
    let rate = number(throughput.samples_per_s);
    // The times of unsynced steps say nothing about the spread of the rate.
    if throughput.clock == ENQUEUE {
        return format!("{rate} samples/s by wall time");
    }
    if times.n < MIN_STEPS {
        return format!("{rate} samples/s");
    }
    let quartiles = 1.0 / times.p25 - 1.0 / times.p75;
    let spread = throughput.samples_per_s * times.median * quartiles / 2.0;
    let decimals = rate
        .split_once('.')
        .map_or(0, |(_, fraction)| fraction.len());
    let spread = show(spread.max(0.0), decimals);
    format!("{rate} ± {spread} samples/s")
}

/// Returns the state of the room as a phrase, and true if the phrase is highlighted. `None` after the learner has left the room.
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

/// Returns the state of the run as a phrase, such as `running` or `starting, 12 s`, and the name of its configuration.
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
    if let Some(step) = &run.last
        && step.profiled
        && !app.shown_bench().pairing()
    {
        text += &format!(", profiled step {} ms", ms(step.ms));
    }
    // A watched training with a process in trouble is not running.
    let mut spans = vec![match watched::trouble(app, theme) {
        Some(trouble) => {
            let text = format!("{} {trouble}", theme.symbols.warning);
            Span::styled(text, theme.warning)
        }
        None => Span::styled(text, style),
    }];
    if !run.description.name.is_empty() {
        let name = format!(" {}", app.shown_run().slot_name(app.shown_run().active));
        spans.push(Span::styled(name, theme.slot(app.shown_run().active)));
    }
    spans
}
