//! Writes the kernels of a trace as rocprofv3's tables `kernel_trace.csv` and `kernel_stats.csv`, with its headers of 2025.
//! An empty cell means that a value is not known. Spreadsheets interpret no cell as a formula.

use std::fmt::Write;

use super::super::figures::Summary;
use super::super::model::{SliceKind, Trace};
use super::super::names::is_hidden;

/// The header of `kernel_trace.csv`.
const TRACE: &str = "\"Kind\",\"Agent_Id\",\"Queue_Id\",\"Stream_Id\",\"Thread_Id\",\"Dispatch_Id\",\"Kernel_Id\",\"Kernel_Name\",\
    \"Correlation_Id\",\"Start_Timestamp\",\"End_Timestamp\",\"LDS_Block_Size\",\"Scratch_Size\",\"VGPR_Count\",\
    \"Accum_VGPR_Count\",\"SGPR_Count\",\"Workgroup_Size_X\",\"Workgroup_Size_Y\",\"Workgroup_Size_Z\",\"Grid_Size_X\",\
    \"Grid_Size_Y\",\"Grid_Size_Z\"";
/// The header of `kernel_stats.csv`.
const STATS: &str = "\"Name\",\"Calls\",\"TotalDurationNs\",\"AverageNs\",\"Percentage\",\"MinNs\",\"MaxNs\",\"StdDev\"";

/// Writes a text as a quoted cell. A text that a spreadsheet could take for a formula begins with `'`.
fn cell(text: &str) -> String {
    let clean = text.replace(is_hidden, " ").replace('"', "\"\"");
    let signs = ['=', '+', '-', '@', '＝', '＋', '－', '＠'];
    let is_formula = clean.trim_start().starts_with(signs);
    format!("\"{}{clean}\"", if is_formula { "'" } else { "" })
}

/// Writes a number; an unknown number is empty.
fn known(value: Option<impl ToString>) -> String {
    value.map_or(String::new(), |value| value.to_string())
}

/// Writes all kernels as the text of a `kernel_trace.csv`, by start. Times are nanoseconds of the file's own clock; grid sizes are in work
/// items, as in rocprofv3.
pub fn kernel_trace(trace: &Trace) -> String {
    let mut out = format!("{TRACE}\n");
    for (dispatch, slice) in (1_u64..).zip(trace.slices_of(SliceKind::Kernel)) {
        let lane = &trace.lanes[slice.lane as usize];
        let device = lane
            .device
            .and_then(|id| trace.devices.get(id as usize))
            .map_or("?", String::as_str);
        let detail = trace.detail(slice);
        let grid = detail
            .grid
            .and_then(|grid| match (trace.grid_in_items, detail.block) {
                (true, _) => Some(grid.map(u64::from)),
                (false, Some(block)) => {
                    Some([0, 1, 2].map(|axis| u64::from(grid[axis]) * u64::from(block[axis])))
                }
                (false, None) => None,
            });
        let sizes = |sizes: Option<[u64; 3]>| {
            [0, 1, 2]
                .map(|axis| known(sizes.map(|sizes| sizes[axis])))
                .join(",")
        };
        let _ = writeln!(
            out,
            "\"KERNEL_DISPATCH\",{},{},,,{dispatch},{},{},{},{},{},,,,,,{},{}",
            cell(&format!("Agent {device}")),
            slice.lane,
            slice.name,
            cell(trace.name(slice.name)),
            trace
                .linked(slice)
                .map_or(dispatch, |_| u64::from(slice.link)),
            trace.clock(slice.start),
            trace.clock(slice.end),
            sizes(detail.block.map(|block| block.map(u64::from))),
            sizes(grid),
        );
    }
    out
}

/// Writes all kernel names as the text of a `kernel_stats.csv`, longest total first. Times are nanoseconds.
pub fn kernel_stats(figures: &Summary) -> String {
    let mut out = format!("{STATS}\n");
    for row in &figures.table {
        let _ = writeln!(
            out,
            "{},{},{},{:.6},{:.6},{},{},{}",
            cell(&row.name),
            row.calls,
            row.total_ns,
            row.total_ns as f64 / row.calls.max(1) as f64,
            100.0 * row.share_of_kernels,
            known(row.min_ns),
            known(row.max_ns),
            known(row.std_dev_ns.map(|ns| format!("{ns:.6}"))),
        );
    }
    out
}
