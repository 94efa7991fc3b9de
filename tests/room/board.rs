//! The instructor's board on the terminal, at every size and in ASCII, and its keys.

use perflings::app::{Markers, ThemeName};
use perflings::course::Course;
use perflings::room::board::Board;
use perflings::room::record::{ClassState, InstructorRequest, SharedWork};
use perflings::room::state::RoomState;
use perflings::tui::board::{BoardView, RoomControl, act, draw};
use perflings::tui::keys::board::BoardAction;
use perflings::tui::theme::{Terminal, Theme};
use ratatui::backend::TestBackend;

use super::participant;

/// A class of four with a vote, a race and an offer, and its course.
fn hall() -> (RoomState, Course) {
    let course = Course::builtin("en");
    let mut hall = RoomState::new(ClassState::new());
    for (digit, name) in [
        ('a', "Ana"),
        ('b', "Ana"),
        ('c', "佐藤"),
        ('d', "\u{1b}[2JEve"),
    ] {
        let mut it = participant(digit, name);
        it.here.clone_from(&course.stages[2].id);
        (it.here_s, it.raised) = (700, digit == 'c');
        let shared = SharedWork {
            vote: Some(1),
            range: Some([1.0, 2.0]),
            ..SharedWork::default()
        };
        it.stages.insert(course.stages[0].id.clone(), shared);
        it.races.insert("mystery 7-1".to_owned(), [1.25, 1.2, 1.3]);
        hall.hear(it, 0).expect("heard");
    }
    for order in [
        InstructorRequest::OpenVote(course.stages[0].id.clone()),
        InstructorRequest::CloseVote,
        InstructorRequest::Offer(Some(course.stages[1].id.clone())),
    ] {
        hall.apply(&order);
    }
    (hall, course)
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
    let line = |row: &[ratatui::buffer::Cell]| row.iter().map(|it| it.symbol()).collect::<String>();
    cells.map(|row| line(row) + "\n").collect()
}

#[test]
fn the_board_at_every_size() {
    let (hall, course) = hall();
    let board = Board::of(&hall, &course, 0);
    for size in [(60, 16), (80, 24), (120, 36), (200, 50)] {
        let text = screen(&board, &mut BoardView::default(), size, Markers::Braille);
        for part in [
            "4 here",
            "1 raised a hand",
            "stage 1: the votes, 4 of 4",
            "Ana (2)",
            "11 min",
            "raised",
            "q quit",
        ] {
            let kept = part != "Ana (2)" || size.1 > 16;
            assert!(!kept || text.contains(part), "{part} at {size:?}:\n{text}");
        }
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
    fn stage(&self, at: usize) -> Option<String> {
        self.1.stages.get(at).map(|stage| stage.id.clone())
    }
    fn race(&self, named: &str) -> Result<String, String> {
        if named == "7 2" {
            Ok("mystery 7-2".to_owned())
        } else {
            Err(format!("no {named}"))
        }
    }
    fn order(&mut self, order: InstructorRequest) -> Result<(), String> {
        self.0.push(order);
        Ok(())
    }
}

#[test]
fn keys_become_orders() {
    let (mut hall, course) = hall();
    let id = course.stages[1].id.clone();
    let mut host = Noted(Vec::new(), course.clone());
    let mut view = BoardView::default();
    let mut ask = |asked: &[BoardAction], hall: &RoomState, view: &mut BoardView| {
        let board = Board::of(hall, &course, 0);
        let said = asked
            .iter()
            .filter_map(|one| act(*one, &mut host, &board, view))
            .last();
        (std::mem::take(&mut host.0), said)
    };
    assert_eq!(
        ask(&[BoardAction::Mark(1), BoardAction::Vote], &hall, &mut view).0,
        [InstructorRequest::OpenVote(id.clone())]
    );
    hall.apply(&InstructorRequest::OpenVote(id));
    assert_eq!(
        ask(&[BoardAction::Vote], &hall, &mut view).0,
        [InstructorRequest::CloseVote]
    );
    assert_eq!(
        ask(&[BoardAction::Offer], &hall, &mut view).0,
        [InstructorRequest::Offer(None)]
    );
    let other = InstructorRequest::Offer(Some(course.stages[2].id.clone()));
    let asked = [
        BoardAction::Mark(1),
        BoardAction::Offer,
        BoardAction::Mark(-1),
    ];
    assert_eq!(ask(&asked, &hall, &mut view).0, [other]);
    assert_eq!(
        ask(&[BoardAction::Close], &hall, &mut view).0,
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
        ask(&named, &hall, &mut view).0,
        [InstructorRequest::Race(Some("mystery 7-2".to_owned()))]
    );
    let wrong = [BoardAction::Race, BoardAction::Type('9'), BoardAction::Take];
    assert_eq!(
        ask(&wrong, &hall, &mut view),
        (Vec::new(), Some("no 9".to_owned()))
    );
    assert_eq!(
        ask(
            &[
                BoardAction::Mark(-9),
                BoardAction::Mark(99),
                BoardAction::Choose(-5)
            ],
            &hall,
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
    let (orders, said) = ask(&once, &hall, &mut view);
    assert!(orders.is_empty() && said.is_some_and(|it| it.contains("keeps them out")));
    let board = Board::of(&hall, &course, 0);
    let twice = [
        BoardAction::Choose(-9),
        BoardAction::Remove,
        BoardAction::Remove,
        BoardAction::LetIn,
    ];
    assert_eq!(
        ask(&twice, &hall, &mut view).0,
        [
            InstructorRequest::Remove(board.rows[0].id.clone()),
            InstructorRequest::LetIn
        ]
    );
}
