//! The backward pass of `attention`: scores are computed again tile by tile from the saved logarithms.
//! Two kernels of one shape, since queries and keys change roles: each owns rows and walks over the other side.

use super::attention_tile::{
    Lines, Place, Tile, accumulate, add_teams, load_other, load_own, products, read_vector,
    write_vector, zeros,
};
use super::{Float4, arg, empty, groups, horizontal_sum, vector_width};
use crate::ops::shapes::{Columns, Heads, Rows};
use burn::cubecl::{self, prelude::*};
use burn_cubecl::tensor::CubeTensor;

/// With P = exp(q·kᵀ/√dh − lse), dP = dout·vᵀ, δ = rowsum(dout∘out), dS = P∘(dP − δ)/√dh:
/// dq = dS·k, dk = dSᵀ·q, dv = Pᵀ·dout, the last two summed over the query heads of a group.
/// `rows`, out `[N, H·dh]` and lse `[N, H]` are what the forward pass read and returned. Returns the gradients in the form of
/// `rows`. 2 launches.
pub fn backward(
    dout: &CubeTensor,
    rows: &Rows<CubeTensor>,
    out: &CubeTensor,
    lse: &CubeTensor,
    sizes: Heads,
) -> Rows<CubeTensor> {
    let gradients = rows
        .as_ref()
        .map(|x| empty::<2>(dout, x.meta.shape().dims()));
    let [(q, of_q), (k, of_k), (v, of_v)] = rows.columns(&sizes);
    let [dq, dk, dv] = gradients.columns(&sizes).map(|(buffer, _)| buffer);
    let delta = empty(dout, [sizes.rows(), sizes.heads]);
    let columns = [of_q, of_k, of_v];
    let lanes = vector_width(&[sizes.head_dim]);
    let tile = Tile::choose(&sizes, dout, |tile| q_vectors(tile).max(kv_vectors(tile)));
    let tiles = sizes.context.div_ceil(tile.rows());
    let dim = CubeDim::new_1d(tile.threads() as u32);
    unsafe {
        flash_attention_backward_q::launch_unchecked(
            &dout.client,
            groups(tiles * sizes.batch * sizes.heads),
            dim,
            lanes,
            arg(q),
            arg(k),
            arg(v),
            arg(out),
            arg(dout),
            arg(lse),
            arg(&delta),
            arg(dq),
            sizes.scale(),
            columns,
            sizes,
            tile,
        );
        flash_attention_backward_kv::launch_unchecked(
            &dout.client,
            groups(tiles * sizes.batch * sizes.kv_heads),
            dim,
            lanes,
            arg(q),
            arg(k),
            arg(v),
            arg(dout),
            arg(lse),
            arg(&delta),
            arg(dk),
            arg(dv),
            sizes.scale(),
            columns,
            sizes,
            tile,
        );
    }
    gradients
}

/// Columns of out and of its gradient.
fn dense(sizes: &Heads) -> Columns {
    Columns {
        offset: 0,
        stride: sizes.heads * sizes.head_dim,
    }
}

/// Writes the first team's accumulated rows.
#[cube]
fn write_rows<N: Size>(
    target: &mut [Vector<f32, N>],
    acc: &Array<Float4>,
    lines: &Lines,
    first: usize,
    place: &Place,
    #[comptime] tile: Tile,
) {
    let owned = comptime!(tile.owned());
    #[unroll]
    for i in 0..4usize {
        let row = first + place.y * 4 + i;
        if row < lines.count && place.team == 0 {
            #[unroll]
            for j in 0..owned {
                let vector = place.x + comptime!(j * 8);
                if vector < comptime!(tile.vectors()) {
                    let start = lines.start + row * lines.stride;
                    write_vector::<N>(target, start, vector, acc[comptime!(i * owned + j)], tile);
                }
            }
        }
    }
}

/// Two own sides, which the teams' sums may replace, and each team's region.
fn q_vectors(tile: &Tile) -> usize {
    tile.own_vectors(2) + tile.teams * q_region(tile)
}

/// Keys, values, a tile of weights, one vector per invocation for reductions.
fn q_region(tile: &Tile) -> usize {
    2 * tile.other_side() + tile.scores() + tile.team()
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
    scale: f32,
    #[comptime] columns: [Columns; 3],
    #[comptime] sizes: Heads,
    #[comptime] tile: Tile,
) {
    let sequences = comptime!(sizes.batch * sizes.heads);
    let tiles = comptime!(sizes.context.div_ceil(tile.rows()));
    if CUBE_POS >= tiles * sequences {
        terminate!();
    }
    let mut shared = Shared::<[Float4]>::new_slice(comptime!(q_vectors(&tile)));
    let place = Place::of(tile);
    let own_dout = comptime!(tile.own_side());
    let keys = place.team * comptime!(q_region(&tile)) + comptime!(tile.own_vectors(2));
    let values = keys + comptime!(tile.other_side());
    let weights = values + comptime!(tile.other_side());
    let scratch = weights + comptime!(tile.scores());

    let first = (tiles - 1 - CUBE_POS / sequences) * comptime!(tile.rows());
    let batch = CUBE_POS % sequences / sizes.heads;
    let head = CUBE_POS % sequences % sizes.heads;
    let kv_head = head / comptime!(sizes.group());
    let context = sizes.context;
    let (x, y) = (place.x, place.y);
    let owned = comptime!(tile.owned());

    let of_q = Lines::of(batch, head, comptime!(columns[0]), sizes);
    let of_k = Lines::of(batch, kv_head, comptime!(columns[1]), sizes);
    let of_v = Lines::of(batch, kv_head, comptime!(columns[2]), sizes);
    let of_out = Lines::of(batch, head, comptime!(dense(&sizes)), sizes);
    load_own::<N>(q, &mut shared, 0usize, &of_q, first, scale, tile);
    load_own::<N>(dout, &mut shared, own_dout, &of_out, first, 1.0f32, tile);

    // δ: each invocation its vectors of its four rows, then the sum over x. Every team needs it and computes its own.
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
                    let start = of_out.start + row * of_out.stride;
                    let product = read_vector::<N>(out, start, vector, tile)
                        * read_vector::<N>(dout, start, vector, tile);
                    dot += horizontal_sum::<Const<4>>(product);
                }
            }
            part.insert(i, dot);
        }
    }
    shared[place.unit + scratch] = part;
    sync_cube();
    let mut deltas = shared[scratch + y];
    #[unroll]
    for i in 1..8usize {
        deltas += shared[scratch + comptime!(i * tile.row_groups) + y];
    }
    if x == 0 && place.team == 0 {
        #[unroll]
        for i in 0..4usize {
            let row = first + y * 4 + i;
            if row < context {
                delta[(batch * context + row) * sizes.heads + head] = deltas.extract(i);
            }
        }
    }

    let mut acc = zeros(comptime!(4 * owned));
    let mut scores = Array::<Float4>::new(tile.columns_each);
    let mut slopes = Array::<Float4>::new(tile.columns_each);
    let end = min(first + comptime!(tile.rows()), context);
    let mut tile_key = 0usize;
    while tile_key < end {
        let key = tile_key + place.team * comptime!(tile.columns());
        load_other::<N>(k, &mut shared, keys, &of_k, key, place.unit, tile);
        load_other::<N>(v, &mut shared, values, &of_v, key, place.unit, tile);
        sync_cube();
        products(&shared, &mut scores, 0usize, keys, &place, tile);
        products(&shared, &mut slopes, own_dout, values, &place, tile);
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
        accumulate(&shared, &mut acc, weights, keys, &place, tile);
        sync_cube();
        tile_key += comptime!(tile.columns() * tile.teams);
    }
    add_teams(&mut shared, &mut acc, &place, comptime!(4 * owned), tile);
    write_rows::<N>(dq, &acc, &of_q, first, &place, tile);
}

/// Two own sides, which the teams' sums may replace, each team's region, and two values per column of a tile.
fn kv_vectors(tile: &Tile) -> usize {
    tile.own_vectors(2) + tile.teams * (kv_region(tile) + tile.columns().div_ceil(2))
}

/// Queries, gradients of their results, two tiles of weights.
fn kv_region(tile: &Tile) -> usize {
    2 * tile.other_side() + 2 * tile.scores()
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
    scale: f32,
    #[comptime] columns: [Columns; 3],
    #[comptime] sizes: Heads,
    #[comptime] tile: Tile,
) {
    let sequences = comptime!(sizes.batch * sizes.kv_heads);
    let tiles = comptime!(sizes.context.div_ceil(tile.rows()));
    if CUBE_POS >= tiles * sequences {
        terminate!();
    }
    let mut shared = Shared::<[Float4]>::new_slice(comptime!(
        tile.own_vectors(2) + tile.teams * kv_region(&tile)
    ));
    let mut rows = Shared::<[f32]>::new_slice(comptime!(2 * tile.columns() * tile.teams));
    let place = Place::of(tile);
    let own_values = comptime!(tile.own_side());
    let queries = place.team * comptime!(kv_region(&tile)) + comptime!(tile.own_vectors(2));
    let douts = queries + comptime!(tile.other_side());
    let weights = douts + comptime!(tile.other_side());
    let slopes_at = weights + comptime!(tile.scores());
    // The logarithm and δ of each of the team's queries.
    let logs = place.team * comptime!(2 * tile.columns());
    let dots = logs + comptime!(tile.columns());

    // The first keys have the most queries after them: they start first.
    let first = CUBE_POS / sequences * comptime!(tile.rows());
    let batch = CUBE_POS % sequences / sizes.kv_heads;
    let kv_head = CUBE_POS % sequences % sizes.kv_heads;
    let context = sizes.context;
    let (x, y) = (place.x, place.y);
    let owned = comptime!(tile.owned());

    let of_k = Lines::of(batch, kv_head, comptime!(columns[1]), sizes);
    let of_v = Lines::of(batch, kv_head, comptime!(columns[2]), sizes);
    load_own::<N>(k, &mut shared, 0usize, &of_k, first, scale, tile);
    load_own::<N>(v, &mut shared, own_values, &of_v, first, 1.0f32, tile);

    let mut acc_k = zeros(comptime!(4 * owned));
    let mut acc_v = zeros(comptime!(4 * owned));
    let mut scores = Array::<Float4>::new(tile.columns_each);
    let mut slopes = Array::<Float4>::new(tile.columns_each);
    for member in 0..comptime!(sizes.group()) {
        let head = kv_head * comptime!(sizes.group()) + member;
        let of_q = Lines::of(batch, head, comptime!(columns[0]), sizes);
        let of_out = Lines::of(batch, head, comptime!(dense(&sizes)), sizes);
        let mut tile_query = first / comptime!(tile.columns()) * comptime!(tile.columns());
        while tile_query < context {
            let query = tile_query + place.team * comptime!(tile.columns());
            let unit = place.unit;
            load_other::<N>(q, &mut shared, queries, &of_q, query, unit, tile);
            load_other::<N>(dout, &mut shared, douts, &of_out, query, unit, tile);
            if unit < comptime!(tile.columns()) {
                // A row past the end has zeros for dout and δ, which make its gradients zero.
                let mut log = 0.0f32;
                let mut dot = 0.0f32;
                if query + unit < context {
                    let at = (batch * context + query + unit) * sizes.heads + head;
                    log = lse[at];
                    dot = delta[at];
                }
                rows[logs + unit] = log;
                rows[dots + unit] = dot;
            }
            sync_cube();
            products(&shared, &mut scores, 0usize, queries, &place, tile);
            products(&shared, &mut slopes, own_values, douts, &place, tile);
            #[unroll]
            for j in 0..tile.columns_each {
                let column = x + comptime!(j * 8);
                let log = Float4::new(rows[logs + column]);
                let dot = Float4::new(rows[dots + column]);
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
            accumulate(&shared, &mut acc_v, weights, douts, &place, tile);
            accumulate(&shared, &mut acc_k, slopes_at, queries, &place, tile);
            sync_cube();
            tile_query += comptime!(tile.columns() * tile.teams);
        }
    }
    add_teams(&mut shared, &mut acc_k, &place, comptime!(4 * owned), tile);
    add_teams(&mut shared, &mut acc_v, &place, comptime!(4 * owned), tile);
    write_rows::<N>(dk, &acc_k, &of_k, first, &place, tile);
    write_rows::<N>(dv, &acc_v, &of_v, first, &place, tile);
}
