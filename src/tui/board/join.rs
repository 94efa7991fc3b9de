//! How to join, for the projector: every address, the code in large letters, and a QR code that opens the address on a phone.
//! It shows nothing that is for the instructor only.

use qrcode::{EcLevel, QrCode};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use crate::class::board::Board;
use crate::tui::surface::{height, put, take_left, take_top};
use crate::tui::symbols::half_blocks;
use crate::tui::theme::Theme;
use crate::tui::{digits, text};

/// Light modules around a QR code: four by its standard; two still read well, and leave room at 60 by 16.
const QUIET: usize = 2;

/// Draws the view.
pub(super) fn draw(
    frame: &mut Frame<'_>,
    area: Rect,
    board: &Board,
    places: &[String],
    theme: &Theme,
) {
    let mut rest = area;
    let link = places.first().filter(|it| it.starts_with("http://"));
    let code = link.and_then(|link| link.rsplit('/').next());
    // A half block is two modules; ASCII has none.
    let drawn = link.filter(|_| !theme.symbols.ascii);
    if let Some(squares) = drawn.and_then(|link| rows(link)) {
        let wide = squares.first().map_or(0, |it| text::width(it));
        if height(squares.len()) <= area.height && wide + 24 <= usize::from(area.width) {
            let lines = squares.into_iter();
            let lines = lines.map(|it| Line::styled(it, theme.scanned));
            let area = take_left(&mut rest, height(wide));
            put(frame, area, lines.collect::<Vec<_>>());
        }
    }
    take_left(&mut rest, 2);
    let wide = usize::from(rest.width);
    let mut lines = vec![Line::styled("join the class", theme.heading)];
    if !board.opened.is_empty() {
        lines[0].push_span(Span::styled(format!("  {}", board.opened), theme.dim));
    }
    let here = format!("{} here", board.here);
    lines.push(Line::styled(here, theme.strong));
    put(frame, take_top(&mut rest, 3), lines);
    if let Some(code) = code {
        let size = digits::size(code, rest.width, rest.height / 3);
        if size > 0 {
            let area = take_top(&mut rest, digits::rows(size) + 1);
            let at = (area.x, area.y);
            digits::draw(frame.buffer_mut(), at, code, size, theme.strong);
        } else {
            let said = Line::styled(format!("code  {code}"), theme.strong);
            put(frame, take_top(&mut rest, 1), said);
        }
    }
    let mut lines = vec![Line::styled("in a terminal, with a nickname:", theme.dim)];
    for (at, place) in places.iter().enumerate() {
        let said = match at {
            0 => format!("perflings --room {place} --name NICKNAME"),
            // The same code is at each address.
            _ => format!("or {place}"),
        };
        let style = if at == 0 { theme.strong } else { theme.text };
        lines.extend(text::wrap(&[Span::styled(said, style)], wide, "", "  "));
    }
    put(frame, rest, lines);
}

/// The QR code of an address as rows of half blocks, a dark module inked. In capitals it is smaller; a room reads its code in either.
fn rows(link: &str) -> Option<Vec<String>> {
    let code = QrCode::with_error_correction_level(link.to_uppercase(), EcLevel::L).ok()?;
    let modules = code.width();
    let dark = |x: usize, y: usize| {
        let inside = |at: usize| at.checked_sub(QUIET).filter(|at| *at < modules);
        let at = inside(x).zip(inside(y));
        at.is_some_and(|at| code[at] == qrcode::Color::Dark)
    };
    let side = modules + 2 * QUIET;
    let row = |y: usize| {
        let cells = (0..side).map(|x| half_blocks(dark(x, y), dark(x, y + 1)));
        cells.collect()
    };
    Some((0..side).step_by(2).map(row).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_fits_beside_its_words_on_the_smallest_screen() {
        let rows = rows("http://192.168.100.205:7878/abcd2345").expect("a code");
        assert!(rows.len() <= 15, "{}", rows.len());
        assert!(rows.iter().all(|row| row.chars().count() == 29));
        // The three corners by which a camera finds it.
        assert!(rows[1].starts_with("  █▀▀▀▀▀█") && rows[1].ends_with("█▀▀▀▀▀█  "));
    }
}
