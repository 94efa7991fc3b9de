//! From raw timings to what is shown: robust statistics, verdicts, kernel rows. Pure arithmetic; nothing here waits.

pub mod operations;
pub mod roofline;

pub mod robust;
pub mod sequential;
pub mod typical;
