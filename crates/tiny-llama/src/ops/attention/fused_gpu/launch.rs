//! Launches of the attention kernels in `wgsl/`, and the values that fill in their files.

use crate::ops::gpu::wgsl::{self, Wgsl};
use crate::ops::gpu::{empty, empty_of};
use crate::ops::shapes::{Columns, Heads, QkvRows};
use burn::tensor::DType;
use burn_cubecl::tensor::CubeTensor;
use minijinja::{Value, context};
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;

/// As [`super::full::forward`], with the kernel that `program` makes, whose workgroups own `own` rows; the output has elements
/// of type `element`. 1 launch.
pub(super) fn forward<P: Wgsl>(
    rows: &QkvRows<CubeTensor>,
    sizes: Heads,
    (own, element): (usize, DType),
    program: impl FnOnce(Shape) -> P,
) -> [CubeTensor; 2] {
    let ([q, k, v], shape) = Shape::for_launch(rows, sizes);
    let out = empty_of(element, q, [sizes.rows(), sizes.heads * sizes.head_dim]);
    let lse = empty(q, [sizes.rows(), sizes.heads]);
    let groups = shape.groups(own, sizes.heads);
    wgsl::launch(program(shape), groups, &[q, k, v, &out, &lse]);
    [out, lse]
}

/// Returns the gradients with the rows' shapes and elements. `launch` gets the parameters of its texts, q, k and v, and writes dq, dk and
/// dv.
pub(super) fn backward(
    dout: &CubeTensor,
    rows: &QkvRows<CubeTensor>,
    sizes: Heads,
    launch: impl FnOnce(Shape, [&CubeTensor; 3], [&CubeTensor; 3]),
) -> QkvRows<CubeTensor> {
    let gradients = rows.as_ref();
    let gradients = gradients.map(|x| empty_of(x.dtype, dout, x.meta.shape()));
    let (of_rows, shape) = Shape::for_launch(rows, sizes);
    let filled = gradients.columns(&sizes).map(|(buffer, _)| buffer);
    launch(shape, of_rows, filled);
    gradients
}

/// The sizes, and the columns of q, k and v in their buffers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Shape {
    pub sizes: Heads,
    pub columns: [Columns; 3],
}

/// These are the names of buffers, in the order of the bindings.
pub(super) type Buffers = &'static [&'static str];

/// The values that fill in a file; sizes and tile have the names of the file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Values<T> {
    pub shape: Shape,
    pub buffers: Buffers,
    /// This is the type of four values of a row. The output's gradient is f32.
    pub vector: &'static str,
    /// These are the sizes of tile and workgroup.
    pub tile: T,
}

impl<T: Serialize> Serialize for Values<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let of = |name: &str| match name {
            "lse" | "delta" => "f32",
            "cos" | "sin" => "vec2<f32>",
            "dout" => "vec4<f32>",
            _ => self.vector,
        };
        let binding = |name: &&'static str| context! { name, of => of(name) };
        let sizes = self.shape.sizes;
        let own = context! {
            scale => format!("{:?}", sizes.scale()),
            lines => self.shape.lines(),
            bindings => self.buffers.iter().map(binding).collect::<Vec<_>>(),
            // Whether gradients of q and k are rotated back.
            rotated => self.buffers.contains(&"cos"),
            ..Value::from_serialize(sizes)
        };
        context! { ..own, ..Value::from_serialize(&self.tile) }.serialize(serializer)
    }
}

impl Shape {
    /// Returns the buffers of q, k and v, and the parameters of a text.
    fn for_launch(rows: &QkvRows<CubeTensor>, sizes: Heads) -> ([&CubeTensor; 3], Self) {
        let [(q, of_q), (k, of_k), (v, of_v)] = rows.columns(&sizes);
        let columns = [of_q, of_k, of_v];
        ([q, k, v], Self { sizes, columns })
    }

    /// Returns the workgroups of `own` rows for all sequences with `heads` heads each.
    pub(super) fn groups(&self, own: usize, heads: usize) -> [usize; 3] {
        let Heads { batch, context, .. } = self.sizes;
        [context.div_ceil(own), batch * heads, 1]
    }

    /// Returns, as WGSL, where the rows of one head are: the offset of row 0, and the distance between rows. Besides q, k and v, there are
    /// the output and its gradient, whose buffers hold nothing else.
    fn lines(&self) -> BTreeMap<&'static str, Value> {
        let [q, k, v] = self.columns;
        let Heads {
            heads, head_dim, ..
        } = self.sizes;
        let (offset, stride) = (0, heads * head_dim);
        let all = [
            ("q", "head", q),
            ("k", "kv_head", k),
            ("v", "kv_head", v),
            ("out", "head", Columns { offset, stride }),
            ("dout", "head", Columns { offset, stride }),
        ];
        let lines = all.map(|(name, head, Columns { offset, stride })| {
            let start = format!("(sequence * {stride}u + {offset}u + {head} * {head_dim}u)");
            (name, context! { start, stride })
        });
        lines.into()
    }
}

#[cfg(test)]
pub(super) mod testing {
    use super::*;
    use crate::ops::attention::fused_cpu;
    use crate::ops::cpu::testing::numbers;
    use crate::ops::gpu::check::{TestDevice, close, valid_wgsl};
    use crate::ops::rope::fused_gpu as rope;
    use crate::ops::rope::tables;
    use crate::ops::shapes::Rotation;

    /// Returns problems of two sequences from context, heads, key and value heads, and head width.
    pub(crate) fn problems(all: &[[usize; 4]]) -> Vec<Heads> {
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

    /// Returns the text for q, k and v in one buffer. Fails when it is not valid.
    pub(crate) fn valid<P: Wgsl>(sizes: Heads, program: impl Fn(Shape) -> P) -> String {
        let [q, k, _] = sizes.widths();
        let stride = q + 2 * k;
        let columns = [0, q, q + k].map(|offset| Columns { offset, stride });
        let text = program(Shape { sizes, columns }).text();
        valid_wgsl(&text);
        text
    }

    /// Returns the packed gradients that `backward` rotates back by tables, rotated again, so that they belong to rows that were not
    /// rotated.
    pub(crate) fn rotated_again(
        dout: &CubeTensor,
        sizes: Heads,
        backward: impl FnOnce(&[CubeTensor; 2]) -> QkvRows<CubeTensor>,
    ) -> QkvRows<CubeTensor> {
        let (cos, sin) = tables(sizes.context, sizes.head_dim, 100.0);
        let tables = [cos, sin].map(|values| {
            let mut table = empty(dout, [sizes.context, sizes.head_dim / 2]);
            let bytes: Vec<u8> = values.into_iter().flat_map(f32::to_le_bytes).collect();
            table.handle = dout.client.create_from_slice(&bytes);
            table
        });
        let [q, k, v] = sizes.widths();
        let rotation = Rotation {
            width: q + k + v,
            rotated: q + k,
            head_dim: sizes.head_dim,
            context: sizes.context,
            inverse: false,
        };
        let [cos, sin] = &tables;
        backward(&tables).map(|rows| rope::forward(&rows, cos, sin, rotation, DType::F32))
    }

    type Forward = fn(&QkvRows<CubeTensor>, Heads) -> [CubeTensor; 2];
    type Backward = fn(
        &CubeTensor,
        &QkvRows<CubeTensor>,
        &CubeTensor,
        &CubeTensor,
        Heads,
    ) -> QkvRows<CubeTensor>;

    /// Asserts that outputs and gradients equal those of the CPU's kernels, within one tolerance each.
    pub(crate) fn agrees(
        device: &TestDevice,
        sizes: Heads,
        (forward, backward): (Forward, Backward),
        tolerances: [f32; 2],
    ) {
        let [q, k, _] = sizes.widths();
        let packed = numbers(1, sizes.rows() * (q + 2 * k));
        agrees_on(device, sizes, &packed, (forward, backward), tolerances);
    }

    /// Asserts that outputs and gradients equal those of the CPU's kernels for these rows of q, k and v.
    pub(crate) fn agrees_on(
        device: &TestDevice,
        sizes: Heads,
        packed: &[f32],
        (forward, backward): (Forward, Backward),
        tolerances: [f32; 2],
    ) {
        let [q, k, _] = sizes.widths();
        let wide = q + 2 * k;
        let rows = QkvRows::Packed(device.tensor(packed, [sizes.rows(), wide]));
        let slopes = numbers(2, sizes.rows() * q);
        let dout = device.tensor(&slopes, [sizes.rows(), q]);
        let [out, lse] = forward(&rows, sizes);
        let gradients = backward(&dout, &rows, &out, &lse, sizes);
        let values = QkvRows::Packed(packed);
        let (want, by_head) = fused_cpu::forward(values, sizes);
        let wanted = fused_cpu::backward(values, &want, &by_head, &slopes, sizes);
        // The CPU's logarithms are ordered by sequence, head and row.
        let Heads { context, heads, .. } = sizes;
        let at = |row: usize, head: usize| (row / context * heads + head) * context + row % context;
        let places = (0..sizes.rows()).flat_map(|row| (0..heads).map(move |head| (row, head)));
        let want_lse: Vec<f32> = places.map(|(row, head)| by_head[at(row, head)]).collect();
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
            close(&name, &device.read(got), want, tolerance);
        }
    }
}
