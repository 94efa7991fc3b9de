//! Times that cannot be, events in no order, frames of Python, launches that were recorded and not run; files that are not read.

use gputrace::figures::Summary;
use gputrace::model::SliceKind;
use gputrace::summary::summary;

use super::fixtures::{self, bytes};
use super::names;
use super::ranks::{file, later};

fn read(text: impl Into<Vec<u8>>) -> Summary {
    summary(&bytes("a", text).unwrap())
}

/// A run far from the zero of its clock.
fn run() -> fixtures::Run {
    later(&fixtures::run(3, 400, 9000), 60_000_000_000)
}

/// A file of a run and of these kernels: start and length in nanoseconds.
fn with(run: &fixtures::Run, kernels: &[(u64, u64)]) -> String {
    let mut events = fixtures::events(run, true);
    events.extend(kernels.iter().map(|(start, length)| {
        let ts = *start as f64 / 1e3;
        let dur = *length as f64 / 1e3;
        format!(
            r#"{{"ph":"X","cat":"kernel","name":"odd","pid":0,"tid":7,"ts":{ts},"dur":{dur},"args":{{"device":0,"stream":7}}}}"#
        )
    }));
    file(&events)
}

#[test]
fn times_far_outside_of_all_others_are_set_aside_and_counted() {
    let run = run();
    let plain = read(with(&run, &[]));
    assert_eq!((plain.set_aside, plain.doubts.len()), (0, 0));
    let year = 31_536_000_000_000_000;
    for odd in [
        &[(0, 0)][..],
        &[(0, 500)],
        &[(year, 500)],
        &[(0, 0), (0, 0), (year, 0)],
    ] {
        let figures = read(with(&run, odd));
        assert_eq!(
            (figures.set_aside, figures.kernels),
            (odd.len() as u64, plain.kernels),
            "{odd:?}"
        );
        assert_eq!(
            (figures.idle_share, figures.trace_span_ns),
            (plain.idle_share, plain.trace_span_ns)
        );
        assert_eq!((figures.doubts.len(), names(&figures)), (1, names(&plain)));
    }
    // A pause is no fault: work a second before the rest stays, and so does more than a few.
    let first = run.kernels[0].span.0;
    let kept = read(with(&run, &[(first - 5_000_000_000, 900)]));
    assert_eq!((kept.set_aside, kept.kernels), (0, plain.kernels + 1));
    let many = read(with(&run, &[(0, 0); 30]));
    assert_eq!((many.set_aside, many.kernels), (0, plain.kernels + 30));
}

#[test]
fn a_kernel_that_covers_its_successors_counts_up_to_the_next() {
    let mut run = run();
    let plain = read(fixtures::kineto(&run));
    run.kernels[4].span.1 += 60_000_000_000;
    let figures = read(fixtures::kineto(&run));
    assert_eq!(
        (figures.contradicts, figures.kernels, plain.contradicts),
        (1, plain.kernels, 0)
    );
    let longer = run.kernels[5].span.0 - run.kernels[4].span.0;
    assert!(figures.busy_ns.unwrap() <= plain.busy_ns.unwrap() + longer);
    assert_eq!(figures.device_span_ns, plain.device_span_ns);
    // On a stream of its own it contradicts nothing.
    let text = fixtures::kineto(&run);
    let odd = text.lines().find(|line| line.contains("\"dur\":60000"));
    let other = odd
        .unwrap()
        .replace("\"tid\":7", "\"tid\":8")
        .replace("\"stream\":7", "\"stream\":8");
    let figures = read(text.replace(odd.unwrap(), &other));
    assert_eq!(figures.contradicts, 0);
    // Queues of AMD run kernels beside each other.
    let table = fixtures::kernel_trace(&run, fixtures::Header::Y2025);
    assert_eq!(read(table).contradicts, 0);
}

#[test]
fn beginnings_and_ends_in_any_order_are_joined_by_time() {
    for named in [true, false] {
        let mut events: Vec<String> = Vec::new();
        for i in 0..50 {
            let name = if named {
                format!(r#","name":"k{}""#, i % 3)
            } else {
                String::new()
            };
            // Every second one begins when the one before it ends.
            let from = 10 * i + 5 * (i % 2);
            let to = from + 5;
            let at = |ph: &str, ts: u32, name: &str| {
                format!(r#"{{"ph":"{ph}","cat":"kernel","pid":0,"tid":7,"ts":{ts}{name}}}"#)
            };
            let begins = if named {
                name.clone()
            } else {
                r#","name":"k""#.to_owned()
            };
            events.push(at("B", from, &begins));
            events.push(at("E", to, &name));
        }
        let mut seed = 7_usize;
        for round in 0..20 {
            let figures = read(format!("[{}]", events.join(",")));
            assert_eq!(
                (
                    figures.kernels,
                    figures.kernel_ns,
                    figures.busy_ns,
                    figures.bad_rows
                ),
                (50, 250_000, Some(250_000), 0),
                "{named} {round}"
            );
            for i in (1..events.len()).rev() {
                seed = seed
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                events.swap(i, (seed >> 33) % (i + 1));
            }
        }
    }
}

#[test]
fn frames_of_python_are_no_operations() {
    let event = |cat: &str, name: &str, ts: u32, dur: u32| {
        format!(
            r#"{{"ph":"X","cat":"{cat}","name":"{name}","pid":1,"tid":1,"ts":{ts},"dur":{dur}}}"#
        )
    };
    let events = [
        event("python_function", "train.py(1): main", 0, 100),
        event("cpu_op", "aten::linear", 10, 50),
        event("python_function", "inner", 15, 30),
        event("cpu_op", "aten::addmm", 20, 20),
    ];
    let trace = bytes("a", file(&events)).unwrap();
    let figures = summary(&trace);
    let own: Vec<_> = figures
        .operations
        .iter()
        .map(|row| (row.name.as_str(), row.total_ns))
        .collect();
    assert_eq!(own, [("aten::linear", 30_000), ("aten::addmm", 20_000)]);
    assert!(
        figures.lints[0].why.contains("ran 2 operations"),
        "{}",
        figures.lints[0].why
    );
    let lanes: Vec<u32> = trace
        .slices_of(SliceKind::Frame)
        .map(|slice| slice.lane)
        .collect();
    assert!(
        trace
            .slices_of(SliceKind::Op)
            .all(|slice| !lanes.contains(&slice.lane))
    );
}

#[test]
fn launches_captured_into_a_graph_did_not_run() {
    let call = |name: &str, tid: u32, ts: u32, id: u32| {
        format!(
            r#"{{"ph":"X","cat":"cuda_runtime","name":"{name}","pid":1,"tid":{tid},"ts":{ts},"dur":2,"args":{{"correlation":{id}}}}}"#
        )
    };
    let kernel = |ts: u32, id: u32| {
        format!(
            r#"{{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":{ts},"dur":3,"args":{{"device":0,"stream":7,"correlation":{id}}}}}"#
        )
    };
    let mut events = vec![call("cudaStreamBeginCapture", 1, 100, 1)];
    events.extend((2..82).map(|id| call("cudaLaunchKernel", 1, 100 + 5 * id, id)));
    events.push(call("cudaStreamEndCapture", 1, 600, 82));
    for id in 90..94 {
        events.push(call("cudaLaunchKernel", 1, 10 * id, id));
        events.push(kernel(10 * id + 5, id));
    }
    // Another thread captures nothing, and its kernel is lost.
    events.push(call("cudaLaunchKernel", 2, 300, 99));
    let figures = read(file(&events));
    assert_eq!(
        (
            figures.launches,
            figures.launches_captured,
            figures.launches_without_kernel
        ),
        (Some(85), Some(80), Some(1))
    );
    assert!(!names(&figures).contains(&"launch-bound"));
}

#[test]
fn what_is_known_and_not_read_is_named_with_the_command_that_helps() {
    let xplane = |name: &str| {
        let mut plane = vec![0x08, 0x01, 0x12, name.len() as u8];
        plane.extend(name.as_bytes());
        let mut file = vec![0x0a, plane.len() as u8];
        file.extend(plane);
        file
    };
    let gpu_trace = "Start (ns),Duration (ns),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Device,Ctx,Strm,Name\n1,5,1,1,1,1,32,1,1,0,1,7,k\n";
    let api_sum = "Processing [a.sqlite] with [x.py]...\n\nTime (%),Total Time (ns),Num Calls,Avg (ns),Name\n90.0,10,2,5.0,cudaLaunchKernel\n";
    for (file, parts) in [
        (xplane("/host:CPU"), ["xplane.pb", "create_perfetto_trace"]),
        (xplane("/device:GPU:0"), ["JAX", "trace.json.gz"]),
        (gpu_trace.into(), ["cuda_gpu_trace", "cuda_gpu_kern_sum"]),
        (api_sum.into(), ["cuda_api_sum", "nsys export"]),
        (
            br#"{"rocprofiler-sdk-tool": [{"metadata": {}}]}"#.to_vec(),
            ["rocprofv3's JSON", "--output-format csv"],
        ),
    ] {
        let error = bytes("a", file).unwrap_err().to_string();
        assert!(parts.iter().all(|part| error.contains(part)), "{error}");
    }
}

#[test]
fn a_file_without_times_and_a_device_that_is_not_known_say_so() {
    let untimed = r#"{"traceEvents":[{"ph":"X","cat":"kernel","name":"a","dur":2.0},{"ph":"X","cat":"cpu_op","name":"x","dur":9}]}"#;
    let figures = read(untimed);
    assert_eq!((figures.kernels, figures.bad_rows), (0, 2));
    assert!(
        figures.lints[0].why.contains("without a time"),
        "{}",
        figures.lints[0].why
    );
    let op = r#"{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":1,"ts":1,"dur":2}"#;
    for of_device in [
        r#"{"ph":"X","cat":"mtia_ccp_events","name":"job","pid":0,"tid":0,"ts":2,"dur":2}"#,
        r#"{"ph":"M","name":"process_name","pid":9,"args":{"name":"Ascend Hardware"}}"#,
        r#"{"ph":"M","name":"process_labels","pid":9,"args":{"labels":"XPU 0"}}"#,
    ] {
        let figures = read(format!("[{op},{of_device}]"));
        let why = &figures.lints[0].why;
        assert!(
            why.contains("records are not known") && !why.contains("on the CPU"),
            "{why}"
        );
    }
}
