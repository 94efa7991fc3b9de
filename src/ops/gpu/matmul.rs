//! Matrix products in f32 for every transposition and any sizes, with an optional matrix added to the result. The kernel is
//! `wgsl/matmul.wgsl`; `matmul_plan` holds its plans and chooses one.

pub use super::matmul_plan::{Limits, Problem, TilePlan, choose, choose_pair};
use super::matmul_tiles::{TiledProduct, TiledProducts};
use super::{empty, reduce, shaped, wgsl};
use burn::cubecl::ir::features::Plane;
use burn_cubecl::tensor::CubeTensor;
use std::cmp::Reverse;

/// Workgroups that keep a large GPU busy: an H100 has 132 multiprocessors.
const LARGE_DEVICE: usize = 120;
/// The same for a CPU.
const SMALL_DEVICE: usize = 4;

/// A·B (+ `residual`), `[rows, columns]`, with the plan from [`choose`]. 1 launch, or 2 if the plan splits the inner dimension.
pub fn matmul(
    a: &CubeTensor,
    b: &CubeTensor,
    residual: Option<&CubeTensor>,
    problem: Problem,
) -> CubeTensor {
    matmul_by(choose(&problem, limits(a)), a, b, residual, problem)
}

/// A·B as parts of the inner dimension, `[parts·rows, columns]`, with the plan from [`choose`]. 1 launch.
pub fn parts(a: &CubeTensor, b: &CubeTensor, problem: Problem) -> CubeTensor {
    product(choose(&problem, limits(a)), a, b, None, problem)
}

/// The limits of the tensor's device. A device without subgroup operations counts as small, which means a CPU.
pub fn limits(tensor: &CubeTensor) -> Limits {
    let properties = tensor.client.properties();
    let small = !properties.features.plane.contains(Plane::Ops);
    Limits {
        shared_bytes: properties.hardware.max_shared_memory_size,
        threads: properties.hardware.max_units_per_cube as usize,
        full: if small { SMALL_DEVICE } else { LARGE_DEVICE },
    }
}

/// [`matmul`] with a given plan.
fn matmul_by(
    plan: TilePlan,
    a: &CubeTensor,
    b: &CubeTensor,
    residual: Option<&CubeTensor>,
    problem: Problem,
) -> CubeTensor {
    if plan.splits == 1 {
        return product(plan, a, b, residual, problem);
    }
    let Problem { rows, columns, .. } = problem;
    let parts = product(plan, a, b, None, problem);
    let sum = reduce::sum_rows(&parts, plan.splits, rows * columns, residual);
    shaped(sum, [rows, columns])
}

/// The parts of A·B, or A·B (+ `residual`) where there is one part. 1 launch.
fn product(
    plan: TilePlan,
    a: &CubeTensor,
    b: &CubeTensor,
    residual: Option<&CubeTensor>,
    problem: Problem,
) -> CubeTensor {
    let out = empty(a, [plan.splits * problem.rows, problem.columns]);
    let product = TiledProduct {
        problem,
        splits: plan.splits,
        has_residual: residual.is_some(),
    };
    let buffers = [a, b, &out].into_iter().chain(residual);
    launch(plan, vec![product], buffers.collect());
    out
}

/// A·B and C·D in one launch, each with its inner dimension in some parts; a second launch adds these, but with `in_parts` not
/// those of A·B. Alone, the two gradients of a
/// linear layer often have too few tiles for a large GPU.
pub fn matmul_pair(
    plan: TilePlan,
    pairs: [[&CubeTensor; 2]; 2],
    problems: [Problem; 2],
    splits: [usize; 2],
    in_parts: bool,
) -> [CubeTensor; 2] {
    let product = |i: usize| TiledProduct {
        problem: problems[i],
        splits: splits[i],
        has_residual: false,
    };
    let outs = [0, 1].map(|i| {
        let Problem { rows, columns, .. } = problems[i];
        empty(pairs[i][0], [splits[i] * rows, columns])
    });
    let mut order = [0, 1];
    // Workgroups start in order, so the longer ones come first.
    order.sort_by_key(|i| Reverse(product(*i).share(&plan)));
    let buffers = order.iter().flat_map(|i| {
        let [a, b] = pairs[*i];
        [a, b, &outs[*i]]
    });
    launch(plan, order.map(product).to_vec(), buffers.collect());
    let mut parts = [0, 1].map(|i| (splits[i], [problems[i].rows, problems[i].columns]));
    if in_parts {
        parts[0] = (1, [splits[0] * problems[0].rows, problems[0].columns]);
    }
    reduce::sum_pair(outs, parts)
}

/// Launches products with their buffers.
fn launch(plan: TilePlan, products: Vec<TiledProduct>, buffers: Vec<&CubeTensor>) {
    debug_assert!(plan.is_sound(), "{plan:?} breaks the rules of its fields");
    let products = TiledProducts {
        // The number of parts is in the products.
        plan: plan.splits(1),
        products,
    };
    let groups = products.groups();
    wgsl::launch(products.program(), groups, &buffers);
}

#[cfg(test)]
mod tests {
    use super::super::check::{self, TestDevice};
    use super::super::matmul_plan::SMALLEST;
    use super::super::wgsl::Wgsl as _;
    use super::*;
    use crate::ops::cpu::testing::numbers;

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

    fn check_all(device: &TestDevice, plans: &[TilePlan], sizes: &[(usize, usize, usize)]) {
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
                    let got = matmul_by(plan, &ga, &gb, Some(&gextra), problem);
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
            TilePlan::new((32, 64), 16, (4, 8)),
            TilePlan::new((64, 32), 8, (8, 4)).unroll(1),
            TilePlan::new((32, 32), 16, (8, 8)).slices(4),
            TilePlan::new((64, 64), 16, (8, 4)).slices(2).splits(3),
        ];
        check_all(&device, &plans, &SIZES);
    }

    #[test]
    fn every_text_is_valid_wgsl() {
        let limits = [(120, 1 << 16), (120, 1 << 14), (4, 1 << 15), (4, 1)];
        for (rows, columns, inner) in SIZES.into_iter().chain([(1024, 4096, 512)]) {
            for (full, shared_bytes) in limits {
                let limits = Limits {
                    shared_bytes,
                    threads: 256,
                    full,
                };
                let problems = [(false, true), (true, false)];
                let problems = problems.map(|(a, b)| Problem::new([rows, columns, inner], a, b));
                let (plan, splits) = choose_pair(problems.each_ref(), limits);
                let products = [0, 1].map(|i| TiledProduct {
                    problem: problems[i],
                    splits: splits[i],
                    has_residual: splits[i] == 1,
                });
                let products = products.to_vec();
                check::valid_wgsl(&TiledProducts { plan, products }.program().text());
            }
        }
    }
}
