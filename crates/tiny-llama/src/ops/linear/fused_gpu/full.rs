//! Matrix products in f32 for every transposition and any sizes, with an epilogue. The kernel is
//! `matmul.wgsl`; `matmul_plan` holds its plans and chooses one.
//!
//! One text serves every shape and every transposition. RoPE and the fused SwiGLU are part of these products, too (`epilogue`).

use crate::ops::linear::fused_gpu::epilogue::Epilogue;
use crate::ops::linear::fused_gpu::full_tiles::TiledProduct;
use crate::ops::linear::fused_gpu::products::multiply;
pub(crate) use crate::ops::linear::planner::{
    Limits, Problem, TilePlan, choose, choose_pair, choose_whole,
};
use burn::cubecl::ir::features::Plane;
use burn_cubecl::tensor::CubeTensor;

/// Workgroups that keep a large GPU busy: an H100 has 132 multiprocessors.
const LARGE_DEVICE: usize = 120;
/// The same for a CPU.
const SMALL_DEVICE: usize = 4;

/// The limits of the tensor's device. A device without subgroup operations counts as small, which means a CPU.
pub(crate) fn limits(tensor: &CubeTensor) -> Limits {
    let properties = tensor.client.properties();
    let small = !properties.features.plane.contains(Plane::Ops);
    Limits {
        shared_bytes: properties.hardware.max_shared_memory_size,
        threads: properties.hardware.max_units_per_cube as usize,
        full: if small { SMALL_DEVICE } else { LARGE_DEVICE },
    }
}

/// A·B, stored by the epilogue `then`. 1 launch, or 2 if the inner dimension is split; `[parts·rows, columns]` for
/// [`Epilogue::Parts`].
pub(crate) fn matmul(pair: [&CubeTensor; 2], then: Epilogue, problem: Problem) -> CubeTensor {
    let plan = match then.store().is_linear() {
        true => choose(&problem, limits(pair[0])),
        false => choose_whole(&problem, limits(pair[0])),
    };
    let [out] = matmul_by([plan], [pair], [then], [problem]);
    out
}

/// A·B, stored by the epilogue `then`, and C·D, in 1 launch, or 2 if an inner dimension is split; with [`Epilogue::Parts`] A·B is
/// `[parts·rows, columns]`. Alone, the two gradients of a linear layer often have too few tiles for a large GPU.
pub(crate) fn matmul_pair(
    pairs: [[&CubeTensor; 2]; 2],
    then: Epilogue,
    problems: [Problem; 2],
) -> [CubeTensor; 2] {
    let [first, second] = choose_pair(&problems, limits(pairs[0][0]));
    let plans = [first.splits(then.splits(first.splits)), second];
    matmul_by(plans, pairs, [then, Epilogue::Plain], problems)
}

/// Products with given plans, which differ in the number of parts.
pub(crate) fn matmul_by<const N: usize>(
    plans: [TilePlan; N],
    pairs: [[&CubeTensor; 2]; N],
    thens: [Epilogue; N],
    problems: [Problem; N],
) -> [CubeTensor; N] {
    debug_assert!(plans.iter().all(TilePlan::is_sound), "{plans:?}");
    let product = |i: usize, store| TiledProduct {
        problem: problems[i],
        plan: plans[i],
        store,
    };
    multiply(pairs, thens, plans.map(|plan| plan.splits), product, &[])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::cpu::testing::numbers;
    use crate::ops::gpu::check::{self, TestDevice};
    use crate::ops::gpu::wgsl::Wgsl as _;
    use crate::ops::linear::fused_gpu::epilogue::Store;
    use crate::ops::linear::fused_gpu::products::{Product as _, Products};
    use crate::ops::linear::planner::SMALLEST;

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
                    let then = Epilogue::Onto(&gextra, None);
                    let [got] = matmul_by([plan], [[&ga, &gb]], [then], [problem]);
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

    /// Gates beside their ups, and gradients of both, by each tile; sizes with and without edges.
    #[test]
    fn every_plan_has_the_epilogues_of_swiglu() {
        let Some(device) = TestDevice::any() else {
            return;
        };
        let plans = [
            SMALLEST,
            TilePlan::new((32, 64), 32, (8, 8)).slices(4),
            TilePlan::new((64, 64), 32, (8, 8)).slices(2),
            TilePlan::new((128, 128), 32, (8, 8)),
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
                let [got] = matmul_by([plan], [[&x, &w]], [Epilogue::Swiglu], [gates]);
                check::close(&format!("{plan:?}"), &device.read(&got), &stacked, 1e-5);
                let plain = Epilogue::Plain;
                let [active] = matmul_by([plan], [[&dy, &down]], [plain], [of_active]);
                let pairs = [[&dy, &down], [&dy, &active]];
                let thens = [Epilogue::SwigluBackward(&got), plain];
                let problems = [of_active, of_down];
                let plans = [1, 2].map(|splits| plan.splits(splits));
                let [got, _] = matmul_by(plans, pairs, thens, problems);
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
                let plans = choose_pair(&problems, limits);
                let products = [0, 1].map(|i| TiledProduct {
                    problem: problems[i],
                    plan: plans[i],
                    store: if plans[i].splits == 1 {
                        Store::Onto { for_norm: false }
                    } else {
                        Store::Plain
                    },
                });
                let program = TiledProduct::program(Products(products.to_vec()));
                check::valid_wgsl(&program.text());
            }
        }
    }
}
