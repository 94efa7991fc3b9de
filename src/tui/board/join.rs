//! How to join, for the projector: the code in large letters, a QR code that opens the address on a phone, and other addresses of
//! this machine. It shows nothing that is for the instructor only.

use qrcode::bits::Bits;
use qrcode::{EcLevel, QrCode, Version};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::BoardView;
use crate::class::board::Board;
use crate::tui::surface::{height, put, take_left, take_top};
use crate::tui::symbols::half_blocks;
use crate::tui::theme::Theme;
use crate::tui::{digits, text};

/// Light modules around a QR code: four by its standard; two still read well, and leave room at 60 by 16.
const QUIET: usize = 2;
/// Columns that stay beside a QR code.
const BESIDE: u16 = 24;
/// Seconds without a phone after which the view says what may be wrong.
const PATIENCE_S: u64 = 30;

/// Draws the view.
pub(super) fn draw(
    frame: &mut Frame<'_>,
    area: Rect,
    board: &Board,
    view: &BoardView,
    theme: &Theme,
) {
    let mut rest = beside_code(frame, area, view, theme);
    let wide = usize::from(rest.width);
    let mut lines = vec![Line::styled("join the class", theme.heading)];
    if !board.opened.is_empty() {
        lines[0].push_span(Span::styled(format!("  {}", board.opened), theme.dim));
    }
    let here = format!("{} here", board.here);
    lines.push(Line::styled(here, theme.strong));
    put(frame, take_top(&mut rest, 2), lines);
    let reached = reached(view, wide, theme);
    put(frame, take_top(&mut rest, height(reached.len())), reached);
    if let Some(code) = link(view).and_then(|link| link.rsplit('/').next()) {
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
    let of = |at: usize| match view.interfaces.get(at).map(String::as_str) {
        None | Some("") => String::new(),
        Some(name) => format!(" ({name})"),
    };
    for (at, place) in places(view) {
        let said = match at == view.place {
            true => format!("perflings --room {place} --name NICKNAME"),
            // The same code is at each address.
            false => format!("or {place}{}", of(at)),
        };
        let style = if at == view.place {
            theme.strong
        } else {
            theme.text
        };
        lines.extend(text::wrap(&[Span::styled(said, style)], wide, "", "  "));
    }
    if view.places.len() > 1 {
        lines.push(Line::styled(
            format!("tab: the next address{}", of(view.place)),
            theme.dim,
        ));
    }
    put(frame, rest, lines);
}

/// The addresses, the chosen one first.
fn places(view: &BoardView) -> impl Iterator<Item = (usize, &String)> {
    let all = view.places.iter().enumerate();
    let (after, before) = (all.clone().skip(view.place), all.take(view.place));
    after.chain(before)
}

/// The address that a phone opens.
fn link(view: &BoardView) -> Option<&String> {
    view.places
        .get(view.place)
        .filter(|it| it.starts_with("http://"))
}

/// Whether a phone has come, and what may be wrong where none has.
fn reached(view: &BoardView, wide: usize, theme: &Theme) -> Vec<Line<'static>> {
    let Some(link) = link(view) else {
        return Vec::new();
    };
    let host = link.trim_start_matches("http://").split('/').next();
    let (said, style) = if host.is_some_and(|host| view.reached.contains(host)) {
        ("a phone reached this address", theme.good)
    } else if view.open_s < PATIENCE_S {
        ("open the address on a phone, or scan the code", theme.dim)
    } else {
        (
            "No phone has reached this address. A firewall here may refuse it, or the network may keep its clients apart: \
             try the next address, a hotspot, a tunnel (--address), or a shared folder",
            theme.warning,
        )
    };
    text::wrap(&[Span::styled(said, style)], wide, "", "")
}

/// Draws the QR code as large as fits; what is left beside it.
pub(super) fn beside_code(
    frame: &mut Frame<'_>,
    area: Rect,
    view: &BoardView,
    theme: &Theme,
) -> Rect {
    let mut rest = area;
    // A half block is two modules; ASCII has none.
    let link = link(view).filter(|_| !theme.symbols.ascii);
    let room = (area.width.saturating_sub(BESIDE), area.height);
    if let Some(rows) = link.and_then(|link| rows(link, room)) {
        let wide = rows.first().map_or(0, |row| text::width(row));
        let lines = rows.into_iter().map(|row| Line::styled(row, theme.scanned));
        let area = take_left(&mut rest, height(wide));
        put(frame, area, lines.collect::<Vec<_>>());
    }
    take_left(&mut rest, 2);
    rest
}

/// The QR code of an address, as it is typed, as rows of half blocks, a dark module inked: as large as fits into columns and rows, and
/// with the medium correction of errors where that fits.
fn rows(link: &str, (columns, rows): (u16, u16)) -> Option<Vec<String>> {
    let code = |level| {
        let code = code_of(link, level)?;
        let side = height(code.width() + 2 * QUIET);
        let size = (columns / side).min(2 * rows / side);
        (size > 0).then_some((code, usize::from(size)))
    };
    let (code, size) = code(EcLevel::M).or_else(|| code(EcLevel::L))?;
    let modules = code.width();
    let dark = |x: usize, y: usize| {
        let inside = |at: usize| (at / size).checked_sub(QUIET).filter(|at| *at < modules);
        let at = inside(x).zip(inside(y));
        at.is_some_and(|at| code[at] == qrcode::Color::Dark)
    };
    let side = (modules + 2 * QUIET) * size;
    let row = |y: usize| {
        let cells = (0..side).map(|x| half_blocks(dark(x, y), dark(x, y + 1)));
        cells.collect()
    };
    Some((0..side).step_by(2).map(row).collect())
}

/// The smallest code of an address: what is between its letters, digits and dots, takes fewer bits in the alphanumeric mode.
fn code_of(link: &str, level: EcLevel) -> Option<QrCode> {
    let (scheme, rest) = link.split_at(link.find(':')?);
    let (host, code) = rest.split_at(rest.rfind('/')? + 1);
    let plain = |c: char| c.is_ascii_digit() || "./:".contains(c);
    if !host.chars().all(plain) {
        return QrCode::with_error_correction_level(link, level).ok();
    }
    let coded = |version| {
        let mut bits = Bits::new(Version::Normal(version));
        bits.push_byte_data(scheme.as_bytes()).ok()?;
        bits.push_alphanumeric_data(host.as_bytes()).ok()?;
        bits.push_byte_data(code.as_bytes()).ok()?;
        bits.push_terminator(level).ok()?;
        QrCode::with_bits(bits, level).ok()
    };
    (1..=10).find_map(coded)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINK: &str = "http://192.168.100.205:7878/abcd2345";

    #[test]
    fn an_address_fits_beside_its_words_on_the_smallest_screen() {
        let small = rows(LINK, (36, 15)).expect("a code");
        assert!(small.len() <= 15, "{}", small.len());
        assert!(small.iter().all(|row| row.chars().count() == 29));
        // The three corners by which a camera finds it.
        assert!(small[1].starts_with("  █▀▀▀▀▀█") && small[1].ends_with("█▀▀▀▀▀█  "));
        // With more room it corrects more errors, and then it grows.
        let medium = rows(LINK, (60, 23)).expect("a code");
        assert_eq!(medium.len(), 17);
        let large = rows(LINK, (100, 36)).expect("a code");
        assert_eq!((large.len(), large[0].chars().count()), (33, 66));
        assert_eq!(rows(LINK, (28, 15)), None);
    }
}
