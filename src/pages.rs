//! Turns a recording, a learner's progress or a class into a trace, tables or a report. Nothing here measures; every figure comes from the
//! stream or was kept, and is labelled with the device and date of its run.

pub mod class;
pub mod csv;
pub mod html;
pub mod learner;
pub mod opened;
pub mod perfetto;
pub mod report;
pub mod sheet;
