//! Sums and maxima over slices, with several partial results in vector registers. The compiler may not reorder additions, so it cannot
//! vectorise a plain sum. The vectors are therefore explicit here, and every instruction set adds in one order.

/// The number of partial results side by side: in one 512-bit register, in two of 256 bits, or in an array.
pub(crate) const WIDTH: usize = 16;

/// The number of elements in one iteration of a reduction. Two sets of partial results hide the latency of an addition.
pub(crate) const STEP: usize = 2 * WIDTH;

/// [`WIDTH`] numbers in the registers of an instruction set.
///
/// The functions of a type may only run where its instruction set exists. The `simd` macro ensures this.
pub(crate) trait Lanes: Copy {
    /// True if the instruction set multiplies and adds in one instruction.
    const FUSED: bool;
    /// Loads the numbers into registers.
    fn new(values: &[f32; WIDTH]) -> Self;
    /// Adds element by element.
    fn add(self, other: Self) -> Self;
    /// Returns the larger of each two elements.
    fn larger(self, other: Self) -> Self;
    /// Returns the numbers in the registers.
    fn values(self) -> [f32; WIDTH];
}

impl Lanes for [f32; WIDTH] {
    const FUSED: bool = cfg!(any(target_arch = "aarch64", target_feature = "fma"));

    fn new(values: &[f32; WIDTH]) -> Self {
        *values
    }

    fn add(self, other: Self) -> Self {
        std::array::from_fn(|i| self[i] + other[i])
    }

    fn larger(self, other: Self) -> Self {
        std::array::from_fn(|i| larger(self[i], other[i]))
    }

    fn values(self) -> [f32; WIDTH] {
        self
    }
}

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64 as x86;

/// The numbers in one register. The type is used only where AVX-512 was found.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub(crate) struct Avx512(x86::__m512);

/// The numbers in two registers. The type is used only where AVX2 was found.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub(crate) struct Avx2(x86::__m256, x86::__m256);

#[cfg(target_arch = "x86_64")]
// SAFETY of all blocks: the `simd` macro uses the type only where its instruction set was found, and the arrays are long
// enough.
impl Lanes for Avx512 {
    const FUSED: bool = true;

    #[inline(always)]
    fn new(values: &[f32; WIDTH]) -> Self {
        Self(unsafe { x86::_mm512_loadu_ps(values.as_ptr()) })
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Self(unsafe { x86::_mm512_add_ps(self.0, other.0) })
    }

    #[inline(always)]
    fn larger(self, other: Self) -> Self {
        Self(unsafe { x86::_mm512_max_ps(self.0, other.0) })
    }

    #[inline(always)]
    fn values(self) -> [f32; WIDTH] {
        let mut values = [0.0; WIDTH];
        unsafe { x86::_mm512_storeu_ps(values.as_mut_ptr(), self.0) };
        values
    }
}

#[cfg(target_arch = "x86_64")]
// SAFETY of all blocks: as above.
impl Lanes for Avx2 {
    const FUSED: bool = true;

    #[inline(always)]
    fn new(values: &[f32; WIDTH]) -> Self {
        let [low, high] = [&values[..WIDTH / 2], &values[WIDTH / 2..]].map(<[f32]>::as_ptr);
        unsafe { Self(x86::_mm256_loadu_ps(low), x86::_mm256_loadu_ps(high)) }
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        unsafe {
            Self(
                x86::_mm256_add_ps(self.0, other.0),
                x86::_mm256_add_ps(self.1, other.1),
            )
        }
    }

    #[inline(always)]
    fn larger(self, other: Self) -> Self {
        unsafe {
            Self(
                x86::_mm256_max_ps(self.0, other.0),
                x86::_mm256_max_ps(self.1, other.1),
            )
        }
    }

    #[inline(always)]
    fn values(self) -> [f32; WIDTH] {
        let mut values = [0.0; WIDTH];
        let (low, high) = values.split_at_mut(WIDTH / 2);
        unsafe {
            x86::_mm256_storeu_ps(low.as_mut_ptr(), self.0);
            x86::_mm256_storeu_ps(high.as_mut_ptr(), self.1);
        }
        values
    }
}

/// Returns the sum of `term(a, b)` over two slices of one length.
#[inline(always)]
pub(crate) fn sum2<L: Lanes>(a: &[f32], b: &[f32], term: impl Fn(f32, f32) -> f32) -> f32 {
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<STEP>(), b.as_chunks::<STEP>());
    let mut totals = [L::new(&[0.0; WIDTH]); 2];
    for (a, b) in a.iter().zip(b) {
        for (half, total) in totals.iter_mut().enumerate() {
            *total = total.add(L::new(&std::array::from_fn(|i| {
                term(a[half * WIDTH + i], b[half * WIDTH + i])
            })));
        }
    }
    let mut rest = [0.0; STEP];
    for ((rest, a), b) in rest.iter_mut().zip(a_rest).zip(b_rest) {
        *rest = term(*a, *b);
    }
    if !a_rest.is_empty() {
        for (half, total) in totals.iter_mut().enumerate() {
            *total = total.add(L::new(&std::array::from_fn(|i| rest[half * WIDTH + i])));
        }
    }
    fold(totals[0].add(totals[1]), |x, y| x + y)
}

/// Returns the sum of `term(a)` over a slice.
#[inline(always)]
pub(crate) fn sum<L: Lanes>(a: &[f32], term: impl Fn(f32) -> f32) -> f32 {
    sum2::<L>(a, a, |a, _| term(a))
}

/// Returns the largest element of a slice; negative infinity if there is none.
#[inline(always)]
pub(crate) fn max<L: Lanes>(a: &[f32]) -> f32 {
    let (chunks, rest) = a.as_chunks::<STEP>();
    let mut most = [L::new(&[f32::NEG_INFINITY; WIDTH]); 2];
    for chunk in chunks {
        for (half, most) in most.iter_mut().enumerate() {
            *most = most.larger(L::new(&std::array::from_fn(|i| chunk[half * WIDTH + i])));
        }
    }
    let most = fold(most[0].larger(most[1]), larger);
    rest.iter().fold(most, |most, a| larger(most, *a))
}

/// Returns the larger number. `f32::max` also treats NaN, which costs two more instructions.
fn larger(x: f32, y: f32) -> f32 {
    if x > y { x } else { y }
}

/// Combines all numbers to one, in pairs.
#[inline(always)]
fn fold<L: Lanes>(lanes: L, combine: impl Fn(f32, f32) -> f32) -> f32 {
    let all: [f32; 16] = lanes.values();
    let eight: [f32; 8] = std::array::from_fn(|i| combine(all[i], all[i + 8]));
    let four: [f32; 4] = std::array::from_fn(|i| combine(eight[i], eight[i + 4]));
    combine(combine(four[0], four[2]), combine(four[1], four[3]))
}

#[cfg(test)]
mod tests {
    use super::*;

    type Plain = [f32; WIDTH];

    #[test]
    fn every_instruction_set_gives_the_same_bits() {
        simd! {
            fn reductions(a: &[f32], b: &[f32]) -> [f32; 3] {
                [sum::<L>(a, |a| a), sum2::<L>(a, b, |a, b| a * b), max::<L>(a)]
            }
        }
        for len in [0, 5, 32, 64, 1000] {
            let [a, b] = [1, 2].map(|seed| crate::ops::cpu::testing::numbers(seed, len));
            let want = [
                sum::<Plain>(&a, |a| a),
                sum2::<Plain>(&a, &b, |a, b| a * b),
                max::<Plain>(&a),
            ];
            assert_eq!(reductions(&a, &b), want);
        }
    }
}
