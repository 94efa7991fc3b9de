//! The top lines: the stage, where the figures come from, and the four figures that every run shows.

use ratatui::text::{Line, Span};

use super::exercise;
use crate::app::busy;
use crate::app::guide::{FigureState, RunFigure, gpu_warm_up, vitals};
use crate::app::{Action, App, Overlay};
use crate::tui::prose::sentence;
use crate::tui::theme::Theme;
use crate::tui::{keys, text};
use protocol::stats::roofline;

/// The first line: the title left, a badge right where there is room.
pub fn line(app: &App, theme: &Theme, columns: u16) -> Line<'static> {
    let mut spans = vec![Span::styled(" perflings ", theme.title_focused)];
    if let Some(open) = app.exercise() {
        spans.push(Span::raw(" "));
        spans.push(exercise::label(open, theme));
        spans.push(Span::styled(open.title.clone(), theme.strong));
    } else if let Some(stage) = app.stage() {
        let number = format!(" {}/{} ", stage.number, app.lesson.course.stages.len());
        spans.push(Span::styled(number, theme.dim));
        spans.push(Span::styled(stage.title.clone(), theme.strong));
    } else if let Some(mystery) = app.mode.mystery() {
        let (seed, level) = (mystery.mystery.seed, mystery.mystery.level());
        let said = format!(" mystery {seed}, level {level}");
        spans.push(Span::styled(said, theme.strong));
    } else if app.mode.watches() {
        spans.push(Span::styled(
            " the training of another program",
            theme.strong,
        ));
    } else if app.can_edit() || app.mode.is_replay() {
        spans.push(Span::styled(" a free run", theme.strong));
    }
    let room = usize::from(columns).saturating_sub(text::width_of(&spans));
    let mut badges = badges(app, theme).into_iter();
    if let Some(badge) = badges.find(|badge| badge.width() + 2 <= room) {
        spans.push(Span::raw(" ".repeat(room - badge.width())));
        spans.extend(badge.spans);
    }
    Line::from(spans)
}

/// Where the figures come from, the fullest wording first.
fn badges(app: &App, theme: &Theme) -> Vec<Line<'static>> {
    if let Some(recording) = app.mode.recording() {
        let pace = match recording.paused {
            true => "paused".to_owned(),
            false => format!("{}x", recording.speed),
        };
        let (name, date) = (&recording.device.name, &recording.date);
        let wordings = match recording.watched {
            true => [
                format!(" WATCHING {} ", recording.file),
                " WATCHING ".to_owned(),
                " WATCHING ".to_owned(),
            ],
            false => [
                format!(" RECORDING {name} · {date} · {pace} "),
                format!(" RECORDING {date} · {pace} "),
                " RECORDING ".to_owned(),
            ],
        };
        let badge = |said| Line::from(Span::styled(said, theme.badge));
        return wordings.map(badge).to_vec();
    }
    let offered = app.devices.offer().is_some();
    let style = if offered { theme.good } else { theme.dim };
    let light = gpu_warm_up(app).map(|light| sentence(&light, app, theme, style).spans);
    let run = &app.shown_run().shown().description;
    let (peak, format) = (run.roof.as_deref().map(roofline::words), run.format());
    let line = |with_peak: bool, with_name: bool, with_light: bool, with_log: bool| {
        let mut spans = Vec::new();
        if let Some(light) = light.as_ref().filter(|_| with_light) {
            spans.extend(light.clone());
            spans.push(Span::raw("   "));
        }
        if let Some(device) = app.shown_run().device() {
            let text = match with_name && !device.name.is_empty() {
                true => format!("{}: {}", device.kind, device.name),
                false => device.kind.clone(),
            };
            spans.push(Span::styled(text, theme.text));
        }
        if let Some(format) = &format {
            let short = format.split(':').next().unwrap_or(format);
            let said = if with_name { format } else { short };
            spans.push(Span::styled(format!(" · {said}"), theme.warning));
        }
        if let Some(peak) = peak.as_ref().filter(|_| with_peak) {
            spans.push(Span::styled(format!(" · {peak}"), theme.dim));
        }
        if with_log && app.devices.log.unseen > 0 {
            let key = keys::label(Action::Open(Overlay::Log), app);
            let said = format!("  {} in the log ", app.devices.log.unseen);
            spans.push(Span::styled(said, theme.dim));
            spans.push(Span::styled(key, theme.key));
        }
        spans.push(Span::raw(" "));
        Line::from(spans)
    };
    vec![
        line(true, true, true, true),
        line(false, true, true, true),
        line(false, false, true, true),
        line(false, false, true, false),
        line(true, true, false, true),
        line(true, false, false, true),
        line(false, true, false, true),
        line(false, false, false, true),
        line(false, false, false, false),
    ]
}

/// The four figures every run shows, in the longest wording that fits.
pub fn vitals_line(app: &App, theme: &Theme, columns: u16) -> Line<'static> {
    if app.is_unsolved() {
        let text = match app.mode.mystery() {
            Some(_) => " The checks are shown here once the mystery has ended",
            None => " The checks of this run are shown here once the fault is named",
        };
        return Line::styled(text, theme.dim);
    }
    let all = vitals(app);
    // With all words; figures alone; without the latest loss, which the loss panel has as well; without what the speed is a share
    // of; with fewer spaces; without the speed.
    let first = &all[..all.len().saturating_sub(1)];
    let wordings = [
        wording_of(&all, "    ", " ", str::to_owned, theme),
        wording_of(&all, "  ", " ", short, theme),
        wording_of(&all, "  ", " ", bare, theme),
        wording_of(&all, "  ", " ", unnamed, theme),
        wording_of(&all, " ", "", |it| tight(&bare(it)), theme),
        wording_of(&all, " ", "", |it| tight(&unnamed(it)), theme),
        wording_of(first, " ", "", |it| tight(&unnamed(it)), theme),
    ];
    text::longest(wordings, usize::from(columns))
}

/// That other programs keep the machine busy, in the longest wording that fits.
pub fn busy_line(app: &App, theme: &Theme, columns: u16) -> Line<'static> {
    let mark = theme.symbols.warning;
    let wordings = busy::wordings(app).into_iter().flatten();
    let lines = wordings.map(|it| Line::styled(format!(" {mark} {it}"), theme.warning));
    text::longest(lines, usize::from(columns))
}

/// Figures in one wording, with this gap between them and this space after a mark.
fn wording_of(
    all: &[RunFigure],
    gap: &'static str,
    space: &str,
    wording: fn(&str) -> String,
    theme: &Theme,
) -> Line<'static> {
    let mut spans = vec![Span::raw(" ")];
    for (at, vital) in all.iter().enumerate() {
        let label = match vital.label {
            "first loss" if space.is_empty() => "first",
            "unaccounted" if space.is_empty() => "unacc.",
            label => label,
        };
        let (mark, style) = match vital.mark {
            FigureState::Open => (String::new(), theme.text),
            mark => {
                let (mark, style) = theme.mark(mark == FigureState::Good);
                (format!("{mark}{space}"), style)
            }
        };
        let value = wording(&vital.value);
        spans.push(Span::raw(if at > 0 { gap } else { "" }));
        spans.push(Span::styled(format!("{label} "), theme.dim));
        spans.push(Span::styled(format!("{mark}{value}"), style));
    }
    Line::from(spans)
}

/// What the speed is a share of, after its percent sign.
const OF_PEAK: &str = " of peak";

fn short(value: &str) -> String {
    if let Some((number, of)) = value.split_once(" %") {
        let of_peak = if of.starts_with(OF_PEAK) { OF_PEAK } else { "" };
        return format!("{number} %{of_peak}");
    }
    match value {
        "not synchronised" => "no sync".to_owned(),
        it => it.replace("not measured", "?").replace(" of ln V ", "/"),
    }
}

fn bare(value: &str) -> String {
    short(value.split_once(", now ").map_or(value, |(first, _)| first))
}

fn unnamed(value: &str) -> String {
    bare(value).replace(OF_PEAK, "")
}

fn tight(value: &str) -> String {
    value.replace(" %", "%")
}
