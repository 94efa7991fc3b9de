//! The three products of a linear layer without bias, W stored `[M, K]` as rows of outputs.

pub(crate) mod epilogue;
pub(crate) mod full;
mod full_tiles;
pub(crate) mod matrix_cores;
mod matrix_cores_blocks;
mod products;

use super::planner::Problem;
use super::{Fused, NextOperation};
use crate::ops::Kernels as _;
use crate::ops::backend::is_cpu;
use crate::ops::format::Format;
use crate::ops::gpu::empty;
use crate::ops::gpu::format::{converted, rounded};
use crate::ops::gpu::is_f16;
use crate::ops::shared_work::PartialNorm;
use crate::ops::shared_work::{SharedWork, Sharing};
use burn::backend::Cube;
use burn::backend::TensorMetadata as _;
use burn::tensor::{DType, Device, Tensor};
use burn_cubecl::tensor::CubeTensor;
use epilogue::Epilogue;
use full::limits;
use protocol::config::Precision;

type T = CubeTensor;

impl Fused for Cube {
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
        let forward = |then| forward([&x, &w], then, format, None);
        match &shared.forward {
            Sharing::SumInNorm => {
                let parts = forward(Epilogue::Parts);
                let y = empty(&residual, residual.meta.shape());
                shared.left().parts = Some([residual, parts]);
                y
            }
            Sharing::NormInProducts(gain) => {
                let partial = empty_partial_norm([&x, &w, &Self::constant(gain)], format);
                let y = forward(Epilogue::Onto(&residual, partial.as_ref()));
                shared.left().partial = partial;
                y
            }
            Sharing::Nothing => forward(Epilogue::Onto(&residual, None)),
        }
    }

    fn backward([x, w, dy]: [T; 3], format: Format, in_parts: bool, gated: Option<T>) -> [T; 2] {
        let then = match &gated {
            Some(gated) => Epilogue::SwigluBackward(gated),
            None => Epilogue::in_parts(in_parts),
        };
        backward(&dy, [&x, &w], then, format)
    }
}

/// Most elements of an f32 operand that the product itself converts: reading twice the bytes takes less time than a launch.
const ROUNDED_ON_THE_WAY: usize = 1 << 20;

/// Whether products read an operand of `count` elements from a copy in f16, which needs whole vectors.
pub(crate) fn is_copied(count: usize) -> bool {
    count > ROUNDED_ON_THE_WAY && count.is_multiple_of(4)
}

/// x·Wᵀ, stored by the epilogue `then`; x `[N, K]`, W `[M, K]`. One product. The result is f16 if matrix cores apply an epilogue that
/// is not linear. With `norm`, which [`applies_norm`] allows, x is the output of that norm, and this launch writes it as well.
fn forward(
    [x, weight]: [&CubeTensor; 2],
    then: Epilogue,
    format: Format,
    norm: Option<&PartialNorm>,
) -> CubeTensor {
    let problem = of_forward(x, weight);
    match norm {
        Some(norm) => matrix_cores::matmul_of_norm([x, weight], norm, then, problem),
        None => product([x, weight], then, problem, format),
    }
}

/// The number of parts that [`forward`] leaves with [`Epilogue::Parts`], for a product as large as `like` `[N, M]`.
fn number_of_parts(like: &CubeTensor, inner: usize, format: Format) -> usize {
    let [rows, columns] = sides(like);
    let problem = Problem::new([rows, columns, inner], false, true);
    if format.on_matrix_cores() && matrix_cores::fits(&problem) {
        matrix_cores::number_of_parts(&problem, format == Format::Split)
    } else {
        full::choose(&problem, limits(like)).splits
    }
}

/// Whether a product as large as x `[n, d]` is computed in parts of its inner dimension. With one part the product adds the residual,
/// because then the norm need not write x.
pub(crate) fn is_in_parts(x: &Tensor<2>, inner: usize, format: Format) -> bool {
    !is_cpu(&x.device()) && number_of_parts(&Cube::constant(x), inner, format) > 1
}

/// Whether [`forward`] of x `[n, d]` and a W `[outputs, d]` may apply the norm before it. Blocks of outputs share the work of writing
/// the norm's output, so there have to be enough of them.
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

/// What [`forward`] of these writes for a norm with this gain that follows, without values yet; `None` if it does not.
fn empty_partial_norm([x, weight, gain]: [&CubeTensor; 3], format: Format) -> Option<PartialNorm> {
    let problem = of_forward(x, weight);
    let writes = format == Format::Native && matrix_cores::fits(&problem);
    let parts = || matrix_cores::blocks_across(&problem);
    let sizes = [problem.rows, problem.columns];
    writes.then(|| PartialNorm::empty(gain.clone(), parts(), sizes))
}

/// A·B, stored by `then`, on matrix cores if the format and the rows allow it.
fn product(pair: [&CubeTensor; 2], then: Epilogue, problem: Problem, format: Format) -> CubeTensor {
    if format.on_matrix_cores() && matrix_cores::fits(&problem) {
        return matrix_cores::matmul(pair, then, problem, format == Format::Split);
    }
    if format != Format::Native {
        return full::matmul(pair, then, problem);
    }
    let [a, b] = pair.map(|it| match is_f16(it) {
        true => converted(it.clone(), DType::F32),
        false => rounded(it, Precision::F16),
    });
    full::matmul([&a, &b], then, problem)
}

/// Both gradients, dx = dy·W `[N, K]`, stored by the epilogue `then`, and dW = dyᵀ·x `[M, K]`, in one launch; in two if matrix cores
/// cannot compute them. dy `[N, M]`, x `[N, K]`, W `[M, K]`.
fn backward(
    dy: &CubeTensor,
    [x, weight]: [&CubeTensor; 2],
    then: Epilogue,
    format: Format,
) -> [CubeTensor; 2] {
    let problems = backward_problems(dy, weight);
    let pairs = [[dy, weight], [dy, x]];
    if !format.on_matrix_cores() {
        return full::matmul_pair(pairs, then, problems);
    }
    if problems.iter().all(matrix_cores::fits) {
        return matrix_cores::matmul_pair(pairs, then, problems, format == Format::Split);
    }
    let thens = [then, Epilogue::Plain];
    [0, 1].map(|i| product(pairs[i], thens[i], problems[i], format))
}

/// The product that gives x·Wᵀ.
fn of_forward(x: &CubeTensor, weight: &CubeTensor) -> Problem {
    let ([rows, inner], [columns, _]) = (sides(x), sides(weight));
    Problem::new([rows, columns, inner], false, true)
}

/// The products that give dx and dW.
fn backward_problems(dy: &CubeTensor, weight: &CubeTensor) -> [Problem; 2] {
    let ([n, m], [_, k]) = (sides(dy), sides(weight));
    [
        Problem::new([n, k, m], false, false),
        Problem::new([m, k, n], true, false),
    ]
}

/// Rows and columns of a matrix; leading dimensions count as rows.
fn sides(matrix: &CubeTensor) -> [usize; 2] {
    let shape = matrix.meta.shape();
    let columns = shape.last().copied().unwrap_or(1);
    [matrix.meta.num_elements() / columns, columns]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::cpu::testing::numbers;
    use crate::ops::gpu::check::{self, TestDevice};
    use crate::ops::linear::fused_gpu::full::TilePlan;
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
            let (gdy, gx) = (device.tensor(&dy, [n, m]), device.tensor(&x, [n, k]));
            let gw = device.tensor(&w, [m, k]);
            let (mut dx, mut dw) = (vec![0.0; n * k], vec![0.0; m * k]);
            for (i, j) in (0..n).flat_map(|i| (0..m).map(move |j| (i, j))) {
                for l in 0..k {
                    dx[i * k + l] += dy[i * m + j] * w[j * k + l];
                    dw[j * k + l] += dy[i * m + j] * x[i * k + l];
                }
            }
            let plan = TilePlan::new((32, 32), 16, (4, 4));
            for splits in [[1, 1], [3, 2], [1, 2]] {
                let pairs = [[&gdy, &gw], [&gdy, &gx]];
                let problems = backward_problems(&gdy, &gw);
                for in_parts in [false, true] {
                    let then = Epilogue::in_parts(in_parts);
                    let plans = splits.map(|splits| plan.splits(splits));
                    let thens = [then, Epilogue::Plain];
                    let [gdx, gdw] = full::matmul_by(plans, pairs, thens, problems);
                    let name = format!("{splits:?} {in_parts}");
                    let parts = device.read(&gdx);
                    assert_eq!(parts.len(), n * k * if in_parts { splits[0] } else { 1 });
                    let sum = |at| parts.iter().skip(at).step_by(n * k).sum();
                    let sums: Vec<f32> = (0..n * k).map(sum).collect();
                    check::close(&format!("dx, {name}"), &sums, &dx, 1e-5);
                    check::close(&format!("dW, {name}"), &device.read(&gdw), &dw, 1e-5);
                }
            }
        }
    }

    /// Epilogues give the same results as separate kernels, except for f16 rounding.
    #[test]
    fn epilogues_do_what_kernels_of_their_own_do() {
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
                let same = |name: &str, got: CubeTensor, want: CubeTensor| {
                    let [got, want] = [got, want].map(|it| match is_f16(&it) {
                        true => device.read(&converted(it, DType::F32)),
                        false => device.read(&it),
                    });
                    check::close(&format!("{name} {format:?} {n} {d} {f}"), &got, &want, off);
                };
                let (x, w) = (matrix(1, [n, d]), matrix(2, [2 * f, d]));
                let forward = |then| forward([&x, &w], then, format, None);
                let plain = forward(Epilogue::Plain);
                let of = Rotation {
                    width: 2 * f,
                    rotated: f / 8 * 12,
                    head_dim: 4,
                    context: 50,
                    inverse: false,
                };
                let tables = [3, 4].map(|seed| matrix(seed, [of.context, of.head_dim / 2]));
                let [cos, sin] = tables.each_ref();
                let turned = forward(Epilogue::Rope([cos, sin], of));
                same("rope", turned, rope::apply(&plain, cos, sin, of, dtype));

                let gated = forward(Epilogue::Swiglu);
                let active = last_third(&gated);
                same("swiglu", active.clone(), swiglu::forward(&plain, dtype));

                let (dy, down) = (matrix(5, [n, d]), matrix(6, [d, f]));
                let backward = |then| backward(&dy, [&active, &down], then, format);
                let [dx, dw] = backward(Epilogue::Plain);
                let [of_gated, of_down] = backward(Epilogue::SwigluBackward(&gated));
                same("dW", of_down, dw);
                same("gradient", of_gated, swiglu::backward(&dx, &plain, dtype));
            }
        }
    }

    /// Rows 2n to 3n of `[3n, f]`.
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
