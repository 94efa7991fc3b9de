//! The metrics of an exercise's `[[check]]`: the tables in the guide for authors.

/// A metric of checks.
#[derive(Clone, Copy, Debug)]
pub struct CheckMetric {
    pub metric: &'static str,
    /// The keys of the check.
    pub keys: &'static str,
    /// When the check passes.
    pub about: &'static str,
}

const fn row(metric: &'static str, keys: &'static str, about: &'static str) -> CheckMetric {
    CheckMetric {
        metric,
        keys,
        about,
    }
}

/// Metrics of kernel exercises; the names are those of `KernelMetric`.
pub const KERNEL: &[CheckMetric] = &[
    row("correct", "", "every output is right at every shape"),
    row(
        "speed",
        "`at-least`",
        "at least this many times as fast as the starter; on a GPU only",
    ),
    row(
        "invocations",
        "`at-least`",
        "at least this many invocations in a workgroup",
    ),
    row(
        "shared",
        "",
        "the kernel reads workgroup memory; counted on the host",
    ),
    row(
        "fetches",
        "`at-most`",
        "16 uses of an input element need at most this many fetches, on average; counted on the host",
    ),
    row(
        "neighbours",
        "`at-least`",
        "at least this many consecutive invocations access neighbouring elements, in any order; counted on the host",
    ),
    row("cores", "", "the kernel multiplies with `coopMultiplyAdd`"),
];

/// Metrics of config exercises, in addition to the figures of a run.
pub const CONFIG: &[CheckMetric] = &[
    row(
        "bend",
        "`factor`, `answer`, `ask`",
        "the answer is the last value up to which each doubling took less than `factor` times as long, or a neighbour of this value",
    ),
    row(
        "quadratic-leads",
        "`of` one setting of `with`, `answer`, `ask`",
        "the answer is the first value from which peak memory is mostly quadratic, or a neighbour of this value",
    ),
    row(
        "quadratic-share",
        "`of` one setting of `with`, `at-most`",
        "the quadratic part of peak memory is at most this share at the largest value",
    ),
    row(
        "order",
        "`at-most`, `answer`, `ask`",
        "the answer has at most this many clear pairs of `[[rank]]` in the wrong order",
    ),
    row(
        "speed",
        "`of` a value, `answer`, `ask`",
        "the answer says whether that value is refused, slower, same or faster than the first one",
    ),
];
