//! A small training run, made by arithmetic and written in every format that is read.

use std::fmt::Write;
use std::io::Cursor;
use std::path::Path;

use gputrace::model::{Detail, LaneKind, SliceKind, TraceBuilder};
use gputrace::proto::{
    self, Clock, ClockSnapshot, DebugAnnotation, Interned, InternedData, Packets,
    ProcessDescriptor, ThreadDescriptor, TracePacket, TracePacketDefaults, TrackDescriptor,
    TrackEvent, TrackEventDefaults,
};
use gputrace::{OpenError, Trace, read};
use prost::Message;

/// Start and end in nanoseconds.
pub(crate) type Span = (u64, u64);

/// One kernel with the call that launched it.
#[derive(Clone, Debug)]
pub(crate) struct Kernel {
    pub name: &'static str,
    pub launch: Span,
    pub span: Span,
    pub correlation: u64,
}

/// A named range of the host: a step or a phase.
#[derive(Clone, Debug)]
pub(crate) struct Range {
    pub name: String,
    pub span: Span,
}

/// A training run of one process on one device.
#[derive(Clone, Debug, Default)]
pub(crate) struct Run {
    pub kernels: Vec<Kernel>,
    pub ranges: Vec<Range>,
    /// Calls in which the host waits for the device.
    pub syncs: Vec<Span>,
    /// Copies from host to device, of 4096 bytes each.
    pub copies: Vec<Span>,
}

/// The names of kernels. The last one is the optimizer's.
pub(crate) const NAMES: [&str; 5] = [
    "void cutlass::Kernel2<cutlass_80_simt_sgemm_128x256_8x4_nt_align1>(Params)",
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>(int, float*)",
    "Cijk_Ailk_Bljk_SB_MT128x64x16_SE_K1",
    "flash_fwd_kernel(Flash_params)",
    "void multi_tensor_apply_kernel<AdamFunctor<float, 4> >(int)",
];

/// Returns a run of `steps` steps of ten kernels. Each kernel is at least `length` ns long, with `gap` ns between launches.
pub(crate) fn run(steps: u64, length: u64, gap: u64) -> Run {
    let mut run = Run::default();
    let mut host = 1_000_000_u64;
    let mut device = 0;
    let mut correlation = 10;
    for step in 0..steps {
        let begin = host;
        run.copies.push((host + 100, host + 900));
        host += 1000;
        for (phase, count) in [("forward", 3), ("backward", 6), ("optimizer", 1)] {
            let phase_begin = host;
            for i in 0..count {
                let launch = (host, host + 500);
                let start = (host + 700).max(device + 50);
                device = start + length + 7 * i;
                let name = if phase == "optimizer" {
                    NAMES[4]
                } else {
                    NAMES[(i % 4) as usize]
                };
                run.kernels.push(Kernel {
                    name,
                    launch,
                    span: (start, device),
                    correlation,
                });
                correlation += 1;
                host += 500 + gap;
            }
            run.ranges.push(Range {
                name: phase.to_owned(),
                span: (phase_begin, host),
            });
        }
        run.syncs.push((host, device.max(host) + 200));
        host = device.max(host) + 300;
        run.ranges.push(Range {
            name: format!("step {}", step + 1),
            span: (begin, host),
        });
        host += 100;
    }
    run
}

/// Returns nanoseconds as decimal microseconds.
fn micros(ns: u64) -> String {
    format!("{}.{:03}", ns / 1000, ns % 1000)
}

/// Returns the events of a Chrome trace as JSON. With `kineto`, they have the categories of PyTorch's profiler.
pub(crate) fn events(run: &Run, kineto: bool) -> Vec<String> {
    let mut out = vec![
        r#"{"ph":"M","name":"process_name","pid":7,"tid":0,"args":{"name":"python3"}}"#.to_owned(),
        r#"{"ph":"M","name":"process_labels","pid":0,"tid":0,"args":{"labels":"GPU 0"}}"#
            .to_owned(),
        r#"{"ph":"M","name":"thread_name","pid":0,"tid":7,"args":{"name":"stream 7 "}}"#.to_owned(),
        r#"{"ph":"i","s":"g","name":"Iteration Start","pid":"Traces","tid":"Trace","ts":1000.0}"#
            .to_owned(),
    ];
    let runtime = if kineto { "cuda_runtime" } else { "runtime" };
    let mut slice = |cat: &str,
                     name: &str,
                     (pid, tid): (u32, u32),
                     (start, end): (u64, u64),
                     args: &str| {
        let ts = micros(start);
        let dur = micros(end - start);
        let name = serde_json::to_string(name).unwrap();
        out.push(format!(
            r#"{{"ph":"X","cat":"{cat}","name":{name},"pid":{pid},"tid":{tid},"ts":{ts},"dur":{dur},"args":{{{args}}}}}"#
        ));
    };
    for range in &run.ranges {
        slice("user_annotation", &range.name, (7, 7), range.span, "");
    }
    for kernel in &run.kernels {
        let correlation = format!(r#""correlation":{}"#, kernel.correlation);
        slice(
            runtime,
            "cudaLaunchKernel",
            (7, 7),
            kernel.launch,
            &correlation,
        );
        let args =
            format!(r#""device":0,"stream":7,{correlation},"grid":[8,1,1],"block":[128,1,1]"#);
        slice("kernel", kernel.name, (0, 7), kernel.span, &args);
    }
    for sync in &run.syncs {
        slice(runtime, "cudaDeviceSynchronize", (7, 7), *sync, "");
    }
    for copy in &run.copies {
        slice(
            "gpu_memcpy",
            "Memcpy HtoD (Pinned -> Device)",
            (0, 7),
            *copy,
            r#""device":0,"bytes":4096"#,
        );
    }
    out
}

/// Returns the file of PyTorch's profiler.
pub(crate) fn kineto(run: &Run) -> String {
    kineto_file(&events(run, true))
}

/// Returns events as a file of PyTorch's profiler.
pub(crate) fn kineto_file(events: &[String]) -> String {
    let events = events.join(",\n");
    format!(
        "{{\"schemaVersion\": 1, \"deviceProperties\": [{{\"id\": 0}}],\n\"traceEvents\": [\n{events}\n], \
         \"traceName\": \"x\"}}\n"
    )
}

/// Returns a Chrome trace whose array of events is not closed.
pub(crate) fn chrome_open(run: &Run) -> String {
    format!("[\n{},\n", events(run, false).join(",\n"))
}

/// The headers that `kernel_trace.csv` has had: of 2024, of 2025, and with a column for the run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Header {
    Y2024,
    Y2025,
    Guid,
}

/// Returns rocprofv3's table of kernels.
pub(crate) fn kernel_trace(run: &Run, header: Header) -> String {
    let (agent, registers) = match header {
        Header::Y2024 => (
            "Agent_Id Queue_Id",
            "Private_Segment_Size Group_Segment_Size",
        ),
        Header::Y2025 => (
            "Agent_Id Queue_Id Stream_Id",
            "LDS_Block_Size Scratch_Size VGPR_Count Accum_VGPR_Count SGPR_Count",
        ),
        Header::Guid => (
            "Agent_Id Queue_Id Stream_Id",
            "Lds_Block_Size Scratch_Size Vgpr_Count Accum_Vgpr_Count Sgpr_Count",
        ),
    };
    let guid = if header == Header::Guid { "Guid " } else { "" };
    let columns = format!(
        "{guid}Kind {agent} Thread_Id Dispatch_Id Kernel_Id Kernel_Name Correlation_Id Start_Timestamp \
         End_Timestamp {registers} Workgroup_Size_X Workgroup_Size_Y Workgroup_Size_Z \
         Grid_Size_X Grid_Size_Y Grid_Size_Z"
    );
    let mut out = format!("\"{}\"\n", columns.replace(' ', "\",\""));
    // The rows of real files are in no order.
    for kernel in run.kernels.iter().rev() {
        let (start, end) = kernel.span;
        let name = kernel.name;
        let id = kernel.correlation;
        let (before, registers) = match header {
            Header::Y2024 => ("\"KERNEL_DISPATCH\",0,1", "0,0"),
            Header::Y2025 => ("\"KERNEL_DISPATCH\",\"Agent 0\",1,1", "0,0,8,0,16"),
            Header::Guid => ("\"0a-b\",\"KERNEL_DISPATCH\",\"Agent 0\",1,0", "0,0,8,0,16"),
        };
        writeln!(
            out,
            "{before},7,{id},3,\"{name}\",{id},{start},{end},{registers},128,1,1,1024,1,1"
        )
        .unwrap();
    }
    out
}

/// Returns the name, the number of calls and the total time of each kernel name.
fn sums(run: &Run) -> Vec<(&'static str, u64, u64)> {
    let mut sums: Vec<(&str, u64, u64)> = Vec::new();
    for kernel in &run.kernels {
        let ns = kernel.span.1 - kernel.span.0;
        match sums.iter_mut().find(|sum| sum.0 == kernel.name) {
            Some(sum) => {
                sum.1 += 1;
                sum.2 += ns;
            }
            None => sums.push((kernel.name, 1, ns)),
        }
    }
    sums
}

/// Returns rocprofv3's table of sums.
pub(crate) fn kernel_stats(run: &Run) -> String {
    let mut out = String::from(
        "\"Name\",\"Calls\",\"TotalDurationNs\",\"AverageNs\",\"Percentage\",\"MinNs\",\"MaxNs\",\"StdDev\"\n",
    );
    for (name, calls, total) in sums(run) {
        writeln!(out, "\"{name}\",{calls},{total},1.0,1.0,1,2,0.5").unwrap();
    }
    out
}

/// Returns the output of `nsys stats` for kernels. With launch shapes, each name has two rows.
pub(crate) fn kern_sum(run: &Run, has_shapes: bool) -> String {
    let shapes = if has_shapes { "GridXYZ,BlockXYZ," } else { "" };
    let mut out = format!(
        "Generating SQLite file a.sqlite from a.nsys-rep\nProcessing [a.sqlite] with [x.py]... \n\n\
         Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),{shapes}Name\n"
    );
    for (name, calls, total) in sums(run) {
        if has_shapes {
            let rows = [(8, total / 2, 1), (16, total - total / 2, calls - 1)];
            for (grid, total, calls) in rows {
                writeln!(
                    out,
                    "1.0,{total},{calls},1.0,1.0,1,2,0.0,{grid:>3}    1    1, 128    1    1,\"{name}\""
                )
                .unwrap();
            }
        } else {
            writeln!(out, "1.0,{total},{calls},1.0,1.0,1,2,0.0,\"{name}\"").unwrap();
        }
    }
    out.push_str(
        "\nProcessing [a.sqlite] with [y.py]... \n\n\
         Time (%),Total Time (ns),Count,Operation\n1.0,5,1,\"[CUDA memcpy]\"\n",
    );
    out
}

/// Writes an export of Nsight Systems.
pub(crate) fn nsys(run: &Run, path: &Path) {
    nsys_of(std::slice::from_ref(run), path);
}

/// Writes an export of several processes, each with a device of its own.
pub(crate) fn nsys_of(runs: &[Run], path: &Path) {
    let db = rusqlite::Connection::open(path).unwrap();
    db.execute_batch(
        "CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT);
         CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL);
         CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, greenContextId INTEGER,
            streamId INTEGER, correlationId INTEGER, globalPid INTEGER, demangledName INTEGER, gridX INTEGER, gridY INTEGER,
            gridZ INTEGER, blockX INTEGER, blockY INTEGER, blockZ INTEGER);
         CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, globalTid INTEGER, correlationId INTEGER,
            nameId INTEGER, returnValue INTEGER);
         CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER,
            correlationId INTEGER, globalPid INTEGER, bytes INTEGER, copyKind INTEGER);
         CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, text TEXT, textId INTEGER, globalTid INTEGER);
         INSERT INTO StringIds VALUES (1, 'cudaLaunchKernel_v7000'), (2, 'cudaDeviceSynchronize_v3020'), (3, 'forward');
         INSERT INTO NVTX_EVENTS VALUES (5, NULL, 34, 'a mark', NULL, 7);",
    )
    .unwrap();
    for (id, name) in (10..).zip(NAMES) {
        db.execute("INSERT INTO StringIds VALUES (?1, ?2)", (id, name))
            .unwrap();
    }
    for (device, run) in (0_i64..).zip(runs) {
        let process = 281_842_011_865_088_i64 + (device << 24);
        let thread = process + 11;
        for kernel in &run.kernels {
            let name = 10 + NAMES.iter().position(|name| *name == kernel.name).unwrap() as i64;
            let (start, end) = (kernel.span.0 as i64, kernel.span.1 as i64);
            db.execute(
                "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?1, ?2, ?6, NULL, 7, ?3, ?4, ?5, 8, 1, 1, 128, 1, 1)",
                (start, end, kernel.correlation as i64, process, name, device),
            )
            .unwrap();
            let (start, end) = (kernel.launch.0 as i64, kernel.launch.1 as i64);
            db.execute(
                "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?1, ?2, ?3, ?4, 1, 0)",
                (start, end, thread, kernel.correlation as i64),
            )
            .unwrap();
        }
        for sync in &run.syncs {
            db.execute(
                "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?1, ?2, ?3, 1, 2, 0)",
                (sync.0 as i64, sync.1 as i64, thread),
            )
            .unwrap();
        }
        for copy in &run.copies {
            db.execute(
                "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (?1, ?2, ?4, 7, 2, ?3, 4096, 1)",
                (copy.0 as i64, copy.1 as i64, process, device),
            )
            .unwrap();
        }
        for range in &run.ranges {
            // A text is either in the table or among the strings.
            let (text, id) = if range.name == "forward" {
                (None, Some(3))
            } else {
                (Some(&range.name), None)
            };
            db.execute(
                "INSERT INTO NVTX_EVENTS VALUES (?1, ?2, 59, ?3, ?4, ?5)",
                (range.span.0 as i64, range.span.1 as i64, text, id, thread),
            )
            .unwrap();
        }
    }
}

/// Writes a rocpd database: tables with a suffix, and views without one. It has only the tables and columns that are read.
pub(crate) fn rocpd(run: &Run, path: &Path) {
    let db = rusqlite::Connection::open(path).unwrap();
    db.execute_batch(
        "CREATE TABLE rocpd_metadata_u (id INTEGER PRIMARY KEY, tag TEXT, value TEXT);
         CREATE VIEW rocpd_metadata AS SELECT * FROM rocpd_metadata_u;
         CREATE TABLE rocpd_kernel_dispatch_u (id INTEGER PRIMARY KEY, start BIGINT, end BIGINT, name TEXT, stack_id INTEGER);
         CREATE VIEW rocpd_kernel_dispatch AS SELECT * FROM rocpd_kernel_dispatch_u;
         CREATE VIEW kernels AS SELECT id, 'g' AS guid, 7 AS tid, name, 1 AS nid, 7 AS pid, 0 AS agent_abs_index, start, end,
            1 AS queue_id, 1024 AS grid_x, 1 AS grid_y, 1 AS grid_z, 128 AS workgroup_x, 1 AS workgroup_y, 1 AS workgroup_z,
            stack_id, 0 AS corr_id FROM rocpd_kernel_dispatch_u;
         CREATE TABLE copies_u (start BIGINT, end BIGINT);
         CREATE VIEW memory_copies AS SELECT start, end, 'MEMORY_COPY_HOST_TO_DEVICE' AS name, 'g' AS guid, 7 AS pid, 1 AS nid,
            4096 AS size, 1 AS stack_id, 0 AS dst_agent_abs_index, 'GPU' AS dst_agent_type, 1 AS src_agent_abs_index,
            'CPU' AS src_agent_type FROM copies_u;
         CREATE TABLE regions_u (start BIGINT, end BIGINT, name TEXT, category TEXT, stack_id INTEGER, extdata TEXT);
         CREATE VIEW regions AS SELECT start, end, name, category, stack_id, extdata, 'g' AS guid, 7 AS pid, 7 AS tid FROM regions_u;
         CREATE TABLE samples_u (at BIGINT, name TEXT, category TEXT, stack_id INTEGER, extdata TEXT);
         CREATE VIEW regions_and_samples AS SELECT * FROM regions UNION ALL SELECT at, at, name, category, stack_id, extdata,
            'g', 7, 7 FROM samples_u;
         INSERT INTO samples_u VALUES (1000200, 'roctxMarkA', 'MARKER_CORE_API', 9, '{\"message\": \"a mark\"}');
         INSERT INTO rocpd_metadata_u (tag, value) VALUES ('schema_version', '3');",
    )
    .unwrap();
    let region = |span: (u64, u64), name: &str, category: &str, stack: u64, extra: String| {
        db.execute(
            "INSERT INTO regions_u VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            (
                span.0 as i64,
                span.1 as i64,
                name,
                category,
                stack as i64,
                extra,
            ),
        )
        .unwrap();
    };
    for kernel in &run.kernels {
        db.execute(
            "INSERT INTO rocpd_kernel_dispatch_u (start, end, name, stack_id) VALUES (?1, ?2, ?3, ?4)",
            (kernel.span.0 as i64, kernel.span.1 as i64, kernel.name, kernel.correlation as i64),
        )
        .unwrap();
        region(
            kernel.launch,
            "hipLaunchKernel",
            "HIP_RUNTIME_API_EXT",
            kernel.correlation,
            "{}".to_owned(),
        );
    }
    for sync in &run.syncs {
        region(
            *sync,
            "hipDeviceSynchronize",
            "HIP_RUNTIME_API_EXT",
            1,
            "{}".to_owned(),
        );
    }
    for range in &run.ranges {
        let message = format!("{{\"message\": \"{}\"}}", range.name);
        region(
            range.span,
            "roctxThreadRangeA",
            "MARKER_CORE_RANGE_API",
            2,
            message,
        );
    }
    for copy in &run.copies {
        db.execute(
            "INSERT INTO copies_u VALUES (?1, ?2)",
            (copy.0 as i64, copy.1 as i64),
        )
        .unwrap();
    }
}

/// Writes packets of a Perfetto trace as rocprofv3 does.
#[derive(Default)]
struct PacketWriter {
    out: Vec<u8>,
}

/// The clock of absolute times, and a clock whose packets give differences to the last time.
const BOOT_CLOCK: u32 = 6;
const INCREMENTAL_CLOCK: u32 = 64;
const THREAD_TRACK: u64 = 10;
const COMPUTE_TRACK: u64 = 11;
const COPY_TRACK: u64 = 12;
/// The categories of events. A category or an argument is referred to by its position, from 1.
const CATEGORIES: [&str; 4] = ["hip_api", "marker_api", "memory_copy", "kernel_dispatch"];
/// The names of arguments.
const ARGUMENTS: [&str; 6] = [
    "begin_ns",
    "end_ns",
    "corr_id",
    "agent",
    "copy_bytes",
    "dst_agent",
];

/// Returns the number of a text in a list of interned texts.
fn interned(texts: &[&str], text: &str) -> u64 {
    1 + texts.iter().position(|other| *other == text).unwrap() as u64
}

/// Returns an argument of an event with a number.
fn argument(name: &str, value: u64) -> DebugAnnotation {
    DebugAnnotation {
        name_iid: Some(interned(&ARGUMENTS, name)),
        uint_value: Some(value),
        ..DebugAnnotation::default()
    }
}

impl PacketWriter {
    fn packet(&mut self, mut packet: TracePacket) {
        packet.trusted_packet_sequence_id = Some(2);
        let packet = vec![packet];
        self.out.extend(Packets { packet }.encode_to_vec());
    }

    /// Writes the clocks and the default track of the sequence.
    fn start(&mut self) {
        let clock = |id, is_incremental| Clock {
            clock_id: Some(id),
            timestamp: Some(5_000_000),
            is_incremental: Some(is_incremental),
            unit_multiplier_ns: None,
        };
        self.packet(TracePacket {
            sequence_flags: Some(proto::CLEARED),
            clock_snapshot: Some(ClockSnapshot {
                clocks: vec![clock(BOOT_CLOCK, false), clock(INCREMENTAL_CLOCK, true)],
            }),
            trace_packet_defaults: Some(TracePacketDefaults {
                timestamp_clock_id: Some(INCREMENTAL_CLOCK),
                track_event_defaults: Some(TrackEventDefaults {
                    track_uuid: Some(THREAD_TRACK),
                }),
            }),
            ..TracePacket::default()
        });
    }

    fn track(&mut self, descriptor: TrackDescriptor) {
        self.packet(TracePacket {
            timestamp: Some(3),
            track_descriptor: Some(descriptor),
            ..TracePacket::default()
        });
    }

    fn named_track(&mut self, uuid: u64, name: &str) {
        self.track(TrackDescriptor {
            uuid: Some(uuid),
            name: Some(name.into()),
            parent_uuid: Some(1),
            ..TrackDescriptor::default()
        });
    }

    /// Writes a thread and its process. As in rocprofv3's files, a second descriptor of the thread lacks its name.
    fn thread_tracks(&mut self) {
        let thread = TrackDescriptor {
            uuid: Some(THREAD_TRACK),
            parent_uuid: Some(1),
            ..TrackDescriptor::default()
        };
        self.track(TrackDescriptor {
            thread: Some(ThreadDescriptor {
                pid: Some(7),
                tid: Some(7),
                thread_name: Some("python3".into()),
            }),
            ..thread.clone()
        });
        self.track(TrackDescriptor {
            uuid: Some(1),
            process: Some(ProcessDescriptor {
                pid: Some(7),
                process_name: Some("python3".into()),
            }),
            ..TrackDescriptor::default()
        });
        self.track(thread);
    }

    /// Writes the texts that events refer to by number.
    fn interned_texts(&mut self) {
        let numbered = |texts: &[&str]| -> Vec<Interned> {
            (1..)
                .zip(texts)
                .map(|(iid, text)| Interned {
                    iid: Some(iid),
                    name: Some((*text).into()),
                })
                .collect()
        };
        self.packet(TracePacket {
            interned_data: Some(InternedData {
                event_categories: numbered(&CATEGORIES),
                debug_annotation_names: numbered(&ARGUMENTS),
                ..InternedData::default()
            }),
            ..TracePacket::default()
        });
    }

    /// Writes the beginning and the end of a slice.
    fn slice(
        &mut self,
        track: u64,
        category: &str,
        name: &str,
        span: Span,
        mut arguments: Vec<DebugAnnotation>,
    ) {
        arguments.push(argument("begin_ns", span.0));
        arguments.push(argument("end_ns", span.1));
        let begin = TrackEvent {
            r#type: Some(proto::BEGIN),
            track_uuid: Some(track),
            category_iids: vec![interned(&CATEGORIES, category)],
            name: Some(name.into()),
            debug_annotations: arguments,
            ..TrackEvent::default()
        };
        let end = TrackEvent {
            r#type: Some(proto::END),
            track_uuid: Some(track),
            ..TrackEvent::default()
        };
        for (time, event) in [(span.0, begin), (span.1, end)] {
            self.packet(TracePacket {
                timestamp: Some(time),
                timestamp_clock_id: Some(BOOT_CLOCK),
                track_event: Some(event),
                ..TracePacket::default()
            });
        }
    }
}

/// Returns a Perfetto trace as rocprofv3 writes it. Kernels and copies are on one track of a stream, or else on tracks of their own.
pub(crate) fn pftrace(run: &Run, has_stream_tracks: bool) -> Vec<u8> {
    let mut writer = PacketWriter::default();
    writer.start();
    writer.thread_tracks();
    let copies = if has_stream_tracks {
        writer.named_track(COMPUTE_TRACK, "STREAM [\" 0 \"] ");
        COMPUTE_TRACK
    } else {
        writer.named_track(COMPUTE_TRACK, "COMPUTE AGENT [0] QUEUE [0] (GPU)");
        writer.named_track(COPY_TRACK, "COPY to AGENT [0] THREAD [0] (GPU)");
        COPY_TRACK
    };
    writer.interned_texts();
    for kernel in &run.kernels {
        let arguments = vec![argument("corr_id", kernel.correlation)];
        writer.slice(
            THREAD_TRACK,
            "hip_api",
            "hipLaunchKernel",
            kernel.launch,
            arguments,
        );
    }
    for span in &run.syncs {
        writer.slice(
            THREAD_TRACK,
            "hip_api",
            "hipDeviceSynchronize",
            *span,
            vec![],
        );
    }
    for range in &run.ranges {
        writer.slice(THREAD_TRACK, "marker_api", &range.name, range.span, vec![]);
    }
    for span in &run.copies {
        let arguments = vec![argument("copy_bytes", 4096), argument("dst_agent", 0)];
        writer.slice(
            copies,
            "memory_copy",
            "MEMORY_COPY_HOST_TO_DEVICE",
            *span,
            arguments,
        );
    }
    for (index, kernel) in run.kernels.iter().enumerate() {
        let suffix = [" [clone .kd]", ".kd"][index % 2];
        let block = DebugAnnotation {
            name: Some("workgroup_size".into()),
            string_value: Some("(128,1,1)".into()),
            ..DebugAnnotation::default()
        };
        let arguments = vec![
            argument("corr_id", kernel.correlation),
            argument("agent", 0),
            block,
        ];
        let name = format!("{}{suffix}", kernel.name);
        writer.slice(
            COMPUTE_TRACK,
            "kernel_dispatch",
            &name,
            kernel.span,
            arguments,
        );
    }
    writer.out
}

/// Reads a trace from bytes.
pub(crate) fn bytes(name: &str, data: impl Into<Vec<u8>>) -> Result<Trace, OpenError> {
    let data = data.into();
    let total = data.len() as u64;
    read(name, Cursor::new(data), total)
}

/// Returns the bytes of a database that `fill` writes.
fn database(fill: impl Fn(&Path)) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    fill(&path);
    std::fs::read(path).unwrap()
}

/// A run in one format.
pub(crate) struct FormatFile {
    /// The name of the format in the figures.
    pub format: &'static str,
    pub data: Vec<u8>,
    /// True if the file has each kernel with its times; otherwise it has only sums.
    pub has_times: bool,
    /// True if the file has calls of the host.
    pub has_calls: bool,
}

/// Returns a run in every format, and in every layout of a format.
pub(crate) fn files_of_all_formats(run: &Run) -> Vec<FormatFile> {
    let sums = |format, text: String| FormatFile {
        format,
        data: text.into(),
        has_times: false,
        has_calls: false,
    };
    let kernels = |header| FormatFile {
        has_times: true,
        ..sums("rocprofv3 kernel_trace.csv", kernel_trace(run, header))
    };
    let all = |format, data: Vec<u8>| FormatFile {
        format,
        data,
        has_times: true,
        has_calls: true,
    };
    vec![
        all("kineto json", kineto(run).into()),
        all("chrome json", chrome_open(run).into()),
        kernels(Header::Y2024),
        kernels(Header::Y2025),
        kernels(Header::Guid),
        sums("rocprofv3 kernel_stats.csv", kernel_stats(run)),
        sums("nsys cuda_gpu_kern_sum.csv", kern_sum(run, false)),
        sums("nsys cuda_gpu_kern_sum.csv", kern_sum(run, true)),
        all("nsys sqlite", database(|path| nsys(run, path))),
        all("rocpd", database(|path| rocpd(run, path))),
        all("perfetto pftrace", pftrace(run, false)),
        all("perfetto pftrace", pftrace(run, true)),
    ]
}

/// Damages a few bytes of a file of each format, and calls `visit` with each trace that can still be read. The variable `TRACE_ROUNDS` is the
/// number of damaged files of each format.
pub(crate) fn damaged(visit: impl Fn(Trace)) {
    let rounds = std::env::var("TRACE_ROUNDS").map_or(300, |rounds| rounds.parse().unwrap());
    let mut seed = 1_u64;
    let mut random = move || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    };
    for file in files_of_all_formats(&run(1, 400, 250)) {
        for _ in 0..rounds {
            let mut data = file.data.clone();
            for _ in 0..1 + random() % 8 {
                let index = (random() % data.len() as u64) as usize;
                match random() % 4 {
                    0 => data[index] ^= 1 << (random() % 8),
                    1 => data[index] = random() as u8,
                    2 => drop(data.remove(index)),
                    _ => data.insert(index, b"\"{}[],\\:\0\xff"[(random() % 10) as usize]),
                }
            }
            if let Ok(trace) = bytes("damaged", data) {
                visit(trace);
            }
        }
    }
}

/// Returns a trace with a thousand lanes of kernels that overlap, all of one long name with escapes in it.
pub(crate) fn thousand_lanes() -> Trace {
    let mut builder = TraceBuilder::new("made", "ours", false);
    let name = builder.name(&format!("\u{1b}]52;c;evil\u{7}{}", "x".repeat(10_000)));
    for number in 0..1000 {
        let device = builder.device(&(number % 8).to_string());
        let queue = format!("queue {number}");
        let lane = builder.lane(LaneKind::Device, "GPU", &queue, Some(device));
        for index in 0..5 {
            // Every second kernel is so long that it overlaps the next one.
            let start = 100 * index;
            let span = (start, start + 60 + 80 * (index % 2));
            let place = || "here".to_owned();
            let slice = builder.slice(SliceKind::Kernel, lane, name, span, place);
            let detail = Detail {
                bytes: Some(1),
                ..Detail::default()
            };
            builder.detail(slice.unwrap(), detail);
        }
    }
    builder.finish()
}
