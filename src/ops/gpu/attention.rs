//! Flash attention in f32: `wgsl/flash_attention.wgsl` and the two files of its backward pass. A workgroup owns some rows of one head
//! and iterates over the other side's rows in tiles; scores and sums stay in registers.

use super::attention_wgsl::{self, Buffers, Shape, Values};
use super::wgsl::{self, Program};
use super::{MAX_GROUPS, empty};
use crate::ops::shapes::{Heads, Rows};
use burn::tensor::DType;
use burn_cubecl::tensor::CubeTensor;
use serde::Serialize;

/// The widest head whose gradients fit into registers.
const WIDEST: usize = 128;

/// Sizes of a workgroup. Each invocation has four own rows and four columns of a tile of scores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
struct Tile {
    /// Invocations: down × across.
    down: usize,
    across: usize,
    /// Vectors of a row that are staged together for scores.
    part: usize,
    /// Whole rows of the other side that are staged together for sums.
    slice: usize,
}

const SMALLEST: Tile = Tile {
    down: 8,
    across: 8,
    part: 4,
    slice: 8,
};

impl Tile {
    /// The largest tile for `available` bytes of workgroup memory; `None` if heads are too wide or are not whole vectors.
    fn choose(sizes: &Heads, available: usize) -> Option<Self> {
        let vectors = sizes.head_dim / 4;
        if !sizes.head_dim.is_multiple_of(4) || sizes.head_dim > WIDEST || vectors == 0 {
            return None;
        }
        let across = if vectors > 8 { 16 } else { 8 };
        let tile = |down, across, part: usize, slice| Self {
            down,
            across,
            part: part.min(vectors),
            slice,
        };
        let all = [
            tile(16, across, 16, 32),
            tile(16, across, 8, 16),
            tile(8, 8, 8, 16),
            Self {
                part: SMALLEST.part.min(vectors),
                ..SMALLEST
            },
        ];
        all.into_iter()
            .find(|tile| tile.bytes(vectors) <= available)
    }

    /// Rows that a workgroup owns.
    const fn own(&self) -> usize {
        4 * self.down
    }

    /// Rows of the other side.
    const fn other(&self) -> usize {
        4 * self.across
    }

    const fn invocations(&self) -> usize {
        self.down * self.across
    }

    /// Vectors of staged workgroup memory: parts of own rows and of the other side's, or weights and a slice.
    fn staged(&self, vectors: usize) -> usize {
        let parts = (self.own() + self.other()) * (self.part + 1);
        let weights = self.own() * (self.across + 1) + self.slice * vectors;
        // If a slice's rows are not a multiple of `across` vectors, the last invocations read past it.
        parts.max(weights + self.across)
    }

    /// Bytes of workgroup memory.
    fn bytes(&self, vectors: usize) -> usize {
        16 * (self.staged(vectors) + self.invocations())
    }
}

/// Rows that are copied to workgroup memory together.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
struct StagedRows {
    source: &'static str,
    /// Rows of the source.
    lines: &'static str,
    first: String,
    rows: usize,
    /// Number of staged vectors of a row, and the first of them.
    wide: usize,
    from: usize,
    /// Offset in workgroup memory, and distance between rows there, in vectors.
    at: usize,
    pitch: usize,
    interleaved: bool,
    /// Vectors that each invocation loads, and the register of the first.
    loads: usize,
    register: usize,
}

/// What a step stages and computes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
struct TileStep {
    stages: Vec<StagedRows>,
    /// Whether the step computes scores; otherwise it computes sums.
    scores: bool,
    /// The name of the scores or sums.
    to: &'static str,
    /// Slice of the other side that is added.
    slice: usize,
    /// Whether weights are computed from the scores; all invocations read them after the next step is staged.
    weighs: bool,
}

/// Sizes of the tile and the steps, with the names of the files.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
struct AttentionPlan {
    #[serde(flatten)]
    tile: Tile,
    own: usize,
    other: usize,
    staged: usize,
    registers_of_a_step: usize,
    steps: Vec<TileStep>,
}

/// The steps of an iteration.
struct Steps {
    tile: Tile,
    vectors: usize,
    steps: Vec<TileStep>,
}

impl Steps {
    fn of(tile: Tile, sizes: &Heads) -> Self {
        Self {
            tile,
            vectors: sizes.head_dim / 4,
            steps: Vec::new(),
        }
    }

    /// Adds steps for the scores `to` of own rows with the other side's, each given by its buffer and its rows.
    fn scores(
        mut self,
        to: &'static str,
        own: (&'static str, &'static str),
        other: (&'static str, &'static str),
    ) -> Self {
        let Tile { part, .. } = self.tile;
        let (own_rows, other_rows) = (self.tile.own(), self.tile.other());
        for from in (0..self.vectors).step_by(part) {
            let stage = |(source, lines), first: &str, rows: usize, at, register| StagedRows {
                source,
                lines,
                first: first.to_owned(),
                rows,
                wide: part,
                from,
                at,
                pitch: part + 1,
                interleaved: at > 0,
                loads: self.loads(rows * part),
                register,
            };
            let of_own = stage(own, "first", own_rows, 0, 0);
            let register = of_own.loads;
            let of_other = stage(other, "other", other_rows, own_rows * (part + 1), register);
            self.steps.push(TileStep {
                stages: vec![of_own, of_other],
                scores: true,
                to,
                slice: 0,
                weighs: from + part >= self.vectors,
            });
        }
        self
    }

    /// Marks the scores as ones without weights.
    fn unweighed(mut self) -> Self {
        for step in &mut self.steps {
            step.weighs = false;
        }
        self
    }

    /// Adds steps for the sums `to` += weights · the other side's rows.
    fn sums(mut self, to: &'static str, (source, lines): (&'static str, &'static str)) -> Self {
        let Tile { slice, .. } = self.tile;
        for n in 0..self.tile.other() / slice {
            let stage = StagedRows {
                source,
                lines,
                first: format!("other + {}u", n * slice),
                rows: slice,
                wide: self.vectors,
                from: 0,
                at: self.tile.own() * (self.tile.across + 1),
                pitch: self.vectors,
                interleaved: false,
                loads: self.loads(slice * self.vectors),
                register: 0,
            };
            self.steps.push(TileStep {
                stages: vec![stage],
                scores: false,
                to,
                slice: n,
                weighs: false,
            });
        }
        self
    }

    fn loads(&self, vectors: usize) -> usize {
        vectors.div_ceil(self.tile.invocations())
    }

    fn program(
        self,
        file: &'static str,
        shape: Shape,
        buffers: Buffers,
    ) -> Program<Values<AttentionPlan>> {
        let Self {
            tile,
            vectors,
            steps,
        } = self;
        let loads = |step: &TileStep| step.stages.iter().map(|it| it.loads).sum();
        let plan = AttentionPlan {
            tile,
            own: tile.own(),
            other: tile.other(),
            staged: tile.staged(vectors),
            registers_of_a_step: steps.iter().map(loads).max().unwrap_or(0),
            steps,
        };
        let values = Values {
            shape,
            buffers,
            vector: "vec4<f32>",
            tile: plan,
        };
        Program::new(file, tile.invocations(), values)
    }
}

/// The tile for a problem on the device of `tensor`; `None` if no tile fits, or if a launch cannot have so many workgroups.
fn tile(sizes: &Heads, tensor: &CubeTensor) -> Option<Tile> {
    let takes_wgsl = tensor.client.name().contains("wgsl");
    let available = tensor.client.properties().hardware.max_shared_memory_size;
    let fits = takes_wgsl && sizes.batch * sizes.heads <= MAX_GROUPS;
    Tile::choose(sizes, available).filter(|_| fits)
}

/// Whether [`backward`] takes tables: a tile fits, pairs of pairs are whole vectors, and the device has a binding for each buffer.
pub fn rotates(sizes: &Heads, like: &CubeTensor) -> bool {
    let bindings = like.client.properties().hardware.max_bindings as usize;
    bindings >= QUERIES.len() && tile(sizes, like).is_some()
}

/// out = softmax(q·kᵀ/√dh + causal mask)·v per head; `rows` are q, k and v, N = batch·context. Returns out `[N, H·dh]` and lse
/// `[N, H]`, the logarithm of each row's sum of exponentials, which the backward pass needs. Memory grows with the context, not
/// with its square. `None` if no tile fits. (Dao et al., 2022, arXiv 2205.14135.) 1 launch.
pub fn forward(rows: &Rows<CubeTensor>, sizes: Heads) -> Option<(CubeTensor, CubeTensor)> {
    let tile = tile(&sizes, rows.first())?;
    let program = |shape| output(tile, shape);
    let own = (tile.own(), DType::F32);
    Some(attention_wgsl::forward(rows, sizes, own, program))
}

/// The gradients of q, k and v, with their shapes, from `dout` `[N, H·dh]`. Scores are recomputed tile by tile, with the saved
/// logarithms. `tables` (cos and sin, `[context, head_dim / 2]` each) have rotated q and k, and the kernels rotate their gradients
/// back. 2 launches.
pub fn backward(
    dout: &CubeTensor,
    rows: &Rows<CubeTensor>,
    out: &CubeTensor,
    lse: &CubeTensor,
    tables: Option<&[CubeTensor; 2]>,
    sizes: Heads,
) -> Rows<CubeTensor> {
    // A tile fits, because the forward pass has run.
    let tile = tile(&sizes, dout).unwrap_or(SMALLEST);
    let delta = &empty(dout, [sizes.rows(), sizes.heads]);
    let rotated = tables.is_some();
    attention_wgsl::backward(dout, rows, sizes, |shape, [q, k, v], [dq, dk, dv]| {
        let groups = [sizes.heads, sizes.kv_heads].map(|it| shape.groups(tile.own(), it));
        let launch = |program, groups, buffers: [&CubeTensor; 8]| {
            let buffers: Vec<_> = buffers
                .into_iter()
                .chain(tables.into_iter().flatten())
                .collect();
            wgsl::launch(program, groups, &buffers);
        };
        let program = queries(tile, shape.clone(), rotated);
        launch(program, groups[0], [q, k, v, dout, out, dq, lse, delta]);
        let program = keys(tile, shape, rotated);
        launch(program, groups[1], [q, k, v, dout, dk, dv, lse, delta]);
    })
}

/// The program for output and logarithms.
fn output(tile: Tile, shape: Shape) -> Program<Values<AttentionPlan>> {
    let steps = Steps::of(tile, &shape.sizes)
        .scores("s", ("q", "q"), ("k", "k"))
        .sums("sum", ("v", "v"));
    let buffers = &["q", "k", "v", "out", "lse"];
    steps.program("flash_attention.wgsl", shape, buffers)
}

/// The program for δ = rowsum(dout∘out) and dq.
fn queries(tile: Tile, shape: Shape, rotated: bool) -> Program<Values<AttentionPlan>> {
    let steps = Steps::of(tile, &shape.sizes)
        .scores("s", ("q", "q"), ("k", "k"))
        .unweighed()
        .scores("g", ("dout", "out"), ("v", "v"))
        .sums("sum", ("k", "k"));
    let buffers = if rotated { &QUERIES } else { &QUERIES[..8] };
    steps.program("flash_attention_backward_q.wgsl", shape, buffers)
}

/// The program for dk and dv.
fn keys(tile: Tile, shape: Shape, rotated: bool) -> Program<Values<AttentionPlan>> {
    let steps = Steps::of(tile, &shape.sizes)
        .scores("s", ("k", "k"), ("q", "q"))
        .sums("dvalue", ("dout", "out"))
        .scores("g", ("v", "v"), ("dout", "out"))
        .sums("dkey", ("q", "q"));
    let buffers = if rotated { &KEYS } else { &KEYS[..8] };
    steps.program("flash_attention_backward_kv.wgsl", shape, buffers)
}

/// Buffers of the backward pass; the last two only where gradients are rotated.
const QUERIES: [&str; 10] = [
    "q", "k", "v", "dout", "out", "dq", "lse", "delta", "cos", "sin",
];
const KEYS: [&str; 10] = [
    "q", "k", "v", "dout", "dk", "dv", "lse", "delta", "cos", "sin",
];

#[cfg(test)]
mod tests {
    use super::super::attention_wgsl::testing::{agrees, problems, rotated_again, valid};
    use super::super::check::TestDevice;
    use super::*;

    const PROBLEMS: &[[usize; 4]] = &[
        [64, 2, 1, 128],
        [100, 4, 2, 72],
        [130, 1, 1, 96],
        [1, 2, 2, 68],
        [70, 4, 2, 64],
        [64, 4, 2, 32],
        [33, 2, 1, 16],
        [40, 3, 1, 4],
    ];

    /// Workgroup memory of different devices, in bytes.
    const AVAILABLE: [usize; 3] = [16 * 1024, 32 * 1024, 48 * 1024];

    #[test]
    fn every_text_is_valid_wgsl() {
        for sizes in problems(PROBLEMS) {
            for available in AVAILABLE {
                let tile = Tile::choose(&sizes, available).expect("some tile fits");
                valid(sizes, |shape| output(tile, shape));
                for rotated in [false, true] {
                    valid(sizes, |shape| queries(tile, shape, rotated));
                    valid(sizes, |shape| keys(tile, shape, rotated));
                }
            }
        }
        let wide = problems(&[[64, 1, 1, 132], [64, 1, 1, 66]]);
        for sizes in wide {
            assert_eq!(Tile::choose(&sizes, 48 * 1024), None);
        }
    }

    #[test]
    fn outputs_and_gradients_are_those_of_the_cpu() {
        let Some(device) = TestDevice::any() else {
            return;
        };
        for sizes in problems(PROBLEMS) {
            agrees(&device, sizes, (forward_that_fits, plain), [1e-5, 1e-5]);
            agrees(
                &device,
                sizes,
                (forward_that_fits, there_and_back),
                [1e-5, 1e-5],
            );
        }
    }

    fn forward_that_fits(rows: &Rows<CubeTensor>, sizes: Heads) -> (CubeTensor, CubeTensor) {
        forward(rows, sizes).expect("it fits")
    }

    fn plain(
        dout: &CubeTensor,
        rows: &Rows<CubeTensor>,
        out: &CubeTensor,
        lse: &CubeTensor,
        sizes: Heads,
    ) -> Rows<CubeTensor> {
        backward(dout, rows, out, lse, None, sizes)
    }

    /// Gradients that the kernels rotate back, rotated again: they belong to the given rows.
    fn there_and_back(
        dout: &CubeTensor,
        rows: &Rows<CubeTensor>,
        out: &CubeTensor,
        lse: &CubeTensor,
        sizes: Heads,
    ) -> Rows<CubeTensor> {
        rotated_again(dout, sizes, |tables| {
            backward(dout, rows, out, lse, Some(tables), sizes)
        })
    }
}
