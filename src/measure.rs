//! Drives engines: one run, one paired comparison, the runs of a config exercise. Front ends say what to measure and
//! print what was found; nothing here prints a result.

pub mod bench;
pub mod drive;
pub mod machine;
pub mod sweep;
