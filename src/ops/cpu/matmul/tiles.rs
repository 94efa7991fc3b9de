//! How a product's output is cut into tiles for the threads. Nothing here touches a number.

use super::super::for_each;

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

    fn count(&self) -> usize {
        cuts(self.m, self.tile_rows) * cuts(self.n, self.tile_columns)
    }

    /// Calls `work(row, rows, column, columns)` for every tile.
    pub(super) fn for_each(&self, work: impl Fn(usize, usize, usize, usize) + Sync) {
        let (down, across) = (
            cuts(self.m, self.tile_rows),
            cuts(self.n, self.tile_columns),
        );
        let one = |index: usize| {
            let (tile_row, tile_column) = (index / across, index % across);
            let (row, column) = (tile_row * self.tile_rows, tile_column * self.tile_columns);
            let last_row = tile_row + 1 == down;
            let last_column = tile_column + 1 == across;
            let rows = if last_row {
                self.m - row
            } else {
                self.tile_rows
            };
            let columns = if last_column {
                self.n - column
            } else {
                self.tile_columns
            };
            work(row, rows, column, columns);
        };
        match down * across {
            0 => {}
            1 => one(0),
            count => for_each(count, one),
        }
    }
}

/// How many tiles cover `len`. What would be a sliver joins its neighbour: the gemm crate treats
/// single rows and columns in a way of their own, which adds in another order.
fn cuts(len: usize, tile: usize) -> usize {
    const SLIVER: usize = 8;
    if len == 0 {
        return 0;
    }
    (len / tile + usize::from(len % tile >= SLIVER)).max(1)
}
