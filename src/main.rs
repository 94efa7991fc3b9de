//! Hands the command line and the course to the library, and its answer to the system. The course is in this file's program,
//! not in the library: after a changed lesson cargo compiles these lines again, and nothing else.

use include_dir::{Dir, include_dir};

static EXERCISES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/exercises");
static LESSONS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/lessons");

fn main() -> std::process::ExitCode {
    perflings::cli::main([&EXERCISES, &LESSONS], engine::serve)
}
