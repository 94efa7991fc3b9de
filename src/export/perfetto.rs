//! A recording as a Perfetto trace (TrackEvent protobuf, for ui.perfetto.dev), written field by field.
//! Field numbers: perfetto/protos/perfetto/trace. Kernel rows are sums, laid end to end: no timeline of launches.

use std::collections::HashMap;

use crate::protocol::{Event, Kernels, Line, Slot, Step};

/// A protobuf message being written.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut v: u64) {
        while v >= 0x80 {
            self.0.push(v as u8 | 0x80);
            v >>= 7;
        }
        self.0.push(v as u8);
    }

    fn uint(&mut self, field: u64, v: u64) -> &mut Self {
        self.varint(field << 3);
        self.varint(v);
        self
    }

    fn double(&mut self, field: u64, v: f64) -> &mut Self {
        self.varint(field << 3 | 1);
        self.0.extend(v.to_le_bytes());
        self
    }

    fn bytes(&mut self, field: u64, v: &[u8]) -> &mut Self {
        self.varint(field << 3 | 2);
        self.varint(v.len() as u64);
        self.0.extend(v);
        self
    }

    fn text(&mut self, field: u64, v: &str) -> &mut Self {
        self.bytes(field, v.as_bytes())
    }

    fn nested(&mut self, field: u64, write: impl FnOnce(&mut Self) -> &mut Self) -> &mut Self {
        let mut inner = Self::default();
        write(&mut inner);
        self.bytes(field, &inner.0)
    }
}

const PROCESS: u64 = 1;

/// Tracks of one slot, by an offset from `10 × (slot + 1)`.
#[derive(Clone, Copy)]
enum Track {
    Steps,
    Kernels,
    Loss,
    Speed,
}

struct Trace {
    out: Message,
    /// Where the last slice of a track ended, in ns: slices of one track must not overlap.
    ends: HashMap<u64, u64>,
}

/// The trace; `badge` names the device and the date of the run.
pub fn trace(lines: impl Iterator<Item = Line>, badge: &str) -> Vec<u8> {
    let mut trace = Trace {
        out: Message::default(),
        ends: HashMap::new(),
    };
    let name = format!("perflings ({badge})");
    trace.packet(|p| {
        p.nested(60, |d| {
            d.uint(1, PROCESS)
                .nested(3, |process| process.uint(1, 1).text(6, &name))
        })
    });
    let mut declared = [false; 2];
    for line in lines {
        let at = nanoseconds(line.t);
        if let Some(slot) = slot_of(&line.event)
            && !std::mem::replace(&mut declared[slot as usize], true)
        {
            trace.declare(slot);
        }
        match &line.event {
            Event::Step(step) => trace.step(step, at),
            Event::Kernels(kernels) => trace.kernels(kernels, at),
            Event::Throughput(t) => trace.counter(uuid(t.slot, Track::Speed), at, t.samples_per_s),
            Event::Lints { slot, lints } => {
                for lint in lints {
                    let track = uuid(*slot, Track::Steps);
                    trace.event(at, |e| {
                        e.uint(9, 3).uint(11, track);
                        e.text(22, "lint").text(23, &lint.name)
                    });
                }
            }
            _ => {}
        }
    }
    trace.out.0
}

impl Trace {
    fn packet(&mut self, write: impl FnOnce(&mut Message) -> &mut Message) {
        self.out.nested(1, |p| {
            write(p);
            p.uint(10, 1)
        });
    }

    fn event(&mut self, at: u64, write: impl FnOnce(&mut Message) -> &mut Message) {
        self.packet(|p| p.uint(8, at).nested(11, write));
    }

    fn declare(&mut self, slot: Slot) {
        for (track, name, unit) in [
            (Track::Steps, "steps", None),
            (
                Track::Kernels,
                "profiled step: sums per kernel row, not a timeline",
                None,
            ),
            (Track::Loss, "loss", Some("nats")),
            (Track::Speed, "samples/s (median)", Some("samples/s")),
        ] {
            let name = format!("{slot:?}: {name}");
            self.packet(|p| {
                p.nested(60, |d| {
                    d.uint(1, uuid(slot, track)).uint(5, PROCESS).text(2, &name);
                    match unit {
                        Some(unit) => d.nested(8, |counter| counter.text(6, unit)),
                        None => d,
                    }
                })
            });
        }
    }

    fn step(&mut self, step: &Step, at: u64) {
        let track = uuid(step.slot, Track::Steps);
        // The line is written when the step is over; its clock and the step's may disagree by a little.
        let length = nanoseconds(step.ms / 1e3);
        let begin = at.saturating_sub(length).max(self.end_of(track));
        let clock = if step.synced { "host-sync" } else { "enqueue" };
        let profiled = if step.profiled { " (profiled)" } else { "" };
        self.event(begin, |e| {
            e.uint(9, 1)
                .uint(11, track)
                .text(22, "step")
                .text(23, &format!("step {}{profiled}", step.step));
            for (name, value) in [("loss", step.loss.to_string().as_str()), ("clock", clock)] {
                e.nested(4, |a| a.text(10, name).text(6, value));
            }
            e
        });
        let mut inner = begin;
        if let Some(phases) = &step.phases {
            for (name, ms) in [
                ("forward", phases.forward),
                ("backward", phases.backward),
                ("optimizer", phases.optimizer),
            ] {
                let end = (inner + nanoseconds(ms / 1e3)).min(begin + length);
                self.slice(track, inner, end, "phase", name, |e| e);
                inner = end;
            }
        }
        self.event(begin + length, |e| e.uint(9, 2).uint(11, track));
        self.ends.insert(track, begin + length);
        if step.loss.0.is_finite() {
            self.counter(uuid(step.slot, Track::Loss), begin + length, step.loss.0);
        }
    }

    fn kernels(&mut self, kernels: &Kernels, at: u64) {
        let track = uuid(kernels.slot, Track::Kernels);
        let total: f64 = kernels.rows.iter().map(|row| row.ms).sum();
        let mut begin = at
            .saturating_sub(nanoseconds(total / 1e3))
            .max(self.end_of(track));
        let order = |phase: &str| {
            let phases = ["forward", "backward", "optimizer"];
            phases.iter().take_while(|known| **known != phase).count()
        };
        let mut rows: Vec<_> = kernels.rows.iter().collect();
        rows.sort_by_key(|row| order(&row.phase));
        for row in rows {
            let end = begin + nanoseconds(row.ms / 1e3);
            let name = format!("{} {}", row.part, row.kernel);
            self.slice(track, begin, end, &row.phase, &name, |e| {
                for (name, value) in [
                    ("calls", Some(f64::from(row.calls))),
                    ("layers", Some(f64::from(row.layers))),
                    ("GFLOP", row.flops.map(|it| it / 1e9)),
                    ("GB", row.bytes.map(|it| it / 1e9)),
                ] {
                    if let Some(value) = value {
                        e.nested(4, |a| a.text(10, name).double(5, value));
                    }
                }
                e
            });
            begin = end;
        }
        self.ends.insert(track, begin);
    }

    fn slice(
        &mut self,
        track: u64,
        begin: u64,
        end: u64,
        category: &str,
        name: &str,
        more: impl FnOnce(&mut Message) -> &mut Message,
    ) {
        self.event(begin, |e| {
            e.uint(9, 1)
                .uint(11, track)
                .text(22, category)
                .text(23, name);
            more(e)
        });
        self.event(end, |e| e.uint(9, 2).uint(11, track));
    }

    fn counter(&mut self, track: u64, at: u64, value: f64) {
        self.event(at, |e| e.uint(9, 4).uint(11, track).double(44, value));
    }

    fn end_of(&self, track: u64) -> u64 {
        self.ends.get(&track).copied().unwrap_or(0)
    }
}

fn uuid(slot: Slot, track: Track) -> u64 {
    10 * (slot as u64 + 1) + track as u64
}

fn slot_of(event: &Event) -> Option<Slot> {
    match event {
        Event::Step(step) => Some(step.slot),
        Event::Kernels(kernels) => Some(kernels.slot),
        Event::Throughput(throughput) => Some(throughput.slot),
        Event::Lints { slot, .. } => Some(*slot),
        _ => None,
    }
}

/// Seconds as whole nanoseconds; negative and NaN as 0.
fn nanoseconds(seconds: f64) -> u64 {
    (seconds * 1e9) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{Num, Phases};

    /// Reads the fields of one message: number, and either a varint or its bytes.
    fn fields(mut bytes: &[u8]) -> Vec<(u64, u64, Vec<u8>)> {
        fn varint(bytes: &mut &[u8]) -> u64 {
            let mut v = 0;
            for shift in (0..).step_by(7) {
                let (first, rest) = bytes.split_first().expect("a whole varint");
                *bytes = rest;
                v |= u64::from(first & 0x7f) << shift;
                if first & 0x80 == 0 {
                    return v;
                }
            }
            unreachable!("the loop returns")
        }
        let mut found = Vec::new();
        while !bytes.is_empty() {
            let key = varint(&mut bytes);
            match key & 7 {
                0 => found.push((key >> 3, varint(&mut bytes), Vec::new())),
                1 => {
                    let (value, rest) = bytes.split_at(8);
                    found.push((key >> 3, 0, value.to_vec()));
                    bytes = rest;
                }
                2 => {
                    let len = varint(&mut bytes) as usize;
                    let (value, rest) = bytes.split_at(len);
                    found.push((key >> 3, 0, value.to_vec()));
                    bytes = rest;
                }
                other => panic!("wire type {other}"),
            }
        }
        found
    }

    #[test]
    fn every_slice_that_begins_ends_and_none_overlap() {
        let step = |i: u64| Step {
            slot: Slot::A,
            step: i,
            loss: Num(6.9),
            ms: 10.0,
            synced: true,
            profiled: false,
            phases: Some(Phases {
                forward: 3.0,
                backward: 5.0,
                optimizer: 1.0,
                residual: 1.0,
                step: 10.0,
            }),
            clocks: None,
        };
        // Written a little early: the second step would begin before the first one's end.
        let lines = [0.010, 0.019, 0.030]
            .into_iter()
            .enumerate()
            .map(|(i, t)| Line {
                t,
                event: Event::Step(step(i as u64)),
            });
        let bytes = trace(lines, "cpu, 2026-11-21");
        let (mut depth, mut last, mut slices) = (0_i32, 0, 0);
        for (number, _, packet) in fields(&bytes) {
            assert_eq!(number, 1, "every field of a trace is a packet");
            let packet = fields(&packet);
            let Some((.., event)) = packet.iter().find(|f| f.0 == 11) else {
                continue;
            };
            let at = packet.iter().find(|f| f.0 == 8).expect("a time").1;
            let kind = fields(event).iter().find(|f| f.0 == 9).expect("a kind").1;
            if kind == 1 || kind == 2 {
                assert!(at >= last, "time runs forward");
                last = at;
                depth += if kind == 1 { 1 } else { -1 };
                slices += i32::from(kind == 1);
                assert!((0..=2).contains(&depth));
            }
        }
        assert_eq!((depth, slices), (0, 12));
    }
}
