//! What a recording becomes for others: a trace, tables, a report. Nothing here measures; every figure is one that
//! the stream carries, labelled with the device and date of its run.

pub mod csv;
pub mod html;
pub mod learner;
pub mod perfetto;
pub mod report;
pub mod sheet;
