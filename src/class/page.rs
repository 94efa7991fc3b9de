//! The board as a page for the projector: one file of HTML that loads nothing from elsewhere. A page from the room's server follows the
//! room by itself. A page in a file shows one state of the board, and reloads its file every few seconds.

use super::board::Board;
use crate::sanitize;

/// The page that follows the server it comes from.
pub const LIVE_PAGE: &str = include_str!("page.html");

/// Returns a page for a file, which shows this board. While the room is open, the page reloads every few seconds.
pub fn page_of_board(board: &Board) -> String {
    let data = sanitize::script(&serde_json::to_string(board).unwrap_or_default());
    let reload = if board.closed {
        ""
    } else {
        "<meta http-equiv=\"refresh\" content=\"3\">"
    };
    LIVE_PAGE
        .replacen("<!--refresh-->", reload, 1)
        .replacen("/*board*/null", &data, 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::class::board::ParticipantRow;
    use crate::class::server::MAX_EVENT_INTERVAL;

    #[test]
    fn a_hostile_name_stays_a_text() {
        let name = "</script><script>alert(1)</script>\u{2028}".to_owned();
        let rows = vec![ParticipantRow {
            name,
            ..ParticipantRow::default()
        }];
        let page = page_of_board(&Board {
            rows,
            ..Board::default()
        });
        assert_eq!(page.matches("<script>").count(), 1);
        assert!(page.contains("\\u003c/script>\\u003cscript>alert(1)"));
        assert!(page.contains("http-equiv=\"refresh\"") && !LIVE_PAGE.contains("http-equiv"));
    }

    #[test]
    fn a_page_that_slept_follows_the_room_again() {
        let (_, after) = LIVE_PAGE.split_once("SILENT_MS = ").expect("a limit");
        let (number, _) = after.split_once(';').expect("a number");
        let silent_ms: u128 = number.parse().expect("milliseconds");
        // The room sends events more often than this, so a page without events for so long has lost the room.
        assert!(
            silent_ms > MAX_EVENT_INTERVAL.as_millis() + 1000,
            "{silent_ms}"
        );
    }

    #[test]
    fn the_page_loads_nothing() {
        for outside in ["src=", "href=", "url(", "@import", "//cdn", "innerHTML"] {
            assert!(!LIVE_PAGE.contains(outside), "{outside}");
        }
    }
}
