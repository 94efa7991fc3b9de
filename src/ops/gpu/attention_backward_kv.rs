//! The second half of attention's backward pass: the gradients of keys and values. See `attention_backward`.

use super::Float4;
use super::attention_backward::{Layout, start_of, write_rows};
use super::attention_tile::{
    Heads, Place, Tile, accumulate, add_teams, clear, load_other, load_own, products,
};
use burn::cubecl::{self, prelude::*};

/// Two own sides, which the teams' sums may replace, each team's region, and two values per column of a tile.
pub fn shared_vectors(tile: &Tile) -> usize {
    tile.own_vectors(2) + tile.teams * (region(tile) + tile.columns().div_ceil(2))
}

/// Queries, gradients of their results, two tiles of weights.
fn region(tile: &Tile) -> usize {
    2 * tile.other_side() + 2 * tile.scores()
}

/// Owns keys and values, walks over the queries from the diagonal on, for every query head of the group.
#[cube(launch_unchecked)]
pub fn flash_attention_backward_kv<N: Size>(
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
    let mut shared =
        Shared::<[Float4]>::new_slice(comptime!(tile.own_vectors(2) + tile.teams * region(&tile)));
    let mut rows = Shared::<[f32]>::new_slice(comptime!(2 * tile.columns() * tile.teams));
    let place = Place::of(tile);
    let own_values = comptime!(tile.own_side());
    let queries = place.team * comptime!(region(&tile)) + comptime!(tile.own_vectors(2));
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
        let mut tile_query = first / comptime!(tile.columns()) * comptime!(tile.columns());
        while tile_query < context {
            let query = tile_query + place.team * comptime!(tile.columns());
            let unit = place.unit;
            load_other::<N>(
                q,
                &mut shared,
                queries,
                q_start,
                layout.q.1,
                query,
                context,
                unit,
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
                unit,
                tile,
            );
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
    write_rows::<N>(
        dk,
        &acc_k,
        start_of(batch, kv_head, layout.dk, sizes),
        layout.dk.1,
        first,
        context,
        &place,
        tile,
    );
    write_rows::<N>(
        dv,
        &acc_v,
        start_of(batch, kv_head, layout.dv, sizes),
        layout.dv.1,
        first,
        context,
        &place,
        tile,
    );
}
