//! The card of the very first start: what the program is, how a stage works, the most important keys, and the device.

use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::content::Content;
use crate::app::{Action, App, Overlay};
use crate::tui::prose::ProseWriter;
use crate::tui::theme::Theme;
use crate::tui::{keys, text};

const WHAT: &str = "A tiny Llama trains in this terminal, and something is wrong with it. In each stage you find out \
                    what, from what the panels measure. The run behind this card is real: it trains on this machine \
                    now, and every number is measured while you look.";

/// The steps of a stage.
#[rustfmt::skip]
const STEPS: [(&str, &str); 5] = [
    ("predict", "read the lesson, and say what you think the cause is"),
    ("evidence", "look at the panels that show it"),
    ("fix", "change B with its knobs or its file; A stays as found"),
    ("check", "measured checks pass or fail; pairs run both in turns"),
    ("look back", "your prediction beside the numbers"),
];

pub(super) fn content<'a>(app: &'a App, theme: &'a Theme, area: Rect) -> Content<'a> {
    let mut w = ProseWriter::new(app, theme, area.width);
    w.text(WHAT);
    w.heading("How a stage works");
    for (at, (step, what)) in STEPS.into_iter().enumerate() {
        let marker = format!(" {} {}", at + 1, text::left(step, 11));
        w.item(&marker, theme.strong, what);
    }
    w.heading("The five most important keys");
    five_keys(&mut w);
    place(&mut w);
    Content::titled("welcome to perflings", w.lines)
}

/// The keys on as few lines as hold them.
fn five_keys(w: &mut ProseWriter<'_>) {
    let five = [
        (Action::Lesson, "the lesson"),
        (Action::FocusNext, "next panel"),
        (Action::Knobs, "the knobs"),
        (Action::Hint, "a hint"),
        (Action::Open(Overlay::Help), "every key"),
    ];
    // A key and what it does stay together.
    let mut line: Vec<Span<'static>> = Vec::new();
    for (action, what) in five {
        let (key, what) = (keys::label(action, w.app), format!(" {what}"));
        if text::width_of(&line) + 3 + text::width(&key) + text::width(&what) > w.columns {
            w.lines.push(Line::from(std::mem::take(&mut line)));
        }
        line.extend([
            Span::raw(if line.is_empty() { " " } else { "   " }),
            Span::styled(key, w.theme.key),
            Span::styled(what, w.theme.text),
        ]);
    }
    w.lines.push(Line::from(line));
}

/// The device and the preset, and how to choose others.
fn place(w: &mut ProseWriter<'_>) {
    let (app, theme) = (w.app, w.theme);
    let using = &app.devices.using;
    let named = app
        .shown_run()
        .device()
        .filter(|device| !device.name.is_empty());
    let device = named.map_or_else(|| using.clone(), |it| format!("{using} ({})", it.name));
    let preset = app.shown_run().wanted.as_ref().map(|run| run.config.preset);
    let preset = preset.map_or_else(String::new, |preset| format!(", model size {preset}"));
    let other = keys::label(Action::Open(Overlay::Devices), app);
    let rest = " lists the devices; start with --device or --preset to choose others.";
    let runs = [
        Span::styled("It runs on ", theme.text),
        Span::styled(format!("{device}{preset}"), theme.strong),
        Span::styled("; ", theme.text),
        Span::styled(other, theme.key),
        Span::styled(rest, theme.text),
    ];
    w.runs(&runs, "", "");
}
