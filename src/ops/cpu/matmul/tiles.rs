//! How a product's output is cut into tiles for the threads. Nothing here touches a number.

use std::ops::Range;

/// How an output is cut into parts that run in parallel. Each element's sum is the same however it is cut.
pub(super) struct Tiles {
    m: usize,
    n: usize,
    tile_rows: usize,
    tile_columns: usize,
}

impl Tiles {
    /// Below this many multiplications (some 10 µs) one thread does it all.
    const SERIAL: usize = 1 << 20;
    /// Smaller tiles than this square run at nine tenths of the speed and less.
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
        // Four tiles per thread even out threads that run at different speeds; one has to do where tiles get small.
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

    /// The rows and columns of a tile below `count`.
    pub(super) fn at(&self, tile: usize) -> [Range<usize>; 2] {
        let across = cuts(self.n, self.tile_columns);
        [
            part(tile / across, self.tile_rows, self.m),
            part(tile % across, self.tile_columns, self.n),
        ]
    }
}

/// The part `index` of `0..len`.
fn part(index: usize, tile: usize, len: usize) -> Range<usize> {
    let last = index + 1 == cuts(len, tile);
    let end = if last { len } else { (index + 1) * tile };
    index * tile..end
}

/// How many tiles cover `len`. What would be a sliver joins its neighbour: the gemm crate treats
/// single rows and columns in a way of their own, which adds in another order.
fn cuts(len: usize, tile: usize) -> usize {
    const SLIVER: usize = 8;
    (len / tile + usize::from(len % tile >= SLIVER)).max(1)
}
