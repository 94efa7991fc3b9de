//! Faults that only a run shows. Each is provoked on a CPU driver of Vulkan.

use std::time::Duration;

use engine::kernel_check::CheckLimits;
use perflings::judge::kernel::KernelVerdict;
use protocol::KernelFaultKind as Kind;
use protocol::config::{Preset, RunConfig};

use super::{adapter, check, complaints, edited, exercises, on_lavapipe, solution_of};

/// Returns the fault of the first file. Fails if there is none, or if the kernel passed.
#[track_caller]
fn fault(report: &KernelVerdict) -> (Kind, String) {
    let fault = report.facts.files[0]
        .fault
        .clone()
        .unwrap_or_else(|| panic!("no fault in {:#?}", report.card));
    assert!(!report.passed && !report.facts.restart && report.swap.is_none());
    (fault.kind, fault.text)
}

/// Asserts that the solution of `swiglu` with `from` replaced by `to` has a fault of this kind and text.
#[track_caller]
fn assert_fails(from: &str, to: &str, kind: Kind, text: &str) {
    if let Some(report) = on_lavapipe(&edited("swiglu", from, to)) {
        assert_eq!(fault(&report), (kind, text.to_owned()));
        let line = &complaints(&report)[0];
        assert!(
            line.starts_with("fails at `") && line.ends_with(text),
            "{line}"
        );
    }
}

#[test]
fn wrong_numbers() {
    assert_fails(
        "s * up[i]",
        "s * up[i] + 1.0",
        Kind::Wrong,
        "`out[0]` is 1.01768 and should be 0.01768; it is the only element, off by 1.0e0 where \
         rounding explains 2.4e-8",
    );
    // In f32, a division by zero gives an infinity and not an error.
    assert_fails(
        "s * up[i]",
        "s * up[i] / f32(id.y)",
        Kind::Wrong,
        "`out[0]` is inf and should be 0.01768; it is the only element",
    );
}

#[test]
fn an_integer_division_by_zero_does_not_end_the_check() {
    // In WGSL i / 0 is i; some drivers give another number. The check goes on, and names the line.
    let job = edited(
        "swiglu",
        "let g = gate[i];",
        "let g = gate[i] + f32(i / id.y);",
    );
    if let Some(report) = on_lavapipe(&job) {
        let (kind, text) = fault(&report);
        assert_eq!(kind, Kind::Open);
        assert!(
            text.contains("`i / id.y`: an integer division by 0"),
            "{text}"
        );
    }
}

#[test]
fn elements_that_no_invocation_writes() {
    assert_fails(
        "out[i] =",
        "if (i % 2u == 1u) { return; }\n out[i] =",
        Kind::Unwritten,
        "never writes 498 of the 997 elements of `out`, first `out[1]`",
    );
}

#[test]
fn indices_out_of_bounds() {
    let next = "; compare the index with the size first";
    assert_fails(
        "i >= N",
        "i >= N + 3u",
        Kind::OutOfBounds,
        &format!("line 16, column 13: `gate[i]` accesses element 1, but `gate` has length 1{next}"),
    );
    assert_fails(
        "* up[i]",
        "* up[i + 1u]",
        Kind::OutOfBounds,
        &format!(
            "line 18, column 18: `up[i + 1u]` accesses element 1, but `up` has length 1{next}"
        ),
    );
    assert_fails(
        "out[i] =",
        "out[i - 1u] =",
        Kind::OutOfBounds,
        &format!(
            "line 18, column 5: `out[i - 1u]` accesses element -1, but `out` has length 1{next}"
        ),
    );
    assert_fails(
        "out[i] =",
        "if (i == 5u) { out[i * 1000000u] = 1.0; } out[i] =",
        Kind::OutOfBounds,
        &format!(
            "line 18, column 20: `out[i * 1000000u]` accesses element 5000000, but `out` has \
             length 997{next}"
        ),
    );
    assert_fails(
        "i >= N",
        "i >= arrayLength(&out)",
        Kind::OutOfBounds,
        "writes out of bounds: `out[1]`, but `out` has length 1; a buffer may be longer than its \
         tensor, so compare with the size and not with arrayLength",
    );
}

#[test]
fn inputs_that_are_written() {
    assert_fails(
        "out[i] =",
        "gate[i] = 0.0; out[i] =",
        Kind::WroteInput,
        "line 18, column 5: `gate[i]` writes to `gate[0]`, which may only be read",
    );
}

#[test]
fn indices_out_of_bounds_of_workgroup_memory() {
    let Some(report) = on_lavapipe(&edited(
        "rms-norm",
        "held[c] = value;",
        "held[c + 1u] = value;",
    )) else {
        return;
    };
    let (kind, text) = fault(&report);
    assert_eq!(kind, Kind::OutOfBounds);
    assert_eq!(
        text,
        "line 25, column 9: `held[c + 1u]` accesses element 1, but `held` has length 1; compare \
         the index with the size first"
    );
}

/// Which invocation is the first out of bounds differs from run to run, so the index is not compared.
#[test]
fn indices_out_of_bounds_of_an_invocations_own_arrays_and_vectors() {
    for (declared, written, array, count) in [
        ("var own: array<f32, 4>;", "own[i]", "own", 4),
        ("var three = vec3(1.0);", "three[i]", "three", 3),
        (
            "var rows: array<vec2<f32>, 2>;",
            "rows[i % 2u][i % 3u]",
            "rows",
            2,
        ),
    ] {
        let to = format!("{declared}\n {written} = 2.0;\n let g = gate[i];");
        let Some(report) = on_lavapipe(&edited("swiglu", "let g = gate[i];", &to)) else {
            return;
        };
        let (kind, text) = fault(&report);
        assert_eq!(kind, Kind::OutOfBounds);
        let start = format!("line 17, column 2: `{written}` accesses element ");
        let end =
            format!(", but `{array}` has length {count}; compare the index with the size first");
        assert!(text.starts_with(&start) && text.ends_with(&end), "{text}");
    }
}

/// A race is found from the elements that each invocation reads and writes between two barriers, so it makes no difference whether the lanes
/// of a device run together.
#[test]
fn a_missing_barrier() {
    let barrier = "        workgroupBarrier();\n";
    let assert_races = |id: &str, from: &str, to: &str, place: &str| {
        let mut job = edited(id, from, to);
        let file = &mut job.files[0].text;
        *file = file.replace(
            "var<workgroup> sums",
            "var<workgroup> most: f32;\nvar<workgroup> sums",
        );
        let Some(report) = on_lavapipe(&job) else {
            return;
        };
        let (kind, text) = fault(&report);
        assert_eq!(kind, Kind::Races, "{text}");
        assert!(text.starts_with(place), "{text}");
        assert!(text.contains("no barrier between them"), "{text}");
    };
    // The barrier between the rounds of a reduction is missing.
    assert_races(
        "rms-norm",
        &format!("        }}\n{barrier}    }}\n    let total"),
        "        }\n    }\n    let total",
        "line 33, column ",
    );
    // Only the barrier before the last read is missing.
    assert_races(
        "rms-norm",
        barrier,
        "        if (half > 1u) { workgroupBarrier(); }\n",
        "line 3",
    );
    // The barrier is one for buffers, not for workgroup memory.
    assert_races(
        "matmul",
        "        workgroupBarrier();\n        for",
        "        storageBarrier();\n        for",
        "line ",
    );
    // One invocation writes a variable, and all read it.
    assert_races(
        "rms-norm",
        "    let total = sums[0];",
        "    if (lane == 0u) { most = sums[0]; }\n    let total = most;",
        "line ",
    );
    // Two invocations write one element.
    assert_races(
        "softmax",
        "shared_values[lane] = sum;",
        "shared_values[lane / 2u] = sum;",
        "line ",
    );
}

#[test]
fn a_variable_that_is_read_after_a_barrier_is_no_race() {
    let from = "    let total = sums[0];";
    let to = "    if (lane == 0u) { most = sums[0]; most += 0.0; }\n    workgroupBarrier();\n    let total = most;";
    let mut job = edited("rms-norm", from, to);
    let text = &mut job.files[0].text;
    *text = text.replace(
        "var<workgroup> sums",
        "var<workgroup> most: f32;\nvar<workgroup> sums",
    );
    if let Some(report) = on_lavapipe(&job) {
        assert!(report.passed, "{:#?}", report.card);
    }
}

#[test]
fn races_in_tiles_of_two_axes() {
    let with_barrier = |barrier: &str| {
        let mut job = edited(
            "matmul",
            "tile_b: array<f32, TILE * TILE>",
            "tile_b: array<array<f32, TILE>, TILE>",
        );
        let text = &mut job.files[0].text;
        *text = text.replace("tile_b[place] =", "tile_b[local.y][local.x] =");
        *text = text.replace("tile_b[k * TILE + local.x]", "tile_b[k][local.x]");
        *text = text.replacen(
            "        workgroupBarrier();\n        for",
            &format!("{barrier}\n        for"),
            1,
        );
        on_lavapipe(&job)
    };
    if let Some(report) = with_barrier("workgroupBarrier();") {
        assert!(report.passed, "{:#?}", report.card);
    }
    if let Some(report) = with_barrier("") {
        assert_eq!(fault(&report).0, Kind::Races);
    }
}

#[test]
fn an_endless_loop_that_the_text_does_not_show() {
    let endless = "var k = 1u;\n    loop { k = k * 2654435761u; if (k == 0u) { break; } }\n    let g = gate[i] + f32(k);";
    if let Some(report) = on_lavapipe(&edited("swiglu", "let g = gate[i];", endless)) {
        let (kind, text) = fault(&report);
        assert_eq!(kind, Kind::Endless);
        assert!(
            text.starts_with("line 17, column 5: `loop {` does not end within "),
            "{text}"
        );
    }
}

/// Each loop ends, but the launch takes too long: 128,000 invocations have 30,000 rounds each.
#[test]
fn launches_that_take_too_long_are_given_up() {
    let mut job = edited(
        "adamw",
        "let w = weight[i];",
        "var w = weight[i];\n for (var k = 0u; k < 30000u; k++) { w = w + 1e-9 * sin(w) * cos(w) * exp(-w * w); }",
    );
    job.shapes.truncate(7);
    job.shapes.push(job.shapes[6].clone());
    let report = check(
        &job,
        "vulkan-cpu",
        CheckLimits {
            launch: Duration::from_secs(5),
            ..CheckLimits::default()
        },
    );
    if let Some(why) = report.facts.failed {
        return adapter::skip(&why);
    }
    let fault = report.facts.files[0].fault.clone().expect("is too slow");
    assert_eq!(fault.kind, Kind::Endless);
    assert_eq!(
        fault.text,
        "does not end: the kernel was still running after 5 s of processor time. The condition \
         of a loop stays true, or the kernel is far too slow"
    );
    assert!(report.facts.restart && !report.passed);
    assert_eq!(
        report.card.last().map(|line| line.text.as_str()),
        Some("the process that checks kernels restarts; the model continues training")
    );
}

#[test]
fn the_card_of_a_file_that_does_not_compile_and_of_one_that_is_right() {
    let Some(report) = on_lavapipe(&edited("swiglu", "let i = id.x;", "let i = id.x")) else {
        return;
    };
    // The errors of a right kernel depend on the driver.
    let card: Vec<&str> = report
        .card
        .iter()
        .filter_map(|line| line.text.split(": errors up to ").next())
        .collect();
    assert_eq!(
        card,
        [
            "starter.wgsl",
            "does not compile: starter.wgsl:13:5 `if`: expected `;`, found \"if\"",
            "write instead: a `;` at the end of the statement before",
            "backward.wgsl",
            "compiles: workgroups of 64 × 1 × 1",
            "correct at N = 1 · N = 997 · N = 130 · N = 2097152 · 2 drawn for this check",
            "line 19: `exp`: the exponential overflows here: WGSL does not promise its limit; \
             write a limit inside: `exp(min(x, 80.0))`, `tanh(clamp(x, -15.0, 15.0))`",
            "every output is right, forward and backward: starter.wgsl does not compile",
        ]
    );
    assert!(!report.passed && report.swap.is_none());
}

/// A kernel is also run at the sizes of the model that trains, so one that is right only at small sizes is refused.
#[test]
fn a_kernel_that_is_wrong_at_the_models_sizes_is_refused() {
    let config = RunConfig::preset(Preset::Tiny);
    let in_model = |id: &str, from: &str, to: &str| {
        let mut job = edited(id, from, to);
        let (_, kernels) = exercises()
            .find(|(exercise, _)| exercise.id == id)
            .expect("the exercise exists");
        job.shapes = kernels.in_model(&config).shapes;
        job.timed = false;
        job
    };
    let guard = "let g = gate[i];";
    for (cheat, kind) in [
        ("if (N > 1000u) { out[i] = 1e9; return; }", Kind::Wrong),
        (
            "if (N > 1000u) { loop { if (N < 2u) { break; } } }",
            Kind::Endless,
        ),
        ("if (N > 1000u && i > 1000u) { return; }", Kind::Unwritten),
    ] {
        let job = in_model("swiglu", guard, &format!("{cheat}\n    {guard}"));
        let Some(report) = on_lavapipe(&job) else {
            return;
        };
        let (found, text) = fault(&report);
        assert_eq!(found, kind, "{text}");
        let line = &complaints(&report)[0];
        let tokens = config.train.batch * config.train.context * config.model.ffn;
        assert!(
            line.starts_with(&format!("fails at `this model` (N = {tokens})")),
            "{line}"
        );
    }
    let report = on_lavapipe(&in_model(
        "rope",
        "let t = row / H;",
        "// Mine.\n    let t = row / H;",
    ));
    let swap = report.expect("there is a driver").swap.expect("it passed");
    let has_heads = |heads: usize| swap.sizes.iter().any(|sizes| sizes["H"] == heads as u64);
    assert!(
        has_heads(config.model.heads) && has_heads(config.model.kv_heads),
        "{:?}",
        swap.sizes
    );
}

#[test]
fn a_kernel_that_passes_can_replace_a_part_of_the_model() {
    let job = edited("swiglu", "// One invocation", "// My own: one invocation");
    let Some(report) = on_lavapipe(&job) else {
        return;
    };
    assert!(report.passed, "{:#?}", report.card);
    assert_eq!(complaints(&report), Vec::<String>::new());
    let swap = report.swap.expect("the exercise replaces a part");
    assert_eq!(
        (
            swap.part.as_str(),
            swap.kernels.len(),
            swap.kernels[1].workgroup
        ),
        ("mlp.activation", 2, [64, 1, 1])
    );
    assert!(swap.kernels[0].text.contains("{{N}}"));
    // This exercise replaces no part.
    let matmul = solution_of("matmul");
    let report = on_lavapipe(&matmul).expect("there is a driver");
    assert!(report.passed && report.swap.is_none());
}

#[test]
fn devices_that_this_machine_does_not_have() {
    let job = solution_of("copy");
    let report = check(&job, "tpu", CheckLimits::default());
    assert_eq!(
        report.facts.failed.as_deref(),
        Some("unknown device `tpu`; write auto, cpu, gpu, gpu:N or vulkan-cpu")
    );
    assert_eq!(report.card[0].text, "compiles: workgroups of 64 × 1 × 1");
    assert_eq!(
        complaints(&report),
        ["not checked: unknown device `tpu`; write auto, cpu, gpu, gpu:N or vulkan-cpu"]
    );
    let report = check(&job, "gpu:99", CheckLimits::default());
    let why = report.facts.failed.expect("no machine has 100 GPUs");
    assert!(
        why.starts_with("gpu:99: there are ")
            || why.starts_with("gpu:99: no GPU found")
                && why.contains("install mesa-vulkan-drivers"),
        "{why}"
    );
}
