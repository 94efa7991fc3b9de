//! Limits the length of the texts and lists of an event before it is kept.

use serde_json::Value;

use crate::course::journey::LastJourney;
use crate::sanitize::{bounded, line};
use protocol::Event;

/// The largest number of rows kept of one list.
const ROWS: usize = 512;
/// The longest name kept from an event, in characters.
const NAME: usize = 80;
/// The longest sentence kept from an event, in characters.
const SENTENCE: usize = 1000;
/// The fields of events that hold sentences, or descriptions of a device or a driver.
const SENTENCES: [&str; 10] = [
    "driver", "ended", "name", "next", "no_work", "note", "reason", "text", "why", "why_not",
];

/// Makes the texts of a table from a file safe for a terminal.
pub(super) fn journey(mut journey: LastJourney) -> LastJourney {
    let rows = journey.rows.iter_mut().flat_map(|row| &mut row.cells);
    let cells = journey.head.iter_mut().chain(rows);
    let about = [&mut journey.device, &mut journey.preset, &mut journey.date];
    cells.chain(about).for_each(|text| *text = line(text));
    journey
}

/// Limits the texts and lists of an event, and makes its texts safe for a terminal.
pub(super) fn sanitize(mut event: Event) -> Event {
    match &mut event {
        // The most frequent events have neither texts nor lists.
        Event::Heartbeat { .. } | Event::Step(_) => return event,
        // The rows that matter are those without a gradient; they come first when there are too many.
        Event::Gradients(gradients) => gradients.rows.sort_by_key(|row| row.norm.is_some()),
        _ => {}
    }
    let Ok(mut fields) = serde_json::to_value(&event) else {
        return event;
    };
    bound(&mut fields, NAME);
    serde_json::from_value(fields).unwrap_or(event)
}

/// Makes every text in a value safe and at most `limit` characters long. Fields of objects have their own limits.
fn bound(value: &mut Value, limit: usize) {
    match value {
        Value::String(text) => *text = bounded(text, limit),
        Value::Array(items) => {
            items.truncate(ROWS);
            items.iter_mut().for_each(|item| bound(item, limit));
        }
        Value::Object(fields) => {
            for (key, value) in fields {
                let is_sentence = SENTENCES.contains(&key.as_str());
                bound(value, if is_sentence { SENTENCE } else { NAME });
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
