//! Voting with a phone: the requests that the page in the phone's browser sends to a room, and what the page shows. The page is one file
//! of HTML that loads nothing from elsewhere and needs no https.

use serde::{Deserialize, Serialize};

use super::board::{Answer, present_activity, tally};
use super::record::{RecordError, clean_id, clean_name};
use super::state::RoomState;
use crate::course::Course;
use crate::sanitize;

/// The page for phones.
pub const PHONE_PAGE: &str = include_str!("phone.html");
/// The most characters of a seat's code.
const MOST_SEAT_CHARS: usize = 16;
/// The most characters of the description of a browser.
const MOST_BROWSER_CHARS: usize = 200;

/// A request of a phone. It names the phone, and may ask for several things at once or for none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PhoneRequest {
    /// The id that the page has drawn at random: 32 hexadecimal digits.
    pub id: String,
    /// The nickname to take.
    pub name: Option<String>,
    /// The ballot to cast: the number of the round, and the chosen answer; the first answer, a, is 0.
    pub ballot: Option<(u64, usize)>,
    /// True to raise the hand, false to lower it.
    pub raised: Option<bool>,
    /// The code of a participant at a computer. The phone and this participant are one person from then on.
    pub seat: Option<String>,
    /// The description of the browser.
    pub browser: String,
}

/// Everything that the page on a phone shows.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PhoneView {
    /// The name on the board; empty without a name.
    pub name: String,
    pub raised: bool,
    /// True if the phone has joined as a participant at a computer.
    pub seated: bool,
    /// A sentence about what the class is doing at present.
    pub now: String,
    /// The newest round of a vote, open or closed.
    pub vote: Option<PhoneVote>,
    /// The earlier rounds in which this phone has voted, the newest first.
    pub past: Vec<PhoneVote>,
}

/// A round of a vote as a phone shows it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PhoneVote {
    /// The number of the round.
    pub round: u64,
    /// True for the round after the discussion.
    pub again: bool,
    pub open: bool,
    pub prompt: String,
    pub choices: Vec<String>,
    /// The choice of this phone that was counted; `None` if it has not voted.
    pub mine: Option<usize>,
    /// The number of votes for each answer; empty while the round is open.
    pub counts: Vec<u32>,
    /// The state of the vote in words (`VoteTally::in_words`).
    pub voted: String,
    pub answer: Option<Answer>,
}

impl PhoneRequest {
    /// Reads and cleans a request.
    ///
    /// # Errors
    /// If the bytes are no request, or the request has no id.
    pub fn read(bytes: &[u8]) -> Result<Self, RecordError> {
        let mut request: Self = serde_json::from_slice(bytes)
            .map_err(|_| RecordError::Garbage("is not a phone's request".to_owned()))?;
        let clean_seat = |code: String| sanitize::bounded(&code, MOST_SEAT_CHARS);
        request.id = clean_id(&request.id)?;
        request.name = request.name.map(|name| clean_name(&name));
        request.seat = request.seat.map(clean_seat);
        request.browser = sanitize::bounded(&request.browser, MOST_BROWSER_CHARS);
        Ok(request)
    }
}

impl PhoneView {
    /// Returns the view for the phone with this id.
    pub fn for_phone(id: &str, room: &RoomState, course: &Course) -> Self {
        let class = &room.class;
        let mut view = Self {
            now: present_activity(class, course),
            ..Self::default()
        };
        let newest = class.newest_vote().and_then(|(_, vote)| vote.number());
        if let Some(person) = room.person(id) {
            let record = &person.record;
            if !record.name.is_empty() {
                room.name_of(record).clone_into(&mut view.name);
            }
            view.raised = record.raised;
            view.seated = record.id != id;
            for round in record.ballots.keys().rev() {
                if newest != Some(*round) {
                    view.past
                        .extend(PhoneVote::for_round(id, *round, room, course));
                }
            }
        }
        view.vote = newest.and_then(|round| PhoneVote::for_round(id, round, room, course));
        view
    }
}

impl PhoneVote {
    /// Returns the round with this number for the phone with this id; `None` if there is no such round.
    fn for_round(id: &str, round: u64, room: &RoomState, course: &Course) -> Option<Self> {
        let (vote_id, vote, index) = room.class.votes.iter().find_map(|(id, vote)| {
            let index = vote.asked.iter().position(|number| *number == round)?;
            Some((id, vote, index))
        })?;
        let tally = tally(room, course, vote_id)?;
        let open = vote.open && index == vote.round;
        let counts = if open {
            Vec::new()
        } else {
            tally.rounds.get(index).cloned().unwrap_or_default()
        };
        let person = room.person(id);
        Some(Self {
            round,
            again: index > 0,
            open,
            mine: person.and_then(|person| person.record.ballots.get(&round).copied()),
            counts,
            voted: tally.in_words(),
            answer: tally.answer,
            prompt: tally.prompt,
            choices: tally.choices,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_loads_nothing_and_needs_no_https() {
        for outside in [
            "src=",
            "href=",
            "url(",
            "@import",
            "//cdn",
            "innerHTML",
            "randomUUID",
            "crypto.subtle",
            "serviceWorker",
            "https:",
        ] {
            assert!(!PHONE_PAGE.contains(outside), "{outside}");
        }
    }

    #[test]
    fn a_phone_that_wakes_tries_three_times_within_two_seconds() {
        let (_, after) = PHONE_PAGE.split_once("HURRIED_MS = ").expect("a limit");
        let (number, _) = after.split_once(',').expect("a number");
        let hurried_ms: u64 = number.parse().expect("milliseconds");
        assert!(3 * hurried_ms < 2000, "{hurried_ms}");
        for wakes in [
            "visibilitychange",
            "resume",
            "online",
            "pageshow",
            "focus",
            "setInterval",
            "pending.abort()",
        ] {
            assert!(PHONE_PAGE.contains(wakes), "{wakes}");
        }
    }

    #[test]
    fn the_request_of_a_phone_is_cleaned() {
        let id = "AB".repeat(16);
        let text = format!(
            r#"{{"id":"{id}","name":" \u001b[2JAna ","seat":"{}"}}"#,
            "x".repeat(900)
        );
        let request = PhoneRequest::read(text.as_bytes()).expect("a request");
        assert_eq!(request.name.as_deref(), Some("·[2JAna"));
        assert_eq!(request.id, id.to_lowercase());
        // The sign of a cut text is one character more.
        let seat = request.seat.expect("a seat");
        assert_eq!(seat.chars().count(), MOST_SEAT_CHARS + 1);
        for wrong in ["", "[]", "{}", r#"{"id":"../x"}"#, r#"{"id":7}"#] {
            assert!(PhoneRequest::read(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }
}
