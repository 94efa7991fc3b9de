//! Reads Nsight Systems' SQLite export. A table exists only if it has rows: an absent table means "not recorded", never 0.

use std::collections::HashMap;

use rusqlite::Connection;

use super::model::{Detail, Direction, LaneKind, SliceKind, Trace, TraceBuilder};
use super::source::{FileHead, OpenError, TraceSource};
use super::sqlite::{self, correlation, int, rows, span, text, three};

const KERNEL: &str = "CUPTI_ACTIVITY_KIND_KERNEL";
const RUNTIME: &str = "CUPTI_ACTIVITY_KIND_RUNTIME";
const COPY: &str = "CUPTI_ACTIVITY_KIND_MEMCPY";
const MEMSET: &str = "CUPTI_ACTIVITY_KIND_MEMSET";
const GRAPH: &str = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE";
const NVTX: &str = "NVTX_EVENTS";
/// The types of NVTX events that are ranges: pushed and popped, started and ended.
const RANGES: [i64; 2] = [59, 60];

/// Returns true for the tables of an export.
pub(crate) fn recognises(head: &FileHead) -> bool {
    let mut tables = head.tables.iter().flatten();
    // Names of nvprof's tables begin like these, but the tables have other columns.
    let is_nvprof = tables.clone().any(|table| table == "StringTable");
    !is_nvprof
        && tables.any(|table| {
            table.starts_with("CUPTI_ACTIVITY_KIND_")
                || table == "META_DATA_EXPORT"
                || table == NVTX
        })
}

/// Reads an export.
pub(crate) fn read(source: &mut TraceSource<'_>) -> Result<Trace, OpenError> {
    let db = sqlite::connect(source)?;
    let tables = sqlite::tables(&db)?;
    let has = |name: &str| tables.iter().any(|table| table == name);
    let mut out = TraceBuilder::new(source.name(), "nsys sqlite", false);
    let strings = strings(&db, &mut out);
    let mut lanes = NsysLookup {
        lanes: HashMap::new(),
        strings,
    };
    if has(RUNTIME) {
        calls(&db, &mut out, &mut lanes);
    }
    for (table, kind) in [
        (KERNEL, SliceKind::Kernel),
        (COPY, SliceKind::Copy),
        (MEMSET, SliceKind::Memset),
        (GRAPH, SliceKind::Graph),
    ] {
        if has(table) {
            work(&db, &mut out, &mut lanes, table, kind);
        }
    }
    if has(NVTX) {
        ranges(&db, &mut out, &mut lanes);
    }
    if has("PROFILER_OVERHEAD") {
        overhead(&db, &mut out, &mut lanes);
    }
    if has("ThreadNames") {
        lanes.threads(&db, &mut out);
    }
    source.done();
    let trace = out.trace();
    trace.serial = true;
    let absent = [KERNEL, COPY, MEMSET, NVTX, RUNTIME]
        .into_iter()
        .filter(|name| !has(name));
    trace.tables_absent = Some(absent.map(str::to_owned).collect());
    let holds = &mut trace.holds;
    holds.kernels = true;
    holds.calls = has(RUNTIME);
    holds.copies = has(COPY);
    holds.memsets = has(MEMSET);
    holds.annotations = has(NVTX);
    holds.graphs = has(GRAPH);
    Ok(out.finish())
}

/// The lanes and names of an export, by its numbers.
struct NsysLookup {
    /// Lanes by process or thread, device and stream; a thread has -1 for device and stream.
    lanes: HashMap<(i64, i64, i64), u32>,
    /// Names by `StringIds.id`.
    strings: HashMap<i64, u32>,
}

fn strings(db: &Connection, out: &mut TraceBuilder) -> HashMap<i64, u32> {
    let mut strings = HashMap::new();
    rows(db, "StringIds", &["id", "value"], out, |out, row, _| {
        let id = int(row, 0).ok_or("a name without a number")?;
        let name = text(row, 1).unwrap_or_default();
        strings.insert(id, out.name(&name));
        Ok(())
    });
    strings
}

/// Returns the process of a thread. Correlation numbers are unique only within a process.
fn process(global: i64) -> u64 {
    global as u64 & !0xff_ffff
}

/// Returns the label of the process of a thread.
fn label(global: i64) -> String {
    format!("process {}", process(global) >> 24 & 0xff_ffff)
}

impl NsysLookup {
    fn thread(&mut self, out: &mut TraceBuilder, global: i64) -> u32 {
        *self.lanes.entry((global, -1, -1)).or_insert_with(|| {
            let group = label(global);
            let name = format!("thread {}", global & 0xff_ffff);
            let lane = out.lane(LaneKind::Host, &group, &name, None);
            out.assign_process(lane, &group);
            lane
        })
    }

    /// Sets the names of threads.
    fn threads(&self, db: &Connection, out: &mut TraceBuilder) {
        let wanted = ["globalTid", "nameId"];
        rows(db, "ThreadNames", &wanted, out, |out, row, _| {
            let lane = int(row, 0).and_then(|global| self.lanes.get(&(global, -1, -1)));
            let name = int(row, 1).and_then(|id| self.strings.get(&id));
            if let (Some(lane), Some(name)) = (lane, name) {
                let name = out.trace().names[*name as usize].to_string();
                let lane = &mut out.trace().lanes[*lane as usize].name;
                *lane = format!("{name} {}", lane.trim_start_matches("thread "));
            }
            Ok(())
        });
    }

    fn stream(
        &mut self,
        out: &mut TraceBuilder,
        process: Option<i64>,
        (device, stream): (i64, i64),
    ) -> u32 {
        let key = (process.unwrap_or(0), device, stream);
        *self.lanes.entry(key).or_insert_with(|| {
            let lane = out.device_lane(&device.to_string(), &format!("stream {stream}"));
            // Older exports do not have the process.
            if let Some(process) = process {
                out.assign_process(lane, &label(process));
            }
            lane
        })
    }

    fn name(&self, out: &mut TraceBuilder, id: Option<i64>) -> u32 {
        let known = id.and_then(|id| self.strings.get(&id).copied());
        known.unwrap_or_else(|| {
            out.name(&id.map_or("(no name)".to_owned(), |id| format!("(name {id})")))
        })
    }
}

fn calls(db: &Connection, out: &mut TraceBuilder, lanes: &mut NsysLookup) {
    let wanted = ["start", "end", "globalTid", "correlationId", "nameId"];
    rows(db, RUNTIME, &wanted, out, |out, row, place| {
        let span = span(row)?;
        let thread = int(row, 2).unwrap_or(0);
        let name = lanes.name(out, int(row, 4));
        let kind = SliceKind::from_call(&out.trace().names[name as usize].clone());
        let lane = lanes.thread(out, thread);
        if let Some(slice) = out.slice(kind, lane, name, span, place) {
            out.link(slice, process(thread), correlation(row, 3));
        }
        Ok(())
    });
}

fn work(
    db: &Connection,
    out: &mut TraceBuilder,
    lanes: &mut NsysLookup,
    table: &str,
    kind: SliceKind,
) {
    #[rustfmt::skip] // In groups.
    let wanted = [
        "start", "end", "globalPid", "deviceId", "streamId", "correlationId", "demangledName", "shortName",
        "bytes", "copyKind", "gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ", "graphId",
    ];
    rows(db, table, &wanted, out, |out, row, place| {
        let span = span(row)?;
        let [id, device, stream] = [2, 3, 4].map(|at| int(row, at).unwrap_or(0));
        let lane = lanes.stream(out, int(row, 2), (device, stream));
        let direction = (kind == SliceKind::Copy).then(|| direction(int(row, 9)));
        let name = match kind {
            SliceKind::Kernel => lanes.name(out, int(row, 6).or(int(row, 7))),
            SliceKind::Copy => {
                out.name(&format!("copy {}", direction.map_or("", Direction::label)))
            }
            SliceKind::Memset => out.name("memset"),
            _ => out.name(&int(row, 16).map_or("graph".to_owned(), |id| format!("graph {id}"))),
        };
        let Some(slice) = out.slice(kind, lane, name, span, place) else {
            return Ok(());
        };
        out.link(slice, process(id), correlation(row, 5));
        let detail = Detail {
            bytes: int(row, 8).and_then(|bytes| u64::try_from(bytes).ok()),
            direction,
            grid: three(row, 10),
            block: three(row, 13),
            collective: None,
        };
        out.detail(slice, detail);
        Ok(())
    });
}

/// Returns the direction of an `ENUM_CUDA_MEMCPY_OPER`.
fn direction(kind: Option<i64>) -> Direction {
    match kind {
        Some(1) => Direction::H2D,
        Some(2) => Direction::D2H,
        Some(8) => Direction::D2D,
        Some(9) => Direction::H2H,
        Some(10) => Direction::P2P,
        _ => Direction::Other,
    }
}

fn ranges(db: &Connection, out: &mut TraceBuilder, lanes: &mut NsysLookup) {
    let wanted = ["start", "end", "globalTid", "eventType", "text", "textId"];
    rows(db, NVTX, &wanted, out, |out, row, place| {
        // Marks, domains and similar rows have no length.
        if int(row, 3).is_some_and(|kind| !RANGES.contains(&kind)) {
            return Ok(());
        }
        let start = int(row, 0).ok_or("a range without a start")?;
        let end = int(row, 1).ok_or("a range without an end")?;
        let name = match text(row, 4) {
            Some(name) => out.name(&name),
            None => lanes.name(out, int(row, 5)),
        };
        let lane = lanes.thread(out, int(row, 2).unwrap_or(0));
        let span = (start.into(), end.into());
        out.slice(SliceKind::Annotation, lane, name, span, place);
        Ok(())
    });
}

fn overhead(db: &Connection, out: &mut TraceBuilder, lanes: &mut NsysLookup) {
    let wanted = ["start", "end", "globalTid", "nameId"];
    rows(db, "PROFILER_OVERHEAD", &wanted, out, |out, row, place| {
        let span = span(row)?;
        let name = lanes.name(out, int(row, 3));
        let lane = lanes.thread(out, int(row, 2).unwrap_or(0));
        out.slice(SliceKind::Overhead, lane, name, span, place);
        Ok(())
    });
}
