//! Reads Perfetto traces of TrackEvents from rocprofv3, rocpd and this crate, packet by packet. The kind of an event follows from its
//! category, not from the name of its track. If an event has its own start and end, these count: slices of a track may then overlap.

mod arguments;
mod wire;

use std::collections::HashMap;
use std::io::{BufReader, Read};

use flate2::read::ZlibDecoder;
use prost::Message;

use super::csv;
use super::model::{Detail, Direction, LaneKind, SliceKind, Trace, TraceBuilder, sum};
use super::proto::{self, TracePacket, TrackDescriptor, TrackEvent};
use super::source::{OpenError, TraceSource};
use arguments::read_arguments;
use wire::{Next, PACKET, next_packet};
pub(crate) use wire::{is_xspace, recognises};

/// The largest depth of nested packets.
const NESTED: u32 = 4;
/// `BUILTIN_CLOCK_BOOTTIME`, the default clock of a trace.
const BOOTTIME: u32 = 6;

/// The scope of flows in links. Other scopes are processes.
const FLOWS: u64 = u64::MAX;

/// Reads a trace.
pub(crate) fn read(source: &mut TraceSource<'_>) -> Result<Trace, OpenError> {
    let mut reader = PftraceReader {
        out: TraceBuilder::new(source.name(), "perfetto pftrace", true),
        ..PftraceReader::default()
    };
    let mut data = BufReader::with_capacity(256 * 1024, &mut *source);
    let mut at = 0;
    let cut = loop {
        match next_packet(&mut data, &mut at) {
            Some(Next::Packet(bytes)) => reader.decode(&bytes, at, 0),
            Some(Next::End) => break None,
            Some(Next::Noise) => {
                break Some(format!("After byte {at} there are no packets of a trace."));
            }
            None => break Some(format!("The trace ends inside a packet, at byte {at}.")),
        }
    };
    source.done();
    if reader.events == 0 && reader.packets == 0 {
        return Err(OpenError::new(
            "holds no readable packet of a trace.",
            "Record again, or copy the file again.",
        ));
    }
    if let Some(why) = cut {
        reader.out.trace().truncated = Some(why);
    }
    Ok(reader.finish())
}

/// The state of a sequence of packets: names and defaults that later packets refer to.
#[derive(Default)]
struct Sequence {
    categories: HashMap<u64, String>,
    names: HashMap<u64, String>,
    /// Names of arguments.
    annotations: HashMap<u64, String>,
    /// Texts of arguments.
    values: HashMap<u64, String>,
    /// The track of events that name none.
    track: u64,
    /// The clock of packets that name none.
    clock: Option<u32>,
    clocks: HashMap<u32, SequenceClock>,
}

/// A clock of a sequence, in nanoseconds.
struct SequenceClock {
    /// The last time of the clock.
    now: i128,
    /// True if packets give differences to the last time.
    is_incremental: bool,
    /// The length of a unit.
    unit: i128,
    /// The offset from this clock to boot time.
    offset: i128,
}

/// A track, merged from all its descriptors.
#[derive(Default)]
struct Track {
    name: Option<String>,
    /// The parent track; 0 without a parent.
    parent: u64,
    process: Option<String>,
    /// The name of the thread, and its number.
    thread: Option<(String, i64)>,
    /// The unit of a counter, and the factor of its values.
    counter: Option<(String, f64)>,
    /// The number of the counter in the trace.
    samples: Option<usize>,
    /// The open slices; `None` for a slice whose end is already known, or that was not kept.
    open: Vec<Option<u32>>,
}

#[derive(Default)]
struct PftraceReader {
    out: TraceBuilder,
    sequences: HashMap<u32, Sequence>,
    tracks: HashMap<u64, Track>,
    /// Lanes by track and device; the label is empty if only the track's name identifies the device.
    lanes: HashMap<(u64, Option<String>), u32>,
    /// Slices with their tracks and correlations.
    correlated: Vec<(u32, u64, u64)>,
    /// The offset from each system clock to boot time, in nanoseconds.
    offsets: HashMap<u32, i128>,
    /// The number of packets read.
    packets: u64,
    /// The number of events read.
    events: u64,
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

impl PftraceReader {
    /// Decodes a packet, and the packets inside of it. `at` is the offset of its end, and `depth` the number of packets around it.
    fn decode(&mut self, bytes: &[u8], at: u64, depth: u32) {
        let place = || format!("the packet before byte {at}");
        let Ok(packet) = TracePacket::decode(bytes) else {
            return self.out.unread("no readable packet", place);
        };
        self.packets += 1;
        if let Some(packed) = &packet.compressed_packets {
            let mut inner = Vec::new();
            let unpacked = ZlibDecoder::new(&packed[..])
                .take(PACKET)
                .read_to_end(&mut inner);
            if unpacked.is_err() || depth == NESTED {
                self.out.unread("packed packets are damaged", place);
            }
            let mut data = &inner[..];
            while depth < NESTED
                && let Some(Next::Packet(nested)) = next_packet(&mut data, &mut 0)
            {
                self.decode(&nested, at, depth + 1);
            }
        }
        self.packet(packet, at);
    }

    /// Takes a packet into the state of its sequence, and adds its event to the trace.
    fn packet(&mut self, packet: TracePacket, at: u64) {
        let id = packet.trusted_packet_sequence_id.unwrap_or(0);
        let sequence = self.sequences.entry(id).or_default();
        if packet.sequence_flags.unwrap_or(0) & proto::CLEARED != 0 {
            *sequence = Sequence {
                clocks: std::mem::take(&mut sequence.clocks),
                ..Sequence::default()
            };
        }
        if let Some(defaults) = &packet.trace_packet_defaults {
            sequence.clock = defaults.timestamp_clock_id;
            sequence.track = defaults
                .track_event_defaults
                .as_ref()
                .and_then(|event| event.track_uuid)
                .unwrap_or(0);
        }
        if let Some(interned) = packet.interned_data {
            for (known, new) in [
                (&mut sequence.categories, interned.event_categories),
                (&mut sequence.names, interned.event_names),
                (&mut sequence.annotations, interned.debug_annotation_names),
                (
                    &mut sequence.values,
                    interned.debug_annotation_string_values,
                ),
            ] {
                known.extend(new.iter().map(|entry| (entry.iid(), lossy(entry.name()))));
            }
        }
        if let Some(snapshot) = &packet.clock_snapshot {
            let clocks = &snapshot.clocks;
            let boot = clocks
                .iter()
                .find(|clock| clock.clock_id() == BOOTTIME)
                .map(|clock| i128::from(clock.timestamp()));
            for clock in clocks {
                let unit = i128::from(clock.unit_multiplier_ns.unwrap_or(1).max(1));
                let value = i128::from(clock.timestamp()).saturating_mul(unit);
                let offset = boot.map_or(0, |boot| boot.saturating_sub(value));
                if clock.clock_id() >= 64 {
                    let known = SequenceClock {
                        now: value,
                        is_incremental: clock.is_incremental(),
                        unit,
                        offset,
                    };
                    sequence.clocks.insert(clock.clock_id(), known);
                } else if boot.is_some() {
                    self.offsets.entry(clock.clock_id()).or_insert(offset);
                }
            }
        }
        let timestamp = i128::from(packet.timestamp.unwrap_or(0));
        let clock_id = packet
            .timestamp_clock_id
            .or(sequence.clock)
            .unwrap_or(BOOTTIME);
        let time = if let Some(clock) = sequence.clocks.get_mut(&clock_id) {
            let before = if clock.is_incremental { clock.now } else { 0 };
            clock.now = timestamp.saturating_mul(clock.unit).saturating_add(before);
            clock.now.saturating_add(clock.offset)
        } else {
            timestamp.saturating_add(self.offsets.get(&clock_id).copied().unwrap_or(0))
        };
        if let Some(descriptor) = packet.track_descriptor {
            self.describe(descriptor);
        }
        if let Some(stats) = packet.trace_stats {
            let lost = sum(stats.buffer_stats.iter().flat_map(|buffer| {
                [
                    buffer.chunks_overwritten(),
                    buffer.chunks_discarded(),
                    buffer.trace_writer_packet_loss(),
                ]
            }));
            if lost > 0 {
                let why = format!(
                    "The tracer's buffer was too small: it dropped {lost} pieces while recording."
                );
                self.out.trace().truncated = Some(why);
            }
        }
        if let Some(event) = packet.track_event {
            self.event(id, event, time, at);
        }
    }

    /// Merges descriptors of a track: a second descriptor of a thread lacks the fields of the first.
    fn describe(&mut self, new: TrackDescriptor) {
        let track = self.tracks.entry(new.uuid()).or_default();
        if let Some(name) = new.name.or(new.static_name) {
            track.name = Some(lossy(&name));
        }
        track.parent = new.parent_uuid.unwrap_or(track.parent);
        if let Some(process) = new.process {
            let name = lossy(process.process_name());
            track.process = Some(format!("{name} {}", process.pid()));
        }
        if let Some(thread) = new.thread {
            track.thread = Some((lossy(thread.thread_name()), thread.tid()));
        }
        if let Some(counter) = new.counter {
            let unit = match (counter.unit_name.as_deref(), counter.unit()) {
                (Some(name), _) => lossy(name),
                (None, 1) => "ns".to_owned(),
                (None, 3) => "B".to_owned(),
                _ => String::new(),
            };
            track.counter = Some((unit, counter.unit_multiplier.unwrap_or(1) as f64));
        }
    }

    /// Adds an event to the trace. `time` is in nanoseconds, and `at` is the offset of the end of its packet.
    fn event(&mut self, sequence_id: u32, event: TrackEvent, time: i128, at: u64) {
        let sequence = &self.sequences[&sequence_id];
        let place = || format!("the packet before byte {at}");
        let uuid = event.track_uuid.unwrap_or(sequence.track);
        self.events += 1;
        match event.r#type() {
            proto::BEGIN => {}
            proto::END => {
                match self.tracks.entry(uuid).or_default().open.pop() {
                    Some(Some(slice)) if !self.out.close(slice, time) => {
                        self.out.unread("the end is before the start", place);
                    }
                    Some(_) => {}
                    None => self.out.unread("an end without a beginning", place),
                }
                return;
            }
            proto::INSTANT => {}
            proto::COUNTER => return self.counter(uuid, &event, time),
            _ => return,
        }
        let is_instant = event.r#type() == proto::INSTANT;
        let interned =
            |known: &HashMap<u64, String>, id: u64| known.get(&id).cloned().unwrap_or_default();
        let name = match &event.name {
            Some(name) => lossy(name),
            None => interned(&sequence.names, event.name_iid()),
        };
        let category = match (event.categories.first(), event.category_iids.first()) {
            (Some(name), _) => lossy(name),
            (None, Some(id)) => interned(&sequence.categories, *id),
            (None, None) => String::new(),
        };
        let arguments = read_arguments(sequence, &event);
        let kind = SliceKind::from_category(&category, &name);
        // A call of 0 ns is written as an instant; marks are not drawn.
        if is_instant && !kind.is_call() {
            return;
        }
        let agent = match kind {
            SliceKind::Kernel | SliceKind::Graph | SliceKind::Memset => arguments.agent,
            // The name of a copy says which of its sides is a GPU; the copy belongs to that side.
            SliceKind::Copy if Direction::from_name(&name) == Direction::D2H => {
                arguments.from.or(arguments.to)
            }
            SliceKind::Copy => arguments.to.or(arguments.from),
            _ => None,
        };
        let label = agent.map_or_else(String::new, |agent| csv::device_number(&agent));
        let lane = self.lane(uuid, kind.on_device().then_some(label));
        let own_span = arguments.begin.zip(arguments.end);
        let span = own_span.map_or((time, time), |(begin, end)| (begin.into(), end.into()));
        // Databases and tables of one run have the symbol's name without this suffix.
        let symbol = name
            .strip_suffix(" [clone .kd]")
            .or(name.strip_suffix(".kd"))
            .unwrap_or(&name);
        let name_id = self.out.name(symbol);
        let slice = self.out.slice(kind, lane, name_id, span, place);
        if !is_instant {
            let open = if own_span.is_none() { slice } else { None };
            self.tracks.entry(uuid).or_default().open.push(open);
        }
        let Some(slice) = slice else { return };
        let flows = event.flow_ids.iter().chain(&event.terminating_flow_ids);
        // A correlation is unique within its process, a flow in the whole trace.
        for number in flows {
            self.out.link(slice, FLOWS, Some(*number));
        }
        if let Some(number) = arguments.correlation {
            self.correlated.push((slice, uuid, number));
        }
        if kind.on_device() {
            self.out.trace().grid_in_items |= arguments.grid_in_items;
            let direction = (kind == SliceKind::Copy).then(|| Direction::from_name(symbol));
            let whole = |sizes: [Option<u32>; 3]| {
                Some([sizes[0]?, sizes[1].unwrap_or(1), sizes[2].unwrap_or(1)])
            };
            let detail = Detail {
                bytes: arguments.bytes,
                direction,
                grid: whole(arguments.grid),
                block: whole(arguments.block),
                collective: None,
            };
            self.out.detail(slice, detail);
        }
    }

    /// Returns the topmost ancestor of a track, which is its process.
    fn top(&self, uuid: u64) -> u64 {
        let mut ancestor = uuid;
        for _ in 0..8 {
            match self.tracks.get(&ancestor).map(|track| track.parent) {
                Some(parent) if parent != 0 => ancestor = parent,
                _ => break,
            }
        }
        ancestor
    }

    /// Adds a sample of a counter. `time` is in nanoseconds.
    fn counter(&mut self, uuid: u64, event: &TrackEvent, time: i128) {
        let track = self.tracks.entry(uuid).or_default();
        let (unit, factor) = track.counter.clone().unwrap_or((String::new(), 1.0));
        let whole = event.counter_value() as f64;
        let value = event.double_counter_value.unwrap_or(whole) * factor;
        let name = track.name.clone().unwrap_or_default();
        let Some(stored) = self.out.time(time) else {
            return;
        };
        let new = || self.out.counter(&name, &unit);
        let at = *track.samples.get_or_insert_with(new);
        self.out.trace().counters[at].samples.push((stored, value));
    }

    /// Returns the number of the device in the name of a track: `4` for `COMPUTE AGENT [4] QUEUE [0] (GPU)`, `0` for other names.
    fn agent_in_name(&self, uuid: u64) -> String {
        let track = self.tracks.get(&uuid);
        let name = track.and_then(|track| track.name.as_deref()).unwrap_or("");
        let number = |after: &str| {
            let rest = &name[name.to_ascii_uppercase().find(after)? + after.len()..];
            let mut numbers = rest.split(|c: char| !c.is_ascii_digit());
            numbers.find(|digits| !digits.is_empty())
        };
        number("AGENT").or(number("GPU")).unwrap_or("0").to_owned()
    }

    /// Returns the lane for a track and the label of a device, which is `None` for a track of the host.
    fn lane(&mut self, uuid: u64, device: Option<String>) -> u32 {
        let key = (uuid, device);
        if let Some(lane) = self.lanes.get(&key) {
            return *lane;
        }
        // Descriptors may follow later: `finish` sets the names, and the device of a lane without a label.
        let (kind, number) = match key.1.as_deref() {
            None => (LaneKind::Host, None),
            Some("") => (LaneKind::Device, None),
            Some(label) => (LaneKind::Device, Some(self.out.device(label))),
        };
        let lane = self.out.lane(kind, "", "", number);
        self.lanes.insert(key, lane);
        lane
    }

    /// Returns the trace once all packets are read: links what refers to later packets, and names the lanes.
    fn finish(mut self) -> Trace {
        let tracks = self.tracks.values();
        let open = tracks.flat_map(|track| track.open.iter().flatten());
        let count = open.count() as u64;
        let place = || "the end of the file".to_owned();
        self.out
            .unread_many("a beginning without an end", count, place);
        let uuids = self.lanes.keys().map(|(uuid, _)| *uuid);
        let tops: HashMap<u64, u64> = uuids.map(|uuid| (uuid, self.top(uuid))).collect();
        for (slice, uuid, number) in std::mem::take(&mut self.correlated) {
            self.out.link(slice, tops[&uuid], Some(number));
        }
        let mut hosts: Vec<(u32, u64)> = Vec::new();
        let mut unlabelled: Vec<(u32, u64)> = Vec::new();
        for ((uuid, device), lane) in &self.lanes {
            match device.as_deref() {
                None => hosts.push((*lane, *uuid)),
                Some("") => unlabelled.push((*lane, *uuid)),
                Some(_) => {}
            }
        }
        unlabelled.sort_unstable();
        for (lane, uuid) in unlabelled {
            let id = self.out.device(&self.agent_in_name(uuid));
            self.out.trace().lanes[lane as usize].device = Some(id);
        }
        let process = |uuid: &u64| {
            let top = tops.get(uuid).and_then(|top| self.tracks.get(top));
            top.and_then(|track| track.process.clone())
        };
        hosts.sort_unstable();
        for (lane, uuid) in hosts {
            let label = process(&uuid).unwrap_or_else(|| format!("track {}", tops[&uuid]));
            self.out.assign_process(lane, &label);
        }
        let trace = self.out.trace();
        for ((uuid, _), lane_id) in &self.lanes {
            let lane = &mut trace.lanes[*lane_id as usize];
            let Some(track) = self.tracks.get(uuid) else {
                continue;
            };
            lane.group = match lane.device {
                Some(id) => format!("GPU {}", trace.devices[id as usize]),
                None => process(uuid).unwrap_or_default(),
            };
            lane.name = match (&track.name, &track.thread) {
                (Some(name), _) => name.clone(),
                (None, Some((name, tid))) => format!("{name} {tid}"),
                (None, None) => format!("track {uuid}"),
            };
        }
        trace.holds.kernels = true;
        self.out.finish()
    }
}
