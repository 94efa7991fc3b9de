//! Measures a plan of jobs in an engine process; a job is a run or a comparison in pairs. The command line, the screen and the checks share
//! one kind of progress and one kind of result. Nothing here prints or draws.

pub mod background_job;
pub mod cell;
pub mod equal;
pub mod exercise;
pub mod kernel_checker;
pub mod lanes;
pub mod launched_kernels;
pub mod machine;
pub mod plan;
pub mod report;
pub mod runner;
pub mod stage_table;
