//! The products of a linear layer on a GPU: x·Wᵀ, dx and dW, with W stored as `[M, K]`. A product is computed in f32 (`full`) or on matrix cores
//! (`matrix_cores`), with the plan that the planner chooses, and with an epilogue that does the work of the operation after it.

pub(crate) mod epilogue;
mod full;
mod matrix_cores;
mod products;
pub(crate) mod tiles;

use burn::backend::{Cube, TensorMetadata as _};
use burn::cubecl::ir::features::Plane;
use burn::tensor::{DType, Device, Tensor};
use burn_cubecl::tensor::CubeTensor;

use super::planner::{Limits, Parts, Plan, Planner, Problem};
use super::{FusedLinear, NextOperation};
use crate::ops::Kernels as _;
use crate::ops::backend::is_cpu;
use crate::ops::format::Format;
use crate::ops::gpu::format::{converted, rounded};
use crate::ops::gpu::is_f16;
use crate::ops::grad_norm::fused_gpu::reduced;
use crate::ops::shared_work::{PartialNorm, SharedWork};
use epilogue::Epilogue;
use products::{Product, Staged, multiply};
use protocol::config::Precision;

type T = CubeTensor;

impl FusedLinear for Cube {
    fn forward(
        [x, w]: [T; 2],
        format: Format,
        norm: Option<PartialNorm>,
        then: &NextOperation,
    ) -> T {
        let forward = |then| forward([&x, &w], then, format, norm.as_ref());
        match then {
            NextOperation::Nothing => forward(Epilogue::Plain),
            NextOperation::Swiglu => forward(Epilogue::Swiglu),
            NextOperation::Rope(rope) => {
                let [cos, sin] = rope.tables::<Self>();
                forward(Epilogue::Rope([&cos, &sin], rope.rotation(w.shape()[0])))
            }
        }
    }

    fn forward_onto([x, w, residual]: [T; 3], format: Format, shared: &SharedWork) -> T {
        let gain = shared.gain.as_ref().map(Self::constant); // [1, m]
        let partial = gain.and_then(|gain| empty_partial_norm([&x, &w], gain, format));
        let then = Epilogue::Onto(&residual, partial.as_ref());
        let y = forward([&x, &w], then, format, None);
        *shared.partial() = partial;
        y
    }

    fn backward([x, w, dy]: [T; 3], format: Format, gated: Option<T>) -> [T; 2] {
        let then = match &gated {
            Some(gated) => Epilogue::SwigluBackward(gated),
            None => Epilogue::Plain,
        };
        backward(&dy, [&x, &w], then, format)
    }
}

/// The largest number of elements of an f32 operand that the product itself rounds. Reading twice the bytes of so few elements takes less time than
/// a launch that converts them.
const MOST_ROUNDED: usize = 1 << 20;

/// Returns true if products read an operand of `count` elements from a copy in f16, which needs whole vectors.
pub(crate) fn is_copied(count: usize) -> bool {
    count > MOST_ROUNDED && count.is_multiple_of(4)
}

/// Returns true if a product whose result is as large as x `[n, d]` is computed in parts of its inner dimension.
pub(crate) fn is_in_parts(x: &Tensor<2>, inner: usize, format: Format) -> bool {
    if is_cpu(&x.device()) {
        return false;
    }
    let [rows, columns] = x.dims();
    let problem = Problem::new([rows, columns, inner], false, true);
    let planner = planner(&[problem], format, &Cube::constant(x));
    planner.one(&problem, Parts::Launch).splits > 1
}

/// Returns true if [`forward`] of x `[n, d]` and a W `[outputs, d]` may apply the norm before it. The blocks of the result share the work of
/// writing the norm's output, so there must be enough of them.
pub(crate) fn applies_norm(
    on: &Device,
    [n, d]: [usize; 2],
    outputs: usize,
    format: Format,
) -> bool {
    let problem = Problem::new([n, outputs, d], false, true);
    let fits = format == Format::Native && matrix_cores::fits(&problem);
    fits && !is_cpu(on) && 2 * outputs >= d
}

/// Allocates the part of the next norm, which has this gain, that [`forward`] of x and W writes; `None` if it cannot write for a norm.
fn empty_partial_norm([x, weight]: [&T; 2], gain: T, format: Format) -> Option<PartialNorm> {
    let problem = forward_problem(x, weight);
    let writes = format == Format::Native && matrix_cores::fits(&problem);
    writes.then(|| {
        let plan = CORES.one(&problem, Parts::Launch);
        let [blocks, ..] = plan.groups(&problem);
        PartialNorm::empty(gain, blocks, [problem.rows, problem.columns])
    })
}

/// The planner for f16 on matrix cores.
const CORES: Planner = Planner::Cores { halves: false };

/// Returns the planner of these products. Matrix cores compute them if the format and the rows allow it.
fn planner(problems: &[Problem], format: Format, like: &T) -> Planner {
    if format.on_matrix_cores() && problems.iter().all(matrix_cores::fits) {
        let halves = format == Format::Split;
        return Planner::Cores { halves };
    }
    let properties = like.client.properties();
    Planner::Full(Limits {
        shared_bytes: properties.hardware.max_shared_memory_size,
        threads: properties.hardware.max_units_per_cube as usize,
        // A device without subgroup operations counts as a CPU.
        is_cpu: !properties.features.plane.contains(Plane::Ops),
    })
}

/// Computes x·Wᵀ of x `[N, K]` and W `[M, K]`, stored by the epilogue `then`. The result is f16 if matrix cores apply an epilogue that is
/// not linear. With `norm`, which [`applies_norm`] allows, x is the output of that norm: the product reads x·gain, and this launch also
/// writes x.
fn forward([x, weight]: [&T; 2], then: Epilogue, format: Format, norm: Option<&PartialNorm>) -> T {
    let problem = forward_problem(x, weight);
    let Some(norm) = norm else {
        return product([x, weight], then, problem, format);
    };
    let product = |_, store| Product {
        problem,
        plan: CORES.one(&problem, Parts::Launch).splits(1),
        store,
        staged: [Staged::Short, as_f16(weight)],
        norm_parts: norm.squares.meta.num_elements() / problem.rows,
    };
    let norm_buffers = [&norm.squares, &norm.inverse, x];
    let [out] = multiply(
        [[&norm.scaled, weight]],
        [then],
        [1],
        product,
        &norm_buffers,
    );
    out
}

/// Computes A·B, stored by the epilogue `then`. This takes 1 launch, or 2 if the inner dimension is split. Halves need another launch for their
/// largest magnitudes.
fn product(pair: [&T; 2], then: Epilogue, problem: Problem, format: Format) -> T {
    let planner = planner(&[problem], format, pair[0]);
    let wanted = planner.one(&problem, then.parts());
    let plan = wanted.splits(then.splits(wanted.splits));
    let [out] = match planner {
        Planner::Full(_) if format == Format::Native => {
            let [a, b] = pair.map(|operand| {
                if is_f16(operand) {
                    converted(operand.clone(), DType::F32)
                } else {
                    rounded(operand, Precision::F16)
                }
            });
            by_plans(planner, [plan], [[&a, &b]], [then], [problem])
        }
        _ => by_plans(planner, [plan], [pair], [then], [problem]),
    };
    out
}

/// Computes dx = dy·W `[N, K]`, stored by the epilogue `then`, and dW = dyᵀ·x `[M, K]`, from dy `[N, M]`, x `[N, K]` and W `[M, K]`. Both
/// are in one launch, because each alone often has too few tiles for a large GPU. Another launch follows if an inner dimension is split. If
/// matrix cores cannot compute the products, each has its own launch.
fn backward(dy: &T, [x, weight]: [&T; 2], then: Epilogue, format: Format) -> [T; 2] {
    let problems = backward_problems(dy, weight);
    let pairs = [[dy, weight], [dy, x]];
    let thens = [then, Epilogue::Plain];
    let planner = planner(&problems, format, dy);
    if format.on_matrix_cores() && matches!(planner, Planner::Full(_)) {
        return [0, 1].map(|i| product(pairs[i], thens[i], problems[i], format));
    }
    let [first, second] = planner.pair(&problems);
    let plans = [first.splits(then.splits(first.splits)), second];
    by_plans(planner, plans, pairs, thens, problems)
}

/// Computes products of one A with these plans.
fn by_plans<const N: usize>(
    planner: Planner,
    plans: [Plan; N],
    pairs: [[&T; 2]; N],
    thens: [Epilogue; N],
    problems: [Problem; N],
) -> [T; N] {
    let operands: Vec<T> = [pairs[0][0]]
        .into_iter()
        .chain(pairs.map(|[_, b]| b))
        .cloned()
        .collect();
    // The largest magnitudes of A and of each B. Each is the largest of several values.
    let mut largest = None;
    let staged: Vec<Staged> = match planner {
        Planner::Full(_) => vec![Staged::Full; N + 1],
        Planner::Cores { halves: false } => operands.iter().map(as_f16).collect(),
        Planner::Cores { halves: true } => {
            let (values, counts) = reduced(&operands, true);
            largest = Some(values);
            let mut end = 0;
            let range = |count: &usize| {
                end += count;
                Staged::Halves(end - count..end)
            };
            counts.iter().map(range).collect()
        }
    };
    let product = |i: usize, store| Product {
        problem: problems[i],
        plan: plans[i],
        store,
        staged: [staged[0].clone(), staged[i + 1].clone()],
        norm_parts: 0,
    };
    let splits = plans.map(|plan| plan.splits);
    let more: Vec<&T> = largest.iter().collect();
    multiply(pairs, thens, splits, product, &more)
}

/// Returns how an f16 product stages an operand: f32 is rounded when it is staged.
fn as_f16(operand: &T) -> Staged {
    if is_f16(operand) {
        Staged::Short
    } else {
        Staged::Rounded
    }
}

/// Returns the problem of x·Wᵀ.
fn forward_problem(x: &T, weight: &T) -> Problem {
    let ([rows, inner], [columns, _]) = (sides(x), sides(weight));
    Problem::new([rows, columns, inner], false, true)
}

/// Returns the problems of dx and dW.
fn backward_problems(dy: &T, weight: &T) -> [Problem; 2] {
    let ([n, m], [_, k]) = (sides(dy), sides(weight));
    [
        Problem::new([n, k, m], false, false),
        Problem::new([m, k, n], true, false),
    ]
}

/// Returns the rows and columns of a matrix. Leading dimensions count as rows.
fn sides(matrix: &T) -> [usize; 2] {
    let shape = matrix.meta.shape();
    let columns = shape.last().copied().unwrap_or(1);
    [matrix.meta.num_elements() / columns, columns]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::cpu::testing::numbers;
    use crate::ops::gpu::check::{self, TestDevice};
    use crate::ops::rope::fused_gpu as rope;
    use crate::ops::shapes::Rotation;
    use crate::ops::swiglu::fused_gpu as swiglu;

    #[test]
    fn gradients_in_one_launch_and_in_parts_agree_with_the_definition() {
        let Some(device) = TestDevice::any() else {
            return;
        };
        for (n, m, k) in [(37, 21, 50), (64, 128, 32), (100, 72, 68)] {
            let [dy, x, w] =
                [(n * m, 1), (n * k, 2), (m * k, 3)].map(|(count, seed)| numbers(seed, count));
            let dy_tensor = device.tensor(&dy, [n, m]);
            let x_tensor = device.tensor(&x, [n, k]);
            let w_tensor = device.tensor(&w, [m, k]);
            let mut dx = vec![0.0; n * k];
            let mut dw = vec![0.0; m * k];
            for i in 0..n {
                for j in 0..m {
                    for l in 0..k {
                        dx[i * k + l] += dy[i * m + j] * w[j * k + l];
                        dw[j * k + l] += dy[i * m + j] * x[i * k + l];
                    }
                }
            }
            let plan = Plan::new((32, 32), 16, (4, 4));
            for splits in [[1, 1], [3, 2], [1, 2]] {
                let pairs = [[&dy_tensor, &w_tensor], [&dy_tensor, &x_tensor]];
                let problems = backward_problems(&dy_tensor, &w_tensor);
                let [got_dx, got_dw] = by_plans(
                    planner(&problems, Format::Full, &dy_tensor),
                    splits.map(|splits| plan.splits(splits)),
                    pairs,
                    [Epilogue::Plain; 2],
                    problems,
                );
                for (name, got, want) in [("dx", got_dx, &dx), ("dW", got_dw, &dw)] {
                    let name = format!("{name}, {splits:?}");
                    check::close(&name, &device.read(&got), want, 1e-5);
                }
            }
        }
    }

    /// Epilogues give the same results as separate kernels, except for f16 rounding.
    #[test]
    fn epilogues_agree_with_separate_kernels() {
        let Some(device) = TestDevice::any() else {
            return;
        };
        let native = check::has_matrix_cores().then_some((Format::Native, DType::F16, 1e-3));
        for (format, dtype, off) in [(Format::Full, DType::F32, 1e-5)].into_iter().chain(native) {
            for [n, d, f] in [
                [256, 128, 192],
                [100, 68, 48],
                [1000, 64, 2048],
                [36, 500, 16],
            ] {
                let matrix = |seed, [rows, columns]: [usize; 2]| {
                    device.tensor(&numbers(seed, rows * columns), [rows, columns])
                };
                let assert_same = |name: &str, got: CubeTensor, want: CubeTensor| {
                    let [got, want] =
                        [got, want].map(|tensor| device.read(&converted(tensor, DType::F32)));
                    check::close(&format!("{name} {format:?} {n} {d} {f}"), &got, &want, off);
                };
                let x = matrix(1, [n, d]);
                let w = matrix(2, [2 * f, d]);
                let forward = |then| forward([&x, &w], then, format, None);
                let plain = forward(Epilogue::Plain);
                let rotation = Rotation {
                    width: 2 * f,
                    rotated: f / 8 * 12,
                    head_dim: 4,
                    context: 50,
                    inverse: false,
                };
                let table_shape = [rotation.context, rotation.head_dim / 2];
                let tables = [3, 4].map(|seed| matrix(seed, table_shape));
                let [cos, sin] = tables.each_ref();
                let rotated = forward(Epilogue::Rope([cos, sin], rotation));
                let want = rope::forward(&plain, cos, sin, rotation, dtype);
                assert_same("rope", rotated, want);

                let gated = forward(Epilogue::Swiglu);
                let active = last_third(&gated);
                assert_same("swiglu", active.clone(), swiglu::forward(&plain, dtype));

                let dy = matrix(5, [n, d]);
                let down = matrix(6, [d, f]);
                let backward = |then| backward(&dy, [&active, &down], then, format);
                let [dx, dw] = backward(Epilogue::Plain);
                let [gated_gradient, down_gradient] = backward(Epilogue::SwigluBackward(&gated));
                assert_same("dW", down_gradient, dw);
                let want = swiglu::backward(&dx, &plain, dtype);
                assert_same("gradient", gated_gradient, want);
            }
        }
    }

    /// Returns rows 2n to 3n of `[3n, f]`.
    fn last_third(all: &CubeTensor) -> CubeTensor {
        let [rows, columns] = all.meta.shape().dims();
        let size = all.dtype.size();
        let start = (rows / 3 * 2 * columns * size) as u64;
        let part = all.handle.clone().offset_start(start);
        let like = all.clone();
        let shape = [rows / 3, columns].into();
        CubeTensor::new_contiguous(like.client, like.device, shape, part, like.dtype)
    }
}
