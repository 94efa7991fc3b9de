//! Profiles of GPU programs, read from the files of other tools: PyTorch's profiler and Chrome traces, rocprofv3's tables, rocpd and
//! Nsight Systems databases, `nsys stats`, and Perfetto traces, plain or gzip.
//!
//! Every format becomes one model, a [`Trace`] of lanes with slices. From it follow figures ([`summary::summary`]), lints about the
//! run ([`lints`]), a comparison of two traces ([`compare`]), a timeline for a screen ([`timeline`]) and files for other programs
//! ([`write`]). Times are whole nanoseconds. A figure that a file does not contain is `None`, never 0.
//!
//! Names and messages are returned as they are in the file, bounded in length. They may contain control characters: clean them before
//! they reach a terminal.
//!
//! # Example
//!
//! The share of time in which no kernel runs:
//!
//! ```
//! # use gputrace;
//! let csv = "Kernel_Name,Start_Timestamp,End_Timestamp\nadd,1000,1400\nadd,1900,2000\n";
//! let trace = gputrace::read("kernel_trace.csv", csv.as_bytes(), csv.len() as u64)?;
//! let figures = gputrace::summary::summary(&trace);
//! assert_eq!(figures.kernels, 2);
//! assert_eq!(figures.idle_share, Some(0.5));
//! # Ok::<(), gputrace::OpenError>(())
//! ```
//!
//! A file is opened with [`open`], which recognises its format from its contents.
//!
//! Each format has one file in this crate, with a function that recognises it and one that reads it, and one row in `FORMATS`.

#![warn(missing_docs)]

mod chrome;
pub mod compare;
mod csv;
pub mod display;
mod doubts;
pub mod figures;
mod file;
mod json;
pub mod lints;
pub mod model;
pub mod names;
mod nsys;
mod owners;
mod pftrace;
#[doc(hidden)] // Public for tests that write traces.
#[rustfmt::skip] // One line for each field.
pub mod proto;
pub mod ranks;
mod rocpd;
mod source;
mod sqlite;
pub mod summary;
pub mod timeline;
pub mod write;

use std::io::Read;
use std::path::Path;

pub use file::scratch;
pub use model::{SliceKind, Trace, TraceBuilder};
use source::FileHead;
pub use source::{OpenError, ReadProgress, TraceSource};

/// Returns true if a file has this format, judged by its first bytes or its tables.
type Recognises = fn(&FileHead) -> bool;
/// Reads a file that has this format.
type Reads = fn(&mut TraceSource<'_>) -> Result<Trace, OpenError>;

/// All formats. The first format that recognises a file reads it.
#[rustfmt::skip] // One line for each format.
const FORMATS: [(Recognises, Reads); 5] = [
    (nsys::recognises, nsys::read), // Nsight Systems SQLite export
    (rocpd::recognises, rocpd::read), // rocpd SQLite (ROCm 7)
    (pftrace::recognises, pftrace::read), // Perfetto trace (TrackEvent)
    (csv::recognises, csv::read), // rocprofv3 tables, nsys stats cuda_gpu_kern_sum
    (chrome::recognises, chrome::read), // PyTorch profiler or Chrome trace JSON
];

/// Opens a trace of any format, plain or gzip, and reports its progress. Nothing is written to the file or to its folder.
///
/// # Errors
///
/// If the file cannot be read, or has no known format.
pub fn open(path: &Path, progress: &mut dyn FnMut(ReadProgress)) -> Result<Trace, OpenError> {
    let name = path.display().to_string();
    in_file(name, TraceSource::open(path, progress))
}

/// Reads a trace of any format from a reader. `name` becomes [`Trace::source`], and `total` is the number of bytes, or 0 if that is not
/// known. A database is saved in a temporary file first.
///
/// # Errors
///
/// If the data cannot be read, or have no known format.
pub fn read(name: &str, data: impl Read + 'static, total: u64) -> Result<Trace, OpenError> {
    let mut quiet = |_: ReadProgress| {};
    let source = TraceSource::from_reader(name, data, total, &mut quiet);
    in_file(name.to_owned(), source)
}

/// Reads a source, and names its file in an error.
fn in_file(path: String, source: Result<TraceSource<'_>, OpenError>) -> Result<Trace, OpenError> {
    source
        .and_then(read_recognised)
        .map_err(|error| OpenError { path, ..error })
}

/// Reads a source with the first format that recognises it.
fn read_recognised(mut source: TraceSource<'_>) -> Result<Trace, OpenError> {
    let bytes = source.head()?;
    let mut tables = None;
    if bytes.starts_with(b"SQLite format 3\0") {
        tables = Some(sqlite::tables(&sqlite::connect(&mut source)?)?);
    }
    let head = FileHead { bytes, tables };
    let format = FORMATS.iter().find(|(recognises, _)| recognises(&head));
    let (_, read) = format.ok_or_else(|| explain_unknown(&head))?;
    let mut trace = read(&mut source)?;
    if let Some(damage) = source.damage() {
        trace.truncated.get_or_insert(damage);
    }
    Ok(trace)
}

/// Explains why no format recognises a file.
fn explain_unknown(head: &FileHead) -> OpenError {
    let known = "These can be opened: PyTorch profiler and Chrome JSON, rocprofv3 kernel_trace.csv and kernel_stats.csv, \
                 rocpd and Nsight Systems SQLite, cuda_gpu_kern_sum CSV, Perfetto .pftrace.";
    if let Some(tables) = &head.tables {
        let examples: Vec<&str> = tables.iter().take(6).map(String::as_str).collect();
        let what = match tables.len() {
            0 => "is a database without tables.".to_owned(),
            n => format!(
                "is a database with {n} tables and an unknown schema ({}).",
                examples.join(", ")
            ),
        };
        return OpenError::new(
            &what,
            "Export with `nsys export --type sqlite`, or record with rocprofv3 of ROCm 7.",
        );
    }
    if let Some(error) = csv::explain_other_table(&head.bytes) {
        return error;
    }
    if pftrace::is_xspace(&head.bytes) {
        return OpenError::new(
            "is an XSpace (xplane.pb), as JAX's and TensorFlow's profilers write it.",
            "Open the *.trace.json.gz beside it, or record with `jax.profiler.trace(DIR, \
             create_perfetto_trace=True)` and open the \
             perfetto_trace.json.gz.",
        );
    }
    if chrome::is_rocprof(&head.bytes) {
        return OpenError::new(
            "is rocprofv3's JSON.",
            "Write a table, `rocprofv3 --kernel-trace --output-format csv -- …`, or a database, \
             `--output-format rocpd`, and open that.",
        );
    }
    if csv::has_other_separators(&head.bytes) {
        return OpenError::new(
            "is a table of kernels with other separators between cells or lines, perhaps saved by \
             a spreadsheet.",
            "Open the file that the profiler wrote, with commas and one line for each row.",
        );
    }
    let text = String::from_utf8_lossy(&head.bytes);
    if text.contains("SKIPPED") && text.contains("does not contain") {
        return OpenError::new(
            "is a report of nsys that found no kernels.",
            "Record with `nsys profile --trace=cuda` and a step that runs on the device.",
        );
    }
    if head.bytes.starts_with(b"NVIDIA Tegra Profiler") || head.bytes.starts_with(b"QDSTRM") {
        return OpenError::new(
            "is a report of Nsight Systems.",
            "Run `nsys export --type sqlite FILE` and open the result.",
        );
    }
    if head.bytes.starts_with(source::GZIP) {
        return OpenError::new(
            "is compressed twice.",
            "Run gunzip once and open the result.",
        );
    }
    if head.bytes.contains(&0) {
        return OpenError::new("is binary, but not in a known format.", known);
    }
    OpenError::new("is text, but not a trace in a known format.", known)
}
