//! Checks in a process of their own: every job gets a report, even if that process ends, hangs or cannot be started.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use perflings::judge::kernel::{KernelVerdict, verdict as judged};
use perflings::measure::kernel_checker::Checker;
use protocol::handle::EngineCommand;
use protocol::{Command, Event, KernelFaultKind, KernelJob, StreamLine};

use super::{edited, job_of, on_lavapipe, solution_of};

fn engine() -> EngineCommand {
    EngineCommand::new(env!("CARGO_BIN_EXE_perflings"), ["engine"])
}

#[test]
fn one_process_checks_many_times() {
    let job = solution_of("copy");
    if on_lavapipe(&job).is_none() {
        return;
    }
    let mut checker = Checker::new(engine());
    for round in 1..=2 {
        let report = checker.check("vulkan-cpu", &job);
        assert_eq!(report.id, round);
        let verdict = judged(&job, report);
        assert!(verdict.passed, "{:#?}", verdict.card);
    }
    // A job that is given up ends its process, and another process answers the next job.
    let given_up = AtomicBool::new(true);
    let began = Instant::now();
    let report = checker.check_with_progress("vulkan-cpu", &job, &given_up, |_| ());
    assert!(report.failed.is_some() && began.elapsed() < Duration::from_secs(20));
    let wrong = edited("copy", "let i = id.x;", "let i = id.x");
    let report = checker.check("vulkan-cpu", &wrong);
    assert_eq!(report.id, 4);
    assert!(report.files[0].error.is_some());
}

/// Without an adapter the host finds wrong results and races, and the card says that nothing was timed.
#[test]
fn without_an_adapter_the_host_judges() {
    let hidden = [
        "VK_DRIVER_FILES=/",
        "VK_ICD_FILENAMES=/",
        "LIBGL_DRIVERS_PATH=/",
    ];
    let command = [env!("CARGO_BIN_EXE_perflings"), "engine"];
    let without_adapters = EngineCommand::new("env", hidden.into_iter().chain(command));
    let mut checker = Checker::new(without_adapters);
    let mut check = |job: KernelJob| {
        let report = checker.check("auto", &job);
        judged(&job, report)
    };
    let right = check(solution_of("matmul"));
    // An adapter was found by other means than Vulkan's loader.
    if right.facts.device.is_some() {
        return;
    }
    assert!(right.passed, "{:#?}", right.card);
    let note = "only small sizes ran, on the host; no device ran the kernel and nothing was timed: \
                no GPU was found";
    assert!(
        right.card.iter().any(|line| line.text.starts_with(note)),
        "{:#?}",
        right.card
    );
    let fault = |verdict: KernelVerdict| {
        let fault = verdict.facts.files[0].fault.clone();
        (verdict.passed, fault.map(|fault| fault.kind))
    };
    let races = edited("matmul", "}\n        workgroupBarrier();", "}");
    assert_eq!(fault(check(races)), (false, Some(KernelFaultKind::Races)));
    let wrong = edited(
        "matmul",
        "c[row * N + col] = sum;",
        "c[row * N + col] = 2.0 * sum;",
    );
    assert_eq!(fault(check(wrong)), (false, Some(KernelFaultKind::Wrong)));
    assert!(!check(job_of("matmul", |_, starter, _| Ok(starter.to_owned()))).passed);
}

#[test]
fn processes_that_end_are_reported_and_replaced() {
    let job = solution_of("copy");
    for (program, arguments, reason) in [
        (
            "sh",
            vec!["-c", "exit 3"],
            "the process that checks kernels ended: `sh -c exit 3`",
        ),
        (
            "sh",
            vec!["-c", "cat tests/fake > /dev/null"],
            "the process that checks kernels ended: ",
        ),
        (
            "/nowhere/perflings",
            vec![],
            "the process that checks kernels could not be started: \
             Failed to start the engine `/nowhere/perflings`",
        ),
    ] {
        let mut checker = Checker::new(EngineCommand::new(program, arguments));
        for _ in 0..2 {
            let report = checker.check("vulkan-cpu", &job);
            let why = report.failed.expect("nothing was checked");
            assert!(why.starts_with(reason), "{why}");
            assert!(report.files.is_empty());
        }
    }
}

#[test]
fn jobs_and_reports_keep_their_values_as_json() {
    let job = edited("swiglu", "let i = id.x;", "let i = id.x");
    let command = Command::CheckKernel {
        device: "auto".to_owned(),
        job: Box::new(job.clone()),
    };
    let text = serde_json::to_string(&command).expect("writes");
    assert!(
        text.starts_with("{\"command\":\"check-kernel\",\"device\":\"auto\""),
        "{text}"
    );
    assert_eq!(
        serde_json::from_str::<Command>(&text).expect("reads"),
        command
    );
    let Some(report) = on_lavapipe(&job) else {
        return;
    };
    let line = StreamLine {
        t: 1.5,
        event: Event::KernelChecked {
            report: Box::new(report.facts),
        },
    };
    let text = serde_json::to_string(&line).expect("writes");
    assert!(
        text.starts_with("{\"t\":1.5,\"event\":\"kernel-checked\""),
        "{text}"
    );
    let read: StreamLine = serde_json::from_str(&text).expect("reads");
    let (Event::KernelChecked { report: read }, Event::KernelChecked { report }) =
        (read.event, line.event)
    else {
        panic!("another event");
    };
    assert_eq!(read.files[0], report.files[0]);
}

/// A shell script that answers its first job like an engine whose kernel does not end, and then hangs.
const STUCK: &str = r#"read hello
echo '{"t":0,"event":"hello","protocol":1,"version":"0","pid":1,"os":"","cores":1,"date":""}'
while read -r line; do
  id=${line#*'"id":'}; id=${id%%,*}
  echo '{"t":0,"event":"kernel-checked","report":{"id":'"$id"',"exercise":"copy","device":null,"files":[],"failed":null,"restart":true,"seconds":0}}'
  exec sleep 1000
done"#;

#[test]
fn a_process_with_a_kernel_that_does_not_end_is_replaced() {
    let mut checker = Checker::new(EngineCommand::new("sh", ["-c", STUCK]));
    for id in 1..=3 {
        let job = solution_of("copy");
        let report = checker.check("vulkan-cpu", &job);
        assert_eq!((report.id, report.restart, report.failed), (id, true, None));
    }
}

/// A shell script that answers like an engine from before there were kernels to check.
const OLD: &str = r#"read hello
echo '{"t":0,"event":"hello","protocol":1,"version":"0","pid":1,"os":"","cores":1,"date":""}'
read -r line
echo '{"t":0,"event":"failed","kind":"usage","reason":"not a command"}'
exec sleep 1000"#;

#[test]
fn an_engine_that_cannot_check_kernels_is_reported() {
    let job = solution_of("copy");
    let report = Checker::new(EngineCommand::new("sh", ["-c", OLD])).check("vulkan-cpu", &job);
    let why = "the process that checks kernels refused: not a command";
    assert_eq!(report.failed.as_deref(), Some(why));
    assert_eq!(
        judged(&job, report).card[0].text,
        format!("not checked: {why}")
    );
}

/// The driver writes out copies of whole arrays element by element, so this kernel takes too long or too much memory to compile. Its process
/// is then stopped.
#[test]
fn a_kernel_that_takes_too_much_to_compile_is_given_up() {
    let copies = "b = a;\n    a = b;\n    a[7] += 1.0;\n    ".repeat(3000);
    let arrays = "var a: array<f32, 1000>;\n    var b: array<f32, 1000>;\n    ";
    let mut job = edited(
        "swiglu",
        "let g",
        &format!("{arrays}{copies}a[i % 1000u] += 1.0;\n    let h = 10000u;\n    let g"),
    );
    job.files.truncate(1);
    // The host has memory for small workgroups only.
    let text = &mut job.files[0].text;
    *text = text.replace("@workgroup_size(64)", "@workgroup_size(4)");
    job.shapes.truncate(2);
    if on_lavapipe(&solution_of("copy")).is_none() {
        return;
    }
    let mut checker = Checker::new(engine());
    let report = checker.check("vulkan-cpu", &job);
    let verdict = judged(&job, report);
    let card: Vec<_> = verdict.card.iter().map(|line| line.text.as_str()).collect();
    assert!(!verdict.passed && verdict.facts.restart, "{card:?}");
    let why = "and the check was stopped";
    assert!(card.iter().any(|line| line.contains(why)), "{card:?}");
}
