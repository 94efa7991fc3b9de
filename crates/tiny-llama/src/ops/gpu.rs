//! The tools of the GPU kernels, which are the files `fused_gpu.rs` and `naive_gpu.rs` of the operations: buffers, numbers of workgroups, and
//! reductions over a workgroup. Kernels read contiguous tensors.

#[cfg(test)]
pub mod check;
pub mod format;
pub mod peaks;
pub mod recording;
pub mod reduce;
pub mod wgsl;

use burn::backend::cubecl::dtype_to_elem_type;
use burn::cubecl::ir::ElemType;
use burn::cubecl::{self, prelude::*};
use burn::tensor::{DType, Shape};
use burn_cubecl::{ops::numeric::empty_device_contiguous_dtype, tensor::CubeTensor};
pub(crate) use wgsl::MAX_GROUPS;

use super::format::Format;

/// Four adjacent values, the widest load from a WGSL storage buffer.
pub type Float4 = Vector<f32, Const<4>>;

/// Returns a new f32 tensor on the device of `like`, with undefined contents.
pub fn empty(like: &CubeTensor, shape: impl Into<Shape>) -> CubeTensor {
    empty_of(DType::F32, like, shape)
}

/// Returns a new tensor of f32 or f16 on the device of `like`, with undefined contents.
pub fn empty_of(dtype: DType, like: &CubeTensor, shape: impl Into<Shape>) -> CubeTensor {
    let client = like.client.clone();
    let device = like.device.clone();
    empty_device_contiguous_dtype(client, device, shape.into(), dtype)
}

/// Returns the element type of a tensor, for kernels that write f32 or f16.
pub(crate) fn element(tensor: &CubeTensor) -> ElemType {
    dtype_to_elem_type(tensor.dtype)
}

/// Returns the element type of a kernel's output that has as many elements as x and is an operand of products in `format`. f16 saves the
/// products a conversion; the conversion back handles four values at a time.
pub(super) fn operand_type(format: Format, x: &CubeTensor) -> DType {
    if format == Format::Native && x.meta.num_elements().is_multiple_of(8) {
        DType::F16
    } else {
        DType::F32
    }
}

/// Returns true if the tensor holds f16.
pub(super) fn is_f16(tensor: &CubeTensor) -> bool {
    tensor.dtype == DType::F16
}

/// Returns the values of a contiguous f32 tensor; `None` if the device does not answer. This waits for the device.
pub fn read(tensor: &CubeTensor) -> Option<Vec<f32>> {
    let bytes = tensor.client.read_one(tensor.handle.clone()).ok()?;
    let (values, _) = bytes.as_chunks::<4>();
    let count = tensor.meta.num_elements();
    Some(
        values
            .iter()
            .take(count)
            .copied()
            .map(f32::from_le_bytes)
            .collect(),
    )
}

/// Returns the tensor as a kernel's buffer argument. Kernels index it as a flat array.
pub(crate) fn arg(tensor: &CubeTensor) -> BufferArg {
    debug_assert!(tensor.is_contiguous(), "kernels read contiguous tensors");
    tensor.clone().into_buffer_arg()
}

/// Returns how many values one load may take: 4 if all these offsets, strides and widths are multiples of 4, otherwise 1.
pub(crate) fn vector_width(sizes: &[usize]) -> usize {
    if sizes.iter().all(|size| size.is_multiple_of(4)) {
        4
    } else {
        1
    }
}

/// Returns at least `count` workgroups, in two dimensions if one is too long. Kernels use `CUBE_POS` as the workgroup's number and return
/// if it exceeds their count.
pub(crate) fn groups(count: usize) -> CubeCount {
    let [x, y, z] = wgsl::groups(count).map(|count| count as u32);
    CubeCount::Static(x, y, z)
}

/// Returns the sum of one value per invocation to all invocations, with two barriers and in a fixed order of additions. `threads` is a
/// multiple of 16; `scratch` holds `threads + 16` values.
#[cube]
pub(crate) fn workgroup_sum(
    value: f32,
    scratch: &mut Shared<[f32]>,
    #[comptime] threads: usize,
) -> f32 {
    workgroup_reduce(value, scratch, threads, true)
}

/// Returns the largest of one value per invocation to all invocations; see [`workgroup_sum`].
#[cube]
pub(crate) fn workgroup_max(
    value: f32,
    scratch: &mut Shared<[f32]>,
    #[comptime] threads: usize,
) -> f32 {
    workgroup_reduce(value, scratch, threads, false)
}

/// Returns the sum of one value per invocation to all invocations, or the largest of them unless `add`; see [`workgroup_sum`].
#[cube]
pub(crate) fn workgroup_reduce(
    value: f32,
    scratch: &mut Shared<[f32]>,
    #[comptime] threads: usize,
    #[comptime] add: bool,
) -> f32 {
    let unit = UNIT_POS as usize;
    sync_cube();
    scratch[unit] = value;
    sync_cube();
    if unit < 16 {
        let mut part = scratch[unit];
        #[unroll]
        for i in 1..comptime!(threads / 16) {
            part = combine(part, scratch[unit + i * 16], add);
        }
        scratch[threads + unit] = part;
    }
    sync_cube();
    let mut total = scratch[threads];
    #[unroll]
    for i in 1..16usize {
        total = combine(total, scratch[threads + i], add);
    }
    total
}

#[cube]
fn combine(a: f32, b: f32, #[comptime] add: bool) -> f32 {
    if add { a + b } else { max(a, b) }
}

/// Returns the sum of a vector's components, or the largest of them unless `add`.
#[cube]
pub(crate) fn horizontal<N: Size>(value: Vector<f32, N>, #[comptime] add: bool) -> f32 {
    let mut total = value.extract(0usize);
    #[unroll]
    for i in 1..N::value() {
        total = combine(total, value.extract(i), add);
    }
    total
}
