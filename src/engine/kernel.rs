//! Checks a learner's WGSL: from its text alone, then on a device of the check's own, against a plain reference and the
//! clock. Whatever the kernel does is data in the report. It is meant to run in an engine process of its own.

mod bounds;
mod card;
mod check;
mod explain;
mod gpu;
pub mod job;
mod loops;
mod places;
mod probe;
mod roof;
pub mod source;
mod template;
mod timing;
mod tree;
mod trial;
mod uniform;
pub mod validate;
mod work;

pub use check::{Limits, check, not_made};
