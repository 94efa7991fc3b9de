//! A trace from elsewhere, or two of them, as a sheet: figures, ledger, kernels, steps, one step drawn, lints.

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

/// Rows of a list.
const ROWS: usize = 30;
/// Lanes that are drawn, and pieces of each.
const LANES: usize = 8;
const PIECES: usize = 4000;

/// A trace as a sheet.
pub fn sheet(it: &Summary, trace: &Trace) -> Sheet {
    let named = &trace.devices[..trace.devices.len().min(LANES)];
    let more = trace.devices.len() - named.len();
    let devices = match (named.join(", "), more) {
        (none, _) if none.is_empty() => none,
        (named, 0) => format!("; devices: {named}"),
        (named, more) => format!("; devices: {named} and {more} more"),
    };
    let mut out = vec![
        SheetBlock::Title(it.file.clone()),
        SheetBlock::Intro(format!("{}{devices}", it.format)),
        SheetBlock::Heading("What ran".to_owned()),
        SheetBlock::Table(SheetTable::figures(["", ""], figures(it))),
    ];
    if let Some(sum) = &it.ledger {
        out.push(SheetBlock::Heading("Where the time went".to_owned()));
        let of = match &it.steps {
            Some(steps) => format!("{} steps", steps.len()),
            None => "From the first kernel to the last".to_owned(),
        };
        let drawn = ledger(sum).map(|(name, ns, _)| (name.to_owned(), ns.unwrap_or(0) as f64));
        out.push(SheetBlock::Parts(StackedBar {
            name: format!("{of}, {}", time(sum.wall)),
            parts: drawn.into(),
            width: 0.0,
        }));
        let wall = sum.wall.max(1) as f64;
        out.push(SheetBlock::Table(SheetTable::filled(
            ledger(sum),
            &[
                ("part", &|it| it.0.to_owned()),
                ("time", &|it| known(it.1, time)),
                ("share", &|it| known(it.1, |ns| share(ns as f64 / wall))),
                ("", &|it| it.2.to_owned()),
            ],
        )));
    }
    if !it.ranks.is_empty() {
        out.push(SheetBlock::Heading("Processes side by side".to_owned()));
        out.push(SheetBlock::Table(SheetTable::filled(
            &it.phases_of_ranks,
            &[
                ("time a step", &|row: &&PhaseOfRanks| row.name.to_owned()),
                ("median", &|row| time(row.median_ns)),
                ("longest", &|row| time(row.worst_ns)),
                ("of", &|row| row.worst.clone()),
            ],
        )));
        out.extend(stragglers(it).map(SheetBlock::Remark));
    }
    let (heading, bar) = match it.operations.is_empty() {
        true => ("Kernels", "Kernel time by family"),
        false => ("Operations of the host, own time", "Own time by family"),
    };
    out.push(SheetBlock::Heading(heading.to_owned()));
    out.push(SheetBlock::Parts(families(
        bar,
        |family| {
            let rows = it.rows().iter().filter(|row| row.family == family);
            rows.map(|row| row.total_ns).sum()
        },
        0,
    )));
    out.push(SheetBlock::Table(kernels(it.rows())));
    out.extend(shorter(it.rows().len()));
    if let Some(steps) = it.steps.as_deref().filter(|steps| !steps.is_empty()) {
        out.push(SheetBlock::Heading("Steps".to_owned()));
        out.push(SheetBlock::Table(SheetTable::filled(
            steps.iter().take(ROWS),
            &[
                ("step", &|it: &&TraceStep| it.name.clone()),
                ("time", &|it| time(it.dur_ns)),
                ("busy", &|it| known(it.busy_ns, time)),
                ("kernels", &|it| {
                    known(it.kernels_by_launch.or(it.kernels_by_start), count)
                }),
                ("syncs", &|it| known(it.syncs, count)),
                ("host-device copies", &|it| {
                    known(it.host_device_copies, count)
                }),
            ],
        )));
    }
    out.extend(drawn(it, trace.counted()).map(SheetBlock::Lanes));
    out.push(SheetBlock::Heading("Lints".to_owned()));
    if it.lints.is_empty() {
        out.push(SheetBlock::Intro("Nothing was found.".to_owned()));
    }
    for lint in &it.lints {
        let page = page_of(lint.name).map_or(String::new(), |page| {
            format!(" More: {page}, a page of the course.")
        });
        out.push(SheetBlock::Remark(format!(
            "{}: {} {}{page}",
            lint.name, lint.why, lint.next
        )));
    }
    out.extend(doubts(it).map(SheetBlock::Remark));
    if let Some(unread) = &it.unread {
        out.push(SheetBlock::Heading("Not read".to_owned()));
        for why in &unread.why {
            let (n, why, first) = (why.count, &why.why, &why.first);
            out.push(SheetBlock::Remark(format!(
                "{n}: {why}; the first at {first}"
            )));
        }
    }
    Sheet(out)
}

/// How many rows a list leaves out.
fn shorter(rows: usize) -> Option<SheetBlock> {
    let more = rows.checked_sub(ROWS).filter(|more| *more > 0)?;
    Some(SheetBlock::Remark(format!("{more} more are shorter")))
}

/// Kernel time by family, in a bar that is `width` nanoseconds wide.
fn families(name: &str, time: impl Fn(Family) -> u64, width: u64) -> StackedBar {
    StackedBar {
        name: name.to_owned(),
        parts: FAMILIES
            .map(|it| (it.label().to_owned(), time(it) as f64))
            .into(),
        width: width as f64,
    }
}

/// In the order of their colours.
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
            ("name", &|it: &&KernelTotals| it.short.clone()),
            ("family", &|it| it.family.label().to_owned()),
            ("calls", &|it| count(it.calls)),
            ("a step", &|it| or_dash(it.a_step, |n| show(n, 1))),
            ("total", &|it| time(it.total_ns)),
            ("median", &|it| or_dash(it.median_ns, time)),
            ("of all", &|it| share(it.share_of_kernels)),
            ("of wall", &|it| or_dash(it.share_of_wall, share)),
        ],
    )
}

/// The first whole step, or everything where no steps are annotated.
fn drawn(it: &Summary, trace: &Trace) -> Option<LaneChart> {
    let steps = it.steps.as_deref().unwrap_or_default();
    let busy = |step: &&TraceStep| step.busy_ns.is_none_or(|ns| ns > 0);
    let step = steps.iter().find(busy).or(steps.first());
    let whole = || trace.span(|_| true);
    let (from, to) = step.map(|step| step.span).or_else(whole)?;
    let width = to.abs_diff(from).max(1);
    let shown = |slice: &&Slice| {
        let kind = slice.kind;
        let known = kind.on_device() || kind.is_call() || kind == SliceKind::Annotation;
        known && slice.end > from && slice.start < to && slice.start.abs_diff(slice.end) < width
    };
    let mut lanes: BTreeMap<(bool, usize), Vec<LaneSlice>> = BTreeMap::new();
    for slice in trace.slices.iter().filter(shown) {
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

/// What colours mean on lanes of the host; a kernel has that of its family.
const KEYS: [(&str, usize); 6] = [
    ("forward", 0),
    ("backward", 1),
    ("optimizer", 2),
    ("waits", 3),
    ("launches", 4),
    ("other calls and ranges", 5),
];

/// The colour of a slice: a kernel's is that of its family.
pub fn colour(trace: &Trace, slice: &Slice) -> usize {
    let name = trace.name(slice.name);
    match slice.kind {
        SliceKind::Kernel => {
            let family = trace.family(slice.name);
            FAMILIES.iter().position(|it| *it == family).unwrap_or(5)
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

/// Two traces as a sheet.
pub fn comparison(it: &TraceComparison) -> Sheet {
    let [a, b] = &it.files;
    let mut out = vec![
        SheetBlock::Title("Two traces".to_owned()),
        SheetBlock::Intro(format!("A is {a} ({}).", it.formats[0])),
        SheetBlock::Intro(format!("B is {b} ({}).", it.formats[1])),
        SheetBlock::Heading("What ran".to_owned()),
        SheetBlock::Table(SheetTable::filled(
            &it.figures,
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
    for (side, lints) in ["A", "B"].into_iter().zip(&it.lints) {
        let said = match lints.is_empty() {
            true => "none".to_owned(),
            false => lints.join(", "),
        };
        out.push(SheetBlock::Remark(format!("lints of {side}: {said}")));
    }
    out.push(SheetBlock::Heading("Families".to_owned()));
    type Side = fn(&FamilyRow) -> Option<Share>;
    let sides_of: [(&str, Side); 2] = [("A", |row| row.both.a), ("B", |row| row.both.b)];
    let total = |side: Side, family: Option<Family>| {
        let rows = it.families.iter();
        let rows = rows.filter(|row| family.is_none_or(|it| it == row.family));
        rows.filter_map(side).map(|it| it.total_ns).sum()
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
    let families: Vec<_> = it
        .families
        .iter()
        .map(|row| (row.family.label().to_owned(), row.both.a, row.both.b))
        .collect();
    out.push(SheetBlock::Table(sides("family", families, 1..7)));
    for (title, rows, of) in [
        ("In both", &it.kernels, 1..7),
        ("Vanished: in A alone", &it.vanished, 1..4),
        ("New: in B alone", &it.new, 4..7),
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

type Sides = (String, Option<Share>, Option<Share>);

/// Rows of both sides, or the columns of one.
fn sides(what: &str, rows: Vec<Sides>, of: Range<usize>) -> SheetTable {
    let all: [FilledColumn<'_, Sides>; 7] = [
        (what, &|it: &Sides| it.0.clone()),
        ("A calls", &|it| or_dash(it.1, |it| count(it.calls))),
        ("A time", &|it| or_dash(it.1, |it| time(it.total_ns))),
        ("A share", &|it| {
            or_dash(it.1, |it| share(it.share_of_kernels))
        }),
        ("B calls", &|it| or_dash(it.2, |it| count(it.calls))),
        ("B time", &|it| or_dash(it.2, |it| time(it.total_ns))),
        ("B share", &|it| {
            or_dash(it.2, |it| share(it.share_of_kernels))
        }),
    ];
    let shown: Vec<_> = all[..1].iter().chain(&all[of]).copied().collect();
    SheetTable::filled(rows, &shown)
}

fn shown(value: f64, unit: &str) -> String {
    match unit {
        "ns" => duration(value / 1e6),
        "share" => share(value),
        "B" => bytes(value as u64),
        _ if value.fract() != 0.0 => show(value, 1),
        _ => show(value, 0),
    }
}
