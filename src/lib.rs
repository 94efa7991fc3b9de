//! perflings: a terminal workshop on training performance.
//!
//! `protocol` and `config` are plain data; `model`, `ops`, `data` compute; `engine` runs them in a child process and
//! emits events; `course` reads stages and lessons; `app` is what the screen knows; `tui` draws it.

pub mod config;
pub mod protocol;
pub mod ops;
pub mod data;
pub mod model;
pub mod lints;
pub mod profile;
pub mod engine;
