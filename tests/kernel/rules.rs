//! Rules that naga does not check: indices in bounds, loops that end, barriers that all invocations reach, no races. A run on the host finds
//! kernels that break them.

use protocol::KernelFaultKind;

use super::text::refusal;
use super::{edited, on_lavapipe};

/// Returns the fault of the solution of `swiglu` with `from` replaced by `to`, if it has one; `None` where there is no driver.
fn fault_of(from: &str, to: &str) -> Option<Option<(KernelFaultKind, String)>> {
    let mut job = edited("swiglu", from, to);
    job.files.truncate(1);
    job.timed = false;
    job.files[0].text += "fn outside(id: vec3<u32>) -> bool { return id.x >= N; }
        fn put(i: u32, x: f32) { out[i] = x; }";
    assert_eq!(refusal(&job), None, "{to}: the text alone is fine");
    let report = on_lavapipe(&job)?;
    let fault = report.facts.files[0].fault.as_ref();
    Some(fault.map(|fault| (fault.kind, fault.text.clone())))
}

const GUARD: &str = "if (i >= N) {\n        return;\n    }";

#[test]
fn accesses_without_a_comparison_with_the_size() {
    for guard in ["", "if (gate[i] > 1e9) { return; }"] {
        let Some(fault) = fault_of(GUARD, guard) else {
            return;
        };
        let (kind, text) = fault.expect("it is refused");
        assert_eq!(kind, KernelFaultKind::OutOfBounds);
        assert!(
            text.contains(
                "`gate[i]` accesses element 1, but `gate` has length 1; compare the index with \
                 the size first"
            ),
            "{text}"
        );
    }
    // Other ways to compare, and an index that cannot be out of bounds.
    for (from, to) in [
        (GUARD, "let inside = i < N;\nif (!inside) { return; }"),
        (GUARD, "if (outside(id)) { return; }"),
        ("out[i] = s * up[i];", "if (i < N) { out[i] = s * up[i]; }"),
        ("out[i] = s * up[i];", "put(i, s * up[i]);"),
        ("let i = id.x;", "let i = min(id.x, N - 1u);"),
    ] {
        assert_eq!(fault_of(from, to), Some(None), "{to}");
    }
}

#[test]
fn loops_without_end() {
    for (endless, head) in [
        ("loop {}", "loop {"),
        ("while (true) {\n}", "while (true) {"),
        ("loop { if (false) { break; } }", "loop {"),
        (
            "var k = 0u;\n    for (; k < 8u; ) {\n }",
            "for (; k < 8u; ) {",
        ),
    ] {
        let Some(fault) = fault_of("let s = g", &format!("{endless}\n    let s = g")) else {
            return;
        };
        let (kind, text) = fault.expect("it is refused");
        assert_eq!(kind, KernelFaultKind::Endless, "{endless}");
        let end = "iterations; the loop needs a condition that changes inside it, \
                   or a `break` that can be reached";
        assert!(
            text.contains(&format!("`{head}` does not end within ")),
            "{text}"
        );
        assert!(text.ends_with(end), "{text}");
    }
    for fine in [
        "for (var k = 0u; k < 8u; k++) { }",
        "var k = 0u; while (k < N) { k += 1u; }",
        "loop { break; }",
        "var k = 0u; loop { k++; continuing { break if k > 3u; } }",
        "var k = 0u;
         loop { for (var j = 0u; j < 3u; j++) { k++; if (k > 9u) { break; } } if (k > 9u) { break; } }",
    ] {
        assert_eq!(
            fault_of("let s = g", &format!("{fine}\n    let s = g")),
            Some(None),
            "{fine}"
        );
    }
}

#[test]
fn barriers_that_not_all_invocations_reach() {
    for (from, to, place, missing) in [
        (
            "let g",
            "workgroupBarrier();\n    let g",
            "line 16, column 5",
            63,
        ),
        (
            "let i",
            "if (id.x > 3u) { workgroupBarrier(); }\n    let i",
            "line 12, column 22",
            4,
        ),
        (
            "let i",
            "for (var k = 0u; k < id.x; k++) { workgroupBarrier(); }\n let i",
            "line 12, column 39",
            1,
        ),
    ] {
        let Some(fault) = fault_of(from, to) else {
            return;
        };
        let (kind, text) = fault.expect("it is refused");
        assert_eq!(kind, KernelFaultKind::Barrier);
        let start = format!(
            "{place}: `workgroupBarrier`: {missing} invocations of a workgroup do not reach this \
             barrier"
        );
        assert!(text.starts_with(&start), "{text}");
    }
    for fine in [
        "for (var k = 0u; k < 3u; k++) { workgroupBarrier(); }",
        // The condition is equal for all invocations of a workgroup, although it depends on `id`.
        "if (id.x / 64u < 1u) { workgroupBarrier(); }",
    ] {
        assert_eq!(
            fault_of("let i", &format!("{fine}\n let i")),
            Some(None),
            "{fine}"
        );
    }
}

/// The races are in members of structs, components of vectors, elements with computed indices, and buffers that all workgroups share.
#[test]
fn races_that_the_text_does_not_show() {
    const DECLARED: &str = "struct Pair { left: f32, right: vec2<f32> }
var<workgroup> pairs: array<Pair, 64>;
var<workgroup> held: array<f32, 64>;
var<workgroup> places: array<u32, 64>;
var<workgroup> corner: vec4<f32>;
fn main_index(i: u32) -> u32 { return i / 4u; }
@compute";
    let alone = "let only one invocation write the element";
    for (body, place, ends) in [
        // A member of a struct, one component of a vector, an index from an array.
        (
            "pairs[i % 64u].right.y = g; let z = pairs[(i + 1u) % 64u].right.y;",
            "`pairs[(i + 1u) % 64u].right.y`: invocation ",
            alone,
        ),
        ("corner.x = g; let z = corner.x;", "`corner.x", alone),
        (
            "places[i % 64u] = (i + 1u) % 64u; held[i % 64u] = g; workgroupBarrier();
             held[places[i % 64u]] = g; let z = held[i % 64u];",
            "`held[i % 64u]`: invocation ",
            alone,
        ),
        // Buffers: four invocations add to one element, and one writes its neighbour's.
        (
            "if (inside) { out[main_index(i)] += g; }",
            "`out[main_index(i)]",
            alone,
        ),
        (
            "if (inside) { out[i] = g; if (i > 0u) { out[i - 1u] = out[i - 1u]; } }",
            "`out[i - 1u]`: ",
            alone,
        ),
        // No barrier orders two workgroups.
        (
            "if (inside) { out[i] = g; } storageBarrier(); if (i == 0u) { out[i] = out[N - 1u]; }",
            " of workgroup (",
            "no barrier orders two workgroups; let only one invocation write the element",
        ),
    ] {
        let mut job = edited("swiglu", "@compute", DECLARED);
        let text = &mut job.files[0].text;
        *text = text.replace(GUARD, "let inside = i < N;");
        *text = text
            .replace("out[i] =", "if (inside) { out[i] =")
            .replace("up[i];", "up[i]; }");
        *text = text.replace(
            "let g = gate[i];",
            &format!("let g = gate[min(i, N - 1u)];\n    {body}"),
        );
        job.files.truncate(1);
        // The first shape has one element, for which there is no race.
        job.shapes.remove(0);
        let report = super::check(&job, "vulkan-cpu", Default::default());
        let fault = report.facts.files[0]
            .fault
            .as_ref()
            .unwrap_or_else(|| panic!("{body} passes: {:#?}", report.card));
        assert_eq!(fault.kind, KernelFaultKind::Races, "{body}: {}", fault.text);
        assert!(
            fault.text.contains(place) && fault.text.ends_with(ends),
            "{body}: {}",
            fault.text
        );
    }
}

#[test]
fn right_kernels_that_are_unusual_pass() {
    let guard = "from_a = a[row * K + k_a];\n        }";
    for (id, from, to) in [
        // The invocations take the elements in reverse order.
        (
            "copy",
            "let d = i % D;",
            "let back = N - 1u - i;\n    let d = back % D;",
        ),
        // Pairs of invocations exchange their elements. Eight of them still take eight neighbours.
        (
            "block-size",
            "out[i] = x[i] + y[i];",
            "let j = select(i ^ 1u, i, (i | 1u) >= ROWS * COLS); out[j] = x[j] + y[j];",
        ),
        // Lanes past the edge read the last element before it.
        (
            "matmul",
            guard,
            "}
             from_a = select(0.0, a[min(row, M - 1u) * K + min(k_a, K - 1u)], row < M && k_a < K);",
        ),
        // Workgroup memory is zero at the beginning.
        (
            "rms-norm",
            "sums[lane] = sum;",
            "if (sum > 0.0) { sums[lane] += sum; }",
        ),
    ] {
        let mut job = edited(id, from, to);
        if id == "copy" {
            let text = &mut job.files[0].text;
            *text = text
                .replace("(i / D)", "(back / D)")
                .replace("i / (D * T)", "back / (D * T)");
        }
        let Some(report) = on_lavapipe(&job) else {
            return;
        };
        assert!(report.passed, "{id}, {to}: {:#?}", report.card);
    }
}
