//! The arithmetic between raw timings and the figures on the screen: robust statistics, verdicts, kernel rows.

pub mod operations;
pub mod robust;
pub mod roofline;
pub mod sequential;
pub mod typical;
