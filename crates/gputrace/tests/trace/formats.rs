//! The formats: each gives the same figures of one run, and what is written can be read back.

use std::path::{Path, PathBuf};

use gputrace::figures::{Summary, TraceStep};
use gputrace::model::{LaneKind, SliceKind};
use gputrace::summary::summary;
use gputrace::{compare, open, write};

use super::fixtures::{self, Run, Span, bytes, files_of_all_formats};
use super::{figures_of, gzip};

/// Counts the nanoseconds that at least one interval covers within a window, one by one.
fn covered(spans: &[Span], window: Span) -> u64 {
    let is_covered = |time: &u64| spans.iter().any(|span| (span.0..span.1).contains(time));
    (window.0..window.1).filter(is_covered).count() as u64
}

/// Checks the figures of kernels with start and end.
#[track_caller]
fn assert_kernels(figures: &Summary, spans: &[Span]) {
    let end = spans.iter().map(|span| span.1).max().unwrap();
    let window = (spans[0].0, end);
    let busy = covered(spans, window);
    assert_eq!(figures.busy_ns, Some(busy));
    assert_eq!(figures.devices.as_ref().unwrap()["0"].busy_ns, busy);
    assert_eq!(figures.device_span_ns, Some(window.1 - window.0));
    assert_eq!(figures.lanes, Some(1));
    assert_eq!(figures.zero_length_kernels, Some(0));
    let mut lengths: Vec<u64> = spans.iter().map(|span| span.1 - span.0).collect();
    lengths.sort_unstable();
    // The median of thirty lengths is the mean of the two in the middle.
    let median = (lengths[14] + lengths[15]) / 2;
    assert_eq!(figures.median_kernel_ns, Some(median));
}

/// Checks the counts of calls and copies of three steps.
#[track_caller]
fn assert_calls(figures: &Summary) {
    assert_eq!(figures.launches, Some(30));
    assert_eq!(figures.launches_without_kernel, Some(0));
    assert_eq!(figures.syncs, Some(3));
    assert_eq!(figures.graph_launches, Some(0));
    let copies = figures.copies.as_ref().unwrap();
    assert_eq!((copies.all.count, copies.all.bytes), (3, Some(3 * 4096)));
    assert_eq!(copies.by_direction["H2D"].count, 3);
    let per_step = figures.table.iter().map(|row| row.a_step.unwrap());
    assert_eq!(per_step.sum::<f64>(), 10.0);
}

/// Checks a step against the range that names it.
#[track_caller]
fn assert_step(step: &TraceStep, range: &fixtures::Range, run: &Run) {
    let is_inside = |time: u64| (range.span.0..range.span.1).contains(&time);
    let kernels = run.kernels.iter();
    let starts = kernels.clone().filter(|kernel| is_inside(kernel.span.0));
    let launches = kernels.filter(|kernel| is_inside(kernel.launch.0));
    let spans: Vec<Span> = run.kernels.iter().map(|kernel| kernel.span).collect();
    assert_eq!(step.name, range.name);
    assert_eq!(step.dur_ns, range.span.1 - range.span.0);
    assert_eq!(step.kernels_by_start, Some(starts.count() as u64));
    assert_eq!(step.kernels_by_launch, Some(launches.count() as u64));
    assert_eq!(step.busy_ns, Some(covered(&spans, range.span)));
    assert_eq!((step.syncs, step.host_device_copies), (Some(1), Some(1)));
    let ledger = step.ledger;
    let device = ledger.busy + ledger.copies + ledger.idle;
    let host = ledger.syncs.unwrap() + ledger.host_bound.unwrap();
    assert_eq!(ledger.wall, device + host);
    assert_eq!(Some(ledger.busy), step.busy_ns);
}

#[test]
fn every_format_gives_the_same_figures() {
    let run = fixtures::run(3, 400, 250);
    let spans: Vec<Span> = run.kernels.iter().map(|kernel| kernel.span).collect();
    let total: u64 = spans.iter().map(|span| span.1 - span.0).sum();
    for file in files_of_all_formats(&run) {
        for data in [gzip(&file.data), file.data] {
            println!("{}", file.format);
            let trace = bytes("a file", data).unwrap();
            let figures = summary(&trace);
            assert_eq!(figures.format, file.format);
            assert_eq!((figures.kernels, figures.distinct_names), (30, 5));
            assert_eq!(figures.kernel_ns, total);
            assert!(figures.unread.is_none() && trace.truncated.is_none());
            if file.has_times {
                assert_kernels(&figures, &spans);
            } else {
                assert_eq!((figures.busy_ns, figures.lanes), (None, None));
            }
            if file.has_calls {
                assert_calls(&figures);
                let ranges = run
                    .ranges
                    .iter()
                    .filter(|range| range.name.starts_with("step"));
                let steps = figures.steps.unwrap();
                assert_eq!(steps.len(), 3);
                for (step, range) in steps.iter().zip(ranges) {
                    assert_step(step, range, &run);
                }
            } else {
                assert_eq!((figures.launches, figures.syncs), (None, None));
                assert!(figures.copies.is_none() && figures.steps.is_none());
            }
        }
    }
}

#[test]
fn a_gap_is_bound_by_the_host_until_the_next_call_returns() {
    let kernel = |launch, span, correlation| fixtures::Kernel {
        name: fixtures::NAMES[0],
        launch,
        span,
        correlation,
    };
    let run = Run {
        kernels: vec![
            kernel((100, 500), (1000, 2000), 1),
            kernel((3000, 4000), (5000, 6000), 2),
        ],
        ranges: vec![fixtures::Range {
            name: "step 1".to_owned(),
            span: (1000, 6000),
        }],
        ..Run::default()
    };
    let figures = figures_of(fixtures::kineto(&run));
    let ledger = figures.ledger.unwrap();
    assert_eq!((ledger.wall, ledger.busy), (5000, 2000));
    assert_eq!((ledger.host_bound, ledger.idle), (Some(2000), 1000));
}

#[test]
fn the_two_layouts_of_rocprofv3_have_the_same_lanes() {
    let run = fixtures::run(2, 400, 250);
    for has_stream_tracks in [false, true] {
        let trace = bytes("a", fixtures::pftrace(&run, has_stream_tracks)).unwrap();
        let mut hosts = Vec::new();
        for lane in &trace.lanes {
            match lane.kind {
                LaneKind::Host => hosts.push(lane.name.as_str()),
                LaneKind::Device => assert_eq!(lane.group, "GPU 0"),
            }
        }
        assert_eq!(hosts, ["python3 7"]);
        let kernel = trace.slices_of(SliceKind::Kernel).next().unwrap();
        assert_eq!(trace.detail(kernel).block, Some([128, 1, 1]));
    }
}

/// Checks the figures of kernels that every file with these kernels has.
#[track_caller]
fn assert_same_kernels(again: &Summary, figures: &Summary) {
    assert_eq!(again.kernels, figures.kernels);
    assert_eq!(again.kernel_ns, figures.kernel_ns);
    assert_eq!(again.top, figures.top);
}

#[test]
fn a_trace_that_is_written_and_read_back_has_the_same_figures() {
    let run = fixtures::run(3, 900, 250);
    for file in files_of_all_formats(&run) {
        println!("{}", file.format);
        let trace = bytes("a", file.data).unwrap();
        let figures = summary(&trace);
        let stats = write::rocprof_csv::kernel_stats(&figures);
        assert_same_kernels(&figures_of(stats), &figures);
        if !file.has_times {
            continue;
        }
        let table = figures_of(write::rocprof_csv::kernel_trace(&trace));
        assert_same_kernels(&table, &figures);
        assert_eq!(table.busy_ns, figures.busy_ns);
        let again = figures_of(write::perfetto::write(&trace));
        assert_same_kernels(&again, &figures);
        assert_eq!(again.busy_ns, figures.busy_ns);
        assert_eq!(again.device_span_ns, figures.device_span_ns);
        assert_eq!(again.trace_span_ns, figures.trace_span_ns);
        assert_eq!(again.devices, figures.devices);
        if file.has_calls {
            assert_eq!(again.launches, figures.launches);
            assert_eq!(again.launches_without_kernel, Some(0));
            assert_eq!(again.syncs, figures.syncs);
            assert_eq!(again.copies, figures.copies);
            assert_eq!(again.lints, figures.lints);
            let steps = |figures: &Summary| serde_json::to_string(&figures.steps).unwrap();
            assert_eq!(steps(&again), steps(&figures));
        }
    }
}

#[test]
fn begin_and_end_events_make_slices() {
    let text = r#"[{"ph":"B","cat":"kernel","name":"outer","pid":1,"tid":1,"ts":1},
        {"ph":"B","cat":"kernel","name":"inner","pid":1,"tid":1,"ts":"2.5"},
        {"ph":"E","pid":1,"tid":1,"ts":3},{"ph":"E","pid":1,"tid":1,"ts":5},{"ph":"E","pid":1,"tid":1,"ts":6},
        {"ph":"C","name":"memory","pid":1,"ts":2,"args":{"used":7}},{"ph":"B","name":"open","pid":1,"tid":1,"ts":9}]"#;
    let trace = bytes("a", text).unwrap();
    let figures = summary(&trace);
    // The outer kernel takes 4 µs and the inner 0.5 µs; one end and one beginning have no counterpart.
    assert_eq!((figures.kernels, figures.kernel_ns), (2, 4500));
    assert_eq!((figures.busy_ns, figures.bad_rows), (Some(4000), 2));
    assert_eq!(trace.counters[0].samples, [(2000, 7.0)]);
}

#[test]
fn operations_of_the_host_are_counted_without_the_operations_inside_them() {
    let op = |name: &str, thread: u32, ts: u32, dur: u32| {
        format!(
            r#"{{"ph":"X","cat":"cpu_op","name":"{name}","pid":1,"tid":{thread},"ts":{ts},"dur":{dur}}}"#
        )
    };
    let figures_with = |outer: &str| {
        let events = [
            op(outer, 1, 0, 100),
            op("aten::addmm", 1, 10, 60),
            op("aten::copy_", 1, 20, 10),
            op("aten::addmm", 1, 80, 20),
            op("aten::copy_", 2, 5, 90),
        ];
        figures_of(format!("[{}]", events.join(",")))
    };
    let a = figures_with("aten::linear");
    let b = figures_with("aten::relu");
    let rows: Vec<(&str, u64, u64)> = a
        .rows()
        .iter()
        .map(|row| (row.name.as_str(), row.calls, row.total_ns))
        .collect();
    let expected = [
        ("aten::copy_", 2, 100_000),
        ("aten::addmm", 2, 70_000),
        ("aten::linear", 1, 20_000),
    ];
    assert_eq!((rows, a.kernels), (expected.to_vec(), 0));
    let both = compare::compare(&a, &b);
    assert_eq!((both.kernels.len(), both.new.len()), (2, 1));
    assert_eq!(both.new[0].name, "aten::relu");
}

/// Checks the message for a file that cannot be opened.
#[track_caller]
fn assert_refused(path: &Path, part: &str) {
    let error = open(path, &mut |_| {}).unwrap_err().to_string();
    assert!(error.contains(part), "{error}");
}

#[test]
fn a_file_that_is_no_trace_is_refused_with_what_was_found() {
    let folder = tempfile::tempdir().unwrap();
    let api_calls =
        "\"Domain\",\"Function\",\"Process_Id\",\"Start_Timestamp\",\"End_Timestamp\"\n";
    let api_stats = "\"Name\",\"Calls\",\"TotalDurationNs\"\n\"hipMalloc\",1,5\n";
    let files: [(&str, &[u8], &str); 8] = [
        ("empty", b"", "is empty"),
        ("empty.gz", &gzip(b""), "is empty"),
        ("text", b"hello\nworld\n", "not a trace"),
        ("binary", &[0, 1, 2, 3, 200, 0, 0, 0], "binary"),
        ("wide.csv", b"\xff\xfe\"\0K\0i\0n\0d\0", "UTF-16"),
        ("some.json", br#"{"a": 1, "b": [1, 2]}"#, "traceEvents"),
        ("hip_api_trace.csv", api_calls.as_bytes(), "API calls"),
        ("hip_api_stats.csv", api_stats.as_bytes(), "not of kernels"),
    ];
    for (name, data, part) in files {
        let path = folder.path().join(name);
        std::fs::write(&path, data).unwrap();
        assert_refused(&path, part);
    }
    assert_refused(folder.path(), "is a folder");
    assert_refused(&folder.path().join("nothing"), "cannot be read");
}

#[test]
fn a_database_that_cannot_be_read_is_refused_with_what_was_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| -> PathBuf { folder.path().join(name) };
    rusqlite::Connection::open(path("other.db"))
        .unwrap()
        .execute_batch("CREATE TABLE songs (id INTEGER)")
        .unwrap();
    assert_refused(&path("other.db"), "unknown schema (songs)");
    fixtures::nsys(&fixtures::run(1, 400, 250), &path("locked.db"));
    let holder = rusqlite::Connection::open(path("locked.db")).unwrap();
    holder.execute_batch("BEGIN EXCLUSIVE").unwrap();
    assert_refused(&path("locked.db"), "locked");
}

#[test]
fn a_database_is_recognised_whatever_its_name_and_folder() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a ?#%20 \u{fc}.json");
    fixtures::rocpd(&fixtures::run(1, 400, 250), &path);
    let db = rusqlite::Connection::open(&path).unwrap();
    db.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))
        .unwrap();
    drop(db);
    let trace = open(&path, &mut |_| {}).unwrap();
    assert_eq!((trace.format, summary(&trace).kernels), ("rocpd", 10));
}

#[test]
fn two_traces_are_compared_by_name_and_family() {
    let a = fixtures::run(3, 400, 250);
    let mut b = fixtures::run(3, 800, 250);
    for kernel in &mut b.kernels {
        if kernel.name == fixtures::NAMES[3] {
            kernel.name = "my_attention";
        }
    }
    let optimizer = b.kernels.last_mut().unwrap();
    optimizer.span.1 += 100_000;
    let comparison = compare::compare(
        &figures_of(fixtures::kineto(&a)),
        &figures_of(fixtures::kineto(&b)),
    );
    let [vanished] = &comparison.vanished[..] else {
        panic!("{:?}", comparison.vanished);
    };
    let [new] = &comparison.new[..] else {
        panic!("{:?}", comparison.new);
    };
    assert_eq!(vanished.short, "flash_fwd_kernel");
    assert_eq!(new.name, "my_attention");
    // The row with the longest time of either side comes first.
    assert_eq!(comparison.kernels.len(), 4);
    assert_eq!(comparison.kernels[0].name, fixtures::NAMES[4]);
    let attention = comparison
        .families
        .iter()
        .find(|row| row.family.label() == "attention")
        .unwrap();
    assert_eq!(
        attention.both.a.unwrap().calls,
        attention.both.b.unwrap().calls
    );
    serde_json::from_str::<serde_json::Value>(&comparison.json()).unwrap();
}
