//! The instructor's board on the terminal, at every size and in ASCII, and its keys.

use std::collections::BTreeSet;

use perflings::app::{Markers, ThemeName};
use perflings::class::board::{Board, Crowd};
use perflings::class::record::{InstructorRequest, MysteryResult, RaceResult, SharedWork};
use perflings::class::state::RoomState;
use perflings::course::Course;
use perflings::tui::board::{
    BoardScreen, BoardView, Confirmation, RoomControl, WallPart, act, draw,
};
use perflings::tui::keys::board::BoardAction;
use perflings::tui::theme::{Terminal, Theme};
use ratatui::backend::TestBackend;

use super::participant;

/// A class of four with a vote, a race and an offer, and its course.
fn room() -> (RoomState, Course) {
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
        record.here.clone_from(&course.stages[2].id);
        (record.here_s, record.raised) = (700, digit == 'c');
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
        room.hear(record, 700_000).expect("heard");
    }
    obey(&mut room, &InstructorRequest::OpenVote(stage.clone()));
    let round = room.class.votes[&stage].number().expect("a round");
    for digit in ['a', 'b', 'c', 'd'] {
        let mut record = room.people[&digit.to_string().repeat(32)].record.clone();
        record.sequence = 2;
        record.here_s = 700;
        record.ballots.insert(round, 1);
        room.hear(record, 700_000).expect("heard");
    }
    for order in [
        InstructorRequest::CloseVote,
        InstructorRequest::Offer(Some(course.stages[1].id.clone())),
    ] {
        obey(&mut room, &order);
    }
    (room, course)
}

fn obey(room: &mut RoomState, order: &InstructorRequest) {
    let now_ms = room.last_ms();
    room.obey(order, &Course::builtin(), now_ms)
        .expect("obeyed");
}

fn screen(
    board: &Board,
    view: &mut BoardView,
    (columns, rows): (u16, u16),
    markers: Markers,
) -> String {
    let theme = Theme::new(ThemeName::Dark, markers, Terminal::default());
    let mut terminal = ratatui::Terminal::new(TestBackend::new(columns, rows)).expect("a terminal");
    terminal
        .draw(|frame| draw(frame, board, view, &theme))
        .expect("drawn");
    let buffer = terminal.backend().buffer();
    let cells = buffer.content.chunks(usize::from(columns));
    let line =
        |row: &[ratatui::buffer::Cell]| row.iter().map(|cell| cell.symbol()).collect::<String>();
    cells.map(|row| line(row) + "\n").collect()
}

#[test]
fn the_board_at_every_size() {
    let (room, course) = room();
    let board = Board::of(&room, &course, 700_000);
    for size in [(60, 16), (80, 24), (120, 36), (200, 50)] {
        let text = screen(&board, &mut BoardView::default(), size, Markers::Braille);
        for part in [
            "4 here",
            "1 raised a hand",
            "stage 1: the votes, 4 of 4",
            "Ana (2)",
            "11 min",
            "hand 1",
            "q quit",
        ] {
            let kept = part != "Ana (2)" || size.1 > 16;
            // A sentence may go on in the next line.
            let words: Vec<&str> = text.split_whitespace().collect();
            assert!(
                !kept || words.join(" ").contains(part),
                "{part} at {size:?}:\n{text}"
            );
        }
        // Bare pairs of numbers are named where there is room.
        let named =
            text.contains(" here, ") && size.0 >= 200 || text.contains(" here/passed 1: 0/");
        assert!(named || size.0 < 120, "{size:?}:\n{text}");
        let ascii = screen(&board, &mut BoardView::default(), size, Markers::Ascii);
        assert!(ascii.is_ascii(), "{ascii}");
    }
    for (columns, rows) in [(1, 1), (20, 3), (59, 8), (300, 2)] {
        screen(
            &board,
            &mut BoardView::default(),
            (columns, rows),
            Markers::Dots,
        );
    }
}

/// A room that only notes its orders.
struct Noted(Vec<InstructorRequest>, Course);

impl RoomControl for Noted {
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
    fn answer(&self, stage: u32) -> Option<(String, String)> {
        let stage = self.1.stages.iter().find(|one| one.number == stage)?;
        Some((stage.id.clone(), "why".to_owned()))
    }
    fn order(&mut self, order: InstructorRequest) -> Result<(), String> {
        self.0.push(order);
        Ok(())
    }
}

#[test]
fn keys_become_orders() {
    let (mut room, course) = room();
    let id = course.stages[1].id.clone();
    let mut host = Noted(Vec::new(), course.clone());
    let mut view = BoardView::default();
    let mut ask = |asked: &[BoardAction], room: &RoomState, view: &mut BoardView| {
        let board = Board::of(room, &course, 0);
        let said = asked
            .iter()
            .filter_map(|one| act(*one, &mut host, &board, view))
            .last();
        (std::mem::take(&mut host.0), said)
    };
    assert_eq!(
        ask(&[BoardAction::Mark(1), BoardAction::Vote], &room, &mut view).0,
        [InstructorRequest::OpenVote(id.clone())]
    );
    obey(&mut room, &InstructorRequest::OpenVote(id));
    assert_eq!(
        ask(&[BoardAction::Vote], &room, &mut view).0,
        [InstructorRequest::CloseVote]
    );
    assert_eq!(
        ask(&[BoardAction::Offer], &room, &mut view).0,
        [InstructorRequest::Offer(None)]
    );
    let other = InstructorRequest::Offer(Some(course.stages[2].id.clone()));
    let asked = [
        BoardAction::Mark(1),
        BoardAction::Offer,
        BoardAction::Mark(-1),
    ];
    assert_eq!(ask(&asked, &room, &mut view).0, [other]);
    assert_eq!(
        ask(&[BoardAction::Close], &room, &mut view).0,
        [InstructorRequest::Close(true)]
    );
    let named = [
        BoardAction::Race,
        BoardAction::Type('7'),
        BoardAction::Type('x'),
        BoardAction::Erase,
        BoardAction::Type(' '),
        BoardAction::Type('2'),
        BoardAction::Take,
    ];
    assert_eq!(
        ask(&named, &room, &mut view).0,
        [InstructorRequest::Race(Some("mystery 7-2".to_owned()))]
    );
    let wrong = [BoardAction::Race, BoardAction::Type('9'), BoardAction::Take];
    assert_eq!(
        ask(&wrong, &room, &mut view),
        (Vec::new(), Some("no 9".to_owned()))
    );
    assert_eq!(
        ask(
            &[
                BoardAction::Mark(-9),
                BoardAction::Mark(99),
                BoardAction::Choose(-5)
            ],
            &room,
            &mut view
        )
        .0,
        []
    );
    assert_eq!(view.marked, course.stages.len() - 1);
    // Somebody is removed when it was asked for twice, one after the other.
    let once = [
        BoardAction::Choose(1),
        BoardAction::Remove,
        BoardAction::Choose(1),
    ];
    let (orders, said) = ask(&once, &room, &mut view);
    assert!(orders.is_empty() && said.is_some_and(|said| said.contains("keep them out")));
    let board = Board::of(&room, &course, 0);
    let twice = [
        BoardAction::Choose(-9),
        BoardAction::Remove,
        BoardAction::Remove,
        BoardAction::LetIn,
    ];
    assert_eq!(
        ask(&twice, &room, &mut view).0,
        [
            InstructorRequest::Remove([board.rows[0].id.clone()].into()),
            InstructorRequest::LetIn
        ]
    );
    // Many at once: by a part of their names, or one by one.
    let named = [
        BoardAction::SelectNamed,
        BoardAction::Type('A'),
        BoardAction::Type('n'),
        BoardAction::Take,
        BoardAction::Remove,
        BoardAction::Remove,
    ];
    let ids = |names: &[&str]| -> BTreeSet<String> {
        let rows = board.rows.iter().filter(|row| names.contains(&&*row.name));
        rows.map(|row| row.id.clone()).collect()
    };
    let both = InstructorRequest::Remove(ids(&["Ana", "Ana (2)"]));
    let (orders, said) = ask(&named, &room, &mut view);
    assert_eq!(orders, [both]);
    assert!(said.is_some_and(|said| said.contains("kept out: 2 participants")));
    let one_by_one = [
        BoardAction::Choose(-9),
        BoardAction::Select,
        BoardAction::Select,
        BoardAction::Remove,
        BoardAction::Remove,
    ];
    let first_two = board.rows[..2].iter().map(|row| row.id.clone()).collect();
    assert_eq!(
        ask(&one_by_one, &room, &mut view).0,
        [InstructorRequest::Remove(first_two)]
    );
    for screen in [BoardScreen::Join, BoardScreen::Own] {
        let asked = [screen, BoardScreen::Board].map(BoardAction::Show);
        ask(&asked, &room, &mut view);
        assert!(view.screen == BoardScreen::Board);
    }
    // The answer is for a vote that is over.
    obey(&mut room, &InstructorRequest::CloseVote);
    let answer = InstructorRequest::ShowAnswer {
        stage: course.stages[1].id.clone(),
        reason: "why".to_owned(),
    };
    assert_eq!(ask(&[BoardAction::Answer], &room, &mut view).0, [answer]);
}

#[test]
fn the_board_asks_before_the_class_ends() {
    let (room, course) = room();
    let board = Board::of(&room, &course, 0);
    let mut host = Noted(Vec::new(), course);
    let mut view = BoardView {
        own: vec!["your page: http://10.0.0.7:7878/secretkey".to_owned()],
        ..BoardView::default()
    };
    let said = act(BoardAction::Quit, &mut host, &board, &mut view).expect("a question");
    assert!(said.contains("end the class for 4 here"), "{said}");
    assert_eq!(view.asked, Some(Confirmation::Quit));
    act(BoardAction::Mark(1), &mut host, &board, &mut view);
    assert_eq!(view.asked, None, "another key is no");
}

#[test]
fn how_to_join_is_shown_without_anything_of_the_instructors() {
    let (room, course) = room();
    let board = Board::of(&room, &course, 0);
    let mut view = BoardView {
        places: ["10.0.0.7", "192.168.1.5", "lectern"]
            .map(|host| format!("http://{host}:7878/abcd2345"))
            .to_vec(),
        own: vec!["your page: http://10.0.0.7:7878/secretkey".to_owned()],
        ..BoardView::default()
    };
    for size in [(60, 16), (80, 24), (120, 36), (200, 50)] {
        for of in [BoardScreen::Board, BoardScreen::Join] {
            view.screen = of;
            let text = screen(&board, &mut view, size, Markers::Braille);
            assert!(!text.contains("secretkey"), "{text}");
        }
        let text = screen(&board, &mut view, size, Markers::Braille);
        // One corner of the code, at each size.
        let squares = text.contains("█▀▀▀▀▀█") || text.contains("██████████████");
        assert!(squares, "a QR code at {size:?}:\n{text}");
        for host in ["192.168.1.5", "lectern"] {
            assert!(
                text.contains(host) || size.1 < 24,
                "{host} at {size:?}:\n{text}"
            );
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
fn the_wall_shows_how_to_join_with_whole_names_on_the_smallest_screen() {
    let (mut room, course) = room();
    for (digit, name) in ['5', '6', '7', '8', '9'].into_iter().zip(1..) {
        let mut record = participant(digit, &format!("Participant number {name} of us"));
        record.here_s = 0;
        room.hear(record, 700_000).expect("heard");
    }
    let board = Board::of(&room, &course, 700_000);
    let mut view = BoardView {
        places: vec!["http://10.0.0.7:7878/abcd2345".to_owned()],
        own: vec!["your page: http://10.0.0.7:7878/secretkey".to_owned()],
        screen: BoardScreen::Wall,
        wall: Some(WallPart::Join),
        ..BoardView::default()
    };
    for size in [(60, 16), (80, 24), (200, 50)] {
        let text = screen(&board, &mut view, size, Markers::Braille);
        assert!(text.contains("█▀▀▀▀▀█") || size.0 > 80, "{text}");
        // Who came last is shown, each name whole or not at all.
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
    let mut view = BoardView {
        screen: BoardScreen::Wall,
        ..BoardView::default()
    };
    obey(&mut room, &InstructorRequest::OpenVote(stage));
    let open = Board::of(&room, &course, 700_000);
    let text = screen(&open, &mut view, (120, 36), Markers::Braille);
    assert!(text.contains("of 4 here have voted once more"), "{text}");
    obey(&mut room, &InstructorRequest::CloseVote);
    // Nobody voted again; the first round is shown.
    let closed = Board::of(&room, &course, 700_000);
    view.wall = Some(WallPart::Vote);
    let text = screen(&closed, &mut view, (120, 36), Markers::Braille);
    assert!(text.contains("left: the first vote"), "{text}");
    let hands = screen(
        &closed,
        &mut wall_of(WallPart::Hands),
        (60, 16),
        Markers::Braille,
    );
    assert!(
        hands.contains("1 raised a hand") && hands.contains("1  佐"),
        "{hands}"
    );
    let race = screen(
        &closed,
        &mut wall_of(WallPart::Race),
        (60, 16),
        Markers::Braille,
    );
    assert!(race.contains("no race"), "{race}");
    obey(
        &mut room,
        &InstructorRequest::Race(Some("mystery 7-1".to_owned())),
    );
    let racing = Board::of(&room, &course, 700_000);
    let race = screen(
        &racing,
        &mut wall_of(WallPart::Race),
        (60, 16),
        Markers::Braille,
    );
    assert!(race.contains("80 points, 1 min, 2 tried"), "{race}");
}

/// The wall, turned to a part.
fn wall_of(part: WallPart) -> BoardView {
    BoardView {
        screen: BoardScreen::Wall,
        wall: Some(part),
        ..BoardView::default()
    }
}

#[test]
fn a_crowd_behind_a_tunnel_is_told_with_the_keys_that_help() {
    let (room, course) = room();
    let mut board = Board::of(&room, &course, 700_000);
    for (address, tunnel) in [("127.0.0.1", true), ("192.168.7.2", false)] {
        board.crowd = Some(Crowd {
            address: address.to_owned(),
            people: 60,
        });
        let text = screen(
            &board,
            &mut BoardView::default(),
            (200, 50),
            Markers::Braille,
        );
        assert!(
            text.contains(&format!("60 from one address ({address}")),
            "{text}"
        );
        assert_eq!(text.contains("a tunnel on this machine"), tunnel, "{text}");
        for key in ["f: remove them all", "l: let nobody else in", "z: dismiss"] {
            assert!(text.contains(key), "{key}: {text}");
        }
    }
}
