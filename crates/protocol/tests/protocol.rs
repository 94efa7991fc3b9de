//! Every line that is written can be read back, and no input can break the reader.

#[path = "protocol/events.rs"]
mod events;
#[path = "protocol/strategies.rs"]
mod strategies;

use proptest::prelude::*;
use protocol::*;

use events::event;
use strategies::{command, number};

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 256,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_command_is_read_back_from_its_line(command in command()) {
        let text = serde_json::to_string(&command).expect("plain data");
        prop_assert!(!text.contains('\n'));
        prop_assert_eq!(serde_json::from_str::<Command>(&text).expect("reads back"), command);
    }

    #[test]
    fn an_event_is_read_back_from_its_line(t in number(), event in event()) {
        let line = StreamLine { t, event };
        let text = serde_json::to_string(&line).expect("plain data");
        prop_assert!(!text.contains('\n'));
        prop_assert_eq!(serde_json::from_str::<StreamLine>(&text).expect("reads back"), line);
    }

    #[test]
    fn a_cut_line_is_an_error_and_causes_no_panic(event in event(), share in 0.0..1.0_f64) {
        let text = serde_json::to_string(&StreamLine { t: 1.0, event }).expect("plain data");
        let end = text.floor_char_boundary((text.len() as f64 * share) as usize);
        prop_assert!(serde_json::from_str::<StreamLine>(&text[..end]).is_err());
    }
}

#[test]
fn a_command_without_a_number_is_read_and_written_without_one() {
    let text = r#"{"command":"profile"}"#;
    let command = read::<Command>(text).expect("a script's command");
    assert_eq!(command, Command::Profile { request: 0 });
    assert_eq!(serde_json::to_string(&command).expect("plain data"), text);
}

#[test]
fn an_event_without_a_number_is_read_and_written_without_one() {
    let text = r#"{"t":1.5,"event":"failed","kind":"device","reason":"lost"}"#;
    let line = read::<StreamLine>(text).expect("a line of an older recording");
    assert_eq!(line.event.request(), 0);
    assert_eq!(serde_json::to_string(&line).expect("plain data"), text);
}

#[test]
fn an_event_repeats_the_number_of_its_command() {
    let text = r#"{"t":1.5,"event":"failed","kind":"device","reason":"lost","request":7}"#;
    let line = read::<StreamLine>(text).expect("a line of today");
    assert_eq!(line.event.request(), 7);
}

#[test]
fn a_value_that_is_not_a_number_is_written_as_text() {
    let text = serde_json::to_string(&Num(f64::NAN)).expect("plain data");
    let read_back: Num = serde_json::from_str(&text).expect("reads back");
    assert_eq!(text, r#""NaN""#);
    assert!(read_back.0.is_nan());
}
