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
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

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
        let mut at = (text.len() as f64 * share) as usize;
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        prop_assert!(serde_json::from_str::<StreamLine>(&text[..at]).is_err());
    }
}

#[test]
fn what_nobody_numbered_is_read_and_written_without_a_number() {
    let text = r#"{"command":"profile"}"#;
    let profile = Command::Profile { request: 0 };
    assert_eq!(read::<Command>(text).as_ref(), Ok(&profile));
    assert_eq!(serde_json::to_string(&profile).expect("plain data"), text);
    let old = r#"{"t":1.5,"event":"failed","kind":"device","reason":"lost"}"#;
    let line = read::<StreamLine>(old).expect("an older recording is read");
    assert_eq!(line.event.request(), 0);
    assert_eq!(serde_json::to_string(&line).expect("plain data"), old);
    let numbered = old.replace("lost\"", "lost\",\"request\":7");
    let line = read::<StreamLine>(&numbered).expect("reads");
    assert_eq!(line.event.request(), 7);
}

#[test]
fn values_that_are_not_numbers_are_written_as_text() {
    let step = Step {
        slot: Slot::A,
        step: 0,
        loss: Some(Num(f64::NAN)),
        ms: 1.0,
        synced: true,
        profiled: false,
        phases: None,
        clocks: None,
    };
    let text = serde_json::to_string(&StreamLine {
        t: 0.0,
        event: Event::Step(step),
    })
    .expect("plain data");
    assert!(text.contains(r#""loss":"NaN""#), "{text}");
    let Event::Step(step) = serde_json::from_str::<StreamLine>(&text)
        .expect("reads back")
        .event
    else {
        panic!("{text}")
    };
    assert!(step.loss.is_some_and(|loss| loss.0.is_nan()));
}
