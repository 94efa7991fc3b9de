//! The messages of a Perfetto trace that are read and written here, field by field as in perfetto/protos/perfetto/trace.
//! Texts are bytes, because a packet with a name that is not UTF-8 should still be read.

use prost::Message;

/// `TrackEvent.type`.
pub const BEGIN: i32 = 1;
pub const END: i32 = 2;
pub const INSTANT: i32 = 3;
pub const COUNTER: i32 = 4;
/// `TracePacket.sequence_flags`: interned data so far are cleared.
pub const CLEARED: u32 = 1;

#[derive(Clone, PartialEq, Message)]
pub struct Packets {
    #[prost(message, repeated, tag = "1")] pub packet: Vec<TracePacket>,
}

#[derive(Clone, PartialEq, Message)]
pub struct TracePacket {
    #[prost(message, optional, tag = "6")] pub clock_snapshot: Option<ClockSnapshot>,
    #[prost(uint64, optional, tag = "8")] pub timestamp: Option<u64>,
    #[prost(uint32, optional, tag = "10")] pub trusted_packet_sequence_id: Option<u32>,
    #[prost(message, optional, tag = "11")] pub track_event: Option<TrackEvent>,
    #[prost(message, optional, tag = "12")] pub interned_data: Option<InternedData>,
    #[prost(uint32, optional, tag = "13")] pub sequence_flags: Option<u32>,
    #[prost(message, optional, tag = "35")] pub trace_stats: Option<TraceStats>,
    #[prost(bytes = "vec", optional, tag = "50")] pub compressed_packets: Option<Vec<u8>>,
    #[prost(uint32, optional, tag = "58")] pub timestamp_clock_id: Option<u32>,
    #[prost(message, optional, tag = "59")] pub trace_packet_defaults: Option<TracePacketDefaults>,
    #[prost(message, optional, tag = "60")] pub track_descriptor: Option<TrackDescriptor>,
}

#[derive(Clone, PartialEq, Message)]
pub struct TracePacketDefaults {
    #[prost(message, optional, tag = "11")] pub track_event_defaults: Option<TrackEventDefaults>,
    #[prost(uint32, optional, tag = "58")] pub timestamp_clock_id: Option<u32>,
}

#[derive(Clone, PartialEq, Message)]
pub struct TrackEventDefaults {
    #[prost(uint64, optional, tag = "11")] pub track_uuid: Option<u64>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ClockSnapshot {
    #[prost(message, repeated, tag = "1")] pub clocks: Vec<Clock>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Clock {
    #[prost(uint32, optional, tag = "1")] pub clock_id: Option<u32>,
    #[prost(uint64, optional, tag = "2")] pub timestamp: Option<u64>,
    #[prost(bool, optional, tag = "3")] pub is_incremental: Option<bool>,
    #[prost(uint64, optional, tag = "4")] pub unit_multiplier_ns: Option<u64>,
}

#[derive(Clone, PartialEq, Message)]
pub struct TraceStats {
    #[prost(message, repeated, tag = "1")] pub buffer_stats: Vec<BufferStats>,
}

#[derive(Clone, PartialEq, Message)]
pub struct BufferStats {
    #[prost(uint64, optional, tag = "3")] pub chunks_overwritten: Option<u64>,
    #[prost(uint64, optional, tag = "18")] pub chunks_discarded: Option<u64>,
    #[prost(uint64, optional, tag = "19")] pub trace_writer_packet_loss: Option<u64>,
}

#[derive(Clone, PartialEq, Message)]
pub struct InternedData {
    #[prost(message, repeated, tag = "1")] pub event_categories: Vec<Interned>,
    #[prost(message, repeated, tag = "2")] pub event_names: Vec<Interned>,
    #[prost(message, repeated, tag = "3")] pub debug_annotation_names: Vec<Interned>,
    #[prost(message, repeated, tag = "29")] pub debug_annotation_string_values: Vec<Interned>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Interned {
    #[prost(uint64, optional, tag = "1")] pub iid: Option<u64>,
    #[prost(bytes = "vec", optional, tag = "2")] pub name: Option<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
pub struct TrackDescriptor {
    #[prost(uint64, optional, tag = "1")] pub uuid: Option<u64>,
    #[prost(bytes = "vec", optional, tag = "2")] pub name: Option<Vec<u8>>,
    #[prost(message, optional, tag = "3")] pub process: Option<ProcessDescriptor>,
    #[prost(message, optional, tag = "4")] pub thread: Option<ThreadDescriptor>,
    #[prost(uint64, optional, tag = "5")] pub parent_uuid: Option<u64>,
    #[prost(message, optional, tag = "8")] pub counter: Option<CounterDescriptor>,
    #[prost(bytes = "vec", optional, tag = "10")] pub static_name: Option<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ProcessDescriptor {
    #[prost(int32, optional, tag = "1")] pub pid: Option<i32>,
    #[prost(bytes = "vec", optional, tag = "6")] pub process_name: Option<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ThreadDescriptor {
    #[prost(int32, optional, tag = "1")] pub pid: Option<i32>,
    #[prost(int64, optional, tag = "2")] pub tid: Option<i64>,
    #[prost(bytes = "vec", optional, tag = "5")] pub thread_name: Option<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
pub struct CounterDescriptor {
    #[prost(int32, optional, tag = "3")] pub unit: Option<i32>,
    #[prost(int64, optional, tag = "4")] pub unit_multiplier: Option<i64>,
    #[prost(bytes = "vec", optional, tag = "6")] pub unit_name: Option<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
pub struct TrackEvent {
    #[prost(uint64, repeated, packed = "false", tag = "3")] pub category_iids: Vec<u64>,
    #[prost(message, repeated, tag = "4")] pub debug_annotations: Vec<DebugAnnotation>,
    #[prost(int32, optional, tag = "9")] pub r#type: Option<i32>,
    #[prost(uint64, optional, tag = "10")] pub name_iid: Option<u64>,
    #[prost(uint64, optional, tag = "11")] pub track_uuid: Option<u64>,
    #[prost(bytes = "vec", repeated, tag = "22")] pub categories: Vec<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "23")] pub name: Option<Vec<u8>>,
    #[prost(int64, optional, tag = "30")] pub counter_value: Option<i64>,
    #[prost(double, optional, tag = "44")] pub double_counter_value: Option<f64>,
    #[prost(fixed64, repeated, packed = "false", tag = "47")] pub flow_ids: Vec<u64>,
    #[prost(fixed64, repeated, packed = "false", tag = "48")] pub terminating_flow_ids: Vec<u64>,
}

#[derive(Clone, PartialEq, Message)]
pub struct DebugAnnotation {
    #[prost(uint64, optional, tag = "1")] pub name_iid: Option<u64>,
    #[prost(uint64, optional, tag = "3")] pub uint_value: Option<u64>,
    #[prost(int64, optional, tag = "4")] pub int_value: Option<i64>,
    #[prost(bytes = "vec", optional, tag = "6")] pub string_value: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "10")] pub name: Option<Vec<u8>>,
    #[prost(uint64, optional, tag = "17")] pub string_value_iid: Option<u64>,
}
