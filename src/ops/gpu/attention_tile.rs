//! What the flash attention kernels share: sizes, the tile a workgroup takes, and its reads and products.
//! The algorithm is in `attention` (forward) and `attention_backward`.

use super::Float4;
use crate::ops::shapes::{Columns, Heads};
use burn::cubecl::{self, prelude::*};
use burn_cubecl::tensor::CubeTensor;

/// Lower than every score, and still finite: −∞ minus −∞ would be NaN.
pub const LOWEST: f32 = -3.0e38;

/// A workgroup owns `rows()` rows of one head and walks over the other side in tiles of `columns()`. Its teams take turns at
/// those tiles and add up what they found. Invocation (y, x) of a team, `row_groups` by 8, has rows 4y to 4y+3, columns x, x+8, …
/// of a tile, and vectors x, x+8, … of the head. Neighbouring invocations differ in y: their reads of a column are the same, and
/// their rows lie side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tile {
    pub head_dim: usize,
    pub row_groups: usize,
    pub columns_each: usize,
    pub teams: usize,
}

impl Tile {
    pub const fn rows(&self) -> usize {
        self.row_groups * 4
    }

    pub const fn columns(&self) -> usize {
        self.columns_each * 8
    }

    /// Invocations of one team.
    pub const fn team(&self) -> usize {
        self.row_groups * 8
    }

    pub const fn threads(&self) -> usize {
        self.team() * self.teams
    }

    /// Vectors of four in a head, the last one filled up with zeros.
    pub const fn vectors(&self) -> usize {
        self.head_dim.div_ceil(4)
    }

    /// Vectors of a head that one invocation accumulates, per row.
    pub const fn owned(&self) -> usize {
        self.vectors().div_ceil(8)
    }

    /// Vectors in workgroup memory: the workgroup's own rows, transposed.
    pub const fn own_side(&self) -> usize {
        self.vectors() * 4 * self.row_groups
    }

    /// Vectors of `sides` own sides; the teams' sums may replace them once they have been read.
    pub const fn own_vectors(&self, sides: usize) -> usize {
        let (own, sums) = (sides * self.own_side(), 4 * self.owned() * self.team());
        if self.teams > 1 && sums > own {
            sums
        } else {
            own
        }
    }

    /// The other side's rows. Invocations without a vector of their own read past the last row.
    pub const fn other_side(&self) -> usize {
        self.columns() * self.vectors() + 8 * self.owned()
    }

    /// Rows by columns of scores.
    pub const fn scores(&self) -> usize {
        self.columns() * self.row_groups
    }

    /// The largest tile whose memory, `need` vectors, fits. A context of one tile leaves nothing for a second team.
    pub fn choose(sizes: &Heads, tensor: &CubeTensor, need: impl Fn(&Tile) -> usize) -> Tile {
        let available = tensor.client.properties().hardware.max_shared_memory_size;
        let tile = |(row_groups, columns_each, teams)| Tile {
            head_dim: sizes.head_dim,
            row_groups,
            columns_each,
            teams,
        };
        [
            (8, 2, 2),
            (8, 4, 1),
            (8, 2, 1),
            (4, 4, 1),
            (4, 2, 1),
            (4, 1, 1),
            (2, 1, 1),
        ]
        .map(tile)
        .into_iter()
        .filter(|tile| tile.teams == 1 || sizes.context > tile.columns())
        .find(|tile| need(tile) * 16 <= available)
        .expect("16 KiB of workgroup memory, which every device has, hold the smallest tile")
    }
}

/// An invocation's team and its place in it.
#[derive(CubeType)]
pub struct Place {
    pub team: usize,
    pub unit: usize,
    pub x: usize,
    pub y: usize,
}

#[cube]
impl Place {
    pub fn of(#[comptime] tile: Tile) -> Place {
        let unit = UNIT_POS as usize % comptime!(tile.team());
        Place {
            team: UNIT_POS as usize / comptime!(tile.team()),
            unit,
            x: unit / tile.row_groups,
            y: unit % tile.row_groups,
        }
    }
}

/// The rows of one sequence's head in a buffer: where row 0 begins, and values from row to row.
#[derive(CubeType)]
pub struct Lines {
    pub start: usize,
    pub stride: usize,
    pub count: usize,
}

#[cube]
impl Lines {
    pub fn of(
        batch: usize,
        head: usize,
        #[comptime] at: Columns,
        #[comptime] sizes: Heads,
    ) -> Lines {
        let first = batch * comptime!(sizes.context * at.stride) + head * sizes.head_dim;
        Lines {
            start: first + comptime!(at.offset),
            stride: at.stride.runtime(),
            count: sizes.context.runtime(),
        }
    }
}

/// Four values of a row that starts at `start`, zeros past its `head_dim` values.
#[cube]
pub fn read_vector<N: Size>(
    source: &[Vector<f32, N>],
    start: usize,
    vector: usize,
    #[comptime] tile: Tile,
) -> Float4 {
    let width = N::value();
    let mut value = Float4::new(0.0);
    if comptime!(width == 4) {
        value = Float4::cast_from(source[start / 4 + vector]);
    } else {
        #[unroll]
        for i in 0..4usize {
            if vector * 4 + i < tile.head_dim {
                value.insert(i, source[start + vector * 4 + i].extract(0usize));
            }
        }
    }
    value
}

/// Writes `value` to the vector's place in a row that starts at `start`.
#[cube]
pub fn write_vector<N: Size>(
    target: &mut [Vector<f32, N>],
    start: usize,
    vector: usize,
    value: Float4,
    #[comptime] tile: Tile,
) {
    let width = N::value();
    if comptime!(width == 4) {
        target[start / 4 + vector] = Vector::<f32, N>::cast_from(value);
    } else {
        #[unroll]
        for i in 0..4usize {
            if vector * 4 + i < tile.head_dim {
                target[start + vector * 4 + i] = Vector::<f32, N>::new(value.extract(i));
            }
        }
    }
}

/// Rows `first`.. of the other side into workgroup memory from vector `at` on, row by row; zeros past the last row. Each team
/// loads its own.
#[cube]
pub fn load_other<N: Size>(
    source: &[Vector<f32, N>],
    shared: &mut Shared<[Float4]>,
    at: usize,
    lines: &Lines,
    first: usize,
    unit: usize,
    #[comptime] tile: Tile,
) {
    let vectors = comptime!(tile.vectors());
    let count = comptime!(tile.columns() * vectors);
    let threads = comptime!(tile.team());
    #[unroll]
    for i in 0..comptime!(count.div_ceil(threads)) {
        let e = unit + i * threads;
        if comptime!((i + 1) * threads <= count) || e < count {
            let row = first + e / vectors;
            let mut value = Float4::new(0.0);
            if row < lines.count {
                let start = lines.start + row * lines.stride;
                value = read_vector::<N>(source, start, e % vectors, tile);
            }
            shared[e + at] = value;
        }
    }
}

/// The workgroup's own rows, times `scale`, transposed: vector (d, y) holds value d of rows 4y to 4y+3.
#[cube]
pub fn load_own<N: Size>(
    source: &[Vector<f32, N>],
    shared: &mut Shared<[Float4]>,
    #[comptime] at: usize,
    lines: &Lines,
    first: usize,
    scale: f32,
    #[comptime] tile: Tile,
) {
    let groups = comptime!(tile.row_groups);
    let blocks = comptime!(tile.vectors() * groups);
    let mut block = UNIT_POS as usize;
    while block < blocks {
        let y = block % groups;
        let vector = block / groups;
        let mut own = Array::<Float4>::new(4usize);
        #[unroll]
        for i in 0..4usize {
            let row = first + y * 4 + i;
            own[i] = Float4::new(0.0);
            if row < lines.count {
                let start = lines.start + row * lines.stride;
                own[i] = read_vector::<N>(source, start, vector, tile) * Float4::new(scale);
            }
        }
        #[unroll]
        for d in 0..4usize {
            let mut transposed = Float4::new(0.0);
            #[unroll]
            for i in 0..4usize {
                transposed.insert(i, own[i].extract(d));
            }
            shared[(vector * 4 + d) * groups + y + at] = transposed;
        }
        block += comptime!(tile.threads());
    }
}

/// Dot products of the own rows (at `own`) with a tile of the other side's (at `other`): one vector of four rows per
/// column of this invocation.
#[cube]
pub fn products(
    shared: &Shared<[Float4]>,
    out: &mut Array<Float4>,
    #[comptime] own: usize,
    other: usize,
    place: &Place,
    #[comptime] tile: Tile,
) {
    let (x, y) = (place.x, place.y);
    let vectors = comptime!(tile.vectors());
    #[unroll]
    for j in 0..tile.columns_each {
        out[j] = Float4::new(0.0);
    }
    for vector in 0..vectors {
        let mut columns = Array::<Float4>::new(tile.columns_each);
        #[unroll]
        for j in 0..tile.columns_each {
            columns[j] = shared[(x + comptime!(j * 8)) * vectors + vector + other];
        }
        #[unroll]
        for d in 0..4usize {
            let rows = shared[(vector * 4 + d) * comptime!(tile.row_groups) + y + own];
            #[unroll]
            for j in 0..tile.columns_each {
                out[j] = fma(rows, Float4::new(columns[j].extract(d)), out[j]);
            }
        }
    }
}

/// acc += Wᵀ · other, W a tile of weights at `weights` (vector (column, y) holds four rows), other the tile at `other`.
#[cube]
pub fn accumulate(
    shared: &Shared<[Float4]>,
    acc: &mut Array<Float4>,
    weights: usize,
    other: usize,
    place: &Place,
    #[comptime] tile: Tile,
) {
    let (x, y) = (place.x, place.y);
    let owned = comptime!(tile.owned());
    for column in 0..comptime!(tile.columns()) {
        let weight = shared[column * comptime!(tile.row_groups) + y + weights];
        #[unroll]
        for j in 0..owned {
            let value = shared[column * comptime!(tile.vectors()) + x + comptime!(j * 8) + other];
            #[unroll]
            for i in 0..4usize {
                let at = comptime!(i * owned + j);
                acc[at] = fma(Float4::new(weight.extract(i)), value, acc[at]);
            }
        }
    }
}

/// `count` vectors of zeros in registers.
#[cube]
pub fn zeros(#[comptime] count: usize) -> Array<Float4> {
    let mut values = Array::<Float4>::new(count);
    #[unroll]
    for i in 0..count {
        values[i] = Float4::new(0.0);
    }
    values
}

/// Adds the teams' accumulators until the first team has the sums, through workgroup memory that is no longer needed, from
/// vector 0 on. Begins and ends behind a barrier.
#[cube]
pub fn add_teams(
    shared: &mut Shared<[Float4]>,
    acc: &mut Array<Float4>,
    place: &Place,
    #[comptime] count: usize,
    #[comptime] tile: Tile,
) {
    let team = comptime!(tile.team());
    #[unroll]
    for other in 1..tile.teams {
        if place.team == other {
            #[unroll]
            for i in 0..count {
                shared[place.unit + comptime!(i * team)] = acc[i];
            }
        }
        sync_cube();
        if place.team == 0 {
            #[unroll]
            for i in 0..count {
                acc[i] += shared[place.unit + comptime!(i * team)];
            }
        }
        sync_cube();
    }
}
