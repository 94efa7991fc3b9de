//! Measurements for the command line, the screen and the checks. Nothing here prints or draws.
//!
//! ```text
//! plan ─ job, job, job ─▶ runner ─▶ engine process
//!                            │
//!            PlanProgress ◀──┴──▶ TaskResult ─▶ cell ─▶ report
//! ```
//!
//! A plan is a list of jobs, each a run or a comparison in pairs. The runner carries out one job after the other in an engine process.

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
