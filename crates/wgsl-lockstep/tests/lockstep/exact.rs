//! Numbers that carry their error: f32 results of right formulas stay within the bounds of a plain loop, and those of wrong formulas do
//! not.

use wgsl_lockstep::exact::{Accuracy, Real};
use wgsl_lockstep::{Buffer, LaunchLimits, RunError, Shader};

const HOST: Accuracy = Accuracy {
    device: false,
    cuts_sums: false,
};

/// Returns `y` after a kernel that runs `body` for each element `i` of `x`.
fn exact_of(body: &str, x: &[f32], accuracy: Accuracy) -> Result<Vec<Real>, RunError> {
    let shader = Shader::parse(&format!(
        "@group(0) @binding(0) var<storage, read_write> x: array<f32>;
         @group(0) @binding(1) var<storage, read_write> y: array<f32>;
         const N: u32 = {}u;
         fn half_of(v: f32) -> f32 {{ if (v < 0.0) {{ return -0.5 * -v; }} return 0.5 * v; }}
         @compute @workgroup_size(8)
         fn main(@builtin(global_invocation_id) id: vec3<u32>) {{
             let i = id.x;
             if (i >= N) {{ return; }}
             {body}
         }}",
        x.len()
    ))
    .unwrap_or_else(|error| panic!("{body}: {error}"));
    let buffers = [
        Buffer::from_f32(0, 0, x),
        Buffer::unwritten(0, 1, 4 * x.len()),
    ];
    let groups = [x.len().div_ceil(8) as u32, 1, 1];
    let limits = LaunchLimits {
        steps: 1_000_000,
        ..LaunchLimits::default()
    };
    let mut all = shader.exact(groups, &buffers, accuracy, limits)?;
    assert!(all[0].is_empty(), "nothing was stored in x");
    Ok(all.swap_remove(1))
}

fn exact(body: &str, x: &[f32]) -> Vec<Real> {
    exact_of(body, x, HOST).unwrap_or_else(|error| panic!("{body}: {error}"))
}

fn numbers() -> Vec<f32> {
    (-400_i16..400).map(|step| f32::from(step) * 0.11).collect()
}

/// Returns true if `found(index, x)` is within the bounds for each of `numbers()`.
fn is_within_bounds(expected: &[Real], found: impl Fn(usize, f32) -> f32) -> bool {
    let x = numbers();
    assert_eq!(x.len(), expected.len());
    let mut all = x.iter().zip(expected).enumerate();
    all.all(|(index, (x, real))| (f64::from(found(index, *x)) - real.value).abs() <= real.bound())
}

#[test]
fn f32_stays_within_the_bound_of_the_same_formula() {
    type Formula = (&'static str, fn(f32) -> f32);
    let formulas: [Formula; 14] = [
        ("exp(v)", f32::exp),
        ("exp2(v)", f32::exp2),
        ("1.0 / (1.0 + exp(-v))", |v| 1.0 / (1.0 + (-v).exp())),
        ("sin(v)", f32::sin),
        ("cos(v)", f32::cos),
        ("tanh(v)", f32::tanh),
        ("v / 0.33333334", |v| v / 0.333_333_34),
        ("v - 0.1", |v| v - 0.1),
        ("sqrt(abs(v))", |v| v.abs().sqrt()),
        ("inverseSqrt(abs(v) + 0.1)", |v| {
            1.0 / (v.abs() + 0.1).sqrt()
        }),
        ("log(abs(v) + 0.1)", |v| (v.abs() + 0.1).ln()),
        ("pow(abs(v) + 0.1, 0.7)", |v| (v.abs() + 0.1).powf(0.7)),
        ("half_of(v) * max(v, 0.25)", |v| 0.5 * v * v.max(0.25)),
        ("select(floor(v), fma(v, v, 1.5), v > 0.0)", |v| {
            if v > 0.0 { v * v + 1.5 } else { v.floor() }
        }),
    ];
    for (text, formula) in formulas {
        let expected = exact(&format!("let v = x[i]; y[i] = {text};"), &numbers());
        assert!(is_within_bounds(&expected, |_, x| formula(x)), "{text}");
        let wrong = |_, x: f32| 1.001 * formula(x) + 1e-5;
        assert!(!is_within_bounds(&expected, wrong), "{text}");
    }
}

#[test]
fn a_sum_may_be_added_in_any_order() {
    let sum = "var sum = 0.0; for (var k = 0u; k < N; k++) { sum += x[k] * x[k]; } y[i] = sum;";
    let expected = exact(sum, &numbers());
    let squares = || numbers().into_iter().map(|x| x * x);
    let all: Vec<f32> = squares().collect();
    let in_parts = all.chunks(20).map(|part| part.iter().sum::<f32>());
    for found in [
        squares().sum(),
        squares().rev().fold(0.0, |a, b| a + b),
        in_parts.sum(),
    ] {
        assert!(is_within_bounds(&expected, |_, _| found));
    }
    let left_out: f32 = squares().skip(1).sum();
    assert!(!is_within_bounds(&expected, |_, _| left_out));
    assert!(expected[0].error < 1e-5 * expected[0].value);
    let matrix_cores = Accuracy {
        cuts_sums: true,
        ..HOST
    };
    let truncated = exact_of(sum, &numbers(), matrix_cores).expect("runs");
    assert!(truncated[0].error > 4.0 * expected[0].error);
    // Two terms have only one order, and one rounding.
    let two = exact("y[i] = x[i] + 1.0;", &[2.0; 9]);
    assert!(two[0].error > 0.0 && two[0].error < 1e-6);
    assert_eq!(
        exact("var sum = 0.0; sum += x[i]; y[i] = sum;", &[2.5])[0].bound(),
        0.0
    );
}

#[test]
fn copies_are_exact_and_a_device_may_be_less_exact() {
    let copied = exact("y[i] = x[N - 1u - i];", &numbers());
    assert!(copied.iter().all(|real| real.bound() == 0.0));
    let held = "var kept: array<f32, 3>; kept[i % 3u] = 2.0 * x[i]; y[i] = kept[i % 3u];";
    assert!(is_within_bounds(&exact(held, &numbers()), |_, x| 2.0 * x));
    let host = exact("y[i] = sin(x[i]);", &numbers());
    let device = Accuracy {
        device: true,
        ..HOST
    };
    let on_device = exact_of("y[i] = sin(x[i]);", &numbers(), device).expect("runs");
    assert!(on_device[7].bound() > 100.0 * host[7].bound());
    // A divisor that may be 0 allows any result.
    let unbounded = exact("let v = x[i] / 3.0; y[i] = 1.0 / (v - v);", &[1.0]);
    assert_eq!(unbounded[0].bound(), f64::INFINITY);
    // A result is stored and loaded again.
    let twice = exact("y[i] = x[i] / 3.0; y[i] = y[i] + y[i];", &numbers());
    assert!(is_within_bounds(&twice, |_, x| x / 3.0 + x / 3.0));
}

#[test]
fn lanes_of_different_branches_keep_their_own_numbers() {
    let sum_of_thirds = "var sum = 0.0;
        for (var k = 0u; k < i % 7u; k++) {
            if (k == 3u) { continue; }
            sum += half_of(x[i]) / 3.0;
        }
        y[i] = sum;";
    let with_array = "var kept = array(0.0, 0.0, 0.0);
        kept[i % 3u] = x[i] / 3.0;
        if (i % 2u == 0u) { kept[i % 3u] += half_of(x[i]) / 7.0; } else { kept[0] = 1.0; }
        y[i] = kept[i % 3u];";
    let sums = exact(sum_of_thirds, &numbers());
    assert!(is_within_bounds(&sums, |index, x| {
        let terms = (0..index % 7).filter(|term| *term != 3);
        terms.map(|_| 0.5 * x / 3.0).sum()
    }));
    assert!(sums[3].error > 0.0 && sums[7].error == 0.0);
    let kept = exact(with_array, &numbers());
    assert!(is_within_bounds(&kept, |index, x| {
        match (index % 2, index % 3) {
            (0, _) => x / 3.0 + 0.5 * x / 7.0,
            (_, 0) => 1.0,
            _ => x / 3.0,
        }
    }));
    assert!(kept[2].error > kept[1].error && kept[1].error > 0.0 && kept[3].error == 0.0);
}

#[test]
fn whole_numbers_are_exact() {
    let shader = Shader::parse(
        "@group(0) @binding(0) var<storage, read_write> which: array<u32>;
         @group(0) @binding(1) var<storage, read_write> count: array<i32>;
         @compute @workgroup_size(1)
         fn main(@builtin(workgroup_id) id: vec3<u32>) {
             var count_of = -1;
             for (var k = 0u; k < 6u; k++) { if (which[k] == id.x) { count_of++; } }
             count[id.x] = count_of;
         }",
    );
    let shader = shader.expect("is right");
    let buffers = [
        Buffer::from_u32(0, 0, &[0, 2, 2, 0, 2, 4_000_000_000]),
        Buffer::unwritten(0, 1, 12),
    ];
    let found = shader.exact([3, 1, 1], &buffers, HOST, LaunchLimits::default());
    assert_eq!(found.expect("runs")[1], [1.0, -1.0, 2.0].map(Real::exact));
}

#[test]
fn a_shader_that_is_no_plain_loop_is_refused() {
    let assert_refused = |body: &str, part: &str| {
        let error = exact_of(body, &[1.0; 9], HOST).expect_err("is refused");
        let message = error.to_string();
        assert!(message.contains(part), "{message}");
    };
    assert_refused("if (i > 0u) { y[i] = 1.0; }", "never writes element 0");
    assert_refused("y[i] = x[i + 1u];", "x[9]");
    assert_refused(
        "y[i] = vec2(x[i], 1.0).x;",
        "of floats in a reference, line",
    );
    assert_refused("y[i] = atan(x[i]);", "the function Atan in a reference");
    assert_refused(
        "var kept: array<f32, 2>; kept[0] = x[i] / 3.0; let copy = kept; y[i] = copy[0];",
        "a whole vector or array in a reference",
    );
    assert_refused(
        "loop { if (x[i] > 2.0) { break; } } y[i] = 1.0;",
        "does not end",
    );
}
