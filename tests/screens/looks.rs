//! Themes and markers, and texts that would harm a terminal.

use ratatui::buffer::Cell;
use ratatui::style::Modifier;

use super::*;

#[test]
fn other_themes_and_markers_have_a_picture() {
    let bars_of_looks = [["█████", "▓▓▓▓▓", "▒▒"], ["fffff", "bbbbb", "oo"]];
    for ((look, theme, markers), bars) in LOOKS[1..].iter().zip(bars_of_looks) {
        let buffer = screen::panel(&mut b_trains(), Panel::Ledger, 72, 14, *theme, *markers);
        let ledger = text(&buffer);
        for bar in bars {
            assert!(ledger.contains(bar), "{bar}: {ledger}");
        }
        let mut stages = b_trains();
        act(&mut stages, Action::Open(Overlay::Stages));
        picture_in_theme(
            &format!("card_stages_{look}"),
            &mut stages,
            *theme,
            *markers,
        );
    }
}

#[test]
fn harmful_text_does_not_reach_the_screen() {
    let mut app = hostile();
    for (width, height) in [(20, 5), (80, 24), (120, 36), (200, 50)] {
        for (_, theme, markers) in LOOKS {
            let drawn = text(&screen::screen(&mut app, width, height, theme, markers));
            let harmful: Vec<char> = drawn
                .chars()
                .filter(|c| *c != '\n' && perflings::sanitize::harmful(*c))
                .collect();
            assert!(harmful.is_empty(), "{width}x{height}: {harmful:?}");
        }
    }
}

#[test]
fn the_theme_without_colour_still_marks_the_selection() {
    let mut app = b_trains();
    act(&mut app, Action::Open(Overlay::Stages));
    let buffer = screen::screen(&mut app, 100, 30, ThemeName::Mono, Markers::Braille);
    let mut cells = buffer.content.iter();
    let has_no_colour = |cell: &Cell| cell.fg == Color::Reset && cell.bg == Color::Reset;
    assert!(cells.clone().all(has_no_colour));
    assert!(cells.any(|cell| cell.modifier.contains(Modifier::REVERSED)));
}

#[test]
fn with_ascii_markers_every_screen_is_ascii() {
    for mut app in all_states() {
        for (width, height) in [(30, 8), (60, 16), (80, 24), (120, 36), (200, 50)] {
            let dark = ThemeName::Dark;
            let buffer = screen::screen(&mut app, width, height, dark, Markers::Ascii);
            let others: String = text(&buffer).chars().filter(|c| !c.is_ascii()).collect();
            assert_eq!(others, "", "{width}x{height}");
        }
    }
}

#[test]
fn with_ascii_markers_every_glyph_has_a_replacement() {
    let mut app = built_in_course();
    act(&mut app, Action::Present);
    for _ in 0..30 {
        train(&mut app, 30);
        for (width, height) in [(60, 16), (200, 50)] {
            session::resize(&mut app, width, height);
            let braille = text_at((width, height), &mut app);
            let dark = ThemeName::Dark;
            let buffer = screen::screen(&mut app, width, height, dark, Markers::Ascii);
            let ascii = text(&buffer);
            assert!(ascii.is_ascii());
            // A glyph without a replacement becomes a question mark.
            let question_marks = |text: &str| text.matches('?').count();
            assert_eq!(question_marks(&ascii), question_marks(&braille), "{ascii}");
        }
        act(&mut app, Action::NextBeat);
    }
}
