//! The top lines of the screen: the stage, the source of the figures, and the four figures that every run shows.
//!
//! ```text
//!  perflings  1/9 A loss that should not exist                     cpu: EPYC 9654
//!  loss ✗ 120.6/6.91  trained ✓ 100 %  unaccounted ✓ +0.5 %  speed 13.4 % of peak
//! ```
//!
//! Where columns are short, parts of the badge are left out, and the figures have shorter wordings.

use ratatui::text::{Line, Span};

use super::exercise;
use crate::app::busy;
use crate::app::guide::{FigureState, RunFigure, gpu_warm_up, vitals};
use crate::app::{Action, App, Overlay, Replay};
use crate::tui::prose::sentence;
use crate::tui::theme::Theme;
use crate::tui::{keys, text};
use protocol::stats::roofline;

/// Returns the first line: the title on the left and, where there is room, a badge on the right.
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
    } else if let Some(open) = app.mode.mystery() {
        let mystery = &open.mystery;
        let title = format!(" mystery {}, level {}", mystery.seed, mystery.level());
        spans.push(Span::styled(title, theme.strong));
    } else if app.mode.watches() {
        let title = " the training of another program";
        spans.push(Span::styled(title, theme.strong));
    } else if app.can_edit() || app.mode.is_replay() {
        spans.push(Span::styled(" a free run", theme.strong));
    }
    let free = usize::from(columns).saturating_sub(text::width_of(&spans));
    let badge = badge(app, theme, free.saturating_sub(2));
    if badge.width() + 2 <= free {
        spans.push(Span::raw(" ".repeat(free - badge.width())));
        spans.extend(badge.spans);
    }
    Line::from(spans)
}

/// Returns the badge, which says where the figures come from: a recording or a device. It has as many parts as fit into `columns`.
fn badge(app: &App, theme: &Theme, columns: usize) -> Line<'static> {
    let parts = match app.mode.recording() {
        Some(recording) => recording_parts(recording, theme),
        None => device_parts(app, theme),
    };
    text::ranked(parts, columns)
}

/// Returns the parts of the badge of a recording or of a watched training, by rank.
fn recording_parts(recording: &Replay, theme: &Theme) -> Vec<(u8, Span<'static>)> {
    let pace = if recording.paused {
        "paused".to_owned()
    } else {
        format!("{}x", recording.speed)
    };
    let texts = if recording.watched {
        vec![
            (0, " WATCHING ".to_owned()),
            (1, recording.file.clone() + " "),
        ]
    } else {
        vec![
            (0, " RECORDING ".to_owned()),
            (2, format!("{} · ", recording.device.name)),
            (1, format!("{} · {pace} ", recording.date)),
        ]
    };
    texts
        .into_iter()
        .map(|(rank, text)| (rank, Span::styled(text, theme.badge)))
        .collect()
}

/// Returns the parts of the badge of a device, by rank: its name, the format of the run, its peaks, and the new lines of the log.
fn device_parts(app: &App, theme: &Theme) -> Vec<(u8, Span<'static>)> {
    let mut parts = Vec::new();
    if let Some(warm_up) = gpu_warm_up(app) {
        let offered = app.devices.offer().is_some();
        let style = if offered { theme.good } else { theme.dim };
        let spans = sentence(&warm_up, app, theme, style).spans;
        parts.extend(spans.into_iter().map(|span| (1, span)));
        parts.push((1, Span::raw("   ")));
    }
    let mut add = |rank: u8, text: String, style| parts.push((rank, Span::styled(text, style)));
    let run = &app.shown_run().shown().description;
    if let Some(device) = app.shown_run().device() {
        add(0, device.kind.clone(), theme.text);
        if !device.name.is_empty() {
            add(3, format!(": {}", device.name), theme.text);
        }
    }
    if let Some(format) = run.format() {
        let (short, rest) = format.split_at(format.find(':').unwrap_or(format.len()));
        add(0, format!(" · {short}"), theme.warning);
        add(3, rest.to_owned(), theme.warning);
    }
    if let Some(peaks) = run.peaks.as_deref() {
        add(4, format!(" · {}", roofline::describe(peaks)), theme.dim);
    }
    if app.devices.log.unseen > 0 {
        let count = format!("  {} in the log ", app.devices.log.unseen);
        add(2, count, theme.dim);
        let key = keys::label(Action::Open(Overlay::Log), app);
        add(2, key, theme.key);
    }
    add(0, " ".to_owned(), theme.text);
    parts
}

/// Returns the four figures that every run shows, in the longest wording that fits.
pub fn vitals_line(app: &App, theme: &Theme, columns: u16) -> Line<'static> {
    if app.is_unsolved() {
        let text = if app.mode.mystery().is_some() {
            " The checks are shown here once the mystery has ended"
        } else {
            " The checks of this run are shown here once the fault is named"
        };
        return Line::styled(text, theme.dim);
    }
    let all = vitals(app);
    let without_speed = &all[..all.len().saturating_sub(1)];
    let tight_value = |value: &str| tight(&without_loss(value));
    let tightest_value = |value: &str| tight(&without_peak(value));
    // From one wording to the next, these are left out: words beside the figures; the latest loss, which the loss panel shows, too; the
    // words "of peak"; spaces; and at last the speed.
    let wordings = [
        wording_of(&all, "    ", " ", str::to_owned, theme),
        wording_of(&all, "  ", " ", short, theme),
        wording_of(&all, "  ", " ", without_loss, theme),
        wording_of(&all, "  ", " ", without_peak, theme),
        wording_of(&all, " ", "", tight_value, theme),
        wording_of(&all, " ", "", tightest_value, theme),
        wording_of(without_speed, " ", "", tightest_value, theme),
    ];
    text::first_fitting(wordings, usize::from(columns))
}

/// Returns the notice that other programs keep the machine busy, in the longest wording that fits.
pub fn busy_line(app: &App, theme: &Theme, columns: u16) -> Line<'static> {
    let mark = theme.symbols.warning;
    let wordings = busy::wordings(app)
        .into_iter()
        .flatten()
        .map(|wording| Line::styled(format!(" {mark} {wording}"), theme.warning));
    text::first_fitting(wordings, usize::from(columns))
}

/// Returns the figures in one wording, with `gap` between them and `space` after each mark. `wording` shortens the value of a figure.
fn wording_of(
    all: &[RunFigure],
    gap: &'static str,
    space: &str,
    wording: fn(&str) -> String,
    theme: &Theme,
) -> Line<'static> {
    let mut spans = vec![Span::raw(" ")];
    for (index, vital) in all.iter().enumerate() {
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
        spans.push(Span::raw(if index > 0 { gap } else { "" }));
        spans.push(Span::styled(format!("{label} "), theme.dim));
        spans.push(Span::styled(format!("{mark}{value}"), style));
    }
    Line::from(spans)
}

/// The words after the percent sign of the speed.
const OF_PEAK: &str = " of peak";

/// Returns the value of a figure without the words beside it.
fn short(value: &str) -> String {
    if let Some((number, rest)) = value.split_once(" %") {
        let names_peak = rest.starts_with(OF_PEAK);
        let of_peak = if names_peak { OF_PEAK } else { "" };
        return format!("{number} %{of_peak}");
    }
    match value {
        "not synchronised" => "no sync".to_owned(),
        value => value.replace("not measured", "?").replace(" of ln V ", "/"),
    }
}

/// Returns the short value, without the latest loss.
fn without_loss(value: &str) -> String {
    short(value.split_once(", now ").map_or(value, |(first, _)| first))
}

/// Returns the short value, without the latest loss and without the words "of peak".
fn without_peak(value: &str) -> String {
    without_loss(value).replace(OF_PEAK, "")
}

/// Returns a value without the space before its percent sign.
fn tight(value: &str) -> String {
    value.replace(" %", "%")
}
