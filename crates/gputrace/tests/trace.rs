//! Traces of every format: one run gives the same figures in each, and a damaged file gives a message and never a panic.

#[path = "trace/damage.rs"]
mod damage;
#[path = "trace/fixtures.rs"]
mod fixtures;
#[path = "trace/formats.rs"]
mod formats;
#[path = "trace/lints.rs"]
mod lints;
#[path = "trace/odd_times.rs"]
mod odd_times;
#[path = "trace/ranks.rs"]
mod ranks;
#[path = "trace/tables.rs"]
mod tables;
#[path = "trace/timeline.rs"]
mod timeline;
#[path = "trace/versions.rs"]
mod versions;

use std::io::Write;

use gputrace::figures::Summary;
use gputrace::summary::summary;

fn gzip(data: &[u8]) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(data).unwrap();
    packed.finish().unwrap()
}

/// Returns the figures of a file with these bytes.
#[track_caller]
fn figures_of(data: impl Into<Vec<u8>>) -> Summary {
    summary(&fixtures::bytes("a", data).unwrap())
}

fn lint_names(figures: &Summary) -> Vec<&'static str> {
    figures.lints.iter().map(|lint| lint.name).collect()
}
