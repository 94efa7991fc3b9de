//! Turns a recording, a learner's progress or a class into pages for others: a trace, tables, a report. Nothing here measures. Every figure
//! comes from the stream or from a saved file, and is labelled with the device and date of its run.

pub mod class;
pub mod csv;
pub mod html;
pub mod learner;
pub mod opened;
pub mod perfetto;
pub mod report;
pub mod sheet;
