//! The interpreter of WGSL finds nothing in the solutions of the exercises.

mod exercises;
