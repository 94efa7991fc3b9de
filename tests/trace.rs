//! A profile of another program: its pages, its screen, and its links into the course. The tests of gputrace are about reading files.

#[path = "trace/bridge.rs"]
mod bridge;
#[expect(
    dead_code,
    reason = "the tests of gputrace read fields that these do not"
)]
#[path = "../crates/gputrace/tests/trace/fixtures.rs"]
mod fixtures;
#[path = "trace/screen.rs"]
mod screen;

use fixtures::bytes;
use gputrace::compare::compare;
use gputrace::summary::summary;
use perflings::pages::html;
use perflings::pages::opened::{comparison, sheet};

#[test]
fn a_comparison_names_figures_that_a_file_does_not_contain() {
    let sums = fixtures::kernel_stats(&fixtures::run(3, 400, 250));
    let single = fixtures::kineto(&fixtures::run(3, 800, 250));
    let figures = |data: String| summary(&bytes("a", data).unwrap());
    let page = comparison(&compare(&figures(sums), &figures(single))).markdown();
    assert!(page.contains("| idle share | not in this file |"), "{page}");
}

#[test]
fn operations_of_the_host_are_compared_without_kernels() {
    let figures_of = |operation: &str| {
        let event = format!(
            r#"[{{"ph":"X","cat":"cpu_op","name":"{operation}","pid":1,"tid":1,"ts":0,"dur":100}}]"#
        );
        summary(&bytes("a", event).unwrap())
    };
    let both = compare(&figures_of("aten::linear"), &figures_of("aten::relu"));
    let text = comparison(&both).text();
    assert!(text.contains("linear") && text.contains("relu"), "{text}");
}

#[test]
fn a_comparison_of_damaged_traces_never_panics() {
    fixtures::damaged(|trace| {
        let figures = summary(&trace);
        let _ = comparison(&compare(&figures, &figures)).markdown();
    });
}

#[test]
fn a_thousand_lanes_and_long_names_are_shown_without_escapes() {
    let trace = fixtures::thousand_lanes();
    let figures = summary(&trace);
    let page = comparison(&compare(&figures, &figures));
    for sheet in [page, sheet(&figures, &trace)] {
        for text in [sheet.text(), sheet.markdown(), html::page(&sheet)] {
            assert!(!text.contains(['\u{1b}', '\u{7}']), "{text}");
        }
    }
    let shown = screen::shown_at_once(trace);
    assert!(shown.contains("·52;c;evil·") && !shown.contains(['\u{1b}', '\u{7}']));
}
