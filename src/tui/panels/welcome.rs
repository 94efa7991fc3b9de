//! The first card of the very first start: what this is, how a stage goes, the keys that matter, and where it runs.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::{card, closes, show};
use crate::app::{Action, App, Overlay};
use crate::tui::theme::Theme;
use crate::tui::{keys, text};

/// Widest line of text that reads well.
const READING: u16 = 76;

const WHAT: &str = "A tiny Llama trains in this terminal, and something is wrong with it. In each stage you find out \
                    what, from what the panels measure. Nothing is canned: the run behind this card is real, it trains \
                    on this machine now, and every number is measured while you look.";

/// The steps of a stage.
const STEPS: [(&str, &str); 5] = [
    (
        "predict",
        "read the lesson, and say what you think is the cause",
    ),
    ("evidence", "look at the panels that hold it"),
    ("fix", "toggle the fix while it trains, or edit the file"),
    (
        "check",
        "measured checks pass or do not; pairs run both in turns",
    ),
    ("look back", "your prediction beside the numbers"),
];

/// Columns and rows of the card in a frame of this width.
pub fn size(app: &App, width: u16, theme: &Theme) -> (u16, u16) {
    let columns = width.min(READING + 4);
    let rows = lines(app, usize::from(columns.saturating_sub(4)), theme).len() + 2;
    (columns, u16::try_from(rows).unwrap_or(u16::MAX))
}

pub fn render(frame: &mut Frame<'_>, area: Rect, app: &App, theme: &Theme) -> u16 {
    let inner = card(
        frame,
        area,
        "welcome to perflings",
        &closes(app),
        theme.border_focused,
        theme,
    );
    let lines = lines(app, usize::from(inner.width), theme);
    show(frame, inner, lines, app.view.overlay_scroll, theme)
}

fn lines(app: &App, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let mut lines = text::wrap_plain(WHAT, columns, theme.text);
    let heading = |lines: &mut Vec<Line<'static>>, words: &'static str| {
        lines.push(Line::default());
        lines.push(Line::styled(words, theme.heading));
    };
    heading(&mut lines, "How a stage goes");
    for (at, (step, what)) in STEPS.into_iter().enumerate() {
        let marker = format!(" {} {}", at + 1, text::left(step, 11));
        lines.extend(text::wrap_item(
            &marker,
            theme.strong,
            what,
            columns,
            theme.text,
        ));
    }
    heading(&mut lines, "The five keys that matter");
    lines.extend(five_keys(app, columns, theme));
    lines.push(Line::default());
    lines.extend(place(app, columns, theme));
    lines
}

/// The keys on as few lines as hold them.
fn five_keys(app: &App, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let five = [
        (Action::Lesson, "the lesson"),
        (Action::FocusNext, "next panel"),
        (Action::Toggle, "the fix"),
        (Action::Hint, "a hint"),
        (Action::Open(Overlay::Help), "every key"),
    ];
    // A key and what it does stay together.
    let mut lines: Vec<Line<'static>> = vec![Line::default()];
    for (action, what) in five {
        let (key, what) = (keys::label(action, app), format!(" {what}"));
        let wide = 3 + text::width(&key) + text::width(&what);
        if lines
            .last()
            .is_some_and(|line| line.width() + wide > columns)
        {
            lines.push(Line::default());
        }
        if let Some(line) = lines.last_mut() {
            let gap = if line.spans.is_empty() { " " } else { "   " };
            line.spans.extend([
                Span::raw(gap),
                Span::styled(key, theme.key),
                Span::styled(what, theme.text),
            ]);
        }
    }
    lines
}

/// Which device and preset, and how to have others.
fn place(app: &App, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let named = app.device().filter(|device| !device.name.is_empty());
    let device = match named {
        Some(device) => format!("{} ({})", app.devices.using, device.name),
        None => app.devices.using.clone(),
    };
    let preset = app.run.wanted.as_ref().map(|run| run.config.preset);
    let preset = preset.map_or_else(String::new, |preset| format!(", model size {preset}"));
    let other = keys::label(Action::Open(Overlay::Devices), app);
    let plain = |text: String| (text, theme.text);
    let runs: [(String, Style); 5] = [
        plain("It runs on ".to_owned()),
        (format!("{device}{preset}"), theme.strong),
        plain("; ".to_owned()),
        (other, theme.key),
        plain(" lists the devices, --device and --preset at the start choose others.".to_owned()),
    ];
    text::wrap(&runs, columns, Span::raw(""), Span::raw(""))
}
