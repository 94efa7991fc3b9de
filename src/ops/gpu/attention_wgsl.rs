//! What the attention kernels that are written as WGSL share: their launches, what their texts depend on, and how they name the
//! rows of a head.

use super::empty;
use super::wgsl::{self, Program, line};
use crate::ops::shapes::{Columns, Heads, Rows};
use burn_cubecl::tensor::CubeTensor;
use std::fmt::Write as _;

/// As [`super::attention::forward`], by the kernel that `program` makes, whose workgroups own `own` rows. 1 launch.
pub fn forward<P: Program>(
    rows: &Rows<CubeTensor>,
    sizes: Heads,
    own: usize,
    program: fn(Shape) -> P,
) -> (CubeTensor, CubeTensor) {
    let ([q, k, v], shape) = Shape::of(rows, sizes);
    let out = empty(q, [sizes.rows(), sizes.heads * sizes.head_dim]);
    let lse = empty(q, [sizes.rows(), sizes.heads]);
    let groups = shape.groups(own, sizes.heads);
    wgsl::launch(program(shape), groups, &[q, k, v, &out, &lse]);
    (out, lse)
}

/// Gradients of the rows' shapes. `launch` gets what its texts depend on, q, k and v, and dq, dk and dv, which it fills.
pub fn backward(
    dout: &CubeTensor,
    rows: &Rows<CubeTensor>,
    sizes: Heads,
    launch: impl FnOnce(Shape, [&CubeTensor; 3], [&CubeTensor; 3]),
) -> Rows<CubeTensor> {
    let gradients = rows
        .as_ref()
        .map(|x| empty::<2>(dout, x.meta.shape().dims()));
    let (of_rows, shape) = Shape::of(rows, sizes);
    let filled = gradients.columns(&sizes).map(|(buffer, _)| buffer);
    launch(shape, of_rows, filled);
    gradients
}

/// Sizes, and the columns of q, k and v in their buffers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    pub sizes: Heads,
    pub columns: [Columns; 3],
}

/// The rows of one head in a buffer, as WGSL: where row 0 begins, and values from row to row.
#[derive(Clone, Debug)]
pub struct Lines {
    pub start: String,
    pub stride: usize,
}

impl Shape {
    /// The buffers of q, k and v, and what a text depends on.
    fn of(rows: &Rows<CubeTensor>, sizes: Heads) -> ([&CubeTensor; 3], Self) {
        let [(q, of_q), (k, of_k), (v, of_v)] = rows.columns(&sizes);
        let columns = [of_q, of_k, of_v];
        ([q, k, v], Self { sizes, columns })
    }

    /// Workgroups of `own` rows for all sequences, each with so many heads.
    pub fn groups(&self, own: usize, heads: usize) -> [usize; 3] {
        let Heads { batch, context, .. } = self.sizes;
        [context.div_ceil(own), batch * heads, 1]
    }

    /// The rows of q, k or v.
    pub fn lines(&self, index: usize, head: &str) -> Lines {
        let Columns { offset, stride } = self.columns[index];
        let head_dim = self.sizes.head_dim;
        Lines {
            start: format!("(sequence * {stride}u + {offset}u + {head} * {head_dim}u)"),
            stride,
        }
    }

    /// The rows of the output and its gradient.
    pub fn dense(&self) -> Lines {
        let Heads {
            heads, head_dim, ..
        } = self.sizes;
        let stride = heads * head_dim;
        Lines {
            start: format!("(sequence * {stride}u + head * {head_dim}u)"),
            stride,
        }
    }

    /// Buffers of vectors, then of numbers, in the order of their bindings.
    pub fn bindings(text: &mut String, vectors: &[&str], numbers: &[&str]) {
        let vectors = vectors.iter().map(|name| (name, "vec4<f32>"));
        let all = vectors.chain(numbers.iter().map(|name| (name, "f32")));
        for (index, (name, kind)) in all.enumerate() {
            line!(
                text,
                "@group(0) @binding({index}) var<storage, read_write> {name}: array<{kind}>;"
            );
        }
    }

    /// Workgroup y as a sequence's first row, and one of `heads`: query heads, or key and value heads.
    pub fn place(&self, text: &mut String, heads: usize) {
        let context = self.sizes.context;
        line!(text, "  let sequence = group.y / {heads}u * {context}u;");
        if heads == self.sizes.heads {
            line!(
                text,
                "  let head = group.y % {heads}u;\n  let kv_head = head / {}u;",
                self.sizes.group()
            );
        } else {
            line!(text, "  let kv_head = group.y % {heads}u;");
        }
    }
}

#[cfg(test)]
pub mod testing {
    use super::super::check::{Device, close, valid_wgsl};
    use super::super::{attention, attention_backward};
    use super::*;
    use crate::ops::cpu::testing::numbers;

    /// Two sequences of each context, heads, key and value heads, and head width.
    pub fn problems(all: &[[usize; 4]]) -> Vec<Heads> {
        let all = all.iter();
        all.map(|[context, heads, kv_heads, head_dim]| Heads {
            batch: 2,
            context: *context,
            heads: *heads,
            kv_heads: *kv_heads,
            head_dim: *head_dim,
        })
        .collect()
    }

    /// The text is valid for q, k and v in one buffer.
    pub fn valid<P: Program>(sizes: Heads, program: fn(Shape) -> P) {
        let [q, k, _] = sizes.widths();
        let stride = q + 2 * k;
        let columns = [0, q, q + k].map(|offset| Columns { offset, stride });
        valid_wgsl(&program(Shape { sizes, columns }).text());
    }

    type Forward = fn(&Rows<CubeTensor>, Heads) -> (CubeTensor, CubeTensor);
    type Backward =
        fn(&CubeTensor, &Rows<CubeTensor>, &CubeTensor, &CubeTensor, Heads) -> Rows<CubeTensor>;

    /// Outputs and gradients are those of the kernels in CubeCL, within tolerances for the first and the latter.
    pub fn agrees(
        device: &Device,
        sizes: Heads,
        (forward, backward): (Forward, Backward),
        tolerances: [f32; 2],
    ) {
        let [q, k, _] = sizes.widths();
        let wide = q + 2 * k;
        let packed = numbers(1, sizes.rows() * wide);
        let rows = Rows::Packed(device.tensor(&packed, [sizes.rows(), wide]));
        let dout = device.tensor(&numbers(2, sizes.rows() * q), [sizes.rows(), q]);
        let (out, lse) = forward(&rows, sizes);
        let (want, want_lse) = attention::forward(&rows, sizes);
        let gradients = backward(&dout, &rows, &want, &want_lse, sizes);
        let wanted = attention_backward::backward(&dout, &rows, &want, &want_lse, sizes);
        let all = [
            ("out", &out, &want, tolerances[0]),
            ("lse", &lse, &want_lse, tolerances[0]),
            (
                "gradients",
                gradients.first(),
                wanted.first(),
                tolerances[1],
            ),
        ];
        for (name, got, want, tolerance) in all {
            let name = format!("{name} {sizes:?}");
            close(&name, &device.read(got), &device.read(want), tolerance);
        }
    }
}
