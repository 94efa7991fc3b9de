//! The interpreter of WGSL: what it computes, what it finds, and that it finds nothing in the solutions of the exercises.

mod exercises;
mod findings;
mod language;
mod observer;
mod properties;
