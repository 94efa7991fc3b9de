//! A frame as text that also shows its styles, because ratatui's backend for tests prints no colours.
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

/// The abilities of a terminal with colours and Unicode.
pub(crate) const ABLE: TerminalAbilities = TerminalAbilities {
    colours: Colours::Indexed,
    background: Some(Background::Dark),
    ascii: false,
};

/// The ways of drawing: a name for snapshots, a theme and markers.
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

/// Returns the text of a frame, then a grid of the same size with a letter for the style of each cell, then a legend of these letters.
pub(crate) fn with_styles(buffer: &Buffer) -> String {
    let area = buffer.area;
    let mut known_styles = vec![describe(Color::Reset, Color::Reset, Modifier::empty())];
    let mut text = String::new();
    let mut styles = String::new();
    for y in area.top()..area.bottom() {
        let mut line = String::new();
        let mut letters = String::new();
        for x in area.left()..area.right() {
            let cell = &buffer[(x, y)];
            line.push_str(cell.symbol());
            let style = describe(cell.fg, cell.bg, cell.modifier);
            let index = known_styles
                .iter()
                .position(|known| *known == style)
                .unwrap_or_else(|| {
                    known_styles.push(style);
                    known_styles.len() - 1
                });
            letters.push(letter(index));
        }
        text += &format!("│{line}│\n");
        styles += &format!("│{}\n", letters.trim_end_matches('.'));
    }
    let legend: String = known_styles
        .iter()
        .enumerate()
        .map(|(index, style)| format!("{} {style}\n", letter(index)))
        .collect();
    format!("{text}\n{styles}\n{legend}")
}

/// Returns the text of a frame without its styles.
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

/// Returns the letter of the style with this index. The first style, that of plain text, is a point.
fn letter(index: usize) -> char {
    const LETTERS: &[u8] = b".abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    LETTERS.get(index).map_or('?', |byte| char::from(*byte))
}

fn describe(fg: Color, bg: Color, modifier: Modifier) -> String {
    let mut words = vec![format!("{fg:?}").to_lowercase()];
    if bg != Color::Reset {
        words.push(format!("on {bg:?}").to_lowercase());
    }
    words.extend(modifier.iter_names().map(|(name, _)| name.to_lowercase()));
    words.join(" ")
}
