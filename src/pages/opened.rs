//! Writes a sheet about one or two traces of other programs: figures, ledger, kernels, steps, a drawing of one step, lints.

use std::collections::BTreeMap;
use std::ops::Range;

use super::sheet::{FilledColumn, LaneChart, LaneSlice, Sheet, SheetBlock, SheetTable, StackedBar};
use crate::course::trace_lints::page_of;
use gputrace::compare::{ComparedFigure, FamilyRow, NameRow, Share, TraceComparison};
use gputrace::display::{count, doubts, figures, known, ledger, share, stragglers, time};
use gputrace::figures::{KernelTotals, Ledger, PhaseOfRanks, Summary, TraceStep};
use gputrace::model::{LaneKind, Slice, SliceKind, Trace};
use gputrace::names::{self, Family, TracePhase};
use protocol::units::{bytes, duration, or_dash, show};

/// The largest number of rows of a list.
const ROWS: usize = 30;
/// The largest number of lanes that are drawn.
const LANES: usize = 8;
/// The largest number of slices that are drawn on a lane.
const SLICES: usize = 4000;

/// Returns the sheet of a trace.
pub fn sheet(summary: &Summary, trace: &Trace) -> Sheet {
    let named = &trace.devices[..trace.devices.len().min(LANES)];
    let unnamed = trace.devices.len() - named.len();
    let mut devices = String::new();
    if !named.is_empty() {
        devices = format!("; devices: {}", named.join(", "));
    }
    if unnamed > 0 {
        devices += &format!(" and {unnamed} more");
    }
    let mut out = vec![
        SheetBlock::Title(summary.file.clone()),
        SheetBlock::Intro(format!("{}{devices}", summary.format)),
        SheetBlock::Heading("What ran".to_owned()),
        SheetBlock::Table(SheetTable::figures(["", ""], figures(summary))),
    ];
    if let Some(times) = &summary.ledger {
        out.extend(ledger_blocks(times, summary.steps.as_deref()));
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
    out.extend(remark_on_other_rows(summary.rows().len()));
    let steps = summary.steps.as_deref().unwrap_or_default();
    if !steps.is_empty() {
        out.push(SheetBlock::Heading("Steps".to_owned()));
        out.push(SheetBlock::Table(step_table(steps)));
    }
    out.extend(lane_chart(steps, trace.counted()).map(SheetBlock::Lanes));
    out.extend(lint_blocks(summary));
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

/// Returns the parts into which the ledger divides the time, as a bar and as a table.
fn ledger_blocks(times: &Ledger, steps: Option<&[TraceStep]>) -> [SheetBlock; 3] {
    let window = match steps {
        Some(steps) => format!("{} steps", steps.len()),
        None => "From the first kernel to the last".to_owned(),
    };
    let parts = ledger(times).map(|(name, ns, _)| (name.to_owned(), ns.unwrap_or(0) as f64));
    let share_of_wall = |ns: u64| share(ns as f64 / times.wall.max(1) as f64);
    let table = SheetTable::filled(
        ledger(times),
        &[
            ("part", &|(name, ..)| (*name).to_owned()),
            ("time", &|(_, ns, _)| known(*ns, time)),
            ("share", &|(_, ns, _)| known(*ns, share_of_wall)),
            ("", &|(.., meaning)| (*meaning).to_owned()),
        ],
    );
    [
        SheetBlock::Heading("Where the time went".to_owned()),
        SheetBlock::Parts(StackedBar {
            name: format!("{window}, {}", time(times.wall)),
            parts: parts.into(),
            width: 0.0,
        }),
        SheetBlock::Table(table),
    ]
}

fn step_table(steps: &[TraceStep]) -> SheetTable {
    SheetTable::filled(
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
    )
}

/// Returns the lints and the doubts about the trace.
fn lint_blocks(summary: &Summary) -> Vec<SheetBlock> {
    let mut out = vec![SheetBlock::Heading("Lints".to_owned())];
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
    out
}

/// Returns a remark on the rows that a list leaves out, of all its `rows`; `None` if it has all of them.
fn remark_on_other_rows(rows: usize) -> Option<SheetBlock> {
    let others = rows.saturating_sub(ROWS);
    (others > 0).then(|| SheetBlock::Remark(format!("{others} more are shorter")))
}

/// Returns a bar with the time of each family. The full width is `width` nanoseconds, or the sum of all families if that is more.
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
fn lane_chart(steps: &[TraceStep], trace: &Trace) -> Option<LaneChart> {
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
    // Lanes of devices come before lanes of the host.
    let mut lanes: BTreeMap<(bool, usize), Vec<LaneSlice>> = BTreeMap::new();
    for slice in trace.slices.iter().filter(is_shown) {
        let lane = slice.lane as usize;
        let is_host = trace.lanes[lane].kind != LaneKind::Device;
        let drawn = lanes.entry((is_host, lane)).or_default();
        let begin = slice.start.max(from);
        let place = begin.abs_diff(from) as f64 / width as f64;
        let length = slice.end.min(to).abs_diff(begin) as f64 / width as f64;
        if drawn.len() < SLICES {
            drawn.push((place, length, colour(trace, slice)));
        }
    }
    let has_one_device = trace.processes.is_empty() && trace.devices.len() < 2;
    let name = |lane: usize| {
        let lane = &trace.lanes[lane];
        if has_one_device {
            format!("{} {}", lane.group, lane.name)
        } else {
            trace.lane_title(lane)
        }
    };
    (!lanes.is_empty()).then(|| LaneChart {
        name: step.map_or("The whole trace".to_owned(), |step| step.name.clone()),
        width: time(width),
        keys: KEYS.into(),
        lanes: lanes
            .into_iter()
            .take(LANES)
            .map(|((_, lane), slices)| (name(lane), slices))
            .collect(),
    })
}

/// The legend of the lanes of the host. On lanes of a device, a kernel has the colour of its family.
const KEYS: [(&str, usize); 6] = [
    ("forward", 0),
    ("backward", 1),
    ("optimizer", 2),
    ("waits", 3),
    ("launches", 4),
    ("other calls and ranges", 5),
];

/// Returns the number of the colour of a slice. A kernel has the colour of its family.
pub fn colour(trace: &Trace, slice: &Slice) -> usize {
    let name = trace.name(slice.name);
    match slice.kind {
        SliceKind::Kernel => {
            let family = trace.family(slice.name);
            let index = FAMILIES.iter().position(|other| *other == family);
            index.unwrap_or(5)
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

/// Returns the sheet that compares two traces.
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
                ("A", &|row| shown(row.both.a, row.unit)),
                ("B", &|row| shown(row.both.b, row.unit)),
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
    out.extend(family_blocks(&traces.families));
    for (title, rows, columns) in [
        ("In both", &traces.kernels, 1..7),
        ("Vanished: in A alone", &traces.vanished, 1..4),
        ("New: in B alone", &traces.new, 4..7),
    ] {
        out.push(SheetBlock::Heading(format!("{title}, {}", rows.len())));
        let row = |row: &NameRow| (row.short.clone(), row.both.a, row.both.b);
        if !rows.is_empty() {
            let shown = rows.iter().take(ROWS).map(row).collect();
            out.push(SheetBlock::Table(sides("name", shown, columns)));
        }
        out.extend(remark_on_other_rows(rows.len()));
    }
    Sheet(out)
}

/// Returns the times of the families in A and in B, as two bars of one scale and as a table.
fn family_blocks(rows: &[FamilyRow]) -> [SheetBlock; 4] {
    type Side = fn(&FamilyRow) -> Option<Share>;
    let total = |side: Side, family: Option<Family>| -> u64 {
        rows.iter()
            .filter(|row| family.is_none_or(|family| family == row.family))
            .filter_map(side)
            .map(|share| share.total_ns)
            .sum()
    };
    let a: Side = |row| row.both.a;
    let b: Side = |row| row.both.b;
    let longer = total(a, None).max(total(b, None));
    let bar = |name: &str, side: Side| {
        let name_and_time = format!("{name}: {}", time(total(side, None)));
        let by_family = |family| total(side, Some(family));
        SheetBlock::Parts(families(&name_and_time, by_family, longer))
    };
    let by_side = rows
        .iter()
        .map(|row| (row.family.label().to_owned(), row.both.a, row.both.b));
    [
        SheetBlock::Heading("Families".to_owned()),
        bar("A", a),
        bar("B", b),
        SheetBlock::Table(sides("family", by_side.collect(), 1..7)),
    ]
}

/// A name with its executions in A and in B; `None` where the trace has none.
type Sides = (String, Option<Share>, Option<Share>);

/// Returns a table of names with their calls, times and shares. `columns` is `1..4` for A alone, `4..7` for B alone, or `1..7` for both.
fn sides(heading: &str, rows: Vec<Sides>, columns: Range<usize>) -> SheetTable {
    let calls = |side: Option<Share>| or_dash(side, |side| count(side.calls));
    let total = |side: Option<Share>| or_dash(side, |side| time(side.total_ns));
    let part = |side: Option<Share>| or_dash(side, |side| share(side.share_of_kernels));
    let all: [FilledColumn<'_, Sides>; 7] = [
        (heading, &|(name, ..)| name.clone()),
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

/// Writes a compared figure in the words for its unit.
fn shown(figure: Option<f64>, unit: &str) -> String {
    known(figure, |value| match unit {
        "ns" => duration(value / 1e6),
        "share" => share(value),
        "B" => bytes(value as u64),
        _ if value.fract() != 0.0 => show(value, 1),
        _ => show(value, 0),
    })
}
