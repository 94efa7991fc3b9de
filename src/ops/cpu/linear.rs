//! A linear layer without bias, forward and backward: three matrix products that copy and transpose nothing.
//! Weights lie as `PyTorch` keeps them, outputs × inputs (M × K).

use super::matmul::{Matrix, matmul, matmul_onto};

/// `y = x · Wᵀ`, plus `residual`, N × M, where there is one: x is N × K, weight M × K, y N × M.
pub fn forward(
    y: &mut [f32],
    residual: Option<&[f32]>,
    x: &[f32],
    weight: &[f32],
    [n, m, k]: [usize; 3],
) {
    let (x, weight) = (Matrix::new(x, n, k), Matrix::new(weight, m, k).transposed());
    match residual {
        Some(residual) => matmul_onto(y, residual, x, weight),
        None => matmul(y, x, weight),
    }
}

/// `dx = dy · W`: dy is N × M, weight M × K, dx N × K.
pub fn backward_input(dx: &mut [f32], dy: &[f32], weight: &[f32], [n, m, k]: [usize; 3]) {
    matmul(dx, Matrix::new(dy, n, m), Matrix::new(weight, m, k));
}

/// `dW = dyᵀ · x`: dy is N × M, x N × K, dW M × K.
pub fn backward_weight(dw: &mut [f32], dy: &[f32], x: &[f32], [n, m, k]: [usize; 3]) {
    matmul(dw, Matrix::new(dy, n, m).transposed(), Matrix::new(x, n, k));
}
