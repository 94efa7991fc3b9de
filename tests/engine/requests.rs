//! Each answer has the number of the command that it answers.

use super::*;

/// Returns the kind and the request number of each answer, without repetitions.
fn answers(events: &[Event]) -> Vec<(&'static str, u64)> {
    let answer = |event: &Event| {
        let name = match event {
            Event::Started(_) => "started",
            Event::Pair(_) => "pair",
            Event::Finished(_) => "finished",
            Event::Failed(_) => "failed",
            Event::Kernels(profile) if profile.request > 0 => "kernels",
            _ => return None,
        };
        Some((name, event.request()))
    };
    let mut answers: Vec<_> = events.iter().filter_map(answer).collect();
    answers.dedup();
    answers
}

#[test]
fn a_late_answer_to_a_change_has_the_change_s_number_and_not_that_of_the_pairs() {
    let mut engine = Engine::start();
    let a = endless(small(&[]));
    let b = endless_b(small(&[("train.learning-rate", "1e-4")]));
    engine.send(&start(a.clone(), 1));
    let mut events = engine.events_until_step();
    engine.send(&Command::Apply {
        run: b.clone(),
        request: 2,
    });
    engine.send(&compare(a, b, 2, 3));
    // The summary of the run, then that of the pairs.
    events.extend(engine.events_until_summary().0);
    events.extend(engine.events_until_summary().0);
    assert_eq!(
        answers(&events),
        [
            ("started", 1),
            ("started", 2),
            ("finished", 2),
            ("started", 3),
            ("pair", 3),
            ("finished", 3)
        ]
    );
}

#[test]
fn a_failure_has_the_number_of_its_command() {
    let mut engine = Engine::start();
    let mut events = Vec::new();
    // There is no run to profile. A command without a number gets no answer.
    engine.send(&Command::Profile { request: 0 });
    engine.send(&Command::Profile { request: 1 });
    events.extend(engine.events_until_failure().0);
    engine.send(&Command::Apply {
        run: endless(small(&[])),
        request: 2,
    });
    events.extend(engine.events_until_failure().0);
    let input = engine.input.as_mut().expect("open");
    writeln!(input, r#"{{"command":"start","request":3}}"#).expect("the engine reads");
    events.extend(engine.events_until_failure().0);
    engine.send(&Command::Start {
        device: "toaster".into(),
        run: endless(small(&[])),
        request: 4,
    });
    events.extend(engine.events_until_failure().0);
    let failures = [1, 2, 3, 4].map(|request| ("failed", request));
    assert_eq!(answers(&events), failures);
}

#[test]
fn a_change_does_not_lose_the_profile_that_was_asked_for_before_it() {
    let mut engine = Engine::start();
    let run = endless(small(&[]));
    engine.send(&start(run.clone(), 5));
    engine.events_until_step();
    engine.send(&Command::Profile { request: 6 });
    engine.send(&Command::Apply { run, request: 7 });
    let mut events = engine.events_until(|event| event.request() == 6);
    events
        .extend(engine.events_until(|event| matches!(event, Event::Step(step) if step.step > 20)));
    engine.send(&Command::Stop);
    events.extend(engine.events_until_summary().0);
    let mut found = answers(&events);
    // The profile may be taken before the change or after it.
    found.sort_by_key(|(_, request)| *request);
    assert_eq!(found, [("kernels", 6), ("started", 7), ("finished", 7)]);
}
