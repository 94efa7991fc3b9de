//! Tests of the screen without a terminal: its state, its drawing and its keys.

#[path = "../exercises.rs"]
mod exercises;
#[path = "../guide.rs"]
mod guide;
#[path = "../keys.rs"]
mod keys;
#[path = "../lanes.rs"]
mod lanes;
#[path = "../monkey.rs"]
mod monkey;
#[path = "../support/readme.rs"]
mod readme;
#[path = "../roofline.rs"]
mod roofline;
#[path = "../sample/sample.rs"]
mod sample;
#[path = "../sample/screen.rs"]
mod screen;
#[path = "../screens.rs"]
mod screens;
#[path = "../support/session.rs"]
mod session;
#[path = "../update.rs"]
mod update;
