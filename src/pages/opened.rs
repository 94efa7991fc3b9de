//! The sheet of one or two traces of other programs: figures, ledger, kernels, steps, a drawing of one step, lints.

use std::collections::BTreeMap;
use std::ops::Range;

use super::sheet::{FilledColumn, LaneChart, LaneSlice, Sheet, SheetBlock, SheetTable, StackedBar};
use crate::course::trace_lints::page_of;
use gputrace::compare::{ComparedFigure, FamilyRow, NameRow, Share, TraceComparison};
use gputrace::display::{count, doubts, figures, known, ledger, share, stragglers, time};
use gputrace::figures::{KernelTotals, PhaseOfRanks, Summary, TraceStep};
use gputrace::model::{LaneKind, Slice, SliceKind, Trace};
use gputrace::names::{self, Family, TracePhase};
use protocol::units::{bytes, duration, or_dash, show};

/// The number of rows of a list.
const ROWS: usize = 30;
/// The largest number of lanes that are drawn.
const LANES: usize = 8;
/// The largest number of slices that are drawn on a lane.
const PIECES: usize = 4000;

/// Returns the sheet of a trace.
pub fn sheet(summary: &Summary, trace: &Trace) -> Sheet {
    let named = &trace.devices[..trace.devices.len().min(LANES)];
    let more = trace.devices.len() - named.len();
    let mut devices = String::new();
    if !named.is_empty() {
        devices = format!("; devices: {}", named.join(", "));
    }
    if more > 0 {
        devices += &format!(" and {more} more");
    }
    let mut out = vec![
        SheetBlock::Title(summary.file.clone()),
        SheetBlock::Intro(format!("{}{devices}", summary.format)),
        SheetBlock::Heading("What ran".to_owned()),
        SheetBlock::Table(SheetTable::figures(["", ""], figures(summary))),
    ];
    if let Some(sum) = &summary.ledger {
        out.push(SheetBlock::Heading("Where the time went".to_owned()));
        let window = match &summary.steps {
            Some(steps) => format!("{} steps", steps.len()),
            None => "From the first kernel to the last".to_owned(),
        };
        let parts = ledger(sum).map(|(name, ns, _)| (name.to_owned(), ns.unwrap_or(0) as f64));
        out.push(SheetBlock::Parts(StackedBar {
            name: format!("{window}, {}", time(sum.wall)),
            parts: parts.into(),
            width: 0.0,
        }));
        let wall = sum.wall.max(1) as f64;
        out.push(SheetBlock::Table(SheetTable::filled(
            ledger(sum),
            &[
                ("part", &|(name, ..)| (*name).to_owned()),
                ("time", &|(_, ns, _)| known(*ns, time)),
                ("share", &|(_, ns, _)| {
                    known(*ns, |ns| share(ns as f64 / wall))
                }),
                ("", &|(.., meaning)| (*meaning).to_owned()),
            ],
        )));
    }
    if !summary.ranks.is_empty() {
        out.push(SheetBlock::Heading("Processes side by side".to_owned()));
        out.push(SheetBlock::Table(SheetTable::filled(
            &summary.phases_of_ranks,
            &[
                ("time a step", &|row: &&PhaseOfRanks| row.name.to_owned()),
                ("median", &|row| time(row.median_ns)),
                ("longest", &|row| time(row.worst_ns)),
                ("of", &|row| row.worst.clone()),
            ],
        )));
        out.extend(stragglers(summary).map(SheetBlock::Remark));
    }
    let (heading, bar) = if summary.operations.is_empty() {
        ("Kernels", "Kernel time by family")
    } else {
        ("Operations of the host, own time", "Own time by family")
    };
    out.push(SheetBlock::Heading(heading.to_owned()));
    out.push(SheetBlock::Parts(families(
        bar,
        |family| {
            let rows = summary.rows().iter().filter(|row| row.family == family);
            rows.map(|row| row.total_ns).sum()
        },
        0,
    )));
    out.push(SheetBlock::Table(kernels(summary.rows())));
    out.extend(shorter(summary.rows().len()));
    if let Some(steps) = summary.steps.as_deref().filter(|steps| !steps.is_empty()) {
        out.push(SheetBlock::Heading("Steps".to_owned()));
        out.push(SheetBlock::Table(SheetTable::filled(
            steps.iter().take(ROWS),
            &[
                ("step", &|step: &&TraceStep| step.name.clone()),
                ("time", &|step| time(step.dur_ns)),
                ("busy", &|step| known(step.busy_ns, time)),
                ("kernels", &|step| {
                    known(step.kernels_by_launch.or(step.kernels_by_start), count)
                }),
                ("syncs", &|step| known(step.syncs, count)),
                ("host-device copies", &|step| {
                    known(step.host_device_copies, count)
                }),
            ],
        )));
    }
    out.extend(drawn(summary, trace.counted()).map(SheetBlock::Lanes));
    out.push(SheetBlock::Heading("Lints".to_owned()));
    if summary.lints.is_empty() {
        out.push(SheetBlock::Intro("Nothing was found.".to_owned()));
    }
    for lint in &summary.lints {
        let page = page_of(lint.name).map_or(String::new(), |page| {
            format!(" More: {page}, a page of the course.")
        });
        out.push(SheetBlock::Remark(format!(
            "{}: {} {}{page}",
            lint.name, lint.why, lint.next
        )));
    }
    out.extend(doubts(summary).map(SheetBlock::Remark));
    if let Some(unread) = &summary.unread {
        out.push(SheetBlock::Heading("Not read".to_owned()));
        for rows in &unread.why {
            out.push(SheetBlock::Remark(format!(
                "{}: {}; the first at {}",
                rows.count, rows.why, rows.first
            )));
        }
    }
    Sheet(out)
}

/// Returns a remark on the rows that a list leaves out; `None` if it has all.
fn shorter(rows: usize) -> Option<SheetBlock> {
    let more = rows.checked_sub(ROWS).filter(|more| *more > 0)?;
    Some(SheetBlock::Remark(format!("{more} more are shorter")))
}

/// Returns a bar with the time of each family. The full width stands for `width` nanoseconds.
fn families(name: &str, time: impl Fn(Family) -> u64, width: u64) -> StackedBar {
    StackedBar {
        name: name.to_owned(),
        parts: FAMILIES
            .map(|family| (family.label().to_owned(), time(family) as f64))
            .into(),
        width: width as f64,
    }
}

/// The families in the order of their colours.
const FAMILIES: [Family; 8] = [
    Family::Product,
    Family::Attention,
    Family::Elementwise,
    Family::Reduction,
    Family::Optimizer,
    Family::Other,
    Family::Copy,
    Family::Communication,
];

fn kernels(rows: &[KernelTotals]) -> SheetTable {
    SheetTable::filled(
        rows.iter().take(ROWS),
        &[
            ("name", &|row: &&KernelTotals| row.short.clone()),
            ("family", &|row| row.family.label().to_owned()),
            ("calls", &|row| count(row.calls)),
            ("a step", &|row| or_dash(row.a_step, |n| show(n, 1))),
            ("total", &|row| time(row.total_ns)),
            ("median", &|row| or_dash(row.median_ns, time)),
            ("of all", &|row| share(row.share_of_kernels)),
            ("of wall", &|row| or_dash(row.share_of_wall, share)),
        ],
    )
}

/// Draws the first step in which a device works, or the whole trace if no steps are annotated.
fn drawn(summary: &Summary, trace: &Trace) -> Option<LaneChart> {
    let steps = summary.steps.as_deref().unwrap_or_default();
    let is_busy = |step: &&TraceStep| step.busy_ns.is_none_or(|ns| ns > 0);
    let step = steps.iter().find(is_busy).or(steps.first());
    let whole = || trace.span(|_| true);
    let (from, to) = step.map(|step| step.span).or_else(whole)?;
    let width = to.abs_diff(from).max(1);
    let is_shown = |slice: &&Slice| {
        let kind = slice.kind;
        let has_colour = kind.on_device() || kind.is_call() || kind == SliceKind::Annotation;
        has_colour
            && slice.end > from
            && slice.start < to
            && slice.start.abs_diff(slice.end) < width
    };
    let mut lanes: BTreeMap<(bool, usize), Vec<LaneSlice>> = BTreeMap::new();
    for slice in trace.slices.iter().filter(is_shown) {
        let lane = slice.lane as usize;
        let host = trace.lanes[lane].kind != LaneKind::Device;
        let pieces = lanes.entry((host, lane)).or_default();
        let begin = slice.start.max(from);
        let place = begin.abs_diff(from) as f64 / width as f64;
        let length = slice.end.min(to).abs_diff(begin) as f64 / width as f64;
        if pieces.len() < PIECES {
            pieces.push((place, length, colour(trace, slice)));
        }
    }
    let alone = trace.processes.is_empty() && trace.devices.len() < 2;
    let name = |lane: usize| match &trace.lanes[lane] {
        lane if alone => format!("{} {}", lane.group, lane.name),
        lane => trace.lane_title(lane),
    };
    (!lanes.is_empty()).then(|| LaneChart {
        name: step.map_or("The whole trace".to_owned(), |step| step.name.clone()),
        width: time(width),
        keys: KEYS.into(),
        lanes: lanes
            .into_iter()
            .take(LANES)
            .map(|((_, lane), pieces)| (name(lane), pieces))
            .collect(),
    })
}

/// The meaning of colours on lanes of the host. A kernel has the colour of its family.
const KEYS: [(&str, usize); 6] = [
    ("forward", 0),
    ("backward", 1),
    ("optimizer", 2),
    ("waits", 3),
    ("launches", 4),
    ("other calls and ranges", 5),
];

/// Returns the colour of a slice. A kernel has the colour of its family.
pub fn colour(trace: &Trace, slice: &Slice) -> usize {
    let name = trace.name(slice.name);
    match slice.kind {
        SliceKind::Kernel => {
            let family = trace.family(slice.name);
            let mut families = FAMILIES.iter();
            families.position(|other| *other == family).unwrap_or(5)
        }
        SliceKind::Copy | SliceKind::Memset => 6,
        SliceKind::Graph => 0,
        SliceKind::Launch | SliceKind::GraphLaunch => 4,
        SliceKind::Sync => 3,
        _ => match names::phase(name) {
            Some(TracePhase::Forward) => 0,
            Some(TracePhase::Backward) => 1,
            Some(TracePhase::Optimizer) => 2,
            None => 5,
        },
    }
}

/// Returns the sheet of two traces.
pub fn comparison(traces: &TraceComparison) -> Sheet {
    let [a, b] = &traces.files;
    let mut out = vec![
        SheetBlock::Title("Two traces".to_owned()),
        SheetBlock::Intro(format!("A is {a} ({}).", traces.formats[0])),
        SheetBlock::Intro(format!("B is {b} ({}).", traces.formats[1])),
        SheetBlock::Heading("What ran".to_owned()),
        SheetBlock::Table(SheetTable::filled(
            &traces.figures,
            &[
                ("", &|row: &&ComparedFigure| row.name.to_owned()),
                ("A", &|row| {
                    known(row.both.a, |value| shown(value, row.unit))
                }),
                ("B", &|row| {
                    known(row.both.b, |value| shown(value, row.unit))
                }),
                ("B / A", &|row| or_dash(row.ratio, |ratio| show(ratio, 2))),
            ],
        )),
    ];
    for (side, lints) in ["A", "B"].into_iter().zip(&traces.lints) {
        let names = if lints.is_empty() {
            "none".to_owned()
        } else {
            lints.join(", ")
        };
        out.push(SheetBlock::Remark(format!("lints of {side}: {names}")));
    }
    out.push(SheetBlock::Heading("Families".to_owned()));
    type Side = fn(&FamilyRow) -> Option<Share>;
    let sides_of: [(&str, Side); 2] = [("A", |row| row.both.a), ("B", |row| row.both.b)];
    let total = |side: Side, family: Option<Family>| {
        let rows = traces.families.iter();
        rows.filter(|row| family.is_none_or(|family| family == row.family))
            .filter_map(side)
            .map(|share| share.total_ns)
            .sum()
    };
    let longest = sides_of
        .map(|(_, side)| total(side, None))
        .into_iter()
        .max();
    for (name, side) in sides_of {
        let name = format!("{name}: {}", time(total(side, None)));
        let by_family = |family| total(side, Some(family));
        out.push(SheetBlock::Parts(families(
            &name,
            by_family,
            longest.unwrap_or(0),
        )));
    }
    let families: Vec<_> = traces
        .families
        .iter()
        .map(|row| (row.family.label().to_owned(), row.both.a, row.both.b))
        .collect();
    out.push(SheetBlock::Table(sides("family", families, 1..7)));
    for (title, rows, of) in [
        ("In both", &traces.kernels, 1..7),
        ("Vanished: in A alone", &traces.vanished, 1..4),
        ("New: in B alone", &traces.new, 4..7),
    ] {
        out.push(SheetBlock::Heading(format!("{title}, {}", rows.len())));
        let row = |row: &NameRow| (row.short.clone(), row.both.a, row.both.b);
        if !rows.is_empty() {
            out.push(SheetBlock::Table(sides(
                "name",
                rows.iter().take(ROWS).map(row).collect(),
                of,
            )));
        }
        out.extend(shorter(rows.len()));
    }
    Sheet(out)
}

/// A name, and its executions in A and in B.
type Sides = (String, Option<Share>, Option<Share>);

/// Returns the table of names in both traces. `columns` is 1 to 3 for A alone, 4 to 6 for B alone, or 1 to 6 for both.
fn sides(what: &str, rows: Vec<Sides>, columns: Range<usize>) -> SheetTable {
    let calls = |side: Option<Share>| or_dash(side, |side| count(side.calls));
    let total = |side: Option<Share>| or_dash(side, |side| time(side.total_ns));
    let part = |side: Option<Share>| or_dash(side, |side| share(side.share_of_kernels));
    let all: [FilledColumn<'_, Sides>; 7] = [
        (what, &|(name, ..)| name.clone()),
        ("A calls", &|(_, a, _)| calls(*a)),
        ("A time", &|(_, a, _)| total(*a)),
        ("A share", &|(_, a, _)| part(*a)),
        ("B calls", &|(_, _, b)| calls(*b)),
        ("B time", &|(_, _, b)| total(*b)),
        ("B share", &|(_, _, b)| part(*b)),
    ];
    let shown: Vec<_> = all[..1].iter().chain(&all[columns]).copied().collect();
    SheetTable::filled(rows, &shown)
}

/// Writes a compared figure with its unit.
fn shown(value: f64, unit: &str) -> String {
    match unit {
        "ns" => duration(value / 1e6),
        "share" => share(value),
        "B" => bytes(value as u64),
        _ if value.fract() != 0.0 => show(value, 1),
        _ => show(value, 0),
    }
}
