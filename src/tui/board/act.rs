//! The instructor's actions on the board. Some change only the screen, such as a mark or a line that is typed; others give the room an
//! order.

use std::collections::BTreeSet;
use std::net::IpAddr;

use crate::class::board::{Board, Crowd, ParticipantRow, stage_in_words};
use crate::class::record::{InstructorRequest, Question};
use crate::tui::keys::board::{BoardAction, key_of};

/// The state of the board's screen.
#[derive(Clone, Debug, Default)]
pub struct BoardView {
    /// The places where learners join: `http://HOST:PORT/CODE` for each address of this machine, or the room's folder.
    pub places: Vec<String>,
    /// The name of the network interface of each place, such as `eth0`; empty where it is unknown.
    pub interfaces: Vec<String>,
    /// The index of the place that is shown large.
    pub place: usize,
    /// The addresses, as `HOST:PORT`, under which a phone has reached the room.
    pub reached: BTreeSet<String>,
    /// Seconds since the room was opened here.
    pub open_s: u64,
    /// The part of the wall that the instructor chose; `None` to follow the class.
    pub wall: Option<WallPart>,
    /// The warnings that were dismissed.
    pub dismissed: BTreeSet<String>,
    /// The questions that the instructor prepared in a file.
    pub prepared: Vec<Question>,
    /// The index of the prepared question that fills the line when a question is typed.
    pub offered: usize,
    /// The instructor's own addresses, with the key. They are shown alone, never beside what a class may see.
    pub own_addresses: Vec<String>,
    pub screen: BoardScreen,
    /// The index of the marked stage.
    pub marked: usize,
    /// The id of the chosen participant; `None` until a key chooses one.
    pub chosen: Option<String>,
    /// The ids of the participants who are selected, to be removed together.
    pub selected: BTreeSet<String>,
    /// The order that is given if its key is pressed again now.
    pub unconfirmed: Option<Confirmation>,
    /// The purpose of the line that is being typed, and the line.
    pub typing: Option<(Typing, String)>,
    /// The last message.
    pub notice: Option<String>,
}

/// A screen of the board's program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BoardScreen {
    #[default]
    Board,
    /// The screen that says how to join.
    Join,
    /// The screen for the class. It shows only what the class may see.
    Wall,
    /// The instructor's own addresses.
    Own,
}

/// A part of the class's work. One of them fills the wall.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WallPart {
    Join,
    Vote,
    Hands,
    Race,
}

impl WallPart {
    const ALL: [Self; 4] = [Self::Join, Self::Vote, Self::Hands, Self::Race];

    /// Returns the part that shows what the class does now. An open vote comes first, then a race, raised hands and a closed vote; if there
    /// is none of these, the wall shows how to join.
    pub(super) fn now(board: &Board) -> Self {
        let vote = board.vote.as_ref();
        if vote.is_some_and(|vote| vote.open) {
            Self::Vote
        } else if board.race.is_some() {
            Self::Race
        } else if board.raised > 0 {
            Self::Hands
        } else if vote.is_some() {
            Self::Vote
        } else {
            Self::Join
        }
    }
}

/// An order that is confirmed by pressing its key again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confirmation {
    Remove,
    Quit,
}

/// The purpose of a line that is typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Typing {
    /// The line names a race.
    Race,
    /// The line has letters of the names to select.
    Names,
    /// The line is a free question with its choices.
    Question,
}

/// The longest line that is typed, in bytes.
const MAX_LINE: usize = 400;

impl BoardView {
    /// Returns the index of the chosen participant; `None` if nobody is chosen.
    pub(super) fn chosen(&self, board: &Board) -> Option<usize> {
        let chosen = self.chosen.as_ref()?;
        board.rows.iter().position(|row| row.id == *chosen)
    }

    /// Returns the participants that would be removed: those who are selected, or else the chosen one.
    fn to_remove<'a>(&self, board: &'a Board) -> Vec<&'a ParticipantRow> {
        let is_meant = |row: &&ParticipantRow| {
            if self.selected.is_empty() {
                self.chosen.as_ref() == Some(&row.id)
            } else {
                self.selected.contains(&row.id)
            }
        };
        board.rows.iter().filter(is_meant).collect()
    }

    /// Returns true if the room ends with this program.
    pub(super) fn serves(&self) -> bool {
        !self.own_addresses.is_empty()
    }

    /// Turns the wall to another part, `by` places further on.
    fn turn_wall(&mut self, by: i32, board: &Board) {
        let shown = self.wall.unwrap_or(WallPart::now(board));
        let index = WallPart::ALL.iter().position(|part| *part == shown);
        let next = turned(index.unwrap_or(0), by, WallPart::ALL.len());
        self.wall = WallPart::ALL.get(next).copied();
    }

    /// Marks the stage `by` places further on.
    fn mark(&mut self, by: i32, board: &Board) {
        let last = board.stages.len().saturating_sub(1);
        self.marked = self.marked.saturating_add_signed(by as isize).min(last);
    }

    /// Chooses the participant `by` rows further down, or the first participant if nobody is chosen yet.
    fn choose(&mut self, by: i32, board: &Board) {
        let index = match self.chosen(board) {
            Some(index) => index.saturating_add_signed(by as isize),
            None => 0,
        };
        let last = board.rows.len().saturating_sub(1);
        self.chosen = board.rows.get(index.min(last)).map(|row| row.id.clone());
    }

    /// Adds the chosen participant to the selection or removes them from it, and chooses the next one.
    fn select_chosen(&mut self, board: &Board) {
        if let Some(row) = self.chosen(board).and_then(|index| board.rows.get(index))
            && !self.selected.remove(&row.id)
        {
            self.selected.insert(row.id.clone());
        }
        self.choose(1, board);
    }

    /// Selects everybody whose name contains these letters, or nobody if there are no letters. Returns a message about the selection.
    fn select_named(&mut self, letters: &str, board: &Board) -> String {
        let part = letters.trim().to_lowercase();
        self.selected.clear();
        for row in &board.rows {
            if !part.is_empty() && row.name.to_lowercase().contains(&part) {
                self.selected.insert(row.id.clone());
            }
        }
        let remove = key_of(BoardAction::Remove);
        let again = key_of(BoardAction::SelectNamed);
        match self.selected.len() {
            0 => "Selected nobody".to_owned(),
            n => format!("Selected {n} · {remove}: remove them · {again} and enter: select nobody"),
        }
    }

    /// Writes the prepared question `by` places further on into the line.
    fn offer_question(&mut self, by: i32) {
        if let Some((Typing::Question, line)) = &mut self.typing {
            self.offered = turned(self.offered, by, self.prepared.len());
            if let Some(question) = self.prepared.get(self.offered) {
                *line = question.line();
            }
        }
    }

    /// Begins a line to type. A question begins with the prepared question that is offered.
    fn begin_typing(&mut self, purpose: Typing) {
        let prepared = match purpose {
            Typing::Question => self.prepared.get(self.offered),
            Typing::Race | Typing::Names => None,
        };
        let line = prepared.map_or_else(String::new, Question::line);
        self.typing = Some((purpose, line));
    }

    /// Adds a letter to the line.
    fn type_letter(&mut self, letter: char) {
        if let Some((_, line)) = &mut self.typing
            && line.len() < MAX_LINE
            && !crate::sanitize::harmful(letter)
        {
            line.push(letter);
        }
    }
}

/// Returns the index `by` places further on in a list whose end continues at its beginning.
fn turned(index: usize, by: i32, length: usize) -> usize {
    (index as i32 + by).rem_euclid(length.max(1) as i32) as usize
}

/// The room behind the board.
pub trait RoomControl {
    /// Returns the present board.
    fn board(&mut self) -> Board;
    /// Returns the race that a line names, such as `7 2`, `k04` or `7 2 15 min`. The error says what to write instead.
    fn race(&self, named: &str) -> Result<InstructorRequest, String>;
    /// Returns the addresses, as `HOST:PORT`, under which a phone has reached the room.
    fn reached(&self) -> BTreeSet<String> {
        BTreeSet::new()
    }
    /// Returns the id of the stage with this number, and the reason for its right choice.
    fn answer(&self, stage: u32) -> Option<(String, String)>;
    /// Gives an order. The error says why it is not possible.
    fn order(&mut self, order: InstructorRequest) -> Result<(), String>;
}

/// Carries out an action. Returns a message for the board, if there is one.
pub fn act(
    action: BoardAction,
    room: &mut dyn RoomControl,
    board: &Board,
    view: &mut BoardView,
) -> Option<String> {
    let confirmed = view.unconfirmed.take();
    match action {
        BoardAction::Mark(by) if view.screen == BoardScreen::Wall => view.turn_wall(by, board),
        BoardAction::Mark(by) => view.mark(by, board),
        BoardAction::Choose(by) if view.typing.is_some() => view.offer_question(by),
        BoardAction::Choose(by) => view.choose(by, board),
        BoardAction::Select => view.select_chosen(board),
        BoardAction::SelectNamed => view.begin_typing(Typing::Names),
        BoardAction::Ask => view.begin_typing(Typing::Question),
        BoardAction::Race if board.race.is_none() => view.begin_typing(Typing::Race),
        BoardAction::Type(letter) => view.type_letter(letter),
        BoardAction::Erase => {
            view.typing.as_mut()?.1.pop();
        }
        BoardAction::Drop => view.typing = None,
        BoardAction::Show(screen) => {
            view.wall = None;
            view.screen = if view.screen == screen {
                BoardScreen::Board
            } else {
                screen
            };
        }
        BoardAction::NextPlace => view.place = turned(view.place, 1, view.places.len()),
        BoardAction::Dismiss => {
            view.dismissed.extend(warnings(board));
            view.notice = None;
        }
        BoardAction::Quit => {
            view.unconfirmed = Some(Confirmation::Quit);
            return Some(question_before_quitting(board, view));
        }
        BoardAction::Remove => {
            return remove(confirmed == Some(Confirmation::Remove), room, board, view);
        }
        BoardAction::Take => return take_line(room, board, view),
        BoardAction::Answer => return show_answer(room, board),
        BoardAction::Undo => {
            return give(InstructorRequest::Undo, "Took the last order back", room);
        }
        BoardAction::Close => return close_or_open(room, board),
        BoardAction::RemoveCrowd => return remove_crowd(room, board),
        BoardAction::Vote => return room.order(next_vote(board, view)?).err(),
        BoardAction::Offer => return room.order(next_offer(board, view)?).err(),
        BoardAction::Race => return room.order(InstructorRequest::Race(None)).err(),
        BoardAction::Lock => return room.order(InstructorRequest::Lock(!board.locked)).err(),
        BoardAction::Names => {
            let required = !board.names_required;
            return room.order(InstructorRequest::RequireNames(required)).err();
        }
        BoardAction::LetIn => return room.order(InstructorRequest::LetIn).err(),
    }
    None
}

/// Returns the order that closes the open vote, or else opens a vote on the marked stage.
fn next_vote(board: &Board, view: &BoardView) -> Option<InstructorRequest> {
    if board.vote.as_ref().is_some_and(|vote| vote.open) {
        return Some(InstructorRequest::CloseVote);
    }
    let marked = board.stages.get(view.marked)?;
    Some(InstructorRequest::OpenVote(marked.id.clone()))
}

/// Returns the order that offers the marked stage to everybody, or takes this offer back.
fn next_offer(board: &Board, view: &BoardView) -> Option<InstructorRequest> {
    let marked = board.stages.get(view.marked)?;
    let is_offered = board.offer == Some(stage_in_words(marked.number, &marked.title));
    let offered = (!is_offered).then(|| marked.id.clone());
    Some(InstructorRequest::Offer(offered))
}

/// Shows the right choice of the vote that is closed. Returns a message if this is not possible.
fn show_answer(room: &mut dyn RoomControl, board: &Board) -> Option<String> {
    let Some(vote) = board.vote.as_ref().filter(|vote| !vote.open) else {
        return Some("Close the vote; then its answer can be shown".to_owned());
    };
    let (stage, reason) = room.answer(vote.stage)?;
    let answer = InstructorRequest::ShowAnswer { stage, reason };
    room.order(answer).err()
}

/// Closes the room, or opens a closed room again. Returns a message.
fn close_or_open(room: &mut dyn RoomControl, board: &Board) -> Option<String> {
    let order = InstructorRequest::Close(!board.closed);
    if board.closed {
        return give(order, "Opened the room again", room);
    }
    let undo = undo_in_words();
    let open = key_of(BoardAction::Close);
    let message = format!("Closed the room and its vote · {undo} · {open}: open it again");
    give(order, &message, room)
}

/// Removes everybody who joined from the address of the warning. Returns a message.
fn remove_crowd(room: &mut dyn RoomControl, board: &Board) -> Option<String> {
    let Some(Crowd { address, people }) = &board.crowd else {
        let why = "The board warns of no address now, so there is nobody to remove";
        return Some(why.to_owned());
    };
    let message = format!("Removed {people} from {address} · {}", undo_in_words());
    let order = InstructorRequest::RemoveFrom(address.clone());
    give(order, &message, room)
}

/// Returns the key that takes back the last order, in words.
fn undo_in_words() -> String {
    format!("{}: undo, for a minute", key_of(BoardAction::Undo))
}

/// Gives an order. Returns the reason why it is not possible, or else `message`.
fn give(order: InstructorRequest, message: &str, room: &mut dyn RoomControl) -> Option<String> {
    let refusal = room.order(order).err();
    refusal.or_else(|| Some(message.to_owned()))
}

/// Removes participants once the key was pressed twice. Returns a message.
fn remove(
    is_confirmed: bool,
    room: &mut dyn RoomControl,
    board: &Board,
    view: &mut BoardView,
) -> Option<String> {
    let rows = view.to_remove(board);
    let who = match rows.as_slice() {
        [] => {
            let how =
                "Choose a participant with the up and down arrows, or select some with space or /";
            return Some(how.to_owned());
        }
        [row] => row.name.clone(),
        rows => format!("{} participants", rows.len()),
    };
    let key = key_of(BoardAction::Remove);
    if !is_confirmed {
        view.unconfirmed = Some(Confirmation::Remove);
        return Some(format!(
            "{key} again: remove {who} and keep them out · any other key: cancel"
        ));
    }
    let ids = rows.iter().map(|row| row.id.clone()).collect();
    let undo = undo_in_words();
    let let_in = key_of(BoardAction::LetIn);
    let message =
        format!("Removed and kept out: {who} · {undo} · {let_in}: let everybody in again");
    view.selected.clear();
    give(InstructorRequest::Remove(ids), &message, room)
}

/// Carries out the order of the line that was typed. Returns a message, if there is one.
fn take_line(room: &mut dyn RoomControl, board: &Board, view: &mut BoardView) -> Option<String> {
    let (purpose, line) = view.typing.take()?;
    match purpose {
        Typing::Names => Some(view.select_named(&line, board)),
        Typing::Race => match room.race(&line) {
            Ok(race) => room.order(race).err(),
            Err(why) => Some(why),
        },
        Typing::Question => match Question::read(&line) {
            Ok(question) => {
                view.offered = turned(view.offered, 1, view.prepared.len());
                room.order(InstructorRequest::Ask(question)).err()
            }
            Err(why) => {
                view.typing = Some((Typing::Question, line));
                Some(why)
            }
        },
    }
}

fn question_before_quitting(board: &Board, view: &BoardView) -> String {
    let key = key_of(BoardAction::Quit);
    if view.serves() {
        format!(
            "{key} again: end the class for {} here (`--resume` opens it again) · \
             any other key: cancel",
            board.here
        )
    } else {
        format!(
            "{key} again: end this board; the room stays open in its folder · any other key: cancel"
        )
    }
}

/// Returns the warnings of the board, each in one sentence.
pub(super) fn warnings(board: &Board) -> Vec<String> {
    let mut warnings = Vec::new();
    if let Some(Crowd { address, people }) = &board.crowd {
        let is_tunnel = address.parse().is_ok_and(|ip: IpAddr| ip.is_loopback());
        let tunnel = if is_tunnel {
            ", a tunnel on this machine"
        } else {
            ""
        };
        warnings.push(format!(
            "{people} from one address ({address}{tunnel}) · {}: remove them all · \
             {}: let nobody else in · {}: dismiss this",
            key_of(BoardAction::RemoveCrowd),
            key_of(BoardAction::Lock),
            key_of(BoardAction::Dismiss),
        ));
    }
    warnings.extend(board.faults.iter().cloned());
    warnings
}
