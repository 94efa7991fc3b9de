//! The instructor's board on the terminal: its screens at every size and in ASCII, and the orders that its keys give.

use std::collections::BTreeSet;
use std::slice;

use perflings::app::Markers;
use perflings::class::board::{Board, Crowd};
use perflings::class::log::Origin;
use perflings::class::record::{InstructorRequest, MysteryResult, RaceResult, SharedWork};
use perflings::class::state::RoomState;
use perflings::course::Course;
use perflings::tui::board::{BoardScreen, BoardView, Confirmation, RoomControl, act, draw};
use perflings::tui::keys::board::BoardAction;
use perflings::tui::theme::Theme;
use ratatui::backend::TestBackend;
use ratatui::buffer::Cell;

use super::participant;

/// Returns a class of four with a vote, a race and an offer, and its course.
pub(super) fn room() -> (RoomState, Course) {
    let course = Course::builtin();
    let mut room = RoomState::default();
    let stage = course.stages[0].id.clone();
    for (digit, name) in [
        ('a', "Ana"),
        ('b', "Ana"),
        ('c', "佐藤"),
        ('d', "\u{1b}[2JEve"),
    ] {
        let mut record = participant(digit, name);
        record.open_task.clone_from(&course.stages[2].id);
        record.open_s = 700;
        record.raised = digit == 'c';
        let shared = SharedWork {
            vote: Some(1),
            range: Some([1.0, 2.0]),
            ..SharedWork::default()
        };
        record.stages.insert(course.stages[0].id.clone(), shared);
        let result = RaceResult {
            ratio: Some([1.0, 0.9, 1.1]),
            mystery: Some(MysteryResult {
                points: 80,
                seconds: 75,
                configurations: 2,
            }),
        };
        record.races.insert("mystery 7-1".to_owned(), result);
        room.receive(record, &Origin::default(), 700_000)
            .expect("heard");
    }
    carry_out(&mut room, &InstructorRequest::OpenVote(stage.clone()));
    let round = room.class.votes[&stage].number().expect("a round");
    for digit in ['a', 'b', 'c', 'd'] {
        let mut record = room.people[&digit.to_string().repeat(32)].record.clone();
        record.sequence = 2;
        record.open_s = 700;
        record.ballots.insert(round, 1);
        room.receive(record, &Origin::default(), 700_000)
            .expect("heard");
    }
    for order in [
        InstructorRequest::CloseVote,
        InstructorRequest::Offer(Some(course.stages[1].id.clone())),
    ] {
        carry_out(&mut room, &order);
    }
    (room, course)
}

/// Lets the room carry out an order.
pub(super) fn carry_out(room: &mut RoomState, order: &InstructorRequest) {
    let now_ms = room.last_ms();
    room.carry_out(order, &Course::builtin(), now_ms)
        .expect("obeyed");
}

/// Draws a board. Returns the text of the screen, with a line for each row.
pub(super) fn screen(
    board: &Board,
    view: &mut BoardView,
    (columns, rows): (u16, u16),
    markers: Markers,
) -> String {
    let theme = Theme::plain(markers);
    let mut terminal = ratatui::Terminal::new(TestBackend::new(columns, rows)).expect("a terminal");
    terminal
        .draw(|frame| draw(frame, board, view, &theme))
        .expect("drawn");
    let buffer = terminal.backend().buffer();
    let line = |row: &[Cell]| row.iter().map(Cell::symbol).collect::<String>() + "\n";
    buffer
        .content
        .chunks(usize::from(columns))
        .map(line)
        .collect()
}

const SIZES: [(u16, u16); 4] = [(60, 16), (80, 24), (120, 36), (200, 50)];

/// Draws a board in its first view.
fn first_screen(board: &Board, size: (u16, u16), markers: Markers) -> String {
    screen(board, &mut BoardView::default(), size, markers)
}

#[test]
fn the_board_shows_people_and_votes_at_every_size() {
    let (room, course) = room();
    let board = Board::from_room(&room, &course, 700_000);
    for size in SIZES {
        let text = first_screen(&board, size, Markers::Braille);
        // A sentence may continue in the next line.
        let words: Vec<&str> = text.split_whitespace().collect();
        let sentences = words.join(" ");
        for part in [
            "4 here",
            "1 raised a hand",
            "stage 1: the votes, 4 of 4",
            "11 min",
            "hand 1",
            "q quit",
        ] {
            assert!(sentences.contains(part), "{part} at {size:?}:\n{text}");
        }
        let has_all_names = size.1 > 16;
        assert!(!has_all_names || sentences.contains("Ana (2)"), "{text}");
    }
}

#[test]
fn the_numbers_of_a_stage_are_named_on_a_wide_board() {
    let (room, course) = room();
    let board = Board::from_room(&room, &course, 700_000);
    for (size, named) in [((120, 36), " here/passed 1: 0/"), ((200, 50), " here, ")] {
        let text = first_screen(&board, size, Markers::Braille);
        assert!(text.contains(named), "{size:?}:\n{text}");
    }
}

#[test]
fn the_board_is_drawn_in_ascii_and_on_the_smallest_terminals() {
    let (room, course) = room();
    let board = Board::from_room(&room, &course, 700_000);
    for size in SIZES {
        let text = first_screen(&board, size, Markers::Ascii);
        assert!(text.is_ascii(), "{text}");
    }
    for size in [(1, 1), (20, 3), (59, 8), (300, 2)] {
        first_screen(&board, size, Markers::Dots);
    }
}

/// A room that records its orders and carries none of them out.
struct RecordingRoom {
    course: Course,
    orders: Vec<InstructorRequest>,
}

impl RoomControl for RecordingRoom {
    fn board(&mut self) -> Board {
        Board::default()
    }
    fn race(&self, named: &str) -> Result<InstructorRequest, String> {
        if named == "7 2" {
            Ok(InstructorRequest::Race(Some("mystery 7-2".to_owned())))
        } else {
            Err(format!("no {named}"))
        }
    }
    fn answer(&self, number: u32) -> Option<(String, String)> {
        let stage = self.course.stage(number)?;
        Some((stage.id.clone(), "why".to_owned()))
    }
    fn order(&mut self, order: InstructorRequest) -> Result<(), String> {
        self.orders.push(order);
        Ok(())
    }
}

/// An instructor at the board of the class.
struct Instructor {
    class: RoomState,
    room: RecordingRoom,
    view: BoardView,
}

impl Instructor {
    fn new() -> Self {
        let (class, course) = room();
        let orders = Vec::new();
        Self {
            class,
            room: RecordingRoom { course, orders },
            view: BoardView::default(),
        }
    }

    fn board(&self) -> Board {
        Board::from_room(&self.class, &self.room.course, 0)
    }

    /// Carries out some actions. Returns the last message of the board about them.
    fn act(&mut self, actions: &[BoardAction]) -> Option<String> {
        let board = self.board();
        let mut last = None;
        for action in actions {
            last = act(*action, &mut self.room, &board, &mut self.view).or(last);
        }
        last
    }

    /// Carries out some actions. Returns the orders that they give to the room.
    fn orders(&mut self, actions: &[BoardAction]) -> Vec<InstructorRequest> {
        self.act(actions);
        std::mem::take(&mut self.room.orders)
    }

    /// Returns the id of a stage, counted from 0.
    fn stage(&self, index: usize) -> String {
        self.room.course.stages[index].id.clone()
    }

    /// Returns the ids of the participants with these names.
    fn ids(&self, names: &[&str]) -> BTreeSet<String> {
        self.board()
            .rows
            .into_iter()
            .filter(|row| names.contains(&row.name.as_str()))
            .map(|row| row.id)
            .collect()
    }
}

/// Returns the actions that begin a line, type a word into it and confirm it.
fn typed(begin: BoardAction, word: &str) -> Vec<BoardAction> {
    let mut actions = vec![begin];
    actions.extend(word.chars().map(BoardAction::Type));
    actions.push(BoardAction::Take);
    actions
}

#[test]
fn the_vote_key_opens_the_vote_of_the_marked_stage_and_closes_it() {
    let mut instructor = Instructor::new();
    let opened = InstructorRequest::OpenVote(instructor.stage(1));
    let orders = instructor.orders(&[BoardAction::Mark(1), BoardAction::Vote]);
    assert_eq!(orders, slice::from_ref(&opened));
    carry_out(&mut instructor.class, &opened);
    let orders = instructor.orders(&[BoardAction::Vote]);
    assert_eq!(orders, [InstructorRequest::CloseVote]);
}

#[test]
fn the_answer_is_shown_for_a_vote_that_is_over() {
    let mut instructor = Instructor::new();
    let stage = instructor.stage(1);
    for order in [
        InstructorRequest::OpenVote(stage.clone()),
        InstructorRequest::CloseVote,
    ] {
        carry_out(&mut instructor.class, &order);
    }
    let reason = "why".to_owned();
    assert_eq!(
        instructor.orders(&[BoardAction::Answer]),
        [InstructorRequest::ShowAnswer { stage, reason }]
    );
}

#[test]
fn the_offer_key_takes_back_the_offer_of_the_marked_stage_or_offers_another() {
    let mut instructor = Instructor::new();
    let taken_back = instructor.orders(&[BoardAction::Mark(1), BoardAction::Offer]);
    assert_eq!(taken_back, [InstructorRequest::Offer(None)]);
    let other = InstructorRequest::Offer(Some(instructor.stage(2)));
    let offered = instructor.orders(&[BoardAction::Mark(1), BoardAction::Offer]);
    assert_eq!(offered, [other]);
}

#[test]
fn a_typed_race_begins_and_an_unknown_one_is_refused_with_the_reason() {
    let mut instructor = Instructor::new();
    let with_mistake = [
        BoardAction::Race,
        BoardAction::Type('7'),
        BoardAction::Type('x'),
        BoardAction::Erase,
        BoardAction::Type(' '),
        BoardAction::Type('2'),
        BoardAction::Take,
    ];
    let race = InstructorRequest::Race(Some("mystery 7-2".to_owned()));
    assert_eq!(instructor.orders(&with_mistake), [race]);
    let refused = instructor.act(&typed(BoardAction::Race, "9"));
    assert_eq!(refused.as_deref(), Some("no 9"));
    assert_eq!(instructor.room.orders, []);
}

#[test]
fn the_room_is_closed_with_one_key() {
    let orders = Instructor::new().orders(&[BoardAction::Close]);
    assert_eq!(orders, [InstructorRequest::Close(true)]);
}

#[test]
fn marks_stay_within_the_stages_and_the_participants() {
    let mut instructor = Instructor::new();
    let far = [
        BoardAction::Mark(-9),
        BoardAction::Mark(99),
        BoardAction::Choose(-5),
    ];
    assert_eq!(instructor.orders(&far), []);
    let last = instructor.room.course.stages.len() - 1;
    assert_eq!(instructor.view.marked, last);
}

#[test]
fn a_participant_is_removed_if_the_key_is_pressed_twice_in_a_row() {
    let mut instructor = Instructor::new();
    let once = [
        BoardAction::Choose(1),
        BoardAction::Remove,
        BoardAction::Choose(1),
    ];
    let question = instructor.act(&once).expect("a question");
    assert!(question.contains("keep them out"), "{question}");
    assert_eq!(instructor.room.orders, []);
    let twice = [
        BoardAction::Choose(-9),
        BoardAction::Remove,
        BoardAction::Remove,
        BoardAction::LetIn,
    ];
    let first = instructor.board().rows[0].id.clone();
    assert_eq!(
        instructor.orders(&twice),
        [
            InstructorRequest::Remove([first].into()),
            InstructorRequest::LetIn
        ]
    );
}

#[test]
fn several_participants_are_selected_by_a_part_of_their_names_and_removed() {
    let mut instructor = Instructor::new();
    instructor.act(&typed(BoardAction::SelectNamed, "An"));
    let twice = [BoardAction::Remove, BoardAction::Remove];
    let message = instructor.act(&twice).expect("a message");
    assert!(message.contains("kept out: 2 participants"), "{message}");
    let both = instructor.ids(&["Ana", "Ana (2)"]);
    assert_eq!(instructor.room.orders, [InstructorRequest::Remove(both)]);
}

#[test]
fn several_participants_are_selected_one_by_one_and_removed() {
    let mut instructor = Instructor::new();
    let one_by_one = [
        BoardAction::Choose(-9),
        BoardAction::Select,
        BoardAction::Select,
        BoardAction::Remove,
        BoardAction::Remove,
    ];
    let board = instructor.board();
    let first_two = board.rows[..2].iter().map(|row| row.id.clone()).collect();
    assert_eq!(
        instructor.orders(&one_by_one),
        [InstructorRequest::Remove(first_two)]
    );
}

#[test]
fn the_key_of_the_board_leads_back_from_the_other_screens() {
    let mut instructor = Instructor::new();
    for screen in [BoardScreen::Join, BoardScreen::Own] {
        instructor.act(&[screen, BoardScreen::Board].map(BoardAction::Show));
        assert_eq!(instructor.view.screen, BoardScreen::Board);
    }
}

#[test]
fn the_board_asks_before_the_class_ends() {
    let mut instructor = Instructor::new();
    instructor.view.own_addresses = vec!["your page: http://10.0.0.7:7878/secretkey".to_owned()];
    let question = instructor.act(&[BoardAction::Quit]).expect("a question");
    assert!(question.contains("end the class for 4 here"), "{question}");
    assert_eq!(instructor.view.unconfirmed, Some(Confirmation::Quit));
    instructor.act(&[BoardAction::Mark(1)]);
    assert_eq!(instructor.view.unconfirmed, None, "another key cancels");
}

#[test]
fn the_screen_that_says_how_to_join_never_shows_the_instructors_own_address() {
    let (room, course) = room();
    let board = Board::from_room(&room, &course, 0);
    let mut view = BoardView {
        places: ["10.0.0.7", "192.168.1.5", "lectern"]
            .map(|host| format!("http://{host}:7878/abcd2345"))
            .to_vec(),
        own_addresses: vec!["your page: http://10.0.0.7:7878/secretkey".to_owned()],
        ..BoardView::default()
    };
    for size in SIZES {
        for shown in [BoardScreen::Board, BoardScreen::Join] {
            view.screen = shown;
            let text = screen(&board, &mut view, size, Markers::Braille);
            assert!(!text.contains("secretkey"), "{text}");
        }
        let text = screen(&board, &mut view, size, Markers::Braille);
        // A camera finds a code by the squares in its corners; large modules make larger squares.
        let squares = text.contains("█▀▀▀▀▀█") || text.contains("██████████████");
        assert!(squares, "a QR code at {size:?}:\n{text}");
        for host in ["192.168.1.5", "lectern"] {
            let is_right = text.contains(host) || size.1 < 24;
            assert!(is_right, "{host} at {size:?}:\n{text}");
        }
    }
    view.screen = BoardScreen::Own;
    let text = screen(&board, &mut view, (80, 24), Markers::Braille);
    assert!(
        text.contains("secretkey") && !text.contains("abcd2345"),
        "{text}"
    );
}

#[test]
fn the_board_warns_of_a_crowd_from_one_address_and_names_the_keys_that_help() {
    let (room, course) = room();
    let mut board = Board::from_room(&room, &course, 700_000);
    for (address, is_tunnel) in [("127.0.0.1", true), ("192.168.7.2", false)] {
        board.crowd = Some(Crowd {
            address: address.to_owned(),
            people: 60,
        });
        let text = first_screen(&board, (200, 50), Markers::Braille);
        let warning = format!("60 from one address ({address}");
        assert!(text.contains(&warning), "{text}");
        let names_tunnel = text.contains("a tunnel on this machine");
        assert_eq!(names_tunnel, is_tunnel, "{text}");
        for key in ["f: remove them all", "l: let nobody else in", "z: dismiss"] {
            assert!(text.contains(key), "{key}: {text}");
        }
    }
}
