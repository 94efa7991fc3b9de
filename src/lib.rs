//! perflings: a terminal workshop on training performance.
//!
//! | module | what it is |
//! |---|---|
//! | [`protocol`], [`config`] | plain data: what crosses between processes, what a run is |
//! | [`random`], [`units`] | the one random generator and hash; numbers as people read them |
//! | [`files`], [`clean`] | files read and written whole; text made safe to show |
//! | [`data`], [`model`], [`ops`] | tokens, the network, its operations with their versions and gradients |
//! | [`profile`], [`lints`] | statistics, kernel rows, plausibility checks |
//! | [`engine`] | the child process that trains, and the parent's handle on it |
//! | [`lockstep`] | kernels run on the host; kernels made from others, to try a check with |
//! | [`measure`] | runs and comparisons in an engine, for the command line and the screen |
//! | [`course`] | stages, lessons, checks and progress, as data |
//! | [`judge`] | turns measured facts into outcomes and the lines that say so |
//! | [`lanes`] | what was recorded of a learner's kernel on the host |
//! | [`gputrace`], [`run_trace`] | profiles from elsewhere: formats, figures, lints, a timeline, from one model; a run as such a profile |
//! | [`app`] | what the screen knows, and how it changes |
//! | [`room`] | a class: what learners share, the instructor's board, over a folder or the network |
//! | [`tui`] | drawing it, keys, themes, the terminal |
//! | [`workshop`] | the running workshop: the screen with its engines, the learner's files, the editor |
//! | [`cli`], [`record`], [`export`] | the command line, recordings and what they can be turned into |
//! | [`exit`], [`out`], [`driver_noise`] | exit codes; printed lines; lines of drivers that mean nothing |
//! | [`settings`] | what stands for flags that are not given |

pub mod app;
pub mod class;
pub mod cli;
pub mod course;
pub mod exit;
pub mod files;
pub mod judge;
pub mod lanes;
pub mod measure;
pub mod out;
pub mod pages;
pub mod panel;
pub mod record;
pub mod run_trace;
pub mod sanitize;
pub mod settings;
pub mod shell;
pub mod table;
pub mod tui;
