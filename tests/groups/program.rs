//! Tests of the program as a process: its commands, its terminal, its room.

#[path = "../../crates/tiny-llama/tests/support/adapter.rs"]
mod adapter;
#[path = "../bench.rs"]
mod bench;
#[path = "../card.rs"]
mod card;
#[path = "../cli.rs"]
mod cli;
#[path = "../client.rs"]
mod client;
#[path = "../engine.rs"]
mod engine;
#[path = "../faults.rs"]
mod faults;
#[path = "../journey.rs"]
mod journey;
#[path = "../support/learner.rs"]
mod learner;
#[path = "../peaks.rs"]
mod peaks;
#[path = "../pty/terminal.rs"]
mod pty;
#[path = "../room.rs"]
mod room;
#[path = "../sample/sample.rs"]
mod sample;
#[path = "../support/session.rs"]
mod session;
#[path = "../terminal.rs"]
mod terminal;
