//! What a phone sends to a room and what it sees there: the question to vote on, then what the class does now and its own past choices.
//! The page is one file that loads nothing from elsewhere and needs no https.

use serde::{Deserialize, Serialize};

use super::board::{Answer, now, tally};
use super::record::{RecordError, clean_id, clean_name};
use super::state::RoomState;
use crate::course::Course;
use crate::sanitize;

const PAGE: &str = include_str!("phone.html");
/// The most characters of a seat's code that are read.
const SEAT: usize = 16;
/// The most characters of the description of a browser that are read.
const BROWSER: usize = 200;

/// Returns the page.
pub fn page() -> &'static str {
    PAGE
}

/// A request of a phone. Each says who asks, and may ask for several things.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PhoneRequest {
    /// The id that the phone has drawn: 32 hexadecimal digits.
    pub id: String,
    /// The nickname to take.
    pub name: Option<String>,
    /// The ballot to cast: the number of the round and the choice, a = 0.
    pub ballot: Option<(u64, usize)>,
    /// True to raise the hand, false to lower it.
    pub raised: Option<bool>,
    /// The code of the participant at a computer whose seat the phone takes.
    pub seat: Option<String>,
    /// The description of the browser.
    pub browser: String,
}

/// The view of a phone.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PhoneView {
    /// The name on the board; empty without a name.
    pub name: String,
    pub raised: bool,
    /// True if this phone has the seat of a computer.
    pub seated: bool,
    /// The present activity of the class, in a sentence.
    pub now: String,
    /// The open vote, or the one that was closed last.
    pub vote: Option<PhoneVote>,
    /// The earlier votes in which this phone voted, the last first.
    pub past: Vec<PhoneVote>,
}

/// A round of a vote as a phone sees it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PhoneVote {
    /// The number of the round.
    pub round: u64,
    /// True for the round after the discussion.
    pub again: bool,
    pub open: bool,
    pub prompt: String,
    pub choices: Vec<String>,
    /// The choice of this phone that was counted.
    pub mine: Option<usize>,
    /// The votes by choice, once the round is closed.
    pub counts: Vec<u32>,
    /// The standing of the vote in words.
    pub voted: String,
    pub answer: Option<Answer>,
}

impl PhoneRequest {
    /// Reads and cleans a request.
    ///
    /// # Errors
    /// If it is no request, or has no id.
    pub fn read(bytes: &[u8]) -> Result<Self, RecordError> {
        let mut asked: Self = serde_json::from_slice(bytes)
            .map_err(|_| RecordError::Garbage("is not a phone's request".to_owned()))?;
        asked.id = clean_id(&asked.id)?;
        asked.name = asked.name.map(|name| clean_name(&name));
        asked.seat = asked.seat.map(|seat| sanitize::bounded(&seat, SEAT));
        asked.browser = sanitize::bounded(&asked.browser, BROWSER);
        Ok(asked)
    }
}

impl PhoneView {
    /// Returns what the phone with this id sees.
    pub fn for_phone(id: &str, room: &RoomState, course: &Course) -> Self {
        let class = &room.class;
        let mut view = Self {
            now: now(class, course),
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
    /// Returns how the phone with this id sees a round; `None` if there is no such round.
    fn for_round(id: &str, round: u64, room: &RoomState, course: &Course) -> Option<Self> {
        let mut votes = room.class.votes.iter();
        let (vote_id, vote) = votes.find(|(_, vote)| vote.asked.contains(&round))?;
        let at = vote.asked.iter().position(|number| *number == round)?;
        let tally = tally(room, course, vote_id)?;
        let open = vote.open && at == vote.round;
        let counts = if open {
            Vec::new()
        } else {
            tally.rounds.get(at).cloned().unwrap_or_default()
        };
        let person = room.person(id);
        Some(Self {
            round,
            again: at > 0,
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
            assert!(!PAGE.contains(outside), "{outside}");
        }
    }

    #[test]
    fn a_phone_that_wakes_tries_three_times_within_two_seconds() {
        let (_, after) = PAGE.split_once("HURRIED_MS = ").expect("a limit");
        let (hurried_ms, _) = after.split_once(',').expect("a number");
        let hurried_ms: u64 = hurried_ms.parse().expect("milliseconds");
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
            assert!(PAGE.contains(wakes), "{wakes}");
        }
    }

    #[test]
    fn what_a_phone_sends_is_cleaned() {
        let id = "AB".repeat(16);
        let text = format!(
            r#"{{"id":"{id}","name":" \u001b[2JAna ","seat":"{}"}}"#,
            "x".repeat(900)
        );
        let asked = PhoneRequest::read(text.as_bytes()).expect("a request");
        assert_eq!(asked.name.as_deref(), Some("·[2JAna"));
        assert_eq!(asked.id, id.to_lowercase());
        assert!(
            asked
                .seat
                .is_some_and(|seat| seat.chars().count() <= SEAT + 1)
        );
        for wrong in ["", "[]", "{}", r#"{"id":"../x"}"#, r#"{"id":7}"#] {
            assert!(PhoneRequest::read(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }
}
