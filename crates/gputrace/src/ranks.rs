//! Traces of several ranks: the files of a folder as one trace, in which each rank is a process.

use std::path::{Path, PathBuf};

use super::model::{
    Counter, Detail, Doubt, Holds, Lane, NONE, Process, Slice, Trace, TraceBuilder, Unread,
};
use super::source::{OpenError, ReadProgress};

/// Most files of a folder that are read.
const FILES: usize = 4096;

/// A folder as one trace.
pub struct Folder {
    /// All ranks. A trace of one rank is that of its file.
    pub trace: Trace,
    /// Files that are no trace, each with the reason.
    pub skipped: Vec<OpenError>,
}

/// Opens every trace in a folder, one file for each rank, and joins them. The rank of a file is in the file, or else in its name. Files
/// in folders within it are not read. Progress is that of the file being read.
pub fn open_folder(
    folder: &Path,
    progress: &mut dyn FnMut(ReadProgress),
) -> Result<Folder, OpenError> {
    let named = |what: String, next: &str| OpenError {
        path: folder.display().to_string(),
        ..OpenError::new(what, next)
    };
    let unreadable = |error: std::io::Error| {
        named(
            format!("cannot be read: {error}."),
            "Check the path and its permissions.",
        )
    };
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let hidden = path
            .file_name()
            .is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        if !hidden && path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    if files.len() > FILES {
        let what = format!("has {} files, more than {FILES}.", files.len());
        return Err(named(
            what,
            "Put the traces of one run into a folder of their own.",
        ));
    }
    let (mut ranks, mut skipped) = (Vec::new(), Vec::new());
    for path in files {
        match super::open(&path, progress) {
            Ok(trace) if trace.slices.is_empty() => skipped.push(OpenError {
                path: path.display().to_string(),
                ..OpenError::new("holds no events with times.", "Open it alone.")
            }),
            Ok(trace) => {
                let rank = trace.rank.or_else(|| rank_of(&trace.source));
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
        return Err(named(what, "Put the trace of each rank into it."));
    }
    ranks.sort_by(|(a, first), (b, second)| {
        (a.is_none(), a, &first.source).cmp(&(b.is_none(), b, &second.source))
    });
    let name = folder.file_name().unwrap_or(folder.as_os_str());
    let trace = join(&name.to_string_lossy(), ranks);
    Ok(Folder { trace, skipped })
}

/// The rank in a file's name: `rank-3.json.gz`, `worker_rank3.json`.
fn rank_of(name: &str) -> Option<u64> {
    let lower = name.to_ascii_lowercase();
    let after = &lower[lower.rfind("rank")? + "rank".len()..];
    let after = after.trim_start_matches(['-', '_', '.', '=', '[', ' ']);
    let digits = after
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(after.len());
    after[..digits].parse().ok()
}

/// The traces of several ranks as one, each with its rank if that is known. Each has processes, lanes and devices of its own. One trace
/// alone stays as it is.
pub fn join(source: &str, mut ranks: Vec<(Option<u64>, Trace)>) -> Trace {
    if let [_] = ranks[..]
        && let Some((rank, mut only)) = ranks.pop()
    {
        only.rank = rank;
        return only;
    }
    let first = ranks.first().map_or("", |(_, trace)| trace.format);
    let format = match ranks.iter().all(|(_, trace)| trace.format == first) {
        true => first,
        false => "several formats",
    };
    let mut out = TraceBuilder::new(source, format, false);
    let known: Vec<u64> = ranks.iter().filter_map(|(rank, _)| *rank).collect();
    let holds = ranks.iter().map(|(_, trace)| trace.holds);
    // Only what every file can contain is known to be absent.
    let holds = holds.reduce(|all, of| Holds {
        kernels: true,
        calls: all.calls && of.calls,
        copies: all.copies && of.copies,
        memsets: all.memsets && of.memsets,
        annotations: all.annotations || of.annotations,
        graphs: all.graphs || of.graphs,
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
    let mut trace = out.joined();
    trace.holds = holds.unwrap_or_default();
    trace
}

/// Appends the trace of a rank.
fn append(out: &mut TraceBuilder, mut trace: Trace, rank: Option<u64>, label: &str) {
    let names: Vec<u32> = trace.names.iter().map(|name| out.name(name)).collect();
    let devices = trace.devices.iter();
    let devices: Vec<u32> = devices
        .map(|device| out.device(&format!("{label}: {device}")))
        .collect();
    let all = out.trace();
    let (processes, lanes, slices, details) = (
        all.processes.len() as u32,
        all.lanes.len() as u32,
        all.slices.len() as u32,
        all.details.len() as u32,
    );
    if trace.processes.is_empty() {
        trace.processes.push(Process::default());
        trace
            .lanes
            .iter_mut()
            .for_each(|lane| lane.process = Some(0));
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
            process: lane.process.map(|id| processes + id),
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
    let time = |at: i64| i64::try_from(trace.clock(at)).unwrap_or(i64::MAX);
    let index = |at: u32, first: u32| if at == NONE { NONE } else { first + at };
    all.slices.extend(trace.slices.iter().map(|slice| Slice {
        start: time(slice.start),
        end: time(slice.end),
        lane: lanes + slice.lane,
        name: names[slice.name as usize],
        link: index(slice.link, slices),
        detail: index(slice.detail, details),
        kind: slice.kind,
    }));
    for counter in &trace.counters {
        all.counters.push(Counter {
            name: format!("{label}: {}", counter.name),
            ..counter.clone()
        });
    }
    let placed = |first: &str| format!("{first} of {}", trace.source);
    all.unread.extend(trace.unread.iter().map(|unread| Unread {
        first: placed(&unread.first),
        ..unread.clone()
    }));
    all.doubts.extend(trace.doubts.iter().map(|doubt| Doubt {
        first: placed(&doubt.first),
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
