//! Traces of several processes: in one file with equal correlation numbers, in one database, and as one file of each rank.

use std::path::PathBuf;

use gputrace::figures::{LastArrival, Summary, TraceStep};
use gputrace::names::{Family, family, short};
use gputrace::ranks::open_folder;
use gputrace::summary::summary;
use serde_json::Value;

use super::fixtures::{self, Kernel, Range, Run, Span, kineto_file};
use super::{figures_of, lint_names};

/// Returns a run that starts `by` nanoseconds later.
pub(crate) fn later(run: &Run, by: u64) -> Run {
    let moved = |span: Span| (span.0 + by, span.1 + by);
    let mut later = run.clone();
    for Kernel { launch, span, .. } in &mut later.kernels {
        *launch = moved(*launch);
        *span = moved(*span);
    }
    for Range { span, .. } in &mut later.ranges {
        *span = moved(*span);
    }
    for span in later.syncs.iter_mut().chain(&mut later.copies) {
        *span = moved(*span);
    }
    later
}

/// Returns the events of one rank in a file of several. `process` is the JSON of its process.
fn rank_events(run: &Run, process: &str, device: u32) -> Vec<String> {
    let mut events = fixtures::events(run, true);
    // The first events name processes and threads, which would be the same for all ranks.
    events.drain(..4);
    for event in &mut events {
        *event = event
            .replace("\"pid\":7,", &format!("\"pid\":{process},"))
            .replace("\"pid\":0,", &format!("\"pid\":{device},"))
            .replace("\"device\":0", &format!("\"device\":{device}"));
    }
    events
}

/// Returns the figures of one file with a run for each rank: the start of the run, its process and its device.
fn figures_of_ranks(run: &Run, ranks: &[(u64, &str, u32)]) -> Summary {
    let mut events = Vec::new();
    for (start, process, device) in ranks {
        events.extend(rank_events(&later(run, *start), process, *device));
    }
    figures_of(kineto_file(&events))
}

/// Checks that the figures are those of `times` equal processes. `one` has the figures of one process.
#[track_caller]
fn assert_sum(figures: &Summary, one: &Summary, times: u64) {
    let all = |count: Option<u64>| count.map(|count| times * count);
    assert_eq!(figures.kernels, times * one.kernels);
    assert_eq!(figures.launches, all(one.launches));
    assert_eq!(figures.launches_without_kernel, Some(0));
    assert_eq!(figures.unlinked, 0);
    assert_eq!(figures.syncs, all(one.syncs));
    assert_eq!(figures.early, (0, times * one.early.1));
    assert_eq!(figures.ranks.len() as u64, times);
    let ledger = figures.ledger.unwrap();
    let ledger_of_one = one.ledger.unwrap();
    assert_eq!(ledger.wall, times * ledger_of_one.wall);
    assert_eq!(ledger.busy, times * ledger_of_one.busy);
    assert_eq!(ledger.syncs, all(ledger_of_one.syncs));
    let idle = [figures, one].map(|figures| figures.idle_share.unwrap());
    assert!((idle[0] - idle[1]).abs() < 1e-9, "{idle:?}");
    let per_step = [figures, one].map(|figures| figures.kernels_per_step().unwrap());
    assert!((per_step[0] - per_step[1]).abs() < 1e-9, "{per_step:?}");
    assert_eq!(lint_names(figures), lint_names(one));
    let steps = figures.steps.as_ref().unwrap();
    let steps_of_one = one.steps.as_ref().unwrap();
    assert_eq!(steps.len() as u64, times * steps_of_one.len() as u64);
    for step in steps {
        let same = steps_of_one.iter().find(|other| other.name == step.name);
        // The steps differ only in their process and their start.
        let expected = TraceStep {
            process: step.process.clone(),
            span: step.span,
            ..same.unwrap().clone()
        };
        assert_eq!(*step, expected);
    }
}

#[test]
fn ranks_of_one_file_are_told_apart_by_their_times_and_not_by_their_numbers() {
    let run = fixtures::run(2, 400, 250);
    let one = figures_of(fixtures::kineto(&run));
    assert!(one.ranks.is_empty());
    let mut steps = one.steps.iter().flatten();
    assert!(steps.all(|step| step.process.is_none()));
    let starts = [0, 3000, 50_000];
    for processes in [
        ["7000", "7001", "7002"],
        ["\"[a] 7\"", "\"[b] 7\"", "\"[c] 7\""],
    ] {
        for devices in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
            let ranks = [0, 1, 2].map(|i| (starts[i], processes[i], devices[i]));
            let figures = figures_of_ranks(&run, &ranks);
            assert_sum(&figures, &one, 3);
            let is_first = |rank: &&Summary| {
                let process = rank.process.as_deref().unwrap();
                process.contains("7000") || process.contains("[a]")
            };
            let first = figures.ranks.iter().find(is_first).unwrap();
            let first_devices: Vec<&String> = first
                .devices
                .iter()
                .flatten()
                .map(|(label, _)| label)
                .collect();
            assert_eq!(first_devices, [&devices[0].to_string()]);
        }
    }
}

#[test]
fn processes_that_name_one_device_are_told_apart_if_their_times_differ() {
    let mut run = fixtures::run(2, 400, 250);
    // The process of a copy without a correlation number cannot be known.
    run.copies.clear();
    let one = figures_of(fixtures::kineto(&run));
    let apart = [(0, "1", 0), (50_000, "2", 0), (100_000, "3", 0)];
    let figures = figures_of_ranks(&run, &apart);
    assert_sum(&figures, &one, 3);
    assert_eq!(
        (figures.shared_device.as_deref(), figures.contradicts),
        (Some("0"), 0)
    );
}

#[test]
fn work_that_fits_two_processes_is_linked_with_none_and_counted() {
    let run = fixtures::run(2, 400, 250);
    for devices in [[0, 1], [0, 0]] {
        let figures = figures_of_ranks(&run, &[(0, "101", devices[0]), (0, "102", devices[1])]);
        assert_eq!((figures.kernels, figures.launches), (40, Some(40)));
        assert_eq!(figures.syncs, Some(4));
        assert_eq!(figures.launches_without_kernel, Some(40));
        assert_eq!((figures.unlinked, figures.contradicts), (40, 0));
        assert_eq!(figures.doubts.len(), 1);
        for step in figures.steps.unwrap() {
            assert_eq!((step.busy_ns, step.syncs), (None, Some(1)));
        }
    }
}

#[test]
fn a_database_of_two_ranks_counts_the_waits_of_each_once() {
    let run = fixtures::run(3, 400, 250);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.sqlite");
    fixtures::nsys_of(std::slice::from_ref(&run), &path);
    let one = summary(&gputrace::open(&path, &mut |_| {}).unwrap());
    std::fs::remove_file(&path).unwrap();
    fixtures::nsys_of(&[run.clone(), later(&run, 700)], &path);
    let figures = summary(&gputrace::open(&path, &mut |_| {}).unwrap());
    assert_sum(&figures, &one, 2);
}

#[test]
fn a_folder_is_one_trace_with_a_process_for_each_file() {
    let run = fixtures::run(2, 400, 250);
    let one = figures_of(fixtures::kineto(&run));
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: String| std::fs::write(folder.path().join(name), text).unwrap();
    let with_rank = |rank: u64, by: u64| {
        let info = format!("{{\"distributedInfo\": {{\"rank\": {rank}, \"world_size\": 4}}, ");
        fixtures::kineto(&later(&run, by)).replacen('{', &info, 1)
    };
    // A rank in the file counts more than one in its name.
    write("rank_7.json", with_rank(1, 0));
    write("b.json", with_rank(0, 5_000_000_000_000));
    write("trace-rank-02.json", fixtures::kineto(&run));
    write("notes.txt", "no trace".to_owned());
    std::fs::create_dir(folder.path().join("rank3")).unwrap();
    let opened = open_folder(folder.path(), &mut |_| {}).unwrap();
    assert_eq!(opened.skipped.len(), 1);
    let figures = summary(&opened.trace);
    assert_sum(&figures, &one, 3);
    let ranks: Vec<(Option<u64>, &str)> = figures
        .ranks
        .iter()
        .map(|rank| (rank.rank, rank.file.as_str()))
        .collect();
    let expected = [
        (Some(0), "b.json"),
        (Some(1), "rank_7.json"),
        (Some(2), "trace-rank-02.json"),
    ];
    assert_eq!(ranks, expected);
    assert_eq!(figures.world_size, Some(4));
    // The ranks are equal, so the longest step is the median.
    let step = &figures.phases_of_ranks[0];
    let median = one.step_ns.unwrap();
    assert_eq!(
        (step.name, step.median_ns, step.worst_ns),
        ("step", median, median)
    );
    assert_eq!(figures.devices.unwrap().len(), 3);
    let lanes = &opened.trace.lanes;
    let mut titles = lanes.iter().map(|lane| opened.trace.lane_title(lane));
    assert!(titles.any(|title| title.starts_with("rank 1 GPU 0 ")));
}

#[test]
fn a_folder_needs_a_trace_and_one_trace_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let opened = open_folder(folder.path(), &mut |_| {});
    let error = opened.map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("is a folder without a trace"), "{error}");
    let text = fixtures::kineto(&fixtures::run(2, 400, 250));
    std::fs::write(folder.path().join("rank5.json"), text).unwrap();
    let figures = summary(&open_folder(folder.path(), &mut |_| {}).unwrap().trace);
    assert_eq!((figures.rank, figures.kernels), (Some(5), 20));
    assert!(figures.ranks.is_empty());
}

/// Returns the event of a kernel on a stream of a device, with start and length in microseconds. `more` has further arguments.
fn kernel(name: &str, (device, stream): (u32, u32), (ts, dur): (u32, u32), more: &str) -> String {
    format!(
        r#"{{"ph":"X","cat":"kernel","name":"{name}","pid":{device},"tid":{stream},"ts":{ts},"dur":{dur},"args":{{"device":{device},"stream":{stream}{more}}}}}"#
    )
}

#[test]
fn communication_is_exposed_where_a_device_runs_nothing_else() {
    let copy = r#"{"ph":"X","cat":"gpu_memcpy","name":"Memcpy HtoD","pid":0,"tid":9,"ts":0,"dur":40,"args":{"device":0,"stream":9}}"#;
    let events = [
        kernel(
            "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)",
            (0, 1),
            (0, 100),
            "",
        ),
        kernel("ampere_sgemm", (0, 2), (50, 30), ""),
        // This kernel runs on another device.
        kernel("ampere_sgemm", (1, 2), (0, 100), ""),
        copy.to_owned(),
    ];
    let figures = figures_of(kineto_file(&events));
    assert_eq!(figures.communication_ns, 100_000);
    assert_eq!(figures.communication_exposed_ns, Some(70_000));
    assert_eq!(figures.communication_hidden_ns, Some(30_000));
}

#[test]
fn a_collective_that_dominates_has_advice_about_ranks() {
    let events = [kernel("ncclDevKernel_AllReduce", (0, 1), (0, 100), "")];
    let figures = figures_of(kineto_file(&events));
    let mut lints = figures.lints.iter();
    let lint = lints
        .find(|lint| lint.name == "one-kernel-dominates")
        .unwrap();
    assert!(lint.next.contains("ranks"), "{}", lint.next);
    assert!(!lint.next.contains("data type"), "{}", lint.next);
}

#[test]
fn a_wait_for_other_ranks_is_neither_forward_nor_backward() {
    let mut run = fixtures::run(2, 400, 250);
    let mut ranges = run.ranges.iter();
    let forward = ranges.find(|range| range.name == "forward").unwrap().span;
    let mut kernels = run.kernels.iter_mut();
    let first = kernels.find(|kernel| kernel.launch.0 >= forward.0).unwrap();
    first.span = (first.span.0 - 300_000, first.span.0);
    first.name = "ncclDevKernel_Broadcast_RING_LL(ncclDevKernelArgsStorage<4096ul>)";
    let as_collective = figures_of(fixtures::kineto(&run));
    let mut kernels = run.kernels.iter_mut();
    let first = kernels
        .find(|kernel| kernel.name.starts_with("nccl"))
        .unwrap();
    first.name = "wait_kernel";
    let as_kernel = figures_of(fixtures::kineto(&run));
    // As a kernel of the forward pass it makes the backward pass look short.
    assert!(!lint_names(&as_collective).contains(&"missing-backward"));
    assert!(lint_names(&as_kernel).contains(&"missing-backward"));
}

#[test]
fn the_shortest_kernel_of_a_numbered_collective_is_that_of_the_last_rank() {
    let folder = tempfile::tempdir().unwrap();
    // Each rank has the lengths of three collectives in microseconds. Rank 1 waits least at the first two; nobody waits at the third.
    for (rank, lengths) in [(0, [90, 80, 20]), (1, [20, 30, 20]), (2, [95, 70, 20])] {
        let mut events = Vec::new();
        for (number, length) in (0..).zip(lengths) {
            let more = format!(
                r#","Collective name":"allreduce","Process Group Name":"0","Seq":{number}"#
            );
            let time = (200 * number, length);
            events.push(kernel("ncclDevKernel_AllReduce", (0, 1), time, &more));
        }
        let name = folder.path().join(format!("rank{rank}.json"));
        std::fs::write(name, kineto_file(&events)).unwrap();
    }
    let figures = summary(&open_folder(folder.path(), &mut |_| {}).unwrap().trace);
    let arrivals = figures.arrivals.as_ref().unwrap();
    assert_eq!(arrivals.collectives, 3);
    // The longest waits for rank 1 are 95 − 20 and 80 − 30 µs.
    let last = LastArrival {
        process: "rank 1".to_owned(),
        collectives: 2,
        awaited_ns: 125_000,
    };
    assert_eq!(arrivals.last, [last]);
    let sentence = gputrace::display::stragglers(&figures).unwrap();
    assert!(sentence.contains("rank 1 at 2"), "{sentence}");
}

#[test]
fn an_unknown_name_within_the_range_of_a_collective_is_communication() {
    let launch = |ts: u32, id: u32| {
        format!(
            r#"{{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":5,"tid":5,"ts":{ts},"dur":1,"args":{{"correlation":{id}}}}}"#
        )
    };
    let range = r#"{"ph":"X","cat":"user_annotation","name":"nccl:all_reduce","pid":5,"tid":5,"ts":0,"dur":10}"#;
    let events = [
        launch(1, 1),
        launch(20, 2),
        range.to_owned(),
        kernel("my_exchange", (0, 7), (30, 10), r#","correlation":1"#),
        kernel("my_other", (0, 7), (50, 10), r#","correlation":2"#),
    ];
    let figures = figures_of(kineto_file(&events));
    let family_of = |name: &str| {
        let mut rows = figures.table.iter();
        rows.find(|row| row.name == name).unwrap().family
    };
    assert_eq!(family_of("my_exchange"), Family::Communication);
    assert_eq!(family_of("my_other"), Family::Other);
    assert_eq!(figures.communication_ns, 10_000);
}

#[test]
fn the_family_of_a_kernel_follows_from_its_functions_own_name() {
    for (name, expected) in [
        (
            "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)",
            Family::Communication,
        ),
        ("rccl_main_kernel_AllReduce", Family::Communication),
        (
            "void vllm::cross_device_reduce_1stage<float, 2>(vllm::RankData*)",
            Family::Communication,
        ),
        ("void nvshmemi_transfer<1>(int)", Family::Communication),
        (
            "void quantize_with_block_size<flashinfer::Layout, float>(float*, int)",
            Family::Elementwise,
        ),
        (
            "void my_step<softmax::Policy>(reduce::Params)",
            Family::Other,
        ),
        (
            "_5x_cudnn_ampere_scudnn_128x64_relu_xregs_large_nn_v1",
            Family::Product,
        ),
        ("bmm_Mxfp4_bf16_128x128", Family::Product),
        (
            "void cutlass::Kernel<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_128x64_32x6_tn_align8>(Params)",
            Family::Product,
        ),
        (
            "void cutlass::device_kernel<flash::FlashAttnFwdSm90<cutlass::bf16>>(Params)",
            Family::Attention,
        ),
        (
            "void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<cute::tuple<int>>>(Params)",
            Family::Product,
        ),
        (
            "void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda(int)::{lambda()#1}>(int)",
            Family::Copy,
        ),
        ("triton_poi_fused_all_reduce_add_0", Family::Elementwise),
        ("nccl:all_reduce", Family::Communication),
        (
            "std::enable_if<!(false), void>::type internal::gemvx::kernel<int, float>(cublasGemvParams)",
            Family::Product,
        ),
    ] {
        assert_eq!(family(name), expected, "{name}");
    }
    let wrapped = "void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<cute::tuple<int>>>(Params)";
    assert_eq!(short(wrapped, 60), "GemmUniversal");
}

/// Checks files whose figures were counted by other means. The variable `TRACE_CASES` names their folder, in which `truth.json` has the expected
/// figures of each file.
#[test]
fn counted_files_of_a_folder_agree() {
    let Some(folder) = std::env::var_os("TRACE_CASES").map(PathBuf::from) else {
        return;
    };
    let truth = std::fs::read(folder.join("truth.json")).unwrap();
    let truth: serde_json::Map<String, Value> = serde_json::from_slice(&truth).unwrap();
    for (name, expected) in truth {
        let path = folder.join(&name);
        let trace = if path.is_dir() {
            open_folder(&path, &mut |_| {}).map(|folder| folder.trace)
        } else {
            gputrace::open(&path, &mut |_| {})
        };
        if expected["refused"] == true {
            assert!(trace.is_err(), "{name}");
            continue;
        }
        let figures = summary(&trace.unwrap());
        for (key, value) in expected.as_object().unwrap() {
            if value.is_number() {
                assert_eq!(counted_figure(&figures, key), *value, "{name} {key}");
            }
        }
        for (list, is_expected) in [("must", true), ("must_not", false)] {
            for lint in expected["lints"][list].as_array().into_iter().flatten() {
                let is_raised = lint_names(&figures).contains(&lint.as_str().unwrap());
                assert_eq!(is_raised, is_expected, "{name} {lint}");
            }
        }
    }
}

/// Returns the figure under a key of `truth.json`; most keys are those of the figures' JSON.
fn counted_figure(figures: &Summary, key: &str) -> Value {
    let json = serde_json::to_value(figures).unwrap();
    let steps = || figures.steps.iter().flatten();
    match key {
        "copies" => json["copies"]["count"].clone(),
        "busy_ns_all_devices" => json["busy_ns"].clone(),
        "steps" => Value::from(figures.steps.as_ref().map(Vec::len)),
        "ranks" => Value::from(figures.ranks.len()),
        "operations" => figures
            .operations
            .iter()
            .map(|row| row.calls)
            .sum::<u64>()
            .into(),
        "syncs_in_steps" => steps().filter_map(|step| step.syncs).sum::<u64>().into(),
        "copies_in_steps" => {
            let copies = steps().filter_map(|step| step.host_device_copies);
            copies.sum::<u64>().into()
        }
        "worst_rank_of_step" => {
            let mut phases = figures.phases_of_ranks.iter();
            let step = phases.find(|phase| phase.name == "step");
            Value::from(step.and_then(|phase| phase.worst_rank))
        }
        _ => json[key].clone(),
    }
}
