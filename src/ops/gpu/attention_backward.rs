//! The backward pass of `attention`: scores are computed again tile by tile from the saved logarithms.
//! Two kernels of one shape, since queries and keys change roles: each owns rows and walks over the other side. They are in
//! `attention_backward_q` and `attention_backward_kv`.

use super::attention_backward_kv::{self, flash_attention_backward_kv};
use super::attention_backward_q::{self, flash_attention_backward_q};
use super::attention_tile::{Heads, Place, Tile, write_vector};
use super::{Columns, Float4, arg, empty, groups, vector_width};
use burn::cubecl::{self, prelude::*};
use burn_cubecl::tensor::CubeTensor;

/// What the forward pass read and returned.
#[derive(Clone, Copy)]
pub struct Saved<'a> {
    pub q: Columns<'a>,
    pub k: Columns<'a>,
    pub v: Columns<'a>,
    /// `[N, H·dh]`
    pub out: &'a CubeTensor,
    /// `[N, H]`
    pub lse: &'a CubeTensor,
}

/// With P = exp(q·kᵀ/√dh − lse), dP = dout·vᵀ, δ = rowsum(dout∘out), dS = P∘(dP − δ)/√dh:
/// dq = dS·k, dk = dSᵀ·q, dv = Pᵀ·dout, the last two summed over the query heads of a group.
/// Each gradient is written to the columns given for it, in the layout of what it is the gradient of. 2 launches.
pub fn backward_into(dout: &CubeTensor, saved: Saved, [dq, dk, dv]: [Columns; 3], sizes: Heads) {
    let Saved { q, k, v, out, lse } = saved;
    let delta = empty(dout, [sizes.batch * sizes.context, sizes.heads]);
    let all = [q, k, v, dq, dk, dv];
    let mut alignment = vec![sizes.head_dim];
    alignment.extend(
        all.iter()
            .flat_map(|columns| [columns.offset, columns.stride]),
    );
    let lanes = vector_width(&alignment);
    let layout = Layout {
        q: (q.offset, q.stride),
        k: (k.offset, k.stride),
        v: (v.offset, v.stride),
        dq: (dq.offset, dq.stride),
        dk: (dk.offset, dk.stride),
        dv: (dv.offset, dv.stride),
    };
    let tile = Tile::choose(&sizes, dout, |tile| {
        attention_backward_q::shared_vectors(tile).max(attention_backward_kv::shared_vectors(tile))
    });
    let tiles = sizes.context.div_ceil(tile.rows());
    let dim = CubeDim::new_1d(tile.threads() as u32);
    unsafe {
        flash_attention_backward_q::launch_unchecked(
            &dout.client,
            groups(tiles * sizes.batch * sizes.heads),
            dim,
            lanes,
            q.arg(),
            k.arg(),
            v.arg(),
            arg(out),
            arg(dout),
            arg(lse),
            arg(&delta),
            dq.arg(),
            tiles,
            sizes.scale(),
            layout,
            sizes,
            tile,
        );
        flash_attention_backward_kv::launch_unchecked(
            &dout.client,
            groups(tiles * sizes.batch * sizes.kv_heads),
            dim,
            lanes,
            q.arg(),
            k.arg(),
            v.arg(),
            arg(dout),
            arg(lse),
            arg(&delta),
            dk.arg(),
            dv.arg(),
            tiles,
            sizes.scale(),
            layout,
            sizes,
            tile,
        );
    }
}

/// [`backward_into`] three new tensors, shaped as q `[N, H·dh]`, k and v `[N, KV·dh]`.
pub fn backward(dout: &CubeTensor, saved: Saved, sizes: Heads) -> [CubeTensor; 3] {
    let rows = sizes.batch * sizes.context;
    let (wide, narrow) = (
        sizes.heads * sizes.head_dim,
        sizes.kv_heads * sizes.head_dim,
    );
    let gradients = [wide, narrow, narrow].map(|width| empty(dout, [rows, width]));
    let [dq, dk, dv] = &gradients;
    let columns = [
        Columns::all(dq, wide),
        Columns::all(dk, narrow),
        Columns::all(dv, narrow),
    ];
    backward_into(dout, saved, columns, sizes);
    gradients
}

/// [`backward_into`] one new tensor `[N, (H + 2·KV)·dh]` with dq, dk and dv side by side.
pub fn backward_packed(dout: &CubeTensor, saved: Saved, sizes: Heads) -> CubeTensor {
    let rows = sizes.batch * sizes.context;
    let (wide, narrow) = (
        sizes.heads * sizes.head_dim,
        sizes.kv_heads * sizes.head_dim,
    );
    let width = wide + 2 * narrow;
    let packed = empty(dout, [rows, width]);
    let columns = [0, wide, wide + narrow].map(|offset| Columns::at(&packed, offset, width));
    backward_into(dout, saved, columns, sizes);
    packed
}

/// Offset and row stride of every operand, fixed when the kernel is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    pub q: (usize, usize),
    pub k: (usize, usize),
    pub v: (usize, usize),
    pub dq: (usize, usize),
    pub dk: (usize, usize),
    pub dv: (usize, usize),
}

/// Where row 0 of a sequence's head begins.
#[cube]
pub fn start_of(
    batch: usize,
    head: usize,
    #[comptime] at: (usize, usize),
    #[comptime] sizes: Heads,
) -> usize {
    batch * comptime!(sizes.context * at.1) + head * sizes.head_dim + comptime!(at.0)
}

/// Writes the first team's accumulated rows, `[rows, head_dim]` from `start` on.
#[cube]
pub fn write_rows<N: Size>(
    target: &mut [Vector<f32, N>],
    acc: &Array<Float4>,
    start: usize,
    stride: usize,
    first: usize,
    end: usize,
    place: &Place,
    #[comptime] tile: Tile,
) {
    let owned = comptime!(tile.owned());
    #[unroll]
    for i in 0..4usize {
        let row = first + place.y * 4 + i;
        if row < end && place.team == 0 {
            #[unroll]
            for j in 0..owned {
                let vector = place.x + comptime!(j * 8);
                if vector < comptime!(tile.vectors()) {
                    write_vector::<N>(
                        target,
                        start + row * stride,
                        vector,
                        acc[comptime!(i * owned + j)],
                        tile,
                    );
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::attention::forward;
    use super::super::check::{self, Device};
    use super::*;

    /// out, dq, dk, dv of packed rows, in f64.
    fn reference(qkv: &[f32], dout: &[f32], s: Heads) -> [Vec<f32>; 4] {
        let (h, kv, dh, t) = (s.heads, s.kv_heads, s.head_dim, s.context);
        let width = (h + 2 * kv) * dh;
        let mut out = vec![0.0; dout.len()];
        let mut grads = [h, kv, kv].map(|n| vec![0.0; s.batch * t * n * dh]);
        let scale = 1.0 / (dh as f64).sqrt();
        for (b, head, i) in
            (0..s.batch).flat_map(|b| (0..h).flat_map(move |x| (0..t).map(move |i| (b, x, i))))
        {
            let kvh = head / (h / kv);
            let at = |row: usize, column: usize| &qkv[(b * t + row) * width + column * dh..][..dh];
            let (q, o) = (at(i, head), (b * t + i) * h * dh + head * dh);
            let dot = |a: &[f32], b: &[f32]| -> f64 {
                a.iter().zip(b).map(|(x, y)| f64::from(x * y)).sum()
            };
            let scores: Vec<f64> = (0..=i).map(|j| dot(q, at(j, h + kvh)) * scale).collect();
            let top = scores.iter().copied().fold(f64::MIN, f64::max);
            let total: f64 = scores.iter().map(|x| (x - top).exp()).sum();
            let p: Vec<f64> = scores.iter().map(|x| (x - top).exp() / total).collect();
            let dp: Vec<f64> = (0..=i)
                .map(|j| dot(&dout[o..][..dh], at(j, h + kv + kvh)))
                .collect();
            let mean: f64 = p.iter().zip(&dp).map(|(a, b)| a * b).sum();
            for j in 0..=i {
                let ds = p[j] * (dp[j] - mean) * scale;
                let to = ((b * t + j) * kv + kvh) * dh;
                for d in 0..dh {
                    out[o + d] += (p[j] * f64::from(at(j, h + kv + kvh)[d])) as f32;
                    grads[0][o + d] += (ds * f64::from(at(j, h + kvh)[d])) as f32;
                    grads[1][to + d] += (ds * f64::from(q[d])) as f32;
                    grads[2][to + d] += (p[j] * f64::from(dout[o + d])) as f32;
                }
            }
        }
        let [dq, dk, dv] = grads;
        [out, dq, dk, dv]
    }

    #[test]
    fn packed_and_separate_agree_with_the_formula() {
        let Some(device) = Device::any() else { return };
        for (batch, context, heads, kv_heads, head_dim) in [
            (2, 1, 2, 1, 4),
            (2, 7, 4, 2, 8),
            (1, 70, 2, 2, 64),
            (1, 33, 3, 1, 6),
            (1, 40, 2, 1, 128),
            (2, 129, 4, 2, 32),
        ] {
            let sizes = Heads {
                batch,
                context,
                heads,
                kv_heads,
                head_dim,
            };
            let rows = batch * context;
            let widths = [heads * head_dim, kv_heads * head_dim, kv_heads * head_dim];
            let width: usize = widths.iter().sum();
            let offsets = [0, widths[0], widths[0] + widths[1]];
            let qkv: Vec<f32> = check::random(rows * width, 9)
                .iter()
                .map(|x| x * 2.0)
                .collect();
            let dout = check::random(rows * widths[0], 10);
            let [out, dq, dk, dv] = reference(&qkv, &dout, sizes);
            let packed = device.tensor(&qkv, [rows, width]);
            let gdout = device.tensor(&dout, [rows, widths[0]]);
            let parts = [0, 1, 2].map(|i| {
                let columns: Vec<f32> = qkv
                    .chunks(width)
                    .flat_map(|row| row[offsets[i]..][..widths[i]].to_vec())
                    .collect();
                device.tensor(&columns, [rows, widths[i]])
            });
            let as_packed = offsets.map(|offset| Columns::at(&packed, offset, width));
            let as_parts = [0, 1, 2].map(|i| Columns::all(&parts[i], widths[i]));
            for (name, [q, k, v]) in [("packed", as_packed), ("separate", as_parts)] {
                let name = |what: &str| format!("flash {name} {sizes:?} {what}");
                let (gout, lse) = forward(q, k, v, sizes);
                check::close(&name("out"), &device.read(&gout), &out, 2e-6);
                let saved = Saved {
                    q,
                    k,
                    v,
                    out: &gout,
                    lse: &lse,
                };
                let [gq, gk, gv] = backward(&gdout, saved, sizes);
                check::close(&name("dq"), &device.read(&gq), &dq, 1e-5);
                check::close(&name("dk"), &device.read(&gk), &dk, 1e-5);
                check::close(&name("dv"), &device.read(&gv), &dv, 1e-5);
                let together = device.read(&backward_packed(&gdout, saved, sizes));
                let split = |i: usize| -> Vec<f32> {
                    together
                        .chunks(width)
                        .flat_map(|row| row[offsets[i]..][..widths[i]].to_vec())
                        .collect()
                };
                for (i, want) in [&dq, &dk, &dv].into_iter().enumerate() {
                    check::close(&name("packed gradient"), &split(i), want, 1e-5);
                }
            }
        }
    }

    #[test]
    fn a_long_context_fits() {
        let Some(device) = Device::any() else { return };
        let sizes = Heads {
            batch: 1,
            context: 4096,
            heads: 1,
            kv_heads: 1,
            head_dim: 4,
        };
        let v = check::random(4096 * 4, 3);
        let zeros = device.tensor(&vec![0.0; 4096 * 4], [4096, 4]);
        let gv = device.tensor(&v, [4096, 4]);
        let all = |tensor| Columns::all(tensor, 4);
        let (out, _) = forward(all(&zeros), all(&zeros), all(&gv), sizes);
        let mut sums = [0.0f64; 4];
        let want: Vec<f32> = (0..4096 * 4)
            .map(|i| {
                sums[i % 4] += f64::from(v[i]);
                (sums[i % 4] / (i / 4 + 1) as f64) as f32
            })
            .collect();
        check::close(
            "flash, equal scores, 4096 rows",
            &device.read(&out),
            &want,
            1e-5,
        );
    }
}
