//! Turns a run of our engine into a trace, as `perflings open` shows it: steps and phases in a lane of the host, and the kernel calls of
//! profiled steps in a lane of the device. Of some calls only the sum of their times is known. They are drawn end to end in the order of
//! the phases, and so are the phases themselves, although there may have been gaps between them.

use std::collections::BTreeMap;

use crate::sanitize;
use gputrace::model::{Counter, KernelStat, LaneKind, SliceKind, Trace, TraceBuilder};
use protocol::{Event, KernelRow, Num, PhaseTimes, Slot, Step, StepProfile, StreamLine};

/// The name of the format in `perflings open --json`.
pub const FORMAT: &str = "perflings recording";

/// The phases of a step's operations, in the order in which they run.
const PHASES: [&str; 3] = ["forward", "backward", "optimizer"];

/// The most calls of one row that are drawn.
const MAX_CALLS: u32 = 10_000;

/// The longest time, 36 years. Longer ones are cut, because a damaged recording must not make sums overflow.
const MAX_NANOSECONDS: u64 = 1 << 60;

/// The advice about a recording without a profiled step.
const RECORD_AGAIN: &str =
    "No step was profiled. Record more steps: `perflings run 1 --steps 50 --record run.jsonl`.";

/// The lanes of one slot, and the latest events of its run.
struct SlotLanes {
    /// The number of the host's lane.
    host: u32,
    /// The number of the device's lane.
    device: u32,
    /// The end of the last step in nanoseconds. The next step is drawn after it.
    end: i128,
    /// The number of the latest profiled step, and its beginning in nanoseconds.
    profiled: Option<(u64, i128)>,
    loss: Counter,
    speed: Counter,
}

/// Returns a stream as a trace. `badge` names the device and the date of the run. All steps are drawn. The figures come from the latest
/// profiled step alone (`Trace::counted`).
pub fn stream(lines: impl Iterator<Item = StreamLine>, source: &str, badge: &str) -> Trace {
    let mut out = TraceBuilder::new(source, FORMAT, false);
    let mut slots: BTreeMap<Slot, SlotLanes> = BTreeMap::new();
    let mut latest_profile = None;
    let mut unprofiled_steps = Vec::new();
    for line in lines {
        let time = nanoseconds(line.t * 1e3);
        let Some(slot) = line.event.slot() else {
            continue;
        };
        let lanes = slots
            .entry(slot)
            .or_insert_with(|| lanes(&mut out, slot, badge));
        match line.event {
            Event::Step(step) => {
                add_host_step(&mut out, lanes, &step, time);
                if !step.profiled {
                    unprofiled_steps.push(nanoseconds(step.ms) as u64);
                }
            }
            Event::Kernels(kernels) => {
                let begin = match lanes.profiled {
                    Some((step, begin)) if step == kernels.step => begin,
                    _ => time - nanoseconds(kernels.rows.iter().map(|row| row.ms).sum()),
                };
                let host = Some(lanes.host);
                add_calls(&mut out, host, lanes.device, &kernels.rows, begin, None);
                latest_profile = Some(kernels);
            }
            Event::Throughput(throughput) => {
                let sample = (time as i64, throughput.samples_per_s);
                lanes.speed.samples.push(sample);
            }
            Event::Lints { lints, .. } => {
                for lint in lints {
                    let name = out.name(&format!("lint {}", sanitize::line(&lint.name)));
                    let span = (time, time);
                    out.slice(SliceKind::Other, lanes.host, name, span, String::new);
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
    unprofiled_steps.sort_unstable();
    let mut figures = counted(source, badge, latest_profile.as_ref());
    figures.trace().unprofiled_step = gputrace::figures::median(&unprofiled_steps);
    out.trace().counted = Some(Box::new(figures.finish()));
    out.finish()
}

/// Returns the trace of the latest profiled step alone, from which the figures are computed. Without a profiled step it is empty.
fn counted(source: &str, badge: &str, kernels: Option<&StepProfile>) -> TraceBuilder {
    let mut out = TraceBuilder::new(source, FORMAT, false);
    out.trace().record_again = Some(RECORD_AGAIN);
    let Some(kernels) = kernels else {
        out.trace().stats = Some(Vec::new());
        return out;
    };
    let lanes = lanes(&mut out, kernels.slot, badge);
    let rows = &kernels.rows;
    let end = add_calls(&mut out, Some(lanes.host), lanes.device, rows, 0, None);
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

/// Returns the trace of one step: its phases on the host, and the calls of a profile on the device. The calls of a phase do not begin before
/// the phase.
pub fn step(name: &str, phases: Option<&PhaseTimes>, kernels: &StepProfile) -> Trace {
    let mut out = TraceBuilder::new(name, FORMAT, false);
    if let Some(phases) = phases {
        let lane = out.lane(LaneKind::Host, name, "host", None);
        let step = out.name("step");
        let whole = (0, nanoseconds(phases.step));
        out.slice(SliceKind::Annotation, lane, step, whole, String::new);
        add_host_phases(&mut out, lane, phases, whole);
    }
    let device = out.device("device");
    let lane = out.lane(LaneKind::Device, name, "device", Some(device));
    add_calls(&mut out, None, lane, &kernels.rows, 0, phases);
    out.finish()
}

/// Adds the lanes of a slot to the trace.
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

/// Adds a step that was over at `time`, in nanoseconds, with its phases and its loss.
fn add_host_step(out: &mut TraceBuilder, lanes: &mut SlotLanes, step: &Step, time: i128) {
    // `time` is the time of the line. It is not quite the end of the step, so two steps could seem to overlap.
    let length = nanoseconds(step.ms);
    let begin = (time - length).max(lanes.end);
    let name = out.name(&if step.profiled {
        format!("step {} (profiled)", step.step)
    } else {
        format!("step {}", step.step)
    });
    let whole = (begin, begin + length);
    out.slice(SliceKind::Annotation, lanes.host, name, whole, String::new);
    if let Some(phases) = &step.phases {
        add_host_phases(out, lanes.host, phases, whole);
    }
    if step.profiled {
        lanes.profiled = Some((step.step, begin));
    }
    if let Some(Num(loss)) = step.loss.filter(|loss| loss.0.is_finite()) {
        lanes.loss.samples.push((whole.1 as i64, loss));
    }
    lanes.end = whole.1;
}

/// Adds the phases of a step one after the other, cut at the end of the step.
fn add_host_phases(
    out: &mut TraceBuilder,
    lane: u32,
    phases: &PhaseTimes,
    (step_begin, step_end): (i128, i128),
) {
    let mut begin = step_begin;
    for (phase, ms) in phases.timed_parts() {
        let end = (begin + nanoseconds(ms)).min(step_end);
        let name = out.name(phase.into_str());
        out.slice(SliceKind::Annotation, lane, name, (begin, end), String::new);
        begin = end;
    }
}

/// Adds the calls of a profiled step that begins at `step_begin`, in nanoseconds, to a lane of the device, phase after phase. No phase
/// begins before its time in `phases`. If there is a lane of the host, the phases are added there, and each call of a row without times gets
/// a slice of equal length; otherwise all calls of such a row are one slice. Returns the end of the last call.
fn add_calls(
    out: &mut TraceBuilder,
    host: Option<u32>,
    lane: u32,
    rows: &[KernelRow],
    step_begin: i128,
    phases: Option<&PhaseTimes>,
) -> i128 {
    let earliest_ms = match phases {
        Some(phases) => [0.0, phases.forward, phases.forward + phases.backward],
        None => [0.0; 3],
    };
    let mut end = step_begin;
    for (phase, ms) in PHASES.into_iter().zip(earliest_ms) {
        let phase_begin = end.max(step_begin + nanoseconds(ms));
        end = phase_begin;
        for row in rows.iter().filter(|row| row.phase == phase) {
            let name = out.name(&row_name(row));
            let slices = if host.is_some() { row.calls } else { 1 };
            for span in call_spans(row, phase_begin, end, slices) {
                out.slice(SliceKind::Kernel, lane, name, span, String::new);
                end = end.max(span.1);
            }
        }
        if let Some(host) = host
            && end > phase_begin
        {
            let name = out.name(phase);
            let span = (phase_begin, end);
            out.slice(SliceKind::Annotation, host, name, span, String::new);
        }
    }
    end
}

/// Returns the begin and end of each call of a row. If they are not known, `slices` equal parts of the row's time follow `previous_end`.
fn call_spans(
    row: &KernelRow,
    phase_begin: i128,
    previous_end: i128,
    slices: u32,
) -> Vec<(i128, i128)> {
    let mut spans = Vec::new();
    for &(start, length) in row.slices.iter().take(MAX_CALLS as usize) {
        let begin = phase_begin + i128::from(start.min(MAX_NANOSECONDS));
        spans.push((begin, begin + i128::from(length.min(MAX_NANOSECONDS))));
    }
    if spans.is_empty() {
        let count = i128::from(slices.clamp(1, MAX_CALLS));
        let boundary = |call: i128| previous_end + nanoseconds(row.ms) * call / count;
        spans.extend((0..count).map(|call| (boundary(call), boundary(call + 1))));
    }
    spans
}

/// Returns the name of a row's calls: the part of the model, the operation and the kernel, without empty or repeated words.
fn row_name(row: &KernelRow) -> String {
    let mut words = vec![row.part.as_str(), &row.op, &row.kernel];
    words.retain(|word| !word.is_empty());
    words.dedup();
    words.join(" ")
}

/// Returns for each name of a call the number of its calls and their total time.
fn sums(out: &mut TraceBuilder, kernels: &StepProfile) -> Vec<KernelStat> {
    let mut sums: BTreeMap<u32, KernelStat> = BTreeMap::new();
    for row in &kernels.rows {
        let name = out.name(&row_name(row));
        let sum = sums.entry(name).or_default();
        sum.name = name;
        sum.calls += u64::from(row.calls);
        sum.total += nanoseconds(row.ms) as u64;
    }
    sums.into_values().collect()
}

/// Converts milliseconds to whole nanoseconds. A negative number and NaN become 0.
fn nanoseconds(ms: f64) -> i128 {
    i128::from(((ms * 1e6) as u64).min(MAX_NANOSECONDS))
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
    fn calls_are_drawn_where_they_ran_within_their_phase() {
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
        let ms: Vec<(i64, i64)> = trace
            .slices_of(SliceKind::Kernel)
            .map(|slice| (slice.start / 1_000_000, slice.end / 1_000_000))
            .collect();
        // The forward calls have no times, so they are one slice of 2 ms; the backward phase begins after 5 ms.
        assert_eq!(ms, [(0, 2), (5, 6), (8, 9)]);
    }
}
