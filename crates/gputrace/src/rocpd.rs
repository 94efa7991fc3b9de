//! Reads rocpd, the SQLite database of ROCm 7's rocprofv3, through its views. After `rocpd merge`, a database contains several runs.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use rusqlite::{Connection, Row};
use serde_json::Value;

use super::model::{Detail, Direction, LaneKind, SliceKind, Trace, TraceBuilder};
use super::source::{FileHead, OpenError, TraceSource};
use super::sqlite::{self, correlation, int, rows, span, text, three};

/// Returns true for a database with tables of rocpd.
pub(crate) fn recognises(head: &FileHead) -> bool {
    let mut tables = head.tables.iter().flatten();
    tables.any(|table| table.starts_with("rocpd_"))
}

/// Reads a database.
pub(crate) fn read(source: &mut TraceSource<'_>) -> Result<Trace, OpenError> {
    let db = sqlite::connect(source)?;
    if sqlite::columns(&db, "kernels").is_empty() {
        return Err(OpenError::new(
            "is a rocpd database without the view `kernels`, of an unknown version.",
            "Run `rocpd convert -i FILE --output-format csv` and open the kernel_trace.csv.",
        ));
    }
    let mut out = TraceBuilder::new(source.name(), "rocpd", false);
    let mut lanes = HashMap::new();
    kernels(&db, &mut out, &mut lanes);
    if !sqlite::columns(&db, "memory_copies").is_empty() {
        copies(&db, &mut out, &mut lanes);
    }
    // The samples include calls of 0 ns and marks.
    let mut views = ["regions_and_samples", "regions"].into_iter();
    if let Some(view) = views.find(|view| !sqlite::columns(&db, view).is_empty()) {
        regions(&db, &mut out, &mut lanes, view);
    }
    source.done();
    let trace = out.trace();
    let versions = "SELECT DISTINCT CAST(value AS TEXT) FROM rocpd_metadata \
                    WHERE tag = 'schema_version' AND value NOT NULL ORDER BY 1";
    trace.schema_version = Some(sqlite::texts(&db, versions, []).unwrap_or_default());
    trace.holds.kernels = true;
    trace.grid_in_items = true;
    Ok(out.finish())
}

/// Lanes by run, process or device, and thread or queue.
type LaneIndex = HashMap<(String, String, i64), u32>;

/// Returns a number for a row's run and process, the fourth and fifth column. Correlation numbers are unique within these.
fn scope(row: &Row<'_>) -> u64 {
    let guid = text(row, 3).unwrap_or_default();
    let process = int(row, 4).unwrap_or(0);
    let mut hasher = DefaultHasher::new();
    (guid, process).hash(&mut hasher);
    hasher.finish()
}

fn kernels(db: &Connection, out: &mut TraceBuilder, lanes: &mut LaneIndex) {
    #[rustfmt::skip] // In groups of what belongs together.
    let wanted = [
        "start", "end", "name", "guid", "pid", "agent_abs_index", "queue_id", "stack_id",
        "grid_x", "grid_y", "grid_z", "workgroup_x", "workgroup_y", "workgroup_z", "agent_absolute_index", "nid",
    ];
    let mut seen = 0_i64;
    rows(db, "kernels", &wanted, out, |out, row, place| {
        seen += 1;
        let span = span(row)?;
        let agent = int(row, 5).or(int(row, 14));
        let queue = int(row, 6).unwrap_or(0);
        let lane = device_lane(
            out,
            lanes,
            int(row, 15),
            agent,
            &format!("queue {queue}"),
            queue,
        );
        let name = out.name(&text(row, 2).unwrap_or_else(|| "(no name)".to_owned()));
        if let Some(slice) = out.slice(SliceKind::Kernel, lane, name, span, place) {
            // Applications may set `corr_id`; the stack's number joins a kernel and its call.
            out.link(slice, scope(row), correlation(row, 7));
            out.detail(slice, Detail::from_launch(three(row, 8), three(row, 11)));
        }
        Ok(())
    });
    // The view uses inner joins: rows without an event, a thread or a queue are missing.
    let dispatched = db.query_row("SELECT COUNT(*) FROM rocpd_kernel_dispatch", [], |row| {
        row.get(0)
    });
    let hidden = dispatched.unwrap_or(seen).saturating_sub(seen).max(0) as u64;
    let why = "a dispatch that the view `kernels` does not show";
    out.unread_many(why, hidden, || "rocpd_kernel_dispatch".to_owned());
}

fn device_lane(
    out: &mut TraceBuilder,
    lanes: &mut LaneIndex,
    node: Option<i64>,
    agent: Option<i64>,
    name: &str,
    queue: i64,
) -> u32 {
    let device = agent.map_or("?".to_owned(), |number| number.to_string());
    let key = (
        format!("{} {device}", node.unwrap_or(0)),
        name.to_owned(),
        queue,
    );
    *lanes
        .entry(key)
        .or_insert_with(|| out.device_lane(&device, name))
}

fn copies(db: &Connection, out: &mut TraceBuilder, lanes: &mut LaneIndex) {
    #[rustfmt::skip] // In groups of what belongs together.
    let wanted = [
        "start", "end", "name", "guid", "pid", "size", "stack_id", "nid",
        "dst_agent_abs_index", "dst_agent_type", "src_agent_abs_index", "src_agent_type",
    ];
    rows(db, "memory_copies", &wanted, out, |out, row, place| {
        let span = span(row)?;
        let name = text(row, 2).unwrap_or_default();
        // The GPU does the work; between two GPUs, the one that receives.
        let is_gpu = |at: usize| text(row, at + 1).is_some_and(|kind| kind == "GPU");
        let gpu = |at: usize| if is_gpu(at) { int(row, at) } else { None };
        let agent = gpu(8).or(gpu(10)).or(int(row, 8));
        let lane = device_lane(out, lanes, int(row, 7), agent, "copies", -1);
        let id = out.name(&name);
        if let Some(slice) = out.slice(SliceKind::Copy, lane, id, span, place) {
            out.link(slice, scope(row), correlation(row, 6));
            let detail = Detail {
                bytes: int(row, 5).and_then(|bytes| u64::try_from(bytes).ok()),
                direction: Some(Direction::from_name(&name)),
                ..Detail::default()
            };
            out.detail(slice, detail);
        }
        Ok(())
    });
}

fn regions(db: &Connection, out: &mut TraceBuilder, lanes: &mut LaneIndex, view: &str) {
    let wanted = [
        "start", "end", "name", "guid", "pid", "tid", "category", "stack_id", "extdata",
    ];
    rows(db, view, &wanted, out, |out, row, place| {
        let span = span(row)?;
        let mut name = text(row, 2).unwrap_or_default();
        let category = text(row, 6).unwrap_or_default();
        let kind = if category.starts_with("MARKER") {
            if span.0 == span.1 {
                return Ok(());
            }
            // The name is roctx's function; the program's message is in another column.
            let data = text(row, 8).unwrap_or_default();
            let data: Value = serde_json::from_str(&data).unwrap_or_default();
            if let Some(message) = data["message"].as_str() {
                name = message.to_owned();
            }
            SliceKind::Annotation
        } else {
            SliceKind::from_call(&name)
        };
        let guid = text(row, 3).unwrap_or_default();
        let process = int(row, 4).unwrap_or(0);
        let thread = int(row, 5).unwrap_or(0);
        let key = (format!("{guid} {process}"), String::new(), thread);
        let lane = *lanes.entry(key).or_insert_with(|| {
            let group = format!("process {process}");
            let lane = out.lane(LaneKind::Host, &group, &format!("thread {thread}"), None);
            let run = guid.get(..8).unwrap_or(&guid);
            out.assign_process(lane, &format!("{group} of {run}"));
            lane
        });
        let name = out.name(&name);
        if let Some(slice) = out.slice(kind, lane, name, span, place) {
            out.link(slice, scope(row), correlation(row, 7));
        }
        Ok(())
    });
}
