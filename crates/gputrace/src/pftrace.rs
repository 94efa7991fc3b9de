//! Perfetto traces of TrackEvents from rocprofv3, rocpd and this program, read packet by packet. The kind of an event follows from its
//! category, not from the name of its track. If an event has its own start and end, these count: slices of a track may then overlap.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read};

use flate2::read::ZlibDecoder;
use prost::Message;

use super::csv;
use super::model::{Detail, Direction, LaneKind, SliceKind, Trace, TraceBuilder, sum};
use super::proto::{self, TracePacket, TrackDescriptor, TrackEvent};
use super::source::{FileHead, OpenError, TraceSource};

/// Longest packet that is read, in bytes.
const PACKET: u64 = 256 << 20;
/// Largest depth of nested packets.
const NESTED: u32 = 4;
/// `BUILTIN_CLOCK_BOOTTIME`, the default clock of a trace.
const BOOTTIME: u32 = 6;

/// Scope of flows, in place of a correlation's process.
const FLOWS: u64 = u64::MAX;

/// Whether the data begin with a plane of an XSpace: a message with a name such as `/device:GPU:0`.
pub(crate) fn is_xspace(bytes: &[u8]) -> bool {
    let Some(mut plane) = bytes.strip_prefix(&[0x0a]) else {
        return false;
    };
    // Its length, its number, its name; the number may be absent.
    if varint(&mut plane, &mut 0).is_none() {
        return false;
    }
    if let Some(mut rest) = plane.strip_prefix(&[0x08]) {
        varint(&mut rest, &mut 0);
        plane = rest;
    }
    let name = plane.strip_prefix(&[0x12]).and_then(|rest| rest.get(1..));
    let planes = ["/host:", "/device:", "Task Environment"];
    name.is_some_and(|name| {
        planes
            .iter()
            .any(|plane| name.starts_with(plane.as_bytes()))
    })
}

/// Whether the data begin with packets of a trace.
pub(crate) fn recognises(head: &FileHead) -> bool {
    if is_xspace(&head.bytes) {
        return false;
    }
    let mut bytes = &head.bytes[..];
    let mut packets = 0;
    while packets < 3 && bytes.first() == Some(&0x0a) {
        let mut rest = &bytes[1..];
        let Some(length) = varint(&mut rest, &mut 0) else {
            return packets > 0;
        };
        let Some(body) = rest.get(..length as usize) else {
            return packets > 0 || fields(rest, true);
        };
        if !fields(body, false) {
            return false;
        }
        packets += 1;
        bytes = &rest[length as usize..];
    }
    packets > 0 && (packets == 3 || bytes.is_empty() || bytes[0] == 0x0a)
}

/// Whether bytes are fields of a message; with `cut`, the last one may be incomplete.
fn fields(mut bytes: &[u8], cut: bool) -> bool {
    while !bytes.is_empty() {
        let Some(key) = varint(&mut bytes, &mut 0) else {
            return cut;
        };
        let length = match key & 7 {
            0 => varint(&mut bytes, &mut 0).map(|_| 0),
            1 => Some(8),
            2 => varint(&mut bytes, &mut 0),
            5 => Some(4),
            _ => return false,
        };
        let Some(length) = length else { return cut };
        if key >> 3 == 0 || key >> 3 > 100_000 {
            return false;
        }
        match bytes.get(length as usize..) {
            Some(rest) => bytes = rest,
            None => return cut,
        }
    }
    true
}

/// Reads a trace.
pub(crate) fn read(source: &mut TraceSource<'_>) -> Result<Trace, OpenError> {
    let mut reader = PftraceReader {
        out: TraceBuilder::new(source.name(), "perfetto pftrace", true),
        ..PftraceReader::default()
    };
    let mut data = BufReader::with_capacity(256 * 1024, &mut *source);
    let mut at = 0;
    let cut = loop {
        match packet(&mut data, &mut at) {
            Some(Next::Packet(bytes)) => reader.bytes(&bytes, at, 0),
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

enum Next {
    Packet(Vec<u8>),
    /// The end of the data, between two packets.
    End,
    /// Not a packet.
    Noise,
}

/// The next packet of a trace; other fields at the top are skipped. `None` if the data end inside a packet.
fn packet(data: &mut impl BufRead, at: &mut u64) -> Option<Next> {
    loop {
        if data.fill_buf().is_ok_and(<[u8]>::is_empty) {
            return Some(Next::End);
        }
        let key = varint(data, at)?;
        let length = match (key >> 3, key & 7) {
            (0, _) => return Some(Next::Noise),
            (_, 0) => varint(data, at).map(|_| 0)?,
            (_, 1) => 8,
            (_, 5) => 4,
            (_, 2) => varint(data, at)?,
            _ => return Some(Next::Noise),
        };
        if length > PACKET {
            return Some(Next::Noise);
        }
        let mut bytes = Vec::new();
        let read = data.take(length).read_to_end(&mut bytes).unwrap_or(0) as u64;
        *at += read;
        if read < length {
            return None;
        }
        if key == 0x0a {
            return Some(Next::Packet(bytes));
        }
    }
}

fn varint(data: &mut impl Read, at: &mut u64) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let mut byte = [0];
        data.read_exact(&mut byte).ok()?;
        *at += 1;
        value |= u64::from(byte[0] & 0x7f) << shift;
        if byte[0] & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

/// State of a sequence of packets.
#[derive(Default)]
struct Sequence {
    categories: HashMap<u64, String>,
    names: HashMap<u64, String>,
    annotations: HashMap<u64, String>,
    values: HashMap<u64, String>,
    track: u64,
    clock: Option<u32>,
    /// Clocks of the sequence: value so far, whether times are differences, nanoseconds per unit, and offset.
    clocks: HashMap<u32, (i128, bool, i128, i128)>,
}

/// A track, merged from all its descriptors.
#[derive(Default)]
struct Track {
    name: Option<String>,
    parent: u64,
    process: Option<String>,
    /// Name of the thread, and its number.
    thread: Option<(String, i64)>,
    /// Unit of a counter, and the factor of its values.
    counter: Option<(String, f64)>,
    samples: Option<usize>,
    /// Open slices; `None` if the end is already known or the slice was not kept.
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
    /// Offset from a system clock to boot time.
    offsets: HashMap<u32, i128>,
    packets: u64,
    events: u64,
}

/// The arguments of an event that are read.
#[derive(Default)]
struct EventArguments {
    begin: Option<u64>,
    end: Option<u64>,
    correlation: Option<u64>,
    bytes: Option<u64>,
    agent: Option<String>,
    from: Option<String>,
    to: Option<String>,
    grid: [Option<u32>; 3],
    items: bool,
    block: [Option<u32>; 3],
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

impl PftraceReader {
    fn bytes(&mut self, bytes: &[u8], at: u64, depth: u32) {
        let place = || format!("the packet before byte {at}");
        let Ok(packet) = TracePacket::decode(bytes) else {
            return self.out.unread("no readable packet", place);
        };
        self.packets += 1;
        if let Some(packed) = &packet.compressed_packets {
            let mut inner = Vec::new();
            let read = ZlibDecoder::new(&packed[..])
                .take(PACKET)
                .read_to_end(&mut inner);
            if read.is_err() || depth == NESTED {
                self.out.unread("packed packets are damaged", place);
            }
            let (mut data, mut inner_at) = (&inner[..], 0);
            while depth < NESTED
                && let Some(Next::Packet(bytes)) = self::packet(&mut data, &mut inner_at)
            {
                self.bytes(&bytes, at, depth + 1);
            }
        }
        self.packet(packet, at);
    }

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
                .and_then(|it| it.track_uuid)
                .unwrap_or(0);
        }
        if let Some(interned) = packet.interned_data {
            let (it, new) = (&mut *sequence, interned);
            for (known, new) in [
                (&mut it.categories, new.event_categories),
                (&mut it.names, new.event_names),
                (&mut it.annotations, new.debug_annotation_names),
                (&mut it.values, new.debug_annotation_string_values),
            ] {
                known.extend(new.iter().map(|it| (it.iid(), lossy(it.name()))));
            }
        }
        if let Some(snapshot) = &packet.clock_snapshot {
            let clocks = &snapshot.clocks;
            let boot = clocks.iter().find(|clock| clock.clock_id() == BOOTTIME);
            let boot = boot.map(|clock| i128::from(clock.timestamp()));
            for clock in clocks {
                let unit = i128::from(clock.unit_multiplier_ns.unwrap_or(1).max(1));
                let value = i128::from(clock.timestamp()).saturating_mul(unit);
                let offset = boot.map_or(0, |boot| boot.saturating_sub(value));
                if clock.clock_id() >= 64 {
                    let known = (value, clock.is_incremental(), unit, offset);
                    sequence.clocks.insert(clock.clock_id(), known);
                } else if boot.is_some() {
                    self.offsets.entry(clock.clock_id()).or_insert(offset);
                }
            }
        }
        let mut time = i128::from(packet.timestamp.unwrap_or(0));
        let clock = packet.timestamp_clock_id.or(sequence.clock);
        let clock = clock.unwrap_or(BOOTTIME);
        if let Some((value, incremental, unit, offset)) = sequence.clocks.get_mut(&clock) {
            let before = if *incremental { *value } else { 0 };
            *value = time.saturating_mul(*unit).saturating_add(before);
            time = value.saturating_add(*offset);
        } else {
            time = time.saturating_add(self.offsets.get(&clock).copied().unwrap_or(0));
        }
        if let Some(descriptor) = packet.track_descriptor {
            self.describe(descriptor);
        }
        if let Some(stats) = packet.trace_stats {
            let lost = stats.buffer_stats.iter().flat_map(|it| {
                let dropped = [it.chunks_overwritten(), it.chunks_discarded()];
                dropped.into_iter().chain([it.trace_writer_packet_loss()])
            });
            let lost = sum(lost);
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

    /// Merges descriptors of a track: the second one of a thread lacks the fields of the first.
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

    fn event(&mut self, sequence: u32, event: TrackEvent, time: i128, at: u64) {
        let sequence = &self.sequences[&sequence];
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
        let instant = event.r#type() == proto::INSTANT;
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
        let notes = notes(sequence, &event);
        let kind = SliceKind::of_category(&category, &name);
        // A call of 0 ns is written as an instant; marks are not drawn.
        if instant && !kind.is_call() {
            return;
        }
        let device = match kind {
            SliceKind::Kernel | SliceKind::Graph | SliceKind::Memset => Some(notes.agent),
            // The side that is a GPU according to the name.
            SliceKind::Copy if Direction::of_name(&name) == Direction::D2H => {
                Some(notes.from.or(notes.to))
            }
            SliceKind::Copy => Some(notes.to.or(notes.from)),
            _ => None,
        };
        let device = device.map(|named| named.map_or_else(String::new, |it| csv::device(&it)));
        let lane = self.lane(uuid, device);
        let span = match (notes.begin, notes.end) {
            (Some(begin), Some(end)) => (begin.into(), end.into()),
            _ => (time, time),
        };
        // Databases and tables of the same run have the symbol's name without this suffix.
        let name = name
            .strip_suffix(" [clone .kd]")
            .or(name.strip_suffix(".kd"))
            .unwrap_or(&name);
        let id = self.out.name(name);
        let slice = self.out.slice(kind, lane, id, span, place);
        let open = slice.filter(|_| notes.end.is_none() || notes.begin.is_none());
        if !instant {
            self.tracks.entry(uuid).or_default().open.push(open);
        }
        let Some(slice) = slice else { return };
        let flows = event.flow_ids.iter().chain(&event.terminating_flow_ids);
        // A correlation is unique within its process, a flow in the whole trace.
        for number in flows {
            self.out.link(slice, FLOWS, Some(*number));
        }
        if let Some(number) = notes.correlation {
            self.correlated.push((slice, uuid, number));
        }
        if kind.on_device() {
            self.out.trace().grid_in_items |= notes.items;
            let direction = (kind == SliceKind::Copy).then(|| Direction::of_name(name));
            let whole = |sizes: [Option<u32>; 3]| {
                Some([sizes[0]?, sizes[1].unwrap_or(1), sizes[2].unwrap_or(1)])
            };
            let detail = Detail {
                bytes: notes.bytes,
                direction,
                grid: whole(notes.grid),
                block: whole(notes.block),
                collective: None,
            };
            self.out.detail(slice, detail);
        }
    }

    /// The topmost ancestor of a track: its process.
    fn top(&self, uuid: u64) -> u64 {
        let mut at = uuid;
        for _ in 0..8 {
            match self.tracks.get(&at).map(|track| track.parent) {
                Some(parent) if parent != 0 => at = parent,
                _ => break,
            }
        }
        at
    }

    fn counter(&mut self, uuid: u64, event: &TrackEvent, time: i128) {
        let track = self.tracks.entry(uuid).or_default();
        let (unit, factor) = track.counter.clone().unwrap_or((String::new(), 1.0));
        let whole = event.counter_value() as f64;
        let value = event.double_counter_value.unwrap_or(whole) * factor;
        let name = track.name.clone().unwrap_or_default();
        let Some(time) = self.out.time(time) else {
            return;
        };
        let new = || self.out.counter(&name, &unit);
        let at = *track.samples.get_or_insert_with(new);
        self.out.trace().counters[at].samples.push((time, value));
    }

    /// The device in the name of a track: `COMPUTE AGENT [4] QUEUE [0] (GPU)`.
    fn agent_of(&self, uuid: u64) -> String {
        let track = self.tracks.get(&uuid);
        let name = track.and_then(|it| it.name.as_deref()).unwrap_or("");
        let number = |after: &str| {
            let rest = &name[name.to_ascii_uppercase().find(after)? + after.len()..];
            let mut numbers = rest.split(|c: char| !c.is_ascii_digit());
            numbers.find(|digits| !digits.is_empty())
        };
        number("AGENT").or(number("GPU")).unwrap_or("0").to_owned()
    }

    fn lane(&mut self, uuid: u64, device: Option<String>) -> u32 {
        let key = (uuid, device);
        if let Some(lane) = self.lanes.get(&key) {
            return *lane;
        }
        // Descriptors may follow later: `finish` sets the names.
        let label = key.1.as_deref();
        let kind = label.map_or(LaneKind::Host, |_| LaneKind::Device);
        let known = label.filter(|it| !it.is_empty());
        let device = known.map(|label| self.out.device(label));
        let lane = self.out.lane(kind, "", "", device);
        self.lanes.insert(key, lane);
        lane
    }

    fn finish(mut self) -> Trace {
        let open = self.tracks.values().flat_map(|it| it.open.iter().flatten());
        let (open, place) = (open.count() as u64, || "the end of the file".to_owned());
        self.out
            .unread_many("a beginning without an end", open, place);
        let tracks = self.lanes.keys().map(|key| key.0);
        let tops: HashMap<u64, u64> = tracks.map(|uuid| (uuid, self.top(uuid))).collect();
        for (slice, uuid, number) in std::mem::take(&mut self.correlated) {
            self.out.link(slice, tops[&uuid], Some(number));
        }
        let unlabelled = self.lanes.iter().filter(|it| it.0.1.as_deref() == Some(""));
        let mut unlabelled: Vec<(u32, u64)> = unlabelled.map(|it| (*it.1, it.0.0)).collect();
        unlabelled.sort_unstable();
        for (lane, uuid) in unlabelled {
            let id = self.out.device(&self.agent_of(uuid));
            self.out.trace().lanes[lane as usize].device = Some(id);
        }
        let process = |uuid: &u64| {
            let top = tops.get(uuid).and_then(|top| self.tracks.get(top));
            top.and_then(|track| track.process.clone())
        };
        let mut hosts: Vec<(u32, u64)> = Vec::new();
        for ((uuid, device), lane) in &self.lanes {
            if device.is_none() {
                hosts.push((*lane, *uuid));
            }
        }
        hosts.sort_unstable();
        for (lane, uuid) in hosts {
            let label = process(&uuid).unwrap_or_else(|| format!("track {}", tops[&uuid]));
            self.out.of_process(lane, &label);
        }
        let trace = self.out.trace();
        for ((uuid, _), lane) in &self.lanes {
            let lane = &mut trace.lanes[*lane as usize];
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

fn notes(sequence: &Sequence, event: &TrackEvent) -> EventArguments {
    let mut notes = EventArguments::default();
    for it in &event.debug_annotations {
        let own = it.name.as_deref().map(String::from_utf8_lossy);
        let name = own
            .as_deref()
            .or_else(|| sequence.annotations.get(&it.name_iid()).map(String::as_str))
            .unwrap_or("");
        let whole = it.uint_value.or(it.int_value.map(|value| value as u64));
        let text = || match (&it.string_value, it.string_value_iid, whole) {
            (Some(text), ..) => Some(lossy(text)),
            (None, Some(id), _) => sequence.values.get(&id).cloned(),
            (None, None, Some(number)) => Some(number.to_string()),
            _ => None,
        };
        let size = whole.and_then(|it| u32::try_from(it).ok());
        // One number for all work items, or three numbers in a text.
        let sizes = || {
            let text = text().unwrap_or_default();
            let words = text.split(|c: char| !c.is_ascii_digit());
            let mut numbers = words.filter_map(|word| word.parse().ok());
            [numbers.next(), numbers.next(), numbers.next()]
        };
        match name {
            "begin_ns" => notes.begin = whole,
            "end_ns" => notes.end = whole,
            "corr_id" => notes.correlation = whole,
            "copy_bytes" | "bytes" => notes.bytes = whole,
            "agent" => notes.agent = text(),
            "src_agent" => notes.from = text(),
            "dst_agent" => notes.to = text(),
            // rocprofv3 counts all work items.
            "grid_size" => (notes.grid, notes.items) = (sizes(), true),
            "workgroup_size" => notes.block = sizes(),
            "grid_x" => notes.grid[0] = size,
            "grid_y" => notes.grid[1] = size,
            "grid_z" => notes.grid[2] = size,
            "workgroup_x" => notes.block[0] = size,
            "workgroup_y" => notes.block[1] = size,
            "workgroup_z" => notes.block[2] = size,
            _ => {}
        }
    }
    notes
}
