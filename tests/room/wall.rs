//! The wall, which is the board's screen for a projector: how to join, votes, raised hands and races.

use perflings::app::Markers;
use perflings::class::board::Board;
use perflings::class::log::Origin;
use perflings::class::record::InstructorRequest;
use perflings::class::state::RoomState;
use perflings::course::Course;
use perflings::tui::board::{BoardScreen, BoardView, WallPart};

use super::board::{carry_out, room, screen};
use super::participant;

#[test]
fn the_wall_shows_how_to_join_with_whole_names_on_the_smallest_screen() {
    let (mut room, course) = room();
    for (digit, name) in ['5', '6', '7', '8', '9'].into_iter().zip(1..) {
        let mut record = participant(digit, &format!("Participant number {name} of us"));
        record.open_s = 0;
        room.receive(record, &Origin::default(), 700_000)
            .expect("heard");
    }
    let board = Board::from_room(&room, &course, 700_000);
    let mut view = BoardView {
        places: vec!["http://10.0.0.7:7878/abcd2345".to_owned()],
        own_addresses: vec!["your page: http://10.0.0.7:7878/secretkey".to_owned()],
        screen: BoardScreen::Wall,
        wall: Some(WallPart::Join),
        ..BoardView::default()
    };
    for size in [(60, 16), (80, 24), (200, 50)] {
        let text = screen(&board, &mut view, size, Markers::Braille);
        assert!(text.contains("█▀▀▀▀▀█") || size.0 > 80, "{text}");
        // The participants who came last are shown, and no name is cut.
        for part in text.split("Participant number ").skip(1) {
            assert_eq!(part.get(1..7), Some(" of us"), "{text}");
        }
        assert!(text.contains("Participant number 5 of us"), "{text}");
        assert!(!text.contains("secretkey") && !text.contains("quit"));
    }
    let small = screen(&board, &mut view, (40, 7), Markers::Braille);
    assert!(small.contains("and ") && small.contains(" more"), "{small}");
}

#[test]
fn the_wall_hides_the_counts_of_a_vote_until_it_is_closed() {
    let (mut room, course) = room();
    let stage = course.stages[0].id.clone();
    carry_out(&mut room, &InstructorRequest::OpenVote(stage));
    let open = wall(&room, &course, None, (120, 36));
    assert!(open.contains("of 4 here have voted once more"), "{open}");
    assert!(!open.contains("left: the first vote"), "{open}");
    carry_out(&mut room, &InstructorRequest::CloseVote);
    // Nobody voted again, so the wall shows the first round.
    let closed = wall(&room, &course, Some(WallPart::Vote), (120, 36));
    assert!(closed.contains("left: the first vote"), "{closed}");
}

#[test]
fn the_wall_lists_raised_hands_with_their_places() {
    let (room, course) = room();
    let hands = wall(&room, &course, Some(WallPart::Hands), (60, 16));
    assert!(hands.contains("1 raised a hand"), "{hands}");
    assert!(hands.contains("1  佐"), "{hands}");
}

#[test]
fn the_wall_shows_the_results_of_a_race() {
    let (mut room, course) = room();
    let before = wall(&room, &course, Some(WallPart::Race), (60, 16));
    assert!(before.contains("no race"), "{before}");
    let race = InstructorRequest::Race(Some("mystery 7-1".to_owned()));
    carry_out(&mut room, &race);
    let racing = wall(&room, &course, Some(WallPart::Race), (60, 16));
    assert!(racing.contains("80 points, 1 min, 2 tried"), "{racing}");
}

/// Draws the wall of a room: the chosen part, or `None` for what the class does now.
fn wall(room: &RoomState, course: &Course, part: Option<WallPart>, size: (u16, u16)) -> String {
    let board = Board::from_room(room, course, 700_000);
    let mut view = BoardView {
        screen: BoardScreen::Wall,
        wall: part,
        ..BoardView::default()
    };
    screen(&board, &mut view, size, Markers::Braille)
}
