//! Causal attention: every version, with q, k and v in three tensors and in one.

use burn::tensor::Device;
use protocol::config::{Attention as Version, KvLayout};
use tiny_llama::ops::attention::Attention;

use tiny_llama::ops::format::Format;

use crate::ops::case::{Case, run};
use crate::ops::formula::{self, Heads};
use crate::ops::matrix::Matrix;

/// Returns the attention of these sizes in one version.
pub(super) fn op(sizes: Heads, version: Version, layout: KvLayout) -> Attention {
    let Heads {
        context,
        heads,
        kv_heads,
        head_dim,
    } = sizes;
    Attention {
        context,
        heads,
        kv_heads,
        head_dim,
        version,
        layout,
        format: Format::Full,
        mask: None,
        rope: None,
    }
}

/// Returns every version that must give one result, the composed one first.
fn versions(sizes: Heads) -> Vec<Attention> {
    [
        (Version::Composed, KvLayout::Contiguous),
        (Version::Flash, KvLayout::Contiguous),
        (Version::Kernel, KvLayout::Contiguous),
        (Version::Kernel, KvLayout::Strided),
        (Version::Composed, KvLayout::Strided),
    ]
    .map(|(version, layout)| op(sizes, version, layout))
    .into()
}

/// Returns q, k and v; the values of q and k are up to `scale`.
fn inputs(batch: usize, sizes: Heads, scale: f64) -> [Matrix; 3] {
    let (n, (wide, narrow)) = (batch * sizes.context, sizes.widths());
    [
        Matrix::random(1, n, wide, scale),
        Matrix::random(2, n, narrow, scale),
        Matrix::random(3, n, narrow, 1.0),
    ]
}

/// Batch, context, heads, key and value heads, head width.
const SIZES: [[usize; 5]; 6] = [
    // One token.
    [1, 1, 1, 1, 2],
    [3, 1, 3, 1, 6],
    // No multiples of a tile.
    [2, 7, 3, 3, 10],
    // Groups of three query heads, and an odd head width.
    [1, 33, 3, 1, 5],
    // A head wider than a tile.
    [1, 35, 2, 1, 66],
    // A preset's sizes.
    [2, 40, 4, 2, 32],
];

fn sizes([_, context, heads, kv_heads, head_dim]: [usize; 5]) -> Heads {
    Heads {
        context,
        heads,
        kv_heads,
        head_dim,
    }
}

fn separate(device: &Device) {
    for all in SIZES {
        let batch = all[0];
        let sizes = sizes(all);
        Case {
            name: &format!("batch {batch}, {sizes:?}"),
            inputs: inputs(batch, sizes, 2.0),
            dy: Matrix::random(4, batch * sizes.context, sizes.widths().0, 1.0),
            formula: &|[q, k, v]| formula::attention(q, k, v, sizes),
        }
        .check(device, &versions(sizes));
    }
}

fn packed(device: &Device) {
    for all in SIZES {
        let batch = all[0];
        let sizes = sizes(all);
        let (wide, narrow) = sizes.widths();
        let [q, k, v] = inputs(batch, sizes, 2.0);
        Case {
            name: &format!("packed, batch {batch}, {sizes:?}"),
            inputs: [Matrix::beside(&[&q, &k, &v])],
            dy: Matrix::random(5, batch * sizes.context, wide, 1.0),
            formula: &|[x]| {
                let part = |from, width| formula::exact(x.rows, width, |r, c| x.at(r, from + c));
                let k = part(wide, narrow);
                let v = part(wide + narrow, narrow);
                formula::attention(&part(0, wide), &k, &v, sizes)
            },
        }
        .check(device, &versions(sizes));
    }
}

/// Other keys and values from position 5 on change no bit of the rows before it, and the first row is the first value.
fn attention_is_causal(device: &Device) {
    let sizes = sizes([1, 9, 3, 3, 6]);
    let original = inputs(1, sizes, 2.0);
    let mut changed = original.clone();
    for x in &mut changed[1..] {
        for value in &mut x.values[5 * 18..] {
            *value = 50.0 - *value;
        }
    }
    let dy = Matrix::from_function(9, 18, |_, _| 1.0);
    for op in versions(sizes) {
        let name = format!("{:?}, {:?}", op.version, op.layout);
        let before = run(device, op.clone(), &original, &dy).output;
        let after = run(device, op, &changed, &dy).output;
        // A row has 18 values.
        assert_eq!(before.values[..5 * 18], after.values[..5 * 18], "{name}");
        assert_ne!(before.values[5 * 18..], after.values[5 * 18..], "{name}");
        let first_row = |m: &Matrix| Matrix::from_function(1, 18, |_, c| m.at(0, c));
        first_row(&before).assert_near(&first_row(&original[2]), 1e-6, &name);
    }
}

/// Scores are whole numbers up to ±1e4, and so exact. There are rows with one dominant score, a row of ties, and rows in which every visible
/// score is −1e4.
fn scores_of_ten_thousand(device: &Device) {
    let sizes = sizes([1, 9, 1, 1, 4]);
    let q = Matrix::from_function(9, 4, |_, c| if c == 0 { 200.0 } else { 0.0 });
    let k = Matrix::from_function(9, 4, |row, c| match (row, c) {
        (0 | 1, 0) => -100.0,
        (4 | 5, 0) => 100.0,
        (7, 0) => 99.0,
        _ => 0.0,
    });
    let v = Matrix::random(6, 9, 4, 1.0);
    let dy = Matrix::random(7, 9, 4, 1.0);
    let want = formula::attention(&q, &k, &v, sizes);
    let slopes = formula::attention_backward(&q, &k, &v, &dy, sizes);
    for op in versions(sizes) {
        let name = format!("{:?}, {:?}", op.version, op.layout);
        let found = run(device, op, &[q.clone(), k.clone(), v.clone()], &dy);
        found.output.assert_near(&want, 1e-5, &name);
        for (gradient, want) in found.gradients.iter().zip(&slopes) {
            let gradient = gradient.as_ref().expect("a gradient");
            // Flash attention keeps the maximum and the sum of a row as one number. At 1e4, neighbouring f32 are 1e-3 apart, so
            // probabilities that are computed from this number again may be off by 5e-4.
            gradient.assert_near(want, 1e-3, &name);
        }
    }
}

/// The fault of stage 2: reading a strided view as contiguous gives finite but wrong numbers.
fn strides_that_are_ignored_are_wrong(device: &Device) {
    let sizes = sizes([1, 7, 3, 3, 10]);
    let [q, k, v] = inputs(1, sizes, 2.0);
    let want = formula::attention(&q, &k, &v, sizes);
    let assumed = op(sizes, Version::Kernel, KvLayout::Assumed);
    let dy = Matrix::from_function(7, 30, |_, _| 1.0);
    let found = run(device, assumed, &[q, k, v], &dy).output;
    assert!(found.values.iter().all(|x| x.is_finite()));
    let off = found
        .values
        .iter()
        .zip(&want.values)
        .map(|(a, b)| (a - b).abs())
        .fold(0.0, f64::max);
    assert!(off > 0.1 * want.largest(), "{off:e}");
}

crate::ops::on_both_devices!(
    separate,
    packed,
    attention_is_causal,
    scores_of_ten_thousand,
    strides_that_are_ignored_are_wrong,
);
