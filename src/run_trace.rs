//! Turns a run of our engine into a trace: its steps and phases on the host, and the calls of its profiled steps on the device. Where only
//! sums of calls are known, they stand end to end in the order of the phases, as do the phases of a profiled step: that no gap is seen
//! between them says nothing.

use std::collections::BTreeMap;

use crate::sanitize;
use gputrace::model::{Counter, KernelStat, LaneKind, SliceKind, Trace, TraceBuilder};
use protocol::{Event, KernelRow, Num, PhaseTimes, Slot, Step, StepProfile, StreamLine};

/// The name of the format in `perflings open --json`.
pub const FORMAT: &str = "perflings recording";

/// The phases of a step's operations, in the order in which they run.
const PHASES: [&str; 3] = ["forward", "backward", "optimizer"];

/// The advice for a recording without a profiled step.
const RECORD_AGAIN: &str =
    "No step was profiled. Record more steps: `perflings run 1 --steps 50 --record run.jsonl`.";

/// The lanes of one slot, and what is known of its run so far.
struct SlotLanes {
    host: u32,
    device: u32,
    /// The end of the last step in nanoseconds. Steps do not overlap.
    end: i128,
    /// The number of the latest profiled step, and its beginning in nanoseconds.
    profiled: Option<(u64, i128)>,
    loss: Counter,
    speed: Counter,
}

/// Returns a stream as a trace. The slices show all steps; the figures are counted from the latest profiled step.
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
                let from = match lanes.profiled {
                    Some((step, begin)) if step == kernels.step => begin,
                    _ => at - nanoseconds(kernels.rows.iter().map(|row| row.ms).sum()),
                };
                let (host, device) = (Some(lanes.host), lanes.device);
                place(&mut out, host, device, &kernels.rows, from, None, true);
                latest = Some(kernels);
            }
            Event::Throughput(throughput) => {
                let sample = (at as i64, throughput.samples_per_s);
                lanes.speed.samples.push(sample);
            }
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
        let mut counters = vec![lanes.loss, lanes.speed];
        counters.retain(|counter| !counter.samples.is_empty());
        out.trace().counters.extend(counters);
    }
    steps.sort_unstable();
    let mut counted = counted(source, badge, latest.as_ref());
    counted.trace().unprofiled_step = gputrace::figures::median(&steps);
    out.trace().counted = Some(Box::new(counted.finish()));
    out.finish()
}

/// Returns the trace of the latest profiled step alone, from which the figures are counted. Without a profiled step it is empty.
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

/// Returns the trace of one step: its phases on the host, and the latest profile on the device. A phase's kernels do not begin before the
/// phase.
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

/// Adds the lanes of a slot.
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

/// Adds the calls of rows where they ran within their phase. The calls of a row without times stand end to end; with `split` they are of
/// equal length, otherwise they are one slice. With a lane of the host the phases are added there. Returns the end.
fn place(
    out: &mut TraceBuilder,
    host: Option<u32>,
    lane: u32,
    rows: &[KernelRow],
    from: i128,
    phases: Option<&PhaseTimes>,
    split: bool,
) -> i128 {
    let begins = match phases {
        Some(phases) => [0.0, phases.forward, phases.forward + phases.backward],
        None => [0.0; 3],
    };
    let mut at = from;
    for (phase, begin) in PHASES.into_iter().zip(begins) {
        at = at.max(from + nanoseconds(begin));
        let begin = at;
        for row in rows.iter().filter(|row| row.phase == phase) {
            let name = out.name(&name(row));
            let count = if split { row.calls.clamp(1, 10_000) } else { 1 };
            let (count, whole) = (i128::from(count), nanoseconds(row.ms));
            let part = |call: i128| at + whole * call / count;
            let mut calls: Vec<(i128, i128)> = Vec::new();
            for &(start, length) in row.slices.iter().take(10_000) {
                let start = begin + i128::from(start.min(1 << 60));
                calls.push((start, start + i128::from(length.min(1 << 60))));
            }
            if calls.is_empty() {
                calls.extend((0..count).map(|call| (part(call), part(call + 1))));
            }
            for span in calls {
                out.slice(SliceKind::Kernel, lane, name, span, String::new);
                at = at.max(span.1);
            }
        }
        if let Some(host) = host
            && at > begin
        {
            let name = out.name(phase);
            out.slice(SliceKind::Annotation, host, name, (begin, at), String::new);
        }
    }
    at
}

/// Returns the name of a row: the part of the model, the operation, and the kernel.
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

/// Returns the calls and the time of a profile by name.
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

/// Converts milliseconds to whole nanoseconds. A negative number and NaN become 0.
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
            .map(|span| (span.start, span.end));
        let ms: Vec<(i64, i64)> = spans.map(|(a, b)| (a / 1_000_000, b / 1_000_000)).collect();
        assert_eq!(ms, [(0, 2), (5, 6), (8, 9)]);
    }
}
