//! Products with weights, with and without the residual, and the sum of two streams.

use burn::tensor::Device;
use protocol::config::Matmul;
use tiny_llama::ops::Operation;
use tiny_llama::ops::add::Add;
use tiny_llama::ops::linear::{Linear, LinearResidual};

use crate::ops::case::Case;
use crate::ops::formula;
use crate::ops::matrix::Matrix;

/// Rows, inputs, outputs.
const SIZES: [[usize; 3]; 6] = [
    [1, 1, 1],
    // No multiples of a tile.
    [7, 33, 65],
    [21, 51, 997],
    // More than a tile of each.
    [130, 129, 70],
    [1, 129, 3],
    // Multiples of four.
    [100, 68, 72],
];

fn versions() -> [Linear; 2] {
    [Matmul::Library, Matmul::Own].map(|matmul| Linear {
        matmul,
        ..Linear::default()
    })
}

#[test]
fn the_backward_pass_of_a_product_is_two_products() {
    for op in versions() {
        let (forward, backward) = op.cost(&[vec![10, 20], vec![30, 20]]);
        assert_eq!((forward.flops, backward.flops), (12_000.0, 24_000.0));
        // The forward pass moves x, W and y. The backward pass moves dy, W and dx, then dy, x and dW.
        assert_eq!(forward.bytes, 4.0 * f64::from(200 + 600 + 300));
        assert_eq!(backward.bytes, 2.0 * 4.0 * f64::from(300 + 600 + 200));
    }
}

fn products(device: &Device) {
    for [n, k, m] in SIZES {
        Case {
            name: &format!("[{n}, {k}]·[{m}, {k}]ᵀ"),
            inputs: [Matrix::random(1, n, k, 1.0), Matrix::random(2, m, k, 0.5)],
            dy: Matrix::random(3, n, m, 1.0),
            formula: &|[x, w]| formula::linear(x, w),
        }
        .check(device, &versions());
    }
}

fn products_onto_a_residual(device: &Device) {
    for [n, k, m] in SIZES {
        Case {
            name: &format!("[{n}, {m}] + [{n}, {k}]·[{m}, {k}]ᵀ"),
            inputs: [
                Matrix::random(4, n, k, 1.0),
                Matrix::random(5, m, k, 0.5),
                Matrix::random(6, n, m, 3.0),
            ],
            dy: Matrix::random(7, n, m, 1.0),
            formula: &|[x, w, residual]| formula::add(&formula::linear(x, w), residual),
        }
        .check(device, &[LinearResidual::default()]);
    }
}

fn sums(device: &Device) {
    Case {
        name: "[7, 33] + [7, 33]",
        inputs: [Matrix::random(8, 7, 33, 1.0), Matrix::random(9, 7, 33, 1.0)],
        dy: Matrix::random(10, 7, 33, 1.0),
        formula: &|[a, b]| formula::add(a, b),
    }
    .check(device, &[Add]);
}

crate::ops::on_both_devices!(products, products_onto_a_residual, sums);
