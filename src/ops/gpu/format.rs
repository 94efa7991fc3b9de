//! Short number formats on a GPU: values rounded to them and kept in f32, and f16 in memory where a device computes with it.

use super::wgsl::{self, Program};
use super::{arg, empty, empty_f16, groups};
use crate::config::Precision;
use burn::cubecl::{self, prelude::*};
use burn_cubecl::tensor::CubeTensor;

const THREADS: usize = 256;
/// Vectors for one invocation of [`Convert`].
const ITEMS: usize = 4;

/// Every value at the nearest number of `format`, in f32. 1 launch.
pub fn rounded(x: &CubeTensor, format: Precision) -> CubeTensor {
    let count = x.meta.num_elements();
    let out = empty(x, [count]);
    unsafe {
        round_values::launch_unchecked(
            &x.client,
            groups(count.div_ceil(THREADS)),
            CubeDim::new_1d(THREADS as u32),
            arg(x),
            arg(&out),
            count,
            format == Precision::Bf16,
        );
    }
    with_shape_of(out, x)
}

/// The formulas of `ops/cpu/format.rs`. Below f16's normal range, a multiple of 2⁻²⁴.
#[cube(launch_unchecked)]
fn round_values(x: &[f32], out: &mut [f32], count: usize, #[comptime] bf16: bool) {
    if ABSOLUTE_POS < count {
        let value = x[ABSOLUTE_POS];
        let bits = u32::reinterpret(value);
        let magnitude = bits & 0x7fff_ffffu32;
        let sign = bits & 0x8000_0000u32;
        let mut result = magnitude;
        if magnitude <= 0x7f80_0000u32 {
            if comptime!(bf16) {
                result = (magnitude + 0x7fffu32 + ((magnitude >> 16u32) & 1u32)) & 0xffff_0000u32;
            } else if magnitude < 0x3880_0000u32 {
                let steps = f32::reinterpret(magnitude) * 16_777_216.0f32;
                result = u32::reinterpret(steps.round() * 5.960_464_5e-8f32);
            } else {
                result = (magnitude + 0xfffu32 + ((magnitude >> 13u32) & 1u32)) & 0xffff_e000u32;
                if result >= 0x4780_0000u32 {
                    result = 0x7f80_0000u32;
                }
            }
        }
        out[ABSOLUTE_POS] = f32::reinterpret(sign | result);
    }
}

/// f32 to f16 where four values make a vector; the tensor itself where they do not, or where it is f16. 1 launch.
pub fn half(x: CubeTensor) -> CubeTensor {
    convert(x, true)
}

/// f16 to f32; the tensor itself where it is f32. 1 launch.
pub fn full(x: CubeTensor) -> CubeTensor {
    convert(x, false)
}

fn convert(x: CubeTensor, to_half: bool) -> CubeTensor {
    let count = x.meta.num_elements();
    if super::is_f16(&x) == to_half || !count.is_multiple_of(4) {
        return x;
    }
    let out = if to_half {
        empty_f16(&x, [count])
    } else {
        empty(&x, [count])
    };
    let program = Convert {
        vectors: count / 4,
        to_half,
    };
    let groups = (count / 4).div_ceil(THREADS * ITEMS);
    wgsl::launch(program, [groups, 1, 1], &[&x, &out]);
    with_shape_of(out, &x)
}

fn with_shape_of(values: CubeTensor, like: &CubeTensor) -> CubeTensor {
    CubeTensor::new_contiguous(
        values.client,
        values.device,
        like.meta.shape().clone(),
        values.handle,
        values.dtype,
    )
}

/// Between f32 and f16, four values at a time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Convert {
    vectors: usize,
    to_half: bool,
}

impl Program for Convert {
    fn name(&self) -> &'static str {
        "convert_format"
    }

    fn workgroup(&self) -> [u32; 3] {
        [THREADS as u32, 1, 1]
    }

    fn text(&self) -> String {
        let (from, to) = if self.to_half {
            ("f32", "f16")
        } else {
            ("f16", "f32")
        };
        let vectors = self.vectors;
        format!(
            "enable f16;
@group(0) @binding(0) var<storage, read_write> x: array<vec4<{from}>>;
@group(0) @binding(1) var<storage, read_write> y: array<vec4<{to}>>;
@compute @workgroup_size({THREADS})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {{
  for (var i = 0u; i < {ITEMS}u; i += 1u) {{
    let at = (group.x * {ITEMS}u + i) * {THREADS}u + lane;
    if at < {vectors}u {{ y[at] = vec4<{to}>(x[at]); }}
  }}
}}
"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::check::Device;
    use super::*;
    use crate::ops::cpu::format::nearest;

    #[test]
    fn the_device_rounds_as_the_host_does() {
        let Some(device) = Device::any() else { return };
        // Every exponent, with fractions on, below and above the middle of two numbers of either format.
        let ends = [
            0, 1, 0xfff, 0x1000, 0x1001, 0x3000, 0x7fff, 0x8000, 0x8001, 0x1_8000,
        ];
        let bits = (0..=255_u32).flat_map(|e| ends.map(|fraction| e << 23 | fraction));
        let x: Vec<f32> = bits
            .flat_map(|bits| [bits, bits | 0x8000_0000])
            .map(f32::from_bits)
            // Drivers may take subnormal numbers of f32 for zero, and need not keep NaN.
            .filter(|x| x.is_normal() || *x == 0.0 || x.is_infinite())
            .collect();
        for format in [Precision::F16, Precision::Bf16] {
            let got = device.read(&rounded(&device.tensor(&x, [x.len()]), format));
            for (x, got) in x.iter().zip(got) {
                assert_eq!(got, nearest(*x, format), "{x:e} as {format}");
            }
        }
    }
}
