//! Tables: rocprofv3's `kernel_trace.csv` and `kernel_stats.csv` with all their headers so far, and the output of `nsys stats` for
//! `cuda_gpu_kern_sum`. Columns are found by name, in any order and case. Cells are split here because rocprofv3 does not double
//! quotes inside a name, which CSV readers cannot handle.

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::sync::Arc;

use super::model::{Detail, KernelStat, SliceKind, Trace, TraceBuilder};
use super::source::{FileHead, OpenError, TraceSource};

/// The longest line that is read, in bytes.
const LINE: usize = 1 << 20;
/// The largest number of lines before a header.
const PREAMBLE: usize = 2000;

/// The names that a column with some contents can have. The first name that occurs in a table counts.
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

/// The format of rocprofv3's table of kernels with start and end.
const KERNEL_TRACE: &str = "rocprofv3 kernel_trace.csv";
/// The format of rocprofv3's table of sums.
const KERNEL_STATS: &str = "rocprofv3 kernel_stats.csv";
/// The format of the table of sums of nsys.
const KERN_SUM: &str = "nsys cuda_gpu_kern_sum.csv";

/// Returns true if the data begin with a table of kernels.
pub(crate) fn recognises(head: &FileHead) -> bool {
    header(&head.bytes).is_some_and(|header| format(&header).is_some())
}

/// Returns the format of a table, from its header.
fn format(header: &[String]) -> Option<&'static str> {
    let is = |name: &str| header.iter().any(|column| column == name);
    if has(header, &[NAME, START, END]) && !is("counter_name") {
        Some(KERNEL_TRACE)
    } else if has(header, &[NAME, CALLS, TOTAL]) && !is("instances") {
        Some(KERNEL_STATS)
    } else {
        let has_sums = is("name") && is("instances") && is("total time (ns)");
        has_sums.then_some(KERN_SUM)
    }
}

/// Returns true for a table of kernels with other separators between cells or lines.
pub(crate) fn has_other_separators(head: &[u8]) -> bool {
    let text = String::from_utf8_lossy(head);
    let with_commas = text.replace('\r', "\n").replace([';', '\t'], ",");
    header(with_commas.as_bytes()).is_some()
}

/// Advice for a table of rocprofv3 that is not read.
const OPEN_KERNELS: &str = "Open the *_kernel_trace.csv or *_kernel_stats.csv of the same run.";
/// Advice for a table of Nsight Systems that is not read.
const EXPORT_KERNELS: &str = "Run `nsys stats --report cuda_gpu_kern_sum --format csv FILE.nsys-rep`, or `nsys export --type sqlite \
                       FILE.nsys-rep`, and open the result.";

/// Tables of the known tools that are not read: some of their columns, what they contain, and what to do.
const OTHER_TABLES: [(&[&str], &str, &str); 9] = [
    (
        &["counter_name", "counter_value"],
        "a table of hardware counters with one row for each counter of a kernel, without kernel \
         times",
        OPEN_KERNELS,
    ),
    (
        &["direction", "start_timestamp"],
        "rocprofv3's table of copies, without kernel times",
        OPEN_KERNELS,
    ),
    (
        &["function", "start_timestamp"],
        "rocprofv3's table of API calls, without kernel times",
        OPEN_KERNELS,
    ),
    (
        &["cu_count"],
        "rocprofv3's table of agents, without kernel times",
        OPEN_KERNELS,
    ),
    (
        &["start (ns)", "duration (ns)", "grdx"],
        "Nsight Systems' list of kernels and copies (cuda_gpu_trace), which is not read",
        EXPORT_KERNELS,
    ),
    (
        &["time (%)", "total time (ns)", "num calls"],
        "Nsight Systems' table of calls (such as cuda_api_sum), without kernel times",
        EXPORT_KERNELS,
    ),
    (
        &["time (%)", "total time (ns)"],
        "a table of Nsight Systems' without kernels (such as cuda_gpu_mem_time_sum or nvtx_sum)",
        EXPORT_KERNELS,
    ),
    (
        &["start (ns)", "duration (ns)"],
        "a list of Nsight Systems' without kernels (such as cuda_api_trace)",
        EXPORT_KERNELS,
    ),
    (
        &["total (mb)", "operation"],
        "Nsight Systems' table of copied bytes (cuda_gpu_mem_size_sum), without kernel times",
        EXPORT_KERNELS,
    ),
];

/// Explains why another table of a known tool is not read; `None` if this is not such a table.
pub(crate) fn explain_other_table(head: &[u8]) -> Option<OpenError> {
    let text = String::from_utf8_lossy(head);
    text.lines().take(PREAMBLE).map(columns).find_map(|header| {
        let has_all = |names: &[&str]| names.iter().all(|name| has(&header, &[&[*name]]));
        let (_, what, next) = OTHER_TABLES.iter().find(|(names, ..)| has_all(names))?;
        Some(OpenError::new(format!("is {what}."), *next))
    })
}

/// Returns true if a header has all wanted columns, each under one of its names.
fn has(header: &[String], wanted: &[&[&str]]) -> bool {
    wanted.iter().all(|names| find(header, names).is_some())
}

/// Returns the position of a column that can have several names.
fn find(header: &[String], names: &[&str]) -> Option<usize> {
    names
        .iter()
        .find_map(|name| header.iter().position(|column| column == name))
}

/// Finds the header of a table of kernels among the first lines. Returns its names of columns in lower case.
fn header(bytes: &[u8]) -> Option<Vec<String>> {
    let text = String::from_utf8_lossy(bytes);
    let mut lines = text.lines().take(PREAMBLE).map(columns);
    lines.find(|line| is_header(line))
}

fn is_header(line: &[String]) -> bool {
    let is_one_line = !line.iter().any(|cell| cell.contains('\r'));
    line.len() > 2
        && is_one_line
        && (has(line, &[NAME, START, END]) || has(line, &[NAME, CALLS, TOTAL]))
}

/// Splits a header into names of columns, in lower case.
fn columns(line: &str) -> Vec<String> {
    let cells = cells(line).unwrap_or_default();
    cells
        .iter()
        .map(|cell| cell.trim().to_ascii_lowercase())
        .collect()
}

/// Splits a line into cells; `None` if it ends inside quotes. A quote ends a cell only before a comma or at the end.
fn cells(line: &str) -> Option<Vec<String>> {
    let mut cells = Vec::new();
    let mut rest = line;
    loop {
        if let Some(quoted) = rest.strip_prefix('"') {
            let mut cell = String::new();
            let mut at = 0;
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
    /// The number of lines read so far.
    line: u64,
    /// True if the last line ended without a line break.
    is_open: bool,
}

impl<'a, 'b> Table<'a, 'b> {
    fn new(source: &'a mut TraceSource<'b>) -> Self {
        let lines = BufReader::with_capacity(256 * 1024, source);
        let mut table = Self {
            lines,
            header: Vec::new(),
            line: 0,
            is_open: false,
        };
        while table.header.is_empty() && table.line < PREAMBLE as u64 {
            let Some(line) = table.next_line() else { break };
            let names = columns(&line);
            if is_header(&names) {
                table.header = names;
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
        self.is_open = bytes.last() != Some(&b'\n');
        while matches!(bytes.last(), Some(b'\n' | b'\r')) {
            bytes.pop();
        }
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn column(&self, names: &[&str]) -> Option<usize> {
        find(&self.header, names)
    }

    /// Returns the line number and the cells of the next row that has as many cells as the header. Other rows are counted as unread. `None`
    /// at the end of the table, which may be a blank line.
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
                if cells.is_some() || self.is_open {
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
                // A quote inside the name ended its cell too early: the pieces of the name are joined again.
                let surplus = cells.len() - self.header.len();
                let separator = if text.contains('"') { "\"," } else { "," };
                let joined = cells[name..=name + surplus].join(separator);
                let whole = joined.strip_suffix('"').unwrap_or(&joined).to_owned();
                cells.splice(name..=name + surplus, [whole]);
            }
            if cells.len() != self.header.len() {
                let why = if self.is_open {
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
        let is_cut =
            out.trace().unread.iter().any(|unread| {
                unread.why == "the line ends early" || unread.why.starts_with("a quote")
            });
        if self.is_open && is_cut {
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
    let read = if format == KERNEL_TRACE {
        read_kernels(&mut table, &mut out)
    } else {
        read_sums(&mut table, &mut out)
    };
    read.ok_or_else(no_header)?;
    table.check_end(&mut out);
    source.done();
    let trace = out.trace();
    trace.holds.kernels = true;
    let stats = trace.stats.as_deref();
    if stats.is_some_and(|rows| is_without_kernels(&trace.names, rows)) {
        return Err(OpenError::new(
            "is a table of API calls or domains, not of kernels.",
            "Open the *_kernel_stats.csv or *_kernel_trace.csv of the same run.",
        ));
    }
    Ok(out.finish())
}

/// Reads kernels with start and end. Returns `None` if a column is missing.
fn read_kernels(table: &mut Table<'_, '_>, out: &mut TraceBuilder) -> Option<()> {
    let [name, start, end] = [NAME, START, END].map(|names| table.column(names));
    let (name, start, end) = (name?, start?, end?);
    let agent = table.column(&["agent_id", "agent", "gpu-id", "gpu_id"]);
    let queue = table.column(&["queue_id", "queue-id"]);
    let axes = |table: &Table<'_, '_>, what: &str| {
        ["x", "y", "z"].map(|axis| table.column(&[&format!("{what}_size_{axis}")]))
    };
    let grid = axes(table, "grid");
    let block = axes(table, "workgroup");
    let mut lanes: HashMap<(String, String), u32> = HashMap::new();
    while let Some((line, cells)) = table.row(out) {
        let place = || format!("line {line}");
        let time = |at: usize| cells[at].trim().parse::<u64>().ok();
        let (Some(start), Some(end)) = (time(start), time(end)) else {
            out.unread("a time is not a 64-bit integer", place);
            continue;
        };
        let cell = |at: Option<usize>| at.map_or("", |at| cells[at].trim());
        let key = (device_number(cell(agent)), cell(queue).to_owned());
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
        out.detail(slice, Detail::from_launch(size(grid), size(block)));
    }
    out.trace().grid_in_items = true;
    Some(())
}

/// Returns the number of a device from the name of its agent: `4` for `Agent 4`. A name without a number stays as it is.
pub(crate) fn device_number(agent: &str) -> String {
    let number = agent.trim_start_matches(|c: char| !c.is_ascii_digit());
    let label = if number.is_empty() { agent } else { number };
    label.to_owned()
}

/// Reads sums. Returns `None` if a column is missing.
fn read_sums(table: &mut Table<'_, '_>, out: &mut TraceBuilder) -> Option<()> {
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
                sum.median = None;
                sum.std_dev = None;
            }
        }
    }
    out.trace().stats = Some(stats);
    Some(())
}

/// Returns true if all rows are calls of an API, or domains.
fn is_without_kernels(names: &[Arc<str>], rows: &[KernelStat]) -> bool {
    let calls = ["hip", "hsa_", "roctx", "__hip"];
    let is_domain =
        |name: &str| name.len() > 3 && name.bytes().all(|b| b.is_ascii_uppercase() || b == b'_');
    let is_no_kernel = |row: &KernelStat| {
        let name = &names[row.name as usize];
        calls.iter().any(|call| name.starts_with(call)) || is_domain(name)
    };
    !rows.is_empty() && rows.iter().all(is_no_kernel)
}

/// Reads a number of a cell as a whole number: `440`, `440.0`, `1,024`. `None` for anything else.
fn whole(cell: &str) -> Option<u64> {
    let plain = cell.trim().replace(',', "");
    plain.parse().ok().or_else(|| {
        let number: f64 = plain.parse().ok()?;
        (0.0..1.8e19)
            .contains(&number)
            .then_some(number.round() as u64)
    })
}
