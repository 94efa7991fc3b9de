//! What the learner's screen makes of a room: what it shares, what it offers, and that nothing else changes.

use perflings::app::member::{InstructorCall, JoinSettings, Link};
use perflings::app::{Action, App, Effect, Message, Options, Overlay, update};
use perflings::class::board::Board;
use perflings::class::link::{RoomError, RoomNews};
use perflings::class::log::Origin;
use perflings::class::record::{InstructorRequest, Participant};
use perflings::class::state::RoomState;
use perflings::course::Course;
use perflings::course::save_file::{Prediction, ProgressChange};

use super::sample;
use super::session::{act, begin, train};

fn joined() -> App {
    let me = JoinSettings {
        id: "a".repeat(32),
        name: "Ana".to_owned(),
        at: "class".to_owned(),
        instructor: false,
    };
    let options = Options {
        room: Some(me),
        ..Options::default()
    };
    let mut app = begin(sample::course(), options).0;
    train(&mut app, 3);
    app
}

/// Time passes; the record that was shared then, if any.
fn tick(app: &mut App, now_ms: u64) -> Option<Participant> {
    let effects = update(app, Message::Tick { now_ms });
    effects.into_iter().find_map(|effect| match effect {
        Effect::Share(record) => Some(*record),
        _ => None,
    })
}

/// The room says what came of these orders.
fn said(app: &mut App, orders: &[InstructorRequest]) {
    let mut room = RoomState::default();
    for order in orders {
        carry_out(&mut room, order, &app.lesson.course);
    }
    update(app, Message::Room(RoomNews::Class(Box::new(room.class))));
}

fn carry_out(room: &mut RoomState, order: &InstructorRequest, course: &Course) {
    room.carry_out(order, course, 0).expect("obeyed");
}

fn stage(app: &App, at: usize) -> String {
    app.lesson.course.stages[at].id.clone()
}

#[test]
fn only_what_changed_is_shared() {
    let mut app = joined();
    let first = tick(&mut app, 1_000).expect("the first record");
    assert_eq!(
        (first.name.as_str(), first.open_task.as_str()),
        ("Ana", stage(&app, 0).as_str())
    );
    assert_eq!(tick(&mut app, 60_000), None, "time alone is nothing new");
    act(&mut app, Action::RaiseHand);
    act(&mut app, Action::Answer(1));
    let next = tick(&mut app, 61_000).expect("a hand and a vote");
    assert!(next.raised && next.open_s == 60);
    assert_eq!(next.stages[&stage(&app, 0)].vote, Some(1));
}

#[test]
fn the_class_votes_twice() {
    let mut app = joined();
    let id = stage(&app, 0);
    let open = InstructorRequest::OpenVote(id.clone());
    said(&mut app, std::slice::from_ref(&open));
    assert_eq!(
        app.call(),
        Some(InstructorCall::Vote {
            at: 0,
            again: false
        })
    );
    act(&mut app, Action::TakeUp);
    assert_eq!(app.view.overlay, Some(Overlay::Vote));
    act(&mut app, Action::Vote(9));
    assert!(app.call().is_some(), "there is no such choice");
    let effects = act(&mut app, Action::Vote(2));
    assert!(
        effects
            .iter()
            .any(|effect| matches!(effect, Effect::Save(ProgressChange::Stage(..))))
    );
    let known = app.lesson.learner.progress.stage(&id).prediction;
    assert!(matches!(known, Some(Prediction::Choice { choice: 2, .. })));
    assert_eq!((app.call(), app.view.overlay), (None, None));
    // The board has it, and after the discussion asks again.
    let shared = tick(&mut app, 900).expect("the vote");
    let mut room = RoomState::default();
    let course = app.lesson.course.clone();
    carry_out(&mut room, &open, &course);
    room.receive(shared, &Origin::default(), 0).expect("heard");
    update(
        &mut app,
        Message::Room(RoomNews::Class(Box::new(room.class_for(&"a".repeat(32))))),
    );
    let told = app.view.notice.as_ref().map(|notice| notice.text.clone());
    assert_eq!(told.as_deref(), Some("Your vote c is counted"));
    for order in [InstructorRequest::CloseVote, open] {
        carry_out(&mut room, &order, &course);
    }
    update(
        &mut app,
        Message::Room(RoomNews::Class(Box::new(room.class))),
    );
    assert_eq!(
        app.call(),
        Some(InstructorCall::Vote { at: 0, again: true })
    );
    act(&mut app, Action::TakeUp);
    act(&mut app, Action::Vote(1));
    let shared = tick(&mut app, 2_000).expect("both votes");
    let votes: Vec<usize> = shared.ballots.into_values().collect();
    assert_eq!(votes, [2, 1]);
    assert_eq!(
        app.lesson.learner.progress.stage(&id).prediction,
        known,
        "the prediction stays"
    );
}

#[test]
fn an_offer_is_only_an_offer() {
    let mut app = joined();
    let order = InstructorRequest::Offer(Some(stage(&app, 1)));
    said(&mut app, &[order]);
    assert_eq!(
        (app.call(), app.lesson.learner.at),
        (Some(InstructorCall::Stage(1)), 0)
    );
    act(&mut app, Action::TakeUp);
    assert_eq!((app.call(), app.lesson.learner.at), (None, 1));
    let order = InstructorRequest::Race(Some("mystery 7-2".to_owned()));
    said(&mut app, &[order]);
    act(&mut app, Action::TakeUp);
    assert_eq!(
        app.mode.mystery().map(|mystery| mystery.name()).as_deref(),
        Some("7-2")
    );
    // What is nowhere to be found is no offer.
    said(
        &mut app,
        &[InstructorRequest::Offer(Some("nowhere".to_owned()))],
    );
    assert_eq!(app.call(), None);
}

#[test]
fn who_comes_late_sees_what_was_missed_and_can_go_back() {
    let mut app = joined();
    let order = InstructorRequest::Offer(Some(stage(&app, 1)));
    said(&mut app, &[order]);
    let effects = act(&mut app, Action::TakeUp);
    assert!(effects.contains(&Effect::ReadJourney));
    assert_eq!(
        (app.view.overlay, app.lesson.skipped_stages()),
        (Some(Overlay::Skipped), vec![0])
    );
    // Its fault is shown when the learner asks, and only then.
    assert!(!app.view.fault_shown);
    act(&mut app, Action::Solution);
    assert!(app.view.fault_shown);
    act(&mut app, Action::TurnPage(1));
    assert!(!app.view.fault_shown);
    act(&mut app, Action::Choose);
    assert_eq!((app.view.overlay, app.lesson.learner.at), (None, 0));
    // With the first start in the room the welcome comes first.
    for (welcome, first) in [(false, Overlay::Skipped), (true, Overlay::Welcome)] {
        let options = Options {
            room: Some(JoinSettings::default()),
            stage: Some(2),
            welcome,
            ..Options::default()
        };
        let mut app = begin(sample::course(), options).0;
        assert_eq!(app.view.overlay, Some(first));
        if welcome {
            act(&mut app, Action::Close);
            assert_eq!(app.view.overlay, Some(Overlay::Skipped));
        }
        act(&mut app, Action::Close);
        assert_eq!((app.view.overlay, app.lesson.learner.at), (None, 1));
    }
    let alone = Options {
        stage: Some(2),
        ..Options::default()
    };
    let app = begin(sample::course(), alone).0;
    assert_eq!(app.view.overlay, None, "alone it is a choice");
}

#[test]
fn a_room_that_is_lost_or_closed_disturbs_nothing() {
    let mut app = joined();
    said(&mut app, &[]);
    let before = (app.lesson.learner.at, app.bench.run.state.clone());
    let why = "10.0.0.1:1 does not answer\u{1b}[2J".to_owned();
    let lost = RoomNews::Lost(RoomError::Later(why.clone()));
    update(&mut app, Message::Room(lost));
    assert!(matches!(
        app.class.as_ref().map(|class| &class.link),
        Some(Link::Lost(_))
    ));
    let told = app
        .view
        .notice
        .as_ref()
        .map(|notice| notice.text.clone())
        .unwrap_or_default();
    assert_eq!(
        told,
        "The room: 10.0.0.1:1 does not answer·[2J; you go on alone"
    );
    said(&mut app, &[InstructorRequest::Close(true)]);
    let told = app
        .view
        .notice
        .as_ref()
        .map(|notice| notice.text.clone())
        .unwrap_or_default();
    assert_eq!(told, "The room is closed; you go on alone");
    update(
        &mut app,
        Message::Room(RoomNews::Lost(RoomError::Never(why))),
    );
    act(&mut app, Action::RaiseHand);
    assert_eq!(tick(&mut app, 9_000), None, "nothing is shared any more");
    assert_eq!((app.lesson.learner.at, app.bench.run.state.clone()), before);
}

#[test]
fn leaving_ends_the_sharing() {
    let mut app = joined();
    said(&mut app, &[]);
    let effects = act(&mut app, Action::LeaveRoom);
    assert!(effects.contains(&Effect::LeaveRoom));
    assert_eq!(tick(&mut app, 9_000), None);
    assert_eq!(app.call(), None);
}

#[test]
fn what_is_presented_is_not_shared() {
    let mut app = joined();
    act(&mut app, Action::Present);
    assert_eq!(tick(&mut app, 9_000), None);
}

#[test]
fn a_presenter_opens_the_vote_with_its_beat_and_closes_it_with_the_next() {
    let me = JoinSettings {
        at: "class".to_owned(),
        instructor: true,
        ..JoinSettings::default()
    };
    let options = Options {
        room: Some(me),
        present: true,
        ..Options::default()
    };
    let mut app = begin(sample::course(), options).0;
    train(&mut app, 3);
    let mut hall = RoomState::default();
    let orders = |app: &mut App, now_ms| -> Vec<InstructorRequest> {
        let effects = update(app, Message::Tick { now_ms });
        let orders = effects.into_iter().filter_map(|effect| match effect {
            Effect::Order(order) => Some(order),
            Effect::Share(_) => panic!("a presenter shares nothing"),
            _ => None,
        });
        orders.collect()
    };
    let mut now_ms = 0;
    let mut seen = Vec::new();
    for _ in 0..20 {
        let board = Board::from_room(&hall, &app.lesson.course, 0);
        update(&mut app, Message::Room(RoomNews::Board(Box::new(board))));
        now_ms += 1_000;
        let given = orders(&mut app, now_ms);
        let course = app.lesson.course.clone();
        given
            .iter()
            .for_each(|order| carry_out(&mut hall, order, &course));
        seen.extend(given);
        if seen.len() == 1 && hall.class.open_vote().is_some() {
            // The same beat again orders nothing.
            now_ms += 1_000;
            let board = Board::from_room(&hall, &app.lesson.course, 0);
            update(&mut app, Message::Room(RoomNews::Board(Box::new(board))));
            assert!(orders(&mut app, now_ms).is_empty() && app.tally().is_some());
        }
        if app.lesson.learner.at > 0 {
            break;
        }
        act(&mut app, Action::NextBeat);
    }
    let first = stage(&app, 0);
    assert_eq!(
        seen[..2],
        [
            InstructorRequest::OpenVote(first.clone()),
            InstructorRequest::CloseVote
        ]
    );
    // Back at the vote: it stays counted, and is opened again only when asked for.
    assert_eq!(hall.class.votes[&first].asked.len(), 1);
}

#[test]
fn only_what_is_predicted_during_a_vote_is_a_vote() {
    let mut app = joined();
    let id = stage(&app, 0);
    act(&mut app, Action::Answer(1));
    tick(&mut app, 1_000).expect("a prediction");
    // It was made before: the room asks, and the answer leaves the prediction alone.
    said(&mut app, &[InstructorRequest::OpenVote(id.clone())]);
    let at = 0;
    let again = false;
    assert_eq!(app.call(), Some(InstructorCall::Vote { at, again }));
    let before = app.lesson.learner.progress.stage(&id).prediction;
    act(&mut app, Action::TakeUp);
    act(&mut app, Action::Vote(2));
    assert_eq!(app.lesson.learner.progress.stage(&id).prediction, before);
    let shared = tick(&mut app, 2_000).expect("a vote");
    assert_eq!(shared.ballots.values().collect::<Vec<_>>(), [&2]);
    // One that is made while the vote is open is the vote.
    let mut app = joined();
    said(&mut app, &[InstructorRequest::OpenVote(id)]);
    act(&mut app, Action::Answer(3));
    assert_eq!(app.call(), None);
    let shared = tick(&mut app, 1_000).expect("a vote");
    assert_eq!(shared.ballots.values().collect::<Vec<_>>(), [&3]);
}

/// Issue 25: the stage ran behind the mystery's text, with a header that told its fault.
#[test]
fn the_class_goes_on_from_a_mystery() {
    for solved in [false, true] {
        let mut app = joined();
        let race = InstructorRequest::Race(Some("mystery 7-1".to_owned()));
        said(&mut app, &[race]);
        act(&mut app, Action::TakeUp);
        assert!(app.mode.plays_mystery());
        if solved {
            act(&mut app, Action::Solution);
            act(&mut app, Action::Yes);
            assert!(!app.mode.plays_mystery());
        }
        let offer = InstructorRequest::Offer(Some(stage(&app, 1)));
        said(&mut app, &[offer]);
        assert_eq!(app.call(), Some(InstructorCall::Stage(1)));
        act(&mut app, Action::TakeUp);
        if !solved {
            assert!(app.mode.plays_mystery(), "asked first");
            act(&mut app, Action::Yes);
        }
        assert!(app.mode.mystery().is_none() && app.lesson.learner.at == 1);
        assert_eq!(app.bench.comparison.stage, 2);
        assert!(app.reading().withholds("lints"));
    }
}
