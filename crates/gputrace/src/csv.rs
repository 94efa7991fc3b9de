//! Tables: rocprofv3's `kernel_trace.csv` and `kernel_stats.csv` with all their headers so far, and the output of `nsys stats` for
//! `cuda_gpu_kern_sum`. Columns are found by name, in any order and case. Cells are split here because rocprofv3 does not double
//! quotes inside a name, which CSV readers cannot handle.

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::sync::Arc;

use super::model::{Detail, KernelStat, SliceKind, Trace, TraceBuilder};
use super::source::{FileHead, OpenError, TraceSource};

/// Longest line that is read, in bytes.
const LINE: usize = 1 << 20;
/// Most lines before a header.
const PREAMBLE: usize = 2000;

/// Names of columns by contents; the first name that occurs counts.
const NAME: &[&str] = &["kernel_name", "kernelname", "name"];
const START: &[&str] = &["start_timestamp", "beginns", "start_ns"];
const END: &[&str] = &["end_timestamp", "endns", "end_ns"];
const CALLS: &[&str] = &["calls", "instances", "count"];
const TOTAL: &[&str] = &[
    "totaldurationns",
    "total time (ns)",
    "duration (nsec)",
    "total_duration",
    "sum(ns)",
];
const MEDIAN: &[&str] = &["med (ns)", "median (ns)"];
const MIN: &[&str] = &["minns", "min (ns)", "minimum (ns)", "min (nsec)"];
const MAX: &[&str] = &["maxns", "max (ns)", "maximum (ns)", "max (nsec)"];
const STD: &[&str] = &["stddev", "stddev (ns)", "std_dev"];

/// rocprofv3's table of kernels with start and end, its table of sums, and the table of sums of nsys.
const KERNEL_TRACE: &str = "rocprofv3 kernel_trace.csv";
const KERNEL_STATS: &str = "rocprofv3 kernel_stats.csv";
const KERN_SUM: &str = "nsys cuda_gpu_kern_sum.csv";

/// Whether the data begin with a table of kernels.
pub(crate) fn recognises(head: &FileHead) -> bool {
    header(&head.bytes).is_some_and(|header| format(&header).is_some())
}

/// The format of a table, from its header.
fn format(header: &[String]) -> Option<&'static str> {
    let is = |name: &str| header.iter().any(|column| column == name);
    if has(header, &[NAME, START, END]) && !is("counter_name") {
        Some(KERNEL_TRACE)
    } else if has(header, &[NAME, CALLS, TOTAL]) && !is("instances") {
        Some(KERNEL_STATS)
    } else {
        let sums = is("name") && is("instances") && is("total time (ns)");
        sums.then_some(KERN_SUM)
    }
}

/// Whether this is a table of kernels with other separators between cells or lines.
pub(crate) fn is_respelled(head: &[u8]) -> bool {
    let text = String::from_utf8_lossy(head);
    header(
        text.replace('\r', "\n")
            .replace([';', '\t'], ",")
            .as_bytes(),
    )
    .is_some()
}

/// What to do with other tables of rocprofv3 and of Nsight Systems.
const OF_ROCPROF: &str = "Open the *_kernel_trace.csv or *_kernel_stats.csv of the same run.";
const OF_NSYS: &str = "Run `nsys stats --report cuda_gpu_kern_sum --format csv FILE.nsys-rep`, or `nsys export --type sqlite \
                       FILE.nsys-rep`, and open the result.";

/// Tables of the same tools that are not read: their columns, what they are, and what to do.
const SIBLINGS: [(&[&str], &str, &str); 9] = [
    (
        &["counter_name", "counter_value"],
        "a table of hardware counters with one row for each counter of a kernel, without kernel times",
        OF_ROCPROF,
    ),
    (
        &["direction", "start_timestamp"],
        "rocprofv3's table of copies, without kernel times",
        OF_ROCPROF,
    ),
    (
        &["function", "start_timestamp"],
        "rocprofv3's table of API calls, without kernel times",
        OF_ROCPROF,
    ),
    (
        &["cu_count"],
        "rocprofv3's table of agents, without kernel times",
        OF_ROCPROF,
    ),
    (
        &["start (ns)", "duration (ns)", "grdx"],
        "Nsight Systems' list of kernels and copies (cuda_gpu_trace), which is not read",
        OF_NSYS,
    ),
    (
        &["time (%)", "total time (ns)", "num calls"],
        "Nsight Systems' table of calls (such as cuda_api_sum), without kernel times",
        OF_NSYS,
    ),
    (
        &["time (%)", "total time (ns)"],
        "a table of Nsight Systems' without kernels (such as cuda_gpu_mem_time_sum or nvtx_sum)",
        OF_NSYS,
    ),
    (
        &["start (ns)", "duration (ns)"],
        "a list of Nsight Systems' without kernels (such as cuda_api_trace)",
        OF_NSYS,
    ),
    (
        &["total (mb)", "operation"],
        "Nsight Systems' table of copied bytes (cuda_gpu_mem_size_sum), without kernel times",
        OF_NSYS,
    ),
];

/// Why a table of the same tools is not read.
pub(crate) fn sibling(head: &[u8]) -> Option<OpenError> {
    let text = String::from_utf8_lossy(head);
    text.lines().take(PREAMBLE).map(columns).find_map(|header| {
        let is = |names: &[&str]| names.iter().all(|name| has(&header, &[&[*name]]));
        let (_, what, next) = SIBLINGS.iter().find(|(names, ..)| is(names))?;
        Some(OpenError::new(format!("is {what}."), *next))
    })
}

fn has(header: &[String], wanted: &[&[&str]]) -> bool {
    wanted.iter().all(|names| find(header, names).is_some())
}

fn find(header: &[String], names: &[&str]) -> Option<usize> {
    names
        .iter()
        .find_map(|name| header.iter().position(|column| column == name))
}

/// The header of a table of kernels among the first lines.
fn header(bytes: &[u8]) -> Option<Vec<String>> {
    let text = String::from_utf8_lossy(bytes);
    let mut lines = text.lines().take(PREAMBLE).map(columns);
    lines.find(|line| is_header(line))
}

fn is_header(line: &[String]) -> bool {
    let one_line = !line.iter().any(|cell| cell.contains('\r'));
    line.len() > 2
        && one_line
        && (has(line, &[NAME, START, END]) || has(line, &[NAME, CALLS, TOTAL]))
}

/// Names of columns in lower case.
fn columns(line: &str) -> Vec<String> {
    let cells = cells(line).unwrap_or_default();
    cells
        .iter()
        .map(|cell| cell.trim().to_ascii_lowercase())
        .collect()
}

/// The cells of a line; `None` if it ends inside quotes. A quote ends a cell only before a comma or at the end.
fn cells(line: &str) -> Option<Vec<String>> {
    let mut cells = Vec::new();
    let mut rest = line;
    loop {
        if let Some(quoted) = rest.strip_prefix('"') {
            let (mut cell, mut at) = (String::new(), 0);
            loop {
                let quote = at + quoted[at..].find('"')?;
                cell.push_str(&quoted[at..quote]);
                let after = &quoted[quote + 1..];
                if after.is_empty() || after.starts_with(',') {
                    cells.push(cell);
                    rest = after;
                    break;
                }
                cell.push('"');
                at = quote + 1 + usize::from(after.starts_with('"'));
            }
        } else {
            let end = rest.find(',').unwrap_or(rest.len());
            cells.push(rest[..end].to_owned());
            rest = &rest[end..];
        }
        match rest.strip_prefix(',') {
            Some(more) => rest = more,
            None => return Some(cells),
        }
    }
}

/// The rows of a table below its header.
struct Table<'a, 'b> {
    lines: BufReader<&'a mut TraceSource<'b>>,
    header: Vec<String>,
    /// Lines read so far.
    line: u64,
    /// Whether the last line ended without a line break.
    open: bool,
}

impl<'a, 'b> Table<'a, 'b> {
    fn new(source: &'a mut TraceSource<'b>) -> Self {
        let lines = BufReader::with_capacity(256 * 1024, source);
        let mut table = Self {
            lines,
            header: Vec::new(),
            line: 0,
            open: false,
        };
        while table.header.is_empty() && table.line < PREAMBLE as u64 {
            let Some(line) = table.next_line() else { break };
            let line = columns(&line);
            if is_header(&line) {
                table.header = line;
            }
        }
        table
    }

    fn next_line(&mut self) -> Option<String> {
        let mut bytes = Vec::new();
        let limited = &mut std::io::Read::take(&mut self.lines, LINE as u64);
        if limited.read_until(b'\n', &mut bytes).unwrap_or(0) == 0 {
            return None;
        }
        self.line += 1;
        self.open = bytes.last() != Some(&b'\n');
        while matches!(bytes.last(), Some(b'\n' | b'\r')) {
            bytes.pop();
        }
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn column(&self, names: &[&str]) -> Option<usize> {
        find(&self.header, names)
    }

    /// The next row with as many cells as the header: its line number and its cells. The table ends at a blank line.
    fn row(&mut self, out: &mut TraceBuilder) -> Option<(u64, Vec<String>)> {
        loop {
            let mut text = self.next_line()?;
            let line = self.line;
            let place = || format!("line {line}");
            if text.trim().is_empty() {
                return None;
            }
            let mut cells = cells(&text);
            // A quoted name may span several lines.
            for _ in 0..3 {
                if cells.is_some() || self.open {
                    break;
                }
                let Some(more) = self.next_line() else { break };
                text = format!("{text} {more}");
                cells = self::cells(&text);
            }
            let Some(mut cells) = cells else {
                out.unread("a quote is not closed", place);
                continue;
            };
            if cells.len() > self.header.len()
                && let Some(name) = self.column(NAME)
            {
                // A quote inside the name ended it too early.
                let surplus = cells.len() - self.header.len();
                let quoted = text.contains('"');
                let joined = cells[name..=name + surplus].join(if quoted { "\"," } else { "," });
                let joined = joined.strip_suffix('"').unwrap_or(&joined).to_owned();
                cells.splice(name..=name + surplus, [joined]);
            }
            if cells.len() != self.header.len() {
                let why = if self.open {
                    "the line ends early"
                } else {
                    "another number of cells than the header"
                };
                out.unread(why, place);
                continue;
            }
            return Some((line, cells));
        }
    }

    /// Marks the trace as truncated if the file ends inside a row.
    fn check_end(&self, out: &mut TraceBuilder) {
        let cut = out
            .trace()
            .unread
            .iter()
            .any(|it| it.why == "the line ends early" || it.why.starts_with("a quote"));
        if self.open && cut {
            out.trace().truncated = Some(format!("The table ends inside line {}.", self.line));
        }
    }
}

/// Reads a table.
pub(crate) fn read(source: &mut TraceSource<'_>) -> Result<Trace, OpenError> {
    let name = source.name().to_owned();
    let mut table = Table::new(source);
    let no_header = || {
        OpenError::new(
            "has no header with columns of kernels.",
            "Open the file that the profiler wrote.",
        )
    };
    let format = format(&table.header).ok_or_else(no_header)?;
    let mut out = TraceBuilder::new(&name, format, format == KERNEL_TRACE);
    let read = match format {
        KERNEL_TRACE => kernels(&mut table, &mut out),
        _ => sums(&mut table, &mut out),
    };
    read.ok_or_else(no_header)?;
    table.check_end(&mut out);
    source.done();
    let trace = out.trace();
    trace.holds.kernels = true;
    if trace
        .stats
        .as_ref()
        .is_some_and(|rows| no_kernels(&trace.names, rows))
    {
        return Err(OpenError::new(
            "is a table of API calls or domains, not of kernels.",
            "Open the *_kernel_stats.csv or *_kernel_trace.csv of the same run.",
        ));
    }
    Ok(out.finish())
}

/// Reads kernels with start and end. Returns `None` if a column is missing.
fn kernels(table: &mut Table<'_, '_>, out: &mut TraceBuilder) -> Option<()> {
    let [name, start, end] = [NAME, START, END].map(|names| table.column(names));
    let (name, start, end) = (name?, start?, end?);
    let agent = table.column(&["agent_id", "agent", "gpu-id", "gpu_id"]);
    let queue = table.column(&["queue_id", "queue-id"]);
    let sizes = |table: &Table<'_, '_>, what: &str| {
        ["x", "y", "z"].map(|axis| table.column(&[&format!("{what}_size_{axis}")]))
    };
    let (grid, block) = (sizes(table, "grid"), sizes(table, "workgroup"));
    let mut lanes: HashMap<(String, String), u32> = HashMap::new();
    while let Some((line, cells)) = table.row(out) {
        let place = || format!("line {line}");
        let time = |at: usize| cells[at].trim().parse::<u64>().ok();
        let (Some(start), Some(end)) = (time(start), time(end)) else {
            out.unread("a time is not a 64-bit integer", place);
            continue;
        };
        let cell = |at: Option<usize>| at.map_or("", |at| cells[at].trim());
        let key = (device(cell(agent)), cell(queue).to_owned());
        let lane = *lanes.entry(key).or_insert_with_key(|(device, queue)| {
            out.device_lane(device, &format!("queue {queue}"))
        });
        let id = out.name(&cells[name]);
        let Some(slice) = out.slice(
            SliceKind::Kernel,
            lane,
            id,
            (start.into(), end.into()),
            place,
        ) else {
            continue;
        };
        let size = |axes: [Option<usize>; 3]| {
            let [x, y, z] = axes.map(|axis| cell(axis).parse().ok());
            Some([x?, y?, z?])
        };
        out.detail(slice, Detail::of_launch(size(grid), size(block)));
    }
    out.trace().grid_in_items = true;
    Some(())
}

/// The device of an agent: `4` of `Agent 4`.
pub(crate) fn device(agent: &str) -> String {
    let number = agent.trim_start_matches(|c: char| !c.is_ascii_digit());
    if number.is_empty() { agent } else { number }.to_owned()
}

/// Reads sums. Returns `None` if a column is missing.
fn sums(table: &mut Table<'_, '_>, out: &mut TraceBuilder) -> Option<()> {
    let [name, calls, total] = [NAME, CALLS, TOTAL].map(|names| table.column(names));
    let (name, calls, total) = (name?, calls?, total?);
    let [median, min, max, std] = [MEDIAN, MIN, MAX, STD].map(|names| table.column(names));
    let mut stats: Vec<KernelStat> = Vec::new();
    let mut known: HashMap<u32, usize> = HashMap::new();
    while let Some((line, cells)) = table.row(out) {
        let number = |at: usize| whole(&cells[at]);
        let (Some(calls), Some(total)) = (number(calls), number(total)) else {
            out.unread("calls or total are not numbers", || format!("line {line}"));
            continue;
        };
        let some = |at: Option<usize>| at.and_then(number);
        let id = out.name(&cells[name]);
        let row = KernelStat {
            name: id,
            calls,
            total,
            median: some(median),
            min: some(min),
            max: some(max),
            std_dev: std.and_then(|at| cells[at].trim().parse().ok()),
        };
        // With launch shapes, a name has several rows, whose medians cannot be combined.
        match known.get(&id) {
            None => {
                known.insert(id, stats.len());
                stats.push(row);
            }
            Some(&at) => {
                let sum = &mut stats[at];
                sum.calls = sum.calls.saturating_add(row.calls);
                sum.total = sum.total.saturating_add(row.total);
                sum.min = sum.min.min(row.min);
                sum.max = sum.max.max(row.max);
                (sum.median, sum.std_dev) = (None, None);
            }
        }
    }
    out.trace().stats = Some(stats);
    Some(())
}

/// Whether all rows are calls of an API, or domains.
fn no_kernels(names: &[Arc<str>], rows: &[KernelStat]) -> bool {
    let calls = ["hip", "hsa_", "roctx", "__hip"];
    let domain =
        |name: &str| name.len() > 3 && name.bytes().all(|b| b.is_ascii_uppercase() || b == b'_');
    let no_kernel = |row: &KernelStat| {
        let name = &names[row.name as usize];
        calls.iter().any(|call| name.starts_with(call)) || domain(name)
    };
    !rows.is_empty() && rows.iter().all(no_kernel)
}

/// A number as whole nanoseconds: `440`, `440.0`, `1,024`.
fn whole(cell: &str) -> Option<u64> {
    let cell = cell.trim().replace(',', "");
    cell.parse().ok().or_else(|| {
        let number: f64 = cell.parse().ok()?;
        (0.0..1.8e19)
            .contains(&number)
            .then_some(number.round() as u64)
    })
}
