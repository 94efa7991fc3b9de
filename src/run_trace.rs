//! A run of ours as a trace: its steps and phases on the host, and the calls of its profiled steps on the device. Where only sums are
//! known, they stand end to end in the order of the phases; that no gap is seen between them says nothing. So do the phases of a
//! profiled step.

use std::collections::BTreeMap;

use crate::sanitize;
use gputrace::model::{Counter, KernelStat, LaneKind, SliceKind, Trace, TraceBuilder};
use protocol::{Event, KernelRow, Num, PhaseTimes, Slot, Step, StepProfile, StreamLine};

/// As `perflings open --json` names it.
pub const FORMAT: &str = "perflings recording";

/// The phases of our rows, in the order in which they run.
const PHASES: [&str; 3] = ["forward", "backward", "optimizer"];

/// What to do about a recording without a profiled step.
const RECORD_AGAIN: &str =
    "No step was profiled. Record more steps: `perflings run 1 --steps 50 --record run.jsonl`.";

/// Lanes of one slot.
struct SlotLanes {
    host: u32,
    device: u32,
    /// Where the last step ended, in nanoseconds: steps do not overlap.
    end: i128,
    /// The latest profiled step.
    profiled: Option<(u64, i128)>,
    loss: Counter,
    speed: Counter,
}

/// A stream as a trace. Its figures are those of the latest profiled step; its slices are all there is.
pub fn stream(lines: impl Iterator<Item = StreamLine>, source: &str, badge: &str) -> Trace {
    let mut out = TraceBuilder::new(source, FORMAT, false);
    let mut slots: BTreeMap<Slot, SlotLanes> = BTreeMap::new();
    let (mut latest, mut steps) = (None, Vec::new());
    for line in lines {
        let at = nanoseconds(line.t * 1e3);
        let Some(slot) = line.event.slot() else {
            continue;
        };
        let lanes = slots
            .entry(slot)
            .or_insert_with(|| lanes(&mut out, slot, badge));
        match line.event {
            Event::Step(step) => {
                host_step(&mut out, lanes, &step, at);
                if !step.profiled {
                    steps.push(nanoseconds(step.ms) as u64);
                }
            }
            Event::Kernels(kernels) => {
                let from = lanes.profiled.filter(|it| it.0 == kernels.step);
                let total: f64 = kernels.rows.iter().map(|row| row.ms).sum();
                let from = from.map_or(at - nanoseconds(total), |it| it.1);
                let (host, device) = (Some(lanes.host), lanes.device);
                place(&mut out, host, device, &kernels.rows, from, None, true);
                latest = Some(kernels);
            }
            Event::Throughput(it) => lanes.speed.samples.push((at as i64, it.samples_per_s)),
            Event::Lints { lints, .. } => {
                for lint in lints {
                    let name = out.name(&format!("lint {}", sanitize::line(&lint.name)));
                    out.slice(SliceKind::Other, lanes.host, name, (at, at), String::new);
                }
            }
            _ => {}
        }
    }
    for lanes in slots.into_values() {
        let counters = [lanes.loss, lanes.speed];
        let filled = counters.into_iter().filter(|it| !it.samples.is_empty());
        out.trace().counters.extend(filled);
    }
    steps.sort_unstable();
    let mut counted = counted(source, badge, latest.as_ref());
    counted.trace().unprofiled_step = gputrace::figures::median(&steps);
    out.trace().counted = Some(Box::new(counted.finish()));
    out.finish()
}

/// The latest profiled step alone: that which figures are counted from. Without one, sums of nothing.
fn counted(source: &str, badge: &str, kernels: Option<&StepProfile>) -> TraceBuilder {
    let mut out = TraceBuilder::new(source, FORMAT, false);
    out.trace().record_again = Some(RECORD_AGAIN);
    let Some(kernels) = kernels else {
        out.trace().stats = Some(Vec::new());
        return out;
    };
    let lanes = lanes(&mut out, kernels.slot, badge);
    let (host, rows) = (Some(lanes.host), &kernels.rows);
    let end = place(&mut out, host, lanes.device, rows, 0, None, true);
    let step = out.name(&format!("step {}", kernels.step));
    let whole = (0, end.max(nanoseconds(kernels.profiled_step_ms)));
    out.slice(SliceKind::Annotation, lanes.host, step, whole, String::new);
    if rows.iter().any(|row| row.slices.is_empty()) {
        let stats = sums(&mut out, kernels);
        out.trace().stats = Some(stats);
        out.trace().summed_steps = Some(1);
    }
    out
}

/// One step: its phases on the host, and the latest profile on the device. A phase's kernels do not begin before the phase.
pub fn step(name: &str, phases: Option<&PhaseTimes>, kernels: &StepProfile) -> Trace {
    let mut out = TraceBuilder::new(name, FORMAT, false);
    if let Some(phases) = phases {
        let lane = out.lane(LaneKind::Host, name, "host", None);
        let step = out.name("step");
        let whole = (0, nanoseconds(phases.step));
        out.slice(SliceKind::Annotation, lane, step, whole, String::new);
        host_phases(&mut out, lane, phases, whole);
    }
    let device = out.device("device");
    let lane = out.lane(LaneKind::Device, name, "device", Some(device));
    place(&mut out, None, lane, &kernels.rows, 0, phases, false);
    out.finish()
}

fn lanes(out: &mut TraceBuilder, slot: Slot, badge: &str) -> SlotLanes {
    let group = format!("perflings {slot:?} ({})", sanitize::line(badge));
    let device = out.device(&format!("{slot:?}"));
    let counter = |name: &str, unit: &str| Counter {
        name: format!("{slot:?}: {name}"),
        unit: unit.to_owned(),
        samples: Vec::new(),
    };
    SlotLanes {
        host: out.lane(LaneKind::Host, &group, &format!("{slot:?}: steps"), None),
        device: out.lane(
            LaneKind::Device,
            &group,
            &format!("{slot:?}: profiled steps"),
            Some(device),
        ),
        end: 0,
        profiled: None,
        loss: counter("loss", "nats"),
        speed: counter("samples/s (median)", "samples/s"),
    }
}

fn host_step(out: &mut TraceBuilder, lanes: &mut SlotLanes, step: &Step, at: i128) {
    // The line is written when the step is over; its clock and the step's may disagree by a little.
    let length = nanoseconds(step.ms);
    let begin = (at - length).max(lanes.end);
    let name = if step.profiled {
        format!("step {} (profiled)", step.step)
    } else {
        format!("step {}", step.step)
    };
    let name = out.name(&name);
    let whole = (begin, begin + length);
    out.slice(SliceKind::Annotation, lanes.host, name, whole, String::new);
    if let Some(phases) = &step.phases {
        host_phases(out, lanes.host, phases, whole);
    }
    if step.profiled {
        lanes.profiled = Some((step.step, begin));
    }
    if let Some(Num(loss)) = step.loss.filter(|loss| loss.0.is_finite()) {
        lanes.loss.samples.push((whole.1 as i64, loss));
    }
    lanes.end = whole.1;
}

fn host_phases(
    out: &mut TraceBuilder,
    lane: u32,
    phases: &PhaseTimes,
    (mut from, end): (i128, i128),
) {
    for (name, ms) in phases.timed_parts() {
        let to = (from + nanoseconds(ms)).min(end);
        let name = out.name(name.into_str());
        out.slice(SliceKind::Annotation, lane, name, (from, to), String::new);
        from = to;
    }
}

/// Puts the calls of rows where they ran within their phase; a row without their times end to end, `split` into calls of equal length.
/// With a lane of the host, their phases there. Gives the end.
fn place(
    out: &mut TraceBuilder,
    host: Option<u32>,
    lane: u32,
    rows: &[KernelRow],
    from: i128,
    phases: Option<&PhaseTimes>,
    split: bool,
) -> i128 {
    let begins = phases.map(|it| [0.0, it.forward, it.forward + it.backward].map(nanoseconds));
    let mut at = from;
    for (number, phase) in PHASES.into_iter().enumerate() {
        at = begins.map_or(at, |begins| at.max(from + begins[number]));
        let begin = at;
        for row in rows.iter().filter(|row| row.phase == phase) {
            let name = out.name(&name(row));
            let count = if split { row.calls.clamp(1, 10_000) } else { 1 };
            let (count, whole) = (i128::from(count), nanoseconds(row.ms));
            let part = |call: i128| at + whole * call / count;
            let summed = (0..count).map(|call| (part(call), part(call + 1)));
            let known = row.slices.iter().take(10_000).map(|&(start, length)| {
                let start = begin + i128::from(start.min(1 << 60));
                (start, start + i128::from(length.min(1 << 60)))
            });
            let calls: Vec<(i128, i128)> = if row.slices.is_empty() {
                summed.collect()
            } else {
                known.collect()
            };
            for span in calls {
                out.slice(SliceKind::Kernel, lane, name, span, String::new);
                at = at.max(span.1);
            }
        }
        if let Some(host) = host.filter(|_| at > begin) {
            let name = out.name(phase);
            out.slice(SliceKind::Annotation, host, name, (begin, at), String::new);
        }
    }
    at
}

/// What a row is called: the part of the model, what it does, and the kernel.
fn name(row: &KernelRow) -> String {
    let parts = [&row.part, &row.op, &row.kernel];
    let mut words: Vec<&str> = Vec::new();
    for part in parts {
        if !part.is_empty() && words.last() != Some(&part.as_str()) {
            words.push(part);
        }
    }
    words.join(" ")
}

/// A profile as sums by name.
fn sums(out: &mut TraceBuilder, kernels: &StepProfile) -> Vec<KernelStat> {
    let mut sums: BTreeMap<u32, KernelStat> = BTreeMap::new();
    for row in &kernels.rows {
        let name = out.name(&name(row));
        let sum = sums.entry(name).or_default();
        sum.name = name;
        sum.calls += u64::from(row.calls);
        sum.total += nanoseconds(row.ms) as u64;
    }
    sums.into_values().collect()
}

/// Milliseconds as whole nanoseconds; negative and NaN as 0.
fn nanoseconds(ms: f64) -> i128 {
    i128::from(((ms * 1e6) as u64).min(1 << 60))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(phase: &str, slices: Vec<(u64, u64)>) -> KernelRow {
        KernelRow {
            phase: phase.to_owned(),
            kernel: phase.to_owned(),
            calls: 2,
            ms: 2.0,
            slices,
            ..KernelRow::default()
        }
    }

    #[test]
    fn calls_stand_where_they_ran_within_their_phase() {
        let phases = PhaseTimes {
            forward: 5.0,
            backward: 6.0,
            step: 11.0,
            ..PhaseTimes::default()
        };
        let kernels = StepProfile {
            rows: vec![
                row("backward", vec![(0, 1_000_000), (3_000_000, 1_000_000)]),
                row("forward", Vec::new()),
            ],
            ..StepProfile::default()
        };
        let trace = step("A", Some(&phases), &kernels);
        let spans = trace
            .slices_of(SliceKind::Kernel)
            .map(|it| (it.start, it.end));
        let ms: Vec<(i64, i64)> = spans.map(|(a, b)| (a / 1_000_000, b / 1_000_000)).collect();
        assert_eq!(ms, [(0, 2), (5, 6), (8, 9)]);
    }
}
