//! Measuring: a plan of jobs, each a run or a comparison in pairs, carried out by an engine process; one kind of progress
//! and one kind of result for the command line, the screen and the checks. Nothing here prints or draws.

pub mod ablation;
pub mod cell;
pub mod equal;
pub mod exercise;
pub mod gate;
pub mod journey;
pub mod kernel_checker;
pub mod kernels;
pub mod lanes;
pub mod machine;
pub mod plan;
pub mod report;
pub mod runner;
