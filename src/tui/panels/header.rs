//! The top lines: which stage this is, what has to be known about where the figures come from, and the vital signs.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::sentence;
use crate::app::guide::{Mark, Vital, first_light, vitals};
use crate::app::{Action, App, Overlay};
use crate::tui::keys;
use crate::tui::theme::Theme;

/// Title left, badges right.
pub fn render(frame: &mut Frame<'_>, area: Rect, app: &App, theme: &Theme) {
    if area.is_empty() {
        return;
    }
    let mut spans = vec![Span::styled(" perflings ", theme.title_focused)];
    if let Some(exercise) = app.exercise() {
        spans.push(Span::raw(" "));
        spans.push(super::exercise::label(exercise, theme));
        spans.push(Span::styled(exercise.title.clone(), theme.strong));
    } else if let Some(stage) = app.stage() {
        spans.push(Span::styled(
            format!(" {}/{} ", stage.number, app.course.stages.len()),
            theme.dim,
        ));
        spans.push(Span::styled(stage.title.clone(), theme.strong));
    }
    let used: usize = spans.iter().map(Span::width).sum();
    frame.render_widget(Line::from(spans), area);
    let room = usize::from(area.width).saturating_sub(used + 2);
    if let Some(badge) = badges(app, theme)
        .into_iter()
        .find(|badge| badge.width() <= room)
    {
        let wide = badge.width() as u16;
        frame.render_widget(
            badge,
            Rect {
                x: area.right() - wide,
                width: wide,
                ..area
            },
        );
    }
}

/// Where the figures come from, the fullest wording first.
fn badges(app: &App, theme: &Theme) -> Vec<Line<'static>> {
    if let Some(recording) = app.recording() {
        let pace = if recording.paused {
            "paused".to_owned()
        } else {
            format!("{}x", recording.speed)
        };
        let wordings = [
            format!(
                " RECORDING {} · {} · {pace} ",
                recording.device.name, recording.date
            ),
            format!(" RECORDING {} · {pace} ", recording.date),
            " RECORDING ".to_owned(),
        ];
        return wordings
            .map(|text| Line::styled(text, theme.badge))
            .to_vec();
    }
    let log = (app.log.unseen > 0).then(|| {
        let key = keys::label(Action::Open(Overlay::Log), app);
        [
            Span::styled(format!("  {} in the log ", app.log.unseen), theme.dim),
            Span::styled(key, theme.key),
        ]
    });
    let device = app
        .device()
        .map(|device| (device.kind.clone(), device.name.clone()));
    let offered = app.devices.offer().is_some();
    let light: Vec<Span<'static>> = first_light(app)
        .map(|light| {
            sentence(
                &light,
                app,
                theme,
                if offered { theme.good } else { theme.dim },
            )
            .spans
        })
        .unwrap_or_default();
    let line = |with_name: bool, with_light: bool, with_log: bool| {
        let mut spans = Vec::new();
        if with_light && !light.is_empty() {
            spans.extend(light.clone());
            spans.push(Span::raw("   "));
        }
        if let Some((kind, name)) = &device {
            let text = if with_name && !name.is_empty() {
                format!("{kind}: {name}")
            } else {
                kind.clone()
            };
            spans.push(Span::styled(text, theme.text));
        }
        spans.extend(log.iter().flatten().filter(|_| with_log).cloned());
        spans.push(Span::raw(" "));
        Line::from(spans)
    };
    vec![
        line(true, true, true),
        line(false, true, true),
        line(false, true, false),
        line(true, false, true),
        line(false, false, true),
        line(false, false, false),
    ]
}

/// The four figures every run shows, in the longest wording that fits.
pub fn render_vitals(frame: &mut Frame<'_>, area: Rect, app: &App, theme: &Theme) {
    let all = vitals(app);
    if app.riddle() {
        let text = " The checks of this run are shown here once the fault is named";
        return frame.render_widget(Line::styled(text, theme.dim), area);
    }
    let room = usize::from(area.width);
    let lines = [
        Wording::Full,
        Wording::Figures,
        Wording::Bare,
        Wording::Tight,
    ];
    let mut lines = lines.map(|wording| line(&all, wording, theme)).into_iter();
    let fits = lines.find(|line| line.width() <= room);
    let line = fits.unwrap_or_else(|| {
        let first = all.len().saturating_sub(1);
        line(&all[..first], Wording::Tight, theme)
    });
    frame.render_widget(line, area);
}

/// How much is said.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wording {
    Full,
    /// Figures without their words.
    Figures,
    /// The latest loss stands in the loss panel, too.
    Bare,
    /// Without a space that can go.
    Tight,
}

fn line(all: &[Vital], wording: Wording, theme: &Theme) -> Line<'static> {
    let (gap, space) = match wording {
        Wording::Full => ("    ", " "),
        Wording::Figures | Wording::Bare => ("  ", " "),
        Wording::Tight => (" ", ""),
    };
    let mut spans = vec![Span::raw(" ")];
    for (at, vital) in all.iter().enumerate() {
        let (mark, style) = match vital.mark {
            Mark::Good => (theme.symbols.good, theme.good),
            Mark::Bad => (theme.symbols.bad, theme.bad),
            Mark::Open => ("", theme.text),
        };
        let value = match wording {
            Wording::Full => vital.value.clone(),
            Wording::Figures => short(&vital.value),
            Wording::Bare => bare(&vital.value),
            Wording::Tight => bare(&vital.value).replace(" %", "%"),
        };
        let label = match (vital.label, wording) {
            ("first loss", Wording::Tight) => "first",
            (label, _) => label,
        };
        let mark = match mark {
            "" => String::new(),
            mark => format!("{mark}{space}"),
        };
        if at > 0 {
            spans.push(Span::raw(gap));
        }
        spans.push(Span::styled(format!("{label} "), theme.dim));
        spans.push(Span::styled(format!("{mark}{value}"), style));
    }
    Line::from(spans)
}

fn short(value: &str) -> String {
    if let Some((number, _)) = value.split_once(" % ") {
        return format!("{number} %");
    }
    match value {
        "not synchronised" => "no sync".to_owned(),
        it => it.replace("not measured", "?").replace(" of ln V ", "/"),
    }
}

fn bare(value: &str) -> String {
    let first = value.split_once(", now ").map(|(first, _)| first);
    short(first.unwrap_or(value))
}
