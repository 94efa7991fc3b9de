//! How the output of a product is split into tiles for the threads.

use std::ops::Range;

/// The tiles of an m × n output. The sum of an element does not depend on the tiles.
pub(super) struct Tiles {
    m: usize,
    n: usize,
    tile_rows: usize,
    tile_columns: usize,
}

impl Tiles {
    /// The number of multiplications (about 10 µs) from which on a product is split.
    const SERIAL: usize = 1 << 20;
    /// The side of a square below which tiles run at 0.9 of the speed or less.
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
            let side = tiles.tile_rows.max(tiles.tile_columns);
            // Each thread should have a tile before tiles become small.
            let is_enough = tiles.count() >= threads && side < 2 * Self::LEAST;
            if is_enough || side < Self::LEAST {
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
        parts(self.m, self.tile_rows) * parts(self.n, self.tile_columns)
    }

    /// Returns the rows and columns of tile number `tile`, which is below `count`.
    pub(super) fn range(&self, tile: usize) -> [Range<usize>; 2] {
        let across = parts(self.n, self.tile_columns);
        [
            range_of_part(tile / across, self.tile_rows, self.m),
            range_of_part(tile % across, self.tile_columns, self.n),
        ]
    }
}

/// Returns part `index` of `0..len`, which is cut into parts of `tile`.
fn range_of_part(index: usize, tile: usize, len: usize) -> Range<usize> {
    let last = index + 1 == parts(len, tile);
    let end = if last { len } else { (index + 1) * tile };
    index * tile..end
}

/// Returns the number of parts of `tile` that cover `len`. A very small rest is joined to the last part, because the gemm crate adds single rows
/// and columns in another order.
fn parts(len: usize, tile: usize) -> usize {
    const SMALLEST_PART: usize = 8;
    (len / tile + usize::from(len % tile >= SMALLEST_PART)).max(1)
}
