//! Causal attention with grouped key and value heads, forward, without the score matrix in memory.
//! The backward pass is in `attention_backward`, the tiles both use in `attention_tile`.

use super::attention_tile::{
    LOWEST, Lines, Place, Tile, accumulate, add_teams, load_other, load_own, products,
    write_vector, zeros,
};
use super::{Float4, arg, empty, groups, vector_width};
use crate::ops::shapes::{Columns, Heads, Rows};
use burn::cubecl::{self, prelude::*};
use burn_cubecl::tensor::CubeTensor;

/// out = softmax(q·kᵀ/√dh + causal mask)·v per head; `rows` are q, k and v, N = batch·context. Returns out `[N, H·dh]` and lse
/// `[N, H]`, the logarithm of each row's sum of exponentials, which the backward pass needs. Memory grows with the context, not
/// with its square. (Dao et al. 2022.) 1 launch.
pub fn forward(rows: &Rows<CubeTensor>, sizes: Heads) -> (CubeTensor, CubeTensor) {
    let [(q, of_q), (k, of_k), (v, of_v)] = rows.columns(&sizes);
    let out = empty(q, [sizes.rows(), sizes.heads * sizes.head_dim]);
    let lse = empty(q, [sizes.rows(), sizes.heads]);
    let tile = Tile::choose(&sizes, q, shared_vectors);
    let tiles = sizes.context.div_ceil(tile.rows());
    unsafe {
        flash_attention_forward::launch_unchecked(
            &out.client,
            groups(tiles * sizes.batch * sizes.heads),
            CubeDim::new_1d(tile.threads() as u32),
            vector_width(&[sizes.head_dim]),
            arg(q),
            arg(k),
            arg(v),
            arg(&out),
            arg(&lse),
            sizes.scale(),
            [of_q, of_k, of_v],
            sizes,
            tile,
        );
    }
    (out, lse)
}

/// Own rows, which the teams' sums may replace, and for each team keys, values, weights, one vector per invocation for reductions.
fn shared_vectors(tile: &Tile) -> usize {
    tile.own_vectors(1) + tile.teams * region(tile)
}

fn region(tile: &Tile) -> usize {
    2 * tile.other_side() + tile.scores() + tile.team()
}

/// A running maximum and sum per row, as in an online softmax: when the maximum grows, what has been added so far is
/// scaled down. Tiles above the diagonal are never visited.
#[cube(launch_unchecked)]
fn flash_attention_forward<N: Size>(
    q: &[Vector<f32, N>],
    k: &[Vector<f32, N>],
    v: &[Vector<f32, N>],
    out: &mut [Vector<f32, N>],
    lse: &mut [f32],
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
    let mut shared = Shared::<[Float4]>::new_slice(comptime!(shared_vectors(&tile)));
    let place = Place::of(tile);
    let keys = place.team * comptime!(region(&tile)) + comptime!(tile.own_vectors(1));
    let values = keys + comptime!(tile.other_side());
    let weights = values + comptime!(tile.other_side());
    let scratch = weights + comptime!(tile.scores());

    // The last rows have the most keys before them: they start first.
    let first = (tiles - 1 - CUBE_POS / sequences) * comptime!(tile.rows());
    let batch = CUBE_POS % sequences / sizes.heads;
    let head = CUBE_POS % sequences % sizes.heads;
    let kv_head = head / comptime!(sizes.group());
    let context = sizes.context;
    let (x, y) = (place.x, place.y);

    let of_q = Lines::of(batch, head, comptime!(columns[0]), sizes);
    let of_k = Lines::of(batch, kv_head, comptime!(columns[1]), sizes);
    let of_v = Lines::of(batch, kv_head, comptime!(columns[2]), sizes);
    load_own::<N>(q, &mut shared, 0usize, &of_q, first, scale, tile);

    let owned = comptime!(tile.owned());
    let mut acc = zeros(comptime!(4 * owned));
    let mut scores = Array::<Float4>::new(tile.columns_each);
    let mut top = Float4::new(LOWEST);
    let mut sum = Float4::new(0.0);
    let end = min(first + comptime!(tile.rows()), context);
    let mut tile_key = 0usize;
    while tile_key < end {
        let key = tile_key + place.team * comptime!(tile.columns());
        load_other::<N>(k, &mut shared, keys, &of_k, key, place.unit, tile);
        load_other::<N>(v, &mut shared, values, &of_v, key, place.unit, tile);
        sync_cube();
        products(&shared, &mut scores, 0usize, keys, &place, tile);
        if key + comptime!(tile.columns()) > first {
            #[unroll]
            for j in 0..tile.columns_each {
                let column = key + x + comptime!(j * 8);
                let mut masked = scores[j];
                #[unroll]
                for i in 0..4usize {
                    if column > first + y * 4 + i {
                        masked.insert(i, LOWEST);
                    }
                }
                scores[j] = masked;
            }
        }
        let mut highest = scores[0];
        #[unroll]
        for j in 1..tile.columns_each {
            highest = max(highest, scores[j]);
        }
        shared[place.unit + scratch] = highest;
        sync_cube();
        let mut higher = top;
        #[unroll]
        for i in 0..8usize {
            higher = max(higher, shared[scratch + comptime!(i * tile.row_groups) + y]);
        }
        let shrink = (top - higher).exp();
        top = higher;
        sum *= shrink;
        #[unroll]
        for j in 0..tile.columns_each {
            let weight = (scores[j] - top).exp();
            sum += weight;
            shared[(x + comptime!(j * 8)) * tile.row_groups + y + weights] = weight;
        }
        #[unroll]
        for i in 0..4usize {
            let factor = Float4::new(shrink.extract(i));
            #[unroll]
            for j in 0..owned {
                acc[comptime!(i * owned + j)] *= factor;
            }
        }
        sync_cube();
        accumulate(&shared, &mut acc, weights, values, &place, tile);
        sync_cube();
        tile_key += comptime!(tile.columns() * tile.teams);
    }

    if comptime!(tile.teams > 1) {
        // The teams' maxima differ: bring all to the highest. A team that saw no key of a row has the lowest, and factor 0.
        shared[place.unit + scratch] = top;
        sync_cube();
        let mut highest = top;
        #[unroll]
        for other in 0..tile.teams {
            let theirs = comptime!(
                other * region(&tile) + tile.own_vectors(1) + region(&tile) - tile.team()
            );
            highest = max(highest, shared[place.unit + theirs]);
        }
        let shrink = (top - highest).exp();
        top = highest;
        sum *= shrink;
        #[unroll]
        for i in 0..4usize {
            #[unroll]
            for j in 0..owned {
                acc[comptime!(i * owned + j)] *= Float4::new(shrink.extract(i));
            }
        }
        sync_cube();
        add_teams(&mut shared, &mut acc, &place, comptime!(4 * owned), tile);
    }
    shared[place.unit + scratch] = sum;
    sync_cube();
    let mut total = Float4::new(0.0);
    #[unroll]
    for team in 0..tile.teams {
        let theirs =
            comptime!(team * region(&tile) + tile.own_vectors(1) + region(&tile) - tile.team());
        #[unroll]
        for i in 0..8usize {
            total += shared[comptime!(i * tile.row_groups + theirs) + y];
        }
    }
    #[unroll]
    for i in 0..4usize {
        let row = first + y * 4 + i;
        if row < context && place.team == 0 {
            let line = batch * context + row;
            if x == 0 {
                lse[line * sizes.heads + head] = top.extract(i) + total.extract(i).ln();
            }
            let inverse = Float4::new(1.0 / total.extract(i));
            #[unroll]
            for j in 0..owned {
                let vector = x + comptime!(j * 8);
                if vector < comptime!(tile.vectors()) {
                    let start = (line * sizes.heads + head) * sizes.head_dim;
                    let value = acc[comptime!(i * owned + j)] * inverse;
                    write_vector::<N>(out, start, vector, value, tile);
                }
            }
        }
    }
}
