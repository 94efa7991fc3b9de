//! The backward pass of `attention`: scores are computed again tile by tile from the saved logarithms.
//! Two kernels of one shape, since queries and keys change roles: each owns rows and walks over the other side.

use super::attention_tile::{
    Heads, Tile, accumulate, clear, load_other, load_own, products, read_vector, write_vector,
};
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
    let tile = Tile::choose(sizes.head_dim, dout, shared_vectors);
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
struct Layout {
    q: (usize, usize),
    k: (usize, usize),
    v: (usize, usize),
    dq: (usize, usize),
    dk: (usize, usize),
    dv: (usize, usize),
}

/// Two own sides, two other sides, two tiles of weights, one vector per invocation for reductions, two values per column.
fn shared_vectors(tile: &Tile) -> usize {
    2 * tile.own_side()
        + 2 * tile.other_side()
        + 2 * tile.scores()
        + tile.threads()
        + tile.columns().div_ceil(2)
}

/// Where row 0 of a sequence's head begins.
#[cube]
fn start_of(
    batch: usize,
    head: usize,
    #[comptime] at: (usize, usize),
    #[comptime] sizes: Heads,
) -> usize {
    batch * comptime!(sizes.context * at.1) + head * sizes.head_dim + comptime!(at.0)
}

/// Owns queries, walks over keys and values up to the diagonal. Also writes δ for the second kernel.
#[cube(launch_unchecked)]
fn flash_attention_backward_q<N: Size>(
    q: &[Vector<f32, N>],
    k: &[Vector<f32, N>],
    v: &[Vector<f32, N>],
    out: &[Vector<f32, N>],
    dout: &[Vector<f32, N>],
    lse: &[f32],
    delta: &mut [f32],
    dq: &mut [Vector<f32, N>],
    tiles: usize,
    scale: f32,
    #[comptime] layout: Layout,
    #[comptime] sizes: Heads,
    #[comptime] tile: Tile,
) {
    let sequences = comptime!(sizes.batch * sizes.heads);
    if CUBE_POS >= tiles * sequences {
        terminate!();
    }
    let own_dout = comptime!(tile.own_side());
    let keys = comptime!(2 * own_dout);
    let values = comptime!(keys + tile.other_side());
    let weights = comptime!(values + tile.other_side());
    let scratch = comptime!(weights + tile.scores());
    let mut shared = Shared::<[Float4]>::new_slice(comptime!(scratch + tile.threads()));

    let first = (tiles - 1 - CUBE_POS / sequences) * comptime!(tile.rows());
    let batch = CUBE_POS % sequences / sizes.heads;
    let head = CUBE_POS % sequences % sizes.heads;
    let kv_head = head / comptime!(sizes.group());
    let context = sizes.context;
    let y = UNIT_POS as usize % tile.row_groups;
    let x = UNIT_POS as usize / tile.row_groups;
    let width = comptime!(sizes.heads * sizes.head_dim);
    let owned = comptime!(tile.owned());

    let q_start = start_of(batch, head, layout.q, sizes);
    let k_start = start_of(batch, kv_head, layout.k, sizes);
    let v_start = start_of(batch, kv_head, layout.v, sizes);
    let out_start = start_of(batch, head, comptime!((0, width)), sizes);
    load_own::<N>(
        q,
        &mut shared,
        0usize,
        q_start,
        layout.q.1,
        first,
        context,
        scale,
        tile,
    );
    load_own::<N>(
        dout,
        &mut shared,
        own_dout,
        out_start,
        width,
        first,
        context,
        1.0f32,
        tile,
    );

    // δ: each invocation its vectors of its four rows, then the sum over x.
    let mut logs = Float4::new(0.0);
    let mut part = Float4::new(0.0);
    #[unroll]
    for i in 0..4usize {
        let row = first + y * 4 + i;
        if row < context {
            logs.insert(i, lse[(batch * context + row) * sizes.heads + head]);
            let mut dot = 0.0f32;
            #[unroll]
            for j in 0..owned {
                let vector = x + comptime!(j * 8);
                if vector < comptime!(tile.vectors()) {
                    let start = out_start + row * width;
                    let product = read_vector::<N>(out, start, vector, tile)
                        * read_vector::<N>(dout, start, vector, tile);
                    dot += product.extract(0usize)
                        + product.extract(1usize)
                        + product.extract(2usize)
                        + product.extract(3usize);
                }
            }
            part.insert(i, dot);
        }
    }
    shared[UNIT_POS as usize + scratch] = part;
    sync_cube();
    let mut deltas = shared[scratch + y];
    #[unroll]
    for i in 1..8usize {
        deltas += shared[comptime!(i * tile.row_groups + scratch) + y];
    }
    if x == 0 {
        #[unroll]
        for i in 0..4usize {
            let row = first + y * 4 + i;
            if row < context {
                delta[(batch * context + row) * sizes.heads + head] = deltas.extract(i);
            }
        }
    }

    let mut acc = Array::<Float4>::new(comptime!(4 * owned));
    clear(&mut acc, comptime!(4 * owned));
    let mut scores = Array::<Float4>::new(tile.columns_each);
    let mut slopes = Array::<Float4>::new(tile.columns_each);
    let end = min(first + comptime!(tile.rows()), context);
    let mut key = 0usize;
    while key < end {
        load_other::<N>(
            k,
            &mut shared,
            keys,
            k_start,
            layout.k.1,
            key,
            context,
            tile,
        );
        load_other::<N>(
            v,
            &mut shared,
            values,
            v_start,
            layout.v.1,
            key,
            context,
            tile,
        );
        sync_cube();
        products(&shared, &mut scores, 0usize, keys, x, y, tile);
        products(&shared, &mut slopes, own_dout, values, x, y, tile);
        #[unroll]
        for j in 0..tile.columns_each {
            let column = key + x + comptime!(j * 8);
            let mut slope = (scores[j] - logs).exp() * (slopes[j] - deltas) * Float4::new(scale);
            #[unroll]
            for i in 0..4usize {
                if column > first + y * 4 + i {
                    slope.insert(i, 0.0);
                }
            }
            shared[(x + comptime!(j * 8)) * tile.row_groups + y + weights] = slope;
        }
        sync_cube();
        accumulate(&shared, &mut acc, weights, keys, x, y, tile);
        sync_cube();
        key += comptime!(tile.columns());
    }
    write_rows::<N>(
        dq,
        &acc,
        start_of(batch, head, layout.dq, sizes),
        layout.dq.1,
        first,
        context,
        x,
        y,
        tile,
    );
}

/// Owns keys and values, walks over the queries from the diagonal on, for every query head of the group.
#[cube(launch_unchecked)]
fn flash_attention_backward_kv<N: Size>(
    q: &[Vector<f32, N>],
    k: &[Vector<f32, N>],
    v: &[Vector<f32, N>],
    dout: &[Vector<f32, N>],
    lse: &[f32],
    delta: &[f32],
    dk: &mut [Vector<f32, N>],
    dv: &mut [Vector<f32, N>],
    tiles: usize,
    scale: f32,
    #[comptime] layout: Layout,
    #[comptime] sizes: Heads,
    #[comptime] tile: Tile,
) {
    let sequences = comptime!(sizes.batch * sizes.kv_heads);
    if CUBE_POS >= tiles * sequences {
        terminate!();
    }
    let own_values = comptime!(tile.own_side());
    let queries = comptime!(2 * own_values);
    let douts = comptime!(queries + tile.other_side());
    let weights = comptime!(douts + tile.other_side());
    let slopes_at = comptime!(weights + tile.scores());
    let mut shared = Shared::<[Float4]>::new_slice(comptime!(slopes_at + tile.scores()));
    let mut rows = Shared::<[f32]>::new_slice(comptime!(2 * tile.columns()));

    // The first keys have the most queries after them: they start first.
    let first = CUBE_POS / sequences * comptime!(tile.rows());
    let batch = CUBE_POS % sequences / sizes.kv_heads;
    let kv_head = CUBE_POS % sequences % sizes.kv_heads;
    let context = sizes.context;
    let y = UNIT_POS as usize % tile.row_groups;
    let x = UNIT_POS as usize / tile.row_groups;
    let width = comptime!(sizes.heads * sizes.head_dim);
    let owned = comptime!(tile.owned());

    let k_start = start_of(batch, kv_head, layout.k, sizes);
    let v_start = start_of(batch, kv_head, layout.v, sizes);
    load_own::<N>(
        k,
        &mut shared,
        0usize,
        k_start,
        layout.k.1,
        first,
        context,
        scale,
        tile,
    );
    load_own::<N>(
        v,
        &mut shared,
        own_values,
        v_start,
        layout.v.1,
        first,
        context,
        1.0f32,
        tile,
    );

    let mut acc_k = Array::<Float4>::new(comptime!(4 * owned));
    let mut acc_v = Array::<Float4>::new(comptime!(4 * owned));
    clear(&mut acc_k, comptime!(4 * owned));
    clear(&mut acc_v, comptime!(4 * owned));
    let mut scores = Array::<Float4>::new(tile.columns_each);
    let mut slopes = Array::<Float4>::new(tile.columns_each);
    for member in 0..comptime!(sizes.group()) {
        let head = kv_head * comptime!(sizes.group()) + member;
        let q_start = start_of(batch, head, layout.q, sizes);
        let out_start = start_of(batch, head, comptime!((0, width)), sizes);
        let mut query = first / comptime!(tile.columns()) * comptime!(tile.columns());
        while query < context {
            load_other::<N>(
                q,
                &mut shared,
                queries,
                q_start,
                layout.q.1,
                query,
                context,
                tile,
            );
            load_other::<N>(
                dout,
                &mut shared,
                douts,
                out_start,
                width,
                query,
                context,
                tile,
            );
            let unit = UNIT_POS as usize;
            if unit < comptime!(tile.columns()) {
                // A row past the end has zeros for dout and δ, which make its gradients zero.
                let mut log = 0.0f32;
                let mut dot = 0.0f32;
                if query + unit < context {
                    let at = (batch * context + query + unit) * sizes.heads + head;
                    log = lse[at];
                    dot = delta[at];
                }
                rows[unit] = log;
                rows[unit + comptime!(tile.columns())] = dot;
            }
            sync_cube();
            products(&shared, &mut scores, 0usize, queries, x, y, tile);
            products(&shared, &mut slopes, own_values, douts, x, y, tile);
            #[unroll]
            for j in 0..tile.columns_each {
                let column = x + comptime!(j * 8);
                let log = Float4::new(rows[column]);
                let dot = Float4::new(rows[column + comptime!(tile.columns())]);
                let mut weight = (scores[j] - log).exp();
                #[unroll]
                for i in 0..4usize {
                    if first + y * 4 + i > query + column {
                        weight.insert(i, 0.0);
                    }
                }
                shared[column * tile.row_groups + y + weights] = weight;
                shared[column * tile.row_groups + y + slopes_at] =
                    weight * (slopes[j] - dot) * Float4::new(scale);
            }
            sync_cube();
            accumulate(&shared, &mut acc_v, weights, douts, x, y, tile);
            accumulate(&shared, &mut acc_k, slopes_at, queries, x, y, tile);
            sync_cube();
            query += comptime!(tile.columns());
        }
    }
    write_rows::<N>(
        dk,
        &acc_k,
        start_of(batch, kv_head, layout.dk, sizes),
        layout.dk.1,
        first,
        context,
        x,
        y,
        tile,
    );
    write_rows::<N>(
        dv,
        &acc_v,
        start_of(batch, kv_head, layout.dv, sizes),
        layout.dv.1,
        first,
        context,
        x,
        y,
        tile,
    );
}

#[cube]
fn write_rows<N: Size>(
    target: &mut [Vector<f32, N>],
    acc: &Array<Float4>,
    start: usize,
    stride: usize,
    first: usize,
    end: usize,
    x: usize,
    y: usize,
    #[comptime] tile: Tile,
) {
    let owned = comptime!(tile.owned());
    #[unroll]
    for i in 0..4usize {
        let row = first + y * 4 + i;
        if row < end {
            #[unroll]
            for j in 0..owned {
                let vector = x + comptime!(j * 8);
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
