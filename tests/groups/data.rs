//! Tests of data that is read and written: courses, streams, profiles, texts of kernels, and the source itself.

#[path = "../arrows.rs"]
mod arrows;
#[path = "../course.rs"]
mod course;
#[path = "../fuzz.rs"]
mod fuzz;
#[path = "../lockstep/main.rs"]
mod lockstep;
#[path = "../support/readme.rs"]
mod readme;
#[path = "../trace.rs"]
mod trace;
