//! A frame as text that shows its styles too: the backend for tests drops colours when it prints.
#![allow(dead_code, reason = "each test uses a part of it")]

use perflings::app::{App, Markers, Message, Panel, ThemeName, update};
use perflings::tui::symbols::fold_to_ascii;
use perflings::tui::theme::{Background, Colours, TerminalAbilities, Theme};
use perflings::tui::{panels, view};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier};

/// A terminal that can do everything.
pub(crate) const ABLE: TerminalAbilities = TerminalAbilities {
    colours: Colours::Indexed,
    background: Some(Background::Dark),
    ascii: false,
};

/// A way of drawing, for the names of snapshots.
pub(crate) const LOOKS: [(&str, ThemeName, Markers); 3] = [
    ("dark", ThemeName::Dark, Markers::Braille),
    ("mono", ThemeName::Mono, Markers::Dots),
    ("ascii", ThemeName::Mono, Markers::Ascii),
];

/// Draws the whole screen.
pub(crate) fn screen(
    app: &mut App,
    width: u16,
    height: u16,
    theme: ThemeName,
    markers: Markers,
) -> Buffer {
    update(app, Message::Resized { width, height });
    (app.view.theme, app.view.markers) = (theme, markers);
    let theme = Theme::new(theme, markers, ABLE);
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a test backend");
    let mut limits = None;
    terminal
        .draw(|frame| limits = Some(view(frame, app, &theme)))
        .expect("drawn");
    update(app, Message::Drawn(limits.expect("drawn")));
    terminal.backend().buffer().clone()
}

/// Draws one panel alone.
pub(crate) fn panel(
    app: &mut App,
    panel: Panel,
    width: u16,
    height: u16,
    theme: ThemeName,
    markers: Markers,
) -> Buffer {
    update(
        app,
        Message::Resized {
            width: 200,
            height: 50,
        },
    );
    app.view.focus = None;
    let theme = Theme::new(theme, markers, ABLE);
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a test backend");
    terminal
        .draw(|frame| {
            let area = Rect::new(0, 0, width, height);
            panels::draw(panel, area, app, &theme, frame);
            if markers == Markers::Ascii {
                fold_to_ascii(frame.buffer_mut());
            }
        })
        .expect("drawn");
    terminal.backend().buffer().clone()
}

/// The text, then the same grid with a letter per style, then what the letters mean.
pub(crate) fn with_styles(buffer: &Buffer) -> String {
    let area = buffer.area;
    let mut legend: Vec<String> = vec![describe(Color::Reset, Color::Reset, Modifier::empty())];
    let (mut text, mut styles) = (String::new(), String::new());
    for y in area.top()..area.bottom() {
        let (mut line, mut marks) = (String::new(), String::new());
        for x in area.left()..area.right() {
            let cell = &buffer[(x, y)];
            line.push_str(cell.symbol());
            let style = describe(cell.fg, cell.bg, cell.modifier);
            let at = legend
                .iter()
                .position(|known| *known == style)
                .unwrap_or_else(|| {
                    legend.push(style);
                    legend.len() - 1
                });
            marks.push(letter(at));
        }
        text += &format!("│{line}│\n");
        styles += &format!("│{}\n", marks.trim_end_matches('.'));
    }
    let legend: String = legend
        .iter()
        .enumerate()
        .map(|(at, style)| format!("{} {style}\n", letter(at)))
        .collect();
    format!("{text}\n{styles}\n{legend}")
}

/// The text alone.
pub(crate) fn text(buffer: &Buffer) -> String {
    let area = buffer.area;
    (area.top()..area.bottom())
        .map(|y| {
            (area.left()..area.right())
                .map(|x| buffer[(x, y)].symbol())
                .collect::<String>()
                + "\n"
        })
        .collect()
}

fn letter(at: usize) -> char {
    const LETTERS: &[u8] = b".abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    LETTERS.get(at).map_or('?', |byte| char::from(*byte))
}

fn describe(fg: Color, bg: Color, modifier: Modifier) -> String {
    let mut words = vec![format!("{fg:?}").to_lowercase()];
    if bg != Color::Reset {
        words.push(format!("on {bg:?}").to_lowercase());
    }
    words.extend(modifier.iter_names().map(|(name, _)| name.to_lowercase()));
    words.join(" ")
}
