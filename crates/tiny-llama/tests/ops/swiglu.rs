//! SwiGLU's activation: with gates and ups in two tensors, in one, and together with the products before it.

use burn::tensor::Device;
use protocol::config::Matmul;
use tiny_llama::ops::format::Format;
use tiny_llama::ops::swiglu::{Activation, NaiveSwiglu, PackedActivation};

use crate::ops::case::{Case, run};
use crate::ops::formula;
use crate::ops::matrix::Matrix;

const SIZES: [[usize; 2]; 5] = [[1, 1], [7, 33], [130, 51], [1, 1030], [9, 64]];

fn packed_activation(fused: bool) -> PackedActivation {
    PackedActivation {
        fused,
        format: Format::Full,
    }
}

fn separate(device: &Device) {
    for [n, f] in SIZES {
        Case {
            name: &format!("[{n}, {f}]"),
            inputs: [Matrix::random(1, n, f, 6.0), Matrix::random(2, n, f, 2.0)],
            dy: Matrix::random(3, n, f, 1.0),
            formula: &|[gate, up]| formula::swiglu(gate, up),
        }
        .check(device, &[Activation]);
    }
}

fn packed(device: &Device) {
    for [n, f] in SIZES {
        Case {
            name: &format!("[{n}, 2·{f}]"),
            inputs: [Matrix::random(4, n, 2 * f, 6.0)],
            dy: Matrix::random(5, n, f, 1.0),
            formula: &|[x]| {
                let half = |from| formula::exact(n, f, |r, c| x.at(r, from + c));
                formula::swiglu(&half(0), &half(f))
            },
        }
        .check(device, &[false, true].map(packed_activation));
    }
}

/// For gates whose σ is 0 or 1, no exponential overflows and gives a NaN.
fn gates_of_ten_thousand(device: &Device) {
    let gates = [-1e4, -100.0, -88.8, 0.0, 88.8, 100.0, 1e4];
    let inputs = [Matrix::from_function(1, 14, |_, c| {
        if c < 7 { gates[c] } else { 1.0 }
    })];
    let dy = Matrix::from_function(1, 7, |_, _| 1.0);
    for fused in [false, true] {
        let found = run(device, packed_activation(fused), &inputs, &dy);
        let want = Matrix::from_function(1, 7, |_, c| gates[c] / (1.0 + (-gates[c]).exp()));
        found.output.assert_near(&want, 1e-6, "output");
        let dx = found.gradients[0].as_ref().expect("a gradient");
        let slopes = Matrix::from_function(1, 7, |_, c| match gates[c] {
            0.0 => 0.5,
            g => f64::from(u8::from(g > 0.0)),
        });
        dx.columns(0..7)
            .assert_near(&slopes, 1e-6, "gradient of the gates");
    }
}

fn naive(device: &Device) {
    for [n, k, f] in [[1, 1, 1], [7, 33, 51], [65, 128, 130]] {
        Case {
            name: &format!("[{n}, {k}] to [{n}, {f}]"),
            inputs: [
                Matrix::random(6, n, k, 1.0),
                Matrix::random(7, f, k, 0.5),
                Matrix::random(8, f, k, 0.5),
            ],
            dy: Matrix::random(9, n, f, 1.0),
            formula: &|[x, gate, up]| {
                formula::swiglu(&formula::linear(x, gate), &formula::linear(x, up))
            },
        }
        .check(
            device,
            &[Matmul::Library, Matmul::Own].map(|matmul| NaiveSwiglu { matmul }),
        );
    }
}

crate::ops::on_both_devices!(separate, packed, gates_of_ten_thousand, naive);
