//! Tables of rocprofv3: names with quotes, rows that cannot be read, and cells that are written.

use gputrace::model::{LaneKind, SliceKind, TraceBuilder};
use gputrace::summary::summary;
use gputrace::timeline::{Timeline, TimelineWindow};
use gputrace::write;

use super::figures_of;
use super::fixtures::{self, Header, bytes};

const HEADER: &str =
    "\"Kind\",\"Agent_Id\",\"Queue_Id\",\"Kernel_Name\",\"Start_Timestamp\",\"End_Timestamp\"\n";

#[test]
fn a_name_with_quotes_is_read_as_it_is() {
    let mut table = HEADER.to_owned();
    for name in [
        "\"f(\"a\", 1)\"",
        "\"say \"\"x\"\"\"",
        "\"plain, with commas\"",
        "\"\"",
        "bare",
    ] {
        table += &format!("\"KERNEL_DISPATCH\",\"Agent 1\",1,{name},10,30\n");
    }
    for text in [table.replace('\n', "\r\n"), table] {
        let trace = bytes("a", text).unwrap();
        let names: Vec<&str> = trace
            .slices_of(SliceKind::Kernel)
            .map(|kernel| trace.name(kernel.name))
            .collect();
        let expected = ["f(\"a\", 1)", "say \"x\"", "plain, with commas", "", "bare"];
        assert_eq!(names, expected);
        assert!(trace.unread.is_empty());
    }
}

#[test]
fn bad_rows_are_counted_with_their_reason_and_place() {
    let text = fixtures::kernel_trace(&fixtures::run(1, 400, 250), Header::Y2024);
    let extra = "\"KERNEL_DISPATCH\",0,1,7,1,3,\"late\",1,500,400,0,0,1,1,1,1,1,1\n\
                 \"KERNEL_DISPATCH\",0,1,7,1,3,\"nan\",1,x,400,0,0,1,1,1,1,1,1\n\"KERNEL_DISPATCH\",0\n\
                 \"KERNEL_DISPATCH\",0,1,7,1,3,\"long\",1,1,99999999999999999999999,0,0,1,1,1,1,1,1\n";
    let figures = figures_of(format!("{text}{extra}"));
    assert_eq!((figures.kernels, figures.bad_rows), (10, 4));
    let unread = figures.unread.unwrap().why;
    let late = unread
        .iter()
        .find(|unread| unread.why == "the end is before the start")
        .unwrap();
    // The header and ten kernels are above the first bad row.
    assert_eq!((late.first.as_str(), late.count), ("line 12", 1));
}

#[test]
fn times_at_the_limits_of_64_bits_do_not_overflow() {
    let mut text = HEADER.to_owned();
    for (start, end) in [(0, u64::MAX), (u64::MAX - 5, u64::MAX), (0, u64::MAX)] {
        text += &format!("\"KERNEL_DISPATCH\",\"Agent 1\",1,\"k\",{start},{end}\n");
    }
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
    let near = window
        .zoom(0.001, window.time(79), timeline.bounds)
        .pan(5.0, timeline.bounds);
    let far = near.zoom(1e9, near.time(3), timeline.bounds);
    assert!(near.start < near.end && far.start < far.end);
    let out = write::perfetto::write(&trace);
    assert_eq!(figures_of(out).busy_ns, Some(u64::MAX));
}

#[test]
fn a_spreadsheet_takes_no_written_cell_for_a_formula() {
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
            let value = cell.trim_matches('"').trim_start();
            assert!(!value.starts_with(['=', '+', '-', '@']), "{cell}");
        }
    }
}
