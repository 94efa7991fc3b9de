//! What a phone sends to a room and what it sees there: the question to vote on, then what the class does now and its own past choices.
//! The page is one file that loads nothing from elsewhere and needs no https.

use serde::{Deserialize, Serialize};

use super::board::{Answer, VoteTally, now, tally};
use super::record::{RecordError, clean_name};
use super::state::RoomState;
use crate::course::Course;
use crate::sanitize;

const PAGE: &str = include_str!("phone.html");
/// Longest seat code and description of a browser that are read.
const SEAT: usize = 16;
const BROWSER: usize = 200;

/// The page.
pub fn page() -> &'static str {
    PAGE
}

/// What a phone asks for. Every request says again who asks; the rest is there when it is wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PhoneRequest {
    /// Drawn by the phone: 32 hexadecimal digits.
    pub id: String,
    pub name: Option<String>,
    /// The round and the choice, a = 0.
    pub ballot: Option<(u64, usize)>,
    pub raised: Option<bool>,
    /// The code of the participant at a computer who this is.
    pub seat: Option<String>,
    /// What the browser looks like.
    pub browser: String,
}

/// What a phone sees.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PhoneView {
    /// The name on the board.
    pub name: String,
    pub raised: bool,
    /// True if this phone sits in the seat of a computer.
    pub seated: bool,
    pub closed: bool,
    /// What the class does, in a sentence.
    pub now: String,
    /// The open vote, or the one that was closed last.
    pub vote: Option<PhoneVote>,
    /// Earlier votes in which this phone voted, the last first.
    pub past: Vec<PhoneVote>,
}

/// A vote as a phone sees it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PhoneVote {
    pub round: u64,
    pub again: bool,
    pub open: bool,
    pub prompt: String,
    pub choices: Vec<String>,
    /// The choice that was counted.
    pub mine: Option<usize>,
    /// Votes by choice, once the round is closed.
    pub counts: Vec<u32>,
    pub voted: String,
    pub answer: Option<Answer>,
}

impl PhoneRequest {
    /// Reads and cleans a request.
    pub fn read(bytes: &[u8]) -> Result<Self, RecordError> {
        let garbage = |what: &str| RecordError::Garbage(what.to_owned());
        let mut asked: Self =
            serde_json::from_slice(bytes).map_err(|_| garbage("is not a phone's request"))?;
        if asked.id.len() != 32 || !asked.id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(garbage("names no participant"));
        }
        asked.id.make_ascii_lowercase();
        asked.name = asked.name.map(|name| clean_name(&name));
        asked.seat = asked.seat.map(|seat| sanitize::bounded(&seat, SEAT));
        asked.browser = sanitize::bounded(&asked.browser, BROWSER);
        Ok(asked)
    }
}

impl PhoneView {
    /// What the phone with this id sees.
    pub fn of(id: &str, room: &RoomState, course: &Course) -> Self {
        let person = room.person(id);
        let ballots = person
            .map(|it| it.record.ballots.clone())
            .unwrap_or_default();
        let class = &room.class;
        let open = class.open_vote().map(|(id, _)| id);
        let last = open.or(class.last_vote.as_deref());
        let see = |id: &str, number: u64| {
            let vote = class.votes.get(id)?;
            let tally = tally(room, course, id, vote)?;
            let at = vote.asked.iter().position(|round| *round == number)?;
            let is_open = vote.open && at == vote.round;
            Some(PhoneVote {
                round: number,
                again: at > 0,
                open: is_open,
                mine: ballots.get(&number).copied(),
                counts: match is_open {
                    true => Vec::new(),
                    false => tally.rounds.get(at).cloned().unwrap_or_default(),
                },
                voted: VoteTally::in_words(&tally),
                answer: tally.answer,
                prompt: tally.prompt,
                choices: tally.choices,
            })
        };
        let rounds = class.votes.iter().flat_map(|(id, vote)| {
            let rounds = vote.asked.iter();
            rounds.map(move |number| (*number, id))
        });
        let mut past: Vec<_> = rounds
            .filter(|(number, _)| ballots.contains_key(number))
            .collect();
        past.sort_unstable();
        let shown = last.and_then(|id| Some((id, class.votes.get(id)?.number()?)));
        let past = past.into_iter().rev();
        let past = past.filter(|(number, _)| shown.is_none_or(|(_, shown)| shown != *number));
        Self {
            name: person.map_or_else(String::new, |it| match it.record.name.as_str() {
                "" => String::new(),
                _ => room.name_of(&it.record).to_owned(),
            }),
            raised: person.is_some_and(|it| it.record.raised),
            seated: person.is_some_and(|it| it.record.id != id),
            closed: class.closed,
            now: now(class, course),
            vote: shown.and_then(|(id, number)| see(id, number)),
            past: past.filter_map(|(number, id)| see(id, number)).collect(),
        }
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
