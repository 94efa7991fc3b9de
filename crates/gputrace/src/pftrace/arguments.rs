//! The arguments of an event of a Perfetto trace.

use super::{Sequence, lossy};
use crate::proto::TrackEvent;

/// The arguments of an event that are read.
#[derive(Default)]
pub(super) struct EventArguments {
    /// The start of the event in nanoseconds, if it has its own.
    pub(super) begin: Option<u64>,
    /// The end of the event in nanoseconds, if it has its own.
    pub(super) end: Option<u64>,
    /// The number that a call shares with the work that it launched.
    pub(super) correlation: Option<u64>,
    /// The number of bytes copied or filled.
    pub(super) bytes: Option<u64>,
    /// The device that does the work.
    pub(super) agent: Option<String>,
    /// The device that a copy reads from.
    pub(super) from: Option<String>,
    /// The device that a copy writes to.
    pub(super) to: Option<String>,
    /// The size of the launch in x, y and z.
    pub(super) grid: [Option<u32>; 3],
    /// True if `grid` counts work items instead of workgroups.
    pub(super) grid_in_items: bool,
    /// The size of a workgroup in x, y and z, in work items.
    pub(super) block: [Option<u32>; 3],
}

/// Reads the arguments of an event. `sequence` has the names that the event refers to by number.
pub(super) fn read_arguments(sequence: &Sequence, event: &TrackEvent) -> EventArguments {
    let mut arguments = EventArguments::default();
    for annotation in &event.debug_annotations {
        let known = || sequence.annotations.get(&annotation.name_iid()).cloned();
        let name = match &annotation.name {
            Some(name) => lossy(name),
            None => known().unwrap_or_default(),
        };
        let signed = annotation.int_value.map(i64::cast_unsigned);
        let whole = annotation.uint_value.or(signed);
        let text = || match (&annotation.string_value, annotation.string_value_iid, whole) {
            (Some(text), ..) => Some(lossy(text)),
            (None, Some(id), _) => sequence.values.get(&id).cloned(),
            (None, None, Some(number)) => Some(number.to_string()),
            _ => None,
        };
        let size = whole.and_then(|number| u32::try_from(number).ok());
        // The value is one number for all work items, or a text with three numbers.
        let sizes = || {
            let text = text().unwrap_or_default();
            let words = text.split(|c: char| !c.is_ascii_digit());
            let mut numbers = words.filter_map(|word| word.parse().ok());
            [numbers.next(), numbers.next(), numbers.next()]
        };
        match name.as_str() {
            "begin_ns" => arguments.begin = whole,
            "end_ns" => arguments.end = whole,
            "corr_id" => arguments.correlation = whole,
            "copy_bytes" | "bytes" => arguments.bytes = whole,
            "agent" => arguments.agent = text(),
            "src_agent" => arguments.from = text(),
            "dst_agent" => arguments.to = text(),
            "grid_size" => {
                // rocprofv3 counts all work items.
                arguments.grid = sizes();
                arguments.grid_in_items = true;
            }
            "workgroup_size" => arguments.block = sizes(),
            "grid_x" => arguments.grid[0] = size,
            "grid_y" => arguments.grid[1] = size,
            "grid_z" => arguments.grid[2] = size,
            "workgroup_x" => arguments.block[0] = size,
            "workgroup_y" => arguments.block[1] = size,
            "workgroup_z" => arguments.block[2] = size,
            _ => {}
        }
    }
    arguments
}
