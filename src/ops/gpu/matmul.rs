//! Matrix products for every transposition, with an optional matrix added to the result. `matmul_plan` holds the plans and chooses one.

pub use super::matmul_plan::{Limits, Problem, TilePlan, choose, choose_pair};
use super::{empty, matmul_register, reduce, shaped};
use burn::cubecl::ir::features::Plane;
use burn_cubecl::tensor::CubeTensor;

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
    let plan = choose(&problem, limits(a));
    let out = empty(a, [plan.splits * problem.rows, problem.columns]);
    matmul_register::launch(a, b, None, &out, problem, plan);
    out
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
    let Problem { rows, columns, .. } = problem;
    if plan.splits == 1 {
        let out = empty(a, [rows, columns]);
        matmul_register::launch(a, b, residual, &out, problem, plan);
        return out;
    }
    let partial = empty(a, [plan.splits, rows, columns]);
    matmul_register::launch(a, b, None, &partial, problem, plan);
    let out = reduce::sum_rows(&partial, plan.splits, rows * columns, residual);
    shaped(out, [rows, columns])
}

#[cfg(test)]
mod tests {
    use super::super::check::{self, TestDevice};
    use super::super::matmul_plan::{Buffering, SMALLEST};
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
            TilePlan::new((64, 32), 8, (8, 4))
                .buffering(Buffering::Single)
                .unroll(1),
            TilePlan::new((32, 32), 16, (8, 8))
                .slices(4)
                .buffering(Buffering::Double),
            TilePlan::new((64, 64), 16, (8, 4)).slices(2).splits(3),
        ];
        check_all(&device, &plans, &SIZES);
    }
}
