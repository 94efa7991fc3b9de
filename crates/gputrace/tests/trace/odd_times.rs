//! Odd contents: impossible times, events in no order, Python's frames, launches that were captured and did not run, and files that are not
//! read.

use gputrace::model::SliceKind;
use gputrace::summary::summary;

use super::fixtures::{self, bytes, kineto_file};
use super::ranks::later;
use super::{figures_of, lint_names};

/// Returns a run that starts a minute after the zero of its clock.
fn run() -> fixtures::Run {
    later(&fixtures::run(3, 400, 9000), 60_000_000_000)
}

/// Returns the file of a run and of further kernels, each with start and length in nanoseconds.
fn with_kernels(run: &fixtures::Run, kernels: &[(u64, u64)]) -> String {
    let mut events = fixtures::events(run, true);
    events.extend(kernels.iter().map(|(start, length)| {
        let ts = *start as f64 / 1e3;
        let dur = *length as f64 / 1e3;
        format!(
            r#"{{"ph":"X","cat":"kernel","name":"odd","pid":0,"tid":7,"ts":{ts},"dur":{dur},"args":{{"device":0,"stream":7}}}}"#
        )
    }));
    kineto_file(&events)
}

#[test]
fn times_far_outside_of_all_others_are_set_aside_and_counted() {
    let run = run();
    let plain = figures_of(with_kernels(&run, &[]));
    assert_eq!((plain.set_aside, plain.doubts.len()), (0, 0));
    let year = 31_536_000_000_000_000;
    for odd in [
        &[(0, 0)][..],
        &[(0, 500)],
        &[(year, 500)],
        &[(0, 0), (0, 0), (year, 0)],
    ] {
        let figures = figures_of(with_kernels(&run, odd));
        assert_eq!(figures.set_aside, odd.len() as u64, "{odd:?}");
        assert_eq!(figures.doubts.len(), 1, "{odd:?}");
        assert_eq!(figures.kernels, plain.kernels);
        assert_eq!(figures.idle_share, plain.idle_share);
        assert_eq!(figures.trace_span_ns, plain.trace_span_ns);
        assert_eq!(lint_names(&figures), lint_names(&plain));
    }
    // Work five seconds before the rest stays, since a run may pause; so do many events at an odd time.
    let first = run.kernels[0].span.0;
    let kept = figures_of(with_kernels(&run, &[(first - 5_000_000_000, 900)]));
    assert_eq!((kept.set_aside, kept.kernels), (0, plain.kernels + 1));
    let many = figures_of(with_kernels(&run, &[(0, 0); 30]));
    assert_eq!((many.set_aside, many.kernels), (0, plain.kernels + 30));
}

#[test]
fn a_kernel_that_covers_its_successors_counts_up_to_the_next() {
    let mut run = run();
    let plain = figures_of(fixtures::kineto(&run));
    run.kernels[4].span.1 += 60_000_000_000;
    let figures = figures_of(fixtures::kineto(&run));
    assert_eq!((plain.contradicts, figures.contradicts), (0, 1));
    assert_eq!(figures.kernels, plain.kernels);
    let until_next = run.kernels[5].span.0 - run.kernels[4].span.0;
    assert!(figures.busy_ns.unwrap() <= plain.busy_ns.unwrap() + until_next);
    assert_eq!(figures.device_span_ns, plain.device_span_ns);
    // On a stream of its own, the kernel contradicts no other.
    let text = fixtures::kineto(&run);
    let mut lines = text.lines();
    let long = lines.find(|line| line.contains("\"dur\":60000")).unwrap();
    let moved = long
        .replace("\"tid\":7", "\"tid\":8")
        .replace("\"stream\":7", "\"stream\":8");
    let figures = figures_of(text.replace(long, &moved));
    assert_eq!(figures.contradicts, 0);
    // Queues of AMD run several kernels at once.
    let table = fixtures::kernel_trace(&run, fixtures::Header::Y2025);
    assert_eq!(figures_of(table).contradicts, 0);
}

#[test]
fn beginnings_and_ends_in_any_order_are_joined_by_time() {
    for named in [true, false] {
        let mut events: Vec<String> = Vec::new();
        for index in 0..50 {
            // Every second kernel begins when the one before it ends.
            let start = 10 * index + 5 * (index % 2);
            let event = |phase: &str, time: u32, name: &str| {
                format!(r#"{{"ph":"{phase}","cat":"kernel","pid":0,"tid":7,"ts":{time}{name}}}"#)
            };
            let name = if named {
                format!(r#","name":"k{}""#, index % 3)
            } else {
                r#","name":"k""#.to_owned()
            };
            events.push(event("B", start, &name));
            events.push(event("E", start + 5, if named { &name } else { "" }));
        }
        let mut seed = 7_usize;
        for round in 0..20 {
            let figures = figures_of(format!("[{}]", events.join(",")));
            assert_eq!(
                (figures.kernels, figures.bad_rows),
                (50, 0),
                "{named} {round}"
            );
            assert_eq!(figures.kernel_ns, 250_000, "{named} {round}");
            assert_eq!(figures.busy_ns, Some(250_000), "{named} {round}");
            // The next round has the events in random order.
            for last in (1..events.len()).rev() {
                seed = seed
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                events.swap(last, (seed >> 33) % (last + 1));
            }
        }
    }
}

#[test]
fn frames_of_python_are_not_counted_as_operations() {
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
    let trace = bytes("a", kineto_file(&events)).unwrap();
    let figures = summary(&trace);
    let own: Vec<_> = figures
        .operations
        .iter()
        .map(|row| (row.name.as_str(), row.total_ns))
        .collect();
    assert_eq!(own, [("aten::linear", 30_000), ("aten::addmm", 20_000)]);
    let why = &figures.lints[0].why;
    assert!(why.contains("ran 2 operations"), "{why}");
    let frames = trace.slices_of(SliceKind::Frame).next().unwrap().lane;
    for operation in trace.slices_of(SliceKind::Op) {
        assert_ne!(operation.lane, frames);
    }
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
    // Another thread launches without a capture, and the file lacks its kernel.
    events.push(call("cudaLaunchKernel", 2, 300, 99));
    let figures = figures_of(kineto_file(&events));
    assert_eq!(figures.launches, Some(80 + 4 + 1));
    assert_eq!(figures.launches_captured, Some(80));
    assert_eq!(figures.launches_without_kernel, Some(1));
    assert!(!lint_names(&figures).contains(&"launch-bound"));
}

#[test]
fn a_known_format_that_is_not_read_is_refused_with_the_command_that_helps() {
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
fn a_lint_explains_a_file_without_times_and_a_device_that_is_not_known() {
    let untimed = r#"{"traceEvents":[{"ph":"X","cat":"kernel","name":"a","dur":2.0},{"ph":"X","cat":"cpu_op","name":"x","dur":9}]}"#;
    let figures = figures_of(untimed);
    assert_eq!((figures.kernels, figures.bad_rows), (0, 2));
    let why = &figures.lints[0].why;
    assert!(why.contains("without a time"), "{why}");
    let op = r#"{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":1,"ts":1,"dur":2}"#;
    for device_event in [
        r#"{"ph":"X","cat":"mtia_ccp_events","name":"job","pid":0,"tid":0,"ts":2,"dur":2}"#,
        r#"{"ph":"M","name":"process_name","pid":9,"args":{"name":"Ascend Hardware"}}"#,
        r#"{"ph":"M","name":"process_labels","pid":9,"args":{"labels":"XPU 0"}}"#,
    ] {
        let figures = figures_of(format!("[{op},{device_event}]"));
        let why = &figures.lints[0].why;
        assert!(why.contains("records are not known"), "{why}");
        assert!(!why.contains("on the CPU"), "{why}");
    }
}
