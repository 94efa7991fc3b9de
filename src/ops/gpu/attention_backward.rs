//! The backward pass of `attention`: scores are computed again tile by tile from the saved logarithms.
//! Two kernels of one shape, since queries and keys change roles: each owns rows and walks over the other side. They are in
//! `attention_backward_q` and `attention_backward_kv`.

use super::attention_backward_kv::{self, flash_attention_backward_kv};
use super::attention_backward_q::{self, flash_attention_backward_q};
use super::attention_tile::{Heads, Place, Tile, write_vector};
use super::{Columns, Float4, arg, empty, groups, vector_width};
use burn::cubecl::{self, prelude::*};
use burn_cubecl::tensor::CubeTensor;

/// What the forward pass read and returned.
#[derive(Clone, Copy)]
pub struct Saved<'a> {
    pub q: Columns<'a>,
    pub k: Columns<'a>,
    pub v: Columns<'a>,
    /// `[N, H·dh]`
    pub out: &'a CubeTensor,
    /// `[N, H]`
    pub lse: &'a CubeTensor,
}

/// With P = exp(q·kᵀ/√dh − lse), dP = dout·vᵀ, δ = rowsum(dout∘out), dS = P∘(dP − δ)/√dh:
/// dq = dS·k, dk = dSᵀ·q, dv = Pᵀ·dout, the last two summed over the query heads of a group.
/// Each gradient is written to the columns given for it, in the layout of what it is the gradient of. 2 launches.
pub fn backward_into(dout: &CubeTensor, saved: Saved, [dq, dk, dv]: [Columns; 3], sizes: Heads) {
    let Saved { q, k, v, out, lse } = saved;
    let delta = empty(dout, [sizes.batch * sizes.context, sizes.heads]);
    let all = [q, k, v, dq, dk, dv];
    let mut alignment = vec![sizes.head_dim];
    alignment.extend(
        all.iter()
            .flat_map(|columns| [columns.offset, columns.stride]),
    );
    let lanes = vector_width(&alignment);
    let layout = Layout {
        q: (q.offset, q.stride),
        k: (k.offset, k.stride),
        v: (v.offset, v.stride),
        dq: (dq.offset, dq.stride),
        dk: (dk.offset, dk.stride),
        dv: (dv.offset, dv.stride),
    };
    let tile = Tile::choose(&sizes, dout, |tile| {
        attention_backward_q::shared_vectors(tile).max(attention_backward_kv::shared_vectors(tile))
    });
    let tiles = sizes.context.div_ceil(tile.rows());
    let dim = CubeDim::new_1d(tile.threads() as u32);
    unsafe {
        flash_attention_backward_q::launch_unchecked(
            &dout.client,
            groups(tiles * sizes.batch * sizes.heads),
            dim,
            lanes,
            q.arg(),
            k.arg(),
            v.arg(),
            arg(out),
            arg(dout),
            arg(lse),
            arg(&delta),
            dq.arg(),
            tiles,
            sizes.scale(),
            layout,
            sizes,
            tile,
        );
        flash_attention_backward_kv::launch_unchecked(
            &dout.client,
            groups(tiles * sizes.batch * sizes.kv_heads),
            dim,
            lanes,
            q.arg(),
            k.arg(),
            v.arg(),
            arg(dout),
            arg(lse),
            arg(&delta),
            dk.arg(),
            dv.arg(),
            tiles,
            sizes.scale(),
            layout,
            sizes,
            tile,
        );
    }
}

/// [`backward_into`] three new tensors, shaped as q `[N, H·dh]`, k and v `[N, KV·dh]`.
pub fn backward(dout: &CubeTensor, saved: Saved, sizes: Heads) -> [CubeTensor; 3] {
    let rows = sizes.batch * sizes.context;
    let (wide, narrow) = (
        sizes.heads * sizes.head_dim,
        sizes.kv_heads * sizes.head_dim,
    );
    let gradients = [wide, narrow, narrow].map(|width| empty(dout, [rows, width]));
    let [dq, dk, dv] = &gradients;
    let columns = [
        Columns::all(dq, wide),
        Columns::all(dk, narrow),
        Columns::all(dv, narrow),
    ];
    backward_into(dout, saved, columns, sizes);
    gradients
}

/// [`backward_into`] one new tensor `[N, (H + 2·KV)·dh]` with dq, dk and dv side by side.
pub fn backward_packed(dout: &CubeTensor, saved: Saved, sizes: Heads) -> CubeTensor {
    let rows = sizes.batch * sizes.context;
    let (wide, narrow) = (
        sizes.heads * sizes.head_dim,
        sizes.kv_heads * sizes.head_dim,
    );
    let width = wide + 2 * narrow;
    let packed = empty(dout, [rows, width]);
    let columns = [0, wide, wide + narrow].map(|offset| Columns::at(&packed, offset, width));
    backward_into(dout, saved, columns, sizes);
    packed
}

/// Offset and row stride of every operand, fixed when the kernel is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    pub q: (usize, usize),
    pub k: (usize, usize),
    pub v: (usize, usize),
    pub dq: (usize, usize),
    pub dk: (usize, usize),
    pub dv: (usize, usize),
}

/// Where row 0 of a sequence's head begins.
#[cube]
pub fn start_of(
    batch: usize,
    head: usize,
    #[comptime] at: (usize, usize),
    #[comptime] sizes: Heads,
) -> usize {
    batch * comptime!(sizes.context * at.1) + head * sizes.head_dim + comptime!(at.0)
}

/// Writes the first team's accumulated rows, `[rows, head_dim]` from `start` on.
#[cube]
pub fn write_rows<N: Size>(
    target: &mut [Vector<f32, N>],
    acc: &Array<Float4>,
    start: usize,
    stride: usize,
    first: usize,
    end: usize,
    place: &Place,
    #[comptime] tile: Tile,
) {
    let owned = comptime!(tile.owned());
    #[unroll]
    for i in 0..4usize {
        let row = first + place.y * 4 + i;
        if row < end && place.team == 0 {
            #[unroll]
            for j in 0..owned {
                let vector = place.x + comptime!(j * 8);
                if vector < comptime!(tile.vectors()) {
                    write_vector::<N>(
                        target,
                        start + row * stride,
                        vector,
                        acc[comptime!(i * owned + j)],
                        tile,
                    );
                }
            }
        }
    }
}
