//! Rules that naga has none of: asking before writing, loops that can end, barriers that everybody reaches.

use super::edited;
use super::text::{refused, said};

#[test]
fn writes_without_asking() {
    let message = "16:5 `out[i] = s * up[i]`: writes to `out` without asking first whether it is inside: the last workgroup may have more \
                   invocations than there are elements left";
    let instead = "`if (i >= N) { return; }` before the first write, with i from global_invocation_id or workgroup_id";
    refused(
        "if (i >= N) {\n        return;\n    }",
        "",
        message,
        instead,
    );
    // What a buffer holds is no answer to the question.
    refused(
        "if (i >= N) {\n        return;\n    }",
        "if (gate[i] > 1e9) { return; }",
        message,
        instead,
    );
    // Other ways to ask.
    for (from, to) in [
        (
            "if (i >= N) {\n        return;\n    }",
            "let inside = i < N;\nif (!inside) { return; }",
        ),
        (
            "if (i >= N) {\n        return;\n    }",
            "if (outside(id)) { return; }",
        ),
        ("out[i] = s * up[i];", "if (i < N) { out[i] = s * up[i]; }"),
        ("out[i] = s * up[i];", "put(i, s * up[i]);"),
    ] {
        let mut job = edited("swiglu", from, to);
        job.files[0].text += "fn outside(id: vec3<u32>) -> bool { return id.x >= N; }\nfn put(i: u32, x: f32) { out[i] = x; }";
        assert_eq!(said(&job), None, "{to}");
    }
}

#[test]
fn loops_without_end() {
    let instead = "a condition that changes inside the loop, or a `break` that can be reached";
    let never = "this loop never ends: no `break` or `return` in it can be reached";
    refused(
        "let s = g",
        "loop {}\n    let s = g",
        &format!("17:5 `loop {{}}`: {never}"),
        instead,
    );
    refused(
        "let s = g",
        "while (true) {\n}\n    let s = g",
        &format!("17:5 `while (true) {{`: {never}"),
        instead,
    );
    refused(
        "let s = g",
        "loop { if (false) { break; } }\n    let s = g",
        &format!("17:5 `loop {{ if (false) {{ break; }} }}`: {never}"),
        instead,
    );
    let same =
        "this loop never ends once it has begun: nothing in it changes what its end depends on";
    refused(
        "let s = g",
        "var k = 0u;\n    for (; k < 8u; ) {\n }\n    let s = g",
        &format!("18:5 `for (; k < 8u; ) {{`: {same}"),
        instead,
    );
    for fine in [
        "for (var k = 0u; k < 8u; k++) { }",
        "var k = 0u; while (k < N) { k += 1u; }",
        "loop { break; }",
        "var k = 0u; loop { k++; continuing { break if k > 3u; } }",
        "loop { if (i > 3u) { break; } else { return; } }",
        "var k = 0u; loop { for (var j = 0u; j < 3u; j++) { k++; if (k > 9u) { return; } } }",
    ] {
        assert_eq!(
            said(&edited(
                "swiglu",
                "let s = g",
                &format!("{fine}\n    let s = g")
            )),
            None,
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
