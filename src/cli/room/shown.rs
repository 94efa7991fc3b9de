//! The room behind the board on the screen. This program or another one has the room open.

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::Result;

use crate::class::board::Board;
use crate::class::handle::RoomHandle;
use crate::class::link::{InstructorLink, RoomNews};
use crate::class::member::Member;
use crate::class::page::page_of_board;
use crate::class::record::InstructorRequest;
use crate::course::context::CourseContext;
use crate::course::mystery::LEVELS;
use crate::course::placeholder::{FigureSources, fill_known};
use crate::files;
use crate::tui::board::RoomControl;

/// The origin of the board.
pub(super) enum Source {
    /// This program has the room open.
    Own(RoomHandle),
    /// Another program has the room open.
    Elsewhere {
        member: Member,
        /// The board that was received last.
        board: Box<Board>,
        /// The reason why the room cannot be reached now.
        lost: Option<String>,
    },
}

impl Source {
    /// Returns a source that receives the board of a room that another program has open.
    ///
    /// # Errors
    /// If no thread can be started.
    pub(super) fn elsewhere(link: Box<dyn InstructorLink>) -> Result<Self> {
        Ok(Self::Elsewhere {
            member: Member::teach(link)?,
            board: Box::default(),
            lost: None,
        })
    }

    /// Returns the present board. If the room cannot be reached, this is the last board, with a fault that says so.
    fn board(&mut self) -> Board {
        match self {
            Self::Own(handle) => RoomHandle::board(handle),
            Self::Elsewhere {
                member,
                board,
                lost,
            } => {
                while let Some(news) = member.next_news() {
                    match news {
                        RoomNews::Board(next) => {
                            *board = next;
                            *lost = None;
                        }
                        RoomNews::Lost(error) => *lost = Some(error.to_string()),
                        RoomNews::Class(_) => {}
                    }
                }
                let mut shown = Board::clone(board);
                shown.faults.extend(lost.clone());
                shown
            }
        }
    }

    /// Returns a number that grows with every change of the room; `None` if another program has the room open.
    pub(super) fn revision(&self) -> Option<u64> {
        match self {
            Self::Own(handle) => Some(handle.state().revision),
            Self::Elsewhere { .. } => None,
        }
    }
}

/// A room, with everything that the instructor's keys need.
pub(super) struct ShownRoom {
    pub(super) source: Source,
    pub(super) context: CourseContext,
    /// The file of the page that `--page` names.
    pub(super) page: Option<PathBuf>,
    /// The board that was written to `page` last.
    pub(super) drawn: Option<Board>,
}

impl ShownRoom {
    /// Returns the task of a race: `["7", "2"]` is the mystery of seed 7 and level 2, `["k04"]` a kernel exercise.
    fn task(&self, words: &[&str]) -> Result<String, String> {
        let seed = words.first().and_then(|word| word.parse::<u64>().ok());
        match (words, seed) {
            ([_], Some(seed)) => Ok(format!("mystery {seed}-1")),
            ([_, level], Some(seed)) => match level.parse() {
                Ok(level @ 1..=LEVELS) => Ok(format!("mystery {seed}-{level}")),
                _ => Err(format!("A mystery has a level from 1 to {LEVELS}")),
            },
            ([name], None) => match self.context.exercise(name) {
                Some(exercise) if exercise.kernels().is_some() => Ok(exercise.id.clone()),
                Some(_) => Err(format!(
                    "{name} has no ratio to race for; name a kernel exercise"
                )),
                None => Err(self.context.no_exercise(name)),
            },
            _ => Err(
                "Write a mystery's seed and level, or an exercise, such as 7 2, k04 or k04 15 min"
                    .to_owned(),
            ),
        }
    }
}

impl RoomControl for ShownRoom {
    fn board(&mut self) -> Board {
        let board = self.source.board();
        if let Some(path) = &self.page
            && self.drawn.as_ref() != Some(&board)
        {
            let page = page_of_board(&board.clone().for_everybody());
            // If this fails, the page is written again when the board changes next.
            let _ = files::write(path, page.as_bytes());
            self.drawn = Some(board.clone());
        }
        board
    }

    fn reached(&self) -> BTreeSet<String> {
        match &self.source {
            Source::Own(handle) => handle.reached(),
            Source::Elsewhere { .. } => BTreeSet::new(),
        }
    }

    fn race(&self, named: &str) -> Result<InstructorRequest, String> {
        let words: Vec<&str> = named.split_whitespace().collect();
        let [task @ .., minutes, "min"] = words.as_slice() else {
            let task = self.task(&words)?;
            return Ok(InstructorRequest::Race(Some(task)));
        };
        match minutes.parse() {
            Ok(minutes @ 1..=600) => {
                let task = self.task(task)?;
                Ok(InstructorRequest::RaceFor { task, minutes })
            }
            _ => Err("A race lasts 1 to 600 minutes, such as k04 15 min".to_owned()),
        }
    }

    fn answer(&self, stage: u32) -> Option<(String, String)> {
        let stage = self.context.course.stage(stage)?;
        let figures = FigureSources::none(&stage.broken);
        let reason = fill_known(&stage.prediction.explanation, &figures);
        Some((stage.id.clone(), reason))
    }

    fn order(&mut self, order: InstructorRequest) -> Result<(), String> {
        match &self.source {
            Source::Own(handle) => handle.order(&order),
            Source::Elsewhere { member, .. } => {
                member.order(order);
                Ok(())
            }
        }
    }
}
