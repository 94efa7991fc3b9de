//! The first half of attention's backward pass: the gradient of the queries. See `attention_backward`.

use super::Float4;
use super::attention_backward::{Layout, start_of, write_rows};
use super::attention_tile::{
    Heads, Place, Tile, accumulate, add_teams, clear, load_other, load_own, products, read_vector,
};
use burn::cubecl::{self, prelude::*};

/// Two own sides, which the teams' sums may replace, and each team's region.
pub fn shared_vectors(tile: &Tile) -> usize {
    tile.own_vectors(2) + tile.teams * region(tile)
}

/// Keys, values, a tile of weights, one vector per invocation for reductions.
fn region(tile: &Tile) -> usize {
    2 * tile.other_side() + tile.scores() + tile.team()
}

/// Owns queries, walks over keys and values up to the diagonal. Also writes δ for the second kernel.
#[cube(launch_unchecked)]
pub fn flash_attention_backward_q<N: Size>(
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
    let mut shared = Shared::<[Float4]>::new_slice(comptime!(shared_vectors(&tile)));
    let place = Place::of(tile);
    let own_dout = comptime!(tile.own_side());
    let keys = place.team * comptime!(region(&tile)) + comptime!(tile.own_vectors(2));
    let values = keys + comptime!(tile.other_side());
    let weights = values + comptime!(tile.other_side());
    let scratch = weights + comptime!(tile.scores());

    let first = (tiles - 1 - CUBE_POS / sequences) * comptime!(tile.rows());
    let batch = CUBE_POS % sequences / sizes.heads;
    let head = CUBE_POS % sequences % sizes.heads;
    let kv_head = head / comptime!(sizes.group());
    let context = sizes.context;
    let (x, y) = (place.x, place.y);
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

    let mut acc = Array::<Float4>::new(comptime!(4 * owned));
    clear(&mut acc, comptime!(4 * owned));
    let mut scores = Array::<Float4>::new(tile.columns_each);
    let mut slopes = Array::<Float4>::new(tile.columns_each);
    let end = min(first + comptime!(tile.rows()), context);
    let mut tile_key = 0usize;
    while tile_key < end {
        let key = tile_key + place.team * comptime!(tile.columns());
        let unit = place.unit;
        load_other::<N>(
            k,
            &mut shared,
            keys,
            k_start,
            layout.k.1,
            key,
            context,
            unit,
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
            unit,
            tile,
        );
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
    write_rows::<N>(
        dq,
        &acc,
        start_of(batch, head, layout.dq, sizes),
        layout.dq.1,
        first,
        context,
        &place,
        tile,
    );
}
