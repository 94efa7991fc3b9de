//! The state of a class follows from its log: whatever happens in whatever order, every tally agrees with the lines.

use std::collections::BTreeMap;

use perflings::class::log::Origin;
use perflings::class::phone::PhoneRequest;
use perflings::class::record::{
    InstructorRequest, MysteryResult, Participant, Question, RaceResult,
};
use perflings::class::state::{AWAY_MS, JoinError, MOST_PEOPLE, RoomState};
use perflings::course::Course;
use proptest::prelude::*;

fn record(id: &str, name: &str, sequence: u64) -> Participant {
    Participant {
        id: id.to_owned(),
        name: name.to_owned(),
        sequence,
        ..Participant::default()
    }
}

fn names(room: &RoomState) -> Vec<&str> {
    let people = room.people.values();
    people.map(|person| room.name_of(&person.record)).collect()
}

#[test]
fn two_with_one_name_are_told_apart() {
    let mut room = RoomState::default();
    for (id, name) in [
        ("1", "Ana"),
        ("2", "Bo"),
        ("3", "Ana"),
        ("4", ""),
        ("5", ""),
    ] {
        room.receive(record(id, name, 1), &Origin::default(), 0)
            .expect("received");
    }
    assert_eq!(names(&room), ["Ana", "Bo", "Ana (2)", "no name", "no name"]);
    // Nobody takes over a name, whatever the order of ids, and a reopened room keeps the names.
    room.receive(record("0", "ana (2)", 1), &Origin::default(), 0)
        .expect("received");
    assert_eq!(room.class.renamed["0"], "ana (2) (2)");
    let mut again = RoomState::from_log(room.history().to_vec());
    assert_eq!(names(&again), names(&room));
    let mut left = record("1", "Ana", 2);
    left.left = true;
    again
        .receive(left, &Origin::default(), 0)
        .expect("received");
    again
        .receive(record("9", "Ana", 1), &Origin::default(), 0)
        .expect("received");
    assert_eq!(again.class.renamed["9"], "Ana (3)");
}

#[test]
fn a_hand_keeps_the_time_at_which_it_was_raised() {
    let mut room = RoomState::default();
    let mut raised_ms_after = |sequence, raised, now_ms| {
        let shared = Participant {
            raised,
            ..record("1", "Ana", sequence)
        };
        room.receive(shared, &Origin::default(), now_ms)
            .expect("received");
        room.people["1"].raised_ms
    };
    assert_eq!(raised_ms_after(1, true, 10), Some(10));
    assert_eq!(raised_ms_after(2, true, 90), Some(10));
    assert_eq!(raised_ms_after(3, false, 95), None);
    assert_eq!(raised_ms_after(4, true, 99), Some(99));
}

#[test]
fn heartbeats_are_not_logged_and_silence_is() {
    let mut room = RoomState::default();
    for now_ms in [0, 30_000] {
        room.receive(record("1", "Ana", 1), &Origin::default(), now_ms)
            .expect("received");
    }
    // Returns the number of lines and the presence after a heartbeat, or after nothing but the passing of time.
    let mut lines_and_presence = |now_ms, sequence: Option<u64>| {
        match sequence {
            Some(sequence) => room
                .receive(record("1", "Ana", sequence), &Origin::default(), now_ms)
                .expect("received"),
            None => room.mark_away(now_ms),
        }
        (room.history().len(), room.people["1"].is_here())
    };
    assert_eq!(lines_and_presence(59_999, None), (1, true));
    assert_eq!(
        lines_and_presence(60_000, None),
        (2, false),
        "the same record is no sign of life"
    );
    assert_eq!(lines_and_presence(90_000, None), (2, false));
    assert_eq!(lines_and_presence(91_000, Some(2)), (3, true));
    assert_eq!(lines_and_presence(95_000, Some(3)), (3, true));
    assert_eq!(lines_and_presence(150_000, None), (3, true));
}

#[test]
fn a_result_outlives_the_program_that_measured_it() {
    let mut room = RoomState::default();
    let mut ran = record("1", "Ana", 1);
    let of_mystery = |points| RaceResult {
        ratio: Some([1.0, 0.9, 1.1]),
        mystery: Some(MysteryResult {
            points,
            ..MysteryResult::default()
        }),
    };
    let of_kernel = |ratio| RaceResult {
        ratio: Some([ratio, ratio, ratio]),
        mystery: None,
    };
    ran.races.insert("mystery 7-1".to_owned(), of_mystery(60));
    ran.races.insert("k04".to_owned(), of_kernel(2.0));
    room.receive(ran, &Origin::default(), 0).expect("received");
    room.receive(record("1", "Ana", 2), &Origin::default(), 9)
        .expect("received");
    let kept = |room: &RoomState, task: &str| room.people["1"].record.races[task];
    assert_eq!(kept(&room, "mystery 7-1"), of_mystery(60));
    let mut again = record("1", "Ana", 3);
    again.races.insert("mystery 7-1".to_owned(), of_mystery(95));
    again.races.insert("k04".to_owned(), of_kernel(3.0));
    room.receive(again, &Origin::default(), 9)
        .expect("received");
    assert_eq!(kept(&room, "mystery 7-1"), of_mystery(60), "only once");
    assert_eq!(kept(&room, "k04"), of_kernel(3.0));
}

#[test]
fn a_full_a_locked_and_a_closed_room_take_nobody_else() {
    let course = Course::builtin();
    let mut room = RoomState::default();
    for n in 0..MOST_PEOPLE {
        room.receive(record(&n.to_string(), "", 1), &Origin::default(), 0)
            .expect("received");
    }
    assert_eq!(
        room.receive(record("x", "", 1), &Origin::default(), 0),
        Err(JoinError::Full)
    );
    assert_eq!(
        room.receive(record("7", "", 2), &Origin::default(), 0),
        Ok(()),
        "who is in stays in"
    );
    let mut room = RoomState::default();
    room.receive(record("1", "", 1), &Origin::default(), 0)
        .expect("received");
    let refused = |room: &mut RoomState, order, name: &str| {
        room.carry_out(&order, &course, 0).expect("carried out");
        let inside = room.receive(record("1", "", 1), &Origin::default(), 0);
        assert_eq!(inside, Ok(()));
        room.receive(record(name, name, 1), &Origin::default(), 0)
            .err()
    };
    use InstructorRequest as Order;
    assert_eq!(
        refused(&mut room, Order::Lock(true), "x"),
        Some(JoinError::Locked)
    );
    assert_eq!(
        refused(&mut room, Order::Close(true), "x"),
        Some(JoinError::Closed)
    );
    room.carry_out(&Order::Close(false), &course, 0)
        .expect("carried out");
    room.carry_out(&Order::Lock(false), &course, 0)
        .expect("carried out");
    assert_eq!(
        refused(&mut room, Order::RequireNames(true), ""),
        Some(JoinError::NameRequired)
    );
    assert_eq!(refused(&mut room, Order::RequireNames(true), "Bo"), None);
}

#[test]
fn a_removed_participant_is_refused_until_let_in() {
    let course = Course::builtin();
    let mut room = RoomState::default();
    room.receive(record("1", "Ana", 1), &Origin::default(), 0)
        .expect("received");
    let order = InstructorRequest::Remove(["1".to_owned()].into());
    room.carry_out(&order, &course, 0).expect("carried out");
    assert!(room.people.is_empty());
    assert_eq!(
        room.receive(record("1", "Ana", 1), &Origin::default(), 0),
        Err(JoinError::Removed)
    );
    room.carry_out(&InstructorRequest::LetIn, &course, 0)
        .expect("carried out");
    room.receive(record("1", "Ana", 1), &Origin::default(), 0)
        .expect("received");
    assert_eq!(names(&room), ["Ana"]);
}

fn give_orders(room: &mut RoomState, orders: &[InstructorRequest]) {
    for order in orders {
        room.carry_out(order, &Course::builtin(), room.last_ms())
            .expect("carried out");
    }
}

fn phone(id: &str, ballot: Option<(u64, usize)>) -> PhoneRequest {
    PhoneRequest {
        id: id.to_owned(),
        ballot,
        ..PhoneRequest::default()
    }
}

#[test]
fn a_slip_is_undone_for_a_minute_and_loses_no_ballot() {
    use InstructorRequest as Order;
    let course = Course::builtin();
    let stage = course.stages[0].id.clone();
    let mut room = RoomState::default();
    let origin = Origin::default();
    give_orders(&mut room, &[Order::OpenVote(stage.clone())]);
    let number = room.class.votes[&stage].number().expect("a round");
    room.receive_phone(&phone("1", Some((number, 1))), &origin, 0)
        .expect("received");
    give_orders(&mut room, &[Order::Close(true)]);
    assert!(room.class.closed && room.class.open_vote().is_none());
    // What was cast meanwhile came too late; what was cast before counts.
    room.receive_phone(&phone("1", Some((number, 0))), &origin, 5)
        .expect("received");
    give_orders(&mut room, &[Order::Undo]);
    assert!(!room.class.closed && room.class.votes[&stage].open);
    room.receive_phone(&phone("2", Some((number, 0))), &origin, 9)
        .expect("received");
    let vote = room.class.votes[&stage].clone();
    assert_eq!(room.round(&vote, number).counts[..2], [1, 1]);
    // The order before the last one is taken back as well, and an old one is not.
    give_orders(&mut room, &[Order::Undo]);
    assert!(room.class.votes.is_empty());
    give_orders(&mut room, &[Order::Lock(true)]);
    assert!(room.carry_out(&Order::Undo, &course, 60_009).is_err() && room.class.locked);
}

#[test]
fn a_round_in_which_nobody_voted_is_opened_again() {
    use InstructorRequest as Order;
    let stage = Course::builtin().stages[0].id.clone();
    let open = Order::OpenVote(stage.clone());
    let mut room = RoomState::default();
    give_orders(&mut room, &[open.clone(), Order::CloseVote, open.clone()]);
    let vote = room.class.votes[&stage].clone();
    assert_eq!((vote.open, vote.round, vote.asked.len()), (true, 0, 1));
    let cast = phone("1", Some((vote.asked[0], 0)));
    room.receive_phone(&cast, &Origin::default(), 0)
        .expect("received");
    give_orders(&mut room, &[Order::CloseVote, open]);
    assert_eq!(room.class.votes[&stage].round, 1);
}

#[test]
fn one_person_with_two_devices_is_one_in_every_count() {
    use InstructorRequest as Order;
    let stage = Course::builtin().stages[0].id.clone();
    let mut room = RoomState::default();
    let origin = Origin::default();
    room.receive(record("1", "Ana", 1), &Origin::default(), 0)
        .expect("received");
    give_orders(&mut room, &[Order::OpenVote(stage.clone())]);
    let number = room.class.votes[&stage].number().expect("a round");
    // Ana votes on her phone before she types the code.
    room.receive_phone(&phone("p", Some((number, 1))), &origin, 0)
        .expect("received");
    let mut sits = phone("p", None);
    sits.seat = Some("wrong".to_owned());
    assert_eq!(
        room.receive_phone(&sits, &origin, 0),
        Err(JoinError::NoSeat)
    );
    sits.seat = Some(room.people["1"].seat.to_uppercase());
    room.receive_phone(&sits, &origin, 0).expect("received");
    let mut cast = record("1", "Ana", 2);
    cast.ballots.insert(number, 2);
    room.receive(cast, &Origin::default(), 0).expect("received");
    let vote = room.class.votes[&stage].clone();
    let round = room.round(&vote, number);
    assert_eq!((round.counts[1], round.counts[2], round.here), (1, 0, 1));
    assert_eq!(names(&room), ["Ana"]);
    give_orders(&mut room, &[Order::Remove(["1".to_owned()].into())]);
    let again = room.receive_phone(&phone("p", None), &origin, 0);
    assert_eq!(again, Err(JoinError::Removed), "with all devices");
}

#[test]
fn a_second_ballot_from_a_private_tab_is_shown_as_such() {
    let stage = Course::builtin().stages[0].id.clone();
    let mut room = RoomState::default();
    give_orders(&mut room, &[InstructorRequest::OpenVote(stage.clone())]);
    let number = room.class.votes[&stage].number().expect("a round");
    for (id, browser) in [("1", "a phone"), ("2", "another"), ("3", "a phone")] {
        let origin = Origin {
            address: "10.0.0.9".to_owned(),
            browser: browser.to_owned(),
        };
        room.receive_phone(&phone(id, Some((number, 0))), &origin, 0)
            .expect("received");
    }
    let vote = room.class.votes[&stage].clone();
    let round = room.round(&vote, number);
    assert_eq!((round.counts[0], round.alike), (3, 1));
}

/// One event of a class. `back` chooses the round of a ballot: 0 is the newest round, 1 the one before.
#[derive(Clone, Debug)]
enum Step {
    /// A record of a participant, who may leave with it.
    Record {
        who: u8,
        back: u64,
        choice: usize,
        left: bool,
    },
    Phone {
        who: u8,
        back: u64,
        choice: usize,
    },
    Order(u8),
    Remove(u8),
    Silence,
    /// The board ends and is opened again, without the last `lost` lines of its log.
    Kill {
        lost: usize,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let choice = prop_oneof![0_usize..4, Just(99)];
    prop_oneof![
        4 => (0_u8..6, 0_u64..3, choice.clone(), any::<bool>())
            .prop_map(|(who, back, choice, left)| Step::Record { who, back, choice, left }),
        4 => (0_u8..6, 0_u64..3, choice)
            .prop_map(|(who, back, choice)| Step::Phone { who, back, choice }),
        4 => (0_u8..7).prop_map(Step::Order),
        1 => (0_u8..6).prop_map(Step::Remove),
        1 => Just(Step::Silence),
        1 => (0_usize..3).prop_map(|lost| Step::Kill { lost }),
    ]
}

/// Counts the ballots of a round from the lines of the log, with no code of `RoomState`.
fn counted_by_hand(lines: &[String], number: u64) -> BTreeMap<u64, u32> {
    let lines: Vec<serde_json::Value> = lines
        .iter()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let undone: Vec<u64> = lines
        .iter()
        .filter_map(|line| line["undone"]["line"].as_u64())
        .collect();
    let mut ballots: BTreeMap<String, u64> = BTreeMap::new();
    let mut open = None;
    for line in lines
        .iter()
        .filter(|line| !undone.contains(&line["n"].as_u64().expect("n")))
    {
        if let Some(round) = line["vote-opened"]["round"].as_u64() {
            open = Some(round);
        }
        if line.get("vote-closed").is_some() || line.get("closed").is_some() {
            open = None;
        }
        if let Some(who) = line["ballot"]["who"].as_str()
            && line["ballot"]["round"] == number
            && open == Some(number)
        {
            let choice = line["ballot"]["choice"].as_u64().expect("a choice");
            assert!(
                ballots.insert(who.to_owned(), choice).is_none(),
                "a second ballot"
            );
        }
        for who in line["removed"]["who"].as_array().into_iter().flatten() {
            ballots.remove(who.as_str().expect("an id"));
        }
    }
    let mut counts = BTreeMap::new();
    for choice in ballots.into_values() {
        *counts.entry(choice).or_default() += 1;
    }
    counts
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn every_tally_agrees_with_the_log(steps in prop::collection::vec(step(), 1..60)) {
        let course = Course::builtin();
        let stages = [course.stages[0].id.clone(), course.stages[1].id.clone()];
        let mut room = RoomState::default();
        let mut sequence = 0;
        let mut now_ms = 1_000;
        let mut rounds = vec![1_u64];
        for step in steps {
            now_ms += 900;
            sequence += 1;
            let round = |back: u64| rounds.iter().rev().nth(back as usize).copied().unwrap_or(1);
            match step {
                Step::Record { who, back, choice, left } => {
                    let mut shared = record(&format!("t{who}"), "Ana", sequence);
                    shared.ballots.insert(round(back), choice);
                    shared.left = left;
                    let _ = room.receive(shared, &Origin::default(), now_ms);
                }
                Step::Phone { who, back, choice } => {
                    let cast = phone(&format!("p{who}"), Some((round(back), choice)));
                    let _ = room.receive_phone(&cast, &Origin::default(), now_ms);
                }
                Step::Order(which) => {
                    use InstructorRequest as Order;
                    let order = match which {
                        0 | 1 => Order::OpenVote(stages[usize::from(which)].clone()),
                        2 => Order::CloseVote,
                        3 => Order::Undo,
                        4 => Order::Close(false),
                        5 => Order::LetIn,
                        _ => Order::Ask(Question::read("ask why yes no").expect("whole")),
                    };
                    let _ = room.carry_out(&order, &course, now_ms);
                }
                Step::Remove(who) => {
                    let order = InstructorRequest::Remove([format!("t{who}")].into());
                    let _ = room.carry_out(&order, &course, now_ms);
                }
                Step::Silence => {
                    now_ms += AWAY_MS;
                    room.mark_away(now_ms);
                }
                Step::Kill { lost } => {
                    let mut history = room.history().to_vec();
                    history.truncate(history.len().saturating_sub(lost));
                    room = RoomState::from_log(history);
                }
            }
            rounds.extend(room.class.open_vote().and_then(|(_, vote)| vote.number()));
        }
        let lines: Vec<String> = room.history().iter()
            .map(|entry| serde_json::to_string(entry).expect("plain data")).collect();
        let read = lines.iter().map(|line| serde_json::from_str(line).expect("a line"));
        let again = RoomState::from_log(read.collect());
        for vote in room.class.votes.values() {
            for number in &vote.asked {
                let round = room.round(vote, *number);
                let by_hand = counted_by_hand(&lines, *number);
                for (choice, votes) in (0_u64..).zip(&round.counts) {
                    prop_assert_eq!(by_hand.get(&choice).copied().unwrap_or(0), *votes);
                }
                let all: u32 = round.counts.iter().sum();
                prop_assert!(all - round.gone <= round.here);
                prop_assert_eq!(&again.round(vote, *number), &round);
            }
        }
    }
}
