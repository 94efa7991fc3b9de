//! A small training run, made by arithmetic, in every format that is read.

use std::fmt::Write;
use std::io::Cursor;
use std::path::Path;

use gputrace::model::{Detail, LaneKind, SliceKind, TraceBuilder};
use gputrace::{OpenError, Trace, proto, read};
use prost::Message;

/// One kernel with the call that launched it, in nanoseconds.
#[derive(Clone, Debug)]
pub(crate) struct Kernel {
    pub name: &'static str,
    pub launch: (u64, u64),
    pub span: (u64, u64),
    pub correlation: u64,
}

/// A range of the host.
#[derive(Clone, Debug)]
pub(crate) struct Range {
    pub name: String,
    pub span: (u64, u64),
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Run {
    pub kernels: Vec<Kernel>,
    pub ranges: Vec<Range>,
    pub syncs: Vec<(u64, u64)>,
    /// Copies from host to device, of 4096 bytes each.
    pub copies: Vec<(u64, u64)>,
}

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

pub(crate) fn kineto(run: &Run) -> String {
    format!(
        "{{\"schemaVersion\": 1, \"deviceProperties\": [{{\"id\": 0}}],\n\"traceEvents\": [\n{}\n], \"traceName\": \"x\"}}\n",
        events(run, true).join(",\n")
    )
}

pub(crate) fn chrome_open(run: &Run) -> String {
    format!("[\n{},\n", events(run, false).join(",\n"))
}

/// The headers that `kernel_trace.csv` has had.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Header {
    Y2024,
    Y2025,
    Guid,
}

pub(crate) fn kernel_trace(run: &Run, header: Header) -> String {
    let mut out = String::from(match header {
        Header::Y2024 => {
            "\"Kind\",\"Agent_Id\",\"Queue_Id\",\"Thread_Id\",\"Dispatch_Id\",\"Kernel_Id\",\"Kernel_Name\",\"Correlation_Id\",\"Start_Timestamp\",\"End_Timestamp\",\"Private_Segment_Size\",\"Group_Segment_Size\",\"Workgroup_Size_X\",\"Workgroup_Size_Y\",\"Workgroup_Size_Z\",\"Grid_Size_X\",\"Grid_Size_Y\",\"Grid_Size_Z\"\n"
        }
        Header::Y2025 => {
            "\"Kind\",\"Agent_Id\",\"Queue_Id\",\"Stream_Id\",\"Thread_Id\",\"Dispatch_Id\",\"Kernel_Id\",\"Kernel_Name\",\"Correlation_Id\",\"Start_Timestamp\",\"End_Timestamp\",\"LDS_Block_Size\",\"Scratch_Size\",\"VGPR_Count\",\"Accum_VGPR_Count\",\"SGPR_Count\",\"Workgroup_Size_X\",\"Workgroup_Size_Y\",\"Workgroup_Size_Z\",\"Grid_Size_X\",\"Grid_Size_Y\",\"Grid_Size_Z\"\n"
        }
        Header::Guid => {
            "\"Guid\",\"Kind\",\"Agent_Id\",\"Queue_Id\",\"Stream_Id\",\"Thread_Id\",\"Dispatch_Id\",\"Kernel_Id\",\"Kernel_Name\",\"Correlation_Id\",\"Start_Timestamp\",\"End_Timestamp\",\"Lds_Block_Size\",\"Scratch_Size\",\"Vgpr_Count\",\"Accum_Vgpr_Count\",\"Sgpr_Count\",\"Workgroup_Size_X\",\"Workgroup_Size_Y\",\"Workgroup_Size_Z\",\"Grid_Size_X\",\"Grid_Size_Y\",\"Grid_Size_Z\"\n"
        }
    });
    // Real files have no order either.
    for kernel in run.kernels.iter().rev() {
        let (start, end) = kernel.span;
        let name = kernel.name;
        let id = kernel.correlation;
        let line = match header {
            Header::Y2024 => format!(
                "\"KERNEL_DISPATCH\",0,1,7,{id},3,\"{name}\",{id},{start},{end},0,0,128,1,1,1024,1,1"
            ),
            Header::Y2025 => format!(
                "\"KERNEL_DISPATCH\",\"Agent 0\",1,1,7,{id},3,\"{name}\",{id},{start},{end},0,0,8,0,16,128,1,1,1024,1,1"
            ),
            Header::Guid => format!(
                "\"0a-b\",\"KERNEL_DISPATCH\",\"Agent 0\",1,0,7,{id},3,\"{name}\",{id},{start},{end},0,0,8,0,16,128,1,1,1024,1,1"
            ),
        };
        writeln!(out, "{line}").unwrap();
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

pub(crate) fn kernel_stats(run: &Run) -> String {
    let mut out = String::from(
        "\"Name\",\"Calls\",\"TotalDurationNs\",\"AverageNs\",\"Percentage\",\"MinNs\",\"MaxNs\",\"StdDev\"\n",
    );
    for (name, calls, total) in sums(run) {
        writeln!(out, "\"{name}\",{calls},{total},1.0,1.0,1,2,0.5").unwrap();
    }
    out
}

pub(crate) fn kern_sum(run: &Run, shapes: bool) -> String {
    let mut out = String::from(
        "Generating SQLite file a.sqlite from a.nsys-rep\nProcessing [a.sqlite] with [x.py]... \n\n",
    );
    out.push_str(
        "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),",
    );
    out.push_str(if shapes {
        "GridXYZ,BlockXYZ,Name\n"
    } else {
        "Name\n"
    });
    for (name, calls, total) in sums(run) {
        if shapes {
            // With launch shapes, a name has two rows.
            writeln!(
                out,
                "1.0,{},1,1.0,1.0,1,2,0.0,  8    1    1, 128    1    1,\"{name}\"",
                total / 2
            )
            .unwrap();
            writeln!(
                out,
                "1.0,{},{},1.0,1.0,1,2,0.0, 16    1    1, 128    1    1,\"{name}\"",
                total - total / 2,
                calls - 1
            )
            .unwrap();
        } else {
            writeln!(out, "1.0,{total},{calls},1.0,1.0,1,2,0.0,\"{name}\"").unwrap();
        }
    }
    out.push_str("\nProcessing [a.sqlite] with [y.py]... \n\nTime (%),Total Time (ns),Count,Operation\n1.0,5,1,\"[CUDA memcpy]\"\n");
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
            // Some texts stand in the table itself, some among the strings.
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

/// A rocpd database: tables with a suffix, views without one, of which only what is read is there.
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

/// A trace as rocprofv3 writes it: interned names, a second descriptor of the thread, absolute times beside a clock of
/// differences; kernels and copies on one track of a stream where `streams`, else on tracks of their own.
pub(crate) fn pftrace(run: &Run, streams: bool) -> Vec<u8> {
    use proto::{
        Clock, ClockSnapshot, Packets, ProcessDescriptor, ThreadDescriptor, TracePacket,
        TrackDescriptor, TrackEvent,
    };
    let mut out = Vec::new();
    let mut push = |mut packet: TracePacket| {
        packet.trusted_packet_sequence_id = Some(2);
        out.extend(
            Packets {
                packet: vec![packet],
            }
            .encode_to_vec(),
        );
    };
    let clock = |id, incremental| Clock {
        clock_id: Some(id),
        timestamp: Some(5_000_000),
        is_incremental: Some(incremental),
        unit_multiplier_ns: None,
    };
    push(TracePacket {
        sequence_flags: Some(proto::CLEARED),
        clock_snapshot: Some(ClockSnapshot {
            clocks: vec![clock(6, false), clock(64, true)],
        }),
        trace_packet_defaults: Some(proto::TracePacketDefaults {
            timestamp_clock_id: Some(64),
            track_event_defaults: Some(proto::TrackEventDefaults {
                track_uuid: Some(10),
            }),
        }),
        ..TracePacket::default()
    });
    let thread = ThreadDescriptor {
        pid: Some(7),
        tid: Some(7),
        thread_name: Some("python3".into()),
    };
    let process = ProcessDescriptor {
        pid: Some(7),
        process_name: Some("python3".into()),
    };
    let named = |uuid, name: &str| TrackDescriptor {
        uuid: Some(uuid),
        name: Some(name.into()),
        parent_uuid: Some(1),
        ..TrackDescriptor::default()
    };
    let (compute, copy) = if streams { (11, 11) } else { (11, 12) };
    let mut descriptors = vec![
        TrackDescriptor {
            uuid: Some(10),
            thread: Some(thread),
            parent_uuid: Some(1),
            ..TrackDescriptor::default()
        },
        TrackDescriptor {
            uuid: Some(1),
            process: Some(process),
            ..TrackDescriptor::default()
        },
        TrackDescriptor {
            uuid: Some(10),
            parent_uuid: Some(1),
            ..TrackDescriptor::default()
        },
    ];
    if streams {
        descriptors.push(named(11, "STREAM [\" 0 \"] "));
    } else {
        descriptors.push(named(11, "COMPUTE AGENT [0] QUEUE [0] (GPU)"));
        descriptors.push(named(12, "COPY to AGENT [0] THREAD [0] (GPU)"));
    }
    for descriptor in descriptors {
        push(TracePacket {
            timestamp: Some(3),
            track_descriptor: Some(descriptor),
            ..TracePacket::default()
        });
    }
    let names = [
        "begin_ns",
        "end_ns",
        "corr_id",
        "agent",
        "copy_bytes",
        "dst_agent",
    ];
    let interned = |texts: &[&str]| -> Vec<proto::Interned> {
        (1..)
            .zip(texts)
            .map(|(iid, name)| proto::Interned {
                iid: Some(iid),
                name: Some((*name).into()),
            })
            .collect()
    };
    push(TracePacket {
        interned_data: Some(proto::InternedData {
            event_categories: interned(&[
                "hip_api",
                "marker_api",
                "memory_copy",
                "kernel_dispatch",
            ]),
            debug_annotation_names: interned(&names),
            ..proto::InternedData::default()
        }),
        ..TracePacket::default()
    });
    let note = |name: u64, value: u64| proto::DebugAnnotation {
        name_iid: Some(name),
        uint_value: Some(value),
        ..proto::DebugAnnotation::default()
    };
    let sizes = proto::DebugAnnotation {
        name: Some("workgroup_size".into()),
        string_value: Some("(128,1,1)".into()),
        ..proto::DebugAnnotation::default()
    };
    let mut slice = |track: u64,
                     category: u64,
                     name: &str,
                     span: (u64, u64),
                     mut notes: Vec<proto::DebugAnnotation>| {
        notes.extend([note(1, span.0), note(2, span.1)]);
        let begin = TrackEvent {
            r#type: Some(proto::BEGIN),
            track_uuid: Some(track),
            category_iids: vec![category],
            name: Some(name.into()),
            debug_annotations: notes,
            ..TrackEvent::default()
        };
        let end = TrackEvent {
            r#type: Some(proto::END),
            track_uuid: Some(track),
            ..TrackEvent::default()
        };
        for (time, event) in [(span.0, begin), (span.1, end)] {
            push(TracePacket {
                timestamp: Some(time),
                timestamp_clock_id: Some(6),
                track_event: Some(event),
                ..TracePacket::default()
            });
        }
    };
    for kernel in &run.kernels {
        slice(
            10,
            1,
            "hipLaunchKernel",
            kernel.launch,
            vec![note(3, kernel.correlation)],
        );
    }
    for sync in &run.syncs {
        slice(10, 1, "hipDeviceSynchronize", *sync, vec![]);
    }
    for range in &run.ranges {
        slice(10, 2, &range.name, range.span, vec![]);
    }
    for span in &run.copies {
        slice(
            copy,
            3,
            "MEMORY_COPY_HOST_TO_DEVICE",
            *span,
            vec![note(5, 4096), note(6, 0)],
        );
    }
    for (i, kernel) in run.kernels.iter().enumerate() {
        let name = format!(
            "{}{}",
            kernel.name,
            if i % 2 == 0 { " [clone .kd]" } else { ".kd" }
        );
        slice(
            compute,
            4,
            &name,
            kernel.span,
            vec![note(3, kernel.correlation), note(4, 0), sizes.clone()],
        );
    }
    out
}

pub(crate) fn bytes(name: &str, data: impl Into<Vec<u8>>) -> Result<Trace, OpenError> {
    let data = data.into();
    let total = data.len() as u64;
    read(name, Cursor::new(data), total)
}

/// A database as bytes.
fn database(fill: impl Fn(&std::path::Path)) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    fill(&path);
    std::fs::read(path).unwrap()
}

/// Every format: its name, its bytes, and whether it has host calls, and single kernels.
pub(crate) fn all(run: &Run) -> Vec<(&'static str, Vec<u8>, bool, bool)> {
    vec![
        ("kineto json", kineto(run).into(), true, true),
        ("chrome json", chrome_open(run).into(), true, true),
        (
            "rocprofv3 kernel_trace.csv",
            kernel_trace(run, Header::Y2024).into(),
            false,
            true,
        ),
        (
            "rocprofv3 kernel_trace.csv",
            kernel_trace(run, Header::Y2025).into(),
            false,
            true,
        ),
        (
            "rocprofv3 kernel_trace.csv",
            kernel_trace(run, Header::Guid).into(),
            false,
            true,
        ),
        (
            "rocprofv3 kernel_stats.csv",
            kernel_stats(run).into(),
            false,
            false,
        ),
        (
            "nsys cuda_gpu_kern_sum.csv",
            kern_sum(run, false).into(),
            false,
            false,
        ),
        (
            "nsys cuda_gpu_kern_sum.csv",
            kern_sum(run, true).into(),
            false,
            false,
        ),
        ("nsys sqlite", database(|path| nsys(run, path)), true, true),
        ("rocpd", database(|path| rocpd(run, path)), true, true),
        ("perfetto pftrace", pftrace(run, false), true, true),
        ("perfetto pftrace", pftrace(run, true), true, true),
    ]
}

/// Hands over what can be read of each format with a few damaged bytes; as often as `TRACE_ROUNDS` says.
pub(crate) fn damaged(each: impl Fn(Trace)) {
    let rounds = std::env::var("TRACE_ROUNDS").map_or(300, |rounds| rounds.parse().unwrap());
    let mut seed = 1_u64;
    let mut random = move || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    };
    for (_, data, _, _) in all(&run(1, 400, 250)) {
        for _ in 0..rounds {
            let mut data = data.clone();
            for _ in 0..1 + random() % 8 {
                let at = (random() % data.len() as u64) as usize;
                match random() % 4 {
                    0 => data[at] ^= 1 << (random() % 8),
                    1 => data[at] = random() as u8,
                    2 => drop(data.remove(at)),
                    _ => data.insert(at, b"\"{}[],\\:\0\xff"[(random() % 10) as usize]),
                }
            }
            if let Ok(trace) = bytes("damaged", data) {
                each(trace);
            }
        }
    }
}

/// Builds a trace with a thousand lanes of kernels that overlap, all of one long name with escapes in it.
pub(crate) fn thousand_lanes() -> Trace {
    let name = format!("\u{1b}]52;c;evil\u{7}{}", "x".repeat(10_000));
    let mut builder = TraceBuilder::new("made", "ours", false);
    for i in 0..1000 {
        let device = builder.device(&(i % 8).to_string());
        let lane = builder.lane(LaneKind::Device, "GPU", &format!("queue {i}"), Some(device));
        let name = builder.name(&name);
        for k in 0..5 {
            // Every second one overlaps the one before.
            let slice = builder.slice(
                SliceKind::Kernel,
                lane,
                name,
                (k * 100, k * 100 + 60 + 80 * (k % 2)),
                || "here".to_owned(),
            );
            builder.detail(
                slice.unwrap(),
                Detail {
                    bytes: Some(1),
                    ..Detail::default()
                },
            );
        }
    }
    builder.finish()
}
