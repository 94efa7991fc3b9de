//! What is read and written: courses, streams, profiles, kernels as texts, and the source itself.

#[path = "../course.rs"]
mod course;
#[path = "../fuzz.rs"]
mod fuzz;
#[path = "../lockstep/main.rs"]
mod lockstep;
#[path = "../protocol.rs"]
mod protocol;
#[path = "../support/readme.rs"]
mod readme;
#[path = "../tidy.rs"]
mod tidy;
#[path = "../trace.rs"]
mod trace;
