//! Damaged and truncated files: they are read as far as possible, say so, and never panic.

use gputrace::summary::summary;
use gputrace::timeline::{Timeline, TimelineWindow};
use gputrace::{Trace, compare, write};

use super::fixtures::{self, bytes, files_of_all_formats};
use super::{figures_of, gzip, lint_names};

/// Computes the figures of a trace and draws its timeline.
fn use_trace(trace: &Trace) {
    let _ = serde_json::to_string(&summary(trace)).unwrap();
    let timeline = Timeline::new(trace, |_| true);
    let window = TimelineWindow {
        start: timeline.bounds.0,
        end: timeline.bounds.1,
        columns: 80,
    };
    for row in 0..timeline.rows.len() {
        assert_eq!(timeline.line(trace, row, window).cells.len(), 80);
    }
}

#[test]
fn the_beginning_of_a_file_is_read_and_called_truncated() {
    for file in files_of_all_formats(&fixtures::run(2, 400, 250)) {
        let format = file.format;
        let mut opened = 0;
        let mut truncated = 0;
        for end in (0..file.data.len()).step_by(7) {
            match bytes("half", &file.data[..end]) {
                Ok(trace) => {
                    opened += 1;
                    truncated += usize::from(trace.truncated.is_some());
                    use_trace(&trace);
                }
                Err(error) => {
                    let text = error.to_string();
                    assert!(text.starts_with("half: "), "{format}: {text}");
                    assert!(text.ends_with(['.', ' ']), "{format}: {text}");
                    assert!(text.len() < 800, "{format}: {text}");
                }
            }
        }
        // The beginning of a database cannot be opened. A table may end after any line, and a bare array after any event.
        if !matches!(format, "nsys sqlite" | "rocpd") {
            assert!(opened > 0, "{format}");
            assert!(2 * truncated > opened, "{format}: {truncated} of {opened}");
        }
    }
}

#[test]
fn half_a_gzip_file_is_read_up_to_its_end() {
    let packed = gzip(fixtures::kineto(&fixtures::run(200, 400, 250)).as_bytes());
    let figures = figures_of(&packed[..packed.len() / 2]);
    assert!(figures.kernels > 500, "{} of 2000", figures.kernels);
    assert!(lint_names(&figures).contains(&"truncated-file"));
}

#[test]
fn damaged_bytes_never_panic() {
    fixtures::damaged(|trace| {
        let figures = summary(&trace);
        write::perfetto::write(&trace);
        write::rocprof_csv::kernel_trace(&trace);
        compare::compare(&figures, &figures).json();
    });
}

#[test]
fn an_event_with_a_lost_quote_costs_few_other_events() {
    let mut text = fixtures::kineto(&fixtures::run(2, 400, 250));
    let start = text.find("\"kernel\"").unwrap();
    let quote = start + "\"kernel".len();
    text.replace_range(quote..=quote, "");
    let figures = figures_of(text);
    assert!(figures.kernels >= 18, "{} of 20", figures.kernels);
    assert!(figures.bad_rows >= 1);
}

#[test]
fn values_that_strict_readers_refuse_cost_no_event() {
    // NaN, infinity and a key that is there twice; a control character; a byte that is not UTF-8.
    let odd = "\"device\":0,\"x\":NaN,\"device\":0,\"y\":-Infinity";
    let text = fixtures::kineto(&fixtures::run(2, 400, 250))
        .replacen("\"device\":0", odd, 3)
        .replacen("Memcpy", "Mem\u{1}cpy", 1);
    let start = text.find("flash_fw").unwrap();
    let mut data = text.into_bytes();
    data[start] = 0xff;
    let figures = figures_of(data);
    assert_eq!((figures.kernels, figures.bad_rows), (20, 0));
}

#[test]
fn each_damaged_byte_costs_at_most_three_events() {
    let mut data = fixtures::kineto(&fixtures::run(100, 400, 250)).into_bytes();
    let mut hits = 0;
    for index in (500..data.len()).step_by(4001) {
        data[index] = b"\"{}[],\\:\0\xff"[index % 10];
        hits += 1;
    }
    let figures = figures_of(data);
    assert!(
        figures.kernels >= 1000 - 3 * hits,
        "{} with {hits} hits",
        figures.kernels
    );
    assert!(
        figures.bad_rows <= 3 * hits,
        "{} with {hits} hits",
        figures.bad_rows
    );
}

#[test]
fn a_trace_can_have_a_thousand_lanes_and_long_names_with_escapes() {
    let trace = fixtures::thousand_lanes();
    let figures = summary(&trace);
    assert_eq!((figures.kernels, figures.lanes), (5000, Some(1000)));
    assert_eq!(figures.devices.as_ref().unwrap().len(), 8);
    assert_eq!(figures.table[0].short.chars().count(), 60);
    // Names are returned as they are in the file; a table that is written has none of their escapes.
    assert!(figures.table[0].short.contains('\u{1b}'));
    assert!(figures.lints.iter().any(|lint| lint.why.contains('\u{1b}')));
    assert!(!write::rocprof_csv::kernel_trace(&trace).contains('\u{1b}'));
}
