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

fn reference(a: &[f32], b: &[f32], p: Problem) -> Vec<f32> {
    let mut out = vec![];
    for (row, column) in (0..p.rows).flat_map(|r| (0..p.columns).map(move |c| (r, c))) {
        let product = |k: usize| {
            let left = a[if p.a_transposed {
                k * p.rows + row
            } else {
                row * p.inner + k
            }];
            let right = b[if p.b_transposed {
                column * p.inner + k
            } else {
                k * p.columns + column
            }];
            f64::from(left) * f64::from(right)
        };
        out.push((0..p.inner).map(product).sum::<f64>() as f32);
    }
    out
}

fn check_all(device: &TestDevice, plans: &[Plan], sizes: &[(usize, usize, usize)]) {
    for &(rows, columns, inner) in sizes {
        let (a, b) = (numbers(1, rows * inner), numbers(2, inner * columns));
        let extra = numbers(3, rows * columns);
        let (ga, gb) = (
            device.tensor(&a, [rows * inner]),
            device.tensor(&b, [inner * columns]),
        );
        let gextra = device.tensor(&extra, [rows, columns]);
        for (a_transposed, b_transposed) in
            [(false, true), (false, false), (true, false), (true, true)]
        {
            let problem = Problem::new([rows, columns, inner], a_transposed, b_transposed);
            let plain = reference(&a, &b, problem);
            let more: Vec<f32> = plain.iter().zip(&extra).map(|(x, y)| x + y).collect();
            for &plan in plans {
                let name = format!("{plan:?} {problem:?}");
                let then = Epilogue::Onto(&gextra, None);
                let [got] = multiply([plan], [[&ga, &gb]], [then], [problem]);
                check::close(&name, &device.read(&got), &more, 1e-5);
            }
        }
    }
}

const SIZES: [(usize, usize, usize); 3] = [(33, 47, 19), (64, 128, 32), (68, 132, 100)];

#[test]
fn every_plan_agrees_with_the_definition() {
    let Some(device) = TestDevice::any() else {
        return;
    };
    let plans = [
        SMALLEST,
        Plan::new((32, 64), 16, (4, 8)),
        Plan::new((64, 32), 8, (8, 4)).unroll(1),
        Plan::new((32, 32), 16, (8, 8)).slices(4),
        Plan::new((64, 64), 16, (8, 4)).slices(2).splits(3),
    ];
    check_all(&device, &plans, &SIZES);
}

/// Gates beside their ups, and gradients of both, by each tile; sizes with and without edges.
#[test]
fn every_plan_has_the_epilogues_of_swiglu() {
    let Some(device) = TestDevice::any() else {
        return;
    };
    let plans = [
        SMALLEST,
        Plan::new((32, 64), 32, (8, 8)).slices(4),
        Plan::new((64, 64), 32, (8, 8)).slices(2),
        Plan::new((128, 128), 32, (8, 8)),
    ];
    for (n, f, inner) in [(33, 48, 20), (128, 128, 64)] {
        let (x, w) = (numbers(1, n * inner), numbers(2, 2 * f * inner));
        let (dy, down) = (numbers(3, n * inner), numbers(4, inner * f));
        let gates = Problem::new([n, 2 * f, inner], false, true);
        let of_active = Problem::new([n, f, inner], false, false);
        let of_down = Problem::new([inner, f, n], true, false);
        let [packed, d] =
            [(&x, &w, gates), (&dy, &down, of_active)].map(|(a, b, p)| reference(a, b, p));
        let (mut stacked, mut slopes) = (vec![0.0; 3 * n * f], vec![0.0; 2 * n * f]);
        for (r, c) in (0..n).flat_map(|r| (0..f).map(move |c| (r, c))) {
            let (at, both) = (r * f + c, r * 2 * f + c);
            let (g, u) = (packed[both], packed[both + f]);
            let s = 1.0 / (1.0 + (-g).exp());
            (stacked[at], stacked[n * f + at], stacked[2 * n * f + at]) = (g, u, g * s * u);
            slopes[both] = d[at] * u * s * (1.0 + g * (1.0 - s));
            slopes[both + f] = d[at] * g * s;
        }
        let [x, w] = [(x, n), (w, 2 * f)].map(|(it, rows)| device.tensor(&it, [rows, inner]));
        let (dy, down) = (
            device.tensor(&dy, [n, inner]),
            device.tensor(&down, [inner, f]),
        );
        for plan in plans {
            let [got] = multiply([plan], [[&x, &w]], [Epilogue::Swiglu], [gates]);
            check::close(&format!("{plan:?}"), &device.read(&got), &stacked, 1e-5);
            let plain = Epilogue::Plain;
            let [active] = multiply([plan], [[&dy, &down]], [plain], [of_active]);
            let pairs = [[&dy, &down], [&dy, &active]];
            let thens = [Epilogue::SwigluBackward(&got), plain];
            let problems = [of_active, of_down];
            let plans = [1, 2].map(|splits| plan.splits(splits));
            let [got, _] = multiply(plans, pairs, thens, problems);
            check::close(
                &format!("{plan:?}, back"),
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
            let problems = [(false, true), (true, false)];
            let problems = problems.map(|(a, b)| Problem::new([rows, columns, inner], a, b));
            let plans = Planner::Full(limits).pair(&problems);
            let products = [0, 1].map(|i| Product {
                problem: problems[i],
                plan: plans[i],
                store: if plans[i].splits == 1 {
                    Store::Onto { for_norm: false }
                } else {
                    Store::Plain
                },
                staged: [Staged::Full, Staged::Full],
                norm_parts: 0,
            });
            let text = Products(products.to_vec()).program().text();
            check::valid_wgsl(&text);
            // Two products, with edges on all sides.
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
    let product = Product {
        problem,
        plan: Plan::new((128, 128), 32, (8, 8)),
        store: Store::Onto { for_norm: false },
        staged: [Staged::Full, Staged::Full],
        norm_parts: 0,
    };
    let text = Products(vec![product]).program().text();
    assert!(text.lines().count() <= 150, "{text}");
}

/// Returns a product in one part with this plan and store.
fn product(problem: Problem, plan: Plan, store: Store) -> Product {
    Product {
        problem,
        plan,
        store,
        staged: [Staged::Full, Staged::Full],
        norm_parts: 0,
    }
}

fn check_text(product: Product) {
    check::valid_wgsl(&Products(vec![product]).program().text());
}

#[test]
fn the_texts_of_all_plans_and_stores_are_valid_wgsl() {
    let plans = [
        SMALLEST,
        Plan::new((32, 64), 16, (4, 8)),
        Plan::new((64, 32), 8, (8, 4)).unroll(1),
        Plan::new((32, 32), 16, (8, 8)).slices(4),
        Plan::new((64, 64), 16, (8, 4)).slices(2).splits(3),
    ];
    for plan in plans {
        for (rows, columns, inner) in SIZES {
            for (a, b) in [(false, true), (false, false), (true, false), (true, true)] {
                let problem = Problem::new([rows, columns, inner], a, b);
                for store in [Store::Plain, Store::Onto { for_norm: false }] {
                    check_text(product(problem, plan, store));
                }
            }
        }
    }
    let plans_with_pairs = [
        SMALLEST,
        Plan::new((32, 64), 32, (8, 8)).slices(4),
        Plan::new((64, 64), 32, (8, 8)).slices(2),
        Plan::new((128, 128), 32, (8, 8)),
    ];
    for plan in plans_with_pairs {
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
