//! The three products of a linear layer without bias, W stored `[M, K]` as rows of outputs.

use super::format::{full, rounded};
use super::is_f16;
use super::matmul::{self, Problem, choose_pair, limits};
use super::matrix_cores::{self, Epilogue, Largest, Operands};
use crate::config::Precision;
use crate::ops::format::Format;
use burn_cubecl::tensor::CubeTensor;

/// y = x·Wᵀ (+ `residual`); x `[N, K]`, W `[M, K]`, y and residual `[N, M]`. One product.
pub fn forward(
    x: &CubeTensor,
    weight: &CubeTensor,
    residual: Option<&CubeTensor>,
    format: Format,
) -> CubeTensor {
    let then = residual.map_or(Epilogue::Plain, Epilogue::Onto);
    forward_in(x, weight, then, format)
}

/// x·Wᵀ as parts of its inner dimension that the next kernel adds, `[parts·N, M]`. 1 launch; in [`Format::Split`] 2.
pub fn parts(x: &CubeTensor, weight: &CubeTensor, format: Format) -> CubeTensor {
    forward_in(x, weight, Epilogue::Parts, format)
}

/// The number of [`parts`] of a product as large as `like` `[N, M]`.
pub fn number_of_parts(like: &CubeTensor, inner: usize, format: Format) -> usize {
    let [rows, columns] = sides(like);
    let problem = Problem::new([rows, columns, inner], false, true);
    if format.on_matrix_cores() && matrix_cores::fits(&problem) {
        matrix_cores::number_of_parts(&problem, format == Format::Split)
    } else {
        matmul::choose(&problem, limits(like)).splits
    }
}

/// `then` is `Plain`, `Onto` or `Parts`.
fn forward_in(x: &CubeTensor, weight: &CubeTensor, then: Epilogue, format: Format) -> CubeTensor {
    let ([rows, inner], [columns, _]) = (sides(x), sides(weight));
    let problem = Problem::new([rows, columns, inner], false, true);
    let largest = (format == Format::Split).then(|| Largest::of(&[x, weight]));
    let operands = operands(format, largest.as_ref(), [0, 1]);
    product(x, weight, operands, then, problem)
}

/// x·Wᵀ on matrix cores, stored by the epilogue `then`; x `[N, K]`, W `[M, K]`. 1 launch.
pub fn forward_then(x: &CubeTensor, weight: &CubeTensor, then: Epilogue) -> CubeTensor {
    let ([rows, inner], [columns, _]) = (sides(x), sides(weight));
    let problem = Problem::new([rows, columns, inner], false, true);
    matrix_cores::matmul(x, weight, &Operands::F16, then, problem)
}

/// [`backward`] on matrix cores, with dx stored by the epilogue `then`.
pub fn backward_then(
    dy: &CubeTensor,
    x: &CubeTensor,
    weight: &CubeTensor,
    then: Epilogue,
) -> [CubeTensor; 2] {
    let problems = backward_problems(dy, weight);
    let pairs = [[dy, weight], [dy, x]];
    matrix_cores::matmul_pair(pairs, [&Operands::F16; 2], then, problems)
}

/// How matrix cores multiply the operands, if they do; `which` are the indices of the operands' largest magnitudes.
fn operands(format: Format, largest: Option<&Largest>, which: [usize; 2]) -> Option<Operands<'_>> {
    let split = largest.map(|largest| Operands::F32(largest, which));
    split.or_else(|| (format == Format::Native).then_some(Operands::F16))
}

/// A·B, stored by `then`, on matrix cores if `operands` is given and the rows allow it.
fn product(
    a: &CubeTensor,
    b: &CubeTensor,
    operands: Option<Operands>,
    then: Epilogue,
    problem: Problem,
) -> CubeTensor {
    let in_f32 = |a: &CubeTensor, b: &CubeTensor| match then {
        Epilogue::Parts => matmul::parts(a, b, problem),
        _ => matmul::matmul(a, b, then.read().pop(), problem),
    };
    match operands {
        Some(operands) if matrix_cores::fits(&problem) => {
            matrix_cores::matmul(a, b, &operands, then, problem)
        }
        Some(Operands::F16) => {
            let [a, b] = [a, b].map(|it| match is_f16(it) {
                true => full(it.clone()),
                false => rounded(it, Precision::F16),
            });
            in_f32(&a, &b)
        }
        _ => in_f32(a, b),
    }
}

/// Both gradients, dx = dy·W `[N, K]` and dW = dyᵀ·x `[M, K]`, in one launch; in two if matrix cores can compute only one of them.
/// dy `[N, M]`, x `[N, K]`, W `[M, K]`. With `in_parts` the next kernel adds the parts of dx, `[parts·N, K]`.
pub fn backward(
    dy: &CubeTensor,
    x: &CubeTensor,
    weight: &CubeTensor,
    format: Format,
    in_parts: bool,
) -> [CubeTensor; 2] {
    let [input, weights] = backward_problems(dy, weight);
    if !format.on_matrix_cores() {
        let (plan, splits) = choose_pair([&input, &weights], limits(dy));
        let pairs = [[dy, weight], [dy, x]];
        return matmul::matmul_pair(plan, pairs, [input, weights], splits, in_parts);
    }
    let then = if in_parts {
        Epilogue::Parts
    } else {
        Epilogue::Plain
    };
    let largest = (format == Format::Split).then(|| Largest::of(&[dy, weight, x]));
    let operands = |which| operands(format, largest.as_ref(), which);
    match (operands([0, 1]), operands([0, 2])) {
        (Some(of_dx), Some(of_dw)) if [&input, &weights].into_iter().all(matrix_cores::fits) => {
            let pairs = [[dy, weight], [dy, x]];
            matrix_cores::matmul_pair(pairs, [&of_dx, &of_dw], then, [input, weights])
        }
        (of_dx, of_dw) => [
            product(dy, weight, of_dx, then, input),
            product(dy, x, of_dw, Epilogue::Plain, weights),
        ],
    }
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
    use super::super::check::{self, TestDevice};
    use super::super::matmul::TilePlan;
    use super::*;
    use crate::ops::cpu::testing::numbers;

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
                    let [gdx, gdw] = matmul::matmul_pair(plan, pairs, problems, splits, in_parts);
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
}
