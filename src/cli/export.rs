//! `perflings export` and `perflings report`: a recording for other tools.

use anyhow::Result;

use super::args::{ExportArgs, Format, ReportArgs, Table};
use crate::export::{csv, perfetto, report::collect};
use crate::out::{self, Exit, notice, usage};
use crate::record::Recording;

pub fn export(args: &ExportArgs) -> Result<Exit> {
    let recording = open(&args.file)?;
    let bytes = match (args.format, args.table) {
        (Format::Perfetto, _) => perfetto::trace(recording.iter(), &recording.badge()),
        (Format::Csv, Table::Steps) => csv::steps(recording.iter()).into_bytes(),
        (Format::Csv, Table::Kernels) => csv::kernels(recording.iter()).into_bytes(),
        (Format::Csv, Table::Gradients) => csv::gradients(recording.iter()).into_bytes(),
    };
    match &args.out {
        Some(path) => out::file(path, &bytes)?,
        None if args.format == Format::Perfetto && out::is_terminal() => {
            return Err(usage(
                "a trace is binary; write it with --out run.pftrace and open it in ui.perfetto.dev",
            ));
        }
        None => out::bytes(&bytes)?,
    }
    Ok(Exit::Ok)
}

pub fn report(args: &ReportArgs) -> Result<Exit> {
    let recording = open(&args.file)?;
    out::result(markdown(&recording).trim_end())?;
    Ok(Exit::Ok)
}

/// The report of a recording.
pub fn markdown(recording: &Recording) -> String {
    collect(recording).markdown()
}

/// Reads a recording and says what is to be known about it.
pub fn open(path: &std::path::Path) -> Result<Recording> {
    let recording = Recording::read(path)?;
    if let Some(text) = &recording.notice {
        notice(text);
    }
    Ok(recording)
}
