//! Short number formats on a GPU: rounding to f16 or bf16 with results stored as f32, and conversion to f16 in memory on devices that compute
//! with it.

use crate::ops::gpu::{arg, empty, empty_of, groups};
use burn::cubecl::ir::ElemType;
use burn::cubecl::{self, prelude::*};
use burn::tensor::DType;
use burn_cubecl::tensor::CubeTensor;
use protocol::config::Precision;

const THREADS: usize = 256;
/// The number of vectors that one invocation of [`convert_format`] converts.
const ITEMS: usize = 4;

/// Rounds every value to the nearest number of `format` and stores it as f32. 1 launch.
pub fn rounded(x: &CubeTensor, format: Precision) -> CubeTensor {
    let count = x.meta.num_elements();
    let out = empty(x, x.meta.shape());
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
    out
}

/// Rounds by the formulas of `ops/cpu/format.rs`. Below f16's normal range, the result is a multiple of 2⁻²⁴.
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

/// Converts f32 to f16, or f16 to f32, in 1 launch. Returns the tensor itself if it has this type already, or if its number of elements is
/// no multiple of four.
pub fn converted(x: CubeTensor, to: DType) -> CubeTensor {
    if x.dtype == to || !x.meta.num_elements().is_multiple_of(4) {
        return x;
    }
    convert(std::slice::from_ref(&x), to).pop().unwrap_or(x)
}

/// Converts many f32 tensors to f16, in 1 launch for each 32 tensors (15 where a device has 31 bindings).
pub fn halves(all: Vec<CubeTensor>) -> Vec<CubeTensor> {
    let fits = |tensor: &CubeTensor| {
        !crate::ops::gpu::is_f16(tensor) && tensor.meta.num_elements().is_multiple_of(4)
    };
    if !all.iter().all(fits) {
        return all
            .into_iter()
            .map(|tensor| converted(tensor, DType::F16))
            .collect();
    }
    convert(&all, DType::F16)
}

/// The largest number of tensors in one launch; each needs two bindings.
const MOST_TENSORS: usize = 32;

/// Returns copies of the tensors, converted to `to`. All have one type.
fn convert(all: &[CubeTensor], to: DType) -> Vec<CubeTensor> {
    let Some(like) = all.first() else {
        return Vec::new();
    };
    let bindings = like.client.properties().hardware.max_bindings as usize;
    let most = (bindings.saturating_sub(1) / 2).clamp(1, MOST_TENSORS);
    let mut copies = Vec::with_capacity(all.len());
    for batch in all.chunks(most) {
        let mut args = SequenceArg::new();
        let mut first = 0;
        for from in batch {
            let count = from.meta.num_elements() / 4;
            let copy = empty_of(to, from, from.meta.shape());
            args.push(CopyDataLaunch::new(arg(from), arg(&copy), first, count));
            first += count.div_ceil(THREADS * ITEMS);
            copies.push(copy);
        }
        unsafe {
            convert_format::launch_unchecked(
                &like.client,
                groups(first),
                CubeDim::new_1d(THREADS as u32),
                args,
                [
                    crate::ops::gpu::element(like),
                    crate::ops::gpu::element(&copies[0]),
                ],
            );
        }
    }
    copies
}

/// The two buffers of a copy, its first workgroup, and its number of vectors.
#[derive(CubeType, CubeLaunch)]
struct CopyData<I: Numeric, O: Numeric> {
    from: Box<[Vector<I, Const<4>>]>,
    to: Box<[Vector<O, Const<4>>]>,
    first: usize,
    count: usize,
}

#[cube(launch_unchecked)]
fn convert_format<I: Numeric, O: Numeric>(
    all: &mut Sequence<CopyData<I, O>>,
    #[define(I, O)] _elements: [ElemType; 2],
) {
    #[unroll]
    for s in 0..all.len() {
        let copy = all.index_mut(s);
        let groups = copy.count.div_ceil(comptime!(THREADS * ITEMS));
        if CUBE_POS >= copy.first && CUBE_POS < copy.first + groups {
            let start = (CUBE_POS - copy.first) * comptime!(THREADS * ITEMS) + UNIT_POS as usize;
            #[unroll]
            for i in 0..ITEMS {
                let at = start + i * THREADS;
                if at < copy.count {
                    copy.to[at] = Vector::cast_from(copy.from[at]);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::cpu::format::nearest;
    use crate::ops::cpu::testing::numbers;
    use crate::ops::gpu::check::TestDevice;
    use crate::ops::rms_norm::fused_gpu as rms_norm;
    use crate::ops::rope::fused_gpu as rope;
    use crate::ops::shapes::Rotation;
    use crate::ops::swiglu::fused_gpu as swiglu;
    use burn::cubecl::ir::FloatKind;

    #[test]
    fn the_device_rounds_as_the_host_does() {
        let Some(device) = TestDevice::any() else {
            return;
        };
        // Every exponent, with fractions at, below and above the midpoint of two numbers of either format.
        let ends = [
            0, 1, 0xfff, 0x1000, 0x1001, 0x3000, 0x7fff, 0x8000, 0x8001, 0x1_8000,
        ];
        let bits = (0..=255_u32).flat_map(|e| ends.map(|fraction| e << 23 | fraction));
        let x: Vec<f32> = bits
            .flat_map(|bits| [bits, bits | 0x8000_0000])
            .map(f32::from_bits)
            // Drivers may replace subnormal f32 numbers by zero, and need not preserve NaN.
            .filter(|x| x.is_normal() || *x == 0.0 || x.is_infinite())
            .collect();
        for format in [Precision::F16, Precision::Bf16] {
            let got = device.read(&rounded(&device.tensor(&x, [x.len()]), format));
            for (x, got) in x.iter().zip(got) {
                assert_eq!(got, nearest(*x, format), "{x:e} as {format}");
            }
        }
    }

    /// Many copies in one launch, and outputs that kernels write as f16, equal single copies.
    #[test]
    fn f16_from_a_kernel_is_the_nearest_f16_of_its_f32() {
        let Some(device) = TestDevice::any() else {
            return;
        };
        let n = 6;
        let d = 16;
        let x = device.tensor(&numbers(1, n * d), [n, d]);
        if !x.client.properties().supports_type(FloatKind::F16) {
            return println!("skipped: no f16");
        }
        let gain = device.tensor(&numbers(2, d), [1, d]);
        let dy = device.tensor(&numbers(3, n * d / 2), [n, d / 2]);
        let read = |tensor: CubeTensor| device.read(&converted(tensor, DType::F32));
        let copies = halves(vec![x.clone(), gain.clone(), dy.clone()]);
        for (copy, from) in copies.into_iter().zip([&x, &gain, &dy]) {
            let near = |x: f32| nearest(x, Precision::F16);
            let want: Vec<f32> = device.read(from).into_iter().map(near).collect();
            assert_eq!(read(copy), want);
        }
        let tables = [4, 5].map(|seed| device.tensor(&numbers(seed, n * 2), [n, 2]));
        let rotation = Rotation {
            width: d,
            rotated: 8,
            head_dim: 4,
            context: n,
            inverse: true,
        };
        let all = |element| {
            let [normed, _] = rms_norm::forward(&x, &gain, element);
            [
                normed,
                swiglu::forward(&x, element),
                swiglu::backward(&dy, &x, element),
                rope::forward(&x, &tables[0], &tables[1], rotation, element),
            ]
        };
        for (short, long) in all(DType::F16).into_iter().zip(all(DType::F32)) {
            assert!(crate::ops::gpu::is_f16(&short));
            assert_eq!(read(short), read(converted(long, DType::F16)));
        }
    }
}
