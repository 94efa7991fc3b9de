//! What the instructor does on the board: what is chosen, asked and typed there, and what follows for the room.

use std::collections::BTreeSet;

use crate::class::board::{Board, ParticipantRow, offer_of};
use crate::class::record::InstructorRequest;
use crate::tui::keys::board::BoardAction;

/// The state of the board's screen.
#[derive(Clone, Debug, Default)]
pub struct BoardView {
    /// Where learners join: `http://HOST:PORT/CODE` for each address of this machine, or the room's folder.
    pub places: Vec<String>,
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
    /// The instructor's own addresses.
    Own,
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
}

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

    /// Whether the room ends with this program.
    pub(super) fn serves(&self) -> bool {
        !self.own.is_empty()
    }
}

/// The room behind the board.
pub trait RoomControl {
    fn board(&mut self) -> Board;
    /// The course's id of the stage at a place.
    fn stage(&self, at: usize) -> Option<String>;
    /// The task that a line names, such as `7 2` or `k04`, or what to write instead.
    fn race(&self, named: &str) -> Result<String, String>;
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
        BoardAction::Mark(by) => {
            let last = board.stages.len().saturating_sub(1);
            view.marked = view.marked.saturating_add_signed(by as isize).min(last);
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
            let said = format!("Removed and kept out: {who}; u lets everybody in again");
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
        BoardAction::Close => InstructorRequest::Close(!board.closed),
        BoardAction::Type(letter) => {
            let (_, name) = view.typing.as_mut()?;
            if name.len() < 32 && !crate::sanitize::harmful(letter) {
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
                Ok(task) => InstructorRequest::Race(Some(task)),
                Err(why) => return Some(why),
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
