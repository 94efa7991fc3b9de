//! Writes a trace as a Perfetto trace of TrackEvents, for ui.perfetto.dev and for this program. Slices of a track are nested;
//! slices that overlap otherwise get another track of the same name.

use std::collections::BTreeMap;

use prost::Message;

use super::super::model::{Lane, LaneKind, NONE, Slice, SliceKind, Trace};
use super::super::proto::{
    self, CounterDescriptor, DebugAnnotation, Packets, ProcessDescriptor, ThreadDescriptor,
    TracePacket, TrackDescriptor, TrackEvent,
};

/// The number of the sequence of all packets.
const SEQUENCE: u32 = 1;
/// The largest number of tracks of a lane. Slices that would need more tracks are drawn shorter, and carry their own start and end.
const OVERLAPS: usize = 64;
/// The first number of tracks; lower numbers are groups.
const TRACKS: u64 = 1 << 32;
/// The first number of the tracks of counters.
const COUNTERS: u64 = 1 << 48;

/// Writes a trace as a Perfetto trace. The bytes of several traces can be appended to one file.
pub fn write(trace: &Trace) -> Vec<u8> {
    let mut writer = Writer {
        out: Vec::new(),
        trace,
        groups: Vec::new(),
        open: vec![Vec::new(); trace.lanes.len()],
    };
    writer.tracks();
    for (index, slice) in (0..).zip(&trace.slices) {
        writer.slice(index, slice);
    }
    for lane in 0..trace.lanes.len() {
        let tracks = std::mem::take(&mut writer.open[lane]);
        for (number, track) in tracks.into_iter().enumerate() {
            for end in track.into_iter().rev() {
                writer.end(lane, number, end);
            }
        }
    }
    for (number, counter) in (COUNTERS..).zip(&trace.counters) {
        for (time, value) in &counter.samples {
            let event = TrackEvent {
                r#type: Some(proto::COUNTER),
                track_uuid: Some(number),
                double_counter_value: Some(*value),
                ..TrackEvent::default()
            };
            writer.event(*time, event);
        }
    }
    writer.out
}

struct Writer<'a> {
    out: Vec<u8>,
    trace: &'a Trace,
    /// The number of the group of each lane.
    groups: Vec<u64>,
    /// For each lane, its tracks; for each track, the ends of its open slices.
    open: Vec<Vec<Vec<i64>>>,
}

/// Returns an argument of an event with a number.
fn number(name: &'static str, value: u64) -> DebugAnnotation {
    DebugAnnotation {
        name: Some(name.into()),
        uint_value: Some(value),
        ..DebugAnnotation::default()
    }
}

impl Writer<'_> {
    fn packet(&mut self, mut packet: TracePacket) {
        packet.trusted_packet_sequence_id = Some(SEQUENCE);
        let packet = vec![packet];
        self.out.extend(Packets { packet }.encode_to_vec());
    }

    /// Converts a stored time to the file's own clock, in nanoseconds; a time before 0 becomes 0.
    fn clock(&self, time: i64) -> u64 {
        u64::try_from(self.trace.clock(time).max(0)).unwrap_or(u64::MAX)
    }

    fn event(&mut self, time: i64, event: TrackEvent) {
        let timestamp = Some(self.clock(time));
        self.packet(TracePacket {
            timestamp,
            track_event: Some(event),
            ..TracePacket::default()
        });
    }

    fn descriptor(&mut self, descriptor: TrackDescriptor) {
        self.packet(TracePacket {
            track_descriptor: Some(descriptor),
            ..TracePacket::default()
        });
    }

    /// Writes groups as processes, and counters. Tracks of lanes are written when they are needed.
    fn tracks(&mut self) {
        let mut groups: BTreeMap<&str, u64> = BTreeMap::new();
        for lane in &self.trace.lanes {
            let next = groups.len() as u64 + 1;
            self.groups.push(*groups.entry(&lane.group).or_insert(next));
        }
        for (name, id) in groups {
            let name = if name.is_empty() { "trace" } else { name };
            let process = ProcessDescriptor {
                pid: Some(id as i32),
                process_name: Some(name.into()),
            };
            self.descriptor(TrackDescriptor {
                uuid: Some(id),
                process: Some(process),
                ..TrackDescriptor::default()
            });
        }
        for (id, counter) in (COUNTERS..).zip(&self.trace.counters) {
            let unit = CounterDescriptor {
                unit_name: Some(counter.unit.clone().into()),
                ..CounterDescriptor::default()
            };
            let name = Some(counter.name.clone().into());
            self.descriptor(TrackDescriptor {
                uuid: Some(id),
                name,
                counter: Some(unit),
                ..TrackDescriptor::default()
            });
        }
    }

    /// Returns the number of a track of a lane in the whole file.
    fn track(lane: usize, number: usize) -> u64 {
        TRACKS + ((lane as u64) << 24) + number as u64
    }

    fn declare(&mut self, lane: usize, number: usize) {
        let Lane { kind, name, .. } = &self.trace.lanes[lane];
        let mut descriptor = TrackDescriptor {
            uuid: Some(Self::track(lane, number)),
            parent_uuid: Some(self.groups[lane]),
            ..TrackDescriptor::default()
        };
        if *kind == LaneKind::Host && number == 0 {
            descriptor.thread = Some(ThreadDescriptor {
                pid: Some(self.groups[lane] as i32),
                tid: Some(lane as i64 + 1),
                thread_name: Some(name.clone().into()),
            });
        } else {
            descriptor.name = Some(name.clone().into());
        }
        self.descriptor(descriptor);
    }

    /// Writes the beginning of a slice, on the first track of its lane where it is nested in all open slices. Ends are written when later
    /// slices begin.
    fn slice(&mut self, index: u32, slice: &Slice) {
        let lane = slice.lane as usize;
        let tracks = self.open[lane].len();
        let mut at = tracks;
        for number in 0..tracks {
            while let Some(end) = self.open[lane][number].pop_if(|end| *end <= slice.start) {
                self.end(lane, number, end);
            }
            let last = self.open[lane][number].last();
            let fits = last.is_none_or(|end| slice.end <= *end);
            if fits && at == tracks {
                at = number;
            }
        }
        let mut notes = Vec::new();
        let mut end = slice.end;
        if at == tracks && tracks == OVERLAPS {
            at = tracks - 1;
            end = self.open[lane][at].last().copied().unwrap_or(end);
            notes = vec![
                number("begin_ns", self.clock(slice.start)),
                number("end_ns", self.clock(slice.end)),
            ];
        } else if at == tracks {
            self.open[lane].push(Vec::new());
            self.declare(lane, at);
        }
        self.open[lane][at].push(end);
        let trace = self.trace;
        let detail = trace.detail(slice);
        if slice.kind.on_device() {
            let device = trace.lanes[lane].device;
            if let Some(label) = device.and_then(|id| trace.devices.get(id as usize)) {
                let name = if slice.kind == SliceKind::Copy {
                    "dst_agent"
                } else {
                    "agent"
                };
                notes.push(DebugAnnotation {
                    name: Some(name.into()),
                    string_value: Some(label.clone().into()),
                    ..DebugAnnotation::default()
                });
            }
            notes.extend(detail.bytes.map(|bytes| number("copy_bytes", bytes)));
            for (names, sizes) in [
                (["grid_x", "grid_y", "grid_z"], detail.grid),
                (["workgroup_x", "workgroup_y", "workgroup_z"], detail.block),
            ] {
                for (name, size) in names.into_iter().zip(sizes.into_iter().flatten()) {
                    notes.push(number(name, size.into()));
                }
            }
        }
        // Both ends of a flow have the number of the launch.
        let launch = if slice.kind.on_device() {
            slice.link
        } else {
            index
        };
        let flow = (slice.link != NONE).then_some(launch);
        let event = TrackEvent {
            r#type: Some(proto::BEGIN),
            track_uuid: Some(Self::track(lane, at)),
            categories: vec![slice.kind.category().into()],
            name: Some(trace.name(slice.name).into()),
            flow_ids: flow.map(|flow| u64::from(flow) + 1).into_iter().collect(),
            debug_annotations: notes,
            ..TrackEvent::default()
        };
        self.event(slice.start, event);
    }

    fn end(&mut self, lane: usize, number: usize, time: i64) {
        let event = TrackEvent {
            r#type: Some(proto::END),
            track_uuid: Some(Self::track(lane, number)),
            ..TrackEvent::default()
        };
        self.event(time, event);
    }
}
