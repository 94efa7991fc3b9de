//! Traces of every format: the same run gives the same figures, damaged files give a message and never a panic.

#[path = "trace/fixtures.rs"]
mod fixtures;
#[path = "trace/limits.rs"]
mod limits;
#[path = "trace/odd_times.rs"]
mod odd_times;
#[path = "trace/ranks.rs"]
mod ranks;
#[path = "trace/versions.rs"]
mod versions;

use std::io::Write;
use std::path::PathBuf;

use fixtures::{Header, Run, all, bytes};
use gputrace::figures::Summary;
use gputrace::model::{LaneKind, Slice, SliceKind, TraceBuilder};
use gputrace::summary::summary;
use gputrace::timeline::{Timeline, TimelineWindow};
use gputrace::{compare, lints, open, write};

fn gzip(data: &[u8]) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(data).unwrap();
    packed.finish().unwrap()
}

/// Counts the nanoseconds that a set of intervals covers within a window, one by one.
fn covered(spans: &[(u64, u64)], within: (u64, u64)) -> u64 {
    (within.0..within.1)
        .filter(|at| spans.iter().any(|span| (span.0..span.1).contains(at)))
        .count() as u64
}

fn names(figures: &Summary) -> Vec<&'static str> {
    figures.lints.iter().map(|lint| lint.name).collect()
}

#[test]
fn every_format_gives_the_same_figures() {
    let run = fixtures::run(3, 400, 250);
    let spans: Vec<(u64, u64)> = run.kernels.iter().map(|kernel| kernel.span).collect();
    let window = (spans[0].0, spans.iter().map(|span| span.1).max().unwrap());
    let busy = covered(&spans, window);
    let total: u64 = spans.iter().map(|span| span.1 - span.0).sum();
    for (format, data, calls, single) in all(&run) {
        for data in [gzip(&data), data] {
            let trace = bytes("a file", data).unwrap();
            let figures = summary(&trace);
            assert_eq!(figures.format, format);
            assert_eq!(
                (figures.kernels, figures.distinct_names, figures.kernel_ns),
                (30, 5, total),
                "{format}"
            );
            assert!(
                figures.unread.is_none() && trace.truncated.is_none(),
                "{format} {:?}",
                figures.unread
            );
            if !single {
                assert_eq!(
                    (
                        figures.busy_ns,
                        figures.lanes,
                        figures.launches,
                        figures.steps
                    ),
                    (None, None, None, None),
                    "{format}"
                );
                continue;
            }
            assert_eq!(figures.busy_ns, Some(busy), "{format}");
            assert_eq!(
                figures.device_span_ns,
                Some(window.1 - window.0),
                "{format}"
            );
            assert_eq!(
                (figures.lanes, figures.zero_length_kernels),
                (Some(1), Some(0)),
                "{format}"
            );
            assert_eq!(
                figures.devices.as_ref().unwrap()["0"].busy_ns,
                busy,
                "{format}"
            );
            let mut lengths: Vec<u64> = spans.iter().map(|span| span.1 - span.0).collect();
            lengths.sort_unstable();
            assert_eq!(
                figures.median_kernel_ns,
                Some((lengths[14] + lengths[15]) / 2),
                "{format}"
            );
            if !calls {
                assert_eq!(
                    (
                        figures.launches,
                        figures.syncs,
                        figures.copies,
                        figures.steps
                    ),
                    (None, None, None, None),
                    "{format}"
                );
                continue;
            }
            assert_eq!(
                (figures.launches, figures.launches_without_kernel),
                (Some(30), Some(0)),
                "{format}"
            );
            assert_eq!(
                (figures.syncs, figures.graph_launches),
                (Some(3), Some(0)),
                "{format}"
            );
            let copies = figures.copies.unwrap();
            assert_eq!(
                (
                    copies.all.count,
                    copies.all.bytes,
                    copies.by_direction["H2D"].count
                ),
                (3, Some(3 * 4096), 3),
                "{format}"
            );
            let steps = figures.steps.unwrap();
            let truth = run
                .ranges
                .iter()
                .filter(|range| range.name.starts_with("step"));
            for (step, range) in steps.iter().zip(truth) {
                let inside = |at: u64| (range.span.0..range.span.1).contains(&at);
                let starts = run
                    .kernels
                    .iter()
                    .filter(|kernel| inside(kernel.span.0))
                    .count() as u64;
                let launches = run
                    .kernels
                    .iter()
                    .filter(|kernel| inside(kernel.launch.0))
                    .count() as u64;
                assert_eq!(
                    (&step.name, step.dur_ns),
                    (&range.name, range.span.1 - range.span.0),
                    "{format}"
                );
                assert_eq!(
                    (step.kernels_by_start, step.kernels_by_launch),
                    (Some(starts), Some(launches)),
                    "{format}"
                );
                assert_eq!(step.busy_ns, Some(covered(&spans, range.span)), "{format}");
                assert_eq!(
                    (step.syncs, step.host_device_copies),
                    (Some(1), Some(1)),
                    "{format}"
                );
                let ledger = step.ledger;
                assert_eq!(
                    ledger.wall,
                    ledger.busy
                        + ledger.copies
                        + ledger.syncs.unwrap()
                        + ledger.host_bound.unwrap()
                        + ledger.idle,
                    "{format}"
                );
                assert_eq!(Some(ledger.busy), step.busy_ns);
            }
            assert_eq!(steps.len(), 3, "{format}");
            assert_eq!(
                figures
                    .table
                    .iter()
                    .map(|row| row.a_step.unwrap())
                    .sum::<f64>(),
                10.0,
                "{format}"
            );
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
    let figures = summary(&bytes("a", fixtures::kineto(&run)).unwrap());
    let ledger = figures.ledger.unwrap();
    assert_eq!((ledger.wall, ledger.busy), (5000, 2000));
    assert_eq!((ledger.host_bound, ledger.idle), (Some(2000), 1000));
}

#[test]
fn the_two_layouts_of_rocprofv3_agree_on_lanes() {
    let run = fixtures::run(2, 400, 250);
    for streams in [false, true] {
        let trace = bytes("a", fixtures::pftrace(&run, streams)).unwrap();
        let hosts: Vec<&str> = trace
            .lanes
            .iter()
            .filter(|lane| lane.kind == LaneKind::Host)
            .map(|lane| lane.name.as_str())
            .collect();
        assert_eq!(hosts, ["python3 7"]);
        let kernel = trace.slices_of(SliceKind::Kernel).next().unwrap();
        assert_eq!(trace.detail(kernel).block, Some([128, 1, 1]));
        assert!(
            trace
                .lanes
                .iter()
                .all(|lane| lane.kind == LaneKind::Host || lane.group == "GPU 0")
        );
    }
}

#[test]
fn what_is_shown_can_be_written_and_read_back() {
    let run = fixtures::run(3, 900, 250);
    for (format, data, calls, single) in all(&run) {
        let first = bytes("a", data).unwrap();
        let figures = summary(&first);
        let stats = write::rocprof_csv::kernel_stats(&figures);
        let again = summary(&bytes("b", stats).unwrap());
        assert_eq!(
            (again.kernels, again.kernel_ns, &again.top),
            (figures.kernels, figures.kernel_ns, &figures.top),
            "{format}"
        );
        if !single {
            continue;
        }
        let table = write::rocprof_csv::kernel_trace(&first);
        let again = summary(&bytes("b", table).unwrap());
        assert_eq!(
            (again.kernels, again.busy_ns, &again.top),
            (figures.kernels, figures.busy_ns, &figures.top),
            "{format}"
        );
        let second = bytes("b", write::perfetto::write(&first)).unwrap();
        let again = summary(&second);
        assert_eq!(
            (again.kernels, again.busy_ns, &again.top),
            (figures.kernels, figures.busy_ns, &figures.top),
            "{format}"
        );
        assert_eq!(
            (again.device_span_ns, again.trace_span_ns),
            (figures.device_span_ns, figures.trace_span_ns),
            "{format}"
        );
        assert_eq!(again.devices, figures.devices, "{format}");
        if calls {
            assert_eq!(
                (again.launches, again.syncs),
                (figures.launches, figures.syncs),
                "{format}"
            );
            let steps = |figures: &Summary| serde_json::to_string(&figures.steps).unwrap();
            assert_eq!(steps(&again), steps(&figures), "{format}");
            assert_eq!(again.launches_without_kernel, Some(0), "{format}");
            assert_eq!(
                (&again.copies, &again.lints),
                (&figures.copies, &figures.lints),
                "{format}"
            );
        }
    }
}

#[test]
fn half_a_file_says_so_and_never_panics() {
    for (format, data, _, _) in all(&fixtures::run(2, 400, 250)) {
        let mut opened = 0;
        let mut told = 0;
        for end in (0..data.len()).step_by(7) {
            match bytes("half", &data[..end]) {
                Ok(trace) => {
                    opened += 1;
                    let figures = summary(&trace);
                    told += usize::from(trace.truncated.is_some());
                    let _ = serde_json::to_string(&figures).unwrap();
                    let timeline = Timeline::new(&trace, |_| true);
                    let window = TimelineWindow {
                        start: timeline.bounds.0,
                        end: timeline.bounds.1,
                        columns: 80,
                    };
                    for row in 0..timeline.rows.len() {
                        assert_eq!(timeline.line(&trace, row, window).cells.len(), 80);
                    }
                }
                Err(error) => {
                    let text = error.to_string();
                    assert!(
                        text.starts_with("half: ")
                            && text.ends_with(['.', ' '])
                            && text.len() < 800,
                        "{format}: {text}"
                    );
                }
            }
        }
        // Tables may end after any line and a bare array after any event; databases say nothing before they open.
        if !matches!(format, "nsys sqlite" | "rocpd") {
            assert!(
                opened > 0 && told * 2 > opened,
                "{format}: {told} of {opened}"
            );
        }
    }
}

#[test]
fn half_a_gzip_file_is_read_up_to_its_end() {
    let packed = gzip(fixtures::kineto(&fixtures::run(200, 400, 250)).as_bytes());
    let trace = bytes("half.gz", &packed[..packed.len() / 2]).unwrap();
    let figures = summary(&trace);
    assert!(
        figures.kernels > 500 && names(&figures).contains(&"truncated-file"),
        "{} {:?}",
        figures.kernels,
        names(&figures)
    );
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
fn a_damaged_event_costs_that_event_alone() {
    let run = fixtures::run(2, 400, 250);
    let text = fixtures::kineto(&run);
    // A quote is lost; a number is no number; a key is there twice; NaN; a raw control character; a byte that is no UTF-8.
    let at = text.find("\"kernel\"").unwrap();
    let mut lost = text.clone();
    lost.replace_range(at + 7..at + 8, "");
    let figures = summary(&bytes("lost", lost).unwrap());
    assert!(
        figures.kernels >= 18 && figures.bad_rows >= 1,
        "{} {}",
        figures.kernels,
        figures.bad_rows
    );
    let odd = text
        .replacen(
            "\"device\":0",
            "\"device\":0,\"x\":NaN,\"device\":0,\"y\":-Infinity",
            3,
        )
        .replacen("Memcpy", "Mem\u{1}cpy", 1);
    let mut odd = odd.into_bytes();
    let at = odd
        .windows(8)
        .position(|bytes| bytes == b"flash_fw")
        .unwrap();
    odd[at] = 0xff;
    let figures = summary(&bytes("odd", odd).unwrap());
    assert_eq!((figures.kernels, figures.bad_rows), (20, 0));
}

#[test]
fn begin_and_end_events_make_slices() {
    let text = r#"[{"ph":"B","cat":"kernel","name":"outer","pid":1,"tid":1,"ts":1},
        {"ph":"B","cat":"kernel","name":"inner","pid":1,"tid":1,"ts":"2.5"},
        {"ph":"E","pid":1,"tid":1,"ts":3},{"ph":"E","pid":1,"tid":1,"ts":5},{"ph":"E","pid":1,"tid":1,"ts":6},
        {"ph":"C","name":"memory","pid":1,"ts":2,"args":{"used":7}},{"ph":"B","name":"open","pid":1,"tid":1,"ts":9}]"#;
    let trace = bytes("a", text).unwrap();
    let figures = summary(&trace);
    assert_eq!(
        (
            figures.kernels,
            figures.kernel_ns,
            figures.busy_ns,
            figures.bad_rows
        ),
        (2, 4500, Some(4000), 2)
    );
    assert_eq!(trace.counters[0].samples, [(2000, 7.0)]);
}

#[test]
fn without_kernels_the_hosts_operations_show_their_own_time() {
    let op = |name: &str, thread: u32, ts: u32, dur: u32| {
        let place = format!("\"pid\":1,\"tid\":{thread},\"ts\":{ts},\"dur\":{dur}");
        format!("{{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"{name}\",{place}}}")
    };
    let trace = |outer: &str| {
        let events = [
            op(outer, 1, 0, 100),
            op("aten::addmm", 1, 10, 60),
            op("aten::copy_", 1, 20, 10),
            op("aten::addmm", 1, 80, 20),
            op("aten::copy_", 2, 5, 90),
        ];
        summary(&bytes("a", format!("[{}]", events.join(","))).unwrap())
    };
    let a = trace("aten::linear");
    let b = trace("aten::relu");
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

#[test]
fn quotes_within_names_do_not_cost_the_row() {
    let header = "\"Kind\",\"Agent_Id\",\"Queue_Id\",\"Kernel_Name\",\"Start_Timestamp\",\"End_Timestamp\"\r\n";
    let rows = [
        "\"f(\"a\", 1)\"",
        "\"say \"\"x\"\"\"",
        "\"plain, with commas\"",
        "\"\"",
        "bare",
    ];
    let rows: String = rows
        .iter()
        .map(|name| format!("\"KERNEL_DISPATCH\",\"Agent 1\",1,{name},10,30\r\n"))
        .collect();
    let trace = bytes("a", format!("{header}{rows}")).unwrap();
    let names: Vec<&str> = trace
        .slices_of(SliceKind::Kernel)
        .map(|kernel| trace.name(kernel.name))
        .collect();
    assert_eq!(
        names,
        ["f(\"a\", 1)", "say \"x\"", "plain, with commas", "", "bare"]
    );
    assert!(trace.unread.is_empty());
}

#[test]
fn bad_rows_are_counted_with_their_reason_and_place() {
    let text = fixtures::kernel_trace(&fixtures::run(1, 400, 250), Header::Y2024);
    let extra = "\"KERNEL_DISPATCH\",0,1,7,1,3,\"late\",1,500,400,0,0,1,1,1,1,1,1\n\
                 \"KERNEL_DISPATCH\",0,1,7,1,3,\"nan\",1,x,400,0,0,1,1,1,1,1,1\n\"KERNEL_DISPATCH\",0\n\
                 \"KERNEL_DISPATCH\",0,1,7,1,3,\"long\",1,1,99999999999999999999999,0,0,1,1,1,1,1,1\n";
    let trace = bytes("a", format!("{text}{extra}")).unwrap();
    let figures = summary(&trace);
    assert_eq!((figures.kernels, figures.bad_rows), (10, 4));
    let why = &figures.unread.unwrap().why;
    assert!(
        why.iter()
            .any(|unread| unread.why == "the end is before the start"
                && unread.first == "line 12"
                && unread.count == 1),
        "{why:?}"
    );
}

#[test]
fn times_at_the_limits_of_64_bits_do_not_overflow() {
    let header = "\"Kind\",\"Agent_Id\",\"Queue_Id\",\"Kernel_Name\",\"Start_Timestamp\",\"End_Timestamp\"\n";
    let row =
        |start: u64, end: u64| format!("\"KERNEL_DISPATCH\",\"Agent 1\",1,\"k\",{start},{end}\n");
    let text = format!(
        "{header}{}{}{}",
        row(0, u64::MAX),
        row(u64::MAX - 5, u64::MAX),
        row(0, u64::MAX)
    );
    let trace = bytes("a", text).unwrap();
    let figures = summary(&trace);
    assert_eq!(
        (figures.kernels, figures.busy_ns, figures.kernel_ns),
        (3, Some(u64::MAX), u64::MAX)
    );
    let timeline = Timeline::new(&trace, |_| true);
    let window = TimelineWindow {
        start: i64::MIN,
        end: i64::MAX,
        columns: 80,
    };
    assert_eq!(timeline.line(&trace, 0, window).cells[79].filled, 1.0);
    let window = window
        .zoom(0.001, window.time(79), timeline.bounds)
        .pan(5.0, timeline.bounds);
    let window = window.zoom(1e9, window.time(3), timeline.bounds);
    assert!(window.start < window.end);
    let out = write::perfetto::write(&trace);
    assert_eq!(summary(&bytes("b", out).unwrap()).busy_ns, Some(u64::MAX));
}

#[test]
fn a_thousand_lanes_and_long_names_with_escapes() {
    let trace = fixtures::thousand_lanes();
    let figures = summary(&trace);
    assert_eq!(
        (
            figures.kernels,
            figures.lanes,
            figures.devices.as_ref().unwrap().len()
        ),
        (5000, Some(1000), 8)
    );
    assert_eq!(figures.table[0].short.chars().count(), 60);
    // Names leave the reader as they are in the file, and what is shown is clean.
    assert!(figures.table[0].short.contains('\u{1b}'));
    assert!(figures.lints.iter().any(|lint| lint.why.contains('\u{1b}')));
    assert!(!write::rocprof_csv::kernel_trace(&trace).contains('\u{1b}'));
}

#[test]
fn no_cell_is_a_formula() {
    let mut builder = TraceBuilder::new("made", "ours", false);
    let lane = builder.lane(LaneKind::Device, "GPU", "queue", None);
    for name in [
        "=cmd|' /C calc'!A0",
        "+1",
        "-1",
        "@SUM(1)",
        "\t=1",
        " =2",
        "\n=3",
    ] {
        let name = builder.name(name);
        builder.slice(SliceKind::Kernel, lane, name, (0, 1), || "here".to_owned());
    }
    let trace = builder.finish();
    let table = write::rocprof_csv::kernel_trace(&trace);
    let stats = write::rocprof_csv::kernel_stats(&summary(&trace));
    for text in [table, stats] {
        assert_eq!(text.lines().count(), 8);
        for cell in text.lines().flat_map(|line| line.split(',')) {
            assert!(
                !cell
                    .trim_matches('"')
                    .trim_start()
                    .starts_with(['=', '+', '-', '@']),
                "{cell}"
            );
        }
    }
}

#[test]
fn what_is_no_trace_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str, data: &[u8]| -> PathBuf {
        let path = folder.path().join(name);
        std::fs::write(&path, data).unwrap();
        path
    };
    let fails = |path: PathBuf, part: &str| {
        let error = open(&path, &mut |_| {}).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    };
    fails(path("empty", b""), "is empty");
    fails(path("empty.gz", &gzip(b"")), "is empty");
    fails(path("text", b"hello\nworld\n"), "not a trace");
    fails(path("binary", &[0, 1, 2, 3, 200, 0, 0, 0]), "binary");
    fails(path("wide.csv", b"\xff\xfe\"\0K\0i\0n\0d\0"), "UTF-16");
    fails(
        path("some.json", br#"{"a": 1, "b": [1, 2]}"#),
        "traceEvents",
    );
    fails(
        path(
            "hip_api_trace.csv",
            b"\"Domain\",\"Function\",\"Process_Id\",\"Start_Timestamp\",\"End_Timestamp\"\n",
        ),
        "API calls",
    );
    fails(
        path(
            "hip_api_stats.csv",
            b"\"Name\",\"Calls\",\"TotalDurationNs\"\n\"hipMalloc\",1,5\n",
        ),
        "not of kernels",
    );
    fails(folder.path().to_owned(), "is a folder");
    fails(folder.path().join("nothing"), "cannot be read");
    let other = folder.path().join("other.db");
    rusqlite::Connection::open(&other)
        .unwrap()
        .execute_batch("CREATE TABLE songs (id INTEGER)")
        .unwrap();
    fails(other, "unknown schema (songs)");
    let locked = folder.path().join("locked.db");
    fixtures::nsys(&fixtures::run(1, 400, 250), &locked);
    let holder = rusqlite::Connection::open(&locked).unwrap();
    holder.execute_batch("BEGIN EXCLUSIVE").unwrap();
    fails(locked, "locked");
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
fn lints_hold_where_they_should() {
    let lints = |run: &Run| names(&summary(&bytes("a", fixtures::kineto(run)).unwrap()));
    let base = fixtures::run(3, 30_000, 250);
    let found = lints(&base);
    assert_eq!(found, ["sync-in-step", "copy-in-step"]);
    assert_eq!(
        lints(&fixtures::run(3, 400, 9000)),
        ["launch-bound", "sync-in-step", "copy-in-step"]
    );
    let mut none = base.clone();
    none.syncs.clear();
    none.copies.clear();
    assert!(lints(&none).is_empty());
    let mut one = none.clone();
    one.kernels
        .iter_mut()
        .for_each(|kernel| kernel.name = fixtures::NAMES[2]);
    assert_eq!(lints(&one), ["one-kernel-dominates"]);
    let mut early = none.clone();
    early
        .kernels
        .iter_mut()
        .for_each(|kernel| kernel.launch = (kernel.span.0 + 5, kernel.span.0 + 9));
    assert_eq!(lints(&early)[0], "clock-mismatch");
    let mut apart = none.clone();
    apart.kernels.iter_mut().for_each(|kernel| {
        kernel.span = (kernel.span.0 + 9_000_000_000, kernel.span.1 + 9_000_000_000)
    });
    assert_eq!(lints(&apart)[0], "clock-mismatch");
    // Backward is annotated, but next to nothing runs in it.
    let mut cut = none.clone();
    let backward: Vec<(u64, u64)> = cut
        .ranges
        .iter()
        .filter(|range| range.name == "backward")
        .map(|range| range.span)
        .collect();
    let inside = |at: u64| backward.iter().any(|span| (span.0..span.1).contains(&at));
    let mut kept = 0;
    cut.kernels.retain(|kernel| {
        kept += usize::from(inside(kernel.launch.0));
        !inside(kernel.launch.0) || kept % 6 == 0
    });
    assert_eq!(lints(&cut), ["missing-backward"]);
    let mut still = none.clone();
    still
        .kernels
        .retain(|kernel| kernel.name != fixtures::NAMES[4]);
    assert_eq!(lints(&still), ["missing-backward"]);
    let mut unseen = fixtures::kineto(&none);
    unseen = unseen
        .lines()
        .filter(|line| !line.contains("\"kernel\""))
        .collect::<Vec<_>>()
        .join("\n");
    assert_eq!(
        names(&summary(&bytes("a", unseen).unwrap())),
        ["no-device-activity"]
    );
    let mut slow = bytes("a", fixtures::kineto(&none)).unwrap();
    slow.unprofiled_step = Some(summary(&slow).steps.unwrap()[0].dur_ns / 3);
    assert_eq!(names(&summary(&slow)), ["profiler-overhead"]);
    // Gaps that the profiler makes are no fault of the launches.
    let mut gaps = bytes("a", fixtures::kineto(&fixtures::run(3, 400, 9000))).unwrap();
    gaps.unprofiled_step = Some(summary(&gaps).steps.unwrap()[0].dur_ns / 3);
    assert_eq!(
        names(&summary(&gaps)),
        ["sync-in-step", "copy-in-step", "profiler-overhead"]
    );
    assert_eq!(self::lints::names().count(), 9);
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
    let side = |run: &Run| summary(&bytes("a", fixtures::kineto(run)).unwrap());
    let comparison = compare::compare(&side(&a), &side(&b));
    assert_eq!(
        (
            comparison.kernels.len(),
            comparison.vanished.len(),
            comparison.new.len()
        ),
        (4, 1, 1)
    );
    assert_eq!(
        (
            comparison.vanished[0].short.as_str(),
            comparison.new[0].name.as_str()
        ),
        ("flash_fwd_kernel", "my_attention")
    );
    assert_eq!(
        comparison.kernels[0].name,
        fixtures::NAMES[4],
        "the longest of either side comes first"
    );
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

#[test]
fn a_timeline_answers_for_every_column() {
    let trace = bytes("a", fixtures::kineto(&fixtures::run(3, 700, 250))).unwrap();
    let timeline = Timeline::new(&trace, |kind| kind != SliceKind::Op);
    let (low, high) = timeline.bounds;
    let mut window = TimelineWindow {
        start: low,
        end: high,
        columns: 80,
    };
    for _ in 0..40 {
        for (number, row) in timeline.rows.iter().enumerate() {
            let line = timeline.line(&trace, number, window);
            for (column, cell) in line.cells.iter().enumerate() {
                let from = window.time(column);
                let to = window.time(column + 1);
                // The expected time is added up over every slice of the row, one by one.
                let mut filled = 0;
                for (index, slice) in (0..).zip(&trace.slices) {
                    if slice.lane == row.lane && timeline.row_of(index) == Some(number) {
                        filled += (slice.end.min(to) - slice.start.max(from)).max(0);
                    }
                }
                assert!(
                    (cell.filled - filled as f64 / (to - from) as f64).abs() < 1e-9,
                    "{window:?} {number} {column}"
                );
                assert_eq!(cell.slice.is_some(), cell.count > 0);
            }
        }
        window = window
            .zoom(0.8, window.time(30), timeline.bounds)
            .pan(0.07, timeline.bounds);
    }
    let is_kernel = |(_, slice): &(u32, &Slice)| slice.kind == SliceKind::Kernel;
    let (kernel, _) = (0..).zip(&trace.slices).filter(is_kernel).nth(5).unwrap();
    let (row, launch) = timeline.link(&trace, kernel).unwrap();
    assert_eq!(trace.slices[launch as usize].kind, SliceKind::Launch);
    assert_eq!(timeline.link(&trace, launch).unwrap().1, kernel);
    assert_eq!(
        timeline.at(row, trace.slices[launch as usize].start + 1, 0),
        Some(launch)
    );
    let next = timeline.neighbour(kernel, true).unwrap();
    assert_eq!(timeline.neighbour(next, false), Some(kernel));
    let device = timeline.row_of(kernel).unwrap();
    let lane = &trace.slices[kernel as usize].lane;
    let of_device = trace.slices.iter().filter(|slice| slice.lane == *lane);
    let spans: Vec<(i64, i64)> = of_device.map(Slice::span).collect();
    let longest = spans.windows(2).map(|pair| pair[1].0 - pair[0].1).max();
    let gap = timeline.longest_gap(device, timeline.bounds);
    assert_eq!(gap.map(|(from, to)| to - from), longest);
    // Words of a name stand whole, or not at all.
    let short = gputrace::names::short(trace.name(trace.slices[kernel as usize].name), 60);
    let (from, to) = (
        trace.slices[kernel as usize].start,
        trace.slices[kernel as usize].end,
    );
    for columns in [4, 12, short.len(), short.len() + 1, 200] {
        let window = TimelineWindow {
            start: from,
            end: to,
            columns,
        };
        let line = timeline.line(&trace, device, window);
        let label = line.labels.iter().find(|label| label.slice == kernel);
        let wanted = gputrace::names::whole_words(&short, columns - 1);
        assert_eq!(label.map(|label| label.text.as_str()), Some(wanted));
    }
}

#[test]
fn much_damage_costs_little() {
    let mut data = fixtures::kineto(&fixtures::run(100, 400, 250)).into_bytes();
    let (length, mut at) = (data.len(), 500);
    let mut hits = 0;
    while at < length {
        data[at] = b"\"{}[],\\:\0\xff"[at % 10];
        at += 4001;
        hits += 1;
    }
    let figures = summary(&bytes("damaged", data).unwrap());
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
