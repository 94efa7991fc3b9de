//! RMSNorm: rows of any width, and a row of zeros.

use burn::tensor::Device;
use protocol::config::Norm;
use tiny_llama::ops::rms_norm::RmsNorm;

use crate::ops::case::{Case, run};
use crate::ops::formula;
use crate::ops::matrix::Matrix;

fn versions() -> [RmsNorm; 2] {
    [Norm::Composed, Norm::Fused].map(|version| RmsNorm {
        version,
        ..RmsNorm::default()
    })
}

fn rows_of_any_width(device: &Device) {
    for (n, d, scale) in [
        (1, 1, 1.0),
        (1, 128, 1.0),
        (7, 33, 1.0),
        (130, 51, 3.0),
        (3, 1030, 1e3),
    ] {
        Case {
            name: &format!("[{n}, {d}] times {scale}"),
            inputs: [
                Matrix::random(1, n, d, scale),
                Matrix::from_function(1, d, |_, c| 1.0 + 0.3 * (c as f64).sin()),
            ],
            dy: Matrix::random(2, n, d, 1.0),
            formula: &|[x, gain]| formula::rms_norm(x, gain),
        }
        .check(device, &versions());
    }
}

/// ε keeps the output of a row of zeros at 0, and its gradient finite.
fn a_row_of_zeros(device: &Device) {
    let inputs = [
        Matrix::from_function(2, 9, |r, c| if r == 0 { 0.0 } else { c as f64 }),
        Matrix::from_function(1, 9, |_, _| 1.0),
    ];
    let dy = Matrix::from_function(2, 9, |_, _| 1.0);
    for op in versions() {
        let found = run(device, op, &inputs, &dy);
        let dx = found.gradients[0].as_ref().expect("a gradient");
        assert!(found.output.row(0).iter().all(|y| *y == 0.0));
        let want = 1.0 / protocol::config::NORM_EPS.sqrt();
        assert!(dx.row(0).iter().all(|g| (g - want).abs() < 1e-3 * want));
    }
}

crate::ops::on_both_devices!(rows_of_any_width, a_row_of_zeros);
