//! The norm of gradients against its definition, for every kind of tensor that the gradient audit meets.

use burn::tensor::{Device, Tensor};
use tiny_llama::ops::grad_norm::lengths;

use crate::ops::matrix::Matrix;

/// There are more tensors than one launch takes: single values, odd sizes, more values than a workgroup has invocations, and views.
fn of_many_tensors(device: &Device) {
    let mut tensors: Vec<Tensor<2>> = Vec::new();
    let mut want = Vec::new();
    for index in 0..30_u64 {
        let [rows, columns] = [[1, 1], [7, 33], [51, 997], [1, 129], [64, 300]][index as usize % 5];
        let matrix = Matrix::random(index, rows, columns, 10.0_f64.powi(index as i32 % 7 - 3));
        want.push(matrix.values.iter().map(|x| x * x).sum::<f64>().sqrt());
        let tensor = matrix.on(device); // [rows, columns]
        tensors.push(if index % 2 == 0 {
            tensor
        } else {
            tensor.swap_dims(0, 1) // [columns, rows]
        });
    }
    let got = lengths(&tensors.iter().collect::<Vec<_>>());
    assert_eq!(got.len(), want.len());
    for (index, (got, want)) in got.iter().zip(&want).enumerate() {
        assert!(
            (got - want).abs() <= 1e-5 * want,
            "{index}: {got} instead of {want}"
        );
    }
}

/// Zeros have norm 0, and a value that is not finite affects the norm of its own tensor only.
fn of_zeros_and_of_values_that_are_not_finite(device: &Device) {
    let zeros = Tensor::<2>::zeros([9, 31], device); // [9, 31]
    let ones = Tensor::<2>::ones([2, 8], device); // [2, 8]
    let nans = (ones.clone() - 1.0) / (ones.clone() - 1.0); // [2, 8], 0/0
    let got = lengths(&[&zeros, &nans, &ones]);
    assert_eq!((got[0], got[2]), (0.0, 4.0));
    assert!(!got[1].is_finite(), "{}", got[1]);
    assert!(lengths(&[]).is_empty());
}

crate::ops::on_both_devices!(of_many_tensors, of_zeros_and_of_values_that_are_not_finite);
