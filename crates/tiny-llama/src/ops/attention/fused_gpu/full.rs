//! Flash attention on a GPU in f32: `flash_attention.wgsl` and the two files of its backward pass. A workgroup owns some rows of one head and
//! iterates in tiles over the rows of the other side: the keys for queries, the queries for keys. Scores and sums stay in registers.

use crate::ops::attention::fused_gpu::launch::{self, Shape, Values};
use crate::ops::gpu::wgsl::{self, Program};
use crate::ops::gpu::{MAX_GROUPS, empty};
use crate::ops::shapes::{Heads, QkvRows};
use burn::tensor::DType;
use burn_cubecl::tensor::CubeTensor;
use minijinja::{Value, context};
use serde::{Serialize, Serializer};

/// The widest head whose gradients fit into registers.
const WIDEST: usize = 128;

/// The sizes of a workgroup. Each invocation has four own rows and four columns of a tile of scores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
struct Tile {
    /// The number of invocations down the tile; there are down × across in all.
    down: usize,
    across: usize,
    /// The number of vectors of a row that are staged together for scores.
    part: usize,
    /// The number of whole rows of the other side that are staged together for sums.
    slice: usize,
}

impl Tile {
    /// Chooses the largest tile for `available` bytes of workgroup memory; `None` if heads are too wide or are not whole vectors.
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
        [
            tile(16, across, 16, 32),
            tile(16, across, 8, 16),
            tile(8, 8, 8, 16),
            tile(8, 8, 4, 8),
        ]
        .into_iter()
        .find(|tile| tile.bytes(vectors) <= available)
    }

    /// Returns the number of rows that a workgroup owns.
    const fn own(&self) -> usize {
        4 * self.down
    }

    /// Returns the number of rows of the other side in a tile.
    const fn other(&self) -> usize {
        4 * self.across
    }

    const fn invocations(&self) -> usize {
        self.down * self.across
    }

    /// Returns the number of staged vectors: parts of own rows and of the other side's rows, or weights and a slice.
    fn staged(&self, vectors: usize) -> usize {
        let parts = (self.own() + self.other()) * (self.part + 1);
        let weights = self.own() * (self.across + 1) + self.slice * vectors;
        // If a slice's rows are not a multiple of `across` vectors, the last invocations read past it.
        parts.max(weights + self.across)
    }

    /// Returns the bytes of workgroup memory.
    fn bytes(&self, vectors: usize) -> usize {
        16 * (self.staged(vectors) + self.down * (self.across + 1))
    }
}

/// The kernels, each in a file of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum AttentionKernel {
    /// Computes output and logarithms.
    Output,
    /// Computes δ = rowsum(dout∘out) and dq.
    Queries,
    /// Computes dk and dv.
    Keys,
}

/// A kernel with its tile, which fills in the steps of an iteration in the kernel's file. A step stages rows in workgroup memory, and computes a
/// part of a tile's scores or adds a part of its sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct TiledKernel {
    kernel: AttentionKernel,
    tile: Tile,
    /// The number of vectors of a row.
    vectors: usize,
}

impl Serialize for TiledKernel {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let steps = match self.kernel {
            AttentionKernel::Output => {
                vec![self.scores("s", "q", "k", true), self.sums("sum", "v")]
            }
            AttentionKernel::Queries => vec![
                self.scores("s", "q", "k", false),
                self.scores("g", "dout", "v", true),
                self.sums("sum", "k"),
            ],
            AttentionKernel::Keys => vec![
                self.scores("s", "k", "q", true),
                self.sums("dvalue", "dout"),
                self.scores("g", "v", "dout", true),
                self.sums("dkey", "q"),
            ],
        };
        let (own, other) = (self.tile.own(), self.tile.other());
        let Tile { part, slice, .. } = self.tile;
        let score_loads = self.loads(own * part) + self.loads(other * part);
        let values = context! {
            own,
            other,
            staged => self.tile.staged(self.vectors),
            registers_of_a_step => score_loads.max(self.loads(slice * self.vectors)),
            steps => steps.concat(),
            ..Value::from_serialize(self.tile)
        };
        values.serialize(serializer)
    }
}

impl TiledKernel {
    /// Returns how many vectors each invocation loads, if a workgroup loads `vectors`.
    fn loads(&self, vectors: usize) -> usize {
        vectors.div_ceil(self.tile.invocations())
    }

    /// Returns the steps for the scores `to` of own rows with the other side's rows; `own` and `other` are their buffers. If the scores are
    /// `weighed`, the last step turns them into weights, which all invocations read after the next step is staged.
    fn scores(&self, to: &str, own: &str, other: &str, weighed: bool) -> Vec<Value> {
        let (tile, pitch) = (self.tile, self.tile.part + 1);
        let own_loads = self.loads(tile.own() * tile.part);
        let sides = [
            (own, "first", tile.own(), 0, 0),
            (other, "other", tile.other(), tile.own() * pitch, own_loads),
        ];
        let step = |from: usize| {
            let stages = sides.map(|(source, first, rows, at, register)| {
                context! {
                    source,
                    first,
                    rows,
                    // The number of staged vectors of a row, and the first of them.
                    wide => tile.part,
                    from,
                    // The offset in workgroup memory, and the distance between rows there, in vectors.
                    at,
                    pitch,
                    interleaved => at > 0,
                    // The number of vectors that each invocation loads, and the register of the first.
                    loads => self.loads(rows * tile.part),
                    register,
                }
            });
            let weighs = weighed && from + tile.part >= self.vectors;
            context! { stages, scores => true, to, weighs }
        };
        (0..self.vectors).step_by(tile.part).map(step).collect()
    }

    /// Returns the steps for the sums `to` += weights · rows of the other side, with a slice of these rows in each step.
    fn sums(&self, to: &str, source: &str) -> Vec<Value> {
        let tile = self.tile;
        let wide = self.vectors;
        let step = |slice: usize| {
            let stage = context! {
                source,
                first => format!("other + {}u", slice * tile.slice),
                rows => tile.slice,
                wide,
                from => 0,
                at => tile.own() * (tile.across + 1),
                pitch => wide,
                interleaved => false,
                loads => self.loads(tile.slice * wide),
                register => 0,
            };
            context! { stages => [stage], scores => false, to, slice, weighs => false }
        };
        (0..tile.other() / tile.slice).map(step).collect()
    }
}

/// Returns the program of a kernel. In the backward pass, gradients may be rotated back.
fn program(
    kernel: AttentionKernel,
    tile: Tile,
    shape: Shape,
    rotated: bool,
) -> Program<Values<TiledKernel>> {
    let (file, buffers) = match kernel {
        AttentionKernel::Output => ("attention/flash_attention.wgsl", &OUTPUT[..]),
        AttentionKernel::Queries => ("attention/flash_attention_backward_q.wgsl", &QUERIES[..]),
        AttentionKernel::Keys => ("attention/flash_attention_backward_kv.wgsl", &KEYS[..]),
    };
    let tiled = TiledKernel {
        kernel,
        tile,
        vectors: shape.sizes.head_dim / 4,
    };
    let values = Values {
        shape,
        buffers: if rotated {
            buffers
        } else {
            &buffers[..buffers.len().min(8)]
        },
        vector: "vec4<f32>",
        tile: tiled,
    };
    Program::new(file, tile.invocations(), values)
}

/// Returns the tile for a problem on the device of `tensor`; `None` if no tile fits, if a launch cannot have as many workgroups as the problem
/// has heads, or if the device does not run WGSL.
fn tile(sizes: &Heads, tensor: &CubeTensor) -> Option<Tile> {
    let takes_wgsl = tensor.client.name().contains("wgsl");
    let available = tensor.client.properties().hardware.max_shared_memory_size;
    if !takes_wgsl || sizes.batch * sizes.heads > MAX_GROUPS {
        return None;
    }
    Tile::choose(sizes, available)
}

/// Returns true if [`backward`] can rotate gradients back: a tile fits, and the device has a binding for each buffer.
pub(crate) fn rotates(sizes: &Heads, like: &CubeTensor) -> bool {
    let bindings = like.client.properties().hardware.max_bindings as usize;
    bindings >= QUERIES.len() && tile(sizes, like).is_some()
}

/// Computes out = softmax(q·kᵀ/√dh + causal mask)·v of each head; `rows` are q, k and v, N = batch·context. Returns out `[N, H·dh]` and lse
/// `[N, H]`, the logarithm of each row's sum of exponentials, which the backward pass needs; `None` if no tile fits. Memory grows with the
/// context, not with its square. 1 launch.
pub(crate) fn forward(rows: &QkvRows<CubeTensor>, sizes: Heads) -> Option<[CubeTensor; 2]> {
    let tile = tile(&sizes, rows.first())?;
    let program = |shape| program(AttentionKernel::Output, tile, shape, false);
    let own = (tile.own(), DType::F32);
    Some(launch::forward(rows, sizes, own, program))
}

/// Returns the gradients of q, k and v, in the form of `rows`, from `dout` `[N, H·dh]`. Scores are recomputed tile by tile, with the saved
/// logarithms. If q and k were rotated by `tables` (cos and sin, `[context, head_dim / 2]` each), their gradients are rotated back. 2 launches.
pub(crate) fn backward(
    dout: &CubeTensor,
    rows: &QkvRows<CubeTensor>,
    out: &CubeTensor,
    lse: &CubeTensor,
    tables: Option<&[CubeTensor; 2]>,
    sizes: Heads,
) -> QkvRows<CubeTensor> {
    let tile = tile(&sizes, dout).expect("a tile fits, because the forward pass has run");
    let delta = &empty(dout, [sizes.rows(), sizes.heads]);
    let rotated = tables.is_some();
    launch::backward(dout, rows, sizes, |shape, [q, k, v], [dq, dk, dv]| {
        let launch = |kernel, heads, buffers: [&CubeTensor; 8]| {
            let all: Vec<_> = buffers
                .into_iter()
                .chain(tables.into_iter().flatten())
                .collect();
            let groups = shape.groups(tile.own(), heads);
            wgsl::launch(program(kernel, tile, shape.clone(), rotated), groups, &all);
        };
        let query_buffers = [q, k, v, dout, out, dq, lse, delta];
        launch(AttentionKernel::Queries, sizes.heads, query_buffers);
        let key_buffers = [q, k, v, dout, dk, dv, lse, delta];
        launch(AttentionKernel::Keys, sizes.kv_heads, key_buffers);
    })
}

/// The buffers of each kernel. cos and sin are left out if gradients are not rotated back.
const OUTPUT: [&str; 5] = ["q", "k", "v", "out", "lse"];
const QUERIES: [&str; 10] = [
    "q", "k", "v", "dout", "out", "dq", "lse", "delta", "cos", "sin",
];
const KEYS: [&str; 10] = [
    "q", "k", "v", "dout", "dk", "dv", "lse", "delta", "cos", "sin",
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::attention::fused_gpu::launch::testing::{
        agrees, problems, rotated_again, valid,
    };
    use crate::ops::gpu::check::TestDevice;

    /// Context, heads, key and value heads, and head width.
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

    /// The workgroup memory of different devices, in bytes.
    const AVAILABLE: [usize; 3] = [16 * 1024, 32 * 1024, 48 * 1024];

    #[test]
    fn every_text_is_valid_wgsl() {
        for sizes in problems(PROBLEMS) {
            for available in AVAILABLE {
                let tile = Tile::choose(&sizes, available).expect("some tile fits");
                valid(sizes, |shape| {
                    program(AttentionKernel::Output, tile, shape, false)
                });
                for rotated in [false, true] {
                    for kernel in [AttentionKernel::Queries, AttentionKernel::Keys] {
                        valid(sizes, |shape| program(kernel, tile, shape, rotated));
                    }
                }
            }
        }
        let wide = problems(&[[64, 1, 1, 132], [64, 1, 1, 66]]);
        for sizes in wide {
            assert_eq!(Tile::choose(&sizes, 48 * 1024), None);
        }
    }

    #[test]
    fn outputs_and_gradients_agree_with_the_cpu_kernels() {
        let Some(device) = TestDevice::any() else {
            return;
        };
        for sizes in problems(PROBLEMS) {
            for backward in [without_tables, with_tables] {
                agrees(&device, sizes, (forward_that_fits, backward), [1e-5, 1e-5]);
            }
        }
    }

    fn forward_that_fits(rows: &QkvRows<CubeTensor>, sizes: Heads) -> [CubeTensor; 2] {
        forward(rows, sizes).expect("a tile fits")
    }

    fn without_tables(
        dout: &CubeTensor,
        rows: &QkvRows<CubeTensor>,
        out: &CubeTensor,
        lse: &CubeTensor,
        sizes: Heads,
    ) -> QkvRows<CubeTensor> {
        backward(dout, rows, out, lse, None, sizes)
    }

    /// Lets the kernels rotate gradients back and then rotates them again, so that they belong to the given rows.
    fn with_tables(
        dout: &CubeTensor,
        rows: &QkvRows<CubeTensor>,
        out: &CubeTensor,
        lse: &CubeTensor,
        sizes: Heads,
    ) -> QkvRows<CubeTensor> {
        rotated_again(dout, sizes, |tables| {
            backward(dout, rows, out, lse, Some(tables), sizes)
        })
    }
}
