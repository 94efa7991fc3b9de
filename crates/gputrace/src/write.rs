//! Writes traces as files for other programs.

pub mod perfetto;
pub mod rocprof_csv;
