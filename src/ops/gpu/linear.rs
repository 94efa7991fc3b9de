//! The three products of a linear layer without bias, W stored `[M, K]` as rows of outputs.

use super::matmul::{Plan, Problem, choose_pair, limits, matmul};
use super::matmul_pair::{self, Product};
use super::reduce::{self, Parts};
use super::{empty, shaped};
use burn_cubecl::tensor::CubeTensor;

/// y = x·Wᵀ (+ `residual`); x `[N, K]`, W `[M, K]`, y and residual `[N, M]`. One matmul.
pub fn forward(x: &CubeTensor, weight: &CubeTensor, residual: Option<&CubeTensor>) -> CubeTensor {
    let ([rows, inner], [columns, _]) = (sides(x), sides(weight));
    let problem = Problem {
        rows,
        columns,
        inner,
        a_transposed: false,
        b_transposed: true,
    };
    matmul(x, weight, residual, problem)
}

/// dx = dy·W (+ `add`, another gradient of x); dy `[N, M]`, W `[M, K]`, dx and add `[N, K]`. One matmul.
pub fn backward_input(
    dy: &CubeTensor,
    weight: &CubeTensor,
    add: Option<&CubeTensor>,
) -> CubeTensor {
    let [problem, _] = backward_problems(dy, weight);
    matmul(dy, weight, add, problem)
}

/// dW = dyᵀ·x (+ `add`, another gradient of W); dy `[N, M]`, x `[N, K]`, dW and add `[M, K]`. One matmul.
pub fn backward_weight(dy: &CubeTensor, x: &CubeTensor, add: Option<&CubeTensor>) -> CubeTensor {
    // x has the width of W, which is all that the sizes need.
    let [_, problem] = backward_problems(dy, x);
    matmul(dy, x, add, problem)
}

/// Both gradients, dx = dy·W (+ `add_dx`) and dW = dyᵀ·x (+ `add_dw`), by one launch that shares the GPU between them.
pub fn backward(
    dy: &CubeTensor,
    x: &CubeTensor,
    weight: &CubeTensor,
    add_dx: Option<&CubeTensor>,
    add_dw: Option<&CubeTensor>,
) -> (CubeTensor, CubeTensor) {
    let [input, weights] = backward_problems(dy, weight);
    match choose_pair([&input, &weights], limits(dy)) {
        Some((plan, splits)) => backward_by(plan, splits, dy, x, weight, add_dx, add_dw),
        None => (
            backward_input(dy, weight, add_dx),
            backward_weight(dy, x, add_dw),
        ),
    }
}

/// [`backward`] in one launch by a given plan, with dx and dW in so many parts along their inner dimensions. Products
/// in parts take one more launch.
pub fn backward_by(
    plan: Plan,
    splits: [usize; 2],
    dy: &CubeTensor,
    x: &CubeTensor,
    weight: &CubeTensor,
    add_dx: Option<&CubeTensor>,
    add_dw: Option<&CubeTensor>,
) -> (CubeTensor, CubeTensor) {
    let [of_input, of_weight] = backward_problems(dy, weight);
    let target = |p: &Problem, splits| empty(dy, [splits, p.rows, p.columns]);
    let dx = target(&of_input, splits[0]);
    let dw = target(&of_weight, splits[1]);
    let input = Product {
        a: dy,
        b: weight,
        add: add_dx.filter(|_| splits[0] == 1),
        out: &dx,
        problem: of_input,
        splits: splits[0],
    };
    let weights = Product {
        a: dy,
        b: x,
        add: add_dw.filter(|_| splits[1] == 1),
        out: &dw,
        problem: of_weight,
        splits: splits[1],
    };
    matmul_pair::launch(&input, &weights, plan);
    let size = |p: &Problem| p.rows * p.columns;
    let (dx, dw) = if splits[0] > 1 && splits[1] > 1 {
        reduce::sum_both(
            &Parts {
                parts: &dx,
                rows: splits[0],
                width: size(&of_input),
                add: add_dx,
            },
            &Parts {
                parts: &dw,
                rows: splits[1],
                width: size(&of_weight),
                add: add_dw,
            },
        )
    } else if splits[0] > 1 {
        (
            reduce::sum_rows(&dx, splits[0], size(&of_input), add_dx),
            dw,
        )
    } else if splits[1] > 1 {
        (
            dx,
            reduce::sum_rows(&dw, splits[1], size(&of_weight), add_dw),
        )
    } else {
        (dx, dw)
    };
    (
        shaped(dx, [of_input.rows, of_input.columns]),
        shaped(dw, [of_weight.rows, of_weight.columns]),
    )
}

/// The products behind dx and dW.
pub fn backward_problems(dy: &CubeTensor, weight: &CubeTensor) -> [Problem; 2] {
    let ([n, m], [_, k]) = (sides(dy), sides(weight));
    let problem = |rows, inner, a_transposed| Problem {
        rows,
        columns: k,
        inner,
        a_transposed,
        b_transposed: false,
    };
    [problem(n, m, false), problem(m, n, true)]
}

/// Both sides of a matrix; leading dimensions count as rows.
fn sides(matrix: &CubeTensor) -> [usize; 2] {
    let shape = matrix.meta.shape();
    let columns = shape.last().copied().unwrap_or(1);
    [matrix.meta.num_elements() / columns, columns]
}

#[cfg(test)]
mod tests {
    use super::super::check::{self, Device};
    use super::*;

    #[test]
    fn gradients_together_and_apart_agree() {
        let Some(device) = Device::any() else { return };
        for (n, m, k) in [(1, 1, 1), (37, 21, 50), (64, 128, 32), (100, 72, 68)] {
            let (dy, x, w) = (
                check::random(n * m, 1),
                check::random(n * k, 2),
                check::random(m * k, 3),
            );
            let (gdy, gx, gw) = (
                device.tensor(&dy, [n, m]),
                device.tensor(&x, [n, k]),
                device.tensor(&w, [m, k]),
            );
            let mut y = vec![0.0f32; n * m];
            let (mut dx, mut dw) = (x.clone(), w.clone());
            for (i, j, l) in
                (0..n).flat_map(|i| (0..m).flat_map(move |j| (0..k).map(move |l| (i, j, l))))
            {
                y[i * m + j] += x[i * k + l] * w[j * k + l];
                dx[i * k + l] += dy[i * m + j] * w[j * k + l];
                dw[j * k + l] += dy[i * m + j] * x[i * k + l];
            }
            let y: Vec<f32> = y.iter().zip(&dy).map(|(a, b)| a + b).collect();
            check::close(
                "linear",
                &device.read(&forward(&gx, &gw, Some(&gdy))),
                &y,
                1e-5,
            );
            let plan = Plan::new((32, 32), 16, (4, 4));
            for (name, (gdx, gdw)) in [
                ("chosen", backward(&gdy, &gx, &gw, Some(&gx), Some(&gw))),
                (
                    "together",
                    backward_by(plan, [1, 1], &gdy, &gx, &gw, Some(&gx), Some(&gw)),
                ),
                (
                    "in parts",
                    backward_by(plan, [3, 2], &gdy, &gx, &gw, Some(&gx), Some(&gw)),
                ),
                (
                    "apart",
                    (
                        backward_input(&gdy, &gw, Some(&gx)),
                        backward_weight(&gdy, &gx, Some(&gw)),
                    ),
                ),
            ] {
                check::close(&format!("linear dx, {name}"), &device.read(&gdx), &dx, 1e-5);
                check::close(&format!("linear dW, {name}"), &device.read(&gdw), &dw, 1e-5);
            }
        }
    }
}
