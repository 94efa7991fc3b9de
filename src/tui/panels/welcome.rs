//! The card of the first start tells what the program is, how a stage works, which keys are the most important, and on which device the
//! model trains.
//!
//! ```text
//! A tiny Llama trains in this terminal, and something is wrong with it.
//!
//! How a stage works
//!  1 predict    read the lesson, and say what you think the cause is
//!  2 evidence   look at the panels that show it
//!
//! The five most important keys
//!  enter the lesson   tab next panel   f the knobs   h a hint   ? every key
//! It runs on cpu (EPYC 9654, 2 threads), model size tiny
//! ```

use ratatui::layout::Rect;
use ratatui::text::Span;

use super::content::Content;
use crate::app::{Action, App, Overlay};
use crate::tui::prose::ProseWriter;
use crate::tui::theme::Theme;
use crate::tui::{keys, text};

const INTRODUCTION: &str = "A tiny Llama trains in this terminal, and something is wrong with it. \
    In each stage you find out what, from what the panels measure. The run behind this card is real: \
    it trains on this machine now, and every number is measured while you look.";

/// The steps of a stage, each with the learner's task.
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
    w.text(INTRODUCTION);
    w.heading("How a stage works");
    for (number, (step, task)) in (1..).zip(STEPS) {
        let marker = format!(" {number} {}", text::left(step, 11));
        w.item(&marker, theme.strong, task);
    }
    w.heading("The five most important keys");
    five_keys(&mut w);
    device_and_size(&mut w);
    Content::titled("welcome to perflings", w.lines)
}

/// Writes the five keys with their effects on as few lines as possible. A key and its effect stay on one line.
fn five_keys(w: &mut ProseWriter<'_>) {
    let mut runs = Vec::new();
    for (action, effect) in [
        (Action::Lesson, "the lesson"),
        (Action::FocusNext, "next panel"),
        (Action::Knobs, "the knobs"),
        (Action::Hint, "a hint"),
        (Action::Open(Overlay::Help), "every key"),
    ] {
        let key = keys::label(action, w.app);
        let effect = format!(" {effect}  ").replace(' ', text::NO_BREAK);
        runs.push(Span::styled(key, w.theme.key));
        runs.push(Span::styled(effect + " ", w.theme.text));
    }
    w.runs(&runs, " ", " ");
}

/// Writes the device and the size of the model, and how to choose others.
fn device_and_size(w: &mut ProseWriter<'_>) {
    let theme = w.theme;
    let using = &w.app.devices.using;
    let device = match w.app.shown_run().device() {
        Some(device) if !device.name.is_empty() => format!("{using} ({})", device.name),
        _ => using.clone(),
    };
    let size = match &w.app.shown_run().wanted {
        Some(run) => format!(", model size {}", run.config.preset),
        None => String::new(),
    };
    let key = keys::label(Action::Open(Overlay::Devices), w.app);
    let others = " lists the devices; start with --device or --preset to choose others.";
    let runs = [
        Span::styled("It runs on ", theme.text),
        Span::styled(format!("{device}{size}"), theme.strong),
        Span::styled("; ", theme.text),
        Span::styled(key, theme.key),
        Span::styled(others, theme.text),
    ];
    w.runs(&runs, "", "");
}
