//! The model's CPU kernels: plain functions over row-major `f32` slices, one file per operation.
//! They know nothing of burn, tensors or gradient tapes, and allocate little: callers pass the outputs.
//! Results depend on the shapes and the machine, never on the number of threads.

/// Compiles a function's body once per instruction set and picks one at run time.
///
/// The loops in the body are ordinary Rust that the compiler vectorises; no intrinsics are involved. On `x86_64`
/// there are three copies (AVX-512, AVX2, baseline); elsewhere the baseline is the only one (NEON is part of it).
/// Bodies write `a * b + c`, never `mul_add`: without hardware support that is a slow library call.
macro_rules! simd {
    ($(#[$meta:meta])* $vis:vis fn $name:ident($($arg:ident: $kind:ty),* $(,)?) $(-> $result:ty)? $body:block) => {
        $(#[$meta])*
        #[allow(unsafe_code, clippy::inline_always, clippy::too_many_arguments, reason = "see the macro's SAFETY notes")]
        $vis fn $name($($arg: $kind),*) $(-> $result)? {
            #[inline(always)]
            fn body($($arg: $kind),*) $(-> $result)? $body

            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
                fn avx512($($arg: $kind),*) $(-> $result)? {
                    body($($arg),*)
                }
                #[target_feature(enable = "avx2,fma")]
                fn avx2($($arg: $kind),*) $(-> $result)? {
                    body($($arg),*)
                }
                match $crate::ops::cpu::Instructions::detect() {
                    // SAFETY: `detect` found every feature the copy is compiled for.
                    $crate::ops::cpu::Instructions::Avx512 => return unsafe { avx512($($arg),*) },
                    // SAFETY: as above.
                    $crate::ops::cpu::Instructions::Avx2 => return unsafe { avx2($($arg),*) },
                    $crate::ops::cpu::Instructions::Baseline => {}
                }
            }
            body($($arg),*)
        }
    };
}

pub mod adamw;
pub mod attention;
pub mod cross_entropy;
pub mod embedding;
pub mod linear;
pub mod matmul;
pub mod norm;
pub mod rms_norm;
pub mod roof;
pub mod rope;
pub mod strided_attention;
pub mod swiglu;
pub mod swiglu_naive;
pub mod transpose;

use std::marker::PhantomData;
use std::sync::LazyLock;

/// The widest vector instructions that this machine has and the kernels are compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instructions {
    /// 512-bit vectors.
    Avx512,
    /// 256-bit vectors with fused multiply-add.
    Avx2,
    /// What every machine of the architecture has: SSE2 on `x86_64`, NEON on `aarch64`.
    Baseline,
}

impl Instructions {
    /// Asks the machine, once.
    #[must_use]
    pub fn detect() -> Self {
        static FOUND: LazyLock<Instructions> = LazyLock::new(|| {
            #[cfg(target_arch = "x86_64")]
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                let avx512 = is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl");
                return if avx512 { Instructions::Avx512 } else { Instructions::Avx2 };
            }
            Instructions::Baseline
        });
        *FOUND
    }
}

/// Elements of element-wise work in one task: some 5 µs, so that starting a task (under 1 µs) hardly shows.
pub(crate) const GRAIN: usize = 16 * 1024;

/// Rows of `width` elements that make one task of about [`GRAIN`] elements.
pub(crate) fn rows_per_task(width: usize) -> usize {
    (GRAIN / width.max(1)).max(1)
}

/// A new vector of `len` elements that `fill` overwrites.
pub fn filled(len: usize, fill: impl FnOnce(&mut [f32])) -> Vec<f32> {
    let mut values = vec![0.0; len];
    fill(&mut values);
    values
}

/// A slice that several tasks write at once, each task a part of its own.
#[derive(Clone, Copy)]
pub(crate) struct Shared<'a> {
    start: *mut f32,
    len: usize,
    owner: PhantomData<&'a mut [f32]>,
}

#[expect(unsafe_code, reason = "hands disjoint parts of one buffer to several threads")]
// SAFETY: a `Shared` is only a place and a length; `part` and `pointer` say what their callers must keep to.
unsafe impl Send for Shared<'_> {}
#[expect(unsafe_code, reason = "hands disjoint parts of one buffer to several threads")]
// SAFETY: as above.
unsafe impl Sync for Shared<'_> {}

impl<'a> Shared<'a> {
    pub(crate) fn new(values: &'a mut [f32]) -> Self {
        Self { start: values.as_mut_ptr(), len: values.len(), owner: PhantomData }
    }

    /// The elements `start..start + len`.
    ///
    /// # Safety
    /// While the result lives, nothing else may read or write these elements.
    #[expect(unsafe_code, reason = "hands disjoint parts of one buffer to several threads")]
    pub(crate) unsafe fn part(self, start: usize, len: usize) -> &'a mut [f32] {
        assert!(start <= self.len && len <= self.len - start, "part {start}+{len} of {}", self.len);
        // SAFETY: in bounds by the assertion; the caller promises that nothing else uses the part.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(start), len) }
    }

    /// The place of element `start`, for the matrix product; the elements that follow are the caller's care.
    pub(crate) fn pointer(self, start: usize) -> *mut f32 {
        assert!(start <= self.len, "element {start} of {}", self.len);
        self.start.wrapping_add(start)
    }
}

/// e to the power `x`, in a form the compiler vectorises: relative error below 2e-7, 0 below -87.3, infinite above 88.3.
///
/// `x = n·ln 2 + r` with `|r| <= ln 2 / 2`; a polynomial gives e to the power `r`, the exponent bits give `2ⁿ`.
#[inline(always)]
#[expect(clippy::inline_always, reason = "has to be compiled with the instruction set of its caller")]
pub(crate) fn exp(x: f32) -> f32 {
    // Adding 1.5·2²³ leaves the nearest integer in the low mantissa bits.
    const ROUND: f32 = 12_582_912.0;
    // ln 2 in two parts: the first has so few bits that n times it is exact.
    const LN_2_HIGH: f32 = 0.693_359_375;
    const LN_2_LOW: f32 = -2.121_944_4e-4;
    let clamped = x.clamp(-88.0, 89.0);
    let shifted = clamped * std::f32::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = clamped - n * LN_2_HIGH - n * LN_2_LOW;
    // (eʳ - 1 - r) / r², interpolated at the five Chebyshev points of the interval.
    let p = 0.001_392_617_6 * r + 0.008_363_173;
    let p = p * r + 0.041_666_556;
    let p = p * r + 0.166_665_78;
    let p = p * r + 0.5;
    let power = p * r * r + r + 1.0;
    let two_to_n = f32::from_bits((shifted.to_bits() << 23).wrapping_add(0x3f80_0000));
    if x < -87.3 { 0.0 } else { power * two_to_n }
}

/// `1 / (1 + exp(-x))`.
#[inline(always)]
#[expect(clippy::inline_always, reason = "has to be compiled with the instruction set of its caller")]
pub(crate) fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

/// Independent sums in a reduction: enough for two 512-bit registers' worth of additions in flight.
pub(crate) const LANES: usize = 32;

/// The sum of `term(a, b)` over two slices of one length, in a fixed order that the compiler can vectorise.
#[inline(always)]
#[expect(clippy::inline_always, reason = "has to be compiled with the instruction set of its caller")]
pub(crate) fn sum2(a: &[f32], b: &[f32], term: impl Fn(f32, f32) -> f32) -> f32 {
    let mut sums = [0.0; LANES];
    let (a_chunks, b_chunks) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let (a_rest, b_rest) = (a_chunks.remainder(), b_chunks.remainder());
    for (a, b) in a_chunks.zip(b_chunks) {
        for ((sum, a), b) in sums.iter_mut().zip(a).zip(b) {
            *sum += term(*a, *b);
        }
    }
    for ((sum, a), b) in sums.iter_mut().zip(a_rest).zip(b_rest) {
        *sum += term(*a, *b);
    }
    fold(&sums, |x, y| x + y)
}

/// The sum of `term(a)` over a slice, in a fixed order that the compiler can vectorise.
#[inline(always)]
#[expect(clippy::inline_always, reason = "has to be compiled with the instruction set of its caller")]
pub(crate) fn sum(a: &[f32], term: impl Fn(f32) -> f32) -> f32 {
    sum2(a, a, |a, _| term(a))
}

/// The largest element of a slice; negative infinity if there is none.
#[inline(always)]
#[expect(clippy::inline_always, reason = "has to be compiled with the instruction set of its caller")]
pub(crate) fn max(a: &[f32]) -> f32 {
    // A comparison, not `f32::max`, which treats NaN in a way that costs two more instructions.
    let larger = |x: f32, y: f32| if x > y { x } else { y };
    let mut most = [f32::NEG_INFINITY; LANES];
    let chunks = a.chunks_exact(LANES);
    let rest = chunks.remainder();
    for chunk in chunks {
        for (most, a) in most.iter_mut().zip(chunk) {
            *most = larger(*most, *a);
        }
    }
    for (most, a) in most.iter_mut().zip(rest) {
        *most = larger(*most, *a);
    }
    fold(&most, larger)
}

/// Combines lanes pairwise.
#[inline(always)]
#[expect(clippy::inline_always, reason = "has to be compiled with the instruction set of its caller")]
fn fold(lanes: &[f32; LANES], combine: impl Fn(f32, f32) -> f32) -> f32 {
    // Without this the compiler shapes the loops that filled the lanes after the narrow end of this reduction.
    let lanes = std::hint::black_box(lanes);
    let lanes: [f32; 16] = std::array::from_fn(|i| combine(lanes[i], lanes[i + 16]));
    let lanes: [f32; 8] = std::array::from_fn(|i| combine(lanes[i], lanes[i + 8]));
    let lanes: [f32; 4] = std::array::from_fn(|i| combine(lanes[i], lanes[i + 4]));
    combine(combine(lanes[0], lanes[2]), combine(lanes[1], lanes[3]))
}

#[cfg(test)]
pub(crate) mod testing;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_is_accurate_and_safe_at_the_ends() {
        let mut worst = 0.0_f64;
        for step in -870_000..=880_000 {
            let x = step as f32 * 1e-4;
            let want = f64::from(x).exp();
            worst = worst.max((f64::from(exp(x)) / want - 1.0).abs());
        }
        assert!(worst < 2e-7, "relative error {worst:e}");
        assert_eq!(exp(0.0), 1.0);
        assert_eq!(exp(f32::NEG_INFINITY), 0.0);
        assert_eq!(exp(-1e30), 0.0);
        assert_eq!(exp(1e30), f32::INFINITY);
        assert!(exp(f32::NAN).is_nan());
        assert_eq!(sigmoid(-1e4), 0.0);
        assert_eq!(sigmoid(1e4), 1.0);
    }

    #[test]
    fn reductions_take_every_element() {
        for len in [0, 1, 31, 32, 33, 97] {
            let a: Vec<f32> = (0..len).map(|i| i as f32).collect();
            assert_eq!(sum(&a, |a| a), (0..len).sum::<usize>() as f32);
            assert_eq!(sum2(&a, &a, |a, b| a - b + 1.0), len as f32);
            let want = if len == 0 { f32::NEG_INFINITY } else { (len - 1) as f32 };
            assert_eq!(max(&a), want);
        }
    }
}
