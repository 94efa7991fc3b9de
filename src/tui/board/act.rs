//! What the instructor does on the board: what is chosen, asked and typed there, and what follows for the room.

use std::collections::BTreeSet;

use crate::class::board::{Board, ParticipantRow, offer_of};
use crate::class::record::{InstructorRequest, Question};
use crate::tui::keys::board::BoardAction;

/// The state of the board's screen.
#[derive(Clone, Debug, Default)]
pub struct BoardView {
    /// Where learners join: `http://HOST:PORT/CODE` for each address of this machine, or the room's folder.
    pub places: Vec<String>,
    /// What the addresses belong to: an interface of this machine, by its name.
    pub interfaces: Vec<String>,
    /// The address that is shown large.
    pub place: usize,
    /// Addresses, as `HOST:PORT`, under which a phone has reached the room.
    pub reached: BTreeSet<String>,
    /// Seconds since the room was opened here.
    pub open_s: u64,
    /// What the wall shows; `None` for what the class does now.
    pub wall: Option<WallPart>,
    /// Warnings that were put away.
    pub dismissed: BTreeSet<String>,
    /// Questions that were prepared, and the one that is offered while a question is typed.
    pub prepared: Vec<Question>,
    pub offered: usize,
    /// The instructor's own addresses, with the key. They are shown alone, never beside what a class may see.
    pub own: Vec<String>,
    pub screen: BoardScreen,
    /// The marked stage, as its place in the course.
    pub marked: usize,
    /// The chosen participant: none until the first press of a key.
    pub chosen: Option<String>,
    /// Participants that are selected, to be removed together.
    pub selected: BTreeSet<String>,
    /// What pressing the same key again does.
    pub asked: Option<Confirmation>,
    /// What is being typed.
    pub typing: Option<(Typing, String)>,
    pub notice: Option<String>,
}

/// What fills the screen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BoardScreen {
    #[default]
    Board,
    /// How to join.
    Join,
    /// What the class is to see, and nothing else.
    Wall,
    /// The instructor's own addresses.
    Own,
}

/// What the wall shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WallPart {
    Join,
    Vote,
    Hands,
    Race,
}

impl WallPart {
    const ALL: [Self; 4] = [Self::Join, Self::Vote, Self::Hands, Self::Race];

    /// What the class does now: a vote before a race, and how to join where it does nothing.
    pub(super) fn of(board: &Board) -> Self {
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

/// What is confirmed by pressing its key again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confirmation {
    Remove,
    Quit,
}

/// What a word is typed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Typing {
    /// The name of a race.
    Race,
    /// Letters of the names to select.
    Names,
    /// A free question with its choices.
    Question,
}

/// Longest line that is typed, in bytes.
const LINE: usize = 400;

impl BoardView {
    /// The chosen participant's place.
    pub(super) fn chosen(&self, board: &Board) -> Option<usize> {
        let chosen = self.chosen.as_ref()?;
        board.rows.iter().position(|row| row.id == *chosen)
    }

    /// Who would be removed: those who are selected, or else the chosen one.
    fn removed<'a>(&self, board: &'a Board) -> Vec<&'a ParticipantRow> {
        let selected: Vec<_> = board
            .rows
            .iter()
            .filter(|row| self.selected.contains(&row.id))
            .collect();
        match self.chosen(board).and_then(|at| board.rows.get(at)) {
            Some(chosen) if selected.is_empty() => vec![chosen],
            _ => selected,
        }
    }

    /// Returns true if the room ends with this program.
    pub(super) fn serves(&self) -> bool {
        !self.own.is_empty()
    }
}

/// The room behind the board.
pub trait RoomControl {
    fn board(&mut self) -> Board;
    /// The course's id of the stage at a place.
    fn stage(&self, at: usize) -> Option<String>;
    /// The race that a line names, such as `7 2`, `k04` or `7 2 15 min`, or what to write instead.
    fn race(&self, named: &str) -> Result<InstructorRequest, String>;
    /// Addresses, as `HOST:PORT`, under which a phone has reached the room.
    fn reached(&self) -> BTreeSet<String> {
        BTreeSet::new()
    }
    /// Why the right choice of a stage is right, by its number, and the stage's id.
    fn answer(&self, stage: u32) -> Option<(String, String)>;
    fn order(&mut self, order: InstructorRequest) -> Result<(), String>;
}

/// Carries out an action; the result is a message for the board.
pub fn act(
    asked: BoardAction,
    room: &mut dyn RoomControl,
    board: &Board,
    view: &mut BoardView,
) -> Option<String> {
    let again = view.asked.take();
    let order = match asked {
        BoardAction::Mark(by) if view.screen == BoardScreen::Wall => {
            let now = view.wall.unwrap_or(WallPart::of(board));
            let at = WallPart::ALL
                .iter()
                .position(|part| *part == now)
                .unwrap_or(0) as i32;
            let next = (at + by).rem_euclid(WallPart::ALL.len() as i32) as usize;
            view.wall = WallPart::ALL.get(next).copied();
            return None;
        }
        BoardAction::Mark(by) => {
            let last = board.stages.len().saturating_sub(1);
            view.marked = view.marked.saturating_add_signed(by as isize).min(last);
            return None;
        }
        BoardAction::Choose(by) if view.typing.is_some() => {
            let (_, line) = view
                .typing
                .as_mut()
                .filter(|(what, _)| *what == Typing::Question)?;
            let all = view.prepared.len().max(1) as i32;
            view.offered = (view.offered as i32 + by).rem_euclid(all) as usize;
            *line = view.prepared.get(view.offered)?.line();
            return None;
        }
        BoardAction::Choose(by) => {
            let last = board.rows.len().saturating_sub(1);
            let at = view
                .chosen(board)
                .map_or(0, |at| at.saturating_add_signed(by as isize));
            view.chosen = board.rows.get(at.min(last)).map(|row| row.id.clone());
            return None;
        }
        BoardAction::Remove => {
            let rows = view.removed(board);
            let who = match rows.as_slice() {
                [] => {
                    let how = "Choose a participant with the up and down arrows, or select some with space or /";
                    return Some(how.to_owned());
                }
                [row] => row.name.clone(),
                rows => format!("{} participants", rows.len()),
            };
            if again != Some(Confirmation::Remove) {
                view.asked = Some(Confirmation::Remove);
                return Some(format!(
                    "Press the same key again to remove {who} and keep them out; any other key cancels"
                ));
            }
            let ids = rows.iter().map(|row| row.id.clone()).collect();
            let said = format!(
                "Removed and kept out: {who}; u takes that back for a minute, i lets everybody in again"
            );
            view.selected.clear();
            return Some(
                room.order(InstructorRequest::Remove(ids))
                    .err()
                    .unwrap_or(said),
            );
        }
        BoardAction::Select => {
            let row = view.chosen(board).and_then(|at| board.rows.get(at));
            if let Some(row) = row
                && !view.selected.remove(&row.id)
            {
                view.selected.insert(row.id.clone());
            }
            return act(BoardAction::Choose(1), room, board, view);
        }
        BoardAction::SelectNamed => {
            view.typing = Some((Typing::Names, String::new()));
            return None;
        }
        BoardAction::Show(screen) => {
            view.wall = None;
            view.screen = match view.screen == screen {
                true => BoardScreen::Board,
                false => screen,
            };
            return None;
        }
        BoardAction::Answer => {
            let Some(vote) = board.vote.as_ref().filter(|vote| !vote.open) else {
                return Some("The answer can be shown once a vote is closed".to_owned());
            };
            let (stage, reason) = room.answer(vote.stage)?;
            InstructorRequest::ShowAnswer { stage, reason }
        }
        BoardAction::LetIn => InstructorRequest::LetIn,
        BoardAction::Undo => {
            let undone = room.order(InstructorRequest::Undo);
            return Some(
                undone
                    .err()
                    .unwrap_or("The last order is taken back".to_owned()),
            );
        }
        BoardAction::Lock => InstructorRequest::Lock(!board.locked),
        BoardAction::Names => InstructorRequest::RequireNames(!board.names_required),
        BoardAction::RemoveCrowd => {
            let Some(crowd) = &board.crowd else {
                return Some(
                    "No address has so many participants that the board warns of it".to_owned(),
                );
            };
            let said = format!(
                "Removed {} from {}; u takes that back for a minute",
                crowd.people, crowd.address
            );
            let removed = room.order(InstructorRequest::RemoveFrom(crowd.address.clone()));
            return Some(removed.err().unwrap_or(said));
        }
        BoardAction::Dismiss => {
            view.dismissed.extend(warnings(board));
            view.notice = None;
            return None;
        }
        BoardAction::NextPlace => {
            view.place = (view.place + 1) % view.places.len().max(1);
            return None;
        }
        BoardAction::Ask => {
            let offered = view.prepared.get(view.offered);
            view.typing = Some((
                Typing::Question,
                offered.map_or_else(String::new, Question::line),
            ));
            return None;
        }
        BoardAction::Vote if board.vote.as_ref().is_some_and(|vote| vote.open) => {
            InstructorRequest::CloseVote
        }
        BoardAction::Vote => InstructorRequest::OpenVote(room.stage(view.marked)?),
        BoardAction::Offer => {
            let marked = board.stages.get(view.marked)?;
            let offered = board.offer == Some(offer_of(marked.number, &marked.title));
            let stage = room.stage(view.marked)?;
            InstructorRequest::Offer((!offered).then_some(stage))
        }
        BoardAction::Race if board.race.is_some() => InstructorRequest::Race(None),
        BoardAction::Race => {
            view.typing = Some((Typing::Race, String::new()));
            return None;
        }
        BoardAction::Close => {
            let closed = !board.closed;
            let said = match closed {
                true => {
                    "The room is closed, and its vote; u takes that back for a minute, x opens it again"
                }
                false => "The room is open again",
            };
            let done = room.order(InstructorRequest::Close(closed));
            return Some(done.err().unwrap_or(said.to_owned()));
        }
        BoardAction::Type(letter) => {
            let (_, name) = view.typing.as_mut()?;
            if name.len() < LINE && !crate::sanitize::harmful(letter) {
                name.push(letter);
            }
            return None;
        }
        BoardAction::Erase => {
            view.typing.as_mut()?.1.pop();
            return None;
        }
        BoardAction::Take => match view.typing.take()? {
            (Typing::Race, name) => match room.race(&name) {
                Ok(race) => race,
                Err(why) => return Some(why),
            },
            (Typing::Question, line) => match Question::read(&line) {
                Ok(question) => {
                    view.offered = (view.offered + 1) % view.prepared.len().max(1);
                    InstructorRequest::Ask(question)
                }
                Err(why) => {
                    view.typing = Some((Typing::Question, line));
                    return Some(why);
                }
            },
            (Typing::Names, part) => return Some(select(&part, board, view)),
        },
        BoardAction::Drop => {
            view.typing = None;
            return None;
        }
        BoardAction::Quit => {
            view.asked = Some(Confirmation::Quit);
            return Some(match view.serves() {
                true => format!(
                    "Press the same key again to end the class for {} here; any other key cancels. `--resume` opens it again",
                    board.here
                ),
                false => {
                    "Press the same key again to end this board; the room stays open in its folder"
                        .to_owned()
                }
            });
        }
    };
    room.order(order).err()
}

/// What the board warns of.
pub(super) fn warnings(board: &Board) -> Vec<String> {
    let crowd = board.crowd.iter().map(|crowd| {
        format!(
            "{} from one address ({}): f removes them all, l lets nobody else in, z puts this away",
            crowd.people, crowd.address
        )
    });
    crowd.chain(board.faults.iter().cloned()).collect()
}

/// Selects everybody whose name has these letters; nobody where there are none.
fn select(part: &str, board: &Board, view: &mut BoardView) -> String {
    let part = part.trim().to_lowercase();
    let named = board.rows.iter().filter(|row| {
        let name = row.name.to_lowercase();
        !part.is_empty() && name.contains(&part)
    });
    view.selected = named.map(|row| row.id.clone()).collect();
    match view.selected.len() {
        0 => "Nobody is selected".to_owned(),
        n => format!("{n} selected: d removes them, / and enter selects nobody"),
    }
}
