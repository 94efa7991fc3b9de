//! Traces of several ranks: the files of a folder as one trace, in which each rank is a process.

use std::path::{Path, PathBuf};

use super::model::{
    Counter, Detail, Doubt, Holds, Lane, NONE, Process, Slice, Trace, TraceBuilder, Unread,
};
use super::source::{OpenError, ReadProgress};

/// The largest number of files in a folder.
const FILES: usize = 4096;

/// The traces of a folder, joined.
pub struct Folder {
    /// The trace of all ranks; with one rank, the trace of its file as it is.
    pub trace: Trace,
    /// The errors of files that are not a trace.
    pub skipped: Vec<OpenError>,
}

/// Opens every trace in a folder, one file for each rank, and joins them. The rank of a file is in the file, or else in its name. Files
/// in inner folders are not read. `progress` is called with the progress of one file after the other.
///
/// # Errors
///
/// If the folder cannot be read, has more than 4096 files, or has no trace.
pub fn open_folder(
    folder: &Path,
    progress: &mut dyn FnMut(ReadProgress),
) -> Result<Folder, OpenError> {
    let in_folder = |error: OpenError| OpenError {
        path: folder.display().to_string(),
        ..error
    };
    let files = files_of(folder).map_err(in_folder)?;
    let mut ranks = Vec::new();
    let mut skipped = Vec::new();
    for path in files {
        match super::open(&path, progress) {
            Ok(trace) if trace.slices.is_empty() => skipped.push(OpenError {
                path: path.display().to_string(),
                ..OpenError::new("holds no events with times.", "Open it alone.")
            }),
            Ok(trace) => {
                let rank = trace.rank.or_else(|| rank_in_name(&trace.source));
                ranks.push((rank, trace));
            }
            Err(error) => skipped.push(error),
        }
    }
    if ranks.is_empty() {
        let first = skipped
            .first()
            .map(|error| format!(" The first file: {error}"));
        let what = format!("is a folder without a trace.{}", first.unwrap_or_default());
        let next = "Put the trace of each rank into it.";
        return Err(in_folder(OpenError::new(what, next)));
    }
    ranks.sort_by(|(a, first), (b, second)| {
        (a.is_none(), a, &first.source).cmp(&(b.is_none(), b, &second.source))
    });
    let name = folder.file_name().unwrap_or(folder.as_os_str());
    let trace = join(&name.to_string_lossy(), ranks);
    Ok(Folder { trace, skipped })
}

/// Returns the files of a folder by name, without hidden files.
fn files_of(folder: &Path) -> Result<Vec<PathBuf>, OpenError> {
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(OpenError::unreadable)? {
        let path = entry.map_err(OpenError::unreadable)?.path();
        let is_hidden = path
            .file_name()
            .is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        if !is_hidden && path.is_file() {
            files.push(path);
        }
    }
    if files.len() > FILES {
        return Err(OpenError::new(
            format!("has {} files, more than {FILES}.", files.len()),
            "Put the traces of one run into a folder of their own.",
        ));
    }
    files.sort();
    Ok(files)
}

/// Returns the rank in a file's name: 3 for `rank-3.json.gz` and `worker_rank3.json`.
fn rank_in_name(name: &str) -> Option<u64> {
    let lower = name.to_ascii_lowercase();
    let after = lower[lower.rfind("rank")? + "rank".len()..]
        .trim_start_matches(['-', '_', '.', '=', '[', ' ']);
    let digits = after
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(after.len());
    after[..digits].parse().ok()
}

/// Joins the traces of several ranks, each with its rank if that is known. Processes, lanes and devices of different ranks stay apart.
/// One trace alone stays as it is.
pub fn join(source: &str, mut ranks: Vec<(Option<u64>, Trace)>) -> Trace {
    if let [_] = ranks[..]
        && let Some((rank, mut only)) = ranks.pop()
    {
        only.rank = rank;
        return only;
    }
    let first = ranks.first().map_or("", |(_, trace)| trace.format);
    let has_one_format = ranks.iter().all(|(_, trace)| trace.format == first);
    let format = if has_one_format {
        first
    } else {
        "several formats"
    };
    let mut out = TraceBuilder::new(source, format, false);
    let known: Vec<u64> = ranks.iter().filter_map(|(rank, _)| *rank).collect();
    // A count can be 0 only if every file can contain such records.
    let holds = ranks
        .iter()
        .map(|(_, trace)| trace.holds)
        .reduce(|all, file| Holds {
            kernels: true,
            calls: all.calls && file.calls,
            copies: all.copies && file.copies,
            memsets: all.memsets && file.memsets,
            annotations: all.annotations || file.annotations,
            graphs: all.graphs || file.graphs,
        });
    for (rank, trace) in ranks {
        let label = match rank {
            Some(rank) if known.iter().filter(|other| **other == rank).count() == 1 => {
                format!("rank {rank}")
            }
            Some(rank) => format!("rank {rank} ({})", trace.source),
            None => trace.source.clone(),
        };
        append(&mut out, trace, rank, &label);
    }
    let mut trace = out.finish_joined();
    trace.holds = holds.unwrap_or_default();
    trace
}

/// Appends the trace of a rank. `label` names the rank, and begins the names of its processes, devices and counters.
fn append(out: &mut TraceBuilder, mut trace: Trace, rank: Option<u64>, label: &str) {
    let names: Vec<u32> = trace.names.iter().map(|name| out.name(name)).collect();
    let devices: Vec<u32> = trace
        .devices
        .iter()
        .map(|device| out.device(&format!("{label}: {device}")))
        .collect();
    let all = out.trace();
    let first_process = all.processes.len() as u32;
    let first_lane = all.lanes.len() as u32;
    let first_slice = all.slices.len() as u32;
    let first_detail = all.details.len() as u32;
    if trace.processes.is_empty() {
        trace.processes.push(Process::default());
        for lane in &mut trace.lanes {
            lane.process = Some(0);
        }
    }
    for process in &trace.processes {
        let label = match process.label.as_str() {
            "" => label.to_owned(),
            own => format!("{label} {own}"),
        };
        all.processes.push(Process {
            label,
            rank,
            file: Some(trace.source.clone()),
        });
    }
    for lane in &trace.lanes {
        all.lanes.push(Lane {
            group: format!("{label} {}", lane.group),
            device: lane.device.map(|id| devices[id as usize]),
            process: lane.process.map(|id| first_process + id),
            ..lane.clone()
        });
    }
    all.details.extend(trace.details.iter().map(|detail| {
        Detail {
            collective: detail
                .collective
                .map(|(id, number)| (names[id as usize], number)),
            ..*detail
        }
    }));
    let time = |stored: i64| i64::try_from(trace.clock(stored)).unwrap_or(i64::MAX);
    let shifted = |index: u32, first: u32| if index == NONE { NONE } else { first + index };
    all.slices.extend(trace.slices.iter().map(|slice| Slice {
        start: time(slice.start),
        end: time(slice.end),
        lane: first_lane + slice.lane,
        name: names[slice.name as usize],
        link: shifted(slice.link, first_slice),
        detail: shifted(slice.detail, first_detail),
        kind: slice.kind,
    }));
    for counter in &trace.counters {
        all.counters.push(Counter {
            name: format!("{label}: {}", counter.name),
            ..counter.clone()
        });
    }
    let with_file = |first: &str| format!("{first} of {}", trace.source);
    all.unread.extend(trace.unread.iter().map(|unread| Unread {
        first: with_file(&unread.first),
        ..unread.clone()
    }));
    all.doubts.extend(trace.doubts.iter().map(|doubt| Doubt {
        first: with_file(&doubt.first),
        ..doubt.clone()
    }));
    if let Some(why) = &trace.truncated {
        all.truncated
            .get_or_insert(format!("{}: {why}", trace.source));
    }
    all.world = all.world.max(trace.world);
    all.grid_in_items |= trace.grid_in_items;
    all.unknown_device = all.unknown_device.take().or(trace.unknown_device);
}
