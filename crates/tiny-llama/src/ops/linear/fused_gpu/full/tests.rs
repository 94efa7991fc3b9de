//! Products by every plan and epilogue against plain loops, and their texts.

use crate::ops::cpu::testing::numbers;
use crate::ops::gpu::check::{self, TestDevice};
use crate::ops::gpu::wgsl::Wgsl as _;
use crate::ops::linear::fused_gpu::by_plans;
use crate::ops::linear::fused_gpu::epilogue::{Epilogue, Store};
use crate::ops::linear::fused_gpu::products::{Product, Products, Staged};
use crate::ops::linear::planner::{Limits, Plan, Planner, Problem, SMALLEST};
use crate::ops::shapes::Rotation;
use burn_cubecl::tensor::CubeTensor;

/// Computes products with these plans, whatever the device allows.
fn multiply<const N: usize>(
    plans: [Plan; N],
    pairs: [[&CubeTensor; 2]; N],
    thens: [Epilogue; N],
    problems: [Problem; N],
) -> [CubeTensor; N] {
    assert!(plans.iter().all(Plan::is_sound), "{plans:?}");
    let limits = Limits {
        shared_bytes: 0,
        threads: 0,
        is_cpu: true,
    };
    by_plans(Planner::Full(limits), plans, pairs, thens, problems)
}

/// Returns A·B, summed in f64.
fn reference(a: &[f32], b: &[f32], problem: Problem) -> Vec<f32> {
    let sums = check::product(&problem, a, b);
    sums.into_iter().map(|sum| sum as f32).collect()
}

/// Compares the sum of a product and a matrix with its definition, for every plan, size and transposition.
fn check_all(device: &TestDevice, plans: &[Plan], sizes: &[(usize, usize, usize)]) {
    for &(rows, columns, inner) in sizes {
        let a = numbers(1, rows * inner);
        let b = numbers(2, inner * columns);
        let extra = numbers(3, rows * columns);
        let a_tensor = device.tensor(&a, [rows * inner]);
        let b_tensor = device.tensor(&b, [inner * columns]);
        let extra_tensor = device.tensor(&extra, [rows, columns]);
        for (a_transposed, b_transposed) in
            [(false, true), (false, false), (true, false), (true, true)]
        {
            let problem = Problem::new([rows, columns, inner], a_transposed, b_transposed);
            let product = reference(&a, &b, problem);
            let want: Vec<f32> = product.iter().zip(&extra).map(|(x, y)| x + y).collect();
            for &plan in plans {
                let name = format!("{plan:?} {problem:?}");
                let then = Epilogue::Onto(&extra_tensor, None);
                let [got] = multiply([plan], [[&a_tensor, &b_tensor]], [then], [problem]);
                check::close(&name, &device.read(&got), &want, 1e-5);
            }
        }
    }
}

/// Plans of every kind: small and large blocks, slices, and parts of the inner dimension.
const PLANS: [Plan; 5] = [
    SMALLEST,
    Plan::new((32, 64), 16, (4, 8)),
    Plan::new((64, 32), 8, (8, 4)).unroll(1),
    Plan::new((32, 32), 16, (8, 8)).slices(4),
    Plan::new((64, 64), 16, (8, 4)).slices(2).splits(3),
];

/// Plans in which an invocation has two vectors of a row, as gates and their ups need.
const PLANS_WITH_PAIRS: [Plan; 4] = [
    SMALLEST,
    Plan::new((32, 64), 32, (8, 8)).slices(4),
    Plan::new((64, 64), 32, (8, 8)).slices(2),
    Plan::new((128, 128), 32, (8, 8)),
];

/// Rows, columns and inner dimension.
const SIZES: [(usize, usize, usize); 3] = [(33, 47, 19), (64, 128, 32), (68, 132, 100)];

#[test]
fn every_plan_agrees_with_the_definition() {
    let Some(device) = TestDevice::any() else {
        return;
    };
    check_all(&device, &PLANS, &SIZES);
}

/// The sizes are with and without edges.
#[test]
fn every_plan_has_the_epilogues_of_swiglu() {
    let Some(device) = TestDevice::any() else {
        return;
    };
    for (n, f, inner) in [(33, 48, 20), (128, 128, 64)] {
        let x = numbers(1, n * inner);
        let w = numbers(2, 2 * f * inner);
        let dy = numbers(3, n * inner);
        let down = numbers(4, inner * f);
        let gates = Problem::new([n, 2 * f, inner], false, true);
        let active_problem = Problem::new([n, f, inner], false, false);
        let down_problem = Problem::new([inner, f, n], true, false);
        let [packed, d] =
            [(&x, &w, gates), (&dy, &down, active_problem)].map(|(a, b, p)| reference(a, b, p));
        // Gates, ups and activations one below the other, and the gradients of gates and ups side by side.
        let mut stacked = vec![0.0; 3 * n * f];
        let mut slopes = vec![0.0; 2 * n * f];
        for index in 0..n * f {
            let gate_index = index / f * 2 * f + index % f;
            let g = packed[gate_index];
            let u = packed[gate_index + f];
            let s = 1.0 / (1.0 + (-g).exp());
            stacked[index] = g;
            stacked[n * f + index] = u;
            stacked[2 * n * f + index] = g * s * u;
            slopes[gate_index] = d[index] * u * s * (1.0 + g * (1.0 - s));
            slopes[gate_index + f] = d[index] * g * s;
        }
        let x = device.tensor(&x, [n, inner]);
        let w = device.tensor(&w, [2 * f, inner]);
        let dy = device.tensor(&dy, [n, inner]);
        let down = device.tensor(&down, [inner, f]);
        for plan in PLANS_WITH_PAIRS {
            let [got] = multiply([plan], [[&x, &w]], [Epilogue::Swiglu], [gates]);
            check::close(&format!("{plan:?}"), &device.read(&got), &stacked, 1e-5);
            let plain = Epilogue::Plain;
            let [active] = multiply([plan], [[&dy, &down]], [plain], [active_problem]);
            let pairs = [[&dy, &down], [&dy, &active]];
            let thens = [Epilogue::SwigluBackward(&got), plain];
            let problems = [active_problem, down_problem];
            let plans = [1, 2].map(|splits| plan.splits(splits));
            let [got, _] = multiply(plans, pairs, thens, problems);
            check::close(
                &format!("{plan:?}, backward"),
                &device.read(&got),
                &slopes,
                1e-5,
            );
        }
    }
}

#[test]
fn every_text_is_valid_wgsl() {
    let limits = [
        (false, 1 << 16),
        (false, 1 << 14),
        (true, 1 << 15),
        (true, 1),
    ];
    for (rows, columns, inner) in SIZES.into_iter().chain([(1024, 4096, 512)]) {
        for (is_cpu, shared_bytes) in limits {
            let limits = Limits {
                shared_bytes,
                threads: 256,
                is_cpu,
            };
            let problems = [(false, true), (true, false)]
                .map(|(a, b)| Problem::new([rows, columns, inner], a, b));
            let plans = Planner::Full(limits).pair(&problems);
            let products = [0, 1].map(|i| {
                let store = if plans[i].splits == 1 {
                    Store::Onto { for_norm: false }
                } else {
                    Store::Plain
                };
                product(problems[i], plans[i], store)
            });
            let text = Products(products.to_vec()).program().text();
            check::valid_wgsl(&text);
            // There are two products, with edges on all sides.
            assert!(text.lines().count() <= 360, "{text}");
            assert!(
                text.lines().all(|line| line.chars().count() <= 120),
                "{text}"
            );
        }
    }
}

#[test]
fn the_text_of_a_product_is_as_long_as_one_written_by_hand() {
    let problem = Problem::new([4096, 1024, 4096], false, true);
    let plan = Plan::new((128, 128), 32, (8, 8));
    let onto = product(problem, plan, Store::Onto { for_norm: false });
    let text = Products(vec![onto]).program().text();
    assert!(text.lines().count() <= 150, "{text}");
}

/// Returns a product with this plan and store.
fn product(problem: Problem, plan: Plan, store: Store) -> Product {
    Product {
        problem,
        plan,
        store,
        staged: [Staged::Full, Staged::Full],
        norm_parts: 0,
    }
}

/// Asserts that the text of a launch of one product is valid.
fn check_text(product: Product) {
    check::valid_wgsl(&Products(vec![product]).program().text());
}

#[test]
fn the_texts_of_all_plans_and_stores_are_valid_wgsl() {
    for plan in PLANS {
        for (rows, columns, inner) in SIZES {
            for (a, b) in [(false, true), (false, false), (true, false), (true, true)] {
                let problem = Problem::new([rows, columns, inner], a, b);
                for store in [Store::Plain, Store::Onto { for_norm: false }] {
                    check_text(product(problem, plan, store));
                }
            }
        }
    }
    for plan in PLANS_WITH_PAIRS {
        for [rows, columns, inner] in [[33, 96, 20], [128, 256, 64], [1024, 4096, 512]] {
            let rotation = Rotation {
                width: columns,
                rotated: columns / 16 * 12,
                head_dim: 4,
                context: 50,
                inverse: false,
            };
            let forward = Problem::new([rows, columns, inner], false, true);
            check_text(product(forward, plan, Store::Rope(rotation)));
            check_text(product(forward, plan, Store::Swiglu));
            let backward = Problem::new([rows, columns, inner], false, false);
            check_text(product(backward, plan, Store::SwigluBackward));
        }
    }
}
