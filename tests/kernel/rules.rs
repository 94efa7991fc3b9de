//! Rules that naga has none of: indices inside, loops that end, barriers that everybody reaches. The first two show when the
//! kernel runs with probes, the last from its text.

use perflings::protocol::KernelFaultKind;

use super::text::{refused, said};
use super::{edited, on_lavapipe};

/// What the check says of the solution of `swiglu` with `from` replaced by `to`; `None` where there is no driver.
fn faults(from: &str, to: &str) -> Option<Option<(KernelFaultKind, String)>> {
    let mut job = edited("swiglu", from, to);
    job.files.truncate(1);
    job.timed = false;
    job.files[0].text += "fn outside(id: vec3<u32>) -> bool { return id.x >= N; }\nfn put(i: u32, x: f32) { out[i] = x; }";
    assert_eq!(said(&job), None, "{to}: the text alone is fine");
    let report = on_lavapipe(&job)?;
    let fault = report.facts.files[0].fault.as_ref();
    Some(fault.map(|fault| (fault.kind, fault.text.clone())))
}

const GUARD: &str = "if (i >= N) {\n        return;\n    }";

#[test]
fn writes_without_asking() {
    for guard in ["", "if (gate[i] > 1e9) { return; }"] {
        let Some(fault) = faults(GUARD, guard) else {
            return;
        };
        let (kind, text) = fault.expect("is refused");
        assert_eq!(kind, KernelFaultKind::OutOfBounds);
        assert!(
            text.contains(
                "`gate[i]` takes element 1, and `gate` has 1; compare the index with the size first"
            ),
            "{text}"
        );
    }
    // Other ways to ask, and an index that cannot be outside.
    for (from, to) in [
        (GUARD, "let inside = i < N;\nif (!inside) { return; }"),
        (GUARD, "if (outside(id)) { return; }"),
        ("out[i] = s * up[i];", "if (i < N) { out[i] = s * up[i]; }"),
        ("out[i] = s * up[i];", "put(i, s * up[i]);"),
        ("let i = id.x;", "let i = min(id.x, N - 1u);"),
    ] {
        assert_eq!(faults(from, to), Some(None), "{to}");
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
        let Some(fault) = faults("let s = g", &format!("{endless}\n    let s = g")) else {
            return;
        };
        let (kind, text) = fault.expect("is refused");
        assert_eq!(kind, KernelFaultKind::Endless, "{endless}");
        let wanted = format!(
            "`{head}` does not end, or not within 32768 rounds; it needs a condition that changes inside the loop, or a `break` that can be reached"
        );
        assert!(text.ends_with(&wanted), "{text}");
    }
    for fine in [
        "for (var k = 0u; k < 8u; k++) { }",
        "var k = 0u; while (k < N) { k += 1u; }",
        "loop { break; }",
        "var k = 0u; loop { k++; continuing { break if k > 3u; } }",
        "var k = 0u; loop { for (var j = 0u; j < 3u; j++) { k++; if (k > 9u) { break; } } if (k > 9u) { break; } }",
    ] {
        assert_eq!(
            faults("let s = g", &format!("{fine}\n    let s = g")),
            Some(None),
            "{fine}"
        );
    }
}

#[test]
fn barriers_that_not_everybody_reaches() {
    let message =
        "some invocations of a workgroup may not get to this barrier, and the others wait for them";
    let instead = "a barrier outside of any `if` on the invocation's id, and no `return` of a part of the workgroup before it";
    refused(
        "let g",
        "workgroupBarrier();\n    let g",
        &format!("16:5 `workgroupBarrier`: {message}"),
        instead,
    );
    refused(
        "let i",
        "if (id.x > 3u) { workgroupBarrier(); }\n    let i",
        &format!("12:22 `workgroupBarrier`: {message}"),
        instead,
    );
    refused(
        "let i",
        "for (var k = 0u; k < id.x; k++) { workgroupBarrier(); }\n let i",
        &format!("12:39 `workgroupBarrier`: {message}"),
        instead,
    );
    assert_eq!(
        said(&edited(
            "swiglu",
            "let i",
            "for (var k = 0u; k < 3u; k++) { workgroupBarrier(); }\n let i"
        )),
        None
    );
}
