//! Splits a product's output into tiles for the threads.

use std::ops::Range;

/// The tiles of an output, which run in parallel. An element's sum does not depend on the tiles.
pub(super) struct Tiles {
    m: usize,
    n: usize,
    tile_rows: usize,
    tile_columns: usize,
}

impl Tiles {
    /// Below this many multiplications (about 10 µs) one thread computes the whole product.
    const SERIAL: usize = 1 << 20;
    /// Tiles smaller than this square run at 0.9 of the speed or less.
    const LEAST: usize = 128;

    pub(super) fn new(m: usize, n: usize, k: usize, threads: usize) -> Self {
        let mut tiles = Self {
            m,
            n,
            tile_rows: m.max(1),
            tile_columns: n.max(1),
        };
        if threads == 1 || m * n * k < Self::SERIAL {
            return tiles;
        }
        // Four tiles per thread balance threads of different speeds; small products have fewer.
        while tiles.count() < 4 * threads {
            let small = tiles.tile_rows.max(tiles.tile_columns) < 2 * Self::LEAST;
            if small
                && (tiles.count() >= threads
                    || tiles.tile_rows.max(tiles.tile_columns) < Self::LEAST)
            {
                break;
            }
            if tiles.tile_rows >= tiles.tile_columns {
                tiles.tile_rows = tiles.tile_rows.div_ceil(2).next_multiple_of(8);
            } else {
                tiles.tile_columns = tiles.tile_columns.div_ceil(2).next_multiple_of(16);
            }
        }
        tiles
    }

    pub(super) fn count(&self) -> usize {
        if self.m == 0 || self.n == 0 {
            return 0;
        }
        cuts(self.m, self.tile_rows) * cuts(self.n, self.tile_columns)
    }

    /// Returns the rows and columns of tile number `tile`, which is below `count`.
    pub(super) fn at(&self, tile: usize) -> [Range<usize>; 2] {
        let across = cuts(self.n, self.tile_columns);
        [
            part(tile / across, self.tile_rows, self.m),
            part(tile % across, self.tile_columns, self.n),
        ]
    }
}

/// Returns the part `index` of `0..len`.
fn part(index: usize, tile: usize, len: usize) -> Range<usize> {
    let last = index + 1 == cuts(len, tile);
    let end = if last { len } else { (index + 1) * tile };
    index * tile..end
}

/// Returns how many tiles cover `len`. A very small rest is added to its neighbour, because the gemm crate adds single rows and columns in
/// another order.
fn cuts(len: usize, tile: usize) -> usize {
    const SLIVER: usize = 8;
    (len / tile + usize::from(len % tile >= SLIVER)).max(1)
}
