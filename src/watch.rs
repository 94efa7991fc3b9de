//! Trainings of other programs, followed while they run. Each process of a program appends lines to a file of its own in one folder. This room
//! follows the files and turns their lines into the events that our own engine sends, so that the screen, recordings, reports and lints work
//! as for every other run.
//!
//! ```text
//! rank-0.jsonl  {"event":"step","step":7,"loss":6.9,"ms":20.1}  ─▶  Event::Step
//! rank-1.jsonl  {"event":"alive","phase":"data"}                ─▶  Event::Ranks
//! ```
//!
//! `docs/watch.md` describes the lines, and `python/perflings.py` writes them for PyTorch.
//!
//! | module | what it does |
//! |---|---|
//! | `line` | reads one line of a process; its errors name the field and what to write instead |
//! | `follow` | reads the lines that were appended to a file, also after the file was replaced |
//! | `rank` | one process: its events, its rate, and the time since it fell silent |
//! | `profile` | the profile of a step, from a trace file in the folder |
//! | `job` | the command that `perflings watch -- …` runs |
//! | `check` | the faults of a file, for `perflings watch --check` |
//! | `source` | all trainings together, as a source of events |

pub mod check;
mod follow;
pub mod job;
mod line;
mod profile;
pub mod rank;
pub mod source;
