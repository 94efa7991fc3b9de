//! Rotary position embedding on a GPU, in one launch for all rows. Columns that are not rotated, such as the values of a packed q, k and v,
//! are copied.

use super::FusedRope;
use crate::ops::format::Format;
use crate::ops::gpu::wgsl::{Numbers, launch_file};
use crate::ops::gpu::{empty_of, is_f16, operand_type};
use burn::backend::Cube;
use burn::tensor::DType;
use burn_cubecl::tensor::CubeTensor;

use crate::ops::shapes::Rotation;

impl FusedRope for Cube {
    fn forward(
        x: CubeTensor,
        [cos, sin]: [CubeTensor; 2],
        rotation: Rotation,
        format: Format,
    ) -> CubeTensor {
        forward(&x, &cos, &sin, rotation, operand_type(format, &x))
    }
}

const THREADS: usize = 256;

/// Rotates the heads of x `[N, width]`: pairs (a, b) of columns (2i, 2i+1) become (a·cos − b·sin, a·sin + b·cos). cos and sin
/// `[context, head_dim/2]` are the tables of the angles position · θ^(−2i/head_dim). The result has elements of type `element`. 1 launch.
pub(crate) fn forward(
    x: &CubeTensor,
    cos: &CubeTensor,
    sin: &CubeTensor,
    rotation: Rotation,
    element: DType,
) -> CubeTensor {
    let Rotation {
        width,
        rotated,
        head_dim,
        context,
        inverse,
    } = rotation;
    assert!(
        width.is_multiple_of(2) && head_dim.is_multiple_of(2) && rotated.is_multiple_of(head_dim),
        "rotation needs pairs of columns in whole heads"
    );
    let y = empty_of(element, x, x.meta.shape());
    let count = x.meta.num_elements();
    let own = Numbers::from([
        ("count", count),
        ("width", width),
        ("rotated", rotated),
        ("head_dim", head_dim),
        ("context", context),
        ("inverse", inverse.into()),
        ("half", is_f16(&y).into()),
    ]);
    let buffers = [("x", 1, x), ("cos", 1, cos), ("sin", 1, sin), ("y", 1, &y)];
    let sizes = [THREADS, (count / 2).div_ceil(THREADS), 1];
    launch_file("rope/rope.wgsl", sizes, &buffers, own);
    y
}
