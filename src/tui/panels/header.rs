//! The top lines: which stage this is, what has to be known about where the figures come from, and the vital signs.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::sentence;
use crate::app::guide::{Mark, first_light, vitals};
use crate::app::{Action, App};
use crate::tui::keys;
use crate::tui::theme::Theme;

/// Title left, badges right.
pub fn render(frame: &mut Frame<'_>, area: Rect, app: &App, theme: &Theme) {
    if area.is_empty() {
        return;
    }
    let mut spans = vec![Span::styled(" perflings ", theme.title_focused)];
    if let Some(stage) = app.stage() {
        spans.push(Span::styled(format!(" {}/{} ", stage.number, app.course.stages.len()), theme.dim));
        spans.push(Span::styled(stage.title.clone(), theme.strong));
    }
    let badge = badge(app, theme);
    let used: usize = spans.iter().map(Span::width).sum();
    frame.render_widget(Line::from(spans), area);
    let wide = badge.width().min(usize::from(area.width)) as u16;
    if used + usize::from(wide) + 2 <= usize::from(area.width) {
        frame.render_widget(badge, Rect { x: area.right() - wide, width: wide, ..area });
    }
}

/// Where the figures come from.
fn badge(app: &App, theme: &Theme) -> Line<'static> {
    let mut spans = Vec::new();
    if let Some(recording) = &app.recording {
        let pace = if recording.paused { "paused".to_owned() } else { format!("{}x", recording.speed) };
        let text = format!(" RECORDING {} · {} · {pace} ", recording.device.name, recording.date);
        return Line::from(vec![Span::styled(text, theme.badge), Span::raw(" ")]);
    }
    if let Some(light) = first_light(app) {
        let offered = app.devices.offer().is_some();
        spans.extend(sentence(&light, app, theme, if offered { theme.good } else { theme.dim }).spans);
        spans.push(Span::raw("  "));
    }
    if let Some(device) = app.device() {
        let text = if device.name.is_empty() { device.kind.clone() } else { format!("{}: {}", device.kind, device.name) };
        spans.push(Span::styled(text, theme.text));
        spans.push(Span::raw(" "));
    }
    if app.log.unseen > 0 {
        let key = keys::label(Action::Open(crate::app::Overlay::Log), app);
        spans.push(Span::styled(format!(" {} in the log ", app.log.unseen), theme.dim));
        spans.push(Span::styled(key, theme.key));
        spans.push(Span::raw(" "));
    }
    Line::from(spans)
}

/// The four figures every run shows.
pub fn render_vitals(frame: &mut Frame<'_>, area: Rect, app: &App, theme: &Theme) {
    let mut spans = vec![Span::raw(" ")];
    for vital in vitals(app) {
        let (mark, style) = match vital.mark {
            Mark::Good => (theme.symbols.good, theme.good),
            Mark::Bad => (theme.symbols.bad, theme.bad),
            Mark::Open => ("", theme.text),
        };
        // In a narrow frame the first word of the figure says enough.
        let value = if area.width < 110 { short(&vital.value) } else { vital.value.clone() };
        let mark = if mark.is_empty() { String::new() } else { format!("{mark} ") };
        spans.push(Span::styled(format!("{} ", vital.label), theme.dim));
        spans.push(Span::styled(format!("{mark}{value}"), style));
        spans.push(Span::raw(if area.width < 110 { "  " } else { "    " }));
    }
    frame.render_widget(Line::from(spans), area);
}

fn short(value: &str) -> String {
    match value.split_once(" % ") {
        Some((number, _)) => format!("{number} %"),
        None => value.replace("not measured", "?").replace(" of ln V ", "/"),
    }
}
