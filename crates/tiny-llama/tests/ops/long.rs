//! Flash attention over long contexts, against the formula and the formula of its gradients in double precision.

use burn::tensor::Device;
use protocol::config::{Attention as Version, KvLayout};

use crate::ops::attention::op;
use crate::ops::case::{cpu, run, wgpu};
use crate::ops::formula::{self, Heads};
use crate::ops::matrix::Matrix;

fn flash_over(context: usize, device: &Device) {
    let sizes = Heads {
        context,
        heads: 2,
        kv_heads: 1,
        head_dim: 8,
    };
    let (wide, narrow) = sizes.widths();
    let inputs = [
        Matrix::random(1, context, wide, 3.0),
        Matrix::random(2, context, narrow, 3.0),
        Matrix::random(3, context, narrow, 1.0),
    ];
    let dy = Matrix::random(4, context, wide, 1.0);
    let flash = op(sizes, Version::Flash, KvLayout::Contiguous);
    let found = run(device, flash, &inputs, &dy);
    let [q, k, v] = &inputs;
    let want = formula::attention(q, k, v, sizes);
    found.output.assert_near(&want, 2e-5, "output");
    let slopes = formula::attention_backward(q, k, v, &dy, sizes);
    for ((gradient, want), input) in found.gradients.iter().zip(&slopes).zip(["q", "k", "v"]) {
        let gradient = gradient.as_ref().expect("a gradient");
        gradient.assert_near(want, 1e-4, &format!("gradient of {input}"));
    }
}

#[test]
fn flash_over_4096_tokens_on_cpu() {
    flash_over(4096, &cpu());
}

#[test]
fn flash_over_1025_tokens_through_wgpu() {
    if let Some(held) = wgpu() {
        flash_over(1025, &held.device);
    }
}
