//! Gives the command line and the course to the library, and its exit code to the system. The course is included here and not in the
//! library, so that after a changed lesson cargo compiles only this file again.

use include_dir::{Dir, include_dir};

static EXERCISES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/exercises");
static LESSONS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/lessons");

fn main() -> std::process::ExitCode {
    perflings::cli::main([&EXERCISES, &LESSONS], engine::serve)
}
