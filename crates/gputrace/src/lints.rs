//! Finds faults of a trace, or of the run that it shows. Each lint has a name, a reason and advice, and is one function of the figures for
//! all formats.

use super::display::time;
use super::figures::{Summary, TraceLint, median};
use super::model::{SliceKind, Trace};
use super::names::Family;

/// The idle share of a device above which launches may limit the run.
const IDLE: f64 = 0.30;
/// The median length of kernels, in nanoseconds, below which launching takes as long as running.
const SHORT: u64 = 20_000;
/// The share of kernel time above which one kernel dominates the run.
const DOMINATES: f64 = 0.50;
/// The ratio of a profiled step to an unprofiled one above which the profiler slows the run.
const OVERHEAD: f64 = 1.25;
/// The share of linked kernels that start before their launch above which the clocks disagree.
const EARLY: f64 = 0.01;
/// The ratio of backward to forward time below which parts of the backward pass are missing; about 2 is usual.
const BACKWARD_SHORT: f64 = 0.5;

/// The reason of a lint and its advice, both in sentences.
type LintReason = (String, String);
/// A lint; `None` if it does not apply.
type Rule = fn(&Trace, &Summary) -> Option<LintReason>;

/// All lints in display order.
const LINTS: [(&str, Rule); 9] = [
    ("truncated-file", truncated_file),
    ("no-device-activity", no_device_activity),
    ("clock-mismatch", clock_mismatch),
    ("launch-bound", launch_bound),
    ("sync-in-step", sync_in_step),
    ("copy-in-step", copy_in_step),
    ("one-kernel-dominates", one_kernel_dominates),
    ("missing-backward", missing_backward),
    ("profiler-overhead", profiler_overhead),
];

/// Returns the names of all lints, in the order in which they are reported.
pub fn names() -> impl Iterator<Item = &'static str> {
    LINTS.iter().map(|(name, _)| *name)
}

/// Returns all lints that apply.
pub(crate) fn lints(trace: &Trace, figures: &Summary) -> Vec<TraceLint> {
    let mut lints = Vec::new();
    for (name, rule) in LINTS {
        if let Some((why, next)) = rule(trace, figures) {
            lints.push(TraceLint { name, why, next });
        }
    }
    lints
}

fn found(why: String, next: &str) -> Option<LintReason> {
    Some((why, next.to_owned()))
}

fn truncated_file(trace: &Trace, figures: &Summary) -> Option<LintReason> {
    let why = trace.truncated.as_ref()?;
    found(
        format!(
            "{why} The part before that has {} kernels.",
            figures.kernels
        ),
        "Copy the file again, or stop the profiler properly (`prof.stop()`, not `kill -9`) and \
         record fewer steps.",
    )
}

fn no_device_activity(trace: &Trace, figures: &Summary) -> Option<LintReason> {
    if figures.kernels > 0 || trace.slices_of(SliceKind::Graph).next().is_some() {
        return None;
    }
    let launches = figures.launches.unwrap_or(0) + figures.graph_launches.unwrap_or(0);
    let ops = trace.slices_of(SliceKind::Op).count();
    let why = match (launches, ops) {
        (0, 0) if trace.slices.is_empty() && figures.bad_rows > 0 => {
            let why = trace
                .unread
                .first()
                .map_or("", |unread| unread.why.as_str());
            format!(
                "The file has {} events, but none could be read: {why}.",
                figures.bad_rows
            )
        }
        (0, 0) if trace.slices.is_empty() => {
            "The file is empty: it may belong to a subprocess, or to a run that had ended."
                .to_owned()
        }
        _ if trace.unknown_device.is_some() => format!(
            "The file shows work of a device whose records are not known ({}), so no kernels can \
             be read.",
            trace.unknown_device.as_deref().unwrap_or_default()
        ),
        (0, 0) => "The file has neither kernels nor calls that launch kernels.".to_owned(),
        (0, ops) => format!(
            "The host ran {ops} operations, but launched no kernel: the model was on the CPU, or \
             calls were not recorded."
        ),
        (n, _) => format!(
            "The host launched {n} kernels, but the file has none of them: the device was not \
             recorded."
        ),
    };
    let general = match trace.format {
        _ if trace.unknown_device.is_some() => {
            "Open it with the tools of the device's vendor; the work of the host is shown here."
        }
        _ if trace.slices.is_empty() && figures.bad_rows > 0 => {
            "Export it again: each event needs its time (`ts`, in microseconds), and one of phase \
             X its length (`dur`)."
        }
        "nsys sqlite" => {
            "Record with `nsys profile --trace=cuda,nvtx,osrt`, and look at the export's \
             DIAGNOSTIC_EVENT."
        }
        "rocpd"
        | "perfetto pftrace"
        | "rocprofv3 kernel_trace.csv"
        | "rocprofv3 kernel_stats.csv" => {
            "Record with `rocprofv3 --kernel-trace --hip-trace -- …`, and start the profiler \
             before HIP. If there are several files, open \
            the one with kernels. The profiler does not see Vulkan or wgpu."
        }
        "nsys cuda_gpu_kern_sum.csv" => {
            "Record with `nsys profile --trace=cuda`; then run `nsys stats` again."
        }
        _ => {
            "Record with `profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])`, on \
             a machine where \
             `torch.cuda.is_available()`, and after a first step: the tracer then runs before the \
             work starts."
        }
    };
    found(why, trace.record_again.unwrap_or(general))
}

fn clock_mismatch(trace: &Trace, figures: &Summary) -> Option<LintReason> {
    let (early, linked) = figures.early;
    let next = "Trust durations, not gaps between host and device. Record again with a newer driver, after a first step.";
    if early > 0 && early as f64 > EARLY * linked as f64 {
        return found(
            format!("{early} of {linked} kernels start before the call that launched them."),
            next,
        );
    }
    let (start, end) = trace.span(|kind| kind == SliceKind::Kernel)?;
    let (first, last) = trace.span(SliceKind::is_call)?;
    let apart = if start > last {
        start.abs_diff(last)
    } else {
        first.saturating_sub(end).max(0) as u64
    };
    if apart > last.abs_diff(first).max(1_000_000_000) {
        return found(
            format!(
                "Host and device are {} apart: their clocks are unrelated.",
                time(apart)
            ),
            next,
        );
    }
    None
}

fn launch_bound(trace: &Trace, figures: &Summary) -> Option<LintReason> {
    let idle = figures.idle_with_graphs?;
    let median = figures.median_kernel_ns?;
    if idle <= IDLE || median >= SHORT || figures.kernels < 2 {
        return None;
    }
    // Gaps that the profiler caused are no fault of the run, nor are gaps in which launches were captured into a graph.
    let captured = figures.launches_captured.unwrap_or(0);
    let ran = figures.launches.unwrap_or(0).saturating_sub(captured);
    if captured > ran || profiler_overhead(trace, figures).is_some() {
        return None;
    }
    let next = match captured {
        0 => {
            "Launch fewer kernels: fuse (`torch.compile`), replay (CUDA graphs), use larger \
             batches or a fused optimizer."
        }
        _ => {
            "A graph was captured already: launch fewer kernels outside of it, fuse \
             (`torch.compile`), or use larger batches."
        }
    };
    found(
        format!(
            "The device is idle for {:.0} % of the time from the first to the last kernel, and \
             half of the kernels take less than {}.",
            100.0 * idle,
            time(median)
        ),
        next,
    )
}

fn sync_in_step(_: &Trace, figures: &Summary) -> Option<LintReason> {
    let steps = figures.steps.as_ref()?;
    let counts: Vec<u64> = steps.iter().filter_map(|step| step.syncs).collect();
    let all: u64 = counts.iter().sum();
    if all == 0 {
        return None;
    }
    let with = counts.iter().filter(|count| **count > 0).count();
    let idle = match figures.ledger.and_then(|ledger| ledger.syncs) {
        Some(ns) if ns > 0 => format!(" The device was idle for {} of that.", time(ns)),
        _ => String::new(),
    };
    found(
        format!(
            "The host waits for the device {all} times in {with} of {} steps.{idle}",
            steps.len()
        ),
        "Look for `.item()`, `print(loss)`, `torch.cuda.synchronize()`, `.cpu()`: log every N \
         steps, or after the step.",
    )
}

fn copy_in_step(_: &Trace, figures: &Summary) -> Option<LintReason> {
    let steps = figures.steps.as_ref()?;
    let all: u64 = steps
        .iter()
        .filter_map(|step| step.host_device_copies)
        .sum();
    if all == 0 {
        return None;
    }
    found(
        format!(
            "{all} copies between host and device in {} steps.",
            steps.len()
        ),
        "Pin memory and prefetch the next batch (`pin_memory=True`, `non_blocking=True`); keep \
         losses on the device.",
    )
}

fn one_kernel_dominates(_: &Trace, figures: &Summary) -> Option<LintReason> {
    let row = figures.table.first()?;
    if row.share_of_kernels <= DOMINATES || row.total_ns == 0 {
        return None;
    }
    let next = match row.family {
        Family::Communication => {
            "It waits for the slowest rank, then exchanges data: compare the ranks for stragglers \
             (`perflings open DIR`), overlap it \
             with compute, and try other sizes of buckets (`bucket_cap_mb`)."
        }
        _ => {
            "Examine only this kernel: its shape, its data type, its share of the roof. \
             Everything else matters little."
        }
    };
    found(
        format!(
            "{} takes {:.0} % of the kernel time in {} calls.",
            row.short,
            100.0 * row.share_of_kernels,
            row.calls
        ),
        next,
    )
}

fn missing_backward(trace: &Trace, figures: &Summary) -> Option<LintReason> {
    // The missing part of the file may contain the backward pass.
    if trace.truncated.is_some() {
        return None;
    }
    let next = "Print which parameters have `p.grad is None`: a result written into `torch.empty_like` outside of autograd \
                cuts the graph.";
    let forward = figures.phases.forward.filter(|ns| *ns > 0)?;
    let backward = figures.phases.backward?;
    if (backward as f64) < BACKWARD_SHORT * forward as f64 {
        return found(
            format!(
                "Backward takes {} of kernel time without collectives, forward {}; about twice as \
                 much is usual.",
                time(backward),
                time(forward)
            ),
            next,
        );
    }
    let has_optimizer = figures
        .table
        .iter()
        .any(|row| row.family == Family::Optimizer);
    let possible = match figures.phases.optimizer_kernels {
        // Ranks may gather gradients over several steps: without a range of its own, nothing is known of their optimizer.
        None if figures.communication_ns > 0 => None,
        None => figures.phases.other_kernels,
        kernels => kernels,
    };
    if !has_optimizer && possible == Some(0) {
        return found(
            "There is a backward phase, but no optimizer kernel.".to_owned(),
            next,
        );
    }
    None
}

fn profiler_overhead(trace: &Trace, figures: &Summary) -> Option<LintReason> {
    let mut steps: Vec<u64> = figures
        .steps
        .as_ref()?
        .iter()
        .map(|step| step.dur_ns)
        .collect();
    steps.sort_unstable();
    let profiled = median(&steps)?;
    let plain = trace.unprofiled_step.filter(|ns| *ns > 0)?;
    let ratio = profiled as f64 / plain as f64;
    if ratio <= OVERHEAD {
        return None;
    }
    let times = format!(
        "{} with the profiler, {} without it ({ratio:.1} times)",
        time(profiled),
        time(plain)
    );
    found(
        format!("A step takes {times}."),
        "Trust shares and counts, not times. Record fewer steps, without stacks and shapes, or \
         only the device.",
    )
}
