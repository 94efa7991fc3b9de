//! perflings is a terminal workshop on training performance. It uses the crates `protocol`, `gputrace`,
//! `wgsl_lockstep`, and, in the child process, `engine` and `tiny_llama`.
//!
//! | module | what it is |
//! |---|---|
//! | [`cli`] | the command line: parses arguments, calls the command, prints the result |
//! | [`shell`] | the running workshop: its engines, the learner's files, the editor |
//! | [`app`] | the state of the screen, and how it changes |
//! | [`tui`], [`panel`] | drawing, keys, themes, the terminal; names of panels |
//! | [`course`] | stages, lessons, exercises, checks and the learner's save file, as data |
//! | [`judge`] | turns measured facts into outcomes and lines of text |
//! | [`measure`] | runs and comparisons in an engine, for the command line and the screen |
//! | [`class`] | a class: learners share with their instructor, over a folder or the network |
//! | [`watch`] | trainings of other programs, followed while they run |
//! | [`record`], [`run_trace`], [`pages`] | recordings, and the traces, reports and tables made from them |
//! | [`lanes`] | the recording of a learner's kernel on the host |
//! | [`sanitize`], [`table`] | text made safe to show; columns of text |
//! | [`scale`] | places of values on a linear or logarithmic scale |
//! | [`settings`] | defaults for command-line flags, from the user's config file |
//! | [`exit`], [`out`] | exit codes; printed lines |

#![cfg_attr(
    not(test),
    warn(
        clippy::disallowed_methods,
        clippy::print_stdout,
        clippy::print_stderr,
        clippy::unwrap_used
    )
)]

pub mod app;
pub mod class;
pub mod cli;
pub mod course;
pub mod exit;
pub mod judge;
pub mod lanes;
pub mod measure;
pub mod out;
pub mod pages;
pub mod panel;
pub mod record;
pub mod run_trace;
pub mod sanitize;
pub mod scale;
pub mod settings;
pub mod shell;
pub mod table;
pub mod tui;
pub mod watch;

use protocol::files;
