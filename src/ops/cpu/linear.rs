//! A linear layer without bias, forward and backward: three matrix products that copy and transpose nothing.
//! Weights lie as `PyTorch` keeps them, outputs × inputs (M × K).

use super::matmul::{Matrix, Write, matmul, matmul_onto};

/// `y = x · Wᵀ`: x is N × K, weight M × K, y N × M.
pub fn forward(y: &mut [f32], x: &[f32], weight: &[f32], [n, m, k]: [usize; 3]) {
    matmul(
        y,
        Matrix::new(x, n, k),
        Matrix::new(weight, m, k).transposed(),
        Write::Replace,
    );
}

/// `y = residual + x · Wᵀ`: the same, onto the residual stream; residual is N × M.
pub fn forward_residual(
    y: &mut [f32],
    residual: &[f32],
    x: &[f32],
    weight: &[f32],
    [n, m, k]: [usize; 3],
) {
    matmul_onto(
        y,
        residual,
        Matrix::new(x, n, k),
        Matrix::new(weight, m, k).transposed(),
    );
}

/// `dx = dy · W`, or `dx += dy · W`: dy is N × M, weight M × K, dx N × K.
pub fn backward_input(
    dx: &mut [f32],
    dy: &[f32],
    weight: &[f32],
    [n, m, k]: [usize; 3],
    write: Write,
) {
    matmul(dx, Matrix::new(dy, n, m), Matrix::new(weight, m, k), write);
}

/// `dW = dyᵀ · x`, or `dW += dyᵀ · x`: dy is N × M, x N × K, dW M × K.
pub fn backward_weight(dw: &mut [f32], dy: &[f32], x: &[f32], [n, m, k]: [usize; 3], write: Write) {
    matmul(
        dw,
        Matrix::new(dy, n, m).transposed(),
        Matrix::new(x, n, k),
        write,
    );
}

#[cfg(test)]
mod tests {
    use super::super::testing::{assert_gradient, assert_near, numbers, wide};
    use super::*;

    const SHAPE: [usize; 3] = [7, 5, 9];

    fn reference(x: &[f64], weight: &[f64]) -> Vec<f64> {
        let [n, m, k] = SHAPE;
        (0..n * m)
            .map(|i| {
                (0..k)
                    .map(|p| x[i / m * k + p] * weight[i % m * k + p])
                    .sum()
            })
            .collect()
    }

    #[test]
    fn forward_and_residual() {
        let [n, m, k] = SHAPE;
        let (x, weight) = (numbers(1, n * k), numbers(2, m * k));
        let want = reference(&wide(&x), &wide(&weight));
        let mut y = vec![f32::NAN; n * m];
        forward(&mut y, &x, &weight, SHAPE);
        assert_near(&y, &want, 1e-6);
        let residual = numbers(3, n * m);
        forward_residual(&mut y, &residual, &x, &weight, SHAPE);
        let want: Vec<f64> = want
            .iter()
            .zip(&residual)
            .map(|(y, residual)| y + f64::from(*residual))
            .collect();
        assert_near(&y, &want, 1e-6);
    }

    #[test]
    fn gradients() {
        let [n, m, k] = SHAPE;
        let (x, weight, dy) = (numbers(1, n * k), numbers(2, m * k), numbers(3, n * m));
        let loss = |x: &[f64], weight: &[f64]| {
            reference(x, weight)
                .iter()
                .zip(&dy)
                .map(|(y, dy)| y * f64::from(*dy))
                .sum::<f64>()
        };
        let mut dx = vec![f32::NAN; n * k];
        backward_input(&mut dx, &dy, &weight, SHAPE, Write::Replace);
        assert_gradient(&wide(&x), &dx, |x| loss(x, &wide(&weight)));
        let mut dw = vec![f32::NAN; m * k];
        backward_weight(&mut dw, &dy, &x, SHAPE, Write::Replace);
        assert_gradient(&wide(&weight), &dw, |weight| loss(&wide(&x), weight));
    }
}
