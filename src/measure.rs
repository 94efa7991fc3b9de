//! Measurements: an engine process carries out a plan of jobs, each a run or a comparison in pairs. Progress and results have one form
//! for the command line, the screen and the checks. Nothing here prints or draws.

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
pub mod weak_reference;
