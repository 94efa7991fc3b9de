//! Traces of several processes: in one file with equal numbers, in one database, and as one file of each rank.

use gputrace::figures::Summary;
use gputrace::names::{Family, family, short};
use gputrace::ranks::open_folder;
use gputrace::summary::summary;
use serde_json::Value;

use super::fixtures::{self, Kernel, Range, Run, bytes};
use super::names;

fn read(text: impl Into<Vec<u8>>) -> Summary {
    summary(&bytes("a", text).unwrap())
}

/// A run that begins later.
pub(crate) fn later(run: &Run, by: u64) -> Run {
    let moved = |span: (u64, u64)| (span.0 + by, span.1 + by);
    Run {
        kernels: run
            .kernels
            .iter()
            .map(|kernel| Kernel {
                launch: moved(kernel.launch),
                span: moved(kernel.span),
                ..kernel.clone()
            })
            .collect(),
        ranges: run
            .ranges
            .iter()
            .map(|range| Range {
                name: range.name.clone(),
                span: moved(range.span),
            })
            .collect(),
        syncs: run.syncs.iter().map(|span| moved(*span)).collect(),
        copies: run.copies.iter().map(|span| moved(*span)).collect(),
    }
}

/// The events of one rank in a file of several: its process as JSON, and its device.
pub(crate) fn rank_events(run: &Run, process: &str, device: u32) -> Vec<String> {
    let text = fixtures::events(run, true).into_iter().skip(4);
    text.map(|event| {
        event
            .replace("\"pid\":7,", &format!("\"pid\":{process},"))
            .replace("\"pid\":0,", &format!("\"pid\":{device},"))
            .replace("\"device\":0", &format!("\"device\":{device}"))
    })
    .collect()
}

/// Events as a file of Kineto's.
pub(crate) fn file(events: &[String]) -> String {
    format!(
        "{{\"schemaVersion\": 1, \"traceEvents\": [\n{}\n]}}\n",
        events.join(",\n")
    )
}

/// One file of a run for each of these beginnings, with these processes and devices.
fn merged(run: &Run, ranks: &[(u64, &str, u32)]) -> String {
    let events = ranks
        .iter()
        .flat_map(|(begin, process, device)| rank_events(&later(run, *begin), process, *device));
    file(&events.collect::<Vec<String>>())
}

/// What the sums over processes have to be: so many times the figures of one.
fn is_sum(figures: &Summary, one: &Summary, times: u64) {
    assert_eq!(
        (figures.kernels, figures.launches),
        (times * one.kernels, one.launches.map(|n| times * n))
    );
    assert_eq!(
        (figures.launches_without_kernel, figures.unlinked),
        (Some(0), 0)
    );
    assert_eq!(figures.syncs, one.syncs.map(|n| times * n));
    assert_eq!((figures.early.0, figures.early.1), (0, times * one.early.1));
    assert_eq!(figures.ranks.len() as u64, times);
    let steps = figures.steps.as_ref().unwrap();
    let of_one = one.steps.as_ref().unwrap();
    assert_eq!(steps.len() as u64, times * of_one.len() as u64);
    for step in steps {
        let same = of_one.iter().find(|of| of.name == step.name).unwrap();
        assert_eq!(
            (
                step.dur_ns,
                step.busy_ns,
                step.syncs,
                step.kernels_by_start,
                step.host_device_copies
            ),
            (
                same.dur_ns,
                same.busy_ns,
                same.syncs,
                same.kernels_by_start,
                same.host_device_copies
            )
        );
        assert_eq!(step.ledger, same.ledger);
    }
    let all = figures.ledger.unwrap();
    let of_one = one.ledger.unwrap();
    assert_eq!(
        (all.wall, all.busy),
        (times * of_one.wall, times * of_one.busy)
    );
    assert_eq!(all.syncs, of_one.syncs.map(|ns| times * ns));
    assert!((figures.idle_share.unwrap() - one.idle_share.unwrap()).abs() < 1e-9);
    assert!((figures.kernels_per_step().unwrap() - one.kernels_per_step().unwrap()).abs() < 1e-9);
    assert_eq!(names(figures), names(one));
}

#[test]
fn ranks_of_one_file_are_told_apart_by_time_and_not_by_their_numbers() {
    let run = fixtures::run(2, 400, 250);
    let one = read(fixtures::kineto(&run));
    assert!(
        one.ranks.is_empty()
            && one
                .steps
                .iter()
                .flatten()
                .all(|step| step.process.is_none())
    );
    let begins = [0, 3000, 50_000];
    for processes in [
        ["7000", "7001", "7002"],
        ["\"[a] 7\"", "\"[b] 7\"", "\"[c] 7\""],
    ] {
        for devices in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
            let ranks = [0, 1, 2].map(|i| (begins[i], processes[i], devices[i]));
            let figures = read(merged(&run, &ranks));
            is_sum(&figures, &one, 3);
            let of = figures
                .ranks
                .iter()
                .find(|rank| rank.process.as_ref().unwrap().contains(['0', 'a']));
            let devices_of: Vec<&String> = of.unwrap().devices.as_ref().unwrap().keys().collect();
            assert_eq!(devices_of, [&devices[0].to_string()]);
        }
    }
}

#[test]
fn processes_that_name_one_device_are_told_apart_where_their_times_differ() {
    let mut run = fixtures::run(2, 400, 250);
    // Nothing tells whose a copy without a number is.
    run.copies.clear();
    let one = read(fixtures::kineto(&run));
    let apart = [(0, "1", 0), (50_000, "2", 0), (100_000, "3", 0)];
    let figures = read(merged(&run, &apart));
    is_sum(&figures, &one, 3);
    assert_eq!(
        (figures.shared_device.as_deref(), figures.contradicts),
        (Some("0"), 0)
    );
}

#[test]
fn work_that_fits_two_processes_is_linked_with_none_and_counted() {
    let run = fixtures::run(2, 400, 250);
    for devices in [[0, 1], [0, 0]] {
        let figures = read(merged(
            &run,
            &[(0, "101", devices[0]), (0, "102", devices[1])],
        ));
        assert_eq!(
            (figures.kernels, figures.launches, figures.syncs),
            (40, Some(40), Some(4))
        );
        assert_eq!(
            (figures.launches_without_kernel, figures.unlinked),
            (Some(40), 40)
        );
        assert!(
            figures
                .steps
                .unwrap()
                .iter()
                .all(|step| step.busy_ns.is_none() && step.syncs == Some(1))
        );
        assert_eq!((figures.doubts.len(), figures.contradicts), (1, 0));
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
    is_sum(&figures, &one, 2);
}

#[test]
fn a_folder_is_one_trace_with_a_process_for_each_file() {
    let run = fixtures::run(2, 400, 250);
    let one = read(fixtures::kineto(&run));
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: String| std::fs::write(folder.path().join(name), text).unwrap();
    let told = |rank: u64, by: u64| {
        let told = format!("{{\"distributedInfo\": {{\"rank\": {rank}, \"world_size\": 4}}, ");
        fixtures::kineto(&later(&run, by)).replacen('{', &told, 1)
    };
    // The file is believed before its name.
    write("rank_7.json", told(1, 0));
    write("b.json", told(0, 5_000_000_000_000));
    write("trace-rank-02.json", fixtures::kineto(&run));
    write("notes.txt", "no trace".to_owned());
    std::fs::create_dir(folder.path().join("rank3")).unwrap();
    let read = open_folder(folder.path(), &mut |_| {}).unwrap();
    assert_eq!(read.skipped.len(), 1);
    let figures = summary(&read.trace);
    is_sum(&figures, &one, 3);
    let ranks: Vec<_> = figures
        .ranks
        .iter()
        .map(|rank| (rank.rank, rank.file.as_str()))
        .collect();
    let expected = [
        (Some(0), "b.json"),
        (Some(1), "rank_7.json"),
        (Some(2), "trace-rank-02.json"),
    ];
    assert_eq!((ranks, figures.world_size), (expected.to_vec(), Some(4)));
    // The ranks are alike: the median is the longest.
    let step = &figures.phases_of_ranks[0];
    assert_eq!(
        (step.name, step.median_ns, step.worst_ns),
        ("step", one.step_ns.unwrap(), one.step_ns.unwrap())
    );
    assert_eq!(figures.devices.unwrap().len(), 3);
    let titles = read
        .trace
        .lanes
        .iter()
        .map(|lane| read.trace.lane_title(lane));
    assert!(
        titles
            .into_iter()
            .any(|title| title.starts_with("rank 1 GPU 0 "))
    );
    let only = tempfile::tempdir().unwrap();
    let error = open_folder(only.path(), &mut |_| {})
        .map(|_| ())
        .unwrap_err()
        .to_string();
    assert!(error.contains("is a folder without a trace"), "{error}");
    std::fs::write(only.path().join("rank5.json"), fixtures::kineto(&run)).unwrap();
    let alone = summary(&open_folder(only.path(), &mut |_| {}).unwrap().trace);
    assert_eq!(
        (alone.rank, alone.ranks.len(), alone.kernels),
        (Some(5), 0, one.kernels)
    );
}

/// A kernel of a stream of a device, from a time in microseconds on; `more` are further arguments.
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
        // On another device.
        kernel("ampere_sgemm", (1, 2), (0, 100), ""),
        copy.to_owned(),
    ];
    let figures = read(file(&events));
    assert_eq!(figures.communication_ns, 100_000);
    assert_eq!(
        (
            figures.communication_exposed_ns,
            figures.communication_hidden_ns
        ),
        (Some(70_000), Some(30_000))
    );
    let alone = read(file(&events[..1]));
    let lint = alone
        .lints
        .iter()
        .find(|lint| lint.name == "one-kernel-dominates")
        .unwrap();
    assert!(
        lint.next.contains("ranks") && !lint.next.contains("data type"),
        "{}",
        lint.next
    );
}

#[test]
fn a_wait_for_other_ranks_is_neither_forward_nor_backward() {
    let mut run = fixtures::run(2, 400, 250);
    let forward = run
        .ranges
        .iter()
        .find(|range| range.name == "forward")
        .unwrap()
        .span;
    let first = run
        .kernels
        .iter_mut()
        .find(|kernel| kernel.launch.0 >= forward.0)
        .unwrap();
    first.name = "ncclDevKernel_Broadcast_RING_LL(ncclDevKernelArgsStorage<4096ul>)";
    first.span = (first.span.0 - 300_000, first.span.0);
    assert!(!names(&read(fixtures::kineto(&run))).contains(&"missing-backward"));
    for kernel in &mut run.kernels {
        kernel.name = if kernel.name.starts_with("nccl") {
            "wait_kernel"
        } else {
            kernel.name
        };
    }
    assert!(names(&read(fixtures::kineto(&run))).contains(&"missing-backward"));
}

#[test]
fn the_shortest_kernel_of_a_numbered_collective_is_that_of_the_last_rank() {
    let folder = tempfile::tempdir().unwrap();
    // Rank 1 waits least at the first two collectives; at the third nobody waits.
    for (rank, lengths) in [(0, [90, 80, 20]), (1, [20, 30, 20]), (2, [95, 70, 20])] {
        let collective = |(number, length): (usize, &u32)| {
            let more = format!(
                r#","Collective name":"allreduce","Process Group Name":"0","Seq":{number}"#
            );
            kernel(
                "ncclDevKernel_AllReduce",
                (0, 1),
                (200 * number as u32, *length),
                &more,
            )
        };
        let events: Vec<String> = lengths.iter().enumerate().map(collective).collect();
        let name = folder.path().join(format!("rank{rank}.json"));
        std::fs::write(name, file(&events)).unwrap();
    }
    let figures = summary(&open_folder(folder.path(), &mut |_| {}).unwrap().trace);
    let arrivals = figures.arrivals.as_ref().unwrap();
    assert_eq!((arrivals.collectives, arrivals.last.len()), (3, 1));
    let last = &arrivals.last[0];
    assert_eq!(
        (last.process.as_str(), last.collectives, last.awaited_ns),
        ("rank 1", 2, 125_000)
    );
    assert!(
        gputrace::display::stragglers(&figures)
            .unwrap()
            .contains("rank 1 at 2")
    );
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
    let figures = read(file(&events));
    let family = |name: &str| {
        figures
            .table
            .iter()
            .find(|row| row.name == name)
            .unwrap()
            .family
    };
    assert_eq!(family("my_exchange"), Family::Communication);
    assert_eq!(family("my_other"), Family::Other);
    assert_eq!(figures.communication_ns, 10_000);
}

#[test]
fn families_go_by_the_functions_own_name() {
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

/// Figures of files that were counted by other means, where a folder of them is named by `TRACE_CASES`.
#[test]
fn counted_files_of_a_folder_agree() {
    let Some(folder) = std::env::var_os("TRACE_CASES").map(std::path::PathBuf::from) else {
        return;
    };
    let truth = std::fs::read(folder.join("truth.json")).unwrap();
    let truth: serde_json::Map<String, Value> = serde_json::from_slice(&truth).unwrap();
    for (name, expected) in truth {
        let path = folder.join(&name);
        let trace = if path.is_dir() {
            open_folder(&path, &mut |_| {}).map(|read| read.trace)
        } else {
            gputrace::open(&path, &mut |_| {})
        };
        if expected["refused"] == true {
            let error = trace.map(|_| ()).unwrap_err().to_string();
            println!("{error}");
            continue;
        }
        let figures = summary(&trace.unwrap());
        let json = serde_json::to_value(&figures).unwrap();
        for (key, value) in expected.as_object().unwrap() {
            let shown = match key.as_str() {
                "copies" => &json["copies"]["count"],
                "busy_ns_all_devices" => &json["busy_ns"],
                "steps" if value.is_number() => &Value::from(figures.steps.as_ref().map(Vec::len)),
                "ranks" => &Value::from(figures.ranks.len()),
                "operations" => {
                    &Value::from(figures.operations.iter().map(|row| row.calls).sum::<u64>())
                }
                "syncs_in_steps" => {
                    let steps = figures.steps.iter().flatten();
                    &Value::from(steps.filter_map(|step| step.syncs).sum::<u64>())
                }
                "copies_in_steps" => {
                    let steps = figures.steps.iter().flatten();
                    &Value::from(
                        steps
                            .filter_map(|step| step.host_device_copies)
                            .sum::<u64>(),
                    )
                }
                "worst_rank_of_step" => {
                    let step = figures
                        .phases_of_ranks
                        .iter()
                        .find(|phase| phase.name == "step");
                    &Value::from(step.and_then(|phase| phase.worst_rank))
                }
                "note" => continue,
                key => &json[key],
            };
            if value.is_number() {
                assert_eq!(shown, value, "{name} {key}");
            }
        }
        for (lints, wanted) in [("must", true), ("must_not", false)] {
            for lint in expected["lints"][lints].as_array().into_iter().flatten() {
                let raised = names(&figures).contains(&lint.as_str().unwrap());
                assert_eq!(raised, wanted, "{name} {lint}");
            }
        }
    }
}
