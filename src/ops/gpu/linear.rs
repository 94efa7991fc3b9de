//! The three products of a linear layer without bias, W stored `[M, K]` as rows of outputs.

use super::matmul::{Problem, matmul};
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
pub fn backward_input(dy: &CubeTensor, weight: &CubeTensor, add: Option<&CubeTensor>) -> CubeTensor {
    let ([rows, inner], [_, columns]) = (sides(dy), sides(weight));
    let problem = Problem {
        rows,
        columns,
        inner,
        a_transposed: false,
        b_transposed: false,
    };
    matmul(dy, weight, add, problem)
}

/// dW = dyᵀ·x (+ `add`, another gradient of W); dy `[N, M]`, x `[N, K]`, dW and add `[M, K]`. One matmul.
pub fn backward_weight(dy: &CubeTensor, x: &CubeTensor, add: Option<&CubeTensor>) -> CubeTensor {
    let ([inner, rows], [_, columns]) = (sides(dy), sides(x));
    let problem = Problem {
        rows,
        columns,
        inner,
        a_transposed: true,
        b_transposed: false,
    };
    matmul(dy, x, add, problem)
}

/// Both sides of a matrix; leading dimensions count as rows.
fn sides(matrix: &CubeTensor) -> [usize; 2] {
    let shape = matrix.meta.shape();
    let columns = shape.last().copied().unwrap_or(1);
    [matrix.meta.num_elements() / columns, columns]
}
