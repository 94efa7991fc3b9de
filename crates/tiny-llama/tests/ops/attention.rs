//! Causal attention: every version, apart and packed.

use burn::tensor::Device;
use protocol::config::{Attention as Version, KvLayout};
use tiny_llama::ops::attention::Attention;

use crate::ops::case::{Case, run};
use tiny_llama::ops::format::Format;

use crate::ops::formula::{self, Heads};
use crate::ops::matrix::Matrix;

/// The attention of these sizes in one version.
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

/// Every version that claims the same mathematics, the composed one first.
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

/// q, k and v.
fn inputs(batch: usize, sizes: Heads, scale: f64) -> [Matrix; 3] {
    let (n, (wide, narrow)) = (batch * sizes.context, sizes.widths());
    [
        Matrix::random(1, n, wide, scale),
        Matrix::random(2, n, narrow, scale),
        Matrix::random(3, n, narrow, 1.0),
    ]
}

/// Batch, context, heads, key and value heads, head width: one token; sizes that are no multiple of a tile; groups of 3;
/// an odd head width; a head wider than a tile; a preset's sizes.
const SIZES: [[usize; 5]; 6] = [
    [1, 1, 1, 1, 2],
    [3, 1, 3, 1, 6],
    [2, 7, 3, 3, 10],
    [1, 33, 3, 1, 5],
    [1, 35, 2, 1, 66],
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

fn apart(device: &Device) {
    for all in SIZES {
        let (batch, sizes) = (all[0], sizes(all));
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
        let (batch, sizes) = (all[0], sizes(all));
        let (wide, narrow) = sizes.widths();
        let [q, k, v] = inputs(batch, sizes, 2.0);
        Case {
            name: &format!("packed, batch {batch}, {sizes:?}"),
            inputs: [Matrix::beside(&[&q, &k, &v])],
            dy: Matrix::random(5, batch * sizes.context, wide, 1.0),
            formula: &|[x]| {
                let part = |from, width| formula::exact(x.rows, width, |r, c| x.at(r, from + c));
                let (k, v) = (part(wide, narrow), part(wide + narrow, narrow));
                formula::attention(&part(0, wide), &k, &v, sizes)
            },
        }
        .check(device, &versions(sizes));
    }
}

/// Attention is causal: with other keys and values from position 5 on, the rows before it are the same to the last bit,
/// and the first row is the first value.
fn attention_is_causal(device: &Device) {
    let sizes = sizes([1, 9, 3, 3, 6]);
    let (before, mut after) = (inputs(1, sizes, 2.0), inputs(1, sizes, 2.0));
    for x in &mut after[1..] {
        for value in &mut x.values[5 * 18..] {
            *value = 50.0 - *value;
        }
    }
    let dy = Matrix::from_function(9, 18, |_, _| 1.0);
    for op in versions(sizes) {
        let what = format!("{:?}, {:?}", op.version, op.layout);
        let one = run(device, op.clone(), &before, &dy).output;
        let two = run(device, op, &after, &dy).output;
        assert_eq!(one.values[..5 * 18], two.values[..5 * 18], "{what}");
        assert_ne!(one.values[5 * 18..], two.values[5 * 18..], "{what}");
        let first = |m: &Matrix| Matrix::from_function(1, 18, |_, c| m.at(0, c));
        first(&one).near(&first(&before[2]), 1e-6, &what);
    }
}

/// Scores up to ±1e4, all whole numbers and so exact: rows with one dominant score, a row of ties, a row in which every
/// visible score is −1e4.
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
        let what = format!("{:?}, {:?}", op.version, op.layout);
        let found = run(device, op, &[q.clone(), k.clone(), v.clone()], &dy);
        found.output.near(&want, 1e-5, &what);
        for (gradient, want) in found.gradients.iter().zip(&slopes) {
            let gradient = gradient.as_ref().expect("a gradient");
            // Flash keeps a row's maximum and sum as one number: at 1e4 its neighbours are 1e-3 away, and so
            // probabilities computed from it again may be off by 5e-4.
            gradient.near(want, 1e-3, &what);
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
    let off = found.values.iter().zip(&want.values);
    assert!(off.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max) > 0.1 * want.largest());
}

crate::ops::on_both_devices!(
    apart,
    packed,
    attention_is_causal,
    scores_of_ten_thousand,
    strides_that_are_ignored_are_wrong,
);
