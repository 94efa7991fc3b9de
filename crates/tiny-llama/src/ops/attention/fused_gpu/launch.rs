//! How the WGSL kernels for attention are launched, and the values that fill in their files.

use crate::ops::gpu::wgsl::{self, Wgsl};
use crate::ops::gpu::{empty, empty_of};
use crate::ops::shapes::{Columns, Heads, QkvRows};
use burn::tensor::DType;
use burn_cubecl::tensor::CubeTensor;
use minijinja::{Value, context};
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;

/// Launches the kernel that `program` makes, whose workgroups own `own` rows. Returns out `[N, H·dh]` with elements of type `element`, and lse
/// `[N, H]`; see [`super::full::forward`]. 1 launch.
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

/// Returns the gradients of `rows`, with the shapes and types of these. `launch` gets the shape, q, k and v, and writes dq, dk and dv.
pub(super) fn backward(
    dout: &CubeTensor,
    rows: &QkvRows<CubeTensor>,
    sizes: Heads,
    launch: impl FnOnce(Shape, [&CubeTensor; 3], [&CubeTensor; 3]),
) -> QkvRows<CubeTensor> {
    let gradients = rows
        .as_ref()
        .map(|x| empty_of(x.dtype, dout, x.meta.shape()));
    let (inputs, shape) = Shape::for_launch(rows, sizes);
    let outputs = gradients.columns(&sizes).map(|(buffer, _)| buffer);
    launch(shape, inputs, outputs);
    gradients
}

/// The sizes, and the columns of q, k and v in their buffers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Shape {
    pub sizes: Heads,
    pub columns: [Columns; 3],
}

/// The names of buffers, in the order of the bindings.
pub(super) type Buffers = &'static [&'static str];

/// The values that fill in a file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Values<T> {
    pub shape: Shape,
    pub buffers: Buffers,
    /// The WGSL type of four values of a row. The gradient of the output is f32 in every file.
    pub vector: &'static str,
    /// The sizes of tile and workgroup, with the names that the file has for them.
    pub tile: T,
}

impl<T: Serialize> Serialize for Values<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let element = |name: &str| match name {
            "lse" | "delta" => "f32",
            "cos" | "sin" => "vec2<f32>",
            "dout" => "vec4<f32>",
            _ => self.vector,
        };
        let binding = |name: &&'static str| context! { name, element => element(name) };
        let sizes = self.shape.sizes;
        let own = context! {
            scale => format!("{:?}", sizes.scale()),
            lines => self.shape.lines(),
            bindings => self.buffers.iter().map(binding).collect::<Vec<_>>(),
            // True if the gradients of q and k are rotated back.
            rotated => self.buffers.contains(&"cos"),
            ..Value::from_serialize(sizes)
        };
        context! { ..own, ..Value::from_serialize(&self.tile) }.serialize(serializer)
    }
}

impl Shape {
    /// Returns the buffers of q, k and v, and the shape of a launch on them.
    fn for_launch(rows: &QkvRows<CubeTensor>, sizes: Heads) -> ([&CubeTensor; 3], Self) {
        let all = rows.columns(&sizes);
        let columns = all.map(|(_, columns)| columns);
        (all.map(|(buffer, _)| buffer), Self { sizes, columns })
    }

    /// Returns the number of workgroups along each axis, if each owns `own` rows and a sequence has `heads` heads.
    pub(super) fn groups(&self, own: usize, heads: usize) -> [usize; 3] {
        let Heads { batch, context, .. } = self.sizes;
        [context.div_ceil(own), batch * heads, 1]
    }

    /// Returns, for each buffer, where the rows of one head are in it: the offset of row 0 as WGSL, and the distance between rows.
    fn lines(&self) -> BTreeMap<&'static str, Value> {
        let [q, k, v] = self.columns;
        let Heads {
            heads, head_dim, ..
        } = self.sizes;
        let whole_buffer = Columns {
            offset: 0,
            stride: heads * head_dim,
        };
        [
            ("q", "head", q),
            ("k", "kv_head", k),
            ("v", "kv_head", v),
            ("out", "head", whole_buffer),
            ("dout", "head", whole_buffer),
        ]
        .map(|(name, head, Columns { offset, stride })| {
            let start = format!("(sequence * {stride}u + {offset}u + {head} * {head_dim}u)");
            (name, context! { start, stride })
        })
        .into()
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
        all.iter()
            .map(|&[context, heads, kv_heads, head_dim]| Heads {
                batch: 2,
                context,
                heads,
                kv_heads,
                head_dim,
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

    /// Returns the packed gradients of `backward`, which rotates them back by tables. They are rotated forward here, so that they belong to
    /// rows that were not rotated.
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

    /// Asserts that outputs and gradients agree with those of the CPU's kernels, within a tolerance for outputs and one for gradients.
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

    /// Does [`agrees`] for these rows of q, k and v.
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
        let mut want_lse = Vec::new();
        for row in 0..sizes.rows() {
            for head in 0..heads {
                let index = (row / context * heads + head) * context + row % context;
                want_lse.push(by_head[index]);
            }
        }
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
