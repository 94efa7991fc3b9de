//! Trainings of other programs, followed while they run. A program appends lines to a file of a folder, one file for each of its
//! processes (docs/watch.md describes the lines; `python/perflings.py` writes them for PyTorch). This room follows the files and turns
//! their lines into the events that our own engine sends, so that screen, recording, report and lints are those of every other run.
//!
//! | module | what it does |
//! |---|---|
//! | `line` | reads one line of a process, and says what is wrong with it |
//! | `follow` | reads what was appended to a file; notices that the file was replaced or begun again |
//! | `rank` | one process: its events, its rate, and since when it is silent |
//! | `profile` | the profile of a step, from a trace file in the folder |
//! | `job` | the command that `perflings watch -- …` runs |
//! | `source` | all of them together, as a source of events |

pub mod check;
mod follow;
pub mod job;
mod line;
mod profile;
pub mod rank;
pub mod source;
