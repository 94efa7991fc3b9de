//! From raw timings to what is shown: robust statistics, verdicts, kernel rows. Pure arithmetic; nothing here waits.

pub mod fit;
pub mod load;
pub mod operations;
pub mod roofline;
pub mod rows;
pub mod sequential;
pub mod stats;
