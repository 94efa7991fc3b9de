//! The board as a page for the projector: one file without external resources, light and dark. A served page follows the room; a
//! page in a file shows one state of the board and reloads itself.

use super::board::Board;
use crate::sanitize;

const PAGE: &str = include_str!("page.html");

/// Returns the page that follows its server.
pub fn live() -> &'static str {
    PAGE
}

/// Returns the page of one board, which reloads every few seconds while the room is open.
pub fn file(board: &Board) -> String {
    let data = sanitize::script(&serde_json::to_string(board).unwrap_or_default());
    let reload = if board.closed {
        ""
    } else {
        "<meta http-equiv=\"refresh\" content=\"3\">"
    };
    PAGE.replacen("<!--refresh-->", reload, 1)
        .replacen("/*board*/null", &data, 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::class::board::ParticipantRow;
    use crate::class::server::QUIET;

    #[test]
    fn a_hostile_name_stays_a_text() {
        let name = "</script><script>alert(1)</script>\u{2028}".to_owned();
        let rows = vec![ParticipantRow {
            name,
            ..ParticipantRow::default()
        }];
        let page = file(&Board {
            rows,
            ..Board::default()
        });
        assert_eq!(page.matches("<script>").count(), 1);
        assert!(page.contains("\\u003c/script>\\u003cscript>alert(1)"));
        assert!(page.contains("http-equiv=\"refresh\"") && !live().contains("http-equiv"));
    }

    #[test]
    fn a_page_that_slept_follows_the_room_again() {
        let (_, after) = PAGE.split_once("SILENT_MS = ").expect("a limit");
        let (silent_ms, _) = after.split_once(';').expect("a number");
        let silent_ms: u128 = silent_ms.parse().expect("milliseconds");
        // The room speaks more often than that, so a page that hears nothing has lost it.
        assert!(silent_ms > QUIET.as_millis() + 1000, "{silent_ms}");
    }

    #[test]
    fn the_page_loads_nothing() {
        for outside in ["src=", "href=", "url(", "@import", "//cdn", "innerHTML"] {
            assert!(!PAGE.contains(outside), "{outside}");
        }
    }
}
