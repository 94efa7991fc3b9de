//! What a recording, a learner's progress or a class becomes for others: a trace, tables, a report. Nothing here measures; every
//! figure is one that the stream carries or that was kept, labelled with the device and date of its run.

pub mod class;
pub mod csv;
pub mod html;
pub mod learner;
pub mod opened;
pub mod perfetto;
pub mod report;
pub mod sheet;
