//! The program: runs the command line of the library with the built-in course and the engine. The course is included here and not in the
//! library, so that cargo compiles only this file after a lesson has changed.

use include_dir::{Dir, include_dir};

static EXERCISES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/exercises");
static LESSONS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/lessons");

fn main() -> std::process::ExitCode {
    perflings::cli::main([&EXERCISES, &LESSONS], engine::serve)
}
