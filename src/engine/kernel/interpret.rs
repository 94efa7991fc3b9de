//! A kernel run on the host, to see what no driver shows for sure: invocations that race in any memory, and barriers that not
//! all of a workgroup reach. It depends on no driver's schedule and follows calls, structs and indices of indices.

use crate::lockstep::{Buffer, Finding, FindingKind, Launch, Program};

/// The first finding that makes a kernel wrong, or none. A part of the language that is not interpreted is none, too.
///
/// `inputs` are the buffers in binding order, each with its values or its length where the kernel has to write it.
pub fn fault(text: &str, grid: [u32; 3], inputs: Vec<Result<&[f32], usize>>) -> Option<Finding> {
    let program = Program::parse(text).ok()?;
    let numbered = (0..).zip(inputs);
    let mut buffers: Vec<Buffer> = numbered
        .map(|(binding, input)| match input {
            Ok(values) => Buffer::from_f32(0, binding, values),
            Err(count) => Buffer::unwritten(0, binding, 4 * count),
        })
        .collect();
    let report = program
        .run(&Launch::new(grid), &mut buffers, &mut ())
        .ok()?;
    report.findings.into_iter().find(|it| is_fault(it.kind))
}

/// What a device may bear, such as two writes of the same value, is no fault.
const fn is_fault(kind: FindingKind) -> bool {
    matches!(
        kind,
        FindingKind::Race
            | FindingKind::DivergentBarrier
            | FindingKind::DivergentSubgroup
            | FindingKind::NonUniformValue
            | FindingKind::OutOfBounds
            | FindingKind::Endless
    )
}

/// What to write instead.
pub const fn advice(kind: FindingKind) -> &'static str {
    match kind {
        FindingKind::Race => {
            "put a barrier between the two accesses, or let one invocation alone write the element"
        }
        FindingKind::DivergentBarrier | FindingKind::DivergentSubgroup => {
            "every invocation of the workgroup has to come there: move it out of the branch, and return after it"
        }
        FindingKind::NonUniformValue => "read the value after a barrier, from one element",
        FindingKind::OutOfBounds => "compare the index with the size first",
        FindingKind::Endless => "it needs a condition that changes inside the loop",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Option<FindingKind> {
        let head = "@group(0) @binding(0) var<storage, read> x: array<f32, 64>;\n\
                    @group(0) @binding(1) var<storage, read_write> out: array<f32, 64>;\n";
        let values = [1.0; 64];
        let found = fault(
            &format!("{head}{text}"),
            [1, 1, 1],
            vec![Ok(&values), Err(64)],
        );
        found.map(|it| it.kind)
    }

    #[test]
    fn races_that_hide_from_a_look_at_the_text_are_found() {
        let helper = "fn main_index(i: u32) -> u32 { return i / 4u; }\n";
        for (body, kind) in [
            ("out[main_index(i)] += x[i];", Some(FindingKind::Race)),
            (
                "if i > 0u { out[i - 1u] = out[i] + x[i]; }",
                Some(FindingKind::Race),
            ),
            (
                "if i < 3u { workgroupBarrier(); } out[i] = x[i];",
                Some(FindingKind::DivergentBarrier),
            ),
            ("out[i] = x[i + 1u];", Some(FindingKind::OutOfBounds)),
            ("out[i] = x[i];", None),
            ("out[63u - i] = x[i];", None),
        ] {
            let text = format!(
                "{helper}@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) {{ {body} }}"
            );
            assert_eq!(found(&text), kind, "{body}");
        }
    }
}
