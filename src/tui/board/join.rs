//! The screen for a projector that says how to join. It has the code of the room in large letters, a QR code that opens the address on a
//! phone, and other addresses of this machine. It shows nothing that only the instructor may see.

use qrcode::bits::Bits;
use qrcode::{EcLevel, QrCode, Version};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::BoardView;
use crate::class::board::Board;
use crate::tui::keys::board::{BoardAction, key_of};
use crate::tui::surface::{height, put, take_left, take_top};
use crate::tui::symbols::half_blocks;
use crate::tui::theme::Theme;
use crate::tui::{digits, text};

/// The number of light modules around a QR code. The standard asks for four; cameras read two well, and a screen of 60 by 16 has room for them.
const MARGIN: usize = 2;
/// The columns that stay free beside a QR code.
const COLUMNS_BESIDE_CODE: u16 = 24;
/// The seconds after which the screen says what may be wrong, if no phone has come.
const PATIENCE_S: u64 = 30;

/// Draws the screen.
pub(super) fn draw(
    frame: &mut Frame<'_>,
    area: Rect,
    board: &Board,
    view: &BoardView,
    theme: &Theme,
) {
    let mut rest = beside_code(frame, area, view, theme);
    let columns = usize::from(rest.width);
    let mut title = Line::styled("join the class", theme.heading);
    if !board.opened.is_empty() {
        title.push_span(Span::styled(format!("  {}", board.opened), theme.dim));
    }
    let here = Line::styled(format!("{} here", board.here), theme.strong);
    put(frame, take_top(&mut rest, 2), vec![title, here]);
    let reached = reached_lines(view, columns, theme);
    put(frame, take_top(&mut rest, height(reached.len())), reached);
    if let Some(code) = link(view).and_then(|link| link.rsplit('/').next()) {
        draw_code(frame, &mut rest, code, theme);
    }
    put(frame, rest, place_lines(view, columns, theme));
}

/// Draws the code to type, large where it fits, and takes its rows off `rest`.
fn draw_code(frame: &mut Frame<'_>, rest: &mut Rect, code: &str, theme: &Theme) {
    let size = digits::size(code, rest.width, rest.height / 3);
    if size > 0 {
        let area = take_top(rest, digits::rows(size) + 1);
        let corner = (area.x, area.y);
        digits::draw(frame.buffer_mut(), corner, code, size, theme.strong);
    } else {
        let line = Line::styled(format!("code  {code}"), theme.strong);
        put(frame, take_top(rest, 1), line);
    }
}

/// Returns the addresses. The chosen one comes first, with the command that joins there.
fn place_lines(view: &BoardView, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let mut lines = vec![Line::styled("in a terminal, with a nickname:", theme.dim)];
    let interface = |index: usize| match view.interfaces.get(index).map(String::as_str) {
        None | Some("") => String::new(),
        Some(name) => format!(" ({name})"),
    };
    for distance in 0..view.places.len() {
        let index = (view.place + distance) % view.places.len();
        let place = &view.places[index];
        let span = if distance == 0 {
            let command = format!("perflings --room {place} --name NICKNAME");
            Span::styled(command, theme.strong)
        } else {
            Span::styled(format!("or {place}{}", interface(index)), theme.text)
        };
        lines.extend(text::wrap(&[span], columns, "", "  "));
    }
    if view.places.len() > 1 {
        let key = key_of(BoardAction::NextPlace);
        let shown = interface(view.place);
        let hint = format!("{key}: change this address{shown}");
        lines.push(Line::styled(hint, theme.dim));
    }
    lines
}

/// Returns the address that a phone opens; `None` for a room in a folder.
fn link(view: &BoardView) -> Option<&String> {
    let place = view.places.get(view.place)?;
    place.starts_with("http://").then_some(place)
}

/// Returns the `HOST:PORT` of an address; empty for a folder.
fn host(place: &str) -> &str {
    let host_and_code = place.strip_prefix("http://").unwrap_or_default();
    host_and_code.split('/').next().unwrap_or_default()
}

/// Returns a sentence about the phones that have reached the room, or about what may be wrong if none has come for a while.
fn reached_lines(view: &BoardView, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let Some(link) = link(view) else {
        return Vec::new();
    };
    // A tunnel may report another name to the room than the one that phones type.
    let is_listed = |reached: &String| view.places.iter().any(|place| host(place) == reached);
    let unlisted = view.reached.iter().find(|reached| !is_listed(reached));
    let (sentence, style) = if view.reached.contains(host(link)) {
        ("a phone reached this address".to_owned(), theme.good)
    } else if let Some(other) = unlisted {
        (format!("a phone reached the room, as {other}"), theme.good)
    } else if view.open_s < PATIENCE_S {
        let invitation = "open the address on a phone, or scan the code";
        (invitation.to_owned(), theme.dim)
    } else {
        let advice = "No phone has reached this address. A firewall here may refuse it, \
                      or the network may keep its clients apart: \
                      try the next address, a hotspot, a tunnel (--address), or a shared folder";
        (advice.to_owned(), theme.warning)
    };
    text::wrapped(&sentence, style, columns)
}

/// Draws the QR code as large as it fits. Returns the area beside it.
pub(super) fn beside_code(
    frame: &mut Frame<'_>,
    area: Rect,
    view: &BoardView,
    theme: &Theme,
) -> Rect {
    let mut rest = area;
    // The code is drawn in half blocks, which ASCII does not have.
    let size = (area.width.saturating_sub(COLUMNS_BESIDE_CODE), area.height);
    if !theme.symbols.ascii
        && let Some(link) = link(view)
        && let Some(rows) = code_rows(link, size)
    {
        let columns = rows.first().map_or(0, |row| text::width(row));
        let code = take_left(&mut rest, height(columns));
        let lines = rows.into_iter().map(|row| Line::styled(row, theme.scanned));
        put(frame, code, lines.collect::<Vec<_>>());
    }
    take_left(&mut rest, 2);
    rest
}

/// Returns the QR code of an address in rows of half blocks. A dark module is inked. The code is as large as it fits into columns and
/// rows, and has the medium correction of errors where that fits. `None` if no code fits.
fn code_rows(link: &str, (columns, rows): (u16, u16)) -> Option<Vec<String>> {
    let fitting = |level| {
        let code = code_of(link, level)?;
        let side = height(code.width() + 2 * MARGIN);
        let size = (columns / side).min(2 * rows / side);
        (size > 0).then_some((code, usize::from(size)))
    };
    let (code, size) = fitting(EcLevel::M).or_else(|| fitting(EcLevel::L))?;
    let modules = code.width();
    let module_at = |dot: usize| {
        let module = (dot / size).checked_sub(MARGIN)?;
        (module < modules).then_some(module)
    };
    let is_dark = |x: usize, y: usize| match (module_at(x), module_at(y)) {
        (Some(x), Some(y)) => code[(x, y)] == qrcode::Color::Dark,
        _ => false,
    };
    let side = (modules + 2 * MARGIN) * size;
    let row = |y: usize| -> String {
        (0..side)
            .map(|x| half_blocks(is_dark(x, y), is_dark(x, y + 1)))
            .collect()
    };
    Some((0..side).step_by(2).map(row).collect())
}

/// Returns the smallest code of an address. A host that consists of digits, dots and colons takes fewer bits in the alphanumeric mode.
fn code_of(link: &str, level: EcLevel) -> Option<QrCode> {
    let (scheme, rest) = link.split_at(link.find(':')?);
    let (host, code) = rest.split_at(rest.rfind('/')? + 1);
    let is_numeric = |letter: char| letter.is_ascii_digit() || "./:".contains(letter);
    if !host.chars().all(is_numeric) {
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
    fn a_phone_that_came_through_a_tunnel_is_shown_under_the_name_that_the_tunnel_reports() {
        let theme = Theme::plain(crate::app::Markers::Braille);
        let sentence = |reached: &[&str]| {
            let view = BoardView {
                places: vec![LINK.to_owned(), "http://vote.example/abcd2345".to_owned()],
                place: 1,
                reached: reached.iter().map(ToString::to_string).collect(),
                open_s: PATIENCE_S,
                ..BoardView::default()
            };
            let lines = reached_lines(&view, 200, &theme);
            lines.iter().map(ToString::to_string).collect::<String>()
        };
        assert!(sentence(&[]).starts_with("No phone"));
        // A phone at another listed address says nothing about this one.
        assert!(sentence(&["192.168.100.205:7878"]).starts_with("No phone"));
        assert_eq!(sentence(&["vote.example"]), "a phone reached this address");
        assert_eq!(
            sentence(&["localhost:7878"]),
            "a phone reached the room, as localhost:7878"
        );
    }

    #[test]
    fn a_code_fits_the_smallest_screen_and_grows_with_the_screen() {
        let small = code_rows(LINK, (36, 15)).expect("a code");
        assert!(small.len() <= 15, "{}", small.len());
        // Version 2 has 25 modules, and the margin takes two on each side.
        assert!(small.iter().all(|row| row.chars().count() == 29));
        // A camera finds the code by the squares in its corners.
        assert!(small[1].starts_with("  █▀▀▀▀▀█") && small[1].ends_with("█▀▀▀▀▀█  "));
        // A larger code first corrects more errors, and then its modules grow.
        let medium = code_rows(LINK, (60, 23)).expect("a code");
        assert_eq!(medium.len(), 17);
        let large = code_rows(LINK, (100, 36)).expect("a code");
        assert_eq!((large.len(), large[0].chars().count()), (33, 66));
        assert_eq!(code_rows(LINK, (28, 15)), None);
    }
}
