//! Rotary position embedding.

use burn::tensor::Device;
use protocol::config::ROPE_THETA;
use tiny_llama::ops::format::Format;
use tiny_llama::ops::rope::{Rope, tables};

use crate::ops::case::Case;
use crate::ops::formula;
use crate::ops::matrix::Matrix;

fn versions(context: usize, head_dim: usize, rotated: usize, device: &Device) -> [Rope; 2] {
    let (cos, sin) = tables(context, head_dim, ROPE_THETA);
    let table = |values: Vec<f32>| {
        Matrix::from_function(context, head_dim / 2, |t, i| {
            f64::from(values[t * (head_dim / 2) + i])
        })
        .on(&device.clone().inner())
    };
    let tables = [cos, sin].map(table);
    [false, true].map(|fused| Rope {
        tables: tables.clone(),
        context,
        head_dim,
        rotated,
        fused,
        format: Format::Full,
    })
}

fn heads_are_rotated_and_other_columns_are_copied(device: &Device) {
    // Batch, context, head width, rotated heads, and columns that are not rotated.
    for [b, t, dh, h, rest] in [
        [1, 1, 2, 1, 0],
        [2, 7, 6, 3, 0],
        [2, 7, 6, 4, 6],
        [1, 33, 34, 3, 34],
        [3, 64, 32, 6, 64],
    ] {
        let n = b * t;
        let rotated = h * dh;
        Case {
            name: &format!("{b} sequences of {t}, {h} heads of {dh}, {rest} more columns"),
            inputs: [Matrix::random(1, n, rotated + rest, 1.0)],
            dy: Matrix::random(2, n, rotated + rest, 1.0),
            formula: &|[x]| formula::rope(x, t, dh, rotated),
        }
        .check(device, &versions(t, dh, rotated, device));
    }
}

crate::ops::on_both_devices!(heads_are_rotated_and_other_columns_are_copied);
