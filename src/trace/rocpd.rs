//! rocpd, the SQLite database of ROCm 7's rocprofv3, read through its views. After `rocpd merge`, a database contains several runs.

use std::collections::HashMap;

use rusqlite::Connection;

use super::model::{Detail, Direction, LaneKind, SliceKind, Trace, TraceBuilder};
use super::source::{FileHead, OpenError, TraceSource};
use super::sqlite::{self, int, rows, text};

/// Whether a database has the views and tables of rocpd.
pub fn recognises(head: &FileHead) -> bool {
    let tables: Vec<&String> = head.tables.iter().flatten().collect();
    tables.iter().any(|it| it.starts_with("rocpd_"))
}

/// Reads a database.
pub fn read(source: &mut TraceSource<'_>) -> Result<Trace, OpenError> {
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
    let views = ["regions_and_samples", "regions"];
    let view = views
        .iter()
        .find(|view| !sqlite::columns(&db, view).is_empty());
    if let Some(view) = view {
        regions(&db, &mut out, &mut lanes, view);
    }
    source.done();
    let trace = out.trace();
    let mut versions = Vec::new();
    if let Ok(mut query) = db.prepare(
        "SELECT DISTINCT value FROM rocpd_metadata WHERE tag = 'schema_version' ORDER BY 1",
    ) && let Ok(found) = query.query_map([], |row| Ok(text(row, 0)))
    {
        versions.extend(found.flatten().flatten());
    }
    trace.schema_version = Some(versions);
    trace.holds.kernels = true;
    trace.grid_in_items = true;
    Ok(out.finish())
}

/// Lanes by run, process or device, and thread or queue.
type LaneIndex = HashMap<(String, String, i64), u32>;

/// A number for a run and a process, within which correlation numbers are unique.
fn scope(guid: &str, process: i64) -> u64 {
    // FNV-1a.
    let bytes = guid.bytes().chain(process.to_le_bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    })
}

fn kernels(db: &Connection, out: &mut TraceBuilder, lanes: &mut LaneIndex) {
    #[rustfmt::skip] // In groups of what belongs together.
    let wanted = [
        "start", "end", "name", "guid", "pid", "agent_abs_index", "queue_id", "stack_id",
        "grid_x", "grid_y", "grid_z", "workgroup_x", "workgroup_y", "workgroup_z", "agent_absolute_index", "nid",
    ];
    let mut seen = 0_i64;
    rows(
        db,
        &sqlite::select(db, "kernels", &wanted),
        "kernels",
        out,
        |out, row, place| {
            seen += 1;
            let (Some(start), Some(end)) = (int(row, 0), int(row, 1)) else {
                return Err("a row without start or end".to_owned());
            };
            let guid = text(row, 3).unwrap_or_default();
            let agent = int(row, 5)
                .or(int(row, 14))
                .map_or("?".to_owned(), |it| it.to_string());
            let queue = int(row, 6).unwrap_or(0);
            let node = int(row, 15).unwrap_or(0);
            let lane = device_lane(
                out,
                lanes,
                &format!("{node}"),
                &agent,
                &format!("queue {queue}"),
                queue,
            );
            let name = out.name(&text(row, 2).unwrap_or_else(|| "(no name)".to_owned()));
            let span = (start.into(), end.into());
            let Some(slice) = out.slice(SliceKind::Kernel, lane, name, span, || place.to_string())
            else {
                return Ok(());
            };
            // Applications may set `corr_id`; the stack's number joins a kernel and its call.
            if let Some(stack) = int(row, 7) {
                out.work(slice, scope(&guid, int(row, 4).unwrap_or(0)), stack as u64);
            }
            let three = |from: usize| {
                let size = |at: usize| int(row, at).and_then(|it| u32::try_from(it).ok());
                Some([size(from)?, size(from + 1)?, size(from + 2)?])
            };
            out.detail(
                slice,
                Detail {
                    grid: three(8),
                    block: three(11),
                    ..Detail::default()
                },
            );
            Ok(())
        },
    );
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
    node: &str,
    agent: &str,
    name: &str,
    queue: i64,
) -> u32 {
    *lanes
        .entry((format!("{node} {agent}"), name.to_owned(), queue))
        .or_insert_with(|| {
            let device = out.device(agent);
            out.lane(
                LaneKind::Device,
                &format!("GPU {agent}"),
                name,
                Some(device),
            )
        })
}

fn copies(db: &Connection, out: &mut TraceBuilder, lanes: &mut LaneIndex) {
    #[rustfmt::skip] // In groups of what belongs together.
    let wanted = [
        "start", "end", "name", "guid", "pid", "size", "stack_id", "nid",
        "dst_agent_abs_index", "dst_agent_type", "src_agent_abs_index", "src_agent_type",
    ];
    rows(
        db,
        &sqlite::select(db, "memory_copies", &wanted),
        "memory_copies",
        out,
        |out, row, place| {
            let (Some(start), Some(end)) = (int(row, 0), int(row, 1)) else {
                return Err("a row without start or end".to_owned());
            };
            let name = text(row, 2).unwrap_or_default();
            // The device that does the work: the GPU, or of two GPUs the one that receives.
            let gpu = |at: usize| {
                text(row, at + 1)
                    .is_some_and(|kind| kind == "GPU")
                    .then(|| int(row, at))
                    .flatten()
            };
            let agent = gpu(8)
                .or(gpu(10))
                .or(int(row, 8))
                .map_or("?".to_owned(), |it| it.to_string());
            let node = int(row, 7).unwrap_or(0);
            let lane = device_lane(out, lanes, &format!("{node}"), &agent, "copies", -1);
            let guid = text(row, 3).unwrap_or_default();
            let id = out.name(&name);
            if let Some(slice) = out.slice(
                SliceKind::Copy,
                lane,
                id,
                (start.into(), end.into()),
                || place.to_string(),
            ) {
                if let Some(stack) = int(row, 6) {
                    out.work(slice, scope(&guid, int(row, 4).unwrap_or(0)), stack as u64);
                }
                let bytes = int(row, 5).and_then(|it| u64::try_from(it).ok());
                out.detail(
                    slice,
                    Detail {
                        bytes,
                        direction: Some(Direction::of_name(&name)),
                        ..Detail::default()
                    },
                );
            }
            Ok(())
        },
    );
}

fn regions(db: &Connection, out: &mut TraceBuilder, lanes: &mut LaneIndex, view: &str) {
    let wanted = [
        "start", "end", "name", "guid", "pid", "tid", "category", "stack_id", "extdata",
    ];
    rows(
        db,
        &sqlite::select(db, view, &wanted),
        "regions",
        out,
        |out, row, place| {
            let (Some(start), Some(end)) = (int(row, 0), int(row, 1)) else {
                return Err("a row without start or end".to_owned());
            };
            let mut name = text(row, 2).unwrap_or_default();
            let category = text(row, 6).unwrap_or_default();
            let kind = if category.starts_with("MARKER") && start == end {
                return Ok(());
            } else if category.starts_with("MARKER") {
                // The name is roctx's function; the program's message is in another column.
                let message = text(row, 8)
                    .and_then(|json| serde_json::from_str::<serde_json::Value>(&json).ok());
                if let Some(message) = message
                    .as_ref()
                    .and_then(|it| it.get("message"))
                    .and_then(|it| it.as_str())
                {
                    name = message.to_owned();
                }
                SliceKind::Annotation
            } else {
                SliceKind::of_call(&name)
            };
            let guid = text(row, 3).unwrap_or_default();
            let (process, thread) = (int(row, 4).unwrap_or(0), int(row, 5).unwrap_or(0));
            let lane = *lanes
                .entry((format!("{guid} {process}"), String::new(), thread))
                .or_insert_with(|| {
                    out.lane(
                        LaneKind::Host,
                        &format!("process {process}"),
                        &format!("thread {thread}"),
                        None,
                    )
                });
            let name = out.name(&name);
            let slice = out.slice(kind, lane, name, (start.into(), end.into()), || {
                place.to_string()
            });
            if let (Some(slice), Some(stack), true) = (slice, int(row, 7), kind.is_call()) {
                out.call(slice, scope(&guid, process), stack as u64);
            }
            Ok(())
        },
    );
}
