//! perflings: a terminal workshop on training performance.
//!
//! | module | what it is |
//! |---|---|
//! | [`protocol`], [`config`] | plain data: what crosses between processes, what a run is |
//! | [`data`], [`model`], [`ops`] | tokens, the network, its operations with their versions and gradients |
//! | [`profile`], [`lints`] | statistics, kernel rows, plausibility checks |
//! | [`engine`] | the child process that trains, and the parent's handle on it |
//! | [`course`] | stages, lessons, checks and progress, as data |
//! | [`app`] | what the screen knows, and how it changes |
//! | [`tui`] | drawing it, keys, themes, the terminal |
//! | [`cli`], [`record`], [`export`] | the command line, recordings and what they can be turned into |

pub mod app;
pub mod cli;
pub mod config;
pub mod course;
pub mod data;
pub mod engine;
pub mod export;
pub mod lints;
pub mod model;
pub mod ops;
pub mod panel;
pub mod profile;
pub mod protocol;
pub mod record;
pub mod tui;
pub mod units;
