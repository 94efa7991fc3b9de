//! The learner's screen in a room: it shares what the learner does and offers what the instructor orders; nothing else changes.

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

/// Returns the app of a learner who has joined a room and trained three steps.
fn joined() -> App {
    let settings = JoinSettings {
        id: "a".repeat(32),
        name: "Ana".to_owned(),
        at: "class".to_owned(),
        instructor: false,
    };
    let options = Options {
        room: Some(settings),
        ..Options::default()
    };
    let mut app = begin(sample::course(), options).0;
    train(&mut app, 3);
    app
}

/// Sets the clock. Returns the record that the app shares then; `None` if it shares nothing.
fn tick(app: &mut App, now_ms: u64) -> Option<Participant> {
    let effects = update(app, Message::Tick { now_ms });
    effects.into_iter().find_map(|effect| match effect {
        Effect::Share(record) => Some(*record),
        _ => None,
    })
}

/// Sends the app the state of a new room in which the instructor has given these orders.
fn receive_orders(app: &mut App, orders: &[InstructorRequest]) {
    let mut room = RoomState::default();
    for order in orders {
        carry_out(&mut room, order, &app.lesson.course);
    }
    update(app, Message::Room(RoomNews::Class(Box::new(room.class))));
}

fn carry_out(room: &mut RoomState, order: &InstructorRequest, course: &Course) {
    room.carry_out(order, course, 0).expect("obeyed");
}

/// Returns the id of a stage, counted from 0.
fn stage(app: &App, index: usize) -> String {
    app.lesson.course.stages[index].id.clone()
}

/// Returns the text of the notice on the screen; empty if there is none.
fn notice(app: &App) -> &str {
    let notice = app.view.notice.as_ref();
    notice.map_or("", |notice| &notice.text)
}

#[test]
fn a_record_is_shared_only_after_a_change() {
    let mut app = joined();
    let first = tick(&mut app, 1_000).expect("the first record");
    assert_eq!(first.name, "Ana");
    assert_eq!(first.open_task, stage(&app, 0));
    assert_eq!(tick(&mut app, 60_000), None, "time alone is nothing new");
    act(&mut app, Action::RaiseHand);
    act(&mut app, Action::Answer(1));
    let next = tick(&mut app, 61_000).expect("a hand and a vote");
    assert!(next.raised && next.open_s == 60);
    assert_eq!(next.stages[&stage(&app, 0)].vote, Some(1));
}

#[test]
fn a_second_vote_after_the_discussion_leaves_the_prediction_unchanged() {
    let mut app = joined();
    let id = stage(&app, 0);
    let open = InstructorRequest::OpenVote(id.clone());
    receive_orders(&mut app, std::slice::from_ref(&open));
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
    // The room counts the vote and tells the learner.
    let shared = tick(&mut app, 900).expect("the vote");
    let mut room = RoomState::default();
    let course = app.lesson.course.clone();
    carry_out(&mut room, &open, &course);
    room.receive(shared, &Origin::default(), 0).expect("heard");
    let counted = room.class_for(&"a".repeat(32));
    update(&mut app, Message::Room(RoomNews::Class(Box::new(counted))));
    assert_eq!(notice(&app), "Your vote c is counted");
    // After the discussion the room asks again.
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
    let prediction = app.lesson.learner.progress.stage(&id).prediction;
    assert_eq!(prediction, known);
}

#[test]
fn an_offer_changes_nothing_until_the_learner_takes_it_up() {
    let mut app = joined();
    let order = InstructorRequest::Offer(Some(stage(&app, 1)));
    receive_orders(&mut app, &[order]);
    assert_eq!(
        (app.call(), app.lesson.learner.at),
        (Some(InstructorCall::Stage(1)), 0)
    );
    act(&mut app, Action::TakeUp);
    assert_eq!((app.call(), app.lesson.learner.at), (None, 1));
    let order = InstructorRequest::Race(Some("mystery 7-2".to_owned()));
    receive_orders(&mut app, &[order]);
    act(&mut app, Action::TakeUp);
    assert_eq!(
        app.mode.mystery().map(|mystery| mystery.name()).as_deref(),
        Some("7-2")
    );
    // The app ignores the offer of a stage that its course does not have.
    let unknown = InstructorRequest::Offer(Some("nowhere".to_owned()));
    receive_orders(&mut app, &[unknown]);
    assert_eq!(app.call(), None);
}

#[test]
fn a_learner_who_follows_an_offer_sees_the_skipped_stages_and_can_go_back() {
    let mut app = joined();
    let order = InstructorRequest::Offer(Some(stage(&app, 1)));
    receive_orders(&mut app, &[order]);
    let effects = act(&mut app, Action::TakeUp);
    assert!(effects.contains(&Effect::ReadJourney));
    assert_eq!(
        (app.view.overlay, app.lesson.skipped_stages()),
        (Some(Overlay::Skipped), vec![0])
    );
    // The fault of the skipped stage is shown only when the learner asks for it.
    assert!(!app.view.fault_shown);
    act(&mut app, Action::Solution);
    assert!(app.view.fault_shown);
    act(&mut app, Action::TurnPage(1));
    assert!(!app.view.fault_shown);
    act(&mut app, Action::Choose);
    assert_eq!((app.view.overlay, app.lesson.learner.at), (None, 0));
}

#[test]
fn a_learner_who_starts_late_in_a_room_sees_the_skipped_stages_after_the_welcome() {
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
}

#[test]
fn a_learner_who_starts_at_a_later_stage_without_a_room_sees_no_card() {
    let options = Options {
        stage: Some(2),
        ..Options::default()
    };
    let app = begin(sample::course(), options).0;
    assert_eq!(app.view.overlay, None);
}

#[test]
fn a_room_that_is_lost_or_closed_leaves_the_learner_where_they_are() {
    let mut app = joined();
    receive_orders(&mut app, &[]);
    let before = (app.lesson.learner.at, app.bench.run.state.clone());
    let why = "10.0.0.1:1 does not answer\u{1b}[2J".to_owned();
    let lost = RoomNews::Lost(RoomError::Later(why.clone()));
    update(&mut app, Message::Room(lost));
    assert!(matches!(
        app.class.as_ref().map(|class| &class.link),
        Some(Link::Lost(_))
    ));
    assert_eq!(
        notice(&app),
        "The room: 10.0.0.1:1 does not answer·[2J; you go on alone"
    );
    receive_orders(&mut app, &[InstructorRequest::Close(true)]);
    assert_eq!(notice(&app), "The room is closed; you go on alone");
    let closed = RoomNews::Lost(RoomError::Never(why));
    update(&mut app, Message::Room(closed));
    act(&mut app, Action::RaiseHand);
    assert_eq!(tick(&mut app, 9_000), None, "nothing is shared any more");
    assert_eq!((app.lesson.learner.at, app.bench.run.state.clone()), before);
}

#[test]
fn leaving_ends_the_sharing() {
    let mut app = joined();
    receive_orders(&mut app, &[]);
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
    let settings = JoinSettings {
        at: "class".to_owned(),
        instructor: true,
        ..JoinSettings::default()
    };
    let options = Options {
        room: Some(settings),
        present: true,
        ..Options::default()
    };
    let mut app = begin(sample::course(), options).0;
    train(&mut app, 3);
    let mut room = RoomState::default();
    let mut now_ms = 0;
    let mut all_orders = Vec::new();
    for _ in 0..20 {
        show_board(&mut app, &room);
        now_ms += 1_000;
        let orders = orders_at(&mut app, now_ms);
        for order in &orders {
            carry_out(&mut room, order, &app.lesson.course);
        }
        all_orders.extend(orders);
        if all_orders.len() == 1 && room.class.open_vote().is_some() {
            // While the beat stays, no other order follows.
            show_board(&mut app, &room);
            now_ms += 1_000;
            assert_eq!(orders_at(&mut app, now_ms), []);
            assert!(app.tally().is_some());
        }
        if app.lesson.learner.at > 0 {
            break;
        }
        act(&mut app, Action::NextBeat);
    }
    let first = stage(&app, 0);
    let opened = InstructorRequest::OpenVote(first.clone());
    assert_eq!(all_orders[..2], [opened, InstructorRequest::CloseVote]);
    assert_eq!(room.class.votes[&first].asked.len(), 1, "one round");
}

/// Sends the presenter's app the board of the room.
fn show_board(app: &mut App, room: &RoomState) {
    let board = Board::from_room(room, &app.lesson.course, 0);
    update(app, Message::Room(RoomNews::Board(Box::new(board))));
}

/// Sets the clock of a presenter's app. Returns the orders that it gives to the room then.
fn orders_at(app: &mut App, now_ms: u64) -> Vec<InstructorRequest> {
    let mut orders = Vec::new();
    for effect in update(app, Message::Tick { now_ms }) {
        match effect {
            Effect::Order(order) => orders.push(order),
            Effect::Share(_) => panic!("a presenter shares nothing"),
            _ => {}
        }
    }
    orders
}

#[test]
fn a_prediction_before_the_vote_is_no_vote_and_the_vote_leaves_it_unchanged() {
    let mut app = joined();
    let id = stage(&app, 0);
    act(&mut app, Action::Answer(1));
    tick(&mut app, 1_000).expect("a prediction");
    receive_orders(&mut app, &[InstructorRequest::OpenVote(id.clone())]);
    let first_vote = InstructorCall::Vote {
        at: 0,
        again: false,
    };
    assert_eq!(app.call(), Some(first_vote));
    let before = app.lesson.learner.progress.stage(&id).prediction;
    act(&mut app, Action::TakeUp);
    act(&mut app, Action::Vote(2));
    assert_eq!(app.lesson.learner.progress.stage(&id).prediction, before);
    let shared = tick(&mut app, 2_000).expect("a vote");
    assert_eq!(shared.ballots.values().collect::<Vec<_>>(), [&2]);
}

#[test]
fn a_prediction_during_the_vote_is_the_vote() {
    let mut app = joined();
    let id = stage(&app, 0);
    receive_orders(&mut app, &[InstructorRequest::OpenVote(id)]);
    act(&mut app, Action::Answer(3));
    assert_eq!(app.call(), None);
    let shared = tick(&mut app, 1_000).expect("a vote");
    assert_eq!(shared.ballots.values().collect::<Vec<_>>(), [&3]);
}

/// In an earlier version the stage ran behind the mystery's text, and the header gave its fault away.
#[test]
fn an_offer_of_a_stage_leads_out_of_a_mystery_and_the_stage_hides_its_fault() {
    for solved in [false, true] {
        let mut app = joined();
        let race = InstructorRequest::Race(Some("mystery 7-1".to_owned()));
        receive_orders(&mut app, &[race]);
        act(&mut app, Action::TakeUp);
        assert!(app.mode.plays_mystery());
        if solved {
            act(&mut app, Action::Solution);
            act(&mut app, Action::Yes);
            assert!(!app.mode.plays_mystery());
        }
        let offer = InstructorRequest::Offer(Some(stage(&app, 1)));
        receive_orders(&mut app, &[offer]);
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
